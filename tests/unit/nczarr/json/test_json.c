/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON writer: escapes, layout, limits. */
#include "nczarr/json/writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect(struct buf *b, const char *text)
{
	assert_true(buf_ok(b));
	buf_putc(b, '\0');
	assert_string_equal((const char *)b->data, text);
	buf_release(b);
}

static void text_is(bool ascii, const char *in, size_t n, const char *out)
{
	struct buf b;
	struct jw j;

	buf_init(&b, 4096);
	jw_init(&j, &b, ascii);
	jw_text(&j, in, n);
	expect(&b, out);
}

static void test_text(void **state)
{
	(void)state;
	text_is(true, "", 0, "\"\"");
	text_is(true, "a/b\"c\\", 6, "\"a/b\\\"c\\\\\"");
	text_is(true, "\b\f\n\r\t\x01\x1f\x7f", 8, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"");
	text_is(false, "\x7f", 1, "\"\\u007f\"");
	text_is(true, "a\0b", 3, "\"a\\u0000b\"");
	text_is(true, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		"\"\\u00e9\\u20ac\\ud83d\\ude00\"");
	text_is(false, "\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
	text_is(true, "\xf4\x8f\xbf\xbf", 4, "\"\\udbff\\udfff\"");
	/* not UTF-8: Latin-1, all of it */
	text_is(true, "\xc3\xa9\xff", 3, "\"\\u00c3\\u00a9\\u00ff\"");
	text_is(false, "\xe9", 1, "\"\xc3\xa9\"");
	text_is(true, "\xed\xa0\x80", 3, "\"\\u00ed\\u00a0\\u0080\"");
	text_is(true, "\xc3", 1, "\"\\u00c3\"");
}

static void test_layout(void **state)
{
	struct buf b;
	struct jw j;

	(void)state;
	buf_init(&b, 4096);
	jw_init(&j, &b, true);
	jw_object(&j, false);
	jw_key(&j, "e");
	jw_object(&j, false);
	jw_end(&j);
	jw_key(&j, "n");
	jw_array(&j, true);
	jw_u64(&j, UINT64_MAX);
	jw_i64(&j, INT64_MIN);
	jw_object(&j, false);
	jw_key(&j, "t");
	jw_bool(&j, true);
	jw_key(&j, "z");
	jw_null(&j);
	jw_end(&j);
	jw_end(&j);
	jw_key(&j, "d");
	jw_array(&j, false);
	jw_double(&j, 1, true);
	jw_double(&j, (double)NAN, true);
	jw_double(&j, (double)-INFINITY, false);
	jw_end(&j);
	jw_end(&j);
	expect(&b,
	       "{\n    \"e\": {},\n    \"n\": [18446744073709551615, -9223372036854775808, "
	       "{\"t\": true, \"z\": null}],\n    \"d\": [\n        1.0,\n        \"NaN\",\n"
	       "        -Infinity\n    ]\n}");
}

static void test_bytes(void **state)
{
	static const uint8_t bytes[] = {0, 0xff, 0x10, 0x83};
	static const char *const base64[] = {"\"\"", "\"AA==\"", "\"AP8=\"", "\"AP8Q\"",
					     "\"AP8Qgw==\""};
	struct buf b;
	struct jw j;

	(void)state;
	for (size_t n = 0; n <= 4; n++) {
		buf_init(&b, 4096);
		jw_init(&j, &b, true);
		jw_base64(&j, bytes, n);
		expect(&b, base64[n]);
	}
	jw_init(&j, &b, true);
	jw_hex(&j, bytes, 4);
	expect(&b, "\"0x00ff1083\"");
}

static void test_limits(void **state)
{
	struct buf b;
	struct jw j;

	(void)state;
	buf_init(&b, 1 << 20);
	jw_init(&j, &b, true);
	for (int i = 0; i < JW_DEPTH_MAX; i++)
		jw_array(&j, false);
	assert_true(buf_ok(&b));
	jw_array(&j, false);
	assert_false(buf_ok(&b));
	for (int i = 0; i < 3 * JW_DEPTH_MAX; i++)
		jw_end(&j);
	buf_release(&b);

	buf_init(&b, 10);
	jw_init(&j, &b, true);
	jw_str(&j, "more than ten bytes");
	assert_false(buf_ok(&b));
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
