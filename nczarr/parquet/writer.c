/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.c - flat rows as Parquet: row groups, a page for each of their columns, compressed by
 * zstd. The output is deterministic. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "base/core/arena.h"
#include "base/core/endian.h"
#include "base/core/hash.h"
#include "base/core/map.h"
#include "nczarr/parquet/parquet_int.h"

#define LEVEL 3

/* string - one of a dictionary. */
struct string {
	struct link link;
	size_t at; /* in column.bytes */
	uint32_t number;
};

/* column - the pending values of a column. */
struct column {
	const struct pq_field *field;
	/* n values, with those of nulls, which are 0. PQ_INT: the number, plus 1 if the field is
	 * optional; PQ_TEXT: a number in the dictionary, from 1; PQ_RAW: 1 */
	uint64_t *v;
	size_t n, cap;
	struct buf bytes; /* of PQ_RAW, or the dictionary: lengths and bytes, as in the page */
	struct map strings; /* PQ_TEXT: struct string in the arena, by their hash */
	struct arena arena;
};

struct pq_writer {
	struct column *columns;
	size_t n_columns;
	ZSTD_CCtx *zstd;
	struct buf page, packed, head, groups;
	struct buf out; /* bytes of the file that are not written yet */
	uint32_t n_groups;
	uint64_t total; /* rows of all groups */
	uint64_t at;    /* bytes of the file so far */
};

int pq_writer_new(const struct pq_field *fields, size_t n_fields, struct pq_writer **ret,
		  struct err *e)
{
	struct pq_writer *w = alloc_array(1, sizeof(*w));

	if (!w)
		return err_nomem(e);
	buf_init(&w->out, SIZE_MAX / 2);
	for (size_t i = 0; i < 4; i++) /* lengths of pages are 31 bits */
		buf_init((struct buf *[]){&w->page, &w->packed, &w->head, &w->groups}[i],
			 INT32_MAX);
	w->zstd = ZSTD_createCCtx();
	w->columns = alloc_array(n_fields, sizeof(*w->columns));
	if (!w->columns || !w->zstd) {
		pq_writer_free(w);
		return err_nomem(e);
	}
	w->n_columns = n_fields;
	for (size_t i = 0; i < n_fields; i++) {
		w->columns[i] = (struct column){.field = &fields[i]};
		buf_init(&w->columns[i].bytes, INT32_MAX);
		arena_init(&w->columns[i].arena, SIZE_MAX / 2);
	}
	*ret = w;
	return 0;
}

static void column_clear(struct column *c)
{
	c->n = 0;
	buf_clear(&c->bytes);
	map_free(&c->strings);
	arena_release(&c->arena);
}

void pq_writer_free(struct pq_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n_columns; i++) {
		struct column *c = &w->columns[i];

		column_clear(c);
		free(c->v);
		buf_release(&c->bytes);
	}
	buf_release(&w->page);
	buf_release(&w->packed);
	buf_release(&w->head);
	buf_release(&w->groups);
	buf_release(&w->out);
	(void)ZSTD_freeCCtx(w->zstd);
	free(w->columns);
	free(w);
}

uint64_t pq_writer_rows(const struct pq_writer *w)
{
	return w->total + w->columns[0].n;
}

uint64_t pq_writer_pending(const struct pq_writer *w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w->n_columns; i++)
		n += w->columns[i].bytes.len;
	return n;
}

/* ---- the dictionary ---- */

static int put_bytes(struct column *c, const void *p, size_t n, struct err *e)
{
	buf_put_le32(&c->bytes, (uint32_t)n);
	buf_put(&c->bytes, p, n);
	return buf_ok(&c->bytes) ? 0 : err_nomem(e);
}

static int parquet_writer_number_of(struct column *c, const void *text, size_t n, uint64_t *ret,
				    struct err *e)
{
	const uint64_t h = hash_bytes(HASH_SEED, text, n), hash = h ^ h >> 29;
	const size_t at = c->bytes.len;
	struct string *x;
	int rc;

	MAP_EACH(x, &c->strings, hash, link) {
		const uint8_t *have = c->bytes.data + x->at;

		*ret = x->number;
		if (get_le32(have) == n && (n == 0 || memcmp(have + 4, text, n) == 0))
			return 0;
	}
	rc = put_bytes(c, text, n, e);
	if (rc)
		return rc;
	x = arena_alloc(&c->arena, 1, sizeof(*x));
	if (!x || map_add(&c->strings, &x->link, hash) < 0)
		return err_nomem(e);
	x->at = at;
	*ret = x->number = (uint32_t)c->strings.n;
	return 0;
}

