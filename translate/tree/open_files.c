/* SPDX-License-Identifier: BSD-3-Clause */
/* open_files.c - open files: written data are private until they are flushed, and then one record
 * in the stage. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "translate/tree/tree_int.h"

static struct handle *open_files_handle_of(uint64_t fh)
{
	return (struct handle *)(uintptr_t)fh;
}

/* open_files_caching - what the kernel may do with a handle: keep what it has of the same content;
 * a handle that only writes needs no cache. */
static void open_files_caching(struct tree *t, struct tree_node *n, const struct found *f,
			       int flags, struct view_handle *ret)
{
	uint64_t stamp = f->kind == FOUND_WORK ? 0 : f->stamp;
	LOCK_SCOPE(&t->lock);

	ret->keep_cache = stamp && n->stamp == stamp;
	n->stamp = stamp;
	ret->direct_io = (flags & O_ACCMODE) == O_WRONLY;
}

int handle_make(struct tree *t, struct tree_node *n, int flags, struct view_handle *ret,
		struct err *e)
{
	struct handle *h = alloc_array(1, sizeof(*h));
	struct dirty_file *w;
	int rc = 0;

	if (!h)
		return err_nomem(e);
	h->node = n;
	h->writes = (flags & O_ACCMODE) != O_RDONLY;
	h->append = (flags & O_APPEND) != 0;
	if (h->writes)
		rc = node_work(t, n, &w, e);
	if (rc) {
		free(h);
		return rc;
	}
	(void)pthread_mutex_lock(&t->lock);
	n->users++;
	list_add(&t->handles, &h->link);
	if (h->writes)
		atomic_fetch_add(&w->writers, 1);
	(void)pthread_mutex_unlock(&t->lock);
	ret->fh = (uint64_t)(uintptr_t)h;
	return 0;
}

/* open_files_empty - O_TRUNC: the content is to be nothing once something is written or the file
 * closed. */
static int open_files_empty(struct tree *t, struct tree_node *n, struct err *e)
{
	struct dirty_file *w;
	int rc = node_work(t, n, &w, e);

	if (rc)
		return rc;
	LOCK_SCOPE(&w->lock);
	rc = work_resize(t, w, 0, e);
	if (!rc)
		w->loaded = w->cut = true;
	return rc;
}

static int open_files_open_locked(struct tree *t, struct tree_node *n, int flags,
				  struct view_handle *ret, struct err *e)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	struct found f = {0};
	int rc = tree_find(t, n->key, &f, e);

	if (!rc && !n->fresh && f.kind == FOUND_NOTHING)
		rc = err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
	rc = rc ? rc : handle_make(t, n, flags, ret, e);
	if (!rc && writes && (flags & O_TRUNC))
		rc = open_files_empty(t, n, e);
	if (!rc)
		open_files_caching(t, n, &f, flags, ret);
	if (!rc && (flags & O_ACCMODE) != O_WRONLY && !atomic_exchange(&n->opened, true))
		atomic_fetch_add(&t->n_opened, 1);
	return rc;
}

int tree_open(struct view *v, uint64_t id, int flags, struct view_handle *ret, struct err *e)
{
	struct tree *t = tree_of(v);
	auto_node *n = NULL;
	struct found f;
	int rc = node_get(t, id, &n, e);

	*ret = (struct view_handle){0};
	if (rc)
		return rc;
	read_lock(t);
	if (n->is_dir)
		rc = err_set(e, -EISDIR, "'%.200s' is a directory", n->key);
	else if (n->gone && !node_has_work(t, n, &f))
		rc = err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
	else if (n->gone)
		rc = handle_make(t, n, flags, ret, e);
	else
		rc = open_files_open_locked(t, n, flags, ret, e);
	tree_unlock(t);
	if (rc && ret->fh) {
		tree_write_ops.release(v, id, ret->fh);
		ret->fh = 0;
	}
	return rc;
}

/* ---- reading ---- */

