/* SPDX-License-Identifier: BSD-3-Clause */
/* dir.c - the store over a directory.
 *
 * Every path is resolved by open_beneath() from the root, so that neither a link nor a concurrent
 * rename leads outside. Between calls no file is open, except, for a moment, files that are read
 * in pieces (fd_cache_int.h).
 *
 * A commit changes it by renames. The directory of the last key stays open for the next one; it is
 * synced when it is left, or, if there are many, with all others at the end.
 *
 * Absence must be proven: the kernel also returns ENOENT for a dangling link, and for everything
 * below a root that was removed. So ENOENT is examined before it is returned; this costs no time
 * for existing keys. */
#include "nczarr/store/sorted_keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/os/open_beneath.h"
#include "base/os/io.h"
#include "nczarr/store/fd_cache_int.h"

#define FEW 32 /* directories that are synced one by one */

struct dir_store {
	struct store base;
	int fd;            /* owned */
	uid_t uid;         /* uid for permission checks */
	bool counts_links; /* the file system counts links: 0 means removed */
	struct fd_cache kept;
	/* of changes */
	int parent;    /* the directory of the last key, owned; -1 */
	bool dirty;    /* it was changed */
	bool unsynced; /* a directory was changed and left without a sync: syncfs() is due */
	int synced;    /* directories that were synced */
	char of[STORE_KEY_MAX + 1]; /* key of parent */
};

static struct dir_store *store_dir_of(struct store *s)
{
	return CONTAINER_OF(s, struct dir_store, base);
}

static void dir_close(struct store *s)
{
	fd_cache_release(&store_dir_of(s)->kept);
	close_fd(&store_dir_of(s)->parent); /* changes that were not flushed are repeated */
	(void)close(store_dir_of(s)->fd);
	free(store_dir_of(s));
}

/* ---- keys ---- */

/* from_stat - a file that cannot be opened for reading is odd. name: below at, "" for at itself. */
static void from_stat(const struct dir_store *d, int at, const char *name,
		      const struct stat *st, struct store_stat *ret)
{
	bool is_file = S_ISREG(st->st_mode);

	/* the mode usually decides; otherwise it costs a system call */
	if (is_file && (st->st_mode & 0444) != 0444 &&
	    !(st->st_uid == d->uid && (st->st_mode & 0400)))
		is_file = faccessat(at, name, R_OK, AT_EACCESS | (*name ? 0 : AT_EMPTY_PATH)) ==
				  0 ||
			  errno != EACCES;

	*ret = (struct store_stat){
		.is_dir = S_ISDIR(st->st_mode),
		.odd = !is_file && !S_ISDIR(st->st_mode),
		.size = is_file ? (uint64_t)st->st_size : 0,
		.version = store_version(store_mix_file(st)),
		.changed = clock_ns_of(&st->st_ctim),
	};
}

/* store_dir_absent - whether it is proven that key is absent: neither it nor its first existing
 * part is a dangling link. */
static bool store_dir_absent(const struct dir_store *d, const char *key)
{
	char path[STORE_KEY_MAX + 1];
	size_t len = strlen(key);

	memcpy(path, key, len + 1);
	for (;;) {
		int fd = open_beneath(d->fd, path, O_PATH | O_NOFOLLOW);
		struct stat st;
		char *slash;

		if (fd >= 0) {
			bool proven = fstat(fd, &st) == 0;

			(void)close(fd);
			if (!proven || !S_ISLNK(st.st_mode))
				return proven;
			fd = open_beneath(d->fd, path, O_PATH);
			proven = fd >= 0;
			close_fd(&fd);
			return proven;
		}
		if (fd != -ENOENT && fd != -ENOTDIR)
			return false;
		slash = strrchr(path, '/');
		if (!slash)
			return true;
		*slash = '\0';
	}
}

/* removed - whether an open directory was removed. */
static bool removed(const struct dir_store *d, int fd)
{
	struct stat st;

	return d->counts_links && fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* store_dir_failed - the error for a key that could not be opened; code is from open_beneath(). */
static int store_dir_failed(const struct dir_store *d, const char *key, int code, struct err *e)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		if (removed(d, d->fd))
			return err_set(e, -ESTALE, "'%s': its directory was removed", key);
		if (!store_dir_absent(d, key))
			return err_set(e, -EIO, "'%s' is a broken symbolic link", key);
		return err_set(e, -ENOENT, "'%s': not found", key);
	case -EXDEV:
		return err_set(e, code, "'%s': a symbolic link leads outside the store", key);
	case -ENXIO:
		return err_set(e, -EIO, "'%s' is not a regular file", key);
	default:
		return err_sys(e, -code, "'%s'", key);
	}
}

