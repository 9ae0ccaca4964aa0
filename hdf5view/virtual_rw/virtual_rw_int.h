/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_rw_int.h - what the files of the writable virtual file share; private to hdf5view.
 *
 * A file (rw_file) is something that handles are open on, with an id of its own: an epoch of the
 * virtual file, or a scratch file. It has a copy (rw_copy): what of it is in a sparse file of the
 * state directory, over what the ground says that it stands on.
 *
 * Locks, none of the earlier ones taken while a later one is held:
 *   commit   of the view: one commit at a time
 *   write    of a file: its content changes, or is being committed
 *   lock     of the view: names, ids, handles
 *   map      of a copy: shared while it is read, exclusive while pages come into it
 */
#ifndef HDF5VIEW_VIRTUAL_RW_VIRTUAL_RW_INT_H
#define HDF5VIEW_VIRTUAL_RW_VIRTUAL_RW_INT_H

#include "hdf5view/hdf5view.h"
#include "hdf5view/virtual_rw/page_set_int.h"

#include <pthread.h>
#include <stdatomic.h>

#define RW_SCRATCH "scratch" /* directory of scratch files in the state directory */
#define RW_FILE_ID (VIEW_ROOT + 1) /* of the one file of a read-only view */

/* ---- overlay.c: the bytes of a file ---- */

/* rw_copy - bytes from base_end on are those of the sparse file; below, those of its pages that are
 * `in`, and of the ground's view for the others. */
struct rw_copy {
	int fd;                 /* owned; -1: nothing is in it */
	const struct snapshot *base; /* held by the file; NULL: nothing beneath */
	uint64_t base_end;      /* that much of the ground's file shows through */
	uint64_t size;
	struct rw_map in;
	_Atomic bool working;   /* the structure is in it: it can be read as HDF5; set with `map`,
	                         * read without it */

	/* What happened since the last commit. */
	struct rw_map written;
	uint64_t cut;           /* bytes from here on were cut off meanwhile */
	bool all;               /* all of it is new */
	bool dirty;             /* it is another file than the last commit's, or may be */
	pthread_rwlock_t map;
};

/* rw_copy_init - of a ground's file, whose size is `size`; base NULL: an empty one. */
void rw_copy_init(struct rw_copy *c, const struct snapshot *base, uint64_t size);
void rw_copy_release(struct rw_copy *c);

/* rw_copy_read - bytes [off, off + len), cut at its end; *ret_n says how many there are. */
int rw_copy_read(struct rw_copy *c, uint64_t off, size_t len, uint8_t *out, size_t *ret_n,
		 struct err *e) NZ_MUST_USE;
/* rw_copy_begin - it is going to be written: what a reader of HDF5 needs besides chunks is brought
 * into the sparse file. fd: that file, taken on success; -1 when there is one. */
int rw_copy_begin(struct rw_copy *c, int fd, struct err *e) NZ_MUST_USE;
/* rw_copy_write, rw_copy_resize - of a copy that is being written; `write` is held. */
int rw_copy_write(struct rw_copy *c, uint64_t off, const uint8_t *p, size_t len,
		  struct err *e) NZ_MUST_USE;
int rw_copy_resize(struct rw_copy *c, uint64_t size, struct err *e) NZ_MUST_USE;

/* rw_copy_forget - nothing of the ground is left, and it is empty; before rw_copy_begin. */
void rw_copy_forget(struct rw_copy *c);

/* rw_copy_fill - have the sparse file hold bytes [off, off + len), as far as the ground has
 * them. */
int rw_copy_fill(struct rw_copy *c, uint64_t off, uint64_t len, struct err *e) NZ_MUST_USE;
/* rw_copy_written - whether one of the bytes was written since the last commit, as far as pages
 * say. rw_copy_differs - the same, but what shares written pages with others is compared with what
 * it was; was: a file of that, -1: the ground. */
bool rw_copy_written(const struct rw_copy *c, uint64_t off, uint64_t len);
bool rw_copy_differs(struct rw_copy *c, int was, uint64_t off, uint64_t len);
/* rw_copy_clean - it has been committed. */
void rw_copy_clean(struct rw_copy *c);

/* rw_structure - all of a ground's file but the data of chunks, into a file of that size. */
int rw_structure(const struct snapshot *g, int fd, struct err *e) NZ_MUST_USE;
/* rw_identity - a sum of the same bytes: a file that it is another one of is laid out otherwise. */
int rw_identity(const struct snapshot *g, uint64_t *ret, struct err *e) NZ_MUST_USE;
/* rw_clone - what is in file `from`, holes left out, into an empty one. */
int rw_clone(int from, int to, struct err *e) NZ_MUST_USE;

/* ---- files.c: files and handles ---- */

struct nc_rw;

struct rw_file {
	struct rw_file *next;
	uint64_t id;
	uint32_t refs;          /* its handles, its name, requests at work */
	uint32_t handles, writers;
	char *name;             /* of a scratch file; NULL: the virtual file */
	bool named;             /* a look-up finds it */
	bool removed;           /* it was unlinked: nothing is committed any more */
	struct snapshot *snapshot; /* held; NULL: none */
	_Atomic bool ready;     /* the copy knows how long the ground's file is; set with `write` */
	uint64_t follows;       /* number of the ground that the content follows */
	bool follows_any;       /* it is new: it may take the place of anything */
	uint64_t work;          /* names its files in the state directory; 0: none yet */
	uint64_t commits;
	bool was;               /* there is a file that says what the last commit made of it */
	int was_fd;             /* that file, owned; -1 */
	int failed;             /* what a write was told: nothing is committed any more */
	bool orphan;            /* changed by nobody who will close it */
	bool kept;              /* its files stay when this process ends */
	bool asked;             /* made for a writer, because others read the one before */
	struct timespec mtime;
	bool mode_set;          /* somebody has set it; kept as long as the file is */
	mode_t mode;
	pthread_mutex_t write;
	struct rw_copy copy;
};

