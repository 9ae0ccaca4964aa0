/* SPDX-License-Identifier: BSD-3-Clause */
/* cmdline.c - parses the command line: flags, -o lists, the command, SOURCE and MOUNTPOINT.
 *
 * Flags may precede and follow the positional arguments, because mount.fuse3 requires it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/str.h"
#include "base/os/url.h"
#include "mountcfg/address/address.h"
#include "mountcfg/options/option_table.h"

char *cfg_show(const char *arg)
{
	struct address a;
	char *text;

	if (!url_is(arg))
		return strdup(arg);
	if (address_parse(arg, &a, NULL) < 0)
		return strdup("a URL");
	text = a.shown;
	a.shown = NULL;
	address_release(&a);
	return text;
}

/* cmdline_walk - position in the command line. */
struct cmdline_walk {
	int argc, i;
	char *const *argv;
	char *places[2]; /* positional arguments, borrowed */
	size_t n_places;
	char *variable;   /* of info: the second operand, if it names a variable; NULL */
	/* of mount: the first names, as places; they may be SOURCE and MOUNTPOINT */
	char *names[2];
	bool only_places; /* after "--" */
	const struct cfg_files *files;
	struct conf *conf;                /* NULL: no file is needed; owned */
	const struct conf_section *named; /* section of the named mount; NULL: none */
	char *own[2];                     /* its source and target; owned */
};

static int bad_flag(const struct cfg *cfg, const char *arg, struct err *e)
{
	char usage[CFG_USAGE_MAX];

	return err_set(e, -EINVAL, "%s: unknown flag: %s (see nczarrfs --help)", arg,
		       cfg_command_usage(cfg->command, usage));
}

/* next_arg - the argument after the present one; NULL: none. */
static const char *next_arg(const struct cmdline_walk *w)
{
	return w->i + 1 < w->argc ? w->argv[w->i + 1] : NULL;
}

/* took - the result of a parser of flags that used n arguments, or failed. */
static int took(struct cmdline_walk *w, int n)
{
	if (n < 0)
		return n;
	w->i += n - 1;
	return 0;
}

/* ask_help - --help, or -h: about the command before it or after it. */
static void ask_help(struct cfg *cfg, const struct cmdline_walk *w)
{
	const struct cfg_command_row *c = cfg_command_row(cfg->command);

	if (cfg->command == CFG_MOUNT)
		c = w->n_places || !next_arg(w) ? NULL : cfg_command_find(next_arg(w));
	cfg->command = CFG_HELP;
	cfg->help = c ? HELP_COMMAND : HELP_PROGRAM;
	cfg->help_of = c ? c->command : CFG_MOUNT;
}

/* take_topic - parse `help`, `help COMMAND`, `help options`. */
static int take_topic(struct cfg *cfg, const struct cmdline_walk *w, struct err *e)
{
	const char *topic = next_arg(w) ? next_arg(w) : "", *near;
	const struct cfg_command_row *c = cfg_command_find(*topic == '-' ? "help" : topic);
	const char *words[32] = {"options"};
	size_t n = 1;

	cfg->help = c ? HELP_COMMAND : strcmp(topic, "options") ? HELP_PROGRAM : HELP_OPTIONS;
	cfg->help_of = c ? c->command : CFG_MOUNT;
	if (c || !*topic || cfg->help == HELP_OPTIONS)
		return 0;
	for (size_t i = 1; i < cfg_n_commands && n < ARRAY_LEN(words); i++)
		words[n++] = cfg_commands[i].word;
	near = cfg_nearest(topic, words, n);
	if (near)
		return err_set(e, -EINVAL,
			       "help: no command '%s': did you mean nczarrfs help %s?", topic,
			       near);
	return err_set(e, -EINVAL, "help: no command '%s': see nczarrfs --help", topic);
}

