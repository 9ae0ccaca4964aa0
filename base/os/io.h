/* SPDX-License-Identifier: BSD-3-Clause */
/* io.h - reads from files that can change under us, and writes that are whole. */
#ifndef BASE_OS_IO_H
#define BASE_OS_IO_H

#include "base/core/err.h"

/* io_pread - read exactly n bytes at off into out. A short file is an error, never a short read.
 * Returns 0; -EIO when the file ends before off + n; else the negative errno of pread. */
int io_pread(int fd, void *out, size_t n, uint64_t off, struct err *e) NZ_MUST_USE;

/* io_pwrite - write exactly n bytes at off. Returns 0; -ENOSPC, -EDQUOT, -EIO ...: some of them may
 * have been written. */
int io_pwrite(int fd, const void *p, size_t n, uint64_t off, struct err *e) NZ_MUST_USE;

/* io_sync - what was written to a file is on the disk; all: its size and times as well, and of a
 * directory its entries. */
int io_sync(int fd, bool all, struct err *e) NZ_MUST_USE;

/* io_racy_ns - how long, in ns, a change may still leave a file's times as they are: file systems
 * take them from a clock that ticks every few milliseconds, and some keep whole or even seconds.
 * changed: ns since 1970. 0: a change that comes now has another time. */
int64_t io_racy_ns(int64_t changed);

#endif
