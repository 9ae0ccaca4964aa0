/* SPDX-License-Identifier: BSD-3-Clause */
/* destination.c - allowed names of a copy, and what it may replace: never its own source, and with
 * --force only files, datasets and empty directories. */
#include "fusefs/cmd/convert/convert_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/core/endings.h"
#include "base/core/str.h"
#include "base/os/io.h"
#include "base/os/open_beneath.h"
#include "base/os/url.h"
#include "fusefs/app/concat.h"

/* in_directory - path of the copy in a directory that was given as destination, as for cp. New. */
static char *in_directory(const struct cfg *cfg)
{
	const char *name = strrchr(cfg->source, '/');
	size_t n = strlen(cfg->out), m;

	name = name ? name + 1 : cfg->source;
	m = strcspn(name, ".*?[");
	while (n > 1 && cfg->out[n - 1] == '/')
		n--;
	return str_printf("%.*s/%.*s.zarr", (int)n, cfg->out, m ? (int)m : 4,
			  m ? name : "copy");
}

/* may_replace_dir - a directory is replaced only if it is a dataset or empty. */
static int may_replace_dir(const struct app *setup, struct err *e)
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
		       "'%s' is a directory that is not a dataset, so it is not replaced: name "
		       "the copy%s%s",
		       cfg->out, better ? ": " : "", better ? better : "");
}

/* apart_from_members - the sources of a concatenation are the files of a pattern. */
static int apart_from_members(const struct cfg *cfg, struct err *e)
{
	glob_t g = {0};
	int rc = 0;

	if (fs_concat_takes(cfg, cfg->out))
		return err_set(e, -EINVAL,
			       "'%s' matches the source pattern '%s': use another destination",
			       cfg->out, cfg->source);
	if (glob(cfg->source, GLOB_NOSORT, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
			rc = convert_place_apart(g.gl_pathv[i], cfg->out, e);
	globfree(&g);
	return rc;
}

static bool destination_same_file(const struct stat *a, const struct stat *b)
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
		found = fstatat(dirfd(d), x->d_name, &have, 0) == 0 &&
			destination_same_file(&have, &out);
	if (d)
		(void)closedir(d); /* only read: no error to report */
	return found ? err_set(e, -EINVAL,
			       "'%s' is one of the files that '%s' is read from: use another "
			       "destination",
			       cfg->out, cfg->shown)
		     : 0;
}

/* known_as - true if a name has the ending of a format that convert does not write. */
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
	return ending == ENDING_HDF4 || ending == ENDING_JSON || ending == ENDING_PARQUET;
}

static int right_name(const struct cfg *cfg, struct err *e)
{
	const enum ending ending = ending_of(cfg->out);
	size_t n = strlen(cfg->out);

	if (n > 1 && strcmp(cfg->out + n - 2, "/-") == 0) /* it is absolute by now */
		return err_set(e, -EINVAL,
			       "cannot write a copy to standard output: name a file or a "
			       "directory");
	if (ending == ENDING_CLASSIC && cfg->view != CFG_VIEW_CLASSIC)
		return err_set(e, -EINVAL,
			       "'%s': cannot write a copy with this ending, that of classic "
			       "netCDF, without view=classic: add it, or use .nc",
			       cfg->out);
	if (cfg->view != CFG_VIEW_ZARR && ending == ENDING_TREE)
		return err_set(e, -EINVAL,
			       "'%s': the name is that of a Zarr store, but the copy is a netCDF "
			       "file: use .nc, or view=zarr",
			       cfg->out);
	if (known_as(cfg->out) || (cfg->view != CFG_VIEW_ZARR && ending == ENDING_ZIP))
		return err_set(e, -EINVAL,
			       "'%s': cannot write a copy with this ending: use .zarr, .zip or "
			       ".nc",
			       cfg->out);
	return 0;
}

int convert_dest_check(const struct app *setup, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	struct stat st;
	int rc;

	if (url_is(cfg->out))
		return 0;
	rc = right_name(cfg, e);
	if (rc == 0 && !cfg->is_remote)
		rc = convert_place_apart(cfg->source, cfg->out, e);
	if (rc == 0 && !cfg->is_remote && cfg->concat.dim)
		rc = apart_from_members(cfg, e);
	if (rc < 0 || lstat(cfg->out, &st) < 0)
		return rc;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(e, -EEXIST,
			       "'%s' exists and is neither a file nor a directory: choose "
			       "another name",
			       cfg->out);
	return S_ISDIR(st.st_mode) && cfg->convert.force ? may_replace_dir(setup, e) : 0;
}

/* A copy is written under a temporary name next to its final one, and renamed when it is complete.
 * A partial copy is kept for a run that continues it. */

#define FIRST "nczarrfs convert 1\n"
#define NOTE_MAX 200

/* destination_split - the directory of a path, and its last component, both new; NULL on
 * failure. */
static int destination_split(const char *path, char **ret_dir, char **ret_name, struct err *e)
{
	auto_free char *copy = strdup(path), *name = NULL;
	char *slash;

	if (!copy)
		return err_nomem(e);
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	name = strdup(slash ? slash + 1 : copy);
	if (!name)
		return err_nomem(e);
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, -EINVAL, "'%s' cannot be the name of a new file or directory",
			       path);
	if (slash)
		slash[slash == copy] = '\0';
	*ret_name = steal(&name);
	*ret_dir = steal(&copy);
	return 0;
}

