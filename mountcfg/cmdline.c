/* cmdline.c - walks the command line: flags, -o lists, the subcommand, SOURCE and MOUNTPOINT.
 *
 * Flags may stand before and after the positional arguments, as mount.fuse3 needs it. */
#include "mountcfg/mountcfg_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USAGE "usage: nczarrfs [options] SOURCE MOUNTPOINT"

/* What stands before the places, and how many of them each has. */
static const struct command {
	enum cfg_command command;
	const char *word;
	size_t places;
	const char *usage;
} commands[] = {
	{CFG_MOUNT, NULL, 2, USAGE},
	{CFG_INFO, "info", 1, "usage: nczarrfs info [--json] [-o ...] SOURCE"},
	{CFG_FILTERS, "filters", 0, "usage: nczarrfs filters [-v] [--json] [-o ...]"},
	{CFG_RECOVER, "recover", 1, "usage: nczarrfs recover [-o ...] SOURCE..."},
	{CFG_REFS, "refs", 1, "usage: nczarrfs refs [-o ...] SOURCE [OUT]"},
};

static const struct command *command_of(const struct cfg *cfg)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (commands[i].command == cfg->command)
			return &commands[i];
	return &commands[0];
}

/* walk - position in the command line. */
struct walk {
	int argc, i;
	char *const *argv;
	const char *places[2]; /* positional arguments, borrowed */
	size_t n_places;
	bool only_places; /* after "--" */
};

static int bad_flag(const struct cfg *cfg, const char *arg, struct err *e)
{
	return err_set(e, -EINVAL, "%s: unknown flag: %s (see nczarrfs --help)", arg,
		       command_of(cfg)->usage);
}

/* long_flag - "--name". */
static int long_flag(struct cfg *cfg, const char *arg, struct err *e)
{
	static const char *const words[] = {"--help", "--version", "--json", "--debug",
					    "--verbose"};
	const char *near;

	if (strcmp(arg, "--help") == 0)
		cfg->command = CFG_HELP;
	else if (strcmp(arg, "--version") == 0)
		cfg->command = CFG_VERSION;
	else if (strcmp(arg, "--json") == 0)
		cfg->json = true;
	else if (strcmp(arg, "--debug") == 0)
		cfg->debug = cfg->foreground = true;
	else if (strcmp(arg, "--verbose") == 0)
		cfg->verbose = true;
	else if ((near = cfg_nearest(arg, words, ARRAY_LEN(words))))
		return err_set(e, -EINVAL, "%s: unknown flag: did you mean %s?", arg, near);
	else
		return bad_flag(cfg, arg, e);
	return 0;
}

/* short_flags - "-fv", "-oLIST", "-o LIST". */
static int short_flags(struct cfg *cfg, struct walk *w, struct err *e)
{
	const char *arg = w->argv[w->i];

	for (const char *p = arg + 1; *p; p++) {
		switch (*p) {
		case 'f':
			cfg->foreground = true;
			break;
		case 'd':
			cfg->debug = cfg->foreground = true;
			break;
		case 'v':
			cfg->verbose = true;
			break;
		case 'h':
			cfg->command = CFG_HELP;
			return 0;
		case 'V':
			cfg->command = CFG_VERSION;
			return 0;
		case 'o':
			if (p[1])
				return cfg_set_options(cfg, p + 1, e);
			if (w->i + 1 >= w->argc)
				return err_set(e, -EINVAL,
					       "-o: needs options after it: see "
					       "nczarrfs --help");
			return cfg_set_options(cfg, w->argv[++w->i], e);
		default:
			return bad_flag(cfg, arg, e);
		}
	}
	return 0;
}

/* absolute - path below the working directory, as text: what it names may be a mount whose
 * server is gone, so that nothing is resolved here. */
static int absolute(const char *path, char **ret, struct err *e)
{
	auto_free char *cwd = NULL;

	if (path[0] == '/') {
		*ret = strdup(path);
		return *ret ? 0 : err_nomem(e);
	}
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return err_sys(e, errno, "working directory of '%s'", path);
	while (path[0] == '.' && path[1] == '/' && path[2] && path[2] != '/')
		path += 2;
	if (asprintf(ret, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path) < 0) {
		*ret = NULL;
		return err_nomem(e);
	}
	return 0;
}

/* add_source - one more that is to be recovered. */
static int add_source(struct cfg *cfg, const char *path, struct err *e)
{
	char **grown = realloc(cfg->more, (cfg->n_more + 1) * sizeof(*grown));
	int rc;

	if (!grown)
		return err_nomem(e);
	cfg->more = grown;
	rc = absolute(path, &grown[cfg->n_more], e);
	if (rc == 0)
		cfg->n_more++;
	return rc;
}

