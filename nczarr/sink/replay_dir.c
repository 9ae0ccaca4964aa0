/* SPDX-License-Identifier: BSD-3-Clause */
/* replay_dir.c - carries out a manifest in a store that is a directory.
 *
 * Removed or renamed directories are moved into the transaction first, and a file records that all
 * were: their replacements are not moved away by a second run. Then chunks are put, then
 * documents, consolidated ones last; then dropped objects are removed. All paths are resolved
 * beneath the store's root. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/os/open_beneath.h"

#define LONG 200
#define FEW 32 /* directories that are synced one by one */

struct replay_dir {
	int root, dir;
	bool moved;    /* directories were moved away by an earlier run */
	bool any;      /* there is a directory to move away */
	bool dirty;    /* parent was changed */
	bool unsynced; /* a directory was changed and left without a sync: syncfs() is due */
	int synced;    /* directories that were synced */
	int parent;    /* the directory of the last key, owned; -1 */
	char of[STORE_KEY_MAX + 1];
};

/* ---- directories ---- */

/* replay_leave - sync and close the open directory. syncfs() writes what all programs left to be
 * written, so that it is only used after many directories. */
static int replay_leave(struct replay_dir *r)
{
	bool sync = r->parent >= 0 && r->dirty;
	int rc = 0;

	if (sync && r->synced < FEW) {
		rc = fsync(r->parent) < 0 ? -errno : 0;
		r->synced++;
	} else if (sync) {
		r->unsynced = true;
	}
	close_fd(&r->parent);
	r->dirty = false;
	return rc;
}

/* replay_parent_of - open the directory of a key, and keep it for the next one; name: the last
 * component. make: create missing directories. Returns 0; -errno without a message. */
static int replay_parent_of(struct replay_dir *r, const char *key, bool make, const char **name)
{
	char path[STORE_KEY_MAX + 1];
	int fd, rc;

	*name = store_key_name(key);
	store_key_parent(key, path);
	if (r->parent >= 0 && strcmp(path, r->of) == 0)
		return 0;
	fd = open_beneath(r->root, path, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT && make && *path) {
		const char *last;

		rc = replay_parent_of(r, path, true, &last);
		if (rc)
			return rc;
		if (mkdirat(r->parent, last, 0777) < 0 && errno != EEXIST)
			return -errno;
		r->dirty = true;
		fd = open_beneath(r->root, path, O_RDONLY | O_DIRECTORY);
	}
	if (fd < 0)
		return fd;
	rc = replay_leave(r);
	if (rc) {
		(void)close(fd); /* unchanged */
		return rc;
	}
	r->parent = fd;
	memcpy(r->of, path, strlen(path) + 1);
	return 0;
}

/* replay_there - 1 if a file of the transaction is in place, 0 if not. -errno without a message if
 * that is unknown: a step that is wrongly taken for done would be lost. */
