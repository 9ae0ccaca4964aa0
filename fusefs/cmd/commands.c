/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.c - the table of commands. A command is a row here, a row in mountcfg/cli/commands.c,
 * and a file of its own. */
#include "fusefs/cmd/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/observe/log.h"
#include "base/observe/print.h"
#include "base/process/sandbox.h"
#include "codecs/core/codec.h"
#include "fusefs/cmd/check/check.h"
#include "fusefs/cmd/convert/convert.h"
#include "fusefs/cmd/refs/refs.h"
#include "fusefs/http/server.h"
#include "hdf5view/hdf5view.h"

static int run_help(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	auto_buf text = buf_of(1 << 16);

	cfg_help(cfg, &text);
	if (cfg->help != HELP_USAGE)
		return print_text(&text);
	buf_putc(&text, '\0');
	if (buf_ok(&text))
		(void)fputs((char *)text.data, stderr); /* standard error is closed */
	return EXIT_USAGE;
}

/* versions - the text of --version. */
static void versions(struct buf *text)
{
	char hdf5[64] = "", hdf4[64] = "";

	hdf5_version(hdf5, sizeof(hdf5));
	buf_printf(text, "nczarrfs %s\nlibfuse %s\nHDF5 %s\n", NCZARRFS_VERSION,
		   fuse_pkgversion(), hdf5);
	hdf4_version(hdf4, sizeof(hdf4));
	buf_printf(text, "HDF4 %s\n", hdf4[0] ? hdf4 : "not built in");
	codec_versions(text);
	buf_puts(text, "sandbox: ");
	sandbox_report(text);
	buf_putc(text, '\n');
}

static int run_version(const struct app *setup NZ_UNUSED)
{
	struct buf text = buf_of(4096);

	versions(&text);
	return print_text(&text);
}

static int run_filters(const struct app *setup)
{
	struct buf text = buf_of((size_t)1 << 26);

	fs_filters(setup->cfg, &text);
	return print_text(&text);
}

struct print {
	const struct cfg *cfg;
	struct buf *out;
};

/* print_config_put - print one option. A free-form value may be an address with a password. */
static void print_config_put(void *arg, const char *name, const char *value,
			     bool said NZ_UNUSED, bool is_path)
{
	const struct print *p = arg;
	auto_free char *shown = is_path ? cfg_show(value) : NULL;
	size_t start = p->out->len, n;

	if (strcmp(name, "config") == 0)
		return; /* the list of files that were read is printed separately */
	buf_printf(p->out, "%s = %s", name, *value ? (shown ? shown : value) : "yes");
	n = p->out->len - start;
	buf_printf(p->out, "%*s ; %s\n", n < 40 ? (int)(40 - n) : 0, "",
		   cfg_where(p->cfg, name));
}

/* run_print - the effective options and their origins, in the form of a configuration file. */
static int run_print(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct print p = {.cfg = cfg};
	struct buf text = buf_of((size_t)1 << 22);

	for (size_t i = cfg->config.read.n; i-- > 0;)
		buf_printf(&text, "; read: %s\n", cfg->config.read.v[i]);
	if (!cfg->config.read.n)
		buf_puts(&text, "; no configuration file was read\n");
	if (cfg->shown)
		buf_printf(&text, "; source: %s\n", cfg->shown);
	if (cfg->mountpoint)
		buf_printf(&text, "; target: %s\n", cfg->mountpoint);
	buf_puts(&text, "[defaults]\n");
	p.out = &text;
	cfg_each(cfg, print_config_put, &p);
	return print_text(&text);
}

static const struct subcommand {
	enum cfg_command command;
	unsigned flags;
	int (*run)(const struct app *setup); /* returns the exit status */
} table[] = {
	{CFG_MOUNT, SUB_RULES | SUB_RIGHTS | SUB_CACHE, fs_mount},
	{CFG_INFO, SUB_RULES, fs_info},
	{CFG_FILTERS, 0, run_filters},
	{CFG_RECOVER, SUB_RULES, fs_recover},
	{CFG_REFS, SUB_RULES, fs_refs},
	{CFG_CHECK, SUB_CACHE, fs_check},
	{CFG_CONVERT, SUB_RULES | SUB_CACHE, fs_convert},
	{CFG_SERVE, SUB_RULES | SUB_CACHE, fs_serve_http},
	{CFG_STATUS, 0, status_command},
	{CFG_LOG, 0, status_log_command},
	{CFG_MOUNT_NAMED, SUB_RIGHTS, mounts_mount},
	{CFG_UMOUNT, SUB_RIGHTS, mounts_umount},
	{CFG_LIST, 0, mounts_list},
	{CFG_PRINT, 0, run_print},
	{CFG_HELP, 0, run_help},
	{CFG_VERSION, 0, run_version},
};

static const struct subcommand *cmd_commands_find(enum cfg_command command)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].command == command)
			return &table[i];
	return NULL;
}

bool subcommand_has(enum cfg_command command, unsigned flag)
{
	const struct subcommand *s = cmd_commands_find(command);

	return s && s->flags & flag;
}

int subcommand_run(const struct app *setup)
{
	const struct subcommand *s = cmd_commands_find(setup->cfg->command);

	return s ? s->run(setup) : 1;
}
