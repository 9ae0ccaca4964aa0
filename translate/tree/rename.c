/* SPDX-License-Identifier: BSD-3-Clause */
/* rename.c - names come, go and change: each is a record in the stage, or several in such an
 * order that nothing is lost between them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "translate/tree/tree_int.h"

/* rename_place - an entry of a directory, as found by an operation. The tree is locked for
 * writing. */
struct rename_place {
	struct tree *t;
	struct tree_node *dir;
	char key[STORE_KEY_MAX + 1];
	struct found f;
};

static void rename_leave(struct rename_place *p)
{
	tree_unlock(p->t);
	node_put(p->dir);
}

/* rename_end - leave a place whose change succeeded if rc is 0. Returns rc. */
static int rename_end(struct rename_place *p, int rc)
{
	rename_leave(p);
	if (!rc)
		commits_note(p->t);
	return rc;
}

/* rename_holds - whether entries of a directory can change. */
static int rename_holds(const struct tree *t, const struct tree_node *dir, struct err *e)
{
	if (!dir->is_dir)
		return err_set(e, -ENOTDIR, "'%.200s' is not a directory", dir->key);
	if (dir->gone)
		return err_set(e, -ENOENT, "'%.200s' was removed", dir->key);
	return tree_is_above(t, dir) ? root_only(t, e) : 0;
}

/* rename_enter - lock the tree and find an entry. On failure nothing is locked. room: the caller is
 * going to stage something. */
static int rename_enter(struct rename_place *p, struct view *v, uint64_t dir, const char *name,
			bool room, struct err *e)
{
	int rc;

	*p = (struct rename_place){.t = tree_of(v)};
	rc = node_get(p->t, dir, &p->dir, e);
	if (!rc && room)
		rc = commits_room(p->t, e);
	if (rc) {
		node_put(p->dir);
		return rc;
	}
	write_lock(p->t);
	rc = rename_holds(p->t, p->dir, e);
	rc = rc ? rc : tree_key(p->dir, name, strlen(name), p->key, e);
	rc = rc ? rc : tree_find(p->t, p->key, &p->f, e);
	if (rc)
		rename_leave(p);
	return rc;
}

/* rename_show - give the kernel the node of an entry that was just made. */
static int rename_show(struct rename_place *p, struct view_attr *ret, struct err *e)
{
	int rc = tree_find(p->t, p->key, &p->f, e);

	return rc ? rc : node_show(p->t, p->key, &p->f, ret, e);
}

/* ---- making ---- */

/* begin_file - make a node for a file that is neither staged nor in the dataset. */
static int begin_file(struct rename_place *p, struct tree_node **ret, struct err *e)
{
	auto_node *n = node_enter(p->t, p->key, false);
	struct dirty_file *w;
	int rc = n ? node_work(p->t, n, &w, e) : err_nomem(e);

	if (!rc) {
		LOCK_SCOPE(&w->lock);

		rc = work_resize(p->t, w, 0, e);
		w->loaded = w->cut = true;
	}
	if (rc)
		return rc;
	node_fresh(p->t, n, true);
	*ret = steal(&n);
	return 0;
}

/* open_found - open a file that exists already, while names are not locked. */
static int open_found(struct view *v, int flags, struct view_attr *attr, struct view_handle *ret,
		      struct err *e)
{
	int rc = tree_open(v, attr->id, flags, ret, e);

	if (rc)
		node_forget(tree_of(v), attr->id, 1);
	else if (flags & O_TRUNC)
		attr->size = 0;
	return rc;
}

int tree_create(struct view *v, uint64_t dir, const char *name, int flags, mode_t mode,
		struct view_attr *ret_attr, struct view_handle *ret, struct err *e)
{
	struct view_handle vh = {0};
	auto_node *n = NULL;
	struct rename_place p;
	int rc = rename_enter(&p, v, dir, name, true, e);

