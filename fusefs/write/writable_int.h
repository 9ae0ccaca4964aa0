/* SPDX-License-Identifier: BSD-3-Clause */
/* writable_int.h - shared by writable.c, state_dir.c, commit_process.c and rw_recover*.c only. */
#ifndef FUSEFS_WRITE_WRITABLE_INT_H
#define FUSEFS_WRITE_WRITABLE_INT_H

#include "fusefs/write/writable.h"

/* ---- state_dir.c: the state directory ---- */

/* rw_state - a state directory, locked: nobody else writes the dataset. */
struct rw_state {
	char *path;   /* of the dataset, resolved; owned */
	char *shown;  /* path for messages: of an address without secrets; owned */
	char *dir;    /* of the state directory; owned */
	int dir_fd;   /* -1: none */
	int lock_fd;  /* holds the lock */
	bool is_dir;  /* the dataset is a directory, or a tree at an address */
	bool remote;  /* path is an address */
	struct stat base; /* the file that what waits was written over */
};

#define RW_STATE_INIT {.dir_fd = -1, .lock_fd = -1}

/* rw_state_open - of the dataset at path. make: it is made when it is not there.
 * Returns 0 with *ret filled (rw_state_close); -ENOENT no such dataset, or without make no state;
 * -EBUSY another process has it, e says which. */
int rw_state_open(const struct cfg *cfg, const char *path, bool make, struct rw_state *ret,
		  struct err *e) NZ_MUST_USE;
/* rw_state_close - unlocks it, and removes the directory when nothing is kept in it. */
void rw_state_close(struct rw_state *s);
/* rw_state_bare - whether nothing is kept in it. */
bool rw_state_bare(const struct rw_state *s);
/* rw_state_holds_file - whether it keeps a virtual file that was confirmed, that is: its page map,
 * which is written last (docs/dev/writing/virtual-file.md). */
bool rw_state_holds_file(const struct rw_state *s);
/* rw_state_base - what waits in the state is for a file as it was: remember what that is now. */
int rw_state_base(struct rw_state *s, struct err *e) NZ_MUST_USE;
/* rw_state_same - whether it is. -ESTALE: another program has changed it since, e says what can be
 * done. A process that died while it changed the file left no base: then 0. */
int rw_state_same(struct rw_state *s, struct err *e) NZ_MUST_USE;
/* rw_state_changing - the file is about to be changed by us. Failed: it must not be. */
int rw_state_changing(const struct rw_state *s, struct err *e);
/* rw_state_unchanged - it was not. */
void rw_state_unchanged(const struct rw_state *s);
/* rw_state_dir - the path that it has or would have, into *ret (owned), and the dataset's canonical
 * one, into *ret_path. */
int rw_state_dir(const struct cfg *cfg, const char *path, char **ret, char **ret_path,
		 struct err *e) NZ_MUST_USE;

/* rw_state_remote - the same of an address: its path, new. -ENOENT: there is no place for it. make:
 * of the directories above. */
int rw_state_remote(const struct cfg *cfg, const char *address, bool make, char **ret,
		    struct err *e) NZ_MUST_USE;
/* ---- commit_process.c: a process that puts a generation of a stage into an HDF5 file ---- */

/* rw_commit_tree - tree_rw_options.commit of the dataset of a state. */
int rw_commit_tree(const struct app *setup, struct rw_state *state, const struct snapshot *was,
		   uint64_t generation, bool all, void (*quiesce)(void *view), void *view,
		   char ***ret_left, size_t *ret_n, struct err *e) NZ_MUST_USE;
/* rw_left - the texts that follow each other in n bytes, each with its NUL, as a new list of new
 * texts. */
int rw_left(const char *text, size_t n, char ***ret, size_t *ret_n, struct err *e) NZ_MUST_USE;

/* ---- recover.c ---- */

/* rw_recover_rest - what was confirmed and is not in the dataset: a writable view of it, the
 * file's or the tree's, knows. */
int rw_recover_rest(const struct app *setup, const char *path, bool nc,
		    struct err *e) NZ_MUST_USE;

/* rw_repair - what a process left half done in the dataset itself is ended or undone: the journal
 * of an HDF5 file, the manifest of a store. *ret_done: something was. */
int rw_repair(const struct app *setup, const struct rw_state *state, bool *ret_done,
	      struct err *e) NZ_MUST_USE;

/* ---- recover_folder.c ---- */

/* rw_state_is_there - whether the dataset at path, on this machine, has a state directory. */
bool rw_state_is_there(const struct cfg *cfg, const char *path);
/* rw_recover_fn - one dataset: prints its line (--json: its object). Returns whether all is
 * in it. */
typedef bool rw_recover_fn(const struct app *setup, const char *path);
/* rw_recover_dir - each below the directory at path that has a state directory. Prints what was
 * done; returns the exit status: 1 when one could not be, or not all could be looked at. */
int rw_recover_dir(const struct app *setup, const char *path, rw_recover_fn *one);

#endif
