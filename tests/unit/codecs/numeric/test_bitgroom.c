/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bitgroom.c - the filters BitGroom and Granular BitRound, against what CCR's plugins
 * wrote: the last chunk (4 x 8) of h5ex_d_bitgroom.h5 and h5ex_d_granularbr.h5 of the HDF Group's
 * hdf5_plugins, whose element (i, j) was i * j - j, with three digits. */
#include "tests/unit/codecs/util.h"
#include "tests/unit/codecs_encode.h"
#include "tests/unit/codecs/numeric/quant_vectors.h"

static const float groomed[32] = {
	1512, 1539.4999f, 1566, 1593.4999f, 1620, 1647.4999f, 1674, 1701.4999f,
	1568, 1596.4999f, 1624, 1652.4999f, 1680, 1708.4999f, 1736, 1764.4999f,
	1624, 1653.4999f, 1682, 1711.4999f, 1740, 1769.4999f, 1798, 1827.4999f,
	1680, 1710.4999f, 1740, 1770.4999f, 1800, 1830.4999f, 1860, 1890.4999f};
static const float granular[32] = {1512, 1536, 1568, 1592, 1624, 1648, 1672, 1704,
				   1568, 1600, 1624, 1656, 1680, 1712, 1736, 1768,
				   1624, 1656, 1680, 1712, 1744, 1768, 1800, 1824,
				   1680, 1712, 1744, 1768, 1800, 1832, 1864, 1888};

static const uint64_t chunk[2] = {4, 8};

static struct codec_array floats(uint32_t size, const uint8_t *fill)
{
	return (struct codec_array){.class = CODEC_FLOAT,
				    .elem_size = size,
				    .rank = 2,
				    .chunk = chunk,
				    .fill = fill};
}

static void test_plugin(void **state)
{
	const struct codec_array a = floats(4, NULL);
	uint32_t three = 3, params[CODEC_PARAMS_MAX], n;
	struct err e = ERR_INIT;
	float in[33];

	(void)state;
	for (size_t i = 0; i < 32; i++)
		in[i] = (float)((28 + i / 8 - 1) * (56 + i % 8));
	in[32] = 3.14159274f; /* only half of it is there */
	for (unsigned int k = 0; k < 2; k++) {
		struct codec_spec spec = {k ? CODEC_GRANULARBR : CODEC_BITGROOM, 1, &three, ""};
		const struct codec_ops *ops = codec_find(spec.h5_id);
		const struct codec_chain chain = {1, &spec};
		struct codec_scratch *s = codec_scratch_new();
		uint8_t out[130];
		struct buf b;

		buf_init(&b, 1000);
		buf_puts(&b, "x");
		assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), 0);
		assert_int_equal(n, 5);
		assert_memory_equal(params, ((const uint32_t[]){3, 4, 0, 0, 0}), 20);
		spec.params = params;
		spec.n_params = n;
		assert_int_equal(
			call_encode(ops, NULL, &spec, 4, (const uint8_t *)in, 130, &b, &e), 0);
		assert_int_equal(b.len, 131);
		assert_memory_equal(b.data + 1, k ? granular : groomed, 128);
		assert_memory_equal(b.data + 129, &in[32], 2);

		/* decoding changes nothing; framing is lossless */
		assert_int_equal(
			codec_chain_decode(&chain, 0, 4, b.data + 1, 130, out, 130, s, &e), 0);
		assert_memory_equal(out, b.data + 1, 130);
		assert_int_equal(codec_chain_decode(&chain, 0, 4, b.data, 131, out, 130, s, &e),
				 -EBADMSG);
		assert_int_equal(codec_chain_framed_size(&chain, 130), 130);
		assert_int_equal(
			codec_chain_frame(&chain, 4, (const uint8_t *)in, 130, out, &e), 0);
		assert_memory_equal(out, in, 130);
		buf_release(&b);
		codec_scratch_free(s);
	}
}

/* Elements equal to the fill value stay, in both sizes. */
static void test_fill(void **state)
{
	static const uint8_t fill4[4] = {0x79, 0xe9, 0xf6, 0x42};
	static const uint8_t fill8[8] = {0x77, 0xbe, 0x9f, 0x1a, 0x2f, 0xdd, 0x5e, 0x40};
	struct codec_array a = floats(4, fill4);
	uint32_t one = 1, params[CODEC_PARAMS_MAX], n;
	struct codec_spec spec = {CODEC_GRANULARBR, 1, &one, ""};
	const struct codec_ops *ops = codec_find(spec.h5_id);
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), 0);
	assert_memory_equal(params, ((const uint32_t[]){1, 4, 1, 0x42f6e979, 0}), 20);
	spec = (struct codec_spec){CODEC_GRANULARBR, n, params, ""};
	assert_int_equal(call_encode(ops, NULL, &spec, 4, fill4, 4, &b, &e), 0);
	assert_memory_equal(b.data, fill4, 4);
	params[2] = 0;
	assert_int_equal(call_encode(ops, NULL, &spec, 4, fill4, 4, &b, &e), 0);
	assert_memory_not_equal(b.data + 4, fill4, 4);

	buf_clear(&b);
	a = floats(8, fill8);
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), 0);
	assert_memory_equal(params, ((const uint32_t[]){1, 8, 1, 0x1a9fbe77, 0x405edd2f}), 20);
	assert_int_equal(call_encode(ops, NULL, &spec, 8, fill8, 8, &b, &e), 0);
	assert_memory_equal(b.data, fill8, 8);
	buf_release(&b);
}

