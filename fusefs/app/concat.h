/* SPDX-License-Identifier: BSD-3-Clause */
/* concat.h - opens many datasets as one: -o concat=DIM. docs/dev/concat.md. */
#ifndef FUSEFS_APP_CONCAT_H
#define FUSEFS_APP_CONCAT_H

#include "fusefs/app/fusefs.h"

/* fs_concat - open the datasets that cfg->source names as one source. Errors as concat_open. */
int fs_concat(const struct app *setup, const struct source_options *opts, struct source **ret,
	      struct err *e) NZ_MUST_USE;

/* fs_concat_takes - true if the source's pattern names path (resolved), or looks through it as a
 * folder: such a path must not be a mountpoint. */
bool fs_concat_takes(const struct cfg *cfg, const char *path);

/* fs_concat_hidden - the path that a mount on dir (resolved) would hide from the concatenation: the
 * folder of the pattern, or a file. New string, free it; NULL: none. */
char *fs_concat_hidden(const struct cfg *cfg, const char *dir);

/* fs_concat_hint - error for a SOURCE with wildcards that does not exist, without -o concat. */
int fs_concat_hint(const char *path, int rc, struct err *e);

#endif
