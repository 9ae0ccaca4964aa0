/* access_pattern.h - what readers of a source that is far away will want next: notices who reads an
 * array's chunks in order, or every n-th of them, while others read elsewhere. Pure bookkeeping;
 * any thread. */
#ifndef TRANSLATE_CACHE_ACCESS_PATTERN_H
#define TRANSLATE_CACHE_ACCESS_PATTERN_H

#include "translate/cache/prefetch_queue.h"

#define STREAMS_AHEAD 64  /* chunks that are wanted ahead of one reader at most */

struct streams;

/* streams_say - what is worth asking for. */
struct streams_say {
	bool self;      /* the chunk itself, all of it */
	uint32_t n;     /* so many more, <= STREAMS_AHEAD: */
	uint64_t step;  /* the chunk + step, + 2 step, ... */
};

/* streams_new - NULL when memory is short. streams_free takes NULL. */
struct streams *streams_new(uint32_t n_arrays);
void streams_free(struct streams *s);

/* streams_note - a chunk's size or bytes were asked for. Sizes say something only while reads
 * follow them: who lists a directory wants no chunk. Of a chunk that is taken in pieces the first
 * piece says it all. */
struct streams_say streams_note(struct streams *s, uint32_t array, uint64_t linear,
				enum ahead_touch what);

#endif
