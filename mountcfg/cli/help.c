/* SPDX-License-Identifier: BSD-3-Clause */
/* help.c - --help, COMMAND --help and help options, from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "mountcfg/options/option_table.h"

/* put_wrapped - append text on lines of at most 78 columns, each starting in column `indent`; the
 * first line is already at `column`. */
static void put_wrapped(struct buf *out, const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (column + n + 1 > 78 && column > indent) {
			buf_putc(out, '\n');
			column = 0;
		}
		if (column > indent)
			buf_putc(out, ' ');
		else
			buf_printf(out, "%*s", (int)(indent - column), "");
		buf_put(out, text, n);
		column = (column > indent ? column + 1 : indent) + n;
		text += n + (text[n] == ' ');
	}
	buf_putc(out, '\n');
}

/* heading - append "title:" after an empty line. */
static void heading(struct buf *out, const char *title)
{
	buf_printf(out, "\n%s:\n", title);
}

/* entry - append "  LEFT  text": the text starts in a fixed column, on the next line if LEFT is too
 * long. */
static void entry(struct buf *out, const char *left, size_t column, const char *text)
{
	size_t n = strlen(left) + 2;

	buf_printf(out, "  %s", left);
	if (n + 2 > column) {
		buf_putc(out, '\n');
		n = 0;
	}
	put_wrapped(out, text, n, column);
}

/* put_long - append an option in its long form: "--zarr-format". */
static void put_long(struct buf *out, const char *name)
{
	buf_puts(out, "--");
	for (; *name && *name != '='; name++)
		buf_putc(out, *name == '_' ? '-' : *name);
}

/* put_values - append "=2|3". */
static void put_values(struct buf *out, const struct cfg_option *o)
{
	switch (o->kind) {
	case OPT_WORD:
	case OPT_BOOL:
	case OPT_RULE:
		for (const struct cfg_word *w = o->words; w->text && !w->hidden; w++)
			buf_printf(out, "%s%s", w == o->words ? "=" : "|", w->text);
		if (o->kind == OPT_RULE)
			buf_puts(out, o->words->text ? "|SPEC" : "=SPEC");
		break;
	case OPT_SIZE:
	case OPT_UINT:
	case OPT_TEXT:
		buf_printf(out, "=%s", o->initial);
		break;
	case OPT_BARE:
		buf_printf(out, "[=%s]", o->initial);
		break;
	case OPT_LIST:
		buf_puts(out, "=NAME[,NAME...]");
		break;
	case OPT_FLAG:
		break;
	}
}

enum { OPTION_COLUMN = 30, COMMAND_COLUMN = 12, FLAG_COLUMN = 20, GROUP_COLUMN = 18 };

static void help_option(const struct cfg_option *o, struct buf *out)
{
	auto_buf left = buf_of(256);

	put_long(&left, o->name);
	put_values(&left, o);
	buf_putc(&left, '\0');
	entry(out, buf_ok(&left) ? (char *)left.data : o->name, OPTION_COLUMN, o->help);
}

static const struct {
	unsigned group;
	const char *title;
} groups[] = {
	{GROUP_COMMON, "Common"},
	{GROUP_DETAILS, "Format details"},
	{GROUP_REMOTE, "Remote"},
	{GROUP_WRITING, "Writing"},
	{GROUP_CACHE, "Performance"},
	{GROUP_LIMITS, "Limits"},
	{GROUP_REFS, "References"},
	{GROUP_LOG, "General"},
	{GROUP_FUSE, "FUSE"},
};

static void put_group(struct buf *out, unsigned group)
{
	for (size_t i = 0; i < cfg_n_options; i++)
		if (cfg_options[i].group == group)
			help_option(&cfg_options[i], out);
}

/* put_column - append lines of a column of words behind a title. */
static void put_column(struct buf *out, const char *title, size_t column, struct buf *words)
{
	buf_putc(words, '\0');
	if (!buf_ok(words) || words->len == 1)
		return;
	buf_printf(out, "  %-*s", (int)column - 2, title);
	put_wrapped(out, (const char *)words->data, column, column);
}

