/* SPDX-License-Identifier: BSD-3-Clause */
/* test_szip.c - szip on what libhdf5 stored: decoded, encoded to the same bytes, cut, with
 * bits flipped, with parameters that lie; and what it makes of a user's and a document's. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/compress/vectors_szip.h"
#include "tests/unit/codecs_encode.h"

#define BYTES_MAX 20000

static struct codec_scratch *scratch;

static int setup(void **state)
{
	(void)state;
	scratch = codec_scratch_new();
	return scratch ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	codec_scratch_free(scratch);
	return 0;
}

/* szip_elements - n elements: 3 i / 2 and up to three more, or zeros. */
static void szip_elements(uint32_t elem, bool big, bool zeros, size_t n, uint8_t *out)
{
	static uint8_t more[BYTES_MAX];

	noise(more, n, 7);
	for (size_t i = 0; i < n; i++) {
		uint64_t v = zeros ? 0 : 3 * i / 2 + (more[i] & 3);

		for (uint32_t b = 0; b < elem; b++)
			out[i * elem + (big ? elem - 1 - b : b)] =
				(uint8_t)(b < 8 ? v >> (8 * b) : 0);
	}
}

/* vec - one vector, made ready; in is exactly as long as it is. */
struct vec {
	const struct szip_vector *v;
	struct codec_spec spec;
	struct codec_chain chain;
	uint8_t *in, *want;
	size_t n, len;
};

static void vec_open(struct vec *x, const struct szip_vector *v)
{
	*x = (struct vec){.v = v,
			  .spec = {CODEC_SZIP, 4, v->params, ""},
			  .n = strlen(v->hex) / 2,
			  .len = v->n * v->elem};
	x->chain = (struct codec_chain){1, &x->spec};
	x->in = malloc(x->n);
	x->want = malloc(x->len);
	assert_non_null(x->in);
	assert_non_null(x->want);
	from_hex(v->hex, x->in);
	szip_elements(v->elem, v->big, v->zeros, v->n, x->want);
}

static void vec_close(struct vec *x)
{
	free(x->in);
	free(x->want);
}

/* decode - n bytes to a new memory of len bytes, at an odd address, freed after comparing. */
static int decode(const struct vec *x, const struct codec_chain *c, const uint8_t *in, size_t n,
		  size_t len, bool *ret_same)
{
	uint8_t *copy = malloc(n + 1), *out = malloc(len + 1);
	struct err e = ERR_INIT;
	int rc;

	assert_non_null(copy);
	assert_non_null(out);
	if (n > 0)
		memcpy(copy + 1, in, n);
	memset(out, 0xa5, len + 1);
	rc = codec_chain_decode(c, 0, x->v->elem, copy + 1, n, out + 1, len, scratch, &e);
	*ret_same = !rc && len == x->len && memcmp(out + 1, x->want, len) == 0;
	if (rc) {
		assert_int_equal(e.code, rc);
		assert_true(e.msg[0] != '\0');
	}
	free(copy);
	free(out);
	return rc;
}

static void test_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(szip_vectors); i++) {
		const struct codec_ops *ops = codec_find(CODEC_SZIP);
		struct vec x;
		struct buf b;
		bool same;

		vec_open(&x, &szip_vectors[i]);
		if (decode(&x, &x.chain, x.in, x.n, x.len, &same) || !same)
			fail_msg("vector %zu: decoding", i);
		buf_init(&b, 1 << 20);
		assert_int_equal(encode_chain(&x.chain, x.v->elem, x.want, x.len, &b, NULL), 0);
		if (b.len != x.n || memcmp(b.data, x.in, x.n) != 0)
			fail_msg("vector %zu: encoding", i);
		assert_true(ops->stored_max(&x.spec, x.len) >= b.len);
		buf_release(&b);
		vec_close(&x);
	}
}

/* The end of a stream may be what fills up the last scanline. */
static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(szip_vectors); i++) {
		struct vec x;
		bool same;

		vec_open(&x, &szip_vectors[i]);
		for (size_t n = 0; n < x.n; n++) {
			int rc = decode(&x, &x.chain, x.in, n, x.len, &same);

			if (rc ? rc != -EBADMSG : !same || n < 5)
				fail_msg("vector %zu: %zu of %zu bytes: %d", i, n, x.n, rc);
		}
		vec_close(&x);
	}
}

