/* SPDX-License-Identifier: BSD-3-Clause */
/* shard_files_int.h - arrays presented as shards of Zarr v3: one file has several chunks and an
 * index.
 *
 * A shard is the concatenation of its chunks, as chunkio presents them, in C order of their slots,
 * without those that were never written; then the index: for each slot offset and length as
 * little-endian 64-bit numbers (both 2^64-1: no chunk), then the CRC-32C of the index. The content
 * is computed from the sizes of the chunks at the first access, and cached within a budget; a read
 * inside a chunk accesses only that chunk. A shard without chunks does not exist. Spec: Zarr v3,
 * codec "sharding_indexed", "Binary shard format", index_location "end".
 *
 * All functions but new and free may be called from any thread. */
#ifndef NCZARR_VIEW_SHARD_FILES_INT_H
#define NCZARR_VIEW_SHARD_FILES_INT_H

#include "nczarr/view/grid.h"
#include "translate/chunkio/provenance.h"

struct zr_shards;

/* zr_shards_new - for the arrays whose grid has `per`. All is borrowed for its life.
 *   s       the source of io; polled for changes after its bytes were collected
 *   grids   one for each array, from zr_grid_shards or zr_grid_chunks
 *   budget  bytes of cached indexes; those in use may exceed it */
int zr_shards_new(struct source *s, struct chunkio *io, const struct zr_grid *grids,
		  uint64_t budget, struct zr_shards **ret, struct err *e) NZ_MUST_USE;
/* zr_shards_free - takes NULL. */
void zr_shards_free(struct zr_shards *s);

/* zr_shards_stat - exact size in bytes of a shard. -ENOENT: none of its chunks exists; or the
 * error of chunkio for a chunk of unknown size. */
int zr_shards_stat(struct zr_shards *s, uint32_t array, uint64_t file, uint64_t *ret_size,
		   struct err *e) NZ_MUST_USE;

/* zr_shards_stat_cheap - whether zr_shards_stat() makes no chunk, and inspects only a few: a
 * listing with attributes returns cheap ones. */
bool zr_shards_stat_cheap(struct zr_shards *s, uint32_t array, uint64_t file);

/* zr_shards_next - the first shard at or after `from` that exists; -ENOENT: none. */
int zr_shards_next(struct zr_shards *s, uint32_t array, uint64_t from, uint64_t *ret,
		   struct err *e) NZ_MUST_USE;

/* zr_shards_read - bytes [off, off+len) of a shard, truncated at its end; as chunkio_read(). A
 * read within one chunk returns that chunk's span without a copy; others are collected in room. */
int zr_shards_read(struct zr_shards *s, uint32_t array, uint64_t file, uint64_t off, size_t len,
		   uint8_t *room, struct span *ret, struct err *e) NZ_MUST_USE;

/* zr_shards_provenance - provenance_chunk of a shard: source, chain, plan, and as many pieces as
 * fit into an extended attribute, with the number of the others. */
int zr_shards_provenance(struct zr_shards *s, uint32_t array, uint64_t file,
			 const struct plan *p, enum provenance what, struct buf *out,
			 struct err *e) NZ_MUST_USE;

#endif