	(void)mode;
	*ret = vh;
	if (rc)
		return rc;
	names_drop(p.t, &p.t->removed_names, p.key);
	if (p.f.kind != FOUND_NOTHING) {
		if (flags & O_EXCL)
			rc = err_set(e, -EEXIST, "'%.200s' already exists", p.key);
		else if (p.f.kind == FOUND_DIR)
			rc = err_set(e, -EISDIR, "'%.200s' is a directory", p.key);
		rc = rc ? rc : node_show(p.t, p.key, &p.f, ret_attr, e);
		rename_leave(&p);
		return rc ? rc : open_found(v, flags, ret_attr, ret, e);
	}
	rc = begin_file(&p, &n, e);
	rc = rc ? rc : handle_make(p.t, n, flags | O_WRONLY, &vh, e);
	rc = rc ? rc : rename_show(&p, ret_attr, e);
	if (rc && n)
		node_detach(p.t, n);
	rename_leave(&p);
	if (rc && vh.fh)
		tree_write_ops.release(v, n->id, vh.fh);
	vh.direct_io = (flags & O_ACCMODE) == O_WRONLY;
	if (!rc)
		*ret = vh;
	return rc;
}

int tree_mkdir(struct view *v, uint64_t dir, const char *name, mode_t mode,
	       struct view_attr *ret, struct err *e)
{
	struct rename_place p;
	int rc;

	(void)mode;
	if (tree_of(v)->o.name && dir == VIEW_ROOT)
		return root_mkdir(tree_of(v), name, ret, e);
	rc = rename_enter(&p, v, dir, name, true, e);
	if (rc)
		return rc;
	names_drop(p.t, &p.t->removed_names, p.key);
	if (p.f.kind != FOUND_NOTHING)
		rc = err_set(e, -EEXIST, "'%.200s' already exists", p.key);
	rc = rc ? rc : stage_mkdir(p.t->stage, p.key, e);
	rc = rc ? rc : rename_show(&p, ret, e);
	return rename_end(&p, rc);
}

/* ---- removing ---- */

/* remove_key - remove the entry of a place. Open handles keep its content. */
static int remove_key(struct rename_place *p, struct err *e)
{
	auto_node *n = node_find(p->t, p->key);
	int rc = n ? keep_open(p->t, n, e) : 0;
	struct found base = {0};

	rc = rc ? rc : tree_base(snapshots_latest(p->t->snapshots), p->key, &base, e);
	if (!rc && !(n && n->fresh))
		rc = stage_gone(p->t->stage, p->key, base.kind == FOUND_NOTHING, e);
	if (!rc)
		names_drop(p->t, &p->t->emptied_dirs, p->key);
	if (!rc && n)
		node_detach(p->t, n);
	else if (n)
		keep_undo(p->t, n);
	return rc;
}

static int rename_remove(struct view *v, uint64_t dir, const char *name,
			 bool is_dir, struct err *e)
{
	struct rename_place p;
	int rc = rename_enter(&p, v, dir, name, false, e);

	if (rc)
		return rc;
	if (p.f.kind == FOUND_NOTHING)
		rc = err_set(e, -ENOENT, "'%.200s' does not exist", p.key);
	else if (p.f.kind == FOUND_DIR && !is_dir)
		rc = err_set(e, -EISDIR, "'%.200s' is a directory", p.key);
	else if (p.f.kind != FOUND_DIR && is_dir)
		rc = err_set(e, -ENOTDIR, "'%.200s' is not a directory", p.key);
	else if (is_dir)
		rc = tree_is_empty(p.t, p.key, p.key, e);
	rc = rc ? rc : remove_key(&p, e);
	return rename_end(&p, rc);
}

int tree_unlink(struct view *v, uint64_t dir, const char *name, struct err *e)
{
	return rename_remove(v, dir, name, false, e);
}

