/* SPDX-License-Identifier: BSD-3-Clause */
/* refs_int.h - shared by the parts of `nczarrfs refs`: refs.c chooses the form and the
 * place of the output, and writes the references of one dataset; directory.c writes those of a
 * directory. */
#ifndef FUSEFS_CMD_REFS_REFS_INT_H
#define FUSEFS_CMD_REFS_REFS_INT_H

#include "fusefs/cmd/progress.h"
#include "fusefs/cmd/refs/refs.h"
#include "nczarr/nczarr.h"

struct refs_job {
	const struct app *setup;
	const char *out; /* NULL: standard output */
	bool parquet;
	bool stream;                 /* out exists and is no regular file: a pipe, a device */
	bool replaces;               /* out is a reference file, which is replaced */
	char *tmp;                   /* temporary name next to out; owned */
	char *address;               /* that the references begin with; owned */
	bool several;                /* the source is a directory of datasets */
	struct store *folder;        /* that is remote: its objects; owned. NULL: it is local */
	/* of a directory: datasets that were written, and that were left out; files and directories
	 * that could not be read, which may be or have datasets */
	uint64_t datasets, left_out, unreadable;
};

/* refs_open_output, refs_close_output - begin the output, under the temporary name; complete it and
 * give it its name. *ret_fd: JSON: a descriptor to close after the set; else -1. */
int refs_open_output(const struct refs_job *j, struct refs_set **ret, int *ret_fd,
		     struct err *e) NZ_MUST_USE;
int refs_close_output(const struct refs_job *j, struct refs_set *set, int fd,
		      struct err *e) NZ_MUST_USE;

/* refs_options_of - options for a dataset that readers find at `address`, which is borrowed. */
struct refs_options refs_options_of(const struct refs_job *j, const char *address);

/* refs_unchanged - the result of writing the references of a source, rc, or -ESTALE if the source
 * changed since it was opened, so that they may be of two states. */
int refs_unchanged(struct source *s, int rc, struct err *e) NZ_MUST_USE;

/* refs_threads - threads that open files: twice the processors, as one waits while the process of
 * its library works; more of remote files. */
uint32_t refs_threads(const struct cfg *cfg);

/* refs_directory - write references to all datasets below the source (directory.c). Returns 0, or a
 * negative errno. e without text: everything was logged. */
int refs_directory(struct refs_job *j, struct err *e) NZ_MUST_USE;

#endif
