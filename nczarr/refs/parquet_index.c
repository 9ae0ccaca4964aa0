/* SPDX-License-Identifier: BSD-3-Clause */
/* parquet_index.c - kerchunk's directories of Parquet files as an index: the documents are read at
 * once, files of references on demand. A few of them are cached. Layout: fsspec,
 * LazyReferenceMapper. */
#include "nczarr/refs/refs_int.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "nczarr/chunk_key.h"
#include "nczarr/json/reader.h"
#include "nczarr/parquet/parquet.h"

#define ZMETADATA ".zmetadata"
#define KEPT 8 /* files of references in memory */

/* array - an array with references. */
struct array {
	char *key; /* of its directory; owned */
	uint32_t rank;
	uint64_t *grid; /* rank; owned */
	uint64_t n;     /* chunks; 1 of a scalar */
};

/* parquet_index_slot - a file of references. */
struct parquet_index_slot {
	size_t array;
	uint64_t record;
	struct pq_table table;
	uint64_t stamp;
	uint32_t users;
	bool used, loading;
};

struct parq {
	struct refs_index base;
	struct store *store;     /* owned */
	struct refs_index *docs; /* the documents; owned */
	struct array *arrays;    /* sorted by key; owned */
	size_t n_arrays, c_arrays;
	uint64_t records; /* references in a file */
	uint64_t max_table;
	uint64_t version;     /* of the .zmetadata */
	struct buf key;       /* during opening: of a member */
	pthread_mutex_t lock; /* of the following members */
	pthread_cond_t loaded;
	struct parquet_index_slot slots[KEPT];
	uint64_t clock;
};

static struct parq *parquet_index_of(struct refs_index *x)
{
	return CONTAINER_OF(x, struct parq, base);
}

static void parq_close(struct refs_index *x)
{
	struct parq *p = parquet_index_of(x);

	for (size_t i = 0; i < KEPT; i++)
		pq_table_release(&p->slots[i].table);
	for (size_t i = 0; i < p->n_arrays; i++) {
		free(p->arrays[i].key);
		free(p->arrays[i].grid);
	}
	free(p->arrays);
	if (p->docs)
		p->docs->ops->close(p->docs);
	if (!x->borrows)
		store_close(p->store);
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->loaded);
	free(p);
}

/* ---- files of references ---- */

static int parquet_index_load(struct parq *p, size_t array, uint64_t record,
			      struct pq_table *ret, struct err *e)
{
	static const struct pq_want want[] = {
		{"path", false}, {"offset", true}, {"size", true}, {"raw", false}};
	char key[STORE_KEY_MAX + 1];
	auto_buf file = buf_of((size_t)u64_min(p->max_table, SIZE_MAX / 2));
	int rc, n;

	*ret = (struct pq_table){0};
	n = snprintf(key, sizeof(key), "%s%srefs.%" PRIu64 ".parq", p->arrays[array].key,
		     *p->arrays[array].key ? "/" : "", record);
	if (n < 0 || (size_t)n >= sizeof(key))
		return err_set(e, -EBADMSG, "'%.100s': the key is too long",
			       p->arrays[array].key);
	rc = store_get(p->store, key, &file, NULL, e);
	if (rc == 0)
		rc = pq_read(file.data, file.len, want, ARRAY_LEN(want), p->max_table, ret, e);
	if (rc == -ENOENT)
		return 0; /* none of its chunks has a reference */
	return rc ? err_wrap(e, rc, "'%.150s'", key) : 0;
}

/* find_slot - lock: the slot of a file, or a slot to load it into, after waiting for one;
 * `loading` is set if the caller has to load it. NULL: cancelled. */
static struct parquet_index_slot *find_slot(struct parq *p, size_t array, uint64_t record)
{
	for (;;) {
		struct parquet_index_slot *best = NULL;
		bool wait = false;

		for (size_t i = 0; i < KEPT; i++) {
			struct parquet_index_slot *s = &p->slots[i];

			if (s->used && s->array == array && s->record == record) {
				wait = s->loading;
				best = s;
				break;
			}
			if (s->users == 0 && !s->loading && (!best || s->stamp < best->stamp))
				best = s;
		}
		if (best && !wait) {
			if (best->used && best->array == array && best->record == record)
				return best;
			pq_table_release(&best->table);
			best->used = best->loading = true;
			best->array = array;
			best->record = record;
			return best;
		}
		if (cancel_wait(&p->loaded, &p->lock))
			return NULL;
	}
}

static int parquet_index_take(struct parq *p, size_t array, uint64_t record,
			      struct parquet_index_slot **ret, struct err *e)
{
	struct parquet_index_slot *s;
	int rc = 0;
	LOCK_SCOPE(&p->lock);

