/* SPDX-License-Identifier: BSD-3-Clause */
/* band.c - which new chunks are assembled together, and which inner chunks they need. No memory, no
 * I/O. Lengths are those of finished arrays (ds_array_finish), whose products were checked. */
#include "translate/rechunk/rechunk_int.h"

#include <string.h>

/* ceil_div - a > 0. */
static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a - 1) / b + 1;
}

/* band_of - the band of a new chunk. */
static void band_of(const struct ds_array *in, const struct ds_array *a, const uint64_t *coords,
		    struct grid_box *ret)
{
	for (uint32_t d = 0; d < a->rank; d++) {
		const uint64_t w = a->chunk[d], c = in->chunk[d];
		uint64_t lo, hi;

		ret->lo[d] = coords[d];
		ret->hi[d] = coords[d] + 1;
		if (w >= c)
			continue;
		lo = coords[d] * w / c *
		     c; /* where the inner chunk begins in which this one does */
		hi = lo + u64_min(c, a->shape[d] - lo);
		ret->lo[d] = lo ? ceil_div(lo, w) : 0;
		ret->hi[d] = ceil_div(hi, w);
	}
}

/* elements - the elements of a box of chunks that is not empty. */
static void elements(const struct ds_array *a, const struct grid_box *b, struct grid_box *ret)
{
	for (uint32_t d = 0; d < a->rank; d++) {
		const uint64_t last = (b->hi[d] - 1) * a->chunk[d];

		ret->lo[d] = b->lo[d] * a->chunk[d];
		ret->hi[d] = last + u64_min(a->chunk[d], a->shape[d] - last);
	}
}

/* per_run - new chunks in a run. */
static uint32_t per_run(const struct ds_array *a, uint64_t bytes)
{
	const uint64_t n = bytes / (a->chunk_bytes + RECHUNK_ENTRY);

	return (uint32_t)u64_min(u64_max(n, 1), RECHUNK_RUN_MAX);
}

/* run_box - the smallest box around a run: below the first dimension where its ends differ, the
 * band is whole. */
static void run_box(const struct ds_array *a, struct rechunk_run *run)
{
	uint64_t low[DS_RANK_MAX] = {0}, high[DS_RANK_MAX] = {0};
	bool differ = false;

	grid_coords(a->rank, run->dims, run->first, low);
	grid_coords(a->rank, run->dims, run->first + run->n - 1, high);
	run->box = run->band;
	for (uint32_t d = 0; d < a->rank && !differ; d++) {
		run->box.lo[d] = run->band.lo[d] + low[d];
		run->box.hi[d] = run->band.lo[d] + high[d] + 1;
		differ = low[d] != high[d];
	}
}

void rechunk_run_of(const struct ds_array *in, const struct ds_array *a, uint64_t linear,
		    uint64_t bytes, struct rechunk_run *ret)
{
	const uint32_t per = per_run(a, bytes);
	uint64_t coords[DS_RANK_MAX] = {0}, at[DS_RANK_MAX] = {0};
	struct grid_box all;

	ds_chunk_coords(a, linear, coords);
	band_of(in, a, coords, &ret->band);
	ret->n_band = 1;
	for (uint32_t d = 0; d < a->rank; d++) {
		ret->dims[d] = ret->band.hi[d] - ret->band.lo[d];
		ret->n_band *= ret->dims[d]; /* part of n_chunks, which does not overflow */
		at[d] = coords[d] - ret->band.lo[d];
	}
	ret->first = grid_linear(a->rank, ret->dims, at) / per * per;
	ret->n = (uint32_t)u64_min(per, ret->n_band - ret->first);
	run_box(a, ret);
	elements(a, &ret->box, &all);
	grid_chunks(a->rank, &all, in->chunk, &ret->inner);
}

uint32_t rechunk_run_at(const struct rechunk_run *run, uint32_t rank, const uint64_t *coords)
{
	uint64_t n = 0;

	for (uint32_t d = 0; d < rank; d++)
		n = n * run->dims[d] + (coords[d] - run->band.lo[d]);
	return n >= run->first && n - run->first < run->n ? (uint32_t)(n - run->first)
							  : UINT32_MAX;
}

uint64_t rechunk_run_linear(const struct rechunk_run *run, const struct ds_array *a, uint32_t i,
			    uint64_t *ret_coords)
{
	grid_coords(a->rank, run->dims, run->first + i, ret_coords);
	for (uint32_t d = 0; d < a->rank; d++)
		ret_coords[d] += run->band.lo[d];
	return ds_chunk_linear(a, ret_coords);
}

void rechunk_over(const struct ds_array *of, const struct ds_array *by, const uint64_t *coords,
		  struct grid_box *ret)
{
	struct grid_box one;

	grid_chunk(by->rank, by->shape, by->chunk, coords, &one);
	grid_chunks(by->rank, &one, of->chunk, ret);
}

uint64_t rechunk_passes(const struct ds_array *in, const struct ds_array *a, uint64_t bytes,
			uint64_t *ret_band)
{
	struct rechunk_run run;

	*ret_band = 0;
	if (a->n_chunks == 0 || dt_is_vlen(&a->type))
		return 1;
	rechunk_run_of(in, a, 0, bytes, &run);
	if (ckd_mul(ret_band, run.n_band, a->chunk_bytes + RECHUNK_ENTRY))
		*ret_band = UINT64_MAX;
	return ceil_div(run.n_band, per_run(a, bytes));
}
