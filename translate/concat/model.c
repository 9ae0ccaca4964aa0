/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - the joined dataset: the first member's, with the lengths of all. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "translate/model/builder.h"

#define COORD_CHUNK ((uint64_t)512 << 10) /* elements of a chunk of the coordinate */
#define NAMES_SHOWN 5

/* ---- which form a member has an array in ---- */

/* concat_model_slot_of - the place of a path among the first member's forms; CONCAT_NONE: none. */
static uint32_t concat_model_slot_of(const struct concat *j, const char *path)
{
	const struct concat_member *m = &j->members[0];
	uint32_t low = 0, high = m->n_forms;

	BISECT(low, high, mid, strcmp(j->forms.v[m->forms[mid]].path, path) < 0);
	return low < m->n_forms && strcmp(j->forms.v[m->forms[low]].path, path) == 0
		       ? low
		       : CONCAT_NONE;
}

/* extra - a variable that the first member has not; those that were named are not named again. */
struct extra {
	const char *names[NAMES_SHOWN];
	size_t n;
};

static void add_extra(struct extra *x, const char *path)
{
	for (size_t i = 0; i < x->n; i++)
		if (strcmp(x->names[i], path) == 0)
			return;
	if (x->n < NAMES_SHOWN)
		x->names[x->n++] = path;
}

/* without_dim - whether the first member has a variable of that path, without the dimension. */
static bool without_dim(const struct concat *j, const char *path)
{
	const struct dataset *ds = &j->base.ds;
	auto_buf own = buf_of((size_t)1 << 20);

	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const char *text = ds_array_path_text(ds, i, &own);

		if (text && strcmp(text, path) == 0)
			return true;
	}
	return false;
}

static int not_along(const struct concat *j, const char *without, const char *path,
		     const char *with, struct err *e)
{
	return err_set(e, -EINVAL,
		       "'%s' has no variable '%s' along '%s', but '%s' has one: leave one of "
		       "the files out of the pattern",
		       concat_name(without), path, j->dim, concat_name(with));
}

/* take_extra - one that is left out: the first file must have nothing of that name. */
static int take_extra(const struct concat *j, const struct concat_member *m, uint32_t form,
		      struct extra *extra, struct err *e)
{
	const char *path = j->forms.v[form].path;

	if (without_dim(j, path))
		return not_along(j, j->members[0].path, path, m->path, e);
	add_extra(extra, path);
	return 0;
}

/* align - a member's forms in the order of the first's, those that it has not left out. */
static int align(struct concat *j, struct concat_member *m, struct extra *extra, struct err *e)
{
	const struct concat_member *first = &j->members[0];
	uint32_t n = first->n_forms, k = 0;
	uint32_t *forms = alloc_array(n, sizeof(*forms));
	int rc = 0;

	if (!forms)
		return err_nomem(e);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const char *path = j->forms.v[first->forms[i]].path;
		int c = 1;

		for (; k < m->n_forms && rc == 0; k++) {
			c = strcmp(j->forms.v[m->forms[k]].path, path);
			if (c >= 0)
				break;
			rc = take_extra(j, m, m->forms[k], extra, e);
		}
		if (rc == 0 && (k == m->n_forms || c != 0))
			rc = not_along(j, m->path, path, first->path, e);
		if (rc == 0)
			forms[i] = m->forms[k++];
	}
	for (; k < m->n_forms && rc == 0; k++)
		rc = take_extra(j, m, m->forms[k], extra, e);
	if (rc < 0) {
		free(forms);
		return rc;
	}
	free(m->forms);
	m->forms = forms;
	m->n_forms = n;
	return 0;
}

static int align_all(struct concat *j, struct err *e)
{
	struct extra extra = {.n = 0};
	int rc = 0;

	for (size_t i = 1; i < j->n_members && rc == 0; i++)
		rc = align(j, &j->members[i], &extra, e);
	for (size_t i = 0; i < extra.n && rc == 0; i++)
		rc = ds_note_append(&j->base.ds, e,
				    "'%s' is not in the first file ('%s'): it is left out%s",
				    extra.names[i], concat_name(j->members[0].path),
				    i + 1 == NAMES_SHOWN ? ", and possibly others" : "");
	return rc;
}

/* ---- attributes ---- */

