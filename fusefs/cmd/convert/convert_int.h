/* SPDX-License-Identifier: BSD-3-Clause */
/* convert_int.h - shared by the parts of `nczarrfs convert`: convert.c opens and decides,
 * copy_view.c walks through the view and copies with several threads, and there is a file for
 * each kind of place that files go to. */
#ifndef FUSEFS_CMD_CONVERT_CONVERT_INT_H
#define FUSEFS_CMD_CONVERT_CONVERT_INT_H

#include <pthread.h>

#include "fusefs/cmd/convert/convert.h"
#include "fusefs/cmd/progress.h"
#include "translate/contract/view.h"

#define CONVERT_PIECE ((size_t)4 << 20) /* bytes that are read and written at once */

struct convert;
struct convert_out;

/* convert_unit - what one thread copies: a file of the view, or a part of it. */
struct convert_unit {
	char *path;      /* below the view's root; owned */
	uint64_t id;
	uint64_t off;    /* UINT64_MAX: the whole file; else len bytes from here on */
	uint64_t len;
	bool last;       /* it comes after all units before it */
};

/* convert_out_ops - where files go. Functions may be NULL: nothing is to be done. */
struct convert_out_ops {
	bool one_file;   /* it is the view's only file, taken in parts */
	bool docs_last;  /* metadata comes after all chunks, the root's at the end */
	/* begin - copying begins. done: units that a run before this one has written. */
	int (*begin)(struct convert_out *o, uint64_t *done, struct err *e);
	/* dir - a directory, before what is in it; by one thread at a time. */
	int (*dir)(struct convert_out *o, const char *path, struct err *e);
	/* write - copy a unit; by any thread. *ret: bytes. room: CONVERT_PIECE bytes. */
	int (*write)(struct convert_out *o, struct convert *c, const struct convert_unit *u,
		     uint8_t *room, uint64_t *ret, struct err *e);
	/* note - the first `done` units are written: what a later run needs to know. */
	int (*note)(struct convert_out *o, uint64_t done, struct err *e);
	/* finish - everything was written: it appears. */
	int (*finish)(struct convert_out *o, struct err *e);
	/* close - keep: a later run may go on; else what is half done goes. */
	void (*close)(struct convert_out *o, bool keep);
};

struct convert_out {
	const struct convert_out_ops *ops;
};

struct convert_worker;

struct convert {
	const struct app *setup;
	struct source *source;
	struct view *view;
	struct convert_out *out;
	uint64_t same;         /* of source_fingerprint; 0: not known */
	double all;            /* about as many bytes of elements, or of the one file */
	pthread_mutex_t lock;  /* of all below */
	pthread_cond_t tick;
	struct convert_walk *walk;
	uint64_t skip, taken;  /* units: not to be written again; handed out */
	uint64_t files, bytes; /* copied in this run */
	bool walking;          /* a thread looks, without the lock, for the next unit */
	struct err stop;
	struct convert_worker *workers;
	uint32_t n_workers, running;
	void (*on_progress)(void *arg, uint64_t done); /* convert_copy's */
	void *progress_arg;
};

/* ---- copy_view.c ---- */

/* convert_copy - everything in the view. tick: about ten times a second; the first `done` units
 * are written. */
int convert_copy(struct convert *c, void (*tick)(void *arg, uint64_t done), void *arg,
		 struct err *e) NZ_MUST_USE;
/* convert_read - up to len bytes of a file of the view into out; fewer only at its end. */
int convert_read(struct convert *c, uint64_t id, uint64_t off, uint8_t *out, size_t len,
		 size_t *ret, struct err *e) NZ_MUST_USE;
/* convert_is_doc - whether a file is metadata, by the last component of its path. */
bool convert_is_doc(const char *path);

/* ---- the kinds ---- */

/* convert_local - a directory (tree) or a file at c->setup->cfg->out, made beside it.
 * convert_zip - an archive there. convert_to_s3 - objects below an address.
 * Returns 0 with *ret new; -EEXIST it is there, and --force was not given; -EBUSY. */
int convert_local(struct convert *c, bool tree, struct convert_out **ret,
		  struct err *e) NZ_MUST_USE;
int convert_zip(struct convert *c, struct convert_out **ret, struct err *e) NZ_MUST_USE;
int convert_to_s3(struct convert *c, struct convert_out **ret, struct err *e) NZ_MUST_USE;

/* ---- destination.c: what it may be called, and take the place of ---- */

/* convert_dest_check - before anything is opened: a local destination has a name that fits, is
 * apart from what is copied, and, with --force, is nothing but a file, a dataset or an empty
 * directory. Returns 0; -EINVAL; -EEXIST. */
int convert_dest_check(const struct app *setup, struct err *e) NZ_MUST_USE;
/* convert_dest_unread - that what is there is no file that this process has open: what references
 * lead to, for one. Returns 0; -EINVAL. */
int convert_dest_unread(const struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* ---- destination.c: what is made beside its place, then appears there ---- */

/* convert_place - a name in a directory, and the name beside it that is written to. */
struct convert_place {
	int parent;    /* the directory */
	char *name;    /* owned */
	char *tmp;     /* owned */
	char *state;   /* the same with what a later run needs to know; owned */
	int lock;      /* state is open and locked */
	bool force;
};

#define CONVERT_PLACE_INIT {.parent = -1, .lock = -1}

/* convert_place_open - of path. Errors as convert_local. */
int convert_place_open(const char *path, bool force, struct convert_place *ret,
		       struct err *e) NZ_MUST_USE;
/* convert_place_done - how many units a run before this one wrote for the same source; 0: none. */
uint64_t convert_place_done(const struct convert_place *p, uint64_t same);
int convert_place_note(const struct convert_place *p, uint64_t same, uint64_t done,
		       struct err *e) NZ_MUST_USE;
/* convert_place_appear - tmp becomes name, durably. */
int convert_place_appear(struct convert_place *p, struct err *e) NZ_MUST_USE;
/* convert_place_close - keep: tmp stays, where a later run finds it. */
void convert_place_close(struct convert_place *p, bool keep);
/* convert_place_apart - that a source and a destination (both local) are not the same, nor one
 * inside of the other. Returns 0; -EINVAL. */
int convert_place_apart(const char *source, const char *path, struct err *e) NZ_MUST_USE;

#endif
