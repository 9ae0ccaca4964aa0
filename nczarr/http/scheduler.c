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
#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/os/cancel.h"

enum { HOSTS_KEPT = 64, IDLE_MS = 60 * 1000, BUSY_MS = 1000 };

static struct http_transfer *transfer_of(struct list_link *at)
{
	return CONTAINER_OF(at, struct http_transfer, link);
}

/* for_each - call fn for each request of a list; fn may take it out, but no other one. */
static void for_each(struct list_link *list, void (*fn)(struct http_transfer *r, int64_t arg),
		     int64_t arg)
{
	for (struct list_link *at = list->next, *next; at != list; at = next) {
		next = at->next;
		fn(transfer_of(at), arg);
	}
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
	auto_free char *key = str_printf("%s://%s:%u", r->at.scheme, r->at.host,
					 (unsigned int)r->at.port);

	leave_host(r);
	r->host = key ? find_host(r->net, key) : NULL;
	if (r->host)
		r->host->refs++;
	return r->host != NULL;
}

/* Ends. */

static void scheduler_finish(struct http_transfer *r)
{
	auto_buf b = buf_of(URL_MAX * 2);

	if (log_enabled(LOG_DEBUG))
		log_debug("%s '%s': HTTP %u, %d, attempts: %u", r->want.method,
			  http_shown(&r->at, &b), (unsigned int)r->a.status, r->a.rc,
			  (unsigned int)r->a.tries);
	leave_host(r);
	http_finish(r);
}

static void queue(struct http_transfer *r)
{
	if (!r->host && !set_host(r)) {
		http_fail(r, -ENOMEM, "out of memory");
		scheduler_finish(r);
		return;
	}
	list_append(&r->net->lists[r->want.background ? HTTP_BACK : HTTP_FRONT], &r->link);
}

/* land - end a try and release its handle. */
static void land(struct http_transfer *r)
{
	struct http_client *n = r->net;

	list_remove(&r->link);
	n->n_flying--;
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
		list_append(&r->net->lists[HTTP_PAUSED], &r->link);
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

	list_remove(&r->link);
	r->last_byte = clock_ns();
	if (!r->until)
		r->until = r->last_byte + http_total_ms(r) * HTTP_MS;
	list_append(&n->lists[HTTP_FLYING], &r->link);
	n->n_flying++;
	r->host->flying++;
	if (r->want.background)
		r->host->behind++;
	rc = http_try(r, &e);
	if (rc == 0 && curl_multi_add_handle(n->multi, r->easy) == CURLM_OK)
		return;
	rc = rc ? rc : err_nomem(&e);
	land(r);
	http_fail(r, rc, "%s", e.msg);
	scheduler_finish(r);
}

/* scheduler_start - start a queued request if it may start: a busy host delays only its own. */
static void scheduler_start(struct http_transfer *r, int64_t arg NZ_UNUSED)
{
	const struct http_client_options *o = &r->net->opts;
	/* with HTTP/2 all requests share a connection */
	const uint32_t most = r->host->http2 ? o->requests : o->connections;

	/* one place is reserved for requests that a thread waits for */
	if (r->net->n_flying < o->requests && r->host->flying < most &&
	    !(r->want.background && most > 1 && r->host->behind + 1 >= most))
		fly(r);
}

/* Times. */

static int64_t i64_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* silent_until - the time at which a try in flight has to be connected, or to get a byte. libcurl
 * checks the first, too, but not while the try waits for another connection. */
static int64_t silent_until(const struct http_transfer *r)
{
	const struct http_client_options *o = &r->net->opts;

	return r->last_byte + (r->sent ? o->stall_ms : o->connect_ms) * HTTP_MS;
}

