/* SPDX-License-Identifier: BSD-3-Clause */
/* check_int.h - shared by the parts of `nczarrfs check`: check.c opens and decides, read_chunks.c
 * reads with several threads, state.c saves the progress, report.c prints the report. */
#ifndef FUSEFS_CMD_CHECK_CHECK_INT_H
#define FUSEFS_CMD_CHECK_CHECK_INT_H

#include <pthread.h>

#include "fusefs/cmd/check/check.h"
#include "fusefs/cmd/progress.h"
#include "fusefs/app/workers.h"
#include "translate/chunkio/chunkio.h"

#define CHECK_ARRAY UINT64_MAX  /* in place of a chunk: all chunks of the array */
#define CHECK_LISTED 100000     /* chunks in the report; further ones are only counted */

/* check_bad - a damaged chunk. Strings are owned. */
struct check_bad {
	uint32_t array;
	uint64_t linear;   /* or CHECK_ARRAY */
	bool placed;       /* key, off and len are known */
	char *key;         /* "": in the source's file */
	bool whole;        /* the whole object `key` */
	uint64_t off, len;
	char *why;
};

struct check_list {
	struct check_bad *v;
	size_t n, cap;
	uint64_t more;     /* not in v */
};

/* check_at - a position in the order in which chunks are read. */
struct check_at {
	uint32_t array;
	uint64_t linear;
};

struct check {
	const struct app *setup;
	struct source *source;
	struct plan *plans;
	struct chunkio *io;
	bool unfinished;       /* pending writes are not in the dataset */
	const char *rest;      /* why the dataset could only be opened in part; NULL */
	pthread_mutex_t lock;  /* of all fields below */
	pthread_cond_t tick;   /* a thread ended */
	struct check_at next;  /* the first chunk that no thread has taken */
	bool filling;          /* a thread searches chunks from there on, without the lock */
	uint64_t taken;        /* chunks before it */
	/* bytes of elements of the arrays before next.array, and of all arrays */
	double passed, all;
	uint64_t chunks, bytes, elements; /* read in this run; bytes: as stored */
	struct check_list bad;
	uint32_t unreadable;   /* remote chunks that could not be fetched */
	struct check_at hold;  /* the first of them */
	struct err stop;       /* code: why the check ends early */
	struct check_worker *workers;
	uint32_t n_workers, running;
	void (*on_progress)(void *arg, struct check_at at, uint64_t taken); /* of check_run */
	void *progress_arg;
	struct room room;      /* for chunks that are held whole outside of the cache */
};

/* ---- check.c ---- */

/* check_reported - summary of a finished check. */
struct check_reported {
	bool printed;     /* its report was printed */
	bool damaged;     /* the dataset is damaged */
	bool interrupted; /* a signal ended it */
};

/* check_one - check setup's cfg's source in a child process. several: it is one dataset of a
 * directory, whose state file stays when it is complete. Returns the exit status. */
int check_one(const struct app *setup, bool several, struct check_reported *ret);

/* ---- walk.c ---- */

/* check_dir - check all datasets below cfg's source, a directory that is not a dataset itself. */
int check_dir(const struct app *setup);

/* ---- read_chunks.c ---- */

/* check_run - read everything from c->next on. tick: called about ten times a second, c not locked;
 * everything before `at`, `taken` chunks, has been read. Returns 0; or c->stop.code. */
int check_run(struct check *c, void (*tick)(void *arg, struct check_at at, uint64_t taken),
	       void *arg, struct err *e) NZ_MUST_USE;

/* ---- state.c ---- */

/* check_state_load - load a state file into next, taken and bad, if it is of a check of the same
 * source. Returns 1; 0: no file, or one of another source; -EINVAL: the file is not a state
 * file. */
int check_state_load(struct check *c, const char *path, uint64_t same,
		     struct err *e) NZ_MUST_USE;
/* check_state_parse - parse its contents, n bytes and a final NUL, which are modified. Returns 2:
 * loaded into c; 0: it is of another source; 1: it is not a state file; -ENOMEM. */
int check_state_parse(struct check *c, char *text, size_t n, uint64_t same,
		      struct err *e) NZ_MUST_USE;
/* check_state_print - append the state: all chunks before `at` were read. */
void check_state_print(const struct check *c, struct check_at at, uint64_t taken, uint64_t same,
		       struct buf *out);
/* check_state_save - replace the file. c is not locked. */
int check_state_save(struct check *c, const char *path, struct check_at at, uint64_t taken,
		     uint64_t same, struct err *e) NZ_MUST_USE;

/* ---- report.c ---- */

/* check_bad_add - add b, and take ownership of its strings; if the list is full, only count it.
 * Returns 0; -ENOMEM. */
int check_bad_add(struct check_list *l, struct check_bad *b, struct err *e) NZ_MUST_USE;
void check_bad_release(struct check_list *l);
/* check_report - append the report. done: everything was read. */
void check_report(struct check *c, bool done, bool resumed, struct buf *out);
/* check_log_bad - log a line for each damaged chunk. Returns their number. */
uint64_t check_log_bad(struct check *c);
/* check_at_cmp - compare two positions. */
int check_at_cmp(struct check_at a, struct check_at b);

#endif
