/* SPDX-License-Identifier: BSD-3-Clause */
/* order.c - which member comes after which: by the coordinate's values where there is a
 * coordinate, else by name. What cannot be in one order is refused. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ARENA_MAX ((size_t)1 << 20)

/* coord_form - of the member's coordinate; NULL: it has none. */
static const struct concat_form *coord_form(const struct concat *j,
					    const struct concat_member *m)
{
	return m->coord_form == CONCAT_NONE ? NULL : &j->forms.v[m->coord_form];
}

/* order_ends - the first and the last value, in the units of `to`. */
static int order_ends(const struct concat_form *f, const struct concat_form *to,
		      struct concat_member *m, struct err *e)
{
	const struct concat_form *const v[] = {to, f};
	const struct concat_goal like = {.units = to->units, .calendar = to->calendar};
	struct concat_conv convs[2];
	struct concat_goal goal;
	struct arena arena;
	struct cf_pack pack;
	size_t at;
	int rc;

	arena_init(&arena, ARENA_MAX);
	rc = concat_decide(&arena, v, 2, &like, &goal, convs, &at, e);
	/* _Unsigned affects the order of numbers even if all members have it and nothing is
	 * unpacked */
	if (rc == 0 && cf_pack_of(f->attrs, f->n_attrs, &f->type, &pack, NULL) == 0)
		convs[1].from.kind = pack.from.kind;
	if (rc == 0 && m->len > 0) {
		m->first = concat_value_at(&convs[1], m->coord, 0);
		m->last = concat_value_at(&convs[1], m->coord, m->len - 1);
	}
	arena_release(&arena);
	if (rc == 0 && (m->first != m->first || m->last != m->last)) /* not a number */
		return err_set(e, -EINVAL,
			       "the first or last value of '%s' is missing, so the file cannot "
			       "be put in order",
			       f->path);
	return rc;
}

static int order_ascending(const void *a, const void *b)
{
	const struct concat_member *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int descending(const void *a, const void *b)
{
	return order_ascending(b, a);
}

static int check_pair(const struct concat *j, const struct concat_member *a,
		      const struct concat_member *b, bool down, struct err *e)
{
	bool ok = down ? a->last > b->first : a->last < b->first;

	if (ok)
		return 0;
	return err_set(
		e, -EINVAL,
		"'%s' and '%s' overlap: '%s' ends at %.15Lg in the one and begins at %.15Lg "
		"in the other: leave one of them out of the pattern",
		concat_name(a->path), concat_name(b->path), j->dim, a->last, b->first);
}

/* one_way - files that rise and files that fall have no order that is right for both. */
static int one_way(const struct concat *j, struct err *e)
{
	const struct concat_member *up = NULL, *down = NULL;

	for (size_t i = 0; i < j->n_members; i++) {
		const struct concat_member *m = &j->members[i];

		if (m->len > 0 && !up && m->first < m->last)
			up = m;
		if (m->len > 0 && !down && m->first > m->last)
			down = m;
	}
	if (!up || !down)
		return 0;
	return err_set(e, -EINVAL,
		       "'%s' decreases in '%s' and increases in '%s': leave one of them out of "
		       "the pattern",
		       j->dim, concat_name(down->path), concat_name(up->path));
}

/* by_values - true: they have been put in order by their coordinate. */
static int by_values(struct concat *j, bool *ret, struct err *e)
{
	const struct concat_form *to = NULL;
	bool down = false;
	int rc = 0;
	size_t n = 0;

	*ret = false;
	for (size_t i = 0; i < j->n_members; i++) {
		struct concat_member *m = &j->members[i];
		const struct concat_form *f = coord_form(j, m);

		if (m->len == 0)
			continue;
		if (!f && to)
			return err_set(e, -EINVAL,
				       "'%s' has no variable '%s', but other files have one: "
				       "add it or leave the file out of the pattern",
				       concat_name(m->path), j->dim);
		if (!f && n > 0)
			continue;
		if (f && !to && n > 0)
			return err_set(e, -EINVAL,
				       "'%s' has a variable '%s', but '%s' has none: leave one "
				       "of them out of the pattern",
				       concat_name(m->path), j->dim,
				       concat_name(j->members[0].path));
		n++;
		to = to ? to : f;
		rc = f ? order_ends(f, to, m, e) : 0;
		if (rc < 0)
			return err_wrap(e, rc, "'%s'", concat_name(m->path));
		down = down || (f && m->first > m->last);
	}
	if (!to)
		return 0;
	rc = one_way(j, e);
	if (rc < 0)
		return rc;
	qsort(j->members, j->n_members, sizeof(*j->members),
	      down ? descending : order_ascending);
	*ret = true;
	for (size_t i = 0, last = CONCAT_NONE; i < j->n_members && rc == 0; i++) {
		if (j->members[i].len == 0)
			continue;
		if (last != CONCAT_NONE)
			rc = check_pair(j, &j->members[last], &j->members[i], down, e);
		last = i;
	}
	return rc;
}

/* empty_last - members without an element have no place: they come last. */
static void empty_last(struct concat *j)
{
	size_t n = 0;
	struct concat_member m;

	for (size_t i = 0; i < j->n_members; i++) {
		if (j->members[i].len == 0)
			continue;
		m = j->members[i];
		memmove(&j->members[n + 1], &j->members[n], (i - n) * sizeof(m));
		j->members[n++] = m;
	}
}

int concat_order(struct concat *j, uint64_t *ret_total, struct err *e)
{
	uint64_t total = 0;
	bool sorted;
	int rc = by_values(j, &sorted, e);

	if (rc < 0)
		return rc;
	empty_last(j);
	for (size_t i = 0; i < j->n_members; i++) {
		j->members[i].start = total;
		if (ckd_add(&total, total, j->members[i].len) || total > INT64_MAX)
			return err_set(e, -ERANGE, "'%s': more than 2^63 elements along '%s'",
				       j->pattern, j->dim);
	}
	*ret_total = total;
	return 0;
}
