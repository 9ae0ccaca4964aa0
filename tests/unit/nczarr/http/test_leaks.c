/* SPDX-License-Identifier: BSD-3-Clause */
/* Many requests, good and bad, leave nothing behind: no descriptor, no thread.
 * NCZARRFS_REQUESTS=100000 makes it as many (make check-remote). */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/core/str.h"
#include "nczarr/http/http.h"
#include "tests/unit/nczarr/http_server.h"

enum { SHORT = 10000, BATCH = 200, CONNECTIONS = 8, LEFT_MAX = 4 };

static bool answer(void *arg, struct ns_call *c)
{
	unsigned int reset_each = *(unsigned int *)arg;

	if (reset_each && c->number % reset_each == reset_each - 1) {
		ns_reset(c);
		return false;
	}
	switch (c->number % 7) {
	case 0:
		return ns_say(c, "404 No", "", "none", 4);
	case 1:
		return ns_say(c, "302 There", "Location: /other\r\n", "", 0);
	default:
		return ns_say(c, "200 OK", "ETag: \"x\"\r\n", "hello", 5);
	}
}

static unsigned int entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void on_done(void *arg, struct http_response *a)
{
	_Atomic unsigned int *done = arg;

	http_response_release(a);
	atomic_fetch_add(done, 1);
}

static void ask(struct http_client *n, const char *url, unsigned int count)
{
	struct http_request w = {.method = "GET", .url = url, .max_body = 100};
	_Atomic unsigned int done = 0;
	unsigned int begun = 0;

	while (atomic_load(&done) < count) {
		while (begun < count && begun - atomic_load(&done) < BATCH) {
			assert_int_equal(http_start(n, &w, on_done, &done, NULL), 0);
			begun++;
		}
		(void)usleep(200);
	}
}

static void *nothing(void *arg)
{
	return arg;
}

static void test_leaks(void **state)
{
	const struct http_client_options o = {.connect_ms = 5000,
					      .stall_ms = 5000,
					      .total_ms = 20000,
					      .tries = 3,
					      .connections = CONNECTIONS,
					      .requests = 32};
	const char *text = getenv("NCZARRFS_REQUESTS");
	unsigned int fds[2], threads[2], reset_each;
	struct http_counts counts;
	struct ns_server s;
	uint64_t count = SHORT;
	struct http_client *n = NULL;
	pthread_t first;

	(void)state;
	if (text)
		assert_int_equal(str_u64(text, strlen(text), 10000000, &count), 0);
	reset_each = (unsigned int)count / 100;
	/* a sanitizer's own thread is started with the first one of ours */
	assert_int_equal(pthread_create(&first, NULL, nothing, NULL), 0);
	(void)pthread_join(first, NULL);
	threads[0] = entries("/proc/self/task");
	ns_begin(&s, answer, &reset_each);
	assert_int_equal(http_client_new(&o, &n, NULL), 0);
	fds[0] = entries("/proc/self/fd");
	ask(n, s.url, BATCH);
	ask(n, s.url, (unsigned int)count);
	fds[1] = entries("/proc/self/fd");
	http_get_counts(n, &counts);
	assert_int_equal(counts.in_flight, 0);
	assert_int_equal(counts.requests, count + BATCH);
	http_client_free(n);
	ns_end(&s);
	threads[1] = entries("/proc/self/task");
	print_message("%llu requests, %u connections, descriptors %u then %u\n",
		      (unsigned long long)counts.requests, atomic_load(&s.connections), fds[0],
		      fds[1]);
	/* both ends of each connection are here, and what libcurl opens once */
	assert_true(fds[1] <= fds[0] + 2 * CONNECTIONS + LEFT_MAX);
	assert_true(threads[1] <= threads[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
