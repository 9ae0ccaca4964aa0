/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of stored objects: every way to write them, and which listed names count. */
#include "tests/unit/nczarr/source/zr_source_fake.h"

static const uint64_t grid3[] = {4, 5, 12};

struct form {
	char separator;
	bool prefixed;
	const char *array, *object, *dir0, *dir2;
};

static void test_forms(void **state)
{
	static const struct form forms[] = {
		{'.', false, "g/t", "g/t/3.0.11", "g/t", NULL},
		{'/', false, "g/t", "g/t/3/0/11", "g/t", "g/t/3/0"},
		{'.', true, "g/t", "g/t/c.3.0.11", "g/t", NULL},
		{'/', true, "g/t", "g/t/c/3/0/11", "g/t/c", "g/t/c/3/0"},
		{'.', false, "", "3.0.11", "", NULL},
		{'/', false, "", "3/0/11", "", "3/0"},
		{'.', true, "", "c.3.0.11", "", NULL},
		{'/', true, "", "c/3/0/11", "c", "c/3/0"},
	};
	const uint64_t at[] = {3, 0, 11};
	char key[ZR_OBJECT_KEY];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		const struct form *x = &forms[i];
		struct zr_meta m = {.rank = 3,
				    .key = x->array,
				    .separator = x->separator,
				    .prefixed = x->prefixed};

		assert_int_equal(zr_object_key(&m, at, key, NULL), 0);
		assert_string_equal(key, x->object);
		assert_int_equal(zr_level_key(&m, at, 0, key, NULL), 0);
		assert_string_equal(key, x->dir0);
		if (!x->dir2)
			continue;
		assert_int_equal(zr_level_key(&m, at, 2, key, NULL), 0);
		assert_string_equal(key, x->dir2);
	}
}

static void test_scalar(void **state)
{
	struct zr_meta m = {.key = "s", .separator = '/'};
	char key[ZR_OBJECT_KEY];

	(void)state;
	assert_int_equal(zr_object_key(&m, NULL, key, NULL), 0);
	assert_string_equal(key, "s/0");
	m.prefixed = true;
	assert_int_equal(zr_object_key(&m, NULL, key, NULL), 0);
	assert_string_equal(key, "s/c");
	m.key = "";
	m.separator = '.';
	assert_int_equal(zr_object_key(&m, NULL, key, NULL), 0);
	assert_string_equal(key, "c");
}

static void test_too_long(void **state)
{
	char name[STORE_KEY_MAX + 1], key[ZR_OBJECT_KEY];
	const uint64_t at[] = {UINT64_MAX};
	struct zr_meta m = {.rank = 1, .key = name, .separator = '.'};
	struct err e = ERR_INIT;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[STORE_KEY_MAX - 21] = '\0';
	assert_int_equal(zr_object_key(&m, at, key, &e), 0);
	assert_string_equal(key + STORE_KEY_MAX - 21, "/18446744073709551615");
	name[STORE_KEY_MAX - 21] = 'x';
	name[STORE_KEY_MAX - 20] = '\0';
	assert_int_equal(zr_object_key(&m, at, key, &e), -ERANGE);
}

static uint64_t parsed(const struct zr_meta *m, uint32_t level, const char *name)
{
	uint64_t v = 0;

	return zr_name_parse(m, grid3, level, name, &v) == 0 ? v : UINT64_MAX;
}

static void test_parse_flat(void **state)
{
	static const char *const bad[] = {"",
					  ".zarray",
					  "0",
					  "0.0",
					  "0.0.0.0",
					  "4.0.0",
					  "0.5.0",
					  "0.0.12",
					  "00.0.0",
					  "0.0.01",
					  "+0.0.0",
					  "0.0.-1",
					  " 0.0.0",
					  "0.0.0 ",
					  "0..0",
					  ".0.0",
					  "0.0.",
					  "0/0/0",
					  "c.0.0.0",
					  "0.0.99999999999999999999999",
					  "0.0.0.partial",
					  "a.b.c",
					  "0,0,0",
					  "0.0.0x0"};
	struct zr_meta m = {.rank = 3, .key = "t", .separator = '.'};

	(void)state;
	assert_int_equal(parsed(&m, 0, "0.0.0"), 0);
	assert_int_equal(parsed(&m, 0, "3.4.11"), 4 * 5 * 12 - 1);
	assert_int_equal(parsed(&m, 0, "1.2.3"), 60 + 24 + 3);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parsed(&m, 0, bad[i]), UINT64_MAX);

	m.prefixed = true;
	assert_int_equal(parsed(&m, 0, "c.1.2.3"), 60 + 24 + 3);
	assert_int_equal(parsed(&m, 0, "1.2.3"), UINT64_MAX);
	assert_int_equal(parsed(&m, 0, "c"), UINT64_MAX);
	assert_int_equal(parsed(&m, 0, "c."), UINT64_MAX);
	assert_int_equal(parsed(&m, 0, "c1.2.3"), UINT64_MAX);
	assert_int_equal(parsed(&m, 0, "c/1.2.3"), UINT64_MAX);
}

static void test_parse_nested(void **state)
{
	struct zr_meta m = {.rank = 3, .key = "t", .separator = '/'};

	(void)state;
	assert_int_equal(parsed(&m, 0, "3"), 3);
	assert_int_equal(parsed(&m, 0, "4"), UINT64_MAX);
	assert_int_equal(parsed(&m, 1, "4"), 4);
	assert_int_equal(parsed(&m, 2, "11"), 11);
	assert_int_equal(parsed(&m, 2, "012"), UINT64_MAX);
	assert_int_equal(parsed(&m, 3, "0"), UINT64_MAX);
	assert_int_equal(parsed(&m, 0, "c"), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),        cmocka_unit_test(test_scalar),
		cmocka_unit_test(test_too_long),     cmocka_unit_test(test_parse_flat),
		cmocka_unit_test(test_parse_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
