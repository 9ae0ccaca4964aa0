/* grid_shards.c - which chunks a shard has. One axis at most is cut by shards: those that change
 * faster are in each shard as a whole, those that change slower one chunk at a time. So the chunks
 * of a shard follow each other, and only the last shard along the cut axis has fewer. */
#include "nczarr/grid.h"

#define SLOTS_VARIABLE 4096 /* of elements whose size is not known before they are read */

/* want_slots - chunks that make up `target` bytes. */
static uint64_t want_slots(const struct ds_array *a, uint64_t target)
{
	uint64_t n = SLOTS_VARIABLE;

	if (a->chunk_bytes > 0)
		n = u64_max(target / a->chunk_bytes, 1);
	return u64_min(n, ZR_SLOTS_MAX);
}

/* even - per and len of an axis of n chunks that is cut into parts of at most `most`, which are
 * about equal: a slot without a chunk costs its place in the index. */
static void even(uint64_t n, uint64_t most, uint64_t *ret_len, uint64_t *ret_per)
{
	*ret_len = n / most + (n % most > 0);
	*ret_per = n / *ret_len + (n % *ret_len > 0);
	*ret_len = n / *ret_per + (n % *ret_per > 0);
}

int zr_grid_shards(const struct ds_array *a, uint64_t target, struct arena *arena,
		   struct zr_grid *ret, struct err *e)
{
	uint64_t want = want_slots(a, target), slots = 1, files = 1;
	uint64_t *len, *per;

	*ret = (struct zr_grid){.rank = a->rank, .n = a->n_chunks, .len = a->grid, .slots = 1};
	if (want == 1 || a->n_chunks <= 1)
		return 0;
	len = arena_alloc(arena, 2 * (size_t)a->rank, sizeof(*len));
	if (!len)
		return err_nomem(e);
	per = len + a->rank;
	for (uint32_t d = a->rank; d-- > 0;) {
		even(a->grid[d], u64_min(want / slots, a->grid[d]), &len[d], &per[d]);
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

/* cut - the first axis along which a shard has several chunks. */
static uint32_t cut(const struct zr_grid *g)
{
	uint32_t k = 0;

	while (k + 1 < g->rank && g->per[k] == 1)
		k++;
	return k;
}

void zr_grid_run(const struct ds_array *a, const struct zr_grid *g, uint64_t file,
		 uint64_t *ret_first, uint64_t *ret_n)
{
	uint64_t row, at;
	uint32_t k;

	*ret_first = file;
	*ret_n = 1;
	if (!g->per || g->rank == 0)
		return;
	k = cut(g);
	row = g->slots / g->per[k]; /* chunks for one step along the axis */
	at = file % g->len[k] * g->per[k];
	*ret_first = (file / g->len[k] * a->grid[k] + at) * row;
	*ret_n = u64_min(g->per[k], a->grid[k] - at) * row;
}

uint64_t zr_grid_file(const struct ds_array *a, const struct zr_grid *g, uint64_t chunk)
{
	uint64_t row;
	uint32_t k;

	if (!g->per || g->rank == 0)
		return chunk;
	k = cut(g);
	row = g->slots / g->per[k];
	return chunk / row / a->grid[k] * g->len[k] + chunk / row % a->grid[k] / g->per[k];
}

bool zr_grid_slot(const struct ds_array *a, const struct zr_grid *g, uint64_t file,
		  uint64_t slot, uint64_t *ret_chunk)
{
	uint64_t first, n;

	zr_grid_run(a, g, file, &first, &n);
	if (slot >= n)
		return false;
	*ret_chunk = first + slot;
	return true;
}
