/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_remote.c - chunks of a remote store. Requests are sent on demand and once: an object by
 * its name, which also fetches its first bytes; all objects of an array in listings, when all are
 * wanted; the index of a shard by its range.
 *
 * Objects are cached by the store, not here. */
#include <errno.h>
#include <string.h>

#include "nczarr/source/chunks.h"

#define TAIL ((uint64_t)16 << 10) /* smallest tail of a shard to fetch with its index */
#define INDEXES_PREFETCH 32       /* shards whose indexes are prefetched */

/* ---- prefetch ---- */

struct zr_wants *zr_wants_new(struct store *s)
{
	struct zr_wants *w = s->remote ? alloc_array(1, sizeof(*w)) : NULL;

	if (w)
		w->s = s;
	return w;
}

void zr_wants_flush(struct zr_wants *w)
{
	if (w->n)
		store_want(w->s, w->r, w->n);
	while (w->n)
		free(w->keys[--w->n]);
}

void zr_wants_add(struct zr_wants *w, const char *key, uint64_t off, uint64_t len)
{
	char *copy = w ? strdup(key) : NULL;

	if (!copy)
		return;
	if (w->n == ARRAY_LEN(w->r))
		zr_wants_flush(w);
	w->keys[w->n] = copy;
	w->r[w->n++] = (struct store_range){.key = copy, .off = off, .len = len};
}

void zr_wants_done(struct zr_wants *w)
{
	if (w)
		zr_wants_flush(w);
	free(w);
}

/* remote_add - add a range of an object of an array. */
static void remote_add(struct zr_wants *w, const struct zr_place *p, uint64_t object,
		       uint64_t off, uint64_t len)
{
	char key[ZR_OBJECT_KEY];

	if (len > 0 && zr_object_name(p, object, key, NULL) == 0)
		zr_wants_add(w, key, off, len);
}

/* add_index - add the part of a shard that contains its index. */
static void add_index(struct zr_wants *w, const struct zr_place *p, uint64_t object)
{
	const struct zr_shard *sh = p->meta->shard;

	remote_add(w, p, object, sh->index_first ? 0 : UINT64_MAX,
		   u64_max(sh->index_bytes, TAIL));
}

static bool has_index(const struct zr_place *p)
{
	return p->meta->shard && p->meta->shard->outer.n == 0;
}

/* remote_add_chunk - add the ranges that reading a chunk needs. at: its coordinates. last: the
 * previous object; an object that is wanted as a whole is added once. */
static void remote_add_chunk(struct zr_wants *w, const struct zr_place *p, const uint64_t *at,
			     uint64_t object, uint64_t *last)
{
	uint64_t slot, off, len;
	struct zr_at shard;

	if (!has_index(p)) {
		if (object != *last)
			remote_add(w, p, object, 0, UINT64_MAX);
	} else {
		zr_shard_at(p, at, &shard, &slot);
		if (zr_shard_known(&shard, slot, &off, &len)) {
			/* a nested shard: its part after the index is added later */
			if (len != UINT64_MAX && off <= INT64_MAX && len <= INT64_MAX)
				remote_add(w, p, object, off, len);
		} else if (object != *last) {
			add_index(w, p, object);
		}
	}
	*last = object;
}

/* remote_object_of - the object that contains a chunk; false: outside the grid. */
static bool remote_object_of(const struct zr_place *p, uint64_t linear, uint64_t *at,
			     uint64_t *ret)
{
	uint64_t coords[DS_RANK_MAX];

	if (linear >= p->a->n_chunks)
		return false;
	ds_chunk_coords(p->a, linear, at);
	for (uint32_t d = 0; d < p->meta->rank; d++) {
		coords[d] = at[d] / p->per[d];
		if (coords[d] >= p->grid[d])
			return false;
	}
	*ret = p->direct ? linear : grid_linear(p->meta->rank, p->grid, coords);
	return true;
}

