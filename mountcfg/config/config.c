/* SPDX-License-Identifier: BSD-3-Clause */
/* config.c - configuration files: their sections, the sections that apply to a source, and their
 * precedence. docs/reference/nczarrfs.conf.5.
 *
 * Everything in a file is checked when it is read, whether or not it applies now: an error is
 * reported at once, and not only when a source matches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/url.h"
#include "mountcfg/config/ini_int.h"
#include "mountcfg/options/option_table.h"

enum { PATTERNS_MAX = CFG_AT_NAMED - CFG_AT_PATTERN }; /* matching sections for one source */

static const char *const place_keys[] = {"source", "target", "auto"};
static const char *const kinds[] = {"defaults", "mount", "source"};

/* ---- contents of a file ---- */

static bool is_kind(const struct conf_section *s, const char *kind)
{
	return strcmp(s->kind, kind) == 0;
}

static bool is_place_key(const struct conf_section *s, const char *name)
{
	for (size_t i = 0; is_kind(s, "mount") && i < ARRAY_LEN(place_keys); i++)
		if (strcmp(name, place_keys[i]) == 0)
			return true;
	return false;
}

/* config_text_of - the last value of a key; NULL. */
static const char *config_text_of(const struct conf_section *s, const char *name)
{
	const char *found = NULL;

	for (size_t i = 0; i < s->n_keys; i++)
		if (strcmp(s->keys[i].name, name) == 0)
			found = s->keys[i].value;
	return found;
}

static int at_line(const struct conf_section *s, uint32_t line, int rc, struct err *e)
{
	char text[ERR_TEXT_MAX];
	const char *from = e ? e->msg : "";

	if (strncmp(from, "-o ", 3) == 0) /* a file has no -o */
		from += 3;
	(void)snprintf(text, sizeof(text), "%s", from); /* text is as long as e's message */
	return err_set(e, rc, "%s:%u: %s", s->path, line, text);
}

/* set_key - apply one key of a section to cfg. */
static int set_key(struct cfg *cfg, const struct conf_section *s, const struct conf_key *k,
		   struct err *e)
{
	const char *extra[ARRAY_LEN(place_keys) + 1] = {"options"};
	const bool no_word = strcmp(k->value, "yes") != 0 && strcmp(k->value, "no") != 0;
	size_t n = 1;
	int rc = 0;

	if (strcmp(k->name, "options") == 0) {
		rc = cfg_set_options(cfg, k->value, e);
	} else if (is_place_key(s, k->name)) {
		if (strcmp(k->name, "auto") == 0 && no_word)
			rc = err_set(e, -EINVAL, "auto: unknown value '%s': use yes or no",
				     k->value);
		else if (!*k->value)
			rc = err_set(e, -EINVAL, "%s: is empty", k->name);
	} else {
		rc = cfg_set_key(cfg, k->name, k->value, getenv("HOME"), e);
		for (size_t i = 0; is_kind(s, "mount") && i < ARRAY_LEN(place_keys); i++)
			extra[n++] = place_keys[i];
		if (rc == -ENOENT)
			rc = cfg_unknown("", k->name, extra, n, e);
	}
	return rc < 0 ? at_line(s, k->line, rc, e) : 0;
}

/* mount_name_ok - true for a name that is neither a path nor a flag. */
static bool mount_name_ok(const char *name)
{
	return *name && *name != '-' && *name != '.' && strcspn(name, "/ \t") == strlen(name);
}

