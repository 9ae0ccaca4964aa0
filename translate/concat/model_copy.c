/* model_copy.c - the first member's model, to be changed; what is not changed is borrowed from it,
 * which stays open as long as the join. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NOTE_MAX 400

int join_note(struct join *j, struct err *e, const char *fmt, ...)
{
	struct dataset *ds = &j->base.ds;
	const char **notes = arena_alloc(&ds->arena, (size_t)ds->n_notes + 1, sizeof(*notes));
	char text[NOTE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* what is too long is cut */
	va_end(ap);
	if (notes) {
		for (uint32_t i = 0; i < ds->n_notes; i++)
			notes[i] = ds->notes[i];
		notes[ds->n_notes] = arena_strdup(&ds->arena, text);
	}
	if (!notes || !notes[ds->n_notes])
		return arena_full(&ds->arena, e, "the joined dataset");
	ds->notes = notes;
	ds->n_notes++;
	return 0;
}

int join_copy_model(struct join *j, struct err *e)
{
	const struct dataset *from = &j->first->ds;
	struct dataset *ds = &j->base.ds;
	char format[80];

	ds->n_groups = from->n_groups;
	ds->n_arrays = from->n_arrays;
	ds->n_dims = from->n_dims;
	ds->n_notes = from->n_notes;
	ds->notes = from->notes;
	ds->lost = from->lost; /* groups keep their ordinals */
	ds->n_lost = from->n_lost;
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
				.texts = t};
	return 0;
}

/* replaced - units and calendar of another member. Bounds without their own stay so. */
static int replaced(struct join *j, const struct ds_attr *old, const struct join_goal *goal,
		    struct ds_attr *ret, struct err *e)
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

int join_attrs(struct join *j, struct ds_array *a, const struct join_goal *goal, struct err *e)
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
		rc = replaced(j, &a->attrs[i], goal, &attrs[n++], e);
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
