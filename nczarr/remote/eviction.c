/* SPDX-License-Identifier: BSD-3-Clause */
/* eviction.c - the memory budget of all stores of a mount, and the choice of victims.
 *
 * Ready extents are in one of three queues: prefetched and not read yet; new; and main, those that
 * were read more than once, so that a long scan does not evict them. Victims are new extents that
 * were read to their end, then the oldest new ones or, by the clock algorithm, those of main.
 * Readers do not move extents: they count bytes. Prefetched ones are the last choice. */
#include "nczarr/remote/cache_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/observe/metrics.h"

#define LIMIT_MIN ((uint64_t)1 << 20)
#define SPENT_SEARCHED 8
#define FAST_NS ((int64_t)3 * 1000 * 1000)
#define IN_FLIGHT_MIN ((uint64_t)16 << 20)
#define GRAIN_MOST ((uint64_t)1 << 20)
#define EXPIRE_NS ((int64_t)1000 * 1000 * 1000)
#define SPAN_NS ((int64_t)200 * 1000 * 1000)

static struct ext *ext_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct ext, in);
}

/* move_locked - move x to queue q. */
static void move_locked(struct object_cache *c, struct ext *x, enum ext_queue q)
{
	if (x->queue != Q_NONE) {
		c->queued[x->queue] -= x->charged;
		list_remove(&x->in);
	}
	x->queue = q;
	if (q != Q_NONE) {
		c->queued[q] += x->charged;
		list_append(&c->queues[q], &x->in);
	}
}

/* settle_locked - do not count x as prefetched any more. */
static void settle_locked(struct object_cache *c, struct ext *x)
{
	atomic_store_explicit(&x->prefetched, false, memory_order_relaxed);
	c->prefetch_bytes -= x->prefetch_charged;
	x->prefetch_charged = 0;
	if (x->queue == Q_PREFETCH)
		move_locked(c, x, Q_NEW);
}

void rc_settle(struct ext *x)
{
	struct object_cache *c = x->cache;

	(void)pthread_mutex_lock(&c->lock);
	settle_locked(c, x);
	(void)pthread_mutex_unlock(&c->lock);
	remote_prefetch_wake(c);
}

void rc_granted(struct ext *x, uint64_t n, bool prefetch)
{
	struct object_cache *c = x->cache;
	LOCK_SCOPE(&c->lock);

	x->charged = n;
	if (prefetch) {
		x->prefetch_charged = n;
		x->in_flight = u64_max(n, 1);
		c->prefetch_bytes += n;
		c->in_flight += x->in_flight;
		c->n_in_flight++;
		atomic_store(&x->prefetched, true);
	}
}

void rc_landed(struct ext *x)
{
	struct object_cache *c = x->cache;
	LOCK_SCOPE(&c->lock);

	if (x->in_flight) {
		c->in_flight -= x->in_flight;
		c->n_in_flight--;
		x->in_flight = 0;
	}
}

bool rc_may_start(struct object_cache *c, uint64_t n)
{
	uint32_t most = c->connections ? c->connections : 16;
	struct list_link *list = &c->queues[Q_PREFETCH];
	int64_t now = clock_ns();
	uint64_t bytes;
	bool may;
	LOCK_SCOPE(&c->lock);

	n = u64_min(n, c->piece);
	bytes = (uint64_t)((double)c->line.rate * (double)c->line.rtt / 1e9) * 2;
	if (c->line.rtt && c->line.rtt < FAST_NS)
		most = most < 4 ? most : 4;
	/* extents that were not read for a while do not count as prefetched any more */
	if (c->prefetch_bytes + n > c->prefetch_limit)
		while (!list_empty(list) && now - ext_of(list->next)->since > EXPIRE_NS)
			settle_locked(c, ext_of(list->next));
	may = c->prefetch_bytes == 0 || c->prefetch_bytes + n <= c->prefetch_limit;
	if (c->n_in_flight)
		may = may && c->n_in_flight < most &&
		      c->in_flight + n <= u64_max(bytes, IN_FLIGHT_MIN);
	return may;
}

