/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_scan.c - the libraries that may be used as plugins.
 *
 * A user who can write to a library, or to a directory on its path, can make this program run any
 * code. So all of them must belong to root or to this user, and no other user may write to them;
 * only sticky directories, such as the one for temporary files, may be on the path. No library is
 * loaded here. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/str.h"
#include "codecs/plugin/plugin_table.h"

#define NOT_OURS "it belongs to another user"
#define WRITABLE "it is writable by others"
#define DIR_NOT_OURS "a parent directory belongs to another user"
#define DIR_WRITABLE "a parent directory is writable by others"

/* plugin_scan_judge - check one component of a path; last: the target. */
static const char *plugin_scan_judge(const struct stat *st, bool last)
{
	const bool ours = st->st_uid == 0 || st->st_uid == geteuid();

	if (!ours)
		return last ? NOT_OURS : DIR_NOT_OURS;
	if (S_ISLNK(st->st_mode) || !(st->st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	if (last)
		return WRITABLE;
	return st->st_mode & S_ISVTX ? NULL : DIR_WRITABLE;
}

/* Every component of the path is checked; links are checked themselves. */
const char *plugin_distrust(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (const char *p = path; p; p = strchr(p + 1, '/')) {
		size_t n = p == path ? 1 : (size_t)(p - path);
		const char *why;

		if (n >= sizeof(part))
			return "its path is too long";
		memcpy(part, path, n);
		part[n] = '\0';
		if (lstat(part, &st) < 0)
			return "it cannot be examined";
		why = plugin_scan_judge(&st, false);
		if (why)
			return why;
	}
	return lstat(path, &st) < 0 ? "it cannot be examined" : plugin_scan_judge(&st, true);
}

/* plugin_scan_add - takes ownership of path. */
static int plugin_scan_add(struct plugin_libs *l, char *path, const char *why)
{
	auto_free char *own = path, *copy = why ? strdup(why) : NULL;

	if (!path || (why && !copy) ||
	    grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return -ENOMEM;
	l->v[l->n++] = (struct plugin_lib){.path = steal(&own), .why = steal(&copy)};
	return 0;
}

static bool seen(const struct plugin_libs *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].path, path) == 0)
			return true;
	return false;
}

static int plugin_scan_add_file(struct plugin_libs *l, const char *dir, const char *name)
{
	char path[PATH_MAX];
	auto_free char *real = NULL;
	struct stat st;
	const char *why;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return 0;
	real = realpath(path, NULL);
	if (!real || stat(real, &st) < 0)
		return plugin_scan_add(l, strdup(path), "it is a broken symbolic link");
	if (seen(l, real) || !S_ISREG(st.st_mode))
		return 0;
	if (l->n >= PLUGIN_LIBS_MAX)
		return plugin_scan_add(l, steal(&real), "too many libraries");
	why = plugin_distrust(real);
	return plugin_scan_add(l, steal(&real), why);
}

static int is_library(const struct dirent *d)
{
	return fnmatch("lib*.so*", d->d_name, 0) == 0;
}

static int plugin_scan_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* plugin_scan_add_dir - path: absolute, as the user gave it. */
static int plugin_scan_add_dir(struct plugin_libs *l, const char *path)
{
	auto_free char *real = realpath(path, NULL);
	struct dirent **names = NULL;
	const char *why;
	int n, rc = 0;

	if (!real)
		return plugin_scan_add(l, strdup(path),
				       errno == ENOENT ? "no such directory"
						       : "it cannot be examined");
	/* links on the path may be changed later, so that they are checked, too */
	why = plugin_distrust(path);
	if (!why)
		why = plugin_distrust(real);
	if (why)
		return plugin_scan_add(l, steal(&real), why);
	n = scandir(real, &names, is_library, plugin_scan_by_name);
	if (n < 0)
		return plugin_scan_add(l, steal(&real), "it cannot be listed");
	for (int i = 0; i < n; i++) {
		rc = rc ? rc : plugin_scan_add_file(l, real, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return rc;
}

int plugin_dir_next(const char **dirs, const char *from, char **ret)
{
	*ret = NULL;
	while (*dirs && **dirs) {
		const char *dir = *dirs;
		const size_t n = strcspn(dir, ":");

		*dirs += n + (dir[n] == ':');
		if (n == 0 || n >= PATH_MAX)
			continue;
		*ret = str_printf("%s%s%.*s", dir[0] == '/' ? "" : from,
				  dir[0] == '/' ? "" : "/", (int)n, dir);
		return *ret ? 0 : -ENOMEM;
	}
	return 0;
}

int plugin_scan(const char *dirs, const char *from, const char *last, struct plugin_libs *ret)
{
	char *path;
	int rc;

	*ret = (struct plugin_libs){0};
	while ((rc = plugin_dir_next(&dirs, from, &path)) == 0 && path) {
		rc = plugin_scan_add_dir(ret, path);
		free(path);
		if (rc < 0)
			return rc;
	}
	return rc == 0 && last ? plugin_scan_add_dir(ret, last) : rc;
}

void plugin_libs_release(struct plugin_libs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].why);
	}
	free(l->v);
	*l = (struct plugin_libs){0};
}
