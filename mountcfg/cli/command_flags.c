/* command_flags.c - flags that only some commands have. */
#include <errno.h>
#include <string.h>

#include "mountcfg/options/option_table.h"

static const struct flag {
	const char *word;
	unsigned cmd;      /* who has it, as in cfg_command_row.flags */
	size_t field;      /* in struct cfg: a bool, or, with a value, an owned text */
	const char *value; /* what it is called; NULL: it has none */
} flags[] = {
	{"--resume", CMD_RESUME, offsetof(struct cfg, resume), "STATE"},
	{"--quick", CMD_QUICK, offsetof(struct cfg, quick), NULL},
	{"--force", CMD_FORCE, offsetof(struct cfg, force), NULL},
	{"--verify", CMD_VERIFY, offsetof(struct cfg, verify), NULL},
	{"-p", CMD_SERVE, offsetof(struct cfg, port), "PORT"},
	{"--port", CMD_SERVE, offsetof(struct cfg, port), "PORT"},
	{"--bind", CMD_SERVE, offsetof(struct cfg, bind), "ADDR"},
	{"--origin", CMD_SERVE, offsetof(struct cfg, origin), "ORIGIN"},
};

const char *cfg_command_flag_at(size_t i)
{
	return i < ARRAY_LEN(flags) ? flags[i].word : NULL;
}

int cfg_command_flag(struct cfg *cfg, const char *arg, const char *next, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		const struct flag *f = &flags[i];
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

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (cfg->command_flags & flags[i].cmd & ~c->flags)
			return err_set(e, -EINVAL, "%s: not a flag of this command: %s",
				       flags[i].word, cfg_command_usage(cfg->command, usage));
	return 0;
}
