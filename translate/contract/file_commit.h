/* SPDX-License-Identifier: BSD-3-Clause */
/* file_commit.h - what a virtual file that is written to is committed with.
 *
 * A view that shows a dataset as one file (nc_rw_open) lets programs write any bytes anywhere: they
 * land in a copy of the pages that are touched. When a program has closed the file, what it is now
 * is read as a dataset, and what is different from what it was goes into the dataset beneath. */
#ifndef TRANSLATE_CONTRACT_FILE_COMMIT_H
#define TRANSLATE_CONTRACT_FILE_COMMIT_H

#include "translate/stage/snapshot.h"

/* file_rw_change - a virtual file that was written to. Both files are whole but for the data of
 * variables that nobody touched, which are holes: now, what it is; was, what it was. */
struct file_rw_change {
	const char *now, *was;   /* paths; was: NULL only when the dataset is empty. The structure
	                          * of the file before, also when nothing of it is left in `now`:
	                          * what is gone is told from it. written says true then */
	struct view *view;       /* the read-only one that `was` was made of */
	struct source *source;   /* the dataset beneath it, as that view shows it */
	/* written - whether a byte of [off, off + len) of the file was written.
	 * fill - put the bytes of the old file that lie there, and are not written, into `now`. */
	bool (*written)(void *arg, uint64_t off, uint64_t len);
	int (*fill)(void *arg, uint64_t off, uint64_t len, struct err *e);
	/* replaced - chunk `linear` of an array of `source` will be another one or gone after the
	 * commit: who still has the old file open is given what he needs of it first. */
	int (*replaced)(void *arg, uint32_t array, uint64_t linear, struct err *e);
	void *arg;
};

struct file_rw_options {
	int dir_fd;              /* of the state directory; borrowed for the view's life */
	const char *dir;         /* its path; borrowed */
	const char *name;        /* of the virtual file; borrowed */
	uint64_t id_limit;
	/* commit - the changed file becomes the dataset, or an error. One at a time.
	 * -EINPROGRESS: it will be the dataset, which is neither old nor new before end has been
	 * called, as often as it takes, and has returned 0; e says what stopped it. */
	int (*commit)(void *arg, const struct file_rw_change *c, struct err *e);
	int (*end)(void *arg, struct err *e); /* may be NULL where commit never says so */
	void *arg;
};

#endif
