/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c - names that the kernel knows, or that are open, and nothing else: memory
 * does not grow with the tree. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/core/hash.h"
#include "translate/tree/tree_int.h"

#define HEADS_FIRST 256

static uint64_t hash_key(const struct tree *t, const char *key)
{
	return hash_u64(hash_text(t->seed, key));
}

static struct tree_node **id_head(const struct tree *t, uint64_t id)
{
	return &t->by_id[id & (t->n_heads - 1)];
}

static struct tree_node **key_head(const struct tree *t, uint64_t hash)
{
	return &t->by_key[(hash >> 24) & (t->n_heads - 1)];
}

static void link_key(struct tree *t, struct tree_node *n)
{
	struct tree_node **at = key_head(t, n->hash);

	n->key_chain = *at;
	*at = n;
}

static void unlink_key(struct tree *t, struct tree_node *n)
{
	struct tree_node **at = key_head(t, n->hash);

	while (*at != n)
		at = &(*at)->key_chain;
	*at = n->key_chain;
}

static void link_id(struct tree *t, struct tree_node *n)
{
	struct tree_node **at = id_head(t, n->id);

	n->id_chain = *at;
	*at = n;
}

/* nodes_widen - twice the heads, where there is memory. */
static void nodes_widen(struct tree *t)
{
	size_t old = t->n_heads;
	struct tree_node **heads = t->by_id;
	struct tree_node **ids = alloc_array(old * 2, sizeof(*ids));
	struct tree_node **keys = alloc_array(old * 2, sizeof(*keys));

	if (!ids || !keys) {
		free(ids);
		free(keys);
		return;
	}
	free(t->by_key);
	t->by_id = ids;
	t->by_key = keys;
	t->n_heads = old * 2;
	for (size_t i = 0; i < old; i++) {
		struct tree_node *n = heads[i];

		while (n) {
			struct tree_node *next = n->id_chain;

			link_id(t, n);
			if (!n->gone && !tree_is_above(t, n))
				link_key(t, n);
			n = next;
		}
	}
	free(heads);
}

static struct tree_node *nodes_make_locked(struct tree *t, const char *key, bool is_dir)
{
	struct tree_node *n;

	if (t->next_id >= t->o.id_limit)
		return NULL;
	n = alloc_array(1, sizeof(*n));
	if (!n)
		return NULL;
	n->key = strdup(key);
	if (!n->key) {
		free(n);
		return NULL;
	}
	if (t->n_nodes >= t->n_heads)
		nodes_widen(t);
	n->id = t->next_id++;
	n->hash = hash_key(t, key);
	n->is_dir = is_dir;
	n->users = 1;
	link_id(t, n);
	link_key(t, n);
	t->n_nodes++;
	return n;
}

int nodes_init(struct tree *t, struct err *e)
{
	if (getrandom(&t->seed, sizeof(t->seed), 0) != (ssize_t)sizeof(t->seed))
		return err_sys(e, errno, "cannot get random numbers");
	t->n_heads = HEADS_FIRST;
	t->by_id = alloc_array(t->n_heads, sizeof(*t->by_id));
	t->by_key = alloc_array(t->n_heads, sizeof(*t->by_key));
	t->next_id = VIEW_ROOT;
	t->top = t->by_id && t->by_key ? nodes_make_locked(t, "", true) : NULL;
	if (t->top && t->o.name)
		unlink_key(t, t->top); /* the key is the root's */
	return t->top ? 0 : err_nomem(e);
}

static void nodes_free_node(struct tree *t, struct tree_node *n)
{
	work_free(t, n->work);
	if (n->opened)
		atomic_fetch_sub(&t->n_opened, 1);
	free(n->key);
	free(n);
}

void nodes_free(struct tree *t)
{
	for (size_t i = 0; t->by_id && i < t->n_heads; i++) {
		while (t->by_id[i]) {
			struct tree_node *n = t->by_id[i];

			t->by_id[i] = n->id_chain;
			nodes_free_node(t, n);
		}
	}
	free(t->by_id);
	free(t->by_key);
}

/* nodes_tidy_locked - a node that nobody knows goes: returned, for the caller to free. */
static struct tree_node *nodes_tidy_locked(struct tree *t, struct tree_node *n)
{
	struct tree_node **at = id_head(t, n->id);

	if (n->known || n->users || n == t->top)
		return NULL;
	while (*at != n)
		at = &(*at)->id_chain;
	*at = n->id_chain;
	if (!n->gone)
		unlink_key(t, n);
	t->n_nodes--;
	return n;
}

static struct tree_node *by_id_locked(const struct tree *t, uint64_t id)
{
	struct tree_node *n = *id_head(t, id);

	while (n && n->id != id)
		n = n->id_chain;
	return n;
}

static struct tree_node *by_key_locked(const struct tree *t, const char *key)
{
	uint64_t hash = hash_key(t, key);
	struct tree_node *n = *key_head(t, hash);

	while (n && (n->hash != hash || strcmp(n->key, key) != 0))
		n = n->key_chain;
	return n;
}

int node_get(struct tree *t, uint64_t id, struct tree_node **ret, struct err *e)
{
	struct tree_node *n;

	(void)pthread_mutex_lock(&t->lock);
	n = by_id_locked(t, id);
	if (n)
		n->users++;
	(void)pthread_mutex_unlock(&t->lock);
	if (!n)
		return err_set(e, -ESTALE, "no file has the id %llu", (unsigned long long)id);
	*ret = n;
	return 0;
}

