/* SPDX-License-Identifier: BSD-3-Clause */
/* vlen.h - elements of variable size as numcodecs' filters for object arrays store them, and the
 * neutral body that other modules use: for each element its length in bytes as a little-endian
 * 32-bit number, then its bytes (strings: UTF-8; arrays: their base elements).
 *
 * These are not part of a codec_chain: a chain begins with their result. No state, any thread.
 * Spec: https://numcodecs.readthedocs.io/en/stable/vlen.html, .../json.html */
#ifndef CODECS_VLEN_VLEN_H
#define CODECS_VLEN_VLEN_H

#include "base/core/buf.h"
#include "base/core/cursor.h"
#include "base/core/err.h"

enum codec_vlen {
	CODEC_VLEN_NONE,
	CODEC_VLEN_UTF8,   /* vlen-utf8, also Zarr v3's: strings */
	CODEC_VLEN_BYTES,  /* vlen-bytes, also Zarr v3's */
	CODEC_VLEN_ARRAY,  /* vlen-array: arrays of numbers */
	CODEC_VLEN_JSON2,  /* json2: a JSON list of strings, then "|O", then the shape */
};

#define CODEC_VLEN_HEAD 4u  /* bytes before the body, except in json2: the count, little-endian */

/* codec_vlen_find - the filter with this numcodecs id (n bytes), or NONE. codec_vlen_id - its
 * id. */
enum codec_vlen codec_vlen_find(const char *id, size_t n);
const char *codec_vlen_id(enum codec_vlen v);

/* codec_vlen_check - check the bytes of element i. size: bytes of a base element; 1 where there is
 * none. Returns 0; -EBADMSG no UTF-8, or a partial base element; -ERANGE longer than 32 bits
 * allow. */
int codec_vlen_check(enum codec_vlen v, uint32_t size, const uint8_t *p, size_t len, uint64_t i,
		     struct err *e) NZ_MUST_USE;

/* codec_vlen_put - append a checked element to a body. */
void codec_vlen_put(const uint8_t *p, size_t len, struct buf *out);

/* codec_vlen_next - the next element of a body. Borrowed; NULL, with the body marked bad, when it
 * is truncated. */
const uint8_t *codec_vlen_next(struct slice *body, uint32_t *ret_len);

/* codec_vlen_decode - the body of n stored elements.
 * room  is cleared, and used where the body is not part of the stored bytes; its ceiling limits the
 *       body
 * ret   *ret_len bytes, borrowed from in or room
 * Returns 0; -EBADMSG not n elements, damaged, or as codec_vlen_check; -ERANGE; -ENOMEM. */
int codec_vlen_decode(enum codec_vlen v, uint32_t size, const uint8_t *in, size_t len, uint64_t n,
		      struct buf *room, const uint8_t **ret, size_t *ret_len,
		      struct err *e) NZ_MUST_USE;

/* codec_vlen_encode - append what numcodecs stores for a body whose elements are an array of this
 * shape (rank 0: one element); json2 with its default options. On error out is unchanged. Returns
 * 0; -EBADMSG not a body of so many elements, or as codec_vlen_check; -ERANGE more than 2^32 - 1
 * elements, or out is full; -EOPNOTSUPP a scalar in json2, for which numcodecs has no form;
 * -ENOMEM. */
int codec_vlen_encode(enum codec_vlen v, uint32_t size, const uint8_t *body, size_t len,
		      uint32_t rank, const uint64_t *shape, struct buf *out,
		      struct err *e) NZ_MUST_USE;

#endif
