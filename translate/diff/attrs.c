/* SPDX-License-Identifier: BSD-3-Clause */
/* attrs.c - attributes that were added, removed, or have another type or value. They have no
 * order. */
#include "translate/diff/diff_int.h"
#include "translate/model/value.h"

#include <errno.h>
#include <string.h>

/* values_same - n elements; host: in host order whatever the type says. */
static bool values_same(const struct dtype *t, const uint8_t *a, const uint8_t *b, uint64_t n,
			bool host)
{
	struct dtype own = *t;

	if (n == 0 || t->size == 0 || memcmp(a, b, (size_t)n * t->size) == 0)
		return true;
	if (t->kind != DT_FLOAT && t->kind != DT_COMPLEX)
		return false;
	if (host)
		own.big_endian = HOST_BIG_ENDIAN;
	for (uint64_t i = 0; i < n; i++, a += t->size, b += t->size)
		if (!value_equal(&own, a, &own, b))
			return false;
	return true;
}

bool diff_values_same(const struct dtype *t, const uint8_t *a, const uint8_t *b, uint64_t n)
{
	return values_same(t, a, b, n, false);
}

/* ---- attributes ---- */

/* diff_attrs_attr_same - padding after a fixed-size string is no difference. */
static bool diff_attrs_attr_same(const struct ds_attr *a, const struct ds_attr *b)
{
	struct dtype t = a->type;

	if (t.kind == DT_STRING && t.size != 1 && b->type.size != 1)
		t.size = b->type.size;
	if (!value_types_equal(&t, &b->type) || a->n != b->n || !a->strings != !b->strings ||
	    !a->data != !b->data)
		return false;
	if ((a->rank > 1 || b->rank > 1) &&
	    (a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) != 0))
		return false;
	return a->strings ? value_texts_equal(a->strings, b->strings, a->n)
	       : a->data  ? values_same(&a->type, a->data, b->data, a->n, true)
			  : true;
}

static int diff_attrs_by_name(const void *a, const void *b)
{
	return strcmp((*(const struct ds_attr *const *)a)->name,
		      (*(const struct ds_attr *const *)b)->name);
}

/* diff_attrs_sorted - by name; new, NULL when memory is short. */
static const struct ds_attr **diff_attrs_sorted(const struct ds_attr *attrs, uint32_t n)
{
	const struct ds_attr **v = alloc_array(n, sizeof(*v));

	for (uint32_t i = 0; v && i < n; i++)
		v[i] = &attrs[i];
	if (v && n > 1)
		qsort(v, n, sizeof(*v), diff_attrs_by_name);
	return v;
}

/* diff_attrs_owner - the owner of attributes, as the sink identifies it. */
struct diff_attrs_owner {
	uint32_t group, array;
};

static int diff_attrs_set(struct diff *p, const struct diff_attrs_owner *o,
			  const struct ds_attr *a, struct err *e)
{
	int rc = diff_call(p, e);

	p->report->attrs++;
	return rc ? rc : p->job->sink->ops->set_attr(p->job->sink, o->group, o->array, a, e);
}

static int unset(struct diff *p, const struct diff_attrs_owner *o, const struct ds_attr *a,
		 struct err *e)
{
	int rc = diff_call(p, e);

	p->report->attrs++;
	return rc ? rc
		  : p->job->sink->ops->remove_attr(p->job->sink, o->group, o->array, a->name,
						   e);
}

/* unset_all, set_all - first remove attributes, so that names that differ only in their escaping do
 * not collide. */
static int merge(struct diff *p, const struct diff_attrs_owner *o,
		 const struct ds_attr *const *was, uint32_t n_was,
		 const struct ds_attr *const *now, uint32_t n_now, bool removing, struct err *e)
{
	uint32_t i = 0, k = 0;
	int rc = 0;

	while (rc == 0 && (i < n_was || k < n_now)) {
		int cmp = i == n_was ? 1 : k == n_now ? -1 : strcmp(was[i]->name, now[k]->name);

		if (cmp < 0 && removing)
			rc = unset(p, o, was[i], e);
		else if (!removing &&
			 (cmp > 0 || (cmp == 0 && !diff_attrs_attr_same(was[i], now[k]))))
			rc = diff_attrs_set(p, o, now[k], e);
		i += cmp <= 0;
		k += cmp >= 0;
	}
	return rc;
}

/* all_same - the common case, checked at low cost. */
static bool all_same(const struct ds_attr *was, uint32_t n_was, const struct ds_attr *now,
		     uint32_t n_now)
{
	if (n_was != n_now)
		return false;
	for (uint32_t i = 0; i < n_now; i++)
		if (strcmp(was[i].name, now[i].name) != 0 ||
		    !diff_attrs_attr_same(&was[i], &now[i]))
			return false;
	return true;
}

static int diff_attrs_compare(struct diff *p, const struct diff_attrs_owner *o,
			      const struct ds_attr *was, uint32_t n_was,
			      const struct ds_attr *now, uint32_t n_now, struct err *e)
{
	const struct ds_attr **a, **b;
	int rc;

	if (all_same(was, n_was, now, n_now))
		return 0;
	a = diff_attrs_sorted(was, n_was);
	b = diff_attrs_sorted(now, n_now);
	rc = a && b ? merge(p, o, a, n_was, b, n_now, true, e) : err_nomem(e);
	rc = rc ? rc : merge(p, o, a, n_was, b, n_now, false, e);
	free(a);
	free(b);
	return rc;
}

int diff_attrs(struct diff *p, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->n_order; i++) {
		const struct diff_attrs_owner o = {p->order[i], DS_NONE};
		const struct ds_group *g = &p->now->groups[o.group];
		uint32_t was = p->group_was[o.group];
		const struct ds_group *h = was == DS_NONE ? NULL : &p->was->groups[was];

		rc = diff_attrs_compare(p, &o, h ? h->attrs : NULL, h ? h->n_attrs : 0,
					g->attrs, g->n_attrs, e);
	}
	for (uint32_t i = 0; rc == 0 && i < p->now->n_arrays; i++) {
		const struct ds_array *a = &p->now->arrays[i], *b;
		const struct diff_attrs_owner o = {a->group, i};

		if (p->arrays[i].was == DS_NONE)
			continue;
		b = &p->was->arrays[p->arrays[i].was];
		rc = diff_attrs_compare(p, &o, b->attrs, b->n_attrs, a->attrs, a->n_attrs, e);
	}
	return rc;
}
