/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - a chained hash table that grows. */
#include "base/core/map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/util.h"

enum { FIRST_HEADS = 64 };

static struct link **core_map_head_of(const struct map *m, uint64_t hash)
{
	return &m->heads[hash & (m->n_heads - 1)];
}

static int core_map_grow(struct map *m)
{
	struct map bigger = {.n = m->n, .n_heads = m->n_heads ? 2 * m->n_heads : FIRST_HEADS};

	bigger.heads = alloc_array(bigger.n_heads, sizeof(*bigger.heads));
	if (!bigger.heads)
		return -1;
	for (size_t i = 0; i < m->n_heads; i++)
		for (struct link *l = m->heads[i], *next; l; l = next) {
			struct link **head = core_map_head_of(&bigger, l->hash);

			next = l->next;
			l->next = *head;
			*head = l;
		}
	free(m->heads);
	*m = bigger;
	return 0;
}

static void core_map_put(struct map *m, struct link *l, uint64_t hash)
{
	struct link **head = core_map_head_of(m, hash);

	*l = (struct link){.next = *head, .hash = hash};
	*head = l;
	m->n++;
}

int map_add(struct map *m, struct link *l, uint64_t hash)
{
	if (m->n >= m->n_heads && core_map_grow(m) < 0 && !m->heads)
		return -ENOMEM; /* if a table cannot grow, it only gets slower */
	core_map_put(m, l, hash);
	return 0;
}

void map_remove(struct map *m, struct link *l)
{
	struct link **at = core_map_head_of(m, l->hash);

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	m->n--;
}

void map_move(struct map *m, struct link *l, uint64_t hash)
{
	map_remove(m, l);
	core_map_put(m, l, hash);
}

static struct link *matching(struct link *l, uint64_t hash)
{
	while (l && l->hash != hash)
		l = l->next;
	return l;
}

struct link *map_first(const struct map *m, uint64_t hash)
{
	return m->n_heads ? matching(*core_map_head_of(m, hash), hash) : NULL;
}

struct link *map_next(const struct link *l)
{
	return matching(l->next, l->hash);
}

struct link *map_walk(const struct map *m, const struct link *l)
{
	if (l && l->next)
		return l->next;
	for (size_t i = l ? (l->hash & (m->n_heads - 1)) + 1 : 0; i < m->n_heads; i++)
		if (m->heads[i])
			return m->heads[i];
	return NULL;
}

void map_free(struct map *m)
{
	free(m->heads);
	*m = (struct map){0};
}
