/* SPDX-License-Identifier: BSD-3-Clause */
/* slots_int.h - shared by the two parts of the mirror's datasets: slots.c says which
 * are open, slot_open.c opens one. */
#ifndef FUSEFS_MIRROR_SLOTS_INT_H
#define FUSEFS_MIRROR_SLOTS_INT_H

#include "fusefs/mirror/mirror_int.h"

/* closing - a writable dataset while its last commit runs: it has its lock still. Made when the
 * dataset is opened, so that closing needs no memory. */
struct closing {
	struct list_link link; /* m->closing; lock: the mirror */
	char path[];           /* of the dataset, below the base */
};

/* closing_locked - whether the dataset at a path is being closed. */
bool closing_locked(struct mirror *m, const char *path);

/* opened - what a dataset consists of; both NULL: nothing. */
struct opened {
	struct source *source;
	struct view *view;
	struct closing *closing; /* owned; not NULL: the view is writable; there is no source */
	bool last; /* nobody finds it again: as for view_write_ops.finish */
};

/* slot_same - whether st may be of the dataset that a slot was made for. */
bool slot_same(const struct slot *s, const struct stat *st);
/* slot_stale - the error of a dataset that changed: -ESTALE. */
int slot_stale(const char *path, struct err *e);
/* open_dataset - without the mirror's lock; reads constants of the slot. o->source: NULL, or one
 * that was parked. On failure o has what is to be closed. */
int open_dataset(struct mirror *m, const struct slot *s, struct opened *o, struct err *e);

#endif
