/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - access to a Zarr view for writers of reference files (refs/); private to nczarr. */
#ifndef NCZARR_VIEW_VIEW_H
#define NCZARR_VIEW_VIEW_H

#include "nczarr/view/visible.h"

/* zr_view_visible - the visible nodes of a view of zarr_view_open(); NULL: another kind of view.
 * Borrowed. */
const struct zr_visible *zr_view_visible(struct view *v);

/* zr_view_docs - the documents of a group's or an array's directory. */
const struct zr_docs *zr_view_docs(struct view *v, bool is_array, uint32_t ord);

/* zr_view_stored - whether an existing chunk is presented as stored: then *ret is its location,
 * with ret->len after truncation. Otherwise ret->where is CHUNK_SYNTH, or CHUNK_ABSENT: it is
 * presented as never written. Errors as of chunkio_stat(). */
int zr_view_stored(struct view *v, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		   struct err *e) NZ_MUST_USE;
/* zr_view_next - chunkio_next(); a chunk that it returns may still turn out to be absent. */
int zr_view_next(struct view *v, uint32_t array, uint64_t from, uint64_t *ret,
		 struct err *e) NZ_MUST_USE;

/* zr_view_file - append all bytes of a document or chunk. -ERANGE: over the limit of out. */
int zr_view_file(struct view *v, const struct zr_node *n, struct buf *out,
		 struct err *e) NZ_MUST_USE;

/* ---- for view.c and its tests ---- */

/* zr_xattr - append the value of an attribute of an array's directory, without a NUL; name NULL:
 * the names of all, NUL-terminated. a: NULL for all other nodes, which have none. version: of the
 * Zarr format. Returns 0; -ENODATA no such attribute; -E2BIG, -ENOMEM if out has no room. */
int zr_xattr(const struct ds_array *a, int version, const char *name, struct buf *out,
	     struct err *e);

#endif