static int place(struct cfg *cfg, struct walk *w, struct err *e)
{
	const char *arg = w->argv[w->i];

	for (size_t i = 1; i < ARRAY_LEN(commands); i++)
		if (cfg->command == CFG_MOUNT && w->n_places == 0 && !w->only_places &&
		    strcmp(arg, commands[i].word) == 0) {
			cfg->command = commands[i].command;
			return 0;
		}
	if (!*arg)
		return err_set(e, -EINVAL, "'': an argument is empty: %s",
			       command_of(cfg)->usage);
	if (cfg->command == CFG_RECOVER && w->n_places == 1)
		return add_source(cfg, arg, e);
	if (cfg->command == CFG_REFS && w->n_places == 1 && !cfg->out) {
		cfg->out = strdup(arg); /* made absolute with the other places */
		return cfg->out ? 0 : err_nomem(e);
	}
	if (w->n_places >= command_of(cfg)->places)
		return err_set(e, -EINVAL, "%s: one argument too many: %s", arg,
			       command_of(cfg)->usage);
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

static int take_places(struct cfg *cfg, const struct walk *w, struct err *e)
{
	const size_t want = command_of(cfg)->places;
	int rc = 0;

	if (w->n_places < want)
		return err_set(e, -EINVAL, "%s missing: %s",
			       w->n_places ? "MOUNTPOINT" : "SOURCE", command_of(cfg)->usage);
	if (cfg->json && (cfg->command == CFG_MOUNT || cfg->command == CFG_RECOVER ||
			  cfg->command == CFG_REFS))
		return err_set(e, -EINVAL, "--json: only info and filters have it: %s",
			       commands[1].usage);
	if (want > 0)
		rc = absolute(w->places[0], &cfg->source, e);
	if (rc == 0 && want == 2)
		rc = absolute(w->places[1], &cfg->mountpoint, e);
	if (rc == 0)
		rc = make_absolute(&cfg->link_root, e);
	if (rc == 0 && cfg->out && strcmp(cfg->out, "-") != 0)
		rc = make_absolute(&cfg->out, e);
	return rc == 0 ? make_absolute(&cfg->state_dir, e) : rc;
}

/* implied - with allow_other the kernel has to check permissions: nobody else does. */
static int implied(struct cfg *cfg, struct err *e)
{
	for (size_t i = 0; i < cfg->n_fuse_opts; i++)
		if (strcmp(cfg->fuse_opts[i], "allow_other") == 0 ||
		    strcmp(cfg->fuse_opts[i], "allow_root") == 0)
			return cfg_set_options(cfg, "default_permissions", e);
	return 0;
}

/* settle_refs - references are to the chunks of a Zarr v2 tree as they are stored. */
static int settle_refs(struct cfg *cfg, struct err *e)
{
	if (cfg->rw || cfg->zarr3 || cfg->mode == CFG_MODE_NCZARR || cfg->view == CFG_VIEW_NC)
		return err_set(e, -EINVAL,
			       "refs: references are to a tree that is read, of Zarr v2 "
			       "without NCZarr's keys: leave out rw, zarr_format=3, shards, "
			       "mode=nczarr and view=nc");
	cfg->view = CFG_VIEW_ZARR;
	if (!cfg_said(cfg, "filter"))
		cfg->filter = CFG_FILTER_KEEP;
	return 0;
}

int cfg_parse(int argc, char *const *argv, struct cfg *cfg, struct err *e)
{
	struct walk w = {.argc = argc, .i = 1, .argv = argv};
	int rc;

	*cfg = (struct cfg){.command = CFG_MOUNT};
	rc = cfg_defaults(cfg, e);
	for (; rc == 0 && w.i < argc; w.i++) {
		const char *arg = argv[w.i];

		if (w.only_places || arg[0] != '-' || !arg[1])
			rc = place(cfg, &w, e);
		else if (strcmp(arg, "--") == 0)
			w.only_places = true;
		else if (arg[1] == '-')
			rc = long_flag(cfg, arg, e);
		else
			rc = short_flags(cfg, &w, e);
		if (cfg->command == CFG_HELP || cfg->command == CFG_VERSION)
			return 0;
	}
	if (rc == 0)
		rc = take_places(cfg, &w, e);
	if (rc == 0)
		rc = implied(cfg, e);
	if (rc == 0)
		rc = cfg_settle(cfg, e);
	if (rc == 0 && cfg->command == CFG_REFS)
		rc = settle_refs(cfg, e);
	if (rc < 0)
		cfg_release(cfg);
	return rc;
}

static void free_texts(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void cfg_release(struct cfg *cfg)
{
	free(cfg->source);
	free(cfg->out);
	free(cfg->address);
	free(cfg->mountpoint);
	free(cfg->link_root);
	free(cfg->state_dir);
	free_texts(cfg->more, cfg->n_more);
	free_texts(cfg->fuse_opts, cfg->n_fuse_opts);
	free_texts(cfg->filter_rules, cfg->n_filter_rules);
	free_texts(cfg->quantize_rules, cfg->n_quantize_rules);
	free_texts(cfg->chunk_rules, cfg->n_chunk_rules);
	free_texts(cfg->unlimited, cfg->n_unlimited);
	*cfg = (struct cfg){.command = CFG_MOUNT};
}
