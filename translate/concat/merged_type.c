/* SPDX-License-Identifier: BSD-3-Clause */
/* merged_type.c - what the variables of members that continue each other are, as one variable.
 * docs/how-to/many-files-as-one.md has the same as a table. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define UNITS_TRIED 64 /* of many members none has units that stand out */

static bool same_kind(const struct dtype *a, const struct dtype *b)
{
	return a->kind == b->kind && a->size == b->size;
}

static struct dtype host(enum dt_kind kind, uint32_t size)
{
	return (struct dtype){.kind = kind, .size = size, .big_endian = HOST_BIG_ENDIAN};
}

/* merged_type_float_for - the float that holds all numbers of a type; size 0: none does. */
static uint32_t merged_type_float_for(const struct dtype *t)
{
	if (t->kind == DT_FLOAT)
		return t->size < 4 ? 4 : t->size;
	return t->size <= 2 ? 4 : t->size == 4 ? 8 : 0;
}

/* merged_type_common - the smaller type that holds what both hold, exactly. Returns false: there is
 * none. */
static bool merged_type_common(const struct dtype *a, const struct dtype *b, struct dtype *ret)
{
	uint32_t size;

	if (same_kind(a, b)) {
		*ret = *a;
		return true;
	}
	if (a->kind == b->kind) {
		*ret = host(a->kind, a->size > b->size ? a->size : b->size);
		return true;
	}
	if (a->kind == DT_FLOAT || b->kind == DT_FLOAT) {
		uint32_t x = merged_type_float_for(a), y = merged_type_float_for(b);

		*ret = host(DT_FLOAT, x > y ? x : y);
		return x > 0 && y > 0;
	}
	size = a->kind == DT_UINT ? a->size : b->size; /* one has a sign, the other none */
	size = 2 * size > (a->kind == DT_INT ? a->size : b->size)
		       ? 2 * size
		       : (a->kind == DT_INT ? a->size : b->size);
	*ret = host(DT_INT, size);
	return size <= 8;
}

static bool text_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* check_text - that an attribute is as in the first file. */
static int check_text(const char *name, const struct concat_form *f, const char *is,
		      const char *first, const char *rest, struct err *e)
{
	if (text_same(is, first))
		return 0;
	return err_set(e, -EINVAL, "'%s' of '%s' is '%s', not '%s' as in the first file%s",
		       name, f->path, is ? is : "(none)", first ? first : "(none)", rest);
}

/* ---- shapes ---- */

static int check_shape(const struct concat_form *a, const struct concat_form *b, struct err *e)
{
	if (a->rank != b->rank)
		return err_set(e, -EINVAL,
			       "'%s' has %" PRIu32 " dimensions, but %" PRIu32
			       " in the first file",
			       a->path, b->rank, a->rank);
	for (uint32_t d = 0; d < a->rank; d++) {
		if (strcmp(a->dims[d], b->dims[d]) != 0)
			return err_set(e, -EINVAL,
				       "dimension %" PRIu32
				       " of '%s' is '%s', but '%s' in the first file",
				       d, a->path, b->dims[d], a->dims[d]);
		if (d != a->axis && a->shape[d] != b->shape[d])
			return err_set(e, -EINVAL,
				       "dimension '%s' of '%s' has %" PRIu64
				       " elements, but %" PRIu64 " in the first file",
				       a->dims[d], a->path, b->shape[d], a->shape[d]);
	}
	return 0;
}

/* ---- attributes other than numbers ---- */

static bool merged_type_attr_same(const struct concat_form *a, const struct concat_form *b,
				  const char *name)
{
	const struct ds_attr *x = ds_attr_find(a->attrs, a->n_attrs, name);
	const struct ds_attr *y = ds_attr_find(b->attrs, b->n_attrs, name);

	if (!x || !y)
		return x == y;
	if (x->n != y->n || !x->strings != !y->strings)
		return false;
	if (x->strings)
		return value_texts_equal(x->strings, y->strings, x->n);
	return same_kind(&x->type, &y->type) &&
	       memcmp(x->data, y->data, (size_t)x->n * x->type.size) == 0;
}

