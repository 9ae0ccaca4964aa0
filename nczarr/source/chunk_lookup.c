/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_lookup.c - locates chunks: places, look-ups, and the next existing chunk.
 *
 * A place is made under a mutex at the first access to an array and published through one atomic
 * pointer; after that look-ups take no lock. Errors of the store (a directory without permission,
 * a failing disk) are retried at each access; exceeded limits are permanent. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os/cancel.h"

int zr_data_new(struct zr_source *s, struct zr_data **ret, struct err *e)
{
	struct zr_data *d = alloc_array(1, sizeof(*d));

	if (!d)
		return err_nomem(e);
	(void)pthread_mutex_init(&d->load, NULL); /* cannot fail with default attributes */
	(void)pthread_mutex_init(&d->lock, NULL);
	(void)pthread_mutex_init(&d->watch.lock, NULL);
	(void)pthread_mutex_init(&d->watch.confirming, NULL);
	/* absences during the search for documents */
	atomic_init(&d->watch.confirmed, atomic_load(&s->store->absences));
	d->n_places = s->base.ds.n_arrays;
	d->places = alloc_array(d->n_places, sizeof(*d->places));
	d->versions = alloc_array(d->n_places, sizeof(*d->versions));
	d->loading = alloc_array(d->n_places, sizeof(*d->loading));
	cancel_cond_init(&d->loaded);
	d->indexes = cache_new(s->opts.max_index_bytes);
	d->wholes = cache_new(ZR_WHOLE_KEPT);
	if (!d->places || !d->versions || !d->loading || !d->indexes || !d->wholes) {
		zr_data_free(d);
		return err_nomem(e);
	}
	if (s->base.remote) {
		cache_of_remote(d->indexes);
		cache_of_remote(d->wholes);
	}
	*ret = d;
	return 0;
}

static void place_free(struct zr_place *p)
{
	if (!p)
		return;
	zr_table_release(&p->table);
	(void)pthread_mutex_destroy(&p->listing);
	free(p->why);
	free(p);
}

void zr_data_free(struct zr_data *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; d->places && i < d->n_places; i++)
		place_free(atomic_load_explicit(&d->places[i], memory_order_acquire));
	while (d->scratch) {
		struct zr_scratch *next = d->scratch->next;

		zr_scratch_free(d->scratch);
		d->scratch = next;
	}
	zr_versions_release(d);
	free(d->places);
	free(d->loading);
	free(d->watch.dirs);
	cache_free(d->indexes);
	cache_free(d->wholes);
	(void)pthread_mutex_destroy(&d->load);
	(void)pthread_cond_destroy(&d->loaded);
	(void)pthread_mutex_destroy(&d->lock);
	(void)pthread_mutex_destroy(&d->watch.lock);
	(void)pthread_mutex_destroy(&d->watch.confirming);
	free(d);
}

/* ---- making a place ---- */

/* lookup_misfit - the error for a model that contradicts the documents: a bug, not an error
 * in the dataset. */
static int lookup_misfit(const struct ds_array *a, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "'%s': the array does not match its metadata file: %s",
		       a->name, what);
}

/* count_objects - grid, per, n_objects. */
static int count_objects(struct zr_place *p, struct err *e)
{
	const struct zr_meta *m = p->meta;
	bool none = false;

	for (uint32_t d = 0; d < m->rank; d++)
		if (m->chunk[d] == 0 || p->array->stored[d] == 0)
			return err_set(e, -EBADMSG, "'%s': a chunk length is 0", m->key);
	if (!zr_objects_grid(m, p->grid, p->per))
		return err_set(e, -ERANGE, "'%s': a shard has too many chunks", m->key);
	for (uint32_t d = 0; d < m->rank; d++)
		none = none || p->grid[d] == 0;
	p->n_objects = !none;
	if (!none && !u64_product(&p->n_objects, p->grid, m->rank, UINT64_MAX / 4))
		return err_set(e, -ERANGE, "'%s': more than 2^62 objects", m->key);
	return 0;
}