void rc_enqueue(struct ext *x)
{
	struct object_cache *c = x->cache;
	LOCK_SCOPE(&c->lock);

	x->since = clock_ns();
	move_locked(c, x, atomic_load(&x->prefetched) ? Q_PREFETCH : Q_NEW);
	if (c->waiting)
		(void)pthread_cond_broadcast(&c->room);
}

void rc_unqueue(struct ext *x)
{
	struct object_cache *c = x->cache;
	LOCK_SCOPE(&c->lock);

	settle_locked(c, x);
	move_locked(c, x, Q_NONE);
}

static void set_bytes_locked(struct object_cache *c, uint64_t n)
{
	c->bytes = n;
	metrics_gauge_set(G_MEM_REMOTE, (int64_t)n);
	c->peak = u64_max(c->peak, n);
}

void rc_charge(struct ext *x, uint64_t n)
{
	struct object_cache *c = x->cache;
	enum ext_queue q;
	LOCK_SCOPE(&c->lock);

	q = x->queue;
	move_locked(c, x, Q_NONE);
	set_bytes_locked(c, c->bytes - x->charged + n);
	x->charged = n;
	if (x->prefetch_charged) {
		c->prefetch_bytes = c->prefetch_bytes - x->prefetch_charged + n;
		x->prefetch_charged = n;
	}
	move_locked(c, x, q);
	if (c->waiting)
		(void)pthread_cond_broadcast(&c->room);
}

void ext_ref(struct ext *x)
{
	(void)atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
}

void ext_unref(struct ext *x)
{
	if (atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel) != 1)
		return;
	rc_charge(x, 0);
	free(x->data);
	free(x->why);
	free(x);
}

static uint64_t handed_of(struct ext *x)
{
	return atomic_load_explicit(&x->handed, memory_order_relaxed);
}

/* spent_locked - one of the oldest new extents that were read to their end, once. */
static struct ext *spent_locked(struct object_cache *c)
{
	struct list_link *l = c->queues[Q_NEW].next;

	for (int i = 0; i < SPENT_SEARCHED && l != &c->queues[Q_NEW]; i++) {
		struct ext *x = ext_of(l);

		l = l->next;
		if (handed_of(x) >= 2 * x->len && x->len) {
			x->marked = handed_of(x);
			move_locked(c, x, Q_MAIN);
		} else if (handed_of(x) >= x->len) {
			return x;
		}
	}
	return NULL;
}

/* clock_locked - an extent of main that was not read since the last scan. */
static struct ext *clock_locked(struct object_cache *c)
{
	struct list_link *list = &c->queues[Q_MAIN];

	for (int i = 0; !list_empty(list); i++) {
		struct ext *x = ext_of(list->next);

		if (handed_of(x) == x->marked || i > 1000)
			return x;
		x->marked = handed_of(x);
		move_locked(c, x, Q_MAIN);
	}
	return NULL;
}

/* eviction_victim_locked - the next victim, with a reference; NULL: none. */
static struct ext *eviction_victim_locked(struct object_cache *c, bool must)
{
	struct list_link *new = &c->queues[Q_NEW];
	struct ext *x = spent_locked(c);

	if (!x && (c->queued[Q_NEW] > c->limit / 2 || list_empty(&c->queues[Q_MAIN])) &&
	    !list_empty(new))
		x = ext_of(new->next);
	if (!x)
		x = clock_locked(c);
	if (!x && !list_empty(new))
		x = ext_of(new->next);
	if (!x && must && !list_empty(&c->queues[Q_PREFETCH]))
		x = ext_of(c->queues[Q_PREFETCH].next);
	if (!x)
		return NULL;
	settle_locked(c, x);
	move_locked(c, x, Q_NONE);
	ext_ref(x);
	return x;
}

/* evict - drop an extent; takes the reference. */
static void evict(struct ext *x)
{
	(void)pthread_mutex_lock(&x->shard->lock);
	if (x->attached)
		obj_detach(x->obj, x);
	(void)pthread_mutex_unlock(&x->shard->lock);
	ext_unref(x);
}

