/* SPDX-License-Identifier: BSD-3-Clause */
/* inject_calls.c - calls of libc and libcurl, each of which counts, fails, or is short. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/inject.h"

#include "tests/faults/inject_int.h"

/* ---- opening ---- */

#define MODE_OF(flags)                                                                         \
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

static int open_it(int dir, const char *name, int flags, unsigned mode)
{
	FAIL(flags & (O_CREAT | O_TRUNC) ? (ON_OPEN | ON_WRITE) : ON_OPEN, -1);
	return (int)syscall(SYS_openat, dir, name, flags, mode);
}

API int open(const char *name, int flags, ...)
{
	return open_it(AT_FDCWD, name, flags, MODE_OF(flags));
}

API int open64(const char *name, int flags, ...)
{
	return open_it(AT_FDCWD, name, flags, MODE_OF(flags));
}

API int openat(int dir, const char *name, int flags, ...)
{
	return open_it(dir, name, flags, MODE_OF(flags));
}

API int openat64(int dir, const char *name, int flags, ...)
{
	return open_it(dir, name, flags, MODE_OF(flags));
}

API long syscall(long number, ...)
{
	long a[6];
	va_list ap;

	NEXT(long, syscall, long, ...)
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_openat2)
		FAIL(ON_OPEN, -1);
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

API FILE *fopen(const char *name, const char *mode)
{
	NEXT(FILE *, fopen, const char *, const char *)
	FAIL(ON_OPEN, NULL);
	return next(name, mode);
}

API FILE *fopen64(const char *name, const char *mode)
{
	return fopen(name, mode);
}

API DIR *opendir(const char *name)
{
	NEXT(DIR *, opendir, const char *)
	FAIL(ON_OPEN, NULL);
	return next(name);
}

API DIR *fdopendir(int fd)
{
	NEXT(DIR *, fdopendir, int)
	FAIL(ON_OPEN, NULL);
	return next(fd);
}

API int dup(int fd)
{
	NEXT(int, dup, int)
	FAIL(ON_OPEN, -1);
	return next(fd);
}

static int fcntl_it(int fd, int what, long arg)
{
	if (what == F_DUPFD || what == F_DUPFD_CLOEXEC)
		FAIL(ON_OPEN, -1);
	return (int)syscall(SYS_fcntl, fd, what, arg);
}

#define ARG_OF(last)                                                                           \
	__extension__({                                                                        \
		va_list ap_;                                                                   \
		long arg_;                                                                     \
		va_start(ap_, last);                                                           \
		arg_ = va_arg(ap_, long);                                                      \
		va_end(ap_);                                                                   \
		arg_;                                                                          \
	})

API int fcntl(int fd, int what, ...)
{
	return fcntl_it(fd, what, ARG_OF(what));
}

API int fcntl64(int fd, int what, ...)
{
	return fcntl_it(fd, what, ARG_OF(what));
}

/* ---- reading ---- */

API ssize_t read(int fd, void *p, size_t n)
{
	PIECE(ON_READ, n);
	return syscall(SYS_read, fd, p, n);
}

API ssize_t pread64(int fd, void *p, size_t n, off64_t off)
{
	PIECE(ON_READ, n);
	return syscall(SYS_pread64, fd, p, n, off);
}

API ssize_t pread(int fd, void *p, size_t n, off_t off)
{
	return pread64(fd, p, n, off);
}

API ssize_t preadv64(int fd, const struct iovec *v, int n, off64_t off)
{
	if (hit(ON_READ)) {
		if (inject->how != BY_HALF)
			return -1;
		return syscall(SYS_pread64, fd, v[0].iov_base, short_of(v[0].iov_len), off);
	}
	return syscall(SYS_preadv, fd, v, n, off, 0);
}

API ssize_t preadv(int fd, const struct iovec *v, int n, off_t off)
{
	return preadv64(fd, v, n, off);
}

