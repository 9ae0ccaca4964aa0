/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bitshuffle.c - bitshuffle on what its HDF5 filter stored: decoded, encoded to the
 * same bytes, cut, with bits flipped, with heads and parameters that lie; there and back. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/shuffle/vectors_bitshuffle.h"
#include "tests/unit/codecs_encode.h"

#define BYTES_MAX 300000
#define HEAD 12

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

/* elements - n of `size` bytes: 3 i / 2 and up to three more, little-endian. */
static void elements(size_t size, size_t n, uint8_t *out)
{
	static uint8_t more[BYTES_MAX];

	noise(more, n, 5);
	for (size_t i = 0; i < n; i++)
		for (size_t b = 0; b < size; b++) {
			uint64_t v = 3 * i / 2 + (more[i] & 3);

			*out++ = (uint8_t)(b < 8 ? v >> (8 * b) : 0);
		}
}

/* vec - one vector, made ready. */
struct vec {
	const struct bitshuffle_vector *v;
	struct codec_spec spec;
	struct codec_chain chain;
	uint8_t in[4096], want[4096];
	size_t n, len;
};

static void vec_open(struct vec *x, const struct bitshuffle_vector *v)
{
	*x = (struct vec){.v = v,
			  .spec = {CODEC_BITSHUFFLE, v->n_params, v->params, ""},
			  .len = v->n * v->size};
	x->chain = (struct codec_chain){1, &x->spec};
	assert_true(strlen(v->hex) / 2 <= sizeof(x->in) && x->len <= sizeof(x->want));
	x->n = from_hex(v->hex, x->in);
	elements(v->size, v->n, x->want);
}

static bool packed(const struct vec *x)
{
	return x->v->n_params > 4 && x->v->params[4] != 0;
}

/* decode - n bytes to a new memory of len bytes, at odd addresses, freed after comparing. */
static int decode(const struct codec_chain *c, const uint8_t *in, size_t n, const uint8_t *want,
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
	rc = codec_chain_decode(c, 0, 1, copy + 1, n, out + 1, len, scratch, &e);
	*ret_same = !rc && want && memcmp(out + 1, want, len) == 0;
	assert_int_equal(e.code, rc);
	free(copy);
	free(out);
	return rc;
}

static void test_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bitshuffle_vectors); i++) {
		const uint8_t *any;
		struct vec x;
		struct buf b;
		size_t len;
		bool same;

		vec_open(&x, &bitshuffle_vectors[i]);
		if (decode(&x.chain, x.in, x.n, x.want, x.len, &same) || !same)
			fail_msg("vector %zu: decoding", i);
		assert_int_equal(codec_chain_decode_any(&x.chain, 1, x.in, x.n, x.len, scratch,
							&any, &len, NULL),
				 0);
		assert_int_equal(len, x.len);
		assert_memory_equal(any, x.want, len);
		buf_init(&b, 1 << 20);
		assert_int_equal(encode_chain(&x.chain, 1, x.want, x.len, &b, NULL), 0);
		if (x.v->n_params == 6) /* of another version of Zstandard: other bytes */
			assert_int_equal(decode(&x.chain, b.data, b.len, x.want, x.len, &same),
					 0);
		else if (b.len != x.n || memcmp(b.data, x.in, x.n) != 0)
			fail_msg("vector %zu: encoding", i);
		assert_true(codec_find(CODEC_BITSHUFFLE)->stored_max(&x.spec, x.len) >= b.len);
		buf_release(&b);
	}
}

static void test_damaged(void **state)
{
	static const int more[] = {-1, 1, 8, 4096};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bitshuffle_vectors); i++) {
		struct vec x;
		bool same;

		vec_open(&x, &bitshuffle_vectors[i]);
		for (size_t n = 0; n < x.n; n++)
			assert_int_equal(decode(&x.chain, x.in, n, NULL, x.len, &same),
					 -EBADMSG);
		for (size_t k = 0; k < ARRAY_LEN(more); k++)
			assert_int_equal(decode(&x.chain, x.in, x.n, NULL,
						(size_t)((int)x.len + more[k]), &same),
					 -EBADMSG);
		for (size_t bit = 0; bit < 8 * x.n; bit++) {
			int rc;

			x.in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			rc = decode(&x.chain, x.in, x.n, x.want, x.len, &same);
			if (rc ? rc != -EBADMSG : packed(&x) && bit < 64)
				fail_msg("vector %zu: bit %zu: %d", i, bit, rc);
			x.in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* Blocks may have any length in a head; the parameters do not matter then. */
static void test_heads(void **state)
{
	static const struct {
		uint32_t block; /* bytes */
		int rc;
	} rows[] = {{4 * 1024, 0},     {4 * 48, 0},   {1u << 31, 0},  {0xffffffe0, 0},
		    {0, -EBADMSG},     {4, -EBADMSG}, {33, -EBADMSG}, {0xffffffff, -EBADMSG},
		    {4 * 32, -EBADMSG}};
	struct vec x;
	bool same;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bitshuffle_vectors); i++)
		if (bitshuffle_vectors[i].size == 4 && bitshuffle_vectors[i].n == 40 &&
		    bitshuffle_vectors[i].n_params == 5)
			vec_open(&x, &bitshuffle_vectors[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (unsigned int b = 0; b < 4; b++)
			x.in[8 + b] = (uint8_t)(rows[i].block >> (24 - 8 * b));
		assert_int_equal(decode(&x.chain, x.in, x.n, x.want, x.len, &same), rows[i].rc);
		assert_true(rows[i].rc || same);
	}
}

static void test_parameters(void **state)
{
	static const uint32_t bad[][6] = {
		{0, 4, 0, 0, 2, 0}, {0, 4, 4, 4, 0, 0}, {0, 4, 4, 4, 2, 0},
		{0, 4, 4, 0, 1, 0}, {0, 4, 4, 0, 4, 0}, {0, 4, 4, 0, UINT32_MAX, 0},
	};
	static const uint32_t odd[][6] = {
		{9, 9, 1, 8, 0, 0},          {0, 4, UINT32_MAX, 0, 0, 0},
		{0, 4, UINT32_MAX, 0, 2, 0}, {0, 4, 4, 0xfffffff8, 2, 0},
		{0, 4, 160, 8, 2, 0},        {0, 4, 1, 0xfffffff8, 3, 0},
	};
	uint8_t in[160];
	struct codec_spec spec = {CODEC_BITSHUFFLE, 6, NULL, ""};
	const struct codec_chain chain = {1, &spec};
	struct buf b;
	bool same;

	(void)state;
	noise(in, sizeof(in), 1);
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		spec.params = bad[i];
		assert_int_equal(decode(&chain, in, 160, NULL, 160, &same), -EBADMSG);
		assert_int_equal(encode_chain(&chain, 1, in, 160, &b, NULL), -EOPNOTSUPP);
	}
	spec.n_params = 2;
	assert_int_equal(decode(&chain, in, 160, NULL, 160, &same), -EBADMSG);
	spec.n_params = 6;
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		int rc;

		spec.params = odd[i];
		buf_clear(&b);
		rc = encode_chain(&chain, 1, in, 160, &b, NULL);
		assert_true(rc == 0 || rc == -EOPNOTSUPP);
		if (rc == 0) {
			assert_int_equal(decode(&chain, b.data, b.len, in, 160, &same), 0);
			assert_true(same);
		}
		rc = decode(&chain, in, 160, NULL, 160, &same);
		assert_true(rc == 0 || rc == -EBADMSG);
	}
	/* no whole elements */
	spec.params = (uint32_t[]){0, 4, 8, 0, 2, 0};
	assert_int_equal(encode_chain(&chain, 1, in, 159, &b, NULL), -EOPNOTSUPP);
	buf_release(&b);
}

