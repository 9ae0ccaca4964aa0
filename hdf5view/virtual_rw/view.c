/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - the directory with the virtual file, writable.
 *
 * The name leads to the last committed file, or to the one being written. Each commit makes a new
 * file with a new id, so open handles keep the content that they were opened on. If a writer opens
 * a file that has readers, it gets ESTALE, so the kernel looks the name up again and finds a new
 * file. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "translate/chunkio/provenance.h"

/* ---- attributes ---- */

static void attr_init(const struct nc_rw *v, uint64_t id, struct view_attr *ret)
{
	*ret = (struct view_attr){.id = id,
				  .nlink = 1,
				  .volatile_attrs = true,
				  .fixed = true,
				  .cached = true,
				  .own = true,
				  .mode = v->mode,
				  .uid = v->uid,
				  .gid = v->gid};
}

void rw_attr(struct nc_rw *v, struct rw_file *f, struct view_attr *ret, struct err *e)
{
	int rc;

	attr_init(v, f->id, ret);
	rc = rw_file_ready(f, e);
	(void)pthread_rwlock_rdlock(&f->copy.map);
	ret->size = rc < 0 ? 1 : f->copy.size; /* the kernel reads an empty file as empty */
	(void)pthread_rwlock_unlock(&f->copy.map);
	ret->unknown = rc < 0;
	(void)pthread_mutex_lock(&v->lock);
	ret->mtime = ret->ctime = f->mtime;
	if (f->mode_set)
		ret->mode = f->mode;
	ret->nameless = !f->named;
	(void)pthread_mutex_unlock(&v->lock);
}

static void root_attr(struct nc_rw *v, struct view_attr *ret)
{
	attr_init(v, VIEW_ROOT, ret);
	ret->is_dir = true;
	ret->nlink = 2;
	ret->cached = ret->fixed = false;
	ret->mode = 0755;
	(void)pthread_mutex_lock(&v->lock);
	ret->mtime = ret->ctime = v->changed;
	(void)pthread_mutex_unlock(&v->lock);
}

static int virtual_rw_view_stale(uint64_t id, struct err *e)
{
	return err_set(e, -ESTALE, "no file has the id %llu", (unsigned long long)id);
}

int rw_in_root(struct nc_rw *v, uint64_t dir, struct err *e)
{
	struct rw_file *f;

	if (dir == VIEW_ROOT)
		return 0;
	f = rw_file_get(v, dir);
	if (!f)
		return virtual_rw_view_stale(dir, e);
	rw_file_put(v, f);
	return err_set(e, -ENOTDIR, "not a directory");
}

static int virtual_rw_view_view_getattr(struct view *view, uint64_t id, struct view_attr *ret,
					struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f;

	if (id == VIEW_ROOT) {
		root_attr(v, ret);
		return 0;
	}
	f = rw_file_get(v, id);
	if (!f)
		return virtual_rw_view_stale(id, e);
	rw_attr(v, f, ret, e);
	rw_file_put(v, f);
	return 0;
}

static int virtual_rw_view_view_lookup(struct view *view, uint64_t dir, const char *name,
				       size_t len, struct view_attr *ret, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f;
	int rc = rw_in_root(v, dir, e);

	if (rc < 0)
		return rc;
	if (rw_is_virtual(v, name, len))
		rw_follow(v);
	f = rw_file_hold(v, name, len);
	if (!f)
		return err_set(e, -ENOENT, "no such file");
	rw_attr(v, f, ret, e);
	rw_file_put(v, f);
	return 0;
}

/* ---- the directory ---- */

struct name {
	char *text;
	uint64_t id;
};

/* names_from - the entries with ids greater than the cookie, in the order of ids; new. */
static struct name *names_from(struct nc_rw *v, uint64_t cookie, size_t *ret_n)
{
	struct name *all;
	size_t n = 0;
	LOCK_SCOPE(&v->lock);

	for (struct rw_file *f = v->files; f; f = f->next)
		n += f->named && f->id > cookie;
	all = alloc_array(n, sizeof(*all));
	*ret_n = all ? n : 0;
	for (struct rw_file *f = v->files; all && f; f = f->next) /* the newest comes first */
		if (f->named && f->id > cookie)
			all[--n] =
				(struct name){strdup(f->name ? f->name : v->opts.name), f->id};
	return all;
}

static int virtual_rw_view_view_list(struct view *view, uint64_t dir, uint64_t cookie,
				     bool want_attr, view_emit *emit, void *arg, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct name *all;
	size_t n;
	int rc = rw_in_root(v, dir, e);
	bool more = true;

	(void)want_attr;
	if (rc < 0)
		return rc;
	all = names_from(v, cookie, &n);
	if (!all)
		return err_nomem(e);
	for (size_t i = 0; i < n; i++) {
		more = more && all[i].text &&
		       emit(arg, all[i].text, all[i].id, false, NULL, all[i].id);
		free(all[i].text);
	}
	free(all);
	return 0;
}

/* ---- reading ---- */

/* virtual_rw_view_read_file - read from the snapshot, without a copy if possible, while the
 * overlay is empty. */
static int virtual_rw_view_read_file(struct rw_file *f, uint64_t off, size_t len, uint8_t *room,
				     struct span *ret, struct err *e)
{
	size_t n = 0;
	int rc = 0;
	bool snapshot;

