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

struct replay_redo {
	struct store *store;
	int dir;
	bool conditions; /* conditions are checked */
	const struct zs_step **steps; /* n of the current phase; owned */
	size_t n;
};

static int replay_begin(struct replay_redo *r, struct err *e)
{
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
	rc = rc ? rc : store_read(r->store, x->key, 0, theirs, (size_t)len, NULL, e);
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
	const struct zs_step *x = r->steps[i];
	int rc;

	if (x->op != ZS_DROP && x->op != ZS_REMOVE_FIRST)
		return replay_put_one(r, x, e);
	rc = store_remove(r->store, x->key, e);
	return rc ? begun(x, rc, e) : 0;
}

/* ---- phases ---- */

int zs_remote_recover(struct store *store, int dir, struct err *e)
{
	enum { ALL, DOCS, OTHERS };
	static const struct {
		enum zs_op op;
		int which;
	} phases[] = {{ZS_REMOVE_FIRST, DOCS}, {ZS_REMOVE_FIRST, OTHERS},
		      {ZS_PUT, ALL},           {ZS_DOC, ALL},
		      {ZS_ROOT, ALL},          {ZS_DROP, DOCS},
		      {ZS_DROP, OTHERS}};
	struct replay_redo r = {.store = store, .dir = dir};
	struct zs_manifest m;
	int rc = zs_manifest_load(dir, ZS_REMOTE, &m, e);

	if (rc <= 0)
		return rc;
	rc = replay_begin(&r, e);
	r.steps = alloc_array(m.n, sizeof(*r.steps));
	if (rc == 0 && !r.steps)
		rc = err_nomem(e);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(phases); i++) {
		const int which = phases[i].which;

		r.n = 0;
		for (const struct zs_step *x = m.steps; x < m.steps + m.n; x++)
			if (x->op == phases[i].op &&
			    (which == ALL || zarr_doc_key(x->key) == (which == DOCS)))
				r.steps[r.n++] = x;
		rc = zs_remote_each(r.n, do_one, &r, e);
	}
	free(r.steps);
	return zs_manifest_end(&m, dir, rc, e);
}
