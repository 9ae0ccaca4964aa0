/* SPDX-License-Identifier: BSD-3-Clause */
/* fd_cache_int.h - descriptors of the few files that are being read in pieces; private to nczarr.
 *
 * The kernel asks for a large chunk in pieces of 128 KiB: to open the file once for each costs a
 * tenth of the reading. No locks: a slot's file belongs to the thread that took it out. */
#ifndef NCZARR_STORE_FD_CACHE_INT_H
#define NCZARR_STORE_FD_CACHE_INT_H

#include <stdatomic.h>

#include "base/core/util.h"

#define KEPT_FILES 8
#define KEPT_MS 500  /* a file that was replaced is read for no longer than that */

struct kept;

struct fd_cache {
	_Atomic(struct kept *) slots[KEPT_FILES];  /* NULL: none, or in use */
};

/* fd_cache_take - the file of a key, opened a moment ago; -1: there is none. The descriptor is new
 * to the caller, and *ret_since says when it was opened, for fd_cache_give. */
int fd_cache_take(struct fd_cache *k, const char *key, int64_t *ret_since);
/* fd_cache_give - keep a file for the next piece; takes fd, and closes what was in its place.
 * since: 0, it was opened now. */
void fd_cache_give(struct fd_cache *k, const char *key, int fd, int64_t since);
/* fd_cache_release - close all. No other call may be running. */
void fd_cache_release(struct fd_cache *k);

#endif
