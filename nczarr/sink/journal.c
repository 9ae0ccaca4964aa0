/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.c - atomic changes of a store: all new data is in the state directory, and a manifest
 * has the steps to apply it.
 *
 *   txn/<n/1000>/<n>   new objects
 *   txn/away/<n>       directories that were in the store
 *   txn/moved          marks that all of them were moved: none is moved a second time
 *   manifest           the commit is the rename to this name: from then on the steps are carried
 *                      out, until they succeed
 *
 * Every step can be repeated: if the file to rename is absent, that was done already. No decision
 * depends on the content of the store. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/core/endian.h"
#include "base/os/open_beneath.h"
#include "base/os/io.h"

#define MANIFEST "manifest"
#define FRESH "manifest.new"
#define FOLDER 1000u             /* objects in one directory */
#define KEYS_MAX ((size_t)4 << 30)
#define LONG 200
#define FEW 32 /* files that are synced one by one, whatever their size */
#define LARGE ((uint64_t)256 << 10) /* bytes of a file that is worth a sync of its own */

static int journal_new_file(int dir, const char *name, int *ret, struct err *e)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);

	if (fd < 0)
		return err_sys(e, errno, "cannot create a new object");
	*ret = fd;
	return 0;
}

int zs_write_file(int dir, const char *name, const uint8_t *p, size_t n, struct err *e)
{
	auto_fd int fd = -1;
	int rc = journal_new_file(dir, name, &fd, e);

	return rc || n == 0 ? rc : io_pwrite(fd, p, n, 0, e);
}

/* folder - make and open a directory below at. */
static int folder(int at, const char *name, int *ret, struct err *e)
{
	int fd;

	fd = mkdirat(at, name, 0777) < 0 && errno != EEXIST
		     ? -1
		     : openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "'%s' in the state directory", name);
	*ret = fd;
	return 0;
}

/* journal_most_kept - a share of the descriptors that this process may have. */
static size_t journal_most_kept(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 1;
	return (size_t)u64_min(files.rlim_cur / 8 + 1, ZS_KEPT_MAX);
}

int zs_txn_open(struct zs_txn *t, struct store *store, int dir, struct err *e)
{
	int rc = zs_txn_pending(dir, e);

	*t = (struct zs_txn){.dir = dir, .store = store, .txn = -1, .sub = -1};
	if (rc)
		return rc < 0 ? rc
			      : err_set(e, -EBUSY,
					"an earlier commit was not completed: recover it "
					"first");
	rc = store_movable(store, "", dir, e);
	if (rc == -EXDEV)
		return err_set(e, -EXDEV,
			       "the state directory is on another file system than the store: "
			       "choose one next to the store with -o state_dir=");
	rc = rc ? rc : remove_beneath_err(dir, "txn", e);
	rc = rc ? rc : folder(dir, "txn", &t->txn, e);
	if (rc)
		return rc;
	arena_init(&t->arena, KEYS_MAX);
	t->manifest = buf_of(PTRDIFF_MAX);
	t->most_kept = journal_most_kept();
	return 0;
}

/* journal_sync_kept - close the descriptors of large objects; sync: after a sync. A sync of another
 * descriptor may not report that the disk failed meanwhile. */
static int journal_sync_kept(struct zs_txn *t, bool sync, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < t->n_kept; i++) {
		if (sync && rc == 0)
			rc = io_sync(t->kept[i], true, e);
		(void)close(t->kept[i]);
	}
	t->n_kept = 0;
	return rc;
}

void zs_txn_close(struct zs_txn *t)
{
	bool begun = t->txn >= 0;

	(void)journal_sync_kept(t, false, NULL); /* synced, or given up */
	arena_release(&t->arena);
	free(t->steps);
	free(t->seen);
	json_decref(t->known);
	buf_release(&t->manifest);
	close_fd(&t->sub);
	close_fd(&t->txn);
	if (begun && zs_txn_pending(t->dir, NULL) == 0) {
		(void)unlinkat(t->dir, FRESH, 0);
		(void)unlinkat(t->dir, ZS_CONDITIONS, 0);
		remove_beneath(t->dir, "txn"); /* else the next call does it */
	}
}

int zs_txn_new(struct zs_txn *t, uint64_t *ret, int *ret_fd, struct err *e)
{
	char name[24];
	int rc = 0;

	if (t->n_files % FOLDER == 0) {
		close_fd(&t->sub);
		(void)snprintf(name, sizeof(name), "%" PRIu64, t->n_files / FOLDER);
		rc = folder(t->txn, name, &t->sub, e);
	}
	(void)snprintf(name, sizeof(name), "%" PRIu64, t->n_files);
	rc = rc ? rc : journal_new_file(t->sub, name, ret_fd, e);
	if (rc == 0)
		*ret = t->n_files++;
	return rc;
}