/* count_elems - n_elems, stored_bytes, as_is. */
static int count_elems(struct zr_place *p, struct err *e)
{
	const struct ds_array *a = p->a;
	const struct zr_meta *m = p->meta;

	p->n_elems = 1;
	p->as_is = m->dtype.conv == ZR_AS_STORED;
	for (uint32_t d = 0; d < m->rank; d++) {
		uint64_t len = d < a->rank ? a->chunk[d] : 1, stored = p->array->stored[d];

		if (len > stored)
			return lookup_misfit(a, "a chunk is longer than stored", e);
		p->as_is = p->as_is && len == stored && (!m->order || m->order[d] == d);
		if (ckd_mul(&p->n_elems, p->n_elems, stored))
			return err_set(e, -ERANGE, "'%s': a chunk has too many elements",
				       m->key);
	}
	if (ckd_mul(&p->stored_bytes, p->n_elems, (uint64_t)m->dtype.stored) ||
	    p->stored_bytes > PTRDIFF_MAX)
		return err_set(e, -ERANGE, "'%s': a chunk has too many bytes", m->key);
	if (dt_is_vlen(&a->type))
		return m->vlen == ZR_VLEN_NONE
			       ? lookup_misfit(a, "the elements have a fixed size", e)
			       : 0;
	if (m->dtype.conv != ZR_FIELDS && m->dtype.stored != a->type.size)
		return lookup_misfit(a, "the element size differs", e);
	return 0;
}

static int lookup_fill_place(struct zr_place *p, struct err *e)
{
	const struct ds_array *a = p->a;
	const struct zr_meta *m = p->meta;
	int rc = 0;

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "%s", a->unreadable);
	/* a scalar of the model may be stored as one element of an axis */
	if (a->rank > m->rank || (a->rank < m->rank - m->tail && a->rank > 0))
		rc = lookup_misfit(a, "the number of dimensions differs", e);
	rc = rc ? rc : count_objects(p, e);
	rc = rc ? rc : count_elems(p, e);
	if (rc)
		return rc;
	p->direct = !m->shard && a->n_chunks == p->n_objects && a->rank == m->rank - m->tail;
	for (uint32_t d = 0; p->direct && d < a->rank; d++)
		p->direct = a->grid[d] == p->grid[d];
	p->remote = p->s->base.remote;
	zr_table_init(&p->table, p->n_objects,
		      p->remote || m->shard || a->access == DS_STORED,
		      p->s->opts.max_index_bytes);
	return p->remote ? 0 : zr_list_objects(p, e);
}

/* make_place - a permanent error is kept in the place. */
static int make_place(struct zr_source *s, uint32_t array, struct zr_place **ret, struct err *e)
{
	const struct zr_array *x = &s->arrays[array];
	struct err why = ERR_INIT;
	struct zr_place *p;
	int rc;

	p = alloc_array(1, sizeof(*p) + 2 * (size_t)x->meta->rank * sizeof(p->mem[0]));
	if (!p)
		return err_nomem(e);
	p->s = s;
	p->id = array;
	p->a = &s->base.ds.arrays[array];
	p->meta = x->meta;
	p->array = x;
	(void)pthread_mutex_init(&p->listing, NULL);
	p->grid = p->mem;
	p->per = p->mem + x->meta->rank;
	*ret = p;
	rc = p->rc = lookup_fill_place(p, &why);
	if (rc == 0)
		return 0;
	if (rc == -EBADMSG || rc == -ERANGE) {
		zr_table_release(&p->table);
		p->why = strdup(why.msg);
		if (p->why)
			return 0;
	}
	place_free(p);
	return err_set(e, rc, "%s", why.msg);
}

/* load_place - make the place of an array in one thread. Other threads wait only if they need the
 * same array. */
static int load_place(struct zr_source *s, uint32_t array, struct zr_place **ret, struct err *e)
{
	_Atomic(struct zr_place *) *slot = &s->data->places[array];
	struct zr_data *d = s->data;
	int rc = 0;

	(void)pthread_mutex_lock(&d->load);
	while (rc == 0 && d->loading[array])
		rc = cancel_wait(&d->loaded, &d->load);
	*ret = atomic_load_explicit(slot, memory_order_acquire);
	d->loading[array] = d->loading[array] || (rc == 0 && !*ret);
	(void)pthread_mutex_unlock(&d->load);
	if (*ret)
		return 0;
	if (rc)
		return err_set(e, rc, "cancelled while listing chunks");
	rc = make_place(s, array, ret, e);
	(void)pthread_mutex_lock(&d->load);
	if (rc == 0)
		atomic_store_explicit(slot, *ret, memory_order_release);
	d->loading[array] = false;
	(void)pthread_cond_broadcast(&d->loaded);
	(void)pthread_mutex_unlock(&d->load);
	return rc;
}

