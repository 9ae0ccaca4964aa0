/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - parses -o options by the table (options_table.c): values, defaults, conflicts.
 *
 * The mount's own options are listed by name, so that a misspelt option is reported here, with a
 * suggestion, and not by libfuse after the source was opened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/utf8.h"
#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/os/url.h"
#include "mountcfg/address/address.h"
#include "mountcfg/options/option_table.h"

#define KIB ((uint64_t)1 << 10)
#define REMOTE_MIN ((uint64_t)1 << 20) /* least memory for fetched bytes */
#define STRINGS_MAX 256                /* mount options, rules */

#define FIELD(f) offsetof(struct cfg, f)

static bool options_in_list(const char *name, size_t len, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(list[i], name, len) == 0 &&
		    (list[i][len] == '\0' || list[i][len] == '='))
			return true;
	return false;
}

/* options_exact - true if n bytes are a name of the list that takes no value. */
static bool options_exact(const char *name, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && memcmp(list[i], name, n) == 0)
			return true;
	return false;
}

static const struct cfg_option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < cfg_n_options; i++)
		if (strncmp(cfg_options[i].name, name, len) == 0 &&
		    cfg_options[i].name[len] == '\0')
			return &cfg_options[i];
	return NULL;
}

/* concat_words - append "a, b or c". */
static void concat_words(const struct cfg_word *words, struct buf *out)
{
	size_t n = 0;

	while (words[n].text && !words[n].hidden)
		n++;
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			buf_puts(out, i + 1 == n ? " or " : ", ");
		buf_puts(out, words[i].text);
	}
	buf_putc(out, '\0');
}

static int bad_word(const struct cfg_option *o, const char *value, struct err *e)
{
	const char *list[8], *near;
	auto_buf text = buf_of(256);
	size_t n = 0;

	for (const struct cfg_word *w = o->words; w->text && n < ARRAY_LEN(list); w++)
		if (!w->hidden)
			list[n++] = w->text;
	near = value[strspn(value, "0123456789")] ? cfg_nearest(value, list, n) : NULL;
	concat_words(o->words, &text);
	if (near)
		err_set(e, -EINVAL, "-o %s: unknown value '%s': use %s (did you mean %s=%s?)",
			o->name, value, buf_ok(&text) ? (char *)text.data : near, o->name,
			near);
	else
		err_set(e, -EINVAL, "-o %s: unknown value '%s': use %s", o->name, value,
			buf_ok(&text) ? (char *)text.data : "another");
	return -EINVAL;
}

_Static_assert(sizeof(enum cfg_mode) == sizeof(int), "words are stored as int");

static int set_word(const struct cfg_option *o, const char *value, void *field, struct err *e)
{
	for (const struct cfg_word *w = o->words; w->text; w++) {
		if (strcmp(w->text, value) != 0)
			continue;
		if (o->kind == OPT_BOOL)
			*(bool *)field = w->value != 0;
		else
			memcpy(field, &w->value, sizeof(w->value)); /* an enumeration */
		return 0;
	}
	return bad_word(o, value, e);
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
	err_set(e, -EINVAL, "-o %s: bad size '%s': use %s, in bytes or with K, M or G", o->name,
		value, buf_ok(&text) ? (char *)text.data : "a number");
	return -EINVAL;
}

/* options_add_text - append a copy to a list of strings. opt: the option, for messages. */
static int options_add_text(struct cfg_strings *list, const char *opt, const char *text,
			    struct err *e)
{
	if (list->n >= STRINGS_MAX)
		return err_set(e, -EINVAL, "-o %s: repeated too many times", opt);
	return cfg_strings_add(list, text, e);
}

static bool options_is_word(const struct cfg_option *o, const char *value, size_t n)
{
	for (const struct cfg_word *w = o->words; w->text; w++)
		if (strlen(w->text) == n && memcmp(w->text, value, n) == 0)
			return true;
	return false;
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
	if (options_is_word(o, value, strlen(value)))
		return set_word(o, value, &cfg->rules.filter, e);
	return options_add_text(list, o->name, value, e);
}

