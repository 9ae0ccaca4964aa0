/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_key.h - keys of chunks or shards: "3.0.17" or the path "3/0/17", and "0" for a scalar; in
 * Zarr v3's default encoding "c.3.0.17" or "c/3/0/17", and "c" for a scalar.
 *
 * Reading is strict, so that a file has one name: canonical decimals, nothing before, between
 * or after them but the separator, every coordinate inside the grid. Spec: Zarr v2, "Chunks"
 * and "dimension_separator"; Zarr v3 core, "Chunk key encoding". */
#ifndef NCZARR_CHUNK_KEY_H
#define NCZARR_CHUNK_KEY_H

#include "nczarr/view/grid.h"

/* Size of any key: "c", 64 coordinates of at most 20 digits, separators, a NUL. */
#define ZR_KEY_MAX (DS_RANK_MAX * 21 + 3)

/* zr_key_parse - convert a key of n bytes, with '.' or, if keys are nested, '/' between its parts,
 * to the linear index of a file. Returns 0 with *ret_linear written; -EINVAL if it is no key inside
 * the grid. */
int zr_key_parse(const struct zr_grid *g, const char *s, size_t n,
		 uint64_t *ret_linear) NZ_MUST_USE;

/* zr_key_format - the key of a file inside the grid, NUL-terminated, with '.' between its parts
 * or, if keys are nested, '/'. */
void zr_key_format(const struct zr_grid *g, uint64_t linear, char out[ZR_KEY_MAX]);

/* zr_key_coord - parse one canonical decimal < limit. -EINVAL otherwise. */
int zr_key_coord(const char *s, size_t n, uint64_t limit, uint64_t *ret) NZ_MUST_USE;

/* Nested keys, part by part. Level 0 is the array's directory. A directory at level l contains
 * zr_key_parts names, numbered from 0, for part l of a key: directories below level zr_key_levels,
 * files at it. A grid without files has no names at any level. */
uint32_t zr_key_levels(const struct zr_grid *g);
uint64_t zr_key_parts(const struct zr_grid *g, uint32_t level);
/* zr_key_part - the number of a name. -EINVAL: no such name. */
int zr_key_part(const struct zr_grid *g, uint32_t level, const char *s, size_t n,
		uint64_t *ret) NZ_MUST_USE;
/* zr_key_part_name - the reverse. cap: bytes of out. */
void zr_key_part_name(const struct zr_grid *g, uint32_t level, uint64_t part, char *out,
		      size_t cap);

#endif