	*ret = (struct span){.fd = -1};
	(void)pthread_rwlock_rdlock(&f->copy.map);
	snapshot = f->copy.fd < 0 && f->snapshot;
	if (snapshot)
		rc = f->snapshot->view->ops->read(f->snapshot->view, ONE_FILE_ID, 0, off, len,
						  room, ret, e);
	(void)pthread_rwlock_unlock(&f->copy.map);
	if (snapshot)
		return rc;
	rc = rw_copy_read(&f->copy, off, len, room, &n, e);
	if (rc == 0) {
		ret->mem = room;
		ret->len = n;
	}
	return rc;
}

static int virtual_rw_view_view_read(struct view *view, uint64_t id, uint64_t fh, uint64_t off,
				     size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_handle *h = rw_handle(fh);
	struct rw_file *f;
	int rc;

	if (h)
		return virtual_rw_view_read_file(h->file, off, len, room, ret, e);
	f = rw_file_get(v, id);
	if (!f)
		return id == VIEW_ROOT ? err_set(e, -EISDIR, "it is a directory")
				       : virtual_rw_view_stale(id, e);
	rc = virtual_rw_view_read_file(f, off, len, room, ret, e);
	rw_file_put(v, f); /* the kernel reads open files only: this is not the last reference */
	return rc;
}

static uint64_t virtual_rw_view_view_parent(struct view *view, uint64_t dir)
{
	(void)view;
	(void)dir;
	return VIEW_ROOT;
}

/* virtual_rw_view_view_xattr - an extended attribute of the dataset that the file shows; other
 * files have none. */
static int virtual_rw_view_view_xattr(struct view *view, uint64_t id, const char *name,
				      struct buf *out, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct snapshot *x;
	int rc;

	if (!name)
		return 0; /* none is listed */
	if (id == VIEW_ROOT || !provenance_of(name))
		return err_set(e, -ENODATA, "no attribute '%s'", name);
	x = snapshots_get(v->snapshots);
	rc = x->view->ops->xattr ? x->view->ops->xattr(x->view, VIEW_ROOT + 1, name, out, e)
				 : -ENODATA;
	snapshot_put(v->snapshots, x);
	return rc;
}

/* ---- life ---- */

static void drop_files(struct nc_rw *v)
{
	while (v->files) { /* no file is open any more, except through handles that were not
			    * released */
		v->files->refs = 1;
		rw_file_put(v, v->files);
	}
}

static void virtual_rw_view_view_close(struct view *view)
{
	struct nc_rw *v;

	if (!view)
		return;
	v = nc_rw(view);
	drop_files(v);
	snapshots_free(v->snapshots);
	for (uint32_t i = 0; i < v->base.n_notes; i++)
		free(v->notes[i]);
	free(v->notes);
	close_fd(&v->scratch); /* nothing was written through it */
	(void)unlinkat(v->opts.dir_fd, RW_SCRATCH,
		       AT_REMOVEDIR); /* unless it has content */
	(void)pthread_mutex_destroy(&v->lock);
	(void)pthread_mutex_destroy(&v->commit);
	free(v);
}

static const struct view_ops rw_view_ops = {
	.name = "netcdf",
	.close = virtual_rw_view_view_close,
	.lookup = virtual_rw_view_view_lookup,
	.getattr = virtual_rw_view_view_getattr,
	.list = virtual_rw_view_view_list,
	.read = virtual_rw_view_view_read,
	.parent = virtual_rw_view_view_parent,
	.xattr = virtual_rw_view_view_xattr,
};

static const struct view_write_ops rw_write_ops = {
	.open = rw_op_open,
	.create = rw_op_create,
	.write = rw_op_write,
	.flush = rw_op_flush,
	.fsync = rw_op_fsync,
	.fsyncdir = rw_op_fsyncdir,
	.release = rw_op_release,
	.setattr = rw_op_setattr,
	.unlink = rw_op_unlink,
	.rename = rw_op_rename,
	.finish = rw_op_finish,
};

/* virtual_rw_view_owner - mode and owner of files: the dataset's, without execute permission. */
static void virtual_rw_view_owner(struct nc_rw *v)
{
	struct snapshot *x = snapshots_get(v->snapshots);
	const struct stat *st = &x->view->source->ds.st;

	v->uid = st->st_uid;
	v->gid = st->st_gid;
	v->mode = (st->st_mode & 0666) | 0600;
	v->changed = st->st_mtim;
	snapshot_put(v->snapshots, x);
}

int nc_rw_open(struct snapshots *g, const struct file_rw_options *opts, struct view **ret,
	       struct err *e)
{
	struct nc_rw *v = alloc_array(1, sizeof(*v));
	int rc;

	if (!v)
		return err_nomem(e);
	v->base = (struct view){.ops = &rw_view_ops, .write = &rw_write_ops, .follows = true};
	v->snapshots = g;
	v->opts = *opts;
	v->scratch = -1;
	v->next_id = ONE_FILE_ID;
	v->next_work = 1;
	(void)pthread_mutex_init(&v->lock, NULL); /* cannot fail with default attributes */
	(void)pthread_mutex_init(&v->commit, NULL);
	virtual_rw_view_owner(v);
	rc = rw_epoch(v, e);
	rc = rc ? rc : rw_resume(v, e);
	if (rc < 0) {
		drop_files(v);
		v->snapshots = NULL; /* still the caller's */
		virtual_rw_view_view_close(&v->base);
		return rc;
	}
	*ret = &v->base;
	return 0;
}
