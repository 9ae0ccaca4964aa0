/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve.c - finds a key in a work, in the stage, or in the dataset. */
#include <errno.h>
#include <string.h>

#include "base/core/clock.h"
#include "translate/tree/tree_int.h"

#define TRIES 100 /* at something that is written again and again */

int tree_key(const struct tree_node *dir, const char *name, size_t len,
	     char out[STORE_KEY_MAX + 1], struct err *e)
{
	if (len > 255 || !store_key_join(dir->key, name, len, out))
		return err_set(e, -ENAMETOOLONG, "a name of %zu bytes in '%.100s' is too long",
			       len, dir->key);
	if (!len || memchr(name, '/', len) || !store_key_ok(out))
		return err_set(e, -EINVAL, "'%.200s' is not a valid name", out);
	return 0;
}

/* ---- the dataset ---- */

/* from_root - walks a key's components. */
static int from_root(const struct snapshot *g, const char *key, struct view_attr *ret,
		     struct err *e)
{
	uint64_t id = VIEW_ROOT;

	if (!*key)
		return g->view->ops->getattr(g->view, VIEW_ROOT, ret, e);
	for (;;) {
		size_t len = strcspn(key, "/");
		int rc = g->view->ops->lookup(g->view, id, key, len, ret, e);

		if (rc || !key[len])
			return rc == -ENOTDIR ? -ENOENT : rc;
		if (!ret->is_dir)
			return -ENOENT;
		id = ret->id;
		key += len + 1;
	}
}

/* remembered - the cached look-up of a node in this snapshot: 1 with *ret_id (0: it does not
 * exist), 0: none. */
static int remembered(struct tree *t, struct tree_node *n, const struct snapshot *g,
		      uint64_t *ret_id)
{
	LOCK_SCOPE(&t->lock);

	*ret_id = n->base_id;
	return n->snapshot == g->number + 1;
}

static void resolve_remember(struct tree *t, struct tree_node *n, const struct snapshot *g,
			     uint64_t id)
{
	LOCK_SCOPE(&t->lock);

	n->snapshot = g->number + 1;
	n->base_id = id;
}

/* dir_id - of a directory in the dataset. */
static int dir_id(struct tree *t, const struct snapshot *g, const char *key, uint64_t *ret,
		  struct err *e)
{
	struct tree_node *n = node_find(t, key);
	struct view_attr a;
	int rc;

	if (n && remembered(t, n, g, ret)) {
		node_put(t, n);
		return *ret ? 0 : -ENOENT;
	}
	rc = from_root(g, key, &a, e);
	if (!rc && !a.is_dir)
		rc = -ENOENT;
	if (!rc)
		*ret = a.id;
	if (n && (!rc || rc == -ENOENT))
		resolve_remember(t, n, g, rc ? 0 : a.id);
	node_put(t, n);
	return rc;
}

static int resolve_in_dataset(struct tree *t, const struct snapshot *g, const char *key,
			      struct view_attr *ret, struct err *e)
{
	char dir[STORE_KEY_MAX + 1];
	uint64_t id = VIEW_ROOT;
	int rc = 0;

	if (!*key)
		return from_root(g, key, ret, e);
	store_key_parent(key, dir);
	if (*dir)
		rc = dir_id(t, g, dir, &id, e);
	if (rc)
		return rc;
	key = store_key_name(key);
	rc = g->view->ops->lookup(g->view, id, key, strlen(key), ret, e);
	return rc == -ENOTDIR ? -ENOENT : rc;
}

/* stamp_of - of content in a snapshot; those of works and of the stage are odd. */
static uint64_t stamp_of(const struct snapshot *g, uint64_t id)
{
	return ((g->number + 1) * 0x9e3779b97f4a7c15U ^ id) << 1;
}

/* find_base - key: its name in the dataset. */
static int find_base(struct tree *t, const struct snapshot *g, const char *key,
		     struct found *ret, struct err *e)
{
	struct view_attr a = {0};
	int rc = resolve_in_dataset(t, g, key, &a, e);

	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	*ret = (struct found){
		.kind = a.is_dir ? FOUND_DIR : FOUND_BASE,
		.in_base_dir = a.is_dir,
		.unknown = a.unknown,
		.size = a.size,
		.base_id = a.id,
		.stamp = stamp_of(g, a.id),
	};
	return 0;
}

int tree_base(struct tree *t, const struct snapshot *g, const char *key, struct found *ret,
	      struct err *e)
{
	*ret = (struct found){.kind = FOUND_NOTHING};
	return find_base(t, g, key, ret, e);
}

/* find_dir - a directory that the stage has: is it in the dataset, too? */
static int find_dir(struct tree *t, const struct snapshot *g, const char *key,
		    struct found *ret, struct err *e)
{
	struct found below = {0};
	int rc = 0;

	*ret = (struct found){.kind = FOUND_DIR};
	if (!stage_hides(t->stage, key))
		rc = find_base(t, g, key, &below, e);
	if (!rc && below.kind == FOUND_DIR)
		*ret = below;
	return rc;
}

int tree_find(struct tree *t, const struct snapshot *g, const char *key, struct found *ret,
	      struct err *e)
{
	struct tree_node *n = node_find(t, key);
	bool worked;

	*ret = (struct found){.kind = FOUND_WORK};
	worked = n && node_has_work(t, n, &ret->size, &ret->mtime);
	node_put(t, n);
	return worked ? 0 : tree_find_below(t, g, key, ret, e);
}

