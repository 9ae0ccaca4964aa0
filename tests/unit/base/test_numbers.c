/* SPDX-License-Identifier: BSD-3-Clause */
/* test_numbers.c - byte orders, half floats, UTF-8 characters and clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/core/base64.h"
#include "base/core/clock.h"
#include "base/core/endian.h"
#include "base/core/half.h"
#include "base/core/utf8.h"

static void test_endian(void **state)
{
	const uint8_t b[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	uint8_t out[10] = {0};

	(void)state;
	assert_true(get_le(b + 1, 8) == 0x0908070605040302u && get_le64(b + 1) == get_le(b + 1, 8));
	assert_true(get_be(b + 1, 8) == 0x0203040506070809u && get_be64(b + 1) == get_be(b + 1, 8));
	assert_int_equal(get_le(b, 3), 0x030201);
	assert_int_equal(get_be(b, 3), 0x010203);
	assert_int_equal(get_le(b, 0), 0);
	assert_int_equal(get_le(b, 2), 0x0201);
	assert_int_equal(get_le32(b + 1), 0x05040302);
	assert_int_equal(get_be(b + 1, 4), 0x02030405);
	assert_int_equal(get_uint(b, 2, true), 0x0102);
	assert_int_equal(get_uint(b, 2, false), 0x0201);
	put_le(out + 1, 0x0908070605040302u, 8);
	assert_memory_equal(out + 1, b + 1, 8);
	assert_true(out[0] == 0 && out[9] == 0);
	put_be(out, 0x010203, 3);
	assert_memory_equal(out, b, 3);
	put_uint(out, 0x0102, 2, true);
	assert_true(out[0] == 1 && out[1] == 2);
	put_le32(out, 0x04030201);
	put_le16(out + 4, 0x0605);
	assert_memory_equal(out, b, 6);
}

/* All 65,536 halves come back; the points where rounding decides are IEEE 754's. */
static void test_half(void **state)
{
	static const struct {
		double v;
		uint16_t h;
	} rows[] = {
		{0, 0},
		{-0.0, 0x8000},
		{1, 0x3c00},
		{65504, 0x7bff},
		{65519.99, 0x7bff},
		{65520, 0x7c00},
		{-1e300, 0xfc00},
		{0x1p-24, 1},
		{0x1p-25, 0},
		{0x1.8p-25, 1},
		{0x1p-14, 0x0400},
		{1 + 0x1p-11, 0x3c00},
		{1 + 0x3p-11, 0x3c02},
		{(double)NAN, 0x7e00},
		{(double)INFINITY, 0x7c00},
	};

	(void)state;
	for (uint32_t h = 0; h <= 0xffff; h++)
		assert_int_equal(half_of_double(half_to_double((uint16_t)h)), h);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(half_of_double(rows[i].v), rows[i].h);
	assert_true(half_to_double(0x7bff) == 65504 && half_to_double(1) == 0x1p-24);
	assert_true(isnan(half_to_double(0x7c01)) && isinf(half_to_double(0xfc00)));
}

static void test_utf8(void **state)
{
	static const char *const bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
					  "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "\xc3(", "\xff"};
	uint8_t out[UTF8_MAX];
	uint32_t c;

	(void)state;
	for (uint32_t i = 0; i <= 0x10ffff; i++) {
		if (!utf8_is_char(i))
			continue;
		size_t n = utf8_encode(out, i);

		assert_int_equal(utf8_decode(out, n, &c), n);
		assert_int_equal(c, i);
		assert_true(n == 1 || utf8_decode(out, n - 1, &c) == 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &c), 0);
		assert_false(utf8_ok(bad[i], strlen(bad[i])));
	}
	assert_false(utf8_is_char(0xd800) || utf8_is_char(0xdfff) || utf8_is_char(0x110000));
	assert_int_equal(utf8_encode(out, 0xd800), 3);
	assert_memory_equal(out, "\xef\xbf\xbd", 3);
	assert_int_equal(utf8_prefix("a\xc3\xa4z", 4), 4);
	assert_int_equal(utf8_prefix("a\xc3\xa4z", 3), 3);
	assert_int_equal(utf8_prefix("a\xc3\xa4z", 2), 1);
	assert_int_equal(utf8_prefix("", 0), 0);
}

static void test_base64(void **state)
{
	static const char *const rows[][2] = {{"", ""},
					      {"f", "Zg=="},
					      {"fo", "Zm8="},
					      {"foo", "Zm9v"},
					      {"foobar", "Zm9vYmFy"}};
	static const char *const bad[] = {
		"Zg=", "Zg", "Z===", "====", "Zm9v!mFy", "Zm9v\nmFy", "Zg==Zg=="};
	uint8_t out[16];
	struct buf b;

	(void)state;
	buf_init(&b, 64);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t n = strlen(rows[i][0]), len = strlen(rows[i][1]);

		buf_clear(&b);
		base64_put(&b, rows[i][0], n);
		assert_int_equal(b.len, len);
		assert_memory_equal(len ? (const char *)b.data : "", rows[i][1], len);
		assert_int_equal(base64_decode(rows[i][1], len, out), n);
		assert_memory_equal(out, rows[i][0], n);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(base64_decode(bad[i], strlen(bad[i]), out), -1);
	buf_clear(&b);
	assert_int_equal(base64_decode_loose(&b, "Zm9v\r\nYmE", 9), -1);
	assert_true(b.len == 5 && memcmp(b.data, "fooba", 5) == 0);
	assert_int_equal(base64_decode_loose(&b, "Zm9v*", 5), 4);
	assert_int_equal(base64_decode_loose(&b, "Zm9vZ", 5), 5);
	buf_release(&b);
}

static void test_clock(void **state)
{
	const int64_t before = clock_ns();
	const struct timespec t = clock_after(1500000000);
	const int64_t at = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;

	(void)state;
	assert_true(at >= before + 1500000000 && at <= clock_ns() + 1500000000);
	assert_true(clock_ms() >= before / 1000000);
	assert_true(clock_after(INT64_MAX).tv_sec == INT64_MAX / 1000000000);
	assert_true(clock_wall().tv_sec > 1500000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_endian), cmocka_unit_test(test_half),
		cmocka_unit_test(test_utf8),   cmocka_unit_test(test_base64),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
