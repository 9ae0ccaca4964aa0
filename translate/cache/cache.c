/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.c - one mutex, held for a few pointer operations; never across a load, an allocation of
 * a chunk's memory, or a free.
 *
 * Ready entries without references are in one of two lists: `idle`, least recently used first,
 * and `spent`, whose bytes a reader has taken completely (the kernel's page cache has them).
 * Room is made from `spent`, then from `idle`. Beyond a few spent entries their memory is taken
 * over by new chunks of the same size even when the budget would allow more: memory that was
 * used a moment ago is mapped and in the processor's cache. */
#include "translate/cache/cache.h"

#include "base/core/hash.h"
#include "base/core/list.h"
#include "base/core/map.h"
#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CONDS 16           /* waiters are spread over these by hash */
#define SPENT_KEPT 4       /* spent entries that are left alone while there is room */
#define SPENT_SEARCHED 8   /* how many are looked at for memory of the right size */
#define SPENT_SMALL 65536u /* recycling smaller buffers is not worth the loss: the allocator is
			    * fast */
#define PAGE 4096u
/* Calls of cache_get of a whole pool for which a cache keeps the entry that was used last: a reader
 * who takes a chunk in pieces is in the middle of it. */
#define POOL_ACTIVE 1024
/* Calls of cache_get after which a chunk that was loaded ahead is taken as not wanted. */
#define FORGOTTEN 1024

enum cache_state { LOADING, READY, FAILED };

struct cache_entry {
	struct link link;    /* in the cache's table; its hash stays when it is taken out */
	struct list_link in; /* in the idle or spent list while ready and without references, or in
			      * a list of entries to free */
	struct cache *cache;
	uint64_t linear;
	uint32_t array, refs;
	enum cache_state state;
	uint8_t *data;
	size_t len, cap;
	struct list_link unread; /* in the cache's list of that name */
	bool counted;            /* its memory is in the cache's loading */
	uint64_t ahead;          /* bytes counted in prefetch_bytes */
	uint64_t born;           /* n_gets when it was loaded ahead */
	_Atomic uint64_t handed; /* bytes given to readers */
	_Atomic bool ended;      /* the last byte was among them */
	struct err *error;       /* FAILED; NULL when memory was short for it */
	int code;                /* FAILED */
};

/* cache_pool - its lock is taken before that of a cache. */
struct cache_pool {
	pthread_mutex_t lock;
	struct list_link caches; /* lock */
	size_t n;            /* lock */
	uint64_t budget;     /* constant */
	_Atomic uint64_t bytes;
	_Atomic uint64_t clock; /* calls of cache_get */
};

struct cache {
	struct cache_pool *pool; /* constant once it is used */
	struct list_link in_pool; /* the pool's lock */
	_Atomic uint64_t used;   /* the pool's clock then */
	pthread_mutex_t lock;    /* of all below, and of entries but handed, ended */
	pthread_cond_t done[CONDS];
	uint64_t budget, bytes, prefetch_bytes, waiting, allocated, recycled;
	uint64_t n_gets;
	uint64_t loading;      /* memory of entries that are being loaded */
	pthread_cond_t landed; /* loading became less */
	uint64_t bound;        /* of loading; constant once it is used */
	bool remote;           /* constant once it is used */
	struct list_link idle, spent;
	struct list_link unread; /* loaded ahead and not asked for, oldest first */
	size_t n_spent;
	struct map table; /* of entries, by array and linear */
};

static struct cache_entry *entry_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct cache_entry, in);
}

static uint64_t cache_hash_of(uint32_t array, uint64_t linear)
{
	return hash_u64(linear ^ (uint64_t)array << 40);
}

struct cache *cache_new(uint64_t budget)
{
	struct cache *c = alloc_array(1, sizeof(*c));

	if (!c)
		return NULL;
	c->budget = budget;
	c->bound = UINT64_MAX;
	cancel_cond_init(&c->landed);
	list_init(&c->idle);
	list_init(&c->spent);
	list_init(&c->unread);
	list_init(&c->in_pool);
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail with default attributes */
	for (size_t i = 0; i < CONDS; i++)
		cancel_cond_init(&c->done[i]);
	return c;
}

void cache_of_remote(struct cache *c)
{
	c->remote = true;
}

void cache_bound(struct cache *c, uint64_t loading)
{
	c->bound = loading;
}

/* entry_free - x, unless it is NULL; the lock is not held. */
static void entry_free(struct cache_entry *x)
{
	if (!x)
		return;
	free(x->data);
	free(x->error);
	free(x);
}

