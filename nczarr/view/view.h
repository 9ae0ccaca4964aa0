/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - what of a Zarr view is asked for by those who write its documents and the
 * places of its chunks down, instead of serving them (refs/); private to nczarr. */
#ifndef NCZARR_VIEW_VIEW_H
#define NCZARR_VIEW_VIEW_H

#include "nczarr/view/visible.h"

/* zr_view_visible - what a view by zarr_view_open shows; NULL: it is another view. Borrowed. */
const struct zr_visible *zr_view_visible(struct view *v);

/* zr_view_docs - the documents of a group's or an array's directory. */
const struct zr_docs *zr_view_docs(struct view *v, bool is_array, uint32_t ord);

/* zr_view_stored - whether a chunk that exists is presented as it is stored: then *ret is where,
 * ret->len with what is cut off taken away. Else ret->where is CHUNK_SYNTH, or CHUNK_ABSENT: it is
 * shown as it was never written. Errors as chunkio_stat. */
int zr_view_stored(struct view *v, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		   struct err *e) NZ_MUST_USE;
/* zr_view_next - chunkio_next; what it says is there may still be found to be absent. */
int zr_view_next(struct view *v, uint32_t array, uint64_t from, uint64_t *ret,
		 struct err *e) NZ_MUST_USE;

/* zr_view_file - append all bytes of a document or chunk. -ERANGE: they exceed out's ceiling. */
int zr_view_file(struct view *v, const struct zr_node *n, struct buf *out,
		 struct err *e) NZ_MUST_USE;

#endif
