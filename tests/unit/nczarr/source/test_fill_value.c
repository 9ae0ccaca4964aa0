/* SPDX-License-Identifier: BSD-3-Clause */
/* fill_value of both Zarr versions as bytes. The vectors are what numpy has in memory for what
 * zarr-python 2.13 writes; a U's bytes are its UTF-8. */
#include "tests/unit/nczarr/source/nczarr_zr.h"

#include <errno.h>
#include <stdio.h>

/* filled - read a fill value; m and a stay valid as long as ar. */
static int filled(struct arena *ar, int version, const char *type, const char *value,
		  struct ds_array *ret, struct err *e)
{
	json_t *t = zr_json(type), *v = value ? zr_json(value) : NULL;
	struct zr_meta m = {.format = version};
	int rc;

	if (version == 2)
		rc = zr_dtype_v2(ar, t, false, &m.dtype, e);
	else
		rc = zr_dtype_v3(ar, t, &m.dtype, e);
	assert_int_equal(rc, 0);
	m.fill = v;
	*ret = (struct ds_array){.type = m.dtype.type};
	rc = zr_fill_value(ar, &m, ret, e);
	json_decref(t);
	json_decref(v);
	return rc;
}

static void is_bytes(int version, const char *type, const char *value, const char *hex)
{
	struct ds_array d;
	struct arena a;
	struct err e = ERR_INIT;
	char got[1024] = "";

	arena_init(&a, 1 << 20);
	if (filled(&a, version, type, value, &d, &e) < 0)
		fail_msg("%s %s: %s", type, value, e.msg);
	assert_true(d.fill_defined);
	assert_true(d.type.size < 500);
	for (size_t i = 0; i < d.type.size; i++)
		(void)snprintf(got + 2 * i, 3, "%02x", d.fill[i]);
	if (strcmp(got, hex) != 0)
		fail_msg("%s %s: %s, not %s", type, value, got, hex);
	arena_release(&a);
}

