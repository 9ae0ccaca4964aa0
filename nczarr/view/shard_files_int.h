/* SPDX-License-Identifier: BSD-3-Clause */
/* shard_files_int.h - arrays presented as shards of Zarr v3: one file holds many chunks and an
 * index.
 *
 * A shard is its chunks, as chunkio presents them, one behind the other in C order of their slots,
 * chunks that were never written left out; then the index: for each slot offset and length as
 * little-endian 64-bit numbers (both 2^64-1: no chunk), then the CRC-32C of all that. What is in a
 * shard is computed from the sizes of its chunks when it is looked at, and kept under a budget; a
 * read inside a chunk touches nothing but that chunk. A shard without any chunk does not exist.
 * Spec: Zarr v3, codec "sharding_indexed", "Binary shard format", index_location "end".
 *
 * Any thread may call any function but new and free. */
#ifndef NCZARR_VIEW_SHARD_FILES_INT_H
#define NCZARR_VIEW_SHARD_FILES_INT_H

#include "nczarr/view/grid.h"
#include "translate/chunkio/provenance.h"

struct zr_shards;

/* zr_shards_new - for the arrays whose grid has `per`. All is borrowed for its life.
 * s       the source that io reads; asked whether it changed after bytes of it were collected
 * grids   one for each array, made by zr_grid_shards or zr_grid_chunks
 * budget  bytes of indexes that are kept; those in use may exceed it */
int zr_shards_new(struct source *s, struct chunkio *io, const struct zr_grid *grids,
		  uint64_t budget, struct zr_shards **ret, struct err *e) NZ_MUST_USE;
/* zr_shards_free - takes NULL. */
void zr_shards_free(struct zr_shards *s);

/* zr_shards_stat - exact size in bytes of a shard. -ENOENT: none of its chunks exists; what chunkio
 * says of a chunk whose size could not be found out. */
int zr_shards_stat(struct zr_shards *s, uint32_t array, uint64_t file, uint64_t *ret_size,
		   struct err *e) NZ_MUST_USE;

/* zr_shards_stat_cheap - whether zr_shards_stat makes no chunk, and looks at few: a listing that is
 * asked for attributes gives those that are cheap. */
bool zr_shards_stat_cheap(struct zr_shards *s, uint32_t array, uint64_t file);

/* zr_shards_next - the first shard at or after `from` that exists; -ENOENT: none. */
int zr_shards_next(struct zr_shards *s, uint32_t array, uint64_t from, uint64_t *ret,
		   struct err *e) NZ_MUST_USE;

/* zr_shards_read - bytes [off, off+len) of a shard, cut at its end; as chunkio_read. A read that
 * lies within one chunk is that chunk's span, uncopied; one that does not is collected in room. */
int zr_shards_read(struct zr_shards *s, uint32_t array, uint64_t file, uint64_t off, size_t len,
		   uint8_t *room, struct span *ret, struct err *e) NZ_MUST_USE;

/* zr_shards_provenance - provenance_chunk of a shard: source, chain, plan, and pieces, of which so
 * many are given as there is room for in an extended attribute, and how many more there are. */
int zr_shards_provenance(struct zr_shards *s, uint32_t array, uint64_t file,
			 const struct plan *p, enum provenance what, struct buf *out,
			 struct err *e) NZ_MUST_USE;

#endif
