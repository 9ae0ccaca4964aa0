/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - finds the objects of the new dataset that are in the file already, by path. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <string.h>


/* ---- dimensions ---- */

/* match_axes - compare the dimensions of arrays that stay; rewrite the lists of those that
 * change. */
static void match_axes(struct h5_sink *s, const uint32_t *dim_was, uint32_t i)
{
	const struct ds_array *a = &s->now->ds.arrays[i], *w, *r;
	struct hdf5_sink_array *x = &s->arrays[i];

	if (x->real == DS_NONE || x->was == DS_NONE)
		return;
	w = &s->was->ds.arrays[x->was];
	r = &s->real->g.base.ds.arrays[x->real];
	if (w->rank != a->rank || r->rank != a->rank)
		return;
	for (uint32_t k = 0; k < a->rank; k++) {
		struct hdf5_sink_dim *d = &s->dims[a->dims[k]];
		/* an axis whose length differs from others' has lost its dimension name in the
		 * conversion */
		bool phony = s->now->ds.dims[a->dims[k]].phony;

		if (dim_was[a->dims[k]] != w->dims[k] && !phony)
			x->retie = true;
		else if (d->real == DS_NONE && !phony)
			d->real = r->dims[k];
	}
}

/* text_dims - find the file's dimensions for strings that the model added. */
static void text_dims(struct h5_sink *s)
{
	const struct dataset *r = &s->real->g.base.ds;

	for (uint32_t d = s->now->ds.n_dims; d < s->m->n_dims; d++)
		for (uint32_t i = 0; i < r->n_dims && s->dims[d].real == DS_NONE; i++)
			if (r->dims[i].group == 0 && !r->dims[i].phony &&
			    !r->dims[i].unlimited && r->dims[i].len == s->m->dims[d].len &&
			    strcmp(r->dims[i].name, s->m->dims[d].name) == 0)
				s->dims[d].real = i;
}

static int match_dims(struct h5_sink *s, struct err *e)
{
	const struct dataset *now = &s->now->ds;
	auto_free uint32_t *dim_was = alloc_array(now->n_dims, sizeof(*dim_was));
	auto_free uint32_t *by_path = alloc_array(now->n_dims, sizeof(*by_path));
	int rc = !dim_was || !by_path ? err_nomem(e) : 0;

	rc = rc ? rc : ds_match(now, &s->was->ds, NULL, NULL, dim_was, e);
	rc = rc ? rc : ds_match(now, &s->real->g.base.ds, NULL, NULL, by_path, e);
	if (rc)
		return rc;
	for (uint32_t d = 0; d < s->m->n_dims; d++)
		s->dims[d] =
			(struct hdf5_sink_dim){.real = DS_NONE, .addr = HADDR_UNDEF, .id = -1};
	for (uint32_t i = 0; i < now->n_arrays; i++)
		match_axes(s, dim_was, i);
	for (uint32_t d = 0; d < now->n_dims; d++)
		if (s->dims[d].real == DS_NONE && !now->dims[d].phony)
			s->dims[d].real = by_path[d];
	text_dims(s);
	for (uint32_t d = 0; d < now->n_dims; d++)
		if (s->dims[d].real != DS_NONE &&
		    s->real->g.base.ds.dims[s->dims[d].real].unlimited)
			s->shown_dims[d].unlimited = s->m->dims[d].unlimited = true;
	for (uint32_t d = 0; d < s->m->n_dims; d++) {
		const struct h5_node *x =
			s->dims[d].real == DS_NONE ? NULL : &s->real->dims[s->dims[d].real];

		if (x && x->file == 0 && x->addr != UINT64_MAX) {
			s->dims[d].addr = x->addr;
			s->dims[d].id = (int32_t)x->dimid;
		}
	}
	return 0;
}

/* match_number - assign netCDF's numbers to new dimensions, unless the file's scales
 * have none. */
static void match_number(struct h5_sink *s)
{
	int64_t next = 0;

	for (uint32_t i = 0; i < s->real->g.base.ds.n_dims; i++) {
		const struct h5_node *x = &s->real->dims[i];

		if (x->addr == UINT64_MAX || x->file != 0)
			continue;
		if (x->dimid < 0 || x->dimid >= INT32_MAX - 1) {
			next = -1;
			break;
		}
		if (x->dimid >= next)
			next = x->dimid + 1;
	}
	s->next_id = (int32_t)next;
}

/* ---- all of it ---- */

