/* SPDX-License-Identifier: BSD-3-Clause */
/* model_dims.c - assigns a dimension to each axis of each array, by netCDF's rules.
 *
 * A dimension scale is a dimension of its group. An axis gets its dimension from the first of
 * these that applies: the array is a scale itself; netCDF's _Netcdf4Coordinates (dimension
 * numbers); DIMENSION_LIST (references to scales); a made-up "phony" dimension of the right
 * length, shared within the group and numbered as in netCDF-C: child groups before their parents.
 *
 * An unlimited dimension is as long as the longest array that uses it, and arrays get the length
 * of their dimensions: a shorter one reads as fill values at its end. A scale that is not
 * unlimited and has another length than the axis is not its dimension. */
#include "hdf5view/hdf5/library.h"

#include "translate/model/grid.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS 65536u

struct tables {
	uint32_t *by_addr; /* scales, sorted by file and address */
	uint32_t *by_id;   /* scales, sorted by dimension number */
	uint32_t n;
	/* for phony dimensions, by a hash of group, length and unlimited: the first and the last
	 * dimension, plus 1; they are linked */
	uint32_t (*buckets)[2];
	bool look_alikes; /* some real dimension is called "phony_dim_..." */
};

static int push_dim(struct h5_build *b, const struct h5_bdim *d, uint32_t *ret, struct err *e)
{
	if (b->n_dims >= DS_NONE - 1)
		return h5_full(b, e);
	if (grow_array(&b->dims, &b->c_dims, b->n_dims + 1, sizeof(*b->dims)) < 0)
		return err_nomem(e);
	*ret = (uint32_t)b->n_dims;
	b->dims[b->n_dims++] = *d;
	return 0;
}

int h5_dim_add(struct h5_build *b, uint32_t group, uint32_t file, uint64_t addr,
	       const char *name, uint64_t len, bool unlimited, const struct netcdf_hints *facts,
	       uint32_t *ret, struct err *e)
{
	struct h5_bdim d = {
		.d = {.name = name, .len = len, .unlimited = unlimited, .group = group},
		.file = file,
		.addr = addr};

	d.has_dimid = facts->has_dimid;
	d.dimid = facts->has_dimid ? facts->dimid : b->next_dimid;
	if (d.dimid >= b->next_dimid)
		b->next_dimid = d.dimid + 1;
	return push_dim(b, &d, ret, e);
}

/* dims_key_of - the sort key of a table. */
static uint64_t dims_key_of(const struct h5_bdim *d, bool ids)
{
	return ids ? (uint64_t)d->dimid : d->addr;
}

static int compare(const struct h5_bdim *dims, const uint32_t *i, const uint32_t *k, bool ids)
{
	const struct h5_bdim *a = &dims[*i], *b = &dims[*k];
	const uint64_t x = dims_key_of(a, ids), y = dims_key_of(b, ids);

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return x != y ? (x < y ? -1 : 1) : a < b ? -1 : a > b;
}

static int dims_by_addr(const void *pa, const void *pb, void *dims)
{
	return compare(dims, pa, pb, false);
}

static int dims_by_id(const void *pa, const void *pb, void *dims)
{
	return compare(dims, pa, pb, true);
}

static int tables_make(const struct h5_build *b, struct tables *t, struct err *e)
{
	t->n = (uint32_t)b->n_dims;
	t->by_addr = alloc_array(t->n, sizeof(*t->by_addr));
	t->by_id = alloc_array(t->n, sizeof(*t->by_id));
	t->buckets = alloc_array(BUCKETS, sizeof(*t->buckets));
	if (!t->by_addr || !t->by_id || !t->buckets)
		return err_nomem(e);
	for (uint32_t i = 0; i < t->n; i++) {
		t->by_addr[i] = t->by_id[i] = i;
		t->look_alikes |= strncmp(b->dims[i].d.name, "phony_dim_", 10) == 0;
	}
	qsort_r(t->by_addr, t->n, sizeof(*t->by_addr), dims_by_addr, b->dims);
	qsort_r(t->by_id, t->n, sizeof(*t->by_id), dims_by_id, b->dims);
	return 0;
}

