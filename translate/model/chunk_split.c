/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_split.c - chunks for arrays that a file stores in one piece. */
#include "translate/model/chunk_split.h"

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
