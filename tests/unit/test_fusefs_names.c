/* Names of counterparts, there and back. */
#include "fusefs/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_of_file(void **state)
{
	static const char *const rows[][2] = {
		{"/d/store.zarr", "store.nc"},
		{"/d/store.zarr/", "store.nc"},
		{"/d/store.zarr.zip", "store.nc"},
		{"/d/store.zip", "store.nc"},
		{"store.zr3", "store.nc"},
		{"store.zr2", "store.nc"},
		{"/d.zarr/store", "store.nc"},
		{"/a.nc", "a.nc"},
		{"/a.nc4", "a.nc"},
		{"/a.h5", "a.nc"},
		{"/a.hdf5", "a.nc"},
		{"/a.he5", "a.nc"},
		{"/a.b", "a.b.nc"},
		{"/.zarr", ".zarr.nc"},
		{"/a.zarr.zarr", "a.zarr.nc"},
		{"/..a", "..a.nc"},
		{"/", "source.nc"},
		{"//", "source.nc"},
		{"/d/.", "source.nc"},
		{"/d/..", "source.nc"},
		{"", "source.nc"},
	};
	char long_name[400] = "/", out[NAME_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		name_of_file(rows[i][0], out);
		assert_string_equal(out, rows[i][1]);
	}
	for (size_t i = 0; i < 150; i++)
		memcpy(long_name + 1 + 2 * i, "\xc3\xa4", 3);
	name_of_file(long_name, out);
	assert_int_equal(strlen(out), 252 + 3); /* no half of a character */
	assert_memory_equal(out + 250, "\xc3\xa4.nc", 5);
	long_name[1] = 'x';
	memmove(long_name + 2, long_name + 3, sizeof(long_name) - 3);
	name_of_file(long_name, out);
	assert_int_equal(strlen(out), 251 + 3);
}

static void test_counterpart(void **state)
{
	static const struct {
		const char *name, *other;
		bool is_dir;
		enum name_kind kind;
	} rows[] = {
		{"a.nc", "a.zarr", false, NAME_HDF5},
		{"a.b.h5", "a.b.zarr", false, NAME_HDF5},
		{"a.he5", "a.zarr", false, NAME_HDF5},
		{"a.NC", "", false, NAME_PLAIN},
		{"nc", "", false, NAME_PLAIN},
		{".nc", "", false, NAME_PLAIN},
		{"a.txt", "", false, NAME_PLAIN},
		{"a.zarr", "a.nc", false, NAME_ZARR},
		{"a.zarr", "a.nc", true, NAME_ZARR},
		{"a.zarr.zip", "a.nc", false, NAME_ZARR},
		{"a.zip", "a.nc", false, NAME_ZARR},
		{"a.zr3", "a.nc", true, NAME_ZARR},
		{"a", "a.nc", true, NAME_ZARR},
		{"a.nc", "a.nc.nc", true, NAME_ZARR},
		{".zarr", ".zarr.nc", true, NAME_ZARR},
	};
	char out[NAME_BYTES], full[NAME_BYTES];
	unsigned rank;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(name_counterpart(rows[i].name, rows[i].is_dir, out, &rank),
				 rows[i].kind);
		if (rows[i].kind != NAME_PLAIN)
			assert_string_equal(out, rows[i].other);
	}
	memset(full, 'x', sizeof(full));
	full[NAME_BYTES - 1] = '\0';
	assert_int_equal(name_counterpart(full, true, out, &rank), NAME_PLAIN);
	memcpy(full + NAME_BYTES - 4, ".h5", 4);
	assert_int_equal(name_counterpart(full, false, out, &rank), NAME_PLAIN);
	full[251] = '\0';
	assert_int_equal(name_counterpart(full, true, out, &rank), NAME_ZARR);
	assert_int_equal(strlen(out), 254);
}

/* collect - "rank:name" of every source of a name; directories with a slash. */
static const char *sources(const char *name)
{
	static char text[1024];
	char out[NAME_BYTES];
	bool dir_only;

	text[0] = '\0';
	for (unsigned rank = 0; rank < NAME_RANKS; rank++)
		if (name_source(name, rank, out, &dir_only) != NAME_PLAIN)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "%u:%s%s ", rank, out, dir_only ? "/" : "");
	return text;
}

static void test_sources(void **state)
{
	(void)state;
	assert_string_equal(sources("a.zarr"), "0:a.nc 1:a.nc4 2:a.h5 3:a.hdf5 4:a.he5 ");
	assert_string_equal(sources("a.nc"), "0:a.zarr 1:a.zr3 2:a.zr2 3:a.zarr.zip 4:a.zip 5:a/ ");
	/* the directory a.zarr has a.nc, and a.zarr.zip as well */
	assert_string_equal(sources("a.zarr.nc"), "0:a.zarr.zarr 1:a.zarr.zr3 "
						  "2:a.zarr.zr2 3:a.zarr.zarr.zip ");
	assert_string_equal(sources("a.nc.nc"), "0:a.nc.zarr 1:a.nc.zr3 2:a.nc.zr2 "
						"3:a.nc.zarr.zip 4:a.nc.zip 5:a.nc/ ");
	assert_string_equal(sources(".nc"), "");
	assert_string_equal(sources(".zarr"), "");
	assert_string_equal(sources("zarr"), "");
	assert_string_equal(sources("a"), "");
	assert_string_equal(sources("a.nc4"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_file),
		cmocka_unit_test(test_counterpart),
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
