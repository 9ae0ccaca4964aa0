/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests against a server that misbehaves: right data or an error, in time. */
#include <fcntl.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "tests/unit/nczarr/http/http_ask.h"

static void test_hello(void **state)
{
	struct ns_server s;
	struct http_request w = {.url = s.url};
	struct http_response a;

	(void)state;
	ns_begin(&s, hello, NULL);
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.tries, 1);
	assert_int_equal(a.length, 5);
	assert_string_equal(a.etag, "\"v1\"");
	assert_false(a.weak);
	assert_int_equal(a.modified, INT64_C(784111777000000000));
	assert_string_equal(a.content_type, "text/plain");
	assert_string_equal(a.region, "eu-west-1");
	assert_body(&a, "hello");
	http_response_release(&a);
	w.method = "HEAD";
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.length, 5);
	assert_int_equal(a.body.len, 0);
	http_response_release(&a);
	ns_end(&s);
}

/* Statuses: what they mean, and how often it is tried. */

static bool status(void *arg, struct ns_call *c)
{
	return ns_say(c, arg, "", "<Error><Code>Such.Code1</Code></Error>", 38);
}

static void test_statuses(void **state)
{
	static const struct {
		const char *status;
		int rc;
		uint32_t tries;
	} cases[] = {
		{"400 Bad Request", -EIO, 1},  {"401 Who", -EACCES, 1},
		{"403 Forbidden", -EACCES, 1}, {"404 Not Found", -ENOENT, 1},
		{"410 Gone", -ENOENT, 1},      {"405 Not so", -EIO, 1},
		{"412 Changed", -ESTALE, 1},   {"416 Range", -ERANGE, 1},
		{"418 Teapot", -EIO, 1},       {"408 Timeout", -EIO, 3},
		{"429 Too Many", -EIO, 3},     {"500 Failed", -EIO, 3},
		{"502 Gateway", -EIO, 3},      {"503 Busy", -EIO, 3},
		{"504 Gateway", -EIO, 3},      {"501 What", -EIO, 1},
		{"507 Full", -EIO, 1},         {"304 Same", 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ns_server s;
		struct http_request w = {.url = s.url};
		struct http_response a;

		ns_begin(&s, status, (void *)(uintptr_t)cases[i].status);
		assert_int_equal(get(&quick, &w, &a), cases[i].rc);
		assert_int_equal(a.tries, cases[i].tries);
		if (a.rc < 0)
			assert_string_equal(a.error_code, "Such.Code1");
		http_response_release(&a);
		ns_end(&s);
	}
}

/* The first answers are bad, the third one is good. */

static bool third(void *arg, struct ns_call *c)
{
	const char *first = arg;

	if (c->number >= 2)
		return hello(NULL, c);
	if (strcmp(first, "reset") == 0)
		ns_reset(c);
	else if (strcmp(first, "reset inside") == 0) {
		(void)ns_puts(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
		ns_reset(c);
	} else if (strcmp(first, "stall") == 0)
		ns_hang(c);
	else if (strcmp(first, "stall inside") == 0) {
		(void)ns_puts(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
		ns_hang(c);
	} else
		(void)ns_puts(c->fd, first);
	return false;
}

static const char *const broken_first[] = {
	"",
	"HTTP/1.1 200 OK\r\nContent-Le",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
	"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
	"HTTP/1.1 200 OK\r\n\r\nhello", /* an end that may be a break */
	"HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 0-4/5\r\n\r\nhel",
	"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 400 No\r\nContent-Length: 37\r\n\r\n<Error><Code>RequestTimeout</Code></E>",
	"reset",
	"reset inside",
	"stall",
	"stall inside",
};

static void test_tried_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(broken_first); i++) {
		struct ns_server s;
		struct http_request w = {.url = s.url};
		struct http_response a;

		ns_begin(&s, third, (void *)(uintptr_t)broken_first[i]);
		if (get(&quick, &w, &a) < 0)
			fail_msg("case %zu: %s", i, a.e.msg);
		assert_body(&a, "hello");
		assert_int_equal(a.tries, 3);
		http_response_release(&a);
		ns_end(&s);
	}
}

/* A connection that was kept dies with the next request: libcurl itself tries again. */
static bool drops_second(void *arg, struct ns_call *c)
{
	(void)arg;
	if (c->number == 1) {
		ns_reset(c);
		return false;
	}
	return hello(NULL, c);
}

static void test_kept_connection(void **state)
{
	struct ns_server s;
	struct http_request w = {
		.url = s.url, .method = "PUT", .max_body = 100, .body = "x", .body_len = 1};
	struct http_response a;
	struct http_client *n = http_of(&quick);

	(void)state;
	ns_begin(&s, drops_second, NULL);
	assert_int_equal(http_do(n, &w, &a, NULL), 0);
	http_response_release(&a);
	assert_int_equal(http_do(n, &w, &a, NULL), 0);
	http_response_release(&a);
	assert_int_equal(atomic_load(&s.requests), 3);
	http_client_free(n);
	ns_end(&s);
}

static void test_no_server(void **state)
{
	struct ns_server s;
	struct http_request w = {.url = s.url};
	struct http_response a;

	(void)state;
	ns_begin(&s, hello, NULL);
	ns_end(&s);
	assert_int_equal(get(&quick, &w, &a), -EIO);
	assert_int_equal(a.tries, 3);
	assert_says(&a, "3 attempts");
	w.url = "http://no-such-host.invalid/x?sig=SECRET";
	assert_int_equal(get(&quick, &w, &a), -EIO);
	assert_says(&a, "no-such-host.invalid");
	assert_null(strstr(a.e.msg, "SECRET"));
}

/* Answers without an end, and too much of them. */

static bool endless(void *arg, struct ns_call *c)
{
	const char *kind = arg;
	char line[1024];

	memset(line, 'x', sizeof(line) - 3);
	memcpy(line + sizeof(line) - 3, "\r\n", 3);
	line[1] = ':';
	if (strcmp(kind, "slow") == 0) {
		(void)ns_puts(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
		while (ns_puts(c->fd, "x") && ns_wait(c, 50))
			continue;
	} else if (strcmp(kind, "1xx") == 0) {
		while (ns_puts(c->fd, "HTTP/1.1 102 Wait\r\n\r\n") && ns_wait(c, 0))
			continue;
	} else {
		(void)ns_puts(c->fd, strcmp(kind, "header") == 0 ? "HTTP/1.1 200 OK\r\n"
				     : strcmp(kind, "error") == 0
					     ? "HTTP/1.1 404 No\r\nTransfer-Encoding: "
					       "chunked\r\n\r\n7fffffff\r\n"
					     : "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
					       "chunked\r\n\r\n7fffffff\r\n");
		while (ns_puts(c->fd, line) && ns_wait(c, 0))
			continue;
	}
	return false;
}

/* SECURITY S54 */
static void test_endless(void **state)
{
	static const struct {
		const char *kind;
		int rc;
		const char *says;
	} cases[] = {
		{"header", -EIO, "header"},
		{"1xx", -EIO, "header"},
		{"body", -EFBIG, "response exceeds"},
		{"error", -ENOENT, "not found"},
		{"slow", -ETIMEDOUT, "the response was not complete"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ns_server s;
		struct http_request w = {.url = s.url, .total_ms = 500};
		struct http_response a;

		ns_begin(&s, endless, (void *)(uintptr_t)cases[i].kind);
		if (get(&quick, &w, &a) != cases[i].rc)
			fail_msg("%s: %d %s", cases[i].kind, a.rc, a.e.msg);
		assert_says(&a, cases[i].says);
		assert_true(a.body.len <= 1 << 20);
		http_response_release(&a);
		ns_end(&s);
	}
}

static bool raw(void *arg, struct ns_call *c)
{
	(void)ns_puts(c->fd, arg);
	return false;
}

static void test_no_http(void **state)
{
	static const char *const texts[] = {
		"hello\r\n\r\n",
		"HTTP/9.9 200 OK\r\n\r\n",
		"HTTP/1.1 abc OK\r\n\r\n",
		"\x16\x03\x01\x02",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
		"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct ns_server s;
		struct http_request w = {.url = s.url};
		struct http_response a;

		ns_begin(&s, raw, (void *)(uintptr_t)texts[i]);
		if (get(&quick, &w, &a) >= 0)
			fail_msg("case %zu was taken", i);
		http_response_release(&a);
		ns_end(&s);
	}
}

/* Pauses. */

static void test_retry_after(void **state)
{
	struct ns_server s;
	struct http_request w = {.url = s.url};
	struct http_response a;
	int64_t begin = clock_ns();

	(void)state;
	ns_begin(&s, raw,
		 (void *)(uintptr_t) "HTTP/1.1 503 Busy\r\nRetry-After: 120\r\n"
				     "Content-Length: 0\r\n\r\n");
	assert_int_equal(get(&quick, &w, &a), -EIO); /* nobody waits that long */
	assert_int_equal(a.tries, 1);
	assert_says(&a, "120 seconds");
	http_response_release(&a);
	ns_end(&s);
	ns_begin(&s, third,
		 (void *)(uintptr_t) "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: "
				     "0\r\n\r\n");
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_true(clock_ns() - begin >= 2 * INT64_C(1000000000));
	http_response_release(&a);
	ns_end(&s);
}

/* Parts of a server without ranges. */

static bool letters(void *arg, struct ns_call *c)
{
	char text[2000];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	(void)arg;
	return ns_say(c, "200 OK", "", text, sizeof(text));
}

static void test_cut(void **state)
{
	struct ns_server s;
	struct http_request w = {.url = s.url, .max_body = 4, .part_off = 26, .part_len = 4};
	struct http_response a;

	(void)state;
	ns_begin(&s, letters, NULL);
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_true(a.cut);
	assert_body(&a, "abcd");
	assert_int_equal(a.length, 2000);
	http_response_release(&a);
	w.part_off = 1998;
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.body.len, 2);
	http_response_release(&a);
	w.part_off = 5000;
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.body.len, 0);
	http_response_release(&a);
	w.part_off = (uint64_t)1 << 40;
	assert_int_equal(get(&quick, &w, &a), -EOPNOTSUPP);
	assert_says(&a, "does not support range requests");
	http_response_release(&a);
	ns_end(&s);
}

/* Sending. */

static bool echo(void *arg, struct ns_call *c)
{
	(void)arg;
	if (c->number == 0)
		return ns_say(c, "503 Later", "", "", 0);
	return ns_say(c, "200 OK", "", c->body, c->body_len);
}

static void test_send(void **state)
{
	static uint8_t data[3 << 20];
	char path[] = "send.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	assert_int_equal(write(fd, data, sizeof(data)), sizeof(data));
	for (int from_fd = 0; from_fd < 2; from_fd++) {
		struct ns_server s;
		struct http_request w = {
			.url = s.url, .method = "PUT", .max_body = sizeof(data)};
		struct http_response a;

		w.body = from_fd ? NULL : data + 5;
		w.body_fd = fd;
		w.body_off = 5;
		w.body_len = sizeof(data) - 5;
		ns_begin(&s, echo, NULL);
		assert_int_equal(get(&quick, &w, &a), 0);
		assert_int_equal(a.tries, 2);
		assert_int_equal(a.body.len, sizeof(data) - 5);
		assert_memory_equal(a.body.data, data + 5, a.body.len);
		http_response_release(&a);
		if (from_fd) {
			w.body_off = 100; /* it ends before */
			assert_int_equal(get(&quick, &w, &a), -EIO);
			assert_says(&a, "cannot be read");
			http_response_release(&a);
		}
		ns_end(&s);
	}
	(void)close(fd);
	(void)unlink(path);
}

/* libcurl sends the body when "100 Continue" does not come: when it comes later, the body is not
 * sent from its beginning. */
static void test_late_continue(void **state)
{
	struct http_client_options o = quick;
	const size_t n = (size_t)16 << 20;
	uint8_t *data = malloc(n);
	struct ns_server s;
	struct http_request w = {.method = "PUT", .body = data, .body_len = n, .max_body = n};
	struct http_response a;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8) + (i >> 16));
	o.stall_ms = o.total_ms = 60000;
	ns_begin(&s, echo, NULL);
	s.late = true;
	w.url = s.url;
	assert_int_equal(get(&o, &w, &a), 0);
	assert_int_equal(a.body.len, n);
	assert_memory_equal(a.body.data, data, n);
	http_response_release(&a);
	ns_end(&s);
	free(data);
}