static bool endpoint_ok(const char *text)
{
	struct url u;
	bool ok;

	if (url_parse(text, &u, NULL) < 0)
		return false;
	ok = (strcmp(u.scheme, "http") == 0 || strcmp(u.scheme, "https") == 0) && !u.user &&
	     !u.password && !u.query && !u.fragment && (!*u.path || strcmp(u.path, "/") == 0);
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
	case OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case OPT_RULE:
		return set_rule(cfg, o, value, e);
	case OPT_LIST:
		return set_list(o, value, field, e);
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
	static const char *const with_value[] = {
		"max_read=", "max_threads=", "max_idle_threads=", "fsname=",     "subtype=",
		"context=",  "fscontext=",   "defcontext=",       "rootcontext="};
	const char *value = opt[len] == '=' ? opt + len + 1 : NULL;
	bool wants = options_in_list(opt, len, with_value, ARRAY_LEN(with_value));
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

/* drop_mount_option - remove earlier occurrences. */
static void drop_mount_option(struct cfg *cfg, const char *name, size_t len)
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
	    (!opt[len] &&
	     options_in_list(opt, len, cfg_ignored_options, cfg_n_ignored_options)))
		return 0;
	if (!options_in_list(opt, len, cfg_mount_options, cfg_n_mount_options))
		return cfg_unknown("-o ", opt, NULL, 0, e);
	rc = check_mount_value(opt, len, e);
	if (rc < 0 || !cfg_from_take_mount(cfg, opt, len))
		return rc;
	if (!opt[len] || no_value(opt + len + 1))
		return options_add_text(&cfg->fuse_opts, opt, opt, e);
	drop_mount_option(cfg, opt, len);
	if (strcmp(opt + len, "=no") == 0)
		return 0;
	name = strndup(opt, len);
	return name ? options_add_text(&cfg->fuse_opts, name, name, e)
		    : err_nomem(e);
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
	const struct cfg_option *o = len ? find_option(opt, len) : NULL;

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
	bool known, wants, joined = value;
	int rc;

	if (!name)
		return err_nomem(e);
	o = find_option(name, strlen(name));
	known = options_in_list(name, strlen(name), cfg_mount_options, cfg_n_mount_options);
	if (!*name || (!o && !known))
		return 0;
	wants = o ? o->kind != OPT_FLAG && o->kind != OPT_BARE
		  : !options_exact(name, strlen(name), cfg_mount_options,
				   cfg_n_mount_options);
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
	if (!*ret)
		return err_nomem(e);
	return 0;
}

int cfg_set_key(struct cfg *cfg, const char *name, const char *value, const char *home,
		struct err *e)
{
	const struct cfg_option *o = find_option(name, strlen(name));
	auto_free char *text = NULL;
	bool flag;
	int rc;

	if (o && o->field == FIELD(config.file))
		return err_set(e, -EINVAL, "%s: allowed only on the command line", name);
	flag = o ? o->kind == OPT_FLAG
		 : options_exact(name, strlen(name), cfg_mount_options, cfg_n_mount_options) &&
			       !strchr(name, '=');
	if (flag && no_value(value))
		return err_set(e, -EINVAL, "%s = %s: takes no value but yes or no: write %s = yes",
			       name, value, name);
	if (o) {
		rc = in_home(o, value, home, &text, e);
		return rc < 0 ? rc : set_known(cfg, o, text ? text : value, e);
	}
	if (strchr(name, '=') ||
	    !options_in_list(name, strlen(name), cfg_mount_options, cfg_n_mount_options))
		return -ENOENT;
	text = str_printf("%s=%s", name, value);
	if (!text)
		return err_nomem(e);
	return set_mount_option(cfg, text, strlen(name), e);
}

