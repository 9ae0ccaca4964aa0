/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_split.h - chunks for arrays that a file stores in one piece: ranges of its bytes. */
#ifndef TRANSLATE_MODEL_CHUNK_SPLIT_H
#define TRANSLATE_MODEL_CHUNK_SPLIT_H

#include "base/core/util.h"

/* ds_split_chunks - choose chunk lengths for an array of `rank` dimensions: whole rows of about
 * `target` bytes. Trailing dimensions are whole where that fits. The last chunk may be partial,
 * unless a length near the target divides the dimension.
 * shape      rank entries, elements; a length of 0 counts as 1
 * elem       bytes of an element
 * ret_chunk  rank entries, each >= 1 and at most u64_max(shape[i], 1) */
void ds_split_chunks(const uint64_t *shape, uint32_t rank, uint64_t elem, uint64_t target,
		     uint64_t *ret_chunk);

#endif