int node_dir(struct tree *t, uint64_t id, struct tree_node **ret, struct err *e)
{
	int rc = node_get(t, id, ret, e);

	if (rc)
		return rc;
	if (!(*ret)->is_dir)
		rc = err_set(e, -ENOTDIR, "it is not a directory");
	else if ((*ret)->gone)
		rc = err_set(e, -ENOENT, "the directory was removed");
	if (rc)
		node_put(t, *ret);
	return rc;
}

void node_put(struct tree *t, struct tree_node *n)
{
	struct tree_node *dead;

	if (!n)
		return;
	(void)pthread_mutex_lock(&t->lock);
	n->users--;
	dead = nodes_tidy_locked(t, n);
	(void)pthread_mutex_unlock(&t->lock);
	if (dead)
		nodes_free_node(t, dead);
}

struct tree_node *node_find(struct tree *t, const char *key)
{
	struct tree_node *n;

	(void)pthread_mutex_lock(&t->lock);
	n = by_key_locked(t, key);
	if (n)
		n->users++;
	(void)pthread_mutex_unlock(&t->lock);
	return n;
}

struct tree_node *node_enter(struct tree *t, const char *key, bool is_dir)
{
	struct tree_node *n;

	(void)pthread_mutex_lock(&t->lock);
	n = by_key_locked(t, key);
	if (n && n->is_dir != is_dir) { /* a commit made something else of it */
		unlink_key(t, n);
		n->gone = true;
		n = NULL;
	}
	if (n)
		n->users++;
	else
		n = nodes_make_locked(t, key, is_dir);
	(void)pthread_mutex_unlock(&t->lock);
	return n;
}

void node_known(struct tree *t, struct tree_node *n)
{
	(void)pthread_mutex_lock(&t->lock);
	n->known++;
	(void)pthread_mutex_unlock(&t->lock);
}

void node_forget(struct tree *t, uint64_t id, uint64_t count)
{
	struct tree_node *n, *dead = NULL;

	(void)pthread_mutex_lock(&t->lock);
	n = by_id_locked(t, id);
	if (n) {
		n->known -= u64_min(n->known, count);
		dead = nodes_tidy_locked(t, n);
	}
	(void)pthread_mutex_unlock(&t->lock);
	if (dead)
		nodes_free_node(t, dead);
}

void node_detach(struct tree *t, struct tree_node *n)
{
	(void)pthread_mutex_lock(&t->lock);
	if (!n->gone)
		unlink_key(t, n);
	n->gone = true;
	(void)pthread_mutex_unlock(&t->lock);
	node_fresh(t, n, false);
}

void node_fresh(struct tree *t, struct tree_node *n, bool is)
{
	if (atomic_exchange(&n->fresh, is) != is)
		atomic_fetch_add(&t->n_fresh, is ? 1 : UINT64_MAX);
}

int node_rename(struct tree *t, struct tree_node *n, const char *key, struct err *e)
{
	char *copy = strdup(key);

	if (!copy)
		return err_nomem(e);
	(void)pthread_mutex_lock(&t->lock);
	unlink_key(t, n);
	free(n->key);
	n->key = copy;
	n->hash = hash_key(t, key);
	n->snapshot = 0;
	link_key(t, n);
	(void)pthread_mutex_unlock(&t->lock);
	return 0;
}

int nodes_below(struct tree *t, const char *dir, struct tree_node ***ret, size_t *ret_n,
		struct err *e)
{
	size_t len = strlen(dir), n = 0;
	struct tree_node **v;

	(void)pthread_mutex_lock(&t->lock);
	v = alloc_array(t->n_nodes, sizeof(struct tree_node *));
	for (size_t i = 0; v && i < t->n_heads; i++) {
		for (struct tree_node *x = t->by_key[i]; x; x = x->key_chain) {
			if (len ? strncmp(x->key, dir, len) != 0 || x->key[len] != '/'
				: !*x->key)
				continue;
			x->users++;
			v[n++] = x;
		}
	}
	(void)pthread_mutex_unlock(&t->lock);
	*ret = v;
	*ret_n = n;
	return v ? 0 : err_nomem(e);
}

int node_work(struct tree *t, struct tree_node *n, struct dirty_file **ret, struct err *e)
{
	struct dirty_file *fresh = work_new(), *w;

	(void)pthread_mutex_lock(&t->lock);
	if (!n->work) {
		n->work = fresh;
		fresh = NULL;
	}
	w = n->work;
	(void)pthread_mutex_unlock(&t->lock);
	work_free(t, fresh);
	*ret = w;
	return w ? 0 : err_nomem(e);
}

void node_opened(struct tree *t, struct tree_node *n)
{
	if (!atomic_exchange(&n->opened, true))
		atomic_fetch_add(&t->n_opened, 1);
}

bool node_has_work(struct tree *t, struct tree_node *n, uint64_t *ret_size,
		   struct timespec *ret_mtime)
{
	struct dirty_file *w;
	bool loaded;

	(void)pthread_mutex_lock(&t->lock);
	w = n->work;
	(void)pthread_mutex_unlock(&t->lock);
	if (!w)
		return false;
	(void)pthread_mutex_lock(&w->lock);
	loaded = w->loaded;
	*ret_size = w->size;
	*ret_mtime = w->mtime;
	(void)pthread_mutex_unlock(&w->lock);
	return loaded;
}
