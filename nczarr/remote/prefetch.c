/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch.c - fetch the ranges announced by store_want(), in order.
 *
 * All stores share one queue. The thread that adds a range starts the requests that fit at once;
 * when data arrives or is read, the prefetch thread continues. The number of requests in flight
 * follows the measured link: enough to fill it, few if its latency is low. Prefetched data that is
 * not read counts against a limit for a while; after that it is ordinary cached data, and the next
 * ranges can be fetched. */
#include "nczarr/remote/cache_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/map.h"
#include "base/os/thread.h"

#define QUEUE_MOST 4096
#define WAITING_MOST 64           /* ranges that wait for an answer and are passed over */
#define GAP ((uint64_t)256 << 10) /* to fetch an unused gap costs less than another request */

/* prefetch_answer - state of a range: complete, the next request can start now, it waits
 * for an answer, or for room. */
enum prefetch_answer { DONE, MORE, LATER, BLOCKED };

/* prefetch_range - a range that store_want() announced. */
struct prefetch_range {
	struct list_link in; /* prefetcher.queue */
	struct link link;    /* prefetcher.ranges */
	struct rstore *st;
	uint64_t off, len;
	bool asked; /* the info was requested, once */
	size_t key_len;
	char key[];
};

struct prefetcher {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	pthread_t thread;
	bool running, ending, woken;
	bool busy;     /* a thread goes through the queue ... */
	bool again;    /* ... and must repeat it */
	uint32_t hold; /* callers that forbid it */
	struct list_link queue;
	struct map ranges; /* those of the queue, and those that are being served */
	_Atomic size_t n;  /* of them */
};

/* ---- the queue ---- */

static struct prefetch_range *range_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct prefetch_range, in);
}

/* prefetch_drop - free a range, in the queue or not. */
static void prefetch_drop(struct prefetcher *q, struct prefetch_range *w)
{
	list_remove(&w->in);
	map_remove(&q->ranges, &w->link);
	free(w);
	q->n--;
}

/* prefetch_add - queue a range that is not queued yet. */
static void prefetch_add(struct prefetcher *q, struct rstore *st, const struct store_range *r)
{
	size_t len = strlen(r->key);
	struct cache_lookup l = look_at(st, r->key, len);
	uint64_t hash = l.hash ^ r->off * UINT64_C(0x9e3779b97f4a7c15) ^ r->len;
	struct prefetch_range *w;

	MAP_EACH(w, &q->ranges, hash, link)
		if (w->st == st && w->off == r->off && w->len == r->len &&
		    strcmp(w->key, r->key) == 0)
			return;
	w = alloc_array(1, sizeof(*w) + len + 1);
	if (!w)
		return; /* it was only a hint */
	if (q->n >= QUEUE_MOST && !list_empty(&q->queue))
		prefetch_drop(q, range_of(q->queue.next));
	*w = (struct prefetch_range){.st = st, .off = r->off, .len = r->len, .key_len = len};
	memcpy(w->key, r->key, len + 1);
	if (map_add(&q->ranges, &w->link, hash) < 0) {
		free(w);
		return;
	}
	list_append(&q->queue, &w->in);
	q->n++;
}

/* ---- one range ---- */

/* covered - whether all of [from, to) is cached or in flight. The shard is locked. */
static bool covered(const struct cached_object *o, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t i = obj_at(o, from);

		if (i == o->n_xs || o->xs[i]->off > from)
			return false;
		from = o->xs[i]->off + o->xs[i]->len;
	}
	return true;
}

/* prefetch_span - the bytes of a known object that a range covers. */
static void prefetch_span(const struct cached_object *o, const struct store_range *r,
			  uint64_t *ret_from, uint64_t *ret_to)
{
	bool tail = r->off == UINT64_MAX;
	uint64_t from = tail ? o->size - u64_min(r->len, o->size) : u64_min(r->off, o->size);

	*ret_from = from;
	*ret_to = r->len > o->size - from ? o->size : from + r->len;
}

/* prefetch_needless - whether the cache already has a range, or knows that the object is absent. */
static bool prefetch_needless(struct rstore *st, const struct store_range *r)
{
	struct cache_lookup l = look_at(st, r->key, strlen(r->key));
	uint64_t from, to;
	LOCK_SCOPE(&l.shard->lock);

	if (!look_find(&l, false) || !obj_is_racy(st, l.obj->known_at))
		return false;
	if (l.obj->state != OBJ_THERE)
		return l.obj->state == OBJ_ABSENT;
	prefetch_span(l.obj, r, &from, &to);
	return l.obj->size == UINT64_MAX || covered(l.obj, from, to);
}

