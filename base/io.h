/* io.h - reads from files that can change under us. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include "base/err.h"

/* io_pread - read exactly n bytes at off into out. A short file is an error, never a short read.
 * Returns 0; -EIO when the file ends before off + n; else the negative errno of pread. */
int io_pread(int fd, void *out, size_t n, uint64_t off, struct err *e) NZ_MUST_USE;

#endif