static int place_get(struct zr_source *s, uint32_t array, struct zr_place **ret, struct err *e)
{
	int rc;

	*ret = atomic_load_explicit(&s->data->places[array], memory_order_acquire);
	rc = *ret ? 0 : load_place(s, array, ret, e);
	return rc || (*ret)->rc == 0 ? rc : err_set(e, (*ret)->rc, "%s", (*ret)->why);
}

int zr_place_of(struct zr_source *s, uint32_t array, const struct zr_place **ret, struct err *e)
{
	struct zr_place *p;
	int rc = place_get(s, array, &p, e);

	*ret = p;
	return rc;
}

int zr_place_listed(struct zr_source *s, uint32_t array, const struct zr_place **ret,
		    struct err *e)
{
	struct zr_place *p;
	int rc = place_get(s, array, &p, e);

	*ret = p;
	return rc || p->listed ? rc : zr_list_objects(p, e);
}

int zr_object_name(const struct zr_place *p, uint64_t object, char out[ZR_OBJECT_KEY],
		   struct err *e)
{
	uint64_t coords[DS_RANK_MAX];

	grid_coords(p->meta->rank, p->grid, object, coords);
	return zr_object_key(p->meta, coords, out, e);
}

/* ---- look-ups ---- */

int zr_find(const struct zr_place *p, uint64_t linear, struct chunk_location *ret,
	    struct err *e)
{
	uint64_t at[DS_RANK_MAX] = {0}, coords[DS_RANK_MAX];
	bool there;
	int rc = 0;

	*ret = (struct chunk_location){.p = p, .where = ZR_NOWHERE, .object = linear};
	if (!p->direct) {
		ds_chunk_coords(p->a, linear, at);
		for (uint32_t d = 0; d < p->meta->rank; d++) {
			coords[d] = at[d] / p->per[d];
			if (coords[d] >= p->grid[d])
				return 0; /* the array is longer than its stored part */
		}
		ret->object = grid_linear(p->meta->rank, p->grid, coords);
	}
	if (p->remote)
		rc = zr_remote_find(at, ret, &there, e);
	else
		there = zr_table_get(&p->table, ret->object, &ret->size);
	if (rc || !there)
		return rc;
	ret->where = ZR_OBJECT;
	if (!p->meta->shard || ret->size == ZR_UNREADABLE)
		return 0;
	rc = zr_shard_find(at, ret, e);
	if (rc)
		chunk_location_release(ret);
	return rc;
}

int zr_find_in(struct source *src, uint32_t array, uint64_t linear, struct chunk_location *ret,
	       struct err *e)
{
	const struct zr_place *p;
	int rc = zr_place_of(zr_of(src), array, &p, e);

	return rc ? rc : zr_find(p, linear, ret, e);
}

int zr_locate(struct source *src, uint32_t array, uint64_t linear, struct chunk_ref *ret,
	      struct err *e)
{
	struct chunk_location x;
	int rc = zr_find_in(src, array, linear, &x, e);

	if (rc)
		return rc;
	*ret = (struct chunk_ref){.where = CHUNK_SYNTH};
	if (x.where == ZR_NOWHERE)
		ret->where = CHUNK_ABSENT;
	else if (x.p->a->access == DS_STORED && x.where != ZR_MEMORY && x.size != ZR_UNREADABLE)
		*ret = (struct chunk_ref){.where = CHUNK_RANGE,
					  .off = x.off,
					  .len = x.where == ZR_PART ? x.len : x.size};
	chunk_location_release(&x);
	return 0;
}

/* ---- the next one ---- */

/* lookup_skip - move `at`, the coordinates of a chunk, to the first one at or after it that
 * is in an existing object. Objects have an order of their own: the next row of a chunk may be in
 * an earlier object. So it tests axis by axis whether an object remains under the previous axes.
 * ret_object: that object. false: none. */
