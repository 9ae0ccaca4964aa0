/* Requests against a server that misbehaves: right data or an error, in time. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/stop.h"
#include "nczarr/net.h"
#include "tests/unit/net_server.h"

static const struct net_options quick = {
	.connect_ms = 1000,
	.stall_ms = 300,
	.total_ms = 3000,
	.tries = 3,
	.connections = 4,
	.requests = 16,
};

static struct net *net_of(const struct net_options *o)
{
	struct net *n = NULL;
	struct err e = ERR_INIT;

	if (net_new(o, &n, &e) < 0)
		fail_msg("%s", e.msg);
	return n;
}

/* get - one request of a net of its own. */
static int get(const struct net_options *o, struct net_want *w, struct net_answer *a)
{
	struct net *n = net_of(o);
	struct err e = ERR_INIT;
	int rc;

	w->method = w->method ? w->method : "GET";
	w->max_body = w->max_body ? w->max_body : 1 << 20;
	rc = net_do(n, w, a, &e);
	assert_int_equal(e.code, rc);
	net_free(n);
	return rc;
}

static bool hello(void *arg, struct ns_call *c)
{
	(void)arg;
	return ns_say(c, "200 OK", "ETag: \"v1\"\r\n", "hello", 5);
}

static void test_hello(void **state)
{
	struct ns_server s;
	struct net_want w = {.url = s.url};
	struct net_answer a;

	(void)state;
	ns_begin(&s, hello, NULL);
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.tries, 1);
	assert_int_equal(a.length, 5);
	assert_string_equal(a.etag, "\"v1\"");
	assert_int_equal(a.body.len, 5);
	assert_memory_equal(a.body.data, "hello", 5);
	net_answer_release(&a);
	ns_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
