/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve.c - finds a key in a work, in the stage, or in the dataset.
 *
 * Readers see three layers: the latest snapshot, changed by what commits must not show yet; the
 * stage over it (stage/overlay_store.c); and files that are being written. The first two are
 * stores. */
#include <errno.h>
#include <string.h>

#include "base/core/clock.h"
#include "translate/tree/tree_int.h"

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

/* stamp_of - of content in a snapshot. Those of the stage have the highest bit set. */
static uint64_t stamp_of(const struct snapshot *g, uint64_t id)
{
	return ((g->number + 1) * 0x9e3779b97f4a7c15U ^ id) >> 1;
}

int tree_base(const struct snapshot *g, const char *key, struct found *ret, struct err *e)
{
	struct view_attr a = {0};
	int rc = view_find(g->files, key, &a, e);

	*ret = (struct found){.kind = FOUND_NOTHING};
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*ret = (struct found){
		.kind = a.is_dir ? FOUND_DIR : FOUND_FILE,
		.unknown = a.unknown,
		.size = a.size,
		.stamp = stamp_of(g, a.id),
	};
	return 0;
}

static struct tree *dataset_of(struct store *s)
{
	return CONTAINER_OF(s, struct tree, dataset);
}

/* dataset_stat - a file that cannot be examined exists, whatever the reason, which is in e. */
static int dataset_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct tree *t = dataset_of(s);
	const struct held_chunk *held;
	struct found f;
	int rc = tree_base(snapshots_latest(t->snapshots), key, &f, e);

	if (rc)
		return rc;
	if (f.kind == FOUND_NOTHING && !names_have(t, &t->emptied_dirs, key))
		return err_set(e, -ENOENT, "'%.200s' does not exist", key);
	*ret = (struct store_stat){
		.is_dir = f.kind != FOUND_FILE,
		.odd = f.unknown,
		.size = f.size,
		.version = f.stamp,
	};
	held = f.kind == FOUND_FILE ? held_find(t, key) : NULL;
	if (held)
		*ret = (struct store_stat){
			.size = held->size, .version = held->stamp, .changed = held->changed};
	return 0;
}

struct dataset_listing {
	struct tree *t;
	const char *key;
	store_emit *emit;
	void *arg;
	bool any, stopped, want_stat;
	int rc;
	struct err *e;
};

static bool dataset_entry(void *arg, const char *name, bool is_dir,
			  const struct store_stat *st NZ_UNUSED)
{
	struct dataset_listing *l = arg;
	char key[STORE_KEY_MAX + 1];
	struct store_stat own;

	if (!store_key_join(l->key, name, strlen(name), key) ||
	    names_have(l->t, &l->t->removed_names, key))
		return true;
	if (l->want_stat)
		l->rc = dataset_stat(&l->t->dataset, key, &own, l->e);
	l->any = true;
	l->stopped = l->rc || !l->emit(l->arg, name, is_dir, l->want_stat ? &own : NULL);
	return !l->stopped;
}

static int dataset_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
			void *arg, struct err *e)
{
	struct tree *t = dataset_of(s);
	struct dataset_listing l = {
		.t = t, .key = key, .emit = emit, .arg = arg, .want_stat = want_stat, .e = e};
	int rc = store_list(snapshots_latest(t->snapshots)->files, key, false, dataset_entry,
			    &l, e);

	if ((!rc || rc == -ENOENT) && !l.stopped)
		emptied_each(t, key, dataset_entry, &l);
	if (rc == -ENOENT && (l.any || names_have(t, &t->emptied_dirs, key)))
		rc = 0;
	return rc ? rc : l.rc;
}

static int dataset_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct tree *t = dataset_of(s);
	const struct snapshot *g = snapshots_latest(t->snapshots);
	const struct held_chunk *held = held_find(t, key);
	int rc = held ? held_read(held, key, io, e) : store_read_io(g->files, key, io, e);

	io->version = held ? held->stamp : stamp_of(g, io->version);
	return rc;
}

static int dataset_check(struct store *s, struct err *e)
{
	return store_check(snapshots_latest(dataset_of(s)->snapshots)->files, e);
}