/* entries_free - all of a list that they are in by `in`. */
static void entries_free(struct list_link *gone)
{
	struct list_link *l;

	while ((l = list_take(gone)) != NULL)
		entry_free(entry_of(l));
}

struct cache_pool *cache_pool_new(uint64_t budget)
{
	struct cache_pool *p = alloc_array(1, sizeof(*p));

	if (!p)
		return NULL;
	p->budget = budget;
	list_init(&p->caches);
	(void)pthread_mutex_init(&p->lock, NULL); /* cannot fail with default attributes */
	return p;
}

void cache_pool_free(struct cache_pool *p)
{
	if (!p)
		return;
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

void cache_join(struct cache *c, struct cache_pool *p)
{
	if (!p)
		return;
	c->pool = p;
	(void)pthread_mutex_lock(&p->lock);
	list_append(&p->caches, &c->in_pool);
	p->n++;
	(void)pthread_mutex_unlock(&p->lock);
}

static void cache_leave(struct cache *c)
{
	if (!c->pool)
		return;
	(void)pthread_mutex_lock(&c->pool->lock);
	list_remove(&c->in_pool);
	c->pool->n--;
	(void)pthread_mutex_unlock(&c->pool->lock);
	atomic_fetch_sub(&c->pool->bytes, c->bytes);
}

static void more_locked(struct cache *c, uint64_t n)
{
	c->bytes += n;
	metrics_gauge_add(G_MEM_DECODED, (int64_t)n);
	if (c->pool)
		atomic_fetch_add(&c->pool->bytes, n);
}

static void less_locked(struct cache *c, uint64_t n)
{
	c->bytes -= n;
	metrics_gauge_add(G_MEM_DECODED, -(int64_t)n);
	if (c->pool)
		atomic_fetch_sub(&c->pool->bytes, n);
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	cache_leave(c);
	for (struct link *l = map_walk(&c->table, NULL), *next; l; l = next) {
		next = map_walk(&c->table, l);
		entry_free(CONTAINER_OF(l, struct cache_entry, link));
	}
	map_free(&c->table);
	for (size_t i = 0; i < CONDS; i++)
		(void)pthread_cond_destroy(&c->done[i]);
	(void)pthread_cond_destroy(&c->landed);
	(void)pthread_mutex_destroy(&c->lock);
	metrics_gauge_add(G_MEM_DECODED, -(int64_t)c->bytes);
	free(c);
}

static struct cache_entry *cache_find_locked(struct cache *c, uint32_t array, uint64_t linear,
					     uint64_t hash)
{
	struct cache_entry *x;

	MAP_EACH(x, &c->table, hash, link)
		if (x->linear == linear && x->array == array)
			return x;
	return NULL;
}

/* insert_locked - put x, a new entry in flight with one reference, into the table. false: there is
 * no memory for it. */
static bool insert_locked(struct cache *c, struct cache_entry *x)
{
	if (map_add(&c->table, &x->link, x->link.hash) < 0)
		return false;
	more_locked(c, sizeof(*x));
	return true;
}

/* settle_prefetch_locked - x was requested, or never will be: it no longer counts as prefetched. */
static void settle_prefetch_locked(struct cache *c, struct cache_entry *x)
{
	list_remove(&x->unread);
	c->prefetch_bytes -= x->ahead;
	x->ahead = 0;
}

/* forget_locked - stop counting chunks whose reader went elsewhere. They stay until room is
 * needed, but do not keep other readers from being helped. */
static void forget_locked(struct cache *c)
{
	while (!list_empty(&c->unread)) {
		struct cache_entry *x =
			CONTAINER_OF(c->unread.next, struct cache_entry, unread);

		if (c->n_gets - x->born <= FORGOTTEN)
			return;
		settle_prefetch_locked(c, x);
	}
}

/* remove_locked - take x out of the table and the books; its memory is still its own. */
static void remove_locked(struct cache *c, struct cache_entry *x)
{
	map_remove(&c->table, &x->link);
	less_locked(c, sizeof(*x) + x->cap);
	settle_prefetch_locked(c, x);
}

static bool is_spent(struct cache_entry *x)
{
	return atomic_load_explicit(&x->ended, memory_order_relaxed) &&
	       atomic_load_explicit(&x->handed, memory_order_relaxed) >= x->len;
}

/* unlist_locked - take x, ready and without references, out of its list. */
static void unlist_locked(struct cache *c, struct cache_entry *x, bool spent)
{
	list_remove(&x->in);
	if (spent)
		c->n_spent--;
}

/* cache_victim_locked - remove the entry that is missed least; NULL when all are in use. */
static struct cache_entry *cache_victim_locked(struct cache *c)
{
	bool spent = !list_empty(&c->spent);
	struct list_link *l = spent ? c->spent.next : c->idle.next;

	if (l == &c->idle)
		return NULL;
	unlist_locked(c, entry_of(l), spent);
	remove_locked(c, entry_of(l));
	return entry_of(l);
}

/* oldest_locked - the cache that was used first at or after `from`. */
static struct cache *oldest_locked(struct cache_pool *p, uint64_t from, uint64_t *ret_used)
{
	struct cache *found = NULL;

	for (struct list_link *l = p->caches.next; l != &p->caches; l = l->next) {
		struct cache *c = CONTAINER_OF(l, struct cache, in_pool);
		uint64_t used = atomic_load(&c->used);

		if (used >= from && (!found || used < *ret_used)) {
			found = c;
			*ret_used = used;
		}
	}
	return found;
}

/* cache_shrink - while the caches of a pool together exceed its budget, free unused entries, those
 * of the least recently used cache first. The caller holds no lock. */
static void cache_shrink(struct cache_pool *p)
{
	struct list_link gone;
	struct cache_entry *x;
	uint64_t used = 0, from = 0;

	if (!p || atomic_load(&p->bytes) <= p->budget)
		return;
	list_init(&gone);
	(void)pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n && atomic_load(&p->bytes) > p->budget; i++) {
		struct cache *c = oldest_locked(p, from, &used);
		size_t kept = atomic_load(&p->clock) - used < POOL_ACTIVE;

		if (!c)
			break;
		from = used + 1;
		(void)pthread_mutex_lock(&c->lock);
		while (atomic_load(&p->bytes) > p->budget && c->table.n > kept) {
			x = cache_victim_locked(c);
			if (!x)
				break;
			list_append(&gone, &x->in);
		}
		(void)pthread_mutex_unlock(&c->lock);
	}
	(void)pthread_mutex_unlock(&p->lock);
	entries_free(&gone);
}

