/* SPDX-License-Identifier: BSD-3-Clause */
/* print_config.c - `--print-config`: the effective options and their origins, in the form of a
 * configuration file. */
#include <string.h>

#include "fusefs/cmd/commands.h"
#include "base/observe/print.h"

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

int config_print(const struct app *setup)
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
