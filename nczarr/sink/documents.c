/* SPDX-License-Identifier: BSD-3-Clause */
/* documents.c - changed documents, as JSON: those of the store with changed members. Numbers keep
 * their source text and objects their order, so that all other members are unchanged to the last
 * digit. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <string.h>

#define LONG 200
#define TRIES 3 /* reads of a document that changes meanwhile */

/* ---- values ---- */

struct jw *zs_made_begin(struct zs_made *m)
{
	buf_init(&m->b, PTRDIFF_MAX);
	jw_init(&m->j, &m->b, false);
	return &m->j;
}

int zs_made_end(struct zs_made *m, json_t **ret, struct err *e)
{
	int rc = buf_ok(&m->b) ? json_read(m->b.data, m->b.len, ret, e) : err_nomem(e);

	buf_release(&m->b);
	return rc;
}

json_t *zs_json_u64(uint64_t v)
{
	struct zs_made m;
	json_t *ret;

	jw_u64(zs_made_begin(&m), v);
	return zs_made_end(&m, &ret, NULL) == 0 ? ret : NULL;
}

json_t *zs_json_text(const char *s, size_t n)
{
	struct zs_made m;
	json_t *ret;

	jw_text(zs_made_begin(&m), s, n);
	return zs_made_end(&m, &ret, NULL) == 0 ? ret : NULL;
}

/* ---- documents ---- */

static struct zs_doc *docs_known(struct zarr_sink *s, const char *key)
{
	const json_t *i = json_object_get(s->index, key);

	return i ? &s->docs[json_integer_value(i)] : NULL;
}

/* docs_add - v is taken. */
static int docs_add(struct zarr_sink *s, const char *key, json_t *v, bool dirty,
		    struct zs_doc **ret, struct err *e)
{
	char *copy = strdup(key);

	if (!copy || grow_array(&s->docs, &s->c_docs, s->n_docs + 1, sizeof(*s->docs)) < 0 ||
	    json_object_set_new(s->index, key, json_integer((json_int_t)s->n_docs)) < 0) {
		free(copy);
		json_decref(v);
		return err_nomem(e);
	}
	*ret = &s->docs[s->n_docs++];
	**ret = (struct zs_doc){.key = copy, .v = v, .dirty = dirty};
	return 0;
}

/* docs_fetch - read a document with its version. -ENOENT. */
static int docs_fetch(struct zarr_sink *s, const char *key, struct buf *out,
		      uint64_t *ret_version, struct err *e)
{
	struct store *st = zr_of(s->real)->store;
	struct store_stat is;
	int rc = -ESTALE;

	*ret_version = 0;
	for (int i = 0; i < TRIES && (rc == -EIO || rc == -ESTALE); i++) {
		rc = store_stat(st, key, &is, e);
		if (rc)
			return rc;
		if (is.is_dir)
			return err_set(e, -EISDIR, "'%.*s' is not a metadata file", LONG, key);
		rc = store_get(st, key, out, ret_version, e);
	}
	return rc;
}

static int read_doc(struct zarr_sink *s, const char *key, json_t **ret, struct err *e)
{
	auto_buf b = buf_of(ZR_DOC_MAX);
	uint64_t version;
	int rc = zs_watch(s, key, e);

	*ret = NULL;
	if (rc < 0)
		return rc;
	rc = docs_fetch(s, key, &b, &version, e);
	if (rc == 0) {
		rc = json_read(b.data, b.len, ret, e);
		if (rc)
			rc = err_wrap(e, rc, "'%.*s'", LONG, key);
	}
	if (rc == 0 || rc == -ENOENT)
		rc = zs_remote_expect(&s->txn, key, version, e);
	if (rc == 0 && *ret && !json_is_object(*ret)) {
		json_decref(*ret);
		*ret = NULL;
		return err_set(e, -EBADMSG, "'%.*s' is not a JSON object", LONG, key);
	}
	return rc;
}

int zs_doc_get(struct zarr_sink *s, const char *key, const char *from, bool make,
	       struct zs_doc **ret, struct err *e)
{
	struct zs_doc *d = docs_known(s, key);
	json_t *v = NULL;
	int rc;

