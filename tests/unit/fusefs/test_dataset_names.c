/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of converted views, in both directions. */
#include "fusefs/app/dataset_names.h"

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
		{"/A.HDF5", "A.nc"},
		{"/A.ZARR", "A.nc"},
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
	assert_int_equal(strlen(out), 252 + 3); /* not in the middle of a character */
	assert_memory_equal(out + 250, "\xc3\xa4.nc", 5);
	long_name[1] = 'x';
	memmove(long_name + 2, long_name + 3, sizeof(long_name) - 3);
	name_of_file(long_name, out);
	assert_int_equal(strlen(out), 251 + 3);
}

static void test_counterpart(void **state)
{
	/* name, of a directory, and its converted views by kind */
	static const struct {
		const char *name;
		bool is_dir;
		const char *others[NAME_NC4 + 1];
	} rows[] = {
		{"a.nc", false, {[NAME_TREE] = "a.zarr", [NAME_NC4] = "a.nc4"}},
		{"a.hdf", false, {[NAME_TREE] = "a.zarr", [NAME_NC4] = "a.nc4"}},
		{"a.cdf", false, {[NAME_TREE] = "a.zarr", [NAME_NC4] = "a.nc4"}},
		{"a.b.h5", false, {[NAME_TREE] = "a.b.zarr"}},
		{"a.he5", false, {[NAME_TREE] = "a.zarr"}},
		{"a.nc4", false, {[NAME_TREE] = "a.zarr"}},
		{"a.NC", false, {[NAME_TREE] = "a.zarr", [NAME_NC4] = "a.nc4"}},
		{"a.HDF", false, {[NAME_TREE] = "a.zarr", [NAME_NC4] = "a.nc4"}},
		{"a.Nc", false, {0}}, /* small letters or capitals */
		{"a.ZARR", true, {[NAME_FILE] = "a.nc"}},
		{"a.ZIP", false, {[NAME_FILE] = "a.nc"}},
		{"a.Zarr", true, {[NAME_FILE] = "a.Zarr.nc"}},
		{"nc", false, {0}},
		{".nc", false, {0}},
		{"a.txt", false, {0}},
		{"a.zarr", false, {[NAME_FILE] = "a.nc"}},
		{"a.zarr", true, {[NAME_FILE] = "a.nc"}},
		{"a.zarr.zip", false, {[NAME_FILE] = "a.nc"}},
		{"a.zip", false, {[NAME_FILE] = "a.nc"}},
		{"a.zr3", true, {[NAME_FILE] = "a.nc"}},
		{"a", true, {[NAME_FILE] = "a.nc"}},
		{"a.nc", true, {[NAME_FILE] = "a.nc.nc"}},
		{".zarr", true, {[NAME_FILE] = ".zarr.nc"}},
	};
	char out[NAME_BYTES], full[NAME_BYTES];
	unsigned rank;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum name_kind kind = NAME_TREE; kind <= NAME_NC4; kind++) {
			const char *want = rows[i].others[kind];

			assert_int_equal(name_counterpart(rows[i].name, rows[i].is_dir, kind,
							  out, &rank),
					 want != NULL);
			if (want)
				assert_string_equal(out, want);
		}
	memset(full, 'x', sizeof(full));
	full[NAME_BYTES - 1] = '\0';
	assert_false(name_counterpart(full, true, NAME_FILE, out, &rank));
	memcpy(full + NAME_BYTES - 4, ".h5", 4);
	assert_false(name_counterpart(full, false, NAME_TREE, out, &rank));
	full[251] = '\0';
	assert_true(name_counterpart(full, true, NAME_FILE, out, &rank));
	assert_int_equal(strlen(out), 254);
}

