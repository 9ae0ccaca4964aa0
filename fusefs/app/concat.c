/* SPDX-License-Identifier: BSD-3-Clause */
/* concat.c - opens many datasets as one, and names the file that keeps their index. */
#include "fusefs/app/concat.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/str.h"
#include "base/core/hash.h"
#include "base/observe/log.h"
#include "fusefs/app/dataset_names.h"
#include "translate/concat/concat.h"

/* cache_dir - the user's cache directory, created if it does not exist; NULL: there is none. */
static char *cache_dir(void)
{
	auto_free char *dir = cfg_xdg_dir("XDG_CACHE_HOME", ".cache");
	char *ours = dir ? str_printf("%s/nczarrfs", dir) : NULL;

	if (ours) {
		/* it may exist; other errors are reported when the index is saved */
		(void)mkdir(dir, 0700);
		(void)mkdir(ours, 0700);
	}
	return ours;
}

/* app_concat_index_of - path of the index file for this pattern and dimension; NULL: none. */
static char *app_concat_index_of(const struct cfg *cfg)
{
	uint64_t h;
	auto_free char *dir = NULL;

	if (cfg->concat.index)
		return strcmp(cfg->concat.index, "none") == 0 ? NULL
							      : strdup(cfg->concat.index);
	dir = cache_dir();
	h = hash_text(HASH_SEED, cfg->source);
	h = hash_bytes(h, cfg->concat.equal ? "\1" : "\2", 1);
	h = hash_text(h, cfg->concat.dim);
	return dir ? str_printf("%s/concat-%016" PRIx64 ".idx", dir, h) : NULL;
}

/* may_be_index - an index path that the user names must not be another existing file, nor match the
 * pattern of the files that are concatenated. */
static int may_be_index(const struct cfg *cfg, const char *index, struct err *e)
{
	if (!concat_index_may_be(index))
		return err_set(e, -EEXIST,
			       "-o concat_index: '%s' exists and is not an index: use another "
			       "file",
			       index);
	if (fnmatch(cfg->source, index, FNM_PATHNAME) == 0)
		return err_set(e, -EINVAL,
			       "-o concat_index: '%s' matches the pattern '%s': use another file",
			       index, cfg->source);
	return 0;
}

int fs_concat(const struct app *setup, const struct source_options *opts, struct source **ret,
	      struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	auto_free char *index = NULL;
	struct concat_options join = {
		.dim = cfg->concat.dim,
		.equal = cfg->concat.equal,
		.open_members = cfg->limits.open_datasets,
		/* the view has its own cache for the concatenated data */
		.cache_bytes = cfg->limits.cache_size / 4,
		.named = name_says_dataset,
		.source = opts,
	};
	int rc;

	if (cfg->is_remote)
		return err_set(e, -EOPNOTSUPP,
			       "-o concat: '%s' is remote, and only local files can be joined: "
			       "mount each file, or copy the files first",
			       cfg->shown);
	/* threads open the members: the process that forks has to exist before them */
	rc = app_prepare(setup, e);
	if (rc < 0)
		return rc;
	index = app_concat_index_of(cfg);
	if (cfg->concat.index && index)
		rc = may_be_index(cfg, index, e);
	if (rc < 0)
		return rc;
	join.index_file = index;
	return concat_open(setup->formats, setup->n_formats, cfg->source, &join, ret, e);
}

/* in_pattern - true if the pattern names a path below the pattern's folder, or looks through it.
 * rest and name start after the folder. */
static bool in_pattern(const char *rest, const char *name)
{
	auto_free char *part = strdup(rest);

	if (!part || fnmatch(rest, name, FNM_PATHNAME | FNM_PERIOD) == 0)
		return true;
	for (char *end = strrchr(part, '/'); end; end = strrchr(part, '/')) {
		*end = '\0';
		if (fnmatch(part, name, FNM_PATHNAME | FNM_PERIOD) == 0)
			return true;
	}
	return false;
}

bool fs_concat_takes(const struct cfg *cfg, const char *path)
{
	auto_free char *whole = realpath(cfg->source, NULL);
	auto_free char *folder = concat_folder(cfg->source);
	auto_free char *real = folder ? realpath(folder, NULL) : NULL;
	const char *rest, *name;

	if (whole)
		return fs_below(path, whole);
	if (!real || !fs_below(path, real))
		return false;
	rest = cfg->source + strlen(folder);
	name = path + strlen(real);
	return in_pattern(rest + strspn(rest, "/"), name + strspn(name, "/"));
}

/* member_below - the first concatenated file below a directory; NULL: none. New string, free it.
 * The directory itself may be one that the pattern looks through: fs_concat_takes. */
static char *member_below(const char *pattern, const char *dir, bool itself)
{
	glob_t g = {.gl_pathc = 0};
	auto_free char *all = NULL;
	char *found = NULL;

	if (!concat_is_pattern(pattern)) { /* a directory: links in it may lead anywhere */
		all = str_printf("%s/*", pattern);
		if (!all)
			return NULL;
		pattern = all;
	}
	if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc && !found; i++) {
			found = realpath(g.gl_pathv[i], NULL);
			if (found && fs_below(found, dir) && (itself || strcmp(found, dir) != 0))
				break;
			free(found);
			found = NULL;
		}
	}
	globfree(&g);
	return found;
}

char *fs_concat_hidden(const struct cfg *cfg, const char *dir)
{
	auto_free char *folder = concat_folder(cfg->source);
	char *real = folder ? realpath(folder, NULL) : NULL;

	if (real && fs_below(real, dir))
		return real;
	free(real);
	return member_below(cfg->source, dir, !fs_concat_takes(cfg, dir));
}

int fs_concat_hint(const char *path, int rc, struct err *e)
{
	if (rc != -ENOENT || !concat_is_pattern(path))
		return rc;
	return err_set(e, rc,
		       "'%s': no such file or directory: to join the files of a pattern, name "
		       "the dimension to join along: -o concat=time",
		       path);
}