	if (!d) {
		rc = from ? read_doc(s, from, &v, e) : 0;
		rc = rc ? rc : docs_add(s, key, v, false, &d, e);
		if (rc)
			return rc;
	}
	if (!d->v && make) {
		d->v = json_object();
		d->dirty = true;
		if (!d->v)
			return err_nomem(e);
	}
	*ret = d;
	return 0;
}

int zs_doc_set(struct zarr_sink *s, const char *key, json_t *v, struct err *e)
{
	struct zs_doc *d = docs_known(s, key);

	if (!d)
		return docs_add(s, key, v, true, &d, e);
	json_decref(d->v);
	d->v = v;
	d->dirty = true;
	return 0;
}

void zs_docs_drop(struct zarr_sink *s, const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < s->n_docs; i++) {
		struct zs_doc *d = &s->docs[i];

		if (strncmp(d->key, key, n) != 0 || d->key[n] != '/')
			continue;
		json_decref(d->v);
		d->v = NULL;
		d->dirty = false;
		/* a later document with this key is another one */
		(void)json_object_del(s->index, d->key);
	}
}

const char *zs_doc_name(const struct zarr_sink *s, bool array, bool attrs)
{
	return s->format == 3 ? "zarr.json" : attrs ? ".zattrs" : array ? ".zarray" : ".zgroup";
}

int zs_doc_in(struct zarr_sink *s, const char *dir, const char *from, const char *name,
	      bool make, struct zs_doc **ret, struct err *e)
{
	const char *to = zs_path_join(s, dir, name, e);
	const char *at = to && from ? zs_path_join(s, from, name, e) : NULL;

	if (!to || (from && !at))
		return -ENOMEM;
	return zs_doc_get(s, to, at, make, ret, e);
}

int zs_node_doc(struct zarr_sink *s, const char *key, const char *from, bool array, bool attrs,
		struct zs_doc **ret, struct err *e)
{
	return zs_doc_in(s, key, from, zs_doc_name(s, array, attrs), attrs || !array, ret, e);
}

int zs_attrs(struct zarr_sink *s, const char *key, const char *from, bool array, json_t **ret,
	     struct err *e)
{
	struct zs_doc *d;
	json_t *v;
	int rc = zs_node_doc(s, key, from, array, true, &d, e);

	if (rc)
		return rc;
	d->dirty = true;
	*ret = d->v;
	if (s->format != 3)
		return 0;
	v = json_object_get(d->v, "attributes");
	if (!json_is_object(v)) {
		v = json_object();
		if (!v || json_object_set_new(d->v, "attributes", v) < 0)
			return err_nomem(e);
	}
	*ret = v;
	return 0;
}

/* ---- writing them ---- */

/* docs_of_all - whether a document is consolidated metadata, and is put after the
 * others. */
static bool docs_of_all(const struct zarr_sink *s, const char *key)
{
	return s->format == 3 ? strcmp(key, "zarr.json") == 0
			      : strcmp(store_key_name(key), ".zmetadata") == 0;
}

int zs_docs_write(struct zarr_sink *s, struct err *e)
{
	int rc = zs_consolidate(s, e);

	for (size_t i = 0; rc == 0 && i < s->n_docs; i++) {
		const struct zs_doc *d = &s->docs[i];
		char dir[STORE_KEY_MAX + 1];
		auto_buf b = buf_of(ZR_DOC_MAX);
		struct jw j;

		if (!d->dirty || !d->v)
			continue;
		store_key_parent(d->key, dir);
		rc = store_movable(s->txn.store, dir, s->txn.dir, e);
		if (rc)
			break;
		/* zarr-python 2 reads ASCII only, netCDF-C does not support \uXXXX */
		jw_init(&j, &b, s->mode != ZARR_NCZARR || docs_of_all(s, d->key));
		json_put(&j, d->v);
		buf_putc(&b, '\n');
		rc = buf_ok(&b)
			     ? zs_txn_put(&s->txn, docs_of_all(s, d->key) ? ZS_ROOT : ZS_DOC,
					  d->key, b.data, b.len, e)
			     : buf_full(&b, e, -ERANGE, "'%.*s' would be larger than %zu bytes",
					LONG, d->key, ZR_DOC_MAX);
	}
	return rc;
}
