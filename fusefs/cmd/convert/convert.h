/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.h - `nczarrfs convert`: a copy of a source in another format. docs/dev/commands.md. */
#ifndef FUSEFS_CMD_CONVERT_CONVERT_H
#define FUSEFS_CMD_CONVERT_CONVERT_H

#include "fusefs/app/fusefs.h"

/* fs_convert - cfg's source becomes cfg->out. Prints what was done; returns the exit status: 0, or
 * 1 and nothing appeared. */
int fs_convert(const struct app *setup);

#endif
