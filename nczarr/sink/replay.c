/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - carries out a manifest, for directories (replay_dir.c) and remote stores
 * (replay_remote.c); after a crash or a failure again from its start.
 *
 * The whole manifest is checked before the first step. Its steps are carried out in the phases of
 * the target. When all are complete, the manifest and the transaction are removed. */
#include "nczarr/sink/sink_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/endian.h"
#include "base/os/io.h"
#include "nczarr/nczarr.h"

#define MANIFEST "manifest"
#define HEAD ZS_FIRST
#define RECORD 11u /* bytes of a record without its key */
#define FOLDER 1000u
#define LONG 200
#define DEEP 256 /* depth of removed directories */

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

/* replay_next - parse the step at *at, which advances; *at is less than m->len. */
static int replay_next(const struct zs_manifest *m, size_t *at, char key[STORE_KEY_MAX + 1],
		       struct zs_step *ret, struct err *e)
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
	memcpy(key, p + RECORD, n);
	key[n] = '\0';
	ret->key = key;
	if (!strchr("AIPDRXVYE", (int)ret->op) || ret->op == 0)
		return replay_damaged(*at, "unknown step", e);
	if (strlen(key) != n || (ret->op == ZS_END ? n != 0 : !store_key_ok(key)))
		return replay_damaged(*at, "a key is not valid", e);
	*at += RECORD + n;
	return 0;
}

static int replay_check(struct zs_manifest *m, struct err *e)
{
	size_t at = HEAD;
	struct zs_step x = {.op = ZS_ROOT};
	char key[STORE_KEY_MAX + 1];

	while (at < m->len && x.op != ZS_END) {
		int rc = replay_next(m, &at, key, &x, e);

		if (rc)
			return rc;
		m->n += x.op != ZS_END;
	}
	if (x.op != ZS_END || at != m->len || x.n != m->n)
		return replay_damaged(at, "the number of steps is wrong", e);
	m->mark = get_le(m->p + HEAD - 8, 8);
	return 0;
}

/* replay_load - read and check the manifest. *ret: free p. */
static int replay_load(int dir, const char *magic, struct zs_manifest *ret, struct err *e)
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

/* ---- its steps ---- */

/* replay_phase - carry out the steps of one phase, in order. */
static int replay_phase(const struct zs_manifest *m, const struct zs_phase *p,
			struct zs_target *t, struct err *e)
{
	struct zs_step x = {.op = ZS_ROOT};
	char key[STORE_KEY_MAX + 1];
	uint64_t version = 0;
	bool conditional = false;
	int rc = 0;

	for (size_t at = HEAD; rc == 0 && at < m->len;) {
		rc = replay_next(m, &at, key, &x, e);
		if (rc == 0 && x.op == p->op &&
		    (zarr_doc_key(x.key) ? !p->not_docs : !p->only_docs)) {
			x.conditional = conditional;
			x.version = version;
			rc = t->step(t, &x, e);
		}
		conditional = x.op == ZS_IF_VERSION;
		version = conditional ? x.n : 0;
	}
	return rc ? rc : t->end(t, p->op, e);
}

/* replay_remains - remove what is left of a transaction that has no manifest. */
static int replay_remains(int dir, struct err *e)
{
	if (unlinkat(dir, ZS_CONDITIONS, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "'%s' in the state directory", ZS_CONDITIONS);
	if (unlinkat(dir, MANIFEST ".new", 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "'%s.new' in the state directory", MANIFEST);
	return zs_remove_tree(dir, "txn", e);
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

int zs_replay(int dir, struct zs_target *t, struct err *e)
{
	struct zs_manifest m = {.n = 0};
	int rc = zs_txn_pending(dir, e);

	if (rc <= 0)
		return rc ? rc : replay_remains(dir, e);
	rc = replay_load(dir, t->magic, &m, e);
	if (rc == 0)
		rc = t->begin(t, &m, e);
	for (size_t i = 0; rc == 0 && i < t->n_phases; i++)
		rc = replay_phase(&m, &t->phases[i], t, e);
	free(m.p);
	return rc ? rc : replay_forget(dir, e);
}

void zs_txn_path(char out[64], uint64_t n)
{
	(void)snprintf(out, 64, "txn/%" PRIu64 "/%" PRIu64, n / FOLDER, n);
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
