/* SPDX-License-Identifier: BSD-3-Clause */
/* gather_int.h - shared by gather.c and gather_walk.c: from documents to items. */
#ifndef NCZARR_SOURCE_GATHER_INT_H
#define NCZARR_SOURCE_GATHER_INT_H

#include "nczarr/source/open.h"

enum gathered_doc {
	DOC_ZARRAY,
	DOC_ZGROUP,
	DOC_ZATTRS,
	DOC_ZJSON,
	DOC_NCZARR,
	DOC_NCZGROUP,
	DOC_NCZARRAY,
	DOC_NCZVAR,
	DOC_NCZATTRS,
	DOC_NCZATTR,
	DOC_N,
};

extern const char *const zr_doc_names[DOC_N];
/* zr_doc_of - the document with this file name; DOC_N: none. */
enum gathered_doc zr_doc_of(const char *name);

/* found - a directory with documents. */
struct zr_found {
	const char *key;
	uint32_t depth;
	struct zr_item item; /* without parent */
};

/* zr_todo - a directory to visit. */
struct zr_todo {
	const char *key;
	uint32_t depth;
	bool v3;          /* below a v3 group: only zarr.json counts */
	uint64_t version; /* its version before the visit */
};

/* zr_child - a directory in a listing. */
struct zr_child {
	char *name;
	uint64_t version;
};

struct zr_load;

/* zr_listing - child directories of a group. */
struct zr_listing {
	struct zr_load *l;
	bool has[DOC_N];
	struct store_stat st[DOC_N];
	struct zr_child *dirs;
	size_t n, c;
	int rc;
};

struct zr_load {
	struct zr_source *s;
	struct zr_tree *t;
	struct arena *arena;
	struct zr_found *found;
	size_t n_found, c_found;
	struct zr_todo *todo;
	size_t n_todo, c_todo;
	uint64_t cost; /* estimated memory of the documents */
	bool v1;       /* NCZarr's own objects */
	bool limit;    /* a limit of the whole store was exceeded: abort even with keep_going */
};

/* zr_load_item - make an item of a directory's documents. *ret false: they describe none; then
 * only attributes and format are set. */
int zr_load_item(struct zr_load *l, const json_t **d, struct zr_item *it, bool *ret,
		 struct err *e) NZ_MUST_USE;
/* zr_load_keep - record a directory. key is in the arena. */
int zr_load_keep(struct zr_load *l, const char *key, uint32_t depth, const struct zr_item *it,
		 struct err *e) NZ_MUST_USE;
/* zr_load_name - prefix the message in e with the name of a directory's document. */
int zr_load_name(const char *dir, const json_t **docs, int rc, struct err *e);
/* zr_load_order - by depth, then by path, names compared as bytes. */
int zr_load_order(uint32_t da, const char *a, uint32_t db, const char *b);

/* zr_inline_metadata - the consolidated metadata in a Zarr v3 root; *ret NULL: none of a known
 * kind. */
int zr_inline_metadata(const json_t *v, const json_t **ret, struct err *e) NZ_MUST_USE;
/* zr_consolidated - record every entry of `metadata`. root_doc: v3: the root's own document. */
int zr_consolidated(struct zr_load *l, const json_t *metadata, const json_t *root_doc,
		    struct err *e) NZ_MUST_USE;
/* zr_consolidated_v2 - the same for the document .zmetadata. */
int zr_consolidated_v2(struct zr_load *l, const json_t *v, struct err *e) NZ_MUST_USE;

/* zr_load_see - record the version of a key before its use, for changes.c; 0: absent. */
int zr_load_see(struct zr_load *l, const char *key, uint64_t version, struct err *e) NZ_MUST_USE;
/* zr_load_doc - read a document of a directory; *ret NULL: absent. st: its stat from a listing, or
 * NULL. */
int zr_load_doc(struct zr_load *l, const char *dir, const char *name,
		const struct store_stat *st, const json_t **ret, struct err *e) NZ_MUST_USE;
/* zr_load_key - the key of a name in a directory, in the arena. */
int zr_load_key(struct zr_load *l, const char *dir, const char *name, const char **ret,
		struct err *e) NZ_MUST_USE;
/* zr_listing_add - add a directory. false: too many, or out of memory (s->rc). */
bool zr_listing_add(struct zr_listing *s, const char *name, uint64_t version);
void zr_listing_release(struct zr_listing *s);

/* ---- walking (gather_walk.c) ---- */

/* zr_look_v3 - visit a directory below a v3 group, or the root. *ret: it has a document. */
int zr_look_v3(struct zr_load *l, const struct zr_todo *d, const struct store_stat *st, bool *ret,
	       struct err *e) NZ_MUST_USE;
/* zr_look - visit a directory: an array, a group, or neither. */
int zr_look(struct zr_load *l, const struct zr_todo *d, struct err *e) NZ_MUST_USE;
/* zr_walk - visit all queued directories and those below. */
int zr_walk(struct zr_load *l, struct err *e) NZ_MUST_USE;

/* ---- remote stores (gather_walk.c) ---- */

#define ZR_REMOTE_DIRS 64 /* directories whose documents are requested in parallel */

/* zr_remote_want_root - prefetch the first documents of a root; rest: those of a store without
 * consolidated metadata. */
void zr_remote_want_root(struct store *s, bool rest);
/* zr_remote_want - prefetch the documents of all these directories in parallel. */
void zr_remote_want(struct zr_load *l, const struct zr_todo *d, size_t n);
/* zr_remote_want_docs - prefetch the documents of a directory that its listing has. */
void zr_remote_want_docs(struct zr_load *l, const char *dir, const struct zr_listing *s);
/* zr_remote_children - the children of a group, if directories cannot be listed, from its
 * documents `docs`. *ret_said: the documents state them, even if there are none. */
int zr_remote_children(struct zr_load *l, const json_t **docs, struct zr_listing *ret,
		       bool *ret_said, struct err *e) NZ_MUST_USE;

#endif
