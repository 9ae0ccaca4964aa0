/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.h - decoded chunks in memory, under a byte budget, with one flight per chunk.
 *
 * The first caller that requests a missing chunk loads it. Callers that request it meanwhile wait
 * for that flight and get its result or its error. Errors are not kept: the next call tries again.
 * Each user of an entry's bytes holds a reference. A new chunk reuses the memory of an unused chunk
 * of the same size, so that reading a large array does not map and fault in fresh memory for each
 * chunk.
 *
 * Any thread may call any function. No lock is held while a chunk is being loaded. */
#ifndef TRANSLATE_CACHE_CACHE_H
#define TRANSLATE_CACHE_CACHE_H

#include "base/core/err.h"

struct cache;
struct cache_entry;
struct cache_pool;

enum { CACHE_READY = 0, CACHE_LOAD = 1 };

/* cache_stats - a snapshot, for tests and debugging. */
struct cache_stats {
	uint64_t bytes;        /* memory of all entries, their own structures included */
	uint64_t entries;      /* ready or being loaded */
	uint64_t prefetch_bytes; /* loaded by cache_start and not requested yet */
	uint64_t waiting;      /* callers of cache_get waiting for a flight */
	uint64_t allocated;    /* buffers that came from the allocator since the start */
	uint64_t recycled;     /* buffers taken over from another entry since the start */
};

/* cache_new - budget in bytes. The entry that was used last is kept even if it alone exceeds the
 * budget, because readers read a chunk in pieces. NULL if memory is short. */
struct cache *cache_new(uint64_t budget);
/* cache_of_remote - declare that entries come from a remote source, or take long to make: waiting
 * callers can be cancelled (base/os/cancel.h: -EINTR), and if the loading thread is cancelled, the
 * next waiting caller loads the chunk itself. Call it before the first cache_get. */
void cache_of_remote(struct cache *c);
/* cache_bound - limit the entries that are being loaded to `loading` bytes, or to one entry: a
 * thread that needs memory for another one waits in cache_alloc. Only for caches whose flights need
 * no other flight of the same cache. Call it before the first cache_get. */
void cache_bound(struct cache *c, uint64_t loading);
/* cache_free - free a cache without references. Takes NULL. */
void cache_free(struct cache *c);

/* cache_pool_new - a budget in bytes that several caches share, in addition to their own budgets.
 * Unused entries of the least recently used caches are freed first. NULL if memory is short. */
struct cache_pool *cache_pool_new(uint64_t budget);
/* cache_pool_free - free a pool that no cache belongs to any more. Takes NULL. */
void cache_pool_free(struct cache_pool *p);
/* cache_join - c belongs to the pool until it is freed. Call it before the first cache_get. If p is
 * NULL, does nothing. */
void cache_join(struct cache *c, struct cache_pool *p);

/* cache_get - the entry of chunk (array, linear), with a reference for the caller.
 * Returns CACHE_READY: its bytes can be used; finish with cache_put.
 *         CACHE_LOAD: the caller has to load it: cache_alloc, then cache_publish or cache_fail.
 *         < 0: -ENOMEM, or the error of the flight that the caller waited for. */
int cache_get(struct cache *c, uint32_t array, uint64_t linear, struct cache_entry **ret,
	      struct err *e) NZ_MUST_USE;

/* cache_start - begin a flight before a caller requests the chunk.
 * bytes  approximate size of the chunk
 * Returns true if the caller has to load it, as after CACHE_LOAD; false if the chunk is in the
 * cache or being loaded, if chunks that were prefetched and not requested yet take half of the
 * budget, or if memory is short. */
bool cache_start(struct cache *c, uint32_t array, uint64_t linear, uint64_t bytes,
		 struct cache_entry **ret) NZ_MUST_USE;

/* cache_claim - begin a flight for a chunk that the caller makes together with another one. It does
 * not count as prefetched. Never waits. Returns true if the caller has to load it, as after
 * CACHE_LOAD; false if the chunk is in the cache or being loaded, or if memory is short. */
bool cache_claim(struct cache *c, uint32_t array, uint64_t linear,
		 struct cache_entry **ret) NZ_MUST_USE;

/* cache_has - whether the chunk is in the cache or being loaded. It may be evicted right after. */
bool cache_has(struct cache *c, uint32_t array, uint64_t linear);

/* cache_peek - the entry of a ready chunk, with a reference for the caller. Returns false if the
 * chunk is not in the cache or is being loaded. Never waits. */
bool cache_peek(struct cache *c, uint32_t array, uint64_t linear,
		struct cache_entry **ret) NZ_MUST_USE;

/* cache_alloc - allocate len bytes for an entry that the caller is loading, once per flight. Evicts
 * entries first to stay within the budget. Borrowed, not zeroed; NULL if memory is short. */
uint8_t *cache_alloc(struct cache_entry *x, size_t len);

/* cache_publish - the bytes are complete: wake waiting callers. The reference stays. */
void cache_publish(struct cache_entry *x);

/* cache_fail - the flight failed: waiting callers get a copy of e. Drops the reference. */
void cache_fail(struct cache_entry *x, const struct err *e);

/* cache_data - bytes of a ready entry; borrowed while a reference is held. */
const uint8_t *cache_data(const struct cache_entry *x, size_t *ret_len);

/* cache_handed - note that n bytes at off were given to a reader. When as many bytes as the chunk
 * has, and its last one, were given, a reader has all of it, and its memory is recycled first. */
void cache_handed(struct cache_entry *x, size_t off, size_t n);

/* cache_put - drop a reference. */
void cache_put(struct cache_entry *x);

void cache_stats(struct cache *c, struct cache_stats *ret);

#endif
