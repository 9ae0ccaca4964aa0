/* SPDX-License-Identifier: BSD-3-Clause */
/* writable.h - writable mounts: what main wires together for them, the state directory, commits,
 * and what is done about a mount that died. docs/dev/writing/commits.md.
 *
 * The state directory of /d/name is /d/.name.nczarrfs, or below -o state_dir=. It is there while
 * something is written that is not in the dataset, and holds a lock, so that one mount at a time
 * writes; the stage of a tree; the journal of an HDF5 file; the pages of a virtual file; the
 * objects and the manifest of a commit to a Zarr store. What lies at an address has one below
 * $XDG_STATE_HOME/nczarrfs. */
#ifndef FUSEFS_WRITE_WRITABLE_H
#define FUSEFS_WRITE_WRITABLE_H

#include "fusefs/app/fusefs.h"
#include "translate/contract/file_commit.h"
#include "translate/diff/diff.h"
#include "translate/stage/stage.h"
#include "translate/tree/tree.h"


enum fs_key { FS_KEY_OTHER, FS_KEY_DOC, FS_KEY_CHUNK };

/* fs_rw - what the modules can do, for files that must not know them. */
struct fs_rw {
	/* of nczarr: zarr_store_open, zarr_source_key, zarr_source_layout, zarr_doc_key,
	 * zarr_sink_*, zarr_create */
	int (*store_source)(struct store *s, const char *name, const struct source_options *opts,
			    struct source **ret, struct err *e);
	enum fs_key (*source_key)(struct source *s, const char *key,
				  bool (*emit)(void *arg, uint32_t array, uint64_t linear),
				  void *arg);
	void (*source_layout)(struct source *s, uint32_t array, struct plan_layout *ret);
	bool (*doc_key)(const char *key);
	int (*zarr_sink)(const struct cfg *cfg, const char *path, struct source *real, int dir_fd,
			 const struct sink_names *names, struct sink **ret, struct err *e);
	int (*zarr_pending)(const char *path, int dir_fd, struct err *e);
	int (*zarr_recover)(const char *path, int dir_fd, struct err *e);
	int (*zarr_create)(const struct cfg *cfg, const char *path, struct err *e);
	/* of nczarr, for remote trees; name: for messages */
	int (*remote_sink)(const struct cfg *cfg, struct store *s, const char *name,
			   struct source *real, int dir_fd, const struct sink_names *names,
			   struct sink **ret, struct err *e);
	int (*remote_recover)(struct store *s, int dir_fd, struct err *e);
	int (*remote_create)(const struct cfg *cfg, struct store *s, const char *name,
			     struct err *e);
	/* of hdf5view: hdf5_sink_*, hdf5_create, hdf5_journal_*, nc_rw_open, nc_view_* */
	int (*hdf5_sink)(const char *path, struct source *real, int dir_fd, struct sink **ret,
			 struct err *e);
	int (*hdf5_holds)(const struct dataset *ds, struct err *e);
	int (*hdf5_pending)(const char *path, int dir_fd, struct err *e);  /* 1, 0, -errno */
	int (*hdf5_recover)(const char *path, int dir_fd, struct err *e);
	int (*hdf5_create)(const struct cfg *cfg, const char *path, struct err *e);
	int (*file_rw)(struct snapshots *g, const struct file_rw_options *opts,
		       struct view **ret, struct err *e);
	uint32_t (*nc_array)(void *view, const char *path);
	uint32_t (*nc_group)(void *view, const char *path);
	uint32_t (*nc_dim)(void *view, const char *path);
};

/* ---- writable.c ---- */

/* fs_rw_prepare - before setup->prepare, in a process that may write: processes that commit are
 * told which setup is theirs. */
void fs_rw_prepare(const struct app *setup);

/* fs_rw_open - a writable view of the dataset at path, whose other family's view is shown (or what
 * cfg->view says): recovers what a mount before it left behind, takes the lock, opens.
 * name, id_limit, share: as in view_request.
 * Returns 0 with *ret new (view->ops->close); -EROFS the source's format cannot be written (classic
 * netCDF, HDF4, archives) or this view of it; -EBUSY another mount writes it. */
int fs_rw_open(const struct app *setup, const char *path, const struct view_request *want,
	       struct view **ret, struct err *e) NZ_MUST_USE;