static bool lookup_skip(const struct zr_place *p, uint64_t *at, uint64_t *ret_object)
{
	const struct zr_table *t = &p->table;
	uint64_t from[DS_RANK_MAX] = {0}, found[DS_RANK_MAX];
	uint32_t rank = p->a->rank, d = 0;

	*ret_object = 0;
	if (rank == 0)
		return zr_table_next(t, 0, ret_object);
	while (d < rank) {
		from[d] = at[d] / p->per[d];
		memset(from + d + 1, 0, (rank - d - 1) * sizeof(*from));
		if (from[d] < p->grid[d] &&
		    zr_table_next(t, grid_linear(rank, p->grid, from), ret_object)) {
			grid_coords(rank, p->grid, *ret_object, found);
			if (memcmp(found, from, (d + 1) * sizeof(*from)) == 0) {
				d++;
				continue;
			}
			if (memcmp(found, from, d * sizeof(*from)) ==
			    0) { /* further along this axis */
				at[d] = found[d] * p->per[d];
				memset(at + d + 1, 0, (rank - d - 1) * sizeof(*at));
				continue;
			}
		}
		/* no object remains on this axis: advance the previous ones */
		do {
			memset(at + d, 0, (rank - d) * sizeof(*at));
			if (d == 0)
				return false;
			at[--d]++;
		} while (at[d] >= p->a->grid[d]);
		d = 0;
	}
	*ret_object = grid_linear(rank, p->grid, from);
	return true;
}

static int next_inside(const struct zr_place *p, uint64_t from, uint64_t *ret, struct err *e)
{
	uint64_t at[DS_RANK_MAX], object;
	struct chunk_location x;
	int rc;

	for (; from < p->a->n_chunks; from++) {
		ds_chunk_coords(p->a, from, at);
		if (!lookup_skip(p, at, &object))
			break;
		if (p->remote)
			zr_remote_want_indexes(p, object);
		from = ds_chunk_linear(p->a, at);
		rc = zr_find(p, from, &x, e);
		if (err_is_transient(rc) || rc == -ESTALE)
			return rc;
		if (!rc)
			chunk_location_release(&x);
		/* chunks of a shard with a damaged index are unreadable, not absent */
		if (rc || x.where != ZR_NOWHERE) {
			*ret = from;
			return 0;
		}
	}
	return err_set(e, -ENOENT, "no more chunks are stored");
}

int zr_next(struct source *src, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	const struct zr_place *p;
	int rc;

	if (src->unlisted) { /* any chunk may exist */
		*ret = from;
		return zr_place_of(zr_of(src), array, &p, e);
	}
	rc = zr_place_listed(zr_of(src), array, &p, e);
	if (rc)
		return rc;
	if (!p->direct)
		return next_inside(p, from, ret, e);
	if (!zr_table_next(&p->table, from, ret))
		return err_set(e, -ENOENT, "no more chunks are stored");
	return 0;
}

/* Locate a chunk's stored bytes for external readers: the key of the object or its location in the
 * store's file, and the range in it. */

int zr_place_chunk(struct source *src, uint32_t array, uint64_t linear,
		   const struct chunk_ref *ref, struct store_place *ret, struct err *e)
{
	char key[ZR_OBJECT_KEY];
	struct chunk_location x;
	int rc = zr_find_in(src, array, linear, &x, e);

	if (rc)
		return rc;
	chunk_location_release(&x);
	if (x.where != ZR_OBJECT && x.where != ZR_PART)
		return err_set(e, -EOPNOTSUPP,
			       "the chunk is not stored in the form in which it is shown");
	rc = zr_object_name(x.p, x.object, key, e);
	rc = rc ? rc : store_where(zr_of(src)->store, key, ret, e);
	if (rc)
		return rc;
	ret->whole = ret->whole && x.where == ZR_OBJECT && ref->off == 0 && ref->len == x.size;
	if (ckd_add(&ret->off, ret->off, ref->off))
		return err_set(e, -EBADMSG, "'%s' is at an offset of 2^64 or more", key);
	return 0;
}
