/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy of a remote HDF4 file: whole or not at all, and nowhere when there is no room for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "hdf5view/hdf4/hdf4_int.h"
#include "tests/unit/blob_fake.h"

#define SIZE ((size_t)3 << 20 | 5) /* several pieces, the last one short */

static char path[] = "/tmp/h4_far.XXXXXX";

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 4096);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);
	uint8_t *all = malloc(SIZE);

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		all[i] = byte_at(i);
	assert_int_equal(write(fd, all, SIZE), SIZE);
	free(all);
	return close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void test_copy(void **state)
{
	struct blob_fake *f = fake_open(path);
	uint8_t *all = malloc(SIZE + 1);
	struct err e = ERR_INIT;
	int fd = -1;

	(void)state;
	assert_int_equal(h4_fetch(&f->base, 0, &fd, &e), 0);
	assert_int_equal(pread(fd, all, SIZE + 1, 0), SIZE);
	for (size_t i = 0; i < SIZE; i++)
		if (all[i] != byte_at(i))
			fail_msg("byte %zu", i);
	assert_int_equal(write(fd, all, 1), -1); /* the library's process may only read it */
	assert_true(f->wanted > 0);              /* it was asked for early */
	(void)close(fd);
	free(all);
	fake_free(f);
}

static void fails(struct blob_fake *f, uint64_t ms, int code, const char *words)
{
	struct err e = ERR_INIT;
	int fd = -1, rc = h4_fetch(&f->base, ms, &fd, &e);

	if (rc != code || !strstr(e.msg, words))
		fail_msg("%d '%s' instead of %d '%s'", rc, e.msg, code, words);
	assert_int_equal(fd, -1);
}

static void test_fails(void **state)
{
	struct blob_fake *f = fake_open(path);
	const uint64_t size = f->base.size;

	(void)state;
	f->fail_at = 2;
	f->fail_rc = -ESTALE;
	fails(f, 0, -ESTALE, "cannot copy it to '/tmp' (TMPDIR): ");
	f->fail_at = 0;
	f->base.size = H4_DOWNLOAD_MAX + 1;
	fails(f, 0, -EFBIG,
	      "its 2147483648 bytes exceed the 2147483647 bytes that an HDF4 file can have");
	f->base.size = size;
	assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
	fails(f, 0, -ENOENT, "a temporary file in '/nowhere'");
	/* procfs supports neither kind of unnamed file; users other than root get another error */
	assert_int_equal(setenv("TMPDIR", "/proc/self/task", 1), 0);
	fails(f, 0, geteuid() == 0 ? -ENOENT : -EACCES,
	      "a temporary file in '/proc/self/task'");
	assert_int_equal(unsetenv("TMPDIR"), 0);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_fails),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
