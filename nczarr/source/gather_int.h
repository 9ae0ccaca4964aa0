/* SPDX-License-Identifier: BSD-3-Clause */
/* gather_int.h - documents on their way to items: what gather.c and gather.c share. */
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

/* found - a directory with documents. */
struct zr_found {
	const char *key;
	uint32_t depth;
	struct zr_item item; /* without parent */
};

/* todo - a directory that is still to be looked at. */
struct zr_todo {
	const char *key;
	uint32_t depth;
	bool v3;          /* below a v3 group: only zarr.json counts */
	uint64_t version; /* from before */
};

/* zr_child - a directory in a listing. */
struct zr_child {
	char *name;
	uint64_t version;
};

struct zr_load;

/* zr_listing - what a group's directory has. */
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
	uint64_t cost; /* memory of the documents, about */
	bool v1;       /* NCZarr's own objects */
	bool limit;    /* one of the limits of the whole tree is exceeded: no going on */
};

/* zr_load_item - what a directory's documents say. *ret false: they do not make it an item; then
 * only attributes and format are set. */
int zr_load_item(struct zr_load *l, const json_t **d, struct zr_item *it, bool *ret,
		 struct err *e) NZ_MUST_USE;
/* zr_load_keep - add to what was found. key is in the arena. */
int zr_load_keep(struct zr_load *l, const char *key, uint32_t depth, const struct zr_item *it,
		 struct err *e) NZ_MUST_USE;
/* zr_load_name - put the name of a directory's document in front of what e says. */
int zr_load_name(const char *dir, const json_t **docs, int rc, struct err *e);
/* zr_load_order - by depth, then by path, names compared as bytes. */
int zr_load_order(uint32_t da, const char *a, uint32_t db, const char *b);

/* zr_inline_metadata - of a Zarr v3 root; *ret NULL: it has none that we know. */
int zr_inline_metadata(const json_t *v, const json_t **ret, struct err *e) NZ_MUST_USE;
/* zr_consolidated - find every entry of `metadata`. root_doc: v3: the root's own document. */
int zr_consolidated(struct zr_load *l, const json_t *metadata, const json_t *root_doc,
		    struct err *e) NZ_MUST_USE;
/* zr_consolidated_v2 - the same for the document .zmetadata. */
int zr_consolidated_v2(struct zr_load *l, const json_t *v, struct err *e) NZ_MUST_USE;

/* zr_load_see - remember what a key's version was before it was looked at; 0: it was not there. */
int zr_load_see(struct zr_load *l, const char *key, uint64_t version, struct err *e) NZ_MUST_USE;
/* zr_load_doc - a document of a directory; *ret NULL: there is none. st: its stat where a listing
 * gave it, or NULL. */
int zr_load_doc(struct zr_load *l, const char *dir, const char *name,
		const struct store_stat *st, const json_t **ret, struct err *e) NZ_MUST_USE;
/* zr_load_key - the key of something in a directory, in the arena. */
int zr_load_key(struct zr_load *l, const char *dir, const char *name, const char **ret,
		struct err *e) NZ_MUST_USE;
/* zr_listing_add - one more directory. false: there are too many, or memory is short (s->rc). */
bool zr_listing_add(struct zr_listing *s, const char *name, uint64_t version);
void zr_listing_release(struct zr_listing *s);

/* ---- walking (gather_walk.c) ---- */

/* zr_look_v3 - a directory below a v3 group, or the root. *ret: it has a document. */
int zr_look_v3(struct zr_load *l, const struct zr_todo *d, const struct store_stat *st, bool *ret,
	       struct err *e) NZ_MUST_USE;
/* zr_look - at one directory: an array, a group, or neither. */
int zr_look(struct zr_load *l, const struct zr_todo *d, struct err *e) NZ_MUST_USE;
/* zr_walk - at all that is to be looked at, and what is below. */
int zr_walk(struct zr_load *l, struct err *e) NZ_MUST_USE;

/* ---- stores far away (gather_walk.c) ---- */

#define ZR_REMOTE_DIRS 64 /* directories whose documents are asked for at a time */

/* zr_remote_want_root - ask for what a root's documents begin with; rest: those of a tree without
 * consolidated metadata. */
void zr_remote_want_root(struct store *s, bool rest);
/* zr_remote_want - ask for the documents of all these directories side by side. */
void zr_remote_want(struct zr_load *l, const struct zr_todo *d, size_t n);
/* zr_remote_want_docs - of those documents of a directory that a listing has. */
void zr_remote_want_docs(struct zr_load *l, const char *dir, const struct zr_listing *s);
/* zr_remote_children - what is below a group, where directories cannot be listed: what its
 * documents say. docs: its own. *ret_said: they say something, be it that nothing is there. */
int zr_remote_children(struct zr_load *l, const json_t **docs, struct zr_listing *ret,
		       bool *ret_said, struct err *e) NZ_MUST_USE;

#endif
