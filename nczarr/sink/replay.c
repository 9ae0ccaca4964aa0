/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - carries out a manifest, for directories (replay_dir.c) and remote stores
 * (replay_remote.c); after a crash or a failure again from its start.
 *
 * The whole manifest is checked before the first step. When all are complete, the manifest and the
 * transaction are removed. */
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
#define HEAD ZS_FIRST
#define RECORD 11u /* bytes of a record without its key */
#define FOLDER 1000u

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

/* replay_next - parse the step at *at, which advances; *at is less than m->len. The key moves to
 * the place of its length, to have room for a NUL. */
static int replay_next(struct zs_manifest *m, size_t *at, struct zs_step *ret, struct err *e)
{
	uint8_t *p = m->p + *at, *key = p + RECORD - 1;
	size_t left = m->len - *at, n;

	if (left < RECORD)
		return replay_damaged(*at, "a step is truncated", e);
	n = (size_t)get_le(p + 9, 2);
	if (n > STORE_KEY_MAX || n > left - RECORD)
		return replay_damaged(*at, "a key is truncated", e);
	memmove(key, p + RECORD, n);
	key[n] = '\0';
	*ret = (struct zs_step){
		.op = (enum zs_op)p[0], .n = get_le(p + 1, 8), .key = (const char *)key};
	if (!strchr("AIPDRXVYE", (int)ret->op) || ret->op == 0)
		return replay_damaged(*at, "unknown step", e);
	if (strlen(ret->key) != n || (ret->op == ZS_END ? n != 0 : !store_key_ok(ret->key)))
		return replay_damaged(*at, "a key is not valid", e);
	*at += RECORD + n;
	return 0;
}

static int replay_parse(struct zs_manifest *m, struct err *e)
{
	size_t at = HEAD;
	struct zs_step x = {.op = ZS_ROOT};

	m->mark = get_le(m->p + HEAD - 8, 8);
	while (at < m->len) {
		const struct zs_step before = x;
		int rc = replay_next(m, &at, &x, e);

		if (rc)
			return rc;
		if (x.op == ZS_END)
			break;
		if (before.op == ZS_IF_VERSION) {
			x.conditional = true;
			x.version = before.n;
		}
		if (grow_array(&m->steps, &m->cap, m->n + 1, sizeof(x)) < 0)
			return err_nomem(e);
		m->steps[m->n++] = x;
	}
	if (x.op != ZS_END || at != m->len || x.n != m->n)
		return replay_damaged(at, "the number of steps is wrong", e);
	return 0;
}

/* replay_load - *ret: free p and steps. */
static int replay_load(int dir, const char *magic, struct zs_manifest *ret, struct err *e)
{
	auto_fd int fd = openat(dir, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	size_t n;
	int rc;

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
	return replay_parse(ret, e);
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

int zs_manifest_load(int dir, const char *magic, struct zs_manifest *ret, struct err *e)
{
	int rc = zs_txn_pending(dir, e);

	*ret = (struct zs_manifest){.n = 0};
	if (rc <= 0)
		return rc ? rc : replay_remains(dir, e);
	rc = replay_load(dir, magic, ret, e);
	return rc ? zs_manifest_end(ret, dir, rc, e) : 1;
}

int zs_manifest_end(struct zs_manifest *m, int dir, int rc, struct err *e)
{
	free(m->p);
	free(m->steps);
	return rc ? rc : replay_forget(dir, e);
}

void zs_txn_path(char out[64], uint64_t n)
{
	(void)snprintf(out, 64, "txn/%" PRIu64 "/%" PRIu64, n / FOLDER, n);
}
