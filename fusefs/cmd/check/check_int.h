/* SPDX-License-Identifier: BSD-3-Clause */
/* check_int.h - shared by the parts of `nczarrfs check`: check.c opens and decides, read_chunks.c
 * reads with several threads, state.c keeps how far it came, report.c says it. */
#ifndef FUSEFS_CMD_CHECK_CHECK_INT_H
#define FUSEFS_CMD_CHECK_CHECK_INT_H

#include <pthread.h>

#include "fusefs/cmd/check/check.h"
#include "fusefs/cmd/progress.h"
#include "fusefs/app/workers.h"
#include "translate/chunkio/chunkio.h"

#define CHECK_ARRAY UINT64_MAX  /* in the place of a chunk: all of the array's */
#define CHECK_LISTED 100000     /* chunks that are named; of others there is the number */

/* check_bad - a chunk that is no good. Texts owned. */
struct check_bad {
	uint32_t array;
	uint64_t linear;   /* or CHECK_ARRAY */
	bool placed;       /* the following is known */
	char *key;         /* "": in the source's file */
	bool whole;        /* the object `key` */
	uint64_t off, len;
	char *why;
};

struct check_list {
	struct check_bad *v;
	size_t n, cap;
	uint64_t more;     /* not in v */
};

/* check_at - a place in the order in which chunks are looked at. */
struct check_at {
	uint32_t array;
	uint64_t linear;
};

struct check {
	const struct app *setup;
	struct source *source;
	struct plan *plans;
	struct chunkio *io;
	bool unfinished;       /* something that was written waits, and is not in it */
	const char *rest;      /* why the dataset could only be opened in part; NULL */
	pthread_mutex_t lock;  /* of all below */
	pthread_cond_t tick;   /* a thread ended */
	struct check_at next;  /* nobody has taken it or what follows */
	bool filling;          /* a thread looks, without the lock, for chunks from there on */
	uint64_t taken;        /* chunks before it */
	double passed, all;    /* bytes of elements that arrays have: of those before next.array */
	uint64_t chunks, bytes, elements; /* read in this run; bytes: as stored */
	struct check_list bad;
	uint32_t unreadable;   /* chunks far away that could not be had */
	struct check_at hold;  /* the first of them */
	struct err stop;       /* code: why it ends before all is read */
	struct check_worker *workers;
	uint32_t n_workers, running;
	void (*on_progress)(void *arg, struct check_at at, uint64_t taken); /* check_run's */
	void *progress_arg;
	struct room room;      /* for chunks that are held whole outside of the cache */
};

/* ---- check.c ---- */

/* check_reported - what is known of one when it is done. */
struct check_reported {
	bool printed;     /* its report */
	bool damaged;     /* something is no good */
	bool interrupted; /* a signal ended it */
};

/* check_one - of setup's cfg's source, in a process of its own. several: it is one of a
 * directory's, whose state stays when it is done. Returns the exit status. */
int check_one(const struct app *setup, bool several, struct check_reported *ret);

/* ---- walk.c ---- */

/* check_dir - of all datasets below cfg's source, which is a directory without one of its own. */
int check_dir(const struct app *setup);

/* ---- read_chunks.c ---- */

/* check_run - read everything from c->next on. tick: called about ten times a second, c not locked;
 * where everything before `at`, `taken` chunks, has been looked at. Returns 0; or c->stop.code. */
int check_run(struct check *c, void (*tick)(void *arg, struct check_at at, uint64_t taken),
	       void *arg, struct err *e) NZ_MUST_USE;

/* ---- state.c ---- */

/* check_state_load - what a state file says, into next, taken and bad, when it is of a run over the
 * same source. Returns 1; 0 there is none, or of another; -EINVAL the file is no such thing. */
int check_state_load(struct check *c, const char *path, uint64_t same,
		     struct err *e) NZ_MUST_USE;
/* check_state_parse - of its text, n bytes and a NUL behind them, which is changed. Returns 2: it
 * is in c; 0: it is of another source; 1: it is no such text; -ENOMEM. */
int check_state_parse(struct check *c, char *text, size_t n, uint64_t same,
		      struct err *e) NZ_MUST_USE;
/* check_state_print - append it: all before `at` is done. */
void check_state_print(const struct check *c, struct check_at at, uint64_t taken, uint64_t same,
		       struct buf *out);
/* check_state_save - replace the file. c is not locked. */
int check_state_save(struct check *c, const char *path, struct check_at at, uint64_t taken,
		     uint64_t same, struct err *e) NZ_MUST_USE;

/* ---- report.c ---- */

/* check_bad_add - take what b owns; when the list is full it is counted. Returns 0; -ENOMEM. */
int check_bad_add(struct check_list *l, struct check_bad *b, struct err *e) NZ_MUST_USE;
void check_bad_release(struct check_list *l);
/* check_report - what was found. done: everything was read. */
void check_report(struct check *c, bool done, bool resumed, struct buf *out);
/* check_log_bad - a line of the log for each chunk that is no good. Returns their number. */
uint64_t check_log_bad(struct check *c);
/* check_at_cmp - which place comes first. */
int check_at_cmp(struct check_at a, struct check_at b);

#endif
