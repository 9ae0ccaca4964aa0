/* SPDX-License-Identifier: BSD-3-Clause */
/* access_pattern.h - what readers will want next: notices who reads an array's chunks in order, or
 * every n-th of them, while others read elsewhere. Pure bookkeeping; any thread. */
#ifndef TRANSLATE_CACHE_ACCESS_PATTERN_H
#define TRANSLATE_CACHE_ACCESS_PATTERN_H

#include "base/core/util.h"

#define ACCESS_PATTERN_PREFETCH 64 /* chunks that are wanted ahead of one reader at most */

struct access_pattern;

enum prefetch_touch { PREFETCH_STAT, PREFETCH_READ };

/* access_pattern_say - what is worth asking for. */
struct access_pattern_say {
	bool self;      /* the chunk itself, all of it: it was not touched just now */
	uint32_t n;     /* so many more, <= ACCESS_PATTERN_PREFETCH: */
	uint64_t step;  /* the chunk + step, + 2 step, ... */
};

/* access_pattern_new - NULL when memory is short. access_pattern_free takes NULL. */
struct access_pattern *access_pattern_new(uint32_t n_arrays);
void access_pattern_free(struct access_pattern *s);

/* access_pattern_note - a chunk's size or bytes were asked for. Sizes say something only while
 * reads follow them: who lists a directory wants no chunk. Of a chunk that is taken in pieces the
 * first piece says it all. */
struct access_pattern_say access_pattern_note(struct access_pattern *s, uint32_t array,
					      uint64_t linear, enum prefetch_touch what);

/* access_pattern_passed - whether readers are beyond a chunk, and none is on the way to it: loading
 * it ahead comes too late. */
bool access_pattern_passed(struct access_pattern *s, uint32_t array, uint64_t linear);

#endif