/* use_locked - one more reference to x. */
static void use_locked(struct cache *c, struct cache_entry *x)
{
	if (x->refs++ == 0)
		unlist_locked(c, x, is_spent(x));
}

static struct cache_entry *entry_new(struct cache *c, uint32_t array, uint64_t linear,
				     uint64_t hash)
{
	struct cache_entry *x = alloc_array(1, sizeof(*x));

	if (!x)
		return NULL;
	list_init(&x->in);
	list_init(&x->unread);
	x->cache = c;
	x->array = array;
	x->linear = linear;
	x->link.hash = hash;
	x->refs = 1;
	x->state = LOADING;
	return x;
}

/* cache_wait_locked - wait until the flight of x ends. The caller holds a reference. Returns 0 or
 * the flight's error; on error the reference has been dropped. Releases the lock. */
static int cache_wait_locked(struct cache *c, struct cache_entry *x, struct err *e)
{
	pthread_cond_t *done = &c->done[x->link.hash % CONDS];
	struct cache_entry *gone = NULL;
	int rc = 0;

	c->waiting++;
	while (x->state == LOADING && rc == 0) {
		if (c->remote)
			rc = cancel_wait(done, &c->lock);
		else
			(void)pthread_cond_wait(done, &c->lock);
	}
	c->waiting--;
	if (x->state == LOADING) { /* the loading thread holds a reference, too */
		x->refs--;
		(void)pthread_mutex_unlock(&c->lock);
		return err_set(e, rc, "cancelled");
	}
	if (x->state == READY) {
		(void)pthread_mutex_unlock(&c->lock);
		return 0;
	}
	rc = x->code;
	if (e && x->error)
		*e = *x->error;
	else if (e)
		(void)err_set(e, rc, "reading the chunk failed");
	if (--x->refs == 0)
		gone = x;
	(void)pthread_mutex_unlock(&c->lock);
	entry_free(gone);
	return rc;
}

static int cache_do_get(struct cache *c, uint32_t array, uint64_t linear,
			struct cache_entry **ret, struct err *e)
{
	uint64_t hash = cache_hash_of(array, linear);
	struct cache_entry *x, *fresh = NULL;
	int rc;

