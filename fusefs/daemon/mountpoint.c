/* SPDX-License-Identifier: BSD-3-Clause */
/* mountpoint.c - explains in one line why a mount will fail or has failed, and what to do. */
#include "base/core/str.h"
#include "fusefs/app/fusefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/observe/log.h"
#include "fusefs/app/concat.h"
#include "fusefs/daemon/mounter.h"
#include "fusefs/daemon/mountinfo.h"

bool fs_has_option(const struct cfg *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->fuse_opts.n; i++)
		if (strcmp(cfg->fuse_opts.v[i], name) == 0)
			return true;
	return false;
}

static int check_device(struct err *e)
{
	auto_fd int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return 0;
	switch (errno) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return err_set(e, -ENODEV,
			       "/dev/fuse: missing: run 'modprobe fuse', or start the "
			       "container with --device /dev/fuse --cap-add SYS_ADMIN");
	case EACCES:
		return err_set(e, -EACCES,
			       "/dev/fuse: permission denied: an administrator must run 'chmod "
			       "666 /dev/fuse'");
	case EPERM:
		return err_set(e, -EPERM,
			       "/dev/fuse: not permitted: start the container with --device "
			       "/dev/fuse --cap-add SYS_ADMIN");
	default:
		return err_sys(e, errno, "/dev/fuse");
	}
}

/* in_path - true if PATH contains this program. */
static bool in_path(const char *program)
{
	const char *p = getenv("PATH");
	char full[PATH_MAX];

	while (p && *p) {
		int n = (int)strcspn(p, ":");

		if (snprintf(full, sizeof(full), "%.*s/%s", n, p, program) < PATH_MAX &&
		    access(full, X_OK) == 0)
			return true;
		p += n;
		p += *p == ':';
	}
	return false;
}

static int check_helper(const struct cfg *cfg, struct err *e)
{
	if (geteuid() == 0 && !fs_has_option(cfg, "auto_unmount"))
		return 0; /* mounts without fusermount3 */
	if (access("/usr/bin/fusermount3", X_OK) == 0 ||
	    access("/bin/fusermount3", X_OK) == 0 || in_path("fusermount3"))
		return 0;
	return err_set(e, -ENOENT, "fusermount3: not found: install the package fuse3");
}

bool fs_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 &&
	       (path[n] == '/' || path[n] == '\0' || (n && dir[n - 1] == '/'));
}

/* make_directory - create the last component of a missing mountpoint. */
static int make_directory(const char *dir, struct err *e)
{
	struct stat st;

	if (mkdir(dir, 0777) == 0)
		return 0;
	switch (errno) {
	case ENOENT:
		return err_set(e, -ENOENT,
			       "mountpoint '%s': its parent directory does not exist: create it "
			       "with mkdir -p '%s'",
			       dir, dir);
	case EEXIST:
		if (stat(dir, &st) < 0)
			return err_set(e, -ENOENT,
				       "mountpoint '%s': a symbolic link to a directory that "
				       "does not exist: create that directory, or use another",
				       dir);
		return 0; /* another process has just created it */
	default:
		return err_sys(e, errno,
			       "mountpoint '%s': does not exist and could not be created", dir);
	}
}

static int check_directory(const struct cfg *cfg, bool *ret_made, struct err *e)
{
	const char *dir = cfg->mountpoint;
	struct stat st;

	if (stat(dir, &st) < 0 && errno == ENOENT) {
		int rc = make_directory(dir, e);

		if (rc < 0)
			return rc;
		*ret_made = true;
	}
	if (stat(dir, &st) < 0) {
		switch (errno) {
		case ENOTCONN:
			return err_set(e, -ENOTCONN,
				       "mountpoint '%s': a stale mount, whose server has died, "
				       "is there: run nczarrfs umount '%s'",
				       dir, dir);
		case EACCES:
			return err_set(e, -EACCES,
				       "mountpoint '%s': permission denied: use a directory "
				       "of your own; if it is another user's mount, it was "
				       "mounted without -o allow_other",
				       dir);
		default:
			return err_sys(e, errno, "mountpoint '%s'", dir);
		}
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "mountpoint '%s': not a directory: %s", dir,
			       !cfg->is_remote && fs_is_empty_dir(cfg->source)
				       ? "write nczarrfs SOURCE MOUNTPOINT, in this order"
				       : "name an empty directory");
	return 0;
}

/* heal - unmount a mount of ours whose server died, as its supervisor would have done. */
static void heal(const char *mountpoint)
{
	enum { STACKED_MAX = 16 };
	auto_free char *dir = mounted_resolve(mountpoint);
	uint64_t id;

	for (int i = 0; dir && i < STACKED_MAX; i++) {
		id = fs_mount_id(dir);
		if (!id || !fs_is_dead(dir) || !mounter_remove(dir, id))
			return;
		log_note("'%s': removed a stale nczarrfs mount (its server had died)", dir);
	}
}

