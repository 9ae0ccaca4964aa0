/* SPDX-License-Identifier: BSD-3-Clause */
/* writable_int.h - private to this room: the state directory, and the operations of a writable
 * view. */
#ifndef FUSEFS_WRITE_WRITABLE_INT_H
#define FUSEFS_WRITE_WRITABLE_INT_H

#include "base/core/list.h"
#include "fusefs/write/writable.h"

/* ---- state_dir.c: the state directory ---- */

/* rw_state - a locked state directory: no other process writes the dataset. It stays where it was
 * opened. */
struct rw_state {
	struct list_link link; /* of all open ones of this process: state_dir.c */
	char *path;   /* of the dataset, resolved; owned */
	char *shown;  /* path for messages: an address without secrets; owned */
	char *dir;    /* of the state directory; owned */
	int dir_fd;   /* -1: none */
	int lock_fd;  /* holds the lock */
	bool is_dir;  /* the dataset is a directory or a remote Zarr store */
	bool remote;  /* path is an address */
	struct stat base; /* stat of the file that pending writes apply to */
};

#define RW_STATE_INIT {.dir_fd = -1, .lock_fd = -1}

/* rw - data of a writable view, which owns it. */
struct rw {
	const struct app *setup;
	struct view_request want;
	char name[NAME_BYTES]; /* of the virtual file */
	struct rw_state state;
	struct store *remote; /* remote: the Zarr store; owned, NULL */
};

/* rw_state_open - open the state of the dataset at path. make: create it if it does not exist.
 * Returns 0 with *ret filled (rw_state_close); -ENOENT: no such dataset, or without make no state;
 * -EBUSY: another process has it, which e names. */
int rw_state_open(const struct cfg *cfg, const char *path, bool make, struct rw_state *ret,
		  struct err *e) NZ_MUST_USE;
/* rw_state_close - unlock it, and remove the directory if it holds no data. */
void rw_state_close(struct rw_state *s);
/* rw_state_bare - true if it holds no data. */
bool rw_state_bare(const struct rw_state *s);
/* rw_state_holds_file - true if it holds a confirmed virtual file, that is, its page map, which is
 * written last (docs/dev/writing/virtual-file.md). */
bool rw_state_holds_file(const struct rw_state *s);
/* rw_state_base - record the present state of the file as the base of the pending writes. */
int rw_state_base(struct rw_state *s, struct err *e) NZ_MUST_USE;
/* rw_state_same - check that the file still is that base. -ESTALE: another program has changed it
 * since; e names a remedy. If a process died while it changed the file, there is no base: 0. */
int rw_state_same(struct rw_state *s, struct err *e) NZ_MUST_USE;
/* rw_state_changing - call it before this mount changes the file. On failure it must not. */
int rw_state_changing(const struct rw_state *s, struct err *e);
/* rw_state_unchanged - the file was not changed after all. */
void rw_state_unchanged(const struct rw_state *s);
/* rw_state_dir - the path that the state has or would have, into *ret (owned), and the dataset's
 * canonical path, into *ret_path. */
int rw_state_dir(const struct cfg *cfg, const char *path, char **ret, char **ret_path,
		 struct err *e) NZ_MUST_USE;

/* rw_state_remote - the same for an address; the path is new. -ENOENT: no parent directory is
 * known. make: create the directories above. */
int rw_state_remote(const struct cfg *cfg, const char *address, bool make, char **ret,
		    struct err *e) NZ_MUST_USE;
/* ---- commit_process.c: a process that commits a generation of a stage to an HDF5 file ---- */

/* rw_commit_tree - tree_rw_options.commit; arg: a struct rw. */
int rw_commit_tree(void *arg, const struct snapshot *was, uint64_t generation, bool all,
		   void (*quiesce)(void *view), void *view, struct buf *left,
		   struct err *e) NZ_MUST_USE;
/* rw_left - check that bytes are strings, each with its NUL. -EBADMSG. */
int rw_left(const struct buf *left, struct err *e) NZ_MUST_USE;

/* ---- check_document.c ---- */

/* commit_tree_check - tree_rw_options.check; arg: a struct rw: check whether a metadata file that
 * was written can be part of a netCDF-4 file. It calls no library, and reads that metadata file
 * only. If the dataset is empty and the user chose nothing, the first metadata file decides the
 * Zarr format, and the first array the separator; both are recorded in the state directory. */
int commit_tree_check(void *arg, const struct tree_change *change, struct err *e) NZ_MUST_USE;
/* commit_tree_recoded - tree_rw_options.recoded; arg: a struct rw. */
unsigned commit_tree_recoded(void *arg, const struct snapshot *now, const char *dir,
			     const char *doc, const uint8_t *was, size_t n_was,
			     const uint8_t *is, size_t n_is);

/* ---- commit_file.c: commits a virtual file to a Zarr store ---- */

/* commit_file - file_rw_options.commit; arg: a struct rw. Runs in the server. */
int commit_file(void *arg, const struct file_rw_change *c, struct err *e) NZ_MUST_USE;

/* ---- recover.c ---- */

/* rw_pending - 1 if a change of the dataset itself was interrupted; 0; -ESTALE: the file is another
 * one by now, or an error. */
int rw_pending(const struct rw_state *s, struct err *e) NZ_MUST_USE;
/* rw_repair - finish or undo an interrupted change of the dataset itself: the journal of an HDF5
 * file, the manifest of a store. *ret_done: there was one. */
int rw_repair(const struct app *setup, const struct rw_state *state, bool *ret_done,
	      struct err *e) NZ_MUST_USE;

/* ---- recover_folder.c ---- */

/* rw_state_is_there - true if the local dataset at path has a state directory. */
bool rw_state_is_there(const struct cfg *cfg, const char *path);
/* rw_recover_fn - recover one dataset and print its line (--json: its object). Returns true if all
 * writes are in it. */
typedef bool rw_recover_fn(const struct app *setup, const char *path);
/* rw_recover_dir - recover each dataset below the directory at path that has a state directory.
 * Prints a report; returns the exit status: 1 if one failed, or an entry could not be examined. */
int rw_recover_dir(const struct app *setup, const char *path, rw_recover_fn *one);

#endif