static void trip(const uint32_t *params, uint32_t n_params, const uint8_t *in, size_t n)
{
	const struct codec_spec spec = {CODEC_BITSHUFFLE, n_params, params, ""};
	const struct codec_chain c = {1, &spec};
	struct buf b;
	bool same;

	buf_init(&b, 1 << 20);
	assert_int_equal(encode_chain(&c, 1, in, n, &b, NULL), 0);
	if (decode(&c, b.data, b.len, in, n, &same) || (n && !same))
		fail_msg("%u bytes an element, blocks of %u, compressor %u: %zu bytes",
			 params[2], params[3], params[4], n);
	assert_true(b.len <= codec_find(CODEC_BITSHUFFLE)->stored_max(&spec, n));
	buf_release(&b);
}

static void test_round_trip(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 64, 100, 1000, 9000};
	static const size_t counts[] = {0,   1,   7,   8,    9,    15,   127,
					128, 129, 136, 1000, 2056, 20001};
	static const uint32_t blocks[] = {0, 8, 128, 1000, 4096}, packers[] = {0, 2, 3};
	static uint8_t in[BYTES_MAX];

	(void)state;
	noise(in, sizeof(in) / 2, 3);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t k = 0; k < ARRAY_LEN(counts); k++)
			for (size_t j = 0; j < ARRAY_LEN(blocks) * ARRAY_LEN(packers); j++) {
				uint32_t params[] = {
					0, 4, sizes[i], blocks[j / 3], packers[j % 3], 1};

				/* many small blocks of much tell nothing new */
				if (counts[k] * sizes[i] <= BYTES_MAX &&
				    (blocks[j / 3] != 8 || counts[k] < 2000))
					trip(params, 6, in, counts[k] * sizes[i]);
			}
}

static void test_prepare(void **state)
{
	const struct codec_ops *ops = codec_find(CODEC_BITSHUFFLE);
	static const uint64_t chunk[] = {10};
	const struct codec_array a = {.elem_size = 12, .rank = 1, .chunk = chunk};
	uint32_t user[9] = {0}, params[CODEC_PARAMS_MAX], n;
	struct codec_spec spec = {CODEC_BITSHUFFLE, 0, user, ""};

	(void)state;
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(params[2], 12);
	spec.n_params = 3;
	memcpy(user, (uint32_t[]){16, 3, 9}, 12);
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), 0);
	assert_int_equal(n, 6);
	assert_memory_equal(params + 2, ((uint32_t[]){12, 16, 3, 9}), 16);
	/* stored parameters are kept: h5repack */
	spec = (struct codec_spec){CODEC_BITSHUFFLE, 6, (const uint32_t[]){0, 3, 12, 16, 2, 5},
				   ""};
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), 0);
	assert_int_equal(n, 6);
	assert_memory_equal(params, ((uint32_t[]){0, 4, 12, 16, 2, 5}), 24);
	spec = (struct codec_spec){CODEC_BITSHUFFLE, 3, (const uint32_t[]){0, 4, 12}, ""};
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), 0);
	assert_int_equal(n, 3);
	spec = (struct codec_spec){CODEC_BITSHUFFLE, 3, (const uint32_t[]){0, 3, 12}, ""};
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), 0);
	assert_int_equal(n, 6); /* a block that suits, Zstandard, level 12 */
	spec = (struct codec_spec){CODEC_BITSHUFFLE, 3, user, ""};
	user[0] = 12; /* no multiple of 8 */
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), -EINVAL);
	user[0] = 0;
	user[1] = 1; /* no such compressor */
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), -EINVAL);
	user[1] = 2;
	spec.n_params = 9;
	assert_int_equal(ops->prepare(&spec, &a, params, &n, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),      cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_heads),      cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_prepare),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
