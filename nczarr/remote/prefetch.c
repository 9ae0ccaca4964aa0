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

#define QUEUE_MOST 4096
#define BUCKETS 1024
#define LATERS 64                 /* ranges that wait for an answer and are passed over */
#define GAP ((uint64_t)256 << 10) /* to fetch an unused gap costs less than another request */

/* remote_prefetch_answer - state of a range: complete, the next request can start now, it waits
 * for an answer, or for room. */
enum remote_prefetch_answer { DONE, MORE, LATER, BLOCKED };

struct want {
	struct want *next;  /* in queue order */
	struct want *chain; /* of the bucket */
	struct rstore *st;
	uint64_t hash, off, len;
	bool asked; /* the info was requested, once */
	size_t key_len;
	char key[];
};

struct early {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	pthread_t thread;
	bool running, ending, woken;
	bool pumping;  /* a thread goes through the queue ... */
	bool again;    /* ... and must repeat it */
	uint32_t hold; /* callers that forbid it */
	struct want *first, **last;
	struct want *buckets[BUCKETS];
	_Atomic size_t n;
};

/* ---- the queue ---- */

static void free_want(struct early *q, struct want *w)
{
	struct want **p = &q->buckets[w->hash % BUCKETS];

	while (*p && *p != w)
		p = &(*p)->chain;
	if (*p)
		*p = w->chain;
	free(w);
	q->n--;
}

static void drop_first(struct early *q)
{
	struct want *w = q->first;

	q->first = w->next;
	if (!q->first)
		q->last = &q->first;
	free_want(q, w);
}

static bool queued(const struct early *q, uint64_t hash, const struct rstore *st,
		   const struct store_range *r)
{
	const struct want *w = q->buckets[hash % BUCKETS];

	while (w && (w->hash != hash || w->st != st || w->off != r->off || w->len != r->len ||
		     strcmp(w->key, r->key) != 0))
		w = w->chain;
	return w;
}

static void remote_prefetch_add(struct early *q, struct rstore *st, const struct store_range *r)
{
	size_t len = strlen(r->key);
	struct cache_lookup l = look_at(st, r->key, len);
	uint64_t hash = l.hash ^ r->off * UINT64_C(0x9e3779b97f4a7c15) ^ r->len;
	struct want *w;

	if (queued(q, hash, st, r))
		return;
	w = alloc_array(1, sizeof(*w) + len + 1);
	if (!w)
		return; /* it was only a hint */
	if (q->n >= QUEUE_MOST)
		drop_first(q);
	*w = (struct want){
		.st = st, .hash = hash, .off = r->off, .len = r->len, .key_len = len};
	memcpy(w->key, r->key, len + 1);
	w->chain = q->buckets[hash % BUCKETS];
	q->buckets[hash % BUCKETS] = w;
	*q->last = w;
	q->last = &w->next;
	q->n++;
}

/* ---- one want ---- */

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

/* remote_prefetch_span - the bytes of a known object that a range covers. */
static void remote_prefetch_span(const struct cached_object *o, const struct store_range *r,
				 uint64_t *ret_from, uint64_t *ret_to)
{
	bool tail = r->off == UINT64_MAX;
	uint64_t from = tail ? o->size - u64_min(r->len, o->size) : u64_min(r->off, o->size);

	*ret_from = from;
	*ret_to = r->len > o->size - from ? o->size : from + r->len;
}

/* needless - whether the cache already has a range, or knows that the object is absent. */
static bool needless(struct rstore *st, const struct store_range *r)
{
	struct cache_lookup l = look_at(st, r->key, strlen(r->key));
	bool yes = false;
	uint64_t from, to;

	(void)pthread_mutex_lock(&l.shard->lock);
	if (look_find(&l, false) && obj_is_racy(st, l.obj->known_at)) {
		yes = l.obj->state == OBJ_ABSENT;
		if (l.obj->state == OBJ_THERE) {
			remote_prefetch_span(l.obj, r, &from, &to);
			yes = l.obj->size == UINT64_MAX || covered(l.obj, from, to);
		}
	}
	(void)pthread_mutex_unlock(&l.shard->lock);
	return yes;
}

/* remote_prefetch_ask - prepare the request for the info of an unknown object, with the wanted
 * bytes of it. The shard is locked. */
