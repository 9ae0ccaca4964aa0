/* SPDX-License-Identifier: BSD-3-Clause */
/* Values and names as `nczarrfs info` writes them in CDL and in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fusefs/cmd/info/info_int.h"

/* value - n elements of an attribute, as text. */
static const char *value(enum dt_kind kind, uint32_t size, const void *data, uint64_t n,
			 enum info_style style)
{
	static char text[400];
	const uint64_t dims[1] = {n};
	const struct ds_attr a = {.name = "a",
				  .type = {.kind = kind, .size = size},
				  .rank = 1,
				  .dims = dims,
				  .n = n,
				  .data = data};
	struct buf out;

	buf_init(&out, sizeof(text) - 1);
	info_attr_value(&out, &a, style);
	assert_true(buf_ok(&out));
	memcpy(text, out.data ? (const char *)out.data : "", out.len);
	text[out.len] = '\0';
	buf_release(&out);
	return text;
}

static const char *string(const char *s, size_t n)
{
	static char text[400];
	const struct ds_text strings[1] = {{s, n}};
	const struct ds_attr a = {
		.name = "a", .type = {.kind = DT_VSTRING}, .n = 1, .strings = strings};
	struct buf out;

	buf_init(&out, sizeof(text) - 1);
	info_attr_value(&out, &a, INFO_CDL);
	memcpy(text, out.data, out.len);
	text[out.len] = '\0';
	buf_release(&out);
	return text;
}

static void test_integers(void **state)
{
	const int8_t bytes[] = {INT8_MIN, 0, 7};
	const uint16_t shorts[] = {65535};
	const int32_t ints[] = {INT32_MIN, 3};
	const int64_t longs[] = {INT64_MIN};
	const uint64_t ulongs[] = {UINT64_MAX};

	(void)state;
	assert_string_equal(value(DT_INT, 1, bytes, 3, INFO_CDL), "-128b, 0b, 7b");
	assert_string_equal(value(DT_INT, 1, bytes, 3, INFO_JSON), "[-128, 0, 7]");
	assert_string_equal(value(DT_UINT, 2, shorts, 1, INFO_CDL), "65535US");
	assert_string_equal(value(DT_INT, 4, ints, 2, INFO_CDL), "-2147483648, 3");
	assert_string_equal(value(DT_INT, 8, longs, 1, INFO_CDL), "-9223372036854775808LL");
	assert_string_equal(value(DT_UINT, 8, ulongs, 1, INFO_CDL), "18446744073709551615ULL");
	assert_string_equal(value(DT_UINT, 8, ulongs, 1, INFO_JSON), "18446744073709551615");
	assert_string_equal(value(DT_INT, 4, NULL, 0, INFO_CDL), "\"\"");
	assert_string_equal(value(DT_INT, 4, NULL, 0, INFO_JSON), "[]");
}

static void test_floats(void **state)
{
	const float f[] = {1, 2.5F, 1e20F, -999, 0.1F, 1e-9F, 100, 123456792};
	const double d[] = {0, 20, 1. / 3, 1e300, -1e-5};
	const double odd[] = {__builtin_nan(""), __builtin_inf(), -__builtin_inf()};

	(void)state;
	assert_string_equal(value(DT_FLOAT, 4, f, 8, INFO_CDL),
			    "1.f, 2.5f, 1.e+20f, -999.f, 0.1f, 1.e-09f, 100.f, 1.234568e+08f");
	assert_string_equal(value(DT_FLOAT, 8, d, 5, INFO_CDL),
			    "0., 20., 0.333333333333333, 1.e+300, -1.e-05");
	assert_string_equal(value(DT_FLOAT, 8, odd, 3, INFO_CDL), "NaN, Infinity, -Infinity");
	assert_string_equal(value(DT_FLOAT, 8, odd, 3, INFO_JSON),
			    "[\"NaN\", \"Infinity\", \"-Infinity\"]");
}

/* Control characters are written with their number. */
static void test_strings(void **state)
{
	(void)state;
	assert_string_equal(string("a\"b'c\\\n\t", 8), "\"a\\\"b\\'c\\\\\\n\\t\"");
	assert_string_equal(string("\033[2J\177", 5), "\"\\033[2J\\177\"");
	assert_string_equal(string("\302\233\303\251", 4), "\"\302\\233\303\251\"");
	assert_string_equal(string("end\0\0", 5), "\"end\"");
	assert_string_equal(value(DT_STRING, 1, "x", 1, INFO_CDL), "\"x\"");
}

static void test_names(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	info_cdl_name(&out, "2 m+k\033\303\251");
	buf_putc(&out, '\0');
	assert_string_equal((char *)out.data, "\\2\\ m+k?\303\251");
	buf_release(&out);
}

/* Stated by the file, or netCDF-C's default. */
static void test_fill(void **state)
{
	const uint16_t unset = 65535, other = 65534;
	const int8_t byte = -127;
	const int64_t wide = -9223372036854775806;
	struct ds_array a = {.type = {.kind = DT_UINT, .size = 2}, .fill = (const void *)&unset};
	const struct ds_attr attr = {.name = "_FillValue"};

	(void)state;
	assert_int_equal(info_fill_kind(&a), INFO_FILL_NONE);
	a.fill_defined = true;
	assert_int_equal(info_fill_kind(&a), INFO_FILL_NETCDF);
	a.attrs = &attr;
	a.n_attrs = 1;
	assert_int_equal(info_fill_kind(&a), INFO_FILL_FILE);
	a.n_attrs = 0;
	a.fill = (const void *)&other;
	assert_int_equal(info_fill_kind(&a), INFO_FILL_FILE);
	a.type = (struct dtype){.kind = DT_INT, .size = 1};
	a.fill = (const void *)&byte;
	assert_int_equal(info_fill_kind(&a), INFO_FILL_NETCDF);
	a.type = (struct dtype){.kind = DT_INT, .size = 8};
	a.fill = (const void *)&wide;
	assert_int_equal(info_fill_kind(&a), INFO_FILL_NETCDF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers), cmocka_unit_test(test_floats),
		cmocka_unit_test(test_strings),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