/* long_flag - parse "--name". */
static int long_flag(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	const char *arg = w->argv[w->i];
	static const char *const words[] = {"help", "version", "no_config", "print_config"};
	int n;

	if (strcmp(arg, "--help") == 0) {
		ask_help(cfg, w);
		return 0;
	}
	if (strcmp(arg, "--version") == 0) {
		cfg->command = CFG_VERSION;
		return 0;
	}
	if (strcmp(arg, "--debug") == 0)
		cfg->foreground = true;
	n = cfg_command_flag(cfg, arg, next_arg(w), e);
	if (n == 0)
		n = cfg_set_long(cfg, arg, next_arg(w), e);
	return n ? took(w, n) : cfg_unknown_long(arg, words, ARRAY_LEN(words), e);
}

/* short_flags - parse "-fv", "-oLIST", "-o LIST". */
static int short_flags(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	const char *arg = w->argv[w->i];
	int n = cfg_command_flag(cfg, arg, next_arg(w), e);

	if (n != 0)
		return took(w, n);
	for (const char *p = arg + 1; *p; p++) {
		switch (*p) {
		case 'f':
			cfg->foreground = true;
			break;
		case 'd':
			cfg_from_note(cfg, "debug");
			cfg->debug = cfg->foreground = true;
			break;
		case 'v':
			cfg->verbose = true;
			break;
		case 'a':
			cfg->all = true;
			break;
		case 'h':
			ask_help(cfg, w);
			return 0;
		case 'V':
			cfg->command = CFG_VERSION;
			return 0;
		case 'o':
			if (p[1])
				return cfg_set_options(cfg, p + 1, e);
			if (!next_arg(w))
				return err_set(e, -EINVAL,
					       "-o: needs options after it: see nczarrfs help "
					       "options");
			return cfg_set_options(cfg, w->argv[++w->i], e);
		default:
			return bad_flag(cfg, arg, e);
		}
	}
	return 0;
}

static int cmdline_take_text(const char *text, char **ret, struct err *e)
{
	*ret = strdup(text);
	return *ret ? 0 : err_nomem(e);
}

/* absolute - make a path absolute without resolving it, because it may be a mount whose server
 * died. */
