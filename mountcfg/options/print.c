/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c - prints options as a user would type them, from the table and the parsed values. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mountcfg/options/option_table.h"

static const void *at(const struct cfg *cfg, const struct cfg_option *o)
{
	return (const char *)cfg + o->field;
}

static void put_word(const struct cfg_option *o, int v, struct buf *out)
{
	for (const struct cfg_word *w = o->words; w->text; w++) {
		if (w->value == v) {
			buf_puts(out, w->text);
			return;
		}
	}
}

static void put_rules(const struct cfg *cfg, const struct cfg_option *o, struct buf *out)
{
	const struct cfg_strings *list = at(cfg, o);
	const bool filter = list == &cfg->rules.filters;

	if (filter)
		put_word(o, (int)cfg->rules.filter, out);
	for (size_t i = 0; i < list->n; i++)
		buf_printf(out, "%s%s", i || filter ? "," : "", list->v[i]);
}

/* print_put - append the value. Returns true if the option is in effect: a flag that is not set is
 * not. */
static bool print_put(const struct cfg *cfg, const struct cfg_option *o, struct buf *out)
{
	const char *text;

	switch (o->kind) {
	case OPT_WORD:
		put_word(o, *(const int *)at(cfg, o), out);
		return true;
	case OPT_BOOL:
		put_word(o, *(const bool *)at(cfg, o), out);
		return true;
	case OPT_SIZE:
		cfg_put_size(*(const uint64_t *)at(cfg, o), out);
		return true;
	case OPT_BARE:
		cfg_put_size(*(const uint64_t *)at(cfg, o), out);
		return *(const uint64_t *)at(cfg, o) > 0;
	case OPT_UINT:
		buf_printf(out, "%" PRIu32, *(const uint32_t *)at(cfg, o));
		return true;
	case OPT_TEXT:
		text = *(char *const *)at(cfg, o);
		buf_puts(out, text ? text : "");
		return text != NULL;
	case OPT_FLAG:
		return *(const bool *)at(cfg, o);
	case OPT_RULE:
	case OPT_LIST:
		put_rules(cfg, o, out);
		return out->len > 0;
	}
	return false;
}

void cfg_each(const struct cfg *cfg,
	      void (*fn)(void *arg, const char *name, const char *value, bool said,
			 bool is_path),
	      void *arg)
{
	auto_buf value = buf_of((size_t)1 << 20);

	for (size_t i = 0; i < cfg_n_options; i++) {
		const struct cfg_option *o = &cfg_options[i];
		bool in_force;

		buf_clear(&value);
		in_force = print_put(cfg, o, &value);
		buf_putc(&value, '\0');
		if (in_force && buf_ok(&value))
			fn(arg, o->name, (const char *)value.data, cfg->said >> i & 1,
			   o->kind == OPT_TEXT);
	}
	for (size_t i = 0; i < cfg->fuse_opts.n; i++) {
		const char *eq = strchr(cfg->fuse_opts.v[i], '=');
		char name[64];

		(void)snprintf(name, sizeof(name), "%.*s",
			       eq ? (int)(eq - cfg->fuse_opts.v[i]) : 60, cfg->fuse_opts.v[i]);
		fn(arg, name, eq ? eq + 1 : "", true, false);
	}
}
