/* SPDX-License-Identifier: BSD-3-Clause */
/* http.c - the callers' side: hands requests to the client's thread and waits for answers. */
#include "nczarr/http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/str.h"
#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "base/os/thread.h"
#include "nczarr/http/http_int.h"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void curl_begin(void)
{
	curl_ready = curl_global_init(CURL_GLOBAL_ALL);
}

/* find_proxy - find the proxy and its port, to recognise connections to it. */
static void find_proxy(struct http_client *n)
{
	static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy",
					    "all_proxy", "ALL_PROXY"};
	const char *text = NULL, *colon;
	uint32_t port = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && (!text || !*text); i++)
		text = getenv(names[i]);
	if (!text || !*text)
		return;
	n->proxied = true;
	colon = strrchr(text, ':');
	for (const char *p = colon ? colon + 1 : ""; *p >= '0' && *p <= '9' && port < 65536;
	     p++)
		port = port * 10 + (uint32_t)(*p - '0');
	n->proxy_port = port && port < 65536 ? (uint16_t)port : 1080;
}

int http_client_new(const struct http_client_options *opts, struct http_client **ret,
		    struct err *e)
{
	struct http_client *n = calloc(1, sizeof(*n));

	if (!n)
		return err_nomem(e);
	(void)pthread_mutex_init(&n->lock, NULL);
	for (size_t i = 0; i < ARRAY_LEN(n->lists); i++)
		list_init(&n->lists[i]);
	n->opts = *opts;
	n->opts.tries = opts->tries ? opts->tries : 1;
	n->opts.connections = opts->connections ? opts->connections : 1;
	n->opts.requests = (uint32_t)u64_max(opts->requests, n->opts.connections);
	n->spare = alloc_array(n->opts.requests, sizeof(*n->spare));
	if (!n->spare) {
		http_client_free(n);
		return err_nomem(e);
	}
	find_proxy(n);
	*ret = n;
	return 0;
}

#define WAKE_TRIES 100

/* wake - make the thread look at its inbox. A failed wake-up is repeated: otherwise the thread
 * would sleep until another event. */
static void wake(struct http_client *n)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < WAKE_TRIES && curl_multi_wakeup(n->multi) != CURLM_OK; i++)
		(void)nanosleep(&ms, NULL);
}

static void http_end(struct http_client *n, bool ending)
{
	bool started;

	(void)pthread_mutex_lock(&n->lock);
	n->stopping = true;
	n->ending = ending;
	started = n->started;
	(void)pthread_mutex_unlock(&n->lock);
	if (started)
		wake(n);
	if (started && ending)
		(void)pthread_join(n->thread, NULL);
}

void http_client_stop(struct http_client *n)
{
	http_end(n, false);
}

void http_client_free(struct http_client *n)
{
	if (!n)
		return;
	http_end(n, true);
	if (n->multi)
		(void)curl_multi_cleanup(n->multi);
	(void)pthread_mutex_destroy(&n->lock);
	str_wipe(n->netrc);
	free(n->spare);
	free(n);
}

/* Requests. */

static void request_free(struct http_transfer *r)
{
	http_response_release(&r->a);
	url_release(&r->first);
	url_release(&r->at);
	for (size_t i = 0; i < ARRAY_LEN(r->owned); i++)
		str_wipe(r->owned[i]);
	for (size_t i = 0; r->want.headers && r->want.headers[i]; i++)
		str_wipe((char *)(uintptr_t)r->want.headers[i]);
	free((void *)(uintptr_t)r->want.headers);
	free(r);
}

void http_finish(struct http_transfer *r)
{
	struct http_client *n = r->net;

	(void)pthread_mutex_lock(&n->lock);
	n->counts.in_flight--;
	(void)pthread_mutex_unlock(&n->lock);
	if (r->a.rc < 0 && r->a.rc != -ECANCELED && r->a.rc != -EINTR &&
	    (r->a.status == 0 || r->a.status >= 500))
		metrics_count(M_FAULT_HTTP);
	metrics_add(M_REMOTE_READ_BYTES, r->a.body.len);
	r->done(r->arg, &r->a);
	request_free(r);
}

