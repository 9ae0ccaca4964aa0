/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - a writable tree of files over a read-only view.
 *
 * What is written is staged (stage/stage.h) as whole files, under whatever names: writers put a
 * temporary file and rename it, or write in place; chunks may come before the metadata that
 * describes them. Readers see what is staged, then what the dataset has. A commit puts what is
 * staged into the dataset; it is begun when enough is staged, when nobody has written for a while,
 * when a directory is synced, and at the end. */
#ifndef TRANSLATE_TREE_TREE_H
#define TRANSLATE_TREE_TREE_H

#include "translate/stage/snapshot.h"
#include "translate/stage/stage.h"

enum { TREE_RECODED = 1, TREE_SHORTER = 2, TREE_LONGER = 4 };

struct tree_rw_options {
	int dir_fd;              /* of the state directory; borrowed for the view's life */
	const char *dir;         /* its path, for people; borrowed */
	uint64_t max_staged;     /* bytes that may wait: a commit is begun at half of it, writers
	                          * wait beyond it */
	uint64_t max_buffer;     /* memory for files that are open for writing; beyond it they are
	                          * in unnamed files of the state directory */
	uint32_t idle_ms;        /* a commit is begun when nobody wrote for so long */
	uint64_t id_limit;       /* ids stay below it */
	const char *name;        /* the root is the only entry of a directory, under this name;
	                          * NULL: the root is VIEW_ROOT. Borrowed for the view's life */
	struct stat st;          /* owner, times and permissions, where the ground has no source */

	/* check - a file has got its final content under its name: may it be so? tree: everything
	 * as it would be with it. An error is what the writer's close or rename gets. */
	int (*check)(void *arg, struct store *tree, const char *key, struct err *e);
	/* commit - what is staged up to a generation goes into the dataset, which now is `was`.
	 * Called in a thread of the view's, one at a time. quiesce: to be called in that thread
	 * when bytes of the old state are about to change; nobody reads them from its return on
	 * until commit returns. left: keys that do not belong to the dataset (temporary files,
	 * chunks of arrays that nobody described), or that it cannot hold; new texts. all:
	 * somebody waits for everything to be in the dataset; else what it would show in another
	 * form than its writer knows may be left. */
	int (*commit)(void *arg, const struct snapshot *was, uint64_t generation, bool all,
		      void (*quiesce)(void *view), void *view, char ***ret_left, size_t *ret_n,
		      struct err *e);
	/* recoded - in the new state of the dataset the array in the directory dir has the document
	 * `is`, at key doc; before it had the document `was`. Returns 0 where its chunks have
	 * another form, or the bytes that are stored; else TREE_RECODED: they are encoded anew when
	 * they are read; with TREE_SHORTER and TREE_LONGER where an axis is. NULL: always 0. */
	unsigned (*recoded)(void *arg, const struct snapshot *now, const char *dir,
			    const char *doc, const uint8_t *was, size_t n_was,
			    const uint8_t *is, size_t n_is);
	void *arg;
};

/* tree_rw_open - grounds is taken on success, its view is a tree of files. stage: taken on success;
 * what it holds is committed at once, in the background.
 * Returns 0 with *ret new: a view with `write`, which follows. */
int tree_rw_open(struct snapshots *g, struct stage *stage, const struct tree_rw_options *opts,
		 struct view **ret, struct err *e) NZ_MUST_USE;

/* tree_rw_passing - whether a file's name is one that programs give it until it is whole:
 * `0.0.<hex>.partial`, `__atomic...`. */
bool tree_rw_passing(const char *key);

#endif
