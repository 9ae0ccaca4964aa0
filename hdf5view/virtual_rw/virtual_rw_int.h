/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_rw_int.h - declarations shared by the files of the writable virtual file; private to
 * hdf5view.
 *
 * A file (rw_file) has handles and an id of its own: it is a version of the virtual file, or a
 * scratch file. It has an overlay (rw_copy): a sparse file of the state directory with its written
 * parts, over a snapshot of the dataset.
 *
 * Locks, none of the earlier ones taken while a later one is held:
 *   commit   of the view: one commit at a time
 *   write    of a file: its content changes, or is being committed
 *   lock     of the view: names, ids, handles
 *   map      of an overlay: shared while it is read, exclusive while pages are added */
#ifndef HDF5VIEW_VIRTUAL_RW_VIRTUAL_RW_INT_H
#define HDF5VIEW_VIRTUAL_RW_VIRTUAL_RW_INT_H

#include "hdf5view/hdf5view.h"
#include "hdf5view/virtual_rw/page_set_int.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/os/lock.h"
#include "hdf5view/virtual/one_file.h"

#define RW_SCRATCH "scratch" /* directory of scratch files in the state directory */

/* ---- overlay.c: the bytes of a file ---- */

/* rw_copy - an overlay. Bytes from base_end on come from the sparse file. Below base_end, the
 * pages in `in` come from the sparse file, and the others from the snapshot's view. */
struct rw_copy {
	int fd;                 /* owned; -1: empty */
	const struct snapshot *base; /* held by the file; NULL: none */
	uint64_t base_end;      /* length of the snapshot's file that shows through */
	uint64_t size;
	struct rw_map in;
	_Atomic bool working;   /* it has the structure: it can be read as HDF5; set with `map`,
	                         * read without it */

	/* Changes since the last commit. */
	struct rw_map written;
	uint64_t cut;           /* bytes from here on were truncated meanwhile */
	bool all;               /* all of it is new */
	bool dirty;             /* it differs from the last commit, or may differ */
	pthread_rwlock_t map;
};

/* rw_copy_init - initialize over a snapshot's file of `size` bytes; base NULL: an empty one. */
void rw_copy_init(struct rw_copy *c, const struct snapshot *base, uint64_t size);
void rw_copy_release(struct rw_copy *c);

/* rw_copy_read - read bytes [off, off + len), clipped at its end; *ret_n: the number of bytes. */
int rw_copy_read(struct rw_copy *c, uint64_t off, size_t len, uint8_t *out, size_t *ret_n,
		 struct err *e) NZ_MUST_USE;
/* rw_copy_begin - prepare for writing: copy everything that a reader of HDF5 needs besides chunks
 * to the sparse file. fd: that file, taken on success; -1 if there is one. */
int rw_copy_begin(struct rw_copy *c, int fd, struct err *e) NZ_MUST_USE;
/* rw_copy_write, rw_copy_resize - write to a prepared overlay, or truncate it; `write` is held. */
int rw_copy_write(struct rw_copy *c, uint64_t off, const uint8_t *p, size_t len,
		  struct err *e) NZ_MUST_USE;
int rw_copy_resize(struct rw_copy *c, uint64_t size, struct err *e) NZ_MUST_USE;

/* rw_copy_forget - make it empty and independent of the snapshot; before rw_copy_begin. */
void rw_copy_forget(struct rw_copy *c);

/* rw_copy_fill - copy bytes [off, off + len) to the sparse file, as far as the snapshot has
 * them. */
int rw_copy_fill(struct rw_copy *c, uint64_t off, uint64_t len, struct err *e) NZ_MUST_USE;
/* rw_copy_written - whether one of the bytes was written since the last commit, at page
 * granularity. rw_copy_differs - the same, but bytes that share written pages with others are
 * compared with the old file; was: that file, -1: the snapshot. */
bool rw_copy_written(const struct rw_copy *c, uint64_t off, uint64_t len);
bool rw_copy_differs(struct rw_copy *c, int was, uint64_t off, uint64_t len);
/* rw_copy_clean - mark it as committed. */
void rw_copy_clean(struct rw_copy *c);

/* rw_structure - write a snapshot's file without the data of chunks into a file of the same
 * size. */
int rw_structure(const struct snapshot *g, int fd, struct err *e) NZ_MUST_USE;
/* rw_identity - a hash of the same bytes: files with different hashes have different layouts. */
int rw_identity(const struct snapshot *g, uint64_t *ret, struct err *e) NZ_MUST_USE;
/* rw_clone - copy file `from`, without its holes, to an empty file. */
int rw_clone(int from, int to, struct err *e) NZ_MUST_USE;

