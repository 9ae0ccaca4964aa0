/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pipeline.c - whole chains: stored chunks of real files, masks, lengths, framing. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs_encode.h"

static const uint32_t eight = 8, four = 4;
static const struct codec_spec deflate = {CODEC_DEFLATE, 1, &four, "deflate"};
static const struct codec_spec shuffle = {CODEC_SHUFFLE, 1, &eight, "shuffle"};
static const struct codec_spec fletcher = {CODEC_FLETCHER32, 0, NULL, "fletcher32"};
static const struct codec_spec unheard = {40000, 0, NULL, "unheard"};

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

static int decode(const struct codec_chain *c, uint32_t mask, const uint8_t *in, size_t in_len,
		  uint8_t *out, size_t len, struct err *e)
{
	return codec_chain_decode(c, mask, 8, in, in_len, out, len, scratch, e);
}

/* Stored by HDF5 1.10: twenty doubles 0, 0.25 ... as h5py and as netCDF-C order the filters. */
static const char last_hex[] =
	"785e6360182070e1c18b0f5f7efc61606261e3e0e2e11310141266b08700072400"
	"0022c90ba89489947e";
static const char first_hex[] = "785e6360182070e1c18b0f5f7efc61606261e3e0e2e11310141266b0870007"
				"24b0ffd3a2b500592c0ea8";