int tree_rmdir(struct view *v, uint64_t dir, const char *name, struct err *e)
{
	if (tree_of(v)->o.name && dir == VIEW_ROOT)
		return root_rmdir(tree_of(v), name, e);
	return rename_remove(v, dir, name, true, e);
}

/* ---- renaming ---- */

int tree_settle(struct tree *t, const char *key, const char *to, bool stays, struct err *e)
{
	auto_node *n = node_find(t, key);
	struct dirty_file *w = n ? n->work : NULL;
	bool pending;
	int rc;

	if (!w)
		return check_moved(t, to, key, NULL, stays, e);
	LOCK_SCOPE(&w->lock);
	pending = w->dirty || w->cut;
	rc = pending && stays ? check_work(t, key, w, e) : 0;
	rc = rc ? rc : check_moved(t, to, key, pending ? w : NULL, stays, e);
	if (!rc && pending)
		rc = work_stage(t, w, key, e);
	if (rc)
		return rc;
	w->dirty = w->cut = false;
	node_fresh(t, n, false);
	return 0;
}

/* copy_base - stage the bytes of a file of the dataset under another name. An alias would be
 * dangling if the commit that removes the old name leaves the new one. */
static int copy_base(struct tree *t, const char *from, const char *to, struct err *e)
{
	struct dirty_file *w = work_new();
	int rc = w ? tree_copy(t, from, w, 0, e) : err_nomem(e);

	rc = rc ? rc : work_stage(t, w, to, e);
	work_free(t, w);
	return rc;
}

static int move_file(struct rename_place *p, const char *to, struct err *e)
{
	struct stage_entry x;
	struct found base;
	int rc = 0;

	/* staged under its own name first: one record moves it, or none does */
	stage_find(p->t->stage, p->key, &x, NULL);
	if (x.kind != STAGE_DATA)
		rc = copy_base(p->t, p->key, p->key, e);
	rc = rc ? rc : tree_base(snapshots_latest(p->t->snapshots), p->key, &base, e);
	return rc ? rc : stage_move(p->t->stage, p->key, to, base.kind == FOUND_NOTHING, e);
}

/* ---- another name ---- */

static int link_file(struct rename_place *p, const struct tree_node *n, struct err *e)
{
	struct tree *t = p->t;
	struct stage_entry x;
	int rc = tree_settle(t, n->key, p->key, true, e);

	if (rc)
		return rc;
	stage_find(t->stage, n->key, &x, NULL);
	return x.kind == STAGE_DATA ? stage_link(t->stage, n->key, p->key, e)
				    : copy_base(t, n->key, p->key, e);
}

int tree_link(struct view *v, uint64_t id, uint64_t dir, const char *name,
	      struct view_attr *ret, struct err *e)
{
	auto_node *n = NULL;
	struct rename_place p;
	int rc = node_get(tree_of(v), id, &n, e);

	rc = rc ? rc : rename_enter(&p, v, dir, name, true, e);
	if (rc)
		return rc;
	if (p.f.kind != FOUND_NOTHING)
		rc = err_set(e, -EEXIST, "'%.200s' already exists", p.key);
	else if (n->is_dir)
		rc = err_set(e, -EPERM, "'%.200s' is a directory", n->key);
	else if (n->gone)
		rc = err_set(e, -ENOENT, "'%.200s' was removed", n->key);
	rc = rc ? rc : link_file(&p, n, e);
	rc = rc ? rc : rename_show(&p, ret, e);
	return rename_end(&p, rc);
}

static int rename_file(struct rename_place *p, const char *to, struct err *e)
{
	auto_node *n = node_find(p->t, p->key), *old = node_find(p->t, to);
	int rc = tree_settle(p->t, p->key, to, false, e);

	if (!rc && old)
		rc = keep_open(p->t, old, e);
	rc = rc ? rc : move_file(p, to, e);
	if (!rc && old)
		node_detach(p->t, old);
	else if (old)
		keep_undo(p->t, old);
	if (!rc && n)
		rc = node_rename(p->t, n, to, e);
	return rc;
}

