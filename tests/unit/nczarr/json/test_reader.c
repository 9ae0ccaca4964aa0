/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON reader: numbers keep their text, texts stay texts, and what is no JSON is refused with
 * its place. */
#include "nczarr/json/reader.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static json_t *parse(const char *text, size_t n)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;

	if (json_read(text, n, &v, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return v;
}

static void bad(const char *text, const char *message)
{
	struct err e = ERR_INIT;
	json_t *v = NULL;

	if (json_read(text, strlen(text), &v, &e) != -EBADMSG)
		fail_msg("%s was read", text);
	if (!strstr(e.msg, message))
		fail_msg("%s: '%s' is not in '%s'", text, message, e.msg);
	assert_null(v);
}

static void again(const char *in, const char *out)
{
	json_t *v = parse(in, strlen(in));
	struct buf b;

	buf_init(&b, 4096);
	json_write_text(v, &b);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.data, out);
	buf_release(&b);
	json_decref(v);
}

static void test_numbers(void **state)
{
	static const char *const numbers[] = {"0",
					      "-0",
					      "12",
					      "18446744073709551616",
					      "0.",
					      ".5",
					      "-.5",
					      "1.e5",
					      "1E+5",
					      "1e-5",
					      "NaN",
					      "Infinity",
					      "-Infinity",
					      "1.10",
					      "123456789012345678901.5"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		json_t *v = parse(numbers[i], strlen(numbers[i]));

		assert_int_equal(json_kind(v), JSON_IS_NUMBER);
		assert_string_equal(json_number_text(v), numbers[i]);
		assert_int_equal(json_number_is_int(v), i < 4);
		json_decref(v);
	}
	bad("01", "not a number");
	bad("-", "not a number");
	bad(".", "not a number");
	bad("1e", "not a number");
	bad("-NaN", "not a number");
	bad("Inf", "not a number");
	bad("NaNs", "end of file");
	bad("1 2", "end of file");
	bad("+1", "column 1");
	bad("0x10", "end of file");
	bad("[1.2.3]", "column 5");
}

static void number_is(const char *text, bool i_ok, int64_t i, bool u_ok, uint64_t u, double d)
{
	json_t *v = parse(text, strlen(text));
	int64_t gi = 77;
	uint64_t gu = 77;
	double gd;

	assert_int_equal(json_i64(v, &gi), i_ok ? 0 : -EINVAL);
	assert_true(gi == (i_ok ? i : 77));
	assert_int_equal(json_u64(v, &gu), u_ok ? 0 : -EINVAL);
	assert_true(gu == (u_ok ? u : 77));
	assert_int_equal(json_double(v, &gd), 0);
	assert_true(isnan(d) ? isnan(gd) : gd == d);
	json_decref(v);
}

static void test_values(void **state)
{
	int64_t i;
	uint64_t u;
	double d;
	json_t *v;

	(void)state;
	number_is("0", true, 0, true, 0, 0);
	number_is("-0", true, 0, true, 0, 0);
	number_is("-7", true, -7, false, 0, -7);
	number_is("18446744073709551615", false, 0, true, UINT64_MAX, 18446744073709551615.0);
	number_is("18446744073709551616", false, 0, false, 0, 18446744073709551616.0);
	number_is("-9223372036854775808", true, INT64_MIN, false, 0, -9223372036854775808.0);
	number_is("-9223372036854775809", false, 0, false, 0, -9223372036854775808.0);
	number_is("9223372036854775807", true, INT64_MAX, true, INT64_MAX,
		  9223372036854775807.0);
	number_is("5.0", true, 5, true, 5, 5);
	number_is("5.", true, 5, true, 5, 5);
	number_is("5e3", true, 5000, true, 5000, 5000);
	number_is("1.25e2", true, 125, true, 125, 125);
	number_is("1.25e1", false, 0, false, 0, 12.5);
	number_is("100e-2", true, 1, true, 1, 1);
	number_is("10e-2", false, 0, false, 0, 0.1);
	number_is("0e99999999999999999999", true, 0, true, 0, 0);
	number_is("1e99999999999999999999", false, 0, false, 0, INFINITY);
	number_is("1e-99999999999999999999", false, 0, false, 0, 0);
	number_is("0.00", true, 0, true, 0, 0);
	number_is("100.00", true, 100, true, 100, 100);
	number_is("0.1", false, 0, false, 0, 0.1);
	number_is("NaN", false, 0, false, 0, NAN);
	number_is("-Infinity", false, 0, false, 0, -INFINITY);
	number_is("9007199254740993", true, 9007199254740993, true, 9007199254740993,
		  9007199254740992.0);
	v = parse("\"5\"", 3);
	assert_int_equal(json_i64(v, &i), -EINVAL);
	assert_int_equal(json_u64(v, &u), -EINVAL);
	assert_int_equal(json_double(v, &d), -EINVAL);
	assert_int_equal(json_i64(NULL, &i), -EINVAL);
	json_decref(v);
}