/* stat_link - stat a key that could not be opened: a dangling link exists, and is `odd`. Returns
 * whether it is one. */
static bool stat_link(const struct dir_store *d, const char *key, int code,
		      struct store_stat *ret)
{
	auto_fd int fd = -1;
	struct stat st;

	if (code != -ENOENT && code != -ENOTDIR && code != -ELOOP && code != -EXDEV &&
	    code != -EACCES)
		return false;
	fd = open_beneath(d->fd, key, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
		return false;
	from_stat(d, fd, "", &st, ret);
	return true;
}

static int dir_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	const struct dir_store *d = store_dir_of(s);
	auto_fd int fd = open_beneath(d->fd, key, O_PATH);
	struct stat st;

	if (fd < 0)
		return stat_link(d, key, fd, ret) ? 0 : store_dir_failed(d, key, fd, e);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", key);
	from_stat(d, fd, "", &st, ret);
	return 0;
}

/* ---- listing ---- */

struct store_dir_listing {
	const struct dir_store *d;
	const char *key;
	int fd;
	bool want_stat;
	store_emit *emit;
	void *arg;
	struct err *e;
};

/* nowhere - whether an error means that a name is a dangling link. All other errors are temporary,
 * and fail the listing. */
static bool nowhere(int code)
{
	return code == -ENOENT || code == -ENOTDIR || code == -ELOOP || code == -EXDEV ||
	       code == -EACCES || code == -EPERM || code == -ENAMETOOLONG;
}

/* stat_target - stat the target of a link, resolved from the root, which it must not leave; or the
 * link itself, as `odd`, if it is dangling. */
static int stat_target(const struct store_dir_listing *l, const char *name,
		       const struct stat *link, struct store_stat *ret)
{
	char path[STORE_KEY_MAX + 1];
	int n = snprintf(path, sizeof(path), "%s%s%s", l->key, *l->key ? "/" : "", name);
	auto_fd int fd = -ENAMETOOLONG;
	struct stat st;

	if (n > 0 && (size_t)n < sizeof(path))
		fd = open_beneath(l->d->fd, path, O_PATH);
	if (fd >= 0 && fstat(fd, &st) < 0)
		return err_sys(l->e, errno, "'%s'", path);
	if (fd >= 0)
		from_stat(l->d, fd, "", &st, ret);
	else if (nowhere(fd))
		from_stat(l->d, l->fd, name, link, ret);
	else
		return err_sys(l->e, -fd, "'%s'", path);
	return 0;
}

/* store_dir_list_entry - emit one entry; returns 1 to stop. */
static int store_dir_list_entry(const struct store_dir_listing *l, const struct dirent *entry)
{
	unsigned char type = entry->d_type;
	struct store_stat ret;
	struct stat st;
	int rc;

	if (!l->want_stat && (type == DT_DIR || type == DT_REG))
		return !l->emit(l->arg, entry->d_name, type == DT_DIR, NULL);
	if (fstatat(l->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0; /* removed since the directory was read */
		if (!nowhere(-errno))
			return err_sys(l->e, errno, "'%s%s%s'", l->key, *l->key ? "/" : "",
				       entry->d_name);
		/* the directory may be listed but not searched: only the name and the type are
		 * known */
		ret = (struct store_stat){.is_dir = type == DT_DIR,
					  .odd = type != DT_DIR,
					  .version = store_version(entry->d_ino)};
	} else if (S_ISLNK(st.st_mode)) {
		rc = stat_target(l, entry->d_name, &st, &ret);
		if (rc < 0)
			return rc;
	} else {
		from_stat(l->d, l->fd, entry->d_name, &st, &ret);
	}
	return !l->emit(l->arg, entry->d_name, ret.is_dir, &ret);
}

static int dir_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		    void *arg, struct err *e)
{
	struct store_dir_listing l = {
		.d = store_dir_of(s),
		.key = key,
		.fd = open_beneath(store_dir_of(s)->fd, key, O_RDONLY | O_DIRECTORY),
		.want_stat = want_stat,
		.emit = emit,
		.arg = arg,
		.e = e};
	const struct dirent *entry;
	bool any = false;
	int rc = 0;
	DIR *dir;

	if (l.fd < 0)
		return store_dir_failed(l.d, key, l.fd, e);
	dir = fdopendir(l.fd);
	if (!dir) {
		rc = err_sys(e, errno, "'%s'", key);
		(void)close(l.fd);
		return rc;
	}
	while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		any = true;
		rc = store_dir_list_entry(&l, entry);
	}
	if (rc == 0 && errno)
		rc = err_sys(e, errno, "cannot list '%s'", key);
	else if (!any && removed(l.d, l.fd))
		rc = store_dir_failed(l.d, key, -ENOENT, e);
	(void)closedir(dir);
	return rc < 0 ? rc : 0;
}

