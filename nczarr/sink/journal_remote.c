/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_remote.c - the steps for a store without moves, where the only operations are to put and
 * to remove single objects. So removed directories are expanded to objects, objects of renamed
 * ones are fetched and put again, and conflicts with other programs are detected by the versions
 * of documents. docs/dev/writing/zarr-sink.md. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/os/io.h"
#include "base/os/thread.h"
#include "nczarr/nczarr.h"

#define PIECE ((size_t)4 << 20) /* piece of an object that is fetched */
#define DEEP 256                /* directories within directories */
#define AT_ONCE 8               /* requests */
#define LONG 200

/* moved - an object in a removed or renamed directory. */
struct moved {
	const char *key; /* in the arena */
	size_t away;     /* the step */
};

struct zs_remote {
	struct zs_txn *txn;
	size_t *aways;           /* n_aways steps: removed or renamed directories */
	size_t n_aways, c_aways;
	json_t *puts;  /* keys that are put */
	json_t *homes; /* directories of documents that are put, with their parents */
	json_t *drops; /* keys that are removed */
	struct moved *moved;
	size_t n_moved, c_moved;
	size_t copies;     /* the first step of an object to fetch */
	const char **from; /* n_from: the current keys of these objects */
	size_t n_from, c_from;
};

/* ---- several at a time ---- */

struct journal_remote_each {
	size_t n, next; /* lock */
	int (*fn)(void *arg, size_t i, struct err *e);
	void *arg;
	pthread_mutex_t lock;
	int rc;       /* lock: of the first failure */
	struct err e; /* lock */
};

static void *journal_work(void *arg)
{
	struct journal_remote_each *x = arg;
	struct err e = ERR_INIT;

	(void)pthread_mutex_lock(&x->lock);
	while (x->rc == 0 && x->next < x->n) {
		size_t i = x->next++;
		int rc;

		(void)pthread_mutex_unlock(&x->lock);
		rc = x->fn(x->arg, i, &e);
		(void)pthread_mutex_lock(&x->lock);
		if (rc && x->rc == 0) {
			x->rc = rc;
			x->e = e;
		}
	}
	(void)pthread_mutex_unlock(&x->lock);
	return NULL;
}

int zs_each(size_t n, bool parallel, int (*fn)(void *arg, size_t i, struct err *e), void *arg,
	    struct err *e)
{
	struct journal_remote_each x = {.n = n, .fn = fn, .arg = arg, .e = ERR_INIT};
	pthread_t threads[AT_ONCE];
	size_t n_threads = 0;

	if (n == 0)
		return 0;
	if (pthread_mutex_init(&x.lock, NULL) != 0)
		return err_nomem(e);
	while (parallel && n_threads < AT_ONCE - 1 && n_threads + 1 < n &&
	       thread_start(&threads[n_threads], journal_work, &x) == 0)
		n_threads++; /* continue with fewer threads */
	(void)journal_work(&x);
	for (size_t i = 0; i < n_threads; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_mutex_destroy(&x.lock);
	if (x.rc && e)
		*e = x.e;
	return x.rc;
}

/* ---- steps of the sink ---- */

static int journal_enter(json_t *set, const char *key, struct err *e)
{
	return json_object_set_new(set, key, json_true()) < 0 ? err_nomem(e) : 0;
}

/* journal_collect - the sets that step i belongs to. */
static int journal_collect(struct zs_remote *f, size_t i, struct err *e)
{
	const struct zs_step *x = &f->txn->steps[i];
	int rc = 0;

	if (x->op == ZS_AWAY) {
		if (grow_array(&f->aways, &f->c_aways, f->n_aways + 1, sizeof(*f->aways)) < 0)
			return err_nomem(e);
		f->aways[f->n_aways++] = i;
	}
	if (x->op == ZS_PUT || x->op == ZS_DOC || x->op == ZS_ROOT)
		rc = journal_enter(f->puts, x->key, e);
	if (rc == 0 && (x->op == ZS_DOC || x->op == ZS_ROOT))
		rc = zs_above(f->homes, x->key, e);
	return rc;
}

int zs_remote_expect(struct zs_txn *t, const char *key, uint64_t version, struct err *e)
{
	const char *copy;

	if (store_moves(t->store) || json_object_get(t->known, key))
		return 0;
	t->known = t->known ? t->known : json_object();
	copy = arena_strdup(&t->arena, key);
	if (!copy || grow_array(&t->seen, &t->c_seen, t->n_seen + 1, sizeof(*t->seen)) < 0 ||
	    json_object_set_new(t->known, key, json_integer((json_int_t)t->n_seen)) < 0)
		return err_nomem(e);
	t->seen[t->n_seen++] = (struct zs_expected){.key = copy, .version = version};
	return 0;
}

/* ---- directories that go ---- */

static bool journal_add_name(void *arg, const char *name, bool is_dir,
			     const struct store_stat *st NZ_UNUSED)
{
	struct buf *b = arg;

	buf_putc(b, is_dir ? 'd' : 'f');
	buf_put(b, name, strlen(name) + 1);
	return buf_ok(b);
}

/* journal_gather - collect all objects below a key: by one listing if the service supports
 * it, else folder by folder. */
static int journal_gather(struct zs_remote *f, const char *dir, size_t away, unsigned depth,
			  struct err *e)
{
	auto_buf names = buf_of(PTRDIFF_MAX);
	int rc;

