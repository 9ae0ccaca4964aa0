/* SPDX-License-Identifier: BSD-3-Clause */
/* slots_int.h - shared by slots.c, which decides which datasets are open, and slot_open.c, which
 * opens one. */
#ifndef FUSEFS_MIRROR_SLOTS_INT_H
#define FUSEFS_MIRROR_SLOTS_INT_H

#include "fusefs/mirror/mirror_int.h"

/* slots_closing - true if a dataset at a path is being closed, and may still hold its lock; below:
 * one at the path or below it. With the lock. */
bool slots_closing(const struct mirror *m, const char *path, bool below);

/* slot_same - true if st may belong to the dataset of a slot. */
bool slot_same(const struct slot *s, const struct stat *st);
/* slot_stale - the error of a dataset that changed: -ESTALE. */
int slot_stale(const char *path, struct err *e);
/* open_dataset - call it without the mirror's lock; uses constants of the slot. parked: NULL, or
 * its source, which is taken. Returns 0 with *ret new; on failure *ret is NULL, or a writable view
 * that is to be closed. */
int open_dataset(struct mirror *m, const struct slot *s, struct source *parked,
		 struct view **ret, struct err *e);

#endif
