/* SPDX-License-Identifier: BSD-3-Clause */
/* test_mountinfo.c - tests whether a mount's source differs from a named mount's. */
#include "fusefs/daemon/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static bool differs(const char *shown, const char *source)
{
	const struct mounted m = {.source = (char *)(uintptr_t)shown};

	return mounted_differs(&m, source);
}

static void test_addresses(void **state)
{
	(void)state;
	assert_false(differs("s3://b/x.zarr", "s3://b/x.zarr/"));
	assert_true(differs("s3://b/x.zarr", "s3://b/y.zarr"));
	assert_true(differs("s3://b/x.zarr", "/data/x.zarr"));
	/* a list may name the files of a pattern */
	assert_false(differs("https://h/1.nc,https://h/2.nc", "https://h/[12].nc"));
}

static void test_paths(void **state)
{
	char dir[] = "/tmp/mounted-XXXXXX", a[64], b[64], link[64], other[96];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(a, sizeof(a), "%s/a", dir);
	(void)snprintf(b, sizeof(b), "%s/b", dir);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	(void)snprintf(other, sizeof(other), "%s/../%s", dir, a + 5);
	assert_int_equal(close(open(a, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(close(open(b, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(symlink("a", link), 0);
	assert_true(differs(a, b));
	assert_false(differs(a, link));
	assert_false(differs(other, a));
	assert_int_equal(unlink(b), 0); /* a file that does not exist cannot be compared */
	assert_false(differs(a, b));
	assert_false(differs("/d/1.nc,/d/2.nc", "/d/*.nc"));
	assert_int_equal(unlink(a) + unlink(link) + rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