/* prefetch_ask - prepare the request for the info of an unknown object, with the wanted
 * bytes of it. The shard is locked. */
static int prefetch_ask(struct cache_lookup *l, const struct prefetch_range *w, struct job *ret)
{
	uint64_t head = rc_beginning(l->st, l->key), from = w->off / RC_BLOCK * RC_BLOCK, end;

	if (w->off == UINT64_MAX)
		return fetch_ask(l, OBJECT_TAIL, 0, u64_min(w->len, l->st->cache->piece), ret);
	if (ckd_add(&end, w->off, w->len) || end <= head || from == 0)
		return fetch_ask(l, OBJECT_PART, 0, head, ret);
	return fetch_ask(l, OBJECT_PART, from, u64_min(end - from, l->st->cache->piece), ret);
}

/* begin_known - prepare a request for the missing part of [from, to), or, if all of it is cached
 * but the info is too old, for the info. The shard is locked. */
static enum prefetch_answer begin_known(struct cache_lookup *l, struct prefetch_range *w,
					uint64_t from, uint64_t to, struct job *ret,
					size_t *ret_n)
{
	struct object_cache *c = l->st->cache;

	if (l->obj->n_xs && !w->asked && !obj_is_racy(l->st, l->obj->known_at)) {
		if (!rc_may_start(c, 0))
			return BLOCKED;
		w->asked = true;
		*ret_n = fetch_ask(l, OBJECT_HEAD, 0, 0, ret) == 0;
		return LATER;
	}
	if (covered(l->obj, from, to))
		return DONE;
	if (!rc_may_start(c, to - from))
		return BLOCKED;
	*ret_n = fetch_plan(l, from, to, to, ret, 1);
	return *ret_n ? MORE : DONE;
}

/* prefetch_begin - start one request for w, if something is missing. */
static enum prefetch_answer prefetch_begin(struct prefetch_range *w)
{
	struct rstore *st = w->st;
	struct cache_lookup l = look_at(st, w->key, w->key_len);
	struct store_range r = {w->key, w->off, w->len};
	uint64_t from = 0, to = 0;
	enum prefetch_answer a = DONE;
	size_t n = 0;
	struct job j;

	if (prefetch_needless(st, &r) || look_absent(st, w->key))
		return DONE;
	(void)pthread_mutex_lock(&l.shard->lock);
	if (!look_find(&l, true)) {
		a = DONE; /* out of memory */
	} else if (l.obj->state == OBJ_THERE) {
		prefetch_span(l.obj, &r, &from, &to);
		if (l.obj->asking)
			a = LATER;
		else if (l.obj->size != UINT64_MAX)
			a = begin_known(&l, w, from, to, &j, &n);
	} else if (l.obj->asking) {
		a = LATER;
	} else if (!w->asked) {
		l.obj->state = OBJ_UNKNOWN;
		a = rc_may_start(st->cache, rc_guess(st, w->key)) ? LATER : BLOCKED;
		w->asked = a == LATER;
		n = w->asked && prefetch_ask(&l, w, &j) == 0;
	}
	(void)pthread_mutex_unlock(&l.shard->lock);
	if (n == 0)
		return a;
	j.prefetch = true;
	if (fetch_start(&l, &j, false))
		return a;
	w->asked = false;
	return BLOCKED;
}

/* ---- going through the queue ---- */

/* round_locked - go through the queue once. Incomplete ranges stay in front, in their order. */
static void round_locked(struct prefetcher *q)
{
	struct list_link kept;
	enum prefetch_answer a = DONE;

	list_init(&kept);
	for (size_t n = 0;
	     !list_empty(&q->queue) && n < WAITING_MOST && a != BLOCKED && !q->hold;
	     n += a != DONE) {
		struct prefetch_range *w = range_of(q->queue.next);

		list_remove(&w->in);
		(void)pthread_mutex_unlock(&q->lock);
		do /* start all requests for w that may start now */
			a = prefetch_begin(w);
		while (a == MORE);
		(void)pthread_mutex_lock(&q->lock);
		if (a == DONE)
			prefetch_drop(q, w);
		else
			list_append(&kept, &w->in);
	}
	for (struct list_link *last; (last = kept.prev) != &kept;) {
		list_remove(last);
		list_add(&q->queue, last);
	}
}