/* rename_fits - whether the entry at `to` can be replaced. */
static int rename_fits(struct rename_place *p, const char *to, const struct found *old,
		       unsigned flags, struct err *e)
{
	if (old->kind == FOUND_NOTHING)
		return 0;
	if (flags & RENAME_NOREPLACE)
		return err_set(e, -EEXIST, "'%.200s' already exists", to);
	if (old->kind == FOUND_DIR && p->f.kind != FOUND_DIR)
		return err_set(e, -EISDIR, "'%.200s' is a directory", to);
	if (old->kind != FOUND_DIR && p->f.kind == FOUND_DIR)
		return err_set(e, -ENOTDIR, "'%.200s' is not a directory", to);
	return old->kind == FOUND_DIR ? tree_is_empty(p->t, to, to, e) : 0;
}

static int rename_to(struct rename_place *p, const struct tree_node *to_dir, const char *name,
		     unsigned flags, struct err *e)
{
	char to[STORE_KEY_MAX + 1];
	struct found old = {0};
	int rc = rename_holds(p->t, to_dir, e);

	if (rc)
		return rc;
	if (p->f.kind == FOUND_NOTHING)
		return err_set(e, -ENOENT, "'%.200s' does not exist", p->key);
	rc = tree_key(to_dir, name, strlen(name), to, e);
	if (!rc && strcmp(p->key, to) == 0)
		return flags & RENAME_NOREPLACE
			       ? err_set(e, -EEXIST, "'%.200s' already exists", to)
			       : 0;
	rc = rc ? rc : tree_find(p->t, to, &old, e);
	rc = rc ? rc : rename_fits(p, to, &old, flags, e);
	if (!rc && store_key_below(p->key, to))
		rc = err_set(e, -EINVAL, "'%.200s' is below '%.150s'", to, p->key);
	if (rc)
		return rc;
	return p->f.kind == FOUND_DIR ? rename_dir(p->t, p->key, to, e) : rename_file(p, to, e);
}

int tree_rename(struct view *v, uint64_t dir, const char *name, uint64_t to_dir,
		const char *to_name, unsigned flags, struct err *e)
{
	auto_node *to = NULL;
	struct rename_place p;
	int rc;

	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return err_set(e, -EINVAL, "rename with flags %#x is not supported", flags);
	rc = node_dir(tree_of(v), to_dir, &to, e);
	rc = rc ? rc : rename_enter(&p, v, dir, name, true, e);
	return rc ? rc : rename_end(&p, rename_to(&p, to, to_name, flags, e));
}

/* A directory gets another name: everything below it appears under the new one
 * before the old one goes. */

/* below - keys below a directory, relative to it, directories before their entries. */
struct below {
	struct buf names; /* a byte 'd' or 'f', the key, a NUL */
	size_t dir;       /* offset of the one that is being listed */
};

static bool rename_gather(void *arg, const char *name, bool is_dir,
			  const struct store_stat *st NZ_UNUSED)
{
	struct below *b = arg;
	char key[STORE_KEY_MAX + 1] = "";
	const char *dir = (const char *)b->names.data + b->dir + 1;

	b->names.failed |= !store_key_join(dir, name, strlen(name), key);
	buf_putc(&b->names, is_dir ? 'd' : 'f');
	buf_put(&b->names, key, strlen(key) + 1);
	return buf_ok(&b->names);
}

static int rename_join(const char *dir, const char *rest, char out[STORE_KEY_MAX + 1],
		       struct err *e)
{
	return store_key_join(dir, rest, strlen(rest), out)
		       ? 0
		       : err_set(e, -ENAMETOOLONG, "a name below '%.200s' is too long", dir);
}

