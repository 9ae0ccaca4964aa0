/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch_queue.h - decoding ahead of readers: notices who reads in order, and runs requests on
 * worker threads. It knows arrays and chunk indices only; what a request does is up to the caller.
 *
 * Any thread may call any function but prefetch_free. Nothing here waits: a full queue drops. */
#ifndef TRANSLATE_CACHE_PREFETCH_QUEUE_H
#define TRANSLATE_CACHE_PREFETCH_QUEUE_H

#include "base/core/util.h"

struct prefetch;

/* prefetch_run - load one chunk; called on a worker thread, without locks. */
typedef void prefetch_run(void *arg, uint32_t array, uint64_t linear);

enum {
	PREFETCH_SELF = 1, /* the chunk that was touched is about to be read */
	PREFETCH_NEXT = 2, /* so are the ones that follow it */
};

enum prefetch_touch { PREFETCH_STAT, PREFETCH_READ };

/* prefetch_new - threads are started by the first prefetch_push. NULL when memory is short. */
struct prefetch *prefetch_new(uint32_t n_arrays, uint32_t threads, prefetch_run *run,
			      void *arg);
/* prefetch_free - stop and join the threads; requests that wait are dropped. Takes NULL. */
void prefetch_free(struct prefetch *a);

/* prefetch_note - a reader asked for the size or for bytes of a chunk.
 * Returns a set of PREFETCH_SELF and PREFETCH_NEXT: what is worth an prefetch_push. NEXT is said
 * once for a chunk, when the ones before it were read in order; SELF only for a stat, and only
 * while stats of this array have lately been followed by reads (those of `ls -l` are not). */
unsigned prefetch_note(struct prefetch *a, uint32_t array, uint64_t linear,
		       enum prefetch_touch what);

/* prefetch_push - ask for a chunk to be loaded. It is dropped when the queue is full, and later
 * when the reader has got past it before a thread was free. */
void prefetch_push(struct prefetch *a, uint32_t array, uint64_t linear);

#endif
