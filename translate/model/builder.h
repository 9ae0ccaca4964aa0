/* SPDX-License-Identifier: BSD-3-Clause */
/* builder.h - parts of a model that every source collects in the same way: notes, to which a source
 * above another one appends its own; and members that cannot be read, such as dangling links. The
 * model does not contain those, but a look-up must not report them as absent. */
#ifndef TRANSLATE_MODEL_BUILDER_H
#define TRANSLATE_MODEL_BUILDER_H

#include <stdarg.h>

#include "translate/model/dataset.h"

#define DS_NOTES_MAX 1000

/* ds_notes - the notes of a model while it is built; zeroes to begin with. */
struct ds_notes {
	const char **v; /* owned; the strings are the arena's */
	size_t n, cap;
	uint64_t dropped; /* notes after the first DS_NOTES_MAX */
};

/* ds_notes_add - add the note "<where>: <text>", in arena a. where: at most 300 bytes of it are
 * used. Returns 0; -ERANGE a is full; -ENOMEM. */
int ds_notes_add(struct ds_notes *n, struct arena *a, const char *where, size_t len,
		 const char *fmt, va_list ap, struct err *e) NZ_MUST_USE;

/* ds_notes_freeze - store the notes in ds, the last one with the number of dropped ones. Returns 0;
 * -ERANGE, -ENOMEM. */
int ds_notes_freeze(struct ds_notes *n, struct arena *a, struct dataset *ds,
		    struct err *e) NZ_MUST_USE;
void ds_notes_release(struct ds_notes *n);

/* ds_note_append - append a note to a finished dataset, whose list may be borrowed from another
 * one: it is copied then. Returns 0; -ERANGE the arena is full; -ENOMEM. */
int ds_note_append(struct dataset *ds, struct err *e, const char *fmt, ...) NZ_PRINTF(3, 4)
	NZ_MUST_USE;

/* unreadable - collects members while a model is built; {0} to begin with. */
struct unreadable {
	struct ds_unreadable *v; /* owned; the names are the arena's */
	size_t n, cap;
};

/* unreadable_add - add a member of a group. name: in the model's arena; NULL: the set of the
 * group's members is not known. After UNREADABLE_MAX names of all groups, every look-up miss in
 * that group is an error. Returns 0; -ENOMEM. */
#define UNREADABLE_MAX 1000
int unreadable_add(struct unreadable *l, uint32_t group, const char *name,
		   struct err *e) NZ_MUST_USE;

/* unreadable_freeze - copy the members into ds, in arena a. map: for each group that was built its
 * ordinal in ds, or DS_NONE; NULL: they are the same. Returns 0; -ERANGE the metadata are full;
 * -ENOMEM. */
int unreadable_freeze(const struct unreadable *l, const uint32_t *map, struct arena *a,
		      struct dataset *ds, struct err *e) NZ_MUST_USE;
void unreadable_release(struct unreadable *l);

#endif
