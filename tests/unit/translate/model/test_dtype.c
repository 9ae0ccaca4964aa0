/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dtype.c - byte order of numbers and compounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "translate/model/dtype.h"
#include "translate/model/value.h"

#include <cmocka.h>

static void test_numbers(void **state)
{
	static const struct {
		struct dtype t;
		const char *want;
	} rows[] = {
		{{.kind = DT_INT, .size = 1, .big_endian = true}, "abcdefghijklmnop"},
		{{.kind = DT_UINT, .size = 2, .big_endian = true}, "badcfehgjilknmpo"},
		{{.kind = DT_INT, .size = 4, .big_endian = true}, "dcbahgfelkjiponm"},
		{{.kind = DT_FLOAT, .size = 8, .big_endian = true}, "hgfedcbaponmlkji"},
		{{.kind = DT_COMPLEX, .size = 8, .big_endian = true}, "dcbahgfelkjiponm"},
		{{.kind = DT_COMPLEX, .size = 16, .big_endian = true}, "hgfedcbaponmlkji"},
		{{.kind = DT_FLOAT, .size = 8}, "abcdefghijklmnop"},
		{{.kind = DT_STRING, .size = 4, .big_endian = true}, "abcdefghijklmnop"},
		{{.kind = DT_OPAQUE, .size = 4, .big_endian = true}, "abcdefghijklmnop"},
		{{.kind = DT_BOOL, .size = 1, .big_endian = true}, "abcdefghijklmnop"},
		{{.kind = DT_VSTRING, .big_endian = true}, "abcdefghijklmnop"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t p[17] = "abcdefghijklmnop";
		size_t n = rows[i].t.size ? 16 / rows[i].t.size : 4;

		dt_swap_to_host(&rows[i].t, p, n);
		assert_memory_equal(p, rows[i].want, 16);
		dt_swap_to_host(&rows[i].t, p, 0);
		assert_memory_equal(p, rows[i].want, 16);
	}
}

static void test_compound(void **state)
{
	static const uint64_t two[] = {2};
	static const struct dt_field inner[] = {
		{.name = "c", .type = {.kind = DT_INT, .size = 1}},
		{.name = "d",
		 .offset = 1,
		 .type = {.kind = DT_INT, .size = 2, .big_endian = true}},
	};
	static const struct dt_field outer[] = {
		{.name = "a",
		 .rank = 1,
		 .dims = two,
		 .type = {.kind = DT_UINT, .size = 2, .big_endian = true}},
		{.name = "b",
		 .offset = 4,
		 .type = {.kind = DT_COMPOUND, .size = 3, .n_fields = 2, .fields = inner}},
		{.name = "e", .offset = 7, .type = {.kind = DT_FLOAT, .size = 4}},
	};
	const struct dtype t = {
		.kind = DT_COMPOUND, .size = 11, .n_fields = 3, .fields = outer};
	uint8_t p[23] = "abcdefghijkABCDEFGHIJK";

	(void)state;
	dt_swap_to_host(&t, p, 2);
	assert_memory_equal(p, "badcegfhijkBADCEGFHIJK", 22);
}

static void test_repeat(void **state)
{
	uint8_t p[9] = "........", out[11], elem[] = {1, 2, 3};

	(void)state;
	memset(out, 9, sizeof(out));
	value_repeat(out, 9, elem, 3);
	assert_memory_equal(out, "\1\2\3\1\2\3\1\2\3\11\11", 11);
	value_repeat(out, 0, elem, 3);
	assert_int_equal(out[0], 1);
	value_repeat(p, 0, (const uint8_t *)"abc", 3);
	assert_string_equal(p, "........");
	value_repeat(p, 7, (const uint8_t *)"abc", 3);
	assert_string_equal(p, "abcabca.");
	value_repeat(p, 2, (const uint8_t *)"xyz", 3);
	assert_string_equal(p, "xycabca.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_compound),
		cmocka_unit_test(test_repeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
