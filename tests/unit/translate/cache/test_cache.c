/* SPDX-License-Identifier: BSD-3-Clause */
/* The chunk cache: one flight, its error, the budget, what goes first, memory taken over. */
#include "translate/cache/cache.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1024)
#define THREADS 6

/* load - make (or find) a chunk of n bytes, all of value v; a reference is returned. */
static struct cache_entry *load(struct cache *c, uint64_t linear, size_t n, uint8_t v)
{
	struct cache_entry *x = NULL;
	uint8_t *p;

	if (cache_get(c, 0, linear, &x, NULL) == CACHE_LOAD) {
		p = cache_alloc(x, n);
		assert_non_null(p);
		memset(p, v, n);
		cache_publish(x);
	}
	return x;
}

static struct cache_stats stats_of(struct cache *c)
{
	struct cache_stats s;

	cache_stats(c, &s);
	return s;
}

static void test_hit(void **state)
{
	struct cache *c = cache_new(1024 * KIB);
	struct cache_entry *x = load(c, 7, 100, 3), *y = NULL;
	const uint8_t *p;
	size_t n;

	(void)state;
	cache_put(x);
	assert_true(cache_has(c, 0, 7));
	assert_false(cache_has(c, 1, 7));
	assert_false(cache_has(c, 0, 8));
	assert_int_equal(cache_get(c, 0, 7, &y, NULL), CACHE_READY);
	assert_ptr_equal(x, y);
	p = cache_data(y, &n);
	assert_int_equal(n, 100);
	assert_int_equal(p[99], 3);
	cache_put(y);
	assert_int_equal(cache_get(c, 1, 7, &y, NULL), CACHE_LOAD);
	assert_non_null(cache_alloc(y, 0));
	cache_publish(y);
	(void)cache_data(y, &n);
	assert_int_equal(n, 0);
	cache_put(y);
	assert_int_equal(stats_of(c).entries, 2);
	cache_free(c);
	cache_free(NULL);
}

static void test_budget_and_order(void **state)
{
	struct cache *c = cache_new(45 * KIB);
	struct cache_entry *x[8];

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		cache_put(load(c, i, 10 * KIB, 1));
	assert_int_equal(stats_of(c).entries, 3); /* 12 KiB each in pages, with the books */
	assert_false(cache_has(c, 0, 0));
	cache_put(load(c, 1, 10 * KIB, 1)); /* 2 is now the oldest */
	cache_put(load(c, 4, 10 * KIB, 1));
	assert_false(cache_has(c, 0, 2));
	assert_true(cache_has(c, 0, 1));
	assert_true(stats_of(c).bytes <= 45 * KIB);

	for (uint64_t i = 0; i < 8; i++)
		x[i] = load(c, 100 + i, 10 * KIB, (uint8_t)i);
	assert_true(stats_of(c).bytes > 45 * KIB); /* all in use */
	for (size_t i = 0; i < 8; i++) {
		size_t n;

		assert_int_equal(cache_data(x[i], &n)[n - 1], i);
		cache_put(x[i]);
	}
	assert_true(stats_of(c).bytes <= 45 * KIB);
	cache_free(c);
}

static void test_spent_go_first(void **state)
{
	struct cache *c = cache_new(50 * KIB);
	struct cache_entry *x;

	(void)state;
	cache_put(load(c, 0, 10 * KIB, 1));
	cache_put(load(c, 1, 10 * KIB, 1));
	x = load(c, 2, 10 * KIB, 1);
	cache_handed(x, 0, 4 * KIB);
	cache_handed(x, 4 * KIB, 6 * KIB);
	cache_put(x);
	x = load(c, 1, 10 * KIB, 1);
	cache_handed(x, 9 * KIB, KIB); /* its end alone is not all of it */
	cache_put(x);
	cache_put(load(c, 3, 10 * KIB, 1));
	cache_put(load(c, 4, 10 * KIB, 1));
	assert_false(cache_has(c, 0, 2));
	assert_true(cache_has(c, 0, 0));
	assert_true(cache_has(c, 0, 1));
	cache_free(c);
}