static void test_real(void **state)
{
	const struct codec_spec last[] = {shuffle, deflate, fletcher};
	const struct codec_spec first[] = {fletcher, shuffle, deflate};
	const struct codec_chain chains[] = {{3, last}, {3, first}};
	const char *hex[] = {last_hex, first_hex};
	uint8_t want[160], in[128], out[168];
	struct err e = ERR_INIT;

	(void)state;
	chunk20(want);
	for (size_t i = 0; i < ARRAY_LEN(chains); i++) {
		size_t n = from_hex(hex[i], in);

		memset(out, 0, sizeof(out));
		assert_int_equal(decode(&chains[i], 0, in, n, out, 160, &e), 0);
		assert_memory_equal(out, want, 160);
		assert_int_equal(decode(&chains[i], 0, in, n, out, 159, &e), -EBADMSG);
		assert_int_equal(decode(&chains[i], 0, in, n, out, 161, &e), -EBADMSG);
		assert_int_equal(decode(&chains[i], 0, in, n, out, 0, &e), -EBADMSG);
		for (size_t cut = 0; cut < n; cut++)
			assert_int_equal(decode(&chains[i], 0, in, cut, out, 160, &e),
					 -EBADMSG);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (!decode(&chains[i], 0, in, n, out, 160, &e))
				assert_memory_equal(out, want, 160);
			in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* Every subset of filters, stored as if the others had been skipped. */
static void test_masks(void **state)
{
	const struct codec_spec all[] = {fletcher, shuffle, deflate, fletcher};
	const struct codec_chain chain = {4, all};
	uint8_t want[160], out[160];

	(void)state;
	chunk20(want);
	for (uint32_t mask = 0; mask < 16; mask++) {
		struct codec_spec used[4];
		struct codec_chain part = {0, used};
		struct buf b;

		for (uint32_t i = 0; i < 4; i++)
			if (!(mask >> i & 1))
				used[part.n++] = all[i];
		buf_init(&b, 4096);
		assert_int_equal(encode_chain(&part, 8, want, 160, &b, NULL), 0);
		memset(out, 0, sizeof(out));
		assert_int_equal(decode(&chain, mask, b.data, b.len, out, 160, NULL), 0);
		assert_memory_equal(out, want, 160);
		if (mask < 15)
			assert_int_equal(
				decode(&chain, 15, b.data, b.len, out, 160, NULL),
				part.n == 1 && used[0].h5_id == CODEC_SHUFFLE ? 0 : -EBADMSG);
		buf_release(&b);
	}
	assert_int_equal(decode(&chain, CODEC_ALL_SKIPPED, want, 160, out, 160, NULL), 0);
	assert_memory_equal(out, want, 160);
	assert_int_equal(decode(&chain, CODEC_ALL_SKIPPED, want, 159, out, 160, NULL),
			 -EBADMSG);
}

static void test_unknown(void **state)
{
	const struct codec_spec specs[] = {unheard, deflate};
	const struct codec_chain chain = {2, specs}, known = {1, specs + 1};
	struct codec_spec many[CODEC_CHAIN_MAX + 1];
	const struct codec_chain too_many = {CODEC_CHAIN_MAX + 1, many};
	uint8_t in[32] = {0}, out[32];
	struct err e = ERR_INIT;

	(void)state;
	assert_false(codec_chain_decodable(&chain));
	assert_true(codec_chain_decodable(&known));
	assert_int_equal(decode(&chain, 0, in, 32, out, 32, &e), -EOPNOTSUPP);
	assert_string_equal(e.msg, "filter 'unheard' (id 40000) is not built in");
	/* a skipped filter need not be known */
	assert_int_equal(decode(&chain, 3, in, 32, out, 32, &e), 0);
	assert_int_equal(codec_chain_framed_size(&chain, 32), 0);
	assert_int_equal(codec_chain_frame(&chain, 1, in, 32, out, &e), -EOPNOTSUPP);

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = fletcher;
	assert_false(codec_chain_decodable(&too_many));
	assert_int_equal(decode(&too_many, 0, in, 32, out, 32, &e), -EBADMSG);
	assert_int_equal(codec_chain_framed_size(&too_many, 32), 0);
}

static void test_names(void **state)
{
	const struct codec_spec named = {40000, 0, NULL, "my filter"};
	const struct codec_spec odd = {40000, 0, NULL, "a\nb"};
	char tmp[32];

	(void)state;
	assert_string_equal(codec_name(&deflate, tmp, sizeof(tmp)), "deflate");
	assert_string_equal(codec_name(&unheard, tmp, sizeof(tmp)), "unheard");
	assert_string_equal(codec_name(&named, tmp, sizeof(tmp)), "my filter");
	assert_string_equal(codec_name(&odd, tmp, sizeof(tmp)), "filter 40000");
	assert_null(codec_find(40000));
}

static void test_framed(void **state)
{
	const struct codec_spec specs[] = {shuffle, deflate, fletcher, shuffle};
	static uint8_t in[70001], out[70001];

	(void)state;
	noise(in, sizeof(in), 11);
	for (uint32_t n = 0; n <= ARRAY_LEN(specs); n++) {
		const struct codec_chain chain = {n, specs};
		size_t size = (size_t)codec_chain_framed_size(&chain, sizeof(in));
		uint8_t *z = malloc(size);

		assert_non_null(z);
		assert_int_equal(codec_chain_frame(&chain, 8, in, sizeof(in), z, NULL), 0);
		memset(out, 0, sizeof(out));
		assert_int_equal(decode(&chain, 0, z, size, out, sizeof(out), NULL), 0);
		assert_memory_equal(out, in, sizeof(in));
		free(z);
	}
}

/* Noise does not compress: what a second compressor gets is longer than the chunk. */
static void test_expanding(void **state)
{
	const struct codec_spec specs[] = {deflate, deflate, fletcher, shuffle, deflate};
	const struct codec_chain chain = {5, specs};
	static uint8_t in[100000], out[100000];
	struct buf b;

	(void)state;
	noise(in, sizeof(in), 12);
	buf_init(&b, 1 << 20);
	assert_int_equal(encode_chain(&chain, 8, in, sizeof(in), &b, NULL), 0);
	assert_true(b.len > sizeof(in));
	assert_int_equal(decode(&chain, 0, b.data, b.len, out, sizeof(out), NULL), 0);
	assert_memory_equal(out, in, sizeof(in));
	buf_release(&b);
}

/* make - a filter of a Zarr v2 document. */
static struct codec_spec make(struct made *m, const char *codec, const char *conf)
{
	assert_int_equal(from_conf(m, 2, codec, conf, 8, NULL), 0);
	return m->spec;
}

/* Eight bytes become one, one a bit, and noise more than it was: room is enough at each step. */
static void test_sizes_change(void **state)
{
	static uint8_t bools[50000], in[8 * 50000], out[8 * 50000];
	struct made m[4];
	const struct codec_spec specs[] = {
		make(&m[0], "astype", "encode_dtype=|u1,decode_dtype=<f8"),
		make(&m[1], "packbits", ""), make(&m[2], "zlib", ""), make(&m[3], "crc32", "")};
	const struct codec_chain chain = {4, specs}, inner = {3, specs + 1};
	struct buf b;

	(void)state;
	noise(bools, sizeof(bools), 5);
	for (size_t i = 0; i < sizeof(bools); i++) {
		double v = bools[i] &= 1;

		memcpy(in + 8 * i, &v, 8);
	}
	buf_init(&b, 1 << 20);
	assert_int_equal(encode_chain(&inner, 1, bools, sizeof(bools), &b, NULL), 0);
	assert_true(b.len > sizeof(bools) / 8);
	assert_int_equal(decode(&chain, 0, b.data, b.len, out, sizeof(out), NULL), 0);
	assert_memory_equal(out, in, sizeof(in));
	assert_int_equal(decode(&chain, 0, b.data, b.len, out, sizeof(out) - 8, NULL),
			 -EBADMSG);
	assert_int_equal(decode(&chain, 0, b.data, b.len, out, 8, NULL), -EBADMSG);
	buf_release(&b);
}

/* A deflated megabyte of zeros inside another: more than a chunk of 160 bytes can have asked
 * for, whatever comes out of it in the end. */
static void test_bomb(void **state)
{
	const struct codec_spec specs[] = {deflate, shuffle, deflate};
	const struct codec_chain chain = {3, specs}, outer = {2, specs + 1};
	uint8_t *zeros = calloc(1, 1 << 20), out[160];
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	assert_non_null(zeros);
	buf_init(&b, 1 << 21);
	assert_int_equal(encode_chain(&outer, 8, zeros, 1 << 20, &b, NULL), 0);
	assert_int_equal(decode(&chain, 0, b.data, b.len, out, sizeof(out), &e), -EBADMSG);
	assert_int_equal(e.code, -EBADMSG);
	assert_non_null(strstr(e.msg, "inflate to more than 4296")); /* 160 + 160 / 4 + 4096 */
	buf_release(&b);
	free(zeros);
}

/* any - decode without knowing the length; the result's length or a negative error. */
static long any(const struct codec_chain *c, const struct buf *z, size_t max,
		const uint8_t *want)
{
	struct err e = ERR_INIT;
	const uint8_t *got;
	size_t len;
	int rc = codec_chain_decode_any(c, 8, z->data, z->len, max, scratch, &got, &len, &e);

	if (rc) {
		assert_int_equal(e.code, rc);
		return rc;
	}
	assert_memory_equal(got, want, len);
	return (long)len;
}

static void test_any_length(void **state)
{
	const struct codec_spec specs[] = {fletcher, shuffle, deflate, fletcher};
	enum { LEN = 1 << 20 };
	uint8_t *in = calloc(1, LEN);

	(void)state;
	assert_non_null(in);
	noise(in, LEN / 64, 4);
	for (uint32_t from = 0; from < ARRAY_LEN(specs); from++)
		for (size_t n = 0; n <= LEN; n = n ? n * 16 : 1) {
			const struct codec_chain c = {(uint32_t)ARRAY_LEN(specs) - from,
						      specs + from};
			struct buf b;

			buf_init(&b, 2 * LEN);
			assert_int_equal(encode_chain(&c, 8, in, n, &b, NULL), 0);
			assert_int_equal(any(&c, &b, n, in), n);
			assert_int_equal(any(&c, &b, (size_t)1 << 30, in), n);
			if (n > 0)
				assert_int_equal(any(&c, &b, n - 1, in), -ERANGE);
			if (n > 0)
				assert_int_equal(any(&c, &b, 0, in), -ERANGE);
			b.data[b.len / 2] ^= 1;
			assert_int_equal(any(&c, &b, (size_t)1 << 30, in), -EBADMSG);
			buf_release(&b);
		}
	free(in);
}

static void test_any_none(void **state)
{
	static const uint8_t in[3] = "abc";
	const struct codec_chain none = {0, NULL}, unknown = {1, &unheard};
	struct buf b = {.data = (uint8_t *)(uintptr_t)in, .len = 3};

	(void)state;
	assert_int_equal(any(&none, &b, 3, in), 3);
	assert_int_equal(any(&none, &b, 2, in), -ERANGE);
	assert_int_equal(any(&unknown, &b, 3, in), -EOPNOTSUPP);
}

static void test_empty(void **state)
{
	const struct codec_spec specs[] = {fletcher, shuffle, deflate};
	struct made delta;
	const struct codec_spec two[] = {make(&delta, "delta", "dtype=<f8"), deflate};
	const struct codec_chain chain = {3, specs}, none = {0, NULL}, typed = {2, two},
				 last = {1, two + 1};
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(encode_chain(&chain, 8, NULL, 0, &b, NULL), 0);
	assert_int_equal(decode(&chain, 0, b.data, b.len, NULL, 0, NULL), 0);
	buf_clear(&b);
	assert_int_equal(encode_chain(&last, 8, NULL, 0, &b, NULL), 0);
	assert_int_equal(decode(&typed, 0, b.data, b.len, NULL, 0, NULL), 0);
	buf_release(&b);
	assert_int_equal(decode(&none, 0, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(codec_chain_frame(&none, 8, NULL, 0, NULL, NULL), 0);
	codec_scratch_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real),     cmocka_unit_test(test_masks),
		cmocka_unit_test(test_unknown),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_framed),   cmocka_unit_test(test_expanding),
		cmocka_unit_test(test_empty),    cmocka_unit_test(test_sizes_change),
		cmocka_unit_test(test_bomb),     cmocka_unit_test(test_any_length),
		cmocka_unit_test(test_any_none),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
