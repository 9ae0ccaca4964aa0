/* SPDX-License-Identifier: BSD-3-Clause */
/* writable.h - writable mounts: the state directory, commits, and recovery after a mount died.
 * docs/dev/writing/commits.md.
 *
 * The state directory of /d/name is /d/.name.nczarrfs, or below -o state_dir=. It exists while
 * there are pending writes. It contains a lock, so that one mount at a time writes; the stage of a
 * Zarr store; the journal of an HDF5 file; the pages of a virtual file; the objects and the
 * manifest of a commit to a Zarr store. A remote dataset has one below $XDG_STATE_HOME/nczarrfs. */
#ifndef FUSEFS_WRITE_WRITABLE_H
#define FUSEFS_WRITE_WRITABLE_H

#include "fusefs/app/fusefs.h"
#include "translate/contract/file_commit.h"
#include "nczarr/nczarr.h"
#include "translate/diff/diff.h"
#include "translate/stage/stage.h"
#include "translate/tree/tree.h"

/* ---- writable.c ---- */

/* fs_rw_prepare - call it before setup->prepare in a process that may write: committing processes
 * inherit the setup. */
void fs_rw_prepare(const struct app *setup);

/* fs_rw_open - open a writable view of the dataset at path: the other format's view, or the one of
 * cfg->view. Recovers what an earlier mount left behind, takes the lock, opens. name, id_limit,
 * share: as in view_request. Returns 0 with *ret new (view->ops->close); -EROFS: the source's
 * format cannot be written (classic netCDF, HDF4, archives), or not through this view; -EBUSY:
 * another mount writes it. */
int fs_rw_open(const struct app *setup, const char *path, const struct view_request *want,
	       struct view **ret, struct err *e) NZ_MUST_USE;

/* fs_rw_pending - check whether a mount that died left something behind for the dataset at path. 0:
 * nothing; FS_RW_BROKEN: the dataset is in neither of its states until its journal or manifest is
 * applied; FS_RW_WAITS: confirmed writes are not in it; or an error. */
enum { FS_RW_BROKEN = 1, FS_RW_WAITS = 2 };
int fs_rw_pending(const struct app *setup, const char *path, struct err *e);
/* fs_rw_repair - call it before the dataset at path is opened for reading. A dataset in the middle
 * of a commit is in neither of its states, and cannot be read before recovery. Other confirmed
 * writes are committed as well, if possible. change: false: only report it. Returns 0; on error the
 * dataset must not be read. */
int fs_rw_repair(const struct app *setup, const char *path, bool change,
		 struct err *e) NZ_MUST_USE;
/* rw_zarr_options - options for new objects of a Zarr store; remote: NULL: a local one. */
struct zarr_sink_options rw_zarr_options(const struct cfg_zarr *zarr, struct store *remote,
					 int dir_fd, const struct sink_names *names);
/* fs_rw_create - `-o create`: create an empty dataset at cfg->source. */
int fs_rw_create(const struct app *setup, struct err *e) NZ_MUST_USE;

/* ---- state_dir.c ---- */

/* fs_rw_states - append the state directories of the datasets that this process writes, each with
 * its NUL. */
void fs_rw_states(struct buf *out);
/* fs_rw_left - true if a state directory has pending writes, or if that is unknown. */
bool fs_rw_left(const char *dir);

/* ---- commit_tree.c: commits a staged Zarr store to an HDF5 file ---- */

/* commit_tree - commit generations up to `generation` of the stage in dir_fd to the file at path.
 * For a process of its own with one thread, because it calls libhdf5. gate: as in diff_job; say:
 * gets messages for the user, may be NULL. model: the server's model of the file. all: commit
 * deferred arrays as well, see deferred_arrays.c. left: appended: keys that stay staged, each
 * with its reason ("key\treason") and NUL. Returns 0; on failure the file is unchanged. */
int commit_tree(const struct app *setup, const char *path, const struct source_model *model,
		int dir_fd, uint64_t generation, bool all,
		int (*gate)(void *arg, struct err *e), void (*say)(void *arg, const char *text),
		void *arg, struct buf *left, struct err *e) NZ_MUST_USE;

/* commit_tree_view - the view below a writable Zarr store of an HDF5 file. It is setup's, except
 * that variables whose writers requested other filters than the file has are shown with the
 * requested ones as long as the state directory exists. The same applies to format and separator,
 * see commit_tree_check. On error s is closed. */
int commit_tree_view(const struct app *setup, struct source *s, const struct view_request *want,
		     int dir_fd, struct view **ret, struct err *e) NZ_MUST_USE;

#endif
