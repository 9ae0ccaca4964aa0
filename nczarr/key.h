/* key.h - chunk keys: "3.0.17" or the path "3/0/17", and "0" for a scalar.
 *
 * Reading is strict, so that a chunk has one name: canonical decimals, nothing before, between
 * or after them but the separator, every coordinate inside the grid. Spec: Zarr v2, "Chunks"
 * and "dimension_separator". */
#ifndef NCZARR_KEY_H
#define NCZARR_KEY_H

#include "translate/dataset.h"

/* Room for any key: 64 coordinates of at most 20 digits, separators, a NUL. */
#define ZR_KEY_MAX (DS_RANK_MAX * 21 + 1)

/* zr_key_parse - key of n bytes to linear chunk index. Returns 0 with *ret_linear written;
 * -EINVAL when this is not a key of a chunk inside the grid. */
int zr_key_parse(const struct ds_array *a, char separator, const char *s, size_t n,
		 uint64_t *ret_linear) NZ_MUST_USE;

/* zr_key_coord - one canonical decimal < limit: a component of a nested key. -EINVAL otherwise.
 */
int zr_key_coord(const char *s, size_t n, uint64_t limit, uint64_t *ret) NZ_MUST_USE;

/* zr_key_format - the key of a chunk inside the grid, NUL-terminated. */
void zr_key_format(const struct ds_array *a, char separator, uint64_t linear,
		   char out[ZR_KEY_MAX]);

#endif