struct rw_handle {
	struct rw_file *file;   /* referred to */
	bool writes;
	bool left;              /* it is being closed, and does not count as a writer; lock */
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
	struct rw_file *behind; /* `commit`: a commit of it was made, and is not all of it in the
	                         * dataset yet; referred to. NULL */
	bool left;              /* `commit`: a later mount has to try what is kept */
	uint64_t next_id, next_work;
	uid_t uid;
	gid_t gid;
	mode_t mode;
	struct timespec changed; /* of the directory */
	char **notes;            /* owned; what was found when it was opened */
	size_t c_notes;
	_Atomic int64_t looked;  /* ms: when it was last asked whether somebody else has written */
};

/* rw_handle - what a request's fh is; NULL: it has none. */
static inline struct rw_handle *rw_handle(uint64_t fh)
{
	return (struct rw_handle *)(uintptr_t)fh;
}

static inline struct nc_rw *nc_rw(struct view *v)
{
	return CONTAINER_OF(v, struct nc_rw, base);
}

/* rw_file_new - refs is 1. x: a held ground that it takes over; NULL: empty. Returns NULL: no
 * memory, or no ids, and x is still the caller's. `lock` is held. */
struct rw_file *rw_file_new(struct nc_rw *v, struct snapshot *x, struct err *e);
/* rw_file_get - by id, a reference more; NULL: no such file. */
struct rw_file *rw_file_get(struct nc_rw *v, uint64_t id);
/* rw_file_find - by name; borrowed while `lock` is held. */
struct rw_file *rw_file_find(struct nc_rw *v, const char *name, size_t len);
/* rw_file_hold - the same, with a reference, when lock is not held. */
struct rw_file *rw_file_hold(struct nc_rw *v, const char *name, size_t len);
/* rw_file_put - a reference less; no lock is held but `commit`. */
void rw_file_put(struct nc_rw *v, struct rw_file *f);
/* rw_file_ready - have the copy know its size; the file is laid out for that. */
int rw_file_ready(struct rw_file *f, struct err *e) NZ_MUST_USE;
/* rw_is_virtual - whether a name is the virtual file's. */
bool rw_is_virtual(const struct nc_rw *v, const char *name, size_t len);
/* rw_epoch - the latest ground becomes the virtual file; what was it loses its name. */
int rw_epoch(struct nc_rw *v, struct err *e) NZ_MUST_USE;

/* rw_follow - at most once a second, and unless something is being written: when another program
 * has changed the dataset, it is opened again. */
void rw_follow(struct nc_rw *v);

/* rw_begin - a file is about to be changed; `write` is held. empty: it is to be cut to nothing.
 * -ESTALE somebody else committed. */
int rw_begin(struct nc_rw *v, struct rw_file *f, bool empty, struct err *e) NZ_MUST_USE;
/* rw_work_open - make one of a file's files in the state directory; a descriptor. what: "now",
 * "was". */
int rw_work_open(struct nc_rw *v, struct rw_file *f, const char *what, struct err *e);
void rw_work_remove(const struct nc_rw *v, const struct rw_file *f, const char *what);
/* rw_work_name - its name there; out has room for RW_NAME_ROOM bytes. */
#define RW_NAME_ROOM 64
void rw_work_name(const struct rw_file *f, const char *what, char *out);
/* rw_work_number - have the file a number for its files there. */
void rw_work_number(struct nc_rw *v, struct rw_file *f);
/* rw_work_path - the path of it, new; NULL: no memory. */
char *rw_work_path(const struct nc_rw *v, const struct rw_file *f, const char *what);

/* rw_begin_new - a file that has nothing of the old content, or a scratch file, from a descriptor,
 * which is taken. */
void rw_begin_new(struct rw_file *f, int fd, uint64_t size);

/* ---- recovery.c ---- */

/* rw_keep - what was written, and could not be committed, stays in the state directory, durably, so
 * that a later mount can try again. `write` is held. */
int rw_keep(struct nc_rw *v, struct rw_file *f, struct err *e) NZ_MUST_USE;
/* rw_resume - what mounts before this one kept: scratch files are shown, and what could not be
 * committed is tried again. What fails is logged, and stays; fails itself only where it is not
 * known what there is. */
int rw_resume(struct nc_rw *v, struct err *e) NZ_MUST_USE;

/* ---- commit.c ---- */

/* rw_commit - what was written becomes the dataset. A file that is empty, or that nobody
 * changed, is none: 0. `commit` and `write` are held.
 * synced: its writer says that it is whole as it is. Otherwise one that libhdf5 has marked as
 * being written is refused with -EBADMSG: that is a descriptor that a child inherited, or a
 * program that died, and what libhdf5 has in memory is missing. */
int rw_commit(struct nc_rw *v, struct rw_file *f, bool synced, struct err *e) NZ_MUST_USE;
/* rw_catch_up - a commit that was made and not ended is ended. `commit` is held, and perhaps the
 * `write` of some file. */
int rw_catch_up(struct nc_rw *v, struct err *e) NZ_MUST_USE;

#endif
