/* SPDX-License-Identifier: BSD-3-Clause */
/* concat.h - many datasets shown as one: -o concat=DIM. docs/dev/concat.md. */
#ifndef FUSEFS_APP_CONCAT_H
#define FUSEFS_APP_CONCAT_H

#include "fusefs/app/fusefs.h"

/* fs_concat - open what cfg->source names. Errors as concat_open. */
int fs_concat(const struct app *setup, const struct source_options *opts, struct source **ret,
	      struct err *e) NZ_MUST_USE;

/* fs_concat_takes - whether a path, which is resolved, is one of those that the source's pattern
 * names, or a folder that it looks through, so that nothing may be mounted there. */
bool fs_concat_takes(const struct cfg *cfg, const char *path);

/* fs_concat_hidden - what a mount on dir, which is resolved, would hide of what is joined: the
 * folder of the pattern, or a file. New text, free it; NULL: nothing. */
char *fs_concat_hidden(const struct cfg *cfg, const char *dir);

/* fs_concat_hint - the error of a SOURCE with wildcards that is not there, without -o concat. */
int fs_concat_hint(const char *path, int rc, struct err *e);

#endif