static int absolute(const char *path, char **ret, struct err *e)
{
	auto_free char *cwd = NULL;

	if (path[0] == '/')
		return cmdline_take_text(path, ret, e);
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return err_sys(e, errno, "working directory of '%s'", path);
	while (path[0] == '.' && path[1] == '/' && path[2] && path[2] != '/')
		path += 2;
	*ret = str_printf("%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
	return *ret ? 0 : err_nomem(e);
}

/* without_user - an address as it was typed, without user and password. */
static char *without_user(const char *text)
{
	const char *from = strstr(text, "://") + 3, *host = from;
	size_t n = strcspn(from, "/?#");

	for (size_t i = 0; i < n; i++)
		if (from[i] == '@')
			host = from + i + 1;
	return str_printf("%.*s%s", (int)(from - text), text, host);
}

/* cmdline_wipe - overwrite an argument that contains secrets: this memory is /proc/PID/cmdline,
 * also of forked processes. */
static void cmdline_wipe(char *arg, const char *shown)
{
	size_t n = strlen(arg), m = u64_min(strlen(shown), n);

	memcpy(arg, shown, m);
	explicit_bzero(arg + m, n - m);
}

/* source_of - parse a source as typed: *ret owned. a: gets the address (address_release) if it is a
 * remote one, and is empty otherwise. */
static int source_of(char *arg, char **ret, struct address *a, struct err *e)
{
	int rc;

	*a = (struct address){0};
	rc = address_parse(arg, a, e);
	if (rc < 0)
		return rc;
	if (a->kind == ADDRESS_PATH) {
		rc = absolute(a->path, ret, e);
		address_release(a);
		return rc;
	}
	*ret = without_user(arg);
	if (*ret && (a->user || a->password || a->query))
		cmdline_wipe(arg, a->shown);
	return *ret ? 0 : err_nomem(e);
}

/* writes_web - reject rw for a web server, which cannot be written. */
static int writes_web(const struct cfg *cfg, const struct address *a, struct err *e)
{
	if (!a->shown || a->kind != ADDRESS_HTTP)
		return 0;
	if (cfg->command == CFG_RECOVER)
		return err_set(
			e, -EINVAL,
			"recover: '%s' is on a web server, which is read-only: it has no pending "
			"writes",
			a->shown);
	if (cfg->command == CFG_MOUNT && (cfg->write.rw || cfg->write.create))
		return err_set(
			e, -EINVAL,
			"-o %s: '%s' is on a web server, which is read-only: use s3://, or add "
			"#mode=s3 if the server speaks the S3 protocol",
			cfg->write.create ? "create" : "rw", a->shown);
	return 0;
}

/* add_source - add another source of recover. */
static int add_source(struct cfg *cfg, char *path, struct err *e)
{
	auto_free char *text = NULL;
	struct address a;
	int rc = source_of(path, &text, &a, e);

	rc = rc ? rc : cfg_strings_add(&cfg->more, text, e);
	rc = rc ? rc : writes_web(cfg, &a, e);
	if (text) /* its query may contain a token */
		explicit_bzero(text, strlen(text));
	address_release(&a);
	return rc;
}

/* take_variable - check whether the operand after SOURCE names a variable: it begins with '/', and
 * no such file exists. 1, 0; -ENOMEM. */
static int take_variable(struct cfg *cfg, struct cmdline_walk *w, char *arg, struct err *e)
{
	const struct cfg_command_row *c = cfg_command_row(cfg->command);

	if (!(c->flags & CMD_VARIABLE) || cfg->info.variable || cfg->more.n || arg[0] != '/' ||
	    access(arg, F_OK) == 0 || errno != ENOENT)
		return 0;
	w->variable = arg;
	cfg->info.variable = strdup(arg);
	return cfg->info.variable ? 1 : err_nomem(e);
}

/* keep_source - store one of several sources, as it was typed. */
static int keep_source(struct cfg *cfg, char *arg, struct err *e)
{
	auto_free char *shown = cfg_show(arg);
	int rc = cfg_strings_add(&cfg->more, arg, e);

	if (rc == 0 && shown && url_is(arg))
		cmdline_wipe(arg, shown);
	return rc;
}

/* another_source - the second source of a command with CMD_EACH, or a later one. */
static int another_source(struct cfg *cfg, struct cmdline_walk *w, char *arg, struct err *e)
{
	int rc = take_variable(cfg, w, arg, e);

	if (rc > 0)
		return 0;
	if (rc == 0 && cfg->more.n == 0)
		rc = keep_source(cfg, w->places[0], e);
	if (rc == 0 && w->variable) { /* an operand follows, so it was a source */
		rc = keep_source(cfg, w->variable, e);
		w->variable = NULL;
		free(cfg->info.variable);
		cfg->info.variable = NULL;
	}
	return rc < 0 ? rc : keep_source(cfg, arg, e);
}

/* check_each - reject flags that do not apply to several sources. */
static int check_each(const struct cfg *cfg, struct err *e)
{
	if (cfg->more.n && (cfg->info.variable || cfg->check.resume))
		return err_set(e, -EINVAL, "%s: give one SOURCE only",
			       cfg->info.variable ? "--variable" : "--resume");
	return 0;
}

/* cmdline_add_name - add a name to mount; the first one counts as its required argument. */
static int cmdline_add_name(struct cfg *cfg, struct cmdline_walk *w, char *name,
			    struct err *e)
{
	if (cfg->more.n < ARRAY_LEN(w->names))
		w->names[cfg->more.n] = name;
	w->n_places = 1;
	return cfg_strings_add(&cfg->more, name, e);
}

/* places_max - number of arguments of a command without CMD_MORE. */
static size_t places_max(const struct cfg_command_row *c)
{
	return c->places[0] == PLACE_NONE ? 0 : c->places[1] == PLACE_NONE ? 1 : 2;
}

/* too_many - if an argument is a file that cannot be one, the shell has expanded a pattern. last:
 * the argument after those of the command. */
static int too_many(const struct cfg *cfg, const char *before, const char *last, struct err *e)
{
	char usage[CFG_USAGE_MAX];
	auto_free char *shown = cfg_show(last);

	if (before && cfg_is_file(before))
		return err_set(e, -EINVAL,
			       "too many arguments, from '%s' on: quote a pattern: '*.nc'",
			       shown ? shown : "");
	return err_set(e, -EINVAL, "'%s': too many arguments: %s", shown ? shown : "",
		       cfg_command_usage(cfg->command, usage));
}

static int cmdline_place(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	const struct cfg_command_row *c = cfg_command_row(cfg->command), *found;
	char *arg = w->argv[w->i], usage[CFG_USAGE_MAX];

	if (cfg->command == CFG_MOUNT && w->n_places == 0 && !w->only_places &&
	    (found = cfg_command_find(arg))) {
		cfg->command = found->command;
		return found->command == CFG_HELP ? take_topic(cfg, w, e) : 0;
	}
	if (!*arg)
		return err_set(e, -EINVAL, "'': an argument is empty: %s",
			       cfg_command_usage(cfg->command, usage));
	if (c->places[0] == PLACE_NAME)
		return cmdline_add_name(cfg, w, arg, e);
	if (c->flags & CMD_MORE && w->n_places == 1)
		return add_source(cfg, arg, e);
	if (c->flags & CMD_EACH && w->n_places == 1)
		return another_source(cfg, w, arg, e);
	if (w->n_places >= places_max(c)) {
		if (cfg->command == CFG_MOUNT && !w->only_places &&
		    cfg_command_misspelt(w->places[0], w->places[1], e) < 0)
			return -EINVAL;
		return too_many(cfg, w->n_places ? w->places[w->n_places - 1] : NULL, arg, e);
	}
	w->places[w->n_places++] = arg;
	return 0;
}

static int make_absolute(char **path, struct err *e)
{
	char *full;
	int rc;

	if (!*path)
		return 0;
	rc = absolute(*path, &full, e);
	if (rc < 0)
		return rc;
	free(*path);
	*path = full;
	return 0;
}

/* take_mode - use the mode in the address of a new Zarr store, unless an option sets it. */
static void take_mode(struct cfg *cfg, const struct address *a)
{
	if (!cfg->write.create || cfg_from_at(cfg, "mode") >= CFG_AT_NAMED || !a->mode_nczarr)
		return;
	cfg->zarr.mode = a->mode_noxarray ? CFG_MODE_NOXARRAY
		    : a->mode_zarr   ? CFG_MODE_ZARR
				     : CFG_MODE_NCZARR;
}

/* reads_web - a configuration's `rw` for many sources does not apply to web servers. */
static void reads_web(struct cfg *cfg, const struct address *a)
{
	if (!a->shown || a->kind != ADDRESS_HTTP)
		return;
	if (cfg_from_at(cfg, "rw") < CFG_AT_NAMED)
		cfg->write.rw = false;
	if (cfg_from_at(cfg, "create") < CFG_AT_NAMED)
		cfg->write.create = false;
}

/* take_source - set the command's source, and apply the configuration for it. */
static int take_source(struct cfg *cfg, const struct cmdline_walk *w, char *arg, struct err *e)
{
	struct address a;
	int rc = source_of(arg, &cfg->source, &a, e);

	rc = rc ? rc : conf_apply(w->conf, w->named, cfg->source, cfg, e);
	if (rc < 0) {
		address_release(&a);
		return rc;
	}
	reads_web(cfg, &a);
	cfg->is_remote = a.shown != NULL;
	rc = cmdline_take_text(cfg->is_remote ? a.shown : cfg->source, &cfg->shown, e);
	cfg->user = steal(&a.user);
	cfg->password = steal(&a.password);
	rc = rc ? rc : writes_web(cfg, &a, e);
	if (rc == 0 && cfg->is_remote)
		rc = cfg_rc(cfg, &a, e);
	take_mode(cfg, &a);
	address_release(&a);
	return rc;
}

/* local_path - check that an argument is not an address. */
static int local_path(const struct cfg *cfg, enum cfg_place kind, const char *arg, char **ret,
		      struct err *e)
{
	char usage[CFG_USAGE_MAX];

	if (url_is(arg))
		return err_set(e, -EINVAL, "%s is a URL, but must be a local path: %s",
			       cfg_place_name(kind), cfg_command_usage(cfg->command, usage));
	return absolute(arg, ret, e);
}

/* take_to - set the destination of a copy. */
static int take_to(struct cfg *cfg, char *arg, struct err *e)
{
	struct address a;
	int rc = source_of(arg, &cfg->out, &a, e);

	if (rc == 0 && a.kind == ADDRESS_HTTP)
		rc = err_set(
			e, -EINVAL,
			"'%s' is on a web server, which is read-only: use s3://, or add #mode=s3 "
			"if the server speaks the S3 protocol",
			a.shown);
	else if (rc == 0 && a.shown && !cfg->is_remote)
		rc = cfg_rc(cfg, &a, e);
	address_release(&a);
	return rc;
}

/* cmdline_take_place - process one argument. arg: NULL: an optional one is missing. */
static int cmdline_take_place(struct cfg *cfg, const struct cmdline_walk *w,
			      enum cfg_place kind, char *arg, struct err *e)
{
	if (kind == PLACE_OUT && (!arg || strcmp(arg, "-") == 0))
		return cmdline_take_text("-", &cfg->out, e);
	if (!arg)
		return 0;
	switch (kind) {
	case PLACE_SOURCE:
		return take_source(cfg, w, arg, e);
	case PLACE_MOUNTPOINT:
		return local_path(cfg, kind, arg, &cfg->mountpoint, e);
	case PLACE_TO:
		return take_to(cfg, arg, e);
	case PLACE_OUT:
		return local_path(cfg, kind, arg, &cfg->out, e);
	case PLACE_MOUNT: /* never an address */
		return absolute(arg, &cfg->source, e);
	case PLACE_TEXT:
		return cmdline_take_text(arg, &cfg->out, e);
	case PLACE_NAME:
	case PLACE_NONE:
		break;
	}
	return 0;
}

/* no_json - reject --json, and list the commands that have it. */
static int no_json(struct err *e)
{
	const char *last = NULL;
	auto_buf text = buf_of(1024);

	for (size_t i = 0; i < cfg_n_commands; i++) {
		if (!(cfg_commands[i].flags & CMD_JSON))
			continue;
		if (last)
			buf_printf(&text, "%s%s", text.len ? ", " : "", last);
		last = cfg_commands[i].word;
	}
	buf_printf(&text, " and %s%c", last, '\0');
	return err_set(e, -EINVAL, "--json: only for %s",
		       buf_ok(&text) ? (char *)text.data : "some commands");
}

static int take_places(struct cfg *cfg, const struct cmdline_walk *w, struct err *e)
{
	struct cfg_remote *r = &cfg->remote;
	char **const paths[] = {&r->aws_config, &cfg->external_root, &cfg->write.state_dir,
				&r->ca_file,    &r->bearer_file,     &r->netrc_file,
				&r->cache_dir,  &cfg->metrics,       &cfg->check.resume};
	const struct cfg_command_row *c = cfg_command_row(cfg->command);
	char usage[CFG_USAGE_MAX];
	bool each; /* several sources: a process for each reads its configuration */
	int rc = 0;

	if (cfg->command == CFG_MOUNT && !w->named && !w->only_places && w->n_places)
		rc = cfg_command_misspelt(
			w->places[0], w->n_places > 1 ? w->places[1] : NULL, e);
	if (rc < 0)
		return rc;
	if (w->n_places < c->required && !cfg->config.print && !cfg->all)
		return err_set(e, -EINVAL, "%s missing: %s",
			       cfg_place_name(c->places[w->n_places]),
			       cfg_command_usage(cfg->command, usage));
	if (cfg->json && !(c->flags & CMD_JSON))
		return no_json(e);
	rc = cfg_command_flags_check(cfg, e);
	if (cfg->all && (!(c->flags & CMD_ALL) || cfg->more.n))
		return err_set(e, -EINVAL,
			       "-a: only mount and umount have it, in place of names");
	if (rc == 0 && c->flags & CMD_EACH)
		rc = check_each(cfg, e);
	each = c->flags & CMD_EACH && cfg->more.n;
	if (rc == 0 && w->conf && (c->places[0] != PLACE_SOURCE || !w->n_places || each))
		rc = conf_apply(w->conf, NULL, NULL, cfg, e);
	for (size_t i = 0; i < places_max(c) && rc == 0 && !each; i++)
		rc = cmdline_take_place(cfg, w, c->places[i],
					i < w->n_places ? w->places[i] : NULL, e);
	for (size_t i = 0; i < ARRAY_LEN(paths) && rc == 0; i++)
		rc = make_absolute(paths[i], e);
	if (rc == 0 && cfg->concat.index && strcmp(cfg->concat.index, "none") != 0)
		rc = make_absolute(&cfg->concat.index, e);
	return rc;
}

/* without_all - remove -a from a flag or from several flag letters, because the processes get names
 * instead. false: nothing remains. */
static bool without_all(char *flag)
{
	char *to = flag + 1;

	if (flag[1] == '-')
		return strcmp(flag, "--all") != 0;
	for (const char *p = flag + 1; *p; p++) {
		if (*p == 'o') { /* the rest is a list of options */
			memmove(to, p, strlen(p) + 1);
			return true;
		}
		if (*p != 'a')
			*to++ = *p;
	}
	*to = '\0';
	return flag[1] != '\0';
}

/* cmdline_pass - keep a flag or option for the processes of mount NAME NAME. */
static int cmdline_pass(struct cfg *cfg, const struct cmdline_walk *w, int first, struct err *e)
{
	int rc = cfg_strings_add(&cfg->passed, w->argv[first], e);

	if (rc == 0 && !without_all(cfg->passed.v[cfg->passed.n - 1]))
		free(cfg->passed.v[--cfg->passed.n]);
	for (int i = first + 1; i <= w->i && i < w->argc && rc == 0; i++)
		rc = cfg_strings_add(&cfg->passed, w->argv[i], e);
	return rc;
}

static int walk_arguments(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	int rc = 0;

	for (; rc == 0 && w->i < w->argc; w->i++) {
		const char *arg = w->argv[w->i];
		const int first = w->i;

		if (w->only_places || arg[0] != '-' || !arg[1]) {
			rc = cmdline_place(cfg, w, e);
			if (cfg->command == CFG_HELP)
				return rc;
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			w->only_places = true;
			continue;
		}
		rc = arg[1] == '-' ? long_flag(cfg, w, e) : short_flags(cfg, w, e);
		if (cfg->command == CFG_HELP || cfg->command == CFG_VERSION)
			return rc;
		rc = rc ? rc : cmdline_pass(cfg, w, first, e);
	}
	return rc;
}

/* open_files - read the configuration files if the command needs any. */
static int open_files(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	const struct cfg_command_row *c = cfg_command_row(cfg->command);
	int rc;

	if (c->places[0] != PLACE_SOURCE && !(c->flags & CMD_FILES))
		return 0;
	rc = conf_open(w->files, cfg, &w->conf, e);
	if (rc < 0 && cfg->command == CFG_UMOUNT && !cfg->config.file) {
		/* a mount can be unmounted in spite of errors in a file */
		cfg->config.note = cfg->config.note ? cfg->config.note : strdup(e ? e->msg : "");
		return 0;
	}
	if (rc == 0 && c->flags & CMD_FILES)
		rc = conf_mounts(w->conf, cfg, e);
	return rc;
}

static int unknown_mount(const struct cfg *cfg, const struct cmdline_walk *w, const char *name,
			 struct err *e)
{
	/* the name may be in a file that was not read */
	if (cfg->config.note)
		return err_set(e, -ENOENT, "'%s': no mount has this name: %s", name,
			       cfg->config.note);
	return conf_unknown_mount(w->conf, name, e);
}

/* is_source - true if the first operand of `mount` is a dataset, not a name that is missing in the
 * configuration. */
static bool is_source(const struct cfg *cfg, const struct cmdline_walk *w)
{
	const char *name = cfg->more.v[0];

	return !conf_named(w->conf, name) &&
	       (url_is(name) || strpbrk(name, "/.*?[") || access(name, F_OK) == 0 ||
		errno != ENOENT || cfg->write.create || cfg->concat.dim);
}

/* lone_source - explain `mount SOURCE` without a mountpoint. */
static int lone_source(const struct cfg *cfg, const struct cmdline_walk *w, struct err *e)
{
	const char *name = cfg->more.v[0];
	auto_free char *shown = cfg_show(name);
	struct stat st;

	if (!url_is(name) && stat(name, &st) < 0)
		return unknown_mount(cfg, w, name, e);
	return err_set(e, -EINVAL,
		       "'%s' is %s, not a named mount: run nczarrfs mount %s MOUNTPOINT",
		       shown ? shown : "",
		       url_is(name)          ? "a URL"
		       : S_ISDIR(st.st_mode) ? "a directory"
					     : "a file",
		       shown ? shown : "SOURCE");
}

/* take_operands - process `mount SOURCE MOUNTPOINT`. */
static int take_operands(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	if (cfg->more.n > 2)
		return too_many(cfg, cfg->more.v[1], cfg->more.v[2], e);
	cfg->command = CFG_MOUNT;
	w->n_places = 2;
	w->places[0] = w->names[0];
	w->places[1] = w->names[1];
	for (size_t i = 0; i < cfg->more.n; i++) /* addresses may contain secrets */
		explicit_bzero(cfg->more.v[i], strlen(cfg->more.v[i]));
	cfg_strings_drop(&cfg->more);
	return 0;
}

/* take_named - process `mount NAME`, a mount of that section. For several names, several processes
 * run. */
static int take_named(struct cfg *cfg, struct cmdline_walk *w, struct err *e)
{
	int rc = 0;

	if (cfg->command != CFG_MOUNT_NAMED)
		return 0;
	if (cfg->more.n && is_source(cfg, w))
		return cfg->more.n == 1 ? lone_source(cfg, w, e) : take_operands(cfg, w, e);
	for (size_t i = 0; i < cfg->more.n; i++)
		if (!conf_named(w->conf, cfg->more.v[i]))
			return unknown_mount(cfg, w, cfg->more.v[i], e);
	if (cfg->more.n != 1)
		return cfg->foreground && !cfg->config.print
			       ? err_set(e, -EINVAL, "-f: mount one NAME only, without -a")
			       : 0;
	w->named = conf_named(w->conf, cfg->more.v[0]);
	cfg->command = CFG_MOUNT;
	w->n_places = 2;
	rc = conf_place(w->named, "source", &w->own[0], e);
	rc = rc ? rc : conf_place(w->named, "target", &w->own[1], e);
	w->places[0] = w->own[0];
	w->places[1] = w->own[1];
	return rc;
}

int cfg_parse(int argc, char *const *argv, const struct cfg_files *files, struct cfg *cfg,
	      struct err *e)
{
	struct cmdline_walk w = {.argc = argc, .i = 1, .argv = argv, .files = files};
	int rc;

	*cfg = (struct cfg){.command = CFG_MOUNT};
	if (argc <= 1) {
		cfg->command = CFG_HELP;
		cfg->help = HELP_USAGE;
		return 0;
	}
	rc = cfg_from_new(cfg, e);
	rc = rc ? rc : cfg_defaults(cfg, e);
	rc = rc ? rc : walk_arguments(cfg, &w, e);
	if (rc == 0 && (cfg->command == CFG_HELP || cfg->command == CFG_VERSION))
		return 0;
	rc = rc ? rc : open_files(cfg, &w, e);
	rc = rc ? rc : take_named(cfg, &w, e);
	rc = rc ? rc : take_places(cfg, &w, e);
	if (rc == 0)
		rc = cfg_settle(cfg, e) < 0 ? cfg_place_error(cfg, e) : 0;
	if (rc == 0 && cfg->config.print)
		cfg->command = CFG_PRINT;
	conf_free(w.conf);
	for (size_t i = 0; i < ARRAY_LEN(w.own); i++)
		str_wipe(w.own[i]);
	if (rc < 0)
		cfg_release(cfg);
	return rc;
}