/* take_lock - open and lock the state file, which another run may hold. */
static int take_lock(struct convert_place *p, const char *path, struct err *e)
{
	struct stat have, named;

	for (;;) {
		p->lock = openat(p->parent, p->state, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				 0600);
		if (p->lock < 0)
			return err_sys(e, errno, "the directory of '%s'", path);
		if (flock(p->lock, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK
				       ? err_set(e, -EBUSY,
						 "'%s' is being written by another process", path)
				       : err_sys(e, errno, "'%s'", path);
		named = (struct stat){0};
		if (fstat(p->lock, &have) < 0 ||
		    (fstatat(p->parent, p->state, &named, AT_SYMLINK_NOFOLLOW) < 0 &&
		     errno != ENOENT))
			return err_sys(e, errno, "'%s'", path);
		/* its previous holder may have removed it */
		if (destination_same_file(&have, &named))
			return 0;
		(void)close(p->lock);
	}
}

static int there_already(const char *path, const struct stat *st, struct err *e)
{
	if (S_ISDIR(st->st_mode))
		return err_set(e, -EEXIST,
			       "'%s' already exists: remove it, choose another name, or use "
			       "--force if it is a dataset to replace",
			       path);
	return err_set(e, -EEXIST,
		       "'%s' already exists: remove it, choose another name, or use --force to "
		       "replace it",
		       path);
}

int convert_place_open(const char *path, bool force, struct convert_place *ret, struct err *e)
{
	auto_free char *dir = NULL;
	struct convert_place p = CONVERT_PLACE_INIT;
	struct stat st;
	int rc = destination_split(path, &dir, &p.name, e);

	if (rc < 0)
		return rc;
	p.force = force;
	p.parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p.parent < 0)
		rc = err_sys(e, errno, "'%s', the directory of the copy", dir);
	else if (!force && fstatat(p.parent, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		rc = there_already(path, &st, e);
	if (rc == 0) {
		p.tmp = str_printf(".%s.nczarrfs-copy", p.name);
		p.state = str_printf(".%s.nczarrfs-copy.state", p.name);
		rc = p.tmp && p.state ? 0 : err_nomem(e);
	}
	rc = rc ? rc : take_lock(&p, path, e);
	if (rc < 0)
		convert_place_close(&p, true);
	else
		*ret = p;
	return rc;
}

uint64_t convert_place_done(const struct convert_place *p, uint64_t same)
{
	char text[NOTE_MAX + 1], want[NOTE_MAX];
	struct stat st;
	uint64_t done;
	ssize_t n = pread(p->lock, text, NOTE_MAX, 0);
	size_t m;

	if (n <= 0 || !same || fstatat(p->parent, p->tmp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	text[n] = '\0';
	(void)snprintf(want, sizeof(want), FIRST "source %" PRIu64 "\ndone ", same);
	m = strlen(want);
	if (strncmp(text, want, m) != 0)
		return 0;
	n = (ssize_t)strcspn(text + m, "\n");
	return str_u64(text + m, (size_t)n, UINT64_MAX, &done) == 0 &&
			       strcmp(text + m + n, "\nend\n") == 0
		       ? done
		       : 0;
}

int convert_place_note(const struct convert_place *p, uint64_t same, uint64_t done,
		       struct err *e)
{
	char text[NOTE_MAX];
	int n, rc;

	if (!same)
		return 0;
	/* of a fixed length, so that one write replaces all */
	n = snprintf(text, sizeof(text), FIRST "source %" PRIu64 "\ndone %" PRIu64 "\nend\n",
		     same, done);
	rc = io_pwrite(p->lock, text, (size_t)n, 0, e);
	if (rc == 0 && ftruncate(p->lock, n) < 0)
		rc = err_sys(e, errno, "'%s'", p->state);
	return rc;
}

int convert_place_appear(struct convert_place *p, struct err *e)
{
	struct stat st;
	bool there = fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	unsigned flags = !p->force ? RENAME_NOREPLACE : there ? RENAME_EXCHANGE : 0;
	int rc;

	if (renameat2(p->parent, p->tmp, p->parent, p->name, flags) < 0) {
		rc = errno;
		if (rc == EEXIST)
			return err_set(e, -EEXIST, "'%s' was created by another program "
						   "meanwhile", p->name);
		/* file systems without exchange can still replace files */
		if (rc != EINVAL || !there || S_ISDIR(st.st_mode) ||
		    renameat(p->parent, p->tmp, p->parent, p->name) < 0)
			return err_sys(e, rc, "'%s' could not be renamed into place", p->name);
	}
	rc = io_sync(p->parent, true, e);
	if (there)
		remove_beneath(p->parent, p->tmp); /* the replaced file or directory */
	return rc;
}

void convert_place_close(struct convert_place *p, bool keep)
{
	if (!keep) {
		remove_beneath(p->parent, p->tmp);
		(void)unlinkat(p->parent, p->state, 0);
	}
	close_fd(&p->lock);
	close_fd(&p->parent);
	free(p->name);
	free(p->tmp);
	free(p->state);
	*p = (struct convert_place)CONVERT_PLACE_INIT;
}

int convert_place_apart(const char *source, const char *path, struct err *e)
{
	auto_free char *dir = NULL, *name = NULL, *real = NULL, *from = realpath(source, NULL);
	auto_free char *to = NULL, *there = NULL;
	int rc = destination_split(path, &dir, &name, e);

	if (rc < 0)
		return rc;
	real = realpath(dir, NULL);
	if (!from || !real)
		return 0; /* opening them reports the error */
	to = str_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
	if (!to)
		return err_nomem(e);
	there = realpath(to, NULL); /* a link to the source is the source */
	if (fs_below(from, to) || (there && fs_below(from, there)))
		return err_set(
			e, -EINVAL,
			"the source '%s' is the destination '%s', or inside it: use another "
			"destination",
			source, path);
	if (fs_below(to, from))
		return err_set(
			e, -EINVAL,
			"the destination '%s' is inside the source '%s': use another destination",
			path, source);
	return 0;
}