static bool judge_hello(void *arg, const struct http_response *a)
{
	int *n = arg;

	return a->status == 200 && ++*n < 3;
}

static void test_judge(void **state)
{
	struct ns_server s;
	int n = 0;
	struct http_request w = {.url = s.url, .judge = judge_hello, .sign_arg = &n};
	struct http_response a;

	(void)state;
	ns_begin(&s, hello, NULL);
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.tries, 3);
	assert_body(&a, "hello");
	http_response_release(&a);
	n = -10;
	assert_int_equal(get(&quick, &w, &a), -EIO);
	http_response_release(&a);
	ns_end(&s);
}

/* Giving up. */

static bool hangs(void *arg, struct ns_call *c)
{
	(void)arg;
	ns_hang(c);
	return false;
}

struct asker {
	struct http_client *n;
	struct cancel *stop;
	const char *url;
	struct ns_server *s;
};

static void *ask_stop(void *arg)
{
	struct asker *a = arg;

	while (atomic_load(&a->s->requests) == 0)
		(void)usleep(1000);
	if (a->stop)
		cancel_request(a->stop);
	else
		http_client_stop(a->n);
	return NULL;
}

static void test_given_up(void **state)
{
	struct http_client_options o = quick;

	(void)state;
	o.stall_ms = o.total_ms = 60000;
	for (int whole = 0; whole < 2; whole++) {
		struct ns_server s;
		struct http_request w = {.url = s.url, .method = "GET"};
		struct http_client *n = http_of(&o);
		struct cancel stop;
		struct asker k = {.n = n, .s = &s, .stop = whole ? NULL : &stop};
		struct http_response a;
		struct http_counts counts;
		pthread_t thread;

		ns_begin(&s, hangs, NULL);
		cancel_begin(&stop);
		assert_int_equal(pthread_create(&thread, NULL, ask_stop, &k), 0);
		assert_int_equal(http_do(n, &w, &a, NULL), whole ? -ECANCELED : -EINTR);
		(void)pthread_join(thread, NULL);
		cancel_end(&stop);
		http_get_counts(n, &counts);
		assert_int_equal(counts.in_flight, 0);
		if (whole)
			assert_int_equal(http_do(n, &w, &a, NULL), -ECANCELED);
		http_client_free(n);
		ns_end(&s);
	}
}

