/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - the view contract: a model becomes files that a program sees.
 *
 * Nodes are named by 64-bit ids that the view computes: a pure function of the model, stable for
 * the view's life, VIEW_ROOT for the root, all others above it and below VIEW_ID_LIMIT. No table
 * of visited nodes exists. Every function may be called from any thread, concurrently. */
#ifndef TRANSLATE_CONTRACT_VIEW_H
#define TRANSLATE_CONTRACT_VIEW_H

#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "translate/plan/plan.h"
#include "translate/contract/source.h"
#include "translate/contract/span.h"

#define VIEW_ROOT 1
#define VIEW_ID_LIMIT ((uint64_t)1 << 54)

struct view_attr {
	uint64_t id;
	uint64_t size;    /* bytes, exact; 0 for a directory */
	uint32_t nlink;   /* 2 + sub-directories for a directory where known, else 1; 0 is 1 */
	bool nameless;    /* open and without a name: its link count is 0 */
	bool is_dir;
	bool is_link;     /* a symbolic link: readlink; size is that of its text */
	bool volatile_attrs; /* attributes may change without the view noticing: the kernel may keep
			      * them for a second */
	bool fixed;       /* the name may change, but this id always has the same bytes, so that the
			   * kernel may keep its page cache. Holds for all ids of views that do not
			   * follow */
	bool steady;      /* of a writable view: a directory that keeps its name until it is renamed
			   * or removed through the view: the kernel may cache it for a second */
	bool inner;       /* of a view that follows: the name stays as long as that of a directory
			   * above, which the kernel looks up each second */
	bool cached;      /* read in small pieces all over: always through the page cache */
	bool own;         /* mode, uid, gid, mtime, ctime are this file's; else the source's hold */
	mode_t mode;      /* permission bits only */
	uid_t uid;
	gid_t gid;
	struct timespec mtime, ctime;
	bool unknown; /* whether this file exists, or its size, could not be determined: it is
		       * shown, and reading it reports the reason. Not to be cached */
};

/* view_emit - called once an entry; `next` is the cookie that continues after it. id and is_dir
 * are right, size may be unknown (then attr is NULL). Returns false to stop. */
typedef bool view_emit(void *arg, const char *name, uint64_t id, bool is_dir,
		       const struct view_attr *attr, uint64_t next);

struct view;

/* view_handle - an open file of a writable view. */
struct view_handle {
	uint64_t fh;      /* the view's own */
	bool direct_io;   /* bypass the page cache */
	bool keep_cache;  /* the kernel's cached data of this id are still valid */
};

/* view_set - what setattr is to change. */
struct view_set {
	bool size_set, mode_set, mtime_set;
	uint64_t size;
	mode_t mode;              /* permission bits */
	struct timespec mtime;
};

/* view_write_ops - the additional operations of a writable view. Names are one component of a path;
 * fh is the handle of open or create, 0 where a request has none. Errors are those of
 * the system calls, -EROFS and -EPERM for operations that the view never allows; e has the reason
 * for the log. Only functions that say so may be NULL.
 *
 * When flush or fsync returns 0, these hold for close(2) and fsync(2):
 * flush  written data survive the death of this process, and other readers see them
 * fsync  they survive the loss of power as well; of a directory: all confirmed data are in
 *        the dataset itself when it returns */
struct view_write_ops {
	/* open - flags: O_ACCMODE, O_TRUNC, O_APPEND of open(2); reading is open, too. */
	int (*open)(struct view *v, uint64_t id, int flags, struct view_handle *ret,
		    struct err *e);
	/* create - a new file, or with O_EXCL unset one that is there: opened. */
	int (*create)(struct view *v, uint64_t dir, const char *name, int flags, mode_t mode,
		      struct view_attr *ret_attr, struct view_handle *ret, struct err *e);
	/* write - all of it, or an error. */
	int (*write)(struct view *v, uint64_t id, uint64_t fh, uint64_t off, const uint8_t *data,
		     size_t len, struct err *e);
	int (*flush)(struct view *v, uint64_t id, uint64_t fh, struct err *e);
	int (*fsync)(struct view *v, uint64_t id, uint64_t fh, bool data_only, struct err *e);
	int (*fsyncdir)(struct view *v, uint64_t dir, struct err *e);
	void (*release)(struct view *v, uint64_t id, uint64_t fh);
	int (*setattr)(struct view *v, uint64_t id, uint64_t fh, const struct view_set *set,
		       struct view_attr *ret, struct err *e);
	/* mkdir - NULL: -EPERM. */
	int (*mkdir)(struct view *v, uint64_t dir, const char *name, mode_t mode,
		     struct view_attr *ret, struct err *e);
	int (*unlink)(struct view *v, uint64_t dir, const char *name, struct err *e);
	/* rmdir - NULL: -EOPNOTSUPP. */
	int (*rmdir)(struct view *v, uint64_t dir, const char *name, struct err *e);
	/* rename - flags: RENAME_NOREPLACE or 0. */
	int (*rename)(struct view *v, uint64_t dir, const char *name, uint64_t to_dir,
		      const char *to_name, unsigned flags, struct err *e);
	/* symlink - a link with this text. NULL: -EPERM. */
	int (*symlink)(struct view *v, uint64_t dir, const char *name, const char *text,
		       struct view_attr *ret, struct err *e);
	/* link - give file id another name; -EEXIST if that exists. Data written before the call
	 * are the same under both names; later data need not be. NULL: -EPERM. */
	int (*link)(struct view *v, uint64_t id, uint64_t dir, const char *name,
		    struct view_attr *ret, struct err *e);
	/* setxattr - set extended attribute `name` ("user.colour") of id; value NULL: remove
	 * it. flags: XATTR_CREATE, XATTR_REPLACE or 0. NULL: -EOPNOTSUPP. */
	int (*setxattr)(struct view *v, uint64_t id, const char *name, const uint8_t *value,
			size_t len, int flags, struct err *e);
	/* finish - put all confirmed data into the dataset; no request runs any more. Called once,
	 * before close. Data that cannot be put there are kept, and e says where. last: drop
	 * temporary files that writers did not rename, since they cannot do so any more; else a
	 * writer continues with them when the dataset is opened again. */
	int (*finish)(struct view *v, bool last, struct err *e);
};

