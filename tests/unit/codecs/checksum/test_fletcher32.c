/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fletcher32.c - the checksum against files written by the HDF5 library. */
#include "tests/unit/codecs/util.h"

#include <errno.h>

static const struct codec_ops *ops;
static const struct codec_spec spec = {.h5_id = CODEC_FLETCHER32, .name = ""};

static int setup(void **state)
{
	(void)state;
	ops = codec_find(CODEC_FLETCHER32);
	return ops ? 0 : -1;
}

static void test_vector(void **state)
{
	/* a chunk of 43 bytes and its trailer, as stored by HDF5 1.10 */
	uint8_t in[] = "The quick brown fox jumps over the lazy dog\x5b\x8d\x53\xcd";
	uint8_t out[47];
	size_t n = sizeof(in) - 1, len = 0;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(call_check(ops, in, n, &len, NULL), 0);
	assert_int_equal(len, 43);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, in, n, out, 43, &len, NULL), 0);
	assert_memory_equal(out, in, 43);
	assert_int_equal(call_decode(ops, NULL, &spec, 1, in, n, out, 42, &len, NULL), -ERANGE);

	call_frame(ops, &spec, 1, in, 43, out);
	assert_memory_equal(out, in, 47);

	/* the form of HDF5 1.6.2 on little-endian machines: bytes of each half swapped */
	memcpy(in + 43, "\x8d\x5b\xcd\x53", 4);
	assert_int_equal(call_check(ops, in, n, &len, NULL), 0);
	memcpy(in + 43, "\x53\xcd\x5b\x8d", 4);
	assert_int_equal(call_check(ops, in, n, &len, &e), -EBADMSG);
	assert_string_equal(e.msg, "fletcher32: checksum mismatch: computed cd538d5b over 43 "
				   "bytes, stored 8d5bcd53");
}

static void test_damage(void **state)
{
	uint8_t in[47];
	size_t len;

	(void)state;
	noise(in, 43, 3);
	call_frame(ops, &spec, 1, in, 43, in);
	assert_int_equal(call_check(ops, in, 47, &len, NULL), 0);
	for (size_t bit = 0; bit < 8 * sizeof(in); bit++) {
		in[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(call_check(ops, in, 47, &len, NULL), -EBADMSG);
		in[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t cut = 0; cut < sizeof(in); cut++)
		assert_int_equal(call_check(ops, in, cut, &len, NULL), -EBADMSG);
}

/* plain - the sum word by word, as the specification has it. */
static uint32_t plain(const uint8_t *p, size_t n)
{
	uint32_t a = 0, b = 0;

	for (size_t i = 0; i < n; i += 2) {
		a += (uint32_t)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0u);
		a = (a & 0xffff) + (a >> 16);
		b += a;
		b = (b & 0xffff) + (b >> 16);
	}
	return b << 16 | a;
}

static void test_lengths(void **state)
{
	static uint8_t in[30000], out[30004];

	(void)state;
	for (int fill = 0; fill < 3; fill++) {
		if (fill == 0)
			noise(in, sizeof(in), 5);
		else
			memset(in, fill == 1 ? 0xff : 0, sizeof(in));
		for (size_t n = 0; n <= sizeof(in); n += n < 200 ? 1 : 1477) {
			uint32_t sum = plain(in, n);

			call_frame(ops, &spec, 1, in, n, out);
			for (size_t i = 0; i < 4; i++)
				assert_int_equal(out[n + i], sum >> (8 * i) & 0xff);
		}
		call_frame(ops, &spec, 1, in, 30000, out);
		assert_int_equal(out[30000], plain(in, 30000) & 0xff);
	}
}

static void test_empty(void **state)
{
	const uint8_t in[4] = {0};
	struct buf b;
	size_t len = 9;

	(void)state;
	assert_int_equal(call_decode(ops, NULL, &spec, 1, in, 4, NULL, 0, &len, NULL), 0);
	assert_int_equal(len, 0);
	buf_init(&b, 100);
	assert_int_equal(call_encode(ops, NULL, &spec, 1, NULL, 0, &b, NULL), 0);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, in, 4);
	buf_release(&b);
	assert_int_equal(ops->framed_size(UINT64_MAX - 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
