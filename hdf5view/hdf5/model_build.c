/* SPDX-License-Identifier: BSD-3-Clause */
/* model_build.c - the growing model: notes, names, and its conversion to a dataset. */
#include "hdf5view/hdf5/library.h"

#include "base/core/utf8.h"

#include <errno.h>
#include <string.h>

int h5_full(const struct h5_build *b, struct err *e)
{
	return arena_full(b->arena, e, "the metadata");
}

int h5_note(struct h5_build *b, struct err *e, const char *fmt, ...)
{
	va_list ap;
	int rc;

	resource_errors_note(); /* record a shortage that made this object unreadable */
	va_start(ap, fmt);
	rc = ds_notes_add(&b->notes, b->arena, b->path.len ? (const char *)b->path.data : "/",
			  b->path.len ? b->path.len : 1, fmt, ap, e);
	va_end(ap);
	return rc;
}

int h5_mark_unreadable(struct h5_build *b, uint32_t group, const char *name,
		       const struct err *why, struct err *e)
{
	int rc = h5_note(b, e, "is left out: %s", why->msg);

	/* a member that was read and has no presentation is proven absent from the view */
	if (rc == 0 && why->code != -EOPNOTSUPP)
		rc = unreadable_add(&b->lost, group, name, e);
	return rc;
}

const char *h5_name(struct h5_build *b, const char *raw, bool *ret_mapped)
{
	return utf8_copy(b->arena, raw, strlen(raw), NULL, ret_mapped);
}

void h5_build_release(struct h5_build *b)
{
	for (uint32_t i = 0; i < b->src->n_files; i++) {
		h5_id_close(&b->src->files[i].id);
		b->src->files[i].id = 0;
	}
	h5_id_close(&b->lapl);
	h5_id_close(&b->file);
	b->file = b->lapl = 0;
	free(b->groups);
	free(b->arrays);
	free(b->dims);
	ds_notes_release(&b->notes);
	unreadable_release(&b->lost);
	buf_release(&b->path);
}

/* ---- freezing ---- */

/* renumber - ordinals of live groups and arrays, DS_NONE for dropped ones. */
static uint32_t *renumber_groups(const struct h5_build *b, uint32_t *ret_n)
{
	uint32_t *map = alloc_array(b->n_groups, sizeof(*map)), n = 0;

	for (size_t i = 0; map && i < b->n_groups; i++) {
		const struct h5_bgroup *g = &b->groups[i];

		/* parents come first, so a dropped one takes its children along */
		if (g->dead || (i > 0 && map[g->g.parent] == DS_NONE))
			map[i] = DS_NONE;
		else
			map[i] = n++;
	}
	*ret_n = n;
	return map;
}

/* places - one slot for all arrays that are the same object in the same grid. */
static int by_object(const void *pa, const void *pb)
{
	const struct h5_array *a = *(const struct h5_array *const *)pa;
	const struct h5_array *b = *(const struct h5_array *const *)pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int share_places(struct h5_source *s, struct err *e)
{
	struct dataset *ds = &s->g.base.ds;
	auto_free struct h5_array **order =
		alloc_array(ds->n_arrays, sizeof(struct h5_array *));

	if (!order)
		return err_nomem(e);
	for (uint32_t i = 0; i < ds->n_arrays; i++)
		order[i] = &s->arrays[i];
	qsort(order, ds->n_arrays, sizeof(struct h5_array *), by_object);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		struct h5_array *x = order[i], *y = i ? order[i - 1] : NULL;
		struct ds_array *a = &ds->arrays[x - s->arrays];

		x->slot = s->n_places;
		if (y && y->file == x->file && y->addr == x->addr) {
			const struct ds_array *before = &ds->arrays[y - s->arrays];

			a->key = before->key;
			if (before->rank == a->rank &&
			    memcmp(before->shape, a->shape, a->rank * sizeof(*a->shape)) == 0)
				x->slot = y->slot;
		} else {
			/* addresses in other files may be equal to addresses here: number those
			 * down */
			a->key = x->file ? UINT64_MAX - i : s->raw.base + x->addr;
		}
		s->n_places += x->slot == s->n_places;
	}
	return 0;
}