int rc_grant(struct object_cache *c, uint64_t n, bool must)
{
	int rc = 0;

	(void)pthread_mutex_lock(&c->lock);
	while (c->bytes + n > c->limit) {
		struct ext *x = eviction_victim_locked(c, must);

		if (x) {
			(void)pthread_mutex_unlock(&c->lock);
			evict(x);
			(void)pthread_mutex_lock(&c->lock);
			continue;
		}
		rc = -EAGAIN;
		if (must) {
			c->waiting++;
			rc = cancel_wait(&c->room, &c->lock);
			c->waiting--;
		}
		if (rc)
			break;
	}
	set_bytes_locked(c, c->bytes + (rc ? 0 : n));
	(void)pthread_mutex_unlock(&c->lock);
	return rc;
}

void rc_line_note(struct object_cache *c, int64_t took, uint64_t bytes)
{
	struct link_estimate *l = &c->line;
	int64_t now = clock_ns();
	double grain;
	uint64_t n;
	LOCK_SCOPE(&c->lock);

	/* the minimum, which slowly expires: links change */
	if (l->rtt == 0 || took < l->rtt)
		l->rtt = took > 0 ? took : 1;
	else if (++l->fetches % 64 == 0)
		l->rtt += (took - l->rtt) / 8;
	l->bytes += bytes;
	if (now - l->began > SPAN_NS) {
		uint64_t rate = (uint64_t)((double)l->bytes * 1e9 / (double)(now - l->began));

		l->rate = rate > l->rate ? rate : l->rate - (l->rate - rate) / 16;
		l->began = now;
		l->bytes = 0;
		/* the smallest request: what the link delivers in a sixteenth of a round trip */
		grain = (double)l->rate * (double)l->rtt / 1e9 / 16;
		n = grain > (double)GRAIN_MOST ? GRAIN_MOST : (uint64_t)grain;
		n = u64_max(RC_BLOCK, u64_min(n, c->piece) / RC_BLOCK * RC_BLOCK);
		atomic_store_explicit(&c->grain, n, memory_order_relaxed);
	}
}

uint64_t object_cache_peak(struct object_cache *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < RC_SHARDS; i++) {
		(void)pthread_mutex_lock(&c->shards[i].lock);
		n += c->shards[i].peak;
		(void)pthread_mutex_unlock(&c->shards[i].lock);
	}
	(void)pthread_mutex_lock(&c->lock);
	n += c->peak;
	(void)pthread_mutex_unlock(&c->lock);
	return n;
}

int object_cache_new(const struct remote_options *opts, struct object_cache **ret,
		     struct err *e)
{
	struct object_cache *c = alloc_array(1, sizeof(*c));
	uint64_t all = u64_max(opts->cache_bytes, LIMIT_MIN);

	if (!c)
		return err_nomem(e);
	c->limit = all - all / 8;
	c->shard_limit = all / 8 / RC_SHARDS;
	c->piece = u64_min(RC_PIECE, c->limit / 8 / RC_BLOCK * RC_BLOCK);
	c->head = u64_min(RC_HEAD, c->piece);
	c->prefetch_limit = u64_min(opts->prefetch_bytes, c->limit / 2);
	atomic_store(&c->grain, RC_BLOCK);
	c->connections = opts->connections;
	c->check_ns = (int64_t)opts->check_ms * 1000000;
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&c->room);
	for (size_t i = 0; i < Q_N; i++)
		list_init(&c->queues[i]);
	table_init(c);
	if (remote_prefetch_new(c) < 0 ||
	    keep_new(c, opts->cache_dir, opts->disk_bytes) < 0) {
		object_cache_free(c);
		return err_nomem(e);
	}
	*ret = c;
	return 0;
}

void object_cache_free(struct object_cache *c)
{
	if (!c)
		return;
	remote_prefetch_free(c);
	keep_free(c);
	table_release(c);
	while (c->roots) {
		struct cache_root *r = c->roots;

		c->roots = r->next;
		free(r);
	}
	(void)pthread_cond_destroy(&c->room);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}
