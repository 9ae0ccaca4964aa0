/* snapshot.h - the read-only source and view that a writable view stands on.
 *
 * A commit makes another state of the dataset, which is opened beside the old one: who still reads
 * the old one holds it until he is done; whoever comes later gets the new one. */
#ifndef TRANSLATE_STAGE_SNAPSHOT_H
#define TRANSLATE_STAGE_SNAPSHOT_H

#include "translate/contract/view.h"

/* ground - one state, open. */
struct ground {
	struct source *source;
	struct view *view;
	uint64_t number;   /* 0, 1, 2 ... */
};

struct grounds;

/* ground_open_fn - open source and view of the dataset as it is now. */
typedef int ground_open_fn(void *arg, struct source **ret_source, struct view **ret_view,
			   struct err *e);

/* grounds_new - open the first. arg is borrowed. Returns 0 with *ret new; else what open said. */
int grounds_new(ground_open_fn *open, void *arg, struct grounds **ret, struct err *e) NZ_MUST_USE;
/* grounds_free - no ground may be held. Takes NULL. */
void grounds_free(struct grounds *g);

/* grounds_get - the latest, held until ground_put. Any thread; one lock, no system call. */
struct ground *grounds_get(struct grounds *g);
/* ground_put - closes it when it is not the latest and nobody else holds it. */
void ground_put(struct grounds *g, struct ground *x);

/* grounds_renew - open the dataset again; the result is the latest from then on. On failure the old
 * one stays. One caller at a time. */
int grounds_renew(struct grounds *g, struct err *e) NZ_MUST_USE;

/* grounds_check - 0 while the latest is what the dataset is; -ESTALE somebody else changed it
 * (asked of source_poll). */
int grounds_check(struct grounds *g, struct err *e) NZ_MUST_USE;

#endif
