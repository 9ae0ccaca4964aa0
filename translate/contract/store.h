/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - the store contract: keys and the bytes behind them. A directory, a zip archive, a
 * remote bucket; what is written as a Zarr tree.
 *
 * Keys are relative: components separated by single '/', none of them empty, "." or "..", no
 * leading or trailing '/'; "" is the root. Callers pass valid keys (store_key_ok); an
 * implementation never leaves its root whatever it finds there. All functions may be called from
 * any thread, concurrently.
 *
 * -ENOENT is proven absence, and nothing else: what is there and cannot be read, a dangling link,
 * a directory without permission, is another error. */
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
	int64_t changed;   /* ns since 1970: the last change of its content. One that comes within
	                    * the clock's tick may leave version as it is; whoever needs to know
	                    * compares this with the clock. 0: not known, or it cannot change */
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

/* store_put - what an object is to be: memory, or, data NULL, len bytes of fd at off. */
struct store_put {
	const void *data;
	int fd;
	uint64_t off, len;
	bool absent;         /* only where nothing is: else -EEXIST */
	uint64_t version;    /* only where it is this version: else -ESTALE; 0: whatever is there */
};

/* store_place - where others find the bytes of an object, without this program. */
struct store_place {
	struct buf *key;     /* appended to: "" the file that the store is; a key below its path or
	                      * address; or, full, an address or absolute path of its own */
	bool full;
	bool whole;          /* all bytes of what is there */
	uint64_t off;        /* else from here on */
};

struct store;

struct store_ops {
	const char *name;  /* "directory" */
	void (*close)(struct store *s);
	int (*stat)(struct store *s, const char *key, struct store_stat *ret, struct err *e);
	int (*list)(struct store *s, const char *key, bool want_stat, store_emit *emit, void *arg,
		    struct err *e);
	int (*read)(struct store *s, const char *key, uint64_t off, uint8_t *out, size_t len,
		    uint64_t *ret_version, struct err *e);
	int (*get)(struct store *s, const char *key, struct buf *out, struct err *e);
	int (*check)(struct store *s, struct err *e);
	/* the rest may be NULL: nothing is to be done, or it cannot be */
	void (*want)(struct store *s, const struct store_range *r, size_t n);
	int (*fresh)(struct store *s, const char *key, struct store_stat *ret, struct err *e);
	int (*place)(struct store *s, const char *key, struct store_place *ret, struct err *e);
	void (*forget)(struct store *s, const char *key);
	int (*put)(struct store *s, const char *key, const struct store_put *what,
		   uint64_t *ret_version, struct err *e);
	int (*remove)(struct store *s, const char *key, struct err *e);
	int (*list_deep)(struct store *s, const char *key, store_emit *emit, void *arg,
			 struct err *e);
};

/* store - embedded first in every implementation. */
struct store {
	const struct store_ops *ops;
	bool remote;    /* a look at anything costs a request over a slow line: who will want
	                 * several things says so first (store_want) */
	bool unlisted;  /* store_list is -EOPNOTSUPP: what there is has to be asked for by name */
	_Atomic uint64_t absences; /* far: how often the service answered that an object is not
	                            * there. Who relies on such an answer looks afterwards whether
	                            * what the object belongs to is still there */
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
/* store_key_below - the part of a key that lies below a directory; NULL: the key does not. */
const char *store_key_below(const char *dir, const char *key);

/* store_stat - what is behind a key. -ENOENT; -ENOTDIR is given as -ENOENT: a file has no keys
 * below it. */
int store_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e) NZ_MUST_USE;

/* store_list - the entries below a key, one level, in no order, each name once. Names that are no
 * component of a key, or longer than 255 bytes, are left out. Streams: memory does not grow with
 * the directory. want_stat: every entry comes with its stat (a link: that of what it leads to).
 * -ENOENT: nothing is below that key. */
int store_list(struct store *s, const char *key, bool want_stat, store_emit *emit, void *arg,
	       struct err *e) NZ_MUST_USE;

/* store_list_deep - all objects below a key, at any depth, with their stats; names have '/' in
 * them. For services that give that for less than a listing of each folder. -EOPNOTSUPP: list
 * level by level. */
int store_list_deep(struct store *s, const char *key, store_emit *emit, void *arg,
		    struct err *e) NZ_MUST_USE;

/* store_read - exactly bytes [off, off+len) of an object. ret_version: may be NULL; the version
 * of the object that the bytes came from, as stat gives it.
 * Returns 0; -EIO when the object ends before; -ENOENT; -EBADMSG a damaged archive. */
int store_read(struct store *s, const char *key, uint64_t off, uint8_t *out, size_t len,
	       uint64_t *ret_version, struct err *e) NZ_MUST_USE;

/* store_get - append a whole object; -ERANGE when out's ceiling is too low for it. */
int store_get(struct store *s, const char *key, struct buf *out, struct err *e) NZ_MUST_USE;

/* store_check - 0 while a store that is one file (an archive) is the one that was opened; -ESTALE.
 * A store whose objects live on their own has nothing to check: 0. */
int store_check(struct store *s, struct err *e) NZ_MUST_USE;

/* store_want - a hint: these will be read soon, in this order; fetched side by side. Returns at
 * once, and does nothing where s->far is false. */
void store_want(struct store *s, const struct store_range *r, size_t n);

/* store_fresh - like store_stat, of what the service has now: nothing remembered is believed, and
 * what is found to be another version is forgotten. */
int store_fresh(struct store *s, const char *key, struct store_stat *ret,
		struct err *e) NZ_MUST_USE;

/* store_where - where others find an object. ret->key is set. Returns 0; -EOPNOTSUPP nowhere as it
 * is: deflated, in memory; -ENOENT. */
int store_where(struct store *s, const char *key, struct store_place *ret,
		struct err *e) NZ_MUST_USE;

/* store_forget - what is remembered of an object's bytes turned out to be damaged: they may have
 * been damaged on the way, and the next read asks the service. Does nothing where s->far is
 * false. */
void store_forget(struct store *s, const char *key);

/* store_put - make or replace an object; readers see the old one or the new one.
 * Returns 0; -EROFS it cannot be written; -EEXIST, -ESTALE the condition does not hold;
 * -EOPNOTSUPP the service knows no conditions. */
int store_put(struct store *s, const char *key, const struct store_put *what,
	      uint64_t *ret_version, struct err *e) NZ_MUST_USE;
/* store_remove - what is not there is no error. */
int store_remove(struct store *s, const char *key, struct err *e) NZ_MUST_USE;

#endif
