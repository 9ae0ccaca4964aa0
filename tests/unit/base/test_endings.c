/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ending of a name says. */
#include "base/core/endings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_of(void **state)
{
	static const struct {
		const char *path;
		enum ending means;
	} rows[] = {
		{"a.nc", ENDING_NETCDF},
		{"a.CDF", ENDING_NETCDF},
		{"a.nc4", ENDING_NETCDF4},
		{"a.Nc3", ENDING_CLASSIC},
		{"/d/a.HDF5", ENDING_HDF5},
		{"a.h5", ENDING_HDF5},
		{"a.he5", ENDING_HDF5},
		{"a.h4", ENDING_HDF4},
		{"a.hdf", ENDING_HDF4},
		{"X.ZARR", ENDING_TREE},
		{"X.zarr//", ENDING_TREE},
		{"a.zr2", ENDING_TREE},
		{"a.zarr.Zip", ENDING_ZIP},
		{"a.zip", ENDING_ZIP},
		{"zarr.json", ENDING_JSON},
		{"a.parq", ENDING_PARQUET},
		{"a.parquet", ENDING_PARQUET},
		{".nc", ENDING_NONE}, /* an ending alone is no name */
		{"/d/.zarr/", ENDING_NONE},
		{"a.nc5", ENDING_NONE},
		{"nc", ENDING_NONE},
		{"", ENDING_NONE},
		{"/", ENDING_NONE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (ending_of(rows[i].path) != rows[i].means)
			fail_msg("%s: %d", rows[i].path, (int)ending_of(rows[i].path));
}

/* Each ending is found as itself: none hides another that ends alike. */
static void test_rows(void **state)
{
	char name[32];
	size_t stem = 0;

	(void)state;
	for (size_t i = 0; i < ENDING_ROWS; i++) {
		int n = snprintf(name, sizeof(name), "ab%s", ending_rows[i].text);

		assert_ptr_equal(ending_find(name, (size_t)n, &stem), &ending_rows[i]);
		assert_int_equal(stem, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