static void test_other_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(szip_vectors); i++) {
		const uint8_t *any;
		struct vec x;
		size_t len;
		bool same;

		vec_open(&x, &szip_vectors[i]);
		const size_t lens[] = {0, 1, x.len - 1, x.len + 1, x.len + 8, 2 * x.len};

		for (size_t k = 0; k < ARRAY_LEN(lens); k++)
			assert_int_equal(decode(&x, &x.chain, x.in, x.n, lens[k], &same),
					 -EBADMSG);
		assert_int_equal(codec_chain_decode_any(&x.chain, 1, x.in, x.n, x.len - 1,
							scratch, &any, &len, NULL),
				 -ERANGE);
		/* the length in front lies together with the one that is promised */
		for (size_t k = 2; k < ARRAY_LEN(lens); k++) {
			int rc;

			for (unsigned int b = 0; b < 4; b++)
				x.in[b] = (uint8_t)(lens[k] >> (8 * b));
			rc = decode(&x, &x.chain, x.in, x.n, lens[k], &same);
			assert_true(rc == 0 || rc == -EBADMSG);
		}
		vec_close(&x);
	}
}

static void test_flipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(szip_vectors); i++) {
		struct vec x;
		bool same;

		vec_open(&x, &szip_vectors[i]);
		for (size_t bit = 0; bit < 8 * x.n; bit++) {
			int rc;

			x.in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = decode(&x, &x.chain, x.in, x.n, x.len, &same);
			if (rc && rc != -EBADMSG)
				fail_msg("vector %zu: bit %zu: %d", i, bit, rc);
			x.in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		vec_close(&x);
	}
}

/* With the parameters of other chunks the output is meaningless, but within its bounds. */
static void test_parameters(void **state)
{
	static const uint32_t bad[][4] = {
		{169, 0, 8, 30},        {169, 1, 8, 30},        {169, 7, 8, 30},
		{169, 34, 8, 64},       {169, 8, 0, 30},        {169, 8, 33, 30},
		{169, 8, 63, 8},        {169, 8, 65, 30},       {169, 8, 8, 0},
		{169, 8, 8, 7},         {169, 8, 8, 4097},      {169, 8, 8, 1u << 31},
		{169, 1u << 31, 8, 30}, {169, 8, 1u << 31, 30},
	};
	static const uint32_t blocks[] = {2, 8, 32}, bits[] = {1, 8, 9, 16, 17, 25, 31, 32, 64};
	struct vec x;
	struct buf b;
	bool same;

	(void)state;
	vec_open(&x, &szip_vectors[3]);
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		x.spec.params = bad[i];
		assert_int_equal(decode(&x, &x.chain, x.in, x.n, x.len, &same), -EBADMSG);
		assert_int_equal(encode_chain(&x.chain, 1, x.want, x.len, &b, NULL),
				 -EOPNOTSUPP);
	}
	x.spec.params = szip_vectors[3].params;
	for (x.spec.n_params = 0; x.spec.n_params < 4; x.spec.n_params++) {
		assert_int_equal(decode(&x, &x.chain, x.in, x.n, x.len, &same), -EBADMSG);
		assert_int_equal(encode_chain(&x.chain, 1, x.want, x.len, &b, NULL),
				 -EOPNOTSUPP);
	}
	for (size_t i = 0; i < ARRAY_LEN(blocks) * ARRAY_LEN(bits) * 2; i++) {
		uint32_t params[] = {i % 2 ? 48 : 4, blocks[i / 2 % 3], bits[i / 6], 4096};
		int rc;

		x.spec.params = params;
		rc = decode(&x, &x.chain, x.in, x.n, x.len, &same);
		assert_true(rc == 0 || rc == -EBADMSG);
	}
	assert_int_equal(b.len, 0);
	buf_release(&b);
	vec_close(&x);
}

/* trip - n bytes there and back. */
static int trip(const uint32_t *params, const uint8_t *in, size_t n)
{
	const struct codec_spec spec = {CODEC_SZIP, 4, params, ""};
	const struct codec_chain c = {1, &spec};
	uint8_t *out = malloc(n ? n : 1);
	struct buf b;
	int rc;

	assert_non_null(out);
	buf_init(&b, 1 << 20);
	rc = encode_chain(&c, 1, in, n, &b, NULL);
	if (!rc) {
		assert_int_equal(
			codec_chain_decode(&c, 0, 1, b.data, b.len, out, n, scratch, NULL), 0);
		assert_memory_equal(out, in, n);
		assert_true(b.len <= codec_find(CODEC_SZIP)->stored_max(&spec, n));
	}
	buf_release(&b);
	free(out);
	return rc;
}

