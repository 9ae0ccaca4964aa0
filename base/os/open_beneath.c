/* SPDX-License-Identifier: BSD-3-Clause */
/* open_beneath.c - openat2 where the kernel has it, else one component at a time.
 *
 * Support for openat2 is detected once. ENOSYS is clear; EPERM, which old sandboxes return for
 * calls that they do not know, may also concern the path, so that dirfd itself is then opened as a
 * test. */
#include "base/os/open_beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DEPTH_MAX 256 /* depth of removal */
#define LONG 200      /* bytes of a name in a message */
#define TRIES 32      /* the kernel returns EAGAIN when a rename raced with ".." */

static atomic_bool g_lacks; /* openat2 is not available */

static int with_openat2(int dirfd, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(unsigned int)flags,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

	for (int i = 0; i < TRIES; i++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

/* is_link - tests a name, or with "" the descriptor itself. */
static bool is_link(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH)) == 0 &&
	       S_ISLNK(st.st_mode);
}

/* open_beneath_open_one - open a single component; a link is -ELOOP. */
static int open_beneath_open_one(int at, const char *name, int flags)
{
	int fd = openat(at, name, flags | O_NOFOLLOW), code;

	if (fd < 0) {
		code = errno;
		/* with O_DIRECTORY the kernel reports a link as ENOTDIR */
		return code == ENOTDIR && is_link(at, name) ? -ELOOP : -code;
	}
	if ((flags & O_PATH) && !(flags & O_NOFOLLOW) && is_link(fd, "")) {
		(void)close(fd);
		return -ELOOP;
	}
	return fd;
}

static int component_by_component(int dirfd, const char *path, int flags)
{
	auto_fd int held = -1;
	int at = dirfd;

	if (*path == '/')
		return -EXDEV;
	for (;;) {
		size_t n = strcspn(path, "/");
		char name[NAME_MAX + 1];
		const char *rest = path + n + strspn(path + n, "/");
		int fd;

		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		if (strcmp(name, "..") == 0)
			return -EXDEV;
		if (*rest == '\0')
			return open_beneath_open_one(at, name, flags);
		fd = open_beneath_open_one(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return fd;
		close_fd(&held);
		held = at = fd;
		path = rest;
	}
}

int open_beneath(int dirfd, const char *path, int flags)
{
	int fd;

	if (*path == '\0')
		path = ".";
	/* openat2 rejects flags that have no meaning with O_PATH */
	flags |= flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (!atomic_load_explicit(&g_lacks, memory_order_relaxed)) {
		fd = with_openat2(dirfd, path, flags);
		if (fd >= 0 || (fd != -ENOSYS && fd != -EPERM))
			return fd;
		if (fd == -EPERM) {
			int self = with_openat2(dirfd, ".", O_PATH | O_CLOEXEC);

			if (self >= 0)
				(void)close(self);
			if (self != -EPERM)
				return fd;
		}
		atomic_store_explicit(&g_lacks, true, memory_order_relaxed);
	}
	return component_by_component(dirfd, path, flags);
}

static int remove_failed(const char *name, struct err *e)
{
	return err_sys(e, errno, "cannot remove '%.*s'", LONG, name);
}

static int remove_below(int at, const char *name, int depth, struct err *e)
{
	int fd, rc = 0;
	DIR *d;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return remove_failed(name, e);
	if (depth == DEPTH_MAX)
		return err_set(e, -ELOOP, "cannot remove '%.*s': nested too deeply", LONG,
			       name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		rc = remove_failed(name, e);
		close_fd(&fd); /* opened read-only: no error to report */
		return rc;
	}
	for (struct dirent *x; errno = 0, (x = readdir(d)) != NULL;)
		if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0) {
			int one = remove_below(fd, x->d_name, depth + 1, rc ? NULL : e);

			rc = rc ? rc : one;
		}
	if (rc == 0 && errno)
		rc = err_sys(e, errno, "cannot list '%.*s'", LONG, name);
	(void)closedir(d);
	if (unlinkat(at, name, AT_REMOVEDIR) < 0 && rc == 0)
		rc = remove_failed(name, e);
	return rc;
}

int remove_beneath_err(int at, const char *name, struct err *e)
{
	return remove_below(at, name, 0, e);
}

void remove_beneath(int at, const char *name)
{
	(void)remove_below(at, name, 0, NULL);
}
