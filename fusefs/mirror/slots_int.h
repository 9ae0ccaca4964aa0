/* SPDX-License-Identifier: BSD-3-Clause */
/* slots_int.h - shared by slots.c, which decides which datasets are open, and slot_open.c, which
 * opens one. */
#ifndef FUSEFS_MIRROR_SLOTS_INT_H
#define FUSEFS_MIRROR_SLOTS_INT_H

#include "fusefs/mirror/mirror_int.h"

/* closing - a writable dataset during its last commit, while it holds its lock. Allocated when the
 * dataset is opened, so that closing needs no memory. */
struct closing {
	struct list_link link; /* m->closing; lock: the mirror */
	char path[];           /* of the dataset, below the base */
};

/* closing_locked - true if the dataset at a path is being closed. */
bool closing_locked(struct mirror *m, const char *path);

/* opened - the parts of an open dataset; both NULL: none. */
struct opened {
	struct source *source;
	struct view *view;
	struct closing *closing; /* owned; not NULL: the view is writable; there is no source */
	bool last; /* it is never opened again: as for view_write_ops.finish */
};

/* slot_same - true if st may belong to the dataset of a slot. */
bool slot_same(const struct slot *s, const struct stat *st);
/* slot_stale - the error of a dataset that changed: -ESTALE. */
int slot_stale(const char *path, struct err *e);
/* open_dataset - call it without the mirror's lock; uses constants of the slot. o->source: NULL, or
 * a parked one. On failure o has the parts to close. */
int open_dataset(struct mirror *m, const struct slot *s, struct opened *o, struct err *e);

#endif