static int copy_headers(struct http_transfer *r, const char *const *headers, struct err *e)
{
	size_t n = 0;
	char **to;

	while (headers && headers[n])
		n++;
	to = alloc_array(n + 1, sizeof(*to));
	r->want.headers = (const char *const *)to;
	if (!to)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++) {
		if (strpbrk(headers[i], "\r\n"))
			return err_set(e, -EINVAL, "a request header contains a line break");
		to[i] = strdup(headers[i]);
		if (!to[i])
			return err_nomem(e);
	}
	return 0;
}

static int copy_want(struct http_transfer *r, const struct http_request *w, struct err *e)
{
	bool failed = false;

	r->want = *w;
	r->want.headers = NULL;
	r->want.method = r->owned[0] = str_copy(w->method, &failed);
	r->want.url = r->owned[1] = str_copy(w->url, &failed);
	r->want.user = r->owned[2] = str_copy(w->user, &failed);
	r->want.password = r->owned[3] = str_copy(w->password, &failed);
	r->want.bearer = r->owned[4] = str_copy(w->bearer, &failed);
	return failed ? err_nomem(e) : copy_headers(r, w->headers, e);
}

/* check_want - check a request before it is sent. */
static int check_want(const struct http_client *n, struct http_transfer *r, struct err *e)
{
	const struct http_request *w = &r->want;
	bool secret = w->user || w->bearer;
	auto_buf b = buf_of(URL_MAX * 4);

	if (strcmp(r->at.scheme, "http") != 0 && strcmp(r->at.scheme, "https") != 0)
		return err_set(e, -EINVAL,
			       "'%s': only http:// and https:// addresses are supported",
			       http_shown(&r->at, &b));
	if (w->bearer && strpbrk(w->bearer, "\r\n"))
		return err_set(e, -EINVAL, "the bearer token contains a line break");
	if (secret && strcmp(r->at.scheme, "http") == 0 && !n->opts.plain_secrets &&
	    !http_is_here(r->at.host))
		return err_set(e, -EACCES,
			       "'%s': a password or token would be sent unencrypted over "
			       "http://: use https://",
			       http_shown(&r->at, &b));
	return 0;
}

static int request_new(struct http_client *n, const struct http_request *w, http_done_fn *done,
		       void *arg, struct http_transfer **ret, struct err *e)
{
	struct http_transfer *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e);
	r->net = n;
	r->done = done;
	r->arg = arg;
	buf_init(&r->a.body, HTTP_ERROR_BYTES);
	rc = copy_want(r, w, e);
	rc = rc ? rc : url_parse(r->want.url, &r->first, e);
	rc = rc ? rc : url_parse(r->want.url, &r->at, e);
	rc = rc ? rc : check_want(n, r, e);
	r->since = clock_ns();
	if (rc < 0)
		request_free(r);
	else
		*ret = r;
	return rc;
}

/* start_thread - start the thread for requests. Locked. */
static int start_thread(struct http_client *n, struct err *e)
{
	int rc;

	(void)pthread_once(&curl_once, curl_begin);
	if (!n->multi && curl_ready == CURLE_OK)
		n->multi = curl_multi_init();
	if (!n->multi)
		return err_nomem(e);
	if (curl_multi_wakeup(n->multi) !=
	    CURLM_OK) { /* it works without descriptors for that */
		(void)curl_multi_cleanup(n->multi);
		n->multi = NULL;
		return err_set(e, -EMFILE,
			       "cannot send requests: no file descriptors are left");
	}
	rc = thread_start(&n->thread, http_run, n);
	if (rc)
		return err_sys(e, rc, "cannot start the thread for requests");
	n->started = true;
	return 0;
}

