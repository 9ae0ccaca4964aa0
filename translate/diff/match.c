/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - matches the groups and arrays of `now` with those of `was`: the same path, or an array
 * that the job reports as moved. */
#include "translate/diff/diff_int.h"

#include <errno.h>
#include <string.h>

#include "translate/model/value.h"
#include "translate/plan/plan.h"

/* diff_match_none - n entries of DS_NONE; new. */
static uint32_t *diff_match_none(uint32_t n)
{
	uint32_t *v = alloc_array(n, sizeof(*v));

	for (uint32_t i = 0; v && i < n; i++)
		v[i] = DS_NONE;
	return v;
}

/* ---- arrays ---- */

static bool fills_same(const struct ds_array *a, const struct ds_array *b)
{
	if (a->fill_defined != b->fill_defined)
		return false;
	if (dt_is_vlen(&a->type))
		return value_text_equal(&a->fill_text, &b->fill_text);
	return !a->fill || !b->fill ? a->fill == b->fill
				    : diff_values_same(&a->type, a->fill, b->fill, 1);
}

bool diff_form_same(const struct ds_array *a, const struct ds_array *b)
{
	if (a->rank != b->rank || !value_types_equal(&a->type, &b->type) ||
	    !plan_chain_equal(&a->chain, &b->chain) || !fills_same(a, b))
		return false;
	for (uint32_t i = 0; i < a->rank; i++)
		if (a->chunk[i] != b->chunk[i])
			return false;
	return true;
}

static bool shapes_same(const struct ds_array *a, const struct ds_array *b)
{
	return a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof(*a->shape)) == 0;
}

/* match_paths - match arrays of the same path that are stored alike. Otherwise the new one is
 * another array, and the old one is removed. */
static void match_paths(struct diff *p, const uint32_t *by_path)
{
	for (uint32_t i = 0; i < p->now->n_arrays; i++) {
		const struct ds_array *a = &p->now->arrays[i];
		uint32_t was = by_path[i];

		p->arrays[i] = (struct diff_array){.was = DS_NONE, .state = DIFF_NEW};
		if (was == DS_NONE || !diff_form_same(a, &p->was->arrays[was]))
			continue;
		p->arrays[i].was = was;
		p->arrays[i].state =
			shapes_same(a, &p->was->arrays[was]) ? DIFF_SAME : DIFF_RESIZED;
		p->array_now[was] = i;
	}
}

/* match_moved - match new arrays that are old ones under another name. Only between groups that
 * exist before and after: other groups are made and removed at other times. */
static void match_moved(struct diff *p)
{
	const struct diff_job *job = p->job;

	if (!job->moved_from || !p->was || !job->sink->ops->rename_array)
		return;
	for (uint32_t i = 0; i < p->now->n_arrays; i++) {
		const struct ds_array *a = &p->now->arrays[i], *b;
		uint32_t was;

		if (p->arrays[i].state != DIFF_NEW || p->group_was[a->group] == DS_NONE)
			continue;
		was = job->moved_from(job->arg, i);
		if (was >= p->was->n_arrays || p->array_now[was] != DS_NONE)
			continue;
		b = &p->was->arrays[was];
		if (p->group_now[b->group] == DS_NONE || !diff_form_same(a, b) ||
		    !shapes_same(a, b))
			continue;
		p->arrays[i].was = was;
		p->arrays[i].state = DIFF_MOVED;
		p->array_now[was] = i;
	}
}

int diff_match(struct diff *p, struct err *e)
{
	auto_free uint32_t *by_path = diff_match_none(p->now->n_arrays);
	int rc;

	p->order = ds_group_order(p->now, &p->n_order);
	p->was_order = p->was ? ds_group_order(p->was, &p->n_was_order) : NULL;
	p->group_was = diff_match_none(p->now->n_groups);
	p->group_now = diff_match_none(p->was ? p->was->n_groups : 0);
	p->array_now = diff_match_none(p->was ? p->was->n_arrays : 0);
	p->arrays = alloc_array(p->now->n_arrays, sizeof(*p->arrays));
	p->dim_was = diff_match_none(p->now->n_dims);
	if (!by_path || !p->order || (p->was && !p->was_order) || !p->group_was ||
	    !p->group_now || !p->array_now || !p->arrays || !p->dim_was)
		return err_nomem(e);
	rc = p->was ? ds_match(p->now, p->was, p->group_was, by_path, p->dim_was, e) : 0;
	if (rc)
		return rc;
	for (uint32_t g = 0; g < p->now->n_groups; g++)
		if (p->group_was[g] != DS_NONE)
			p->group_now[p->group_was[g]] = g;
	match_paths(p, by_path);
	match_moved(p);
	return 0;
}

/* ---- dimensions ---- */

static bool dim_same(const struct diff *p, uint32_t now, uint32_t was)
{
	const struct ds_dim *a = &p->now->dims[now], *b = &p->was->dims[was];

	return p->group_was[a->group] == b->group && a->len == b->len &&
	       a->unlimited == b->unlimited && a->phony == b->phony &&
	       strcmp(a->name, b->name) == 0;
}

/* dims_of_arrays_differ - whether an array that stays has other dimensions. */
static bool dims_of_arrays_differ(const struct diff *p)
{
	for (uint32_t i = 0; i < p->now->n_arrays; i++) {
		const struct ds_array *a = &p->now->arrays[i], *b;

		if (p->arrays[i].was == DS_NONE)
			continue;
		b = &p->was->arrays[p->arrays[i].was];
		for (uint32_t d = 0; d < a->rank; d++)
			if (!dim_same(p, a->dims[d], b->dims[d]))
				return true;
	}
	return false;
}

/* dims_of_groups_differ - whether a group that stays has other dimensions. */
static bool dims_of_groups_differ(const struct diff *p)
{
	for (uint32_t i = 0; i < p->n_order; i++) {
		const struct ds_group *g = &p->now->groups[p->order[i]];
		uint32_t was = p->group_was[p->order[i]];

		if (was == DS_NONE)
			continue;
		if (g->n_dims != p->was->groups[was].n_dims)
			return true;
		for (uint32_t k = 0; k < g->n_dims; k++)
			if (p->dim_was[g->dims[k]] == DS_NONE ||
			    !dim_same(p, g->dims[k], p->dim_was[g->dims[k]]))
				return true;
	}
	return false;
}

bool diff_dims_differ(const struct diff *p)
{
	if (!p->was)
		return p->shaped || p->now->n_dims > 0;
	return p->shaped || dims_of_arrays_differ(p) || dims_of_groups_differ(p);
}
