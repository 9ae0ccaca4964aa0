/* check.h - `nczarrfs check`: every chunk of a source is read, and its checksums and filters tried.
 * docs/check.md. */
#ifndef FUSEFS_CHECK_H
#define FUSEFS_CHECK_H

#include "fusefs/fusefs.h"

/* Exit status, for scripts. */
enum { CHECK_GOOD = 0, CHECK_DAMAGED = 1 /* or unfinished */, CHECK_FAILED = 2 };

/* fs_check - of cfg's source. Prints what was found; returns the exit status. */
int fs_check(const struct fs_setup *setup);

#endif
