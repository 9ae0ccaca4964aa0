/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.c - the writable tree as a view. */
#include "translate/tree/tree.h"

#include <errno.h>
#include <string.h>

#include "translate/tree/tree_int.h"

/* tree_look - what an entry is, with a node for it. Under the tree's lock. */
static int tree_look(struct tree *t, const struct tree_node *dir, const char *name, size_t len,
		     struct view_attr *ret, struct err *e)
{
	char key[STORE_KEY_MAX + 1] = "";
	struct found f;
	int rc = 0;

	if (!dir->is_dir)
		return err_set(e, -ENOTDIR, "'%.200s' is not a directory", dir->key);
	if (dir->gone)
		return err_set(e, -ENOENT, "'%.200s' was removed", dir->key);
	if (!tree_is_above(t, dir))
		rc = tree_key(dir, name, len, key, e);
	else if (t->removed || !str_is(t->o.name, name, len))
		return err_set(e, -ENOENT, "only '%s' exists here", t->o.name);
	if (rc)
		return err_set(e, -ENOENT, "no such name in '%.200s'", dir->key);
	rc = tree_find(t, key, &f, e);
	if (!rc && f.kind == FOUND_NOTHING)
		rc = err_set(e, -ENOENT, "'%.200s' does not exist", key);
	return rc ? rc : node_show(t, key, &f, ret, e);
}

static int tree_op_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
			  struct view_attr *ret, struct err *e)
{
	struct tree *t = tree_of(v);
	auto_node *n = NULL;
	int rc = node_get(t, dir, &n, e);

	if (rc)
		return rc;
	commits_poll(t);
	TREE_SCOPE(read_lock(t));
	return tree_look(t, n, name, len, ret, e);
}

/* tree_gone_attr - attributes of a node without a name. The content of a file is kept if it was
 * open when the name was removed. If it was written to before and closed, there is a work without
 * content. */
static int tree_gone_attr(struct tree *t, struct tree_node *n, struct found *ret, struct err *e)
{
	*ret = (struct found){.kind = FOUND_DIR};
	if (n->is_dir)
		return 0;
	if (node_has_work(t, n, ret))
		return 0;
	return err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
}

static int tree_op_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	struct tree *t = tree_of(v);
	auto_node *n = NULL;
	struct found f;
	int rc = node_get(t, id, &n, e);

	if (rc)
		return rc;
	commits_poll(t);
	TREE_SCOPE(read_lock(t));
	if (n->gone)
		rc = tree_gone_attr(t, n, &f, e);
	else if (tree_is_above(t, n))
		f = (struct found){.kind = FOUND_DIR};
	else
		rc = tree_find(t, n->key, &f, e);
	if (!rc && ((f.kind == FOUND_DIR) != n->is_dir || f.kind == FOUND_NOTHING))
		rc = err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
	if (!rc)
		tree_attr(t, n, &f, ret);
	return rc;
}

static uint64_t op_parent(struct view *v, uint64_t dir)
{
	struct tree *t = tree_of(v);
	auto_node *n = NULL, *up = NULL;
	char key[STORE_KEY_MAX + 1];

	if (node_get(t, dir, &n, NULL) < 0)
		return VIEW_ROOT;
	TREE_SCOPE(read_lock(t));
	store_key_parent(n->key, key);
	up = *n->key ? node_find(t, key) : NULL;
	return up ? up->id : VIEW_ROOT;
}

/* tree_in_dataset - the id of a node's file or directory in the snapshot; 0: the name is not the
 * snapshot's, or has other content. */
static int tree_in_dataset(struct tree *t, const struct snapshot *g, struct tree_node *n,
			   uint64_t *ret, struct err *e)
{
	char alias[STORE_KEY_MAX + 1];
	struct stage_entry x;
	struct view_attr a;
	struct found f;
	int rc;

	*ret = 0;
	if (n->gone || tree_is_above(t, n) || node_has_work(t, n, &f))
		return 0;
	stage_find(t->stage, n->key, &x, alias);
	if (x.kind == STAGE_DATA || (x.kind != STAGE_ALIAS && stage_hides(t->stage, n->key)))
		return 0;
	rc = view_find(g->files, x.kind == STAGE_ALIAS ? alias : n->key, &a, e);
	if (!rc && a.is_dir == n->is_dir)
		*ret = a.id;
	return rc == -ENOENT ? 0 : rc;
}

/* tree_op_xattr - extended attributes of a file or directory, from the dataset's view. */
static int tree_op_xattr(struct view *v, uint64_t id, const char *name, struct buf *out,
			 struct err *e)
{
	struct tree *t = tree_of(v);
	const struct snapshot *g;
	auto_node *n = NULL;
	uint64_t base;
	int rc = node_get(t, id, &n, e);

	if (rc)
		return rc;
	TREE_SCOPE(read_lock(t));
	g = snapshots_latest(t->snapshots);
	rc = tree_in_dataset(t, g, n, &base, e);
	if (!rc && base && g->view->ops->xattr)
		rc = g->view->ops->xattr(g->view, base, name, out, e);
	else if (!rc && name)
		rc = err_set(e, -ENODATA, "no attribute '%s'", name);
	return rc;
}

static void tree_op_forget(struct view *v, uint64_t id, uint64_t count)
{
	node_forget(tree_of(v), id, count);
}

static void op_close(struct view *v)
{
	struct tree *t = tree_of(v);

	(void)commits_stop(t, false, false, NULL);
	store_close(t->content);
	tree_listings_free(t);
	handles_free(t);
	pins_free(t);
	held_free(t);
	removed_free(t);
	nodes_free(t);
	stage_close(t->stage);
	snapshots_free(t->snapshots);
	(void)pthread_rwlock_destroy(&t->names);
	(void)pthread_mutex_destroy(&t->lock);
	(void)pthread_mutex_destroy(&t->commit_lock);
	free(t);
}

static const struct view_ops tree_ops = {
	.name = "writable zarr",
	.close = op_close,
	.lookup = tree_op_lookup,
	.getattr = tree_op_getattr,
	.list = tree_list,
	.read = tree_read_file,
	.parent = op_parent,
	.xattr = tree_op_xattr,
	.forget = tree_op_forget,
};

static void locks_init(struct tree *t)
{
	pthread_rwlockattr_t attr;

	/* none of these can fail; a commit must not starve while others read */
	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr,
					    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&t->names, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	list_init(&t->handles);
	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_mutex_init(&t->commit_lock, NULL);
}

int tree_rw_open(struct snapshots *g, struct stage *stage, const struct tree_rw_options *opts,
		 struct view **ret, struct err *e)
{
	struct tree *t = alloc_array(1, sizeof(*t));
	struct err why = ERR_INIT;
	int rc;

	if (!t)
		return err_nomem(e);
	t->base = (struct view){.ops = &tree_ops, .write = &tree_write_ops, .follows = true};
	t->snapshots = g;
	t->stage = stage;
	t->o = *opts;
	locks_init(t);
	rc = nodes_init(t, e);
	rc = rc ? rc : tree_layers(t, e);
	/* a mount that died after all was removed left removals; -EIO: and more, which is kept */
	if (!rc && !stage_empty(stage) && root_check(t, &why) < 0 && t->rootless)
		rc = root_drop_removals(t, e);
	if (!rc || rc == -EIO)
		rc = commits_start(t, e);
	if (rc) {
		t->snapshots = NULL; /* they are the caller's still */
		t->stage = NULL;
		op_close(&t->base);
		return rc;
	}
	*ret = &t->base;
	return 0;
}