/* ---- files.c: files and handles ---- */

struct nc_rw;

struct rw_file {
	struct rw_file *next;
	uint64_t id;
	uint32_t refs;          /* its handles, its name, requests in progress */
	uint32_t handles, writers;
	char *name;             /* of a scratch file; NULL: the virtual file */
	bool named;             /* visible to look-ups */
	bool removed;           /* unlinked: it is not committed any more */
	struct snapshot *snapshot; /* held; NULL: none */
	_Atomic bool ready;     /* the overlay has the length of the snapshot's file; set with
				 * `write` */
	uint64_t follows;       /* number of the snapshot that the content is based on */
	bool follows_any;       /* new content: it may replace any state */
	uint64_t work;          /* number of its files in the state directory; 0: none yet */
	uint64_t commits;
	bool was;               /* a file has the state of the last commit */
	int was_fd;             /* that file, owned; -1 */
	int failed;             /* error of a failed write: it is not committed any more */
	bool orphan;            /* changed without a handle that will be closed */
	bool kept;              /* its files stay when this process ends */
	bool asked;             /* made for a writer, because the one before has readers */
	struct timespec mtime;
	bool mode_set;          /* set by a request; lasts as long as the file */
	mode_t mode;
	pthread_mutex_t write;
	struct rw_copy copy;
};

struct rw_handle {
	struct rw_file *file;   /* has a reference */
	bool writes;
	bool left;              /* being closed, no longer counted as a writer; lock */
	bool wrote;             /* since the last commit; `write` of the file */
	struct rw_handle *next; /* of the view's */
};

struct nc_rw {
	struct view base;
	struct snapshots *snapshots;
	struct file_rw_options opts;
	int scratch;            /* directory of scratch files; -1: not made yet */
	pthread_mutex_t commit, lock;
	struct rw_file *files;
	struct rw_handle *handles;
	struct rw_file *now;    /* the virtual file; NULL: it was removed */
	struct rw_file *behind; /* `commit`: its commit is decided, but not all of it is in the
				 * dataset yet; has a reference. NULL: none */
	bool left;              /* `commit`: a later mount has to retry kept files */
	uint64_t next_id, next_work;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	struct timespec changed; /* of the directory */
	char **notes;            /* owned; findings of the opening */
	size_t c_notes;
	_Atomic int64_t looked;  /* ms: the last check for changes by other programs */
};

/* rw_handle - the handle of a request's fh; NULL: it has none. */
static inline struct rw_handle *rw_handle(uint64_t fh)
{
	return (struct rw_handle *)(uintptr_t)fh;
}

static inline struct nc_rw *nc_rw(struct view *v)
{
	return CONTAINER_OF(v, struct nc_rw, base);
}

/* rw_file_new - make a file with one reference. x: a held snapshot, taken on success; NULL: empty.
 * Returns NULL if memory or ids run out. `lock` is held. */
struct rw_file *rw_file_new(struct nc_rw *v, struct snapshot *x, struct err *e);
/* rw_file_get - find a file by id and take a reference; NULL: no such file. */
struct rw_file *rw_file_get(struct nc_rw *v, uint64_t id);
/* rw_file_find - find a file by name; borrowed while `lock` is held. */
struct rw_file *rw_file_find(struct nc_rw *v, const char *name, size_t len);
/* rw_file_hold - the same with a reference, when lock is not held. */
struct rw_file *rw_file_hold(struct nc_rw *v, const char *name, size_t len);
/* rw_file_put - drop a reference; no lock but `commit` may be held. */
void rw_file_put(struct nc_rw *v, struct rw_file *f);
/* rw_file_ready - let the overlay know its size, for which the file is laid out. */
int rw_file_ready(struct rw_file *f, struct err *e) NZ_MUST_USE;
/* rw_is_virtual - whether a name is the virtual file's. */
bool rw_is_virtual(const struct nc_rw *v, const char *name, size_t len);
/* rw_epoch - the latest snapshot becomes the virtual file; the previous file loses its name. */
int rw_epoch(struct nc_rw *v, struct err *e) NZ_MUST_USE;

/* rw_follow - if another program has changed the dataset, open it again; at most once a second,
 * and not while the file is being written. */
void rw_follow(struct nc_rw *v);

/* rw_latest - the number of the latest snapshot. */
uint64_t rw_latest(struct nc_rw *v);
/* rw_begin - prepare a file for a change; `write` is held. empty: it is about to be truncated to
 * nothing. -ESTALE another program committed. */
int rw_begin(struct nc_rw *v, struct rw_file *f, bool empty, struct err *e) NZ_MUST_USE;
/* rw_work_open - make one of a file's files in the state directory. what: "now", "was". Returns a
 * descriptor. */
