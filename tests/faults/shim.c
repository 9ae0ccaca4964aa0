/* SPDX-License-Identifier: BSD-3-Clause */
/* shim.c - LD_PRELOAD: calls that write below a directory are counted, over all processes, and one
 * of them fails, is short, or is the last thing that the processes do.
 *
 *	FAULTS_DIRS   directories, separated by ':'
 *	FAULTS_STATE  a file of sizeof(struct state), which tests/faults/harness.py reads and writes
 *
 * Meant for 64-bit Linux with glibc; a tool for tests. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIDS 256
#define CALLS 4096
#define API __attribute__((visibility("default")))

enum kind {
	COUNT,     /* nothing happens */
	FAIL,      /* the call fails */
	FULL,      /* it writes half, and from then on all fail that need room */
	SHORT,     /* it writes half and says so */
	KILL,      /* all processes end before it */
	KILL_HALF, /* after half of it */
	KILL_ONE,  /* only the process that makes the call, after half of it */
};

/* state - shared by all processes and the harness, little-endian words of 32 bits. */
struct state {
	_Atomic uint32_t armed;  /* 0: calls are not even counted */
	uint32_t kind, at, code; /* at: from 1 */
	_Atomic uint32_t count;
	_Atomic uint32_t fired;
	_Atomic uint32_t n_pids;
	_Atomic uint32_t pids[PIDS];
	char calls[CALLS]; /* one letter each, for people */
};

static struct state *state;
static char dirs[PATH_MAX];

static void enlist(void)
{
	if (state)
		state->pids[state->n_pids++ % PIDS] = (uint32_t)getpid();
}

__attribute__((constructor)) static void start(void)
{
	const char *where = getenv("FAULTS_DIRS"), *file = getenv("FAULTS_STATE");
	int fd = where && file ? open(file, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (fd < 0)
		return;
	p = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED)
		return;
	(void)snprintf(dirs, sizeof(dirs), "%s", where);
	state = p;
	enlist();
	(void)pthread_atfork(NULL, NULL, enlist);
}

static void kill_all(void)
{
	uint32_t self = (uint32_t)getpid(), n = state->n_pids;

	for (uint32_t i = 0; i < n && i < PIDS && state->kind != KILL_ONE; i++)
		if (state->pids[i] != self && state->pids[i] != 0)
			(void)kill((pid_t)state->pids[i], SIGKILL);
	(void)kill(getpid(), SIGKILL);
	for (;;)
		(void)pause();
}

static bool below(const char *path)
{
	for (const char *d = dirs; *d;) {
		const char *end = strchr(d, ':');
		size_t n = end ? (size_t)(end - d) : strlen(d);

		if (n > 0 && strncmp(path, d, n) == 0 && (path[n] == '/' || path[n] == '\0'))
			return true;
		d += n + (end != NULL);
	}
	return false;
}

static bool fd_path(int fd, char *out, size_t cap)
{
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, cap - 1);
	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

static bool ours_fd(int fd)
{
	char path[PATH_MAX];
	int keep = errno;
	bool is = state && state->armed && fd_path(fd, path, sizeof(path)) && below(path);

	errno = keep;
	return is;
}

static bool ours_at(int dir, const char *name)
{
	char path[2 * PATH_MAX];
	size_t n;

	if (!state || !state->armed)
		return false;
	if (name[0] == '/')
		return below(name);
	if (dir != AT_FDCWD)
		return ours_fd(dir);
	if (!getcwd(path, PATH_MAX))
		return false;
	n = strlen(path);
	(void)snprintf(path + n, sizeof(path) - n, "/%s", name);
	return below(path);
}

/* pass - whether the call is made. len: of a write; what is to be written of it. */
static bool pass(char what, size_t *len, bool needs_room)
{
	uint32_t n = ++state->count;
	bool here = n == state->at;

	if (n <= CALLS)
		state->calls[n - 1] = what;
	if (here && state->kind != COUNT)
		state->fired = 1;
	switch ((enum kind)state->kind) {
	case COUNT:
		return true;
	case KILL:
		if (here)
			kill_all();
		return true;
	case KILL_HALF:
	case KILL_ONE:
		if (here && !len)
			kill_all();
		if (here)
			*len /= 2;
		return true;
	case SHORT:
		if (here && len && *len > 1)
			*len /= 2;
		return true;
	case FAIL:
		if (!here)
			return true;
		break;
	case FULL:
		if (here && len && *len > 1) {
			*len /= 2;
			return true;
		}
		if (!state->fired || !needs_room)
			return true;
		break;
	}
	errno = (int)state->code;
	return false;
}

static ssize_t done(ssize_t rc, size_t len, size_t n)
{
	if ((state->kind == KILL_HALF || state->kind == KILL_ONE) && state->fired && len < n)
		kill_all();
	return rc;
}

/* ---- writes ---- */

API ssize_t write(int fd, const void *p, size_t n)
{
	size_t len = n;

	if (!ours_fd(fd))
		return syscall(SYS_write, fd, p, n);
	return pass('w', &len, true) ? done(syscall(SYS_write, fd, p, len), len, n) : -1;
}

API ssize_t pwrite64(int fd, const void *p, size_t n, off64_t off)
{
	size_t len = n;

	if (!ours_fd(fd))
		return syscall(SYS_pwrite64, fd, p, n, off);
	return pass('w', &len, true) ? done(syscall(SYS_pwrite64, fd, p, len, off), len, n)
				     : -1;
}

API ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	return pwrite64(fd, p, n, off);
}

/* Vectors: the first `len` bytes of them. */
static ssize_t some(int fd, const struct iovec *v, int n, size_t len, off64_t off, bool at)
{
	ssize_t sum = 0;

	for (int i = 0; i < n && len > 0; i++) {
		size_t k = v[i].iov_len < len ? v[i].iov_len : len;
		ssize_t rc = at ? syscall(SYS_pwrite64, fd, v[i].iov_base, k, off + sum)
				: syscall(SYS_write, fd, v[i].iov_base, k);

		if (rc < 0)
			return sum ? sum : -1;
		sum += rc;
		len -= k;
		if ((size_t)rc < k)
			break;
	}
	return sum;
}

static ssize_t vector(int fd, const struct iovec *v, int n, off64_t off, bool at)
{
	size_t all = 0, len;

	for (int i = 0; i < n; i++)
		all += v[i].iov_len;
	len = all;
	return pass('v', &len, true) ? done(some(fd, v, n, len, off, at), len, all) : -1;
}

API ssize_t writev(int fd, const struct iovec *v, int n)
{
	return ours_fd(fd) ? vector(fd, v, n, 0, false) : syscall(SYS_writev, fd, v, n);
}

API ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t off)
{
	return ours_fd(fd) ? vector(fd, v, n, off, true)
			   : syscall(SYS_pwritev, fd, v, n, off, 0);
}

API ssize_t pwritev(int fd, const struct iovec *v, int n, off_t off)
{
	return pwritev64(fd, v, n, off);
}

API ssize_t copy_file_range(int in, off64_t *at, int out, off64_t *to, size_t n, unsigned flags)
{
	size_t len = n;

	if (!ours_fd(out))
		return syscall(SYS_copy_file_range, in, at, out, to, n, flags);
	return pass('y', &len, true)
		       ? done(syscall(SYS_copy_file_range, in, at, out, to, len, flags), len, n)
		       : -1;
}

/* ---- sizes, the disk ---- */

#define CALL(ours, letter, room, call)                                                         \
	do {                                                                                   \
		if ((ours) && !pass(letter, NULL, room))                                       \
			return -1;                                                             \
		return (int)(call);                                                            \
	} while (0)

API int ftruncate64(int fd, off64_t n)
{
	CALL(ours_fd(fd), 't', false, syscall(SYS_ftruncate, fd, n));
}

API int ftruncate(int fd, off_t n)
{
	return ftruncate64(fd, n);
}

API int fallocate64(int fd, int mode, off64_t at, off64_t n)
{
	CALL(ours_fd(fd), 'a', true, syscall(SYS_fallocate, fd, mode, at, n));
}

API int fallocate(int fd, int mode, off_t at, off_t n)
{
	return fallocate64(fd, mode, at, n);
}

API int fsync(int fd)
{
	CALL(ours_fd(fd), 's', false, syscall(SYS_fsync, fd));
}

API int fdatasync(int fd)
{
	CALL(ours_fd(fd), 's', false, syscall(SYS_fdatasync, fd));
}

/* ---- names ---- */

API int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	CALL(ours_at(b, to), 'r', true, syscall(SYS_renameat2, a, from, b, to, flags));
}

API int renameat(int a, const char *from, int b, const char *to)
{
	return renameat2(a, from, b, to, 0);
}

API int rename(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

API int unlinkat(int dir, const char *name, int flags)
{
	CALL(ours_at(dir, name), 'u', false, syscall(SYS_unlinkat, dir, name, flags));
}

API int unlink(const char *name)
{
	return unlinkat(AT_FDCWD, name, 0);
}

API int rmdir(const char *name)
{
	return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

API int mkdirat(int dir, const char *name, mode_t mode)
{
	CALL(ours_at(dir, name), 'm', true, syscall(SYS_mkdirat, dir, name, mode));
}

API int mkdir(const char *name, mode_t mode)
{
	return mkdirat(AT_FDCWD, name, mode);
}

API int linkat(int a, const char *from, int b, const char *to, int flags)
{
	CALL(ours_at(b, to), 'l', true, syscall(SYS_linkat, a, from, b, to, flags));
}

API int openat64(int dir, const char *name, int flags, ...)
{
	bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	unsigned mode = 0;

	if (makes) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, unsigned);
		va_end(ap);
	}
	CALL((makes || (flags & O_TRUNC)) && ours_at(dir, name), 'o', makes,
	     syscall(SYS_openat, dir, name, flags, mode));
}

#define OPEN_MODE(flags)                                                                       \
	__extension__({                                                                        \
		unsigned mode_ = 0;                                                            \
		if ((flags) & (O_CREAT | O_TMPFILE)) {                                         \
			va_list ap_;                                                           \
			va_start(ap_, flags);                                                  \
			mode_ = va_arg(ap_, unsigned);                                         \
			va_end(ap_);                                                           \
		}                                                                              \
		mode_;                                                                         \
	})

API int openat(int dir, const char *name, int flags, ...)
{
	return openat64(dir, name, flags, OPEN_MODE(flags));
}

API int open64(const char *name, int flags, ...)
{
	return openat64(AT_FDCWD, name, flags, OPEN_MODE(flags));
}

API int open(const char *name, int flags, ...)
{
	return openat64(AT_FDCWD, name, flags, OPEN_MODE(flags));
}
