/* SPDX-License-Identifier: BSD-3-Clause */
/* stage_index.c - what a stage holds, by key: a tree of names, and a hash table to find a name
 * in its directory. A few hundred bytes a key, whatever is behind it. */
#include <string.h>
#include <sys/random.h>

#include "base/core/hash.h"
#include "translate/stage/stage_int.h"

#define HEADS_FIRST 64

static uint64_t stage_index_hash_of(const struct stage_index *x,
				    const struct stage_node *parent, const char *name,
				    size_t len)
{
	return hash_u64(hash_bytes(x->seed ^ hash_u64((uintptr_t)parent), name, len));
}

static struct stage_node **stage_index_head_of(const struct stage_index *x, uint64_t hash)
{
	return &x->heads[(hash >> 20) & (x->n_heads - 1)];
}

int index_init(struct stage_index *x, struct err *e)
{
	*x = (struct stage_index){.n_heads = HEADS_FIRST};
	if (getrandom(&x->seed, sizeof(x->seed), 0) != (ssize_t)sizeof(x->seed))
		x->seed = (uint64_t)(uintptr_t)x; /* names that collide cost time, no more */
	x->heads = alloc_array(x->n_heads, sizeof(*x->heads));
	x->root = alloc_array(1, sizeof(*x->root) + 1);
	if (x->heads && x->root)
		return 0;
	index_free(x);
	return err_nomem(e);
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
	free(x->heads);
	*x = (struct stage_index){0};
}

static struct stage_node *stage_index_child(const struct stage_index *x,
					    const struct stage_node *parent, const char *name,
					    size_t len)
{
	uint64_t hash = stage_index_hash_of(x, parent, name, len);
	struct stage_node *n = *stage_index_head_of(x, hash);

	while (n && (n->hash != hash || n->parent != parent || n->name_len != len ||
		     memcmp(n->name, name, len) != 0))
		n = n->chain;
	return n;
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

/* stage_index_widen - twice the heads; when memory is short chains get longer. */
static void stage_index_widen(struct stage_index *x)
{
	size_t old = x->n_heads;
	struct stage_node **heads = x->heads;

	x->heads = alloc_array(old * 2, sizeof(*x->heads));
	if (!x->heads) {
		x->heads = heads;
		return;
	}
	x->n_heads = old * 2;
	for (size_t i = 0; i < old; i++) {
		struct stage_node *n = heads[i];

		while (n) {
			struct stage_node *next = n->chain,
					  **at = stage_index_head_of(x, n->hash);

			n->chain = *at;
			*at = n;
			n = next;
		}
	}
	free(heads);
}

static struct stage_node *stage_index_add(struct stage_index *x, struct stage_node *parent,
					  const char *name, size_t len)
{
	struct stage_node *n = alloc_array(1, sizeof(*n) + len + 1), **at;

	if (!n)
		return NULL;
	memcpy(n->name, name, len);
	n->name_len = len;
	n->parent = parent;
	n->hash = stage_index_hash_of(x, parent, name, len);
	n->next = parent->below;
	if (n->next)
		n->next->prev = n;
	parent->below = n;
	if (x->n >= x->n_heads)
		stage_index_widen(x);
	at = stage_index_head_of(x, n->hash);
	n->chain = *at;
	*at = n;
	x->n++;
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
	struct stage_node **at = stage_index_head_of(x, n->hash);

	while (*at != n)
		at = &(*at)->chain;
	*at = n->chain;
	if (n->prev)
		n->prev->next = n->next;
	else
		n->parent->below = n->next;
	if (n->next)
		n->next->prev = n->prev;
	x->n--;
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
