/* SPDX-License-Identifier: BSD-3-Clause */
/* import.c - files written in a mirrored directory that become datasets, and files that replace a
 * dataset's file.
 *
 * A new file or directory becomes a dataset of the other format: x.nc, once written, becomes a
 * store x.zarr; x.zarr, once created, becomes a file x.nc. Until the store is complete, x.nc
 * remains a plain file, so that no failure loses it. The store is created in a state directory and
 * renamed when it is complete; only then is the file removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/core/str.h"
#include "base/os/open_beneath.h"
#include "base/observe/log.h"
#include "fusefs/mirror/handles_int.h"
#include "fusefs/write/chunk_set.h"
#include "hdf5view/hdf5view.h"

#define HIDDEN ".nczarrfs"
#define COPY_BYTES ((size_t)1 << 20)
#define MEMORY ((uint64_t)256 << 20) /* of a commit */

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

/* A user with write access to the mirrored directory may place links anywhere on a path, at any
 * time: therefore all operations use the open directory of a new file, which was reached without
 * leaving the base. */

/* path_in - a path to an entry of an open directory, for code that requires a path. */
static char *path_in(int fd, const char *name)
{
	return str_printf("/proc/self/fd/%d/%s", fd, name);
}

/* workplace - create the state directory of the new store. */
static int workplace(int dir, const char *to, char name[NAME_BYTES + 32], int *ret_fd,
		     struct err *e)
{
	struct stat st;

	(void)snprintf(name, NAME_BYTES + 32, ".%s.new" HIDDEN, to);
	remove_beneath(dir, name); /* left over from a mount that died */
	if (mkdirat(dir, name, 0700) < 0)
		return err_sys(e, errno, "'%s'", name);
	*ret_fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_sys(e, errno, "'%s'", name);
	if (fstat(*ret_fd, &st) < 0)
		return err_sys(e, errno, "'%s'", name);
	return st.st_uid == geteuid() && !(st.st_mode & 077)
		       ? 0
		       : err_set(e, -EACCES, "'%s' was replaced by another program", name);
}

/* commit_new - create a new Zarr store at `store` with the contents of now. dir_fd: a directory on
 * the same filesystem, for temporary objects. On failure objects may remain in both. */
static int commit_new(const struct app *setup, struct source *now, const char *store, int dir_fd,
		      struct err *e)
{
	struct source_options opts;
	struct source *real = NULL;
	struct diff_job job = {.now = now, .memory = MEMORY};
	const struct zarr_sink_options to =
		rw_zarr_options(&setup->cfg->zarr, NULL, dir_fd, NULL);
	int rc = zarr_create(store, &to, e);

	if (rc < 0)
		return rc;
	fs_source_options(setup->cfg, &opts);
	rc = source_open(setup->formats, setup->n_formats, store, &opts, &real, e);
	rc = rc ? rc : zarr_sink_open(store, real, &to, &job.sink, e);
	if (rc == 0) {
		job.was = real; /* a root without contents */
		rc = commit_push(setup, setup->cfg->zarr.zarr3 ? PLAN_ZARR3 : PLAN_ZARR2, &job, e);
	}
	source_close(real);
	return rc;
}

/* make_store - create the store `to` in a directory. */
static int make_store(const struct app *setup, struct source *now, int dir, const char *to,
		      struct err *e)
{
	char work[NAME_BYTES + 32];
	auto_free char *store = NULL;
	auto_fd int fd = -1;
	int rc = workplace(dir, to, work, &fd, e);

	if (rc < 0)
		return rc;
	store = path_in(fd, "store");
	rc = store ? commit_new(setup, now, store, fd, e) : err_nomem(e);
	rc = rc ? rc : source_check(now, e);
	if (rc == 0 && syncfs(fd) < 0)
		rc = err_sys(e, errno, "'%s'", to);
	if (rc == 0 && renameat2(fd, "store", dir, to, RENAME_NOREPLACE) < 0)
		rc = err_sys(e, errno, "'%s'", to);
	if (rc == 0)
		(void)fsync(dir); /* the file may exist twice after a crash, which is harmless */
	remove_beneath(dir, work);
	return rc;
}

/* remove_read - remove the file that a source was read from, if its name still leads to it. */
static bool remove_read(int dir, const char *from, const struct source *now)
{
	struct stat st;

	return fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == now->ds.st.st_dev && st.st_ino == now->ds.st.st_ino &&
	       unlinkat(dir, from, 0) == 0;
}

/* become_store - turn a file in a directory into the Zarr store `to`, if it is a dataset; if not,
 * and after an error, it stays. */
static int become_store(struct mirror *m, int dir, const char *from, const char *to,
			struct err *e)
{
	const struct app *setup = m->setup;
	auto_free char *path = path_in(dir, from);
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
	rc = rc ? rc : make_store(setup, now, dir, to, e);
	if (rc == 0 && !remove_read(dir, from, now))
		log_warn("'%s' was converted to '%s', but could not be "
			 "removed", from, to);
	source_close(now);
	if (rc < 0)
		return err_wrap(e, rc, "'%s' stays a file", from);
	(void)fsync(dir); /* as above */
	log_info("'%s' was converted to the Zarr store '%s'", from, to);
	return 0;
}