static void dataset_close(struct store *s NZ_UNUSED)
{
}

static const struct store_ops dataset_ops = {
	.name = "dataset",
	.close = dataset_close,
	.stat = dataset_stat,
	.list = dataset_list,
	.read = dataset_read,
	.check = dataset_check,
};

int tree_layers(struct tree *t, struct err *e)
{
	t->dataset.ops = &dataset_ops;
	return stage_store(t->stage, UINT64_MAX, &t->dataset, &t->content, e);
}

/* ---- all layers ---- */

int tree_find_below(struct tree *t, const char *key, struct found *ret, struct err *e)
{
	struct store_stat st;
	int rc = store_stat(t->content, key, &st, e);

	*ret = (struct found){.kind = FOUND_NOTHING};
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*ret = (struct found){
		.kind = st.is_dir ? FOUND_DIR : FOUND_FILE,
		.unknown = st.odd,
		.size = st.odd ? 1 : st.size, /* an empty file is read without an error */
		.changed = st.changed,
		.stamp = st.version,
	};
	return 0;
}

int tree_find(struct tree *t, const char *key, struct found *ret, struct err *e)
{
	auto_node *n = node_find(t, key);

	return n && node_has_work(t, n, ret) ? 0 : tree_find_below(t, key, ret, e);
}

void tree_attr(struct tree *t, const struct tree_node *n, const struct found *f,
	       struct view_attr *ret)
{
	const struct snapshot *g = snapshots_latest(t->snapshots);
	const struct stat *st = g->view->source ? &g->view->source->ds.st : &t->o.st;
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
	if (f->changed)
		ret->mtime = ret->ctime = clock_timespec(f->changed);
}

/* ---- content ---- */

int tree_read(struct tree *t, const char *key, uint64_t off, uint8_t *out, size_t len,
	      size_t *ret, struct err *e)
{
	struct store_io io = {.off = off, .len = len, .to = out, .clip = true};
	int rc = store_read_io(t->content, key, &io, e);

	*ret = rc ? 0 : io.len;
	return rc;
}

/* copy_size - the size of a file that is about to be copied. A size that cannot be determined is an
 * error here, since the copy would replace the file. */
static int copy_size(struct tree *t, const char *key, uint64_t *ret, struct err *e)
{
	struct err why = ERR_INIT;
	struct found f;
	int rc = tree_find_below(t, key, &f, &why);

	if (rc)
		return err_set(e, rc, "%s", why.msg);
	if (f.unknown)
		return view_why_unknown(key, &why, e);
	if (f.kind == FOUND_NOTHING)
		return err_set(e, -ENOENT, "'%.200s' does not exist", key);
	if (f.kind == FOUND_DIR)
		return err_set(e, -EISDIR, "'%.200s' is a directory", key);
	*ret = f.size;
	return 0;
}

int tree_copy(struct tree *t, const char *key, struct dirty_file *w, uint64_t at, struct err *e)
{
	auto_free uint8_t *piece = NULL;
	uint64_t size = 0;
	size_t room, n;
	int rc = copy_size(t, key, &size, e);

	room = (size_t)u64_min(size, (uint64_t)1 << 20);
	piece = rc ? NULL : alloc_array(1, room);
	if (!rc && !piece)
		rc = err_nomem(e);
	for (uint64_t done = 0; !rc && done < size; done += n) {
		n = (size_t)u64_min(room, size - done);
		rc = store_read(t->content, key, done, piece, n, NULL, e);
		rc = rc ? rc : work_write(t, w, at + done, piece, n, e);
	}
	return rc;
}

int tree_load(struct tree *t, struct tree_node *n, struct dirty_file *w, struct err *e)
{
	int rc;

	if (w->loaded)
		return 0;
	rc = n->gone ? -ENOENT : tree_copy(t, n->key, w, 0, e);
	if (rc == -ENOENT)
		rc = !n->gone && n->fresh /* nothing is stored yet */
			     ? 0
			     : err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
	if (rc)
		work_drop(t, w);
	else
		w->loaded = true;
	return rc;
}