/* next_word - of names in a row; *len 0: there is none. */
static const char *next_word(const char *s, const char *end, size_t *len)
{
	while (s < end && *s == ' ')
		s++;
	for (*len = 0; s + *len < end && s[*len] != ' ';)
		++*len;
	return s;
}

/* flag_known - whether an enumeration has this name for this value. */
static bool flag_known(const struct ds_attr *values, const struct ds_text *names,
		       const uint8_t *value, const char *name, size_t len)
{
	const char *s = names->s, *end = s + names->len;

	for (uint64_t i = 0; i < values->n; i++) {
		size_t n;

		s = next_word(s, end, &n);
		if (n == len && memcmp(s, name, n) == 0 &&
		    memcmp(values->data + i * values->type.size, value, values->type.size) == 0)
			return true;
		s += n;
	}
	return false;
}

/* enum_same - whether numbers have the same names, in whatever order. Of plain numbers that stand
 * beside an enumeration nothing is known. */
static bool enum_same(const struct concat_form *a, const struct concat_form *b)
{
	const struct ds_attr *x = ds_attr_find(a->attrs, a->n_attrs, "flag_values");
	const struct ds_attr *y = ds_attr_find(b->attrs, b->n_attrs, "flag_values");
	const struct ds_attr *p = ds_attr_find(a->attrs, a->n_attrs, "flag_meanings");
	const struct ds_attr *q = ds_attr_find(b->attrs, b->n_attrs, "flag_meanings");
	const char *s, *end;

	if (!x || !y || !p || !q)
		return true;
	if (x->n != y->n || !same_kind(&x->type, &y->type) || !x->data || !y->data ||
	    !p->strings || !q->strings || p->n != 1 || q->n != 1)
		return false;
	s = p->strings->s;
	end = s + p->strings->len;
	for (uint64_t i = 0; i < x->n; i++) {
		size_t n;

		s = next_word(s, end, &n);
		if (!flag_known(y, q->strings, x->data + i * x->type.size, s, n))
			return false;
		s += n;
	}
	return true;
}

static int decide_plain(const struct concat_form *const *v, size_t n, struct concat_goal *ret,
			struct concat_conv *convs, size_t *ret_at, struct err *e)
{
	int rc;

	ret->type = v[0]->type;
	for (size_t i = 0; i < n; i++) {
		*ret_at = i;
		if (!concat_blob_same(&v[0]->type_bytes, &v[i]->type_bytes))
			return err_set(e, -EINVAL,
				       "the type of '%s' differs from the first file, and "
				       "there is no common type",
				       v[i]->path);
		if (!merged_type_attr_same(v[0], v[i], "_FillValue"))
			return err_set(e, -EINVAL,
				       "'_FillValue' of '%s' differs from the first file, and "
				       "no other value marks missing data",
				       v[i]->path);
		rc = check_text("units", v[i], v[i]->units, v[0]->units, "", e);
		if (rc < 0)
			return rc;
		convs[i] = (struct concat_conv){
			.same = true, .from = v[i]->type, .to = v[0]->type};
	}
	return 0;
}

/* ---- numbers ---- */

/* numbers - properties that are determined on the way. */
struct numbers {
	struct arena *arena;
	const struct concat_form *const *v;
	size_t n;
	struct cf_pack *packs;
	struct cf_shift *shifts; /* NULL: no units of time */
	bool packs_same, shifts_same, any_packed, integral;
};

/* all_alike - whether the attributes of the numbers are the same in all files, so that they can be
 * joined without interpretation. */
static bool all_alike(const struct numbers *x)
{
	for (size_t i = 1; i < x->n; i++) {
		if (!same_kind(&x->v[i]->type, &x->v[0]->type))
			return false;
		for (size_t k = 0; k < CONCAT_OF_NUMBERS; k++)
			if (!merged_type_attr_same(x->v[0], x->v[i], concat_of_numbers[k]))
				return false;
	}
	return true;
}

