/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - the store contract: keys and the bytes behind them. A store is a directory, a zip
 * archive or a remote bucket, or the target of a Zarr writer.
 *
 * Keys are relative: components separated by single '/', none of them empty, "." or "..", no
 * leading or trailing '/'; "" is the root. Callers pass valid keys (store_key_ok). An
 * implementation never leaves its root, whatever the root contains. All functions may be called
 * from any thread, concurrently.
 *
 * -ENOENT is proven absence and nothing else: for an object that exists and cannot be read, a
 * dangling link or a directory without permission, there are other errors. */
#ifndef TRANSLATE_CONTRACT_STORE_H
#define TRANSLATE_CONTRACT_STORE_H

#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/core/err.h"

#define STORE_KEY_MAX 4095  /* bytes of a key */

struct store_stat {
	bool is_dir;
	bool odd;          /* there, but neither a readable file nor a directory: reading it is
	                    * an error. size is 0 */
	uint64_t size;     /* bytes of the object as a reader gets it */
	uint64_t version;  /* changes when the object may have: made of identity and times */
	int64_t changed;   /* ns since 1970: last change of the content. A change within the clock's
			    * tick may leave version unchanged; compare this with the clock if that
			    * matters. 0: not known, or it cannot change */
};

/* store_emit - one entry of a listing: its name (one component) and what it is. st is NULL where
 * want_stat was false and the entry's kind came for nothing; is_dir is right in both cases.
 * Returns false to stop. */
typedef bool store_emit(void *arg, const char *name, bool is_dir, const struct store_stat *st);

/* store_range - a part of an object. */
struct store_range {
	const char *key;     /* borrowed for the call */
	uint64_t off, len;   /* off UINT64_MAX: the last len bytes; len UINT64_MAX: all from off */
};

/* store_put - the content of an object: memory, or, if data is NULL, len bytes of fd at off. */
struct store_put {
	const void *data;
	int fd;
	uint64_t off, len;
	bool absent;         /* only if there is no object: else -EEXIST */
	uint64_t version;    /* only if the object has this version: else -ESTALE; 0: always */
};

/* store_place - where other programs find the bytes of an object. */
struct store_place {
	struct buf *key;     /* appended to: "" the file that the store is; a key below its path or
	                      * address; or, full, an address or absolute path of its own */
	bool full;
	bool whole;          /* all bytes of the object */
	uint64_t off;        /* else from here on */
};

/* store_io - one read of an object: the bytes [off, off + len) into `to`, or, if out is set, all
 * bytes, appended to out. */
struct store_io {
	uint64_t off;
	size_t len;
	uint8_t *to;         /* borrowed */
	struct buf *out;     /* borrowed; NULL: a range */
	size_t before;       /* bytes that out had before */
	bool clip;           /* if the object ends before off + len, the read ends there, too, and
			      * sets len; not in remote stores */
	uint64_t version;    /* set by the store: of the object that the bytes came from */
};

struct store;

struct store_ops {
	const char *name;  /* "directory" */
	void (*close)(struct store *s);
	int (*stat)(struct store *s, const char *key, struct store_stat *ret, struct err *e);
	int (*list)(struct store *s, const char *key, bool want_stat, store_emit *emit, void *arg,
		    struct err *e);
	int (*read)(struct store *s, const char *key, struct store_io *io, struct err *e);
	/* the others may be NULL: nothing needs to be done, or it is not supported */
	int (*check)(struct store *s, struct err *e);
	void (*want)(struct store *s, const struct store_range *r, size_t n);
	int (*fresh)(struct store *s, const char *key, struct store_stat *ret, struct err *e);
	int (*place)(struct store *s, const char *key, struct store_place *ret, struct err *e);
	void (*forget)(struct store *s, const char *key);
	int (*put)(struct store *s, const char *key, const struct store_put *what,
		   uint64_t *ret_version, struct err *e);
	int (*remove)(struct store *s, const char *key, struct err *e);
	int (*list_deep)(struct store *s, const char *key, store_emit *emit, void *arg,
			 struct err *e);
	/* all three or none, by one thread at a time: objects are files, which renames move */
	int (*movable)(struct store *s, const char *key, int dir, struct err *e);
	int (*move)(struct store *s, const char *key, int dir, const char *path, bool out,
		    struct err *e);
	int (*flush)(struct store *s, bool all, struct err *e);
};

/* store - embedded first in every implementation. */
struct store {
	const struct store_ops *ops;
	bool remote;    /* every access costs a request over a slow connection: callers that need
			 * several objects call store_want first */
	uint64_t id;    /* of stores with moves: the inode of the directory */
	bool unlisted;  /* store_list is -EOPNOTSUPP: objects have to be requested by name */
	_Atomic uint64_t absences; /* remote: how often the service answered that an object does not
				    * exist. A caller that relies on such an answer checks
				    * afterwards that the object's parent still exists */
};

static inline void store_close(struct store *s)
{
	if (s)
		s->ops->close(s);
}

/* store_key_ok - whether text is a key as described above, not "". */
bool store_key_ok(const char *key);
/* store_key_join - the key of the entry `name`, len bytes, of a directory, which may be in `out`.
 * An empty name gives the directory itself. false: it would be too long. */
