/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - finds the objects of one dataset in another one, by path.
 *
 * Names are looked up in one table of all objects, by group and name, so that the cost does not
 * depend on the number of variables. */
#include "translate/model/dataset.h"

#include <errno.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/map.h"

enum match_kind { MATCH_GROUP, MATCH_ARRAY, MATCH_DIM };

struct match_entry {
	struct link link;
	const char *name;
	enum match_kind kind;
	uint32_t group, ordinal;
};

struct match_table {
	struct map map;
	struct match_entry *v;
	size_t n;
};

static uint64_t match_hash(enum match_kind kind, uint32_t group, const char *name)
{
	return hash_u64(hash_text(HASH_SEED ^ group ^ (uint64_t)kind << 40, name));
}

static uint32_t match_find(const struct match_table *t, enum match_kind kind, uint32_t group,
			   const char *name)
{
	const struct match_entry *x;

	if (group == DS_NONE)
		return DS_NONE;
	MAP_EACH(x, &t->map, match_hash(kind, group, name), link)
		if (x->group == group && x->kind == kind && strcmp(x->name, name) == 0)
			return x->ordinal;
	return DS_NONE;
}

/* match_add - v has room for it. Of dimensions with the same name the first one counts. */
static int match_add(struct match_table *t, enum match_kind kind, uint32_t group,
		     const char *name, uint32_t ordinal)
{
	struct match_entry *x = &t->v[t->n];

	if (match_find(t, kind, group, name) != DS_NONE)
		return 0;
	t->n++;
	*x = (struct match_entry){
		.name = name, .kind = kind, .group = group, .ordinal = ordinal};
	return map_add(&t->map, &x->link, match_hash(kind, group, name));
}

static int match_fill(struct match_table *t, const struct dataset *ds)
{
	int rc = 0;

	t->v = alloc_array((size_t)ds->n_groups + ds->n_arrays + ds->n_dims, sizeof(*t->v));
	if (!t->v)
		return -ENOMEM;
	for (uint32_t i = 1; rc == 0 && i < ds->n_groups; i++)
		rc = match_add(t, MATCH_GROUP, ds->groups[i].parent, ds->groups[i].name, i);
	for (uint32_t i = 0; rc == 0 && i < ds->n_arrays; i++)
		rc = match_add(t, MATCH_ARRAY, ds->arrays[i].group, ds->arrays[i].name, i);
	for (uint32_t i = 0; rc == 0 && i < ds->n_dims; i++)
		rc = match_add(t, MATCH_DIM, ds->dims[i].group, ds->dims[i].name, i);
	return rc;
}

uint32_t *ds_group_order(const struct dataset *ds, uint32_t *ret_n)
{
	uint32_t *order = alloc_array(ds->n_groups, sizeof(*order)), n = 0;

	if (order && ds->n_groups > 0)
		order[n++] = 0;
	for (uint32_t k = 0; k < n; k++) {
		const struct ds_group *g = &ds->groups[order[k]];

		for (uint32_t i = 0; i < g->n_groups && n < ds->n_groups; i++)
			order[n++] = g->groups[i];
	}
	*ret_n = n;
	return order;
}

static int match_groups(const struct dataset *from, const struct match_table *t,
			uint32_t *groups)
{
	uint32_t n;
	auto_free uint32_t *order = ds_group_order(from, &n);

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_groups; i++)
		groups[i] = DS_NONE;
	if (n > 0)
		groups[0] = 0;
	for (uint32_t k = 1; k < n; k++) {
		const struct ds_group *g = &from->groups[order[k]];

		groups[order[k]] = match_find(t, MATCH_GROUP, groups[g->parent], g->name);
	}
	return 0;
}

int ds_match(const struct dataset *from, const struct dataset *to, uint32_t *groups,
	     uint32_t *arrays, uint32_t *dims, struct err *e)
{
	auto_free uint32_t *own = groups ? NULL : alloc_array(from->n_groups, sizeof(*own));
	uint32_t *g = groups ? groups : own;
	struct match_table t = {0};
	int rc = !g || match_fill(&t, to) < 0 || match_groups(from, &t, g) < 0 ? err_nomem(e) : 0;

	for (uint32_t i = 0; i < from->n_arrays && arrays && !rc; i++)
		arrays[i] = match_find(&t, MATCH_ARRAY, g[from->arrays[i].group],
				       from->arrays[i].name);
	for (uint32_t i = 0; i < from->n_dims && dims && !rc; i++)
		dims[i] = match_find(&t, MATCH_DIM, g[from->dims[i].group],
				     from->dims[i].name);
	map_free(&t.map);
	free(t.v);
	return rc;
}
