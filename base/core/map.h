/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - an intrusive hash table of structures that contain a link. The caller compares keys. */
#ifndef BASE_CORE_MAP_H
#define BASE_CORE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/core/util.h"

/* map - chained hash table of structures that contain a link. */
struct link {
	struct link *next;
	uint64_t hash;
};

struct map {
	struct link **heads;
	size_t n, n_heads; /* n_heads is 0 or a power of two */
};

/* map_add - returns 0 or -ENOMEM. */
int map_add(struct map *m, struct link *l, uint64_t hash) NZ_MUST_USE;
void map_remove(struct map *m, struct link *l);
/* map_move - change the hash of a link that is in the table. */
void map_move(struct map *m, struct link *l, uint64_t hash);
/* map_first, map_next - the links with this hash. */
struct link *map_first(const struct map *m, uint64_t hash);
struct link *map_next(const struct link *l);
/* MAP_EACH - a loop over the structures with this hash: x points to each, `member` is its link. */
#define MAP_EACH(x, m, hash, member)                                                           \
	for (struct link *each_ = map_first(m, hash);                                          \
	     each_ && ((x) = CONTAINER_OF(each_, __typeof__(*(x)), member), true);             \
	     each_ = map_next(each_))
/* map_walk - all links in no particular order: the one after l, or the first for NULL; NULL at the
 * end. To free elements during a walk, get the next link first. */
struct link *map_walk(const struct map *m, const struct link *l);
/* map_free - free the table, not its elements. */
void map_free(struct map *m);

#endif
