/* SPDX-License-Identifier: BSD-3-Clause */
/* refs_int.h - references to chunks as a store: private to nczarr.
 *
 *   json_pull.c      JSON, read where it lies: no tree of values for a million of references
 *   json_index.c     kerchunk's JSON as a sorted table of keys
 *   parquet_index.c  kerchunk's directories of Parquet files, read as they are needed
 *   targets.c        what is referred to: who may refer to what, and the few that are open
 *   store.c          the store over them
 *   source.c         the source: bids, opens, and a Zarr source over the store */
#ifndef NCZARR_REFS_REFS_INT_H
#define NCZARR_REFS_REFS_INT_H

#include "nczarr/nczarr.h"
#include "nczarr/store/sorted_keys.h"

/* ---- JSON (json_pull.c) ---- */

/* scan - a place in a JSON document. What is wrong is said by the functions' errors, with the
 * offset. Spec: RFC 8259. Numbers NaN and Infinity are skipped as values, as Python writes them. */
struct scan {
	const uint8_t *p, *end, *begin;  /* borrowed */
};

/* scan_peek - the next byte that is no white space; 0 at the end. */
uint8_t scan_peek(struct scan *s);
/* scan_is - whether that byte is c: then it is taken. */
bool scan_is(struct scan *s, char c);
/* scan_text - append a string, its escapes undone. -EBADMSG no string, or not UTF-8. */
int scan_text(struct scan *s, struct buf *out, struct err *e) NZ_MUST_USE;
/* scan_u64 - a whole number that is not negative. */
int scan_u64(struct scan *s, uint64_t *ret, struct err *e) NZ_MUST_USE;
/* scan_skip - any value. At most SCAN_DEPTH deep. */
#define SCAN_DEPTH 64
int scan_skip(struct scan *s, struct err *e) NZ_MUST_USE;
/* scan_next - after a member or element: 1 when a comma was taken, 0 when `close` was. */
int scan_next(struct scan *s, char close, struct err *e) NZ_MUST_USE;
int scan_bad(const struct scan *s, const char *what, struct err *e);

/* ---- indexes ---- */

/* refs_found - what a key is. */
struct refs_found {
	enum { REFS_FOLDER, REFS_INLINE, REFS_AT } what;
	const uint8_t *data;  /* INLINE; borrowed until refs_index_ops.done */
	uint64_t off, len;    /* INLINE: len; AT unless whole */
	bool whole;           /* AT: all of the target, whatever its size */
	const char *url;      /* AT: NUL-terminated; as data */
	uint64_t version;     /* of the reference itself, not 0 */
	void *held;
};

struct refs_index;

struct refs_index_ops {
	void (*close)(struct refs_index *x);
	/* leave - what it was opened with is the caller's again; only close comes after it. */
	void (*leave)(struct refs_index *x);
	/* find - a key, "" the root. -ENOENT. On success call done. */
	int (*find)(struct refs_index *x, const char *key, struct refs_found *ret, struct err *e);
	void (*done)(struct refs_index *x, struct refs_found *f);
	/* list - each name below a key, once; found only where want and it is no folder, and only
	 * for the time of the call. Returns false of emit to stop. */
	int (*list)(struct refs_index *x, const char *key, bool want,
		    bool (*emit)(void *arg, const char *name, bool is_dir,
				 const struct refs_found *f),
		    void *arg, struct err *e);
	/* check - as store_check of the document. NULL: nothing to check. */
	int (*check)(struct refs_index *x, struct err *e);
};

struct refs_index {
	const struct refs_index_ops *ops;
	bool remote; /* refers to things on other machines, or is there itself */
};

/* refs_table_open - a JSON document. file: taken on success, and closed when it is a
 * descriptor's, too. max_meta: bytes of the document, and of the table. */
int refs_table_open(struct blob *file, uint64_t max_meta, struct refs_index **ret,
		    struct err *e) NZ_MUST_USE;
/* refs_table_parse - the same of n bytes in memory; nothing to check later. */
int refs_table_parse(const void *doc, size_t n, uint64_t max_meta, struct refs_index **ret,
		     struct err *e) NZ_MUST_USE;
/* refs_parq_open - a directory of Parquet files. store: taken on success. */
int refs_parq_open(struct store *store, uint64_t max_meta, struct refs_index **ret,
		   struct err *e) NZ_MUST_USE;

/* ---- targets ---- */

/* refs_origin - where a document is, and so what it may refer to. */
struct refs_origin {
	const char *address; /* of a remote document; NULL: a local one */
	const char *dir;     /* local: the directory that it is in */
	const char *external_root; /* local: another below which it may refer to files; NULL */
	const struct remote_opener *reach; /* NULL: nothing remote can be had */
};

struct refs_targets;

int refs_targets_new(const struct refs_origin *home, struct refs_targets **ret,
		     struct err *e) NZ_MUST_USE;
void refs_targets_free(struct refs_targets *t);

/* refs_target_take - what a reference means, open until refs_target_give; opened by whoever needs
 * it first, others wait. -EACCES the document may not refer to it; -ESTALE it is another than
 * when it was open before; -EIO: it is not there, because a chunk that is referred to is not
 * proven to be absent. */
struct refs_target;
int refs_target_take(struct refs_targets *t, const char *url, struct refs_target **ret,
		     struct blob **ret_blob, struct err *e) NZ_MUST_USE;
void refs_target_give(struct refs_targets *t, struct refs_target *x);
/* refs_target_if_open - the same when it is open already; else false. For hints. */
bool refs_target_if_open(struct refs_targets *t, const char *url, struct refs_target **ret,
			 struct blob **ret_blob);
/* refs_target_place - append the address or absolute path that a reference means. */
int refs_target_place(const struct refs_targets *t, const char *url, struct buf *out,
		      struct err *e) NZ_MUST_USE;
/* refs_targets_changed - whether one was found to be another by now. */
bool refs_targets_changed(const struct refs_targets *t);

/* store_refs_open - a store over an index and targets, which it takes on success. */
int store_refs_open(struct refs_index *x, struct refs_targets *t, struct store **ret,
		    struct err *e) NZ_MUST_USE;

#endif
