/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading ahead: a queue that never blocks. */
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

static void test_queue(void **state)
{
	struct log l = {.hold = true};
	struct prefetch *a = prefetch_new(1, run, &l);

	(void)state;
	prefetch_push(a, 0, 1000);
	while (atomic_load(&l.n) < 1)
		(void)sched_yield();
	for (uint64_t k = 0; k < 500; k++) {
		prefetch_push(a, 0, 2000 + k); /* beyond the queue's length: dropped */
		prefetch_push(a, 0, 2000);     /* waits already */
	}
	atomic_store(&l.hold, false);
	while (atomic_load(&l.last) != 2063)
		(void)sched_yield();
	assert_int_equal(atomic_load(&l.n), 1 + 64);
	prefetch_free(a);
	prefetch_free(NULL);

	/* queued requests are dropped at the end */
	l.hold = false;
	a = prefetch_new(0, run, &l);
	prefetch_push(a, 0, 1);
	prefetch_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
