/* SPDX-License-Identifier: BSD-3-Clause */
/* origin.c - the origin of each option's value. Origins are read in decreasing precedence, so that
 * the first one with an option sets it completely: repeatable rules of several origins are not
 * combined. */
#include <errno.h>
#include <string.h>

#include "base/core/str.h"
#include "mountcfg/options/option_table.h"

struct origin_noted {
	int at;
	char *where; /* owned; NULL: not recorded */
};

/* rule - one of several values of an option. */
struct rule {
	char *value, *where; /* owned */
};

struct cfg_from {
	struct rule *rules;
	size_t n_rules, cap_rules;
	int at;                                /* the present origin */
	const char *where;                     /* its name; borrowed */
	struct origin_noted options[CFG_OPTIONS_MAX]; /* of cfg_options */
	struct origin_noted mount[CFG_OPTIONS_MAX];   /* of cfg_mount_options */
};

int cfg_from_new(struct cfg *cfg, struct err *e)
{
	cfg->from = calloc(1, sizeof(*cfg->from));
	if (!cfg->from)
		return err_nomem(e);
	cfg_from_set(cfg, CFG_AT_LINE, "command line");
	return 0;
}

void cfg_from_free(struct cfg_from *f)
{
	for (size_t i = 0; f && i < f->n_rules; i++) {
		free(f->rules[i].value);
		free(f->rules[i].where);
	}
	if (f)
		free(f->rules);
	for (size_t i = 0; f && i < CFG_OPTIONS_MAX; i++) {
		free(f->options[i].where);
		free(f->mount[i].where);
	}
	free(f);
}

void cfg_from_set(struct cfg *cfg, int at, const char *where)
{
	if (!cfg->from)
		return;
	cfg->from->at = at;
	cfg->from->where = where;
}

static bool origin_take(struct cfg_from *f, struct origin_noted *n)
{
	if (n->at > f->at)
		return false;
	n->at = f->at;
	free(n->where);
	n->where = strdup(f->where); /* without memory the origin stays unknown */
	return true;
}

bool cfg_from_take(struct cfg *cfg, size_t option)
{
	return !cfg->from || origin_take(cfg->from, &cfg->from->options[option]);
}

void cfg_from_rule(struct cfg *cfg, const char *value)
{
	struct cfg_from *f = cfg->from;
	struct rule r;

	if (!f || grow_array(&f->rules, &f->cap_rules, f->n_rules + 1, sizeof(*f->rules)) < 0)
		return; /* an error names the line of the last one */
	r = (struct rule){.value = strdup(value), .where = strdup(f->where)};
	if (r.value && r.where) {
		f->rules[f->n_rules++] = r;
		return;
	}
	free(r.value);
	free(r.where);
}

void cfg_from_note(struct cfg *cfg, const char *name)
{
	const struct cfg_option *o = cfg_option_find(name, strlen(name));

	(void)cfg_from_take(cfg, (size_t)(o - cfg_options)); /* the command line has precedence */
}

/* origin_slot_of - record of a mount option; options that cancel each other share one. */
static struct origin_noted *origin_slot_of(const struct cfg *cfg, const char *name, size_t len)
{
	static const char *const pairs[][2] = {{"noexec", "exec"}, {"async", "sync"}};

	if (!cfg->from)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		if (str_is(pairs[i][0], name, len)) {
			name = pairs[i][1];
			len = strlen(name);
		}
	}
	for (size_t i = 0; i < cfg_n_mount_options; i++)
		if (strcspn(cfg_mount_options[i], "=") == len &&
		    memcmp(cfg_mount_options[i], name, len) == 0)
			return &cfg->from->mount[i];
	return NULL;
}

bool cfg_from_take_mount(struct cfg *cfg, const char *name, size_t len)
{
	struct origin_noted *n = origin_slot_of(cfg, name, len);

	return !n || origin_take(cfg->from, n);
}

static const struct origin_noted *noted_of(const struct cfg *cfg, const char *name)
{
	const struct cfg_option *o = cfg_option_find(name, strlen(name));

	return o && cfg->from ? &cfg->from->options[o - cfg_options]
			      : origin_slot_of(cfg, name, strlen(name));
}

int cfg_from_at(const struct cfg *cfg, const char *name)
{
	const struct origin_noted *n = noted_of(cfg, name);

	return n ? n->at : CFG_AT_BUILTIN;
}

/* origin_where_of - origin of the rule in a message "NAME=VALUE: ...", whose VALUE may be
 * truncated; otherwise of the option. */
static const char *origin_where_of(const struct cfg *cfg, const struct origin_noted *n,
				   const char *value)
{
	/* a message has at least this many bytes of a value, or all of them */
	enum { SHOWN_MIN = 60 };
	const struct cfg_from *f = cfg->from;

	for (size_t i = 0; f && i < f->n_rules; i++) {
		size_t len = strnlen(f->rules[i].value, SHOWN_MIN);

		if (strncmp(f->rules[i].value, value, len) == 0 &&
		    (len == SHOWN_MIN || value[len] == ':'))
			return f->rules[i].where;
	}
	return n->where;
}

int cfg_place_error(const struct cfg *cfg, struct err *e)
{
	char name[64], text[ERR_TEXT_MAX];
	const struct origin_noted *n;
	size_t len;

	if (!e)
		return -EINVAL;
	if (strncmp(e->msg, "-o ", 3) != 0)
		return e->code;
	len = strcspn(e->msg + 3, "=: ");
	if (len >= sizeof(name))
		return e->code;
	memcpy(name, e->msg + 3, len);
	name[len] = '\0';
	n = noted_of(cfg, name);
	if (!n || n->at <= CFG_AT_BUILTIN || n->at >= CFG_AT_LINE || !n->where)
		return e->code;
	memcpy(text, e->msg + 3, sizeof(text) - 3); /* text is as long as e's message */
	return err_set(e, e->code, "%s: %s",
		       text[len] == '=' ? origin_where_of(cfg, n, text + len + 1) : n->where,
		       text);
}

const char *cfg_where(const struct cfg *cfg, const char *name)
{
	const struct origin_noted *n = noted_of(cfg, name);

	return !n || n->at == CFG_AT_BUILTIN ? "built in" : n->where ? n->where : "somewhere";
}
