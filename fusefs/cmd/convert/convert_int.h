/* SPDX-License-Identifier: BSD-3-Clause */
/* convert_int.h - shared by the parts of `nczarrfs convert`: convert.c opens and decides,
 * copy_view.c walks the view and copies with several threads, and each kind of destination has a
 * file of its own. */
#ifndef FUSEFS_CMD_CONVERT_CONVERT_INT_H
#define FUSEFS_CMD_CONVERT_CONVERT_INT_H

#include <pthread.h>

#include "fusefs/cmd/convert/convert.h"
#include "fusefs/cmd/progress.h"
#include "translate/contract/view.h"

#define CONVERT_PIECE ((size_t)4 << 20) /* bytes that are read and written at once */

struct convert;
struct convert_out;

/* convert_unit - the work of one thread: a file of the view, or a part of it. */
struct convert_unit {
	char *path;      /* below the view's root; owned */
	uint64_t id;
	uint64_t off;    /* UINT64_MAX: the whole file; otherwise len bytes from this offset */
	uint64_t len;
	bool last;       /* it must be written after all earlier units */
};

/* convert_out_ops - a destination. Functions may be NULL: nothing to do. */
struct convert_out_ops {
	bool one_file;   /* the view's only file, copied in parts */
	bool docs_last;  /* metadata files come after all chunks, the root's last */
	/* begin - start copying. done: number of units that an earlier run has written. */
	int (*begin)(struct convert_out *o, uint64_t *done, struct err *e);
	/* dir - create a directory, before its contents; by one thread at a time. */
	int (*dir)(struct convert_out *o, const char *path, struct err *e);
	/* write - copy a unit; by any thread. *ret: bytes. room: CONVERT_PIECE bytes. */
	int (*write)(struct convert_out *o, struct convert *c, const struct convert_unit *u,
		     uint8_t *room, uint64_t *ret, struct err *e);
	/* note - the first `done` units are written: record that for a later run. */
	int (*note)(struct convert_out *o, uint64_t done, struct err *e);
	/* finish - everything was written: the copy appears under its name. */
	int (*finish)(struct convert_out *o, struct err *e);
	/* close - keep: a later run may continue; otherwise remove a partial copy. */
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
	uint64_t same;         /* of source_fingerprint; 0: unknown */
	double all;            /* estimated bytes of elements, or of the single file */
	pthread_mutex_t lock;  /* of all fields below */
	pthread_cond_t tick;
	struct convert_walk *walk;
	uint64_t skip, taken;  /* number of units not to be written again; handed out */
	uint64_t files, bytes; /* copied in this run */
	bool walking;          /* a thread searches the next unit, without the lock */
	struct err stop;
	struct convert_worker *workers;
	uint32_t n_workers, running;
	void (*on_progress)(void *arg, uint64_t done); /* of convert_copy */
	void *progress_arg;
};

/* ---- copy_view.c ---- */

/* convert_copy - copy everything in the view. tick: called about ten times a second; the first
 * `done` units are written. */
int convert_copy(struct convert *c, void (*tick)(void *arg, uint64_t done), void *arg,
		 struct err *e) NZ_MUST_USE;
/* convert_read - read up to len bytes of a file of the view to out; fewer only at its end. */
int convert_read(struct convert *c, uint64_t id, uint64_t off, uint8_t *out, size_t len,
		 size_t *ret, struct err *e) NZ_MUST_USE;
/* convert_is_doc - true if a file is metadata, by the last component of its path. */
bool convert_is_doc(const char *path);

/* ---- destinations ---- */

/* convert_local - a directory (tree) or a file at c->setup->cfg->out, written next to it.
 * convert_zip - an archive there. convert_to_s3 - objects below an address. Returns 0 with *ret
 * new; -EEXIST: it exists, and --force was not given; -EBUSY. */
int convert_local(struct convert *c, bool tree, struct convert_out **ret,
		  struct err *e) NZ_MUST_USE;
int convert_zip(struct convert *c, struct convert_out **ret, struct err *e) NZ_MUST_USE;
int convert_to_s3(struct convert *c, struct convert_out **ret, struct err *e) NZ_MUST_USE;

/* ---- destination.c: allowed names and replacements ---- */

/* convert_dest_check - check before anything is opened: a local destination has a suitable name, is
 * separate from the source, and, with --force, is a file, a dataset or an empty directory. Returns
 * 0; -EINVAL; -EEXIST. */
int convert_dest_check(const struct app *setup, struct err *e) NZ_MUST_USE;
/* convert_dest_unread - check that the destination is not a file that this process has open, such
 * as a target of references. Returns 0; -EINVAL. */
int convert_dest_unread(const struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* ---- destination.c: a partial copy next to its final name ---- */

/* convert_place - a name in a directory, and a temporary name next to it for writing. */
struct convert_place {
	int parent;    /* the directory */
	char *name;    /* owned */
	char *tmp;     /* owned */
	char *state;   /* name of the file with the progress for a later run; owned */
	int lock;      /* state, open and locked */
	bool force;
};

#define CONVERT_PLACE_INIT {.parent = -1, .lock = -1}

/* convert_place_open - open the place at path. Errors as convert_local. */
int convert_place_open(const char *path, bool force, struct convert_place *ret,
		       struct err *e) NZ_MUST_USE;
/* convert_place_done - number of units that an earlier run wrote for the same source; 0: none. */
uint64_t convert_place_done(const struct convert_place *p, uint64_t same);
int convert_place_note(const struct convert_place *p, uint64_t same, uint64_t done,
		       struct err *e) NZ_MUST_USE;
/* convert_place_appear - rename tmp to name, durably. */
int convert_place_appear(struct convert_place *p, struct err *e) NZ_MUST_USE;
/* convert_place_close - keep: tmp stays for a later run. */
void convert_place_close(struct convert_place *p, bool keep);
/* convert_place_apart - check that a source and a destination (both local) are different, and that
 * neither is inside the other. Returns 0; -EINVAL. */
int convert_place_apart(const char *source, const char *path, struct err *e) NZ_MUST_USE;

#endif
