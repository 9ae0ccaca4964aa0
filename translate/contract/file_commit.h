/* SPDX-License-Identifier: BSD-3-Clause */
/* file_commit.h - the input of a commit of a virtual file that was written to.
 *
 * A view that shows a dataset as one file (nc_rw_open) lets programs write any bytes anywhere: they
 * go to a copy of the touched pages. When a program has closed the file, the new content is read as
 * a dataset, and its differences from the old content go into the dataset beneath. */
#ifndef TRANSLATE_CONTRACT_FILE_COMMIT_H
#define TRANSLATE_CONTRACT_FILE_COMMIT_H

#include "translate/stage/snapshot.h"

/* file_rw_change - a virtual file that was written to. Both files are whole, except that the data
 * of untouched variables are holes. now: the new content; was: the old one. */
struct file_rw_change {
	const char *now, *was;   /* paths. was is NULL only if the dataset is empty. It has the
				  * structure of the old file, even if nothing of that is left in
				  * `now`, so that removed objects can be recognised; `written`
				  * returns true for such bytes */
	struct view *view;       /* the read-only one that `was` was made of */
	struct source *source;   /* the dataset beneath it, as that view shows it */
	/* written - whether a byte of [off, off + len) of the file was written.
	 * fill - put the unwritten bytes of the old file in that range into `now`. */
	bool (*written)(void *arg, uint64_t off, uint64_t len);
	int (*fill)(void *arg, uint64_t off, uint64_t len, struct err *e);
	/* replaced - the commit will change or remove chunk `linear` of an array of `source`: first
	 * save what programs need of it that still have the old file open. */
	int (*replaced)(void *arg, uint32_t array, uint64_t linear, struct err *e);
	void *arg;
};

struct file_rw_options {
	int dir_fd;              /* of the state directory; borrowed for the view's life */
	const char *dir;         /* its path; borrowed */
	const char *name;        /* of the virtual file; borrowed */
	uint64_t id_limit;
	/* commit - make the changed file the dataset, or fail. One call at a time. -EINPROGRESS: it
	 * will be the dataset, which is neither old nor new until a call of `end` has returned 0; e
	 * says what stopped it. */
	int (*commit)(void *arg, const struct file_rw_change *c, struct err *e);
	int (*end)(void *arg, struct err *e); /* NULL only if commit never returns -EINPROGRESS */
	void *arg;
};

#endif
