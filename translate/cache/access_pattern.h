/* SPDX-License-Identifier: BSD-3-Clause */
/* access_pattern.h - predicts which chunks readers request next: detects readers that read an
 * array's chunks in order, or every n-th of them, among others that read elsewhere. No I/O; any
 * thread. */
#ifndef TRANSLATE_CACHE_ACCESS_PATTERN_H
#define TRANSLATE_CACHE_ACCESS_PATTERN_H

#include "base/core/util.h"

#define ACCESS_PATTERN_PREFETCH 64 /* most chunks to prefetch for one reader */

struct access_pattern;

enum prefetch_touch { PREFETCH_STAT, PREFETCH_READ };

/* access_pattern_say - what to prefetch. */
struct access_pattern_say {
	bool self;      /* the whole chunk itself: it was not touched just now */
	uint32_t n;     /* number of further chunks, <= ACCESS_PATTERN_PREFETCH: */
	uint64_t step;  /* the chunk + step, + 2 step, ... */
};

/* access_pattern_new - NULL if memory is short. access_pattern_free takes NULL. */
struct access_pattern *access_pattern_new(uint32_t n_arrays);
void access_pattern_free(struct access_pattern *s);

/* access_pattern_note - record that the size or the bytes of a chunk were requested. Sizes count
 * only while reads follow them, because listing a directory needs no chunk. If a chunk is read in
 * pieces, only the first piece counts. */
struct access_pattern_say access_pattern_note(struct access_pattern *s, uint32_t array,
					      uint64_t linear, enum prefetch_touch what);

/* access_pattern_passed - whether readers have passed a chunk and none approaches it, so that it is
 * too late to prefetch it. */
bool access_pattern_passed(struct access_pattern *s, uint32_t array, uint64_t linear);

#endif
