/* SPDX-License-Identifier: BSD-3-Clause */
/* chunkio_int.h - what the files of chunkio share: chunkio.c decides and answers, load.c makes
 * bytes, measure.c makes many to know their sizes. */
#ifndef TRANSLATE_CHUNKIO_CHUNKIO_INT_H
#define TRANSLATE_CHUNKIO_CHUNKIO_INT_H

#include "base/os/lock.h"
#include "base/process/worker.h"
#include "translate/cache/prefetch_queue.h"
#include "translate/cache/cache.h"
#include "translate/chunkio/chunkio.h"
#include "translate/cache/sizes.h"
#include "translate/cache/access_pattern.h"
#include "translate/chunkio/delivery.h"

#include <pthread.h>
#include <stdatomic.h>

#define CHUNKIO_SLACK ((uint64_t)64 << 10) /* headers and checksums of a stored chunk */

struct chunkio_scratch;

struct array_state {
	uint32_t owner; /* first array that is the same object under the same plan */
	uint32_t depth; /* chunks to load ahead; 0: this array's cost little */
	bool decodable; /* DS_STORED, and every filter is built in */
	_Atomic(struct fill *) fill;
};

struct chunkio {
	struct source *source;
	const struct plan *plans;
	uint32_t n_arrays, threads;
	bool verify, uncounted;
	struct array_state *arrays;
	struct cache *cache;
	struct sizes *sizes;  /* of chunks whose delivery does not give a size */
	struct prefetch *ahead;         /* NULL: no threads */
	struct access_pattern
		*pattern; /* NULL: the source is local, and there are no threads */
	struct chunkio_shared *shared;
	struct chunkio_shared *own; /* the same if the options gave none, else NULL */
	pthread_mutex_t lock;       /* of all below */
	struct worker_blame blame;  /* chunks that killed a process that decoded them */
};

struct chunkio_shared {
	struct cache_pool *pool;         /* NULL: each cache has its budget and no more */
	pthread_mutex_t lock;            /* of the scratch list */
	struct chunkio_scratch *scratch; /* lock: used last first */
	uint32_t n_scratch;              /* lock */
	uint64_t scratch_bytes;          /* lock: about what they take */
};

#define CHUNKIO_NONE UINT64_MAX /* of an error that concerns the whole array */

/* chunkio_say_where - prefix a data error with "'/g/v' chunk 0.3: ". Returns its code. */
int chunkio_say_where(const struct chunkio *c, uint32_t array, uint64_t linear, int code,
		      struct err *e);

/* located - a chunk that was located, and how its bytes are made. */
struct located {
	struct chunkio *c;
	const struct ds_array *a;
	const struct plan *p;
	uint32_t array;
	uint64_t linear;
	struct delivery w;
};

/* chunkio_load - load x, an entry of the cache in flight, and publish it, or fail it. Returns 0
 * with the reference still held. */
int chunkio_load(const struct located *k, struct cache_entry *x, struct err *e) NZ_MUST_USE;

/* chunkio_touch - a chunk is about to be requested: prefetch from a remote source what its reader
 * requests next, and return it. whole: all of the chunk will be read. (prefetch.c) */
struct access_pattern_say chunkio_touch(struct chunkio *c, uint32_t array, uint64_t linear,
					enum prefetch_touch what, bool whole);
/* chunkio_hint - a chunk that has to be decoded or encoded was requested: prefetch the next ones.
 * said: the result of chunkio_touch. */
void chunkio_hint(struct chunkio *c, uint32_t array, uint64_t linear, enum prefetch_touch what,
		  struct access_pattern_say said);

/* chunkio_shared_alone - for one chunkio: memory for decoding only. */
struct chunkio_shared *chunkio_shared_alone(void);

#endif
