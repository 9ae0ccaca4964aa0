/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_split.h - chunks for arrays that a file stores in one piece: ranges of its bytes. */
#ifndef TRANSLATE_MODEL_CHUNK_SPLIT_H
#define TRANSLATE_MODEL_CHUNK_SPLIT_H

#include "base/core/util.h"
#include "translate/model/dataset.h"

/* ds_split_chunks - choose chunk lengths for an array of `rank` dimensions: whole rows of about
 * `target` bytes. Trailing dimensions are whole where that fits. The last chunk may be partial,
 * unless a length near the target divides the dimension.
 * shape      rank entries, elements; a length of 0 counts as 1
 * elem       bytes of an element
 * ret_chunk  rank entries, each >= 1 and at most u64_max(shape[i], 1) */
void ds_split_chunks(const uint64_t *shape, uint32_t rank, uint64_t elem, uint64_t target,
		     uint64_t *ret_chunk);

/* ds_split_range - locate the chunk at chunk coordinates `at` in an array that is stored in one
 * piece, in C order: its offset from the first byte, and its bytes without elements outside the
 * shape. The chunks must be those of ds_split_chunks. Axes before `axis` do not count: the piece
 * holds one position of them. No product overflows in a finished array (ds_array_finish).
 * Returns the bytes of the piece. */
uint64_t ds_split_range(const struct ds_array *a, uint32_t axis, const uint64_t *at,
			uint64_t *ret_off, uint64_t *ret_len);

#endif