/* ---- values ---- */

static int put_value(struct column *c, uint64_t v, struct err *e)
{
	if (grow_array(&c->v, &c->cap, c->n + 1, sizeof(*c->v)))
		return err_nomem(e);
	c->v[c->n++] = v;
	return 0;
}

int pq_writer_int(struct pq_writer *w, size_t field, uint64_t v, struct err *e)
{
	if (v > INT64_MAX)
		return err_set(e, -ERANGE, "Parquet cannot store the number %" PRIu64, v);
	return put_value(&w->columns[field], v + w->columns[field].field->optional, e);
}

int pq_writer_bytes(struct pq_writer *w, size_t field, const void *p, uint64_t n, struct err *e)
{
	struct column *c = &w->columns[field];
	uint64_t v = 1;
	int rc;

	if (n > INT32_MAX)
		return err_set(e, -ERANGE, "Parquet cannot store a value of %" PRIu64 " bytes",
			       n);
	rc = c->field->kind == PQ_TEXT ? parquet_writer_number_of(c, p, (size_t)n, &v, e)
				       : put_bytes(c, p, (size_t)n, e);
	return rc ? rc : put_value(c, v, e);
}

int pq_writer_null(struct pq_writer *w, size_t field, struct err *e)
{
	return put_value(&w->columns[field], 0, e);
}

int pq_writer_row(struct pq_writer *w, const struct pq_cell *cells, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->n_columns; i++) {
		const struct pq_cell *c = &cells[i];

		if (!c->has)
			rc = pq_writer_null(w, i, e);
		else if (w->columns[i].field->kind == PQ_INT)
			rc = pq_writer_int(w, i, c->n, e);
		else
			rc = pq_writer_bytes(w, i, c->p, c->n, e);
	}
	return rc;
}

/* ---- pages ---- */

/* put_out - append bytes to the file: to those that drain() writes. */
static int put_out(struct pq_writer *w, const struct buf *b, struct err *e)
{
	if (!buf_ok(b))
		return err_nomem(e);
	buf_put(&w->out, b->data, b->len);
	w->at += b->len;
	return buf_ok(&w->out) ? 0 : err_nomem(e);
}

int pq_write(int fd, const uint8_t *p, size_t n, struct err *e)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno != EINTR)
			return err_sys(e, errno, "cannot write the references");
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
	return 0;
}

static int drain(struct pq_writer *w, int fd, struct err *e)
{
	int rc = pq_write(fd, w->out.data, w->out.len, e);

	if (rc == 0)
		buf_clear(&w->out);
	return rc;
}

/* put_packed_head - of a run of n packed values. */
static void put_packed_head(struct buf *out, uint64_t n)
{
	thrift_put_varint(out, (n + 7) / 8 << 1 | 1);
}

/* put_levels - bit-packed flags of rows with a value. */
static void put_levels(struct pq_writer *w, const struct column *c)
{
	struct buf *out = &w->page;
	size_t from = out->len;
	uint32_t len;

	buf_put_le32(out, 0);
	put_packed_head(out, c->n);
	for (size_t i = 0; i < c->n; i += 8) {
		uint8_t bits = 0;

		for (size_t k = 0; k < 8 && i + k < c->n; k++)
			if (c->v[i + k])
				bits |= (uint8_t)(1u << k);
		buf_putc(out, (char)bits);
	}
	if (!buf_ok(out))
		return;
	len = (uint32_t)(out->len - from - 4);
	put_le32(out->data + from, len);
}

/* put_indexes - numbers of strings, from 0, in the fewest bits. */
static void put_indexes(struct pq_writer *w, const struct column *c)
{
	uint32_t width = 1, used = 0;
	uint64_t bits = 0, n = 0;

	while (width < 32 && (c->strings.n - 1) >> width)
		width++;
	for (size_t i = 0; i < c->n; i++)
		n += c->v[i] > 0;
	buf_putc(&w->page, (char)width);
	put_packed_head(&w->page, n);
	for (size_t i = 0; i < c->n; i++) {
		if (!c->v[i])
			continue;
		bits |= (c->v[i] - 1) << used;
		for (used += width; used >= 8; used -= 8, bits >>= 8)
			buf_putc(&w->page, (char)(bits & 0xff));
	}
	/* groups of eight, padded with zeros */
	for (uint64_t missing = (8 - n % 8) % 8 * width + used; missing > 0;) {
		buf_putc(&w->page, (char)(bits & 0xff));
		bits = 0;
		missing -= u64_min(missing, 8);
	}
}

