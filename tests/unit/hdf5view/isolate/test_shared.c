/* SPDX-License-Identifier: BSD-3-Clause */
/* A process of libhdf5 that builds the models of several files (source_options.processes). */
#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/observe/metrics.h"

#define FILES 5

static char top[] = "/tmp/nczarrfs-XXXXXX";

static struct worker_pool pool;

/* path_of - "DIR/I.nc" below the directory of this test. */
static const char *path_of(const char *dir, int i)
{
	static char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s/%d.nc", top, dir, i);
	return path;
}

/* make_file - a file with one variable of i + 1 elements. */
static void make_file(const char *dir, int i)
{
	const hsize_t len = (hsize_t)i + 1;
	hid_t file = H5Fcreate(path_of(dir, i), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), d;
	hid_t space = H5Screate_simple(1, &len, NULL);

	assert_true(file > 0 && space > 0);
	d = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(d > 0);
	h5_id_close(&d);
	h5_id_close(&space);
	assert_true(H5Fclose(file) >= 0);
}

/* damage_file - overwrite the version of the root group's object header, which follows the
 * superblock (version 0, II.A). */
static void damage_file(const char *dir, int i)
{
	FILE *f = fopen(path_of(dir, i), "r+");

	assert_non_null(f);
	assert_int_equal(fseek(f, 96, SEEK_SET), 0);
	assert_int_equal(fputc(99, f), 99);
	assert_int_equal(fclose(f), 0);
}

static void need_addresses(void)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* the sanitizer's own memory lies at the addresses that the kernel offers */
#endif
}

static int open_file(const char *dir, int i, bool beside, struct source **ret, struct err *e)
{
	const struct source_ops *formats[] = {&hdf5_source_ops};
	const struct source_options opts = {
		.cut_bytes = 1 << 12,
		.max_chunk_bytes = 1 << 20,
		.max_index_bytes = 1 << 20,
		.max_meta_bytes = 1 << 20,
		.open_timeout_ms = 60000,
		.links_beside = beside,
		.processes = &pool,
	};

	return source_open(formats, 1, path_of(dir, i), &opts, ret, e);
}

/* expect_file - open a file, compare its shape, and return the number of processes started. */
static uint64_t expect_file(const char *dir, int i, bool beside)
{
	const uint64_t before = metrics_sum(M_WORKERS_STARTED);
	struct err e = ERR_INIT;
	struct source *s = NULL;

	if (open_file(dir, i, beside, &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(s->ds.n_arrays, 1);
	assert_int_equal(s->ds.arrays[0].shape[0], i + 1);
	source_close(s);
	return metrics_sum(M_WORKERS_STARTED) - before;
}

/* One process opens the files of a directory, and as many as it may. */
static void test_one_process(void **state)
{
	(void)state;
	need_addresses();
	assert_int_equal(expect_file("a", 0, true), 1);
	for (int i = 1; i < SHARED_FILES; i++)
		assert_int_equal(expect_file("a", i % FILES, true), 0);
	assert_int_equal(expect_file("a", 0, true), 1);
	assert_int_equal(expect_file("a", 1, true), 0);
}

/* A process may read one directory only, and without one the file alone. */
static void test_other_directory(void **state)
{
	(void)state;
	need_addresses();
	assert_int_equal(expect_file("a", 0, true), 1);
	assert_int_equal(expect_file("b", 0, true), 1);
	assert_int_equal(expect_file("a", 1, true), 0);
	assert_int_equal(expect_file("b", 1, true), 0);
	assert_int_equal(expect_file("b", 2, false), 1);
	assert_int_equal(expect_file("b", 3, true), 0);
}

/* A damaged file ends the process, and its error is that of a process of its own. */
static void test_damaged(void **state)
{
	struct err e = ERR_INIT, alone = ERR_INIT;
	struct source *s = NULL;
	uint64_t before;
	int rc;

	(void)state;
	need_addresses();
	assert_int_equal(expect_file("a", 0, true), 1);
	damage_file("a", 1);
	rc = open_file("a", 1, false, &s, &alone);
	assert_true(rc < 0);
	before = metrics_sum(M_WORKERS_STARTED);
	assert_int_equal(open_file("a", 1, true, &s, &e), rc);
	assert_string_equal(e.msg, alone.msg);
	assert_int_equal(metrics_sum(M_WORKERS_STARTED) - before, 1);
	assert_int_equal(expect_file("a", 2, true), 1);
	assert_int_equal(expect_file("a", 3, true), 0);
	make_file("a", 1);
}

/* A process that hangs costs little of the time that a file has. */
static void test_hung(void **state)
{
	(void)state;
	need_addresses();
	assert_int_equal(expect_file("a", 0, true), 1);
	assert_int_equal(kill(pool.v[0].child.pid, SIGSTOP), 0);
	assert_int_equal(expect_file("a", 1, true), 1);
	assert_int_equal(expect_file("a", 2, true), 1);
	assert_int_equal(expect_file("a", 3, true), 0);
}

/* A process that was killed is replaced, whether it was idle or not. */
static void test_killed(void **state)
{
	(void)state;
	need_addresses();
	assert_int_equal(expect_file("a", 0, true), 1);
	assert_int_equal(kill(pool.v[0].child.pid, SIGKILL), 0);
	/* it dies before the request or during it */
	assert_int_equal(expect_file("a", 1, true), 1);
	assert_in_range(expect_file("a", 2, true), 0, 1);
}

/* A file that was renamed after it was opened is read through its descriptor. */
static void test_renamed(void **state)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;
	char other[64];
	int32_t v = -1;

	(void)state;
	need_addresses();
	(void)snprintf(other, sizeof(other), "%s/a/other.nc", top);
	if (open_file("a", 0, true, &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(rename(path_of("a", 0), other), 0);
	if (source_read_chunk(s, 0, 0, (uint8_t *)&v, sizeof(v), &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(v, 0);
	source_close(s);
	assert_int_equal(rename(other, path_of("a", 0)), 0);
}

static int setup(void **state)
{
	(void)state;
	pool = (struct worker_pool)WORKER_POOL_INIT(2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	worker_pool_end(&pool);
	for (size_t i = 0; i < ARRAY_LEN(pool.v); i++)
		assert_int_equal(pool.v[i].child.pid, 0);
	return 0;
}

static int make_files(void **state)
{
	static const char *const dirs[] = {"a", "b"};
	struct err e = ERR_INIT;
	char dir[64];

	(void)state;
	if (hdf5_prepare(&e) < 0 || !mkdtemp(top))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(dir, sizeof(dir), "%s/%s", top, dirs[i]);
		if (mkdir(dir, 0700) < 0)
			return -1;
		for (int k = 0; k < FILES; k++)
			make_file(dirs[i], k);
	}
	return 0;
}

static int remove_files(void **state)
{
	static const char *const dirs[] = {"a", "b"};
	char dir[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		for (int k = 0; k < FILES; k++)
			(void)unlink(path_of(dirs[i], k));
		(void)snprintf(dir, sizeof(dir), "%s/%s", top, dirs[i]);
		(void)rmdir(dir);
	}
	return rmdir(top);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_one_process),
		CASE(test_other_directory),
		CASE(test_damaged),
		CASE(test_hung),
		CASE(test_killed),
		CASE(test_renamed),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
