/* SPDX-License-Identifier: BSD-3-Clause */
/* A transaction of more large objects than descriptors may be kept for. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nczarr/sink/sink_int.h"
#include "nczarr/store/store.h"

#define OBJECTS 40
#define BYTES ((size_t)256 << 10)
#define FILES 64 /* descriptors of this process */

static size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	assert_int_equal(closedir(d), 0);
	return n;
}

static int directory(const char *path)
{
	int fd;

	assert_int_equal(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void test_many(void **state)
{
	static uint8_t bytes[BYTES];
	char top[] = "/tmp/nczarrfs-XXXXXX", path[64];
	struct err e = ERR_INIT;
	struct rlimit files;
	struct store *store;
	struct zs_txn t;
	struct stat st;
	size_t before;
	int dir;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = FILES;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_non_null(mkdtemp(top));
	(void)snprintf(path, sizeof(path), "%s/state", top);
	dir = directory(path);
	(void)snprintf(path, sizeof(path), "%s/store", top);
	assert_int_equal(store_dir_open(directory(path), &store, &e), 0);
	if (zs_txn_open(&t, store, dir, &e) < 0)
		fail_msg("%s", e.msg);
	before = open_files();
	for (size_t i = 0; i < OBJECTS; i++) {
		(void)snprintf(path, sizeof(path), "%zu", i);
		memset(bytes, (int)i, sizeof(bytes));
		if (zs_txn_put(&t, ZS_PUT, path, bytes, sizeof(bytes), &e) < 0)
			fail_msg("%s: %s", path, e.msg);
		assert_in_range(open_files(), before, before + FILES / 8 + 4);
	}
	if (zs_txn_commit(&t, NULL, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	zs_txn_close(&t);
	store_close(store);
	for (size_t i = 0; i < OBJECTS; i++) {
		(void)snprintf(path, sizeof(path), "%s/store/%zu", top, i);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, BYTES);
		assert_int_equal(unlink(path), 0);
	}
	assert_in_range(open_files(), before - 4, before); /* the transaction had some, too */
	assert_int_equal(close(dir), 0);
	(void)snprintf(path, sizeof(path), "rm -r %s", top);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
