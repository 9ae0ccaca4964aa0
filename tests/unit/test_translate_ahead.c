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
	struct ahead *a = ahead_new(2, 1, run, NULL);

	(void)state;
	assert_int_equal(ahead_note(a, 0, 10, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 0, 10, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 1, 11, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 0, 11, AHEAD_READ), AHEAD_NEXT);
	assert_int_equal(ahead_note(a, 0, 11, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 0, 10, AHEAD_READ), 0); /* a late piece */
	assert_int_equal(ahead_note(a, 0, 12, AHEAD_READ), AHEAD_NEXT);
	assert_int_equal(ahead_note(a, 0, 14, AHEAD_READ), AHEAD_NEXT);
	assert_int_equal(ahead_note(a, 0, 30, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 0, 5, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 0, 6, AHEAD_READ), AHEAD_NEXT);
	ahead_free(a);
	ahead_free(NULL);
}

static void test_lists(void **state)
{
	struct ahead *a = ahead_new(1, 1, run, NULL);
	unsigned said = 0;

	(void)state;
	for (uint64_t k = 0; k < 50; k++)
		assert_int_equal(ahead_note(a, 0, k, AHEAD_STAT), 0);
	assert_int_equal(ahead_note(a, 0, 0, AHEAD_READ), 0);
	assert_int_equal(ahead_note(a, 0, 1, AHEAD_STAT), AHEAD_SELF | AHEAD_NEXT);
	assert_int_equal(ahead_note(a, 0, 1, AHEAD_READ), 0);
	for (uint64_t k = 2; k < 50; k++)
		said += ahead_note(a, 0, k, AHEAD_STAT) != 0;
	assert_true(said < 10);
	assert_int_equal(ahead_note(a, 0, 0, AHEAD_STAT), 0);
	(void)ahead_note(a, 0, 60, AHEAD_READ);
	assert_int_equal(ahead_note(a, 0, 61, AHEAD_STAT), AHEAD_SELF | AHEAD_NEXT);
	ahead_free(a);
}

static void test_queue(void **state)
{
	struct log l = {.hold = true};
	struct ahead *a = ahead_new(1, 1, run, &l);

	(void)state;
	(void)ahead_note(a, 0, 999, AHEAD_READ);
	ahead_push(a, 0, 1000);
	while (atomic_load(&l.n) < 1)
		(void)sched_yield();
	for (uint64_t k = 0; k < 500; k++) {
		ahead_push(a, 0, 2000 + k); /* beyond the queue's length: dropped */
		ahead_push(a, 0, 2000);     /* waits already */
	}
	(void)ahead_note(a, 0, 2009, AHEAD_READ); /* ten of them are in the past now */
	atomic_store(&l.hold, false);
	while (atomic_load(&l.last) != 2063)
		(void)sched_yield();
	assert_int_equal(atomic_load(&l.n), 1 + 64 - 10);
	ahead_free(a);

	/* what waits is dropped at the end */
	l.hold = false;
	a = ahead_new(1, 0, run, &l);
	ahead_push(a, 0, 1);
	ahead_free(a);
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