	if (depth == 0)
		return err_set(e, -ELOOP, "'%.*s' is nested too deeply", LONG, dir);
	rc = store_list_deep(f->txn->store, dir, journal_add_name, &names, e);
	if (rc == -EOPNOTSUPP)
		rc = store_list(f->txn->store, dir, false, journal_add_name, &names, e);
	if (rc == -ENOENT)
		rc = 0;
	if (rc == 0 && !buf_ok(&names))
		rc = err_nomem(e);
	for (size_t at = 0; rc == 0 && at < names.len;) {
		const char *name = (const char *)names.data + at + 1;
		size_t n = strlen(dir) + strlen(name) + 2;
		char *key = arena_alloc(&f->txn->arena, n, 1);

		if (!key)
			return err_nomem(e);
		(void)snprintf(key, n, "%s/%s", dir, name);
		if (names.data[at] == 'd') {
			rc = journal_gather(f, key, away, depth - 1, e);
		} else if (grow_array(&f->moved, &f->c_moved, f->n_moved + 1,
				      sizeof(*f->moved)) < 0) {
			rc = err_nomem(e);
		} else {
			f->moved[f->n_moved++] = (struct moved){.key = key, .away = away};
		}
		at += strlen(name) + 2;
	}
	return rc;
}

/* to_copy - an object with a new key: make a file for its copy. */
static int to_copy(struct zs_remote *f, const struct moved *m, const char *to, struct err *e)
{
	const char *rest = m->key + strlen(f->txn->steps[m->away].key);
	char key[STORE_KEY_MAX + 1];
	uint64_t file;
	int rc, fd;

	if (snprintf(key, sizeof(key), "%s%s", to, rest) > STORE_KEY_MAX)
		return err_set(e, -ERANGE, "'%.100s%.100s': the key is longer than %d bytes",
			       to, rest, STORE_KEY_MAX);
	if (json_object_get(f->puts, key))
		return 0; /* it is written by another step */
	rc = zs_txn_new(f->txn, &file, &fd, e);
	if (rc)
		return rc;
	(void)close(fd); /* synced with the others */
	if (grow_array(&f->from, &f->c_from, f->n_from + 1, sizeof(*f->from)) < 0)
		return err_nomem(e);
	f->from[f->n_from++] = m->key;
	rc = zs_txn_step(f->txn, zarr_doc_key(key) ? ZS_DOC : ZS_PUT, file, key, e);
	return rc ? rc : journal_collect(f, f->txn->n_steps - 1, e);
}

/* journal_fetch - fetch one of the copies. */
static int journal_fetch(void *arg, size_t i, struct err *e)
{
	struct zs_remote *f = arg;
	const char *from = f->from[i];
	auto_free uint8_t *room = malloc(PIECE);
	struct store_stat st;
	auto_fd int fd = -1;
	char path[64];
	int rc;

	if (!room)
		return err_nomem(e);
	zs_txn_path(path, f->txn->steps[f->copies + i].n);
	fd = openat(f->txn->dir, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "'%s' in the state directory", path);
	rc = store_stat(f->txn->store, from, &st, e);
	for (uint64_t at = 0; rc == 0 && at < st.size;) {
		size_t n = (size_t)u64_min(st.size - at, PIECE);
		uint64_t version = 0;

		rc = store_read(f->txn->store, from, at, room, n, &version, e);
		if (rc == 0 && version != st.version)
			rc = err_set(e, -ESTALE, "'%.*s' was changed by another program", LONG,
				     from);
		rc = rc ? rc : io_pwrite(fd, room, n, at, e);
		at += n;
	}
	return rc;
}

/* journal_expand - expand steps of directories to objects. */
static int journal_expand(struct zs_remote *f, struct err *e)
{
	const char *to = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->n_aways; i++)
		rc = journal_gather(f, f->txn->steps[f->aways[i]].key, f->aways[i], DEEP, e);
	if (rc || f->n_moved == 0)
		return rc;
	f->copies = f->txn->n_steps;
	for (size_t i = 0; rc == 0 && i < f->n_moved; i++) {
		/* objects of one directory are adjacent */
		if (i == 0 || f->moved[i].away != f->moved[i - 1].away) {
			to = NULL; /* it is removed */
			for (size_t k = 0; !to && k < f->copies; k++)
				if (f->txn->steps[k].op == ZS_INTO &&
				    f->txn->steps[k].n == f->txn->steps[f->moved[i].away].n)
					to = f->txn->steps[k].key;
		}
		if (to)
			rc = to_copy(f, &f->moved[i], to, e);
	}
	return rc ? rc : zs_each(f->n_from, true, journal_fetch, f, e);
}