/* parquet_writer_put_page - w->page, compressed, with its header. */
static int parquet_writer_put_page(struct pq_writer *w, const struct buf *page, int type,
				   int encoding, uint64_t values, uint64_t *sum, struct err *e)
{
	struct thrift_writer t = {.out = &w->head};
	size_t bound = ZSTD_compressBound(page->len), n;
	int16_t outer;
	uint8_t *to;
	int rc;

	if (!buf_ok(page))
		return err_nomem(e);
	buf_clear(&w->packed);
	buf_clear(&w->head);
	to = buf_grow(&w->packed, bound);
	if (!to)
		return err_nomem(e);
	n = ZSTD_compressCCtx(w->zstd, to, bound, page->data ? page->data : (const uint8_t *)"",
			      page->len, LEVEL);
	if (ZSTD_isError(n))
		return err_nomem(e);
	w->packed.len = n;
	thrift_write_int(&t, 1, THRIFT_I32, type);
	thrift_write_int(&t, 2, THRIFT_I32, (int64_t)page->len);
	thrift_write_int(&t, 3, THRIFT_I32, (int64_t)n);
	outer = thrift_write_begin(&t, type == PQ_DICTIONARY_PAGE ? 7 : 5);
	thrift_write_int(&t, 1, THRIFT_I32, (int64_t)values);
	thrift_write_int(&t, 2, THRIFT_I32, encoding);
	if (type == PQ_DATA_PAGE) {
		thrift_write_int(&t, 3, THRIFT_I32, PQ_RLE);
		thrift_write_int(&t, 4, THRIFT_I32, PQ_RLE);
	}
	thrift_write_end(&t, outer);
	buf_putc(&w->head, THRIFT_STOP);
	*sum += page->len + w->head.len;
	rc = put_out(w, &w->head, e);
	return rc ? rc : put_out(w, &w->packed, e);
}

/* ---- columns ---- */

/* put_meta - a column of the group, for the footer. */
static void put_meta(struct pq_writer *w, const struct column *c, struct thrift_writer *t,
		     uint64_t from, uint64_t data, uint64_t sum)
{
	int16_t chunk = thrift_write_begin(t, 0), meta;
	bool dict = data != from;

	thrift_write_int(t, 2, THRIFT_I64, (int64_t)from);
	meta = thrift_write_begin(t, 3);
	thrift_write_int(t, 1, THRIFT_I32, c->field->kind == PQ_INT ? PQ_INT64 : PQ_BYTES);
	thrift_write_list(t, 2, THRIFT_I32, dict ? 3 : 2);
	thrift_write_element_int(t, PQ_PLAIN);
	thrift_write_element_int(t, PQ_RLE);
	if (dict)
		thrift_write_element_int(t, PQ_RLE_DICTIONARY);
	thrift_write_list(t, 3, THRIFT_BINARY, 1);
	thrift_write_element_text(t, c->field->name);
	thrift_write_int(t, 4, THRIFT_I32, PQ_ZSTD);
	thrift_write_int(t, 5, THRIFT_I64, (int64_t)c->n);
	thrift_write_int(t, 6, THRIFT_I64, (int64_t)sum);
	thrift_write_int(t, 7, THRIFT_I64, (int64_t)(w->at - from));
	thrift_write_int(t, 9, THRIFT_I64, (int64_t)data);
	if (dict)
		thrift_write_int(t, 11, THRIFT_I64, (int64_t)from);
	thrift_write_end(t, meta);
	thrift_write_end(t, chunk);
}

/* put_ints - the numbers that are not null. */
static void put_ints(struct pq_writer *w, const struct column *c)
{
	const bool optional = c->field->optional;

	for (size_t i = 0; i < c->n; i++)
		if (!optional || c->v[i])
			buf_put_le(&w->page, c->v[i] - optional, 8);
}

static int put_column(struct pq_writer *w, const struct column *c, struct thrift_writer *t,
		      uint64_t *total, struct err *e)
{
	const bool dict = c->field->kind == PQ_TEXT && c->strings.n > 0;
	uint64_t from = w->at, data, sum = 0;
	int rc = 0;

	if (dict)
		rc = parquet_writer_put_page(w, &c->bytes, PQ_DICTIONARY_PAGE, PQ_PLAIN,
					     c->strings.n, &sum, e);
	data = w->at;
	buf_clear(&w->page);
	if (c->field->optional)
		put_levels(w, c);
	if (dict)
		put_indexes(w, c);
	if (c->field->kind == PQ_INT)
		put_ints(w, c);
	if (c->field->kind == PQ_RAW)
		buf_put(&w->page, c->bytes.data, c->bytes.len);
	if (rc == 0)
		rc = parquet_writer_put_page(w, &w->page, PQ_DATA_PAGE,
					     dict ? PQ_RLE_DICTIONARY : PQ_PLAIN, c->n, &sum,
					     e);
	put_meta(w, c, t, from, data, sum);
	*total += sum;
	return rc;
}

