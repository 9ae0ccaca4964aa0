/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunk keys: strict reading, and a round trip over whole grids. */
#include "nczarr/chunk_key.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* parse_n - a key, whose parts are looked for one by one where they are names of a path. */
static int parse_n(const struct ds_array *a, char sep, const char *s, size_t n, uint64_t *ret)
{
	struct zr_grid g;
	uint64_t part, linear = 0;

	zr_grid_chunks(a, &g);
	g.keys.nested = sep == '/';
	if (!g.keys.nested)
		return zr_key_parse(&g, s, n, ret);
	for (uint32_t level = 0; level <= zr_key_levels(&g); level++) {
		const char *stop = memchr(s, sep, n);
		size_t len = stop ? (size_t)(stop - s) : n;

		if ((stop == NULL) != (level == zr_key_levels(&g)) ||
		    zr_key_part(&g, level, s, len, &part))
			return -EINVAL;
		linear = linear * zr_key_parts(&g, level) + part;
		s += len + (stop != NULL);
		n -= len + (stop != NULL);
	}
	*ret = linear;
	return 0;
}

static void format(const struct ds_array *a, char sep, uint64_t linear, char *out)
{
	struct zr_grid g;

	zr_grid_chunks(a, &g);
	g.keys.nested = sep == '/';
	zr_key_format(&g, linear, out);
}

static int parse(const struct ds_array *a, char sep, const char *s, uint64_t *ret)
{
	return parse_n(a, sep, s, strlen(s), ret);
}

static void test_round_trip(void **state)
{
	static const uint64_t grid[] = {3, 1, 12};
	const struct ds_array arrays[] = {{.rank = 3, .grid = grid, .n_chunks = 36},
					  {.rank = 1, .grid = grid + 2, .n_chunks = 12},
					  {.rank = 0, .n_chunks = 1}};
	char key[ZR_KEY_MAX];
	uint64_t linear;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
		for (uint64_t c = 0; c < arrays[i].n_chunks; c++) {
			format(&arrays[i], '.', c, key);
			assert_int_equal(parse(&arrays[i], '.', key, &linear), 0);
			assert_int_equal(linear, c);
			format(&arrays[i], '/', c, key);
			assert_int_equal(parse(&arrays[i], '/', key, &linear), 0);
			assert_int_equal(linear, c);
		}
	}
	format(&arrays[0], '/', 35, key);
	assert_string_equal(key, "2/0/11");
	format(&arrays[2], '/', 0, key);
	assert_string_equal(key, "0");
}

static void test_strict(void **state)
{
	static const uint64_t grid[] = {3, 12};
	static const char *const bad[] = {"",
					  ".",
					  "0",
					  "0.",
					  ".0",
					  "0.0.",
					  "0..0",
					  "0.0.0",
					  "3.0",
					  "0.12",
					  "00.0",
					  "0.00",
					  "0.01",
					  "+0.0",
					  "-0.0",
					  "0.+1",
					  " 0.0",
					  "0.0 ",
					  "0,0",
					  "0/0",
					  "0x0.0",
					  "0.0\n",
					  "a.b",
					  "0.1e0",
					  "18446744073709551616.0",
					  "0.99999999999999999999"};
	const struct ds_array a = {.rank = 2, .grid = grid, .n_chunks = 36};
	const struct ds_array scalar = {.rank = 0, .n_chunks = 1};
	const struct ds_array empty = {.rank = 2, .grid = (const uint64_t[]){0, 12}};
	uint64_t linear;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(parse(&a, '.', bad[i], &linear), -EINVAL);
	assert_int_equal(parse_n(&a, '.', "0.0\0", 4, &linear), -EINVAL);
	assert_int_equal(parse_n(&a, '.', "2.11", 4, &linear), 0);
	assert_int_equal(linear, 35);
	assert_int_equal(parse(&scalar, '.', "00", &linear), -EINVAL);
	assert_int_equal(parse(&scalar, '.', "1", &linear), -EINVAL);
	assert_int_equal(parse(&scalar, '.', "", &linear), -EINVAL);
	assert_int_equal(parse(&empty, '.', "0.0", &linear), -EINVAL);
}

/* test_lead - keys of Zarr v3's default encoding. */
static void test_lead(void **state)
{
	static const uint64_t grid[] = {3, 12};
	static const char *const bad[] = {"",       "c",      "0.0",   "c.0",   "c.0.0.0",
					  "c.3.0",  "c0.0",   ".0.0",  "C.0.0", "c..0.0",
					  "c.0.0.", "cc.0.0", "c/0/0", "c.00.0"};
	const struct ds_array a = {.rank = 2, .grid = grid, .n_chunks = 36};
	const struct ds_array one = {.rank = 0, .n_chunks = 1};
	struct zr_grid g, scalar;
	char key[ZR_KEY_MAX];
	uint64_t at;

	(void)state;
	zr_grid_chunks(&a, &g);
	zr_grid_chunks(&one, &scalar);
	g.keys.lead = scalar.keys.lead = true;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(zr_key_parse(&g, bad[i], strlen(bad[i]), &at), -EINVAL);
	assert_int_equal(zr_key_parse(&g, "c.2.11", 6, &at), 0);
	assert_int_equal(at, 35);
	assert_int_equal(zr_key_parse(&scalar, "c", 1, &at), 0);
	assert_int_equal(zr_key_parse(&scalar, "0", 1, &at), -EINVAL);
	zr_key_format(&g, 35, key);
	assert_string_equal(key, "c.2.11");
	zr_key_format(&scalar, 0, key);
	assert_string_equal(key, "c");
	assert_int_equal(zr_key_levels(&g), 0);

	g.keys.nested = scalar.keys.nested = true;
	zr_key_format(&g, 35, key);
	assert_string_equal(key, "c/2/11");
	assert_int_equal(zr_key_levels(&g), 2);
	assert_int_equal(zr_key_levels(&scalar), 0);
	assert_int_equal(zr_key_parts(&g, 0), 1);
	assert_int_equal(zr_key_parts(&g, 1), 3);
	assert_int_equal(zr_key_parts(&g, 2), 12);
	assert_int_equal(zr_key_part(&g, 0, "c", 1, &at), 0);
	assert_int_equal(zr_key_part(&g, 0, "0", 1, &at), -EINVAL);
	assert_int_equal(zr_key_part(&g, 1, "c", 1, &at), -EINVAL);
	assert_int_equal(zr_key_part(&g, 1, "3", 1, &at), -EINVAL);
}

static void test_longest(void **state)
{
	uint64_t grid[DS_RANK_MAX];
	struct ds_array a = {.rank = DS_RANK_MAX, .grid = grid, .n_chunks = 1};
	char key[ZR_KEY_MAX];
	uint64_t linear;

	(void)state;
	for (size_t d = 0; d < DS_RANK_MAX; d++)
		grid[d] = 1;
	format(&a, '.', 0, key);
	assert_int_equal(strlen(key), 2 * DS_RANK_MAX - 1);
	assert_int_equal(parse(&a, '.', key, &linear), 0);
	a = (struct ds_array){.rank = 1, .grid = grid, .n_chunks = UINT64_MAX};
	grid[0] = UINT64_MAX;
	format(&a, '.', UINT64_MAX - 1, key);
	assert_int_equal(parse(&a, '.', key, &linear), 0);
	assert_true(linear == UINT64_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_lead),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
