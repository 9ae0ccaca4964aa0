/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.h - what each command of mountcfg/cli/commands.c does. */
#ifndef FUSEFS_CMD_COMMANDS_H
#define FUSEFS_CMD_COMMANDS_H

#include "fusefs/app/fusefs.h"

enum { /* of a command */
	SUB_RULES = 1,  /* needs the rules of cfg: fs_rules_init comes before it */
	SUB_RIGHTS = 2, /* starts programs that have more rights than this one: fusermount3 */
	SUB_CACHE = 4,  /* shares the memory for chunks between views */
};

enum { EXIT_USAGE = 2 }; /* of every command: wrong arguments, options or configuration */

/* subcommand_has - whether a command has one of these. */
bool subcommand_has(enum cfg_command command, unsigned flag);

/* subcommand_run - do setup->cfg's command. Prints; returns the exit status. */
int subcommand_run(const struct app *setup);

/* print_text - text to standard output; it is released. Returns the exit status. */
int print_text(struct buf *text);

#endif