static int find_packs(struct numbers *x, size_t *ret_at, struct err *e)
{
	x->packs = arena_alloc(x->arena, x->n, sizeof(*x->packs));
	if (!x->packs)
		return arena_full(x->arena, e, "the index of the joined files");
	x->packs_same = true;
	for (size_t i = 0; i < x->n; i++) {
		const struct concat_form *f = x->v[i];
		int rc = cf_pack_of(f->attrs, f->n_attrs, &f->type, &x->packs[i], e);

		*ret_at = i;
		if (rc == -EINVAL && all_alike(x)) { /* nothing is unpacked: as stored */
			x->packs_same = true;
			x->any_packed = false;
			return 0;
		}
		if (rc < 0)
			return err_wrap(e, rc, "'%s'", f->path);
		x->any_packed = x->any_packed || x->packs[i].packed;
		x->packs_same = x->packs_same && same_kind(&f->type, &x->v[0]->type) &&
				cf_pack_same(&x->packs[0], &x->packs[i]);
	}
	return 0;
}

/* shifts_to - from all units to these. Returns 0, or why one of them has none. */
static int shifts_to(struct numbers *x, const char *units, const char *calendar, size_t *ret_at,
		     struct err *e)
{
	x->shifts_same = x->integral = true;
	for (size_t i = 0; i < x->n; i++) {
		const struct concat_form *f = x->v[i];
		struct cf_shift *s = &x->shifts[i];
		int rc;

		*ret_at = i;
		if (!f->units)
			return err_set(e, -EINVAL,
				       "'%s' has no units, but '%s' in the first file", f->path,
				       units);
		rc = cf_time_between(f->units, f->calendar, units, calendar, s, e);
		if (rc < 0) {
			(void)err_wrap(e, rc, "'%s' in '%s' (calendar %s)", f->path, f->units,
				       f->calendar ? f->calendar : "standard");
			if (e)
				e->code = -EINVAL;
			return -EINVAL;
		}
		x->shifts_same = x->shifts_same && s->same;
		x->integral = x->integral && s->den == 1 && s->off_den == 1;
	}
	return 0;
}

/* find_shifts - the first member's units; or, so that whole numbers stay whole, those of another
 * one, if its are fine enough for all. */
static int find_shifts(struct numbers *x, const struct concat_goal *like,
		       struct concat_goal *ret, size_t *ret_at, struct err *e)
{
	const struct concat_form *first = x->v[0];
	int rc;

	x->shifts = arena_alloc(x->arena, x->n, sizeof(*x->shifts));
	if (!x->shifts)
		return arena_full(x->arena, e, "the index of the joined files");
	ret->units = like ? like->units : first->units;
	ret->calendar = like ? like->calendar : first->calendar;
	rc = shifts_to(x, ret->units, ret->calendar, ret_at, e);
	if (rc < 0 || like || x->integral || first->type.kind == DT_FLOAT || x->any_packed)
		return rc;
	for (size_t i = 1; i < x->n && i < UNITS_TRIED; i++) {
		if (shifts_to(x, x->v[i]->units, x->v[i]->calendar, ret_at, NULL) < 0 ||
		    !x->integral)
			continue;
		ret->units = x->v[i]->units;
		ret->calendar = x->v[i]->calendar;
		return 0;
	}
	return shifts_to(x, ret->units, ret->calendar, ret_at, e);
}

static int check_units(const struct numbers *x, size_t *ret_at, struct err *e)
{
	const struct concat_form *first = x->v[0];
	int rc = 0;

	for (size_t i = 0; i < x->n && rc == 0; i++) {
		const struct concat_form *f = x->v[i];

		*ret_at = i;
		rc = check_text("units", f, f->units, first->units, ": they are not converted",
				e);
		rc = rc ? rc : check_text("calendar", f, f->calendar, first->calendar, "", e);
	}
	return rc;
}

/* widest - the type that holds all, of packed numbers what they are unpacked to. */
static int widest(const struct numbers *x, bool unpack, struct dtype *ret, size_t *ret_at,
		  struct err *e)
{
	struct dtype t = unpack ? x->packs[0].to : x->v[0]->type;

