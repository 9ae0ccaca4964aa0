/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are kept open between two pieces: whose they are, and that none is lost. */
#include "nczarr/store/fd_cache_int.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int some_file(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void test_one(void **state)
{
	struct fd_cache k = {0};
	int64_t since = 0;
	int fd = some_file();

	(void)state;
	assert_int_equal(fd_cache_take(&k, "a/0", &since), -1);
	fd_cache_give(&k, "a/0", fd, 0);
	assert_int_equal(fd_cache_take(&k, "a/0", &since), fd);
	assert_true(since > 0 && is_open(fd));
	assert_int_equal(fd_cache_take(&k, "a/0", &since), -1); /* it is ours now */
	fd_cache_give(&k, "a/0", fd, since);
	fd_cache_release(&k);
	assert_false(is_open(fd));
}

static void test_old(void **state)
{
	struct fd_cache k = {0};
	int64_t since = 0;
	int fd = some_file();

	(void)state;
	fd_cache_give(&k, "a", fd, 1); /* opened when the machine started */
	assert_int_equal(fd_cache_take(&k, "a", &since), -1);
	assert_false(is_open(fd));
	fd_cache_release(&k);
}

/* more keys than slots: each place has one file, the others were closed */
static void test_many(void **state)
{
	struct fd_cache k = {0};
	bool seen[200] = {false}; /* numbers come again when a file was closed */
	unsigned open_files = 0, found = 0;
	int64_t since = 0;
	char key[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		int fd = some_file();

		(void)snprintf(key, sizeof(key), "v/%d", i);
		assert_in_range(fd, 0, 199);
		seen[fd] = true;
		fd_cache_give(&k, key, fd, 0);
	}
	for (int fd = 0; fd < 200; fd++)
		open_files += seen[fd] && is_open(fd);
	assert_true(open_files > 0 && open_files <= KEPT_FILES);
	for (int i = 0; i < 100; i++) {
		int fd;

		(void)snprintf(key, sizeof(key), "v/%d", i);
		fd = fd_cache_take(&k, key, &since);
		if (fd >= 0) {
			found++;
			assert_true(is_open(fd));
			assert_int_equal(close(fd), 0);
		}
	}
	assert_int_equal(found, open_files);
	fd_cache_release(&k);
}

#define THREADS 4

static struct fd_cache shared;

static void *take_and_give(void *arg)
{
	int64_t since = 0;

	(void)arg;
	for (int i = 0; i < 20000; i++) {
		int fd = fd_cache_take(&shared, i % 3 ? "a" : "b", &since);

		if (fd < 0) {
			fd = some_file();
			since = 0;
		}
		if (fd < 0 || !is_open(fd))
			return &shared;
		fd_cache_give(&shared, i % 3 ? "a" : "b", fd, since);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t t[THREADS];
	void *bad;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, take_and_give, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
	fd_cache_release(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