	if (c->pool)
		atomic_store(&c->used, atomic_fetch_add(&c->pool->clock, 1) + 1);
	(void)pthread_mutex_lock(&c->lock);
	c->n_gets++;
	x = cache_find_locked(c, array, linear, hash);
	if (!x) {
		(void)pthread_mutex_unlock(&c->lock);
		fresh = entry_new(c, array, linear, hash);
		if (!fresh)
			return err_nomem(e);
		(void)pthread_mutex_lock(&c->lock);
		x = cache_find_locked(c, array, linear, hash);
	}
	if (!x) {
		bool in = insert_locked(c, fresh);

		(void)pthread_mutex_unlock(&c->lock);
		if (!in) {
			entry_free(fresh);
			return err_nomem(e);
		}
		metrics_count(M_MISS_DECODED);
		*ret = fresh;
		return CACHE_LOAD;
	}
	use_locked(c, x);
	settle_prefetch_locked(c, x);
	rc = cache_wait_locked(c, x, e);
	free(fresh);
	if (rc < 0)
		return rc;
	metrics_count(M_HIT_DECODED);
	*ret = x;
	return CACHE_READY;
}

int cache_get(struct cache *c, uint32_t array, uint64_t linear, struct cache_entry **ret,
	      struct err *e)
{
	int rc;

	do
		rc = cache_do_get(c, array, linear, ret, e);
	while (rc == -EINTR && c->remote && !cancel_requested());
	return rc;
}

/* begin - begin a flight, unless the chunk is there. ahead: it counts as prefetched, with `bytes`
 * bytes. */
static bool begin(struct cache *c, uint32_t array, uint64_t linear, bool ahead, uint64_t bytes,
		  struct cache_entry **ret)
{
	uint64_t hash = cache_hash_of(array, linear), all = 0;
	struct cache_entry *x = entry_new(c, array, linear, hash);
	bool mine = true;

	if (!x)
		return false;
	(void)pthread_mutex_lock(&c->lock);
	if (ahead) {
		forget_locked(c);
		mine = !ckd_add(&all, c->prefetch_bytes, bytes) && all <= c->budget / 2;
	}
	mine = mine && !cache_find_locked(c, array, linear, hash) && insert_locked(c, x);
	if (mine && ahead) {
		c->prefetch_bytes = all;
		x->ahead = bytes;
		x->born = c->n_gets;
		list_append(&c->unread, &x->unread);
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (mine)
		*ret = x;
	else
		free(x);
	return mine;
}

bool cache_start(struct cache *c, uint32_t array, uint64_t linear, uint64_t bytes,
		 struct cache_entry **ret)
{
	return begin(c, array, linear, true, bytes, ret);
}

bool cache_claim(struct cache *c, uint32_t array, uint64_t linear, struct cache_entry **ret)
{
	return begin(c, array, linear, false, 0, ret);
}

bool cache_has(struct cache *c, uint32_t array, uint64_t linear)
{
	LOCK_SCOPE(&c->lock);

	return cache_find_locked(c, array, linear, cache_hash_of(array, linear)) != NULL;
}

bool cache_peek(struct cache *c, uint32_t array, uint64_t linear, struct cache_entry **ret)
{
	struct cache_entry *x;
	LOCK_SCOPE(&c->lock);

	x = cache_find_locked(c, array, linear, cache_hash_of(array, linear));
	if (!x || x->state != READY)
		return false;
	use_locked(c, x);
	*ret = x;
	return true;
}

/* spent_of_size_locked - remove a spent entry with cap bytes of memory; NULL: none to spare. */
static struct cache_entry *spent_of_size_locked(struct cache *c, size_t cap)
{
	struct list_link *l = c->spent.next;

