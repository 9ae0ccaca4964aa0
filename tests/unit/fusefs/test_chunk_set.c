/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorted keys of groups and arrays: lookup of a key, of keys below it, and of keys above it. */
#include "fusefs/write/chunk_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const keys[] = {"g/v", "", "g-1", "g", "g/v/deep", "g0", "h\xc3\xa9/x", "gg"};

static void fill(struct commit_paths *p)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		assert_int_equal(commit_paths_add(p, keys[i], (uint32_t)i), 0);
	commit_paths_sort(p);
}

static void test_find(void **state)
{
	struct commit_paths p = {0};

	(void)state;
	assert_null(commit_paths_find(&p, "g", 1));
	fill(&p);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		assert_int_equal(commit_paths_find(&p, keys[i], strlen(keys[i]))->array, i);
	assert_int_equal(commit_paths_find(&p, "g/v/0.0", 3)->array, 0);
	assert_null(commit_paths_find(&p, "g/", 2));
	assert_null(commit_paths_find(&p, "h", 1));
	assert_null(commit_paths_find(&p, "z", 1));
	commit_paths_release(&p);
}

static void test_above(void **state)
{
	struct commit_paths p = {0};
	size_t at = 0;

	(void)state;
	fill(&p);
	assert_int_equal(commit_paths_above(&p, "g/v/c/0", &at)->array, 3);
	assert_int_equal(commit_paths_above(&p, "g/v/c/0", &at)->array, 0);
	assert_null(commit_paths_above(&p, "g/v/c/0", &at));
	at = 0;
	assert_null(commit_paths_above(&p, "g", &at));
	assert_null(commit_paths_above(&p, "ggg/x", &at));
	commit_paths_release(&p);
}

static void below(const struct commit_paths *p, const char *key, size_t n, const char *first)
{
	size_t got, from = commit_paths_below(p, key, &got);

	assert_int_equal(got, n);
	if (n)
		assert_string_equal(p->v[from].key, first);
}

static void test_below(void **state)
{
	struct commit_paths p = {0};

	(void)state;
	below(&p, "", 0, NULL);
	fill(&p);
	below(&p, "", 7, "g");
	below(&p, "g", 2, "g/v");
	below(&p, "g/v", 1, "g/v/deep");
	below(&p, "g/v/deep", 0, NULL);
	below(&p, "h\xc3\xa9", 1, "h\xc3\xa9/x");
	below(&p, "h", 0, NULL);
	below(&p, "zz", 0, NULL);
	commit_paths_release(&p);
}

/* Compares each pair with a linear search. */
static void test_all(void **state)
{
	struct commit_paths p = {0};
	char key[32], other[32];
	size_t n;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), i % 3 ? "a%u/%u" : "a%u", i % 7, i);
		assert_int_equal(commit_paths_add(&p, key, i), 0);
	}
	commit_paths_sort(&p);
	for (uint32_t i = 0; i < 9; i++) {
		size_t want = 0;

		(void)snprintf(key, sizeof(key), "a%u", i);
		(void)snprintf(other, sizeof(other), "a%u/", i);
		for (size_t k = 0; k < p.n; k++)
			want += strncmp(p.v[k].key, other, strlen(other)) == 0;
		(void)commit_paths_below(&p, key, &n);
		assert_int_equal(n, want);
	}
	commit_paths_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_above),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
