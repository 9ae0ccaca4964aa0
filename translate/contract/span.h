/* SPDX-License-Identifier: BSD-3-Clause */
/* span.h - an answer to a read: bytes in memory, or a range of a descriptor, then zeros. */
#ifndef TRANSLATE_CONTRACT_SPAN_H
#define TRANSLATE_CONTRACT_SPAN_H

#include "base/core/err.h"

struct span {
	const uint8_t *mem;       /* bytes in memory; NULL: read them from fd */
	int fd;                   /* borrowed; when mem is NULL and len > 0 */
	uint64_t off;             /* offset in fd; the range was checked against the file's size */
	size_t len;               /* bytes of mem, or of fd at off; a short read is EIO */
	size_t zeros;             /* that many zero bytes follow */
	void (*done)(void *arg);  /* call once when mem is no longer needed; NULL: nothing */
	void *arg;
};

static inline void span_done(struct span *s)
{
	if (s->done)
		s->done(s->arg);
	s->done = NULL;
}

/* span_fetch - the bytes of an answer into out, which has room for the len bytes that were asked
 * for and may be the room that was given for them; then span_done. Returns 0 with *ret the number
 * of bytes; -EIO there are more than len, or the descriptor's file ends before. */
int span_fetch(struct span *s, uint8_t *out, size_t len, size_t *ret, struct err *e) NZ_MUST_USE;

#endif
