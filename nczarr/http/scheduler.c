/* SPDX-License-Identifier: BSD-3-Clause */
/* scheduler.c - the client's thread: the order of requests, and time-outs.
 *
 * A request waits in a queue until its host has room, so that libcurl never delays one: measured
 * times are then those of the server. Background requests use the remaining capacity. */
#include "nczarr/http/http_int.h"

#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_HTTP
#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/os/cancel.h"

enum { HOSTS_KEPT = 64, IDLE_MS = 60 * 1000, BUSY_MS = 1000 };

void http_put(struct http_list *l, struct http_transfer *r)
{
	r->next = NULL;
	r->prev = l->last;
	if (l->last)
		l->last->next = r;
	else
		l->first = r;
	l->last = r;
	l->n++;
}

void http_take(struct http_list *l, struct http_transfer *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		l->first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		l->last = r->prev;
	l->n--;
}

/* Hosts. */

/* find_host - the host of this key; a new one takes the place of idle ones. NULL: out of memory. */
static struct http_host *find_host(struct http_client *n, const char *key)
{
	struct http_host **at = &n->hosts, *h = n->hosts;

	while (h && strcmp(h->key, key) != 0)
		h = h->next;
	if (h)
		return h;
	h = calloc(1, sizeof(*h) + strlen(key) + 1);
	if (!h)
		return NULL;
	memcpy(h->key, key, strlen(key) + 1);
	while (*at && n->n_hosts >= HOSTS_KEPT) {
		struct http_host *old = *at;

		if (old->refs) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		free(old);
		n->n_hosts--;
	}
	h->next = n->hosts;
	n->hosts = h;
	n->n_hosts++;
	return h;
}

static void leave_host(struct http_transfer *r)
{
	if (r->host)
		r->host->refs--;
	r->host = NULL;
}

/* set_host - set the host of the current address of r. */
static bool set_host(struct http_transfer *r)
{
	struct buf key;

	leave_host(r);
	buf_init(&key, URL_MAX);
	buf_printf(&key, "%s://%s:%u", r->at.scheme, r->at.host, (unsigned int)r->at.port);
	buf_putc(&key, '\0');
	r->host = buf_ok(&key) ? find_host(r->net, (const char *)key.data) : NULL;
	buf_release(&key);
	if (r->host)
		r->host->refs++;
	return r->host != NULL;
}

/* Ends. */

static void scheduler_finish(struct http_transfer *r)
{
	struct buf b;

	if (log_enabled(LOG_DEBUG)) {
		buf_init(&b, URL_MAX * 2);
		log_debug("%s '%s': HTTP %u, %d, attempts: %u", r->want.method,
			  http_shown(&r->at, &b), (unsigned int)r->a.status, r->a.rc,
			  (unsigned int)r->a.tries);
		buf_release(&b);
	}
	leave_host(r);
	http_finish(r);
}

static void queue(struct http_transfer *r)
{
	struct http_client *n = r->net;

	if (!r->host && !set_host(r)) {
		http_fail(r, -ENOMEM, "out of memory");
		scheduler_finish(r);
		return;
	}
	http_put(r->want.background ? &n->back : &n->front, r);
}

/* land - end a try and release its handle. */
static void land(struct http_transfer *r)
{
	struct http_client *n = r->net;

	http_take(&n->flying, r);
	r->host->flying--;
	if (r->want.background)
		r->host->behind--;
	(void)curl_multi_remove_handle(n->multi, r->easy);
	http_try_end(r);
}

/* scheduler_settle - retry, redirect or finish a request whose try has ended. */
static void scheduler_settle(struct http_transfer *r, CURLcode code)
{
	enum http_verdict verdict;
	long version = 0;

	if (r->a.status)
		(void)curl_easy_getinfo(r->easy, CURLINFO_HTTP_VERSION, &version);
	r->host->http2 |= version == CURL_HTTP_VERSION_2_0;
	r->host->http1 |= version && version != CURL_HTTP_VERSION_2_0;
	verdict = http_verdict(r, code);
	if (r->a.status && r->a.status < 500)
		r->host->last_good = clock_ns();
	land(r);
	if (verdict == HTTP_ELSEWHERE && http_redirect(r) == 0) {
		leave_host(r);
		queue(r);
	} else if (verdict == HTTP_AGAIN) {
		r->due = clock_ns() + http_pause(r);
		http_put(&r->net->paused, r);
	} else {
		scheduler_finish(r);
	}
}

/* fly - start a try. */
static void fly(struct http_transfer *r)
{
	struct http_client *n = r->net;
	struct err e = ERR_INIT;
	int rc;

	r->begun = r->last_byte = clock_ns();
	if (!r->until)
		r->until = r->begun +
			   (r->want.total_ms ? r->want.total_ms : n->opts.total_ms) * HTTP_MS;
	(void)pthread_mutex_lock(&n->lock);
	n->counts.tries++;
	(void)pthread_mutex_unlock(&n->lock);
	http_put(&n->flying, r);
	r->host->flying++;
	if (r->want.background)
		r->host->behind++;
	rc = http_try(r, &e);
	if (rc == 0 && curl_multi_add_handle(n->multi, r->easy) == CURLM_OK)
		return;
	if (rc == 0)
		rc = err_nomem(&e);
	land(r);
	http_fail(r, rc, "%s", e.msg);
	scheduler_finish(r);
}

/* scheduler_start - start all requests that may start. A busy host delays only its own requests. */
static void scheduler_start(struct http_list *l)
{
	struct http_transfer *r = l->first, *next;

	for (; r; r = next) {
		const struct http_client *n = r->net;
		uint32_t most; /* with HTTP/2 all requests share a connection */

		next = r->next;
		if (n->flying.n >= n->opts.requests)
			return;
		most = r->host->http2 ? n->opts.requests : n->opts.connections;
		/* one place is reserved for requests that a thread waits for */
		if (r->host->flying >= most ||
		    (r->want.background && most > 1 && r->host->behind + 1 >= most))
			continue;
		http_take(l, r);
		fly(r);
	}
}

