/* SPDX-License-Identifier: BSD-3-Clause */
/* sizes.h - sizes of chunks that only making them tells, remembered under a byte budget: whoever
 * lists a directory again does not have everything made again.
 *
 * Any thread may call any function but sizes_free. What is not remembered can be made again. */
#ifndef TRANSLATE_CACHE_SIZES_H
#define TRANSLATE_CACHE_SIZES_H

#include "base/core/util.h"

struct sizes;

/* sizes_new - budget in bytes, four for a chunk and as much as a chunk or two more for each 256
 * neighbours. NULL when memory is short. */
struct sizes *sizes_new(uint64_t budget);
/* sizes_free - takes NULL. */
void sizes_free(struct sizes *s);

/* sizes_get - size in bytes of chunk (array, linear); 0: not remembered. */
uint64_t sizes_get(struct sizes *s, uint32_t array, uint64_t linear);

/* sizes_put - remember it, unless it is 0 or does not fit 32 bits. What was remembered of others
 * may be forgotten for it. */
void sizes_put(struct sizes *s, uint32_t array, uint64_t linear, uint64_t size);

#endif
