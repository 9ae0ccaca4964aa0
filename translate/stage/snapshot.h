/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot.h - the read-only source and view that a writable view stands on.
 *
 * A commit makes a new state of the dataset, which is opened next to the old one: readers of the
 * old state hold it until they are done, and later readers get the new one. */
#ifndef TRANSLATE_STAGE_SNAPSHOT_H
#define TRANSLATE_STAGE_SNAPSHOT_H

#include "translate/contract/store.h"
#include "translate/contract/view.h"

/* snapshot - one open state. */
struct snapshot {
	struct view *view;
	struct store *files; /* of the view, see view_store */
	uint64_t number;   /* 0, 1, 2 ... */
};

struct snapshots;

/* snapshots_new - open the first snapshot. arg is borrowed. Returns 0 with *ret new; else the error
 * of open. */
int snapshots_new(view_open_fn *open, void *arg, struct snapshots **ret,
		  struct err *e) NZ_MUST_USE;
/* snapshots_free - no snapshot may be held. Takes NULL. */
void snapshots_free(struct snapshots *g);

/* snapshots_get - the latest snapshot, held until snapshot_put. Any thread; one lock, no system
 * call. */
struct snapshot *snapshots_get(struct snapshots *g);
/* snapshots_latest - the same, borrowed until the next snapshots_reopen. */
const struct snapshot *snapshots_latest(struct snapshots *g);
/* snapshot_put - release a snapshot. Closes it if it is not the latest and has no other holder. */
void snapshot_put(struct snapshots *g, struct snapshot *x);

/* snapshots_reopen - open the dataset again; the result is the latest snapshot from then on. On
 * failure the old one stays. One caller at a time. */
int snapshots_reopen(struct snapshots *g, struct err *e) NZ_MUST_USE;

/* snapshots_check - return 0 while the latest snapshot is the dataset's state; -ESTALE if another
 * program changed it (by source_poll). */
int snapshots_check(struct snapshots *g, struct err *e) NZ_MUST_USE;

#endif