	s = find_slot(p, array, record);
	if (!s)
		return err_set(e, -EINTR, "'%.150s': cancelled", p->arrays[array].key);
	if (s->loading) {
		(void)pthread_mutex_unlock(&p->lock);
		rc = parquet_index_load(p, array, record, &s->table, e);
		(void)pthread_mutex_lock(&p->lock);
		s->loading = false;
		s->used = rc == 0;
		(void)pthread_cond_broadcast(&p->loaded);
	}
	if (rc == 0) {
		s->users++;
		s->stamp = ++p->clock;
	}
	*ret = s;
	return rc;
}

static void parquet_index_give(struct parq *p, struct parquet_index_slot *s)
{
	LOCK_SCOPE(&p->lock);

	if (--s->users == 0)
		(void)pthread_cond_broadcast(&p->loaded);
}

static bool parquet_index_has(const struct pq_column *c, uint64_t row)
{
	return c->there && !(c->nulls && c->nulls[row]);
}

/* row_of - the reference of a row. -ENOENT: none. */
static int row_of(const struct parquet_index_slot *s, uint64_t row, struct refs_found *ret,
		  struct err *e)
{
	const struct pq_column *path = &s->table.columns[0], *off = &s->table.columns[1];
	const struct pq_column *size = &s->table.columns[2], *raw = &s->table.columns[3];
	bool is_path = row < s->table.n && parquet_index_has(path, row);

	*ret = (struct refs_found){
		.version = store_version(store_mix(store_mix(s->array, s->record), row))};
	if (row < s->table.n && parquet_index_has(raw, row) &&
	    (raw->len[row] > 0 || !is_path)) {
		ret->what = REFS_INLINE;
		ret->data = raw->bytes.data + raw->at[row];
		ret->len = raw->len[row];
		return 0;
	}
	if (!is_path)
		return err_set(e, -ENOENT, "no reference to it exists");
	ret->what = REFS_AT;
	ret->url = (const char *)path->bytes.data + path->at[row];
	if (strlen(ret->url) != path->len[row] ||
	    (parquet_index_has(off, row) && off->ints[row] < 0) ||
	    (parquet_index_has(size, row) && size->ints[row] < 0))
		return err_set(e, -EBADMSG, "a reference is not valid");
	ret->off = parquet_index_has(off, row) ? (uint64_t)off->ints[row] : 0;
	ret->len = parquet_index_has(size, row) ? (uint64_t)size->ints[row] : 0;
	ret->whole = ret->off == 0 && ret->len == 0;
	return 0;
}

/* ---- keys ---- */

static size_t parquet_index_find_array(const struct parq *p, const char *key, size_t n)
{
	size_t lo = 0;

	BISECT(lo, p->n_arrays, mid, strncmp(p->arrays[mid].key, key, n) < 0);
	return lo < p->n_arrays && str_is(p->arrays[lo].key, key, n) ? lo : p->n_arrays;
}

/* grid_of - the grid of an array's chunks, for their names. */
static struct zr_grid grid_of(const struct array *a)
{
	return (struct zr_grid){.rank = a->rank, .n = a->n, .len = a->grid};
}

static int parq_find(struct refs_index *x, const char *key, struct refs_found *ret,
		     struct err *e)
{
	struct parq *p = parquet_index_of(x);
	struct parquet_index_slot *s;
	struct zr_grid g;
	const char *name = store_key_name(key);
	uint64_t linear;
	size_t a;
	int rc = p->docs->ops->find(p->docs, key, ret, e);

	if (rc != -ENOENT)
		return rc;
	a = parquet_index_find_array(p, key, store_key_parent_len(key));
	if (a < p->n_arrays)
		g = grid_of(&p->arrays[a]);
	if (a == p->n_arrays || zr_key_parse(&g, name, strlen(name), &linear))
		return err_set(e, -ENOENT, "'%s': no reference to it exists", key);
	rc = parquet_index_take(p, a, linear / p->records, &s, e);
	if (rc)
		return rc;
	rc = row_of(s, linear % p->records, ret, e);
	ret->held = s;
	if (rc)
		parquet_index_give(p, s);
	return rc;
}

static void parq_done(struct refs_index *x, struct refs_found *f)
{
	if (f->held)
		parquet_index_give(parquet_index_of(x), f->held);
	f->held = NULL;
}

