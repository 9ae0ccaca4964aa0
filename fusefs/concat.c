/* concat.c - opening many as one, and where what is known of them is kept. */
#include "fusefs/concat.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/log.h"
#include "translate/join.h"

/* cache_dir - of the user's, made when it is not there; NULL: there is none. */
static char *cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL, *ours = NULL;
	int n;

	/* Spec: XDG Base Directory Specification: a relative path there is not valid */
	if (xdg && xdg[0] == '/')
		n = asprintf(&dir, "%s", xdg);
	else if (home && home[0] == '/')
		n = asprintf(&dir, "%s/.cache", home);
	else
		return NULL;
	if (n < 0)
		return NULL;
	n = asprintf(&ours, "%s/nczarrfs", dir);
	if (n >= 0) {
		(void)mkdir(dir, 0700); /* there already; what else is wrong saving says */
		(void)mkdir(ours, 0700);
	}
	free(dir);
	return n < 0 ? NULL : ours;
}

/* index_of - a file for this pattern and dimension; NULL: none. */
static char *index_of(const struct cfg *cfg)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	char *path = NULL;
	auto_free char *dir = NULL;

	if (cfg->concat_index)
		return strcmp(cfg->concat_index, "none") == 0 ? NULL
							      : strdup(cfg->concat_index);
	dir = cache_dir();
	for (const char *s = cfg->source; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3u;
	h = (h ^ (cfg->concat_equal ? 1 : 2)) * 0x100000001b3u;
	for (const char *s = cfg->concat; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3u;
	if (!dir || asprintf(&path, "%s/concat-%016" PRIx64 ".idx", dir, h) < 0)
		return NULL;
	return path;
}

/* may_be_index - what a user has named must be nobody's file, nor become one that is joined. */
static int may_be_index(const struct cfg *cfg, const char *index, struct err *e)
{
	if (!join_index_may_be(index))
		return err_set(e, -EEXIST,
			       "-o concat_index: '%s' is there, and is no index: name another file",
			       index);
	if (fnmatch(cfg->source, index, FNM_PATHNAME) == 0)
		return err_set(e, -EINVAL,
			       "-o concat_index: '%s' is a name that '%s' takes: name another file",
			       index, cfg->source);
	return 0;
}

int fs_concat(const struct fs_setup *setup, const struct source_options *opts,
	      struct source **ret, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	auto_free char *index = NULL;
	struct join_options join = {
		.dim = cfg->concat,
		.equal = cfg->concat_equal,
		.open_members = cfg->open_datasets,
		.cache_bytes = cfg->cache_size / 4, /* the view has its own for what it shows */
		.source = opts,
	};
	int rc = 0;

	if (cfg->remote)
		return err_set(e, -EOPNOTSUPP,
			       "-o concat: '%s' is on another machine: only files here are "
			       "joined: mount each, or copy them",
			       cfg->shown);
	/* members are opened by threads: before them the process that forks others */
	if (setup->prepare && !child_prepared())
		rc = setup->prepare(e);
	if (rc < 0)
		return rc;
	index = index_of(cfg);
	if (cfg->concat_index && index)
		rc = may_be_index(cfg, index, e);
	if (rc < 0)
		return rc;
	join.index_file = index;
	return join_open(setup->formats, setup->n_formats, cfg->source, &join, ret, e);
}

bool fs_concat_takes(const struct cfg *cfg, const char *path)
{
	auto_free char *folder = realpath(cfg->source, NULL);

	if (folder)
		return fs_below(path, folder);
	return fnmatch(cfg->source, path, FNM_PATHNAME) == 0;
}

int fs_concat_hint(const char *path, int rc, struct err *e)
{
	if (rc != -ENOENT || !join_is_pattern(path))
		return rc;
	return err_set(e, rc,
		       "'%s': no such file or directory: to show all files of a pattern as one "
		       "dataset name the dimension that they continue: -o concat=time",
		       path);
}
