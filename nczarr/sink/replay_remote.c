/* SPDX-License-Identifier: BSD-3-Clause */
/* replay_remote.c - carries out the manifest of a remote store; after a crash or a failure of the
 * service again from its start.
 *
 * Conflicting objects are removed first, then chunks are put, then documents, consolidated ones
 * last, then dropped objects are removed, documents first. The steps of a phase run in parallel. A
 * second run repeats all steps: it puts the same bytes under the same keys. A document that was
 * put already is recognised by its content, since an answer may have been lost. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"

#define LONG 200

struct replay_redo {
	struct zs_target base;
	struct store *store;
	int dir;
	bool conditions; /* conditions are checked */
	struct arena arena;
	struct zs_step *steps; /* of the current phase; keys in the arena */
	size_t n, cap;
};

static struct replay_redo *replay_of(struct zs_target *t)
{
	return CONTAINER_OF(t, struct replay_redo, base);
}

static int replay_begin(struct zs_target *t, const struct zs_manifest *m NZ_UNUSED,
			struct err *e)
{
	struct replay_redo *r = replay_of(t);

	r->conditions = faccessat(r->dir, ZS_CONDITIONS, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (r->conditions || errno == ENOENT)
		return 0;
	/* without the check, changes of other programs would be overwritten */
	return err_sys(e, errno, "'" ZS_CONDITIONS "' in the state directory");
}

/* ---- one object ---- */

static int begun(const struct zs_step *x, int rc, struct err *e)
{
	return err_wrap(e, rc,
			"'%.*s' cannot be changed: the commit is incomplete; the next commit, "
			"the next start or nczarrfs recover completes it",
			LONG, x->key);
}

/* replay_is_ours - whether the service has the bytes to put under a key. 1, 0 or an
 * error. */
static int replay_is_ours(struct replay_redo *r, const struct zs_step *x, int fd, uint64_t len,
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
	if (rc == 0)
		rc = store_read(r->store, x->key, 0, theirs, (size_t)len, NULL, e);
	return rc ? rc : memcmp(mine, theirs, (size_t)len) == 0;
}

static int put_file(struct replay_redo *r, const struct zs_step *x, int fd, uint64_t len,
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
		if (rc == 0)
			rc = store_put(r->store, x->key, &what, NULL, e);
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

static int replay_put_one(struct replay_redo *r, const struct zs_step *x, struct err *e)
{
	auto_fd int fd = -1;
	struct stat st;
	char path[64];
	int rc;

	zs_txn_path(path, x->n);
	fd = openat(r->dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s' in the state directory", path);
	rc = put_file(r, x, fd, (uint64_t)st.st_size, e);
	return rc && rc != -ESTALE ? begun(x, rc, e) : rc;
}

static int do_one(void *arg, size_t i, struct err *e)
{
	struct replay_redo *r = arg;
	const struct zs_step *x = &r->steps[i];
	int rc;

	if (x->op != ZS_DROP && x->op != ZS_REMOVE_FIRST)
		return replay_put_one(r, x, e);
	rc = store_remove(r->store, x->key, e);
	return rc ? begun(x, rc, e) : 0;
}

/* ---- phases ---- */

static int replay_step(struct zs_target *t, const struct zs_step *x, struct err *e)
{
	struct replay_redo *r = replay_of(t);
	const char *key = arena_strdup(&r->arena, x->key);

	if (!key || grow_array(&r->steps, &r->cap, r->n + 1, sizeof(*r->steps)) < 0)
		return err_nomem(e);
	r->steps[r->n] = *x;
	r->steps[r->n++].key = key;
	return 0;
}

static int replay_end(struct zs_target *t, enum zs_op op NZ_UNUSED, struct err *e)
{
	struct replay_redo *r = replay_of(t);
	size_t n = r->n;

	r->n = 0;
	return zs_remote_each(n, do_one, r, e);
}

int zs_remote_recover(struct store *store, int dir, struct err *e)
{
	static const struct zs_phase phases[] = {
		{.op = ZS_REMOVE_FIRST, .only_docs = true},
		{.op = ZS_REMOVE_FIRST, .not_docs = true},
		{.op = ZS_PUT},
		{.op = ZS_DOC},
		{.op = ZS_ROOT},
		{.op = ZS_DROP, .only_docs = true},
		{.op = ZS_DROP, .not_docs = true},
	};
	struct replay_redo r = {.base = {.magic = ZS_REMOTE,
					 .phases = phases,
					 .n_phases = ARRAY_LEN(phases),
					 .begin = replay_begin,
					 .step = replay_step,
					 .end = replay_end},
				.store = store,
				.dir = dir};
	int rc;

	arena_init(&r.arena, SIZE_MAX / 2);
	rc = zs_replay(dir, &r.base, e);
	free(r.steps);
	arena_release(&r.arena);
	return rc;
}
