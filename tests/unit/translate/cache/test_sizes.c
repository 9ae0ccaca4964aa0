/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes that are remembered, and forgotten under the budget. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include "translate/cache/sizes.h"

#include <cmocka.h>

static void test_remembers(void **state)
{
	struct sizes *s = sizes_new(1 << 20);

	(void)state;
	assert_non_null(s);
	assert_int_equal(sizes_get(s, 0, 0), 0);
	for (uint64_t i = 0; i < 3000; i++) {
		sizes_put(s, 0, i, i + 1);
		sizes_put(s, 7, i + ((uint64_t)1 << 60), 2 * i + 1);
	}
	for (uint64_t i = 0; i < 3000; i++) {
		assert_int_equal(sizes_get(s, 0, i), i + 1);
		assert_int_equal(sizes_get(s, 7, i + ((uint64_t)1 << 60)), 2 * i + 1);
		assert_int_equal(sizes_get(s, 1, i), 0);
	}
	assert_int_equal(sizes_get(s, 0, 3000), 0);
	sizes_put(s, 0, 5, 77);
	assert_int_equal(sizes_get(s, 0, 5), 77);
	sizes_put(s, 0, 5, 0); /* says nothing */
	sizes_put(s, 0, 5, (uint64_t)1 << 32);
	assert_int_equal(sizes_get(s, 0, 5), 77);
	sizes_put(s, 0, 6, UINT32_MAX);
	assert_int_equal(sizes_get(s, 0, 6), UINT32_MAX);
	sizes_free(s);
	sizes_free(NULL);
}

/* Cached sizes are right, most of those that fit are kept, and there is a limit. */
static void test_budget(void **state)
{
	struct sizes *s = sizes_new(64 << 10); /* 16000 chunks */
	uint64_t have = 0, late = 0;

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		sizes_put(s, 3, i, i % 1000 + 1);
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t size = sizes_get(s, 3, i);

		assert_true(size == 0 || size == i % 1000 + 1);
		have += size > 0;
		late += size > 0 && i >= 90000;
	}
	assert_true(have > 12000 && have <= 16384);
	assert_int_equal(late, 10000); /* the last ones */
	sizes_free(s);
	s = sizes_new(0);
	sizes_put(s, 0, 1, 2);
	assert_int_equal(sizes_get(s, 0, 1), 2);
	sizes_free(s);
}

static void *fills(void *arg)
{
	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t size = sizes_get(arg, 0, i);

		if (size != 0 && size != i + 9)
			return arg;
		sizes_put(arg, 0, i, i + 9);
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct sizes *s = sizes_new(64 << 10);
	pthread_t ids[4];
	void *bad;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, fills, s), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(ids[i], &bad), 0);
		assert_null(bad);
	}
	sizes_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remembers),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