static void test_round_trip(void **state)
{
	static uint8_t in[70000];
	static const uint32_t bits[] = {8, 16, 32, 64}, lines[] = {32, 33, 100, 1000, 4096};
	static const size_t lens[] = {0, 1, 7, 8, 31, 33, 2048, 32767, 65537};

	(void)state;
	noise(in, sizeof(in) / 2, 3);
	for (uint32_t b = 0; b < ARRAY_LEN(bits); b++)
		for (uint32_t l = 0; l < ARRAY_LEN(lines); l++)
			for (size_t k = 0; k < ARRAY_LEN(lens) * 2; k++) {
				uint32_t params[] = {k % 2 ? 169 : 149, k % 3 ? 8 : 32, bits[b],
						     lines[l]};
				size_t elem = bits[b] / 8, n = lens[k / 2];

				assert_int_equal(
					trip(params, in, n * elem < 70000 ? n * elem : 0), 0);
				/* no whole elements: libhdf5 loses the rest */
				if (elem > 1)
					assert_int_equal(trip(params, in, n | 1), -EOPNOTSUPP);
			}
	/* samples of 12 bits that have more */
	assert_int_equal(trip((uint32_t[]){169, 8, 12, 30}, in, 60), -EOPNOTSUPP);
	assert_int_equal(trip((uint32_t[]){177, 8, 12, 30}, (const uint8_t *)"\x0f\xff", 2), 0);
	assert_int_equal(trip((uint32_t[]){169, 8, 12, 30}, (const uint8_t *)"\x0f\xff", 2),
			 -EOPNOTSUPP);
}

/* ---- parameters ---- */

static int prepare(const struct codec_array *a, uint32_t mask, uint32_t block, uint32_t *params)
{
	const uint32_t visible[] = {mask, block};
	const struct codec_spec spec = {CODEC_SZIP, 2, visible, ""};
	struct err e = ERR_INIT;
	uint32_t n = 0;
	int rc = codec_find(CODEC_SZIP)->prepare(&spec, a, params, &n, &e);

	assert_int_equal(e.code, rc);
	if (!rc)
		assert_int_equal(n, 4);
	return rc;
}

static void test_prepare(void **state)
{
	static const uint64_t chunk[] = {3, 7}, huge[] = {UINT64_MAX, 3, UINT64_MAX, 2};
	struct codec_array a = {.class = CODEC_INT, .elem_size = 2, .rank = 2, .chunk = chunk};
	struct codec_spec one = {CODEC_SZIP, 1, (const uint32_t[]){4}, ""};
	uint32_t params[CODEC_PARAMS_MAX], n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(szip_vectors); i++) {
		const struct szip_vector *v = &szip_vectors[i];
		const struct codec_array b = {.class = i % 2 ? CODEC_UINT : CODEC_FLOAT,
					      .elem_size = v->elem,
					      .big_endian = v->big,
					      .rank = v->rank,
					      .chunk = v->chunk};

		if (v->rank == 0)
			continue;
		assert_int_equal(prepare(&b, v->visible[0], v->visible[1], params), 0);
		assert_memory_equal(params, v->params, sizeof(v->params));
	}
	/* what libhdf5 refuses, or would crash on */
	assert_int_equal(prepare(&a, 32, 0, params), -EINVAL);
	assert_int_equal(prepare(&a, 32, 7, params), -EINVAL);
	assert_int_equal(prepare(&a, 32, 34, params), -EINVAL);
	assert_int_equal(prepare(&a, 32, 32, params), -EOPNOTSUPP);
	assert_int_equal(prepare(&a, 32 | 2 | 8 | 16, 8, params), 0);
	assert_memory_equal(params, ((uint32_t[]){169, 8, 16, 21}), 16);
	assert_int_equal(codec_find(CODEC_SZIP)->prepare(&one, &a, params, &n, NULL), -EINVAL);
	a.class = CODEC_OTHER;
	assert_int_equal(prepare(&a, 32, 8, params), -EOPNOTSUPP);
	a.class = CODEC_FLOAT;
	for (uint32_t size = 1; size < 20; size++) {
		bool can = size == 1 || size == 2 || size == 4 || size == 8;

		a.elem_size = size;
		assert_int_equal(prepare(&a, 4, 8, params), can ? 0 : -EOPNOTSUPP);
	}
	a.elem_size = 4;
	a.rank = 4;
	a.chunk = huge;
	assert_int_equal(prepare(&a, 4, 8, params), 0);
	assert_int_equal(params[3], 1024);
	a.rank = 0;
	assert_int_equal(prepare(&a, 4, 8, params), -EOPNOTSUPP);
}

