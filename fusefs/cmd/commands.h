/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.h - runs the commands of mountcfg/cli/commands.c. */
#ifndef FUSEFS_CMD_COMMANDS_H
#define FUSEFS_CMD_COMMANDS_H

#include "fusefs/app/fusefs.h"

enum { /* flags of a command */
	SUB_RULES = 1,  /* needs the rules of cfg: call fs_rules_init first */
	SUB_RIGHTS = 2, /* starts fusermount3, which has more rights than this program */
	SUB_CACHE = 4,  /* views share the memory for chunks */
};

enum { EXIT_USAGE = 2 }; /* for every command: wrong arguments, options or configuration */

/* subcommand_has - true if a command has a flag. */
bool subcommand_has(enum cfg_command command, unsigned flag);

/* each_source - run this program once for each of cfg's sources, with the same command and flags.
 * Text appears in the order of the sources; JSON is one array of their documents. Returns the worst
 * exit status. */
int each_source(const struct app *setup, const char *command);

/* The commands `mount` with several names, `umount`, `list`, `status` and `log`. They print and
 * return the exit status. */
int mounts_mount(const struct app *setup);
int mounts_umount(const struct app *setup);
int mounts_list(const struct app *setup);
int status_command(const struct app *setup);
int status_log_command(const struct app *setup);

/* subcommand_run - run setup->cfg's command. Prints; returns the exit status. */
int subcommand_run(const struct app *setup);

#endif
