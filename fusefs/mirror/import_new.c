/* SPDX-License-Identifier: BSD-3-Clause */
/* import_new.c - new files and directories in a mirrored directory that become datasets of the
 * other format: x.nc, once written, becomes a store x.zarr; x.zarr, once created, becomes a file
 * x.nc.
 *
 * Until the store is complete, x.nc remains a plain file, so that no failure loses it. The store is
 * created in a state directory and renamed when it is complete; only then is the file removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/core/str.h"
#include "base/os/open_beneath.h"
#include "base/observe/log.h"
#include "fusefs/mirror/mirror_int.h"
#include "fusefs/write/writable.h"
#include "hdf5view/hdf5view.h"

#define HIDDEN ".nczarrfs"

bool mirror_hidden(const char *name)
{
	size_t len = strlen(name), n = sizeof(HIDDEN) - 1;

	return len > n + 1 && name[0] == '.' && strcmp(name + len - n, HIDDEN) == 0;
}

bool new_wanted(const struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		char out[NAME_BYTES])
{
	auto_free char *path = NULL;
	struct stat st;

	if (m->setup->cfg->write.new_as_is || dir->in_dataset || name[0] == '.' ||
	    !name_of_new(name, is_dir, out))
		return false;
	return real_probe(m, dir, out, &path, &st, NULL) == -ENOENT;
}

/* import_new_place - an open directory that was reached without leaving the base, and a name in it.
 * A user with write access to the mirrored directory may place links anywhere on a path, at any
 * time: therefore all operations use open directories. */
struct import_new_place {
	int fd;
	const char *name; /* last component of the original path */
};

static int import_new_place_of(const struct mirror *m, const char *path,
			       struct import_new_place *ret, struct err *e)
{
	ret->fd = real_open_at(m, path, &ret->name, e);
	return ret->fd < 0 ? ret->fd : 0;
}

/* path_in - a path to an entry of an open directory, for code that requires a path. */
static char *path_in(int fd, const char *name)
{
	return str_printf("/proc/self/fd/%d/%s", fd, name);
}

/* workplace - create the state directory of the new store. */
static int workplace(const struct import_new_place *to, char name[NAME_BYTES + 32], int *ret_fd,
		     struct err *e)
{
	struct stat st;

	(void)snprintf(name, NAME_BYTES + 32, ".%s.new" HIDDEN, to->name);
	remove_beneath(to->fd, name); /* left over from a mount that died */
	if (mkdirat(to->fd, name, 0700) < 0)
		return err_sys(e, errno, "'%s'", name);
	*ret_fd = openat(to->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_sys(e, errno, "'%s'", name);
	if (fstat(*ret_fd, &st) < 0)
		return err_sys(e, errno, "'%s'", name);
	return st.st_uid == geteuid() && !(st.st_mode & 077)
		       ? 0
		       : err_set(e, -EACCES, "'%s' was replaced by another program", name);
}

static int make_store(const struct app *setup, struct source *now,
		      const struct import_new_place *to, struct err *e)
{
	char work[NAME_BYTES + 32];
	auto_free char *store = NULL;
	auto_fd int fd = -1;
	int rc = workplace(to, work, &fd, e);

	if (rc < 0)
		return rc;
	store = path_in(fd, "store");
	rc = store ? commit_new(setup, now, store, fd, e) : err_nomem(e);
	rc = rc ? rc : source_check(now, e);
	if (rc == 0 && syncfs(fd) < 0)
		rc = err_sys(e, errno, "'%s'", to->name);
	if (rc == 0 && renameat2(fd, "store", to->fd, to->name, RENAME_NOREPLACE) < 0)
		rc = err_sys(e, errno, "'%s'", to->name);
	if (rc == 0)
		(void)fsync(to->fd); /* the file may exist twice after a crash, which is harmless */
	remove_beneath(to->fd, work);
	return rc;
}

/* remove_read - remove the file that a source was read from, if its name still leads to it. */
static bool remove_read(const struct import_new_place *from, const struct source *now)
{
	struct stat st;

	return fstatat(from->fd, from->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == now->ds.st.st_dev && st.st_ino == now->ds.st.st_ino &&
	       unlinkat(from->fd, from->name, 0) == 0;
}

/* become_store - 1: it is a store now. */
static int become_store(struct mirror *m, const struct import_new_place *from,
			const struct import_new_place *to, struct err *e)
{
	const struct app *setup = m->setup;
	auto_free char *path = path_in(from->fd, from->name);
	const struct source_ops *of = NULL;
	struct source_options opts;
	struct source *now = NULL;
	int rc;

	if (!path)
		return err_nomem(e);
	rc = source_bidder(setup->formats, setup->n_formats, path, &of);
	if (rc < 0)
		return err_sys(e, -rc, "'%s'", path);
	if (!of || of == setup->zarr)
		return 0;
	fs_source_options(setup->cfg, &opts);
	opts.keep_going = false;
	rc = source_open(setup->formats, setup->n_formats, path, &opts, &now, e);
	rc = rc ? rc : make_store(setup, now, to, e);
	if (rc == 0 && !remove_read(from, now))
		log_warn("'%s' was converted to '%s', but could not be "
			 "removed", from->name, to->name);
	source_close(now);
	if (rc < 0)
		return err_wrap(e, rc, "'%s' stays a file", from->name);
	(void)fsync(from->fd); /* as above */
	log_info("'%s' was converted to the Zarr store '%s'", from->name, to->name);
	return 1;
}

int new_store(struct mirror *m, const char *path, const char *to, struct err *e)
{
	struct import_new_place a = {-1, NULL}, b = {-1, NULL};
	int rc = import_new_place_of(m, path, &a, e);

	rc = rc ? rc : import_new_place_of(m, to, &b, e);
	rc = rc ? rc : become_store(m, &a, &b, e);
	if (a.fd >= 0)
		(void)close(a.fd);
	if (b.fd >= 0)
		(void)close(b.fd);
	return rc;
}

int new_file(struct mirror *m, const char *path, struct err *e)
{
	struct import_new_place at;
	auto_free char *full = NULL;
	int rc;

	rc = import_new_place_of(m, path, &at, e);
	if (rc < 0)
		return rc;
	full = path_in(at.fd, at.name);
	rc = full ? hdf5_create(full, (uint64_t)m->setup->cfg->limits.open_timeout * 1000, e)
		  : err_nomem(e);
	(void)close(at.fd);
	return rc < 0 ? err_wrap(e, rc, "'%s'", path) : rc;
}