int tree_find_below(struct tree *t, const struct snapshot *g, const char *key,
		    struct found *ret, struct err *e)
{
	char alias[STORE_KEY_MAX + 1];
	const struct held_chunk *held;
	struct stage_entry x;
	int rc;

	*ret = (struct found){.kind = FOUND_NOTHING};
	stage_find(t->stage, key, &x, alias);
	switch (x.kind) {
	case STAGE_DATA:
		*ret = (struct found){.kind = FOUND_STAGED,
				      .size = x.len,
				      .mtime = clock_timespec(x.mtime_ns),
				      .stamp = x.version << 1 | 1,
				      .x = x};
		return 0;
	case STAGE_DIR:
		return find_dir(t, g, key, ret, e);
	case STAGE_GONE:
		return 0;
	case STAGE_ALIAS:
		return find_base(t, g, alias, ret, e);
	case STAGE_NOTHING:
		break;
	}
	rc = find_base(t, g, key, ret, e);
	if (!rc && ret->kind == FOUND_NOTHING && emptied_has(t, key))
		ret->kind = FOUND_DIR;
	held = ret->kind == FOUND_BASE ? held_find(t, key) : NULL;
	if (held) {
		ret->held = held;
		ret->size = held->size;
		ret->mtime = held->mtime;
		ret->stamp = held->stamp;
		ret->unknown = false;
	}
	return rc;
}

void tree_attr(struct tree *t, const struct snapshot *g, const struct tree_node *n,
	       const struct found *f, struct view_attr *ret)
{
	const struct stat *st = g->source ? &g->source->ds.st : &t->o.st;
	mode_t mode = st->st_mode & 0666;

	*ret = (struct view_attr){
		.id = n->id,
		.nlink = 1,
		.is_dir = f->kind == FOUND_DIR,
		.steady = f->kind == FOUND_DIR,
		.size = f->kind == FOUND_DIR ? 0 : f->size,
		.volatile_attrs = true,
		.own = true,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
		.unknown = f->unknown,
	};
	ret->mode = ret->is_dir ? mode | (mode & 0444) >> 2 : mode;
	ret->nameless = n->gone && !ret->is_dir;
	if (n->mode)
		ret->mode = n->mode;
	if (f->kind == FOUND_WORK || f->kind == FOUND_STAGED || f->held)
		ret->mtime = ret->ctime = f->mtime;
}

/* ---- content ---- */

static int read_base(const struct snapshot *g, uint64_t id, uint64_t off, uint8_t *out,
		     size_t len, size_t *ret, struct err *e)
{
	struct span s = {0};
	int rc = g->view->ops->read(g->view, id, off, len, out, &s, e);

	if (!rc)
		rc = span_fetch(&s, out, len, ret, e);
	if (!rc && g->source)
		rc = source_check(g->source, e);
	return rc;
}

int tree_read(struct tree *t, const struct snapshot *g, const char *key, const struct found *f,
	      uint64_t off, uint8_t *out, size_t len, size_t *ret, struct err *e)
{
	struct found now = *f;
	int rc = -ESTALE;

	*ret = 0;
	if (f->held)
		return held_read(f->held, off, out, len, ret, e);
	if (f->kind == FOUND_BASE)
		return read_base(g, f->base_id, off, out, len, ret, e);
	for (int i = 0; rc == -ESTALE && i < TRIES && now.kind == FOUND_STAGED; i++) {
		size_t n = off < now.size ? (size_t)u64_min(len, now.size - off) : 0;

		rc = stage_read(t->stage, key, &now.x, off, out, n, e);
		if (!rc)
			*ret = n;
		else if (rc == -ESTALE && tree_find_below(t, g, key, &now, e) < 0)
			return e ? e->code : -EIO;
	}
	return rc;
}

static int resolve_load_all(struct tree *t, const struct snapshot *g, const char *key,
			    const struct found *f, struct dirty_file *w, struct err *e)
{
	size_t room = (size_t)u64_min(f->size, (uint64_t)1 << 20), n;
	auto_free uint8_t *piece = alloc_array(1, room);
	int rc = piece ? 0 : err_nomem(e);

	for (uint64_t at = 0; !rc && at < f->size; at += n) {
		n = 0;
		rc = tree_read(t, g, key, f, at, piece, (size_t)u64_min(room, f->size - at), &n,
			       e);
		if (!rc && !n)
			rc = err_set(e, -EIO, "'%.200s' ends at byte %llu", key,
				     (unsigned long long)at);
		if (!rc)
			rc = work_write(t, w, at, piece, n, e);
	}
	return rc;
}

int tree_find_stored(struct tree *t, const struct snapshot *g, const struct tree_node *n,
		     struct found *ret, struct err *e)
{
	int rc = n->gone ? 0 : tree_find_below(t, g, n->key, ret, e);

	if (rc)
		return rc;
	if (n->gone || (ret->kind == FOUND_NOTHING && !n->fresh))
		return err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
	if (ret->kind == FOUND_DIR)
		return err_set(e, -EISDIR, "'%.200s' is a directory", n->key);
	return 0;
}

int tree_load(struct tree *t, struct tree_node *n, struct dirty_file *w, struct err *e)
{
	struct snapshot *g;
	struct found f;
	int rc;

	if (w->loaded)
		return 0;
	g = snapshots_get(t->snapshots);
	rc = tree_find_stored(t, g, n, &f, e);
	if (!rc && f.kind != FOUND_NOTHING)
		rc = resolve_load_all(t, g, n->key, &f, w, e);
	snapshot_put(t->snapshots, g);
	if (rc)
		work_drop(t, w);
	else
		w->loaded = true;
	return rc;
}
