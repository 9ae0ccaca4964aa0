/* SPDX-License-Identifier: BSD-3-Clause */
/* each.h - commands with several sources. */
#ifndef FUSEFS_CMD_EACH_H
#define FUSEFS_CMD_EACH_H

#include "fusefs/app/fusefs.h"

/* each_source - run this program once for each of cfg's sources, with the same command and flags.
 * Text appears in the order of the sources; JSON is one array of their documents. Returns the worst
 * exit status. */
int each_source(const struct app *setup, const char *command);

#endif