API ssize_t readv(int fd, const struct iovec *v, int n)
{
	if (hit(ON_READ)) {
		if (inject->how != BY_HALF)
			return -1;
		return syscall(SYS_read, fd, v[0].iov_base, short_of(v[0].iov_len));
	}
	return syscall(SYS_readv, fd, v, n);
}

API ssize_t __getdelim(char **line, size_t *n, int delim, FILE *f);
API ssize_t __getdelim(char **line, size_t *n, int delim, FILE *f)
{
	NEXT(ssize_t, getdelim, char **, size_t *, int, FILE *)
	FAIL(ON_READ, -1);
	return next(line, n, delim, f);
}

API struct dirent *readdir(DIR *d)
{
	NEXT(struct dirent *, readdir, DIR *)
	FAIL(ON_DIR, NULL);
	return next(d);
}

API struct dirent64 *readdir64(DIR *d)
{
	NEXT(struct dirent64 *, readdir64, DIR *)
	FAIL(ON_DIR, NULL);
	return next(d);
}

/* ---- looking ---- */

#define STAT2(name, st)                                                                        \
	API int name(const char *path, struct st *ret)                                         \
	{                                                                                      \
		NEXT(int, name, const char *, struct st *)                                     \
		FAIL(ON_STAT, -1);                                                             \
		return next(path, ret);                                                        \
	}
STAT2(stat, stat)
STAT2(stat64, stat64)
STAT2(lstat, stat)
STAT2(lstat64, stat64)

API int fstat(int fd, struct stat *ret)
{
	NEXT(int, fstat, int, struct stat *)
	FAIL(ON_STAT, -1);
	return next(fd, ret);
}

API int fstat64(int fd, struct stat64 *ret)
{
	NEXT(int, fstat64, int, struct stat64 *)
	FAIL(ON_STAT, -1);
	return next(fd, ret);
}

API int fstatat(int fd, const char *path, struct stat *ret, int flags)
{
	NEXT(int, fstatat, int, const char *, struct stat *, int)
	FAIL(ON_STAT, -1);
	return next(fd, path, ret, flags);
}

API int fstatat64(int fd, const char *path, struct stat64 *ret, int flags)
{
	NEXT(int, fstatat64, int, const char *, struct stat64 *, int)
	FAIL(ON_STAT, -1);
	return next(fd, path, ret, flags);
}

API int statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
	FAIL(ON_STAT, -1);
	return (int)syscall(SYS_statx, fd, path, flags, mask, ret);
}

API int faccessat(int fd, const char *path, int mode, int flags)
{
	NEXT(int, faccessat, int, const char *, int, int)
	FAIL(ON_STAT, -1);
	return next(fd, path, mode, flags);
}

API ssize_t readlinkat(int fd, const char *path, char *out, size_t n)
{
	FAIL(ON_STAT, -1);
	return syscall(SYS_readlinkat, fd, path, out, n);
}

API char *realpath(const char *path, char *out)
{
	NEXT(char *, realpath, const char *, char *)
	FAIL(ON_STAT, NULL);
	return next(path, out);
}

/* ---- maps ---- */

API void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t off)
{
	FAIL(ON_MAP, MAP_FAILED);
	return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, off);
}

API void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	return mmap64(at, n, prot, flags, fd, off);
}

API int mprotect(void *p, size_t n, int prot)
{
	FAIL(ON_MAP, -1);
	return (int)syscall(SYS_mprotect, p, n, prot);
}

API int memfd_create(const char *name, unsigned flags)
{
	FAIL(ON_MAP, -1);
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* ---- what makes descriptors ---- */

API int pipe2(int fd[2], int flags)
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_pipe2, fd, flags);
}

API int pipe(int fd[2])
{
	return pipe2(fd, 0);
}

API int socketpair(int domain, int type, int protocol, int fd[2])
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_socketpair, domain, type, protocol, fd);
}

API int socket(int domain, int type, int protocol)
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_socket, domain, type, protocol);
}

API int connect(int fd, __CONST_SOCKADDR_ARG a, socklen_t n)
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_connect, fd, a.__sockaddr__, n);
}

