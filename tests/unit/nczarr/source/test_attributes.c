/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes from JSON: inferred types, NCZarr's types, _FillValue. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include "tests/unit/nczarr/zr_tree.h"

#include <cmocka.h>

static struct arena arena;

static const struct dtype i4 = {.kind = DT_INT, .size = 4}, u4 = {.kind = DT_UINT, .size = 4},
			  i8 = {.kind = DT_INT, .size = 8}, u8 = {.kind = DT_UINT, .size = 8},
			  f8 = {.kind = DT_FLOAT, .size = 8},
			  f4 = {.kind = DT_FLOAT, .size = 4},
			  f2 = {.kind = DT_FLOAT, .size = 2}, u1 = {.kind = DT_UINT, .size = 1},
			  i1 = {.kind = DT_INT, .size = 1}, i2 = {.kind = DT_INT, .size = 2};

static struct ds_attr make(const char *json, const char *type, const struct dtype *like,
			   bool v3)
{
	struct err e = ERR_INIT;
	struct ds_attr at = {0};
	json_t *v = tree_json(json);

	assert_non_null(v);
	if (zr_attr_make(&arena, "name", v, type, like, v3, &at, &e) < 0)
		fail_msg("%s: %s", json, e.msg);
	assert_string_equal(at.name, "name");
	json_decref(v);
	return at;
}

static void refused(const char *json, const char *type, const char *message)
{
	struct err e = ERR_INIT;
	struct ds_attr at = {0};
	json_t *v = tree_json(json);

	assert_non_null(v);
	assert_int_equal(zr_attr_make(&arena, "name", v, type, NULL, false, &at, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, message));
	json_decref(v);
}

static void is_text(struct ds_attr at, const char *text)
{
	size_t n = strlen(text);

	assert_int_equal(at.type.kind, DT_STRING);
	assert_int_equal(at.type.size, n ? n : 1);
	assert_int_equal(at.rank, 0);
	assert_int_equal(at.n, 1);
	assert_int_equal(at.strings[0].len, n);
	assert_memory_equal(at.strings[0].s, text, n);
}

static void is_type(struct ds_attr at, struct dtype t, uint32_t rank, uint64_t n)
{
	assert_int_equal(at.type.kind, t.kind);
	assert_int_equal(at.type.size, t.size);
	assert_false(at.type.big_endian);
	assert_int_equal(at.rank, rank);
	assert_int_equal(at.n, n);
	if (rank)
		assert_int_equal(at.dims[0], n);
	assert_null(at.strings);
}

static double real(struct ds_attr at, size_t i)
{
	double d;
	float f;

	assert_int_equal(at.type.kind, DT_FLOAT);
	memcpy(&d, at.data + 8 * (at.type.size == 8 ? i : 0), 8 * (at.type.size == 8));
	memcpy(&f, at.data + 4 * i, at.type.size == 4 ? 4 : 0);
	return at.type.size == 8 ? d : (double)f;
}

static int64_t whole(struct ds_attr at, size_t i)
{
	const uint8_t *p = at.data + i * at.type.size;
	int64_t v = at.type.kind == DT_INT && p[at.type.size - 1] & 0x80 ? -1 : 0;

	memcpy(&v, p, at.type.size); /* on a little-endian host */
	return v;
}

static void test_inferred(void **state)
{
	struct ds_attr at;

	(void)state;
	is_type(at = make("5", NULL, NULL, false), i4, 0, 1);
	assert_int_equal(whole(at, 0), 5);
	is_type(at = make("[-2147483648, 7]", NULL, NULL, false), i4, 1, 2);
	assert_int_equal(whole(at, 0), INT32_MIN);
	is_type(at = make("2147483648", NULL, NULL, false), u4, 0, 1);
	is_type(at = make("[2147483648, -1]", NULL, NULL, false), i8, 1, 2);
	assert_int_equal(whole(at, 1), -1);
	is_type(make("4294967296", NULL, NULL, false), i8, 0, 1);
	is_type(make("18446744073709551615", NULL, NULL, false), u8, 0, 1);
	is_type(make("18446744073709551616", NULL, NULL, false), f8, 0, 1);
	is_type(make("[18446744073709551615, -1]", NULL, NULL, false), f8, 1, 2);
	is_type(at = make("[1, 2.5]", NULL, NULL, false), f8, 1, 2);
	assert_true(real(at, 0) == 1 && real(at, 1) == 2.5);
	is_type(make("1.0", NULL, NULL, false), f8, 0, 1);
	is_type(make("1e3", NULL, NULL, false), f8, 0, 1);
	is_type(at = make("[NaN, -Infinity]", NULL, NULL, false), f8, 1, 2);
	assert_true(isnan(real(at, 0)) && real(at, 1) < 0 && isinf(real(at, 1)));
	is_type(at = make("true", NULL, NULL, false), u1, 0, 1);
	assert_int_equal(at.data[0], 1);
	is_type(make("[true, false]", NULL, NULL, false), u1, 1, 2);
	is_type(make("[]", NULL, NULL, false), f8, 1, 0);
}

