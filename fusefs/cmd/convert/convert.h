/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.h - `nczarrfs convert`: a copy of a source in another format. docs/dev/commands.md. */
#ifndef FUSEFS_CMD_CONVERT_CONVERT_H
#define FUSEFS_CMD_CONVERT_CONVERT_H

#include "fusefs/app/fusefs.h"

/* fs_convert - copy cfg's source to cfg->out. Prints a report; returns the exit status: 0, or 1 if
 * nothing was created at the destination. */
int fs_convert(const struct app *setup);

#endif