static int open_files_read_locked(struct tree *t, struct tree_node *n, uint64_t off,
				  uint8_t *out, size_t len, size_t *ret, struct err *e)
{
	int rc;

	*ret = 0;
	if (n->is_dir)
		return err_set(e, -EISDIR, "'%.200s' is a directory", n->key);
	if (n->work) {
		LOCK_SCOPE(&n->work->lock);

		if (n->work->loaded)
			return work_read(n->work, off, out, len, ret, e);
	}
	rc = n->gone ? -ENOENT : tree_read(t, n->key, off, out, len, ret, e);
	if (rc != -ENOENT)
		return rc;
	return !n->gone && n->fresh /* nothing is stored yet */
		       ? 0
		       : err_set(e, -ESTALE, "'%.200s' no longer exists", n->key);
}

static int open_files_read_node(struct tree *t, struct tree_node *n, uint64_t off, size_t len,
				uint8_t *room, struct span *ret, struct err *e)
{
	size_t got = 0;
	int rc;

	commits_poll(t);
	TREE_SCOPE(read_lock(t));
	rc = open_files_read_locked(t, n, off, room, len, &got, e);
	if (!rc)
		*ret = (struct span){.mem = got ? room : NULL, .fd = -1, .len = got};
	return rc;
}

int tree_read_file(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		   uint8_t *room, struct span *ret, struct err *e)
{
	struct tree *t = tree_of(v);
	auto_node *n = NULL;
	int rc;

	if (fh)
		return open_files_read_node(t, open_files_handle_of(fh)->node, off, len, room,
					    ret, e);
	rc = node_get(t, id, &n, e);
	return rc ? rc : open_files_read_node(t, n, off, len, room, ret, e);
}

/* ---- writing ---- */

static int write_work(struct tree *t, struct handle *h, struct dirty_file *w, uint64_t off,
		      const uint8_t *data, size_t len, struct err *e)
{
	int rc = tree_load(t, h->node, w, e);

	off = h->append ? w->size : off;
	rc = rc ? rc : work_write(t, w, off, data, len, e);
	if (rc)
		return rc;
	if (off > w->run)
		w->elsewhere = true;
	else
		w->run = u64_max(w->run, off + len);
	w->dirty = true;
	w->cut = false;
	atomic_store(&h->wrote, true);
	return 0;
}

static int open_files_op_write(struct view *v, uint64_t id, uint64_t fh, uint64_t off,
			       const uint8_t *data, size_t len, struct err *e)
{
	struct tree *t = tree_of(v);
	struct handle *h = open_files_handle_of(fh);

	(void)id;
	if (!h || !h->writes)
		return err_set(e, -EBADF, "not open for writing");
	if (atomic_load(&t->stale))
		return commits_room(t, e);
	TREE_SCOPE(read_lock(t));
	LOCK_SCOPE(&h->node->work->lock);
	return write_work(t, h, h->node->work, off, data, len, e);
}

/* check_content - whether the content in a file's work is valid. netCDF-C writes a metadata file
 * over an older one from its beginning, without truncating it, and bytes after its end do not
 * belong to it. Therefore, if the whole is rejected, and the part that was written in one piece is
 * not, the file ends there. */
static int check_content(struct tree *t, struct tree_node *n, struct dirty_file *w,
			 struct err *e)
{
	uint64_t size = w->size;
	int rc = check_work(t, n->key, w, e);

	if (rc && w->run && w->run < size && !w->elsewhere) {
		w->size = w->run;
		if (check_work(t, n->key, w, NULL) == 0)
			rc = work_resize(t, w, w->run, e);
		else
			w->size = size;
	}
	return rc;
}

/* open_files_confirm - publish the content of a work to all readers. If it is rejected, the file
 * keeps its earlier content. Under the tree's lock. */
static int open_files_confirm(struct tree *t, struct tree_node *n, struct dirty_file *w,
			      struct err *e)
{
	int rc = check_content(t, n, w, e);

	rc = rc ? rc : work_stage(t, w, n->key, e);
	if (rc) {
		work_drop(t, w);
		return rc;
	}
	w->dirty = w->cut = w->elsewhere = false;
	w->run = 0;
	node_fresh(t, n, false);
	commits_note(t);
	return 0;
}