struct tally {
	_Atomic unsigned int canceled, good, other;
};

static void on_done(void *arg, struct http_response *a)
{
	struct tally *t = arg;

	if (a->rc == 0)
		atomic_fetch_add(&t->good, 1);
	else if (a->rc == -ECANCELED)
		atomic_fetch_add(&t->canceled, 1);
	else
		atomic_fetch_add(&t->other, 1);
	http_response_release(a);
}

static void test_freed_in_flight(void **state)
{
	struct ns_server s;
	struct http_request w = {.url = s.url, .method = "GET"};
	struct http_client *n = http_of(&quick);
	struct tally t = {0};

	(void)state;
	ns_begin(&s, hangs, NULL);
	for (int i = 0; i < 50; i++)
		assert_int_equal(http_start(n, &w, on_done, &t, NULL), 0);
	while (atomic_load(&s.requests) == 0)
		(void)usleep(1000);
	http_client_free(n);
	assert_int_equal(atomic_load(&t.canceled), 50);
	ns_end(&s);
	http_client_free(http_of(&quick)); /* never used */
}

/* A queue behind a server that never answers ends, too. */
static void test_queue_ends(void **state)
{
	struct ns_server s;
	struct http_client_options o = quick;
	struct http_request w = {.url = s.url, .method = "GET"};
	struct http_client *n;
	struct tally t = {0};

	(void)state;
	o.connections = 2;
	o.requests = 2;
	o.total_ms = 400;
	n = http_of(&o);
	ns_begin(&s, hangs, NULL);
	for (int i = 0; i < 40; i++)
		assert_int_equal(http_start(n, &w, on_done, &t, NULL), 0);
	while (atomic_load(&t.other) < 40)
		(void)usleep(10000);
	http_client_free(n);
	ns_end(&s);
}

