/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.c - the table of commands: their words, their arguments and a line for --help; and the
 * table of flags. fusefs/cmd/commands.c has the function of each command, help_table.c its
 * description. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mountcfg/options/option_table.h"

/* The first row applies if there is no word. In the order of --help. */
#define ROW(command, word, first, second, required, flags, args, help)                         \
	{                                                                                      \
		command, word, {PLACE_##first, PLACE_##second}, required, flags, args, help    \
	}
const struct cfg_command_row cfg_commands[] = {
	ROW(CFG_MOUNT, "", SOURCE, MOUNTPOINT, 2, 0, "[OPTION...] SOURCE MOUNTPOINT",
	    "mount SOURCE in the other format"),
	ROW(CFG_MOUNT_NAMED, "mount", NAME, NONE, 1, CMD_MORE | CMD_ALL | CMD_FILES,
	    "[OPTION...] NAME...|-a",
	    "mount SOURCE on MOUNTPOINT, or a mount of a configuration file"),
	ROW(CFG_UMOUNT, "umount", NAME, NONE, 1, CMD_MORE | CMD_ALL | CMD_FILES,
	    "NAME|MOUNTPOINT...|-a", "unmount, after pending writes are in the dataset"),
	ROW(CFG_LIST, "list", NONE, NONE, 0, CMD_JSON | CMD_FILES, "[--json]",
	    "list mounts, and the names in configuration files"),
	ROW(CFG_INFO, "info", SOURCE, NONE, 1, CMD_JSON | CMD_EACH | CMD_VARIABLE,
	    "[-v] [--json] [OPTION...] SOURCE... [/VARIABLE]",
	    "show what a mount of SOURCE would contain"),
	ROW(CFG_FILTERS, "filters", NONE, NONE, 0, CMD_JSON | CMD_FILES,
	    "[-v] [--json] [OPTION...]", "list the compression filters that are available"),
	ROW(CFG_RECOVER, "recover", SOURCE, NONE, 1, CMD_JSON | CMD_MORE,
	    "[--json] [OPTION...] SOURCE...", "commit the pending writes of a mount that died"),
	ROW(CFG_REFS, "refs", SOURCE, OUT, 1, CMD_JSON, "[--json] [OPTION...] SOURCE [OUT]",
	    "write kerchunk references to the chunks of SOURCE"),
	ROW(CFG_CHECK, "check", SOURCE, NONE, 1, CMD_JSON | CMD_EACH | CMD_RESUME | CMD_QUICK,
	    "[--json] [--quick] [--resume STATE] [OPTION...] SOURCE...",
	    "read every chunk and list damaged ones"),
	ROW(CFG_CONVERT, "convert", SOURCE, TO, 2, CMD_JSON | CMD_FORCE | CMD_VERIFY,
	    "[--json] [--force] [--verify] [OPTION...] SOURCE DEST",
	    "copy SOURCE to another format"),
	ROW(CFG_SERVE, "serve", SOURCE, NONE, 1, CMD_SERVE,
	    "[-p PORT] [--bind ADDR] [--origin ORIGIN] [OPTION...] SOURCE",
	    "serve SOURCE to browsers and Zarr readers over HTTP"),
	ROW(CFG_STATUS, "status", MOUNT, NONE, 1, CMD_JSON, "[--json] MOUNTPOINT",
	    "print the state and the counters of a mount"),
	ROW(CFG_LOG, "log", MOUNT, TEXT, 1, 0, "MOUNTPOINT [COMPONENT=LEVEL[,...]]",
	    "change the log levels of a mount"),
	ROW(CFG_HELP, "help", NONE, NONE, 0, 0, "[COMMAND|options]",
	    "describe a command, or list all options"),
	ROW(CFG_VERSION, "version", NONE, NONE, 0, 0, "",
	    "print the versions of nczarrfs and its libraries"),
};
#undef ROW
const size_t cfg_n_commands = ARRAY_LEN(cfg_commands);

static const struct {
	const char *word, *command;
} aliases[] = {{"unmount", "umount"}, {"ls", "list"}};

const struct cfg_command_row *cfg_command_find(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (strcmp(aliases[i].word, word) == 0)
			word = aliases[i].command;
	for (size_t i = 1; i < cfg_n_commands; i++)
		if (strcmp(cfg_commands[i].word, word) == 0)
			return &cfg_commands[i];
	return NULL;
}

bool cfg_is_file(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

int cfg_command_misspelt(const char *word, const char *next, struct err *e)
{
	const char *words[32], *near;
	size_t n = 0;

	if (strpbrk(word, "/.:") || access(word, F_OK) == 0 || errno != ENOENT)
		return 0;
	for (size_t i = 1; i < cfg_n_commands && n < ARRAY_LEN(words); i++)
		if (!next || *cfg_commands[i].args) /* `version` has no arguments */
			words[n++] = cfg_commands[i].word;
	near = cfg_nearest(word, words, n);
	if (!near && cfg_is_file(next))
		return err_set(e, -EINVAL,
			       "'%s': no such source, and no such command: see nczarrfs --help",
			       word);
	if (!near)
		return 0;
	return err_set(e, -EINVAL,
		       "'%s': no such source, and no such command: did you mean nczarrfs %s?",
		       word, near);
}

const struct cfg_command_row *cfg_command_row(enum cfg_command command)
{
	for (size_t i = 0; i < cfg_n_commands; i++)
		if (cfg_commands[i].command == command)
			return &cfg_commands[i];
	return &cfg_commands[0];
}

const char *cfg_command_usage(enum cfg_command command, char out[CFG_USAGE_MAX])
{
	const struct cfg_command_row *c = cfg_command_row(command);

	(void)snprintf(out, CFG_USAGE_MAX, "usage: nczarrfs %s%s%s", c->word,
		       /* truncation: the table's strings are short */
		       *c->word ? " " : "", c->args);
	return out;
}

const char *cfg_place_name(enum cfg_place place)
{
	static const char *const names[] = {
		[PLACE_NONE] = "an argument",
		[PLACE_SOURCE] = "SOURCE",
		[PLACE_MOUNTPOINT] = "MOUNTPOINT",
		[PLACE_TO] = "DEST",
		[PLACE_OUT] = "OUT",
		[PLACE_MOUNT] = "MOUNTPOINT",
		[PLACE_TEXT] = "an argument",
		[PLACE_NAME] = "NAME",
	};

	return names[place];
}

/* ---- long flags, and short ones that only some commands have ---- */

const struct cfg_flag cfg_flags[] = {
	{"--json", 0, offsetof(struct cfg, json), NULL, NULL},
	{"--verbose", 0, offsetof(struct cfg, verbose), NULL, NULL},
	{"--all", 0, offsetof(struct cfg, all), NULL, NULL},
	{"--no-config", 0, offsetof(struct cfg, config.none), NULL, NULL},
	{"--print-config", 0, offsetof(struct cfg, config.print), NULL, NULL},
	{"--resume", CMD_RESUME, offsetof(struct cfg, check.resume), "STATE",
	 "record the progress in the file STATE, and resume from there"},
	{"--variable", CMD_VARIABLE, offsetof(struct cfg, info.variable), "NAME",
	 "show one variable of SOURCE in detail, by its path: /group/name"},
	{"--quick", CMD_QUICK, offsetof(struct cfg, check.quick), NULL,
	 "check the metadata and the chunk indexes only; read no chunk"},
	{"--force", CMD_FORCE, offsetof(struct cfg, convert.force), NULL,
	 "replace DEST if it exists, once the copy is complete"},
	{"--verify", CMD_VERIFY, offsetof(struct cfg, convert.verify), NULL,
	 "decode every chunk of SOURCE before anything is copied"},
	{"-p", CMD_SERVE, offsetof(struct cfg, serve.port), "PORT",
	 "port to listen on; the default is 8080 or the next free one; 0: any free port"},
	{"--port", CMD_SERVE, offsetof(struct cfg, serve.port), "PORT", "the same as -p"},
	{"--bind", CMD_SERVE, offsetof(struct cfg, serve.bind), "ADDR",
	 "address to listen on; the default is 127.0.0.1"},
	{"--origin", CMD_SERVE, offsetof(struct cfg, serve.origin), "ORIGIN",
	 "web pages that may read the data: *, none (default) or an origin: https://host"},
};
const size_t cfg_n_flags = ARRAY_LEN(cfg_flags);

int cfg_command_flag(struct cfg *cfg, const char *arg, const char *next, struct err *e)
{
	for (size_t i = 0; i < cfg_n_flags; i++) {
		const struct cfg_flag *f = &cfg_flags[i];
		size_t n = strlen(f->word);
		char *at = (char *)cfg + f->field;
		char **text = (char **)(void *)at;
		const char *value;
		bool joined;

		if (strncmp(arg, f->word, n) != 0)
			continue;
		joined = arg[n] && f->value && (arg[n] == '=' || n == 2); /* -p80 */
		if (arg[n] && !joined)
			continue;
		cfg->command_flags |= f->cmd;
		if (!f->value) {
			*(bool *)at = true;
			return 1;
		}
		value = joined ? arg + n + (arg[n] == '=') : next;
		if (!value || !*value)
			return err_set(e, -EINVAL, "%s: needs %s after it", f->word, f->value);
		free(*text);
		*text = strdup(value);
		if (!*text)
			return err_nomem(e);
		return joined ? 1 : 2;
	}
	return 0;
}

int cfg_command_flags_check(const struct cfg *cfg, struct err *e)
{
	const struct cfg_command_row *c = cfg_command_row(cfg->command);
	char usage[CFG_USAGE_MAX];

	for (size_t i = 0; i < cfg_n_flags; i++)
		if (cfg->command_flags & cfg_flags[i].cmd & ~c->flags)
			return err_set(e, -EINVAL, "%s: not a flag of this command: %s",
				       cfg_flags[i].word, cfg_command_usage(cfg->command, usage));
	return 0;
}
