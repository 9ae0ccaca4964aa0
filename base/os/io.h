/* SPDX-License-Identifier: BSD-3-Clause */
/* io.h - reads from files that may change meanwhile, and complete writes. */
#ifndef BASE_OS_IO_H
#define BASE_OS_IO_H

#include "base/core/err.h"

/* io_pread - read exactly n bytes at off into out. A short file is an error, never a short read.
 * Returns 0; -EIO when the file ends before off + n; else the negative errno of pread. */
int io_pread(int fd, void *out, size_t n, uint64_t off, struct err *e) NZ_MUST_USE;

/* io_pwrite - write exactly n bytes at off. Returns 0; -ENOSPC, -EDQUOT, -EIO ...: then some of
 * them may have been written. */
int io_pwrite(int fd, const void *p, size_t n, uint64_t off, struct err *e) NZ_MUST_USE;

/* io_sync - flush written data to the disk; all: the file's size and times too, and the entries of
 * a directory. */
int io_sync(int fd, bool all, struct err *e) NZ_MUST_USE;

/* io_start_sync - let the disk begin to write these bytes of a file, which io_sync will sync later
 * through the same descriptor: another one may miss an error. n = 0: up to the end. Returns 0, also
 * if the file system cannot do it; -EIO, -ENOSPC ... */
int io_start_sync(int fd, uint64_t off, uint64_t n, struct err *e) NZ_MUST_USE;

/* io_racy_ns - for how many ns a later change may leave a file's times unchanged: file systems take
 * them from a clock that ticks every few milliseconds, and some store whole or even seconds only.
 * changed: the file's time, ns since 1970. Returns 0 if a change from now on gets another time. */
int64_t io_racy_ns(int64_t changed);

/* io_read_file - read a regular file of at most max bytes, and a NUL after them. The caller frees
 * *ret, also after an error. Returns 0; -EINVAL another kind of file, or a larger one; -errno. */
int io_read_file(const char *path, size_t max, char **ret, size_t *ret_n,
		 struct err *e) NZ_MUST_USE;

#endif