/* parquet_index_list_chunks - emit chunks of an array with a reference, a file at a time. */
static int parquet_index_list_chunks(struct parq *p, size_t a,
				     bool (*emit)(void *arg, const char *name, bool is_dir,
						  const struct refs_found *f),
				     void *arg, struct err *e)
{
	const struct array *x = &p->arrays[a];
	const struct zr_grid g = grid_of(x);
	char name[ZR_KEY_MAX];
	bool more = true;
	int rc = 0;

	for (uint64_t at = 0; rc == 0 && more && at < x->n;
	     at += u64_min(p->records, x->n - at)) {
		uint64_t n = u64_min(p->records, x->n - at);
		struct parquet_index_slot *s;

		rc = parquet_index_take(p, a, at / p->records, &s, e);
		if (rc)
			return rc;
		for (uint64_t i = 0; rc == 0 && more && i < u64_min(n, s->table.n); i++) {
			struct refs_found f;

			rc = row_of(s, i, &f, e);
			if (rc == -ENOENT) {
				rc = 0;
				continue;
			}
			zr_key_format(&g, at + i, name);
			more = rc != 0 || emit(arg, name, false, &f);
		}
		parquet_index_give(p, s);
	}
	return rc;
}

static int parq_list(struct refs_index *x, const char *key,
		     bool (*emit)(void *arg, const char *name, bool is_dir,
				  const struct refs_found *f),
		     void *arg, struct err *e)
{
	struct parq *p = parquet_index_of(x);
	size_t a = parquet_index_find_array(p, key, strlen(key));
	int rc = p->docs->ops->list(p->docs, key, emit, arg, e);

	return rc || a == p->n_arrays ? rc : parquet_index_list_chunks(p, a, emit, arg, e);
}

static int parq_check(struct refs_index *x, struct err *e)
{
	struct parq *p = parquet_index_of(x);
	struct store_stat st;
	int rc = store_stat(p->store, ZMETADATA, &st, e);

	if (rc == -ENOENT || (rc == 0 && st.version != p->version))
		return err_set(e, -ESTALE, "the references were changed");
	return rc;
}

static const struct refs_index_ops parq_ops = {
	.close = parq_close,
	.find = parq_find,
	.done = parq_done,
	.list = parq_list,
	.check = parq_check,
};

/* ---- opening ---- */

