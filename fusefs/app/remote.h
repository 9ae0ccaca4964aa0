/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - sources that are addresses: fusefs opens every source, local or remote, by
 * fs_source. */
#ifndef FUSEFS_APP_REMOTE_H
#define FUSEFS_APP_REMOTE_H

#include "fusefs/app/fusefs.h"

/* fs_remote_begin - call it before any source is opened: reference files may name objects on
 * servers. setup is borrowed as long as the program runs. */
void fs_remote_begin(struct app *setup);
/* fs_source - open the source at a path or address, as source_open. */
int fs_source(const struct app *setup, const char *path, const struct source_options *opts,
	      struct source **ret, struct err *e) NZ_MUST_USE;
/* fs_remote_folder - what is at a remote address. Returns 1: a folder of an object store with
 * something in it, and neither an object nor a Zarr store; *ret has its objects (store_close).
 * 0: an object or a Zarr store, which fs_source can open with what was fetched here. -ENOENT:
 * nothing that can be listed; or another negative errno. */
int fs_remote_folder(const struct app *setup, const char *address, struct store **ret,
		     struct err *e) NZ_MUST_USE;
/* fs_source_below - open the source with a key below such a folder. is_file: whether its name is
 * that of a file, which is only tried first. */
int fs_source_below(const struct app *setup, const char *folder, const char *key, bool is_file,
		    const struct source_options *opts, struct source **ret,
		    struct err *e) NZ_MUST_USE;
/* fs_store - open the Zarr store at an address for writing; store_close it. */
int fs_store(const struct app *setup, const char *address, struct store **ret,
	     struct err *e) NZ_MUST_USE;
/* fs_shown - a source for messages: an address without its secrets. New: free it; NULL if memory is
 * short. For cfg->source it is cfg->shown. */
char *fs_shown(const char *source);
/* fs_remote_stop - cancel all pending remote requests: the mount ends. fs_remote_end - call after
 * all sources are closed. Both do nothing if no remote source was opened. */
void fs_remote_stop(void);
/* fs_remote_requests - number of requests of this process so far. */
uint64_t fs_remote_requests(void);
void fs_remote_end(void);

#endif