static void run_locked(struct prefetcher *q)
{
	q->again = true;
	if (q->busy)
		return;
	q->busy = true;
	while (q->again && !q->hold) {
		q->again = false;
		round_locked(q);
	}
	q->busy = false;
	(void)pthread_cond_broadcast(&q->idle);
}

static void *prefetch_main(void *arg)
{
	struct prefetcher *q = arg;

	(void)pthread_mutex_lock(&q->lock);
	while (!q->ending) {
		if (q->woken)
			run_locked(q);
		q->woken = false;
		if (!q->ending)
			(void)pthread_cond_wait(&q->work, &q->lock);
	}
	(void)pthread_mutex_unlock(&q->lock);
	return NULL;
}

void remote_prefetch_wake(struct object_cache *c)
{
	struct prefetcher *q = c->prefetcher;

	if (!q || atomic_load_explicit(&q->n, memory_order_relaxed) == 0)
		return;
	LOCK_SCOPE(&q->lock);
	q->woken = true;
	(void)pthread_cond_signal(&q->work);
}

/* merged - number of leading ranges of r[0, n) that are merged into one: adjacent ranges of one
 * object. */
static size_t merged(const struct object_cache *c, const struct store_range *r, size_t n,
		     struct store_range *ret)
{
	size_t i = 1;

	*ret = r[0];
	for (; i < n && strcmp(r[i].key, ret->key) == 0; i++) {
		uint64_t end, to, from = u64_min(ret->off, r[i].off);

		if (ckd_add(&end, ret->off, ret->len) || ckd_add(&to, r[i].off, r[i].len) ||
		    r[i].off > end + GAP || ret->off > to + GAP)
			break;
		end = u64_max(end, to);
		if (end - from > c->piece)
			break;
		ret->off = from;
		ret->len = end - from;
	}
	return i;
}

void remote_prefetch_request(struct rstore *st, const struct store_range *r, size_t n)
{
	struct prefetcher *q = st->cache->prefetcher;
	bool any = false;

	if (st->cache->prefetch_limit == 0)
		return;
	while (n > 0) {
		struct store_range one;
		size_t some = merged(st->cache, r, n, &one);

		r += some;
		n -= some;
		if (one.len == 0 || prefetch_needless(st, &one))
			continue;
		(void)pthread_mutex_lock(&q->lock);
		prefetch_add(q, st, &one);
		(void)pthread_mutex_unlock(&q->lock);
		any = true;
	}
	if (!any)
		return;
	LOCK_SCOPE(&q->lock);
	if (!q->running && !q->ending)
		q->running = thread_start(&q->thread, prefetch_main, q) == 0;
	run_locked(q);
}

void remote_prefetch_forget(struct rstore *st)
{
	struct prefetcher *q = st->cache->prefetcher;
	LOCK_SCOPE(&q->lock);

	q->hold++;
	while (q->busy)
		(void)pthread_cond_wait(&q->idle, &q->lock);
	for (struct list_link *l = q->queue.next, *next; l != &q->queue; l = next) {
		next = l->next;
		if (range_of(l)->st == st)
			prefetch_drop(q, range_of(l));
	}
	q->hold--;
}

int remote_prefetch_new(struct object_cache *c)
{
	struct prefetcher *q = alloc_array(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	(void)pthread_mutex_init(&q->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&q->work);
	cancel_cond_init(&q->idle);
	list_init(&q->queue);
	c->prefetcher = q;
	return 0;
}

void remote_prefetch_free(struct object_cache *c)
{
	struct prefetcher *q = c->prefetcher;

	if (!q)
		return;
	(void)pthread_mutex_lock(&q->lock);
	q->ending = true;
	q->hold++;
	(void)pthread_cond_broadcast(&q->work);
	(void)pthread_mutex_unlock(&q->lock);
	if (q->running)
		(void)pthread_join(q->thread, NULL);
	while (!list_empty(&q->queue))
		prefetch_drop(q, range_of(q->queue.next));
	map_free(&q->ranges);
	(void)pthread_cond_destroy(&q->work);
	(void)pthread_cond_destroy(&q->idle);
	(void)pthread_mutex_destroy(&q->lock);
	free(q);
	c->prefetcher = NULL;
}
