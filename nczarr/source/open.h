/* SPDX-License-Identifier: BSD-3-Clause */
/* open.h - shared by the files that open a Zarr store: notes, NCZarr's keys, and the model under
 * construction. */
#ifndef NCZARR_SOURCE_OPEN_H
#define NCZARR_SOURCE_OPEN_H

#include "nczarr/source/source_int.h"

#define ZR_DEPTH_MAX 64      /* groups within groups */
#define ZR_ITEMS_MAX 1000000 /* groups and arrays, and visited directories */

/* zr_mutable - jansson's iterators do not take const objects. */
static inline json_t *zr_mutable(const json_t *v)
{
	return (json_t *)(uintptr_t)v;
}

/* zr_model_name_ok - whether text is a name that the model may have. */
bool zr_model_name_ok(const char *s, size_t n);

/* ---- skipped items (gather.c) ---- */

/* zr_note - add a line "<key>: text", as ds_notes_add. */
int zr_note(struct zr_tree *t, const char *key, struct err *e, const char *fmt, ...)
	NZ_PRINTF(4, 5);

/* zr_leave_out - skip an invalid item or fail. With keep_going it adds a note and returns 0: the
 * caller continues without the item. Otherwise, and for errors that do not concern the documents
 * (memory, I/O), *why is moved to e. key: of the group or array. what: "" or the part of it, "an
 * attribute ". */
int zr_leave_out(const struct zr_source *s, struct zr_tree *t, const char *key,
		 const char *what, const struct err *why, struct err *e);

/* zr_wrap_key - prefix the message in e with "'v/.zarray': "; for consolidated documents with the
 * name of the containing document as well. doc: ".zarray". Returns rc. */
int zr_wrap_key(const struct zr_tree *t, const struct zr_item *it, const char *doc, int rc,
		struct err *e);
/* zr_doc_name - name of the document that describes an item, or of the one with its attributes. */
const char *zr_doc_name(const struct zr_item *it);
const char *zr_attrs_name(const struct zr_item *it);

/* ---- NCZarr (nczarr_keys.c) ---- */

/* zr_nc - properties of the program that wrote a store. */
struct zr_nc {
	bool on;       /* it has a superblock: groups and dimensions are NCZarr's */
	bool old_char; /* "<U1" is one byte: up to netCDF 4.9.0 */
	bool swapped;  /* arrays of ">" types are stored little-endian: up to 4.9.2 */
};

void zr_nc_store(const struct zr_tree *t, struct zr_nc *ret);

/* zr_nc_superblock - the superblock in the root's documents; NULL: none. */
const json_t *zr_nc_superblock(const struct zr_item *root);
/* zr_nc_group - the dictionary of a group; zr_nc_array - of an array. NULL: none. */
const json_t *zr_nc_group(const struct zr_item *it);
const json_t *zr_nc_array(const struct zr_item *it);
/* Members of these dictionaries, in any spelling. */
const json_t *zr_nc_dims(const json_t *group);
const json_t *zr_nc_vars(const json_t *group);
const json_t *zr_nc_refs(const json_t *array);
bool zr_nc_scalar(const json_t *array);

/* zr_nc_type - the dtype of an attribute; NULL: NCZarr has none. */
const char *zr_nc_type(const struct zr_item *it, const char *attr);
/* zr_nc_hidden - whether an attribute is bookkeeping of NCZarr, netCDF or xarray. */
bool zr_nc_hidden(const char *attr);

/* zr_nc_dim - parse a dimension's entry: 5, or {"size": 5, "unlimited": 1}. -EBADMSG. */
int zr_nc_dim(const json_t *v, uint64_t *ret_len, bool *ret_unlimited) NZ_MUST_USE;

/* ---- attributes that no document has (attributes.c) ---- */

int zr_attr_text(struct arena *a, const char *name, const char *text, struct ds_attr *ret,
		 struct err *e) NZ_MUST_USE;

/* ---- the model while it grows ---- */

struct zr_barray {
	struct ds_array a;
	struct zr_array z;
	struct zr_meta *meta;
	const struct zr_item *item;
	const json_t *refs;  /* NCZarr's dimension references, or NULL */
	const json_t *names; /* dimension names, or NULL */
	bool dead;
};

struct zr_bgroup {
	struct ds_group g;
	const struct zr_item *item;
};

struct zr_build {
	struct zr_source *s;
	struct arena *arena;
	struct zr_tree tree;
	struct zr_nc nc;
	struct zr_bgroup *groups; /* parents before children, in the order of the model */
	struct zr_barray *arrays; /* in the order of their groups */
	struct ds_dim *dims;
	size_t n_groups, n_arrays, n_dims, c_groups, c_arrays, c_dims;
};

/* zr_array_make - build an array from its documents, without its dimensions (build_array.c).
 * w->item and the array's name and group are set. */
int zr_array_make(struct zr_build *b, struct zr_barray *w, struct err *e) NZ_MUST_USE;

/* zr_attrs_make - the attributes in the documents of a group or array, with room for `more`. like:
 * as for zr_attr_make. */
int zr_attrs_make(struct zr_build *b, const struct zr_item *it, const struct dtype *like,
		  uint32_t more, struct ds_attr **ret, uint32_t *ret_n,
		  struct err *e) NZ_MUST_USE;

/* zr_dims - assign the dimensions of all arrays that were not left out (build_dims.c). */
int zr_dims(struct zr_build *b, struct err *e) NZ_MUST_USE;

#endif