static void test_memory_is_taken_over(void **state)
{
	struct cache *c = cache_new(1024 * KIB * KIB);
	struct cache_stats s;

	(void)state;
	for (uint64_t i = 0; i < 200; i++) {
		struct cache_entry *x = load(c, i, 128 * KIB, (uint8_t)i);

		cache_handed(x, 0, 128 * KIB);
		cache_put(x);
	}
	s = stats_of(c);
	assert_true(s.allocated < 10);
	assert_int_equal(s.allocated + s.recycled, 200);
	assert_true(s.bytes < 2048 * KIB);
	cache_free(c);

	/* the budget is full of chunks that no reader finished: their memory is reused as well */
	c = cache_new(1024 * KIB);
	for (uint64_t i = 0; i < 200; i++)
		cache_put(load(c, i, 128 * KIB, (uint8_t)i));
	s = stats_of(c);
	assert_true(s.allocated < 10);
	assert_true(s.bytes <= 1024 * KIB);
	cache_free(c);
}

static void test_larger_than_budget(void **state)
{
	struct cache *c = cache_new(KIB);

	(void)state;
	cache_put(load(c, 0, 64 * KIB, 1));
	assert_true(cache_has(c, 0, 0)); /* its reader comes back for the next piece */
	cache_put(load(c, 1, 64 * KIB, 1));
	assert_false(cache_has(c, 0, 0));
	assert_int_equal(stats_of(c).entries, 1);
	assert_int_equal(stats_of(c).allocated, 1);
	cache_free(c);
}

static void test_ahead_limit(void **state)
{
	struct cache *c = cache_new(100 * KIB);
	struct cache_entry *x, *y, *z = NULL;
	struct err e = ERR_INIT;

	(void)state;
	assert_true(cache_start(c, 0, 1, 20 * KIB, &x));
	assert_false(cache_start(c, 0, 1, 20 * KIB, &z));
	assert_true(cache_start(c, 0, 2, 30 * KIB, &y));
	assert_false(cache_start(c, 0, 3, 1, &z));
	assert_int_equal(stats_of(c).prefetch_bytes, 50 * KIB);
	assert_non_null(cache_alloc(x, 20 * KIB));
	cache_publish(x);
	cache_put(x);
	(void)err_set(&e, -EBADMSG, "bad");
	cache_fail(y, &e);
	assert_false(cache_has(c, 0, 2));
	assert_int_equal(stats_of(c).prefetch_bytes, 20 * KIB);
	assert_int_equal(cache_get(c, 0, 1, &z, NULL), CACHE_READY);
	assert_int_equal(stats_of(c).prefetch_bytes, 0);
	cache_put(z);
	assert_false(cache_start(c, 0, 9, UINT64_MAX, &z));

	/* one whose reader went away stops counting after a while */
	assert_true(cache_start(c, 0, 50, 50 * KIB, &x));
	assert_non_null(cache_alloc(x, KIB));
	cache_publish(x);
	cache_put(x);
	assert_false(cache_start(c, 0, 51, 50 * KIB, &y));
	for (int i = 0; i < 2000; i++)
		cache_put(load(c, 1, 20 * KIB, 1));
	assert_true(cache_start(c, 0, 51, 50 * KIB, &y));
	cache_fail(y, &e);
	cache_free(c);
}

static void test_many_small(void **state)
{
	struct cache *c = cache_new(1024 * KIB * KIB);

	(void)state;
	for (uint64_t i = 0; i < 5000; i++)
		cache_put(load(c, i * 3, 40, (uint8_t)i));
	for (uint64_t i = 0; i < 5000; i++) {
		struct cache_entry *x = NULL;
		size_t n;

		assert_int_equal(cache_get(c, 0, i * 3, &x, NULL), CACHE_READY);
		assert_int_equal(cache_data(x, &n)[39], (uint8_t)i);
		cache_put(x);
		assert_false(cache_has(c, 0, i * 3 + 1));
	}
	assert_int_equal(stats_of(c).entries, 5000);
	cache_free(c);
}

struct flight {
	struct cache *c;
	int rc;
	bool loaded;
	bool fail;
	struct err e;
	const uint8_t *data;
};

