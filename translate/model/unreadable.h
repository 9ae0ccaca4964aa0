/* SPDX-License-Identifier: BSD-3-Clause */
/* unreadable.h - members of a source that cannot be read: an object header that is damaged, a
 * dangling link. The model does not contain them, but a look-up must not report them as absent. */
#ifndef TRANSLATE_MODEL_UNREADABLE_H
#define TRANSLATE_MODEL_UNREADABLE_H

#include "translate/model/dataset.h"

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