	if (c->n_spent <= SPENT_KEPT || cap < SPENT_SMALL)
		return NULL;
	for (size_t i = 0; i < SPENT_SEARCHED && l != &c->spent; i++, l = l->next) {
		if (entry_of(l)->cap != cap)
			continue;
		unlist_locked(c, entry_of(l), true);
		remove_locked(c, entry_of(l));
		return entry_of(l);
	}
	return NULL;
}

/* room_locked - count cap bytes, take over memory of that size where there is some, and put
 * what has to go into *gone. Returns the memory, or NULL: allocate it. */
static uint8_t *room_locked(struct cache *c, size_t cap, struct list_link *gone)
{
	uint8_t *data = NULL;
	struct cache_entry *x = spent_of_size_locked(c, cap);

	for (;;) {
		if (x && !data && x->cap == cap)
			data = steal(&x->data);
		if (x)
			list_append(gone, &x->in);
		if (c->bytes <= c->budget && cap <= c->budget - c->bytes)
			break;
		x = cache_victim_locked(c);
		if (!x)
			break;
	}
	more_locked(c, cap);
	if (data)
		c->recycled++;
	else
		c->allocated++;
	return data;
}

/* take_off_locked - wait until the chunks that are being loaded leave room for cap more bytes. The
 * size may come from a hostile file that only wants to use up memory. A cancelled thread does not
 * wait: its load fails immediately. */
static void take_off_locked(struct cache *c, struct cache_entry *x, size_t cap)
{
	int rc = 0;

	while (rc == 0 && c->loading > 0 &&
	       (c->loading >= c->bound || cap > c->bound - c->loading))
		rc = cancel_wait(&c->landed, &c->lock);
	c->loading += cap;
	x->counted = true;
}

static void land_locked(struct cache *c, struct cache_entry *x)
{
	if (!x->counted)
		return;
	x->counted = false;
	c->loading -= x->cap;
	(void)pthread_cond_broadcast(&c->landed);
}

uint8_t *cache_alloc(struct cache_entry *x, size_t len)
{
	struct cache *c = x->cache;
	struct list_link gone;
	size_t unit = len < PAGE ? 64 : PAGE, cap;

	if (ckd_add(&cap, len, unit - 1) || cap > PTRDIFF_MAX)
		return NULL;
	cap = cap / unit * unit;
	if (cap == 0)
		cap = unit;
	list_init(&gone);
	(void)pthread_mutex_lock(&c->lock);
	take_off_locked(c, x, cap);
	x->data = room_locked(c, cap, &gone);
	x->cap = cap;
	(void)pthread_mutex_unlock(&c->lock);
	entries_free(&gone);
	cache_shrink(c->pool);
	if (!x->data)
		x->data = malloc(cap);
	x->len = len; /* no other thread looks before cache_publish */
	return x->data;
}

void cache_publish(struct cache_entry *x)
{
	struct cache *c = x->cache;

	(void)pthread_mutex_lock(&c->lock);
	x->state = READY;
	land_locked(c, x);
	(void)pthread_cond_broadcast(&c->done[x->link.hash % CONDS]);
	(void)pthread_mutex_unlock(&c->lock);
}

void cache_fail(struct cache_entry *x, const struct err *e)
{
	struct cache *c = x->cache;
	struct cache_entry *gone = NULL;
	struct err *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *e;
	(void)pthread_mutex_lock(&c->lock);
	remove_locked(c, x);
	land_locked(c, x);
	x->state = FAILED;
	x->code = e->code < 0 ? e->code : -EIO;
	x->error = copy;
	if (--x->refs == 0)
		gone = x;
	else
		(void)pthread_cond_broadcast(&c->done[x->link.hash % CONDS]);
	(void)pthread_mutex_unlock(&c->lock);
	entry_free(gone);
}

const uint8_t *cache_data(const struct cache_entry *x, size_t *ret_len)
{
	*ret_len = x->len;
	return x->data;
}

void cache_handed(struct cache_entry *x, size_t off, size_t n)
{
	(void)atomic_fetch_add_explicit(&x->handed, n, memory_order_relaxed);
	if (off + n == x->len)
		atomic_store_explicit(&x->ended, true, memory_order_relaxed);
}

void cache_put(struct cache_entry *x)
{
	struct cache *c = x->cache;
	struct cache_pool *pool = c->pool;
	struct list_link gone;

	list_init(&gone);
	(void)pthread_mutex_lock(&c->lock);
	if (--x->refs == 0) {
		bool spent = is_spent(x);

		list_append(spent ? &c->spent : &c->idle, &x->in);
		c->n_spent += spent;
		while (c->bytes > c->budget && c->table.n > 1) {
			struct cache_entry *v;

			/* x itself is last in its list; a reader may be in the middle of it */
			if (list_empty(&c->spent) && c->idle.next == &x->in)
				break;
			v = cache_victim_locked(c);
			if (!v)
				break;
			list_append(&gone, &v->in);
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	entries_free(&gone);
	cache_shrink(pool);
}

void cache_stats(struct cache *c, struct cache_stats *ret)
{
	LOCK_SCOPE(&c->lock);

	*ret = (struct cache_stats){
		.bytes = c->bytes,
		.entries = c->table.n,
		.prefetch_bytes = c->prefetch_bytes,
		.waiting = c->waiting,
		.allocated = c->allocated,
		.recycled = c->recycled,
	};
}
