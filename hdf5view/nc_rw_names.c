/* nc_rw_names.c - names in the directory: files that are made, renamed and removed.
 *
 * Other names than the virtual file's are scratch files: plain files of the state directory. One
 * that takes the virtual file's name is committed first. */
#include "hdf5view/nc_rw_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* scratch_dir - the directory of scratch files, made when it is not there. lock is held. */
static int scratch_dir(struct nc_rw *v, struct err *e)
{
	if (v->scratch >= 0)
		return 0;
	if (mkdirat(v->opts.dir_fd, RW_SCRATCH, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "'%s/" RW_SCRATCH "'", v->opts.dir);
	v->scratch = openat(v->opts.dir_fd, RW_SCRATCH,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return v->scratch < 0 ? err_sys(e, errno, "'%s/" RW_SCRATCH "'", v->opts.dir) : 0;
}

/* new_file - with a name of its own (new, taken on success), or the virtual file's. lock is held. */
static int new_file(struct nc_rw *v, char *name, struct rw_file **ret, struct err *e)
{
	struct rw_file *f;
	int rc = name ? scratch_dir(v, e) : 0, fd = -1;

	if (rc == 0 && name) {
		fd = openat(v->scratch, name,
			    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			rc = err_sys(e, errno, "'%s'", name);
	}
	f = rc == 0 ? rw_file_new(v, NULL, e) : NULL;
	if (!f && fd >= 0) {
		(void)close(fd);
		(void)unlinkat(v->scratch, name, 0);
	}
	if (!f)
		return rc < 0 ? rc : (e ? e->code : -ENOMEM);
	f->name = name;
	f->named = true;
	f->copy.fd = fd;
	f->copy.working = fd >= 0;
	*ret = f;
	return 0;
}

int rw_op_create(struct view *view, uint64_t dir, const char *name, size_t len, int flags,
		 mode_t mode, struct view_attr *ret_attr, struct view_handle *ret, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	char *own = NULL;
	struct rw_file *f;
	int rc = rw_in_root(v, dir, e);

	if (rc < 0)
		return rc;
	if (!rw_is_virtual(v, name, len) && !(own = strndup(name, len)))
		return err_nomem(e);
	f = rw_file_hold(v, name, len);
	if (f) {
		free(own);
		rc = flags & O_EXCL ? err_set(e, -EEXIST, "there is one")
				    : view->write->open(view, f->id, flags, ret, e);
		if (rc == 0)
			rw_attr(v, f, ret_attr, e);
		rw_file_put(v, f);
		return rc;
	}
	(void)pthread_mutex_lock(&v->lock);
	rc = new_file(v, own, &f, e);
	if (rc == 0) {
		f->mode = mode & 07777;
		f->mode_set = true;
		if (!own)
			v->now = f;
		rc = rw_handle_open(v, f, flags, ret, e);
		v->changed = f->mtime;
	} else {
		free(own);
	}
	(void)pthread_mutex_unlock(&v->lock);
	if (rc == 0)
		rw_attr(v, f, ret_attr, e);
	return rc;
}

/* unname - no look-up finds it any more. lock is not held. */
static void unname(struct nc_rw *v, struct rw_file *f)
{
	(void)pthread_mutex_lock(&v->lock);
	f->named = false;
	if (v->now == f)
		v->now = NULL;
	(void)pthread_mutex_unlock(&v->lock);
	rw_file_put(v, f);
}

int rw_op_unlink(struct view *view, uint64_t dir, const char *name, size_t len, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f;
	int rc = rw_in_root(v, dir, e);

	if (rc < 0)
		return rc;
	f = rw_file_hold(v, name, len);
	if (!f)
		return err_set(e, -ENOENT, "no such file");
	(void)pthread_mutex_lock(&v->commit);
	(void)pthread_mutex_lock(&f->write);
	if (f->name && unlinkat(v->scratch, f->name, 0) < 0)
		rc = err_sys(e, errno, "'%s'", f->name);
	f->removed = rc == 0;
	(void)pthread_mutex_unlock(&f->write);
	if (rc == 0)
		unname(v, f);
	(void)pthread_mutex_unlock(&v->commit);
	rw_file_put(v, f);
	return rc;
}

/* ---- renaming ---- */

/* take_place - a scratch file becomes the virtual file: it is committed as that. */
static int take_place(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	auto_free char *to = NULL;
	char *name = f->name;
	int rc = 0;

	(void)pthread_mutex_lock(&v->lock);
	if (f->work == 0)
		f->work = v->next_work++;
	(void)pthread_mutex_unlock(&v->lock);
	to = rw_work_path(v, f, "now");
	if (!to)
		return err_nomem(e);
	if (renameat(v->scratch, name, AT_FDCWD, to) < 0)
		return err_sys(e, errno, "'%s'", name);
	f->copy.all = f->copy.dirty = f->follows_any = true;
	f->commits = 0;
	f->name = NULL;
	if (f->copy.size == 0)
		rc = err_set(e, -EINVAL, "'%s' is empty: it is not made a dataset", name);
	else
		rc = rw_commit(v, f, e);
	if (rc < 0) {
		f->name = name;
		if (renameat(AT_FDCWD, to, v->scratch, name) < 0)
			return err_sys(e, errno, "'%s' is '%s' now", name, to);
		return rc;
	}
	free(name);
	unname(v, f); /* the name leads to what it was made of it */
	return 0;
}

/* move - a scratch file gets another name. */
static int move(struct nc_rw *v, struct rw_file *f, char *name, struct rw_file *over,
		struct err *e)
{
	if (renameat(v->scratch, f->name, v->scratch, name) < 0)
		return err_sys(e, errno, "'%s' to '%s'", f->name, name);
	(void)pthread_mutex_lock(&v->lock);
	free(f->name);
	f->name = name;
	(void)pthread_mutex_unlock(&v->lock);
	if (over) {
		over->removed = true;
		unname(v, over);
	}
	return 0;
}

/* rename_file - locks are taken. over: what has the name now, or NULL. */
static int rename_file(struct nc_rw *v, struct rw_file *f, const char *to, size_t len,
		       struct rw_file *over, struct err *e)
{
	char *name;
	int rc;

	if (f == over)
		return 0;
	if (!f->name)
		return err_set(e, -EPERM, "'%s' is the dataset, and keeps its name", v->opts.name);
	if (rw_is_virtual(v, to, len))
		return take_place(v, f, e);
	name = strndup(to, len);
	if (!name)
		return err_nomem(e);
	rc = move(v, f, name, over, e);
	if (rc < 0)
		free(name);
	return rc;
}

int rw_op_rename(struct view *view, uint64_t dir, const char *name, size_t len, uint64_t to_dir,
		 const char *to_name, size_t to_len, unsigned flags, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f, *over;
	int rc = rw_in_root(v, dir, e);

	if (rc == 0)
		rc = rw_in_root(v, to_dir, e);
	if (rc < 0)
		return rc;
	(void)pthread_mutex_lock(&v->commit);
	f = rw_file_hold(v, name, len);
	over = rw_file_hold(v, to_name, to_len);
	if (!f)
		rc = err_set(e, -ENOENT, "no such file");
	else if (over && (flags & RENAME_NOREPLACE))
		rc = err_set(e, -EEXIST, "there is one");
	if (rc == 0) {
		(void)pthread_mutex_lock(&f->write);
		rc = rename_file(v, f, to_name, to_len, over, e);
		(void)pthread_mutex_unlock(&f->write);
	}
	(void)pthread_mutex_unlock(&v->commit);
	if (over)
		rw_file_put(v, over);
	if (f)
		rw_file_put(v, f);
	return rc;
}
