/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_list.h - the datasets below a directory, for commands that treat each of them.
 *
 * As in a mirror, the formats decide which files are datasets. A file that has the name of a
 * dataset but is none, such as an empty file "a.nc", is listed as well, because its owner has to
 * know that it cannot be opened. Links are not followed; state directories are skipped. */
#ifndef FUSEFS_APP_DATASET_LIST_H
#define FUSEFS_APP_DATASET_LIST_H

#include <sys/stat.h>

#include "fusefs/app/fusefs.h"
#include "translate/contract/store.h"

/* dataset_list - the result. */
struct dataset_list {
	/* n paths, owned: each directory in the order of its names, and all paths below an
	 * entry before the next entry */
	char **paths;
	size_t n, cap;
	uint64_t others; /* files that are no datasets */
	uint64_t missed; /* files and directories that could not be examined, which was logged */
};

/* dataset_list_find - list the datasets below dir.
 * leave_out  true for a dataset that is not wanted. path: of it; st: its lstat; of: the format that
 *            bids most for it, NULL if none does. NULL: all are wanted
 * Returns 0, or a negative errno: -ENOMEM, -ERANGE more than ten million datasets, or the transient
 * error of a format. *ret must be released after both. */
int dataset_list_find(const struct app *setup, const char *dir,
		      bool (*leave_out)(void *arg, const char *path, const struct stat *st,
					const struct source_ops *of),
		      void *arg, struct dataset_list *ret, struct err *e) NZ_MUST_USE;
/* dataset_list_of_store - the same for the objects of a remote folder, by their names alone: a look
 * into each object would cost a request. A folder with metadata documents is a Zarr store.
 * top: what the paths begin with, without '/' at its end. */
int dataset_list_of_store(struct store *s, const char *top, struct dataset_list *ret,
			  struct err *e) NZ_MUST_USE;
void dataset_list_release(struct dataset_list *l);

#endif