static void test_inferred_texts(void **state)
{
	struct ds_attr at;

	(void)state;
	is_text(make("'degrees'", NULL, NULL, false), "degrees");
	is_text(make("''", NULL, NULL, false), "");
	is_text(make("'17'", NULL, NULL, false), "17");
	at = make("'a\\u0000b\\u0000'", NULL, NULL, false);
	assert_int_equal(at.type.size, 4);
	assert_int_equal(at.strings[0].len, 3);
	at = make("['a', '', 'ccc']", NULL, NULL, false);
	assert_int_equal(at.type.kind, DT_VSTRING);
	assert_int_equal(at.rank, 1);
	assert_int_equal(at.n, 3);
	assert_int_equal(at.strings[1].len, 0);
	assert_memory_equal(at.strings[2].s, "ccc", 3);
	is_text(make("null", NULL, NULL, false), "null");
	is_text(make("{'a': 1.50}", NULL, NULL, false), "{\"a\": 1.50}");
	is_text(make("[[1, 2], [3]]", NULL, NULL, false), "[[1,2],[3]]");
	is_text(make("[1, 'q', 2.5]", NULL, NULL, false), "[1,\"q\",2.5]");
	is_text(make("[1, 2, 'NaN']", NULL, NULL, false), "[1,2,\"NaN\"]");
	is_type(make("[1, 'NaN', 2.5, '-Infinity']", NULL, NULL, false), f8, 1, 4);
	is_text(make("['NaN', 2.5, true]", NULL, NULL, false), "[\"NaN\",2.5,true]");
	is_text(make("[true, 1]", NULL, NULL, false), "[true,1]");
	is_text(make("[null]", NULL, NULL, false), "[null]");
}

static void test_typed(void **state)
{
	struct ds_attr at;

	(void)state;
	is_type(at = make("[1, -128]", "<i1", NULL, false), i1, 1, 2);
	assert_int_equal(whole(at, 1), -128);
	refused("128", "<i1", "'<i1'");
	refused("-129", "<i1", "'<i1'");
	refused("-1", "<u1", "'<u1'");
	refused("65536", "<u2", "'<u2'");
	refused("'x'", "<i4", "'<i4'");
	refused("null", "<i4", "'<i4'");
	refused("1.5", "<i4", "'<i4'");
	refused("1e39", "<f4", "'<f4'");
	refused("[1, [2]]", "<i4", "'<i4'");
	is_type(at = make("-2", ">i2", NULL, false), i2, 0, 1);
	assert_int_equal(whole(at, 0), -2);
	is_type(make("5.0", "|i1", NULL, false), i1, 0, 1);
	is_type(make("5", "i1", NULL, false), i1, 0, 1);
	is_type(at = make("1", "<f4", NULL, false), f4, 0, 1);
	assert_true(real(at, 0) == 1);
	is_type(at = make("['NaN', 'Infinity', '-Infinity', 2]", "<f8", NULL, false), f8, 1, 4);
	assert_true(isnan(real(at, 0)) && isinf(real(at, 1)) && real(at, 2) < 0 &&
		    real(at, 3) == 2);
	is_type(make("[]", "<i2", NULL, false), i2, 1, 0);
	is_type(make("18446744073709551615", "<u8", NULL, false), u8, 0, 1);
	refused("9223372036854775808", "<i8", "'<i8'");
	is_text(make("'x'", ">S1", NULL, false), "x");
	is_text(make("'abc'", "<U1", NULL, false), "abc");
	is_text(make("17", ">S1", NULL, false), "17");
	is_text(make("[1,2,3]", ">S1", NULL, false), "[1,2,3]");
	is_text(make("{'a': 'b'}", "|J0", NULL, false), "{\"a\": \"b\"}");
	at = make("'abc'", "|S128", NULL, false);
	assert_int_equal(at.type.kind, DT_VSTRING);
	assert_int_equal(at.n, 1);
	assert_int_equal(at.strings[0].len, 3);
	at = make("['a', 5]", "|S1", NULL, false);
	assert_int_equal(at.type.kind, DT_VSTRING);
	assert_memory_equal(at.strings[1].s, "5", 1);
	/* what nobody knows is inferred */
	is_type(make("5", "<q4", NULL, false), i4, 0, 1);
	is_type(make("5", "", NULL, false), i4, 0, 1);
	is_type(make("5", "<", NULL, false), i4, 0, 1);
	is_type(make("5", "<i", NULL, false), i4, 0, 1);
	is_type(make("5", "<i3", NULL, false), i4, 0, 1);
}

