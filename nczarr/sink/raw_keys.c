/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_keys.c - a change of a remote store that is told key by key: programs wrote the
 * store's own objects, and those are put as they are. Nothing goes through a model, so that
 * nothing is lost of what only the programs understand. Only documents of all are made anew,
 * where they are there and do not say what the others say. */
#include "nczarr/nczarr.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "nczarr/sink/sink_int.h"

#define LONG 200
#define MEMORY ((size_t)4 << 30)

/* document - one that is put, or brought in line. */
struct document {
	const char *key;  /* in the arena */
	const uint8_t *p; /* n bytes, in the arena; NULL: they are not known yet */
	size_t n;
	json_t *v;        /* NULL: it cannot be read, and is put as it is */
	uint64_t version; /* what it has to be */
	bool put;         /* it is another one than the store's */
	bool ours;        /* nobody wrote it: it is a document of all */
	bool gone;
};

struct zarr_keys {
	struct zs_txn txn;
	struct store *store;
	int consolidated;
	struct arena arena;
	struct document *docs;
	size_t n_docs, c_docs;
	json_t *index;     /* key -> number of the document */
	const char **gone; /* keys; in the arena */
	size_t n_gone, c_gone;
};

int zarr_keys_begin(const struct zarr_sink_options *opts, struct zarr_keys **ret, struct err *e)
{
	struct zarr_keys *k;
	int rc;

	if (!opts->store->ops->put || !opts->store->ops->remove || opts->store->unlisted)
		return err_set(e, -EROFS, "the %s store is read-only", opts->store->ops->name);
	k = alloc_array(1, sizeof(*k));
	if (!k)
		return err_nomem(e);
	k->store = opts->store;
	k->consolidated = opts->consolidated;
	arena_init(&k->arena, MEMORY);
	k->index = json_object();
	k->txn = (struct zs_txn){.root = -1, .txn = -1, .sub = -1, .manifest = -1};
	rc = k->index ? zs_txn_open(&k->txn, -1, opts->store, opts->dir_fd, e) : err_nomem(e);
	if (rc) {
		zarr_keys_free(k);
		return rc;
	}
	*ret = k;
	return 0;
}

void zarr_keys_free(struct zarr_keys *k)
{
	if (!k)
		return;
	zs_txn_close(&k->txn);
	for (size_t i = 0; i < k->n_docs; i++)
		json_decref(k->docs[i].v);
	free(k->docs);
	free(k->gone);
	json_decref(k->index);
	arena_release(&k->arena);
	free(k);
}

/* ---- documents ---- */

static struct document *raw_keys_known(const struct zarr_keys *k, const char *key)
{
	const json_t *i = json_object_get(k->index, key);

	return i ? &k->docs[json_integer_value(i)] : NULL;
}

/* raw_keys_add - v is taken. */
static int raw_keys_add(struct zarr_keys *k, const struct document *d, struct err *e)
{
	const char *copy = arena_strdup(&k->arena, d->key);

	if (!copy || grow_array(&k->docs, &k->c_docs, k->n_docs + 1, sizeof(*k->docs)) < 0 ||
	    json_object_set_new(k->index, d->key, json_integer((json_int_t)k->n_docs)) < 0) {
		json_decref(d->v);
		return err_nomem(e);
	}
	k->docs[k->n_docs] = *d;
	k->docs[k->n_docs++].key = copy;
	return 0;
}

int zarr_doc_check(const char *key, const uint8_t *p, size_t n, struct err *e)
{
	json_t *v = NULL;
	int rc = json_read(p, n, &v, e);

	if (rc)
		return err_wrap(e, rc, "'%.*s'", LONG, key);
	rc = json_is_object(v) ? 0
			       : err_set(e, -EBADMSG, "'%.*s' is not a JSON object", LONG, key);
	json_decref(v);
	return rc;
}

int zarr_keys_put(struct zarr_keys *k, const char *key, const uint8_t *p, size_t n,
		  uint64_t version, struct err *e)
{
	struct document d = {.key = key, .n = n, .version = version, .put = true};

	if (!zarr_doc_key(key))
		return zs_txn_put(&k->txn, ZS_PUT, key, p, n, e);
	d.p = arena_copy(&k->arena, p, n);
	if (!d.p)
		return err_nomem(e);
	if (json_read(p, n, &d.v, NULL) < 0)
		d.v = NULL;
	return raw_keys_add(k, &d, e);
}

void zarr_keys_ours(struct zarr_keys *k,
		    bool (*ours)(void *arg, const char *key, const uint8_t *p, size_t n),
		    void *arg)
{
	zs_journal_is_own_write(&k->txn, ours, arg);
}