static int remote_prefetch_ask(struct cache_lookup *l, const struct want *w, struct job *ret)
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
static enum remote_prefetch_answer begin_known(struct cache_lookup *l, struct want *w,
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

/* remote_prefetch_begin - start one request for w, if something is missing. */
static enum remote_prefetch_answer remote_prefetch_begin(struct want *w)
{
	struct rstore *st = w->st;
	struct cache_lookup l = look_at(st, w->key, w->key_len);
	struct store_range r = {w->key, w->off, w->len};
	uint64_t from = 0, to = 0;
	enum remote_prefetch_answer a = DONE;
	size_t n = 0;
	struct job j;

	if (needless(st, &r) || look_absent(st, w->key))
		return DONE;
	(void)pthread_mutex_lock(&l.shard->lock);
	if (!look_find(&l, true)) {
		a = DONE; /* out of memory */
	} else if (l.obj->state == OBJ_THERE) {
		remote_prefetch_span(l.obj, &r, &from, &to);
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
		n = w->asked && remote_prefetch_ask(&l, w, &j) == 0;
	}
	(void)pthread_mutex_unlock(&l.shard->lock);
	if (n == 0)
		return a;
	j.early = true;
	if (fetch_start(&l, &j, false))
		return a;
	w->asked = false;
	return BLOCKED;
}

/* remote_prefetch_serve - start all requests for w that may start now. */
static enum remote_prefetch_answer remote_prefetch_serve(struct want *w)
{
	enum remote_prefetch_answer a;

	do
		a = remote_prefetch_begin(w);
	while (a == MORE);
	return a;
}

/* ---- going through the queue ---- */

/* round_locked - go through the queue once. Incomplete ranges stay in front, in their order. */
static void round_locked(struct early *q)
{
	struct want *kept = NULL, **end = &kept;
	enum remote_prefetch_answer a = DONE;

	for (size_t n = 0; q->first && n < LATERS && a != BLOCKED && !q->hold; n += a != DONE) {
		struct want *w = q->first;

		q->first = w->next;
		if (!q->first)
			q->last = &q->first;
		w->next = NULL;
		(void)pthread_mutex_unlock(&q->lock);
		a = remote_prefetch_serve(w);
		(void)pthread_mutex_lock(&q->lock);
		if (a == DONE) {
			free_want(q, w);
		} else {
			*end = w;
			end = &w->next;
		}
	}
	if (!kept)
		return;
	*end = q->first;
	if (!q->first)
		q->last = end;
	q->first = kept;
}

static void pump_locked(struct early *q)
{
	q->again = true;
	if (q->pumping)
		return;
	q->pumping = true;
	while (q->again && !q->hold) {
		q->again = false;
		round_locked(q);
	}
	q->pumping = false;
	(void)pthread_cond_broadcast(&q->idle);
}

static void *pump_main(void *arg)
{
	struct early *q = arg;

	(void)pthread_mutex_lock(&q->lock);
	while (!q->ending) {
		if (q->woken)
			pump_locked(q);
		q->woken = false;
		if (!q->ending)
			(void)pthread_cond_wait(&q->work, &q->lock);
	}
	(void)pthread_mutex_unlock(&q->lock);
	return NULL;
}

void remote_prefetch_wake(struct object_cache *c)
{
	struct early *q = c->early;

	if (!q || atomic_load_explicit(&q->n, memory_order_relaxed) == 0)
		return;
	(void)pthread_mutex_lock(&q->lock);
	q->woken = true;
	(void)pthread_cond_signal(&q->work);
	(void)pthread_mutex_unlock(&q->lock);
}

/* joined - number of leading ranges of r[0, n) that are merged into one: adjacent ranges of one
 * object. */
static size_t joined(const struct object_cache *c, const struct store_range *r, size_t n,
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
	struct early *q = st->cache->early;
	bool any = false;

	if (st->cache->prefetch_limit == 0)
		return;
	while (n > 0) {
		struct store_range one;
		size_t some = joined(st->cache, r, n, &one);

		r += some;
		n -= some;
		if (one.len == 0 || needless(st, &one))
			continue;
		(void)pthread_mutex_lock(&q->lock);
		remote_prefetch_add(q, st, &one);
		(void)pthread_mutex_unlock(&q->lock);
		any = true;
	}
	if (!any)
		return;
	(void)pthread_mutex_lock(&q->lock);
	if (!q->running && !q->ending)
		q->running = object_cache_thread(&q->thread, pump_main, q);
	pump_locked(q);
	(void)pthread_mutex_unlock(&q->lock);
}

void remote_prefetch_forget(struct rstore *st)
{
	struct early *q = st->cache->early;
	struct want **p;

	(void)pthread_mutex_lock(&q->lock);
	q->hold++;
	while (q->pumping)
		(void)pthread_cond_wait(&q->idle, &q->lock);
	for (p = &q->first; *p;) {
		struct want *w = *p;

		if (w->st == st) {
			*p = w->next;
			free_want(q, w);
		} else {
			p = &w->next;
		}
	}
	q->last = p;
	q->hold--;
	(void)pthread_mutex_unlock(&q->lock);
}

int remote_prefetch_new(struct object_cache *c)
{
	struct early *q = alloc_array(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	(void)pthread_mutex_init(&q->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&q->work);
	cancel_cond_init(&q->idle);
	q->last = &q->first;
	c->early = q;
	return 0;
}

void remote_prefetch_free(struct object_cache *c)
{
	struct early *q = c->early;

	if (!q)
		return;
	(void)pthread_mutex_lock(&q->lock);
	q->ending = true;
	q->hold++;
	(void)pthread_cond_broadcast(&q->work);
	(void)pthread_mutex_unlock(&q->lock);
	if (q->running)
		(void)pthread_join(q->thread, NULL);
	while (q->first)
		drop_first(q);
	(void)pthread_cond_destroy(&q->work);
	(void)pthread_cond_destroy(&q->idle);
	(void)pthread_mutex_destroy(&q->lock);
	free(q);
	c->early = NULL;
}
