/* SPDX-License-Identifier: BSD-3-Clause */
/* vlen.h - elements without a fixed size as numcodecs' filters for object arrays store them, and
 * the neutral body that everything else here knows: for each element its length in bytes as a
 * little-endian 32-bit number, then its bytes (texts: UTF-8; lists: their base elements).
 *
 * These are no links of a codec_chain: what they make of elements is where a chain begins. No
 * state, any thread.
 * Spec: https://numcodecs.readthedocs.io/en/stable/vlen.html, .../json.html */
#ifndef CODECS_VLEN_VLEN_H
#define CODECS_VLEN_VLEN_H

#include "base/core/buf.h"
#include "base/core/cursor.h"
#include "base/core/err.h"

enum codec_vlen {
	CODEC_VLEN_NONE,
	CODEC_VLEN_UTF8,   /* vlen-utf8, also Zarr v3's: texts */
	CODEC_VLEN_BYTES,  /* vlen-bytes, also Zarr v3's */
	CODEC_VLEN_ARRAY,  /* vlen-array: lists of numbers */
	CODEC_VLEN_JSON2,  /* json2: a JSON list of texts, then "|O", then the shape */
};

#define CODEC_VLEN_HEAD 4u  /* bytes in front of the body of all but json2: the count */

/* codec_vlen_find - the filter with this numcodecs id (n bytes); NONE. codec_vlen_id is its id. */
enum codec_vlen codec_vlen_find(const char *id, size_t n);
const char *codec_vlen_id(enum codec_vlen v);

/* codec_vlen_put_head - what stands in front of a body of n elements. */
void codec_vlen_put_head(uint32_t n, uint8_t out[CODEC_VLEN_HEAD]);

/* codec_vlen_check - whether the bytes of element i may be one. size: bytes of a base element; 1
 * where there is none. Returns 0; -EBADMSG no UTF-8, or a part of a base element; -ERANGE longer
 * than 32 bits say. */
int codec_vlen_check(enum codec_vlen v, uint32_t size, const uint8_t *p, size_t len, uint64_t i,
		     struct err *e) NZ_MUST_USE;

/* codec_vlen_put - append one element that was checked to a body. */
void codec_vlen_put(const uint8_t *p, size_t len, struct buf *out);

/* codec_vlen_next - the next element of a body. Borrowed; NULL, and the body is bad, when it is
 * truncated. */
const uint8_t *codec_vlen_next(struct slice *body, uint32_t *ret_len);

/* codec_vlen_decode - the stored bytes of n elements to their body.
 * room  is cleared, and used where the body does not stand in the stored bytes; its ceiling is what
 *       the body may take
 * ret   *ret_len bytes, borrowed from in or room
 * Returns 0; -EBADMSG not n elements, damaged, or as codec_vlen_check; -ERANGE; -ENOMEM. */
int codec_vlen_decode(enum codec_vlen v, uint32_t size, const uint8_t *in, size_t len, uint64_t n,
		      struct buf *room, const uint8_t **ret, size_t *ret_len,
		      struct err *e) NZ_MUST_USE;

/* codec_vlen_encode - append what numcodecs stores for the elements of a body, those of an array
 * with this shape (rank 0: one element); json2 with its default options. On error out is as it
 * was. Returns 0; -EBADMSG the body is not one of so many elements, or as codec_vlen_check; -ERANGE
 * more than 2^32 - 1 elements, or out is full; -EOPNOTSUPP a scalar in json2, for which numcodecs
 * has no form; -ENOMEM. */
int codec_vlen_encode(enum codec_vlen v, uint32_t size, const uint8_t *body, size_t len,
		      uint32_t rank, const uint64_t *shape, struct buf *out,
		      struct err *e) NZ_MUST_USE;

#endif