int rw_work_open(struct nc_rw *v, struct rw_file *f, const char *what, struct err *e);
void rw_work_remove(const struct nc_rw *v, const struct rw_file *f, const char *what);
/* rw_work_name - write its name there to out, which has room for RW_NAME_ROOM bytes. */
#define RW_NAME_ROOM 64
void rw_work_name(const struct rw_file *f, const char *what, char *out);
/* rw_work_number - assign the number of the file's files there. */
void rw_work_number(struct nc_rw *v, struct rw_file *f);
/* rw_work_path - the path of one of them, new; NULL when memory is short. */
char *rw_work_path(const struct nc_rw *v, const struct rw_file *f, const char *what);

/* rw_begin_new - prepare a file without old content, or a scratch file, from a descriptor, which
 * is taken. */
void rw_begin_new(struct rw_file *f, int fd, uint64_t size);

/* ---- recovery.c ---- */

/* rw_keep - save changes that could not be committed in the state directory, durably, so that a
 * later mount can retry. `write` is held. */
int rw_keep(struct nc_rw *v, struct rw_file *f, struct err *e) NZ_MUST_USE;
/* rw_resume - take over the files that earlier mounts kept: scratch files are shown, and commits
 * are retried. A failed commit is logged and stays kept. Fails only if the kept files cannot be
 * listed. */
int rw_resume(struct nc_rw *v, struct err *e) NZ_MUST_USE;

/* ---- commit.c ---- */

/* rw_commit - commit a file's content to the dataset. An empty or unchanged file is not committed:
 * 0. `commit` and `write` are held. synced: its writer declared it complete. Otherwise a file that
 * libhdf5 has marked as being written fails with -EBADMSG: the descriptor was inherited by a
 * child, or the program died, so libhdf5's cached data is missing. */
int rw_commit(struct nc_rw *v, struct rw_file *f, bool synced, struct err *e) NZ_MUST_USE;
/* rw_commit_locking - the same, takes the locks. A scratch file is not committed: 0. */
int rw_commit_locking(struct nc_rw *v, struct rw_file *f, bool synced,
		      struct err *e) NZ_MUST_USE;
/* rw_catch_up - complete a commit that is decided and not complete. `commit` is held, and perhaps
 * the `write` of some file. */
int rw_catch_up(struct nc_rw *v, struct err *e) NZ_MUST_USE;

/* ---- view.c. The contracts of operations (rw_op_*) are in translate/contract/view.h ---- */

/* rw_attr - the attributes of a file; `unsure` for one that cannot be laid out. */
void rw_attr(struct nc_rw *v, struct rw_file *f, struct view_attr *ret, struct err *e);
/* rw_in_root - check that an id is the directory's. -ENOTDIR, -ESTALE. */
int rw_in_root(struct nc_rw *v, uint64_t dir, struct err *e) NZ_MUST_USE;

/* ---- handles.c: handles and writes through them ---- */

int rw_op_open(struct view *v, uint64_t id, int flags, struct view_handle *ret, struct err *e);
int rw_op_write(struct view *v, uint64_t id, uint64_t fh, uint64_t off, const uint8_t *data,
		size_t len, struct err *e);
int rw_op_flush(struct view *v, uint64_t id, uint64_t fh, struct err *e);
int rw_op_fsync(struct view *v, uint64_t id, uint64_t fh, bool data_only, struct err *e);
int rw_op_fsyncdir(struct view *v, uint64_t dir, struct err *e);
void rw_op_release(struct view *v, uint64_t id, uint64_t fh);
int rw_op_setattr(struct view *v, uint64_t id, uint64_t fh, const struct view_set *set,
		  struct view_attr *ret, struct err *e);
int rw_op_finish(struct view *v, bool last, struct err *e);

/* rw_handle_open - open a handle on a file, with a reference to it. lock is held. */
int rw_handle_open(struct nc_rw *v, struct rw_file *f, int flags, struct view_handle *ret,
		   struct err *e);

/* ---- directory.c: names ---- */

/* rw_scratch_dir - the directory of scratch files, made if it is missing. lock is held. */
int rw_scratch_dir(struct nc_rw *v, struct err *e) NZ_MUST_USE;

int rw_op_create(struct view *v, uint64_t dir, const char *name, int flags,
		 mode_t mode, struct view_attr *ret_attr, struct view_handle *ret, struct err *e);
int rw_op_unlink(struct view *v, uint64_t dir, const char *name, struct err *e);
int rw_op_rename(struct view *v, uint64_t dir, const char *name, uint64_t to_dir,
		 const char *to_name, unsigned flags, struct err *e);

#endif
