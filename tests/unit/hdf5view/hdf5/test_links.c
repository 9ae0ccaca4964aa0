/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that name other files: external links, raw data outside of them, virtual datasets. Nothing
 * outside of external_root is opened, and every object that is not read has a reason. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define N 6 /* elements of everything */

static char top[] = "/tmp/nczarrfs-links-XXXXXX"; /* has in/, the root, and out.h5 beside it */
static char made[HDF5_FILES_MAX + 64][128];
static size_t n_made;

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static hid_t created(const char *name)
{
	hid_t f = H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

	assert_true(f >= 0 && n_made < ARRAY_LEN(made));
	(void)snprintf(made[n_made++], sizeof(made[0]), "%s", path_of(name));
	return f;
}

static void put_numbers(hid_t loc, const char *name, int first)
{
	const hsize_t n = N;
	int v[N];
	hid_t space = H5Screate_simple(1, &n, NULL), set;

	for (int i = 0; i < N; i++)
		v[i] = first + i;
	set = H5Dcreate2(loc, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT,
			 H5P_DEFAULT);
	assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	assert_true(H5Dclose(set) >= 0 && H5Sclose(space) >= 0);
}

/* put_virtual - a dataset that is dset of file, whole. */
static void put_virtual(hid_t loc, const char *name, const char *file, const char *dset)
{
	const hsize_t n = N;
	hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), set;

	assert_true(H5Pset_virtual(dcpl, space, file, dset, space) >= 0);
	set = H5Dcreate2(loc, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(set >= 0 && H5Dclose(set) >= 0);
	assert_true(H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
}

/* put_blocks - one that grows by a block for each file that is there. */
static void put_blocks(hid_t loc, const char *name, const char *files, const char *dset)
{
	const hsize_t n = N, zero = 0, ever = H5S_UNLIMITED, dims = 2 * N;
	hid_t space = H5Screate_simple(1, &dims, &ever), from = H5Screate_simple(1, &n, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), set;

	assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &zero, &n, &ever, &n) >= 0);
	assert_true(H5Pset_virtual(dcpl, space, files, dset, from) >= 0);
	set = H5Dcreate2(loc, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(set >= 0 && H5Dclose(set) >= 0);
	assert_true(H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0 && H5Sclose(from) >= 0);
}

