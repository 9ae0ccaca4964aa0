/* SPDX-License-Identifier: BSD-3-Clause */
/* store.h - the stores of this module: a directory, a zip archive, memory.
 *
 * Contracts in translate/contract/store.h. */
#ifndef NCZARR_STORE_STORE_H
#define NCZARR_STORE_STORE_H

#include "translate/contract/blob.h"
#include "translate/contract/store.h"

/* store_dir_open - open the store below a directory. fd: the directory, taken on success only.
 * Links are followed as long as they stay below it. No access before the first call. */
int store_dir_open(int fd, struct store **ret, struct err *e) NZ_MUST_USE;

/* store_zip_bid - 1 if a file is a zip archive (by its end), 0, or -errno. Reads at most 64 KiB
 * from its end. */
int store_zip_bid(struct blob *b, struct err *e);

/* store_zip_open - open a zip archive: stored and deflated entries, zip64. fd: taken on success
 * only. The directory is read and checked at once: entries with wrong sizes, that overlap, or with
 * names outside the archive are errors that name them. Of entries with the same name the last one
 * is used, as in other tools. If all entries are below one folder, that folder is the root (NCZarr
 * writes such archives). max_meta: limit of the directory in memory, in bytes. Returns 0; -EBADMSG
 * not an archive or damaged; -EOPNOTSUPP encrypted, or split; -ERANGE. */
int store_zip_open(int fd, uint64_t max_meta, struct store **ret, struct err *e) NZ_MUST_USE;
/* store_zip_open_blob - the same for a remote archive. b is borrowed and outlives the store. The
 * first read of an entry also fetches its header; store_want() prefetches entries. */
int store_zip_open_blob(struct blob *b, uint64_t max_meta, struct store **ret,
			struct err *e) NZ_MUST_USE;

#endif
