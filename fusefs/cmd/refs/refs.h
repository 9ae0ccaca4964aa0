/* SPDX-License-Identifier: BSD-3-Clause */
/* refs.h - `nczarrfs refs`: references to the chunks of a source, for readers without a mount.
 * docs/dev/commands.md. */
#ifndef FUSEFS_CMD_REFS_REFS_H
#define FUSEFS_CMD_REFS_REFS_H

#include "fusefs/app/fusefs.h"

struct refs_set;

/* fs_refs_dataset - a dataset whose references are written. Strings are borrowed. */
struct fs_refs_dataset {
	struct source *source;
	struct view *view;
	const char *address; /* of the source, as readers reach it */
	const char *folder;  /* as in struct refs_options; NULL */
	uint64_t number;     /* its position in the output */
	const char *group;   /* of the output; "": the root */
	uint32_t files, threads, window; /* as in struct refs_options */
	/* as struct refs_options; NULL: not wanted */
	void (*progress)(void *arg, uint64_t done, uint64_t all);
	void *progress_arg;
};

/* fs_refs_table - functions that write references (main.c fills it): nczarr/nczarr.h. */
struct fs_refs_table {
	const struct source_ops *format; /* references as sources */
	int (*json)(int fd, struct refs_set **ret, struct err *e);
	int (*table)(int fd, struct refs_set **ret, struct err *e);
	int (*parquet)(const char *dir, uint64_t records, struct refs_set **ret, struct err *e);
	int (*add)(struct refs_set *set, const struct fs_refs_dataset *d, const struct cfg *cfg,
		   struct err *e);
	void (*pass)(struct refs_set *set, uint64_t number);
	int (*broken)(struct refs_set *set, struct err *e);
	uint64_t (*bytes)(struct refs_set *set);
	int (*end)(struct refs_set *set, struct err *e);
	void (*free)(struct refs_set *set);
};

/* fs_refs - run the command. Returns the exit status. */
int fs_refs(const struct app *setup, const struct fs_refs_table *table);

#endif