static void check_flying(struct http_transfer *r, int64_t now)
{
	if (!r->fault && now >= r->until)
		r->fault = FAULT_TOTAL;
	else if (!r->fault && now >= silent_until(r))
		r->fault = r->sent ? FAULT_STALL : FAULT_CONNECT;
	if (r->fault >= FAULT_STALL)
		scheduler_settle(r, CURLE_OPERATION_TIMEDOUT);
}

static void check_paused(struct http_transfer *r, int64_t now)
{
	if (now < r->due)
		return;
	list_remove(&r->link);
	queue(r);
}

/* check_queued - fail a request that was queued longer than its limit while the host answered
 * none. */
static void check_queued(struct http_transfer *r, int64_t now)
{
	int64_t since = r->since > r->host->last_good ? r->since : r->host->last_good;

	if (now < (r->until ? r->until : since + http_total_ms(r) * HTTP_MS))
		return;
	list_remove(&r->link);
	http_fail(r, -ETIMEDOUT, "the server does not answer any request");
	scheduler_finish(r);
}

/* wait_ms - time until the next event. */
static int wait_ms(struct http_client *n, int64_t now)
{
	const struct list_link *flying = &n->lists[HTTP_FLYING], *paused = &n->lists[HTTP_PAUSED];
	bool idle = list_empty(flying) && list_empty(&n->lists[HTTP_FRONT]) &&
		    list_empty(&n->lists[HTTP_BACK]);
	int64_t when = now + (idle ? IDLE_MS : BUSY_MS) * HTTP_MS;

	for (struct list_link *at = flying->next; at != flying; at = at->next) {
		when = i64_min(when, transfer_of(at)->until);
		when = i64_min(when, silent_until(transfer_of(at)));
	}
	for (struct list_link *at = paused->next; at != paused; at = at->next)
		when = i64_min(when, transfer_of(at)->due);
	return when > now ? (int)((when - now) / HTTP_MS) + 1 : 0;
}

/* Cancellation. */

static void cancel_one(struct http_transfer *r, int64_t all)
{
	if (!all && !atomic_load(&r->cancelled))
		return;
	if (r->easy)
		land(r);
	else
		list_remove(&r->link);
	http_fail(r, -ECANCELED, "cancelled");
	scheduler_finish(r);
}

static void scheduler_cancel(struct http_client *n, bool all)
{
	for (int i = 0; i < HTTP_INBOX; i++)
		for_each(&n->lists[i], cancel_one, all);
}

/* take_inbox - queue new requests. Returns false if the thread has to end. */
static bool take_inbox(struct http_client *n, bool *ret_stopping)
{
	struct list_link *at;
	bool ending;

	do {
		(void)pthread_mutex_lock(&n->lock);
		at = list_take(&n->lists[HTTP_INBOX]);
		*ret_stopping = n->stopping;
		ending = n->ending;
		(void)pthread_mutex_unlock(&n->lock);
		if (at)
			queue(transfer_of(at));
	} while (at);
	return !ending;
}

static void take_results(struct http_client *n)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(n->multi, &left)) != NULL) {
		CURLcode code = m->data.result;
		void *r = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
		scheduler_settle(r, code); /* m is not valid any more */
	}
}

static void run_once(struct http_client *n)
{
	int running = 0;
	int64_t now = clock_ns();

	if (atomic_exchange(&n->cancels, 0))
		scheduler_cancel(n, false);
	for_each(&n->lists[HTTP_PAUSED], check_paused, now);
	for_each(&n->lists[HTTP_FRONT], scheduler_start, 0);
	for_each(&n->lists[HTTP_BACK], scheduler_start, 0);
	(void)curl_multi_perform(n->multi,
				 &running); /* errors are reported for each transfer */
	take_results(n);
	now = clock_ns();
	for_each(&n->lists[HTTP_FLYING], check_flying, now);
	for (int i = HTTP_FRONT; i <= HTTP_BACK; i++) {
		for_each(&n->lists[i], check_queued, now);
		for_each(&n->lists[i], scheduler_start, 0); /* finished requests made room */
	}
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
