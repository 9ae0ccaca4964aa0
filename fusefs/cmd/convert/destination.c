/* destination.c - what a copy may be called, and what it may take the place of: never what it is a
 * copy of, and with --force only what can be told from something that is dear to somebody. */
#include "fusefs/cmd/convert/convert_int.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/core/endings.h"
#include "base/core/str.h"
#include "base/os/url.h"
#include "fusefs/app/concat.h"

/* in_directory - where a copy would be in a directory that was named for it, as cp does it. New. */
static char *in_directory(const struct cfg *cfg)
{
	const char *name = strrchr(cfg->source, '/');
	size_t n = strlen(cfg->out), m;
	char *ret;

	name = name ? name + 1 : cfg->source;
	m = strcspn(name, ".*?[");
	while (n > 1 && cfg->out[n - 1] == '/')
		n--;
	if (asprintf(&ret, "%.*s/%.*s.zarr", (int)n, cfg->out, m ? (int)m : 4,
		     m ? name : "copy") < 0)
		return NULL;
	return ret;
}

/* may_replace_dir - a directory goes only if it is a dataset, or empty. */
static int may_replace_dir(const struct fs_setup *setup, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	const struct source_ops *of = NULL;
	auto_free char *better = NULL;

	if (fs_is_empty_dir(cfg->out))
		return 0;
	if (source_bidder(setup->formats, setup->n_formats, cfg->out, &of) == 0 && of)
		return 0;
	better = in_directory(cfg);
	return err_set(e, -EEXIST,
		       "'%s' is a directory with something else than a dataset in it, and would "
		       "be replaced as a whole: name the copy%s%s",
		       cfg->out, better ? ": " : "", better ? better : "");
}

/* apart_from_members - the files of a pattern, joined, are what is copied. */
static int apart_from_members(const struct cfg *cfg, struct err *e)
{
	glob_t g = {0};
	int rc = 0;

	if (fs_concat_takes(cfg, cfg->out))
		return err_set(e, -EINVAL,
			       "'%s' is a name that '%s' takes: the copy would be one of the "
			       "files that are joined: name another destination",
			       cfg->out, cfg->source);
	if (glob(cfg->source, GLOB_NOSORT, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
			rc = convert_place_apart(g.gl_pathv[i], cfg->out, e);
	globfree(&g);
	return rc;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int convert_dest_unread(const struct cfg *cfg, struct err *e)
{
	struct stat out, have;
	struct dirent *x;
	bool found = false;
	DIR *d;

	if (url_is(cfg->out) || stat(cfg->out, &out) < 0)
		return 0;
	d = opendir("/proc/self/fd");
	while (d && !found && (x = readdir(d)))
		found = fstatat(dirfd(d), x->d_name, &have, 0) == 0 && same_file(&have, &out);
	if (d)
		(void)closedir(d); /* was only read */
	return found ? err_set(e, -EINVAL,
			       "'%s' is one of the files that '%s' is read from: it would be gone: "
			       "name another destination",
			       cfg->out, cfg->shown)
		     : 0;
}

/* known_as - whether a name says that it is something that no copy is. */
static bool known_as(const char *name)
{
	static const char *const others[] = {".gz",  ".bz2",  ".xz",  ".zst", ".tar",
					     ".tgz", ".grib", ".grb", ".csv", ".txt"};
	const enum ending ending = ending_of(name);
	size_t n = strlen(name), m;

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		m = strlen(others[i]);
		if (n > m && strcasecmp(name + n - m, others[i]) == 0)
			return true;
	}
	return ending == ENDING_CLASSIC || ending == ENDING_HDF4 || ending == ENDING_JSON ||
	       ending == ENDING_PARQUET;
}

static int right_name(const struct cfg *cfg, struct err *e)
{
	size_t n = strlen(cfg->out);

	if (n > 1 && strcmp(cfg->out + n - 2, "/-") == 0) /* it is absolute by now */
		return err_set(e, -EINVAL,
			       "a copy is not written to standard output: name a file or "
			       "directory");
	if (known_as(cfg->out) ||
	    (cfg->view == CFG_VIEW_NC && ending_of(cfg->out) == ENDING_ZIP))
		return err_set(e, -EINVAL,
			       "'%s': a copy is a Zarr tree (.zarr, or another name), an archive "
			       "of one (.zip) or a netCDF-4 file (.nc), and would have the wrong "
			       "name: name another",
			       cfg->out);
	return 0;
}

int convert_dest_check(const struct fs_setup *setup, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	auto_free char *better = NULL;
	struct stat st;
	int rc;

	if (url_is(cfg->out))
		return 0;
	rc = right_name(cfg, e);
	if (rc == 0 && !cfg->remote)
		rc = convert_place_apart(cfg->source, cfg->out, e);
	if (rc == 0 && !cfg->remote && cfg->concat)
		rc = apart_from_members(cfg, e);
	if (rc < 0 || lstat(cfg->out, &st) < 0)
		return rc;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(e, -EEXIST,
			       "'%s' is there, and is neither a file nor a directory: name another",
			       cfg->out);
	return S_ISDIR(st.st_mode) && cfg->force ? may_replace_dir(setup, e) : 0;
}