/* fly - the one that has to load waits for all the others to wait for it. */
static void *fly(void *arg)
{
	struct flight *f = arg;
	struct cache_entry *x = NULL;
	size_t n;

	f->rc = cache_get(f->c, 5, 5, &x, &f->e);
	if (f->rc == CACHE_LOAD) {
		f->loaded = true;
		while (stats_of(f->c).waiting < THREADS - 1)
			(void)sched_yield();
		if (f->fail) {
			f->rc = err_set(&f->e, -EBADMSG, "damaged at 17");
			cache_fail(x, &f->e);
			return NULL;
		}
		memset(cache_alloc(x, 10), 42, 10);
		cache_publish(x);
		f->rc = 0;
	}
	if (f->rc == CACHE_READY) {
		f->data = cache_data(x, &n);
		if (n != 10 || f->data[9] != 42)
			f->rc = -EIO;
		cache_put(x);
	}
	return NULL;
}

static void run_flight(struct cache *c, struct flight *f, bool fail)
{
	pthread_t ids[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		f[i] = (struct flight){.c = c, .fail = fail};
		assert_int_equal(pthread_create(&ids[i], NULL, fly, &f[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(ids[i], NULL), 0);
}

static void test_one_flight(void **state)
{
	struct cache *c = cache_new(1024 * KIB);
	struct flight f[THREADS];
	size_t loads = 0;

	(void)state;
	run_flight(c, f, false);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(f[i].rc, 0);
		assert_ptr_equal(f[i].data, f[0].data);
		loads += f[i].loaded;
	}
	assert_int_equal(loads, 1);
	cache_free(c);
}

static void test_failed_flight(void **state)
{
	struct cache *c = cache_new(1024 * KIB);
	struct cache_entry *x = NULL;
	struct flight f[THREADS];

	(void)state;
	run_flight(c, f, true);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(f[i].rc, -EBADMSG);
		assert_string_equal(f[i].e.msg, "damaged at 17");
	}
	assert_int_equal(stats_of(c).entries, 0);
	assert_int_equal(stats_of(c).bytes, 0);
	assert_int_equal(cache_get(c, 5, 5, &x, NULL), CACHE_LOAD);
	cache_fail(x, &f[0].e);
	cache_free(c);
}

struct churn {
	struct cache *c;
	uint64_t seed;
	size_t bad;
};

/* churn - what several readers and workers do, over more chunks than fit. */
static void *churn(void *arg)
{
	struct churn *t = arg;
	struct err e = ERR_INIT;

	(void)err_set(&e, -EIO, "made up");
	for (int i = 0; i < 3000; i++) {
		struct cache_entry *x = NULL;
		uint64_t k;
		size_t n, size;
		int rc;

		t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
		k = (t->seed >> 33) % 64;
		size = (k % 3 + 1) * 32 * KIB;
		if ((t->seed >> 60) == 0)
			rc = cache_start(t->c, 0, k, size, &x) ? CACHE_LOAD : -EAGAIN;
		else
			rc = cache_get(t->c, 0, k, &x, NULL);
		if (rc == CACHE_LOAD && (t->seed >> 50) % 16 == 0) {
			cache_fail(x, &e);
			continue;
		}
		if (rc == CACHE_LOAD) {
			uint8_t *p = cache_alloc(x, size);

			p[0] = (uint8_t)k;
			p[size - 1] = (uint8_t)k;
			cache_publish(x);
		}
		if (rc < 0)
			continue;
		t->bad += cache_data(x, &n)[0] != k || n != size;
		t->bad += cache_data(x, &n)[n - 1] != k;
		if (k % 2 == 0)
			cache_handed(x, 0, n);
		cache_put(x);
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct cache *c = cache_new(1024 * KIB);
	struct churn t[4];
	pthread_t ids[4];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		t[i] = (struct churn){.c = c, .seed = i + 1};
		assert_int_equal(pthread_create(&ids[i], NULL, churn, &t[i]), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(ids[i], NULL), 0);
		assert_int_equal(t[i].bad, 0);
	}
	assert_true(stats_of(c).bytes <= 1024 * KIB);
	assert_int_equal(stats_of(c).waiting, 0);
	cache_free(c);
}

/* Caches of one pool: what they have together stays below its budget, and what goes is that of the
 * one that was not used for longest; who takes a chunk in pieces keeps it. */
static void test_pool(void **state)
{
	struct cache_pool *p = cache_pool_new(1000 * KIB);
	struct cache *c[4];
	uint64_t all = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		c[i] = cache_new(600 * KIB);
		cache_join(c[i], p);
		for (uint64_t k = 0; k < 10; k++)
			cache_put(load(c[i], k, 64 * KIB, 1));
	}
	for (size_t i = 0; i < 4; i++)
		all += stats_of(c[i]).bytes;
	assert_true(all <= 1000 * KIB);
	assert_int_equal(stats_of(c[0]).entries, 1);
	assert_true(cache_has(c[0], 0, 9));
	assert_int_equal(stats_of(c[3]).entries, 9); /* its own budget */
	assert_true(cache_has(c[3], 0, 1));
	/* entries in use stay, and so does one that is larger than the budget */
	{
		struct cache_entry *x = load(c[1], 9, 64 * KIB, 1),
				   *y = load(c[0], 20, 2000 * KIB, 1);

		assert_true(cache_has(c[1], 0, 9) && cache_has(c[0], 0, 20));
		cache_put(y);
		assert_true(cache_has(c[0], 0, 20));
		assert_true(cache_has(c[1], 0, 9));
		cache_put(x);
	}
	/* a cache that was not used for long has nothing */
	for (uint64_t k = 0; k < 2000; k++)
		cache_put(load(c[2], k % 20, 64 * KIB, 1));
	assert_int_equal(stats_of(c[3]).entries + stats_of(c[0]).entries, 0);
	cache_free(c[3]);
	for (uint64_t k = 0; k < 9; k++)
		cache_put(load(c[2], k, 64 * KIB, 1));
	assert_int_equal(stats_of(c[2]).entries, 9);
	for (size_t i = 0; i < 3; i++)
		cache_free(c[i]);
	cache_pool_free(p);
	cache_pool_free(NULL);
}