/* of_packed - attributes that only say something about packed numbers. */
static bool of_packed(const char *name)
{
	static const char *const names[] = {"scale_factor",  "add_offset", "_FillValue",
					    "missing_value", "_Unsigned",  "valid_min",
					    "valid_max",     "valid_range"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int text_attr(struct arena *arena, const char *name, const char *text,
		     struct ds_attr *ret, struct err *e)
{
	struct ds_text *t = arena_alloc(arena, 1, sizeof(*t));

	if (t)
		t->s = arena_strdup(arena, text);
	if (!t || !t->s)
		return arena_full(arena, e, "the joined dataset");
	t->len = strlen(text);
	*ret = (struct ds_attr){.name = name,
				.type = {.kind = DT_STRING, .size = (uint32_t)t->len},
				.n = 1,
				.strings = t};
	return 0;
}

/* concat_model_replaced - units and calendar of another member. Bounds without their own stay
 * so. */
static int concat_model_replaced(struct concat *j, const struct ds_attr *old,
				 const struct concat_goal *goal, struct ds_attr *ret,
				 struct err *e)
{
	*ret = *old;
	if (!goal->other_units)
		return 0;
	if (strcmp(old->name, "units") == 0)
		return text_attr(&j->base.ds.arena, old->name, goal->units, ret, e);
	if (strcmp(old->name, "calendar") == 0 && goal->calendar)
		return text_attr(&j->base.ds.arena, old->name, goal->calendar, ret, e);
	return 0;
}

/* concat_attrs - an array's attributes according to its goal. */
static int concat_attrs(struct concat *j, struct ds_array *a, const struct concat_goal *goal,
			struct err *e)
{
	struct arena *arena = &j->base.ds.arena;
	struct ds_attr *attrs;
	uint32_t n = 0;

	if (!goal->unpack && !goal->other_units)
		return 0;
	attrs = arena_alloc(arena, (size_t)a->n_attrs + 1, sizeof(*attrs));
	if (!attrs)
		return arena_full(arena, e, "the joined dataset");
	for (uint32_t i = 0; i < a->n_attrs; i++) {
		int rc;

		if (goal->unpack && of_packed(a->attrs[i].name))
			continue;
		rc = concat_model_replaced(j, &a->attrs[i], goal, &attrs[n++], e);
		if (rc < 0)
			return rc;
	}
	if (goal->unpack)
		attrs[n++] = (struct ds_attr){
			.name = "_FillValue", .type = a->type, .n = 1, .data = a->fill};
	a->attrs = attrs;
	a->n_attrs = n;
	return 0;
}

/* ---- one array ---- */

static int by_form(const void *a, const void *b)
{
	const struct concat_part *x = a, *y = b;

	return x->form < y->form ? -1 : x->form > y->form;
}

/* concat_model_find_parts - the forms that members have an array in, each once; those of members
 * without an element as well. */
static int concat_model_find_parts(struct concat *j, struct concat_array *x, struct err *e)
{
	struct concat_part *p = alloc_array(j->n_members, sizeof(*p));
	struct concat_part *smaller;
	size_t n = 0;

	if (!p)
		return err_nomem(e);
	for (size_t i = 0; i < j->n_members; i++) {
		uint32_t form = j->members[i].forms[x->slot];

		if (n == 0 || p[n - 1].form != form) /* mostly the same as before */
			p[n++].form = form;
	}
	qsort(p, n, sizeof(*p), by_form);
	x->n_parts = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || p[i].form != p[i - 1].form)
			p[x->n_parts++].form = p[i].form;
	smaller = realloc(p, x->n_parts * sizeof(*p));
	x->parts = smaller ? smaller : p;
	return 0;
}

const struct concat_part *concat_part_of(const struct concat *j, uint32_t array,
					 uint32_t member)
{
	const struct concat_array *x = &j->arrays[array];
	const struct concat_part key = {.form = j->members[member].forms[x->slot]};

	return bsearch(&key, x->parts, x->n_parts, sizeof(*x->parts), by_form);
}

/* member_with - the first member that has an array in a form, for a message. */
static const char *member_with(const struct concat *j, uint32_t slot, uint32_t form)
{
	for (size_t i = 0; i < j->n_members; i++)
		if (j->members[i].forms[slot] == form)
			return concat_name(j->members[i].path);
	return "";
}

/* concat_model_decide - what the array is, and how each part becomes it. */
static int concat_model_decide(struct concat *j, struct concat_array *x,
			       const struct concat_goal *like, struct err *e)
{
	size_t n = (size_t)x->n_parts + 1, at = 0;
	auto_free const struct concat_form **v = alloc_array(n, sizeof(*v));
	auto_free struct concat_conv *convs = alloc_array(n, sizeof(*convs));
	int rc;

	if (!v || !convs)
		return err_nomem(e);
	v[0] = &j->forms.v[j->members[0].forms[x->slot]];
	for (size_t i = 0; i < x->n_parts; i++)
		v[i + 1] = &j->forms.v[x->parts[i].form];
	rc = concat_decide(&j->base.ds.arena, v, n, like, &x->goal, convs, &at, e);
	if (rc < 0)
		return err_wrap(e, rc, "'%s'",
				member_with(j, x->slot,
					    at == 0 ? j->members[0].forms[x->slot]
						    : x->parts[at - 1].form));
	for (size_t i = 0; i < x->n_parts; i++)
		x->parts[i].conv = convs[i + 1];
	return 0;
}

/* fills_agree - whether a chunk that a member never wrote reads as the joined array's fill. */
static bool fills_agree(const struct concat_part *p, const struct concat_form *f,
			const struct ds_array *a)
{
	uint8_t fill[16];

	if (dt_is_vlen(&a->type))
		return value_text_equal(
			&(struct ds_text){(const char *)f->fill.p, f->fill.len}, &a->fill_text);
	if (p->conv.same)
		return memcmp(f->fill.p, a->fill, a->type.size) == 0;
	return p->conv.swap && a->type.size <= sizeof(fill) &&
	       concat_convert(&p->conv, f->fill.p, fill, 1, NULL) == 0 &&
	       memcmp(fill, a->fill, a->type.size) == 0;
}

/* lines_up - whether the member's chunks are chunks of the joined array. */
static bool lines_up(const struct concat_member *m, const struct concat_form *f,
		     const struct concat_form *first)
{
	for (uint32_t d = 0; d < f->rank; d++)
		if (f->chunk[d] != first->chunk[d])
			return false;
	return m->start % f->chunk[f->axis] == 0 && f->shape[f->axis] == m->len;
}

static bool all_line_up(const struct concat *j, const struct concat_array *x)
{
	const struct concat_form *first = &j->forms.v[j->members[0].forms[x->slot]];

	for (size_t i = 0; i < j->n_members; i++)
		if (j->members[i].len > 0 &&
		    !lines_up(&j->members[i], &j->forms.v[j->members[i].forms[x->slot]], first))
			return false;
	return true;
}

/* settle_parts - which of them pass; the array is uniform when all do. */
static void settle_parts(struct concat *j, struct concat_array *x, struct ds_array *a)
{
	const struct concat_form *first = &j->forms.v[j->members[0].forms[x->slot]];
	bool uniform = true;

	for (uint32_t i = 0; i < x->n_parts; i++) {
		struct concat_part *p = &x->parts[i];
		const struct concat_form *f = &j->forms.v[p->form];

		p->passes = p->conv.same && f->access == DS_STORED &&
			    concat_blob_same(&f->chain, &first->chain);
		p->absent = fills_agree(p, f, a);
		uniform = uniform && p->passes && f->uniform;
		if (f->unreadable && !a->unreadable)
			a->unreadable = "it cannot be read in one of the files";
	}
	a->uniform = uniform;
}

/* why_other - why numbers are not those that are stored, for people; NULL: they are. */
static const char *why_other(const struct concat_array *x)
{
	if (x->goal.unpack)
		return "packed differently in the joined files: unpacked";
	for (uint32_t i = 0; i < x->n_parts; i++)
		if (!x->parts[i].conv.same && !x->parts[i].conv.swap)
			return x->parts[i].conv.shift
				       ? "units of time differ in the joined files: converted"
				       : "types differ in the joined files: converted";
	return NULL;
}

/* why_decoded - for people; NULL: nothing is made by the join. */
static const char *why_decoded(const struct concat_array *x, const struct ds_array *a)
{
	const char *why = why_other(x);

	if (why)
		return why;
	if (!x->aligned)
		return "chunks of the joined files are not aligned";
	return a->access == DS_CONVERT ? a->convert : NULL;
}

/* concat_model_set_fill - set the fill value of an array whose elements differ from the first
 * member's, or that marks missing ones in another way: unpacked elements have NaN for missing ones,
 * also where the first member's elements are shown. */
static int concat_model_set_fill(struct concat *j, struct ds_array *a,
				 const struct concat_array *x, struct err *e)
{
	const struct concat_form *first = &j->forms.v[j->members[0].forms[x->slot]];
	struct concat_conv conv = concat_part_of(j, (uint32_t)(a - j->base.ds.arrays), 0)->conv;
	uint8_t *fill = arena_alloc(&j->base.ds.arena, 1, a->type.size);
	const double nan64 = __builtin_nan("");
	const float nan32 = __builtin_nanf("");

	if (!fill)
		return arena_full(&j->base.ds.arena, e, "the joined dataset");
	if (x->goal.unpack && a->type.size == 8)
		memcpy(fill, &nan64, sizeof(nan64));
	else if (x->goal.unpack)
		memcpy(fill, &nan32, sizeof(nan32));
	conv.shift = NULL; /* it is no time */
	if (!x->goal.unpack && concat_convert(&conv, first->fill.p, fill, 1, NULL) < 0)
		memset(fill, 0, a->type.size);
	a->fill = fill;
	a->fill_defined = a->fill_defined || x->goal.unpack;
	return 0;
}

/* concat_model_set_shape - lengths, and chunks: those of the first member, but for the coordinate,
 * which is made in as few as can be. */
static int concat_model_set_shape(struct concat *j, struct concat_array *x, struct ds_array *a,
				  uint64_t total, struct err *e)
{
	struct arena *arena = &j->base.ds.arena;
	uint64_t *shape = arena_copy(arena, a->shape, a->rank * sizeof(*shape));
	uint64_t *chunk = arena_copy(arena, a->chunk, a->rank * sizeof(*chunk));

	if (!shape || !chunk)
		return arena_full(arena, e, "the joined dataset");
	shape[x->axis] = total;
	if (x->coord)
		chunk[0] = u64_max(u64_min(total, COORD_CHUNK), 1);
	a->shape = shape;
	a->chunk = chunk;
	a->key = 0; /* a link in one member may be an array of its own in the next */
	return ds_array_finish(&j->base.ds, a, j->source_opts.max_chunk_bytes, e);
}

/* take_values - of the coordinate, which are known of all members. */
static int take_values(struct concat *j, struct concat_array *x, struct ds_array *a,
		       uint64_t total, struct err *e)
{
	uint64_t bytes;
	uint32_t array = (uint32_t)(a - j->base.ds.arrays);

	if (ckd_mul(&bytes, total, (uint64_t)a->type.size) ||
	    bytes > j->source_opts.max_meta_bytes)
		return err_set(e, -ERANGE,
			       "'%s' has %" PRIu64 " elements, which need more than half of -o "
						   "memory: use a larger -o memory",
			       a->name, total);
	x->values = alloc_array((size_t)bytes, 1);
	if (!x->values)
		return err_nomem(e);
	for (uint32_t i = 0; i < j->n_members; i++) {
		const struct concat_member *m = &j->members[i];
		int rc;

		if (m->len == 0)
			continue;
		rc = concat_convert(&concat_part_of(j, array, i)->conv, m->coord,
				    x->values + m->start * a->type.size, (size_t)m->len, e);
		if (rc < 0)
			return err_wrap(e, rc, "'%s': '%s'", concat_name(m->path), a->name);
	}
	return 0;
}

/* has_values - whether all members keep those of this very array. */
static bool has_values(const struct concat *j, const struct concat_array *x)
{
	for (size_t i = 0; i < j->n_members; i++)
		if (j->members[i].len > 0 &&
		    j->members[i].coord_form != j->members[i].forms[x->slot])
			return false;
	return true;
}

static int concat_model_set_access(struct concat *j, struct concat_array *x, struct ds_array *a,
				   struct err *e)
{
	bool changed = !concat_part_of(j, (uint32_t)(a - j->base.ds.arrays), 0)->conv.same;
	int rc = 0;

	a->type = changed ? x->goal.type : a->type;
	if ((changed || x->goal.unpack) && !dt_is_vlen(&a->type))
		rc = concat_model_set_fill(j, a, x, e);
	rc = rc ? rc : concat_attrs(j, a, &x->goal, e);
	if (rc < 0)
		return rc;
	settle_parts(j, x, a);
	x->aligned = all_line_up(j, x);
	x->coord = has_values(j, x);
	if (dt_is_vlen(&a->type))
		return 0;
	for (uint32_t i = 0; changed && i < x->n_parts; i++)
		x->parts[i].passes = false;
	if (changed || !x->aligned || x->coord) {
		a->convert =
			x->coord ? "the values of all files are combined" : why_decoded(x, a);
		a->access = DS_CONVERT;
		a->chain = (struct codec_chain){.n = 0};
		a->layout = DS_CHUNKED;
		a->uniform = true;
	}
	if (x->coord)
		x->aligned = false;
	return 0;
}

static int concat_one(struct concat *j, uint32_t array, const struct concat_goal *like,
		      uint64_t total, struct err *e)
{
	struct ds_array *a = &j->base.ds.arrays[array];
	struct concat_array *x = &j->arrays[array];
	int rc = concat_model_find_parts(j, x, e);

	rc = rc ? rc : concat_model_decide(j, x, like, e);
	rc = rc ? rc : concat_model_set_access(j, x, a, e);
	rc = rc ? rc : concat_model_set_shape(j, x, a, total, e);
	if (rc == 0 && x->coord)
		rc = take_values(j, x, a, total, e);
	if (rc == 0 && why_other(x))
		rc = ds_note_append(&j->base.ds, e, "'%s': %s", a->name, why_other(x));
	return rc;
}

/* find_slots - which arrays are joined. */
static int find_slots(struct concat *j, struct err *e)
{
	struct dataset *ds = &j->base.ds;
	auto_buf path = buf_of((size_t)1 << 20);

	j->arrays = alloc_array(ds->n_arrays, sizeof(*j->arrays));
	if (!j->arrays)
		return err_nomem(e);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		struct concat_array *x = &j->arrays[i];
		const char *text = ds_array_path_text(ds, i, &path);

		if (!text)
			return err_nomem(e);
		x->slot = concat_model_slot_of(j, text);
		x->joined = x->slot != CONCAT_NONE;
		if (x->joined)
			x->axis = j->forms.v[j->members[0].forms[x->slot]].axis;
		if (x->joined && x->axis >= ds->arrays[i].rank)
			return err_set(e, -ESTALE, "'%s' changed", j->members[0].path);
	}
	return 0;
}

