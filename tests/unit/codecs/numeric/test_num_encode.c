/* SPDX-License-Identifier: BSD-3-Clause */
/* test_num_encode.c - encoders of filters that compute, against numcodecs; and their
 * parameters from what users give. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs/numeric/num_encoded.h"

#include <math.h>

/* encoded - what becomes of n bytes, compared with the hexadecimal text; in memory of exactly that
 * length, so that a sanitizer sees every byte too far. */
static void encoded(const struct made *m, size_t elem_size, const char *content,
		    const char *stored, const char *what)
{
	size_t n = strlen(content) / 2, len = strlen(stored) / 2;
	uint8_t *in = malloc(n), *want = malloc(len);
	struct err e = ERR_INIT;
	struct buf b;

	assert_non_null(in);
	assert_non_null(want);
	from_hex(content, in);
	from_hex(stored, want);
	buf_init(&b, 10000);
	buf_puts(&b, "head");
	if (call_encode(m->ops, NULL, &m->spec, elem_size, in, n, &b, &e))
		fail_msg("%s %s: %s", m->ops->name, what, e.msg);
	assert_int_equal(b.len, 4 + len);
	assert_true(!m->ops->stored_max || m->ops->stored_max(&m->spec, n) >= len);
	for (size_t i = 0; i < len; i++)
		if (b.data[4 + i] != want[i])
			fail_msg("%s %s: byte %zu is %02x, not %02x", m->ops->name, what, i,
				 b.data[4 + i], want[i]);

	/* nothing becomes nothing, a part of an element cannot be encoded */
	buf_clear(&b);
	assert_int_equal(call_encode(m->ops, NULL, &m->spec, elem_size, in, 0, &b, NULL), 0);
	assert_int_equal(b.len, 0);
	if (elem_size > 1)
		assert_int_equal(
			call_encode(m->ops, NULL, &m->spec, elem_size, in, n - 1, &b, NULL),
			-EOPNOTSUPP);
	assert_int_equal(b.len, 0);
	buf_release(&b);
	free(in);
	free(want);
}

/* size_in - bytes of the type in "dtype=<f8" or "decode_dtype=<f8". */
static size_t size_in(const char *conf)
{
	const char *p = strstr(conf, "decode_dtype=");

	p = p ? p + 13 : strstr(conf, "dtype=") + 6;
	return (size_t)(p[2] - '0');
}

static void test_numcodecs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(num_encoded); i++) {
		const struct num_encoded *v = &num_encoded[i];
		struct made m;

		assert_int_equal(from_conf(&m, 2, v->codec, v->conf, 8, NULL), 0);
		encoded(&m, size_in(v->conf), v->content, v->stored, v->conf);
	}
}

/* prepared - a filter with a user's parameters, made ready for an array; what prepare returns. */
static int prepared(struct made *m, uint32_t h5_id, const uint32_t *given, uint32_t n,
		    enum codec_class class, uint32_t size, bool big)
{
	const uint64_t chunk = 100;
	const struct codec_spec user = {h5_id, n, given, ""};
	const struct codec_array a = {.class = class,
				      .elem_size = size,
				      .big_endian = big,
				      .rank = 1,
				      .chunk = &chunk};
	struct err e = ERR_INIT;
	int rc;

	*m = (struct made){.ops = codec_find(h5_id)};
	m->spec = (struct codec_spec){.h5_id = h5_id, .params = m->params, .name = ""};
	rc = m->ops->prepare(&user, &a, m->params, &m->spec.n_params, &e);
	assert_int_equal(rc, rc ? e.code : 0);
	return rc;
}

#define PREPARED(m, id, class, size, big, ...)                                                 \
	prepared(m, id, (const uint32_t[]){__VA_ARGS__},                                       \
		 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), class, size, big)

static void test_bitround(void **state)
{
	struct made m;
	struct buf b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(num_rounded); i++) {
		const struct num_rounded *v = &num_rounded[i];

		assert_int_equal(PREPARED(&m, CODEC_BITROUND, CODEC_FLOAT, v->elem_size, v->big,
					  v->keep),
				 0);
		encoded(&m, v->elem_size, v->content, v->stored, "rounded");
	}
	assert_int_equal(PREPARED(&m, CODEC_BITROUND, CODEC_FLOAT, 4, false, 24), -EINVAL);
	assert_int_equal(prepared(&m, CODEC_BITROUND, NULL, 0, CODEC_FLOAT, 4, false), -EINVAL);
	assert_int_equal(PREPARED(&m, CODEC_BITROUND, CODEC_INT, 4, false, 7), -EOPNOTSUPP);
	assert_int_equal(PREPARED(&m, CODEC_BITROUND, CODEC_FLOAT, 3, false, 7), -EOPNOTSUPP);

	/* a document alone does not state the type of elements */
	assert_int_equal(from_conf(&m, 2, "bitround", "keepbits=#7", 4, NULL), 0);
	buf_init(&b, 100);
	assert_int_equal(
		call_encode(m.ops, NULL, &m.spec, 4, (const uint8_t *)"abcd", 4, &b, NULL),
		-EOPNOTSUPP);
	buf_release(&b);
}

/* said - the members of a Zarr document. */
static const char *said(const struct made *m)
{
	static char text[256];
	struct buf b;

	buf_init(&b, sizeof(text) - 1);
	m->ops->zarr2_params(&m->spec, 4, &b);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	memcpy(text, b.data, b.len);
	buf_release(&b);
	return text;
}

