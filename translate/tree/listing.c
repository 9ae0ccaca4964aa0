/* SPDX-License-Identifier: BSD-3-Clause */
/* listing.c - lists a directory: names of the dataset, staged names, names that were just created.
 *
 * The first request reads a whole listing, which is kept for those that continue. Cookies are
 * hashes of names, and entries are in their order. A listing that had to be read again therefore
 * continues at the same place: a name that exists all the time is listed once, even if a commit
 * comes between. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/hash.h"
#include "translate/tree/tree_int.h"

#define NAMES_MAX ((size_t)256 << 20) /* bytes of names in one directory */
#define COOKIE_SHIFT 11               /* a hash of 53 bits: room for a few that are equal */
#define ROOT_DOCS 8                   /* cookies for the root's metadata, which come first */

struct tree_listing_entry {
	uint64_t cookie;
	uint32_t name; /* offset in names */
	bool is_dir;
};

struct tree_listing {
	uint64_t dir;     /* id */
	uint32_t holders; /* tables: its users, and the table */
	uint64_t used;    /* tables */
	struct buf names;
	struct tree_listing_entry *v;
	size_t n, cap;
};

/* ---- entries ---- */

/* fresh_below - files right below a directory that were created and are neither staged nor in the
 * dataset. */
static int fresh_below(struct tree *t, const char *dir, struct buf *out, struct err *e)
{
	struct tree_node **v;
	size_t n, len = strlen(dir);
	int rc = t->n_fresh ? nodes_below(t, dir, &v, &n, e) : -ENOENT;

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; i < n; i++) {
		const char *name = v[i]->key + len + (len > 0);

		if (v[i]->fresh && !strchr(name, '/'))
			buf_put(out, name, strlen(name) + 1);
		node_put(v[i]);
	}
	free(v);
	return buf_ok(out) ? 0 : err_nomem(e);
}

/* Names move from the created to the staged ones, and back only under the write lock. In this order
 * of reading, a name that moves meanwhile is listed twice, and never left out. */
int tree_each(struct tree *t, const char *key, store_emit *fn, void *arg, struct err *e)
{
	auto_buf fresh = buf_of(NAMES_MAX);
	bool more = true;
	int rc = fresh_below(t, key, &fresh, e);

	for (const char *x = buf_next(&fresh, NULL); !rc && more && x; x = buf_next(&fresh, x))
		more = fn(arg, x, false, NULL);
	if (!rc && more)
		rc = store_list(t->content, key, false, fn, arg, e);
	return rc == -ENOENT ? 0 : rc; /* a directory that vanished with a commit is empty */
}

static bool tree_listing_any(void *arg, const char *name NZ_UNUSED, bool is_dir NZ_UNUSED,
			     const struct store_stat *st NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

int tree_is_empty(struct tree *t, const char *key, const char *shown, struct err *e)
{
	bool any = false;
	int rc = tree_each(t, key, tree_listing_any, &any, e);

	return !rc && any ? err_set(e, -ENOTEMPTY, "'%.200s' is not empty", shown) : rc;
}

/* ---- listings ---- */

static const char *tree_listing_text(const struct tree_listing *l,
				     const struct tree_listing_entry *x)
{
	return (const char *)l->names.data + x->name;
}

struct tree_listing_making {
	struct tree *t;
	struct tree_listing *l;
	bool is_root;
	bool full;
};

static uint64_t hash_name(const struct tree *t, const char *name)
{
	return hash_u64(hash_text(t->seed, name));
}

static bool tree_listing_add(void *arg, const char *name, bool is_dir,
			     const struct store_stat *st NZ_UNUSED)
{
	struct tree_listing_making *m = arg;
	struct tree_listing *l = m->l;
	unsigned doc;

	m->full = grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0;
	if (m->full)
		return false;
	/* A program that removes a whole tree reaches the root's metadata first: after that none of
	 * its removals is committed. */
	doc = m->is_root ? root_doc(name) : 0;
	l->v[l->n++] = (struct tree_listing_entry){
		.cookie = doc ? doc : (hash_name(m->t, name) >> COOKIE_SHIFT) + 1 + ROOT_DOCS,
		.name = (uint32_t)l->names.len, /* below NAMES_MAX */
		.is_dir = is_dir,
	};
	buf_put(&l->names, name, strlen(name) + 1);
	m->full = !buf_ok(&l->names);
	return !m->full;
}

static int tree_listing_compare(const void *a, const void *b, void *arg)
{
	const struct tree_listing_entry *x = a, *y = b;

	if (x->cookie != y->cookie)
		return x->cookie < y->cookie ? -1 : 1;
	return strcmp(tree_listing_text(arg, x), tree_listing_text(arg, y));
}

/* tree_listing_order - each name once, each cookie larger than the one before. */
static void tree_listing_order(struct tree_listing *l)
{
	size_t n = 0;

	if (l->n)
		qsort_r(l->v, l->n, sizeof(*l->v), tree_listing_compare, l);
	for (size_t i = 0; i < l->n; i++)
		if (!n || strcmp(tree_listing_text(l, &l->v[n - 1]),
				 tree_listing_text(l, &l->v[i])) != 0)
			l->v[n++] = l->v[i];
	l->n = n;
	for (size_t i = 1; i < n; i++)
		if (l->v[i].cookie <= l->v[i - 1].cookie)
			l->v[i].cookie = l->v[i - 1].cookie + 1;
}

static void tree_listing_listing_free(struct tree_listing *l)
{
	if (!l)
		return;
	buf_release(&l->names);
	free(l->v);
	free(l);
}

static int tree_listing_make(struct tree *t, const struct tree_node *dir,
			     struct tree_listing **ret, struct err *e)
{
	struct tree_listing_making m = {
		.t = t, .l = alloc_array(1, sizeof(*m.l)), .is_root = !*dir->key};
	int rc;

	if (!m.l)
		return err_nomem(e);
	*m.l = (struct tree_listing){
		.dir = dir->id, .holders = 1, .names = buf_of(NAMES_MAX)};
	read_lock(t);
	rc = tree_each(t, dir->key, tree_listing_add, &m, e);
	tree_unlock(t);
	if (!rc && m.full)
		rc = err_set(e, -ERANGE, "there are too many names in '%.200s'", dir->key);
	if (rc) {
		tree_listing_listing_free(m.l);
		return rc;
	}
	tree_listing_order(m.l);
	*ret = m.l;
	return 0;
}

/* tree_listing_keep - in the table, instead of one of the same directory or the one not used for
 * longest. */
static void tree_listing_keep(struct tree *t, struct tree_listing *l)
{
	struct tree_listing *old;
	size_t at = 0;

	(void)pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < RW_LISTINGS; i++) {
		if (t->listings[i] && t->listings[i]->dir == l->dir) {
			at = i;
			break;
		}
		if (t->listings[at] &&
		    (!t->listings[i] || t->listings[i]->used < t->listings[at]->used))
			at = i;
	}
	old = t->listings[at];
	if (old && --old->holders)
		old = NULL;
	l->holders++;
	l->used = ++t->listing_clock;
	t->listings[at] = l;
	(void)pthread_mutex_unlock(&t->lock);
	tree_listing_listing_free(old);
}

