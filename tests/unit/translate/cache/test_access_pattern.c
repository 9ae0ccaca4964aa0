/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of a remote source: in order, in steps, many at a time, and at random. */
#include "translate/cache/access_pattern.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct access_pattern *st;

static int begin(void **state)
{
	(void)state;
	st = access_pattern_new(3);
	return st ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	access_pattern_free(st);
	access_pattern_free(NULL);
	return 0;
}

/* says - what a touch gives. */
static void says(uint32_t array, uint64_t k, enum prefetch_touch what, bool self, uint32_t n,
		 uint64_t step)
{
	struct access_pattern_say s = access_pattern_note(st, array, k, what);

	assert_int_equal(s.self, self);
	assert_int_equal(s.n, n);
	if (n)
		assert_int_equal(s.step, step);
}

static void test_order(void **state)
{
	(void)state;
	says(0, 10, PREFETCH_STAT, false, 0, 0); /* no chunk was read yet */
	says(0, 10, PREFETCH_READ, true, 0, 0);
	says(0, 10, PREFETCH_READ, false, 0, 0); /* the next piece */
	says(0, 11, PREFETCH_STAT, true, 4, 1);
	says(0, 11, PREFETCH_READ, false, 0, 0);
	says(0, 12, PREFETCH_READ, true, 8, 1);
	says(0, 11, PREFETCH_READ, true, 0, 0);  /* a late piece */
	says(0, 14, PREFETCH_READ, true, 16, 1); /* 13 was another thread's */
	says(0, 15, PREFETCH_READ, true, 32, 1);
	says(0, 16, PREFETCH_READ, true, ACCESS_PATTERN_PREFETCH, 1);
	says(0, 17, PREFETCH_READ, true, ACCESS_PATTERN_PREFETCH, 1);
	says(0, 40, PREFETCH_READ, true, 0, 0);
	says(0, 18, PREFETCH_READ, true, ACCESS_PATTERN_PREFETCH, 1); /* it goes on */
}

static void test_steps(void **state)
{
	(void)state;
	says(0, 3, PREFETCH_READ, true, 0, 0);
	says(0, 103, PREFETCH_READ, true, 0, 0);
	says(0, 203, PREFETCH_READ, true, 8, 100);
	says(0, 303, PREFETCH_READ, true, 16, 100);
	says(0, 350, PREFETCH_READ, true, 0, 0);
	says(0, 403, PREFETCH_READ, true, 32, 100);
}

static void test_jumps(void **state)
{
	uint64_t k = 77;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		k = k * 6364136223846793005u + 1442695040888963407u;
		says(1, k >> 20, PREFETCH_READ, true, 0, 0);
	}
	/* backwards is no order */
	for (k = 500; k > 400; k -= 10)
		says(2, k, PREFETCH_READ, true, 0, 0);
}

static void test_many(void **state)
{
	(void)state;
	/* 30 readers of one array, each in order, in turns; and another array */
	for (uint64_t k = 0; k < 20; k++)
		for (uint64_t r = 0; r < 30; r++) {
			uint32_t n = k == 0  ? 0
				     : k > 4 ? ACCESS_PATTERN_PREFETCH
					     : (uint32_t)4 << (k - 1);

			says(0, r * r * 1000 + k, PREFETCH_READ, true, n, 1);
			says(1, k, PREFETCH_READ, r == 0, r == 0 ? n : 0, 1);
		}
}

static void test_lists(void **state)
{
	(void)state;
	says(0, 0, PREFETCH_READ, true, 0, 0);
	says(0, 1, PREFETCH_STAT, true, 4, 1);
	says(0, 2, PREFETCH_STAT, true, 8, 1);
	for (uint64_t k = 3; k < 8; k++)
		(void)access_pattern_note(st, 0, k, PREFETCH_STAT);
	for (uint64_t k = 8; k < 100; k++) /* a program lists the directory */
		says(0, k, PREFETCH_STAT, false, 0, 0);
	says(0, 8, PREFETCH_READ, true, ACCESS_PATTERN_PREFETCH, 1);
}

static void test_ends(void **state)
{
	(void)state;
	says(0, UINT64_MAX - 1, PREFETCH_READ, true, 0, 0);
	says(0, UINT64_MAX, PREFETCH_READ, true, 4, 1);
	says(0, 0, PREFETCH_READ, true, 0, 0);
	says(0, UINT64_MAX / 2, PREFETCH_READ, true, 0, 0);
	says(0, UINT64_MAX / 2 * 2, PREFETCH_READ, true, 0, 0); /* a late piece of the first */
}

/* a chunk that readers are beyond is not worth loading, unless another is on the way to it */
static void test_passed(void **state)
{
	(void)state;
	assert_false(access_pattern_passed(st, 0, 5));
	says(0, 2009, PREFETCH_READ, true, 0, 0);
	assert_true(access_pattern_passed(st, 0, 2008) && access_pattern_passed(st, 0, 0));
	assert_false(access_pattern_passed(st, 0, 2009) || access_pattern_passed(st, 0, 2010));
	assert_false(access_pattern_passed(st, 1, 5));
	says(0, 1000, PREFETCH_READ, true, 0, 0);
	assert_false(access_pattern_passed(st, 0, 1001));
	assert_true(access_pattern_passed(st, 0, 1001 + ACCESS_PATTERN_PREFETCH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, begin, end),
		cmocka_unit_test_setup_teardown(test_steps, begin, end),
		cmocka_unit_test_setup_teardown(test_jumps, begin, end),
		cmocka_unit_test_setup_teardown(test_many, begin, end),
		cmocka_unit_test_setup_teardown(test_lists, begin, end),
		cmocka_unit_test_setup_teardown(test_ends, begin, end),
		cmocka_unit_test_setup_teardown(test_passed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