/* put_group - append the pending rows as a row group. */
static int put_group(struct pq_writer *w, struct err *e)
{
	struct thrift_writer t = {.out = &w->groups};
	const size_t n = w->columns[0].n;
	uint64_t total = 0;
	int rc = 0;

	if (w->at == 0) {
		buf_puts(&w->out, PQ_MAGIC);
		w->at = sizeof(PQ_MAGIC) - 1;
	}
	if (n == 0 || !buf_ok(&w->out))
		return buf_ok(&w->out) ? 0 : err_nomem(e);
	thrift_write_list(&t, 1, THRIFT_STRUCT, (uint32_t)w->n_columns);
	for (size_t i = 0; rc == 0 && i < w->n_columns; i++)
		rc = put_column(w, &w->columns[i], &t, &total, e);
	thrift_write_int(&t, 2, THRIFT_I64, (int64_t)total);
	thrift_write_int(&t, 3, THRIFT_I64, (int64_t)n);
	buf_putc(&w->groups, THRIFT_STOP);
	w->n_groups++;
	w->total += n;
	for (size_t i = 0; i < w->n_columns; i++)
		column_clear(&w->columns[i]);
	return rc;
}

int pq_writer_flush(struct pq_writer *w, int fd, struct err *e)
{
	int rc = put_group(w, e);

	return rc ? rc : drain(w, fd, e);
}

void pq_writer_mark(const struct pq_writer *w, struct pq_mark *ret)
{
	*ret = (struct pq_mark){.at = w->at,
				.total = w->total,
				.groups = w->groups.len,
				.n_groups = w->n_groups};
}

void pq_writer_back(struct pq_writer *w, const struct pq_mark *mark)
{
	for (size_t i = 0; i < w->n_columns; i++)
		column_clear(&w->columns[i]);
	w->at = mark->at;
	w->total = mark->total;
	w->groups.len = mark->groups;
	w->n_groups = mark->n_groups;
}

/* ---- the footer ---- */

static void put_schema(const struct pq_writer *w, struct thrift_writer *t)
{
	int16_t outer;

	thrift_write_list(t, 2, THRIFT_STRUCT, (uint32_t)w->n_columns + 1);
	outer = thrift_write_begin(t, 0);
	thrift_write_text(t, 4, "schema");
	thrift_write_int(t, 5, THRIFT_I32, (int64_t)w->n_columns);
	thrift_write_end(t, outer);
	for (size_t i = 0; i < w->n_columns; i++) {
		const struct pq_field *f = w->columns[i].field;

		outer = thrift_write_begin(t, 0);
		thrift_write_int(t, 1, THRIFT_I32, f->kind == PQ_INT ? PQ_INT64 : PQ_BYTES);
		thrift_write_int(t, 3, THRIFT_I32, f->optional ? PQ_OPTIONAL : PQ_REQUIRED);
		thrift_write_text(t, 4, f->name);
		if (f->kind == PQ_TEXT || f->text)
			thrift_write_int(t, 6, THRIFT_I32, PQ_UTF8);
		thrift_write_end(t, outer);
	}
}

int pq_writer_end(struct pq_writer *w, int fd, struct err *e)
{
	struct thrift_writer t = {.out = &w->page};
	int rc = put_group(w, e);

	if (rc)
		return rc;
	buf_clear(&w->page);
	thrift_write_int(&t, 1, THRIFT_I32, 1);
	put_schema(w, &t);
	thrift_write_int(&t, 3, THRIFT_I64, (int64_t)w->total);
	thrift_write_list(&t, 4, THRIFT_STRUCT, w->n_groups);
	buf_put(&w->page, w->groups.data, w->groups.len);
	thrift_write_text(&t, 6, "nczarrfs version " NCZARRFS_VERSION);
	buf_putc(&w->page, THRIFT_STOP);
	buf_put_le32(&w->page, (uint32_t)w->page.len);
	buf_puts(&w->page, PQ_MAGIC);
	if (!buf_ok(&w->groups))
		return err_nomem(e);
	rc = put_out(w, &w->page, e);
	rc = rc ? rc : drain(w, fd, e);
	buf_clear(&w->groups);
	w->n_groups = 0;
	w->total = w->at = 0;
	return rc;
}
