/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shuffle.c - byte shuffle against a literal transposition and numcodecs' bytes. */
#include "tests/unit/codecs/util.h"

#include <errno.h>

static const struct codec_ops *ops;

static int setup(void **state)
{
	(void)state;
	ops = codec_find(CODEC_SHUFFLE);
	return ops ? 0 : -1;
}

/* plain - the definition, one byte at a time. */
static void plain(const uint8_t *in, size_t size, size_t len, uint8_t *out)
{
	size_t n = len / size;

	memcpy(out, in, len);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < size; j++)
			out[j * n + i] = in[i * size + j];
}

static void one(uint32_t size, size_t len)
{
	const struct codec_spec spec = {
		.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = &size, .name = ""};
	uint8_t *in = malloc(len + 1), *want = malloc(len + 1), *got = malloc(len + 1);
	size_t ret = 0;

	assert_non_null(in);
	assert_non_null(want);
	assert_non_null(got);
	noise(in, len, (uint32_t)len + size);
	plain(in, size, len, want);

	got[len] = 0xa5;
	call_frame(ops, &spec, 1, in, len, got);
	assert_memory_equal(got, want, len);
	assert_int_equal(got[len], 0xa5);

	memset(got, 0, len);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, want, len, got, len, &ret, NULL), 0);
	assert_int_equal(ret, len);
	assert_memory_equal(got, in, len);
	assert_int_equal(got[len], 0xa5);

	if (len > 0)
		assert_int_equal(
			call_decode(ops, NULL, &spec, 1, want, len, got, len - 1, &ret, NULL),
			-ERANGE);
	free(in);
	free(want);
	free(got);
}

static void test_all_sizes(void **state)
{
	static const size_t counts[] = {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 300};

	(void)state;
	for (uint32_t size = 1; size <= 33; size++)
		for (size_t i = 0; i < ARRAY_LEN(counts); i++)
			for (size_t tail = 0; tail < size; tail += tail < 4 ? 1 : 5)
				one(size, counts[i] * size + tail);
	one(8, 100003);
	one(5000, 5000 * 3 + 1);
	one(300, 300 * 20);
}

static void test_vector(void **state)
{
	/* numcodecs.Shuffle(4) of 0 .. 23 */
	static const char hex[] = "0004080c10140105090d111502060a0e121603070b0f1317";
	static const uint32_t four = 4;
	const struct codec_spec spec = {
		.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = &four, .name = ""};
	uint8_t in[24], out[24];
	size_t n = from_hex(hex, in), len;

	(void)state;
	assert_int_equal(call_decode(ops, NULL, &spec, 8, in, n, out, 24, &len, NULL), 0);
	for (uint8_t i = 0; i < 24; i++)
		assert_int_equal(out[i], i);
}

/* The size comes from the parameters, else from the type; huge ones move nothing. */
static void test_size(void **state)
{
	static const uint32_t zero = 0, huge = UINT32_MAX;
	struct codec_spec spec = {.h5_id = CODEC_SHUFFLE, .name = ""};
	uint8_t in[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[8];
	const uint8_t by2[8] = {0, 4, 1, 5, 2, 6, 3, 7};
	size_t len;

	(void)state;
	assert_int_equal(call_decode(ops, NULL, &spec, 2, in, 8, out, 8, &len, NULL), 0);
	assert_memory_equal(out, by2, 8);
	spec.n_params = 1;
	spec.params = &zero;
	assert_int_equal(call_decode(ops, NULL, &spec, 2, in, 8, out, 8, &len, NULL), 0);
	assert_memory_equal(out, by2, 8);
	assert_int_equal(call_decode(ops, NULL, &spec, 0, in, 8, out, 8, &len, NULL), 0);
	assert_memory_equal(out, in, 8);
	spec.params = &huge;
	assert_int_equal(call_decode(ops, NULL, &spec, 2, in, 8, out, 8, &len, NULL), 0);
	assert_memory_equal(out, in, 8);
}

static void test_params(void **state)
{
	static const uint32_t eight = 8;
	struct codec_spec spec = {.h5_id = CODEC_SHUFFLE, .name = ""};
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	ops->zarr2_params(&spec, 4, &b);
	spec.n_params = 1;
	spec.params = &eight;
	ops->zarr2_params(&spec, 4, &b);
	assert_int_equal(b.len, 36);
	assert_memory_equal(b.data, ", \"elementsize\": 4, \"elementsize\": 8", 36);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_params),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
