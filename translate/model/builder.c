/* SPDX-License-Identifier: BSD-3-Clause */
/* builder.c - notes and unreadable members of a dataset model. */
#include "translate/model/builder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int builder_full(const struct arena *a, struct err *e)
{
	return arena_full(a, e, "the metadata");
}

static int notes_keep(struct ds_notes *n, struct arena *a, const char *text, struct err *e)
{
	const char *copy = arena_strdup(a, text);

	if (!copy)
		return builder_full(a, e);
	if (grow_array(&n->v, &n->cap, n->n + 1, sizeof(*n->v)) < 0)
		return err_nomem(e);
	n->v[n->n++] = copy;
	return 0;
}

int ds_notes_add(struct ds_notes *n, struct arena *a, const char *where, size_t len,
		 const char *fmt, va_list ap, struct err *e)
{
	struct err line = ERR_INIT;
	char text[ERR_TEXT_MAX];

	if (n->n >= DS_NOTES_MAX) {
		n->dropped++;
		return 0;
	}
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	/* err_set makes control characters of names harmless */
	(void)err_set(&line, 0, "%.*s: %s", (int)u64_min(len, 300), where, text);
	return notes_keep(n, a, line.msg, e);
}

int ds_notes_freeze(struct ds_notes *n, struct arena *a, struct dataset *ds, struct err *e)
{
	char more[80];
	int rc = 0;

	(void)snprintf(more, sizeof(more), "%" PRIu64 " more notes of this kind", n->dropped);
	if (n->dropped)
		rc = notes_keep(n, a, more, e);
	if (rc < 0)
		return rc;
	ds->notes = arena_copy(a, n->v, n->n * sizeof(*n->v));
	ds->n_notes = (uint32_t)n->n;
	return ds->notes ? 0 : builder_full(a, e);
}

void ds_notes_release(struct ds_notes *n)
{
	free(n->v);
	*n = (struct ds_notes){0};
}

/* notes_of_its_own - the list of a dataset, with room for one more note; NULL: the arena is full.
 * The room is doubled each time. */
static const char **notes_of_its_own(struct dataset *ds)
{
	uint32_t room;
	const char **v;

	if (ds->n_notes < ds->notes_room)
		return (const char **)(uintptr_t)ds->notes;
	if (ckd_mul(&room, ds->n_notes + 1, 2u))
		return NULL;
	v = arena_alloc(&ds->arena, room, sizeof(*v));
	if (!v)
		return NULL;
	if (ds->n_notes > 0)
		memcpy(v, ds->notes, ds->n_notes * sizeof(*v));
	ds->notes = v;
	ds->notes_room = room;
	return v;
}

int ds_note_append(struct dataset *ds, struct err *e, const char *fmt, ...)
{
	struct err line = ERR_INIT;
	char text[ERR_TEXT_MAX];
	const char **v = notes_of_its_own(ds);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long note is cut */
	va_end(ap);
	(void)err_set(&line, 0, "%s", text); /* as in ds_notes_add */
	if (v)
		v[ds->n_notes] = arena_strdup(&ds->arena, line.msg);
	if (!v || !v[ds->n_notes])
		return builder_full(&ds->arena, e);
	ds->n_notes++;
	return 0;
}

int unreadable_add(struct unreadable *l, uint32_t group, const char *name, struct err *e)
{
	if (l->n >= UNREADABLE_MAX)
		name = NULL;
	if (!name && l->n && !l->v[l->n - 1].name && l->v[l->n - 1].group == group)
		return 0;
	if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return err_nomem(e);
	l->v[l->n++] = (struct ds_unreadable){.group = group, .name = name};
	return 0;
}

int unreadable_freeze(const struct unreadable *l, const uint32_t *map, struct arena *a,
		      struct dataset *ds, struct err *e)
{
	struct ds_unreadable *v = arena_alloc(a, l->n, sizeof(*v));
	uint32_t n = 0;

	if (!v)
		return builder_full(a, e);
	for (size_t i = 0; i < l->n; i++) {
		uint32_t group = map ? map[l->v[i].group] : l->v[i].group;

		if (group != DS_NONE)
			v[n++] = (struct ds_unreadable){.group = group, .name = l->v[i].name};
	}
	ds->lost = v;
	ds->n_unreadable = n;
	return 0;
}

void unreadable_release(struct unreadable *l)
{
	free(l->v);
	*l = (struct unreadable){0};
}

int ds_absent(const struct dataset *ds, uint32_t group, const char *name, size_t len,
	      struct err *e)
{
	for (uint32_t i = 0; i < ds->n_unreadable; i++) {
		const struct ds_unreadable *x = &ds->lost[i];

		if (x->group == group && (!x->name || (strlen(x->name) == len &&
						       memcmp(x->name, name, len) == 0)))
			return err_set(e, -EIO,
				       "'%.*s' cannot be looked up, because something there is "
				       "damaged: run nczarrfs info for details",
				       (int)len, name);
	}
	return err_set(e, -ENOENT, "no such file");
}
