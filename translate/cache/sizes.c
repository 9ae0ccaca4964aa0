/* SPDX-License-Identifier: BSD-3-Clause */
/* sizes.c - blocks of neighbouring chunks in a table of small sets, as in a processor's cache: the
 * oldest block of its set makes room. One mutex, held for a few instructions and one allocation of
 * a block at most. */
#include "translate/cache/sizes.h"

#include <pthread.h>
#include <string.h>

#include "base/os/lock.h"

#define BLOCK 256 /* chunks */
#define WAYS 4    /* blocks of a set */

struct sizes_block {
	uint32_t *v;     /* BLOCK sizes, 0: not known; NULL: a free place */
	uint64_t number; /* linear / BLOCK */
	uint64_t used;   /* the clock when it was last used */
	uint32_t array;
};

struct sizes {
	pthread_mutex_t lock; /* of everything below but n_sets */
	size_t n_sets;
	struct sizes_block *blocks; /* n_sets * WAYS; NULL until something is remembered */
	uint64_t clock;
};

struct sizes *sizes_new(uint64_t budget)
{
	struct sizes *s = alloc_array(1, sizeof(*s));
	uint64_t each = WAYS * (sizeof(struct sizes_block) + BLOCK * sizeof(uint32_t));

	if (!s)
		return NULL;
	(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes */
	s->n_sets = (size_t)u64_min(u64_max(budget / each, 1), SIZE_MAX / each);
	return s;
}

void sizes_free(struct sizes *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->blocks && i < s->n_sets * WAYS; i++)
		free(s->blocks[i].v);
	free(s->blocks);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* set_of - neighbouring blocks are in neighbouring sets, so that a run of them fills the table
 * evenly. */
static struct sizes_block *set_of(const struct sizes *s, uint32_t array, uint64_t number)
{
	uint64_t h = number + array * 0x9e3779b97f4a7c15u;

	return &s->blocks[(size_t)(h % s->n_sets) * WAYS];
}

/* sizes_find_locked - the block with these chunks; NULL: nothing is known of them. */
static struct sizes_block *sizes_find_locked(struct sizes *s, uint32_t array, uint64_t number)
{
	struct sizes_block *set = s->blocks ? set_of(s, array, number) : NULL;

	for (size_t i = 0; set && i < WAYS; i++)
		if (set[i].v && set[i].number == number && set[i].array == array) {
			set[i].used = ++s->clock;
			return &set[i];
		}
	return NULL;
}

/* sizes_make_locked - an empty block, a new one or that of its set which was used longest ago; NULL
 * when memory is short. */
static struct sizes_block *sizes_make_locked(struct sizes *s, uint32_t array, uint64_t number)
{
	struct sizes_block *set, *b;

	if (!s->blocks)
		s->blocks = alloc_array(s->n_sets, WAYS * sizeof(*s->blocks));
	if (!s->blocks)
		return NULL;
	set = set_of(s, array, number);
	b = set;
	for (size_t i = 1; i < WAYS; i++)
		if (set[i].used < b->used) /* a free place was never used: 0 */
			b = &set[i];
	if (!b->v)
		b->v = alloc_array(BLOCK, sizeof(*b->v));
	if (!b->v)
		return NULL;
	memset(b->v, 0, BLOCK * sizeof(*b->v));
	b->array = array;
	b->number = number;
	b->used = ++s->clock;
	return b;
}

uint64_t sizes_get(struct sizes *s, uint32_t array, uint64_t linear)
{
	const struct sizes_block *b;
	LOCK_SCOPE(&s->lock);

	b = sizes_find_locked(s, array, linear / BLOCK);
	return b ? b->v[linear % BLOCK] : 0;
}

void sizes_put(struct sizes *s, uint32_t array, uint64_t linear, uint64_t size)
{
	struct sizes_block *b;

	if (size == 0 || size > UINT32_MAX)
		return;
	LOCK_SCOPE(&s->lock);
	b = sizes_find_locked(s, array, linear / BLOCK);
	if (!b)
		b = sizes_make_locked(s, array, linear / BLOCK);
	if (b)
		b->v[linear % BLOCK] = (uint32_t)size;
}