/* ---- reading ---- */

/* open_object - open a regular file for reading. */
static int open_object(const struct dir_store *d, const char *key, struct stat *st,
		       struct err *e)
{
	auto_fd int fd = open_beneath(d->fd, key, O_RDONLY);
	int ret;

	if (fd < 0)
		return store_dir_failed(d, key, fd, e);
	if (fstat(fd, st) < 0)
		return err_sys(e, errno, "'%s'", key);
	if (S_ISDIR(st->st_mode))
		return err_set(e, -EISDIR, "'%s' is a directory", key);
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EIO, "'%s' is not a regular file", key);
	ret = fd;
	fd = -1;
	return ret;
}

/* open_piece - open an object that is read in pieces, from the cache of descriptors if possible. */
static int open_piece(struct dir_store *d, const char *key, struct stat *st, int64_t *ret_since,
		      struct err *e)
{
	int fd = fd_cache_take(&d->kept, key, ret_since);

	if (fd >= 0 && fstat(fd, st) == 0)
		return fd;
	close_fd(&fd); /* opened again below */
	*ret_since = 0;
	return open_object(d, key, st, e);
}

static int dir_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct dir_store *d = store_dir_of(s);
	struct stat st, after;
	int64_t since = 0;
	auto_fd int fd = io->out ? open_object(d, key, &st, e) : open_piece(d, key, &st, &since, e);
	int rc;

	if (fd < 0)
		return fd;
	rc = store_io_size(io, key, (uint64_t)st.st_size, e);
	if (rc < 0)
		return rc;
	rc = io_pread(fd, io->to, io->len, io->off, e);
	if (rc < 0)
		return err_wrap(e, rc, "'%s'", key);
	/* stat after the read: if the version is the known one, the bytes have it, too */
	if (fstat(fd, &after) < 0)
		return err_sys(e, errno, "'%s'", key);
	io->version = store_version(store_mix_file(&after));
	if (io->out && store_mix_file(&st) != store_mix_file(&after))
		return err_set(e, -ESTALE, "'%s' changed while it was read", key);
	if (io->off + io->len < (uint64_t)st.st_size) {
		fd_cache_give(&d->kept, key, fd, since);
		fd = -1; /* taken */
	}
	return 0;
}

/* ---- changes ---- */

/* one_mount - whether a file can be renamed from one directory to the other. */
static bool one_mount(int a, int b)
{
	struct statx x, y;
	const unsigned want = STATX_INO | STATX_MNT_ID;

	if (statx(a, "", AT_EMPTY_PATH, want, &x) < 0 ||
	    statx(b, "", AT_EMPTY_PATH, want, &y) < 0)
		return true; /* rename() reports it */
	if (x.stx_dev_major != y.stx_dev_major || x.stx_dev_minor != y.stx_dev_minor)
		return false;
	return !(x.stx_mask & y.stx_mask & STATX_MNT_ID) || x.stx_mnt_id == y.stx_mnt_id;
}

static int dir_movable(struct store *s, const char *key, int dir, struct err *e)
{
	auto_fd int fd = open_beneath(store_dir_of(s)->fd, key, O_RDONLY | O_DIRECTORY);

	if (!s->id)
		return err_set(e, -EIO, "cannot examine the store");
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(e, -fd, "'%s'", key);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_sys(e, errno, "'%s' is not writable", key);
	if (!one_mount(fd, dir))
		return err_set(e, -EXDEV,
			       "'%s' is on another file system than the state directory",
			       key);
	return 0;
}

/* dir_leave - sync and close the open directory. syncfs() writes what all programs left to be
 * written, so that it is only used after many directories. */
static int dir_leave(struct dir_store *d)
{
	bool sync = d->parent >= 0 && d->dirty;
	int rc = 0;

	if (sync && d->synced < FEW) {
		rc = fsync(d->parent) < 0 ? -errno : 0;
		d->synced++;
	} else if (sync) {
		d->unsynced = true;
	}
	close_fd(&d->parent);
	d->dirty = false;
	return rc;
}

/* dir_parent_of - open the directory of a key, and keep it for the next one; name: the last
 * component. make: create missing directories. Returns 0; -errno without a message. */