static void put_raw(hid_t loc, const char *name, const char *file)
{
	const hsize_t n = N;
	hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), set;

	assert_true(H5Pset_external(dcpl, file, 0, N * 4) >= 0);
	set = H5Dcreate2(loc, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(set >= 0 && H5Dclose(set) >= 0);
	assert_true(H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
}

static void put_link(hid_t loc, const char *name, const char *file)
{
	assert_true(H5Lcreate_external(file, "/v", loc, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* put_plain - a file with bytes. */
static void put_plain(const char *name)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	for (int i = 0; i < N; i++)
		assert_int_equal(fwrite((int[]){i}, 4, 1, f), 1);
	assert_int_equal(fclose(f), 0);
	(void)snprintf(made[n_made++], sizeof(made[0]), "%s", path_of(name));
}

static int set_up(void **state)
{
	static const char *const deep[] = {"in/d1.h5", "in/d2.h5", "in/d3.h5", "in/d4.h5",
					   "in/d5.h5"};
	hid_t f;

	(void)state;
	assert_non_null(mkdtemp(top));
	assert_int_equal(mkdir(path_of("in"), 0700), 0);
	assert_int_equal(mkdir(path_of("in/dir"), 0700), 0);
	for (int i = 0; i < 2; i++) {
		f = created(i ? "in/b1.h5" : "in/b0.h5");
		put_numbers(f, "v", 10 * i);
		put_raw(f, "raw", "raw.bin");
		assert_true(H5Gclose(H5Gcreate2(f, "g", H5P_DEFAULT, H5P_DEFAULT,
						H5P_DEFAULT)) >= 0);
		assert_true(H5Fclose(f) >= 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(deep); i++) {
		f = created(deep[i]);
		put_virtual(f, "v", i ? deep[i - 1] + 3 : "b0.h5", "/v");
		assert_true(H5Fclose(f) >= 0);
	}
	f = created("out.h5");
	put_numbers(f, "v", 5);
	assert_true(H5Fclose(f) >= 0);
	put_plain("in/raw.bin");
	put_plain("in/text.h5");
	put_plain("out.bin");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_made; i++)
		assert_int_equal(unlink(made[i]), 0);
	assert_int_equal(rmdir(path_of("in/dir")), 0);
	assert_int_equal(rmdir(path_of("in")), 0);
	return rmdir(top);
}

static struct source *opened(const char *name, const char *root)
{
	const struct source_ops *const formats[] = {&hdf5_source_ops};
	char path[128], canonical[128];
	struct source_options opts = {.cut_bytes = 1 << 12,
				      .max_chunk_bytes = 1 << 20,
				      .max_index_bytes = 1 << 20,
				      .max_meta_bytes = 1 << 20};
	struct err e = ERR_INIT;
	struct source *s;

	(void)snprintf(path, sizeof(path), "%s", path_of(name));
	if (root) {
		(void)snprintf(canonical, sizeof(canonical), "%s",
			       strcmp(root, "/") ? path_of(root) : root);
		opts.external_root = canonical;
	}
	if (source_open(formats, 1, path, &opts, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static uint32_t array_of(const struct source *s, const char *name)
{
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		if (strcmp(s->ds.arrays[i].name, name) == 0)
			return i;
	fail_msg("no array '%s'", name);
	return 0;
}

/* reads - `first` and what follows. */
static void reads(struct source *s, const char *name, uint64_t chunk, int first)
{
	uint32_t a = array_of(s, name);
	struct err e = ERR_INIT;
	size_t n = (size_t)s->ds.arrays[a].chunk_bytes;
	int32_t *v = alloc_array(n, 1);

	if (s->ds.arrays[a].unreadable)
		fail_msg("%s: %s", name, s->ds.arrays[a].unreadable);
	if (source_read_chunk(s, a, chunk, (uint8_t *)v, n, &e) < 0)
		fail_msg("%s: %s", name, e.msg);
	for (int i = 0; i < N; i++)
		assert_int_equal(v[i], first + i);
	free(v);
}

static void unreadable(const struct source *s, const char *name, const char *why)
{
	const char *text = s->ds.arrays[array_of(s, name)].unreadable;

	if (!text || !strstr(text, why))
		fail_msg("%s: '%s' instead of '%s'", name, text ? text : "(none)", why);
}

/* noted - a link that is left out. */
static void noted(const struct source *s, const char *name, const char *why)
{
	for (uint32_t i = 0; i < s->ds.n_notes; i++)
		if (strstr(s->ds.notes[i], name) && strstr(s->ds.notes[i], why))
			return;
	for (uint32_t i = 0; i < s->ds.n_notes; i++)
		print_error("%s\n", s->ds.notes[i]);
	fail_msg("%s: no note says '%s'", name, why);
}

static void test_links(void **state)
{
	hid_t f = created("in/links.h5");
	char absolute[128];
	struct source *s;

	(void)state;
	put_link(f, "good", "b0.h5");
	put_link(f, "again", "./b0.h5");
	put_link(f, "itself", "links.h5");
	put_link(f, "missing", "none.h5");
	put_link(f, "outside", "../out.h5");
	put_link(f, "folder", "dir");
	put_link(f, "text", "text.h5");
	put_link(f, "moved", "/nowhere/b1.h5"); /* beside the file, as libhdf5 has it */
	put_link(f, "nothing", "/nowhere/");
	(void)snprintf(absolute, sizeof(absolute), "%s", path_of("out.h5"));
	put_link(f, "absolute", absolute);
	put_numbers(f, "v", 3);
	assert_true(H5Fclose(f) >= 0);
	s = opened("in/links.h5", "in");
	reads(s, "good", 0, 0);
	reads(s, "again", 0, 0);
	reads(s, "itself", 0, 3);
	reads(s, "moved", 0, 10);
	noted(s, "missing", "it refers to the file 'none.h5': no such file");
	noted(s, "outside",
	      "it refers to the file '../out.h5', which is not below '");
	noted(s, "folder", "it refers to 'dir', which is not a regular file");
	noted(s, "text", "");
	noted(s, "nothing", "it refers to the file '/nowhere/'");
	noted(s, "absolute", "which is not below '");
	source_close(s);
	s = opened("in/links.h5", "/");
	reads(s, "outside", 0, 5);
	reads(s, "absolute", 0, 5);
	source_close(s);
	s = opened("in/links.h5", NULL);
	noted(s, "good",
	      "and other files are not read: -o external_root=DIR allows files below DIR");
	source_close(s);
}

/* So many that a process may not have them all open: the rest is left out, and said. */
static void test_too_many(void **state)
{
	hid_t f = created("in/many.h5");
	char name[32];
	struct source *s;

	(void)state;
	for (int i = 0; i <= HDF5_FILES_MAX; i++) {
		hid_t other;

		(void)snprintf(name, sizeof(name), "in/m%03d.h5", i);
		other = created(name);
		put_numbers(other, "v", i);
		assert_true(H5Fclose(other) >= 0);
		put_link(f, name + 3, name + 3);
	}
	assert_true(H5Fclose(f) >= 0);
	s = opened("in/many.h5", "in");
	reads(s, "m003.h5", 0, 3);
	noted(s, "m192.h5", "it refers to more than 192 other files");
	source_close(s);
}

static void test_raw_data(void **state)
{
	hid_t f = created("in/raw.h5");
	char absolute[128];
	struct source *s;

	(void)state;
	put_raw(f, "good", "raw.bin");
	put_raw(f, "missing", "none.bin");
	put_raw(f, "outside", "../out.bin");
	put_raw(f, "moved", "/nowhere/raw.bin"); /* which libhdf5 would open there */
	(void)snprintf(absolute, sizeof(absolute), "%s", path_of("in/raw.bin"));
	put_raw(f, "absolute", absolute);
	assert_true(H5Fclose(f) >= 0);
	s = opened("in/raw.h5", "in");
	reads(s, "good", 0, 0);
	reads(s, "absolute", 0, 0);
	unreadable(s, "missing", "it refers to the file 'none.bin'");
	unreadable(s, "outside", "which is not below '");
	unreadable(s, "moved", "which is not below the external_root");
	source_close(s);
	assert_int_equal(setenv("HDF5_EXTFILE_PREFIX", "/tmp", 1), 0);
	s = opened("in/raw.h5", "in");
	unreadable(s, "good", "external raw data is not read while HDF5_EXTFILE_PREFIX is set");
	source_close(s);
	assert_int_equal(unsetenv("HDF5_EXTFILE_PREFIX"), 0);
}

static void test_virtual(void **state)
{
	hid_t f = created("in/virtual.h5");
	struct source *s;

	(void)state;
	put_numbers(f, "own", 7);
	put_virtual(f, "good", "b0.h5", "/v");
	put_virtual(f, "itself", ".", "/own");
	put_virtual(f, "missing", "none.h5", "/v");
	put_virtual(f, "outside", "../out.h5", "/v");
	put_virtual(f, "nothing", "b0.h5", "/none");
	put_virtual(f, "group", "b0.h5", "/g");
	put_virtual(f, "raw", "b0.h5", "/raw");
	put_virtual(f, "text", "text.h5", "/v");
	put_virtual(f, "nested", "d2.h5", "/v");
	put_virtual(f, "deep", "d5.h5", "/v");
	assert_true(H5Fclose(f) >= 0);
	s = opened("in/virtual.h5", "in");
	reads(s, "good", 0, 0);
	reads(s, "itself", 0, 7);
	reads(s, "nested", 0, 0);
	unreadable(s, "missing", "it refers to the file 'none.h5'");
	unreadable(s, "outside", "which is not below '");
	unreadable(s, "nothing", "its source dataset '/none' cannot be opened");
	unreadable(s, "group", "its source dataset '/g' cannot be opened");
	unreadable(s, "raw", "external raw data behind a virtual dataset is not supported");
	unreadable(s, "text", "its source file cannot be opened");
	unreadable(s, "deep", "virtual datasets are nested too deeply");
	source_close(s);
	assert_int_equal(setenv("HDF5_VDS_PREFIX", "/tmp", 1), 0);
	s = opened("in/virtual.h5", "in");
	unreadable(s, "good", "virtual datasets are not read while HDF5_VDS_PREFIX is set");
	reads(s, "itself", 0, 7);
	source_close(s);
	assert_int_equal(unsetenv("HDF5_VDS_PREFIX"), 0);
}

/* Numbers of blocks in names. */
static void test_blocks(void **state)
{
	hid_t f = created("in/blocks.h5");
	struct source *s;

	(void)state;
	put_blocks(f, "good", "b%b.h5", "/v");
	put_blocks(f, "outside", "../out%b.h5", "/v");
	put_blocks(f, "pattern", "b0.h5", "/v%b");
	assert_true(H5Fclose(f) >= 0);
	f = created("out0.h5");
	put_numbers(f, "v", 1);
	assert_true(H5Fclose(f) >= 0);
	s = opened("in/blocks.h5", "in");
	reads(s, "good", 0, 0);
	unreadable(s, "outside", "which is not below '");
	unreadable(s, "pattern", "patterns in names of source datasets, such as '/v%b'");
	source_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),    cmocka_unit_test(test_raw_data),
		cmocka_unit_test(test_virtual),  cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_too_many),
	};

	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
