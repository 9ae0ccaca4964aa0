/* SPDX-License-Identifier: BSD-3-Clause */
/* refs_int.h - a store over references to chunks: private to nczarr.
 *
 *   json_pull.c      a JSON parser without a tree of values, for a million of references
 *   json_index.c     kerchunk's JSON as a sorted table of keys
 *   parquet_index.c  kerchunk's directories of Parquet files, read on demand
 *   targets.c        the referenced files: access checks, and a cache of open ones
 *   store.c          the store
 *   source.c         the source: bids, and opens a Zarr source over the store */
#ifndef NCZARR_REFS_REFS_INT_H
#define NCZARR_REFS_REFS_INT_H

#include "nczarr/nczarr.h"
#include "nczarr/store/sorted_keys.h"

/* ---- JSON (json_pull.c) ---- */

/* scan - a position in a JSON document. The functions' error messages have the offset. Spec: RFC
 * 8259. The numbers NaN and Infinity are skipped as values, as Python writes them. */
struct scan {
	const uint8_t *p, *end, *begin;  /* borrowed */
};

/* scan_peek - the next byte that is not white space; 0 at the end. */
uint8_t scan_peek(struct scan *s);
/* scan_is - consume the next byte if it is c; whether it was. */
bool scan_is(struct scan *s, char c);
/* scan_text - append a string without its escapes. -EBADMSG no string, or not UTF-8. */
int scan_text(struct scan *s, struct buf *out, struct err *e) NZ_MUST_USE;
/* scan_u64 - parse a non-negative whole number. */
int scan_u64(struct scan *s, uint64_t *ret, struct err *e) NZ_MUST_USE;
/* scan_skip - skip a value, at most SCAN_DEPTH deep. */
#define SCAN_DEPTH 64
int scan_skip(struct scan *s, struct err *e) NZ_MUST_USE;
/* scan_members - call fn for each member of an object, with its key in `key`. fn checks that the
 * key fits there, and consumes the value. */
typedef int scan_member(void *arg, struct scan *s, struct err *e);
int scan_members(struct scan *s, struct buf *key, scan_member *fn, void *arg,
		 struct err *e) NZ_MUST_USE;
/* scan_next - after a member or element: 1 if a comma was consumed, 0 if `close` was. */
int scan_next(struct scan *s, char close, struct err *e) NZ_MUST_USE;
int scan_bad(const struct scan *s, const char *what, struct err *e);

/* ---- indexes ---- */

/* refs_found - the value of a key. */
struct refs_found {
	enum { REFS_FOLDER, REFS_INLINE, REFS_AT } what;
	const uint8_t *data;  /* INLINE; borrowed until refs_index_ops.done */
	uint64_t off, len;    /* INLINE: len; AT unless whole */
	bool whole;           /* AT: the whole target, of any size */
	const char *url;      /* AT: NUL-terminated; as data */
	uint64_t version;     /* of the reference itself, not 0 */
	void *held;
};

struct refs_index;

struct refs_index_ops {
	void (*close)(struct refs_index *x);
	/* find - look up a key, "" the root. -ENOENT. After success the caller calls done. */
	int (*find)(struct refs_index *x, const char *key, struct refs_found *ret, struct err *e);
	void (*done)(struct refs_index *x, struct refs_found *f);
	/* list - emit each name below a key once; found is set only if it is no folder, and only
	 * during the call. emit returns false to stop. */
	int (*list)(struct refs_index *x, const char *key,
		    bool (*emit)(void *arg, const char *name, bool is_dir,
				 const struct refs_found *f),
		    void *arg, struct err *e);
	/* check - as store_check() of the document. */
	int (*check)(struct refs_index *x, struct err *e);
};

struct refs_index {
	const struct refs_index_ops *ops;
	bool remote; /* it is remote or refers to remote files */
	bool borrows; /* close leaves the file or store of open to the caller */
};

/* refs_table_open - open a JSON document. file: taken on success if it is remote. max_meta: limit
 * of the document, and of the table, in bytes. */
int refs_table_open(struct blob *file, uint64_t max_meta, struct refs_index **ret,
		    struct err *e) NZ_MUST_USE;
/* refs_table_parse - the same for n bytes in memory; without later checks. */
int refs_table_parse(const void *doc, size_t n, uint64_t max_meta, struct refs_index **ret,
		     struct err *e) NZ_MUST_USE;
/* refs_parq_open - open a directory of Parquet files. store: taken on success. */
int refs_parq_open(struct store *store, uint64_t max_meta, struct refs_index **ret,
		   struct err *e) NZ_MUST_USE;

/* ---- targets ---- */

/* refs_origin - location of a reference file, which restricts its targets. */
struct refs_origin {
	const char *address; /* of a remote document; NULL: a local one */
	const char *dir;     /* local: the directory that it is in */
	const char *external_root; /* local: another directory of allowed targets; NULL */
	const struct remote_opener *reach; /* NULL: no remote access */
};

struct refs_targets;

int refs_targets_new(const struct refs_origin *home, struct refs_targets **ret,
		     struct err *e) NZ_MUST_USE;
void refs_targets_free(struct refs_targets *t);

/* refs_target_take - open the target of a reference until refs_target_give(). The first caller
 * opens it, others wait. -EACCES the reference file may not refer to it; -ESTALE it was replaced
 * since it was opened first; -EIO: it does not exist. That is no -ENOENT, because it does not
 * prove that the chunk is absent. */
struct refs_target;
int refs_target_take(struct refs_targets *t, const char *url, struct refs_target **ret,
		     struct blob **ret_blob, struct err *e) NZ_MUST_USE;
void refs_target_give(struct refs_targets *t, struct refs_target *x);
/* refs_target_if_open - the same if it is open already; else false. For hints. */
bool refs_target_if_open(struct refs_targets *t, const char *url, struct refs_target **ret,
			 struct blob **ret_blob);
/* refs_target_place - append the address or absolute path of a reference. */
int refs_target_place(const struct refs_targets *t, const char *url, struct buf *out,
		      struct err *e) NZ_MUST_USE;
/* refs_targets_changed - whether a target was replaced. */
bool refs_targets_changed(const struct refs_targets *t);

/* store_refs_open - open a store over an index and targets, which it takes on success. */
int store_refs_open(struct refs_index *x, struct refs_targets *t, struct store **ret,
		    struct err *e) NZ_MUST_USE;

#endif