int concat_copy_model(struct concat *j, struct err *e)
{
	const struct dataset *from = &j->first->ds;
	struct dataset *ds = &j->base.ds;
	const struct arena own = ds->arena;
	char format[80];

	*ds = *from;
	ds->arena = own;
	ds->notes_room = 0; /* the list is the other one's */
	(void)snprintf(format, sizeof(format), "%zu joined, the first %s", j->n_members,
		       from->format);
	ds->format = arena_strdup(&ds->arena, format);
	ds->groups = arena_copy(&ds->arena, from->groups, ds->n_groups * sizeof(*ds->groups));
	ds->arrays = arena_copy(&ds->arena, from->arrays, ds->n_arrays * sizeof(*ds->arrays));
	ds->dims = arena_copy(&ds->arena, from->dims, ds->n_dims * sizeof(*ds->dims));
	if (!ds->format || !ds->groups || !ds->arrays || !ds->dims)
		return arena_full(&ds->arena, e, "the joined dataset");
	return 0;
}

int concat_model(struct concat *j, uint64_t total, struct err *e)
{
	struct dataset *ds = &j->base.ds;
	int rc = concat_copy_model(j, e);

	rc = rc ? rc : align_all(j, e);
	rc = rc ? rc : find_slots(j, e);
	for (uint32_t i = 0; i < ds->n_dims && rc == 0; i++)
		if (strcmp(ds->dims[i].name, j->dim) == 0)
			ds->dims[i].len = total;
	/* bounds are counted in the units of what they bound: that is first */
	for (int bounds = 0; bounds < 2; bounds++) {
		for (uint32_t i = 0; i < ds->n_arrays && rc == 0; i++) {
			uint32_t by = concat_bounded_by(ds, i);
			bool has = by != CONCAT_NONE && by != i && j->arrays[by].joined;

			if (j->arrays[i].joined && has == (bounds == 1))
				rc = concat_one(j, i,
						has && j->arrays[by].goal.units
							? &j->arrays[by].goal
							: NULL,
						total, e);
		}
	}
	return rc;
}
