/* SPDX-License-Identifier: BSD-3-Clause */
/* json2_int.h - numcodecs' json2 of strings: private to codecs/vlen/vlen.c. */
#ifndef CODECS_VLEN_JSON2_INT_H
#define CODECS_VLEN_JSON2_INT_H

#include "codecs/vlen/vlen.h"

/* codec_json2_decode - append the body of the n strings of a JSON list; nested lists are not
 * checked against the shape. null is an empty string. As codec_vlen_decode. */
int codec_json2_decode(const uint8_t *in, size_t len, uint64_t n, struct buf *out,
		       struct err *e) NZ_MUST_USE;

/* codec_json2_encode - append the list of a checked body, nested rank >= 1 levels deep. */
void codec_json2_encode(const uint8_t *body, size_t len, uint32_t rank, const uint64_t *shape,
			struct buf *out);

#endif
