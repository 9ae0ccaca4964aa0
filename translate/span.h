/* span.h - an answer to a read: bytes in memory, or a range of a descriptor, then zeros. */
#ifndef TRANSLATE_SPAN_H
#define TRANSLATE_SPAN_H

#include "base/util.h"

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

#endif