/* Times. */

/* too_long - the time-out that a try in flight has exceeded. */
static enum http_fault too_long(const struct http_transfer *r, int64_t now)
{
	const struct http_client_options *o = &r->net->opts;

	if (now >= r->until)
		return FAULT_TOTAL;
	if (r->sent)
		return now - r->last_byte >= o->stall_ms * HTTP_MS ? FAULT_STALL : FAULT_NONE;
	/* libcurl checks this, too, but not while it waits for another connection */
	return now - r->begun >= o->connect_ms * HTTP_MS ? FAULT_CONNECT : FAULT_NONE;
}

static void check_flying(struct http_client *n, int64_t now)
{
	struct http_transfer *r = n->flying.first, *next;

	for (; r; r = next) {
		next = r->next;
		r->fault = r->fault ? r->fault : too_long(r, now);
		if (r->fault >= FAULT_STALL)
			scheduler_settle(r, CURLE_OPERATION_TIMEDOUT);
	}
}

static void check_paused(struct http_client *n, int64_t now)
{
	struct http_transfer *r = n->paused.first, *next;

	for (; r; r = next) {
		next = r->next;
		if (now < r->due)
			continue;
		http_take(&n->paused, r);
		queue(r);
	}
}

/* check_queue - fail requests that were queued longer than their limit while the host answered
 * none. */
static void check_queue(struct http_client *n, struct http_list *l, int64_t now)
{
	struct http_transfer *r = l->first, *next;

	for (; r; r = next) {
		int64_t since = r->since > r->host->last_good ? r->since : r->host->last_good;
		uint32_t ms = r->want.total_ms ? r->want.total_ms : n->opts.total_ms;

		next = r->next;
		if (r->until ? now < r->until : now - since < ms * HTTP_MS)
			continue;
		http_take(l, r);
		http_fail(r, -ETIMEDOUT, "the server does not answer any request");
		scheduler_finish(r);
	}
}

static int64_t i64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* wait_ms - time until the next event. */
static int wait_ms(struct http_client *n, int64_t now)
{
	bool idle = !n->flying.n && !n->front.n && !n->back.n;
	int64_t when = now + (idle ? IDLE_MS : BUSY_MS) * HTTP_MS;

	for (const struct http_transfer *r = n->flying.first; r; r = r->next) {
		when = i64_min(when, r->until);
		when = i64_min(when, r->sent ? r->last_byte + n->opts.stall_ms * HTTP_MS
					     : r->begun + n->opts.connect_ms * HTTP_MS);
	}
	for (const struct http_transfer *r = n->paused.first; r; r = r->next)
		when = i64_min(when, r->due);
	return when > now ? (int)((when - now) / HTTP_MS) + 1 : 0;
}

/* Cancellation. */

static void cancel_in(struct http_list *l, bool all)
{
	struct http_transfer *r = l->first, *next;

	for (; r; r = next) {
		next = r->next;
		if (!all && !atomic_load(&r->cancelled))
			continue;
		if (l == &r->net->flying)
			land(r);
		else
			http_take(l, r);
		http_fail(r, -ECANCELED, "cancelled");
		scheduler_finish(r);
	}
}

static void scheduler_cancel(struct http_client *n, bool all)
{
	cancel_in(&n->flying, all);
	cancel_in(&n->paused, all);
	cancel_in(&n->front, all);
	cancel_in(&n->back, all);
}

/* take_inbox - queue new requests. Returns false if the thread has to end. */
static bool take_inbox(struct http_client *n, bool *ret_stopping)
{
	struct http_list in;
	struct http_transfer *r, *next;
	bool ending;

	(void)pthread_mutex_lock(&n->lock);
	in = n->inbox;
	n->inbox = (struct http_list){0};
	*ret_stopping = n->stopping;
	ending = n->ending;
	(void)pthread_mutex_unlock(&n->lock);
	for (r = in.first; r; r = next) {
		next = r->next;
		queue(r);
	}
	return !ending;
}

static void take_results(struct http_client *n)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(n->multi, &left)) != NULL) {
		struct http_transfer *r = n->flying.first;
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		while (r && r->easy != m->easy_handle)
			r = r->next;
		if (r)
			scheduler_settle(r, code); /* m is not valid any more */
	}
}

static void run_once(struct http_client *n)
{
	int running = 0;
	int64_t now = clock_ns();

	if (atomic_exchange(&n->cancels, 0))
		scheduler_cancel(n, false);
	check_paused(n, now);
	scheduler_start(&n->front);
	scheduler_start(&n->back);
	(void)curl_multi_perform(n->multi,
				 &running); /* errors are reported for each transfer */
	take_results(n);
	now = clock_ns();
	check_flying(n, now);
	check_queue(n, &n->front, now);
	check_queue(n, &n->back, now);
	scheduler_start(&n->front); /* finished requests made room */
	scheduler_start(&n->back);
}

void *http_run(void *arg)
{
	struct http_client *n = arg;
	bool stopping = false;

	while (take_inbox(n, &stopping)) {
		if (stopping)
			scheduler_cancel(n, true);
		else
			run_once(n);
		(void)curl_multi_poll(n->multi, NULL, 0, wait_ms(n, clock_ns()), NULL);
	}
	scheduler_cancel(n, true);
	while (n->n_spare)
		curl_easy_cleanup(n->spare[--n->n_spare]);
	while (n->hosts) {
		struct http_host *h = n->hosts;

		n->hosts = h->next;
		free(h);
	}
	return NULL;
}