void zr_want(struct source *src, uint32_t array, const uint64_t *linear, size_t n)
{
	uint64_t last = UINT64_MAX;
	const struct zr_place *p;
	struct zr_wants *w;

	if (zr_place_of(zr_of(src), array, &p, NULL))
		return;
	w = zr_wants_new(p->s->store);
	for (size_t i = 0; w && i < n; i++) {
		uint64_t at[DS_RANK_MAX] = {0}, object;

		if (remote_object_of(p, linear[i], at, &object) &&
		    (!p->listed || zr_table_get(&p->table, object, NULL)))
			remote_add_chunk(w, p, at, object, &last);
	}
	zr_wants_done(w);
}

void zr_forget(struct source *src, uint32_t array, uint64_t linear)
{
	const struct zr_place *p;
	uint64_t at[DS_RANK_MAX] = {0}, object;
	char key[ZR_OBJECT_KEY];

	if (zr_place_of(zr_of(src), array, &p, NULL) == 0 &&
	    remote_object_of(p, linear, at, &object) &&
	    zr_object_name(p, object, key, NULL) == 0)
		store_forget(p->s->store, key);
}

void zr_remote_want_indexes(const struct zr_place *p, uint64_t object)
{
	struct zr_wants *w = has_index(p) ? zr_wants_new(p->s->store) : NULL;
	uint64_t coords[DS_RANK_MAX], slot, off, len;

	for (size_t i = 0;
	     w && i < INDEXES_PREFETCH && zr_table_next(&p->table, object, &object); i++) {
		struct zr_at at;

		grid_coords(p->meta->rank, p->grid, object, coords);
		for (uint32_t d = 0; d < p->meta->rank; d++)
			coords[d] *= p->per[d];
		zr_shard_at(p, coords, &at, &slot);
		if (!zr_shard_known(&at, slot, &off, &len))
			add_index(w, p, object);
		else if (i == 0)
			break; /* the next ones are requested when the first is missing */
		object++;
	}
	zr_wants_done(w);
}

/* ---- one object ---- */

/* want_index - for a shard that is looked up next: the answer then contains its index instead of
 * its first bytes. */
static void want_index(const struct zr_place *p, const uint64_t *at, uint64_t object)
{
	uint64_t slot, off, len;
	struct zr_at shard;
	struct zr_wants *w;

	zr_shard_at(p, at, &shard, &slot);
	if (zr_shard_known(&shard, slot, &off, &len))
		return;
	w = zr_wants_new(p->s->store);
	add_index(w, p, object);
	zr_wants_done(w);
}

int zr_remote_find(const uint64_t *at, struct chunk_location *x, bool *ret_there, struct err *e)
{
	const struct zr_place *p = x->p;
	struct store *store = p->s->store;
	struct err why = ERR_INIT;
	char key[ZR_OBJECT_KEY];
	struct store_stat st;
	uint8_t none = 0;
	int rc;

	*ret_there = false;
	if (p->listed) {
		*ret_there = zr_table_get(&p->table, x->object, &x->size);
		return 0;
	}
	rc = zr_object_name(p, x->object, key, e);
	if (rc)
		return rc;
	if (has_index(p))
		want_index(p, at, x->object);
	/* chunks are objects: a test for a folder would cost a request on services that have
	 * them */
	if (!store->unlisted)
		rc = store_read(store, key, 0, &none, 0, NULL, &why);
	rc = rc ? rc : store_stat(store, key, &st, &why);
	if (rc == -ENOENT)
		return zr_absent(p->s, e);
	if (rc == -EACCES || rc == -EISDIR || rc == -ELOOP || rc == -EXDEV)
		rc = -EIO; /* neither absent nor readable */
	if (rc)
		return err_set(e, rc, "%s", why.msg);
	x->size = st.odd || st.is_dir ? ZR_UNREADABLE : st.size;
	*ret_there = true;
	return 0;
}
