/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_key.c - conversion between keys and linear indices: arithmetic only. Whether a chunk
 * exists is not known here. */
#include "nczarr/chunk_key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"

int zr_key_coord(const char *s, size_t n, uint64_t limit, uint64_t *ret)
{
	return limit == 0 ? -EINVAL : str_u64(s, n, limit - 1, ret);
}

/* n_parts - parts of a key: coordinates and the prefix "c"; at least one. */
static uint32_t n_parts(const struct zr_grid *g)
{
	uint32_t n = g->rank + g->keys.lead;

	return n ? n : 1;
}

uint32_t zr_key_levels(const struct zr_grid *g)
{
	return g->keys.nested ? n_parts(g) - 1 : 0;
}

uint64_t zr_key_parts(const struct zr_grid *g, uint32_t level)
{
	if (g->n == 0)
		return 0;
	if (level < g->keys.lead || g->rank == 0)
		return 1;
	return g->len[level - g->keys.lead];
}

int zr_key_part(const struct zr_grid *g, uint32_t level, const char *s, size_t n, uint64_t *ret)
{
	uint64_t limit = zr_key_parts(g, level);

	if (limit == 0)
		return -EINVAL;
	if (level >= g->keys.lead)
		return zr_key_coord(s, n, limit, ret);
	*ret = 0;
	return n == 1 && s[0] == 'c' ? 0 : -EINVAL;
}

void zr_key_part_name(const struct zr_grid *g, uint32_t level, uint64_t part, char *out,
		      size_t cap)
{
	if (level < g->keys.lead)
		(void)snprintf(out, cap, "c");
	else
		(void)snprintf(out, cap, "%" PRIu64, part);
}

int zr_key_parse(const struct zr_grid *g, const char *s, size_t n, uint64_t *ret_linear)
{
	const uint32_t parts = n_parts(g);
	const char separator = g->keys.nested ? '/' : '.', *end = s + n;
	uint64_t linear = 0, part;

	for (uint32_t i = 0; i < parts; i++) {
		const char *stop = memchr(s, separator, (size_t)(end - s));

		/* every part but the last is followed by a separator, the last by nothing */
		if ((stop == NULL) != (i + 1 == parts))
			return -EINVAL;
		if (!stop)
			stop = end;
		if (zr_key_part(g, i, s, (size_t)(stop - s), &part))
			return -EINVAL;
		linear = linear * zr_key_parts(g, i) + part; /* < n, cannot overflow */
		s = stop + 1;
	}
	*ret_linear = linear;
	return 0;
}

void zr_key_format(const struct zr_grid *g, uint64_t linear, char out[ZR_KEY_MAX])
{
	uint64_t parts[DS_RANK_MAX + 1] = {0};
	uint32_t n = n_parts(g);
	size_t at = 0;

	for (uint32_t i = n; i-- > 0; linear /= zr_key_parts(g, i))
		parts[i] = linear % zr_key_parts(g, i);
	for (uint32_t i = 0; i < n; i++) { /* there is room for the longest key */
		if (i)
			out[at++] = g->keys.nested ? '/' : '.';
		zr_key_part_name(g, i, parts[i], out + at, ZR_KEY_MAX - at);
		at += strlen(out + at);
	}
}
