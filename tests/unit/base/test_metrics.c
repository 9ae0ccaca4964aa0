/* SPDX-License-Identifier: BSD-3-Clause */
/* test_metrics.c - counters from many threads, gauges, OpenMetrics text. */
#include "base/observe/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { THREADS = METRICS_COPIES + 20, ROUNDS = 5000 };

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		metrics_count(M_CHUNK_PASS);
		metrics_add(M_READ_BYTES, 3);
	}
	return NULL;
}

/* More threads than copies: nothing is lost. */
static void test_threads(void **state)
{
	const uint64_t chunks = metrics_sum(M_CHUNK_PASS), bytes = metrics_sum(M_READ_BYTES);
	pthread_t t[THREADS];

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	/* what threads had that are gone is there still, and is taken again */
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(metrics_sum(M_CHUNK_PASS) - chunks, 2 * THREADS * ROUNDS);
	assert_int_equal(metrics_sum(M_READ_BYTES) - bytes, 6 * THREADS * ROUNDS);
}

static void test_errors(void **state)
{
	const uint64_t eio = metrics_sum(M_ERR_EIO), other = metrics_sum(M_ERR_OTHER);

	(void)state;
	metrics_error(EIO);
	metrics_error(ELOOP);
	metrics_error(0);
	assert_int_equal(metrics_sum(M_ERR_EIO) - eio, 1);
	assert_int_equal(metrics_sum(M_ERR_OTHER) - other, 2);
}

static int64_t twice(void *arg)
{
	return *(int *)arg * 2;
}

static void test_gauges(void **state)
{
	int n = 21;

	(void)state;
	metrics_gauge_set(G_MEM_INDEX, 5);
	metrics_gauge_add(G_MEM_INDEX, -3);
	assert_int_equal(metrics_gauge(G_MEM_INDEX), 2);
	metrics_gauge_from(G_MEM_REMOTE, twice, &n);
	assert_int_equal(metrics_gauge(G_MEM_REMOTE), 42);
	metrics_gauge_from(G_MEM_REMOTE, NULL, NULL);
	assert_int_equal(metrics_gauge(G_MEM_REMOTE), 0);
}

/* text - as OpenMetrics; free it. */
static char *text(const char *mount)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	metrics_text(mount, "9.9", &out);
	buf_putc(&out, '\0');
	assert_true(buf_ok(&out));
	return (char *)out.data;
}

static void test_text(void **state)
{
	char *t = text("/mnt/a \"b\"\\c\nd\xe4");

	(void)state;
	assert_non_null(strstr(t, "nczarrfs_requests_total{mount=\"/mnt/a \\\"b\\\"\\\\c\\nd"
				  "\xc3\xa4\",op=\"read\"} "));
	assert_non_null(strstr(t, "# UNIT nczarrfs_read_bytes bytes\n"));
	assert_non_null(strstr(t, "version=\"9.9\"} 1\n"));
	assert_string_equal(t + strlen(t) - 6, "# EOF\n");
	assert_null(strstr(t, "_total_total"));
	free(t);
}

/* below - a gauge that went below 0 for a moment (two threads) is shown as 0. */
static void see_below(void *arg, const struct metric_value *v)
{
	bool *seen = arg;

	if (strcmp(v->value, "staging") == 0 && !v->counter) {
		*seen = true;
		assert_int_equal(v->n, 0);
	}
}

static void test_below(void **state)
{
	bool seen = false;

	(void)state;
	metrics_gauge_set(G_MEM_STAGING, -7);
	metrics_each(see_below, &seen);
	metrics_gauge_set(G_MEM_STAGING, 0);
	assert_true(seen);
}

/* What one count costs, for docs/dev/commands.md: NCZARRFS_TIME=1. */
static void test_cost(void **state)
{
	struct timespec a, b;
	const int64_t n = 100000000;

	(void)state;
	if (!getenv("NCZARRFS_TIME"))
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	for (int64_t i = 0; i < n; i++)
		metrics_count(M_CHUNK_FILL);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.2f ns a count\n",
	       ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
		       (double)n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_gauges),  cmocka_unit_test(test_text),
		cmocka_unit_test(test_below),   cmocka_unit_test(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
