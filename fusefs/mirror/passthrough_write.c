/* SPDX-License-Identifier: BSD-3-Clause */
/* passthrough_write.c - writes to real entries of a mirrored directory at once, without buffering.
 *
 * Names are created and removed in their directory, which was opened beneath the base, so that no
 * link in the path leads elsewhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "base/observe/log.h"
#include "fusefs/mirror/mirror_int.h"

int real_fail(struct err *e, int errnum, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	if (errnum != EINVAL && errnum != EFBIG)
		return err_sys(e, errnum, "%s", text);
	log_debug("%s: %s", text, strerrordesc_np(errnum));
	return err_set(e, -errnum, "%s", "");
}

/* passthrough_write_open_dir - open a directory, if the path still leads to the same inode. */
static int passthrough_write_open_dir(const struct mirror *m, const struct where *dir,
				      struct err *e)
{
	int fd = open_beneath(m->fd, dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
		return err_set(e, -ESTALE, "'%s': no such directory", dir->path);
	if (fd < 0)
		return err_sys(e, -fd, "'%s'", dir->path);
	if (fstat(fd, &st) < 0 || st.st_dev != dir->dev || st.st_ino != dir->ino) {
		(void)close(fd);
		return err_set(e, -ESTALE, "'%s' was replaced by another directory", dir->path);
	}
	return fd;
}

int real_open_at(const struct mirror *m, const char *path, const char **ret_name, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	int fd;

	if (!dir)
		return err_nomem(e);
	fd = open_beneath(m->fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	*ret_name = slash ? slash + 1 : path;
	return fd < 0 ? err_sys(e, -fd, "'%s'", dir) : fd;
}

/* entered - the attributes of a new entry, which the kernel references from now on. */
static int entered(struct mirror *m, const struct where *dir, const char *name,
		   struct view_attr *ret, struct err *e)
{
	struct stat st;
	char *path;
	int rc = real_probe(m, dir, name, &path, &st, e);

	return rc ? rc : real_enter(m, dir, path, &st, ret, e);
}

int passthrough_create(struct mirror *m, const struct where *dir, const char *name, int flags,
		       mode_t mode, int *ret_fd, struct view_attr *ret, struct err *e)
{
	auto_fd int at = passthrough_write_open_dir(m, dir, e);
	int access = (flags & O_ACCMODE) == O_WRONLY ? O_RDWR : flags & O_ACCMODE;
	int fd, rc;

	if (at < 0)
		return at;
	/* readable as well, if permitted: the program may read what it wrote */
	fd = openat(at, name,
		    access | (flags & (O_EXCL | O_TRUNC | O_APPEND)) | O_CREAT | O_NOFOLLOW |
			    O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		    mode & 0777);
	if (fd < 0 && errno == EACCES)
		fd = openat(at, name,
			    (flags & (O_ACCMODE | O_EXCL | O_TRUNC | O_APPEND)) | O_CREAT |
				    O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			    mode & 0777);
	if (fd < 0)
		return real_fail(e, errno, "'%s' in '%s'", name, dir->path);
	rc = entered(m, dir, name, ret, e);
	if (rc < 0)
		(void)close(fd);
	else
		*ret_fd = fd;
	return rc;
}

int passthrough_open(struct mirror *m, uint64_t id, int flags, int *ret_fd, struct err *e)
{
	struct mirror_node n;
	struct stat st;
	int rc = real_copy(m, id, &n, e), fd;

	if (rc < 0)
		return rc;
	fd = open_beneath(m->fd, n.path, (flags & (O_ACCMODE | O_APPEND)) | O_NOFOLLOW);
	if (fd < 0)
		rc = fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP
			     ? err_set(e, -ESTALE, "'%s' was removed", n.path)
			     : err_sys(e, -fd, "'%s'", n.path);
	else if (fstat(fd, &st) < 0 || st.st_dev != n.dev || st.st_ino != n.ino)
		rc = err_set(e, -ESTALE, "'%s' was replaced by another file", n.path);
	else if (!S_ISREG(st.st_mode))
		rc = err_set(e, -EIO, "'%s' is not a regular file", n.path);
	else if ((flags & O_TRUNC) && ftruncate(fd, 0) < 0)
		rc = real_fail(e, errno, "'%s'", n.path);
	free(n.path);
	if (rc == 0)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* passthrough_write_set - set the attributes of one file, open as at/name, or as fd; was: its
 * present ones. The mode bits of a directory that are not shown (set-group-id, sticky) stay. */
static int passthrough_write_set(int at, const char *name, int fd, mode_t was,
				 const struct view_set *x)
{
	mode_t mode = (x->mode & 0777) | (S_ISDIR(was) ? was & 07000 : 0);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, x->mtime};
	auto_fd int own = -1;

	/* the name may be a link by now, which leads anywhere */
	if (x->mode_set &&
	    (fd >= 0 ? fchmod(fd, mode) : fchmodat(at, name, mode, AT_SYMLINK_NOFOLLOW)) < 0)
		return -errno;
	if (x->size_set && x->size > INT64_MAX)
		return -EFBIG;
	if (x->size_set && fd < 0)
		own = openat(at, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (x->size_set && (fd < 0 && own < 0))
		return -errno;
	if (x->size_set && ftruncate(fd < 0 ? own : fd, (off_t)x->size) < 0)
		return -errno;
	if (x->mtime_set && (fd >= 0 ? futimens(fd, times)
				     : utimensat(at, name, times, AT_SYMLINK_NOFOLLOW)) < 0)
		return -errno;
	return 0;
}

int passthrough_setattr(struct mirror *m, uint64_t id, int fd, const struct view_set *x,
			struct view_attr *ret, struct err *e)
{
	const char *name = NULL;
	struct mirror_node n = {0};
	struct stat st;
	int rc = fd < 0 ? real_copy(m, id, &n, e) : 0, at = -1;

	if (rc < 0)
		return rc;
	if (fd < 0) {
		at = n.path[0] ? real_open_at(m, n.path, &name, e) : -1;
		rc = at < 0 ? (n.path[0] ? at : err_set(e, -EPERM, "the root of the mount"))
			    : 0;
		if (rc == 0 && (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
				st.st_dev != n.dev || st.st_ino != n.ino))
			rc = err_set(e, -ESTALE, "'%s' was replaced by another file", n.path);
		if (rc == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) &&
		    (x->mode_set || x->size_set))
			rc = err_set(e, -EPERM, "'%s' is not a file", n.path);
	}
	if (rc == 0) {
		rc = passthrough_write_set(at, name, fd, fd >= 0 ? S_IFREG : st.st_mode, x);
		if (rc < 0)
			(void)real_fail(e, -rc, "'%s'", n.path ? n.path : "an open file");
	}
	if (rc == 0 &&
	    (fd >= 0 ? fstat(fd, &st) : fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW)) < 0)
		rc = real_fail(e, errno, "'%s'", n.path ? n.path : "an open file");
	if (rc == 0) {
		real_attr(&st, ret);
		ret->id = id;
	}
	if (at >= 0)
		(void)close(at);
	free(n.path);
	return rc;
}

int passthrough_mkdir(struct mirror *m, const struct where *dir, const char *name, mode_t mode,
		      struct view_attr *ret, struct err *e)
{
	auto_fd int at = passthrough_write_open_dir(m, dir, e);

