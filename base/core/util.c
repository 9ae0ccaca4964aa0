/* SPDX-License-Identifier: BSD-3-Clause */
/* util.c - the growth policy of arrays. */
#include "base/core/util.h"

#include <string.h>

int grow_array(void *p, size_t *cap, size_t want, size_t size)
{
	size_t n = *cap ? *cap : 8, bytes;
	void *old, *fresh;

	if (want <= *cap)
		return 0;
	while (n < want)
		if (ckd_mul(&n, n, (size_t)2))
			return -1;
	if (ckd_mul(&bytes, n, size))
		return -1;
	memcpy(&old, p, sizeof(old));
	fresh = realloc(old, bytes);
	if (!fresh)
		return -1;
	memcpy(p, &fresh, sizeof(fresh));
	*cap = n;
	return 0;
}