static void test_numpy(void **state)
{
	static const char *const rows[][3] = {
		{"'<f4'", "0.10000000149011612", "cdcccc3d"},
		{"'>f4'", "0.10000000149011612", "3dcccccd"},
		{"'<f8'", "9.96921e+36", "1397980100009e47"},
		{"'<f4'", "9.969209968386869e+36", "0000f07c"},
		{"'<f2'", "65504.0", "ff7b"},
		{"'<f2'", "1.1920928955078125e-07", "0200"},
		{"'<f2'", "6.097555160522461e-05", "ff03"},
		{"'<f2'", "0.0999755859375", "662e"},
		{"'>f2'", "-2.5", "c100"},
		{"'<f2'", "2048.0", "0068"},
		{"'<f4'", "'NaN'", "0000c07f"},
		{"'<f8'", "'NaN'", "000000000000f87f"},
		{"'<f2'", "'NaN'", "007e"},
		{"'<f2'", "'-Infinity'", "00fc"},
		{"'<f8'", "'Infinity'", "000000000000f07f"},
		{"'<f8'", "'-Infinity'", "000000000000f0ff"},
		{"'<f4'", "'-Infinity'", "000080ff"},
		{"'<c8'", "[1.5, -2.0]", "0000c03f000000c0"},
		{"'>c16'", "['NaN', 'Infinity']", "7ff80000000000007ff0000000000000"},
		{"'|i1'", "-128", "80"},
		{"'>i2'", "-2", "fffe"},
		{"'<u2'", "65535", "ffff"},
		{"'<i4'", "-2147483647", "01000080"},
		{"'<u8'", "18446744073709551614", "feffffffffffffff"},
		{"'>i8'", "-9223372036854775806", "8000000000000002"},
		{"'<i8'", "-9223372036854775808", "0000000000000080"},
		{"'|b1'", "true", "01"},
		{"'|S5'", "'YWJj'", "6162630000"},
		{"'|S1'", "'eA=='", "78"},
		{"'|V3'", "'AQID'", "010203"},
		{"'<U3'", "'h\\u00e9'", "68c3a9000000000000000000"},
		{"'<M8[D]'", "18262", "5647000000000000"},
		{"'<M8[ns]'", "-9223372036854775808", "0000000000000080"},
		{"'<m8[s]'", "-5", "fbffffffffffffff"},
		{"[['a', '<i2'], ['b', '>f4'], ['c', 'S3']]", "'/v8/wAAAeHkA'",
		 "feff3fc00000787900"},
		{"[['a', '|u1'], ['p', [['x', '<f8'], ['y', '<f8', [2]]]]]",
		 "'BwAAAAAAAPA/AAAAAAAAAEAAAAAAAAAIQA=='",
		 "07000000000000f03f00000000000000400000000000000840"},
		/* the gaps fall out */
		{"[['a', '|i1'], ['', '|V3'], ['b', '<i4'], ['c', '|u1'], ['', '|V3']]",
		 "'AQAAAAQDAgEJAAAA'", "010403020109"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		is_bytes(2, rows[i][0], rows[i][1], rows[i][2]);
}

static void test_lenient(void **state)
{
	(void)state;
	is_bytes(2, "'<f4'", "NaN", "0000c07f");
	is_bytes(2, "'<f4'", "-Infinity", "000080ff");
	is_bytes(2, "'<f4'", "-0.0", "00000080");
	is_bytes(2, "'<f4'", "1e-50", "00000000");
	is_bytes(2, "'<f4'", "3.4028235e38", "ffff7f7f");
	is_bytes(2, "'<f4'", "9.96921e+36", "0000f07c");
	is_bytes(2, "'<f2'", "65519.99", "ff7b");
	is_bytes(2, "'<f2'", "2047.5", "0068"); /* ties to even */
	is_bytes(2, "'<f2'", "2049", "0068");
	is_bytes(2, "'<f2'", "6.1035e-5", "0004");
	is_bytes(2, "'<f2'", "-2e-8", "0080");
	is_bytes(2, "'<i2'", "5.0", "0500");
	is_bytes(2, "'<i2'", "1e3", "e803");
	is_bytes(2, "'<i2'", "true", "0100");
	is_bytes(2, "'|b1'", "1", "01");
	is_bytes(2, "'|b1'", "0", "00");
	is_bytes(2, "'<c8'", "0", "0000000000000000");
	is_bytes(2, "'<c8'", "2", "0000004000000000");
	is_bytes(2, "'|S3'", "0", "000000");
	is_bytes(2, "'|S3'", "''", "000000");
	is_bytes(2, "'|S3'", "'MA=='", "300000");
	is_bytes(2, "'|S1'", "'x'", "78"); /* netCDF-C's */
	is_bytes(2, "'|S6'", "'not64'", "6e6f74363400");
	is_bytes(2, "'|S4'", "'AAECAw=='", "00010203");
	is_bytes(2, "'|S2'", "'YWIAAA=='", "6162");
	is_bytes(2, "'<U2'", "0", "0000000000000000");
	is_bytes(2, "'<U1'", "'\\ud83d\\ude00'", "f09f9880");
	is_bytes(2, "'|V2'", "0", "0000");
	is_bytes(2, "'|V2'", "''", "0000");
	is_bytes(2, "[['a', '<i2']]", "0", "0000");
	is_bytes(2, "'<M8[s]'", "'NaT'", "0000000000000080");
	is_bytes(2, "'>M8[10s]'", "'NaT'", "8000000000000000");
}

/* A number between quotes, and all that numpy converts to the type: zarr-python 2.13 reads each
 * of these, and zarr-python 3 the quoted ones. */
static void test_as_zarr_python(void **state)
{
	(void)state;
	is_bytes(2, "'|i1'", "'0'", "00"); /* bioformats2raw */
	is_bytes(2, "'<i4'", "'5'", "05000000");
	is_bytes(2, "'<i4'", "' -12 '", "f4ffffff");
	is_bytes(2, "'<u8'", "'18446744073709551615'", "ffffffffffffffff");
	is_bytes(2, "'<i4'", "'+007'", "07000000");
	is_bytes(3, "'int8'", "'-128'", "80");
	is_bytes(3, "'uint16'", "'0'", "0000");
	is_bytes(2, "'<f4'", "'1.5'", "0000c03f");
	is_bytes(2, "'<f4'", "'nan'", "0000c07f");
	is_bytes(2, "'<f4'", "'-inf'", "000080ff");
	is_bytes(3, "'float32'", "' 1e3'", "00007a44");
	is_bytes(2, "'|u1'", "256", "00");
	is_bytes(2, "'|u1'", "-1", "ff");
	is_bytes(2, "'|i1'", "128", "80");
	is_bytes(2, "'|i1'", "-129", "7f");
	is_bytes(2, "'|i1'", "'300'", "2c");
	is_bytes(2, "'<i2'", "32768", "0080");
	is_bytes(2, "'<i4'", "2147483648", "00000080");
	is_bytes(2, "'<i4'", "5.5", "05000000");
	is_bytes(2, "'<i4'", "-5.5", "fbffffff");
	is_bytes(2, "'|b1'", "2", "01");
	is_bytes(2, "'<f4'", "1e39", "0000807f");
	is_bytes(2, "'<f4'", "1e999", "0000807f");
	is_bytes(2, "'<f8'", "-1e999", "000000000000f0ff");
	is_bytes(2, "'<f2'", "65520", "007c");
	is_bytes(2, "'<f4'", "false", "00000000");
	is_bytes(2, "'<c8'", "[1, 1e39]", "0000803f0000807f");
}

static void test_v3(void **state)
{
	(void)state;
	is_bytes(3, "'float32'", "'0x7fc00001'", "0100c07f");
	is_bytes(3, "'float16'", "'0x7E01'", "017e");
	is_bytes(3, "'float64'", "'0xfff0000000000000'", "000000000000f0ff");
	is_bytes(3, "'complex64'", "['0x7fc00001', 1]", "0100c07f0000803f");
	is_bytes(3, "'uint64'", "18446744073709551615", "ffffffffffffffff");
	is_bytes(3, "'bool'", "false", "00");
	is_bytes(3, "'r24'", "[1, 0, 255]", "0100ff");
	is_bytes(3, "{'name': 'raw_bytes', 'configuration': {'length_bytes': 2}}", "'AQI='",
		 "0102");
	is_bytes(3, "{'name': 'null_terminated_bytes', 'configuration': {'length_bytes': 3}}",
		 "'YWI='", "616200");
	is_bytes(3, "{'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 8}}",
		 "'\\u00e9'", "c3a9000000000000");
	is_bytes(3,
		 "{'name': 'numpy.datetime64', 'configuration': {'unit': 's', 'scale_factor': "
		 "1}}",
		 "'NaT'", "0000000000000080");
}

#define STRUCT                                                                                 \
	"{'name': 'struct', 'configuration': {'fields': [['i', 'int16'], ['f', 'float32'], "   \
	"['u', {'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 8}}], ['b', "  \
	"'bool'], ['n', {'name': 'struct', 'configuration': {'fields': [{'name': 'x', "        \
	"'data_type': 'uint8'}]}}], ['t', {'name': 'numpy.timedelta64', 'configuration': "     \
	"{'unit': 's', 'scale_factor': 1}}]]}}"

static void test_struct_values(void **state)
{
	struct ds_array d;
	struct arena a;

	(void)state;
	is_bytes(
		3, STRUCT,
		"{'i': -2, 'f': 'NaN', 'u': '\\u20ac\\ud83d\\ude00', 'b': true, 'n': {'x': 7}, "
		"'t': 'NaT'}",
		"feff0000c07fac20000000f6010001070000000000000080");
	is_bytes(3, STRUCT, "{'n': {}}", "000000000000000000000000000000000000000000000000");
	is_bytes(3, STRUCT, "'AQAAAIA/YQAAAAAAAAABCQAAAAAAAAAA'",
		 "01000000803f610000000000000001090000000000000000");
	arena_init(&a, 1 << 20);
	assert_int_equal(filled(&a, 3, STRUCT, "{'i': 40000}", &d, NULL), -EBADMSG);
	assert_int_equal(filled(&a, 3, STRUCT, "{'u': 'abc'}", &d, NULL), -EBADMSG);
	assert_int_equal(filled(&a, 3, STRUCT, "{'u': 7}", &d, NULL), -EBADMSG);
	assert_int_equal(filled(&a, 3, STRUCT, "{'n': 'BwAA'}", &d, NULL), -EBADMSG);
	assert_int_equal(filled(&a, 2, "[['a', '<i2', [2]]]", "{'a': [1, 2]}", &d, NULL),
			 -EOPNOTSUPP);
	arena_release(&a);
}

static void test_undefined(void **state)
{
	static const char *const values[] = {NULL, "null"};
	struct ds_array d;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		assert_int_equal(filled(&a, 2, "'<i4'", values[i], &d, NULL), 0);
		assert_false(d.fill_defined);
		assert_memory_equal(d.fill, "\0\0\0\0", 4);
		assert_int_equal(filled(&a, 2, "'|O'", values[i], &d, NULL), 0);
		assert_false(d.fill_defined);
		assert_null(d.fill);
		assert_int_equal(d.fill_text.len, 0);
	}
	arena_release(&a);
}

static void text_is(int version, const char *type, const char *value, const char *text,
		    size_t len)
{
	struct ds_array d;
	struct arena a;

	arena_init(&a, 1 << 20);
	assert_int_equal(filled(&a, version, type, value, &d, NULL), 0);
	assert_true(d.fill_defined);
	assert_null(d.fill);
	assert_int_equal(d.fill_text.len, len);
	assert_memory_equal(d.fill_text.s, text, len);
	arena_release(&a);
}

static void test_texts(void **state)
{
	struct ds_array d;
	struct arena a;

	(void)state;
	text_is(2, "'|O'", "'a\\u0000b'", "a\0b", 3);
	text_is(2, "'|O'", "''", "", 0);
	text_is(2, "'|O'", "0", "", 0);
	text_is(2, "'|O'", "-1.50", "-1.50", 5);
	text_is(2, "'|O'", "NaN", "NaN", 3);
	text_is(3, "'string'", "'\\u00e9'", "\xc3\xa9", 2);
	text_is(3, "'bytes'", "''", "", 0);
	text_is(3, "'bytes'", "[]", "", 0);
	arena_init(&a, 1 << 20);
	assert_int_equal(filled(&a, 2, "'|O'", "[1]", &d, NULL), -EBADMSG);
	assert_int_equal(filled(&a, 2, "'|O'", "true", &d, NULL), -EBADMSG);
	assert_int_equal(filled(&a, 3, "'bytes'", "'AQ=='", &d, NULL), -EOPNOTSUPP);
	assert_int_equal(filled(&a, 3, "'bytes'", "[1]", &d, NULL), -EOPNOTSUPP);
	arena_release(&a);
}

static void test_bad(void **state)
{
	static const char *const rows[][2] = {
		{"'<i8'", "9223372036854775808"},
		{"'<i8'", "1e19"},
		{"'<u8'", "18446744073709551616"},
		{"'<u8'", "1e400"},
		{"'<i4'", "NaN"},
		{"'<i4'", "'NaN'"},
		{"'<i8'", "'NaT'"},
		{"'<i4'", "''"},
		{"'<i4'", "'-'"},
		{"'<i4'", "'1.5'"},
		{"'<i4'", "'0x10'"},
		{"'<i4'", "'5 6'"},
		{"'<i4'", "'5\\u0000'"},
		{"'<i8'", "'9223372036854775808'"},
		{"'<M8[s]'", "'0'"},
		{"'<f4'", "''"},
		{"'<f4'", "'1,5'"},
		{"'<f4'", "'1\\u0000'"},
		{"'<f8'", "'0x1p3'"},
		{"'<f8'", "'nan(1)'"},
		{"'<i4'", "[5]"},
		{"'<i4'", "{}"},
		{"'|b1'", "'true'"},
		{"'<f4'", "'0x'"},
		{"'<f4'", "'0x123456789'"},
		{"'<f4'", "'0x12g4'"},
		{"'<f4'", "'0x\\u0000\\u0000'"},
		{"'<c8'", "[1]"},
		{"'<c8'", "[1, 2, 3]"},
		{"'<c8'", "'NaN'"},
		{"'|S2'", "'YWJj'"},
		{"'|S2'", "'abc'"},
		{"'|S2'", "5"},
		{"'|S2'", "[1, 2, 3]"},
		{"'|S2'", "[1, 2, 256]"},
		{"'|S2'", "[-1]"},
		{"'<U2'", "'abc'"},
		{"'<U2'", "7"},
		{"'|V2'", "'AQ=='"},
		{"'|V2'", "'A'"},
		{"'|V2'", "'A==='"},
		{"'|V2'", "'A=IB'"},
		{"'|V2'", "'====' "},
		{"'|V2'", "'*AAB'"},
		{"'|V2'", "1"},
		{"[['a', '<i2']]", "'AQID'"},
		{"[['a', '<i2']]", "1"},
		{"[['a', '<i2']]", "[1]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ds_array d;
		struct arena a;
		struct err e = ERR_INIT;
		int rc;

		arena_init(&a, 1 << 20);
		rc = filled(&a, 2, rows[i][0], rows[i][1], &d, &e);
		if (rc != -EBADMSG || !strstr(e.msg, "fill_value"))
			fail_msg("%s %s: %d %s", rows[i][0], rows[i][1], rc, e.msg);
		assert_false(d.fill_defined);
		arena_release(&a);
	}
}

/* The message shows the value, whatever it is. */
static void test_message(void **state)
{
	struct ds_array d;
	struct arena a;
	struct err e = ERR_INIT;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(filled(&a, 3, "'uint8'", "300", &d, &e), -EBADMSG);
	assert_string_equal(e.msg, "fill_value 300 is not a value of uint8");
	assert_int_equal(filled(&a, 3, "'int16'", "5.5", &d, &e), -EBADMSG);
	assert_string_equal(e.msg, "fill_value 5.5 is not a value of int16");
	assert_int_equal(filled(&a, 3, "'bool'", "2", &d, &e), -EBADMSG);
	assert_string_equal(e.msg, "fill_value 2 is not a bool");
	assert_int_equal(filled(&a, 2, "'<f2'", "[]", &d, &e), -EBADMSG);
	assert_string_equal(e.msg, "fill_value [] is not a value of float16");
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numpy),     cmocka_unit_test(test_lenient),
		cmocka_unit_test(test_as_zarr_python),
		cmocka_unit_test(test_v3),        cmocka_unit_test(test_struct_values),
		cmocka_unit_test(test_undefined), cmocka_unit_test(test_texts),
		cmocka_unit_test(test_bad),       cmocka_unit_test(test_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