/* all_below - breadth first, so that a directory comes before what it holds. */
static int all_below(struct tree *t, const char *key, struct below *b, struct err *e)
{
	int rc = 0;

	buf_put(&b->names, "d", 2);
	for (size_t at = 0; !rc && buf_ok(&b->names) && at < b->names.len;) {
		char dir[STORE_KEY_MAX + 1];
		size_t len = strlen((const char *)b->names.data + at);

		b->dir = at;
		if (b->names.data[at] == 'd') {
			rc = rename_join(key, (const char *)b->names.data + at + 1, dir, e);
			rc = rc ? rc : tree_each(t, dir, rename_gather, b, e);
		}
		at += len + 1;
	}
	if (!rc && !buf_ok(&b->names))
		rc = err_set(e, -ENOMEM, "there are too many names below '%.200s'", key);
	return rc;
}

/* rename_described - whether a directory has its own metadata, so that everything below it has the
 * same meaning under the new name. */
static bool rename_described(const struct below *b)
{
	for (const char *x = buf_next(&b->names, NULL); x; x = buf_next(&b->names, x))
		if (*x == 'f' && root_doc(x + 1) > 0)
			return true;
	return false;
}

static int move_file_below(struct tree *t, bool alias, const char *from, const char *to,
			   struct err *e)
{
	struct stage *s = t->stage;
	struct stage_entry x;
	int rc = tree_settle(t, from, to, false, e);

	if (rc)
		return rc;
	stage_find(s, from, &x, NULL);
	if (x.kind == STAGE_DATA)
		return stage_link(s, from, to, e);
	/* what an alias means may be changed by a commit that runs: its content does not */
	if (alias && x.kind != STAGE_ALIAS)
		return stage_alias(s, to, from, e);
	return copy_base(t, from, to, e);
}

static int move_all(struct tree *t, const struct below *b, const char *from, const char *to,
		    struct err *e)
{
	bool alias = rename_described(b);
	char was[STORE_KEY_MAX + 1], is[STORE_KEY_MAX + 1];
	int rc = 0;

	for (const char *text = buf_next(&b->names, NULL); !rc && text;
	     text = buf_next(&b->names, text)) {
		rc = rename_join(from, text + 1, was, e);
		rc = rc ? rc : rename_join(to, text + 1, is, e);
		if (!rc)
			rc = *text == 'd' ? stage_mkdir(t->stage, is, e)
					  : move_file_below(t, alias, was, is, e);
	}
	return rc;
}

/* rename_nodes - of what the kernel knows. */
static int rename_nodes(struct tree *t, const char *from, const char *to, struct err *e)
{
	auto_node *n = node_find(t, from), *old = node_find(t, to);
	struct tree_node **v;
	char key[STORE_KEY_MAX + 1];
	size_t count;
	int rc = nodes_below(t, from, &v, &count, e);

	if (old)
		node_detach(t, old);
	if (!rc && n)
		rc = node_rename(t, n, to, e);
	if (!v)
		return rc;
	for (size_t i = 0; i < count; i++) {
		rc = rc ? rc : rename_join(to, v[i]->key + strlen(from) + 1, key, e);
		rc = rc ? rc : node_rename(t, v[i], key, e);
		node_put(v[i]);
	}
	free(v);
	return rc;
}

int rename_dir(struct tree *t, const char *from, const char *to, struct err *e)
{
	struct below b = {.names = buf_of((size_t)1 << 30)};
	int rc = all_below(t, from, &b, e);

	if (!rc) {
		rc = move_all(t, &b, from, to, e);
		/* of what did not get there whole nothing stays; when this fails, too, the new
		 * name is there besides */
		if (rc && stage_gone(t->stage, to, false, NULL) < 0)
			(void)err_wrap(e, rc, "'%.100s' exists in part", to);
	}
	buf_release(&b.names);
	rc = rc ? rc : stage_gone(t->stage, from, false, e);
	return rc ? rc : rename_nodes(t, from, to, e);
}
