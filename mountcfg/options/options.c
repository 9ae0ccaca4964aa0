/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - parses -o options by the table (options_table.c), and prints them.
 *
 * The mount's own options are listed by name, so that a misspelt option is reported here, with a
 * suggestion, and not by libfuse after the source was opened. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/os/url.h"
#include "mountcfg/address/address.h"
#include "mountcfg/options/option_table.h"

#define KIB ((uint64_t)1 << 10)
#define STRINGS_MAX 256                /* mount options, rules */

#define FIELD(f) offsetof(struct cfg, f)

/* options_listed - the name of n bytes in a list: "max_read=" if it takes a value, "ro" if not;
 * NULL: none. */
static const char *options_listed(const char *name, size_t len, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(list[i], name, len) == 0 &&
		    (list[i][len] == '\0' || list[i][len] == '='))
			return list[i];
	return NULL;
}

static const char *mount_option(const char *name, size_t len)
{
	return options_listed(name, len, cfg_mount_options, cfg_n_mount_options);
}

static const char *ignored_option(const char *name, size_t len)
{
	return options_listed(name, len, cfg_ignored_options, cfg_n_ignored_options);
}

const struct cfg_option *cfg_option_find(const char *name, size_t len)
{
	for (size_t i = 0; i < cfg_n_options; i++)
		if (strncmp(cfg_options[i].name, name, len) == 0 &&
		    cfg_options[i].name[len] == '\0')
			return &cfg_options[i];
	return NULL;
}

/* concat_words - append "a, b or c". */
static void concat_words(const char *const *words, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", words[i]);
	buf_putc(out, '\0');
}

static int bad_word(const struct cfg_option *o, const char *value, struct err *e)
{
	const char *list[8] = {NULL}, *near;
	auto_buf text = buf_of(256);
	size_t n = 0;

	for (const struct cfg_word *w = o->words; w->text && n < ARRAY_LEN(list); w++)
		if (!w->hidden)
			list[n++] = w->text;
	near = value[strspn(value, "0123456789")] ? cfg_nearest(value, list, n) : NULL;
	concat_words(list, n, &text);
	if (near)
		return err_set(e, -EINVAL,
			       "-o %s: unknown value '%s': use %s (did you mean %s=%s?)",
			       o->name, value, buf_ok(&text) ? (char *)text.data : near,
			       o->name, near);
	return err_set(e, -EINVAL, "-o %s: unknown value '%s': use %s", o->name, value,
		       buf_ok(&text) ? (char *)text.data : "another");
}

_Static_assert(sizeof(enum cfg_mode) == sizeof(int), "words are stored as int");

/* find_word - the row of a word of n bytes; NULL: none. */
static const struct cfg_word *find_word(const struct cfg_option *o, const char *value, size_t n)
{
	for (const struct cfg_word *w = o->words; w->text; w++)
		if (str_is(w->text, value, n))
			return w;
	return NULL;
}

static int set_word(const struct cfg_option *o, const char *value, void *field, struct err *e)
{
	const struct cfg_word *w = find_word(o, value, strlen(value));

	if (!w)
		return bad_word(o, value, e);
	if (o->kind == OPT_BOOL)
		*(bool *)field = w->value != 0;
	else
		memcpy(field, &w->value, sizeof(w->value)); /* an enumeration */
	return 0;
}

void cfg_put_size(uint64_t v, struct buf *out)
{
	static const char suffix[] = "KMG";
	int i = -1;

	while (i < 2 && v >= KIB && v % KIB == 0) {
		v /= KIB;
		i++;
	}
	buf_printf(out, "%llu", (unsigned long long)v);
	if (i >= 0)
		buf_putc(out, suffix[i]);
}

static int bad_size(const struct cfg_option *o, const char *value, struct err *e)
{
	auto_buf text = buf_of(256);

	cfg_put_size(o->min, &text);
	buf_puts(&text, " to ");
	cfg_put_size(o->max, &text);
	buf_putc(&text, '\0');
	return err_set(e, -EINVAL,
		       "-o %s: bad size '%s': use %s, in bytes or with K, M or G", o->name,
		       value, buf_ok(&text) ? (char *)text.data : "a number");
}

