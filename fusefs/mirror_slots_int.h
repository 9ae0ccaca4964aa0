/* mirror_slots_int.h - shared by the two parts of the mirror's datasets: mirror_slots.c says which
 * are open, mirror_open.c opens one. */
#ifndef FUSEFS_MIRROR_SLOTS_INT_H
#define FUSEFS_MIRROR_SLOTS_INT_H

#include "fusefs/mirror_int.h"

/* opened - what a dataset consists of; both NULL: nothing. */
struct opened {
	struct source *source;
	struct view *view;
	bool rw; /* the view is a writable one; there is no source */
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
