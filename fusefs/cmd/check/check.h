/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - `nczarrfs check`: reads every chunk of a source, and verifies its checksums and
 * filters. docs/dev/commands.md. */
#ifndef FUSEFS_CMD_CHECK_CHECK_H
#define FUSEFS_CMD_CHECK_CHECK_H

#include "fusefs/app/fusefs.h"
#include "fusefs/cmd/progress.h"

/* Exit status, for scripts. */
enum { CHECK_GOOD = 0, CHECK_DAMAGED = 1 /* or unfinished */, CHECK_FAILED = 2 };

/* fs_check - check cfg's source. Prints a report; returns the exit status. */
int fs_check(const struct app *setup);

/* check_chunks - decode every chunk of a source that another command has opened; p: shows the
 * progress. Returns 0; -EBADMSG: chunks are damaged, and the log has a line for each, as check
 * prints it; errors that are no verdict on a chunk. */
int check_chunks(const struct app *setup, struct source *s, uint32_t n_workers,
		 struct progress *p, struct err *e) NZ_MUST_USE;

#endif