/* put_words - append names of options; all: those of the group; otherwise those among `names`. */
static void put_words(struct buf *out, unsigned group, const char *title, bool all,
		      const char *names)
{
	auto_buf words = buf_of((size_t)1 << 14);

	for (size_t i = 0; i < cfg_n_options; i++) {
		const struct cfg_option *o = &cfg_options[i];
		const char *at = names;
		size_t len = strlen(o->name);
		bool named = false;

		for (; !named && (at = strstr(at, o->name)); at += len)
			named = (at == names || at[-1] == ' ') && (!at[len] || at[len] == ' ');
		if (o->group != group || !(all || named))
			continue;
		put_long(&words, o->name);
		buf_putc(&words, ' ');
	}
	put_column(out, title, GROUP_COLUMN, &words);
}

static void put_mount_words(struct buf *out, const char *title, size_t column)
{
	auto_buf words = buf_of((size_t)1 << 14);

	for (size_t i = 0; i < cfg_n_mount_options; i++) {
		put_long(&words, cfg_mount_options[i]);
		buf_puts(&words, strchr(cfg_mount_options[i], '=') ? "= " : " ");
	}
	put_column(out, title, column, &words);
}

/* put_usage - append the usage of a command; the word "mount" stands for mounts of both kinds. */
static void put_usage(const struct cfg_command_row *c, struct buf *out)
{
	const struct cfg_command_row *plain = cfg_command_row(CFG_MOUNT);

	buf_puts(out, "usage: ");
	if (c->command == CFG_MOUNT_NAMED)
		buf_printf(out, "nczarrfs [mount] %s\n       ", plain->args);
	buf_printf(out, "nczarrfs %s%s%s\n", c->word, *c->args ? " " : "", c->args);
}

/* help_flags - append the flags of the command, in the order of the table. */
static void help_flags(const struct cfg_command_row *c, struct buf *out)
{
	char left[64];

	heading(out, "Flags");
	for (size_t i = 0; i < cfg_n_flags; i++) {
		const struct cfg_flag *f = &cfg_flags[i];

		if (!(f->cmd & c->flags))
			continue;
		(void)snprintf(left, sizeof(left), "%s%s%s", f->word, f->value ? " " : "",
			       f->value ? f->value : ""); /* short strings */
		entry(out, left, FLAG_COLUMN, f->help);
	}
	if (c->flags & CMD_JSON)
		entry(out, "--json", FLAG_COLUMN, "print JSON");
	if (c->flags & CMD_ALL)
		entry(out, "-a, --all", FLAG_COLUMN,
		      c->command == CFG_UMOUNT ? "unmount all your mounts; as root, every mount"
					       : "mount every NAME, except with auto = no");
	if (c->command == CFG_MOUNT_NAMED) {
		entry(out, "-f", FLAG_COLUMN, "stay in the foreground");
		entry(out, "-d, --debug", FLAG_COLUMN,
		      "stay in the foreground and log every request");
	}
	entry(out, "-v, --verbose", FLAG_COLUMN, "print more messages");
	entry(out, "-h, --help", FLAG_COLUMN, "print this help");
}

static void help_command(enum cfg_command command, struct buf *out)
{
	const struct cfg_help_row *h = cfg_help_row(command);
	const struct cfg_command_row *c = cfg_command_row(h->command);
	const bool options = h->groups || *h->options;

	put_usage(c, out);
	buf_putc(out, '\n');
	put_wrapped(out, h->about, 0, 0);
	help_flags(c, out);
	if (options)
		heading(out, "Options ('nczarrfs help options' describes them)");
	for (size_t i = 0; options && i < ARRAY_LEN(groups); i++) {
		const unsigned group = groups[i].group;

		if (group != GROUP_FUSE)
			put_words(out, group, groups[i].title, h->groups & group, h->options);
		else if (h->groups & group)
			put_mount_words(out, groups[i].title, GROUP_COLUMN);
	}
	heading(out, "Examples");
	for (size_t i = 0; i < ARRAY_LEN(h->examples); i++)
		buf_printf(out, "  %s\n", h->examples[i]);
}