/* The plugins' arithmetic is netCDF-C's. */
static void test_doubles(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(stored8); k++) {
		const uint32_t params[] = {stored8[k].digits, 8};
		const struct codec_spec spec = {stored8[k].mode == CODEC_QUANT_BITGROOM
							? CODEC_BITGROOM
							: CODEC_GRANULARBR,
						2, params, ""};
		struct buf b;

		if (stored8[k].mode == CODEC_QUANT_BITROUND)
			continue;
		buf_init(&b, 1000);
		assert_int_equal(call_encode(codec_find(spec.h5_id), NULL, &spec, 1,
					     (const uint8_t *)values8, sizeof(values8), &b,
					     NULL),
				 0);
		assert_memory_equal(b.data, stored8[k].stored, sizeof(values8));
		buf_release(&b);
	}
}

static void test_refused(void **state)
{
	uint32_t digits = 17, params[CODEC_PARAMS_MAX] = {3, 2}, n;
	struct codec_spec spec = {CODEC_BITGROOM, 1, &digits, ""};
	const struct codec_ops *ops = codec_find(CODEC_BITGROOM);
	struct codec_array a = floats(4, NULL);
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), -EINVAL);
	digits = 0;
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), -EINVAL);
	digits = 3;
	a.big_endian = true;
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), -EOPNOTSUPP);
	a = floats(2, NULL);
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), -EOPNOTSUPP);
	a = floats(4, NULL);
	a.class = CODEC_INT;
	assert_int_equal(ops->prepare(&spec, &a, params, &n, &e), -EOPNOTSUPP);

	spec = (struct codec_spec){CODEC_BITGROOM, 2, params, ""};
	params[0] = 3;
	params[1] = 2;
	assert_int_equal(call_encode(ops, NULL, &spec, 4, (const uint8_t *)groomed, 4, &b, &e),
			 -EOPNOTSUPP);
	params[0] = 1000;
	params[1] = 4;
	assert_int_equal(call_encode(ops, NULL, &spec, 4, (const uint8_t *)groomed, 4, &b, &e),
			 -EOPNOTSUPP);
	assert_int_equal(b.len, 0);
	params[0] = 3;
	buf_release(&b);
	buf_init(&b, 3);
	assert_int_equal(call_encode(ops, NULL, &spec, 4, (const uint8_t *)groomed, 4, &b, &e),
			 -ENOMEM);
	buf_release(&b);
	assert_int_equal(call_encode(ops, NULL, &spec, 4, NULL, 0, &b, &e), 0);

	/* the HDF Group's BitRound is only read */
	assert_null(codec_find(32032)->encode);
}

/* Rounded numbers are stored unchanged: decoding changes nothing, and respects its limit. */
static void test_stored(void **state)
{
	static const uint32_t ids[] = {CODEC_BITGROOM, CODEC_GRANULARBR, CODEC_BITROUND};
	const uint8_t in[5] = {1, 2, 3, 4, 5};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		const struct codec_ops *ops = codec_find(ids[i]);
		const struct codec_spec spec = {.h5_id = ids[i]};
		uint8_t out[5] = {0};
		struct err e = ERR_INIT;
		size_t n = 77;

		assert_int_equal(call_decode(ops, NULL, &spec, 4, in, 5, out, 4, &n, &e),
				 -ERANGE);
		assert_non_null(strstr(e.msg, "length 5 exceeds 4"));
		assert_int_equal(n, 77);
		assert_int_equal(call_decode(ops, NULL, &spec, 4, in, 5, out, 5, &n, &e), 0);
		assert_int_equal(n, 5);
		assert_memory_equal(out, in, 5);
		assert_int_equal(call_decode(ops, NULL, &spec, 4, NULL, 0, NULL, 0, &n, &e), 0);
		assert_int_equal(n, 0);
		assert_int_equal(ops->framed_size(5), 5);
		memset(out, 0, sizeof(out));
		call_frame(ops, &spec, 4, in, 5, out);
		assert_memory_equal(out, in, 5);
		if (ops->check)
			assert_true(call_check(ops, in, 5, &n, &e) == 0 && n == 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plugin),  cmocka_unit_test(test_fill),
		cmocka_unit_test(test_doubles), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