API int eventfd(unsigned n, int flags)
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_eventfd2, n, flags);
}

API int inotify_init1(int flags)
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_inotify_init1, flags);
}

API int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	FAIL(ON_MAKE, -1);
	return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

API int signalfd(int fd, const sigset_t *set, int flags)
{
	NEXT(int, signalfd, int, const sigset_t *, int)
	FAIL(ON_MAKE, -1);
	return next(fd, set, flags);
}

/* ---- processes and threads ---- */

API pid_t fork(void)
{
	NEXT(pid_t, fork, void)
	FAIL(ON_FORK, -1);
	return next();
}

API int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
		       void *arg)
{
	typedef void *start_fn(void *);
	int keep = errno;

	NEXT(int, pthread_create, pthread_t *, const pthread_attr_t *, start_fn *, void *)
	if (hit(ON_FORK)) {
		errno = keep;
		return (int)inject->code;
	}
	return next(ret, attr, fn, arg);
}

/* ---- waiting, talking ---- */

API int poll(struct pollfd *p, nfds_t n, int ms)
{
	NEXT(int, poll, struct pollfd *, nfds_t, int)
	FAIL(ON_WAIT, -1);
	return next(p, n, ms);
}

API ssize_t send(int fd, const void *p, size_t n, int flags)
{
	PIECE(ON_WIRE, n);
	return syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

API ssize_t recv(int fd, void *p, size_t n, int flags)
{
	PIECE(ON_WIRE, n);
	return syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
}

API ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (hit(ON_WIRE) && inject->how != BY_HALF)
		return -1;
	return syscall(SYS_sendmsg, fd, m, flags);
}

API ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	if (hit(ON_WIRE) && inject->how != BY_HALF)
		return -1;
	return syscall(SYS_recvmsg, fd, m, flags);
}

/* ---- writing ---- */

API ssize_t write(int fd, const void *p, size_t n)
{
	PIECE(ON_WRITE, n);
	return syscall(SYS_write, fd, p, n);
}

API ssize_t pwrite64(int fd, const void *p, size_t n, off64_t off)
{
	PIECE(ON_WRITE, n);
	return syscall(SYS_pwrite64, fd, p, n, off);
}

API ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	return pwrite64(fd, p, n, off);
}

API ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t off)
{
	if (hit(ON_WRITE)) {
		if (inject->how != BY_HALF)
			return -1;
		return syscall(SYS_pwrite64, fd, v[0].iov_base, short_of(v[0].iov_len), off);
	}
	return syscall(SYS_pwritev, fd, v, n, off, 0);
}

API ssize_t pwritev(int fd, const struct iovec *v, int n, off_t off)
{
	return pwritev64(fd, v, n, off);
}

API ssize_t copy_file_range(int in, off64_t *at, int out, off64_t *to, size_t n, unsigned flags)
{
	PIECE(ON_WRITE, n);
	return syscall(SYS_copy_file_range, in, at, out, to, n, flags);
}

#define CALL(class, name, call, ...)                                                           \
	API int name(__VA_ARGS__);                                                             \
	API int name(__VA_ARGS__)                                                              \
	{                                                                                      \
		FAIL(class, -1);                                                               \
		return (int)(call);                                                            \
	}

CALL(ON_WRITE, ftruncate64, syscall(SYS_ftruncate, fd, n), int fd, off64_t n)
CALL(ON_WRITE, ftruncate, syscall(SYS_ftruncate, fd, n), int fd, off_t n)
CALL(ON_SYNC, fsync, syscall(SYS_fsync, fd), int fd)
CALL(ON_SYNC, fdatasync, syscall(SYS_fdatasync, fd), int fd)
CALL(ON_SYNC, syncfs, syscall(SYS_syncfs, fd), int fd)
CALL(ON_NAMES, renameat2, syscall(SYS_renameat2, a, from, b, to, flags), int a,
     const char *from, int b, const char *to, unsigned flags)