bool store_key_join(const char *dir, const char *name, size_t len, char out[STORE_KEY_MAX + 1]);
/* store_key_name - the last component of a key. */
const char *store_key_name(const char *key);
/* store_key_parent_len - the bytes of the key of the directory that holds a key. */
size_t store_key_parent_len(const char *key);
/* store_key_parent - that key in `out`, which may be `key`. */
void store_key_parent(const char *key, char out[STORE_KEY_MAX + 1]);
/* store_key_below - the part of a key that lies below a directory; NULL: the key does not. */
const char *store_key_below(const char *dir, const char *key);

/* store_stat - the properties of an object. -ENOENT; -ENOTDIR is returned as -ENOENT: a file has no
 * keys below it. */
int store_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e) NZ_MUST_USE;

/* store_list - the entries below a key, one level, in no order, each name once. Names that are no
 * component of a key, or longer than 255 bytes, are left out. Streams: memory does not grow with
 * the directory. want_stat: every entry has its stat (a link: that of its target). -ENOENT: there
 * is nothing below that key. */
int store_list(struct store *s, const char *key, bool want_stat, store_emit *emit, void *arg,
	       struct err *e) NZ_MUST_USE;

/* store_list_deep - all objects below a key, at any depth, with their stats; names have '/' in
 * them. For services where this costs less than a listing of each folder. -EOPNOTSUPP: list level
 * by level. */
int store_list_deep(struct store *s, const char *key, store_emit *emit, void *arg,
		    struct err *e) NZ_MUST_USE;

/* store_read - exactly bytes [off, off+len) of an object. ret_version: may be NULL; the version
 * of the object that the bytes came from, as stat gives it.
 * Returns 0; -EIO when the object ends before; -ENOENT; -EBADMSG a damaged archive. */
int store_read(struct store *s, const char *key, uint64_t off, uint8_t *out, size_t len,
	       uint64_t *ret_version, struct err *e) NZ_MUST_USE;

/* store_get - append a whole object. ret_version as in store_read(). Returns 0; -ERANGE if out has
 * no room for it below its ceiling; -ESTALE if the object changed while it was read; errors of
 * store_read(). */
int store_get(struct store *s, const char *key, struct buf *out, uint64_t *ret_version,
	      struct err *e) NZ_MUST_USE;

/* store_read_io - for stores above other stores: the read that they were called with. */
int store_read_io(struct store *s, const char *key, struct store_io *io, struct err *e) NZ_MUST_USE;

/* store_io_size - for stores, when they know that the object has `size` bytes: a whole object gets
 * its off, len and to, which has room for it. Returns 0; -EIO if the object ends before the range;
 * -ERANGE; -ENOMEM. */
int store_io_size(struct store_io *io, const char *key, uint64_t size, struct err *e) NZ_MUST_USE;

/* store_check - 0 while a store that is one file (an archive) is the one that was opened; -ESTALE.
 * A store whose objects live on their own has nothing to check: 0. */
int store_check(struct store *s, struct err *e) NZ_MUST_USE;

/* store_want - a hint that these ranges will be read soon, in this order; they are fetched in
 * parallel. Returns at once, and does nothing if s->remote is false. */
void store_want(struct store *s, const struct store_range *r, size_t n);

/* store_fresh - as store_stat, for the present state at the service: bypasses caches, and drops
 * cached data of another version. */
int store_fresh(struct store *s, const char *key, struct store_stat *ret,
		struct err *e) NZ_MUST_USE;

/* store_where - where other programs find an object. The caller has set ret->key. Returns 0;
 * -EOPNOTSUPP if it is not stored as such: deflated, in memory; -ENOENT. */
int store_where(struct store *s, const char *key, struct store_place *ret,
		struct err *e) NZ_MUST_USE;

/* store_forget - cached bytes of an object turned out to be damaged, possibly in transit: drop
 * them, so that the next read fetches them again. Does nothing if s->remote is false. */
void store_forget(struct store *s, const char *key);

/* store_put - make or replace an object; readers see the old one or the new one.
 * Returns 0; -EROFS it cannot be written; -EEXIST, -ESTALE the condition does not hold;
 * -EOPNOTSUPP the service knows no conditions. */
int store_put(struct store *s, const char *key, const struct store_put *what,
	      uint64_t *ret_version, struct err *e) NZ_MUST_USE;
/* store_remove - remove an object. It is no error if there is none. */
int store_remove(struct store *s, const char *key, struct err *e) NZ_MUST_USE;

/* store_moves - whether files of a transaction become objects of the store by renames. */
static inline bool store_moves(const struct store *s)
{
	return s->ops->move != NULL;
}
/* store_movable - check in advance that objects in the directory `key`, "" the root, can be moved
 * to and from the directory dir; a missing one can be made. 0 without moves: the service reports
 * it. -EXDEV: dir is on another file system. */
int store_movable(struct store *s, const char *key, int dir, struct err *e) NZ_MUST_USE;
/* store_move - move the file or directory dir/path to a key, or from there if `out`. Missing
 * directories are made. What has been moved already is no error: a path that is there (out), or
 * absent; nor, if `out`, is a missing object. */
int store_move(struct store *s, const char *key, int dir, const char *path, bool out,
	       struct err *e) NZ_MUST_USE;
/* store_flush - call after some moves and removals, so that later keys are resolved anew. all: and
 * sync all changes so far. */
int store_flush(struct store *s, bool all, struct err *e) NZ_MUST_USE;

#endif
