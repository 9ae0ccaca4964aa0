/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.h - decoded chunks in memory, under a byte budget, with one flight per chunk.
 *
 * A chunk that is not there is loaded by the first caller who asks; others who ask meanwhile
 * wait for that flight and get its result, or its error. Errors are not kept: the next call
 * tries again. Entries count references while somebody uses their bytes. Memory of chunks that
 * are no longer needed is handed to the next chunk of the same size, so that reading a large
 * array does not map and fault in fresh memory for each chunk.
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
	uint64_t prefetch_bytes; /* loaded by cache_start and not asked for yet */
	uint64_t waiting;      /* callers of cache_get that wait for a flight */
	uint64_t allocated;    /* buffers that came from the allocator since the start */
	uint64_t recycled;     /* buffers taken over from another entry since the start */
};

/* cache_new - budget in bytes. The entry that was used last is kept even when it alone is
 * larger: a reader takes a chunk in pieces. NULL when memory is short. */
struct cache *cache_new(uint64_t budget);
/* cache_of_remote - what is kept comes from far away: who waits for a flight may give up
 * (base/os/cancel.h: -EINTR), and what became of a flight whose reader gave up is nothing for
 * others, who load it themselves. Before the first cache_get. */
void cache_of_remote(struct cache *c);
/* cache_bound - entries that are being loaded take at most so many bytes, or are one: whoever wants
 * memory for another waits in cache_alloc. Only for caches whose flights need no other flight of
 * the same cache. Before the first cache_get. */
void cache_bound(struct cache *c, uint64_t loading);
/* cache_free - no reference may be held any more. Takes NULL. */
void cache_free(struct cache *c);

/* cache_pool_new - a budget in bytes that caches share, beside the one that each has: what nobody
 * uses goes from the caches that were not asked for longest. NULL when memory is short. */
struct cache_pool *cache_pool_new(uint64_t budget);
/* cache_pool_free - no cache may be in it any more. Takes NULL. */
void cache_pool_free(struct cache_pool *p);
/* cache_join - c is in the pool until it is freed. Before the first cache_get; p: NULL does
 * nothing. */
void cache_join(struct cache *c, struct cache_pool *p);

/* cache_get - the entry of chunk (array, linear), with a reference for the caller.
 * Returns CACHE_READY: its bytes can be used; finish with cache_put.
 *         CACHE_LOAD: the caller has to load it: cache_alloc, then cache_publish or cache_fail.
 *         < 0: -ENOMEM, or the error of the flight that the caller waited for. */
int cache_get(struct cache *c, uint32_t array, uint64_t linear, struct cache_entry **ret,
	      struct err *e) NZ_MUST_USE;

/* cache_start - begin a flight before anybody asks for the chunk.
 * bytes  about what it will take
 * Returns true when the caller has to load it, as after CACHE_LOAD; false when it is there or
 * being loaded, when half of the budget is already taken by chunks that were loaded in this way
 * and not asked for since, or when memory is short. */
bool cache_start(struct cache *c, uint32_t array, uint64_t linear, uint64_t bytes,
		 struct cache_entry **ret) NZ_MUST_USE;

/* cache_has - whether the chunk is there or being loaded; it may be gone right after. */
bool cache_has(struct cache *c, uint32_t array, uint64_t linear);

/* cache_peek - the entry of a chunk that is ready, with a reference for the caller; false: it is
 * not there, or being loaded. Never waits. */
bool cache_peek(struct cache *c, uint32_t array, uint64_t linear,
		struct cache_entry **ret) NZ_MUST_USE;

/* cache_alloc - len bytes of memory for an entry that the caller is loading; once per flight.
 * Makes room within the budget first. Borrowed, not zeroed; NULL when memory is short. */
uint8_t *cache_alloc(struct cache_entry *x, size_t len);

/* cache_publish - the bytes are complete: wake those who wait. The reference stays. */
void cache_publish(struct cache_entry *x);

/* cache_fail - the flight failed: those who wait get a copy of e. Takes the reference. */
void cache_fail(struct cache_entry *x, const struct err *e);

/* cache_data - bytes of a ready entry; borrowed while a reference is held. */
const uint8_t *cache_data(const struct cache_entry *x, size_t *ret_len);

/* cache_handed - note that n bytes at off were given to a reader. When as many bytes as the
 * chunk has, and its last one, were given, a reader has it all: its memory goes first. */
void cache_handed(struct cache_entry *x, size_t off, size_t n);

/* cache_put - drop a reference. */
void cache_put(struct cache_entry *x);

void cache_stats(struct cache *c, struct cache_stats *ret);

#endif
