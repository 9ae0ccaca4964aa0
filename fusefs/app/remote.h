/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - sources that are addresses: fusefs opens a source by fs_source, wherever it is. */
#ifndef FUSEFS_APP_REMOTE_H
#define FUSEFS_APP_REMOTE_H

#include "fusefs/app/fusefs.h"

/* fs_remote - what the modules can do, for files that must not know them (main.c wires it).
 * `remote` is made at the first use in a process, from cfg. */
struct fs_remote {
	int (*open)(const struct cfg *cfg, void **ret_remote, struct err *e);
	void (*stop)(void *remote);
	void (*close)(void *remote);
	int (*at)(void *remote, const char *address, struct source_at *ret, struct err *e);
	void (*release)(struct source_at *at);
	int (*store)(void *remote, const char *address, struct store **ret, struct err *e);
	uint64_t (*requests)(void *remote);
	/* blob - the bytes of what a document at `from` (NULL: a local one) refers to. */
	int (*blob)(void *remote, const char *from, const char *address, struct blob **ret,
		    struct err *e);
};

/* fs_source - the source at a path or address: source_open, for both. */
int fs_source(const struct app *setup, const char *path, const struct source_options *opts,
	      struct source **ret, struct err *e) NZ_MUST_USE;
/* fs_store - the Zarr tree at an address, for writing; store_close it. */
int fs_store(const struct app *setup, const char *address, struct store **ret,
	     struct err *e) NZ_MUST_USE;
/* fs_blob - the bytes of an object that a document refers to: remote_opener.blob with the setup. */
int fs_blob(const struct app *setup, const char *from, const char *address, struct blob **ret,
	    struct err *e) NZ_MUST_USE;
/* fs_shown - a source for messages: of an address only what has no secrets. New: free it; NULL when
 * memory is short. Of cfg->source it is cfg->shown. */
char *fs_shown(const char *source);
/* fs_remote_stop - everything remote that somebody waits for is given up: the mount ends.
 * fs_remote_end - after all sources are closed. Both do nothing where nothing remote was opened. */
void fs_remote_stop(void);
/* fs_remote_requests - made by this process so far. */
uint64_t fs_remote_requests(void);
void fs_remote_end(void);

#endif
