/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.c - arithmetic of chunk grids and boxes. */
#include "translate/model/grid.h"

#include <string.h>

void grid_coords(uint32_t rank, const uint64_t *dims, uint64_t linear, uint64_t *ret)
{
	for (uint32_t d = rank; d-- > 0;) {
		ret[d] = dims[d] ? linear % dims[d] : 0;
		linear = dims[d] ? linear / dims[d] : 0;
	}
}

uint64_t grid_linear(uint32_t rank, const uint64_t *dims, const uint64_t *at)
{
	uint64_t linear = 0;

	for (uint32_t d = 0; d < rank; d++)
		linear = linear * dims[d] + at[d];
	return linear;
}

void grid_chunk(uint32_t rank, const uint64_t *shape, const uint64_t *chunk,
		const uint64_t *coords, struct grid_box *ret)
{
	for (uint32_t d = 0; d < rank; d++) {
		ret->lo[d] = coords[d] * chunk[d];
		ret->hi[d] = ret->lo[d] + u64_min(chunk[d], shape[d] - ret->lo[d]);
	}
}

void grid_chunks(uint32_t rank, const struct grid_box *b, const uint64_t *chunk,
		 struct grid_box *ret)
{
	for (uint32_t d = 0; d < rank; d++) {
		ret->lo[d] = b->lo[d] / chunk[d];
		ret->hi[d] = (b->hi[d] - 1) / chunk[d] + 1;
	}
}

bool grid_both(uint32_t rank, const struct grid_box *a, const struct grid_box *b,
	       struct grid_box *ret)
{
	bool any = true;

	for (uint32_t d = 0; d < rank; d++) {
		ret->lo[d] = u64_max(a->lo[d], b->lo[d]);
		ret->hi[d] = u64_min(a->hi[d], b->hi[d]);
		any = any && ret->lo[d] < ret->hi[d];
	}
	return any;
}

bool grid_next(uint32_t rank, const struct grid_box *b, uint64_t *at)
{
	for (uint32_t d = rank; d-- > 0;) {
		if (++at[d] < b->hi[d])
			return true;
		at[d] = b->lo[d];
	}
	return false;
}

/* grid_offset - the number of an element in a block. */
static uint64_t grid_offset(uint32_t rank, const struct grid_block *k, const uint64_t *at)
{
	uint64_t n = 0;

	for (uint32_t d = 0; d < rank; d++)
		n = n * k->dims[d] + (at[d] - k->origin[d]);
	return n;
}

void grid_copy(uint32_t rank, size_t elem, const struct grid_box *b,
	       const struct grid_block *from, const void *in, const struct grid_block *to,
	       void *out)
{
	uint64_t at[DS_RANK_MAX], run = 1;
	uint32_t outer = rank;

	/* trailing dimensions that both blocks have whole, and the one before, are one run */
	while (outer > 0) {
		const uint64_t len = b->hi[outer - 1] - b->lo[outer - 1];

		outer--;
		run *= len;
		if (len != from->dims[outer] || len != to->dims[outer])
			break;
	}
	if (rank > 0)
		memcpy(at, b->lo, rank * sizeof(*at));
	do
		memcpy((uint8_t *)out + grid_offset(rank, to, at) * elem,
		       (const uint8_t *)in + grid_offset(rank, from, at) * elem,
		       (size_t)run * elem);
	while (grid_next(outer, b, at));
}

/* ---- arrays that a file stores in one piece ---- */

/* near_divisor - the divisor of len that is nearest to want, within a factor of two; else want. */
static uint64_t near_divisor(uint64_t len, uint64_t want)
{
	for (uint64_t d = 0; d <= want / 2 && d < 4096; d++) {
		if (len % (want - d) == 0)
			return want - d;
		if (want + d <= len && len % (want + d) == 0)
			return want + d;
	}
	return want;
}

void ds_split_chunks(const uint64_t *shape, uint32_t rank, uint64_t elem, uint64_t target,
		     uint64_t *ret_chunk)
{
	uint64_t row = u64_max(elem, 1), rows, next;
	uint32_t d = rank;

	target = u64_max(target, 1);
	for (uint32_t i = 0; i < rank; i++)
		ret_chunk[i] = 1;
	/* whole trailing dimensions, as long as what they make up stays near the target */
	while (d > 0) {
		uint64_t len = u64_max(shape[d - 1], 1);

		if (ckd_mul(&next, row, len) || next / 2 >= target)
			break;
		ret_chunk[--d] = len;
		row = next;
	}
	if (d == 0)
		return;
	rows = u64_max(target / row, 1);
	if (rows < shape[d - 1])
		ret_chunk[d - 1] = near_divisor(shape[d - 1], rows);
	else
		ret_chunk[d - 1] = shape[d - 1];
}

uint64_t ds_split_range(const struct ds_array *a, uint32_t axis, const uint64_t *at,
			uint64_t *ret_off, uint64_t *ret_len)
{
	uint64_t off = 0, len = a->type.size, stride = a->type.size;

	for (uint32_t i = a->rank; i-- > axis;) {
		uint64_t from = at[i] * a->chunk[i];

		off += from * stride;
		len *= u64_min(a->chunk[i], a->shape[i] - from);
		stride *= a->shape[i];
	}
	*ret_off = off;
	*ret_len = len;
	return stride;
}