static struct tree_listing *tree_listing_kept(struct tree *t, uint64_t dir)
{
	LOCK_SCOPE(&t->lock);

	for (size_t i = 0; i < RW_LISTINGS; i++)
		if (t->listings[i] && t->listings[i]->dir == dir) {
			t->listings[i]->holders++;
			t->listings[i]->used = ++t->listing_clock;
			return t->listings[i];
		}
	return NULL;
}

static void tree_listing_let_go(struct tree *t, struct tree_listing *l)
{
	bool last;

	(void)pthread_mutex_lock(&t->lock);
	last = --l->holders == 0;
	(void)pthread_mutex_unlock(&t->lock);
	if (last)
		tree_listing_listing_free(l);
}

void tree_listings_free(struct tree *t)
{
	for (size_t i = 0; i < RW_LISTINGS; i++)
		tree_listing_listing_free(t->listings[i]);
}

/* tree_listing_id_of - the id by which the kernel knows an entry. No id is made for an unknown
 * one. */
static uint64_t tree_listing_id_of(struct tree *t, const struct tree_node *dir,
				   const char *name)
{
	char key[STORE_KEY_MAX + 1];
	auto_node *n =
		store_key_join(dir->key, name, strlen(name), key) ? node_find(t, key) : NULL;

	return n ? n->id : t->o.id_limit - 1;
}

/* list_above - the directory above the root. */
static int list_above(struct tree *t, uint64_t cookie, view_emit *emit, void *arg)
{
	auto_node *root = NULL;
	TREE_SCOPE(read_lock(t));

	if (cookie != 0 || t->removed)
		return 0;
	root = node_enter(t, "", true);
	(void)emit(arg, t->o.name, root ? root->id : t->o.id_limit - 1, true, NULL, 1);
	return 0;
}

int tree_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr, view_emit *emit,
	      void *arg, struct err *e)
{
	struct tree *t = tree_of(v);
	struct tree_listing *l;
	auto_node *n = NULL;
	size_t i = 0, end;
	int rc = node_dir(t, dir, &n, e);

	(void)want_attr;
	if (rc)
		return rc == -ENOENT ? 0 : rc; /* a directory that was removed has no entries */
	if (tree_is_above(t, n))
		return list_above(t, cookie, emit, arg);
	l = cookie ? tree_listing_kept(t, dir) : NULL;
	if (!l) {
		commits_poll(t);
		rc = tree_listing_make(t, n, &l, e);
		if (rc)
			return rc;
		tree_listing_keep(t, l);
	}
	end = l->n;
	BISECT(i, end, mid, l->v[mid].cookie <= cookie);
	read_lock(t); /* keys */
	for (; i < l->n; i++)
		if (!emit(arg, tree_listing_text(l, &l->v[i]),
			  tree_listing_id_of(t, n, tree_listing_text(l, &l->v[i])),
			  l->v[i].is_dir, NULL, l->v[i].cookie))
			break;
	tree_unlock(t);
	tree_listing_let_go(t, l);
	return 0;
}
