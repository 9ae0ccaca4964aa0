/* SPDX-License-Identifier: BSD-3-Clause */
/* documents.c - changed documents, as JSON: those of the store with changed members. Numbers keep
 * their source text and objects their order, so that all other members are unchanged to the last
 * digit. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <string.h>

#define LONG 200
#define CONTENT 64 /* initial estimate of a document's size */

/* ---- values ---- */

json_t *zs_json_u64(uint64_t v)
{
	json_t *ret = NULL;
	struct buf b;

	buf_init(&b, CONTENT);
	buf_printf(&b, "%llu", (unsigned long long)v);
	if (buf_ok(&b) && json_read(b.data, b.len, &ret, NULL) < 0)
		ret = NULL;
	buf_release(&b);
	return ret;
}

json_t *zs_json_text(const char *s, size_t n)
{
	json_t *ret = NULL;
	struct buf b;
	struct jw j;

	buf_init(&b, PTRDIFF_MAX);
	jw_init(&j, &b, false);
	jw_text(&j, s, n);
	if (buf_ok(&b) && json_read(b.data, b.len, &ret, NULL) < 0)
		ret = NULL;
	buf_release(&b);
	return ret;
}

/* flat - whether a list has only scalars: it is written on one line. */
static bool flat(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++) {
		enum json_kind k = json_kind(json_array_get(v, i));

		if (k == JSON_IS_OBJECT || k == JSON_IS_LIST)
			return false;
	}
	return true;
}

static void docs_put_list(struct jw *j, const json_t *v)
{
	jw_array(j, flat(v));
	for (size_t i = 0; i < json_array_size(v) && buf_ok(j->out); i++)
		zs_json_put(j, json_array_get(v, i));
	jw_end(j);
}

static void docs_put_object(struct jw *j, const json_t *v)
{
	json_t *o = (json_t *)(uintptr_t)v; /* jansson's iterators are not const */

	jw_object(j, json_object_size(v) == 0);
	for (void *it = json_object_iter(o); it && buf_ok(j->out);
	     it = json_object_iter_next(o, it)) {
		jw_key(j, json_object_iter_key(it));
		zs_json_put(j, json_object_iter_value(it));
	}
	jw_end(j);
}

/* The depth of recursion is that of the document, limited by json_read() and by the writer. */
void zs_json_put(struct jw *j, const json_t *v)
{
	const char *number;
	struct ds_text t;

	switch (json_kind(v)) {
	case JSON_IS_NULL:
		jw_null(j);
		break;
	case JSON_IS_BOOL:
		jw_bool(j, json_is_true(v));
		break;
	case JSON_IS_NUMBER:
		number = json_number_text(v);
		jw_raw(j, number, strlen(number));
		break;
	case JSON_IS_TEXT:
		if (json_text_of(v, &t))
			jw_text(j, t.s, t.len);
		break;
	case JSON_IS_LIST:
		docs_put_list(j, v);
		break;
	case JSON_IS_OBJECT:
		docs_put_object(j, v);
		break;
	}
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

/* docs_fetch - read a document. -ENOENT; *ret_version: 0 if it is not needed. */
static int docs_fetch(struct zarr_sink *s, const char *key, struct buf *out,
		      uint64_t *ret_version, struct err *e)
{
	struct store *st = zr_of(s->real)->store;
	struct store_stat is;
	int rc;

	*ret_version = 0;
	if (s->txn.remote)
		return zs_remote_get(st, key, out, ret_version, e);
	rc = store_stat(st, key, &is, e);
	return rc ? rc : store_get(st, key, out, NULL, e);
}

static int read_doc(struct zarr_sink *s, const char *key, json_t **ret, struct err *e)
{
	uint64_t version;
	struct buf b;
	int rc;

	*ret = NULL;
	rc = s->txn.remote ? zs_watch(s, key, e) : 0;
	if (rc < 0)
		return rc;
	buf_init(&b, ZR_DOC_MAX);
	rc = docs_fetch(s, key, &b, &version, e);
	if (rc == 0) {
		rc = json_read(b.data, b.len, ret, e);
		if (rc)
			rc = err_wrap(e, rc, "'%.*s'", LONG, key);
	}
	buf_release(&b);
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
		if (rc == 0)
			rc = docs_add(s, key, v, false, &d, e);
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

int zs_node_doc(struct zarr_sink *s, const char *key, const char *from, bool array, bool attrs,
		struct zs_doc **ret, struct err *e)
{
	const char *name = s->format == 3 ? "zarr.json"
			   : attrs        ? ".zattrs"
			   : array        ? ".zarray"
					  : ".zgroup";
	const char *to = zs_path_join(s, key, name, e), *at = NULL;

	if (!to)
		return -ENOMEM;
	if (from) {
		at = zs_path_join(s, from, name, e);
		if (!at)
			return -ENOMEM;
	}
	return zs_doc_get(s, to, at, attrs || !array, ret, e);
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

/* docs_may_write - check that a document can be put. */
static int docs_may_write(const struct zarr_sink *s, const char *key, struct err *e)
{
	char dir[STORE_KEY_MAX + 1];

	store_key_parent(key, dir);
	return zs_check_writable(&s->txn, dir, e);
}

int zs_docs_write(struct zarr_sink *s, struct err *e)
{
	int rc = zs_consolidate(s, e);

	for (size_t i = 0; rc == 0 && i < s->n_docs; i++) {
		const struct zs_doc *d = &s->docs[i];
		struct buf b;
		struct jw j;

		if (!d->dirty || !d->v)
			continue;
		rc = docs_may_write(s, d->key, e);
		if (rc)
			break;
		buf_init(&b, ZR_DOC_MAX);
		/* zarr-python 2 reads ASCII only, netCDF-C does not support \uXXXX */
		jw_init(&j, &b, s->mode != ZARR_NCZARR || docs_of_all(s, d->key));
		zs_json_put(&j, d->v);
		buf_putc(&b, '\n');
		rc = buf_ok(&b)
			     ? zs_txn_put(&s->txn, docs_of_all(s, d->key) ? ZS_ROOT : ZS_DOC,
					  d->key, b.data, b.len, e)
			     : buf_full(&b, e, -ERANGE, "'%.*s' would be larger than %zu bytes",
					LONG, d->key, ZR_DOC_MAX);
		buf_release(&b);
	}
	return rc;
}
