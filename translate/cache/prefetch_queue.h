/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch_queue.h - requests for chunks, run on worker threads. It knows arrays and chunk indices
 * only; what a request does is up to the caller.
 *
 * Any thread may call any function but prefetch_free. Nothing here waits: a full queue drops. */
#ifndef TRANSLATE_CACHE_PREFETCH_QUEUE_H
#define TRANSLATE_CACHE_PREFETCH_QUEUE_H

#include "base/core/util.h"

struct prefetch;

/* prefetch_run - load one chunk; called on a worker thread, without locks. */
typedef void prefetch_run(void *arg, uint32_t array, uint64_t linear);

/* prefetch_new - threads are started by the first prefetch_push. NULL when memory is short. */
struct prefetch *prefetch_new(uint32_t threads, prefetch_run *run, void *arg);
/* prefetch_free - stop and join the threads; requests that wait are dropped. Takes NULL. */
void prefetch_free(struct prefetch *a);

/* prefetch_push - ask for a chunk to be loaded. It is dropped when the queue is full. */
void prefetch_push(struct prefetch *a, uint32_t array, uint64_t linear);

#endif