/* fs_rw_pending - whether a mount that died left something behind for the dataset at path. 0:
 * nothing; FS_RW_BROKEN: it is neither old nor new before its journal or manifest has been carried
 * out; FS_RW_WAITS: something was confirmed to writers and is not in it; or an error. */
enum { FS_RW_BROKEN = 1, FS_RW_WAITS = 2 };
int fs_rw_pending(const struct app *setup, const char *path, struct err *e);
/* fs_rw_recover - carry it out; with everything that was confirmed to writers. lines: what was
 * done, for people, appended. */
int fs_rw_recover(const struct app *setup, const char *path, struct buf *lines,
		  struct err *e) NZ_MUST_USE;
/* fs_rw_repair - before the dataset at path is opened to be read: one that was left in the middle
 * of a commit is neither old nor new, and is not read before that has been ended. What else was
 * confirmed to writers is put in as well, where that is possible. change: false: it is only said.
 * Returns 0; or an error, and it must not be read. */
int fs_rw_repair(const struct app *setup, const char *path, bool change,
		 struct err *e) NZ_MUST_USE;
/* fs_rw_create - what `-o create` asks for: a new empty dataset at cfg->source. */
int fs_rw_create(const struct app *setup, struct err *e) NZ_MUST_USE;

/* ---- state_dir.c ---- */

/* fs_rw_states - append the state directories of datasets that this process writes, each with its
 * NUL. */
void fs_rw_states(struct buf *out);
/* fs_rw_left - whether something waits in a state directory, or it cannot be told. */
bool fs_rw_left(const char *dir);

/* ---- commit_tree.c: a staged tree goes into an HDF5 file ---- */

/* commit_tree - put generations up to `generation` of the stage in dir_fd into the file at path.
 * For a process of its own, with one thread: libhdf5 runs in it. gate: as in diff_job; say: is
 * told what people should know, may be NULL. model: the server's of the file. all: new arrays of
 * texts as well, see deferred_arrays.c. *ret_left: n keys that stay staged, each with why
 * ("key\treason"), new texts. Returns 0; on failure the file is what it was. */
int commit_tree(const struct app *setup, const char *path, const struct source_model *model,
		int dir_fd, uint64_t generation, bool all,
		int (*gate)(void *arg, struct err *e), void (*say)(void *arg, const char *text),
		void *arg, char ***ret_left, size_t *ret_n, struct err *e) NZ_MUST_USE;

/* commit_tree_view - the view that a writable tree over an HDF5 file stands on: setup's, but for
 * variables whose writers asked for filters that the file does not have: those are shown with them,
 * as long as the state directory is there; the same goes for format and separator, see
 * commit_tree_check. */
int commit_tree_view(const struct app *setup, struct source *s, const struct view_request *want,
		     int dir_fd, struct view **ret, struct err *e) NZ_MUST_USE;

/* commit_tree_check - tree_rw_options.check: whether a document that was written can be part of a
 * netCDF-4 file. Asks no library, and looks at that document only. Where nothing is there yet, and
 * the user did not say, the first document decides which Zarr format the tree has, and the first
 * array which separator: that is noted in the state directory dir_fd. */
int commit_tree_check(const struct app *setup, int dir_fd, struct store *tree, const char *key,
		      struct err *e) NZ_MUST_USE;

/* commit_tree_recoded - tree_rw_options.recoded. */
unsigned commit_tree_recoded(const struct app *setup, const struct snapshot *now,
			     const char *dir, const char *doc, const uint8_t *was, size_t n_was,
			     const uint8_t *is, size_t n_is);

/* commit_new - a new Zarr store at `store`, with everything of now. dir_fd: of a directory on the
 * same filesystem, for what is half done. On failure something may be left at both places. */
int commit_new(const struct app *setup, struct source *now, const char *store, int dir_fd,
	       struct err *e) NZ_MUST_USE;

/* ---- commit_file.c: a virtual file that was written goes into a Zarr store ---- */

/* commit_file - file_rw_options.commit for the store at path. far: a remote tree is that one, and
 * path its name; NULL. Runs in the server. */
int commit_file(const struct app *setup, const char *path, struct store *remote, int dir_fd,
		const struct file_rw_change *c, struct err *e) NZ_MUST_USE;

#endif
