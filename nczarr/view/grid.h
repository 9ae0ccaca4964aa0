/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h - the files of one array in a Zarr store: one for each chunk, or one for each shard of
 * several chunks. Arithmetic over the frozen model. */
#ifndef NCZARR_VIEW_GRID_H
#define NCZARR_VIEW_GRID_H

#include "translate/model/dataset.h"

/* zr_keys - format of the keys of an array's files. */
struct zr_keys {
	bool nested; /* the separator is '/': components are directories */
	bool lead;   /* keys begin with "c" */
};

struct zr_grid {
	uint32_t rank;
	struct zr_keys keys;  /* set by the caller of the functions that make a grid */
	uint64_t n;           /* files in all: the product of len, 1 for a scalar */
	const uint64_t *len;  /* rank entries: files along each axis; borrowed */
	const uint64_t *per;  /* rank entries: chunks along each axis that one file holds; borrowed.
	                       * NULL: file i is chunk i */
	uint64_t slots;       /* chunks of a file: the product of per; 1 without */
};

/* zr_grid_chunks - a file for each chunk. Borrows from the array. */
void zr_grid_chunks(const struct ds_array *a, struct zr_grid *ret);

/* zr_grid_shards - a file for each shard: adjacent chunks, in C order, of about `target` bytes of
 * elements (of elements without a fixed size: 4096 chunks), at most ZR_SLOTS_MAX, and no more
 * along an axis than exist. The fastest axes are filled first, so that the chunks of a shard are
 * consecutive linear indexes: one run. A shard of one chunk is that chunk: per is NULL, as from
 * zr_grid_chunks(). Memory of arena. Returns 0; -ENOMEM. */
#define ZR_SLOTS_MAX 16384
int zr_grid_shards(const struct ds_array *a, uint64_t target, struct arena *arena,
		   struct zr_grid *ret, struct err *e) NZ_MUST_USE;

/* zr_grid_layout - the files of an array whose writer chose shards of `lens` elements along each
 * axis. false: not a multiple of chunks, or more than ZR_SLOTS_MAX; then ret is as from
 * zr_grid_chunks(), and *rc is -ENOMEM if memory is short. */
bool zr_grid_layout(const struct ds_array *a, const uint64_t *lens, struct arena *arena,
		    struct zr_grid *ret, int *rc);

/* zr_grid_slot - the linear chunk index of slot `slot` (C order over per) of file `file`; false:
 * outside the array. */
bool zr_grid_slot(const struct ds_array *a, const struct zr_grid *g, uint64_t file, uint64_t slot,
		  uint64_t *ret_chunk);

/* zr_grid_runs - number of runs of every file: chunks that are consecutive in their linear order
 * and in that of slots. zr_grid_run - run `i` of a file: its first chunk and slot, and its length;
 * 0 outside the array. Runs are ascending in both orders. */
uint64_t zr_grid_runs(const struct ds_array *a, const struct zr_grid *g);
void zr_grid_run(const struct ds_array *a, const struct zr_grid *g, uint64_t file, uint64_t i,
		 uint64_t *ret_first, uint64_t *ret_slot, uint64_t *ret_n);

/* zr_grid_file - the file that contains chunk `chunk`. */
uint64_t zr_grid_file(const struct ds_array *a, const struct zr_grid *g, uint64_t chunk);

#endif