static int dir_parent_of(struct dir_store *d, const char *key, bool make, const char **name)
{
	char path[STORE_KEY_MAX + 1];
	int fd, rc;

	*name = store_key_name(key);
	store_key_parent(key, path);
	if (d->parent >= 0 && strcmp(path, d->of) == 0)
		return 0;
	fd = open_beneath(d->fd, path, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT && make && *path) {
		const char *last;

		rc = dir_parent_of(d, path, true, &last);
		if (rc)
			return rc;
		if (mkdirat(d->parent, last, 0777) < 0 && errno != EEXIST)
			return -errno;
		d->dirty = true;
		fd = open_beneath(d->fd, path, O_RDONLY | O_DIRECTORY);
	}
	if (fd < 0)
		return fd;
	rc = dir_leave(d);
	if (rc) {
		(void)close(fd); /* unchanged */
		return rc;
	}
	d->parent = fd;
	memcpy(d->of, path, strlen(path) + 1);
	return 0;
}

/* dir_done - 1 if a move was done before, 0 if not. -errno if that is unknown: a move that is
 * wrongly taken for done would be lost. */
static int dir_done(struct dir_store *d, int dir, const char *path, bool out)
{
	struct stat st;
	int there = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? 1
		    : errno == ENOENT				       ? 0
								       : -errno;
	const int done = there < 0 ? there : there == out;

	if (done)
		d->unsynced = true; /* an earlier run may have ended before it was synced */
	return done;
}

/* Functions for one move return 0; -errno without a message. */
static int move_out(struct dir_store *d, const char *key, int dir, const char *path)
{
	const char *name;
	int rc = dir_parent_of(d, key, false, &name), done;

	if (rc == 0)
		d->dirty = true;
	else if (rc != -ENOENT && rc != -ENOTDIR)
		return rc;
	done = dir_done(d, dir, path, true);
	if (done)
		return done < 0 ? done : 0;
	if (rc == 0)
		rc = renameat(d->parent, name, dir, path) < 0 ? -errno : 0;
	return rc == -ENOENT ? 0 : rc; /* another program removed it */
}

static int move_in(struct dir_store *d, const char *key, int dir, const char *path)
{
	const char *name;
	int rc = dir_parent_of(d, key, false, &name), done;

	d->dirty = true; /* also if an earlier run did it */
	if (rc == 0 && renameat(dir, path, d->parent, name) == 0)
		return 0;
	if (rc && rc != -ENOENT && rc != -ENOTDIR)
		return rc;
	rc = rc ? rc : -errno;
	done = dir_done(d, dir, path, false);
	if (done)
		return done < 0 ? done : 0;
	if (rc == -ENOENT)
		rc = dir_parent_of(d, key, true, &name);
	d->dirty = true;
	return rc == 0 && renameat(dir, path, d->parent, name) < 0 ? -errno : rc;
}

static int dir_move(struct store *s, const char *key, int dir, const char *path, bool out,
		    struct err *e)
{
	int rc = (out ? move_out : move_in)(store_dir_of(s), key, dir, path);

	return rc ? err_sys(e, -rc, "'%s'", key) : 0;
}

static int dir_remove(struct store *s, const char *key, struct err *e)
{
	struct dir_store *d = store_dir_of(s);
	const char *name;
	int rc = dir_parent_of(d, key, false, &name);

	if (rc == 0) {
		d->dirty = true;
		rc = unlinkat(d->parent, name, 0) < 0 ? -errno : 0;
	}
	return rc ? err_sys(e, -rc, "'%s'", key) : 0;
}

static int dir_flush(struct store *s, bool all, struct err *e)
{
	struct dir_store *d = store_dir_of(s);
	int rc = dir_leave(d);

	if (rc == 0 && all && d->unsynced && syncfs(d->fd) < 0)
		rc = -errno;
	return rc ? err_sys(e, -rc, "cannot sync the store") : 0;
}

static const struct store_ops g_ops = {
	.name = "directory",
	.close = dir_close,
	.stat = dir_stat,
	.list = dir_list,
	.read = dir_read,
	.remove = dir_remove,
	.movable = dir_movable,
	.move = dir_move,
	.flush = dir_flush,
};

int store_dir_open(int fd, struct store **ret, struct err *e)
{
	struct dir_store *d = calloc(1, sizeof(*d));
	struct stat st;

	if (!d)
		return err_nomem(e);
	d->base.ops = &g_ops;
	d->fd = fd;
	d->parent = -1;
	d->uid = geteuid();
	if (fstat(fd, &st) == 0) {
		d->counts_links = st.st_nlink > 0;
		d->base.id = st.st_ino;
	}
	*ret = &d->base;
	return 0;
}