/* flush_node - cut: also if it was only truncated. last: a writer has closed it. Then nothing is
 * done while another handle writes the file, which may be half written: that writer confirms it. */
static int flush_node(struct tree *t, struct tree_node *n, bool cut, bool last, struct err *e)
{
	struct dirty_file *w = n->work;
	int rc = 0;

	if (!w)
		return 0;
	rc = commits_room(t, e);
	TREE_SCOPE(read_lock(t));
	LOCK_SCOPE(&w->lock);
	if ((last && w->writers) || (rc && !w->dirty))
		return 0;
	if (rc)
		work_drop(t, w); /* it is refused: the file is what it was */
	else if (!n->gone && (w->dirty || (cut && w->cut)))
		rc = open_files_confirm(t, n, w, e);
	return rc;
}

static int open_files_op_flush(struct view *v, uint64_t id, uint64_t fh, struct err *e)
{
	struct handle *h = open_files_handle_of(fh);

	(void)id;
	if (!h || !h->writes || !atomic_exchange(&h->wrote, false))
		return 0;
	return flush_node(tree_of(v), h->node, false, false, e);
}

static int open_files_op_fsync(struct view *v, uint64_t id, uint64_t fh, bool data_only,
			       struct err *e)
{
	struct tree *t = tree_of(v);
	struct handle *h = open_files_handle_of(fh);
	int rc = 0;

	(void)id;
	(void)data_only;
	if (h && h->writes) {
		atomic_store(&h->wrote, false);
		rc = flush_node(t, h->node, true, false, e);
	}
	return rc ? rc : stage_sync(t->stage, e);
}

/* open_files_op_fsyncdir - data that the commit put into the dataset need not be on the disk twice:
 * sync only records that are staged afterwards, because a commit left them or failed. */
static int open_files_op_fsyncdir(struct view *v, uint64_t dir, struct err *e)
{
	struct tree *t = tree_of(v);
	struct err other = ERR_INIT;
	int rc = commits_now(t, e), staged = stage_sync(t->stage, &other);

	(void)dir;
	if (!rc && staged && e)
		*e = other;
	return rc ? rc : staged;
}

/* drop_unwritten - a document that was created or truncated and not written cannot be part of the
 * dataset: it is what it was before. That is no fault, since programs write it next. */
static void drop_unwritten(struct tree *t, struct tree_node *n)
{
	struct dirty_file *w = n->work;
	int rc = 0;
	TREE_SCOPE(read_lock(t));
	LOCK_SCOPE(&w->lock);

	if (!w->writers && w->cut && !w->size && !n->gone)
		rc = check_work(t, n->key, w, NULL);
	if (rc == -EINVAL || rc == -EOPNOTSUPP)
		work_drop(t, w);
}

/* last_writer - the last writer closed a file: the stage has its content from now on. */
static void last_writer(struct tree *t, struct tree_node *n)
{
	struct dirty_file *w = n->work;
	struct err e = ERR_INIT;
	int rc;

	drop_unwritten(t, n);
	rc = flush_node(t, n, true, true, &e);
	TREE_SCOPE(write_lock(t));
	if (rc)
		log_warn("'%s': %s", n->key, e.msg);
	LOCK_SCOPE(&w->lock);
	if (!w->writers && !n->gone) {
		work_drop(t, w);
		if (n->fresh) /* it was never confirmed */
			node_detach(t, n);
	}
}

static void open_files_op_release(struct view *v, uint64_t id, uint64_t fh)
{
	struct tree *t = tree_of(v);
	struct handle *h = open_files_handle_of(fh);

	(void)id;
	if (!h)
		return;
	(void)pthread_mutex_lock(&t->lock);
	list_remove(&h->link);
	(void)pthread_mutex_unlock(&t->lock);
	if (h->writes && atomic_fetch_sub(&h->node->work->writers, 1) == 1)
		last_writer(t, h->node);
	node_put(h->node);
	free(h);
}