/* dims_distance - steps from group g up to group `up`; UINT32_MAX when it is not above. */
static uint32_t dims_distance(const struct h5_build *b, uint32_t g, uint32_t up)
{
	for (uint32_t n = 0;; n++) {
		if (g == up)
			return n;
		if (g == 0)
			return UINT32_MAX;
		g = b->groups[g].g.parent;
	}
}

/* dims_find - the dimension with (file, key) that is nearest above the group; a scale that is
 * linked into several groups is several dimensions. */
static uint32_t dims_find(const struct h5_build *b, const struct tables *t, bool ids,
			  uint32_t group, uint32_t file, uint64_t key)
{
	const uint32_t *table = ids ? t->by_id : t->by_addr;
	uint32_t best = DS_NONE, best_far = 0, i = 0;

	/* the first one with (file, key) or more */
	BISECT(i, t->n, mid,
	       b->dims[table[mid]].file < file ||
		       (b->dims[table[mid]].file == file &&
			dims_key_of(&b->dims[table[mid]], ids) < key));
	for (uint32_t tried = 0; i < t->n && tried < 64; i++, tried++) {
		const struct h5_bdim *d = &b->dims[table[i]];
		uint32_t remote;

		if (d->file != file || dims_key_of(d, ids) != key)
			break;
		remote = dims_distance(b, group, d->d.group);
		if (best == DS_NONE || remote < best_far) {
			best = table[i];
			best_far = remote;
		}
	}
	return best;
}

static bool dims_fits(const struct h5_build *b, uint32_t dim, uint64_t len)
{
	return dim != DS_NONE && (b->dims[dim].d.unlimited || b->dims[dim].d.len == len);
}

/* resolve_named - dimensions that the file names; DS_NONE stays for the other axes. */
static int resolve_named(struct h5_build *b, const struct tables *t, struct h5_barray *w,
			 uint32_t *dims, struct err *e)
{
	const struct netcdf_hints *f = &w->facts;
	uint32_t group = w->a.group, file = w->x.file;
	/* netCDF-C decides by the first axis whether there are scales at all */
	uint32_t n_refs = f->n_refs && f->refs[0] != HADDR_UNDEF ? f->n_refs : 0;

	for (uint32_t i = 0; i < w->x.rank; i++) {
		uint64_t len = w->x.extent[i];
		uint32_t dim = i == 0 ? w->own_dim : DS_NONE;

		if (!dims_fits(b, dim, len) && f->n_coords == w->x.rank && f->coords[i] >= 0)
			dim = dims_find(b, t, true, group, file, (uint64_t)f->coords[i]);
		if (!dims_fits(b, dim, len) && i < n_refs && f->refs[i] != HADDR_UNDEF)
			dim = dims_find(b, t, false, group, file, f->refs[i]);
		if (dim != DS_NONE && !dims_fits(b, dim, len)) {
			int rc = h5_note(b, e,
					 "axis %" PRIu32 " has length %" PRIu64
					 ", but its dimension scale '%s' has length %" PRIu64
					 ": the scale is not used",
					 i, len, b->dims[dim].d.name, b->dims[dim].d.len);

			if (rc < 0)
				return rc;
			dim = DS_NONE;
		}
		if (dim != DS_NONE)
			b->dims[dim].d.len = u64_max(b->dims[dim].d.len, len);
		dims[i] = dim;
	}
	for (uint32_t i = w->x.rank; i < w->a.rank; i++)
		dims[i] = DS_NONE;
	return 0;
}

/* ---- phony dimensions ---- */

static uint32_t *bucket_of(const struct tables *t, uint32_t group, uint64_t len, bool unlimited)
{
	uint64_t h = len * 0x9e3779b97f4a7c15u ^ ((uint64_t)group << 1 | unlimited);

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return t->buckets[(h ^ h >> 32) % BUCKETS];
}

