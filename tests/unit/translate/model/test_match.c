/* SPDX-License-Identifier: BSD-3-Clause */
/* test_match.c - groups, arrays and dimensions of the same path in two datasets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/util.h"
#include "translate/model/dataset.h"

#include <cmocka.h>

static void same_paths(void **state)
{
	/* "/", "/a/b" before "/a" in the order of ordinals */
	static uint32_t in_root[] = {2}, in_a[] = {1};
	struct ds_group old_groups[] = {
		{.name = "", .groups = in_root, .n_groups = 1, .parent = DS_NONE},
		{.name = "b", .parent = 2},
		{.name = "a", .groups = in_a, .n_groups = 1, .parent = 0}};
	static uint32_t new_root[] = {1, 3}, new_a[] = {2};
	struct ds_group new_groups[] = {
		{.name = "", .groups = new_root, .n_groups = 2, .parent = DS_NONE},
		{.name = "a", .groups = new_a, .n_groups = 1, .parent = 0},
		{.name = "b", .parent = 1},
		{.name = "b", .parent = 0}};
	struct ds_array old_arrays[] = {{.name = "x", .group = 1}, {.name = "a", .group = 0}};
	struct ds_array new_arrays[] = {
		{.name = "x", .group = 2}, {.name = "x", .group = 3}, {.name = "a", .group = 0}};
	struct ds_dim old_dims[] = {{.name = "x", .group = 1}, {.name = "x", .group = 1}};
	struct ds_dim new_dims[] = {{.name = "x", .group = 2}, {.name = "a", .group = 0}};
	const struct dataset old = {.groups = old_groups,
				    .n_groups = ARRAY_LEN(old_groups),
				    .arrays = old_arrays,
				    .n_arrays = ARRAY_LEN(old_arrays),
				    .dims = old_dims,
				    .n_dims = ARRAY_LEN(old_dims)};
	const struct dataset new = {.groups = new_groups,
				    .n_groups = ARRAY_LEN(new_groups),
				    .arrays = new_arrays,
				    .n_arrays = ARRAY_LEN(new_arrays),
				    .dims = new_dims,
				    .n_dims = ARRAY_LEN(new_dims)};
	const uint32_t want_groups[] = {0, 2, 1, DS_NONE}, want_arrays[] = {0, DS_NONE, 1},
		       want_dims[] = {0, DS_NONE};
	uint32_t groups[4], arrays[3], dims[2], alone[2];

	(void)state;
	assert_int_equal(ds_match(&new, &old, groups, arrays, dims, NULL), 0);
	assert_memory_equal(groups, want_groups, sizeof(groups));
	assert_memory_equal(arrays, want_arrays, sizeof(arrays));
	assert_memory_equal(dims, want_dims, sizeof(dims));
	assert_int_equal(ds_match(&new, &old, NULL, NULL, alone, NULL), 0);
	assert_memory_equal(alone, want_dims, sizeof(alone));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
