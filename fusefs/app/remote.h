/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - sources that are addresses: fusefs opens every source, local or remote, by
 * fs_source. */
#ifndef FUSEFS_APP_REMOTE_H
#define FUSEFS_APP_REMOTE_H

#include "fusefs/app/fusefs.h"

/* fs_remote - remote access without including its modules (main.c fills the table). `remote` is
 * created from cfg at the first use in a process. */
struct fs_remote {
	int (*open)(const struct cfg *cfg, void **ret_remote, struct err *e);
	void (*stop)(void *remote);
	void (*close)(void *remote);
	int (*at)(void *remote, const char *address, struct source_at *ret, struct err *e);
	void (*release)(struct source_at *at);
	int (*store)(void *remote, const char *address, struct store **ret, struct err *e);
	uint64_t (*requests)(void *remote);
	/* blob - open the bytes that metadata at `from` (NULL: local metadata) refers to. */
	int (*blob)(void *remote, const char *from, const char *address, struct blob **ret,
		    struct err *e);
};

/* fs_source - open the source at a path or address, as source_open. */
int fs_source(const struct app *setup, const char *path, const struct source_options *opts,
	      struct source **ret, struct err *e) NZ_MUST_USE;
/* fs_store - open the Zarr store at an address for writing; store_close it. */
int fs_store(const struct app *setup, const char *address, struct store **ret,
	     struct err *e) NZ_MUST_USE;
/* fs_blob - open an object that metadata refers to: remote_opener.blob with the setup. */
int fs_blob(const struct app *setup, const char *from, const char *address, struct blob **ret,
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