/* hash_put - add a dimension; later ones of the same kind are found after earlier ones. */
static void hash_put(const struct h5_build *b, const struct tables *t, uint32_t dim)
{
	const struct ds_dim *d = &b->dims[dim].d;
	uint32_t *in = bucket_of(t, d->group, d->len, d->unlimited);

	*(in[0] ? &b->dims[in[1] - 1].next : &in[0]) = dim + 1;
	in[1] = dim + 1;
}

static bool dims_name_taken(const struct h5_build *b, const struct tables *t, const char *name)
{
	for (uint32_t i = 0; t->look_alikes && i < t->n; i++)
		if (strcmp(b->dims[i].d.name, name) == 0)
			return true;
	return false;
}

static int make_phony(struct h5_build *b, struct tables *t, uint32_t group, uint64_t len,
		      bool unlimited, uint32_t *ret, struct err *e)
{
	struct h5_bdim d = {
		.d = {.len = len, .unlimited = unlimited, .phony = true, .group = group},
		.addr = UINT64_MAX};
	char name[48];
	int rc;

	do {
		d.dimid = b->next_dimid++;
		(void)snprintf(name, sizeof(name), "phony_dim_%" PRId64, d.dimid);
	} while (dims_name_taken(b, t, name));
	d.d.name = arena_strdup(b->arena, name);
	if (!d.d.name)
		return h5_full(b, e);
	rc = push_dim(b, &d, ret, e);
	if (rc == 0)
		hash_put(b, t, *ret);
	return rc;
}

/* phony - a dimension of the group for an axis without one; never one that another axis of the
 * array (rank axes, dims) has. Real dimensions of the right length count, as in netCDF-C. */
static int phony(struct h5_build *b, struct tables *t, uint32_t group, uint64_t len,
		 bool unlimited, const uint32_t *dims, uint32_t rank, uint32_t *ret,
		 struct err *e)
{
	uint32_t next;

	for (uint32_t i = bucket_of(t, group, len, unlimited)[0]; i; i = next) {
		const uint32_t dim = i - 1;
		const struct ds_dim *d = &b->dims[dim].d;
		bool used = false;

		next = b->dims[dim].next;
		for (uint32_t k = 0; k < rank; k++)
			used |= dims[k] == dim;
		if (d->group != group || d->len != len || d->unlimited != unlimited || used)
			continue;
		*ret = dim;
		return 0;
	}
	return make_phony(b, t, group, len, unlimited, ret, e);
}