static int build_move_arrays(struct h5_build *b, const uint32_t *gmap, struct err *e)
{
	struct dataset *ds = &b->src->g.base.ds;
	uint32_t n = 0;

	for (size_t i = 0; i < b->n_arrays; i++) {
		b->arrays[i].dead |= gmap[b->arrays[i].a.group] == DS_NONE;
		n += !b->arrays[i].dead;
	}
	ds->arrays = arena_alloc(b->arena, n, sizeof(*ds->arrays));
	b->src->arrays = arena_alloc(b->arena, n, sizeof(*b->src->arrays));
	if (!ds->arrays || !b->src->arrays)
		return h5_full(b, e);
	for (size_t i = 0; i < b->n_arrays; i++) {
		if (b->arrays[i].dead)
			continue;
		ds->arrays[ds->n_arrays] = b->arrays[i].a;
		ds->arrays[ds->n_arrays].group = gmap[b->arrays[i].a.group];
		b->src->arrays[ds->n_arrays++] = b->arrays[i].x;
	}
	return 0;
}

static int move_dims(struct h5_build *b, const uint32_t *gmap, struct err *e)
{
	struct dataset *ds = &b->src->g.base.ds;

	ds->dims = arena_alloc(b->arena, b->n_dims, sizeof(*ds->dims));
	b->src->dims = arena_alloc(b->arena, b->n_dims, sizeof(*b->src->dims));
	if (!ds->dims || !b->src->dims)
		return h5_full(b, e);
	ds->n_dims = (uint32_t)b->n_dims;
	for (uint32_t i = 0; i < ds->n_dims; i++) {
		uint32_t g = b->dims[i].d.group;

		/* a dimension may outlive its group where another group's array uses it */
		while (gmap[g] == DS_NONE)
			g = b->groups[g].g.parent;
		ds->dims[i] = b->dims[i].d;
		ds->dims[i].group = gmap[g];
		b->src->dims[i] =
			(struct h5_node){.addr = b->dims[i].addr,
					 .dimid = b->dims[i].has_dimid ? b->dims[i].dimid : -1,
					 .file = b->dims[i].file};
	}
	return 0;
}

static int by_dimid(const void *pa, const void *pb, void *arg)
{
	const struct h5_bdim *dims = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	if (dims[a].dimid != dims[b].dimid)
		return dims[a].dimid < dims[b].dimid ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int build_move_groups(struct h5_build *b, const uint32_t *gmap, struct err *e)
{
	struct dataset *ds = &b->src->g.base.ds;
	int rc;

	ds->groups = arena_alloc(b->arena, ds->n_groups, sizeof(*ds->groups));
	b->src->groups = arena_alloc(b->arena, ds->n_groups, sizeof(*b->src->groups));
	if (!ds->groups || !b->src->groups)
		return h5_full(b, e);
	for (size_t i = 0; i < b->n_groups; i++) {
		struct ds_group *g;

		if (gmap[i] == DS_NONE)
			continue;
		g = &ds->groups[gmap[i]];
		*g = b->groups[i].g;
		g->parent = i ? gmap[g->parent] : DS_NONE;
		b->src->groups[gmap[i]] =
			(struct h5_node){.addr = b->groups[i].addr, .file = b->groups[i].file};
	}
	rc = ds_group_members(ds, e);
	for (uint32_t i = 0; rc == 0 && i < ds->n_groups; i++)
		qsort_r((uint32_t *)(uintptr_t)ds->groups[i].dims, ds->groups[i].n_dims,
			sizeof(uint32_t), by_dimid, b->dims);
	return rc;
}

int h5_freeze(struct h5_build *b, struct err *e)
{
	struct dataset *ds = &b->src->g.base.ds;
	struct err local = ERR_INIT;
	auto_free uint32_t *gmap = renumber_groups(b, &ds->n_groups);
	int rc;

	e = e ? e : &local;
	if (!gmap)
		return err_nomem(e);
	rc = build_move_arrays(b, gmap, e);
	rc = rc ? rc : move_dims(b, gmap, e);
	rc = rc ? rc : build_move_groups(b, gmap, e);
	rc = rc ? rc : unreadable_freeze(&b->lost, gmap, b->arena, ds, e);
	rc = rc ? rc : share_places(b->src, e);
	rc = rc ? rc : ds_notes_freeze(&b->notes, b->arena, ds, e);
	if (rc < 0)
		return rc;
	ds->format = arena_strdup(b->arena, b->netcdf ? "netCDF-4" : "HDF5");
	return ds->format ? 0 : h5_full(b, e);
}