static void test_pool_threads(void **state)
{
	struct cache_pool *p = cache_pool_new(512 * KIB);
	struct churn t[4];
	pthread_t ids[4];
	uint64_t all = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		t[i] = (struct churn){.c = cache_new(400 * KIB), .seed = i + 1};
		cache_join(t[i].c, p);
		assert_int_equal(pthread_create(&ids[i], NULL, churn, &t[i]), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(ids[i], NULL), 0);
		assert_int_equal(t[i].bad, 0);
		all += stats_of(t[i].c).bytes;
	}
	assert_true(all <= 512 * KIB + 4 * 300 * KIB); /* the last chunk of each */
	for (size_t i = 0; i < 4; i++)
		cache_free(t[i].c);
	cache_pool_free(p);
}

/* bounded - several threads that each load as much as all of them together may have. */
struct bounded {
	struct cache *c;
	_Atomic int *inside;
	uint64_t first;
	unsigned bad;
};

static void *load_bounded(void *arg)
{
	struct bounded *t = arg;
	struct err e = ERR_INIT;

	(void)err_set(&e, -EIO, "made up");
	for (uint64_t k = t->first; k < t->first + 500; k++) {
		struct cache_entry *x;

		if (cache_get(t->c, 0, k, &x, NULL) != CACHE_LOAD ||
		    !cache_alloc(x, 64 * KIB)) {
			t->bad++;
			continue;
		}
		t->bad += atomic_fetch_add(t->inside, 1) != 0;
		(void)sched_yield();
		(void)atomic_fetch_sub(t->inside, 1);
		if (k % 3 == 0) {
			cache_fail(x, &e);
			continue;
		}
		cache_publish(x);
		cache_put(x);
	}
	return NULL;
}

static void test_bound(void **state)
{
	struct cache *c = cache_new(1024 * KIB);
	_Atomic int inside = 0;
	struct bounded t[4];
	pthread_t ids[4];

	(void)state;
	cache_bound(c, 100 * KIB);
	for (size_t i = 0; i < 4; i++) {
		t[i] = (struct bounded){.c = c, .inside = &inside, .first = i * 1000};
		assert_int_equal(pthread_create(&ids[i], NULL, load_bounded, &t[i]), 0);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(ids[i], NULL), 0);
		assert_int_equal(t[i].bad, 0);
	}
	cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hit),
		cmocka_unit_test(test_budget_and_order),
		cmocka_unit_test(test_spent_go_first),
		cmocka_unit_test(test_memory_is_taken_over),
		cmocka_unit_test(test_larger_than_budget),
		cmocka_unit_test(test_ahead_limit),
		cmocka_unit_test(test_many_small),
		cmocka_unit_test(test_one_flight),
		cmocka_unit_test(test_failed_flight),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_pool_threads),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
