/* prefetch_queue.h - decoding ahead of readers: notices who reads in order, and runs requests on
 * worker threads. It knows arrays and chunk indices only; what a request does is up to the caller.
 *
 * Any thread may call any function but ahead_free. Nothing here waits: a full queue drops. */
#ifndef TRANSLATE_CACHE_PREFETCH_QUEUE_H
#define TRANSLATE_CACHE_PREFETCH_QUEUE_H

#include "base/core/util.h"

struct ahead;

/* ahead_run - load one chunk; called on a worker thread, without locks. */
typedef void ahead_run(void *arg, uint32_t array, uint64_t linear);

enum {
	AHEAD_SELF = 1,  /* the chunk that was touched is about to be read */
	AHEAD_NEXT = 2,  /* so are the ones that follow it */
};

enum ahead_touch { AHEAD_STAT, AHEAD_READ };

/* ahead_new - threads are started by the first ahead_push. NULL when memory is short. */
struct ahead *ahead_new(uint32_t n_arrays, uint32_t threads, ahead_run *run, void *arg);
/* ahead_free - stop and join the threads; requests that wait are dropped. Takes NULL. */
void ahead_free(struct ahead *a);

/* ahead_note - a reader asked for the size or for bytes of a chunk.
 * Returns a set of AHEAD_SELF and AHEAD_NEXT: what is worth an ahead_push. NEXT is said once
 * for a chunk, when the ones before it were read in order; SELF only for a stat, and only while
 * stats of this array have lately been followed by reads (those of `ls -l` are not). */
unsigned ahead_note(struct ahead *a, uint32_t array, uint64_t linear, enum ahead_touch what);

/* ahead_push - ask for a chunk to be loaded. It is dropped when the queue is full, and later
 * when the reader has got past it before a thread was free. */
void ahead_push(struct ahead *a, uint32_t array, uint64_t linear);

#endif
