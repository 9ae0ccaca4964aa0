/* SPDX-License-Identifier: BSD-3-Clause */
/* command_flags.c - long flags, and short ones that only some commands have. */
#include <errno.h>
#include <string.h>

#include "mountcfg/options/option_table.h"

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
