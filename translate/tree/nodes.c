/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c - names that the kernel knows or that are open, and no others: memory does not grow with
 * the tree. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/core/hash.h"
#include "translate/tree/tree_int.h"

static uint64_t hash_key(const struct tree *t, const char *key)
{
	return hash_u64(hash_text(t->seed, key));
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
	if (!n->key || map_add(&t->by_id, &n->by_id, t->next_id) < 0)
		goto fail;
	if (map_add(&t->by_key, &n->by_key, hash_key(t, key)) < 0) {
		map_remove(&t->by_id, &n->by_id);
		goto fail;
	}
	n->tree = t;
	n->id = t->next_id++;
	n->is_dir = is_dir;
	n->users = 1;
	return n;

fail:
	free(n->key);
	free(n);
	return NULL;
}

int nodes_init(struct tree *t, struct err *e)
{
	if (getrandom(&t->seed, sizeof(t->seed), 0) != (ssize_t)sizeof(t->seed))
		return err_sys(e, errno, "cannot get random numbers");
	t->next_id = VIEW_ROOT;
	t->top = nodes_make_locked(t, "", true);
	if (t->top && t->o.name)
		map_remove(&t->by_key, &t->top->by_key); /* the key is the root's */
	return t->top ? 0 : err_nomem(e);
}

static void nodes_free_node(struct tree_node *n)
{
	work_free(n->tree, n->work);
	if (n->opened)
		atomic_fetch_sub(&n->tree->n_opened, 1);
	free(n->key);
	free(n);
}

void nodes_free(struct tree *t)
{
	for (struct link *l = map_walk(&t->by_id, NULL), *next; l; l = next) {
		next = map_walk(&t->by_id, l);
		nodes_free_node(CONTAINER_OF(l, struct tree_node, by_id));
	}
	map_free(&t->by_id);
	map_free(&t->by_key);
}

static struct tree_node *by_key_locked(const struct tree *t, const char *key)
{
	struct tree_node *n;

	MAP_EACH(n, &t->by_key, hash_key(t, key), by_key)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

int node_get(struct tree *t, uint64_t id, struct tree_node **ret, struct err *e)
{
	LOCK_SCOPE(&t->lock);

	MAP_EACH(*ret, &t->by_id, id, by_id) { /* the hash is the id */
		(*ret)->users++;
		return 0;
	}
	*ret = NULL;
	return err_set(e, -ESTALE, "no file has the id %llu", (unsigned long long)id);
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
		node_put(steal(ret));
	return rc;
}

void node_put(struct tree_node *n)
{
	struct tree *t;
	bool last;

	if (!n)
		return;
	t = n->tree;
	(void)pthread_mutex_lock(&t->lock);
	last = --n->users == 0 && !n->known && n != t->top;
	if (last)
		map_remove(&t->by_id, &n->by_id);
	if (last && !n->gone)
		map_remove(&t->by_key, &n->by_key);
	(void)pthread_mutex_unlock(&t->lock);
	if (last)
		nodes_free_node(n);
}

struct tree_node *node_find(struct tree *t, const char *key)
{
	struct tree_node *n;
	LOCK_SCOPE(&t->lock);

	n = by_key_locked(t, key);
	if (n)
		n->users++;
	return n;
}

struct tree_node *node_enter(struct tree *t, const char *key, bool is_dir)
{
	struct tree_node *n;
	LOCK_SCOPE(&t->lock);

	n = by_key_locked(t, key);
	if (n && n->is_dir != is_dir) { /* a commit made something else of it */
		map_remove(&t->by_key, &n->by_key);
		n->gone = true;
		n = NULL;
	}
	if (!n)
		return nodes_make_locked(t, key, is_dir);
	n->users++;
	return n;
}

int node_show(struct tree *t, const char *key, const struct found *f, struct view_attr *ret,
	      struct err *e)
{
	auto_node *n = node_enter(t, key, f->kind == FOUND_DIR);

	if (!n)
		return err_nomem(e);
	tree_attr(t, n, f, ret);
	LOCK_SCOPE(&t->lock);
	n->known++;
	return 0;
}

void node_forget(struct tree *t, uint64_t id, uint64_t count)
{
	auto_node *n = NULL;

	if (node_get(t, id, &n, NULL) < 0)
		return;
	LOCK_SCOPE(&t->lock);
	n->known -= u64_min(n->known, count);
}

void node_detach(struct tree *t, struct tree_node *n)
{
	(void)pthread_mutex_lock(&t->lock);
	if (!n->gone)
		map_remove(&t->by_key, &n->by_key);
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
	LOCK_SCOPE(&t->lock);
	free(n->key);
	n->key = copy;
	map_move(&t->by_key, &n->by_key, hash_key(t, key));
	return 0;
}

int nodes_below(struct tree *t, const char *dir, struct tree_node ***ret, size_t *ret_n,
		struct err *e)
{
	size_t n = 0;
	struct tree_node **v;

	(void)pthread_mutex_lock(&t->lock);
	v = alloc_array(t->by_key.n, sizeof(struct tree_node *));
	for (struct link *l = v ? map_walk(&t->by_key, NULL) : NULL; l;
	     l = map_walk(&t->by_key, l)) {
		struct tree_node *x = CONTAINER_OF(l, struct tree_node, by_key);

		if (!*x->key || !store_key_below(dir, x->key))
			continue;
		x->users++;
		v[n++] = x;
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

bool node_has_work(struct tree *t, struct tree_node *n, struct found *ret)
{
	struct dirty_file *w;

	(void)pthread_mutex_lock(&t->lock);
	w = n->work;
	(void)pthread_mutex_unlock(&t->lock);
	if (!w)
		return false;
	LOCK_SCOPE(&w->lock);
	*ret = (struct found){.kind = FOUND_WORK, .size = w->size, .changed = w->changed};
	return w->loaded;
}
