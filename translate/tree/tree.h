/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - a writable tree of files over a read-only view.
 *
 * Written files are staged whole (stage/stage.h), under any names: writers put a temporary file and
 * rename it, or write in place; chunks may come before the metadata that describe them. Readers see
 * staged files first, then those of the dataset. A commit puts staged files into the dataset. It
 * begins when enough is staged, after a pause without writes, when a directory is synced, and at
 * the end. */
#ifndef TRANSLATE_TREE_TREE_H
#define TRANSLATE_TREE_TREE_H

#include "translate/stage/snapshot.h"
#include "translate/stage/stage.h"

enum { TREE_RECODED = 1, TREE_SHORTER = 2, TREE_LONGER = 4 };

/* tree_change - a file that is about to have new content or another name. */
struct tree_change {
	struct store *tree; /* everything that is confirmed, without the change */
	const char *key;    /* of the file */
	const char *from;   /* the name that it loses; NULL: it has none, or keeps it */
	/* content - append what the file is to have to out. Returns errors of store_get. */
	int (*content)(const struct tree_change *c, struct buf *out, struct err *e);
};

struct tree_rw_options {
	int dir_fd;              /* of the state directory; borrowed for the view's life */
	const char *dir;         /* its path, for messages; borrowed */
	uint64_t max_staged;     /* bytes of pending writes: a commit begins at half of it, and
				  * writers wait beyond it */
	uint64_t max_buffer;     /* memory for files that are open for writing; beyond it they are
	                          * in unnamed files of the state directory */
	uint32_t idle_ms;        /* pause without a write after which a commit begins */
	uint64_t id_limit;       /* ids stay below it */
	const char *name;        /* the root is the only entry of a directory, under this name;
	                          * NULL: the root is VIEW_ROOT. Borrowed for the view's life */
	struct stat st;          /* owner, times and permissions, if the snapshot has no source */

	/* check - whether a file may have its new content under its name. The writer's close or
	 * rename fails with the error. */
	int (*check)(void *arg, const struct tree_change *c, struct err *e);
	/* commit - put the staged records up to a generation into the dataset, whose present state
	 * is `was`. Called in a thread of the view, one at a time. quiesce: to be called in that
	 * thread before bytes of the old state change; from its return until commit returns, no
	 * thread reads them. left: appended, each with its NUL, or with "\treason" and a NUL: the
	 * keys that do not belong to the dataset (temporary files, chunks of arrays without
	 * metadata), or that it cannot hold. all: a request waits for the dataset to have
	 * everything; else entries that it would show in another form than their writer knows may
	 * be left. */
	int (*commit)(void *arg, const struct snapshot *was, uint64_t generation, bool all,
		      void (*quiesce)(void *view), void *view, struct buf *left,
		      struct err *e);
	/* recoded - in the new state of the dataset the array in directory dir has the metadata
	 * file `is`, at key doc; before, it had `was`. Returns 0 if its chunks have another form,
	 * or the bytes that are stored; else TREE_RECODED: they are encoded again when they are
	 * read; with TREE_SHORTER and TREE_LONGER if an axis is. NULL: always 0. */
	unsigned (*recoded)(void *arg, const struct snapshot *now, const char *dir,
			    const char *doc, const uint8_t *was, size_t n_was,
			    const uint8_t *is, size_t n_is);
	void *arg;
};

/* tree_rw_open - make a writable view. g, whose view is a Zarr store, and stage are taken on
 * success; staged records are committed at once, in the background.
 * Returns 0 with *ret new: a view with `write`, which follows. */
int tree_rw_open(struct snapshots *g, struct stage *stage, const struct tree_rw_options *opts,
		 struct view **ret, struct err *e) NZ_MUST_USE;

/* tree_rw_passing - whether a file's name is one that programs use until the file is complete:
 * `0.0.<hex>.partial`, `__atomic...`. */
bool tree_rw_passing(const char *key);

#endif