/* submit - hand a request to the thread. If this fails, the request is freed. */
static int submit(struct http_client *n, struct http_transfer *r, struct err *e)
{
	int rc = 0;

	(void)pthread_mutex_lock(&n->lock);
	if (n->stopping)
		rc = err_set(e, -ECANCELED,
			     "no more requests are accepted: the dataset is being unmounted");
	else if (!n->started)
		rc = start_thread(n, e);
	if (rc == 0) {
		list_append(&n->lists[HTTP_INBOX], &r->link);
		n->counts.requests++;
		metrics_count(M_REMOTE_REQUESTS);
		n->counts.in_flight++;
	}
	(void)pthread_mutex_unlock(&n->lock);
	if (rc == 0)
		wake(n);
	else
		request_free(r);
	return rc;
}

int http_start(struct http_client *n, const struct http_request *w, http_done_fn *done,
	       void *arg, struct err *e)
{
	struct http_transfer *r = NULL;
	int rc = request_new(n, w, done, arg, &r, e);

	return rc < 0 ? rc : submit(n, r, e);
}

/* Waiting. The body and the destination of the answer belong to the caller: a cancelled caller
 * waits until the thread does not use them any more, which it does at once. */
struct http_wait {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct http_transfer *r; /* valid until done */
	struct http_response *ret;
	bool done; /* lock */
};

static void on_done(void *arg, struct http_response *a)
{
	struct http_wait *w = arg;

	(void)pthread_mutex_lock(&w->lock);
	*w->ret = *a;
	buf_init(&a->body, 0);
	w->done = true;
	(void)pthread_cond_signal(&w->cond);
	(void)pthread_mutex_unlock(&w->lock);
}

/* http_await - -EINTR if the caller is cancelled. */
static int http_await(struct http_client *n, struct http_wait *w)
{
	int rc = 0;

	(void)pthread_mutex_lock(&w->lock);
	while (!w->done && rc == 0)
		rc = cancel_wait(&w->cond, &w->lock);
	if (w->done)
		rc = 0;
	if (!w->done) {
		atomic_store(&w->r->cancelled, true);
		atomic_fetch_add(&n->cancels, 1);
		wake(n);
	}
	while (!w->done)
		(void)pthread_cond_wait(&w->cond, &w->lock);
	(void)pthread_mutex_unlock(&w->lock);
	return rc;
}

int http_do(struct http_client *n, const struct http_request *want, struct http_response *ret,
	    struct err *e)
{
	struct http_wait w = {.ret = ret};
	int rc;

	*ret = (struct http_response){0};
	rc = request_new(n, want, on_done, &w, &w.r, &ret->e);
	if (rc == 0) {
		(void)pthread_mutex_init(&w.lock, NULL);
		cancel_cond_init(&w.cond);
		rc = submit(n, w.r, &ret->e);
		if (rc == 0 && http_await(n, &w) < 0 && ret->rc == -ECANCELED)
			ret->rc = err_set(&ret->e, -EINTR, "cancelled");
		(void)pthread_cond_destroy(&w.cond);
		(void)pthread_mutex_destroy(&w.lock);
	}
	if (rc < 0)
		ret->rc = rc;
	if (ret->rc < 0 && e)
		*e = ret->e;
	return ret->rc;
}

void http_response_release(struct http_response *a)
{
	buf_release(&a->body);
}

int http_header(struct http_transfer *r, const char *line, struct err *e)
{
	struct curl_slist *more;

	if (strpbrk(line, "\r\n"))
		return err_set(e, -EINVAL, "a request header contains a line break");
	more = curl_slist_append(r->headers, line);
	if (!more)
		return err_nomem(e);
	r->headers = more;
	return 0;
}

void http_get_counts(struct http_client *n, struct http_counts *ret)
{
	(void)pthread_mutex_lock(&n->lock);
	*ret = n->counts;
	(void)pthread_mutex_unlock(&n->lock);
}
