/* help.c - the text of --help, from the table of options. */
#include <string.h>

#include "mountcfg/options/option_table.h"

/* put_wrapped - words of text on lines of at most 78 columns, each starting in column `indent`;
 * the first line is already at `column`. */
static void put_wrapped(struct buf *out, const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (column + n + 1 > 78 && column > indent) {
			buf_putc(out, '\n');
			column = 0;
		}
		while (column < indent) {
			buf_putc(out, ' ');
			column++;
		}
		if (column > indent) {
			buf_putc(out, ' ');
			column++;
		}
		buf_put(out, text, n);
		column += n;
		text += n + (text[n] == ' ');
	}
	buf_putc(out, '\n');
}

static void help_option(const struct cfg_option *o, struct buf *out)
{
	size_t start = out->len;

	buf_printf(out, "    %s", o->name);
	switch (o->kind) {
	case OPT_WORD:
	case OPT_BOOL:
		for (const struct cfg_word *w = o->words; w->text && !w->hidden; w++)
			buf_printf(out, "%s%s", w == o->words ? "=" : "|", w->text);
		break;
	case OPT_SIZE:
	case OPT_UINT:
	case OPT_TEXT:
		buf_printf(out, "=%s", o->initial);
		break;
	case OPT_BARE:
		buf_printf(out, "[=%s]", o->initial);
		break;
		break;
	case OPT_RULE:
		for (const struct cfg_word *w = o->words; w->text; w++)
			buf_printf(out, "%s%s", w == o->words ? "=" : "|", w->text);
		buf_puts(out, o->words->text ? "|SPEC" : "=SPEC");
		break;
	case OPT_LIST:
		buf_puts(out, "=NAME[,NAME...]");
		break;
	case OPT_FLAG:
		break;
	}
	if (out->len - start > 27)
		buf_putc(out, '\n');
	put_wrapped(out, o->help, out->len - start > 27 ? 0 : out->len - start, 28);
}

/* help_commands - a line for each command: how it is typed, and what it does. */
static void help_commands(struct buf *out)
{
	enum { HELP_COLUMN = 46 };

	for (size_t i = 0; i < cfg_n_commands; i++) {
		const struct cfg_command_row *c = &cfg_commands[i];
		size_t start = out->len, column;

		buf_printf(out, "%s nczarrfs %s%s%s", i ? "      " : "usage:", c->word,
			   *c->word ? " " : "", c->args);
		column = out->len - start;
		if (column >= HELP_COLUMN) {
			buf_putc(out, '\n');
			column = 0;
		}
		put_wrapped(out, c->help, column, HELP_COLUMN);
	}
}

void cfg_help(struct buf *out)
{
	help_commands(out);
	buf_puts(out,
		 "\n"
		 "SOURCE is a netCDF-4 or HDF5 file, which becomes a Zarr tree; a Zarr tree, "
		 "which\n"
		 "becomes a netCDF-4 file; or a directory that holds some of them. Files and "
		 "trees\n"
		 "may be on another machine: https://host/name.zarr, s3://bucket/name.nc.\n"
		 "Unmount with: nczarrfs umount MOUNTPOINT, which waits until what was "
		 "written is\n"
		 "in the dataset, or fusermount3 -u MOUNTPOINT, which does not.\n"
		 "\n"
		 "    -f                      stay in the foreground\n"
		 "    -d, --debug             stay in the foreground and log every request\n"
		 "    -v, --verbose           say more\n"
		 "    -h, --help              print this and exit\n"
		 "    -V, --version           print versions and exit\n"
		 "    -a, --all               mount: all that have a name; umount: all "
		 "there are\n"
		 "    --config FILE           read this configuration file, and no other\n"
		 "    --no-config             read no configuration file\n"
		 "    --print-config          say what is in force, and where it is from, and "
		 "exit\n"
		 "    --metrics SOCKET        give counters as OpenMetrics text on a unix "
		 "socket\n"
		 "    -o OPTION[,OPTION...]   one or more of the following\n"
		 "\nOptions (the first word, or the number shown, is the default):\n");
	for (size_t i = 0; i < cfg_n_options; i++)
		help_option(&cfg_options[i], out);
	buf_puts(out, "\nOptions of the mount, see mount.fuse3(8) (nosuid and nodev always "
		      "hold):\n");
	buf_puts(out, "    ");
	for (size_t i = 0, column = 4; i < cfg_n_mount_options; i++) {
		size_t n = strlen(cfg_mount_options[i]) + 1;

		if (column + n > 78) {
			buf_puts(out, "\n    ");
			column = 4;
		}
		buf_printf(out, "%s%s", column > 4 ? " " : "", cfg_mount_options[i]);
		column += n;
	}
	buf_putc(out, '\n');
}