/* Many at once share a few connections, and those that nobody waits for come last. */

static bool small(void *arg, struct ns_call *c)
{
	char *order = arg;

	if (c->path[1] == 'b')
		(void)ns_wait(c, 20);
	if (order && c->number < 64)
		order[c->number] = c->path[1];
	return ns_say(c, "200 OK", "", "hello", 5);
}

static void test_many(void **state)
{
	struct ns_server s;
	char order[65] = "", back[80], front[80];
	struct http_request b = {
		.url = back, .method = "GET", .max_body = 5, .background = true};
	struct http_request f = {.url = front, .method = "GET", .max_body = 5};
	struct http_client *n = http_of(&quick);
	struct http_counts counts;
	struct tally t = {0};

	(void)state;
	ns_begin(&s, small, order);
	(void)snprintf(back, sizeof(back), "%s/b", s.url);
	(void)snprintf(front, sizeof(front), "%s/f", s.url);
	for (int i = 0; i < 40; i++)
		assert_int_equal(http_start(n, &b, on_done, &t, NULL), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(http_start(n, &f, on_done, &t, NULL), 0);
	while (atomic_load(&t.good) + atomic_load(&t.other) < 50)
		(void)usleep(1000);
	assert_int_equal(atomic_load(&t.good), 50);
	assert_true(atomic_load(&s.connections) <= 4);
	assert_non_null(strchr(order, 'f'));
	assert_true(strrchr(order, 'f') - order < 40);
	http_get_counts(n, &counts);
	assert_int_equal(counts.requests, 50);
	assert_int_equal(counts.in_flight, 0);
	http_client_free(n);
	ns_end(&s);
}

/* More hosts than are remembered: a new one is not let go of before it is used (seen by
 * AddressSanitizer). */
static void test_many_hosts(void **state)
{
	const struct http_client_options once = {.connect_ms = 1000,
						 .stall_ms = 1000,
						 .total_ms = 3000,
						 .tries = 1,
						 .connections = 1,
						 .requests = 4};
	struct http_client *n = http_of(&once);
	struct ns_server s;

	(void)state;
	ns_begin(&s, hello, NULL);
	for (int i = 1; i <= 150; i++) {
		char url[64];
		struct http_request w = {.method = "GET", .url = url, .max_body = 100};
		struct http_response a;

		/* the server listens at the first only: the others refuse */
		(void)snprintf(url, sizeof(url), "http://127.0.0.%d:%s", i % 75 + 1,
			       strrchr(s.url, ':') + 1);
		assert_int_equal(http_do(n, &w, &a, NULL), i % 75 ? -EIO : 0);
		http_response_release(&a);
	}
	http_client_free(n);
	ns_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_tried_again),
		cmocka_unit_test(test_kept_connection),
		cmocka_unit_test(test_no_server),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_no_http),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_send),
		cmocka_unit_test(test_late_continue),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_freed_in_flight),
		cmocka_unit_test(test_queue_ends),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
