/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - carries out a manifest; after a crash or a failure again from its start.
 *
 * The whole manifest is checked before the first step. When all are complete, the manifest and the
 * transaction are removed.
 *
 * The phases: removed and renamed directories are moved into the transaction, and a file records
 * that all were: their replacements are not moved away by a second run. Renamed ones get their new
 * keys. Conflicting objects are removed. Then chunks are put, then documents, consolidated ones
 * last, then dropped objects are removed. A store without moves carries out the steps of a phase in
 * parallel, and removes documents before other objects. A second run repeats all steps: what was
 * moved already stays, and the same bytes are put under the same keys. A document that was put
 * already is recognised by its content, since an answer may have been lost. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/endian.h"
#include "base/os/io.h"
#include "base/os/open_beneath.h"
#include "nczarr/nczarr.h"

#define MANIFEST "manifest"
#define AWAY "txn/away"
#define MOVED "txn/moved"
#define HEAD ZS_FIRST
#define RECORD 11u /* bytes of a record without its key */
#define FOLDER 1000u
#define LONG 200

struct replay {
	struct store *store;
	int dir;         /* the state directory */
	uint8_t *p;      /* the manifest; owned */
	size_t len;      /* without the checksum */
	struct zs_step *all; /* n_all steps; owned */
	size_t n_all, c_all;
	bool away;       /* there are directories to move away */
	bool conditions; /* conditions are checked */
	const struct zs_step **steps; /* n of the current phase; owned */
	size_t n;
};

/* ---- the manifest ---- */

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

/* replay_next - parse the step at *at, which advances; *at is less than r->len. The key moves to
 * the place of its length, to have room for a NUL. */
static int replay_next(struct replay *r, size_t *at, struct zs_step *ret, struct err *e)
{
	const char *ops = store_moves(r->store) ? "AIPDRXE" : "PDRXVYE";
	uint8_t *p = r->p + *at, *key = p + RECORD - 1;
	size_t left = r->len - *at, n;

	if (left < RECORD)
		return replay_damaged(*at, "a step is truncated", e);
	n = (size_t)get_le(p + 9, 2);
	if (n > STORE_KEY_MAX || n > left - RECORD)
		return replay_damaged(*at, "a key is truncated", e);
	memmove(key, p + RECORD, n);
	key[n] = '\0';
	*ret = (struct zs_step){
		.op = (enum zs_op)p[0], .n = get_le(p + 1, 8), .key = (const char *)key};
	if (!strchr(ops, (int)ret->op) || ret->op == 0)
		return replay_damaged(*at, "unknown step", e);
	if (strlen(ret->key) != n || (ret->op == ZS_END ? n != 0 : !store_key_ok(ret->key)))
		return replay_damaged(*at, "a key is not valid", e);
	*at += RECORD + n;
	return 0;
}

static int replay_parse(struct replay *r, struct err *e)
{
	size_t at = HEAD;
	struct zs_step x = {.op = ZS_ROOT};

	while (at < r->len) {
		const struct zs_step before = x;
		int rc = replay_next(r, &at, &x, e);

		if (rc)
			return rc;
		if (x.op == ZS_END)
			break;
		if (before.op == ZS_IF_VERSION) {
			x.conditional = true;
			x.version = before.n;
		}
		if (grow_array(&r->all, &r->c_all, r->n_all + 1, sizeof(x)) < 0)
			return err_nomem(e);
		r->all[r->n_all++] = x;
		r->away = r->away || x.op == ZS_AWAY;
	}
	if (x.op != ZS_END || at != r->len || x.n != r->n_all)
		return replay_damaged(at, "the number of steps is wrong", e);
	return 0;
}

