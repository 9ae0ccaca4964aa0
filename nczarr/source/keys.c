/* SPDX-License-Identifier: BSD-3-Clause */
/* keys.c - the meaning of a key of the store: a document of a group or array, or chunks of an
 * array. The store is not accessed: the object may not exist.
 *
 * Groups and arrays are found by their directory, in a list that is sorted once. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nczarr/chunk_key.h"
#include "nczarr/nczarr.h"
#include "nczarr/source/gather_int.h"

static int keys_by_key(const void *a, const void *b)
{
	return strcmp(((const struct zr_node_key *)a)->key, ((const struct zr_node_key *)b)->key);
}

void zr_nodes_sort(struct zr_source *s)
{
	qsort(s->nodes, s->n_nodes, sizeof(*s->nodes), keys_by_key);
}

static int keys_compare(const struct zr_node_key *x, const char *key, size_t n)
{
	int rc = strncmp(x->key, key, n);

	return rc ? rc : x->key[n] != '\0';
}

/* keys_find - the group or array whose directory is the first n bytes of key: both have the same
 * if the root is the array. */
static const struct zr_node_key *keys_find(const struct zr_source *s, const char *key, size_t n,
					   bool array)
{
	size_t lo = 0;

	BISECT(lo, s->n_nodes, mid, keys_compare(&s->nodes[mid], key, n) < 0);
	for (; lo < s->n_nodes && keys_compare(&s->nodes[lo], key, n) == 0; lo++)
		if (!array || s->nodes[lo].array != DS_NONE)
			return &s->nodes[lo];
	return NULL;
}

/* ---- chunks ---- */

bool zr_objects_grid(const struct zr_meta *m, uint64_t *grid, uint64_t *per)
{
	for (uint32_t d = 0; d < m->rank; d++) {
		grid[d] = m->shape[d] / m->chunk[d] + (m->shape[d] % m->chunk[d] != 0);
		per[d] = 1;
		for (const struct zr_shard *sh = m->shard; sh; sh = sh->next)
			if (sh->grid[d] == 0 || ckd_mul(&per[d], per[d], sh->grid[d]))
				return false;
	}
	return true;
}

/* chunk_key - whether a name is an object of an array; emit all chunks of the model in it. */
static bool chunk_key(struct zr_source *s, uint32_t array, const char *name,
		      bool (*emit)(void *arg, uint32_t array, uint64_t linear), void *arg)
{
	const struct zr_meta *m = s->arrays[array].meta;
	const struct ds_array *a = &s->base.ds.arrays[array];
	uint64_t grid[DS_RANK_MAX + 1], per[DS_RANK_MAX + 1], at[DS_RANK_MAX + 1];
	struct grid_box box;

	if (!zr_objects_grid(m, grid, per) || !zr_coords_parse(m, name, grid, at))
		return false;
	for (uint32_t d = 0; d < a->rank; d++) {
		box.lo[d] = at[d] * per[d];
		box.hi[d] = u64_min(a->grid[d], box.lo[d] + per[d]);
		at[d] = box.lo[d];
		if (box.lo[d] >= box.hi[d])
			return true;
	}
	while (emit && emit(arg, array, ds_chunk_linear(a, at)) && grid_next(a->rank, &box, at))
		;
	return true;
}

/* ---- documents ---- */

bool zarr_doc_key(const char *key)
{
	const char *name = store_key_name(key);

	return zr_doc_of(name) != DOC_N || strcmp(name, ".zmetadata") == 0;
}

void zarr_source_layout(struct source *s, uint32_t array, struct plan_layout *ret)
{
	const struct zr_meta *m = zr_of(s)->arrays[array].meta;

	const struct zr_shard *x = m->shard;

	*ret = (struct plan_layout){.nested = zr_is_nested(m), .lead = m->prefixed};
	if (!x)
		return;
	ret->rank = m->rank;
	ret->shard = m->chunk;
	if (x->next)
		ret->strange = "nested shards";
	else if (x->order)
		ret->strange = "shards in another order than 'C'";
	else if (x->outer.n)
		ret->strange = "codecs applied to whole shards";
	else if (x->index_first)
		ret->strange = "index_location \"start\"";
	else if (x->index_big || x->index.n != 1)
		ret->strange = "index_codecs other than bytes (little) and crc32c";
	else if (x->n > ZR_SLOTS_MAX)
		ret->strange = "shards of this many chunks";
	else if (m->tail || m->as_bytes)
		ret->strange = "shards of elements of this type";
}

