/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h - chunk grids, and boxes of elements in them, in C order. No memory, no errors: lengths
 * are those of finished arrays (ds_array_finish), whose products were checked. */
#ifndef TRANSLATE_MODEL_GRID_H
#define TRANSLATE_MODEL_GRID_H

#include "translate/model/dataset.h"

/* grid_box - elements from lo up to, but not including, hi in each dimension. */
struct grid_box {
	uint64_t lo[DS_RANK_MAX], hi[DS_RANK_MAX];
};

/* grid_coords - the coordinates of element `linear` of a block; grid_linear - the reverse. */
void grid_coords(uint32_t rank, const uint64_t *dims, uint64_t linear, uint64_t *ret);
uint64_t grid_linear(uint32_t rank, const uint64_t *dims, const uint64_t *at);

/* grid_chunk - the elements of a chunk that lie inside the shape. */
void grid_chunk(uint32_t rank, const uint64_t *shape, const uint64_t *chunk,
		const uint64_t *coords, struct grid_box *ret);
/* grid_chunks - the chunks that overlap a box, which is not empty, as a box of chunks. */
void grid_chunks(uint32_t rank, const struct grid_box *b, const uint64_t *chunk,
		 struct grid_box *ret);
/* grid_both - the intersection of two boxes. false: it is empty. */
bool grid_both(uint32_t rank, const struct grid_box *a, const struct grid_box *b,
	       struct grid_box *ret);
/* grid_next - advance from one element of a box, which is not empty, to the next; lo is the first.
 * Returns false after the last one, and `at` is the first again. */
bool grid_next(uint32_t rank, const struct grid_box *b, uint64_t *at);

/* grid_block - a block of elements in memory: the coordinates of its first element, in those of the
 * box, modulo 2^64, and the lengths of the block. */
struct grid_block {
	const uint64_t *origin, *dims;
};

/* grid_copy - copy the elements of a box, which is not empty, from one block to another. elem:
 * bytes of an element. */
void grid_copy(uint32_t rank, size_t elem, const struct grid_box *b,
	       const struct grid_block *from, const void *in, const struct grid_block *to,
	       void *out);

/* ---- chunks for arrays that a file stores in one piece: ranges of its bytes ---- */

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
