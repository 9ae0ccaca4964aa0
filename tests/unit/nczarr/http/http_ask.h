/* SPDX-License-Identifier: BSD-3-Clause */
/* http_ask.h - one request of a net of its own, for tests. */
#ifndef TESTS_UNIT_NCZARR_HTTP_HTTP_ASK_H
#define TESTS_UNIT_NCZARR_HTTP_HTTP_ASK_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "nczarr/http/http_int.h"
#include "tests/unit/nczarr/http_server.h"

static const struct http_client_options quick = {
	.connect_ms = 1000,
	.stall_ms = 200,
	.total_ms = 3000,
	.tries = 3,
	.connections = 4,
	.requests = 16,
};

static inline struct http_client *http_of(const struct http_client_options *o)
{
	struct http_client *n = NULL;
	struct err e = ERR_INIT;

	if (http_client_new(o, &n, &e) < 0)
		fail_msg("%s", e.msg);
	return n;
}

/* get - one request of a net of its own. */
static inline int get(const struct http_client_options *o, struct http_request *w,
		      struct http_response *a)
{
	struct http_client *n = http_of(o);
	struct err e = ERR_INIT;
	int rc;

	w->method = w->method ? w->method : "GET";
	w->max_body = w->max_body ? w->max_body : 1 << 20;
	rc = http_do(n, w, a, &e);
	assert_int_equal(e.code, rc);
	if (rc < 0)
		assert_true(e.msg[0]);
	http_client_free(n);
	return rc;
}

static inline void assert_says(const struct http_response *a, const char *text)
{
	if (!strstr(a->e.msg, text))
		fail_msg("'%s' is not in '%s'", text, a->e.msg);
}

static inline void assert_body(const struct http_response *a, const char *text)
{
	assert_int_equal(a->rc, 0);
	assert_int_equal(a->body.len, strlen(text));
	assert_memory_equal(a->body.data, text, a->body.len);
}

static inline bool hello(void *arg, struct ns_call *c)
{
	(void)arg;
	return ns_say(c, "200 OK",
		      "ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
		      "Content-Type: text/plain\r\nx-amz-bucket-region: eu-west-1\r\n",
		      "hello", 5);
}

#endif