static int resolve_phony(struct h5_build *b, struct tables *t, const struct h5_barray *w,
			 uint32_t *dims, struct err *e)
{
	for (uint32_t i = 0; i < w->a.rank; i++) {
		bool own = i < w->x.rank;
		int rc;

		if (dims[i] != DS_NONE)
			continue;
		rc = phony(b, t, w->a.group, own ? w->x.extent[i] : w->a.shape[i],
			   own && w->max[i] == H5S_UNLIMITED, dims, w->a.rank, &dims[i], e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int phony_below(struct h5_build *b, struct tables *t, uint32_t group, uint32_t **dims,
		       struct err *e)
{
	const struct h5_bgroup *g = &b->groups[group];
	int rc = 0;

	/* groups are at most HDF5_DEPTH_MAX deep */
	for (uint32_t i = 0; i < g->g.n_groups && rc == 0; i++)
		rc = phony_below(b, t, g->first_group + i, dims, e);
	for (uint32_t i = 0; i < g->g.n_arrays && rc == 0; i++)
		if (!b->arrays[g->first_array + i].dead)
			rc = resolve_phony(b, t, &b->arrays[g->first_array + i],
					   dims[g->first_array + i], e);
	return rc;
}

/* dims_finish - lengths of dimensions become lengths of arrays, and stored-in-one-piece
 * arrays are cut now that their shape is known. */
static int dims_finish(struct h5_build *b, struct h5_barray *w, const uint32_t *dims,
		       struct err *e)
{
	uint64_t *shape = arena_alloc(b->arena, w->a.rank, sizeof(*shape)), *chunk = NULL;
	const struct source_options *o = &b->src->g.opts;
	struct err why = ERR_INIT;
	uint64_t elem = dt_is_vlen(&w->a.type) ? 16 : w->a.type.size, n = elem;
	int rc;

	if (!w->a.chunk) {
		chunk = arena_alloc(b->arena, w->a.rank, sizeof(*chunk));
		w->a.chunk = chunk;
	}
	if (!shape || !w->a.chunk)
		return h5_full(b, e);
	for (uint32_t i = 0; i < w->a.rank; i++)
		shape[i] = b->dims[dims[i]].d.len;
	w->a.shape = shape;
	w->a.dims = dims;
	if (chunk)
		ds_split_chunks(shape, w->a.rank, elem, o->cut_bytes, chunk);
	rc = ds_array_finish(&b->src->g.base.ds, &w->a, UINT64_MAX, &why);
	for (uint32_t i = 0; i < w->a.rank && rc == 0; i++)
		if (ckd_mul(&n, n, w->a.chunk[i]))
			rc = err_set(&why, -ERANGE, "a chunk is too large");
	if (rc < 0) {
		w->dead = true;
		return h5_mark_unreadable(b, w->a.group, w->a.name, &why, e);
	}
	if (n > o->max_chunk_bytes && !w->a.unreadable) {
		char text[160];

		(void)snprintf(text, sizeof(text),
			       "a chunk has %" PRIu64 " bytes, more than max_chunk=%" PRIu64, n,
			       o->max_chunk_bytes);
		w->a.unreadable = arena_strdup(b->arena, text);
		if (!w->a.unreadable)
			return h5_full(b, e);
	}
	return 0;
}

static void dims_set_path(struct h5_build *b, const struct h5_barray *w)
{
	uint32_t up[HDF5_DEPTH_MAX], n = 0, g = w->a.group;

	for (; g && n < HDF5_DEPTH_MAX; g = b->groups[g].g.parent)
		up[n++] = g;
	buf_clear(&b->path);
	while (n-- > 0)
		buf_printf(&b->path, "/%s", b->groups[up[n]].g.name);
	buf_printf(&b->path, "/%s", w->a.name);
}

/* dims_each - the steps in order; every array's scale lengths must be known before phony
 * ones. */
static int dims_each(struct h5_build *b, struct tables *t, uint32_t **dims, struct err *e)
{
	int rc = tables_make(b, t, e);

	for (size_t i = 0; i < b->n_arrays && rc == 0; i++) {
		struct h5_barray *w = &b->arrays[i];

		if (w->dead)
			continue;
		dims[i] = arena_alloc(b->arena, w->a.rank, sizeof(**dims));
		if (!dims[i])
			return h5_full(b, e);
		if (w->facts.n_refs || w->facts.n_coords)
			dims_set_path(b, w);
		rc = resolve_named(b, t, w, dims[i], e);
	}
	for (uint32_t i = 0; i < b->n_dims && rc == 0; i++)
		hash_put(b, t, i);
	rc = rc ? rc : phony_below(b, t, 0, dims, e);
	for (size_t i = 0; i < b->n_arrays && rc == 0; i++) {
		if (b->arrays[i].dead)
			continue;
		dims_set_path(b, &b->arrays[i]);
		rc = dims_finish(b, &b->arrays[i], dims[i], e);
	}
	return rc;
}

int h5_dims_resolve(struct h5_build *b, struct err *e)
{
	auto_free uint32_t **dims = alloc_array(b->n_arrays, sizeof(*dims));
	struct tables t = {0};
	int rc = dims ? dims_each(b, &t, dims, e) : err_nomem(e);

	free(t.by_addr);
	free(t.by_id);
	free(t.buckets);
	return rc;
}
