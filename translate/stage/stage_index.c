/* SPDX-License-Identifier: BSD-3-Clause */
/* stage_index.c - what a stage holds, by key: a tree of names, and a hash table to find a name
 * in its directory. A few hundred bytes a key, whatever is behind it. */
#include <string.h>
#include <sys/random.h>

#include "base/core/hash.h"
#include "translate/stage/stage_int.h"

static uint64_t stage_index_hash_of(const struct stage_index *x,
				    const struct stage_node *parent, const char *name,
				    size_t len)
{
	return hash_u64(hash_bytes(x->seed ^ hash_u64((uintptr_t)parent), name, len));
}

int index_init(struct stage_index *x, struct err *e)
{
	*x = (struct stage_index){0};
	if (getrandom(&x->seed, sizeof(x->seed), 0) != (ssize_t)sizeof(x->seed))
		x->seed = (uint64_t)(uintptr_t)x; /* names that collide cost time, no more */
	x->root = alloc_array(1, sizeof(*x->root) + 1);
	return x->root ? 0 : err_nomem(e);
}

static void stage_index_free_node(struct stage_node *n)
{
	free(n->alias);
	free(n);
}

void index_free(struct stage_index *x)
{
	if (x->root) {
		index_clear_below(x, x->root);
		stage_index_free_node(x->root);
	}
	map_free(&x->table);
	*x = (struct stage_index){0};
}

static struct stage_node *stage_index_child(const struct stage_index *x,
					    const struct stage_node *parent, const char *name,
					    size_t len)
{
	struct stage_node *n;

	MAP_EACH(n, &x->table, stage_index_hash_of(x, parent, name, len), link)
		if (n->parent == parent && n->name_len == len &&
		    memcmp(n->name, name, len) == 0)
			return n;
	return NULL;
}

struct stage_node *index_walk(const struct stage_index *x, const char *key, bool *ret_hidden)
{
	struct stage_node *n = x->root;
	bool hidden = n->hides;

	while (n && *key) {
		size_t len = strcspn(key, "/");

		n = stage_index_child(x, n, key, len);
		hidden |= n && n->hides;
		key += len + (key[len] == '/');
	}
	if (ret_hidden)
		*ret_hidden = hidden;
	return n;
}

static struct stage_node *stage_index_add(struct stage_index *x, struct stage_node *parent,
					  const char *name, size_t len)
{
	struct stage_node *n = alloc_array(1, sizeof(*n) + len + 1);

	if (!n || map_add(&x->table, &n->link, stage_index_hash_of(x, parent, name, len)) < 0) {
		free(n);
		return NULL;
	}
	memcpy(n->name, name, len);
	n->name_len = len;
	n->parent = parent;
	n->next = parent->below;
	if (n->next)
		n->next->prev = n;
	parent->below = n;
	return n;
}

struct stage_node *index_make(struct stage_index *x, const char *key)
{
	struct stage_node *n = x->root;

	while (*key) {
		size_t len = strcspn(key, "/");
		struct stage_node *c = stage_index_child(x, n, key, len);

		if (!c)
			c = stage_index_add(x, n, key, len);
		if (!c) {
			index_trim(x, n);
			return NULL;
		}
		n = c;
		key += len + (key[len] == '/');
	}
	return n;
}

/* stage_index_take_out - of a leaf. */
static void stage_index_take_out(struct stage_index *x, struct stage_node *n)
{
	map_remove(&x->table, &n->link);
	if (n->prev)
		n->prev->next = n->next;
	else
		n->parent->below = n->next;
	if (n->next)
		n->next->prev = n->prev;
	stage_index_free_node(n);
}

void index_trim(struct stage_index *x, struct stage_node *n)
{
	while (n->parent && !n->below && n->kind == STAGE_NOTHING && !n->hides) {
		struct stage_node *parent = n->parent;

		stage_index_take_out(x, n);
		n = parent;
	}
}

static bool lives(enum stage_kind kind)
{
	return kind == STAGE_DATA || kind == STAGE_DIR || kind == STAGE_ALIAS;
}

void index_set(struct stage_index *x, struct stage_node *n, enum stage_kind kind)
{
	bool was = lives(n->kind), is = lives(kind);

	x->entries += (kind != STAGE_NOTHING) - (uint64_t)(n->kind != STAGE_NOTHING);
	for (struct stage_node *up = n; was != is && up; up = up->parent)
		up->alive += is ? 1 : UINT64_MAX;
	free(n->alias);
	n->alias = NULL;
	n->kind = kind;
	n->left = false;
	n->log = NULL;
	n->off = n->len = n->bytes = 0;
	n->crc = 0;
	n->mtime_ns = 0;
}

void index_clear_below(struct stage_index *x, struct stage_node *n)
{
	struct stage_node *at = n;

	while (n->below) {
		struct stage_node *parent;

		while (at->below)
			at = at->below;
		parent = at->parent;
		index_set(x, at, STAGE_NOTHING);
		stage_index_take_out(x, at);
		at = parent;
	}
}

static struct stage_node *deepest(struct stage_node *n)
{
	while (n->below)
		n = n->below;
	return n;
}

void index_sweep(struct stage_index *x)
{
	struct stage_node *n = deepest(x->root);

	while (n != x->root) {
		struct stage_node *next = n->next ? deepest(n->next) : n->parent;

		if (!n->below && n->kind == STAGE_NOTHING && !n->hides)
			stage_index_take_out(x, n);
		n = next;
	}
}

struct stage_node *index_next(const struct stage_node *root, const struct stage_node *n)
{
	if (n->below)
		return n->below;
	while (n != root && !n->next)
		n = n->parent;
	return n == root ? NULL : n->next;
}

void index_key(const struct stage_node *n, char *out)
{
	size_t len = 0;

	for (const struct stage_node *up = n; up->parent; up = up->parent)
		len += up->name_len + (up->parent->parent != NULL);
	out[len] = '\0';
	for (; n->parent; n = n->parent) {
		len -= n->name_len;
		memcpy(out + len, n->name, n->name_len);
		if (n->parent->parent)
			out[--len] = '/';
	}
}
