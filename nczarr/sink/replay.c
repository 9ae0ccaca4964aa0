/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - carries out a manifest; after a crash again from its start.
 *
 * The whole manifest is checked before the first step. Removed or renamed directories are moved
 * into the transaction first, and a file records that all were: their replacements are not moved
 * away by a second run. Then chunks are put, then documents, consolidated ones last; then dropped
 * objects are removed. All paths are resolved beneath the store's root. */
#include "nczarr/sink/sink_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/endian.h"
#include "base/os/open_beneath.h"
#include "base/os/io.h"

#define MANIFEST "manifest"
#define HEAD ZS_FIRST
#define RECORD 11u /* bytes of a record without its key */
#define FOLDER 1000u
#define LONG 200
#define FEW 32   /* steps whose directories are synced one by one */
#define DEEP 256 /* depth of removed directories */

struct replay_redo {
	int root, dir;
	struct zs_manifest m; /* owned */
	bool few;             /* few steps: otherwise syncfs() is used */
	bool dirty;           /* parent was changed, and `few` */
	int parent;           /* the directory of the last key, owned; -1 */
	char of[STORE_KEY_MAX + 1];
};

/* ---- reading it ---- */

int zs_txn_pending(int dir, struct err *e)
{
	struct stat st;

	if (fstatat(dir, MANIFEST, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_sys(e, errno, "'%s' in the state directory", MANIFEST);
}

static int replay_damaged(size_t at, const char *what, struct err *e)
{
	return err_set(
		e, -EBADMSG,
		"'%s' in the state directory is damaged at byte %zu (%s): it was not applied",
		MANIFEST, at, what);
}

int zs_manifest_next(const struct zs_manifest *m, size_t *at, struct zs_step *ret,
		     struct err *e)
{
	const uint8_t *p = m->p + *at;
	size_t left = m->len - *at, n;

	if (left < RECORD)
		return replay_damaged(*at, "a step is truncated", e);
	n = (size_t)get_le(p + 9, 2);
	if (n > STORE_KEY_MAX || n > left - RECORD)
		return replay_damaged(*at, "a key is truncated", e);
	ret->op = (enum zs_op)p[0];
	ret->n = get_le(p + 1, 8);
	memcpy(ret->key, p + RECORD, n);
	ret->key[n] = '\0';
	if (!strchr("AIPDRXVYE", (int)ret->op) || ret->op == 0)
		return replay_damaged(*at, "unknown step", e);
	if (strlen(ret->key) != n || (ret->op == ZS_END ? n != 0 : !store_key_ok(ret->key)))
		return replay_damaged(*at, "a key is not valid", e);
	*at += RECORD + n;
	return 0;
}

static int replay_check(struct zs_manifest *m, struct err *e)
{
	size_t at = HEAD;
	struct zs_step x = {.op = ZS_ROOT};

	while (at < m->len && x.op != ZS_END) {
		int rc = zs_manifest_next(m, &at, &x, e);

		if (rc)
			return rc;
		m->n += x.op != ZS_END;
	}
	if (x.op != ZS_END || at != m->len || x.n != m->n)
		return replay_damaged(at, "the number of steps is wrong", e);
	m->mark = get_le(m->p + HEAD - 8, 8);
	return 0;
}

int zs_manifest_load(int dir, const char *magic, struct zs_manifest *ret, struct err *e)
{
	auto_fd int fd = openat(dir, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	size_t n;
	int rc;

	*ret = (struct zs_manifest){.n = 0};
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s' in the state directory", MANIFEST);
	n = (size_t)st.st_size;
	if (n < HEAD + RECORD + 4)
		return replay_damaged(n, "too short", e);
	ret->p = alloc_array(n, 1);
	if (!ret->p)
		return err_nomem(e);
	rc = io_pread(fd, ret->p, n, 0, e);
	if (rc)
		return rc;
	ret->len = n - 4;
	if (memcmp(ret->p, magic, HEAD - 8) != 0)
		return replay_damaged(0, "not a manifest of such a store", e);
	if (codec_crc32c_sum(0, ret->p, ret->len) != get_le(ret->p + ret->len, 4))
		return replay_damaged(ret->len, "wrong checksum", e);
	return replay_check(ret, e);
}

static int replay_load(struct replay_redo *r, struct err *e)
{
	int rc = zs_manifest_load(r->dir, ZS_LOCAL, &r->m, e);
	struct stat st;

	if (rc)
		return rc;
	if (fstat(r->root, &st) < 0)
		return err_sys(e, errno, "cannot examine the store");
	if (r->m.mark != st.st_ino)
		return err_set(e, -ESTALE,
			       "'%s' in the state directory belongs to another store: it was "
			       "not applied",
			       MANIFEST);
	r->few = r->m.n <= FEW;
	return 0;
}

/* ---- doing it ---- */

/* replay_leave - sync and close the open directory. */
static int replay_leave(struct replay_redo *r)
{
	int rc = r->parent >= 0 && r->dirty && fsync(r->parent) < 0 ? -errno : 0;

	auto_fd_fn(&r->parent);
	r->parent = -1;
	r->dirty = false;
	return rc;
}

/* replay_parent_of - open the directory of a key, and keep it for the next one; name: the last
 * component. make: create missing directories. Returns 0; -errno without a message. */
static int replay_parent_of(struct replay_redo *r, const char *key, bool make,
			    const char **name)
{
	const char *slash = strrchr(key, '/');
	size_t n = slash ? (size_t)(slash - key) : 0;
	char path[STORE_KEY_MAX + 1];
	int fd, rc;

	*name = slash ? slash + 1 : key;
	memcpy(path, key, n);
	path[n] = '\0';
	if (r->parent >= 0 && strcmp(path, r->of) == 0)
		return 0;
	fd = open_beneath(r->root, path, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT && make && n > 0) {
		const char *last;

		rc = replay_parent_of(r, path, true, &last);
		if (rc)
			return rc;
		if (mkdirat(r->parent, last, 0777) < 0 && errno != EEXIST)
			return -errno;
		r->dirty = r->few;
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
	memcpy(r->of, path, n + 1);
	return 0;
}

/* replay_there - 1 if a file of the transaction is in place, 0 if not. -errno without a message if
 * that is unknown: a step that is wrongly taken for done would be lost. */
static int replay_there(const struct replay_redo *r, const char *path)
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

void zs_txn_path(char out[64], uint64_t n)
{
	(void)snprintf(out, 64, "txn/%" PRIu64 "/%" PRIu64, n / FOLDER, n);
}

static void away_path(char out[64], uint64_t n)
{
	(void)snprintf(out, 64, "txn/away/%" PRIu64, n);
}

static int away(struct replay_redo *r, const struct zs_step *x, struct err *e)
{
	const char *name;
	char to[64];
	int rc, done;

	away_path(to, x->n);
	rc = replay_parent_of(r, x->key, false, &name);
	if (rc == 0)
		r->dirty = r->few;
	done = replay_there(r, to);
	if (done)
		return done < 0 ? stuck(x, done, e) : 0;
	if (rc == 0)
		rc = renameat(r->parent, name, r->dir, to) < 0 ? -errno : 0;
	/* an object that another program removed is fine */
	return rc == 0 || rc == -ENOENT ? 0 : stuck(x, rc, e);
}

/* replay_into - move a file or directory of the transaction to its place. */
static int replay_into(struct replay_redo *r, const struct zs_step *x, struct err *e)
{
	const char *name;
	char from[64];
	int rc, waits;

	if (x->op == ZS_INTO)
		away_path(from, x->n);
	else
		zs_txn_path(from, x->n);
	rc = replay_parent_of(r, x->key, false, &name);
	r->dirty = r->few; /* also if an earlier run did it */
	if (rc == 0 && renameat(r->dir, from, r->parent, name) == 0)
		return 0;
	rc = rc ? rc : -errno;
	waits = replay_there(r, from);
	if (waits <= 0) /* 0: already done */
		return waits < 0 ? stuck(x, waits, e) : 0;
	if (rc == -ENOENT)
		rc = replay_parent_of(r, x->key, true, &name);
	r->dirty = r->few;
	if (rc == 0 && renameat(r->dir, from, r->parent, name) < 0)
		rc = -errno;
	return rc ? stuck(x, rc, e) : 0;
}

static int replay_drop(struct replay_redo *r, const struct zs_step *x, struct err *e)
{
	const char *name;
	int rc = replay_parent_of(r, x->key, false, &name);

	if (rc == 0) {
		r->dirty = r->few;
		rc = unlinkat(r->parent, name, 0) < 0 ? -errno : 0;
	}
	return rc == 0 || rc == -ENOENT || rc == -ENOTDIR ? 0 : stuck(x, rc, e);
}

/* replay_each - all steps of one kind, in order. */
static int replay_each(struct replay_redo *r, enum zs_op op,
		       int (*fn)(struct replay_redo *r, const struct zs_step *x, struct err *e),
		       bool *ret_any, struct err *e)
{
	size_t at = HEAD;
	struct zs_step x;
	int rc = 0;

	while (rc == 0 && at < r->m.len) {
		rc = zs_manifest_next(&r->m, &at, &x, e);
		if (rc == 0 && x.op == op) {
			rc = fn(r, &x, e);
			if (ret_any)
				*ret_any = true;
		}
	}
	return rc;
}

/* replay_sync_all - sync all changes so far. */
static int replay_sync_all(struct replay_redo *r, struct err *e)
{
	int rc = replay_leave(r);

	if (rc == 0 && !r->few && syncfs(r->root) < 0)
		rc = -errno;
	return rc ? err_sys(e, -rc, "cannot sync the store") : 0;
}

/* sync_below - sync a directory of the state directory. */
static int sync_below(const struct replay_redo *r, const char *path, struct err *e)
{
	auto_fd int fd = openat(r->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_sys(e, errno, "'%s' in the state directory", path);
	return io_sync(fd, true, e);
}

/* clear_away - move removed or renamed directories away, once. */
static int clear_away(struct replay_redo *r, struct err *e)
{
	bool any = false;
	auto_fd int fd = -1;
	int rc = replay_there(r, "txn/moved");

	if (rc < 0)
		return err_sys(e, -rc, "'txn/moved' in the state directory");
	if (rc > 0)
		return 0;
	if (mkdirat(r->dir, "txn/away", 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "'txn/away' in the state directory");
	rc = replay_each(r, ZS_AWAY, away, &any, e);
	if (rc || !any)
		return rc;
	rc = replay_sync_all(r, e);
	if (rc == 0)
		rc = sync_below(r, "txn/away", e);
	if (rc)
		return rc;
	fd = openat(r->dir, "txn/moved", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return err_sys(e, errno, "'txn/moved' in the state directory");
	rc = io_sync(fd, true, e);
	return rc ? rc : sync_below(r, "txn", e); /* its name */
}

static int replay_carry_out(struct replay_redo *r, struct err *e)
{
	static const enum zs_op order[] = {ZS_INTO, ZS_PUT, ZS_DOC, ZS_ROOT};
	int rc = clear_away(r, e);

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(order); i++) {
		rc = replay_each(r, order[i], replay_into, NULL, e);
		if (rc)
			break;
		rc = replay_leave(r); /* paths may resolve differently now */
		if (rc < 0)
			rc = err_sys(e, -rc, "cannot sync the store");
	}
	if (rc == 0)
		rc = replay_each(r, ZS_DROP, replay_drop, NULL, e);
	return rc ? rc : replay_sync_all(r, e);
}

int zs_txn_forget(int dir, struct err *e)
{
	int rc = 0;

	if (unlinkat(dir, MANIFEST, 0) < 0 && errno != ENOENT)
		rc = err_sys(e, errno, "'%s' in the state directory", MANIFEST);
	if (rc == 0)
		rc = io_sync(dir, true, e);
	if (rc == 0 && unlinkat(dir, ZS_CONDITIONS, 0) < 0 && errno != ENOENT)
		rc = err_sys(e, errno, "'%s' in the state directory", ZS_CONDITIONS);
	if (rc == 0 && unlinkat(dir, MANIFEST ".new", 0) < 0 && errno != ENOENT)
		rc = err_sys(e, errno, "'%s.new' in the state directory", MANIFEST);
	return rc ? rc : zs_remove_tree(dir, "txn", e);
}

int zs_txn_recover(int root, int dir, struct err *e)
{
	struct replay_redo r = {.root = root, .dir = dir, .parent = -1};
	int rc = zs_txn_pending(dir, e);

	if (rc > 0) {
		rc = replay_load(&r, e);
		if (rc == 0)
			rc = replay_carry_out(&r, e);
		auto_fd_fn(&r.parent); /* a failed run is repeated */
		free(r.m.p);
	}
	return rc ? rc : zs_txn_forget(dir, e);
}

/* ---- removing a directory ---- */

static int remove_in(int at, const char *name, unsigned depth, struct err *e)
{
	struct dirent *x;
	DIR *d;
	int fd, rc = 0;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, errno, "cannot remove '%.*s'", LONG, name);
	if (depth == 0)
		return err_set(e, -ELOOP, "cannot remove '%.*s': nested too deeply", LONG,
			       name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		rc = err_sys(e, errno, "cannot remove '%.*s'", LONG, name);
		if (fd >= 0)
			(void)close(fd); /* opened for reading only */
		return rc;
	}
	while (rc == 0 && (errno = 0, x = readdir(d)) != NULL)
		if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0)
			rc = remove_in(dirfd(d), x->d_name, depth - 1, e);
	if (rc == 0 && errno)
		rc = err_sys(e, errno, "cannot list '%.*s'", LONG, name);
	(void)closedir(d);
	if (rc == 0 && unlinkat(at, name, AT_REMOVEDIR) < 0)
		rc = err_sys(e, errno, "cannot remove '%.*s'", LONG, name);
	return rc;
}

int zs_remove_tree(int dir, const char *name, struct err *e)
{
	return remove_in(dir, name, DEEP, e);
}