static int check_section(const struct conf_section *s, struct err *e)
{
	const char *near = cfg_nearest(s->kind, kinds, ARRAY_LEN(kinds));
	const size_t n = ARRAY_LEN(kinds);
	size_t i;

	for (i = 0; i < n && !is_kind(s, kinds[i]); i++)
		;
	if (i == n && near)
		return err_set(e, -EINVAL, "%s:%u: unknown section [%s]: did you mean [%s%s]?",
			       s->path, s->line, s->kind, near,
			       strcmp(near, "defaults") == 0 ? ""
			       : strcmp(near, "mount") == 0  ? " NAME"
							     : " PATTERN");
	if (i == n)
		return err_set(e, -EINVAL,
			       "%s:%u: unknown section [%s]: there are [defaults], [mount "
			       "NAME] and [source PATTERN]",
			       s->path, s->line, s->kind);
	if (is_kind(s, "defaults") && *s->name)
		return err_set(e, -EINVAL, "%s:%u: [defaults] takes no name", s->path, s->line);
	if (is_kind(s, "mount") && !mount_name_ok(s->name))
		return err_set(e, -EINVAL,
			       "%s:%u: [mount %s]: use a name without blanks and '/' that does "
			       "not begin with '-' or '.'",
			       s->path, s->line, s->name);
	if (is_kind(s, "source") && !*s->name)
		return err_set(e, -EINVAL,
			       "%s:%u: [source]: needs a pattern: [source /data/*.nc]", s->path,
			       s->line);
	for (i = 0; is_kind(s, "mount") && i < 2; i++) {
		auto_free char *place = NULL;
		int rc = conf_place(s, place_keys[i], &place, e);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* check_twice - reject a second section [mount NAME] of a file. */
static int check_twice(const struct conf *c, size_t first, size_t at, struct err *e)
{
	const struct conf_section *s = &c->sections[at];

	for (size_t j = first; is_kind(s, "mount") && j < at; j++)
		if (is_kind(&c->sections[j], "mount") &&
		    strcmp(s->name, c->sections[j].name) == 0)
			return err_set(e, -EINVAL,
				       "%s:%u: [mount %s] is defined twice: see line %u", s->path,
				       s->line, s->name, c->sections[j].line);
	return 0;
}

/* check_file - check the sections of a file by applying them to options that are discarded. first:
 * the first of them. */
static int check_file(const struct conf *c, size_t first, struct err *e)
{
	int rc = 0;

	for (size_t i = first; i < c->n && rc == 0; i++)
		rc = check_twice(c, first, i, e);
	for (size_t i = first; i < c->n && rc == 0; i++) {
		const struct conf_section *s = &c->sections[i];
		struct cfg scratch = {.command = CFG_MOUNT};

		rc = check_section(s, e);
		rc = rc ? rc : cfg_from_new(&scratch, e);
		if (rc == 0)
			cfg_from_set(&scratch, CFG_AT_NAMED, s->path);
		for (size_t k = 0; k < s->n_keys && rc == 0; k++)
			rc = set_key(&scratch, s, &s->keys[k], e);
		cfg_release(&scratch);
	}
	return rc;
}

/* ---- the files ---- */

/* config_add_file - add a file if it exists. */
static int config_add_file(struct conf *c, const char *path, enum conf_whose whose,
			   struct cfg *cfg, struct err *e)
{
	const size_t first = c->n;
	struct err why = ERR_INIT;
	int rc;

	if (!path)
		return 0;
	rc = conf_file_read(path, whose, c, &why);
	if (rc == 1) {
		if (why.msg[0] && !cfg->config.note) /* one line is enough */
			cfg->config.note = strdup(why.msg);
		return 0;
	}
	if (rc < 0)
		return err_set(e, rc, "%s", why.msg);
	rc = check_file(c, first, e);
	return rc < 0 ? rc : cfg_strings_add(&cfg->config.read, path, e);
}

int conf_open(const struct cfg_files *files, struct cfg *cfg, struct conf **ret, struct err *e)
{
	struct conf *c = calloc(1, sizeof(*c));
	int rc = 0;

	if (!c)
		return err_nomem(e);
	if (cfg->config.file) {
		rc = config_add_file(c, cfg->config.file, CONF_NAMED, cfg, e);
	} else if (!cfg->config.none) {
		rc = config_add_file(c, files->user, CONF_USER, cfg, e);
		rc = rc ? rc : config_add_file(c, files->system, CONF_SYSTEM, cfg, e);
	}
	if (rc < 0)
		conf_free(c);
	else
		*ret = c;
	return rc;
}

static void free_section(struct conf_section *s)
{
	for (size_t k = 0; k < s->n_keys; k++) {
		free(s->keys[k].name);
		str_wipe(s->keys[k].value);
	}
	free(s->keys);
	free(s->kind);
	free(s->name);
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		free_section(&c->sections[i]);
	for (size_t i = 0; i < c->n_paths; i++)
		free(c->paths[i]);
	free(c->sections);
	free(c);
}

char *cfg_xdg_dir(const char *variable, const char *in_home)
{
	const char *xdg = getenv(variable), *home = getenv("HOME");

	/* Spec: XDG Base Directory Specification: a relative path there is not valid */
	if (xdg && xdg[0] == '/')
		return strdup(xdg);
	return home && home[0] == '/' ? str_printf("%s/%s", home, in_home) : NULL;
}

char *cfg_user_file(void)
{
	auto_free char *dir = cfg_xdg_dir("XDG_CONFIG_HOME", ".config");

	return dir ? str_printf("%s/nczarrfs.conf", dir) : NULL;
}

/* ---- sections for a source ---- */

/* config_fits - true if a string matches a pattern, in which '*' matches any bytes and '?' one. All
 * other bytes match themselves. Linear after the last '*' that was passed, so that no input is
 * slow. */
static bool config_fits(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* config_weight - a pattern with more literal bytes is more specific. */
static size_t config_weight(const char *pattern)
{
	size_t n = 0;

	for (; *pattern; pattern++)
		n += *pattern != '*' && *pattern != '?';
	return n;
}

/* match - a section for the source. order: of the sections as they are read, the user's file
 * last. */
struct match {
	const struct conf_section *s;
	size_t weight, order;
};

/* wins_last - sort the section with higher precedence last. */
static int wins_last(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int find_matches(const struct conf *c, const char *source, struct match *list,
			size_t *ret_n, struct err *e)
{
	*ret_n = 0;
	for (size_t i = 0; i < 2 * c->n; i++) { /* twice: the system's, then the user's */
		const struct conf_section *s = &c->sections[i % c->n];

		if (s->user != (i >= c->n) || !is_kind(s, "source") ||
		    !config_fits(s->name, source))
			continue;
		if (*ret_n == PATTERNS_MAX)
			return err_set(e, -EINVAL,
				       "%s:%u: more than %d sections match this source", s->path,
				       s->line, PATTERNS_MAX);
		list[*ret_n] = (struct match){s, config_weight(s->name), *ret_n};
		++*ret_n;
	}
	qsort(list, *ret_n, sizeof(*list), wins_last);
	return 0;
}

/* ---- applying them ---- */

static int config_apply(const struct conf_section *s, int at, struct cfg *cfg, struct err *e)
{
	auto_free char *where = NULL;
	int rc = 0;

	for (size_t i = 0; i < s->n_keys && rc == 0; i++) {
		free(where);
		where = str_printf("%s:%u", s->path, s->keys[i].line);
		if (!where)
			return err_nomem(e);
		cfg_from_set(cfg, at, where);
		rc = set_key(cfg, s, &s->keys[i], e);
	}
	cfg_from_set(cfg, CFG_AT_LINE, "command line");
	return rc;
}

int conf_apply(const struct conf *c, const struct conf_section *named, const char *source,
	       struct cfg *cfg, struct err *e)
{
	struct match matches[PATTERNS_MAX];
	size_t n = 0;
	int rc = named ? config_apply(named, CFG_AT_NAMED, cfg, e) : 0;

	if (rc == 0 && source)
		rc = find_matches(c, source, matches, &n, e);
	while (n-- > 0 && rc == 0)
		rc = config_apply(matches[n].s, CFG_AT_PATTERN + (int)n, cfg, e);
	for (size_t i = 0; i < c->n && rc == 0; i++)
		if (is_kind(&c->sections[i], "defaults"))
			rc = config_apply(&c->sections[i],
					  c->sections[i].user ? CFG_AT_USER : CFG_AT_SYSTEM, cfg,
					  e);
	return rc;
}

/* ---- named mounts ---- */

const struct conf_section *conf_named(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (is_kind(&c->sections[i], "mount") &&
		    strcmp(c->sections[i].name, name) == 0)
			return &c->sections[i];
	return NULL;
}

int conf_place(const struct conf_section *s, const char *key, char **ret, struct err *e)
{
	const char *value = config_text_of(s, key), *home = getenv("HOME");
	int rc = 0;

	*ret = NULL;
	if (!value)
		return err_set(e, -EINVAL, "%s:%u: [mount %s] needs a line '%s = %s'", s->path,
			       s->line, s->name, key,
			       strcmp(key, "target") == 0 ? "DIRECTORY" : "SOURCE");
	if (value[0] == '/' || (url_is(value) && strcmp(key, "source") == 0)) {
		*ret = strdup(value);
	} else if (strncmp(value, "~/", 2) == 0 && home && home[0] == '/') {
		*ret = str_printf("%s%s", home, value + 1);
	} else {
		rc = err_set(e, -EINVAL,
			     "%s:%u: [mount %s]: %s: must be an absolute path, or begin with ~/",
			     s->path, s->line, s->name, key);
	}
	return rc < 0 ? rc : *ret ? 0 : err_nomem(e);
}

int conf_unknown_mount(const struct conf *c, const char *name, struct err *e)
{
	const char *names[256], *near;
	size_t n = 0;

	for (size_t i = 0; i < c->n && n < ARRAY_LEN(names); i++)
		if (is_kind(&c->sections[i], "mount"))
			names[n++] = c->sections[i].name;
	near = cfg_nearest(name, names, n);
	if (near)
		return err_set(e, -ENOENT, "'%s': no mount has this name: did you mean '%s'?",
			       name, near);
	return err_set(e, -ENOENT,
		       "'%s': no mount has this name, and no such file exists: check the path, "
		       "or add a section [mount %s] to a configuration file (nczarrfs list "
		       "shows the existing names)",
		       name, name);
}

static int add_mount(const struct conf_section *s, struct cfg *cfg, struct err *e)
{
	struct cfg_mount *grown =
		realloc(cfg->config.mounts, (cfg->config.n_mounts + 1) * sizeof(*grown));
	const char *is_auto = config_text_of(s, "auto");
	auto_free char *source = NULL;
	struct cfg_mount *m;
	int rc;

	if (!grown)
		return err_nomem(e);
	cfg->config.mounts = grown;
	m = &grown[cfg->config.n_mounts++];
	*m = (struct cfg_mount){.automatic = !is_auto || strcmp(is_auto, "yes") == 0};
	rc = conf_place(s, "source", &source, e);
	rc = rc ? rc : conf_place(s, "target", &m->target, e);
	if (rc < 0)
		return rc;
	m->name = strdup(s->name);
	m->source = cfg_show(source);
	m->where = str_printf("%s:%u", s->path, s->line);
	return m->name && m->source && m->where ? 0 : err_nomem(e);
}

int conf_mounts(const struct conf *c, struct cfg *cfg, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->n && rc == 0; i++) {
		const struct conf_section *s = &c->sections[i];

		/* the user's section hides the system's of the same name */
		if (is_kind(s, "mount") && conf_named(c, s->name) == s)
			rc = add_mount(s, cfg, e);
	}
	return rc;
}
