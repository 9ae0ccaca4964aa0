/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.c - the grid of an array's files, with one or several chunks each. */
#include "nczarr/view/grid.h"

#include <errno.h>

void zr_grid_chunks(const struct ds_array *a, struct zr_grid *ret)
{
	*ret = (struct zr_grid){
		.rank = a->rank, .n = a->n_chunks, .len = a->grid, .per = NULL, .slots = 1};
}

/* The chunks of a shard. Of our own shards at most one axis is split: each shard has all chunks of
 * faster axes and one of each slower axis. So the chunks of a shard are consecutive, and only the
 * last shard along the split axis has fewer. Other writers use other shapes. */

#define SLOTS_VARIABLE 4096 /* for elements of unknown size */

int zr_grid_shards(const struct ds_array *a, uint64_t target, struct arena *arena,
		   struct zr_grid *ret, struct err *e)
{
	/* elements of unknown size: a fixed number of chunks */
	uint64_t want =
		a->chunk_bytes > 0 ? u64_max(target / a->chunk_bytes, 1) : SLOTS_VARIABLE;
	uint64_t slots = 1, files = 1;
	uint64_t *len, *per;

	*ret = (struct zr_grid){.rank = a->rank, .n = a->n_chunks, .len = a->grid, .slots = 1};
	want = u64_min(want, ZR_SLOTS_MAX);
	if (want == 1 || a->n_chunks <= 1)
		return 0;
	len = arena_alloc(arena, 2 * (size_t)a->rank, sizeof(*len));
	if (!len)
		return err_nomem(e);
	per = len + a->rank;
	for (uint32_t d = a->rank; d-- > 0;) {
		uint64_t n = a->grid[d], most = u64_min(want / slots, n);

		/* about equal parts: a slot without a chunk takes space in the index */
		len[d] = n / most + (n % most > 0);
		per[d] = n / len[d] + (n % len[d] > 0);
		len[d] = n / per[d] + (n % per[d] > 0);
		slots *= per[d];
		files *= len[d]; /* at most n_chunks */
		if (len[d] > 1)
			want = slots; /* slower axes: one chunk each */
	}
	if (slots > 1)
		*ret = (struct zr_grid){
			.rank = a->rank, .n = files, .len = len, .per = per, .slots = slots};
	return 0;
}

bool zr_grid_layout(const struct ds_array *a, const uint64_t *lens, struct arena *arena,
		    struct zr_grid *ret, int *rc)
{
	uint64_t slots = 1, files = 1;
	uint64_t *len, *per;

	zr_grid_chunks(a, ret);
	for (uint32_t d = 0; d < a->rank; d++)
		if (a->chunk[d] == 0 || lens[d] == 0 || lens[d] % a->chunk[d] ||
		    ckd_mul(&slots, slots, lens[d] / a->chunk[d]) || slots > ZR_SLOTS_MAX)
			return false;
	if (slots <= 1)
		return slots == 1;
	len = arena_alloc(arena, 2 * (size_t)a->rank, sizeof(*len));
	if (!len) {
		*rc = -ENOMEM;
		return false;
	}
	per = len + a->rank;
	for (uint32_t d = 0; d < a->rank; d++) {
		per[d] = lens[d] / a->chunk[d];
		len[d] = a->grid[d] / per[d] + (a->grid[d] % per[d] > 0);
		files *= len[d]; /* at most n_chunks */
	}
	*ret = (struct zr_grid){
		.rank = a->rank, .n = files, .len = len, .per = per, .slots = slots};
	return true;
}

/* grid_cut - the first axis after which a file has all existing chunks, and no empty slots: its
 * chunks along that axis and later ones are consecutive. */
static uint32_t grid_cut(const struct ds_array *a, const struct zr_grid *g)
{
	uint32_t k = g->rank - 1;

	while (k > 0 && g->per[k] == a->grid[k])
		k--;
	return k;
}

uint64_t zr_grid_runs(const struct ds_array *a, const struct zr_grid *g)
{
	uint64_t n = 1;

	for (uint32_t d = g->per && g->rank ? grid_cut(a, g) : 0; d-- > 0;)
		n *= g->per[d];
	return n;
}

/* grid_chunk_of - the chunk of a slot; false: outside the array. *ret_at: its position along axis
 * k. */
static bool grid_chunk_of(const struct ds_array *a, const struct zr_grid *g, uint64_t file,
			  uint64_t slot, uint64_t *ret, uint32_t k, uint64_t *ret_at)
{
	uint64_t linear = 0, stride = 1;

	for (uint32_t d = g->rank; d-- > 0;) {
		uint64_t at = file % g->len[d] * g->per[d] + slot % g->per[d];

		if (at >= a->grid[d])
			return false;
		if (d == k)
			*ret_at = at;
		linear += at * stride; /* < n_chunks */
		stride *= a->grid[d];
		file /= g->len[d];
		slot /= g->per[d];
	}
	*ret = linear;
	return slot == 0;
}

void zr_grid_run(const struct ds_array *a, const struct zr_grid *g, uint64_t file, uint64_t i,
		 uint64_t *ret_first, uint64_t *ret_slot, uint64_t *ret_n)
{
	uint64_t row = 1, at = 0;
	uint32_t k;

	*ret_first = file;
	*ret_slot = 0;
	*ret_n = 1;
	if (!g->per || g->rank == 0)
		return;
	k = grid_cut(a, g);
	for (uint32_t d = k + 1; d < g->rank; d++)
		row *= g->per[d];
	*ret_slot = i * g->per[k] * row;
	*ret_n = 0;
	if (grid_chunk_of(a, g, file, *ret_slot, ret_first, k, &at))
		*ret_n = u64_min(g->per[k], a->grid[k] - at) * row;
}

uint64_t zr_grid_file(const struct ds_array *a, const struct zr_grid *g, uint64_t chunk)
{
	uint64_t file = 0, stride = 1;

	if (!g->per || g->rank == 0)
		return chunk;
	for (uint32_t d = g->rank; d-- > 0;) {
		file += chunk % a->grid[d] / g->per[d] * stride;
		stride *= g->len[d];
		chunk /= a->grid[d];
	}
	return file;
}

bool zr_grid_slot(const struct ds_array *a, const struct zr_grid *g, uint64_t file,
		  uint64_t slot, uint64_t *ret_chunk)
{
	uint64_t at;

	if (slot >= g->slots)
		return false;
	if (g->per && g->rank)
		return grid_chunk_of(a, g, file, slot, ret_chunk, 0, &at);
	*ret_chunk = file;
	return true;
}