/* options_add_text - append a copy to a list of strings. opt: the option, for messages. */
static int options_add_text(struct cfg_strings *list, const char *opt, const char *text,
			    struct err *e)
{
	if (list->n >= STRINGS_MAX)
		return err_set(e, -EINVAL, "-o %s: repeated too many times", opt);
	return cfg_strings_add(list, text, e);
}

/* for_all - true for a rule "none" or "*,none". */
static bool for_all(const char *value)
{
	if (strncmp(value, "*,", 2) == 0)
		value += 2;
	return strcasecmp(value, "none") == 0;
}

/* set_list - append each name of "time,lat". */
static int set_list(const struct cfg_option *o, const char *value, struct cfg_strings *list,
		    struct err *e)
{
	for (size_t len; *value; value += len + (value[len] == ',')) {
		auto_free char *name = NULL;
		int rc;

		len = strcspn(value, ",");
		name = strndup(value, len);
		rc = !name  ? err_nomem(e)
		     : !len ? err_set(e, -EINVAL, "-o %s: a name is empty", o->name)
			    : options_add_text(list, o->name, name, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* set_rule - a word applies to variables without a rule. After other rules "none" is a rule as
 * well: the last rule for all variables applies to them. */
static int set_rule(struct cfg *cfg, const struct cfg_option *o, const char *value,
		    struct err *e)
{
	struct cfg_strings *list = (struct cfg_strings *)(void *)((char *)cfg + o->field);

	cfg_from_rule(cfg, value);
	if (list == &cfg->rules.filters && for_all(value)) {
		cfg->rules.filter = CFG_FILTER_NONE;
		return list->n ? options_add_text(list, o->name, value, e) : 0;
	}
	if (find_word(o, value, strlen(value)))
		return set_word(o, value, &cfg->rules.filter, e);
	return options_add_text(list, o->name, value, e);
}

static bool endpoint_ok(const char *text)
{
	struct url u = {0};
	bool ok = url_parse(text, &u, NULL) == 0;

	ok = ok && (strcmp(u.scheme, "http") == 0 || strcmp(u.scheme, "https") == 0) &&
	     !u.user && !u.password && !u.query && !u.fragment &&
	     (!*u.path || strcmp(u.path, "/") == 0);
	url_release(&u);
	return ok;
}

/* check_text - check a value when it is read, even if it does not apply. */
static int check_text(const struct cfg_option *o, const char *value, struct err *e)
{
	struct err why = ERR_INIT;

	if (o->field == FIELD(remote.endpoint) && !endpoint_ok(value))
		return err_set(e, -EINVAL,
			       "-o endpoint: write http:// or https://, a host and a port, and "
			       "nothing else: http://127.0.0.1:7480");
	if (o->field == FIELD(log) && log_check(value, &why) < 0)
		return err_set(e, -EINVAL, "-o log=%s", why.msg);
	return 0;
}

static int options_set_value(struct cfg *cfg, const struct cfg_option *o, const char *value,
			     struct err *e)
{
	void *field = (char *)cfg + o->field;
	uint64_t v;
	char *copy;

	if (!*value && (o->kind == OPT_TEXT || o->kind == OPT_RULE || o->kind == OPT_LIST))
		return err_set(e, -EINVAL, "-o %s: needs a value: write %s=...", o->name,
			       o->name);
	switch (o->kind) {
	case OPT_WORD:
	case OPT_BOOL:
		return set_word(o, value, field, e);
	case OPT_SIZE:
	case OPT_BARE:
		if (str_size(value, o->max, &v) < 0 || v < o->min)
			return bad_size(o, value, e);
		*(uint64_t *)field = v;
		return 0;
	case OPT_UINT:
		if (str_u64(value, strlen(value), o->max, &v) < 0 || v < o->min)
			return err_set(e, -EINVAL, "-o %s: bad number '%s': use %llu to %llu",
				       o->name, value, (unsigned long long)o->min,
				       (unsigned long long)o->max);
		*(uint32_t *)field = (uint32_t)v;
		return 0;
	case OPT_TEXT:
		if (check_text(o, value, e) < 0)
			return -EINVAL;
		copy = strdup(value);
		if (!copy)
			return err_nomem(e);
		free(*(char **)field);
		*(char **)field = copy;
		return 0;
	case OPT_RULE:
		return set_rule(cfg, o, value, e);
	case OPT_LIST:
		return set_list(o, value, field, e);
	case OPT_FLAG: /* set_known sets it */
		break;
	}
	return -EINVAL;
}

int cfg_defaults(struct cfg *cfg, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < cfg_n_options && rc == 0; i++)
		if (cfg_options[i].initial && cfg_options[i].kind != OPT_BARE &&
		    cfg_options[i].kind != OPT_TEXT)
			rc = options_set_value(cfg, &cfg_options[i], cfg_options[i].initial, e);
	return rc;
}

/* options_synonym - the option for another word; NULL: none. */
static const char *options_synonym(const char *word)
{
	static const struct {
		const char *word, *option;
	} synonyms[] = {
		{"ahead_size", "prefetch_size"},      {"bad_arrays", "unsupported"},
		{"check_every", "revalidate"},        {"chunk_keys", "chunk_key_encoding"},
		{"chunk_limit", "max_chunk"},         {"chunk_size", "default_chunk_size"},
		{"concat_others", "concat_compat"},   {"connections", "max_connections"},
		{"isolate", "sandbox_codecs"},        {"json", "json_nan"},
		{"link_root", "external_root"},       {"new", "new_files"},
		{"remote_size", "remote_cache_size"}, {"s3_style", "s3_addressing"},
		{"tries", "max_attempts"},            {"retries", "max_attempts"},
		{"index_size", "memory"},             {"meta_size", "memory"},
		{"image_size", "memory"},             {"write_size", "memory"},
	};

	for (size_t i = 0; word && i < ARRAY_LEN(synonyms); i++)
		if (strcmp(synonyms[i].word, word) == 0)
			return synonyms[i].option;
	return NULL;
}

/* nearest_option - the option that a word may mean, "NAME" or "NAME=": a synonym, or one of all
 * options and n extra words; NULL: none. */
static const char *nearest_option(const char *word, const char *const *extra, size_t n)
{
	const char *all[2 * CFG_OPTIONS_MAX + 64], *near = options_synonym(word);

	n = n < 64 ? n : 64;
	for (size_t i = 0; i < n; i++)
		all[i] = extra[i];
	for (size_t i = 0; i < cfg_n_options; i++)
		all[n++] = cfg_options[i].name;
	for (size_t i = 0; i < cfg_n_mount_options; i++)
		all[n++] = cfg_mount_options[i];
	return near || !word ? near : cfg_nearest(word, all, n);
}

int cfg_unknown(const char *lead, const char *name, const char *const *extra, size_t n_extra,
		struct err *e)
{
	auto_free char *word = strndup(name, strcspn(name, "="));
	const char *near = nearest_option(word, extra, n_extra);

	if (near)
		return err_set(e, -EINVAL,
			       "%s%s: unknown option: did you mean '%.*s'? (see nczarrfs help "
			       "options)",
			       lead, name, (int)(*lead ? strlen(near) : strcspn(near, "=")),
			       near);
	return err_set(e, -EINVAL, "%s%s: unknown option: see nczarrfs help options", lead,
		       name);
}

/* no_value - yes and no are values of flags in configuration files. */
static bool no_value(const char *value)
{
	return strcmp(value, "yes") != 0 && strcmp(value, "no") != 0;
}

/* check_mount_value - check numbers in mount options, which libfuse would not check. */
static int check_mount_value(const char *opt, size_t len, struct err *e)
{
	const char *value = opt[len] == '=' ? opt + len + 1 : NULL;
	bool wants = mount_option(opt, len)[len] == '=';
	uint64_t v, min = strncmp(opt, "max_threads", len) == 0 ? 1 : 0;

	if (wants && (!value || !*value))
		return err_set(e, -EINVAL, "-o %.*s: needs a value: write %.*s=...", (int)len,
			       opt, (int)len, opt);
	if (!wants && value && no_value(value))
		return err_set(e, -EINVAL, "-o %s: takes no value but yes or no: write %.*s",
			       opt, (int)len, opt);
	if (wants && strncmp(opt, "max_", 4) == 0 &&
	    (str_u64(value, strlen(value), INT32_MAX, &v) < 0 || v < min))
		return err_set(e, -EINVAL, "-o %.*s: bad number '%s': use %d to %d", (int)len,
			       opt, value, (int)min, (int)INT32_MAX);
	return 0;
}

void cfg_drop_mount_option(struct cfg *cfg, const char *name, size_t len)
{
	size_t kept = 0;

	for (size_t i = 0; i < cfg->fuse_opts.n; i++) {
		char *opt = cfg->fuse_opts.v[i];

		if (strncmp(opt, name, len) == 0 && (!opt[len] || opt[len] == '='))
			free(opt);
		else
			cfg->fuse_opts.v[kept++] = opt;
	}
	cfg->fuse_opts.n = kept;
}

static int set_mount_option(struct cfg *cfg, const char *opt, size_t len, struct err *e)
{
	auto_free char *name = NULL;
	int rc;

	if (strncmp(opt, "x-", 2) == 0 || strncmp(opt, "comment=", 8) == 0 ||
	    (!opt[len] && ignored_option(opt, len)))
		return 0;
	if (!mount_option(opt, len))
		return cfg_unknown("-o ", opt, NULL, 0, e);
	rc = check_mount_value(opt, len, e);
	if (rc < 0 || !cfg_from_take_mount(cfg, opt, len))
		return rc;
	if (!opt[len] || no_value(opt + len + 1))
		return options_add_text(&cfg->fuse_opts, opt, opt, e);
	cfg_drop_mount_option(cfg, opt, len);
	if (strcmp(opt + len, "=no") == 0)
		return 0;
	name = strndup(opt, len);
	return name ? options_add_text(&cfg->fuse_opts, name, name, e) : err_nomem(e);
}

/* set_known - set an option of the table. value: NULL: none given. */
static int set_known(struct cfg *cfg, const struct cfg_option *o, const char *value,
		     struct err *e)
{
	if (o->kind == OPT_FLAG && value && no_value(value))
		return err_set(e, -EINVAL, "-o %s=%s: takes no value but yes or no: write %s",
			       o->name, value, o->name);
	if (o->kind != OPT_FLAG && o->kind != OPT_BARE && !value)
		return err_set(e, -EINVAL, "-o %s: needs a value: write %s=%s", o->name,
			       o->name, o->initial ? o->initial : "...");
	if (o->kind == OPT_BARE && (!value || strcmp(value, "yes") == 0))
		value = o->initial;
	if (!cfg_from_take(cfg, (size_t)(o - cfg_options)))
		return 0;
	cfg->said |= (uint64_t)1 << (o - cfg_options);
	if (o->kind == OPT_FLAG) {
		*(bool *)((char *)cfg + o->field) = !value || strcmp(value, "yes") == 0;
		return 0;
	}
	if (o->kind == OPT_BARE && strcmp(value, "no") == 0) {
		*(uint64_t *)((char *)cfg + o->field) = 0;
		return 0;
	}
	return options_set_value(cfg, o, value, e);
}

/* set_option - set one "name" or "name=value". */
static int set_option(struct cfg *cfg, const char *opt, struct err *e)
{
	size_t len = strcspn(opt, "=");
	const struct cfg_option *o = len ? cfg_option_find(opt, len) : NULL;

	if (!len)
		return err_set(e, -EINVAL, "-o %s: option without a name: see nczarrfs help "
					   "options",
			       opt);
	if (!o)
		return set_mount_option(cfg, opt, len, e);
	return set_known(cfg, o, opt[len] ? opt + len + 1 : NULL, e);
}

/* ---- long options ---- */

/* bad_long - replace "-o NAME" in an error by the name as it was typed. typed: n bytes of it. */
static int bad_long(const char *name, const char *typed, size_t n, int rc, struct err *e)
{
	char text[ERR_TEXT_MAX];
	const size_t len = strlen(name);

	if (!e || strncmp(e->msg, "-o ", 3) != 0 || strncmp(e->msg + 3, name, len) != 0)
		return rc;
	/* text is as long as e's message */
	(void)snprintf(text, sizeof(text), "%s", e->msg + 3 + len);
	return err_set(e, rc, "%.*s%s", (int)n, typed, text);
}

/* long_name - convert "--zarr-format=3" to zarr_format. Returns a copy, or NULL. */
static char *long_name(const char *arg)
{
	char *name = strndup(arg + 2, strcspn(arg + 2, "="));

	for (char *p = name; p && *p; p++)
		if (*p == '-')
			*p = '_';
	return name;
}

int cfg_set_long(struct cfg *cfg, const char *arg, const char *next, struct err *e)
{
	const size_t n = strcspn(arg, "=");
	const char *value = arg[n] ? arg + n + 1 : NULL;
	auto_free char *name = long_name(arg), *opt = NULL;
	const struct cfg_option *o;
	const char *mount;
	bool wants, joined = value;
	int rc;

	if (!name)
		return err_nomem(e);
	o = cfg_option_find(name, strlen(name));
	mount = mount_option(name, strlen(name));
	if (!*name || (!o && !mount))
		return 0;
	wants = o ? o->kind != OPT_FLAG && o->kind != OPT_BARE : strchr(mount, '=') != NULL;
	if (wants && !joined)
		value = next;
	if (wants && (!value || !*value))
		return err_set(e, -EINVAL, "%.*s: needs a value: write %.*s=%s", (int)n, arg,
			       (int)n, arg, o && o->initial ? o->initial : "...");
	if (o) {
		rc = set_known(cfg, o, value, e);
	} else {
		opt = str_printf("%s%s%s", name, value ? "=" : "", value ? value : "");
		if (!opt)
			return err_nomem(e);
		rc = set_mount_option(cfg, opt, strlen(name), e);
	}
	if (rc < 0)
		return bad_long(name, arg, n, rc, e);
	return wants && !joined ? 2 : 1;
}

int cfg_unknown_long(const char *arg, const char *const *flags, size_t n_flags, struct err *e)
{
	const char *words[64], *near;
	auto_free char *word = long_name(arg), *shown = NULL;
	size_t n = 0;

	for (size_t i = 0; i < n_flags && n < 32; i++)
		words[n++] = flags[i];
	for (size_t i = 0; i < cfg_n_flags && n < ARRAY_LEN(words); i++)
		if (strncmp(cfg_flags[i].word, "--", 2) == 0)
			words[n++] = cfg_flags[i].word + 2;
	near = nearest_option(word, words, n);
	shown = near ? strndup(near, strcspn(near, "=")) : NULL;
	if (!shown)
		return err_set(e, -EINVAL, "%s: unknown option: see nczarrfs help options",
			       arg);
	for (char *p = shown; *p; p++)
		if (*p == '_')
			*p = '-';
	return err_set(e, -EINVAL, "%s: unknown option: did you mean --%s?", arg, shown);
}

/* in_home - expand "~/x" to a path below home; other paths must be absolute, because a file applies
 * in every working directory. *ret: NULL: unchanged; otherwise the caller frees it. */
static int in_home(const struct cfg_option *o, const char *value, const char *home, char **ret,
		   struct err *e)
{
	static const char *const paths[] = {"DIR", "FILE", "FILE|none", "SOCKET"};
	bool is_path = false;

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		is_path = is_path || (o->kind == OPT_TEXT && strcmp(o->initial, paths[i]) == 0);
	if (!is_path || value[0] == '/' || !*value ||
	    (strcmp(value, "none") == 0 && strchr(o->initial, '|')))
		return 0;
	if (strncmp(value, "~/", 2) != 0 || !home || home[0] != '/')
		return err_set(e, -EINVAL,
			       "%s: '%s': must be an absolute path, or begin with ~/", o->name,
			       value);
	*ret = str_printf("%s%s", home, value + 1);
	return *ret ? 0 : err_nomem(e);
}

int cfg_set_key(struct cfg *cfg, const char *name, const char *value, const char *home,
		struct err *e)
{
	const struct cfg_option *o = cfg_option_find(name, strlen(name));
	const char *mount = strchr(name, '=') ? NULL : mount_option(name, strlen(name));
	auto_free char *text = NULL;
	bool flag = o ? o->kind == OPT_FLAG : mount && !strchr(mount, '=');
	int rc;

	if (o && o->field == FIELD(config.file))
		return err_set(e, -EINVAL, "%s: allowed only on the command line", name);
	if (flag && no_value(value))
		return err_set(e, -EINVAL, "%s = %s: takes no value but yes or no: write %s = yes",
			       name, value, name);
	if (o) {
		rc = in_home(o, value, home, &text, e);
		return rc < 0 ? rc : set_known(cfg, o, text ? text : value, e);
	}
	if (!mount)
		return -ENOENT;
	text = str_printf("%s=%s", name, value);
	return text ? set_mount_option(cfg, text, strlen(name), e) : err_nomem(e);
}

/* rule_value - the value of a rule's option in n bytes "filter=..."; NULL: another option. */
static const char *rule_value(const char *one, size_t n, const struct cfg_option **ret)
{
	const char *is = n ? memchr(one, '=', n) : NULL;

	*ret = is ? cfg_option_find(one, (size_t)(is - one)) : NULL;
	return *ret && ((*ret)->kind == OPT_RULE || (*ret)->kind == OPT_LIST) ? is + 1 : NULL;
}

/* is_length - true if the n bytes after a comma continue a rule of chunks= or rechunk=: "lat=24" or
 * "lat=all", unless lat is the name of an option. */
static bool is_length(const char *next, size_t n)
{
	const char *is = memchr(next, '=', n);
	const size_t len = is ? (size_t)(is - next) : 0;
	const char *value = is ? is + 1 : next;
	const size_t n_value = n - (size_t)(value - next);

	if (!len || !n_value || cfg_option_find(next, len) || mount_option(next, len) ||
	    strncmp(next, "x-", 2) == 0 || (len == 7 && memcmp(next, "comment", 7) == 0))
		return false;
	return strspn(value, "0123456789") >= n_value ||
	       (n_value == 3 && memcmp(value, "all", 3) == 0);
}

/* is_option - true if the text after a comma begins an option: no other rule has a '=' or an empty
 * piece there, or the name of a flag. */
static bool is_option(const char *next)
{
	const size_t n = strcspn(next, ",\\");
	const struct cfg_option *o = cfg_option_find(next, n);
	const char *mount = mount_option(next, n);

	if (memchr(next, '=', n))
		return true;
	if (next[n] == '\\')
		return false;
	return n == 0 || (o && (o->kind == OPT_FLAG || o->kind == OPT_BARE)) ||
	       strncmp(next, "x-", 2) == 0 ||
	       (mount && !mount[n]) || ignored_option(next, n);
}

/* options_ends - true if the comma before `next` ends the n bytes of option at `one`. */
static bool options_ends(const char *one, size_t n, const char *next)
{
	const struct cfg_option *o;
	const char *value = rule_value(one, n, &o);

	if (!value)
		return true;
	if ((o->field == FIELD(rules.chunks) || o->field == FIELD(rules.rechunk)) &&
	    is_length(next, strcspn(next, ",\\")))
		return false;
	return (o->words && find_word(o, value, n - (size_t)(value - one))) ||
	       is_option(next);
}

int cfg_set_options(struct cfg *cfg, const char *list, struct err *e)
{
	auto_free char *one = malloc(strlen(list) + 1);
	const struct cfg_option *o;
	size_t n = 0;
	int rc = 0;

	if (!one)
		return err_nomem(e);
	for (const char *p = list; rc == 0; p++) {
		if (*p == '\\' && p[1]) {
			if (p[1] != ',' && p[1] != '\\' && rule_value(one, n, &o))
				one[n++] = *p; /* names of variables contain escapes themselves */
			one[n++] = *++p;
			continue;
		}
		if (*p && (*p != ',' || !options_ends(one, n, p + 1))) {
			one[n++] = *p;
			continue;
		}
		one[n] = '\0';
		if (n)
			rc = set_option(cfg, one, e);
		n = 0;
		if (!*p)
			break;
	}
	return rc;
}

bool cfg_said(const struct cfg *cfg, const char *name)
{
	const struct cfg_option *o = cfg_option_find(name, strlen(name));

	return o && cfg->said >> (o - cfg_options) & 1;
}

/* ---- options as a user would type them ---- */

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
