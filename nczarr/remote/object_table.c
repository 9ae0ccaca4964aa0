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

#define SWEEP 64 /* entries inspected for each drop */

static struct cached_object *object_of(struct link *l)
{
	return CONTAINER_OF(l, struct cached_object, link);
}

void table_init(struct object_cache *c)
{
	for (size_t i = 0; i < RC_SHARDS; i++) {
		struct cache_shard *s = &c->shards[i];

		(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with these */
		cancel_cond_init(&s->done);
	}
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

		for (struct link *l = map_walk(&s->objects, NULL), *next; l; l = next) {
			next = map_walk(&s->objects, l);
			obj_free(object_of(l));
		}
		map_free(&s->objects);
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
	LOCK_SCOPE(&c->lock);

	for (r = c->roots; r && strcmp(r->name, name) != 0;)
		r = r->next;
	if (r)
		return r;
	r = alloc_array(1, sizeof(*r) + n);
	if (!r)
		return NULL;
	memcpy(r->name, name, n);
	r->seed = table_hash_of(n, name, n);
	r->next = c->roots;
	return c->roots = r;
}

struct cache_lookup look_at(struct rstore *st, const char *key, size_t len)
{
	struct cache_lookup l = {.st = st, .key = key, .len = len};

	l.hash = table_hash_of(st->root->seed, key, len);
	l.shard = &st->cache->shards[l.hash >> 32 & (RC_SHARDS - 1)];
	return l;
}

/* drop_from - drop the unused entries of one bucket. Returns the number inspected. */
static size_t drop_from(struct cache_shard *s, size_t bucket)
{
	size_t seen = 0;

	for (struct link *l = s->objects.heads[bucket], *next; l; l = next, seen++) {
		struct cached_object *o = object_of(l);

		next = l->next;
		if (o->refs || o->n_xs || o->asking || o->recent) {
			o->recent = false;
			continue;
		}
		map_remove(&s->objects, l);
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
	     s->bytes > l->st->cache->shard_limit && tried < SWEEP + s->objects.n_heads * 2;
	     s->hand++)
		tried += 1 + drop_from(s, s->hand & (s->objects.n_heads - 1));
	o = alloc_array(1, sizeof(*o) + l->len + 1);
	if (!o || map_add(&s->objects, &o->link, l->hash) < 0) {
		free(o);
		return NULL;
	}
	memcpy(o->key, l->key, l->len);
	o->key_len = l->len;
	o->root = l->st->root;
	o->gen = atomic_fetch_add(&o->root->gens, 1) + 1;
	o->cost = sizeof(*o) + l->len + 48; /* with its ETag */
	s->bytes += o->cost;
	s->peak = u64_max(s->peak, s->bytes);
	return o;
}

struct cached_object *look_find(struct cache_lookup *l, bool make)
{
	struct cached_object *o;

	l->obj = NULL;
	MAP_EACH(o, &l->shard->objects, l->hash, link)
		if (o->root == l->st->root && o->key_len == l->len &&
		    memcmp(o->key, l->key, l->len) == 0) {
			l->obj = o;
			break;
		}
	if (!l->obj && make)
		l->obj = table_add(l);
	if (l->obj)
		l->obj->recent = true;
	return l->obj;
}

bool obj_is_racy(const struct rstore *st, int64_t at)
{
	const struct object_cache *c = st->cache;

	return at >= st->opened_at && (c->check_ns == 0 || clock_ns() - at < c->check_ns);
}

/* ---- extents ---- */

size_t obj_at(const struct cached_object *o, uint64_t off)
{
	size_t lo = 0;

	BISECT(lo, o->n_xs, mid, o->xs[mid]->off + o->xs[mid]->len <= off);
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
	LOCK_SCOPE(&l.shard->lock);

	*ret_folder = len == 0;
	if (!look_find(&l, false))
		return false;
	*ret_folder = len == 0 || l.obj->folder == FOLDER_IS;
	return l.obj->listed && obj_is_racy(st, l.obj->listed_at) &&
	       l.obj->listed_drops == atomic_load(&st->root->drops);
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