static int replay_load(struct replay *r, struct err *e)
{
	auto_fd int fd = openat(r->dir, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	size_t n;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s' in the state directory", MANIFEST);
	n = (size_t)st.st_size;
	if (n < HEAD + RECORD + 4)
		return replay_damaged(n, "too short", e);
	r->p = alloc_array(n, 1);
	if (!r->p)
		return err_nomem(e);
	rc = io_pread(fd, r->p, n, 0, e);
	if (rc)
		return rc;
	r->len = n - 4;
	if (memcmp(r->p, store_moves(r->store) ? ZS_LOCAL : ZS_REMOTE, HEAD - 8) != 0)
		return replay_damaged(0, "not a manifest of such a store", e);
	if (codec_crc32c_sum(0, r->p, r->len) != get_le(r->p + r->len, 4))
		return replay_damaged(r->len, "wrong checksum", e);
	rc = replay_parse(r, e);
	if (rc == 0 && get_le(r->p + HEAD - 8, 8) != r->store->id)
		rc = err_set(e, -ESTALE,
			     "'%s' in the state directory belongs to another store: it was not "
			     "applied",
			     MANIFEST);
	return rc;
}

/* replay_remains - remove what is left of a transaction that has no manifest. */
static int replay_remains(int dir, struct err *e)
{
	if (unlinkat(dir, ZS_CONDITIONS, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "'%s' in the state directory", ZS_CONDITIONS);
	if (unlinkat(dir, MANIFEST ".new", 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "'%s.new' in the state directory", MANIFEST);
	return remove_beneath_err(dir, "txn", e);
}

/* replay_forget - remove the manifest and then the transaction, after its steps are complete.
 * Without its manifest the commit is over: what cannot be removed or synced then is no failure of
 * the commit. The next transaction removes it. */
static int replay_forget(int dir, struct err *e)
{
	if (unlinkat(dir, MANIFEST, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "'%s' in the state directory", MANIFEST);
	(void)(io_sync(dir, true, NULL) || replay_remains(dir, NULL));
	return 0;
}

void zs_txn_path(char out[64], uint64_t n)
{
	(void)snprintf(out, 64, "txn/%" PRIu64 "/%" PRIu64, n / FOLDER, n);
}

/* ---- one object ---- */

/* replay_is_ours - whether the service has the bytes to put under a key. 1, 0 or an
 * error. */
static int replay_is_ours(struct replay *r, const struct zs_step *x, int fd, uint64_t len,
			  struct err *e)
{
	auto_free uint8_t *mine = NULL, *theirs = NULL;
	struct store_stat st;
	int rc = store_fresh(r->store, x->key, &st, e);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (st.is_dir || st.odd || st.size != len)
		return 0;
	mine = alloc_array((size_t)len, 1);
	theirs = alloc_array((size_t)len, 1);
	if (!mine || !theirs)
		return err_nomem(e);
	if (len == 0)
		return 1;
	rc = io_pread(fd, mine, (size_t)len, 0, e);
	rc = rc ? rc : store_read(r->store, x->key, 0, theirs, (size_t)len, NULL, e);
	return rc ? rc : memcmp(mine, theirs, (size_t)len) == 0;
}

static int put_file(struct replay *r, const struct zs_step *x, int fd, uint64_t len,
		    struct err *e)
{
	struct store_put what = {.fd = fd, .len = len};
	struct store_stat st = {.version = 0};
	int rc, ours;

	if (!x->conditional || !r->conditions)
		return store_put(r->store, x->key, &what, NULL, e);
	what.absent = x->version == 0;
	what.version = x->version;
	rc = store_put(r->store, x->key, &what, NULL, e);
	if (rc == -EOPNOTSUPP) { /* a service without conditions: check the version before */
		what.absent = false;
		what.version = 0;
		rc = store_fresh(r->store, x->key, &st, e);
		if (rc == 0 || rc == -ENOENT)
			rc = (rc ? 0 : st.version) == x->version ? 0 : -ESTALE;
		rc = rc ? rc : store_put(r->store, x->key, &what, NULL, e);
	}
	if (rc != -ESTALE && rc != -EEXIST)
		return rc;
	ours = replay_is_ours(r, x, fd, len, e);
	if (ours)
		return ours > 0 ? 0 : ours;
	return err_set(
		e, -ESTALE,
		"'%.*s' was changed by another program during a commit: the rest of the commit "
		"is in the state directory (remove '" ZS_CONDITIONS
		"' there to write it all the same, or 'manifest' and 'txn' to discard it)",
		LONG, x->key);
}

static int replay_put(struct replay *r, const struct zs_step *x, const char *path,
		      struct err *e)
{
	auto_fd int fd = openat(r->dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s' in the state directory", path);
	return put_file(r, x, fd, (uint64_t)st.st_size, e);
}

static int replay_step(void *arg, size_t i, struct err *e)
{
	struct replay *r = arg;
	const struct zs_step *x = r->steps[i];
	char path[64];
	int rc;

	zs_txn_path(path, x->n);
	if (x->op == ZS_AWAY || x->op == ZS_INTO)
		(void)snprintf(path, sizeof(path), AWAY "/%" PRIu64, x->n);
	if (x->op == ZS_DROP || x->op == ZS_REMOVE_FIRST)
		rc = store_remove(r->store, x->key, e);
	else if (store_moves(r->store))
		rc = store_move(r->store, x->key, r->dir, path, x->op == ZS_AWAY, e);
	else
		rc = replay_put(r, x, path, e);
	if (rc == 0 || (rc == -ESTALE && x->conditional))
		return rc;
	return err_wrap(e, rc,
			"'%.*s' cannot be changed: the commit is incomplete; the next commit, "
			"the next start or nczarrfs recover completes it",
			LONG, x->key);
}

/* ---- phases ---- */

static const char g_order[] = {ZS_AWAY, ZS_INTO, ZS_REMOVE_FIRST, ZS_PUT,
			       ZS_DOC,  ZS_ROOT, ZS_DROP};
#define PHASES (2 * sizeof(g_order))

/* replay_phase_of - PHASES or more: none. */
static size_t replay_phase_of(const struct replay *r, const struct zs_step *x)
{
	const char *at = memchr(g_order, (int)x->op, sizeof(g_order));
	bool removes = x->op == ZS_DROP || x->op == ZS_REMOVE_FIRST;

	if (!at)
		return PHASES;
	return 2 * (size_t)(at - g_order) +
	       (removes && !store_moves(r->store) && !zarr_doc_key(x->key));
}

static int replay_phase(struct replay *r, size_t phase, struct err *e)
{
	int rc;

	r->n = 0;
	for (const struct zs_step *x = r->all; x < r->all + r->n_all; x++)
		if (replay_phase_of(r, x) == phase)
			r->steps[r->n++] = x;
	rc = zs_each(r->n, !store_moves(r->store), replay_step, r, e);
	return rc ? rc : store_flush(r->store, phase == 0 || phase == PHASES - 1, e);
}

/* replay_away - the first phase, and the record of its end. */
static int replay_away(struct replay *r, struct err *e)
{
	struct stat st;
	int rc = 0;

	if (fstatat(r->dir, MOVED, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_sys(e, errno, "'%s' in the state directory", MOVED);
		if (mkdirat(r->dir, AWAY, 0777) < 0 && errno != EEXIST)
			return err_sys(e, errno, "'%s' in the state directory", AWAY);
		rc = zs_sync_path(r->dir, "txn", e);
		rc = rc ? rc : replay_phase(r, 0, e);
		rc = rc ? rc : zs_sync_path(r->dir, AWAY, e);
		rc = rc ? rc : zs_write_file(r->dir, MOVED, NULL, 0, e);
	}
	rc = rc ? rc : zs_sync_path(r->dir, MOVED, e);
	return rc ? rc : zs_sync_path(r->dir, "txn", e); /* its name */
}

static int replay_begin(struct replay *r, struct err *e)
{
	r->steps = alloc_array(r->n_all, sizeof(*r->steps));
	if (!r->steps)
		return err_nomem(e);
	r->conditions = faccessat(r->dir, ZS_CONDITIONS, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (!r->conditions && errno != ENOENT) /* changes of others would be overwritten */
		return err_sys(e, errno, "'" ZS_CONDITIONS "' in the state directory");
	return r->away ? replay_away(r, e) : 0;
}

int zs_txn_recover(struct store *store, int dir, struct err *e)
{
	struct replay r = {.store = store, .dir = dir};
	int rc = zs_txn_pending(dir, e);

	if (rc <= 0)
		return rc ? rc : replay_remains(dir, e);
	rc = replay_load(&r, e);
	rc = rc ? rc : replay_begin(&r, e);
	for (size_t i = 1; rc == 0 && i < PHASES; i++)
		rc = replay_phase(&r, i, e);
	free(r.p);
	free(r.all);
	free(r.steps);
	return rc ? rc : replay_forget(dir, e);
}