	if (at < 0)
		return at;
	if (mkdirat(at, name, mode & 0777) < 0)
		return real_fail(e, errno, "'%s' in '%s'", name, dir->path);
	return entered(m, dir, name, ret, e);
}

int passthrough_symlink(struct mirror *m, const struct where *dir, const char *name,
			const char *text, struct view_attr *ret, struct err *e)
{
	auto_fd int at = passthrough_write_open_dir(m, dir, e);

	if (at < 0)
		return at;
	if (symlinkat(text, at, name) < 0)
		return real_fail(e, errno, "'%s' in '%s'", name, dir->path);
	return entered(m, dir, name, ret, e);
}

/* remove_left - remove the state directories in a directory that is shown as empty: their datasets
 * were removed while they were open, or had pending writes that could not be committed. */
static void remove_left(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool empty = true;

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	errno = 0;
	while (empty && (entry = readdir(d)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			mirror_hidden(entry->d_name);
	empty = empty && errno == 0;
	rewinddir(d);
	while (empty && (entry = readdir(d)) != NULL)
		if (mirror_hidden(entry->d_name))
			remove_beneath(fd, entry->d_name);
	(void)closedir(d);
}

int passthrough_remove(struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		       struct err *e)
{
	auto_fd int at = passthrough_write_open_dir(m, dir, e);

	if (at < 0)
		return at;
	if (is_dir && unlinkat(at, name, AT_REMOVEDIR) < 0) {
		if (errno != ENOTEMPTY && errno != EEXIST)
			return real_fail(e, errno, "'%s' in '%s'", name, dir->path);
		remove_left(at, name);
	} else if (is_dir) {
		return 0;
	}
	return unlinkat(at, name, is_dir ? AT_REMOVEDIR : 0) < 0
		       ? real_fail(e, errno, "'%s' in '%s'", name, dir->path)
		       : 0;
}

int passthrough_rename(struct mirror *m, const struct where *dir, const char *name,
		       const struct where *to_dir, const char *to_name, unsigned flags,
		       struct err *e)
{
	auto_free char *from = path_join(dir->path, name);
	auto_free char *to = path_join(to_dir->path, to_name);
	auto_fd int at = passthrough_write_open_dir(m, dir, e);
	auto_fd int to_at = at < 0 ? -1 : passthrough_write_open_dir(m, to_dir, e);

	if (!from || !to)
		return err_nomem(e);
	if (at < 0 || to_at < 0)
		return at < 0 ? at : to_at;
	if (renameat2(at, name, to_at, to_name, flags) < 0)
		return real_fail(e, errno, "'%s' to '%s'", from, to);
	real_moved(m, from, to);
	return 0;
}

int passthrough_link(struct mirror *m, uint64_t id, const struct where *dir, const char *name,
		     struct view_attr *ret, struct err *e)
{
	auto_fd int to_at = passthrough_write_open_dir(m, dir, e);
	const char *from = NULL;
	struct mirror_node n;
	int rc, at;

	if (to_at < 0)
		return to_at;
	rc = real_copy(m, id, &n, e);
	if (rc < 0)
		return rc;
	at = real_open_at(m, n.path, &from, e);
	if (at < 0)
		rc = at;
	else if (linkat(at, from, to_at, name, 0) < 0)
		rc = real_fail(e, errno, "'%s' as '%s'", n.path, name);
	if (at >= 0)
		(void)close(at);
	free(n.path);
	return rc ? rc : entered(m, dir, name, ret, e);
}
