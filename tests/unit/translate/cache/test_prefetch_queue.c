/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading ahead: who reads in order, who only lists, and a queue that never blocks. */
#include "translate/cache/prefetch_queue.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

struct log {
	_Atomic unsigned n;
	_Atomic bool hold;
	_Atomic uint64_t last;
};

static void run(void *arg, uint32_t array, uint64_t linear)
{
	struct log *l = arg;

	(void)array;
	atomic_fetch_add(&l->n, 1);
	atomic_store(&l->last, linear);
	while (atomic_load(&l->hold))
		(void)sched_yield();
}

static void test_order(void **state)
{
	struct prefetch *a = prefetch_new(2, 1, run, NULL);

	(void)state;
	assert_int_equal(prefetch_note(a, 0, 10, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 0, 10, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 1, 11, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 0, 11, PREFETCH_READ), PREFETCH_NEXT);
	assert_int_equal(prefetch_note(a, 0, 11, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 0, 10, PREFETCH_READ), 0); /* a late piece */
	assert_int_equal(prefetch_note(a, 0, 12, PREFETCH_READ), PREFETCH_NEXT);
	assert_int_equal(prefetch_note(a, 0, 14, PREFETCH_READ), PREFETCH_NEXT);
	assert_int_equal(prefetch_note(a, 0, 30, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 0, 5, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 0, 6, PREFETCH_READ), PREFETCH_NEXT);
	prefetch_free(a);
	prefetch_free(NULL);
}

static void test_lists(void **state)
{
	struct prefetch *a = prefetch_new(1, 1, run, NULL);
	unsigned said = 0;

	(void)state;
	for (uint64_t k = 0; k < 50; k++)
		assert_int_equal(prefetch_note(a, 0, k, PREFETCH_STAT), 0);
	assert_int_equal(prefetch_note(a, 0, 0, PREFETCH_READ), 0);
	assert_int_equal(prefetch_note(a, 0, 1, PREFETCH_STAT), PREFETCH_SELF | PREFETCH_NEXT);
	assert_int_equal(prefetch_note(a, 0, 1, PREFETCH_READ), 0);
	for (uint64_t k = 2; k < 50; k++)
		said += prefetch_note(a, 0, k, PREFETCH_STAT) != 0;
	assert_true(said < 10);
	assert_int_equal(prefetch_note(a, 0, 0, PREFETCH_STAT), 0);
	(void)prefetch_note(a, 0, 60, PREFETCH_READ);
	assert_int_equal(prefetch_note(a, 0, 61, PREFETCH_STAT), PREFETCH_SELF | PREFETCH_NEXT);
	prefetch_free(a);
}

static void test_queue(void **state)
{
	struct log l = {.hold = true};
	struct prefetch *a = prefetch_new(1, 1, run, &l);

	(void)state;
	(void)prefetch_note(a, 0, 999, PREFETCH_READ);
	prefetch_push(a, 0, 1000);
	while (atomic_load(&l.n) < 1)
		(void)sched_yield();
	for (uint64_t k = 0; k < 500; k++) {
		prefetch_push(a, 0, 2000 + k); /* beyond the queue's length: dropped */
		prefetch_push(a, 0, 2000);     /* waits already */
	}
	(void)prefetch_note(a, 0, 2009, PREFETCH_READ); /* ten of them are in the past now */
	atomic_store(&l.hold, false);
	while (atomic_load(&l.last) != 2063)
		(void)sched_yield();
	assert_int_equal(atomic_load(&l.n), 1 + 64 - 10);
	prefetch_free(a);

	/* what waits is dropped at the end */
	l.hold = false;
	a = prefetch_new(1, 0, run, &l);
	prefetch_push(a, 0, 1);
	prefetch_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