int zarr_keys_gone(struct zarr_keys *k, const char *key, struct err *e)
{
	const char *copy = arena_strdup(&k->arena, key);
	struct store_stat st;
	int rc;

	if (!copy || grow_array(&k->gone, &k->c_gone, k->n_gone + 1, sizeof(*k->gone)) < 0)
		return err_nomem(e);
	k->gone[k->n_gone++] = copy;
	rc = store_stat(k->store, key, &st, e);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (st.is_dir)
		return zs_txn_step(&k->txn, ZS_AWAY, k->txn.n_aways++, key, e);
	return zs_txn_step(&k->txn, ZS_DROP, 0, key, e);
}

/* ---- documents of all ---- */

static const char *raw_keys_name_of(const char *key)
{
	const char *slash = strrchr(key, '/');

	return slash ? slash + 1 : key;
}

static bool is_v3(const char *key)
{
	return strcmp(raw_keys_name_of(key), "zarr.json") == 0;
}

static bool raw_keys_is_all2(const char *key)
{
	return strcmp(raw_keys_name_of(key), ".zmetadata") == 0;
}

/* raw_keys_inside - what of a key lies below a directory ("" is the root); NULL: it does not. */
static const char *raw_keys_inside(const char *dir, const char *key)
{
	size_t n = strlen(dir);

	if (n == 0)
		return key;
	return strncmp(key, dir, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

/* lost - whether what the store has under a key goes with something. */
static bool lost(const struct zarr_keys *k, const char *key)
{
	for (size_t i = 0; i < k->n_gone; i++)
		if (strcmp(k->gone[i], key) == 0 || raw_keys_inside(k->gone[i], key))
			return true;
	return false;
}

/* raw_keys_fetch - a document that nobody wrote, as it is now. *ret NULL: there is none. The root's
 * is asked for anew: others consolidate, too. */
static int raw_keys_fetch(struct zarr_keys *k, const char *key, struct document **ret,
			  struct err *e)
{
	struct document d = {.key = key, .ours = true};
	struct store_stat st;
	struct buf b;
	int rc = 0;

	*ret = NULL;
	if (lost(k, key))
		return 0;
	if (!strchr(key, '/'))
		rc = store_fresh(k->store, key, &st, e);
	buf_init(&b, ZR_DOC_MAX);
	if (rc == 0)
		rc = zs_remote_get(k->store, key, &b, &d.version, e);
	if (rc == 0 && json_read(b.data, b.len, &d.v, NULL) < 0)
		d.v = NULL; /* not ours to mend */
	buf_release(&b);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = raw_keys_add(k, &d, e);
	*ret = rc ? NULL : &k->docs[k->n_docs - 1];
	return rc;
}

/* raw_keys_refresh - entries of what changes, below a directory. */
static int raw_keys_refresh(struct zarr_keys *k, bool v3, const char *dir, json_t *all,
			    struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < k->n_gone; i++) {
		const char *rel = raw_keys_inside(dir, k->gone[i]);
		char node[STORE_KEY_MAX + 1];
		size_t n = rel ? strlen(rel) : 0;

		if (!rel)
			continue;
		memcpy(node, rel, n + 1);
		if (v3 && n > 10 && strcmp(node + n - 10, "/zarr.json") == 0)
			node[n - 10] = '\0';
		zs_all_forget(all, node);
	}
	for (size_t i = 0; rc == 0 && i < k->n_docs; i++) {
		const struct document *d = &k->docs[i];
		const char *rel =
			d->v && !d->ours && is_v3(d->key) == v3 && !raw_keys_is_all2(d->key)
				? raw_keys_inside(dir, d->key)
				: NULL;

		if (rel)
			rc = zs_all_enter(v3 ? 3 : 2, all, rel, d->v, e);
	}
	return rc;
}

/* in_line - a document of all with what changes. *ret: new; NULL: it has none to be kept. */
static int in_line(struct zarr_keys *k, bool v3, const char *dir, const json_t *was,
		   json_t **ret, struct err *e)
{
	json_t *v = json_deep_copy(was);
	json_t *holder = v3 ? json_object_get(v, ZS_ALL3) : v;
	json_t *all = json_object_get(holder, "metadata");
	int rc = v ? 0 : err_nomem(e);

	*ret = NULL;
	if (rc == 0 && !json_is_object(all)) {
		json_decref(v);
		return 0;
	}
	if (rc == 0 && k->consolidated == 0 && v3) {
		(void)json_object_del(v, ZS_ALL3); /* it was there */
	} else if (rc == 0) {
		rc = raw_keys_refresh(k, v3, dir, all, e);
		if (rc == 0 && v3 && !json_equal(v, was)) {
			all = zs_all_sorted(all);
			if (!all || json_object_set_new(holder, "metadata", all) < 0)
				rc = err_nomem(e);
		}
	}
	if (rc) {
		json_decref(v);
		return rc;
	}
	*ret = v;
	return 0;
}

/* serialize - d->v as bytes. */
static int serialize(struct zarr_keys *k, struct document *d, struct err *e)
{
	struct buf b;
	struct jw j;
	int rc = 0;

	buf_init(&b, ZR_DOC_MAX);
	jw_init(&j, &b, true);
	zs_json_put(&j, d->v);
	buf_putc(&b, '\n');
	d->p = buf_ok(&b) ? arena_copy(&k->arena, b.data, b.len) : NULL;
	d->n = b.len;
	d->put = true;
	if (!d->p && k->arena.starved)
		rc = err_nomem(e);
	else if (!d->p)
		rc = buf_full(&b, e, -ERANGE, "'%.*s' would be larger than %zu bytes", LONG,
			      d->key, ZR_DOC_MAX);
	buf_release(&b);
	return rc;
}

/* raw_keys_one - the document of all of a directory, if it has one. */
static int raw_keys_one(struct zarr_keys *k, bool v3, const char *dir, struct err *e)
{
	char key[STORE_KEY_MAX + 1];
	struct document *d;
	json_t *v;
	int rc = 0, n = snprintf(key, sizeof(key), "%s%s%s", dir, *dir ? "/" : "",
				 v3 ? "zarr.json" : ".zmetadata");

	if (n < 0 || (size_t)n >= sizeof(key))
		return 0; /* no key of ours is that long */
	d = raw_keys_known(k, key);
	if (!d)
		rc = raw_keys_fetch(k, key, &d, e);
	if (rc || !d || !d->v)
		return rc;
	if (k->consolidated == 0 && !v3) {
		d->gone = true;
		return 0;
	}
	rc = in_line(k, v3, dir, d->v, &v, e);
	if (rc || !v)
		return rc;
	if (json_equal(v, d->v)) {
		json_decref(v);
		return 0;
	}
	json_decref(d->v);
	d->v = v;
	return serialize(k, d, e);
}

/* raw_keys_above - groups above a key, the root among them: keys of a JSON object. */
static int raw_keys_above(json_t *set, const char *key, struct err *e)
{
	char dir[STORE_KEY_MAX + 1];

	memcpy(dir, key, strlen(key) + 1);
	for (;;) {
		char *slash = strrchr(dir, '/');

		dir[slash ? slash - dir : 0] = '\0';
		if (json_object_set_new(set, dir, json_true()) < 0)
			return err_nomem(e);
		if (!slash)
			return 0;
	}
}

/* touches - whether something that goes can be more than chunks: a document, or a directory. */
static bool touches(const struct zarr_keys *k, const char *key)
{
	struct store_stat st;

	return zarr_doc_key(key) || (store_stat(k->store, key, &st, NULL) == 0 && st.is_dir);
}

static int consolidate(struct zarr_keys *k, bool v3, struct err *e)
{
	json_t *set = json_object();
	int rc = set ? 0 : err_nomem(e);
	const char *dir;
	json_t *v;

	for (size_t i = 0; rc == 0 && i < k->n_docs; i++)
		if (is_v3(k->docs[i].key) == v3 && !k->docs[i].ours)
			rc = raw_keys_above(set, k->docs[i].key, e);
	for (size_t i = 0; rc == 0 && i < k->n_gone; i++)
		if (touches(k, k->gone[i]))
			rc = raw_keys_above(set, k->gone[i], e);
	json_object_foreach(set, dir, v) if (rc == 0) rc = raw_keys_one(k, v3, dir, e);
	json_decref(set);
	return rc;
}

/* ---- commit ---- */

/* raw_keys_of_all - whether a document repeats others, and comes after them. */
static bool raw_keys_of_all(const struct document *d)
{
	return raw_keys_is_all2(d->key) || (is_v3(d->key) && json_object_get(d->v, ZS_ALL3));
}

static int raw_keys_put_doc(struct zarr_keys *k, const struct document *d, struct err *e)
{
	int rc;

	if (d->gone)
		return zs_txn_step(&k->txn, ZS_DROP, 0, d->key, e);
	if (!d->put)
		return 0;
	rc = zs_remote_expect(&k->txn, d->key, d->version, e);
	if (rc)
		return rc;
	zs_journal_accept_content(&k->txn, d->key, d->p, d->n, d->ours);
	return zs_txn_put(&k->txn, raw_keys_of_all(d) ? ZS_ROOT : ZS_DOC, d->key, d->p, d->n,
			  e);
}

int zarr_keys_commit(struct zarr_keys *k, struct err *e)
{
	int rc = consolidate(k, false, e);

	if (rc == 0)
		rc = consolidate(k, true, e);
	for (size_t i = 0; rc == 0 && i < k->n_docs; i++)
		rc = raw_keys_put_doc(k, &k->docs[i], e);
	return rc ? rc : zs_txn_commit(&k->txn, NULL, NULL, e);
}
