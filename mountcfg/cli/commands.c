/* commands.c - the table of sub-commands: what is typed, what stands behind it, what --help says.
 * What each does is in fusefs/cmd/commands.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mountcfg/options/option_table.h"

/* The first is what is meant when there is no word. In the order of --help. */
const struct cfg_command_row cfg_commands[] = {
	{CFG_MOUNT,
	 "",
	 {PLACE_SOURCE, PLACE_MOUNTPOINT},
	 2,
	 0,
	 "[options] SOURCE MOUNTPOINT",
	 "mount SOURCE in the other format"},
	{CFG_MOUNT_NAMED,
	 "mount",
	 {PLACE_NAME, PLACE_NONE},
	 1,
	 CMD_MORE | CMD_ALL | CMD_FILES,
	 "[-o ...] NAME...|-a",
	 "mount what nczarrfs.conf(5) names"},
	{CFG_UMOUNT,
	 "umount",
	 {PLACE_NAME, PLACE_NONE},
	 1,
	 CMD_MORE | CMD_ALL | CMD_FILES,
	 "NAME|MOUNTPOINT...|-a",
	 "unmount"},
	{CFG_LIST,
	 "list",
	 {PLACE_NONE, PLACE_NONE},
	 0,
	 CMD_JSON | CMD_FILES,
	 "[--json]",
	 "what is mounted, and what has a name"},
	{CFG_INFO,
	 "info",
	 {PLACE_SOURCE, PLACE_NONE},
	 1,
	 CMD_JSON,
	 "[--json] [-o ...] SOURCE",
	 "say what would be mounted"},
	{CFG_FILTERS,
	 "filters",
	 {PLACE_NONE, PLACE_NONE},
	 0,
	 CMD_JSON | CMD_FILES,
	 "[-v] [--json] [-o ...]",
	 "list the filters that are there"},
	{CFG_RECOVER,
	 "recover",
	 {PLACE_SOURCE, PLACE_NONE},
	 1,
	 CMD_JSON | CMD_MORE,
	 "[--json] [-o ...] SOURCE...",
	 "end what a mount that died began"},
	{CFG_REFS,
	 "refs",
	 {PLACE_SOURCE, PLACE_OUT},
	 1,
	 CMD_JSON,
	 "[--json] [-o ...] SOURCE [OUT]",
	 "write references to its chunks"},
	{CFG_CHECK,
	 "check",
	 {PLACE_SOURCE, PLACE_NONE},
	 1,
	 CMD_JSON | CMD_RESUME | CMD_QUICK,
	 "[--json] [--quick] [--resume STATE] [-o ...] SOURCE",
	 "read every chunk, name those that are damaged"},
	{CFG_CONVERT,
	 "convert",
	 {PLACE_SOURCE, PLACE_TO},
	 2,
	 CMD_JSON | CMD_FORCE | CMD_VERIFY,
	 "[--json] [--force] [--verify] [-o ...] SOURCE DEST",
	 "copy it in another format"},
	{CFG_SERVE,
	 "serve",
	 {PLACE_SOURCE, PLACE_NONE},
	 1,
	 CMD_SERVE,
	 "[-p PORT] [--bind ADDR] [--origin ORIGIN] [-o ...] SOURCE",
	 "show it in a browser, and serve its tree by HTTP"},
	{CFG_STATUS,
	 "status",
	 {PLACE_MOUNT, PLACE_NONE},
	 1,
	 CMD_JSON,
	 "[--json] MOUNTPOINT",
	 "what a mount does, and did"},
	{CFG_LOG,
	 "log",
	 {PLACE_MOUNT, PLACE_TEXT},
	 1,
	 0,
	 "MOUNTPOINT [COMPONENT=LEVEL[,...]]",
	 "change what its log says"},
};
const size_t cfg_n_commands = ARRAY_LEN(cfg_commands);

const struct cfg_command_row *cfg_command_find(const char *word)
{
	for (size_t i = 1; i < cfg_n_commands; i++)
		if (strcmp(cfg_commands[i].word, word) == 0)
			return &cfg_commands[i];
	return NULL;
}

/* is_file - whether something is there that is no directory, on which nothing is mounted. */
static bool is_file(const char *path)
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
		words[n++] = cfg_commands[i].word;
	near = cfg_nearest(word, words, n);
	if (!near && is_file(next))
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
		       *c->word ? " " : "", c->args); /* cut: the table's texts are short */
	return out;
}

const char *cfg_place_name(enum cfg_place place)
{
	switch (place) {
	case PLACE_SOURCE:
		return "SOURCE";
	case PLACE_MOUNTPOINT:
	case PLACE_MOUNT:
		return "MOUNTPOINT";
	case PLACE_TO:
		return "DEST";
	case PLACE_OUT:
		return "OUT";
	case PLACE_NAME:
		return "NAME";
	case PLACE_TEXT:
	case PLACE_NONE:
		break;
	}
	return "an argument";
}