static void test_texts(void **state)
{
	static const char nul[] = "\"a\\u0000b\"";
	struct ds_text t;
	json_t *v;

	(void)state;
	v = parse(nul, strlen(nul));
	assert_true(json_text_of(v, &t));
	assert_int_equal(t.len, 3);
	assert_memory_equal(t.s, "a\0b", 3);
	assert_false(json_is(v, "a"));
	json_decref(v);
	/* what looks like a number, or like the reader's marks, is a text */
	static const char *const texts[] = {"#5", "=5", "5", "NaN", "", "\x01"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char in[16];
		int n = snprintf(in, sizeof(in), i == 5 ? "\"\\u0001\"" : "\"%s\"", texts[i]);

		v = parse(in, (size_t)n);
		assert_int_equal(json_kind(v), JSON_IS_TEXT);
		assert_null(json_number_text(v));
		assert_false(json_number_is_int(v));
		assert_true(json_is(v, texts[i]));
		json_decref(v);
	}
	bad("\"\xff\"", "line 1");
	bad("\"\xed\xa0\x80\"", "line 1");
	bad("\"\\ud800\"", "line 1");
	bad("\"a", "unterminated string");
	bad("\"a\\\"", "unterminated string");
	bad("\"a\nb\"", "newline");
}

static void test_structure(void **state)
{
	json_t *v = parse("{\"#b\": [1, \"1\", null], \"a\": {\"x\": true}, \"5\": 5}", 48);

	(void)state;
	assert_int_equal(json_kind(v), JSON_IS_OBJECT);
	assert_int_equal(json_kind(json_get(v, "#b")), JSON_IS_LIST);
	assert_int_equal(json_kind(json_get(v, "5")), JSON_IS_NUMBER);
	assert_int_equal(json_kind(json_get(v, "none")), JSON_IS_NULL);
	assert_int_equal(json_kind(json_get(json_get(v, "a"), "x")), JSON_IS_BOOL);
	assert_null(json_get(json_get(v, "#b"), "x"));
	assert_int_equal(json_kind(json_array_get(json_get(v, "#b"), 0)), JSON_IS_NUMBER);
	assert_int_equal(json_kind(json_array_get(json_get(v, "#b"), 1)), JSON_IS_TEXT);
	json_decref(v);
	again(" {\"z\":[0., NaN,\"a\\\"\\u0000\"] ,\"a\":{},\"b\":[[],null,true,false]}\n",
	      "{\"z\": [0.,NaN,\"a\\\"\\u0000\"], \"a\": {}, \"b\": [[],null,true,false]}");
	again("[\"\xc3\xa9\"]", "[\"\xc3\xa9\"]");
	again("{\"a\": [{\"b\": \"c\"}, \"d\"], \"e\": \"f\"}",
	      "{\"a\": [{\"b\": \"c\"},\"d\"], \"e\": \"f\"}");
}

static void test_refused(void **state)
{
	char deep[2 * (JSON_DEPTH_MAX + 1) + 1];

	(void)state;
	bad("", "empty");
	bad("[1,\n", "line 1, column 3: ']' expected near end of file");
	bad("{\"a\": 1, \"a\": 2}", "duplicate");
	bad("{\n \"a\": 1,\n \"b\": tru\n}", "line 3, column 7");
	bad("{\n \"a\": 123,\n \"bcd\" 5\n}", "line 3, column 8");
	bad("{\"a\": 1,\n }", "line 2, column 2: string or '}' expected");
	bad("[1,]", "line 1, column 4");
	bad("{\"a\": 1} x", "line 1");
	bad("{5: 1}", "column 2: a key is not a string");
	bad("{\"a\": 1, NaN: 1}", "a key is not a string");
	bad("]", "line 1, column 1");
	bad(" \r\n\t\n", "empty");
	bad("{\"a\\u0000\": 1}", "line 1");
	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	json_decref(parse(deep, (size_t)2 * JSON_DEPTH_MAX));
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	deep[sizeof(deep) - 1] = '\0';
	bad(deep, "nested too deeply");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_values),
		cmocka_unit_test(test_texts),   cmocka_unit_test(test_structure),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