int new_file(struct mirror *m, const char *path, struct err *e)
{
	const char *name;
	auto_fd int fd = real_open_at(m, path, &name, e);
	auto_free char *full = fd < 0 ? NULL : path_in(fd, name);
	int rc;

	if (fd < 0)
		return fd;
	rc = full ? hdf5_create(full, (uint64_t)m->setup->cfg->limits.open_timeout * 1000, e)
		  : err_nomem(e);
	return rc < 0 ? err_wrap(e, rc, "'%s'", path) : rc;
}

/* ---- content ---- */

/* copy_in - copy a real file to a converted view: as a new file that is renamed over the old
 * one. */
static int copy_in(struct slot *s, uint64_t id, uint64_t fh, int fd, struct err *e)
{
	auto_free uint8_t *room = malloc(COPY_BYTES);
	uint64_t off = 0;
	size_t got = 1;
	int rc = room ? 0 : err_nomem(e);

	for (; rc == 0 && got; off += got) {
		rc = real_read_up_to(fd, room, COPY_BYTES, off, &got);
		if (rc < 0)
			return err_sys(e, -rc, "read");
		if (got)
			rc = s->view->write->write(s->view, id, fh, off, room, got, e);
	}
	return rc ? rc : s->view->write->flush(s->view, id, fh, e);
}

int become_feed(struct mirror *m, uint32_t number, int fd, struct err *e)
{
	char name[32];
	struct view_handle h = {0};
	struct view_attr a;
	struct slot *s;
	int rc = write_slot_get(m, number, &s, e);

	if (rc < 0)
		return rc;
	(void)snprintf(name, sizeof(name), ".new-%d",
		       fd); /* the descriptor's number is unique */
	rc = s->view->write->create(s->view, VIEW_ROOT, name, O_RDWR | O_TRUNC, 0600, &a, &h, e);
	if (rc == 0) {
		rc = copy_in(s, a.id, h.fh, fd, e);
		s->view->write->release(s->view, a.id, h.fh);
		if (rc == 0)
			rc = s->view->write->rename(s->view, VIEW_ROOT, name, VIEW_ROOT,
						    s->name, 0, e);
		if (rc < 0)
			(void)s->view->write->unlink(s->view, VIEW_ROOT, name, NULL);
	}
	slot_put(m, s, 0);
	return rc;
}

int become_dataset(struct mirror *m, const struct where *dir, const char *name, struct err *e)
{
	char other[NAME_BYTES];
	auto_free char *path = path_join(dir->path, name);

	if (!new_wanted(m, dir, name, false, other))
		return 0;
	if (!path)
		return err_nomem(e);
	auto_fd int fd = real_open_at(m, path, &name, e);

	return fd < 0 ? fd : become_store(m, fd, name, other, e);
}

/* import_in_dataset - true if a directory, or one above it, is a dataset. */
static bool import_in_dataset(const struct mirror *m, const char *path)
{
	auto_free char *part = strdup(path);
	bool found = !part; /* without memory the file stays as it is */

	for (char *end = part ? part + strlen(part) : NULL; end && end > part && !found;) {
		*end = '\0';
		found = mirror_has(m, part, NAME_PLAIN);
		end = strrchr(part, '/');
	}
	return found;
}

/* import_where_of - the directory of a node's path, and its name there. */
static int import_where_of(struct mirror *m, const char *path, struct where *ret,
			   const char **ret_name, struct err *e)
{
	auto_fd int fd = real_open_at(m, path, ret_name, e);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", path);
	ret->path = strndup(path, *ret_name > path ? (size_t)(*ret_name - path - 1) : 0);
	ret->type = S_IFDIR;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->in_dataset = ret->path && import_in_dataset(m, ret->path);
	return ret->path ? 0 : err_nomem(e);
}

/* become_flushed - for a file that is new and was written. */
int become_flushed(struct mirror *m, uint64_t id, int fd, struct err *e)
{
	auto_where dir = {0}, n = {0};
	const char *name;
	struct stat own, st;
	uint32_t number;
	int rc;

	if (!real_flushed(m, id))
		return 0;
	if (fstat(fd, &own) < 0)
		return err_sys(e, errno, "a new file");
	rc = real_copy(m, id, &n, e);
	if (rc < 0)
		return own.st_nlink ? 0 : rc;
	rc = import_where_of(m, n.path, &dir, &name, e);
	if (rc < 0)
		return rc;
	if (own.st_nlink)
		return real_stat(m, n.path, &st, NULL) == 0 && st.st_ino == own.st_ino &&
				       st.st_dev == own.st_dev
			       ? become_dataset(m, &dir, name, e)
			       : 0;
	/* it is a dataset already: another process continued to write to an inherited descriptor */
	number = write_slot_named(m, &dir, name);
	if (!number)
		return err_set(e, -ESTALE, "'%s' was removed", n.path);
	rc = become_feed(m, number, fd, e);
	slot_forget(m, number, 1);
	return rc;
}