static void test_fill(void **state)
{
	struct dtype s1 = {.kind = DT_STRING, .size = 1};
	struct dtype s4 = {.kind = DT_STRING, .size = 4}, big = i2,
		     c8 = {.kind = DT_COMPLEX, .size = 8}, b1 = {.kind = DT_BOOL, .size = 1};
	struct ds_attr at;
	uint16_t h;

	(void)state;
	big.big_endian = true;
	is_type(at = make("-3", NULL, &big, false), i2, 0, 1);
	assert_int_equal(whole(at, 0), -3);
	is_type(make("[7]", NULL, &i2, false), i2, 0, 1);
	is_type(make("40000", NULL, &i2, false), i4, 0, 1);
	is_type(make("-1", NULL, &u1, false), i4, 0, 1);
	is_type(make("1.5", NULL, &i2, false), f8, 0, 1);
	is_type(at = make("'NaN'", NULL, &f4, false), f4, 0, 1);
	assert_true(isnan(real(at, 0)));
	is_type(at = make("9.96921e+36", NULL, &f4, false), f4, 0, 1);
	is_type(make("1e300", NULL, &f4, false), f8, 0, 1);
	is_text(make("'x'", NULL, &f4, false), "x");
	is_text(make("'abc'", NULL, &s4, false), "abc");
	is_type(at = make("true", NULL, &b1, false), b1, 0, 1);
	assert_int_equal(at.data[0], 1);
	/* xarray's base64 of little-endian doubles: NaN, 1.5 */
	is_type(at = make("'AAAAAAAA+H8='", NULL, &f8, true), f8, 0, 1);
	assert_true(isnan(real(at, 0)));
	is_type(at = make("'AAAAAAAA+D8='", NULL, &f4, true), f4, 0, 1);
	assert_true(real(at, 0) == 1.5);
	is_text(make("'AAAAAAAA+D8='", NULL, &f4, false), "AAAAAAAA+D8=");
	is_text(make("'AAAAAAAA*D8='", NULL, &f4, true), "AAAAAAAA*D8=");
	is_type(make("5", NULL, &f4, true), f4, 0, 1);
	/* a char as its byte, as our own Zarr v3 view writes it for xarray */
	is_text(make("32", NULL, &s1, true), " ");
	is_text(make("0", NULL, &s1, true), "");
	is_type(make("32", NULL, &s1, false), i4, 0, 1);
	is_type(make("200", NULL, &s1, true), i4, 0, 1);
	is_text(make("'YWJj'", NULL, &s4, true), "YWJj");
	is_text(make("'YWJjZA=='", NULL, &s4, true), "abcd");
	is_type(make("[1, 'NaN']", NULL, &c8, false), c8, 0, 1);
	is_text(make("[1, 'NaN', 3]", NULL, &c8, false), "[1,\"NaN\",3]");
	is_type(at = make("1.0009765625", NULL, &f2, false), f2, 0, 1);
	memcpy(&h, at.data, 2);
	assert_int_equal(h, 0x3c01);
	is_type(make("65520", NULL, &f2, false), i4, 0, 1);
}

static void test_half(void **state)
{
	static const struct {
		const char *text;
		uint16_t bits;
	} cases[] = {{"0", 0},
		     {"-0.0", 0x8000},
		     {"1", 0x3c00},
		     {"-2", 0xc000},
		     {"65504", 0x7bff},
		     {"65519", 0x7bff},
		     {"6.103515625e-05", 0x0400},
		     {"6.0975551605224609e-05", 0x03ff},
		     {"5.9604644775390625e-08", 0x0001},
		     {"2.98e-08", 0x0000},
		     {"0.99999", 0x3c00},
		     {"2049", 0x6800},
		     {"2051", 0x6802},
		     {"'Infinity'", 0x7c00},
		     {"'-Infinity'", 0xfc00},
		     {"NaN", 0x7e00}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ds_attr at = make(cases[i].text, NULL, &f2, false);
		uint16_t h;

		is_type(at, f2, 0, 1);
		memcpy(&h, at.data, 2);
		if (h != cases[i].bits)
			fail_msg("%s: %04x, not %04x", cases[i].text, h, cases[i].bits);
	}
}

static void test_limits(void **state)
{
	struct err e = ERR_INIT;
	struct ds_attr at;
	struct arena tiny;
	json_t *v = tree_json("[1,2,3,4,5,6,7,8,9]");

	(void)state;
	arena_init(&tiny, 40);
	assert_int_equal(zr_attr_make(&tiny, "n", v, "<i8", NULL, false, &at, &e), -ERANGE);
	arena_release(&tiny);
	json_decref(v);
	assert_int_equal(zr_attr_text(&arena, "units", "days", &at, &e), 0);
	is_text(at, "days");
	assert_string_equal(at.name, "units");
}

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inferred), cmocka_unit_test(test_inferred_texts),
		cmocka_unit_test(test_typed),    cmocka_unit_test(test_fill),
		cmocka_unit_test(test_half),     cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