static const char usage[] = "usage: nczarrfs [OPTION...] SOURCE MOUNTPOINT\n"
			    "       nczarrfs COMMAND [OPTION...] [ARGUMENT...]\n";

static void help_program(struct buf *out)
{
	buf_puts(out, usage);
	buf_puts(out, "\n"
		      "Mount a netCDF or HDF5 file as a Zarr store, a Zarr store as a netCDF-4 "
		      "file, or\n"
		      "a directory with its datasets in both formats. SOURCE is a path or a URL "
		      "that\n"
		      "begins with https://, s3:// or gs://. Nothing is copied.\n");
	heading(out, "Commands");
	for (size_t i = 1; i < cfg_n_commands; i++)
		entry(out, cfg_commands[i].word, COMMAND_COLUMN, cfg_commands[i].help);
	heading(out, "Flags");
	entry(out, "-f", FLAG_COLUMN, "stay in the foreground");
	entry(out, "-d, --debug", FLAG_COLUMN, "stay in the foreground and log every request");
	entry(out, "-v, --verbose", FLAG_COLUMN, "print more messages");
	entry(out, "-h, --help", FLAG_COLUMN, "print this help, or the help of a COMMAND");
	entry(out, "-V, --version", FLAG_COLUMN, "print versions");
	entry(out, "--print-config", FLAG_COLUMN,
	      "print the options in effect and where each is set; mount nothing");
	entry(out, "--no-config", FLAG_COLUMN, "read no configuration file");
	entry(out, "-o LIST", FLAG_COLUMN,
	      "options as in /etc/fstab: NAME[=VALUE][,NAME[=VALUE]...]");
	heading(out, "Common options ('nczarrfs help options' lists all)");
	put_group(out, GROUP_COMMON);
	buf_puts(out, "\n"
		      "'nczarrfs COMMAND --help' describes a command. Unmount with 'nczarrfs "
		      "umount\n"
		      "MOUNTPOINT', which returns when pending writes are in the dataset.\n");
}

static void help_options(struct buf *out)
{
	buf_puts(out,
		 "Options of nczarrfs, by group. The first word, or the value shown, is the "
		 "default.\n"
		 "A size is in bytes, or has the suffix K, M or G. With -o, in /etc/fstab and "
		 "in\n"
		 "configuration files the names have _ in place of -: -o zarr_format=3,rw.\n");
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		heading(out, groups[i].title);
		if (groups[i].group != GROUP_FUSE)
			put_group(out, groups[i].group);
	}
	buf_puts(out, "  see mount.fuse3(8); nosuid and nodev are always in effect\n");
	put_mount_words(out, "", 2);
}

static void help_usage(struct buf *out)
{
	buf_puts(out, usage);
	heading(out, "Examples");
	entry(out, "nczarrfs model.nc mnt", OPTION_COLUMN, "mount a netCDF file as a Zarr store");
	entry(out, "nczarrfs store.zarr mnt", OPTION_COLUMN,
	      "mount a Zarr store as a netCDF-4 file");
	entry(out, "nczarrfs umount mnt", OPTION_COLUMN, "unmount");
	buf_puts(out, "\nTry 'nczarrfs --help'.\n");
}

void cfg_help(const struct cfg *cfg, struct buf *out)
{
	switch (cfg->help) {
	case HELP_PROGRAM:
		help_program(out);
		break;
	case HELP_COMMAND:
		help_command(cfg->help_of, out);
		break;
	case HELP_OPTIONS:
		help_options(out);
		break;
	case HELP_USAGE:
		help_usage(out);
		break;
	}
}