struct view_ops {
	const char *name;  /* "zarr" */
	void (*close)(struct view *v);

	/* lookup - entry `name` (len bytes, no '/') of directory dir. Returns 0; -ENOENT only for
	 * proven absence; -ENOTDIR; -ESTALE unknown id; -EIO and others if it could not be
	 * determined. A file whose existence or size could not be determined is shown, with
	 * `unknown` set and the reason in e: programs that check for a file before they open it
	 * (zarr-python does) would take an error for absence, and return fill values instead of
	 * unreadable data. */
	int (*lookup)(struct view *v, uint64_t dir, const char *name, size_t len,
		      struct view_attr *ret, struct err *e);
	int (*getattr)(struct view *v, uint64_t id, struct view_attr *ret, struct err *e);

	/* list - entries of dir from cookie on (0: the first), without "." and "..". With
	 * want_attr set, attr is filled in where that is cheap. Streams: memory does not grow
	 * with the directory. */
	int (*list)(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
		    view_emit *emit, void *arg, struct err *e);

	/* read - up to len bytes of file id at off; fewer only at its end. *ret is written on
	 * success and must be finished with span_done.
	 * fh: of a writable view: a handle of open or create, which sees what was written through
	 * it; otherwise 0.
	 * room: len bytes of the caller's, which the view may fill and hand back as ret->mem. */
	int (*read)(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		    uint8_t *room, struct span *ret, struct err *e);

	/* open - a program opens a file to read it: -EACCES if this process may not. Other errors
	 * are those of read. release - the program has closed it, and no read is running. Files
	 * may be read without them. NULL: nothing is done. */
	int (*open)(struct view *v, uint64_t id, struct err *e);
	void (*release)(struct view *v, uint64_t id);

	/* parent - id of the directory that holds dir (VIEW_ROOT for the root itself). */
	uint64_t (*parent)(struct view *v, uint64_t dir);

	/* plan - this view's plan for an array; borrowed. For `info`. NULL if the view has more
	 * than one source. */
	const struct plan *(*plan)(struct view *v, uint32_t array);

	/* readlink - the text of a symbolic link, appended to out. NULL: there are none. */
	int (*readlink)(struct view *v, uint64_t id, struct buf *out, struct err *e);

	/* xattr - append the value of extended attribute `name` ("user._Filter") of id; name NULL:
	 * the names of all of them, each with its NUL. Returns 0; -ENODATA no such attribute;
	 * -E2BIG no room in out; -ESTALE. NULL: no file of this view has any. */
	int (*xattr)(struct view *v, uint64_t id, const char *name, struct buf *out,
		     struct err *e);

	/* forget - the kernel drops `count` references to id, which lookup, or list with an attr,
	 * gave it. NULL: ids are computed, and need no counting. */
	void (*forget)(struct view *v, uint64_t id, uint64_t count);
};

struct view {
	const struct view_ops *ops;
	const struct view_write_ops *write; /* NULL: read-only. Writable views follow */
	struct source *source;   /* outlives the view, whose close does not close it: view_close
				  * closes both. NULL if there is not exactly one */
	const char *const *notes; /* parts that the view left out or changed, with the reason: one
				   * line each; borrowed until close */
	uint32_t n_notes;
	const char *format;      /* what its one file is, for people: "CDF-5"; borrowed until close;
				  * NULL: the view's name says it */
	void (*closed)(void *owner); /* NULL, or called by view_close: what the view borrowed from
				      * its owner ends with it */
	void *owner;
	bool follows;            /* the view follows changes of its dataset by itself: it is never
				  * opened again, and stale ids give -ESTALE */
};

/* view_open_fn - open a dataset in its present state: *ret is new, for view_close. */
typedef int view_open_fn(void *arg, struct view **ret, struct err *e);

/* view_close_only - close a view, and leave its source open. */
static inline void view_close_only(struct view *v)
{
	void (*closed)(void *owner) = v->closed;
	void *owner = v->owner;

	v->ops->close(v);
	if (closed)
		closed(owner);
}

/* view_close - close a view, then its source. Takes NULL. */
static inline void view_close(struct view *v)
{
	struct source *source = v ? v->source : NULL;

	if (v)
		view_close_only(v);
	source_close(source);
}

#endif