/* from - parameters out of a document; the array is that of a tree. */
static int from(const char *text, const struct codec_array *a, const uint64_t *shape,
		uint32_t *params)
{
	struct fake_conf c = {.text = text};
	const struct codec_conf conf = {.arg = &c,
					.version = 2,
					.elem_size = 1,
					.integer = fake_integer,
					.real = fake_real,
					.text = fake_text,
					.array = a,
					.shape = shape};
	struct err e = ERR_INIT;
	uint32_t n = 0;
	int rc = codec_find_zarr2("szip", 4)->from_zarr(&conf, params, &n, &e);

	assert_int_equal(e.code, rc);
	assert_int_equal(n, rc && n == 0 ? 0 : 4);
	return rc;
}

/* in_zarr - the same of what HDF5 has stored. */
static void in_zarr(const struct codec_array *a, const uint64_t *shape, const uint32_t *want)
{
	static const uint32_t h5[] = {177, 8, 32, 10};
	const struct codec_spec spec = {CODEC_SZIP, 4, h5, ""}, less = {CODEC_SZIP, 1, h5, ""};
	uint32_t params[4];

	assert_int_equal(codec_szip_in_zarr(&spec, a, shape, params, NULL), 0);
	assert_memory_equal(params, want, sizeof(params));
	assert_int_equal(codec_szip_in_zarr(&less, a, shape, params, NULL), -EINVAL);
}

static void test_zarr(void **state)
{
	static const uint64_t chunk[] = {5, 10}, shape[] = {20, 33}, slim[] = {20, 7};
	struct codec_array a = {.class = CODEC_FLOAT,
				.elem_size = 4,
				.big_endian = true,
				.rank = 2,
				.chunk = chunk};
	uint32_t params[CODEC_PARAMS_MAX];
	struct codec_spec spec = {CODEC_SZIP, 4, params, ""};
	struct buf b;

	(void)state;
	/* netCDF-C: scanlines are those of the array, not of the chunk */
	assert_int_equal(from("mask=32,pixels-per-block=#8", &a, shape, params), 0);
	assert_memory_equal(params, ((uint32_t[]){177, 8, 32, 33}), 16);
	assert_int_equal(from("mask=#4,pixels-per-block=8", &a, slim, params), 0);
	assert_memory_equal(params, ((uint32_t[]){149, 8, 32, 50}), 16);
	in_zarr(&a, shape, (uint32_t[]){177, 8, 32, 33});
	in_zarr(&a, slim, (uint32_t[]){177, 8, 32, 50});
	/* all four are stated */
	assert_int_equal(from("mask=#169,pixels-per-block=#8,bits-per-pixel=#12,"
			      "pixels-per-scanline=#10",
			      NULL, NULL, params),
			 0);
	assert_memory_equal(params, ((uint32_t[]){169, 8, 12, 10}), 16);
	buf_init(&b, 200);
	codec_find(CODEC_SZIP)->zarr2_params(&spec, 4, &b);
	buf_putc(&b, '\0');
	assert_string_equal((char *)b.data, ", \"mask\": 169, \"pixels-per-block\": 8, "
					    "\"bits-per-pixel\": 12, "
					    "\"pixels-per-scanline\": 10");
	buf_release(&b);

	assert_int_equal(from("mask=#32,pixels-per-block=#8", NULL, NULL, params), -EOPNOTSUPP);
	assert_int_equal(from("mask=#32", &a, shape, params), -EBADMSG);
	assert_int_equal(from("pixels-per-block=#8", &a, shape, params), -EBADMSG);
	assert_int_equal(from("mask=#32,pixels-per-block=#9", &a, shape, params), -EBADMSG);
	assert_int_equal(from("mask=#32,pixels-per-block=#4294967304", &a, shape, params),
			 -EBADMSG);
	assert_int_equal(from("mask=nn,pixels-per-block=#8", &a, shape, params), -EBADMSG);
	/* characters have a class of their own */
	a.class = CODEC_OTHER;
	assert_int_equal(from("mask=#32,pixels-per-block=#8", &a, shape, params), -EOPNOTSUPP);
	a.elem_size = 1;
	assert_int_equal(from("mask=#32,pixels-per-block=#8", &a, shape, params), 0);
	a.rank = 0;
	assert_int_equal(from("mask=#32,pixels-per-block=#8", &a, shape, params), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),        cmocka_unit_test(test_cut),
		cmocka_unit_test(test_other_length), cmocka_unit_test(test_flipped),
		cmocka_unit_test(test_parameters),   cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_prepare),      cmocka_unit_test(test_zarr),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