void handles_free(struct tree *t)
{
	struct list_link *it;

	while ((it = list_take(&t->handles)))
		free(CONTAINER_OF(it, struct handle, link));
}

int keep_open(struct tree *t, struct tree_node *n, struct err *e)
{
	struct dirty_file *w;
	bool open;
	int rc;

	(void)pthread_mutex_lock(&t->lock);
	open = n->users > 1; /* this request's, and another one */
	(void)pthread_mutex_unlock(&t->lock);
	if (!open || n->is_dir)
		return 0;
	rc = node_work(t, n, &w, e);
	if (rc)
		return rc;
	LOCK_SCOPE(&w->lock);
	rc = tree_load(t, n, w, e);
	return rc == -ESTALE ? 0 : rc;
}

void keep_undo(struct tree *t, struct tree_node *n)
{
	struct dirty_file *w = n->work;

	if (!w)
		return;
	LOCK_SCOPE(&w->lock);
	if (!w->writers && !w->dirty && !w->cut)
		work_drop(t, w);
}

/* ---- attributes ---- */

/* open_files_resize - if no handle writes the file, the new content is confirmed at once. */
static int open_files_resize(struct tree *t, struct tree_node *n, uint64_t size, struct err *e)
{
	struct view_handle vh = {0};
	struct handle *h;
	struct dirty_file *w;
	int rc;

	read_lock(t);
	rc = handle_make(t, n, O_WRONLY, &vh, e);
	if (rc) {
		tree_unlock(t);
		return rc;
	}
	h = open_files_handle_of(vh.fh);
	w = n->work;
	(void)pthread_mutex_lock(&w->lock);
	if (size == 0 && !w->loaded && !n->gone)
		w->loaded = true; /* nothing of it is needed */
	else
		rc = tree_load(t, n, w, e);
	rc = rc ? rc : work_resize(t, w, size, e);
	if (!rc)
		w->dirty = w->elsewhere = true;
	(void)pthread_mutex_unlock(&w->lock);
	tree_unlock(t);
	atomic_store(&h->wrote, rc == 0);
	if (!rc && w->writers == 1)
		rc = open_files_op_flush(&t->base, n->id, vh.fh, e);
	open_files_op_release(&t->base, n->id, vh.fh);
	return rc;
}

static int setattr_node(struct tree *t, struct tree_node *n, uint64_t fh,
			const struct view_set *set, struct err *e)
{
	int rc = 0;

	if (set->size_set && n->is_dir)
		rc = err_set(e, -EISDIR, "'%.200s' is a directory", n->key);
	else if (set->size_set)
		rc = open_files_resize(t, n, set->size, e);
	if (!rc && set->size_set && fh && open_files_handle_of(fh)->writes)
		atomic_store(&open_files_handle_of(fh)->wrote, true);
	if (!rc && set->mode_set) {
		LOCK_SCOPE(&t->lock);

		n->mode = set->mode & 0777;
	}
	return rc;
}

static int open_files_op_setattr(struct view *v, uint64_t id, uint64_t fh,
				 const struct view_set *set, struct view_attr *ret,
				 struct err *e)
{
	struct tree *t = tree_of(v);
	auto_node *n = NULL;
	int rc = node_get(t, id, &n, e);

	rc = rc ? rc : setattr_node(t, n, fh, set, e);
	return rc ? rc : t->base.ops->getattr(v, id, ret, e);
}

static int op_finish(struct view *v, bool last, struct err *e)
{
	return commits_stop(tree_of(v), true, last, e);
}

const struct view_write_ops tree_write_ops = {
	.open = tree_open,
	.create = tree_create,
	.write = open_files_op_write,
	.flush = open_files_op_flush,
	.fsync = open_files_op_fsync,
	.fsyncdir = open_files_op_fsyncdir,
	.release = open_files_op_release,
	.setattr = open_files_op_setattr,
	.mkdir = tree_mkdir,
	.unlink = tree_unlink,
	.rmdir = tree_rmdir,
	.rename = tree_rename,
	.link = tree_link,
	.finish = op_finish,
};