int zs_txn_wrote(struct zs_txn *t, int fd, uint64_t n, struct err *e)
{
	int rc = 0;

	t->bytes += n;
	if (n < LARGE)
		return 0;
	if (t->n_kept == t->most_kept)
		rc = journal_sync_kept(t, true, e);
	fd = rc ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return rc; /* it is written when it is synced */
	t->kept[t->n_kept++] = fd;
	return io_start_sync(fd, 0, n, e);
}

/* ---- steps ---- */

int zs_txn_step(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key, struct err *e)
{
	const char *copy = arena_strdup(&t->arena, key);

	if (!store_key_ok(key))
		return err_set(e, -EOPNOTSUPP, "'%.*s' is not a valid key of a store", LONG,
			       key);
	if (!copy || grow_array(&t->steps, &t->c_steps, t->n_steps + 1, sizeof(*t->steps)) < 0)
		return err_nomem(e);
	t->steps[t->n_steps++] = (struct zs_step){.op = op, .n = n, .key = copy};
	return 0;
}

int zs_txn_put(struct zs_txn *t, enum zs_op op, const char *key, const uint8_t *p, size_t n,
	       struct err *e)
{
	auto_fd int fd = -1;
	uint64_t file;
	int rc = zs_txn_new(t, &file, &fd, e);

	if (rc == 0 && n > 0)
		rc = io_pwrite(fd, p, n, 0, e);
	rc = rc ? rc : zs_txn_wrote(t, fd, n, e);
	return rc ? rc : zs_txn_step(t, op, file, key, e);
}

int zs_sync_path(int dir, const char *path, struct err *e)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? err_sys(e, errno, "cannot sync '%s'", path) : io_sync(fd, true, e);
}

/* journal_settle - sync all new files. syncfs() is quicker for many small ones, but writes what all
 * programs left to be written on the file system, such as the working copy that the new files are
 * made of. */
static int journal_settle(struct zs_txn *t, struct err *e)
{
	char path[64];
	int rc = journal_sync_kept(t, true, e);

	if (rc)
		return rc;
	if (t->n_files > FEW && t->bytes / t->n_files < LARGE)
		return syncfs(t->txn) < 0 ? err_sys(e, errno, "cannot sync the new objects")
					  : 0;
	for (uint64_t i = 0; rc == 0 && i < t->n_files; i++) {
		zs_txn_path(path, i);
		rc = zs_sync_path(t->dir, path, e);
	}
	for (uint64_t i = 0; rc == 0 && i < t->n_files; i += FOLDER) {
		(void)snprintf(path, sizeof(path), "txn/%" PRIu64, i / FOLDER);
		rc = zs_sync_path(t->dir, path, e);
	}
	rc = rc ? rc : io_sync(t->txn, true, e);
	return rc ? rc : io_sync(t->dir, true, e);
}

/* A record: step, number, length of the key, key. */
void zs_txn_note(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key)
{
	size_t len = strlen(key);

	buf_putc(&t->manifest, (char)op);
	buf_put_le(&t->manifest, n, 8);
	buf_put_le(&t->manifest, len, 2);
	buf_put(&t->manifest, key, len);
	t->n_ops++;
}

/* journal_note_all - put all steps into the manifest. */
static int journal_note_all(struct zs_txn *t, struct err *e)
{
	const bool moves = store_moves(t->store);
	int rc = 0;

	buf_puts(&t->manifest, moves ? ZS_LOCAL : ZS_REMOTE);
	buf_put_le(&t->manifest, t->store->id, 8);
	if (!moves)
		rc = zs_remote_ready(t, e);
	for (size_t i = 0; moves && i < t->n_steps; i++)
		zs_txn_note(t, t->steps[i].op, t->steps[i].n, t->steps[i].key);
	zs_txn_note(t, ZS_END, t->n_ops, "");
	if (rc == 0 && !buf_ok(&t->manifest))
		rc = err_nomem(e);
	return rc;
}

static int journal_write(struct zs_txn *t, struct err *e)
{
	auto_fd int fd = openat(t->dir, FRESH,
				O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	struct buf *b = &t->manifest;
	int rc;

	if (fd < 0)
		return err_sys(e, errno, "'%s' in the state directory", FRESH);
	buf_put_le32(b, codec_crc32c_sum(0, b->data, b->len));
	rc = buf_ok(b) ? io_pwrite(fd, b->data, b->len, 0, e) : err_nomem(e);
	return rc ? rc : io_sync(fd, true, e);
}

int zs_txn_commit(struct zs_txn *t, int (*gate)(void *arg, struct err *e), void *arg,
		  struct err *e)
{
	int rc = journal_note_all(t, e);

	rc = rc ? rc : journal_settle(t, e);
	rc = rc ? rc : journal_write(t, e);
	if (rc == 0 && gate)
		rc = gate(arg, e);
	if (rc)
		return rc;
	if (renameat(t->dir, FRESH, t->dir, MANIFEST) < 0)
		return err_sys(e, errno, "cannot rename the manifest");
	rc = io_sync(t->dir, true, e);
	return rc ? rc : zs_txn_recover(t->store, t->dir, e);
}