/* make_model - the netCDF model of `now`. Chunks without a codec do not matter. */
static int make_model(struct h5_sink *s, struct err *e)
{
	const struct nc_view_options o = {.name = "",
					  .policy.filter = PLAN_NONE,
					  .max_image_bytes = (uint64_t)1 << 46,
					  .keep_going = true};
	const struct dataset *ds = &s->now->ds;

	s->shown = alloc_array(ds->n_arrays, sizeof(*s->shown));
	s->plans = alloc_array(ds->n_arrays, sizeof(*s->plans));
	s->shown_dims = alloc_array(ds->n_dims, sizeof(*s->shown_dims));
	if (!s->shown || !s->plans || !s->shown_dims)
		return err_nomem(e);
	for (uint32_t d = 0; d < ds->n_dims; d++)
		s->shown_dims[d] = ds->dims[d];
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		s->shown[i] = ds->arrays[i];
		s->shown[i].unreadable = NULL;
	}
	s->view = *s->now;
	s->view.ds.arrays = s->shown;
	s->view.ds.dims = s->shown_dims;
	return nc_model_new(&s->view, &o, s->plans, &s->m, e);
}

static int by_slot(const void *pa, const void *pb, void *arg)
{
	const struct h5_array *x = arg, *a = &x[*(const uint32_t *)pa],
			      *b = &x[*(const uint32_t *)pb];

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* find_shared - find arrays of the file that are one object. */
static int find_shared(struct h5_sink *s, struct err *e)
{
	uint32_t n = s->real->g.base.ds.n_arrays;
	auto_free uint32_t *order = alloc_array(n, sizeof(*order));

	if (!order)
		return err_nomem(e);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	if (n > 1)
		qsort_r(order, n, sizeof(*order), by_slot, s->real->arrays);
	for (uint32_t i = 1; i < n; i++)
		if (by_slot(&order[i - 1], &order[i], s->real->arrays) == 0)
			s->shared[order[i - 1]] = s->shared[order[i]] = true;
	return 0;
}

static int make_tables(struct h5_sink *s, struct err *e)
{
	const struct dataset *was = &s->was->ds, *now = &s->now->ds;

	s->arrays = alloc_array(now->n_arrays, sizeof(*s->arrays));
	s->group_was = alloc_array(now->n_groups, sizeof(*s->group_was));
	s->real_array = alloc_array(was->n_arrays, sizeof(*s->real_array));
	s->real_group = alloc_array(was->n_groups, sizeof(*s->real_group));
	s->shared = alloc_array(s->real->g.base.ds.n_arrays, sizeof(*s->shared));
	return s->arrays && s->group_was && s->real_array && s->real_group && s->shared
		       ? find_shared(s, e)
		       : err_nomem(e);
}

/* match_place - the addresses of the groups and arrays of `now` that the file has. */
static void match_place(struct h5_sink *s, const uint32_t *array_was)
{
	const struct dataset *now = &s->now->ds;

	for (uint32_t g = 0; g < now->n_groups; g++) {
		uint32_t w = s->group_was[g], r = w == DS_NONE ? DS_NONE : s->real_group[w];
		bool own = r != DS_NONE && s->real->groups[r].file == 0;

		s->b.groups[g] = own ? s->real->groups[r].addr : HADDR_UNDEF;
	}
	for (uint32_t i = 0; i < now->n_arrays; i++) {
		struct hdf5_sink_array *x = &s->arrays[i];

		x->was = array_was[i];
		x->real = x->was == DS_NONE ? DS_NONE : s->real_array[x->was];
		x->addr = HADDR_UNDEF;
		if (x->real != DS_NONE && s->real->arrays[x->real].file == 0)
			x->addr = s->real->arrays[x->real].addr;
		s->b.arrays[i] = x->addr;
	}
}

int hdf5_sink_begin(struct h5_sink *s, struct err *e)
{
	auto_free uint32_t *array_was = alloc_array(s->now->ds.n_arrays, sizeof(*array_was));
	const struct dataset *real = &s->real->g.base.ds;
	int rc = array_was ? make_tables(s, e) : err_nomem(e);

	rc = rc ? rc : make_model(s, e);
	rc = rc ? rc : nc_builder_init(&s->b, s->m, UINT64_MAX, e);
	if (rc)
		return rc;
	s->b.file = s->file;
	s->dims = alloc_array(s->m->n_dims, sizeof(*s->dims));
	if (!s->dims)
		return err_nomem(e);
	rc = ds_match(&s->was->ds, real, s->real_group, s->real_array, NULL, e);
	rc = rc ? rc : ds_match(&s->now->ds, &s->was->ds, s->group_was, array_was, NULL, e);
	if (rc)
		return rc;
	match_place(s, array_was);
	match_number(s);
	return match_dims(s, e);
}
