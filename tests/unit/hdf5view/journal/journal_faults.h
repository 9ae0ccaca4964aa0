/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_faults.h - system calls that fail, or end the process, at a chosen one of them: the
 * program's own pwrite, ftruncate ... replace the C library's, for the program's objects and for
 * libhdf5. Nothing is synced: the tests cover the death of a process. */
#ifndef TESTS_UNIT_HDF5VIEW_JOURNAL_JOURNAL_FAULTS_H
#define TESTS_UNIT_HDF5VIEW_JOURNAL_JOURNAL_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DIED 99 /* exit status of a process that was ended here */

enum fault_kind {
	FAULT_NONE,
	FAULT_DIE,   /* before the call */
	FAULT_HALF,  /* half of a write, then the end */
	FAULT_FAIL,  /* this call fails */
	FAULT_FULL,  /* half of a write, and from then on all calls that write fail */
	FAULT_SHORT, /* a write writes half and says so */
};

struct fault {
	bool on; /* counting */
	enum fault_kind kind;
	unsigned at;                /* which call, from 1 */
	int code;                   /* errno */
	unsigned n;                 /* calls so far */
	unsigned stats_from, stats; /* fstat fails from this one on; 0: none; so many so far */
	unsigned read_at, reads;    /* this read fails; 0: none; so many so far */
	/* seen - called after every call that did something; may be NULL */
	void (*seen)(char what, int fd, const void *data, size_t n, uint64_t off);
};

static struct fault fault;

/* Whether the call is to be made; for writes *n bytes of it. */
static inline bool fault_pass(size_t *n)
{
	bool here;

	if (!fault.on)
		return true;
	here = ++fault.n == fault.at;
	switch (fault.kind) {
	case FAULT_DIE:
		if (here)
			_exit(DIED);
		break;
	case FAULT_HALF:
		if (here && !n)
			_exit(DIED);
		if (here)
			*n /= 2;
		break;
	case FAULT_FAIL:
		if (here) {
			errno = fault.code;
			return false;
		}
		break;
	case FAULT_FULL:
		if (here && n && *n > 1) {
			*n /= 2;
		} else if (fault.n >= fault.at) {
			errno = fault.code;
			return false;
		}
		break;
	case FAULT_SHORT:
		if (here && n && *n > 1)
			*n /= 2;
		break;
	case FAULT_NONE:
		break;
	}
	return true;
}

static inline void fault_seen(char what, int fd, const void *data, size_t n, uint64_t off)
{
	if (fault.on && fault.seen)
		fault.seen(what, fd, data, n, off);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *p, size_t n,
						      off_t off)
{
	size_t len = n;
	ssize_t rc;

	if (!fault_pass(&len))
		return -1;
	rc = syscall(SYS_pwrite64, fd, p, len, off);
	if (fault.on && fault.kind == FAULT_HALF && fault.n == fault.at)
		_exit(DIED);
	if (rc > 0)
		fault_seen('w', fd, p, (size_t)rc, (uint64_t)off);
	return rc;
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *p, size_t n,
							off64_t off);
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t off)
{
	return pwrite(fd, p, n, off);
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void *p, size_t n, off_t off)
{
	if (fault.on && fault.read_at && ++fault.reads == fault.read_at) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, p, n, off);
}

__attribute__((visibility("default"))) int fstat(int fd, struct stat *ret)
{
	if (fault.on && fault.stats_from && ++fault.stats >= fault.stats_from) {
		errno = ENOMEM;
		return -1;
	}
	return fstatat(fd, "", ret, AT_EMPTY_PATH);
}

__attribute__((visibility("default"))) int ftruncate(int fd, off_t len)
{
	if (!fault_pass(NULL))
		return -1;
	fault_seen('t', fd, NULL, 0, (uint64_t)len);
	return (int)syscall(SYS_ftruncate, fd, len);
}

__attribute__((visibility("default"))) int ftruncate64(int fd, off64_t len);
int ftruncate64(int fd, off64_t len)
{
	return ftruncate(fd, len);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	if (!fault_pass(NULL))
		return -1;
	fault_seen('s', fd, NULL, 0, 0);
	return 0;
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return fsync(fd);
}

__attribute__((visibility("default"))) int unlinkat(int dir, const char *name, int flags)
{
	if (!fault_pass(NULL))
		return -1;
	fault_seen('u', dir, NULL, 0, 0);
	return (int)syscall(SYS_unlinkat, dir, name, flags);
}

__attribute__((visibility("default"))) int openat(int dir, const char *name, int flags, ...)
{
	unsigned mode = 0;
	int fd;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_list ap;

		va_start(ap, flags);
		mode = va_arg(ap, unsigned);
		va_end(ap);
	}
	if ((flags & O_CREAT) && !fault_pass(NULL))
		return -1;
	fd = (int)syscall(SYS_openat, dir, name, flags, mode);
	if ((flags & O_CREAT) && fd >= 0)
		fault_seen('c', fd, NULL, 0, 0);
	return fd;
}

#endif
