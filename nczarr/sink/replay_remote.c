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
#include "nczarr/nczarr.h"

#define LONG 200

/* step - a step of the manifest. */
struct step {
	enum zs_op op;
	bool has_condition;
	uint64_t n, version;
	const char *key; /* in the arena */
};

struct replay_remote_redo {
	struct store *store;
	int dir;
	bool conditions; /* conditions are checked */
	struct arena arena;
	struct step *steps;
	size_t n, cap;
	const struct step **now; /* n_now steps of the current phase */
	size_t n_now;
};

static int replay_remote_load(struct replay_remote_redo *r, struct err *e)
{
	struct zs_manifest m;
	int rc = zs_manifest_load(r->dir, ZS_REMOTE, &m, e);
	struct step before = {.has_condition = false};
	struct zs_step x = {.op = ZS_ROOT};

	for (size_t at = ZS_FIRST; rc == 0 && at < m.len && x.op != ZS_END;) {
		struct step *s;

		rc = zs_manifest_next(&m, &at, &x, e);
		if (rc || x.op == ZS_END)
			break;
		if (x.op == ZS_IF_VERSION) {
			before = (struct step){.has_condition = true, .version = x.n};
			continue;
		}
		if (grow_array(&r->steps, &r->cap, r->n + 1, sizeof(*r->steps)) < 0) {
			rc = err_nomem(e);
			break;
		}
		s = &r->steps[r->n++];
		*s = before;
		s->op = x.op;
		s->n = x.n;
		s->key = arena_strdup(&r->arena, x.key);
		if (!s->key)
			rc = err_nomem(e);
		before = (struct step){.has_condition = false};
	}
	free(m.p);
	r->conditions = faccessat(r->dir, ZS_CONDITIONS, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (rc == 0 && !r->conditions &&
	    errno != ENOENT) /* without the check, changes of other programs would be overwritten */
		rc = err_sys(e, errno, "'" ZS_CONDITIONS "' in the state directory");
	return rc;
}

/* ---- one object ---- */

static int begun(const struct step *x, int rc, struct err *e)
{
	return err_wrap(e, rc,
			"'%.*s' cannot be changed: the commit is incomplete; the next commit, "
			"the next start or nczarrfs recover completes it",
			LONG, x->key);
}

/* replay_remote_is_ours - whether the service has the bytes to put under a key. 1, 0 or an
 * error. */
static int replay_remote_is_ours(struct replay_remote_redo *r, const struct step *x, int fd,
				 uint64_t len, struct err *e)
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

static int foreign(const struct step *x, struct err *e)
{
	return err_set(
		e, -ESTALE,
		"'%.*s' was changed by another program during a commit: the rest of the commit "
		"is in the state directory (remove '" ZS_CONDITIONS
		"' there to write it all the same, or 'manifest' and 'txn' to discard it)",
		LONG, x->key);
}

/* as_seen - check the version before a put, for a service without conditions. */
static int as_seen(struct replay_remote_redo *r, const struct step *x, struct err *e)
{
	struct store_stat st = {.version = 0};
	int rc = store_fresh(r->store, x->key, &st, e);

	if (rc && rc != -ENOENT)
		return rc;
	return (rc ? 0 : st.version) == x->version ? 0 : -ESTALE;
}

static int put_file(struct replay_remote_redo *r, const struct step *x, int fd, uint64_t len,
		    struct err *e)
{
	struct store_put what = {.fd = fd, .len = len};
	int rc, ours;

	if (!x->has_condition || !r->conditions)
		return store_put(r->store, x->key, &what, NULL, e);
	what.absent = x->version == 0;
	what.version = x->version;
	rc = store_put(r->store, x->key, &what, NULL, e);
	if (rc == -EOPNOTSUPP) {
		what.absent = false;
		what.version = 0;
		rc = as_seen(r, x, e);
		if (rc == 0)
			rc = store_put(r->store, x->key, &what, NULL, e);
	}
	if (rc != -ESTALE && rc != -EEXIST)
		return rc;
	ours = replay_remote_is_ours(r, x, fd, len, e);
	return ours > 0 ? 0 : ours < 0 ? ours : foreign(x, e);
}

static int replay_remote_put_one(struct replay_remote_redo *r, const struct step *x,
				 struct err *e)
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
	struct replay_remote_redo *r = arg;
	const struct step *x = r->now[i];
	int rc;

	if (x->op != ZS_DROP && x->op != ZS_REMOVE_FIRST)
		return replay_remote_put_one(r, x, e);
	rc = store_remove(r->store, x->key, e);
	return rc ? begun(x, rc, e) : 0;
}

/* ---- all of them ---- */

/* phase - steps that run in parallel; documents and others are removed one after the other. */
struct phase {
	enum zs_op op;
	bool docs, others;
};

static const struct phase phases[] = {
	{ZS_REMOVE_FIRST, true, false}, {ZS_REMOVE_FIRST, false, true}, {ZS_PUT, true, true},
	{ZS_DOC, true, true},           {ZS_ROOT, true, true},          {ZS_DROP, true, false},
	{ZS_DROP, false, true},
};

static int do_phase(struct replay_remote_redo *r, const struct phase *p, struct err *e)
{
	r->n_now = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct step *x = &r->steps[i];

		if (x->op == p->op && (zarr_doc_key(x->key) ? p->docs : p->others))
			r->now[r->n_now++] = x;
	}
	return zs_remote_each(r->n_now, do_one, r, e);
}

static int replay_remote_carry_out(struct replay_remote_redo *r, struct err *e)
{
	int rc = 0;

	r->now = alloc_array(r->n, sizeof(struct step *));
	if (!r->now)
		return err_nomem(e);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(phases); i++)
		rc = do_phase(r, &phases[i], e);
	return rc;
}

int zs_remote_recover(struct store *store, int dir, struct err *e)
{
	struct replay_remote_redo r = {.store = store, .dir = dir};
	int rc = zs_txn_pending(dir, e);

	if (rc > 0) {
		arena_init(&r.arena, SIZE_MAX / 2);
		rc = replay_remote_load(&r, e);
		if (rc == 0)
			rc = replay_remote_carry_out(&r, e);
		free(r.steps);
		free(r.now);
		arena_release(&r.arena);
	}
	return rc ? rc : zs_txn_forget(dir, e);
}
