/* SPDX-License-Identifier: BSD-3-Clause */
/* unreadable.h - what is in a source and cannot be read: an object header that is damaged, a link
 * that leads nowhere. It is no part of the model, but nobody may say that it is not there. */
#ifndef TRANSLATE_MODEL_UNREADABLE_H
#define TRANSLATE_MODEL_UNREADABLE_H

#include "translate/model/dataset.h"

/* lost - while a model is built; {0} to begin with. */
struct unreadable {
	struct ds_unreadable *v; /* owned; the names are the arena's */
	size_t n, cap;
};

/* unreadable_add - a member of a group; name: of the model's arena, NULL: which members the group
 * has is not known. Beyond UNREADABLE_MAX names of all groups nobody says of that group what it has
 * not. Returns 0; -ENOMEM. */
#define UNREADABLE_MAX 1000
int unreadable_add(struct unreadable *l, uint32_t group, const char *name,
		   struct err *e) NZ_MUST_USE;

/* unreadable_freeze - into ds, in arena a. map: for each group that was built its ordinal in ds, or
 * DS_NONE; NULL: they are the same. Returns 0; -ERANGE the metadata are full; -ENOMEM. */
int unreadable_freeze(const struct unreadable *l, const uint32_t *map, struct arena *a,
		      struct dataset *ds, struct err *e) NZ_MUST_USE;
void unreadable_release(struct unreadable *l);

#endif