static int replay_there(const struct replay_dir *r, const char *path)
{
	struct stat st;

	if (fstatat(r->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

static int stuck(const struct zs_step *x, int code, struct err *e)
{
	return err_sys(e, -code,
		       "'%.*s' cannot be changed: the commit is incomplete; the next start or "
		       "nczarrfs recover completes it",
		       LONG, x->key);
}

/* ---- steps ---- */

static void away_path(char out[64], uint64_t n)
{
	(void)snprintf(out, 64, "txn/away/%" PRIu64, n);
}

static int away(struct replay_dir *r, const struct zs_step *x, struct err *e)
{
	const char *name;
	char to[64];
	int rc, done;

	away_path(to, x->n);
	rc = replay_parent_of(r, x->key, false, &name);
	if (rc == 0)
		r->dirty = true;
	else if (rc != -ENOENT && rc != -ENOTDIR)
		return stuck(x, rc, e);
	done = replay_there(r, to);
	if (done) {
		r->unsynced = true; /* an earlier run may have ended before it was synced */
		return done < 0 ? stuck(x, done, e) : 0;
	}
	if (rc == 0)
		rc = renameat(r->parent, name, r->dir, to) < 0 ? -errno : 0;
	/* an object that another program removed is fine */
	return rc == 0 || rc == -ENOENT ? 0 : stuck(x, rc, e);
}

/* replay_into - move a file or directory of the transaction to its place. */
static int replay_into(struct replay_dir *r, const struct zs_step *x, struct err *e)
{
	const char *name;
	char from[64];
	int rc, waits;

	if (x->op == ZS_INTO)
		away_path(from, x->n);
	else
		zs_txn_path(from, x->n);
	rc = replay_parent_of(r, x->key, false, &name);
	r->dirty = true; /* also if an earlier run did it */
	if (rc == 0 && renameat(r->dir, from, r->parent, name) == 0)
		return 0;
	if (rc && rc != -ENOENT && rc != -ENOTDIR)
		return stuck(x, rc, e);
	rc = rc ? rc : -errno;
	waits = replay_there(r, from);
	if (waits <= 0) { /* 0: already done, and perhaps not synced */
		r->unsynced = true;
		return waits < 0 ? stuck(x, waits, e) : 0;
	}
	if (rc == -ENOENT)
		rc = replay_parent_of(r, x->key, true, &name);
	r->dirty = true;
	if (rc == 0 && renameat(r->dir, from, r->parent, name) < 0)
		rc = -errno;
	return rc ? stuck(x, rc, e) : 0;
}

static int replay_drop(struct replay_dir *r, const struct zs_step *x, struct err *e)
{
	const char *name;
	int rc = replay_parent_of(r, x->key, false, &name);

	if (rc == 0) {
		r->dirty = true;
		rc = unlinkat(r->parent, name, 0) < 0 ? -errno : 0;
	}
	return rc == 0 || rc == -ENOENT || rc == -ENOTDIR ? 0 : stuck(x, rc, e);
}

/* sync_below - sync a directory of the state directory. */
static int sync_below(const struct replay_dir *r, const char *path, struct err *e)
{
	auto_fd int fd = openat(r->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_sys(e, errno, "'%s' in the state directory", path);
	return io_sync(fd, true, e);
}

static int replay_step(struct replay_dir *r, const struct zs_step *x, struct err *e)
{
	switch (x->op) {
	case ZS_AWAY:
		if (!r->any && !r->moved) { /* directories are moved into "txn/away" */
			int rc = sync_below(r, "txn", e);

			if (rc)
				return rc;
		}
		r->any = true;
		return r->moved ? 0 : away(r, x, e);
	case ZS_DROP:
		return replay_drop(r, x, e);
	default:
		return replay_into(r, x, e);
	}
}

/* ---- phases ---- */

/* replay_sync_all - sync all changes so far. */
static int replay_sync_all(struct replay_dir *r, struct err *e)
{
	int rc = replay_leave(r);

	if (rc == 0 && r->unsynced && syncfs(r->root) < 0)
		rc = -errno;
	return rc ? err_sys(e, -rc, "cannot sync the store") : 0;
}

/* end_of_away - record that all directories were moved away. */
static int end_of_away(struct replay_dir *r, struct err *e)
{
	auto_fd int fd = -1;
	int rc;

	if (r->moved || !r->any)
		return 0;
	rc = replay_sync_all(r, e);
	rc = rc ? rc : sync_below(r, "txn/away", e);
	if (rc)
		return rc;
	fd = openat(r->dir, "txn/moved", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return err_sys(e, errno, "'txn/moved' in the state directory");
	rc = io_sync(fd, true, e);
	return rc ? rc : sync_below(r, "txn", e); /* its name */
}

/* replay_end - after the steps of a phase. */
static int replay_end(struct replay_dir *r, enum zs_op op, struct err *e)
{
	int rc;

	if (op == ZS_AWAY)
		return end_of_away(r, e);
	if (op == ZS_DROP)
		return replay_sync_all(r, e);
	rc = replay_leave(r); /* paths may resolve differently now */
	return rc ? err_sys(e, -rc, "cannot sync the store") : 0;
}

static int replay_begin(struct replay_dir *r, const struct zs_manifest *m, struct err *e)
{
	struct stat st;
	int rc;

	if (fstat(r->root, &st) < 0)
		return err_sys(e, errno, "cannot examine the store");
	if (m->mark != st.st_ino)
		return err_set(e, -ESTALE,
			       "'manifest' in the state directory belongs to another store: it "
			       "was not applied");
	rc = replay_there(r, "txn/moved");
	if (rc < 0)
		return err_sys(e, -rc, "'txn/moved' in the state directory");
	r->moved = rc > 0;
	if (!r->moved && mkdirat(r->dir, "txn/away", 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "'txn/away' in the state directory");
	return 0;
}

int zs_txn_recover(int root, int dir, struct err *e)
{
	static const enum zs_op phases[] = {ZS_AWAY, ZS_INTO, ZS_PUT, ZS_DOC, ZS_ROOT, ZS_DROP};
	struct replay_dir r = {.root = root, .dir = dir, .parent = -1};
	struct zs_manifest m;
	int rc = zs_manifest_load(dir, ZS_LOCAL, &m, e);

	if (rc <= 0)
		return rc;
	rc = replay_begin(&r, &m, e);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(phases); i++) {
		for (size_t k = 0; rc == 0 && k < m.n; k++)
			if (m.steps[k].op == phases[i])
				rc = replay_step(&r, &m.steps[k], e);
		rc = rc ? rc : replay_end(&r, phases[i], e);
	}
	close_fd(&r.parent); /* a failed run is repeated */
	return zs_manifest_end(&m, dir, rc, e);
}
