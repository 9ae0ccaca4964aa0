/* SPDX-License-Identifier: BSD-3-Clause */
/* refs.h - `nczarrfs refs`: references to the chunks of a source, for readers without a mount.
 * docs/dev/commands.md. */
#ifndef FUSEFS_CMD_REFS_H
#define FUSEFS_CMD_REFS_H

#include "fusefs/app/fusefs.h"

/* fs_refs_table - functions that write references (main.c fills it). address: of the source, as
 * readers reach it. */
struct fs_refs_table {
	int (*json)(struct source *s, struct view *v, const struct cfg *cfg, const char *address,
		    int fd, struct err *e);
	int (*parquet)(struct source *s, struct view *v, const struct cfg *cfg,
		       const char *address, const char *dir, struct err *e);
};

/* fs_refs - run the command. Returns the exit status. */
int fs_refs(const struct app *setup, const struct fs_refs_table *table);

#endif
