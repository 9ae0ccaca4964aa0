/* SPDX-License-Identifier: BSD-3-Clause */
/* test_num_convert.c - filters that compute, against numpy; and packbits. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/vectors.h"

static void decode_one(const struct num_vector *v)
{
	struct made m;
	size_t n = strlen(v->stored) / 2, len = strlen(v->presented) / 2, got = 0;
	uint8_t *in = malloc(n), *want = malloc(len), *out = malloc(len);
	struct err e = ERR_INIT;

	assert_non_null(in);
	assert_non_null(want);
	assert_non_null(out);
	from_hex(v->stored, in);
	from_hex(v->presented, want);
	assert_int_equal(from_conf(&m, 2, v->codec, v->conf, 8, NULL), 0);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 8, in, n, out, len, &got, NULL), 0);
	assert_int_equal(got, len);
	for (size_t i = 0; i < len; i++)
		if (out[i] != want[i])
			fail_msg("%s %s: byte %zu is %02x, not %02x", v->codec, v->conf, i,
				 out[i], want[i]);

	/* room for less; the chain's room is exactly right */
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 8, in, n, out, len - 1, &got, &e),
			 -ERANGE);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 8, in, n, out, 0, &got, &e),
			 -ERANGE);
	assert_int_equal(m.ops->stored_max(&m.spec, len), n);
	free(in);
	free(want);
	free(out);
}

static void test_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(num_vectors); i++)
		decode_one(&num_vectors[i]);
}

/* Not a number becomes the smallest integer, as on x86; a half keeps what fits. */
static void test_nan(void **state)
{
	static const uint8_t nan8[8] = {1, 0, 0, 0, 0, 0, 0xf8, 0x7f};
	static const uint8_t low8[8] = {1, 0, 0, 0, 0, 0, 0xf0, 0xff}; /* payload is lost */
	uint8_t out[8];
	struct made m;
	size_t len;

	(void)state;
	from_conf(&m, 2, "astype", "encode_dtype=<f8,decode_dtype=<i4", 4, NULL);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 4, nan8, 8, out, 4, &len, NULL), 0);
	assert_memory_equal(out, "\0\0\0\x80", 4);
	from_conf(&m, 2, "astype", "encode_dtype=<f8,decode_dtype=<f2", 2, NULL);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 2, nan8, 8, out, 2, &len, NULL), 0);
	assert_memory_equal(out, "\0\x7e", 2);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 2, low8, 8, out, 2, &len, NULL), 0);
	assert_memory_equal(out, "\x01\xfc", 2);
	from_conf(&m, 2, "astype", "encode_dtype=<f8,decode_dtype=|b1", 1, NULL);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 1, nan8, 8, out, 1, &len, NULL), 0);
	assert_int_equal(out[0], 1);
}

/* More than one block of elements: sums go on, and the last block may be short. */
static void test_blocks(void **state)
{
	enum { N = 1500 };
	static uint8_t in[N];
	static uint32_t out[N];
	struct made m;
	size_t len;

	(void)state;
	memset(in, 3, sizeof(in));
	from_conf(&m, 2, "delta", "dtype=<u4,astype=|u1", 4, NULL);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 4, in, N, (uint8_t *)out,
				     sizeof(out), &len, NULL),
			 0);
	assert_int_equal(len, sizeof(out));
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(out[i], 3 * (i + 1));

	from_conf(&m, 2, "fixedscaleoffset", "scale=#0.5,offset=#1,dtype=<u4,astype=|u1", 4,
		  NULL);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 4, in, N, (uint8_t *)out,
				     sizeof(out), &len, NULL),
			 0);
	assert_int_equal(out[0], 7);
	assert_int_equal(out[N - 1], 7);
}

/* A length that is no whole number of elements is damage; none is none. */
static void test_lengths(void **state)
{
	static const char *const confs[][2] = {
		{"delta", "dtype=<i2,astype=<i4"},
		{"astype", "decode_dtype=<i2,encode_dtype=<f4"},
		{"quantize", "digits=#1,dtype=<f2,astype=<f4"},
		{"fixedscaleoffset", "scale=#1,offset=#0,dtype=<i2,astype=<i4"}};
	static const uint8_t in[8];
	uint8_t out[8];
	struct err e = ERR_INIT;
	struct made m;
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(confs); i++) {
		assert_int_equal(from_conf(&m, 2, confs[i][0], confs[i][1], 2, NULL), 0);
		for (size_t n = 0; n <= 8; n++) {
			int rc = call_decode(m.ops, NULL, &m.spec, 2, in, n, out, 8, &len, &e);

			assert_int_equal(rc, n % 4 ? -EBADMSG : 0);
			if (!rc)
				assert_int_equal(len, n / 2);
		}
		assert_int_equal(m.ops->stored_max(&m.spec, 7), 16);
		assert_int_equal(m.ops->stored_max(&m.spec, UINT64_MAX), 0);
	}
}

static void test_packbits(void **state)
{
	static const uint8_t bools[] = {1, 0, 0, 1, 1, 1, 0, 0, 0, 1};
	static const uint8_t want[] = {6, 0x9c, 0x40}; /* numcodecs.PackBits() of them */
	const struct codec_ops *ops = codec_find(CODEC_PACKBITS);
	const struct codec_spec spec = {.h5_id = CODEC_PACKBITS, .name = ""};
	uint8_t out[16], bad[] = {8, 0xff};
	struct buf b;
	size_t len;

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(call_encode(ops, NULL, &spec, 1, bools, 10, &b, NULL), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, want, 3);
	buf_release(&b);
	assert_int_equal(ops->stored_max(&spec, 10), 3);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, want, 3, out, 10, &len, NULL), 0);
	assert_int_equal(len, 10);
	assert_memory_equal(out, bools, 10);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, want, 3, out, 9, &len, NULL),
			 -ERANGE);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, want, 1, out, 16, &len, NULL),
			 -EBADMSG);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, want, 0, out, 16, &len, NULL),
			 -EBADMSG);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, bad, 2, out, 16, &len, NULL),
			 -EBADMSG);
	bad[0] = 0;
	assert_int_equal(call_decode(ops, NULL, &spec, 1, bad, 1, out, 16, &len, NULL), 0);
	assert_int_equal(len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),  cmocka_unit_test(test_nan),
		cmocka_unit_test(test_blocks),   cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_packbits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
