/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - the stores of this module: a directory, a zip archive, memory.
 *
 * Contracts in translate/contract/store.h. */
#ifndef NCZARR_STORE_STORE_H
#define NCZARR_STORE_STORE_H

#include "translate/contract/blob.h"
#include "translate/contract/store.h"

/* store_dir_open - the tree below a directory. fd: the directory, taken on success only.
 * Links are followed as long as they stay below it. Nothing is read before the first call. */
int store_dir_open(int fd, struct store **ret, struct err *e) NZ_MUST_USE;

/* store_zip_bid - 1 when a file is a zip archive (its end says so), 0, or -errno. Reads at most
 * 64 KiB from its end. */
int store_zip_bid(struct blob *b, struct err *e);

/* store_zip_open - the entries of a zip archive: stored and deflated, zip64. fd: taken on success
 * only. The directory is read at once and checked: entries that lie about themselves, overlap,
 * or name something outside are refused, with their name. Where a name comes twice the later
 * entry holds, as everywhere. When all entries are below one folder and the root has nothing of
 * its own, that folder is the root (NCZarr writes its archives so).
 * max_meta: most bytes that the directory may take in memory.
 * Returns 0; -EBADMSG not an archive or damaged; -EOPNOTSUPP encrypted, or split; -ERANGE. */
int store_zip_open(int fd, uint64_t max_meta, struct store **ret, struct err *e) NZ_MUST_USE;
/* store_zip_open_blob - the same of what is not behind a descriptor: far. b is borrowed and
 * outlives the store. Reading an entry for the first time fetches its header with it; store_want
 * fetches entries early. */
int store_zip_open_blob(struct blob *b, uint64_t max_meta, struct store **ret,
			struct err *e) NZ_MUST_USE;

#endif