/* ---- the manifest ---- */

/* journal_drop - remove an object of a directory. If a new array takes its place, the
 * document is removed first, then objects that are not put again: old chunks must not be readable
 * with a new document. */
static int journal_drop(struct zs_remote *f, const struct moved *m, struct err *e)
{
	bool again = json_object_get(f->homes, f->txn->steps[m->away].key) != NULL;
	bool put = json_object_get(f->puts, m->key) != NULL;

	if (json_object_get(f->drops, m->key) || (put && !(again && zarr_doc_key(m->key))))
		return 0;
	if (journal_enter(f->drops, m->key, e) < 0)
		return -ENOMEM;
	zs_txn_note(f->txn, again ? ZS_REMOVE_FIRST : ZS_DROP, 0, m->key);
	return 0;
}

/* needs_version - whether a step overwrites a document: none in a directory removed first. */
static bool needs_version(const struct zs_remote *f, const struct zs_step *x)
{
	if (x->op != ZS_DOC && x->op != ZS_ROOT)
		return false;
	for (size_t i = 0; i < f->n_aways; i++)
		if (store_key_below(f->txn->steps[f->aways[i]].key, x->key))
			return false;
	return true;
}

static int write_steps(struct zs_remote *f, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->n_moved; i++)
		rc = journal_drop(f, &f->moved[i], e);
	for (size_t i = 0; i < f->txn->n_steps; i++) {
		const struct zs_step *x = &f->txn->steps[i];
		const json_t *seen = json_object_get(f->txn->known, x->key);

		if (x->op == ZS_AWAY || x->op == ZS_INTO)
			continue;
		if (needs_version(f, x))
			zs_txn_note(f->txn, ZS_IF_VERSION,
				    seen ? f->txn->seen[json_integer_value(seen)].version
					 : 0,
				    x->key);
		zs_txn_note(f->txn, x->op, x->n, x->key);
	}
	return rc;
}

/* is_expected - check the current version of one document. */
static int is_expected(void *arg, size_t i, struct err *e)
{
	const struct zs_txn *t = arg;
	const struct zs_expected *x = &t->seen[i];
	struct store_stat st = {.version = 0};
	int rc = store_fresh(t->store, x->key, &st, e);

	if (rc && rc != -ENOENT)
		return rc;
	if ((rc ? 0 : st.version) == x->version)
		return 0;
	return err_set(
		e, -ESTALE,
		"'%.*s' was %s by another program since it was read: nothing was written", LONG,
		x->key,
		rc                ? "removed"
		: x->version == 0 ? "made"
				  : "changed");
}

static int make_ready(struct zs_remote *f, struct err *e)
{
	struct zs_txn *t = f->txn;
	auto_fd int fd = -1;
	int rc = 0;

	if (!f->puts || !f->homes || !f->drops)
		return err_nomem(e);
	for (size_t i = 0, n = t->n_steps; rc == 0 && i < n; i++)
		rc = journal_collect(f, i, e);
	rc = rc ? rc : journal_expand(f, e);
	rc = rc ? rc : zs_each(t->n_seen, true, is_expected, t, e);
	rc = rc ? rc : write_steps(f, e);
	if (rc)
		return rc;
	fd = openat(t->dir, ZS_CONDITIONS, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_sys(e, errno, "'%s' in the state directory", ZS_CONDITIONS) : 0;
}

int zs_remote_ready(struct zs_txn *t, struct err *e)
{
	struct zs_remote f = {.txn = t,
			      .puts = json_object(),
			      .homes = json_object(),
			      .drops = json_object()};
	int rc = make_ready(&f, e);

	json_decref(f.puts);
	json_decref(f.homes);
	json_decref(f.drops);
	free(f.from);
	free(f.aways);
	free(f.moved);
	return rc;
}
