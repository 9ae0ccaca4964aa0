/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_dims.c - decides the coordinate variable and the name of each dimension.
 *
 * The rule is netCDF's: a variable that has the name of its first dimension, in the same group, is
 * that dimension's scale. A dimension without one is a dataset of its own, whose name must be
 * unique in the group. */
#include "hdf5view/netcdf4/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void nc_dims_scales(struct nc_model *m)
{
	const struct dataset *ds = m->ds;

	for (uint32_t d = 0; d < ds->n_dims; d++)
		m->dims[d].scale = DS_NONE;
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[i];
		const struct ds_dim *d;

		m->arrays[i].scale_of = DS_NONE;
		if (!m->arrays[i].name || a->rank == 0)
			continue;
		d = &ds->dims[a->dims[0]];
		if (d->group != a->group || strcmp(d->name, a->name) != 0 ||
		    m->dims[a->dims[0]].scale != DS_NONE)
			continue;
		m->dims[a->dims[0]].scale = i;
		m->arrays[i].scale_of = a->dims[0];
	}
}

/* schema_dims_number - assign ids in the order of each group, as in the dataset. */
static void schema_dims_number(struct nc_model *m)
{
	uint32_t id = 0;

	for (uint32_t k = 0; k < m->ds->n_groups; k++) {
		const struct ds_group *g = &m->ds->groups[m->order[k]];

		for (uint32_t i = 0; i < g->n_dims; i++)
			m->dims[g->dims[i]].id = id++;
	}
}

int nc_dims_names(struct nc_model *m, struct err *e)
{
	schema_dims_number(m);
	for (uint32_t i = 0; i < m->ds->n_dims; i++) {
		const struct ds_dim *d = &m->ds->dims[i];
		struct nc_dim *x = &m->dims[i];
		const char *want;

		x->len = d->len;
		x->group = d->group;
		x->unlimited = d->unlimited;
		if (x->scale != DS_NONE) {
			x->name = m->arrays[x->scale].name;
			continue;
		}
		want = nc_escape(&m->arena, d->name, NC_NAME_LIMIT);
		if (!want)
			return nc_full(m, e);
		x->name = nc_names_claim(&m->names, &m->arena, d->group, want, DS_NONE,
					 NC_NAME_LIMIT);
		if (!x->name)
			return nc_full(m, e);
		if (strcmp(x->name, d->name) != 0 &&
		    nc_note(m, d->group, DS_NONE, "dimension '%s' is shown as '%s'", d->name,
			    x->name) < 0)
			return err_nomem(e);
	}
	return 0;
}

/* text_dim - find the dimension of `size` characters: one of the root group's own with this name
 * and length, else a new one. */
static int text_dim(struct nc_model *m, uint32_t size, uint32_t *ret, struct err *e)
{
	char want[24];
	const char *name;
	struct nc_name *s;

	(void)snprintf(want, sizeof(want), "string%" PRIu32, size);
	s = nc_names_find(&m->names, NC_SCOPE_STRINGS, want);
	if (s) {
		*ret = s->value;
		return 0;
	}
	if (grow_array(&m->dims, &m->c_dims, (size_t)m->n_dims + 1, sizeof(*m->dims)) < 0)
		return err_nomem(e);
	name = arena_strdup(&m->arena, want);
	if (!name || nc_names_add(&m->names, NC_SCOPE_STRINGS, name, m->n_dims) < 0)
		return nc_full(m, e);
	name = nc_names_claim(&m->names, &m->arena, 0, name, DS_NONE, NC_NAME_LIMIT);
	if (!name)
		return nc_full(m, e);
	m->dims[m->n_dims] = (struct nc_dim){
		.name = name, .len = size, .scale = DS_NONE, .id = m->n_dims};
	*ret = m->n_dims++;
	return 0;
}

/* own_text_dims - find dimensions of the root group that strings can use. */
static int own_text_dims(struct nc_model *m, struct err *e)
{
	char want[24];

	for (uint32_t i = 0; i < m->ds->n_dims; i++) {
		const struct nc_dim *d = &m->dims[i];

		(void)snprintf(want, sizeof(want), "string%" PRIu64, d->len);
		if (d->group != 0 || d->unlimited || strcmp(d->name, want) != 0)
			continue;
		if (nc_names_add(&m->names, NC_SCOPE_STRINGS, d->name, i) == -ENOMEM)
			return nc_full(m, e);
	}
	return 0;
}

int nc_dims_strings(struct nc_model *m, struct err *e)
{
	int rc = own_text_dims(m, e);

	for (uint32_t i = 0; i < m->ds->n_arrays && !rc; i++) {
		const struct dtype *t = &m->ds->arrays[i].type;

		m->arrays[i].text_dim = DS_NONE;
		if (m->arrays[i].name && t->kind == DT_STRING && t->size > 1)
			rc = text_dim(m, t->size, &m->arrays[i].text_dim, e);
	}
	return rc;
}
