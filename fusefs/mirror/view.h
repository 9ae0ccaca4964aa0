/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - a directory with datasets as a view: all its entries unchanged, and next to each dataset
 * its converted view. docs/dev/mirror.md. */
#ifndef FUSEFS_MIRROR_VIEW_H
#define FUSEFS_MIRROR_VIEW_H

#include <dirent.h>

#include "fusefs/app/fusefs.h"

/* mirror_wanted - whether cfg selects a mirror: its source is a directory that no format bids for,
 * and the user chose no view. 1, 0; -errno: the source could not be examined. */
int mirror_wanted(const struct app *setup, struct err *e) NZ_MUST_USE;

/* mirror_only - whether cfg's source is a directory that no format bids for, with any view. Returns
 * as mirror_wanted. */
int mirror_only(const struct app *setup, struct err *e) NZ_MUST_USE;

/* mirror_open - mirror cfg's source. No dataset is opened. The mountpoint may lie in it and is
 * never accessed. setup is borrowed for the view's life. Returns 0 with *ret new
 * (view->ops->close). */
int mirror_open(const struct app *setup, struct view **ret, struct err *e) NZ_MUST_USE;

/* mirror_caller - thread of the program whose request this thread answers; 0: none. */
extern _Thread_local pid_t mirror_caller;

/* mirror_each - the datasets of the mirrored directory itself, with the names of their converted
 * views: for `info`. why: NULL, or the reason why that name does not show the dataset. fn returns
 * false to stop. */
int mirror_each(struct view *v,
		bool (*fn)(void *arg, const char *source, const char *name, const char *why),
		void *arg, struct err *e) NZ_MUST_USE;

/* path_join - "dir/name", new; NULL when memory is short. */
char *path_join(const char *dir, const char *name);
/* dir_names - the entries of a directory except "." and "..", sorted by the bytes of their names.
 * Returns their number, or -1 with errno, as scandir(3). */
int dir_names(const char *dir, struct dirent ***ret);
/* mirror_hidden - true if a name is that of a state directory: no listing has it. */
bool mirror_hidden(const char *name);

#endif
