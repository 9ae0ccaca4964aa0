/* SPDX-License-Identifier: BSD-3-Clause */
/* object_table.c - the cached state of keys, and the extents of objects.
 *
 * The table is bounded: each shard drops entries without extents that were not used recently. A
 * complete listing of a folder proves absence as long as no entry of its root was dropped since. */
#include "nczarr/remote/cache_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/clock.h"
#include "nczarr/store/sorted_keys.h"

#define BUCKETS 64
#define SWEEP 64 /* entries inspected for each drop */

int table_init(struct object_cache *c)
{
	for (size_t i = 0; i < RC_SHARDS; i++) {
		struct cache_shard *s = &c->shards[i];

		(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with these */
		cancel_cond_init(&s->done);
	}
	for (size_t i = 0; i < RC_SHARDS; i++) {
		c->shards[i].buckets = alloc_array(BUCKETS, sizeof(struct cached_object *));
		if (!c->shards[i].buckets)
			return -ENOMEM;
		c->shards[i].n_buckets = BUCKETS;
	}
	return 0;
}

static void obj_free(struct cached_object *o)
{
	while (o->n_xs)
		obj_detach(o, o->xs[o->n_xs - 1]);
	free(o->xs);
	free(o->etag);
	free(o);
}

void table_release(struct object_cache *c)
{
	for (size_t i = 0; i < RC_SHARDS; i++) {
		struct cache_shard *s = &c->shards[i];

		for (size_t k = 0; s->buckets && k < s->n_buckets; k++) {
			while (s->buckets[k]) {
				struct cached_object *o = s->buckets[k];

				s->buckets[k] = o->chain;
				obj_free(o);
			}
		}
		free(s->buckets);
		(void)pthread_cond_destroy(&s->done);
		(void)pthread_mutex_destroy(&s->lock);
	}
}

static uint64_t table_hash_of(uint64_t seed, const char *key, size_t len)
{
	uint64_t h = seed;

	for (; len >= 8; key += 8, len -= 8) {
		uint64_t w;

		memcpy(&w, key, 8);
		h = store_mix(h, w);
	}
	for (; len; key++, len--)
		h = store_mix(h, (unsigned char)*key);
	return h;
}

struct cache_root *rc_root(struct object_cache *c, const char *name)
{
	struct cache_root *r;
	size_t n = strlen(name) + 1;

	(void)pthread_mutex_lock(&c->lock);
	for (r = c->roots; r && strcmp(r->name, name) != 0;)
		r = r->next;
	if (!r) {
		r = alloc_array(1, sizeof(*r) + n);
		if (r) {
			memcpy(r->name, name, n);
			r->seed = table_hash_of(n, name, n);
			r->next = c->roots;
			c->roots = r;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

struct cache_lookup look_at(struct rstore *st, const char *key, size_t len)
{
	struct cache_lookup l = {.st = st, .key = key, .len = len};

	l.hash = table_hash_of(st->root->seed, key, len);
	l.shard = &st->cache->shards[l.hash >> 32 & (RC_SHARDS - 1)];
	return l;
}

/* table_grow - keep chains short, if memory permits. */
static void table_grow(struct cache_shard *s)
{
	size_t n = s->n_buckets * 2;
	struct cached_object **to;

	if (s->n < s->n_buckets)
		return;
	to = alloc_array(n, sizeof(struct cached_object *));
	if (!to)
		return;
	for (size_t i = 0; i < s->n_buckets; i++) {
		while (s->buckets[i]) {
			struct cached_object *o = s->buckets[i];

			s->buckets[i] = o->chain;
			o->chain = to[o->hash & (n - 1)];
			to[o->hash & (n - 1)] = o;
		}
	}
	free(s->buckets);
	s->buckets = to;
	s->n_buckets = n;
}

/* drop_from - drop the unused entries of one bucket. Returns the number inspected. */
static size_t drop_from(struct cache_shard *s, size_t bucket)
{
	struct cached_object **p = &s->buckets[bucket];
	size_t seen = 0;

	for (; *p; seen++) {
		struct cached_object *o = *p;

		if (o->refs || o->n_xs || o->asking || o->recent) {
			o->recent = false;
			p = &o->chain;
			continue;
		}
		*p = o->chain;
		s->n--;
		s->bytes -= o->cost;
		(void)atomic_fetch_add(&o->root->drops, 1);
		obj_free(o);
	}
	return seen;
}

static struct cached_object *table_add(struct cache_lookup *l)
{
	struct cache_shard *s = l->shard;
	struct cached_object *o;

	/* drop entries that were not used recently */
	for (size_t tried = 0;
	     s->bytes > l->st->cache->shard_limit && tried < SWEEP + s->n_buckets * 2;
	     s->hand++)
		tried += 1 + drop_from(s, s->hand & (s->n_buckets - 1));
	table_grow(s);
	o = alloc_array(1, sizeof(*o) + l->len + 1);
	if (!o)
		return NULL;
	memcpy(o->key, l->key, l->len);
	o->key_len = l->len;
	o->root = l->st->root;
	o->hash = l->hash;
	o->gen = atomic_fetch_add(&o->root->gens, 1) + 1;
	o->cost = sizeof(*o) + l->len + 48; /* with its ETag */
	o->chain = s->buckets[o->hash & (s->n_buckets - 1)];
	s->buckets[o->hash & (s->n_buckets - 1)] = o;
	s->n++;
	s->bytes += o->cost;
	s->peak = u64_max(s->peak, s->bytes);
	return o;
}

struct cached_object *look_find(struct cache_lookup *l, bool make)
{
	struct cached_object *o = l->shard->buckets[l->hash & (l->shard->n_buckets - 1)];

	while (o && (o->hash != l->hash || o->root != l->st->root || o->key_len != l->len ||
		     memcmp(o->key, l->key, l->len) != 0))
		o = o->chain;
	if (!o && make)
		o = table_add(l);
	if (o)
		o->recent = true;
	l->obj = o;
	return o;
}

bool obj_is_racy(const struct rstore *st, int64_t at)
{
	const struct object_cache *c = st->cache;

	return at >= st->opened_at && (c->check_ns == 0 || clock_ns() - at < c->check_ns);
}

/* ---- extents ---- */

size_t obj_at(const struct cached_object *o, uint64_t off)
{
	size_t lo = 0, hi = o->n_xs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (o->xs[mid]->off + o->xs[mid]->len <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int obj_attach(struct cached_object *o, struct ext *x)
{
	size_t i = obj_at(o, x->off);

	if (grow_array(&o->xs, &o->c_xs, o->n_xs + 1, sizeof(struct ext *)) < 0)
		return -ENOMEM;
	memmove(o->xs + i + 1, o->xs + i, (o->n_xs - i) * sizeof(struct ext *));
	o->xs[i] = x;
	o->n_xs++;
	x->attached = true;
	ext_ref(x);
	return 0;
}

void obj_detach(struct cached_object *o, struct ext *x)
{
	size_t i = 0;

	while (i < o->n_xs && o->xs[i] != x)
		i++;
	if (i == o->n_xs)
		return;
	memmove(o->xs + i, o->xs + i + 1, (o->n_xs - i - 1) * sizeof(struct ext *));
	o->n_xs--;
	if (o->n_xs == 0) {
		free(o->xs);
		o->xs = NULL;
		o->c_xs = 0;
	}
	x->attached = false;
	rc_unqueue(x);
	ext_unref(x);
}

struct ext *ext_new(struct object_cache *c, struct cache_lookup *l, uint64_t off, uint64_t len)
{
	struct ext *x = alloc_array(1, sizeof(*x));

	if (!x)
		return NULL;
	x->cache = c;
	x->shard = l->shard;
	x->obj = l->obj;
	x->off = off;
	x->len = len;
	atomic_store(&x->refs, 1);
	return x;
}

/* ---- objects ---- */

static void drop_extents(struct cached_object *o)
{
	while (o->n_xs)
		obj_detach(o, o->xs[o->n_xs - 1]);
	o->gen = atomic_fetch_add(&o->root->gens, 1) + 1;
}

void obj_set(struct cache_lookup *l, const struct object_info *info, int64_t asked_at)
{
	struct cached_object *o = l->obj;
	uint64_t version = info->version ? info->version : object_version(info);

	if (o->state != OBJ_THERE || o->version != version) {
		if (o->n_xs || o->state == OBJ_THERE)
			drop_extents(o);
		free(o->etag);
		o->etag = info->etag[0] ? strdup(info->etag) : NULL;
		o->weak = info->weak;
		o->changed = info->changed;
		o->version = version;
		o->size = info->size;
	} else {
		if (o->size == UINT64_MAX)
			o->size = info->size;
		if (asked_at < o->known_at)
			asked_at = o->known_at;
	}
	o->state = OBJ_THERE;
	o->known_at = asked_at;
}

void obj_gone(struct cache_lookup *l, int64_t asked_at)
{
	drop_extents(l->obj);
	l->obj->state = OBJ_ABSENT;
	l->obj->known_at = asked_at;
}

void obj_forget(struct cache_lookup *l)
{
	if (l->obj) {
		drop_extents(l->obj);
		l->obj->state = OBJ_UNKNOWN;
		l->obj->next_off = l->obj->run = l->obj->run_end = 0;
	}
	/* its absence from the table is no proof that the object is absent */
	(void)atomic_fetch_add(&l->st->root->drops, 1);
}

/* ---- listings ---- */

/* listing_of - whether the cached listing of folder key[0, len) is valid. */
static bool listing_of(struct rstore *st, const char *key, size_t len, bool *ret_folder)
{
	struct cache_lookup l = look_at(st, key, len);
	bool listed = false;

	(void)pthread_mutex_lock(&l.shard->lock);
	*ret_folder = len == 0;
	if (look_find(&l, false)) {
		*ret_folder = len == 0 || l.obj->folder == FOLDER_IS;
		listed = l.obj->listed && obj_is_racy(st, l.obj->listed_at) &&
			 l.obj->listed_drops == atomic_load(&st->root->drops);
	}
	(void)pthread_mutex_unlock(&l.shard->lock);
	return listed;
}

bool look_absent(struct rstore *st, const char *key)
{
	size_t len = store_key_parent_len(key);
	struct cache_lookup l = look_at(st, key, strlen(key));
	bool folder;

	if (st->base.unlisted)
		return false;
	(void)pthread_mutex_lock(&l.shard->lock);
	folder = look_find(&l, false) && l.obj->state == OBJ_THERE;
	(void)pthread_mutex_unlock(&l.shard->lock);
	if (folder)
		return false;
	/* the nearest folder that was listed */
	for (;;) {
		if (listing_of(st, key, len, &folder))
			return true;
		if (folder || len == 0)
			return false; /* a folder without a valid listing */
		for (len--; len > 0 && key[len] != '/';)
			len--;
	}
}
