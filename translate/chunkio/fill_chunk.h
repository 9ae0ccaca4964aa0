/* SPDX-License-Identifier: BSD-3-Clause */
/* fill_chunk.h - the bytes of presented chunks that are not stored ones: chunks that were never
 * written, and elements without a fixed size. No locks, no I/O. */
#ifndef TRANSLATE_CHUNKIO_FILL_CHUNK_H
#define TRANSLATE_CHUNKIO_FILL_CHUNK_H

#include "translate/plan/plan.h"
#include "translate/contract/span.h"

#define FRAME_BYTES_MAX ((uint64_t)1 << 30)  /* a presented chunk of elements without a fixed
					      * size, or made of them: its size is not in the
					      * file's metadata, so there must be a limit */

enum fill_kind {
	FILL_TILED,   /* head, then `bytes` repeated */
	FILL_ENCODED, /* `bytes` is the chunk, really encoded */
	FILL_FRAMED,  /* `bytes` repeated gives the elements, which are made into a chunk each time:
	               * by codec_chain_frame, under an ENCODE plan by codec_chain_encode */
};

/* fill - a never-written chunk of one array as presented; immutable once made. */
struct fill {
	enum fill_kind kind;
	bool zeros;          /* TILED: all bytes after head are 0 */
	uint64_t size;       /* bytes of the presented chunk */
	size_t head_len;     /* TILED: 0, or 4 for an element count */
	uint8_t head[4];
	size_t n;            /* of bytes */
	uint8_t bytes[];
};

/* frame_count - elements of one whole chunk, outside the shape included.
 * Returns 0; -ERANGE when there are more than 32 bits count. */
int frame_count(const struct ds_array *a, uint64_t *ret, struct err *e) NZ_MUST_USE;

/* frame_size - n elements of `each` bytes after `head` bytes.
 * Returns 0; -ERANGE beyond FRAME_BYTES_MAX. */
int frame_size(uint64_t n, uint64_t each, uint64_t head, uint64_t *ret,
	       struct err *e) NZ_MUST_USE;

/* frame_fill_make - the never-written chunk of an array under a plan that presents one.
 * Returns 0 with *ret new (free it); -ERANGE, -ENOMEM. */
int frame_fill_make(const struct ds_array *a, const struct plan *p, struct fill **ret,
		    struct err *e) NZ_MUST_USE;

/* frame_fill_tile - bytes [off, off+n) of f->bytes repeated without end. */
void frame_fill_tile(const struct fill *f, uint64_t off, uint8_t *out, size_t n);

/* frame_fill_span - bytes [off, off+n) of the presented chunk, n > 0 and inside it. f outlives
 * the span. Not for FILL_FRAMED. Returns 0 or -ENOMEM. */
int frame_fill_span(const struct fill *f, uint64_t off, size_t n, struct span *ret,
		    struct err *e) NZ_MUST_USE;

/* frame_vlen_check - that body is what source_read_vlen promises for n elements.
 * Returns 0 with the longest element's bytes in *ret_max (may be NULL), or -EBADMSG. */
int frame_vlen_check(const uint8_t *body, size_t len, uint64_t n, uint32_t *ret_max,
		     struct err *e) NZ_MUST_USE;

/* frame_texts - the n elements of such a checked body, which owns their bytes; *ret is new.
 * frame_put_texts - append a body of n elements. */
int frame_texts(const struct buf *body, uint64_t n, struct ds_text **ret,
		struct err *e) NZ_MUST_USE;
void frame_put_texts(const struct ds_text *v, uint64_t n, struct buf *out);

/* frame_fixed - strings of such a checked body, each cut (between characters) or padded with NUL to
 * `size` bytes; out has room for n * size. */
void frame_fixed(const uint8_t *body, size_t len, uint64_t n, uint32_t size, uint8_t *out);

#endif
