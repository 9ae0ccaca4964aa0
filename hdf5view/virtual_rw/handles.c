/* SPDX-License-Identifier: BSD-3-Clause */
/* handles.c - handles, writes through them, and the times of commits.
 *
 * A close arrives as a flush, once for each descriptor: a child that a writer forked closes the
 * inherited ones while the file is half written. If the file cannot be read as HDF5 then, that
 * close fails, and the next one tries again. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#include "base/os/io.h"
#include "base/os/cancel.h"
#define LOG_COMPONENT LOG_WRITE
#include "base/core/clock.h"
#include "base/observe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

/* ---- opening ---- */

int rw_handle_open(struct nc_rw *v, struct rw_file *f, int flags, struct view_handle *ret,
		   struct err *e)
{
	struct rw_handle *h = alloc_array(1, sizeof(*h));

	if (!h)
		return err_nomem(e);
	h->file = f;
	h->writes = (flags & O_ACCMODE) != O_RDONLY;
	h->next = v->handles;
	v->handles = h;
	f->refs++;
	f->handles++;
	f->writers += h->writes;
	*ret = (struct view_handle){.fh = (uint64_t)(uintptr_t)h, .keep_cache = true};
	return 0;
}

static void handle_close(struct nc_rw *v, struct rw_handle *h)
{
	struct rw_handle **at = &v->handles;
	struct rw_file *f = h->file;

	(void)pthread_mutex_lock(&v->lock);
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	f->handles--;
	f->writers -= h->writes && !h->left;
	(void)pthread_mutex_unlock(&v->lock);
	free(h);
	rw_file_put(v, f);
}

/* read_by_others - whether a reader has the file open, who would see the changes of a writer. lock
 * is held. */
static bool read_by_others(const struct nc_rw *v, const struct rw_file *f)
{
	for (const struct rw_handle *h = v->handles; h; h = h->next)
		if (h->file == f && !h->writes)
			return true;
	return false;
}

/* virtual_rw_handles_open_named - open a handle on a file that has a name; -EAGAIN: a new version
 * has to be made for the writer. lock is held. */
static int virtual_rw_handles_open_named(struct nc_rw *v, struct rw_file *f, int flags,
					 struct view_handle *ret, struct err *e)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if (!f->named)
		return err_set(e, -ESTALE, "another file has its name now");
	if (writes && !f->name && f->writers == 0 && !f->copy.working && !f->asked &&
	    read_by_others(v, f))
		return -EAGAIN;
	return rw_handle_open(v, f, flags, ret, e);
}

/* virtual_rw_handles_cut - resize. `write` is held. */
static int virtual_rw_handles_cut(struct nc_rw *v, struct rw_file *f, uint64_t size,
				  struct err *e)
{
	int rc = rw_begin(v, f, size == 0, e);

	rc = rc ? rc : rw_copy_resize(&f->copy, size, e);
	if (rc == 0 && size == 0)
		f->failed = 0; /* a fresh start */
	return rc;
}

static void virtual_rw_handles_touch(struct nc_rw *v, struct rw_file *f)
{
	LOCK_SCOPE(&v->lock);

	f->mtime = clock_wall();
}

/* virtual_rw_handles_opened - complete the opening of a file. */
static int virtual_rw_handles_opened(struct nc_rw *v, struct rw_handle *h, int flags,
				     struct err *e)
{
	int rc = h->writes || (flags & O_TRUNC) ? rw_file_ready(h->file, e)
						: 0; /* reading reports the error */

	if (rc < 0 || !(flags & O_TRUNC))
		return rc;
	(void)pthread_mutex_lock(&h->file->write);
	rc = virtual_rw_handles_cut(v, h->file, 0, e);
	h->wrote = rc == 0;
	(void)pthread_mutex_unlock(&h->file->write);
	virtual_rw_handles_touch(v, h->file);
	return rc;
}

int rw_op_open(struct view *view, uint64_t id, int flags, struct view_handle *ret,
	       struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f;
	int rc;

	/* Wait for a commit in progress: an opener would need the old chunks, and the name is
	 * about to lead to another file. */
	rc = cancel_lock(&v->commit);
	if (rc < 0)
		return err_set(e, rc, "cancelled while a commit was in progress");
	f = rw_file_get(v, id);
	if (!f) {
		(void)pthread_mutex_unlock(&v->commit);
		return err_set(e, -ESTALE, "no file has the id %llu", (unsigned long long)id);
	}
	(void)pthread_mutex_lock(&v->lock);
	rc = virtual_rw_handles_open_named(v, f, flags, ret, e);
	(void)pthread_mutex_unlock(&v->lock);
	if (rc == -EAGAIN) {
		rc = rw_epoch(v, e);
		if (rc == 0) {
			v->now->asked = true; /* another writer may be faster; then they share
					       * it */
			rc = err_set(e, -ESTALE,
				     "other programs are reading it: look it up again");
		}
	}
	(void)pthread_mutex_unlock(&v->commit);
	if (rc == 0) {
		rc = virtual_rw_handles_opened(v, rw_handle(ret->fh), flags, e);
		if (rc < 0)
			handle_close(v, rw_handle(ret->fh));
	}
	rw_file_put(v, f);
	return rc;
}