static void test_users(void **state)
{
	static const uint32_t minus_two = (uint32_t)-2;
	struct made m;

	(void)state;
	assert_int_equal(prepared(&m, CODEC_DELTA, NULL, 0, CODEC_INT, 4, true), 0);
	assert_string_equal(said(&m), ", \"dtype\": \">i4\", \"astype\": \">i4\"");
	assert_int_equal(PREPARED(&m, CODEC_DELTA, CODEC_UINT, 4, true, minus_two), 0);
	assert_string_equal(said(&m), ", \"dtype\": \">u4\", \"astype\": \">i2\"");
	assert_int_equal(PREPARED(&m, CODEC_DELTA, CODEC_UINT, 4, true, 1), 0);
	assert_string_equal(said(&m), ", \"dtype\": \">u4\", \"astype\": \"|u1\"");
	assert_int_equal(PREPARED(&m, CODEC_DELTA, CODEC_UINT, 4, true, 3), -EINVAL);
	assert_int_equal(prepared(&m, CODEC_DELTA, NULL, 0, CODEC_OTHER, 4, false),
			 -EOPNOTSUPP);
	assert_int_equal(prepared(&m, CODEC_DELTA, NULL, 0, CODEC_INT, 16, false), -EOPNOTSUPP);
	assert_int_equal(prepared(&m, CODEC_DELTA, NULL, 0, CODEC_FLOAT, 1, false),
			 -EOPNOTSUPP);

	assert_int_equal(PREPARED(&m, CODEC_ASTYPE, CODEC_FLOAT, 8, false, 32), 0);
	assert_string_equal(said(&m), ", \"encode_dtype\": \"<f4\", \"decode_dtype\": \"<f8\"");
	assert_int_equal(prepared(&m, CODEC_ASTYPE, NULL, 0, CODEC_FLOAT, 8, false), -EINVAL);

	assert_int_equal(PREPARED(&m, CODEC_QUANTIZE, CODEC_FLOAT, 8, false, 3, 16), 0);
	assert_string_equal(said(&m),
			    ", \"digits\": 3, \"dtype\": \"<f8\", \"astype\": \"<f2\"");
	assert_int_equal(PREPARED(&m, CODEC_QUANTIZE, CODEC_FLOAT, 8, false, minus_two), 0);
	assert_string_equal(said(&m),
			    ", \"digits\": -2, \"dtype\": \"<f8\", \"astype\": \"<f8\"");
	assert_int_equal(PREPARED(&m, CODEC_QUANTIZE, CODEC_FLOAT, 8, false, 3, 2), -EINVAL);
	assert_int_equal(PREPARED(&m, CODEC_QUANTIZE, CODEC_FLOAT, 8, false, 330), -EINVAL);
	assert_int_equal(PREPARED(&m, CODEC_QUANTIZE, CODEC_INT, 8, false, 3), -EOPNOTSUPP);
	assert_int_equal(prepared(&m, CODEC_QUANTIZE, NULL, 0, CODEC_FLOAT, 8, false), -EINVAL);

	/* 1000 and 0.5, low words first */
	assert_int_equal(PREPARED(&m, CODEC_FIXEDSCALEOFFSET, CODEC_FLOAT, 8, false, 0,
				  0x408f4000, 0, 0x3fe00000, 2),
			 0);
	assert_string_equal(said(&m), ", \"scale\": 0.5, \"offset\": 1000.0, "
				      "\"dtype\": \"<f8\", \"astype\": \"<u2\"");
	assert_int_equal(
		PREPARED(&m, CODEC_FIXEDSCALEOFFSET, CODEC_FLOAT, 8, false, 0, 0x408f4000, 0),
		-EINVAL);
	assert_int_equal(PREPARED(&m, CODEC_FIXEDSCALEOFFSET, CODEC_FLOAT, 8, false, 0,
				  0x408f4000, 0, 0x7ff00000),
			 -EINVAL);
}

/* What Python refuses to assign cannot be encoded; out is as it was. */
static void test_first(void **state)
{
	const double strange[] = {NAN, INFINITY, 1e19, -1e19};
	const uint64_t large = (uint64_t)1 << 63;
	struct made m;
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	buf_puts(&b, "x");
	assert_int_equal(from_conf(&m, 2, "delta", "dtype=<f8,astype=<i4", 8, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(strange); i++)
		assert_int_equal(call_encode(m.ops, NULL, &m.spec, 8,
					     (const uint8_t *)&strange[i], 8, &b, NULL),
				 -EOPNOTSUPP);
	assert_int_equal(from_conf(&m, 2, "delta", "dtype=<u8,astype=<i8", 8, NULL), 0);
	assert_int_equal(
		call_encode(m.ops, NULL, &m.spec, 8, (const uint8_t *)&large, 8, &b, NULL),
		-EOPNOTSUPP);
	assert_int_equal(b.len, 1);
	buf_release(&b);
}

/* More than one block: the difference across its end is right. */
static void test_blocks(void **state)
{
	enum { N = 1500 };
	static uint32_t in[N], out[N];
	struct made m;
	struct buf b;
	size_t len;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		in[i] = i * i;
	assert_int_equal(from_conf(&m, 2, "delta", "dtype=<u4,astype=<u2", 4, NULL), 0);
	buf_init(&b, 2 * N);
	assert_int_equal(
		call_encode(m.ops, NULL, &m.spec, 4, (const uint8_t *)in, sizeof(in), &b, NULL),
		0);
	for (uint32_t i = 1; i < N; i++)
		assert_int_equal(b.data[2 * i] | b.data[2 * i + 1] << 8, 2 * i - 1);
	assert_int_equal(call_decode(m.ops, NULL, &m.spec, 4, b.data, b.len, (uint8_t *)out,
				     sizeof(out), &len, NULL),
			 0);
	assert_memory_equal(in, out, sizeof(in));
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numcodecs), cmocka_unit_test(test_bitround),
		cmocka_unit_test(test_users),     cmocka_unit_test(test_first),
		cmocka_unit_test(test_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