/* parquet_index_lengths - parse a list of numbers. Returns their count; -EBADMSG. */
static int parquet_index_lengths(const json_t *list, uint64_t *out)
{
	size_t n = json_kind(list) == JSON_IS_LIST ? json_array_size(list) : DS_RANK_MAX + 1;

	if (n > DS_RANK_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		if (json_u64(json_array_get(list, i), &out[i]))
			return -EBADMSG;
	return (int)n;
}

/* fill_grid - set x's grid from its document. */
static int fill_grid(struct array *x, const json_t *doc, struct err *e)
{
	uint64_t shape[DS_RANK_MAX], chunks[DS_RANK_MAX];
	int n = parquet_index_lengths(json_get(doc, "shape"), shape);

	if (n < 0 || parquet_index_lengths(json_get(doc, "chunks"), chunks) != n)
		return err_set(e, -EBADMSG, "'%.150s/.zarray': shape or chunks is not valid",
			       x->key);
	if (json_is(json_get(doc, "dimension_separator"), "/"))
		return err_set(e, -EOPNOTSUPP,
			       "'%.150s/.zarray': Parquet references support "
			       "dimension_separator '.' only",
			       x->key);
	x->rank = (uint32_t)n;
	x->n = 1;
	x->grid = alloc_array((size_t)n, sizeof(*x->grid));
	if (!x->grid)
		return err_nomem(e);
	for (int d = 0; d < n; d++) {
		if (chunks[d] == 0)
			return err_set(e, -EBADMSG, "'%.150s/.zarray': a chunk length is 0",
				       x->key);
		x->grid[d] = shape[d] / chunks[d] + (shape[d] % chunks[d] != 0);
		if (ckd_mul(&x->n, x->n, x->grid[d]) || x->n > UINT64_MAX / 4)
			return err_set(e, -ERANGE, "'%.150s': more than 2^62 chunks", x->key);
	}
	return 0;
}

/* parquet_index_add_array - add the array of a .zarray: text of n bytes. */
static int parquet_index_add_array(struct parq *p, const char *key, size_t key_len,
				   const void *text, size_t n, struct err *e)
{
	struct array *x;
	json_t *doc;
	int rc;

	if (grow_array(&p->arrays, &p->c_arrays, p->n_arrays + 1, sizeof(*p->arrays)))
		return err_nomem(e);
	x = &p->arrays[p->n_arrays];
	*x = (struct array){.key = strndup(key, key_len)};
	if (!x->key)
		return err_nomem(e);
	p->n_arrays++;
	rc = json_read(text, n, &doc, e);
	if (rc)
		return err_wrap(e, rc, "'%.150s/.zarray'", x->key);
	rc = fill_grid(x, doc, e);
	json_decref(doc);
	return rc;
}

/* add_doc - add the array of a document, if it is a .zarray. */
static int add_doc(void *arg, struct scan *s, struct err *e)
{
	static const char tail[] = ".zarray";
	const size_t n_tail = sizeof(tail) - 1;
	struct parq *p = arg;
	const size_t n = p->key.len;
	const char *key = (const char *)p->key.data;
	const uint8_t *from = s->p;
	int rc = scan_skip(s, e);

	if (rc || !buf_ok(&p->key) || n < n_tail || memcmp(key + n - n_tail, tail, n_tail) != 0 ||
	    (n > n_tail && key[n - n_tail - 1] != '/'))
		return rc;
	return parquet_index_add_array(p, key, n == n_tail ? 0 : n - n_tail - 1, from,
				       (size_t)(s->p - from), e);
}

static int parquet_index_by_key(const void *a, const void *b)
{
	return strcmp(((const struct array *)a)->key, ((const struct array *)b)->key);
}

/* parquet_index_meta - positions of the members of the document. */
struct parquet_index_meta {
	struct buf *key;
	struct scan meta, size;
};

static int parquet_index_find_part(void *arg, struct scan *s, struct err *e)
{
	struct parquet_index_meta *m = arg;
	struct scan value = *s;
	int rc = scan_skip(s, e);

	value.end = s->p;
	if (str_is("metadata", (const char *)m->key->data, m->key->len))
		m->meta = value;
	if (str_is("record_size", (const char *)m->key->data, m->key->len))
		m->size = value;
	return rc;
}

/* read_meta - read the document: "metadata" and "record_size". */
static int read_meta(struct parq *p, const struct buf *doc, uint64_t max_meta, struct err *e)
{
	struct scan s = {doc->data, doc->data + doc->len, doc->data};
	struct parquet_index_meta m = {.key = &p->key};
	int rc = scan_members(&s, &p->key, parquet_index_find_part, &m, e);

	if (rc == 0 && (!m.meta.p || !m.size.p))
		rc = scan_bad(&s, "\"metadata\" or \"record_size\" is missing", e);
	rc = rc ? rc : scan_u64(&m.size, &p->records, e);
	if (rc == 0 && p->records == 0)
		rc = scan_bad(&m.size, "\"record_size\" is 0", e);
	s = m.meta;
	if (rc == 0 && scan_peek(&s) != '{')
		rc = scan_bad(&s, "\"metadata\" is not an object", e);
	rc = rc ? rc : scan_members(&s, &p->key, add_doc, p, e);
	if (rc == 0 && p->n_arrays > 1)
		qsort(p->arrays, p->n_arrays, sizeof(*p->arrays), parquet_index_by_key);
	rc = rc ? rc : refs_table_parse(m.meta.p, (size_t)(m.meta.end - m.meta.p), max_meta,
					&p->docs, e);
	return rc ? err_wrap(e, rc, "'%s'", ZMETADATA) : 0;
}

/* look_remote - whether the first reference is remote. */
static bool look_remote(struct parq *p)
{
	for (size_t a = 0; a < p->n_arrays; a++) {
		struct refs_found f;
		struct parquet_index_slot *s;
		bool remote = false, found = false;

		if (p->arrays[a].n == 0 || parquet_index_take(p, a, 0, &s, NULL))
			continue;
		for (uint64_t i = 0; !found && i < s->table.n; i++) {
			found = row_of(s, i, &f, NULL) == 0 && f.what == REFS_AT;
			remote = found && strstr(f.url, "://") &&
				 strncmp(f.url, "file:", 5) != 0;
		}
		parquet_index_give(p, s);
		if (found)
			return remote;
	}
	return false;
}

int refs_parq_open(struct store *store, uint64_t max_meta, struct refs_index **ret,
		   struct err *e)
{
	struct parq *p = alloc_array(1, sizeof(*p));
	struct store_stat st;
	auto_buf doc = buf_of((size_t)u64_min(max_meta, SIZE_MAX / 2));
	int rc;

	if (!p)
		return err_nomem(e);
	p->base.ops = &parq_ops;
	(void)pthread_mutex_init(&p->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&p->loaded);
	p->store = store;
	p->max_table = max_meta / 4;
	p->key = buf_of(STORE_KEY_MAX + 1);
	rc = store_stat(store, ZMETADATA, &st, e);
	rc = rc ? rc : store_get(store, ZMETADATA, &doc, NULL, e);
	rc = rc ? rc : read_meta(p, &doc, max_meta, e);
	buf_release(&p->key);
	if (rc) {
		p->base.borrows = true;
		parq_close(&p->base);
		return rc;
	}
	p->version = st.version;
	p->base.remote = store->remote || look_remote(p);
	*ret = &p->base;
	return 0;
}
