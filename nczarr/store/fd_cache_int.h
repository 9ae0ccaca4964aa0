/* SPDX-License-Identifier: BSD-3-Clause */
/* fd_cache_int.h - descriptors of a few files that are read in pieces; private to nczarr.
 *
 * The kernel reads a large chunk in pieces of 128 KiB: opening the file for each costs a tenth of
 * the time. No locks: the file of a slot belongs to the thread that took it. */
#ifndef NCZARR_STORE_FD_CACHE_INT_H
#define NCZARR_STORE_FD_CACHE_INT_H

#include <stdatomic.h>

#include "base/core/util.h"

#define KEPT_FILES 8
#define KEPT_MS 500  /* a replaced file is read for no longer than this */

struct cached_fd;

struct fd_cache {
	_Atomic(struct cached_fd *) slots[KEPT_FILES]; /* NULL: none, or in use */
};

/* fd_cache_take - take the file of a key that was opened recently; -1: none. The caller owns the
 * descriptor, and *ret_since is the time of its open(), for fd_cache_give(). */
int fd_cache_take(struct fd_cache *k, const char *key, int64_t *ret_since);
/* fd_cache_give - store a file for the next piece; takes fd, and closes the previous file of the
 * slot. since: 0: opened now. */
void fd_cache_give(struct fd_cache *k, const char *key, int fd, int64_t since);
/* fd_cache_release - close all. No other call may be running. */
void fd_cache_release(struct fd_cache *k);

#endif