/* ---- writing ---- */

int rw_op_write(struct view *view, uint64_t id, uint64_t fh, uint64_t off, const uint8_t *data,
		size_t len, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_handle *h = rw_handle(fh);
	int rc;

	if (!h || !h->writes)
		return err_set(e, -EBADF, "id %llu is not open for writing",
			       (unsigned long long)id);
	(void)pthread_mutex_lock(&h->file->write);
	rc = rw_begin(v, h->file, false, e);
	rc = rc ? rc : rw_copy_write(&h->file->copy, off, data, len, e);
	if (rc < 0)
		h->file->failed = rc; /* libraries continue as if it had been written */
	h->wrote = h->wrote || rc < 0 || h->file->copy.dirty;
	(void)pthread_mutex_unlock(&h->file->write);
	virtual_rw_handles_touch(v, h->file);
	return rc;
}

/* virtual_rw_handles_resize - truncate, through a handle or without one. */
static int virtual_rw_handles_resize(struct nc_rw *v, struct rw_file *f, struct rw_handle *h,
				     uint64_t size, struct err *e)
{
	int rc = rw_file_ready(f, e);

	if (rc < 0)
		return rc;
	(void)pthread_mutex_lock(&f->write);
	rc = size == f->copy.size ? 0 : virtual_rw_handles_cut(v, f, size, e);
	if (rc < 0 && h)
		f->failed = rc;
	if (h)
		h->wrote = rc < 0 || f->copy.dirty;
	else if (rc == 0)
		f->orphan = f->copy.dirty;
	(void)pthread_mutex_unlock(&f->write);
	virtual_rw_handles_touch(v, f);
	return rc;
}

int rw_op_setattr(struct view *view, uint64_t id, uint64_t fh, const struct view_set *set,
		  struct view_attr *ret, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_handle *h = rw_handle(fh);
	struct rw_file *f;
	int rc = 0;

	if (id == VIEW_ROOT)
		return set->size_set ? err_set(e, -EISDIR, "it is a directory")
				     : view->ops->getattr(view, id, ret, e);
	f = rw_file_get(v, id);
	if (!f)
		return err_set(e, -ESTALE, "no file has the id %llu", (unsigned long long)id);
	if (set->size_set)
		rc = virtual_rw_handles_resize(v, f, h && h->writes ? h : NULL, set->size, e);
	if (rc == 0) {
		(void)pthread_mutex_lock(&v->lock);
		if (set->mode_set)
			f->mode = set->mode;
		f->mode_set = f->mode_set || set->mode_set;
		if (set->mtime_set)
			f->mtime = set->mtime;
		(void)pthread_mutex_unlock(&v->lock);
		rw_attr(v, f, ret, e);
	}
	rw_file_put(v, f);
	return rc;
}

/* ---- committing ---- */

/* virtual_rw_handles_due - whether this handle has changes to commit. */
static bool virtual_rw_handles_due(const struct rw_handle *h)
{
	if (!h->writes) /* a handle that did not write does not wait for a commit */
		return h->wrote;
	LOCK_SCOPE(&h->file->write);
	return h->wrote || h->file->orphan;
}

static int commit_due(struct nc_rw *v, const struct rw_handle *h, bool synced, struct err *e)
{
	return virtual_rw_handles_due(h) ? rw_commit_locking(v, h->file, synced, e) : 0;
}

int rw_op_flush(struct view *view, uint64_t id NZ_UNUSED, uint64_t fh, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_handle *h = rw_handle(fh);

	return h ? commit_due(v, h, false, e) : 0;
}

/* keep_file - save changes that could not be committed. why: the reason. Returns 0, or the error
 * of saving. */
static int keep_file(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	LOCK_SCOPE(&f->write);

	return rw_keep(v, f, e);
}