	if (unpack && t.kind != DT_FLOAT)
		t = host(DT_FLOAT, merged_type_float_for(&t));
	for (size_t i = 0; i < x->n; i++) {
		const struct dtype *u = unpack ? &x->packs[i].to : &x->v[i]->type;

		*ret_at = i;
		if (t.size == 0 || !merged_type_common(&t, u, &t))
			return err_set(
				e, -EINVAL,
				"no type holds all numbers of '%s' exactly: in this file it "
				"has %" PRIu32 " bytes, in the first file %" PRIu32 "%s",
				x->v[i]->path, u->size, x->v[0]->type.size,
				unpack ? ", and the values for missing data differ" : "");
	}
	*ret = t;
	return 0;
}

static void fill_convs(const struct numbers *x, const struct concat_goal *goal,
		       struct concat_conv *convs)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct dtype *from = &x->v[i]->type;
		bool shift = x->shifts && !x->shifts[i].same;
		bool unpack = goal->unpack && x->packs[i].packed;
		bool plain = !shift && !unpack && same_kind(from, &goal->type);
		bool order = from->big_endian == goal->type.big_endian || from->size == 1;

		convs[i] = (struct concat_conv){
			.same = plain && order,
			.swap = plain && !order,
			.unpack = unpack ? &x->packs[i] : NULL,
			.shift = shift ? &x->shifts[i] : NULL,
			.from = *from,
			.to = goal->type,
		};
	}
}

static int decide_numbers(struct numbers *x, const struct concat_goal *like,
			  struct concat_goal *ret, size_t *ret_at, struct err *e)
{
	bool time = cf_is_time(x->v[0]->units);
	int rc = find_packs(x, ret_at, e);

	if (rc == 0)
		rc = time ? find_shifts(x, like, ret, ret_at, e) : check_units(x, ret_at, e);
	if (rc < 0)
		return rc;
	ret->type = x->v[0]->type;
	ret->unpack = !x->packs_same && x->any_packed;
	if (!x->shifts || x->shifts_same)
		return x->packs_same ? 0 : widest(x, ret->unpack, &ret->type, ret_at, e);
	ret->other_units = !text_same(ret->units, x->v[0]->units) ||
			   !text_same(ret->calendar, x->v[0]->calendar);
	ret->unpack = x->any_packed;
	ret->type = x->integral && !x->any_packed ? host(DT_INT, 8) : host(DT_FLOAT, 8);
	for (size_t i = 0; i < x->n; i++)
		if (x->v[i]->type.kind == DT_FLOAT)
			ret->type = host(DT_FLOAT, 8);
	return 0;
}

int concat_decide(struct arena *arena, const struct concat_form *const *v, size_t n,
		  const struct concat_goal *like, struct concat_goal *ret,
		  struct concat_conv *ret_convs, size_t *ret_at, struct err *e)
{
	struct numbers x = {.arena = arena, .v = v, .n = n};
	bool numbers = true;
	int rc = 0;

	*ret = (struct concat_goal){.units = NULL};
	for (size_t i = 0; i < n && rc == 0; i++) {
		*ret_at = i;
		numbers = numbers && value_is_number(&v[i]->type);
		rc = check_shape(v[0], v[i], e);
		rc = rc ? rc
			: check_text("grid_mapping", v[i], v[i]->grid_mapping,
				     v[0]->grid_mapping, "", e);
		if (rc == 0 && !enum_same(v[0], v[i]))
			rc = err_set(e, -EINVAL,
				     "'%s' is an enumeration whose names or values differ from "
				     "the first file",
				     v[i]->path);
	}
	if (rc < 0)
		return rc;
	if (!numbers)
		return decide_plain(v, n, ret, ret_convs, ret_at, e);
	rc = decide_numbers(&x, like, ret, ret_at, e);
	if (rc == 0)
		fill_convs(&x, ret, ret_convs);
	return rc;
}
