/* SPDX-License-Identifier: BSD-3-Clause */
/* refs.h - `nczarrfs refs`: references to the chunks of a source, for readers without a mount.
 * docs/dev/commands.md. */
#ifndef FUSEFS_CMD_REFS_REFS_H
#define FUSEFS_CMD_REFS_REFS_H

#include "fusefs/app/fusefs.h"

/* fs_refs - run the command. Returns the exit status. */
int fs_refs(const struct app *setup);

#endif
