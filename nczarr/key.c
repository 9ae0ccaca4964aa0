/* key.c - chunk keys to linear indices and back. Pure arithmetic: whether a chunk was ever
 * written is not known here. */
#include "nczarr/key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

int zr_key_coord(const char *s, size_t n, uint64_t limit, uint64_t *ret)
{
	return limit == 0 ? -EINVAL : str_u64(s, n, limit - 1, ret);
}

int zr_key_parse(const struct ds_array *a, char separator, const char *s, size_t n,
		 uint64_t *ret_linear)
{
	uint64_t linear = 0, coord;
	const char *end = s + n;

	if (a->n_chunks == 0)
		return -EINVAL;
	if (a->rank == 0) {
		*ret_linear = 0;
		return n == 1 && s[0] == '0' ? 0 : -EINVAL;
	}
	for (uint32_t d = 0; d < a->rank; d++) {
		const char *stop = memchr(s, separator, (size_t)(end - s));

		/* every coordinate but the last is followed by a separator, the last by nothing
		 */
		if ((stop == NULL) != (d + 1 == a->rank))
			return -EINVAL;
		if (!stop)
			stop = end;
		if (zr_key_coord(s, (size_t)(stop - s), a->grid[d], &coord))
			return -EINVAL;
		linear = linear * a->grid[d] + coord; /* < n_chunks, cannot overflow */
		s = stop + 1;
	}
	*ret_linear = linear;
	return 0;
}

void zr_key_format(const struct ds_array *a, char separator, uint64_t linear,
		   char out[ZR_KEY_MAX])
{
	uint64_t coords[DS_RANK_MAX] = {0};
	uint32_t rank = a->rank <= DS_RANK_MAX ? a->rank : DS_RANK_MAX;
	size_t at = 0;

	if (rank == 0) {
		(void)snprintf(out, ZR_KEY_MAX, "0");
		return;
	}
	for (uint32_t d = rank; d-- > 0; linear /= a->grid[d])
		coords[d] = linear % a->grid[d];
	for (uint32_t d = 0; d < rank; d++) {
		int n = snprintf(out + at, ZR_KEY_MAX - at, "%s%" PRIu64,
				 d ? (const char[2]){separator, '\0'} : "", coords[d]);

		at += n > 0 ? (size_t)n : 0; /* ZR_KEY_MAX has room for the longest key */
	}
}
