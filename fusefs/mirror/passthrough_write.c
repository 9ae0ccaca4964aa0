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
	const int access = flags & O_ACCMODE;
	const int rest = (flags & (O_EXCL | O_TRUNC | O_APPEND)) | O_CREAT | O_NOFOLLOW |
			 O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	auto_fd int at = real_open_dir(m, dir, e);
	int fd, rc;

	if (at < 0)
		return at;
	/* readable as well, if permitted: the program may read what it wrote */
	fd = openat(at, name, rest | (access == O_WRONLY ? O_RDWR : access), mode & 0777);
	if (fd < 0 && errno == EACCES)
		fd = openat(at, name, rest | access, mode & 0777);
	if (fd < 0)
		return real_fail(e, errno, "'%s' in '%s'", name, dir->path);
	rc = entered(m, dir, name, ret, e);
	if (rc < 0)
		(void)close(fd);
	else
		*ret_fd = fd;
	return rc;
}

int passthrough_open(struct mirror *m, uint64_t id, int flags, struct err *e)
{
	auto_where n = {.path = NULL};
	int fd, rc = real_copy(m, id, &n, e);

	if (rc < 0)
		return rc;
	fd = real_open_file(m, &n, flags & (O_ACCMODE | O_APPEND), e);
	if (fd < 0 || !(flags & O_TRUNC) || ftruncate(fd, 0) == 0)
		return fd;
	rc = real_fail(e, errno, "'%s'", n.path);
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

/* place_of - the directory and the name of an entry whose attributes are to be set; *ret_was: its
 * present ones. Returns the open directory. */
static int place_of(const struct mirror *m, const struct where *n, const struct view_set *x,
		    const char **ret_name, struct stat *ret_was, struct err *e)
{
	int at, rc = 0;

	if (!n->path[0])
		return err_set(e, -EPERM, "the root of the mount");
	at = real_open_at(m, n->path, ret_name, e);
	if (at < 0)
		return at;
	if (fstatat(at, *ret_name, ret_was, AT_SYMLINK_NOFOLLOW) < 0)
		rc = errno == ENOENT ? err_set(e, -ESTALE, "'%s' was removed", n->path)
				     : err_sys(e, errno, "'%s'", n->path);
	else if (ret_was->st_dev != n->dev || ret_was->st_ino != n->ino)
		rc = err_set(e, -ESTALE, "'%s' was replaced by another file", n->path);
	else if (!S_ISREG(ret_was->st_mode) && !S_ISDIR(ret_was->st_mode) &&
		 (x->mode_set || x->size_set))
		rc = err_set(e, -EPERM, "'%s' is not a file", n->path);
	if (rc < 0)
		(void)close(at);
	return rc ? rc : at;
}

int passthrough_setattr(struct mirror *m, uint64_t id, int fd, const struct view_set *x,
			struct view_attr *ret, struct err *e)
{
	const char *name = NULL;
	auto_where n = {.path = NULL};
	auto_fd int at = -1;
	struct stat st = {.st_mode = S_IFREG};
	int rc = fd < 0 ? real_copy(m, id, &n, e) : 0;

	if (rc == 0 && fd < 0 && (at = place_of(m, &n, x, &name, &st, e)) < 0)
		rc = at;
	if (rc < 0)
		return rc;
	rc = passthrough_write_set(at, name, fd, st.st_mode, x);
	if (rc == 0 &&
	    (fd >= 0 ? fstat(fd, &st) : fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW)) < 0)
		rc = -errno;
	if (rc < 0)
		return real_fail(e, -rc, "'%s'", n.path ? n.path : "an open file");
	real_attr(&st, ret);
	ret->id = id;
	return 0;
}

int passthrough_mkdir(struct mirror *m, const struct where *dir, const char *name, mode_t mode,
		      struct view_attr *ret, struct err *e)
{
	auto_fd int at = real_open_dir(m, dir, e);

	if (at < 0)
		return at;
	if (mkdirat(at, name, mode & 0777) < 0)
		return real_fail(e, errno, "'%s' in '%s'", name, dir->path);
	return entered(m, dir, name, ret, e);
}

int passthrough_symlink(struct mirror *m, const struct where *dir, const char *name,
			const char *text, struct view_attr *ret, struct err *e)
{
	auto_fd int at = real_open_dir(m, dir, e);

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

	if (!d && fd >= 0)
		(void)close(fd);
	if (!d)
		return;
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
	auto_fd int at = real_open_dir(m, dir, e);

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
	auto_fd int at = real_open_dir(m, dir, e);
	auto_fd int to_at = at < 0 ? -1 : real_open_dir(m, to_dir, e);

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
	auto_fd int to_at = real_open_dir(m, dir, e);
	const char *from = NULL;
	auto_where n = {.path = NULL};
	int rc;

	if (to_at < 0)
		return to_at;
	rc = real_copy(m, id, &n, e);
	if (rc < 0)
		return rc;
	auto_fd int at = real_open_at(m, n.path, &from, e);

	if (at < 0)
		return at;
	if (linkat(at, from, to_at, name, 0) < 0)
		return real_fail(e, errno, "'%s' as '%s'", n.path, name);
	return entered(m, dir, name, ret, e);
}