bool fs_is_empty_dir(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *entry;
	bool empty = d != NULL;

	errno = 0;
	while (empty && (entry = readdir(d)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	empty = empty && errno == 0;
	if (d)
		(void)closedir(d); /* only read: no error to report */
	return empty;
}

/* looks_like_tree - true if a directory has metadata files of a Zarr dataset. */
static bool looks_like_tree(const char *dir)
{
	static const char *const docs[] = {".zgroup", ".zarray", ".zmetadata", "zarr.json"};

	for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
		auto_free char *path = NULL;

		path = str_printf("%s/%s", dir, docs[i]);
		if (path && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* check_hidden - check what the mount would hide. A user who swaps the arguments would see an empty
 * mount in place of the dataset. */
static int check_hidden(const struct cfg *cfg, const char *dir, struct err *e)
{
	if (fs_is_empty_dir(dir) || access(dir, R_OK) < 0)
		return 0;
	if (!cfg->is_remote && fs_is_empty_dir(cfg->source) && looks_like_tree(dir))
		return err_set(e, -EINVAL,
			       "'%s' is an empty directory, and the mountpoint '%s' is a "
			       "dataset: are they swapped? write nczarrfs SOURCE MOUNTPOINT",
			       cfg->source, cfg->mountpoint);
	log_warn("'%s' is not empty: its contents are hidden until it is unmounted",
		 cfg->mountpoint);
	return 0;
}

/* check_own - a mount that hides its own source would send its requests to itself. */
static int check_own(const struct cfg *cfg, const char *dir, struct err *e)
{
	auto_free char *source = NULL, *part = NULL;

	if (cfg->is_remote)
		return 0;
	source = realpath(cfg->source, NULL); /* source_open reports a missing source */
	part = cfg->concat.dim ? fs_concat_hidden(cfg, dir) : NULL;
	if ((!source || !fs_below(source, dir)) && !part)
		return 0;
	return err_set(e, -EBUSY,
		       "mountpoint '%s': the mount would hide '%s': use another directory", dir,
		       part ? part : source);
}

/* check_all - fs_check_mountpoint, except that a directory it created remains on error. */
static int check_all(const struct cfg *cfg, bool *ret_made, struct err *e)
{
	auto_free char *dir = NULL;
	int rc;

	heal(cfg->mountpoint);
	rc = check_directory(cfg, ret_made, e);
	if (rc < 0)
		return rc;
	dir = realpath(cfg->mountpoint, NULL);
	if (!dir)
		return err_sys(e, errno, "mountpoint '%s'", cfg->mountpoint);
	if (fs_mount_id(dir))
		return err_set(
			e, -EBUSY,
			"mountpoint '%s': another nczarrfs mount is there already: unmount it "
			"with nczarrfs umount '%s', or use another directory",
			dir, dir);
	rc = check_own(cfg, dir, e);
	if (rc < 0)
		return rc;
	rc = check_device(e);
	rc = rc ? rc : check_helper(cfg, e);
	return rc < 0 ? rc : check_hidden(cfg, dir, e);
}

int fs_check_mountpoint(const struct cfg *cfg, bool *ret_made, struct err *e)
{
	int rc;

	*ret_made = false;
	rc = check_all(cfg, ret_made, e);
	if (rc < 0 && *ret_made)
		(void)rmdir(cfg->mountpoint); /* created a moment ago */
	return rc;
}

int fs_explain_mount(const struct cfg *cfg, const char *text, struct err *e)
{
	const char *dir = cfg->mountpoint;
	size_t n;

	if (strstr(text, "user_allow_other"))
		return err_set(e, -EIO,
			       "-o allow_other: users may not use it here: an administrator must "
			       "add the line 'user_allow_other' to /etc/fuse.conf");
	if (strstr(text, "no write access") || strstr(text, "not owned by user"))
		return err_set(e, -EIO,
			       "mountpoint '%s': not yours to mount on: use a directory that "
			       "you own and may write to",
			       dir);
	if (strstr(text, "too many FUSE"))
		return err_set(e, -EIO,
			       "mountpoint '%s': too many mounts: unmount some, or "
			       "raise mount_max in /etc/fuse.conf",
			       dir);
	if (strstr(text, "Operation not permitted"))
		return err_set(e, -EIO,
			       "mountpoint '%s': mounting is not permitted here: "
			       "start the container with --device /dev/fuse --cap-add "
			       "SYS_ADMIN",
			       dir);
	for (size_t skip; (skip = strncmp(text, "nczarrfs: ", 10) == 0               ? 10
				  : strncmp(text, "fuse: ", 6) == 0                  ? 6
				  : strncmp(text, "fusermount3: ", 13) == 0          ? 13
				  : strncmp(text, "/usr/bin/fusermount3: ", 22) == 0 ? 22
										     : 0);)
		text += skip;
	n = strcspn(text, "\n");
	if (!n)
		return err_set(e, -EIO, "mountpoint '%s': mounting failed: try again with -d",
			       dir);
	return err_set(e, -EIO, "mountpoint '%s': %.*s", dir, (int)n, text);
}
