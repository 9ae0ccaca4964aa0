/* SPDX-License-Identifier: BSD-3-Clause */
/* span.c - the bytes of a span, wherever they are. */
#include "translate/contract/span.h"

#include <errno.h>
#include <string.h>

#include "base/os/io.h"

int span_fetch(struct span *s, uint8_t *out, size_t len, size_t *ret, struct err *e)
{
	size_t n = s->len, all;
	int rc = 0;

	if (ckd_add(&all, n, s->zeros) || all > len)
		rc = err_set(e, -EIO, "a read of %zu bytes returned more", len);
	else if (n && s->mem && s->mem != out)
		memmove(out, s->mem, n);
	else if (n && !s->mem)
		rc = io_pread(s->fd, out, n, s->off, e);
	if (!rc) {
		if (s->zeros)
			memset(out + n, 0, s->zeros);
		*ret = all;
	}
	span_done(s);
	return rc;
}