enum zarr_key_kind zarr_source_key(struct source *src, const char *key,
				   bool (*emit)(void *arg, uint32_t array, uint64_t linear),
				   void *arg)
{
	struct zr_source *s = zr_of(src);
	size_t n = store_key_parent_len(key);

	if (zarr_doc_key(key))
		return keys_find(s, key, n, false) ? ZARR_KEY_DOC : ZARR_KEY_OTHER;
	/* the array's directory may be some levels up */
	for (;;) {
		const struct zr_node_key *x = keys_find(s, key, n, true);

		if (x)
			return chunk_key(s, x->array, key + n + (n > 0), emit, arg)
				       ? ZARR_KEY_CHUNK
				       : ZARR_KEY_OTHER;
		if (n == 0)
			return ZARR_KEY_OTHER;
		while (n > 0 && key[n - 1] != '/')
			n--;
		n -= n > 0;
	}
}

/* Keys of stored objects: "t/3.0", "t/3/0", "t/c/3/0", and the key of a scalar.
 *
 * Coordinates are in the order of the array's axes, independent of the order of elements in an
 * object. Spec: Zarr v2, "Chunks"; Zarr v3, "Chunk key encoding". */

/* keys_long - n: bytes of a key that was put into a buffer for the longest one. */
static int keys_long(const struct zr_meta *m, size_t n, struct err *e)
{
	return n <= STORE_KEY_MAX
		       ? 0
		       : err_set(e, -ERANGE,
				 "'%.200s': the key of a chunk would be longer than %d bytes",
				 m->key, STORE_KEY_MAX);
}

int zr_level_key(const struct zr_meta *m, const uint64_t *coords, uint32_t level,
		 char out[ZR_OBJECT_KEY], struct err *e)
{
	const uint32_t lead = m->prefixed && (level > 0 || zr_is_nested(m));
	size_t n = strlen(m->key);

	memcpy(out, m->key, n + 1);
	for (uint32_t i = 0; i < lead + level && n <= STORE_KEY_MAX; i++) {
		const char between[] = {i ? m->separator : '/', '\0'};
		const char *sep = i || n ? between : "";

		if (i < lead)
			n += (size_t)snprintf(out + n, ZR_OBJECT_KEY - n, "%sc", sep);
		else
			n += (size_t)snprintf(out + n, ZR_OBJECT_KEY - n, "%s%" PRIu64, sep,
					      coords[i - lead]);
	}
	return keys_long(m, n, e);
}

int zr_object_key(const struct zr_meta *m, const uint64_t *coords, char out[ZR_OBJECT_KEY],
		  struct err *e)
{
	if (m->rank > 0)
		return zr_level_key(m, coords, m->rank, out, e);
	return keys_long(m,
			 (size_t)snprintf(out, ZR_OBJECT_KEY, "%s%s%s", m->key,
					  *m->key ? "/" : "", m->prefixed ? "c" : "0"),
			 e);
}

/* objects_of - the objects of an array as a grid of files. A length of 0 has no coordinates, so
 * that their number does not matter. */
static struct zr_grid objects_of(const struct zr_meta *m, const uint64_t *grid)
{
	return (struct zr_grid){.keys = {.nested = zr_is_nested(m), .lead = m->prefixed},
				.rank = m->rank,
				.n = 1,
				.len = grid};
}

int zr_name_parse(const struct zr_meta *m, const uint64_t *grid, uint32_t level,
		  const char *name, uint64_t *ret)
{
	const struct zr_grid g = objects_of(m, grid);
	size_t n = strlen(name);

	if (zr_is_nested(m))
		return level < m->rank ? zr_key_coord(name, n, grid[level], ret) : -EINVAL;
	return zr_key_parse(&g, name, n, ret);
}

bool zr_coords_parse(const struct zr_meta *m, const char *name, const uint64_t *grid,
		     uint64_t *ret)
{
	const struct zr_grid g = objects_of(m, grid);
	uint64_t linear;

	if (zr_key_parse(&g, name, strlen(name), &linear))
		return false;
	grid_coords(m->rank, grid, linear, ret);
	return true;
}