/* rule_value - the value of a rule's option in n bytes "filter=..."; NULL: another option. */
static const char *rule_value(const char *one, size_t n, const struct cfg_option **ret)
{
	const char *is = n ? memchr(one, '=', n) : NULL;

	*ret = is ? find_option(one, (size_t)(is - one)) : NULL;
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

	if (!len || !n_value || find_option(next, len) ||
	    options_in_list(next, len, cfg_mount_options, cfg_n_mount_options) ||
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
	const struct cfg_option *o = find_option(next, n);

	if (memchr(next, '=', n))
		return true;
	if (next[n] == '\\')
		return false;
	return n == 0 || (o && (o->kind == OPT_FLAG || o->kind == OPT_BARE)) ||
	       strncmp(next, "x-", 2) == 0 ||
	       options_exact(next, n, cfg_mount_options, cfg_n_mount_options) ||
	       options_exact(next, n, cfg_ignored_options, cfg_n_ignored_options);
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
	return (o->words && options_is_word(o, value, n - (size_t)(value - one))) ||
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
	const struct cfg_option *o = find_option(name, strlen(name));

	return o && cfg->said >> (o - cfg_options) & 1;
}

/* options_asked - true if an option was given for this mount, not for all or many: only then a
 * conflict is an error. */
static bool options_asked(const struct cfg *cfg, const char *name)
{
	return cfg_from_at(cfg, name) >= CFG_AT_NAMED;
}

/* settle_ro - ro and rw cancel each other: the one with higher precedence applies; at equal
 * precedence they are in conflict. */
static int settle_ro(struct cfg *cfg, struct err *e)
{
	const int rw = cfg_from_at(cfg, "rw"), create = cfg_from_at(cfg, "create");
	const int writes = rw > create || !cfg->write.create ? rw : create;
	bool ro = false;

	cfg->write.rw = cfg->write.rw || cfg->write.create;
	for (size_t i = 0; i < cfg->fuse_opts.n; i++)
		ro = ro || strcmp(cfg->fuse_opts.v[i], "ro") == 0;
	if (!ro || !cfg->write.rw)
		return 0;
	if (cfg_from_at(cfg, "ro") == writes)
		return err_set(e, -EINVAL, "-o ro: conflicts with %s: leave out one of them",
			       cfg->write.create ? "create" : "rw");
	if (cfg_from_at(cfg, "ro") > writes)
		cfg->write.rw = cfg->write.create = false;
	else
		drop_mount_option(cfg, "ro", 2);
	return 0;
}

/* settle_writing - check options that only writable mounts have. */
static int settle_writing(struct cfg *cfg, struct err *e)
{
	static const char *const only_rw[] = {"new_files",  "chunks",       "consolidated",
					      "stage_size", "commit_delay", "root"};
	int rc = settle_ro(cfg, e), decided = cfg_from_at(cfg, "ro");

	/* precedence of the decision against rw: options below it were meant for other mounts */
	if (cfg_from_at(cfg, "rw") > decided)
		decided = cfg_from_at(cfg, "rw");
	for (size_t i = 0; i < ARRAY_LEN(only_rw) && rc == 0; i++)
		if (!cfg->write.rw && cfg->command == CFG_MOUNT && options_asked(cfg, only_rw[i]) &&
		    cfg_from_at(cfg, only_rw[i]) >= decided)
			rc = err_set(e, -EINVAL, "-o %s: only with rw", only_rw[i]);
	return rc;
}

/* settle_root - NAME of -o root is one name. */
static int settle_root(const struct cfg *cfg, struct err *e)
{
	const char *s = cfg->write.root;

	if (s && (!*s || strchr(s, '/') || strcmp(s, ".") == 0 || strcmp(s, "..") == 0 ||
		  strlen(s) > 255 || !utf8_ok(s, strlen(s))))
		return err_set(e, -EINVAL, "-o root: must be the name of a directory, such as "
					   "model.zarr");
	return 0;
}

/* settle_remote - set the cache's defaults, and check names that become parts of host names. */
static int settle_remote(struct cfg *cfg, struct err *e)
{
	if (cfg->remote.region && !s3_region_ok(cfg->remote.region))
		return err_set(e, -EINVAL,
			       "-o region: not the name of a region, such as us-east-1");
	if (!cfg->remote.cache_dir && cfg_said(cfg, "disk_cache_size") &&
	    cfg_from_at(cfg, "disk_cache_size") >= CFG_AT_NAMED)
		return err_set(e, -EINVAL, "-o disk_cache_size: only with cache_dir");
	return 0;
}

/* settle_memory - set the sizes that are shares of memory=. */
static void settle_memory(struct cfg *cfg)
{
	cfg->limits.meta_size = cfg->limits.memory / 2;
	cfg->limits.index_size = cfg->limits.memory / 4;
	cfg->limits.image_size = cfg->limits.memory / 8;
	cfg->limits.write_size = cfg->limits.memory / 32;
	if (!cfg_said(cfg, "cache_size"))
		cfg->limits.cache_size = cfg->limits.memory / 32;
	if (!cfg_said(cfg, "remote_cache_size"))
		cfg->remote.cache_size =
			cfg->limits.memory / 16 < REMOTE_MIN ? REMOTE_MIN : cfg->limits.memory / 16;
	if (!cfg_said(cfg, "prefetch_size"))
		cfg->remote.prefetch_size = cfg->limits.memory / 64;
}

/* settle_format - choose the version of Zarr, which several options imply: the option with the
 * highest precedence applies. */
static int settle_format(struct cfg *cfg, struct err *e)
{
	const int format = cfg_from_at(cfg, "zarr_format"), mode = cfg_from_at(cfg, "mode");
	const int shards = cfg->zarr.shard_size ? cfg_from_at(cfg, "shards") : CFG_AT_BUILTIN;
	int three = shards > format ? shards : format;

	if (cfg->zarr.shard_size && !cfg->zarr.zarr3 && shards == format)
		return err_set(e, -EINVAL,
			       "-o shards: Zarr v2 has no shards: leave out zarr_format=2");
	if (cfg->zarr.shard_size && !cfg->zarr.zarr3 && shards < format)
		cfg->zarr.shard_size = 0;
	cfg->zarr.zarr3 = cfg->zarr.zarr3 || cfg->zarr.shard_size > 0;
	if (cfg->zarr.zarr3 && cfg->zarr.mode == CFG_MODE_NCZARR) {
		if (three == mode)
			return err_set(e, -EINVAL,
				       "-o mode=nczarr: only with zarr_format=2: use mode=zarr "
				       "with Zarr v3");
		if (three > mode)
			cfg->zarr.mode = CFG_MODE_ZARR;
		else
			cfg->zarr.zarr3 = false, cfg->zarr.shard_size = 0;
	}
	if (!cfg->zarr.zarr3 && options_asked(cfg, "chunk_key_encoding"))
		return err_set(e, -EINVAL, "-o chunk_key_encoding: only with zarr_format=3");
	return 0;
}

/* settle_rechunk - chunks of other shapes are read-only: of rechunk and rw, the one with higher
 * precedence applies; at equal precedence they are in conflict. */
static int settle_rechunk(struct cfg *cfg, struct err *e)
{
	const int rule = cfg_from_at(cfg, "rechunk"), rw = cfg_from_at(cfg, "rw");
	const int create = cfg_from_at(cfg, "create"), writes = rw > create ? rw : create;

	if (cfg->rules.rechunk.n == 0 || !cfg->write.rw || cfg->command != CFG_MOUNT)
		return 0;
	if (rule == writes)
		return err_set(e, -EINVAL,
			       "-o rechunk: chunks of other shapes are read-only: leave out %s%s",
			       cfg->write.create ? "create" : "rw",
			       cfg->write.create
				       ? ", and use chunks= for the chunks of new variables"
				       : ", or rechunk");
	if (rule > writes) {
		cfg->write.rw = cfg->write.create = false;
		return 0;
	}
	cfg_strings_drop(&cfg->rules.rechunk);
	return 0;
}

/* refuse_writes - reject rw and create of a mount with an option that cannot have them, and name
 * the place of both. */
static int refuse_writes(const struct cfg *cfg, const char *why, const char *instead,
			 struct err *e)
{
	const char *writes = cfg->write.create ? "create" : "rw";

	if (!cfg->write.rw || cfg->command != CFG_MOUNT)
		return 0;
	if (cfg_from_at(cfg, writes) == CFG_AT_LINE)
		return err_set(e, -EINVAL, "-o %s: leave out %s, or %s", why, writes, instead);
	return err_set(e, -EINVAL, "-o %s: leave out %s of %s (-o %s=no), or %s", why, writes,
		       cfg_where(cfg, writes), writes, instead);
}

/* settle_concat - concatenated files are read-only. */
static int settle_concat(const struct cfg *cfg, struct err *e)
{
	if (!cfg->concat.dim &&
	    (options_asked(cfg, "concat_compat") || options_asked(cfg, "concat_index")))
		return err_set(e, -EINVAL, "-o %s: only with concat=DIM",
			       options_asked(cfg, "concat_compat") ? "concat_compat"
								   : "concat_index");
	if (cfg->concat.dim && !*cfg->concat.dim)
		return err_set(e, -EINVAL,
			       "-o concat: name the dimension along which the files are joined: "
			       "concat=time");
	return cfg->concat.dim ? refuse_writes(cfg, "concat: joined files are read-only",
					   "mount one of the files", e)
			   : 0;
}

/* settle_classic - a virtual classic file is read-only, and has a version. */
static int settle_classic(const struct cfg *cfg, struct err *e)
{
	if (cfg->view != CFG_VIEW_CLASSIC && cfg->classic_format &&
	    options_asked(cfg, "classic_format"))
		return err_set(e, -EINVAL, "-o classic_format: only with view=classic");
	return cfg->view == CFG_VIEW_CLASSIC
		       ? refuse_writes(cfg, "view=classic is read-only",
				       "write through view=nc", e)
		       : 0;
}

int cfg_settle(struct cfg *cfg, struct err *e)
{
	int rc = settle_writing(cfg, e);

	if (rc == 0)
		rc = settle_concat(cfg, e);
	if (rc == 0)
		rc = settle_classic(cfg, e);
	if (rc == 0)
		rc = settle_rechunk(cfg, e);
	if (rc == 0)
		rc = settle_root(cfg, e);
	if (rc == 0)
		rc = settle_remote(cfg, e);
	settle_memory(cfg);
	if (rc < 0)
		return rc;
	rc = settle_format(cfg, e);
	if (rc < 0)
		return rc;
	if (!cfg_said(cfg, "dimension_separator"))
		cfg->zarr.nested = cfg->zarr.zarr3 && !cfg->zarr.v2_keys;
	/* only Python reads a zarr.json with a bare NaN, and attributes are in it */
	if (!cfg_said(cfg, "json_nan"))
		cfg->zarr.strict_json = cfg->zarr.zarr3;
	return 0;
}