int rw_op_fsync(struct view *view, uint64_t id NZ_UNUSED, uint64_t fh, bool data_only NZ_UNUSED,
		struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_handle *h = rw_handle(fh);
	struct err why = ERR_INIT;
	bool scratch;
	int rc;

	if (!h)
		return 0;
	(void)pthread_mutex_lock(&v->lock);
	scratch = h->file->name != NULL;
	(void)pthread_mutex_unlock(&v->lock);
	if (scratch)
		return io_sync(h->file->copy.fd, true, e);
	rc = commit_due(v, h, true, &why);
	if (rc == -EBADMSG) /* not an HDF5 file yet: its bytes survive */
		return keep_file(v, h->file, e);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

int rw_op_fsyncdir(struct view *view, uint64_t dir NZ_UNUSED, struct err *e)
{
	struct nc_rw *v = nc_rw(view);

	return v->scratch >= 0 ? io_sync(v->scratch, true, e) : 0;
}

/* keep_late - the last writer has closed the file, and it could not be committed: its state is
 * kept, in the mount and after it, unless another file has replaced it. */
static void keep_late(struct nc_rw *v, struct rw_file *f, int rc, const struct err *why)
{
	struct err e = ERR_INIT;
	bool kept = keep_file(v, f, &e) == 0;

	f->orphan = true;
	log_error(
		"changes to '%s' could not be committed: %s; %s%s/nc-%llu.now%s", v->opts.name,
		why->msg, kept ? "they are kept in '" : "they could not be kept in '",
		v->opts.dir, (unsigned long long)f->work,
		kept ? "', and the commit is retried when the file is written or mounted again"
		     : "'");
	if (!kept)
		log_error("%s", e.msg);
	if (rc != -ESTALE)
		return;
	(void)pthread_mutex_lock(&v->commit);
	if (snapshots_check(v->snapshots, NULL) != -ESTALE ||
	    snapshots_reopen(v->snapshots, NULL) == 0)
		rc = f == v->now ? rw_epoch(v, &e) : 0;
	v->left |= kept && f != v->now;
	(void)pthread_mutex_unlock(&v->commit);
	if (rc < 0)
		log_error("'%s' cannot be reopened: %s", v->opts.name, e.msg);
}

/* virtual_rw_handles_settle - after the last writer's close: reopen a file that was committed, and
 * drop one that could not be written. */
static void virtual_rw_handles_settle(struct nc_rw *v, struct rw_file *f)
{
	struct err e = ERR_INIT;
	bool done, written;

	(void)pthread_mutex_lock(&v->commit);
	(void)pthread_mutex_lock(&f->write);
	if (f->failed && !f->name) {
		f->removed = true;
		f->kept = false;
	}
	(void)pthread_mutex_lock(&v->lock);
	written = f->writers > 0; /* it was opened again meanwhile */
	(void)pthread_mutex_unlock(&v->lock);
	done = f == v->now && !v->behind && !written &&
	       (f->failed || (f->commits > 0 && !f->copy.dirty));
	(void)pthread_mutex_unlock(&f->write);
	if (done && rw_epoch(v, &e) < 0)
		log_error("'%s': %s", v->opts.name, e.msg);
	(void)pthread_mutex_unlock(&v->commit);
}

void rw_op_release(struct view *view, uint64_t id NZ_UNUSED, uint64_t fh)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_handle *h = rw_handle(fh);
	struct err e = ERR_INIT;
	bool last;
	int rc;

	if (!h)
		return;
	rc = commit_due(v, h, false, &e);
	(void)pthread_mutex_lock(&v->lock);
	/* of two concurrent closes, exactly one is the last */
	last = h->writes && --h->file->writers == 0;
	h->left = true;
	(void)pthread_mutex_unlock(&v->lock);
	if (rc < 0 && last && !h->file->failed)
		keep_late(v, h->file, rc, &e);
	else if (last)
		virtual_rw_handles_settle(v, h->file);
	handle_close(v, h);
}

/* next_dirty - the next file by id with changes to commit, with a reference. NULL: none. */
static struct rw_file *next_dirty(struct nc_rw *v, uint64_t id)
{
	struct rw_file *found = NULL;
	LOCK_SCOPE(&v->lock);

	for (struct rw_file *f = v->files; f; f = f->next)
		if (f->id > id && !f->name && !f->removed && !f->failed && f->copy.dirty)
			found = f; /* they are in descending order */
	if (found)
		found->refs++;
	return found;
}

/* left_over - report content of the mount that the dataset does not have. */
static void left_over(struct nc_rw *v)
{
	unsigned scratch = 0;
	bool gone;

	(void)pthread_mutex_lock(&v->lock);
	gone = !v->now;
	for (struct rw_file *f = v->files; f; f = f->next)
		scratch += f->named && f->name;
	(void)pthread_mutex_unlock(&v->lock);
	if (gone)
		log_warn("'%s' was removed and not replaced: the dataset is unchanged",
			 v->opts.name);
	if (scratch > 0)
		log_warn("%u files next to '%s' are kept in '%s/" RW_SCRATCH "'", scratch,
			 v->opts.name, v->opts.dir);
}

int rw_op_finish(struct view *view, bool last NZ_UNUSED, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f;
	uint64_t id = 0;
	int rc = 0;

	while ((f = next_dirty(v, id))) {
		struct err why = ERR_INIT;
		int one = rw_commit_locking(v, f, false, &why);

		if (one < 0) {
			keep_late(v, f, 0, &why);
			rc = err_set(e, one, "%s; it is kept in '%s'", why.msg, v->opts.dir);
		}
		id = f->id;
		rw_file_put(v, f);
	}
	(void)pthread_mutex_lock(&v->commit);
	rc = rc ? rc : rw_catch_up(v, e);
	if (rc == 0 && v->left)
		rc = err_set(e, -ESTALE, "changes that could not be committed are kept in '%s'",
			     v->opts.dir);
	(void)pthread_mutex_unlock(&v->commit);
	left_over(v);
	return rc;
}
