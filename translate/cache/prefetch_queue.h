/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch_queue.h - requests for chunks, run on worker threads. It knows arrays and chunk indices
 * only; the caller defines what a request does.
 *
 * Any thread may call any function but prefetch_free. No function waits: a full queue drops
 * requests. */
#ifndef TRANSLATE_CACHE_PREFETCH_QUEUE_H
#define TRANSLATE_CACHE_PREFETCH_QUEUE_H

#include "base/core/util.h"

struct prefetch;

/* prefetch_run - load one chunk; called on a worker thread, without locks. */
typedef void prefetch_run(void *arg, uint32_t array, uint64_t linear);

/* prefetch_new - the first prefetch_push starts the threads. NULL if memory is short. */
struct prefetch *prefetch_new(uint32_t threads, prefetch_run *run, void *arg);
/* prefetch_free - stop and join the threads, and drop queued requests. Takes NULL. */
void prefetch_free(struct prefetch *a);

/* prefetch_push - queue a request to load a chunk. It is dropped if the queue is full. */
void prefetch_push(struct prefetch *a, uint32_t array, uint64_t linear);

#endif