CALL(ON_NAMES, renameat, syscall(SYS_renameat2, a, from, b, to, 0), int a, const char *from,
     int b, const char *to)
CALL(ON_NAMES, rename, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0),
     const char *from, const char *to)
CALL(ON_NAMES, unlinkat, syscall(SYS_unlinkat, dir, name, flags), int dir, const char *name,
     int flags)
CALL(ON_NAMES, unlink, syscall(SYS_unlinkat, AT_FDCWD, name, 0), const char *name)
CALL(ON_NAMES, rmdir, syscall(SYS_unlinkat, AT_FDCWD, name, AT_REMOVEDIR), const char *name)
CALL(ON_NAMES, mkdirat, syscall(SYS_mkdirat, dir, name, mode), int dir, const char *name,
     mode_t mode)
CALL(ON_NAMES, mkdir, syscall(SYS_mkdirat, AT_FDCWD, name, mode), const char *name, mode_t mode)
CALL(ON_NAMES, linkat, syscall(SYS_linkat, a, from, b, to, flags), int a, const char *from,
     int b, const char *to, int flags)
CALL(ON_NAMES, fchmod, syscall(SYS_fchmod, fd, mode), int fd, mode_t mode)

/* ---- libcurl, where it is in the program: results are its own error numbers. What it calls of
 * itself cannot fail but for want of memory, and allocations have a way of their own ---- */

#define FAIL_CURL(value)                                                                       \
	do {                                                                                   \
		if (!from_curl(__builtin_return_address(0)))                                   \
			FAIL(ON_CURL, value);                                                  \
	} while (0)

#define CURL(ret, name, failed, params, types, args)                                           \
	API ret name params;                                                                   \
	API ret name params                                                                    \
	{                                                                                      \
		NEXT(ret, name, types)                                                         \
		FAIL_CURL(failed);                                                             \
		return next args;                                                              \
	}
#define TYPES(...) __VA_ARGS__

enum { EASY_NOMEM = 27, MULTI_NOMEM = 3, URL_NOMEM = 7 };

CURL(void *, curl_easy_init, NULL, (void), TYPES(void), ())
CURL(void *, curl_multi_init, NULL, (void), TYPES(void), ())
CURL(void *, curl_url, NULL, (void), TYPES(void), ())
CURL(int, curl_multi_add_handle, MULTI_NOMEM, (void *m, void *h), TYPES(void *, void *), (m, h))
CURL(int, curl_multi_perform, MULTI_NOMEM, (void *m, int *n), TYPES(void *, int *), (m, n))
CURL(int, curl_multi_wakeup, MULTI_NOMEM, (void *m), TYPES(void *), (m))
CURL(int, curl_multi_poll, MULTI_NOMEM, (void *m, void *f, unsigned n, int ms, int *ret),
     TYPES(void *, void *, unsigned, int, int *), (m, f, n, ms, ret))
CURL(void *, curl_slist_append, NULL, (void *l, const char *s), TYPES(void *, const char *),
     (l, s))
CURL(int, curl_url_set, URL_NOMEM, (void *u, int what, const char *s, unsigned flags),
     TYPES(void *, int, const char *, unsigned), (u, what, s, flags))
CURL(int, curl_url_get, URL_NOMEM, (void *u, int what, char **ret, unsigned flags),
     TYPES(void *, int, char **, unsigned), (u, what, ret, flags))

API int curl_easy_setopt(void *h, int what, ...);
API int curl_easy_setopt(void *h, int what, ...)
{
	long arg = ARG_OF(what);

	NEXT(int, curl_easy_setopt, void *, int, ...)
	FAIL_CURL(EASY_NOMEM);
	return next(h, what, arg);
}

API int curl_easy_getinfo(void *h, int what, ...);
API int curl_easy_getinfo(void *h, int what, ...)
{
	long arg = ARG_OF(what);

	NEXT(int, curl_easy_getinfo, void *, int, ...)
	FAIL_CURL(EASY_NOMEM);
	return next(h, what, arg);
}