/* sources - "rank:name" of every source of a name; directories with a slash. */
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
	assert_string_equal(sources("a.zarr"),
			    "0:a.nc 1:a.nc4 2:a.h5 3:a.hdf5 4:a.he5 5:a.nc3 6:a.cdf "
			    "7:a.hdf 8:a.hdf4 9:a.h4 10:a.NC 11:a.NC4 12:a.H5 13:a.HDF5 "
			    "14:a.HE5 15:a.NC3 16:a.CDF 17:a.HDF 18:a.HDF4 19:a.H4 ");
	assert_string_equal(sources("a.nc"),
			    "0:a.zarr 1:a.zr3 2:a.zr2 3:a.zarr.zip 4:a.zip 5:a/ "
			    "10:a.ZARR 11:a.ZR3 12:a.ZR2 13:a.ZARR.ZIP 14:a.ZIP ");
	/* the directory a.zarr has a.nc, and a.zarr.zip as well */
	assert_string_equal(sources("a.zarr.nc"), "0:a.zarr.zarr 1:a.zarr.zr3 "
						  "2:a.zarr.zr2 3:a.zarr.zarr.zip "
						  "10:a.zarr.ZARR 11:a.zarr.ZR3 "
						  "12:a.zarr.ZR2 13:a.zarr.ZARR.ZIP "
						  "14:a.zarr.ZIP ");
	assert_string_equal(sources("a.nc.nc"), "0:a.nc.zarr 1:a.nc.zr3 2:a.nc.zr2 "
						"3:a.nc.zarr.zip 4:a.nc.zip 5:a.nc/ "
						"10:a.nc.ZARR 11:a.nc.ZR3 12:a.nc.ZR2 "
						"13:a.nc.ZARR.ZIP 14:a.nc.ZIP ");
	assert_string_equal(sources(".nc"), "");
	assert_string_equal(sources(".zarr"), "");
	assert_string_equal(sources("zarr"), "");
	assert_string_equal(sources("a"), "");
	assert_string_equal(sources("a.nc4"),
			    "0:a.nc 5:a.nc3 6:a.cdf 7:a.hdf 8:a.hdf4 9:a.h4 10:a.NC 15:a.NC3 "
			    "16:a.CDF 17:a.HDF 18:a.HDF4 19:a.H4 ");
	assert_string_equal(sources("a.h5"), "");
}

/* Names of new datasets: the ones whose views have the names that were written. */
static void test_new(void **state)
{
	char out[NAME_BYTES];

	(void)state;
	assert_true(name_of_new("a.nc", false, out));
	assert_string_equal(out, "a.zarr");
	assert_true(name_of_new("a.zarr", true, out));
	assert_string_equal(out, "a.nc");
	assert_false(name_of_new("a.NC", false, out));
	assert_false(name_of_new("a.nc4", false, out));
	assert_false(name_of_new("a.nc", true, out));
	assert_false(name_of_new("a.zarr", false, out));
	assert_false(name_of_new(".nc", false, out));
}

/* Names with a rule for chunks, or for a classic file. */
static void test_shaped(void **state)
{
	static const struct {
		const char *name;
		enum name_kind kind;
		const char *plain, *rule;
	} rows[] = {
		{"a@time=all.zarr", NAME_SHAPED_TREE, "a.zarr", "time=all"},
		{"a@u&v,time=2,x=all.nc", NAME_SHAPED_FILE, "a.nc", "u&v,time=2,x=all"},
		{"a@b@t=1.zarr", NAME_SHAPED_TREE, "a@b.zarr", "t=1"},
		{"a@classic.nc", NAME_SHAPED_FILE, "a.nc", "classic"},
		{"a@classic.zarr", NAME_PLAIN, "", ""},
		{"a@time.zarr", NAME_PLAIN, "", ""},
		{"a@t=0.nc", NAME_PLAIN, "", ""},
		{"a@t=1,.nc", NAME_PLAIN, "", ""},
		{"a@t=1.5.nc", NAME_PLAIN, "", ""},
		{"a@.nc", NAME_PLAIN, "", ""},
		{"@t=1.nc", NAME_PLAIN, "", ""},
		{"a@t=1.nc4", NAME_PLAIN, "", ""},
		{"a.nc@t=1", NAME_PLAIN, "", ""},
		{"a@t=1", NAME_PLAIN, "", ""},
	};
	char plain[NAME_BYTES], rule[NAME_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(name_shaped(rows[i].name, plain, rule), rows[i].kind);
		if (rows[i].kind == NAME_PLAIN)
			continue;
		assert_string_equal(plain, rows[i].plain);
		assert_string_equal(rule, rows[i].rule);
	}
}

static void test_says(void **state)
{
	(void)state;
	assert_true(name_says_dataset("a.nc", false));
	assert_true(name_says_dataset("a.hdf", false));
	assert_true(name_says_dataset("a.zarr.zip", false));
	assert_true(name_says_dataset("a.zarr", true));
	assert_true(name_says_dataset("a.zr3", true));
	assert_false(name_says_dataset("a.nc", true));
	assert_false(name_says_dataset("a.zip", false));
	assert_false(name_says_dataset("a.zarr.zip", true));
	assert_false(name_says_dataset("a.txt", false));
	assert_false(name_says_dataset(".nc", false));
	assert_false(name_says_dataset("a", true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_file),
		cmocka_unit_test(test_counterpart),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_shaped),
		cmocka_unit_test(test_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
