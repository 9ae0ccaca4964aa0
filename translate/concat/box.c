/* box.c - a box of elements from one block to another. */
#include "translate/concat/concat_int.h"

#include <string.h>

/* offset_of - of an element, in elements. */
static uint64_t offset_of(uint32_t rank, const uint64_t *dims, const uint64_t *at)
{
	uint64_t off = 0;

	for (uint32_t d = 0; d < rank; d++)
		off = off * dims[d] + at[d];
	return off;
}

void join_box(uint32_t rank, size_t elem, const uint64_t *lens, const uint8_t *in,
	      const uint64_t *in_dims, const uint64_t *in_at, uint8_t *out,
	      const uint64_t *out_dims, const uint64_t *out_at)
{
	uint64_t from[DS_RANK_MAX], to[DS_RANK_MAX], i[DS_RANK_MAX] = {0};
	uint32_t outer = rank;
	uint64_t run = 1;

	for (uint32_t d = 0; d < rank; d++)
		if (lens[d] == 0)
			return;
	/* trailing dimensions that are whole in both are one run, and the one before it */
	while (outer > 0) {
		outer--;
		run *= lens[outer];
		if (lens[outer] != in_dims[outer] || lens[outer] != out_dims[outer])
			break;
	}
	memcpy(from, in_at, rank * sizeof(*from));
	memcpy(to, out_at, rank * sizeof(*to));
	for (;;) {
		uint32_t d = outer;

		memcpy(out + offset_of(rank, out_dims, to) * elem,
		       in + offset_of(rank, in_dims, from) * elem, (size_t)run * elem);
		while (d > 0) {
			d--;
			i[d]++;
			from[d]++;
			to[d]++;
			if (i[d] < lens[d])
				break;
			from[d] -= i[d];
			to[d] -= i[d];
			i[d] = 0;
			if (d == 0)
				return;
		}
		if (outer == 0)
			return;
	}
}
