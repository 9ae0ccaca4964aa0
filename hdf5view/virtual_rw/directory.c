/* SPDX-License-Identifier: BSD-3-Clause */
/* directory.c - names in the directory: creates, renames and removes files.
 *
 * Names other than the virtual file's are scratch files: plain files of the state directory. A
 * scratch file that is renamed to the virtual file's name is committed first. */
#include "hdf5view/virtual_rw/virtual_rw_int.h"

#include "base/os/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK ((size_t)256 << 10)

int rw_scratch_dir(struct nc_rw *v, struct err *e)
{
	if (v->scratch >= 0)
		return 0;
	if (mkdirat(v->opts.dir_fd, RW_SCRATCH, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "'%s/" RW_SCRATCH "'", v->opts.dir);
	v->scratch = openat(v->opts.dir_fd, RW_SCRATCH,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return v->scratch < 0 ? err_sys(e, errno, "'%s/" RW_SCRATCH "'", v->opts.dir) : 0;
}

/* virtual_rw_directory_new_file - make a file with a name of its own (new, taken on success), or
 * the virtual file's. lock is held. */
static int virtual_rw_directory_new_file(struct nc_rw *v, char *name, struct rw_file **ret,
					 struct err *e)
{
	struct rw_file *f;
	int rc = name ? rw_scratch_dir(v, e) : 0, fd = -1;

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
	if (fd >= 0)
		rw_begin_new(f, fd, 0);
	*ret = f;
	return 0;
}

int rw_op_create(struct view *view, uint64_t dir, const char *name, int flags,
		 mode_t mode, struct view_attr *ret_attr, struct view_handle *ret,
		 struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	char *own = NULL;
	struct rw_file *f;
	int rc = rw_in_root(v, dir, e);

	if (rc < 0)
		return rc;
	if (!rw_is_virtual(v, name, strlen(name)) && !(own = strdup(name)))
		return err_nomem(e);
	f = rw_file_hold(v, name, strlen(name));
	if (f) {
		free(own);
		rc = flags & O_EXCL ? err_set(e, -EEXIST, "it already exists")
				    : view->write->open(view, f->id, flags, ret, e);
		if (rc == 0)
			rw_attr(v, f, ret_attr, e);
		rw_file_put(v, f);
		return rc;
	}
	(void)pthread_mutex_lock(&v->lock);
	rc = virtual_rw_directory_new_file(v, own, &f, e);
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

/* removed - the file loses its name, and is not committed any more. lock is not held. */
static void removed(struct nc_rw *v, struct rw_file *f)
{
	f->removed = true;
	(void)pthread_mutex_lock(&v->lock);
	f->named = false;
	if (v->now == f)
		v->now = NULL;
	(void)pthread_mutex_unlock(&v->lock);
	rw_file_put(v, f);
}

int rw_op_unlink(struct view *view, uint64_t dir, const char *name, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f;
	int rc = rw_in_root(v, dir, e);

	if (rc < 0)
		return rc;
	f = rw_file_hold(v, name, strlen(name));
	if (!f)
		return err_set(e, -ENOENT, "no such file");
	(void)pthread_mutex_lock(&v->commit);
	(void)pthread_mutex_lock(&f->write);
	if (f->name && unlinkat(v->scratch, f->name, 0) < 0)
		rc = err_sys(e, errno, "'%s'", f->name);
	if (rc == 0)
		removed(v, f);
	(void)pthread_mutex_unlock(&f->write);
	(void)pthread_mutex_unlock(&v->commit);
	rw_file_put(v, f);
	return rc;
}

/* ---- renaming ---- */

/* became - a scratch file is the dataset now: the name leads to the dataset's new file, or to the
 * scratch file itself while it is open for writing. */
static void became(struct nc_rw *v, struct rw_file *f)
{
	struct rw_file *old = f;

	(void)pthread_mutex_lock(&v->lock);
	if (f->writers > 0) {
		old = v->now;
		v->now = f;
	}
	if (old)
		old->named = false;
	(void)pthread_mutex_unlock(&v->lock);
	if (old)
		rw_file_put(v, old);
}

static void virtual_rw_directory_set_name(struct nc_rw *v, struct rw_file *f, char *name)
{
	LOCK_SCOPE(&v->lock);

	f->name = name;
}

/* virtual_rw_directory_take_place - commit a scratch file as the virtual file. */
static int virtual_rw_directory_take_place(struct nc_rw *v, struct rw_file *f, struct err *e)
{
	char to[RW_NAME_ROOM], *name = f->name;
	int rc;

	if (f->copy.size == 0)
		return err_set(e, -EINVAL, "'%s' is empty and therefore not a dataset", name);
	rw_work_number(v, f);
	rw_work_name(f, "now", to);
	if (renameat(v->scratch, name, v->opts.dir_fd, to) < 0)
		return err_sys(e, errno, "'%s'", name);
	f->copy.all = f->copy.dirty = f->follows_any = true;
	virtual_rw_directory_set_name(v, f, NULL);
	rc = rw_commit(v, f, false, e);
	if (rc < 0) {
		virtual_rw_directory_set_name(v, f, name);
		f->copy.dirty = false;
		if (renameat(v->opts.dir_fd, to, v->scratch, name) < 0)
			return err_sys(e, errno, "'%s' is now '%s/%s'", name, v->opts.dir, to);
		return rc;
	}
	free(name);
	became(v, f);
	return 0;
}

/* copy_out - copy all of a file to a new one. */
static int copy_out(struct rw_file *f, int fd, struct err *e)
{
	auto_free uint8_t *block = malloc(BLOCK);
	uint64_t off = 0;
	size_t n = 1;
	int rc = block ? 0 : err_nomem(e);

	while (rc == 0 && n > 0) {
		rc = rw_copy_read(&f->copy, off, BLOCK, block, &n, e);
		rc = rc ? rc : io_pwrite(fd, block, n, off, e);
		off += n;
	}
	return rc;
}

/* virtual_rw_directory_copy_of - make a scratch file with the content of another, under a name
 * that it takes from any current owner; lock is not held. */
static int virtual_rw_directory_copy_of(struct nc_rw *v, struct rw_file *f, const char *name,
					struct rw_file *copy, struct err *e)
{
	char work[RW_NAME_ROOM];
	int fd = rw_work_open(v, copy, "now", e), rc;

	if (fd < 0)
		return fd;
	rw_begin_new(copy, fd, 0);
	rc = copy_out(f, fd, e);
	copy->copy.size = f->copy.size;
	rw_work_name(copy, "now", work);
	(void)pthread_mutex_lock(&v->lock);
	rc = rc ? rc : rw_scratch_dir(v, e);
	(void)pthread_mutex_unlock(&v->lock);
	if (rc == 0 && renameat(v->opts.dir_fd, work, v->scratch, name) < 0)
		rc = err_sys(e, errno, "'%s'", name);
	return rc;
}

/* set_aside - rename the virtual file: a copy of it gets the new name, as a scratch file, and the
 * virtual file's name is removed. The dataset stays unchanged until another file takes the name.
 * name: taken. */
static int set_aside(struct nc_rw *v, struct rw_file *f, char *name, struct rw_file *over,
		     struct err *e)
{
	struct rw_file *copy;
	int rc;

	(void)pthread_mutex_lock(&v->lock);
	copy = rw_file_new(v, NULL, e);
	(void)pthread_mutex_unlock(&v->lock);
	rc = copy ? virtual_rw_directory_copy_of(v, f, name, copy, e) : -ENOMEM;
	if (rc < 0) {
		free(name);
		if (copy)
			rw_file_put(v, copy);
		return rc;
	}
	(void)pthread_mutex_lock(&v->lock);
	copy->name = name;
	copy->named = true;
	(void)pthread_mutex_unlock(&v->lock);
	if (over)
		removed(v, over);
	removed(v, f);
	return 0;
}

/* virtual_rw_directory_move - rename a scratch file. */
static int virtual_rw_directory_move(struct nc_rw *v, struct rw_file *f, char *name,
				     struct rw_file *over, struct err *e)
{
	if (renameat(v->scratch, f->name, v->scratch, name) < 0)
		return err_sys(e, errno, "'%s' to '%s'", f->name, name);
	(void)pthread_mutex_lock(&v->lock);
	free(f->name);
	f->name = name;
	(void)pthread_mutex_unlock(&v->lock);
	if (over)
		removed(v, over);
	return 0;
}

/* virtual_rw_directory_rename_file - rename, with the locks taken. over: the current owner of the
 * name, or NULL. */
static int virtual_rw_directory_rename_file(struct nc_rw *v, struct rw_file *f, const char *to,
					    struct rw_file *over, struct err *e)
{
	char *name;
	int rc;

	if (f == over)
		return 0;
	if (rw_is_virtual(v, to, strlen(to)))
		return virtual_rw_directory_take_place(v, f, e);
	name = strdup(to);
	if (!name)
		return err_nomem(e);
	if (!f->name)
		return set_aside(v, f, name, over, e);
	rc = virtual_rw_directory_move(v, f, name, over, e);
	if (rc < 0)
		free(name);
	return rc;
}

int rw_op_rename(struct view *view, uint64_t dir, const char *name, uint64_t to_dir,
		 const char *to_name, unsigned flags, struct err *e)
{
	struct nc_rw *v = nc_rw(view);
	struct rw_file *f, *over;
	int rc = rw_in_root(v, dir, e);

	rc = rc ? rc : rw_in_root(v, to_dir, e);
	if (rc < 0)
		return rc;
	(void)pthread_mutex_lock(&v->commit);
	f = rw_file_hold(v, name, strlen(name));
	over = rw_file_hold(v, to_name, strlen(to_name));
	if (!f)
		rc = err_set(e, -ENOENT, "no such file");
	else if (over && (flags & RENAME_NOREPLACE))
		rc = err_set(e, -EEXIST, "it already exists");
	rc = rc ? rc : rw_file_ready(f, e);
	if (rc == 0) {
		(void)pthread_mutex_lock(&f->write);
		rc = virtual_rw_directory_rename_file(v, f, to_name, over, e);
		(void)pthread_mutex_unlock(&f->write);
	}
	(void)pthread_mutex_unlock(&v->commit);
	if (over)
		rw_file_put(v, over);
	if (f)
		rw_file_put(v, f);
	return rc;
}
