/* SPDX-License-Identifier: BSD-3-Clause */
/* sizes.h - sizes of chunks that are known only after encoding, cached under a byte budget: listing
 * a directory a second time does not encode its chunks again.
 *
 * Any thread may call any function but sizes_free. A size that was evicted can be computed
 * again. */
#ifndef TRANSLATE_CACHE_SIZES_H
#define TRANSLATE_CACHE_SIZES_H

#include "base/core/util.h"

struct sizes;

/* sizes_new - budget in bytes: four for a chunk, plus one or two chunks' worth for every 256
 * adjacent chunks. NULL if memory is short. */
struct sizes *sizes_new(uint64_t budget);
/* sizes_free - takes NULL. */
void sizes_free(struct sizes *s);

/* sizes_get - size in bytes of chunk (array, linear); 0: not cached. */
uint64_t sizes_get(struct sizes *s, uint32_t array, uint64_t linear);

/* sizes_put - cache a size, unless it is 0 or does not fit 32 bits. May evict other sizes. */
void sizes_put(struct sizes *s, uint32_t array, uint64_t linear, uint64_t size);

#endif
