/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.c - the footer of a Parquet file, and its wanted columns. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/cursor.h"
#include "base/core/str.h"
#include "nczarr/parquet/parquet_int.h"

#define NAMES_MAX 256 /* columns of a table */

/* parquet_reader_file - state of reading a file. */
struct parquet_reader_file {
	const uint8_t *p;
	size_t len;
	const struct pq_want *want;
	size_t n_want;
	bool optional[PQ_COLUMNS]; /* of wanted columns */
	bool is[PQ_COLUMNS];       /* the schema has it */
	uint64_t budget;
	struct pq_table *table;
	uint64_t row;            /* of the current group */
	bool filled[PQ_COLUMNS]; /* in it */
};

static int parquet_reader_damaged(const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "Parquet: %s", what);
}

static size_t parquet_reader_find(const struct parquet_reader_file *f, const uint8_t *name,
				  size_t n)
{
	for (size_t i = 0; i < f->n_want; i++)
		if (name && str_is(f->want[i].name, (const char *)name, n))
			return i;
	return f->n_want;
}

/* ---- the schema ---- */

static int schema_element(struct parquet_reader_file *f, struct thrift_reader *t, bool root,
			  struct err *e)
{
	int16_t outer = thrift_read_begin(t), id;
	const uint8_t *name = NULL;
	int64_t children = 0, repetition = PQ_REQUIRED;
	size_t n = 0, i;
	int type;

	while ((type = thrift_read_field(t, &id)) != THRIFT_STOP) {
		if (id == 3 && type == THRIFT_I32)
			repetition = thrift_read_int(t);
		else if (id == 4 && type == THRIFT_BINARY)
			name = thrift_read_bytes(t, &n);
		else if (id == 5 && type == THRIFT_I32)
			children = thrift_read_int(t);
		else
			thrift_read_skip(t, type);
	}
	thrift_read_end(t, outer);
	if (root)
		return 0;
	if (children > 0)
		return err_set(e, -EOPNOTSUPP, "Parquet: nested columns are not supported");
	i = parquet_reader_find(f, name, n);
	if (i == f->n_want)
		return 0;
	if (repetition != PQ_REQUIRED && repetition != PQ_OPTIONAL)
		return err_set(e, -EOPNOTSUPP,
			       "Parquet: the repeated column '%s' is not supported",
			       f->want[i].name);
	if (f->is[i])
		return parquet_reader_damaged("a column occurs twice", e);
	f->is[i] = true;
	f->optional[i] = repetition == PQ_OPTIONAL;
	return 0;
}

static int schema(struct parquet_reader_file *f, struct thrift_reader *t, struct err *e)
{
	int type, rc = 0;
	uint32_t n = thrift_read_list(t, &type);

	if (type != THRIFT_STRUCT || n > NAMES_MAX)
		return parquet_reader_damaged("the schema is damaged", e);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = schema_element(f, t, i == 0, e);
	return rc;
}

/* ---- columns ---- */

/* make_columns - room for all rows. */
static int make_columns(struct parquet_reader_file *f, struct err *e)
{
	const uint64_t n = f->table->n;

	for (size_t i = 0; i < f->n_want; i++) {
		struct pq_column *c = &f->table->columns[i];
		uint64_t each = (f->want[i].is_int ? 8u : 12u) + f->optional[i];

		c->there = f->is[i];
		buf_init(&c->bytes, (size_t)u64_min(f->budget, SIZE_MAX / 2));
		if (!c->there)
			continue;
		if (n > f->budget / each)
			return err_set(e, -ERANGE,
				       "Parquet: %" PRIu64
				       " rows take more memory than is allowed",
				       n);
		f->budget -= n * each;
		if (f->optional[i])
			c->nulls = alloc_array((size_t)n, sizeof(*c->nulls));
		if (f->want[i].is_int) {
			c->ints = alloc_array((size_t)n, sizeof(*c->ints));
		} else {
			c->at = alloc_array((size_t)n, sizeof(*c->at));
			c->len = alloc_array((size_t)n, sizeof(*c->len));
		}
		if ((f->optional[i] && !c->nulls) ||
		    (f->want[i].is_int ? !c->ints : !c->at || !c->len))
			return err_nomem(e);
	}
	return 0;
}

/* meta - a column's metadata. */
struct meta {
	size_t i; /* which is wanted */
	int64_t type, codec, values, stored, data, dict;
};

static void column_path(struct parquet_reader_file *f, struct thrift_reader *t, struct meta *m)
{
	int type;
	uint32_t n = thrift_read_list(t, &type);

	for (uint32_t k = 0; k < n; k++) {
		size_t len = 0;
		const uint8_t *name = type == THRIFT_BINARY ? thrift_read_bytes(t, &len) : NULL;

		m->i = n == 1 ? parquet_reader_find(f, name, len) : f->n_want;
		t->bad = t->bad || type != THRIFT_BINARY;
	}
}

static void column_meta(struct parquet_reader_file *f, struct thrift_reader *t, struct meta *m)
{
	int16_t outer = thrift_read_begin(t), id;
	int type;

	while ((type = thrift_read_field(t, &id)) != THRIFT_STOP) {
		int64_t *const to[] = {[1] = &m->type,   [4] = &m->codec, [5] = &m->values,
				       [7] = &m->stored, [9] = &m->data,  [11] = &m->dict};

		if (id == 3 && type == THRIFT_LIST)
			column_path(f, t, m);
		else if (id > 0 && (size_t)id < ARRAY_LEN(to) && to[id] &&
			 (type == THRIFT_I32 || type == THRIFT_I64))
			*to[id] = thrift_read_int(t);
		else
			thrift_read_skip(t, type);
	}
	thrift_read_end(t, outer);
}

static int read_column(struct parquet_reader_file *f, const struct meta *m, uint64_t rows,
		       struct err *e)
{
	const size_t i = m->i;
	struct pq_chunk c = {.type = (int)m->type, .codec = (int)m->codec, .values = rows};
	int64_t from = m->dict > 0 && m->dict < m->data ? m->dict : m->data;
	int rc;

	if (i >= f->n_want || !f->is[i])
		return 0;
	if (f->filled[i] || m->values < 0 || (uint64_t)m->values != rows)
		return parquet_reader_damaged("the number of values of a column differs from "
					      "the rows of its row group",
					      e);
	if (f->want[i].is_int ? m->type != PQ_INT32 && m->type != PQ_INT64
			      : m->type != PQ_BYTES)
		return err_set(e, -EOPNOTSUPP, "Parquet: column '%s' is of type %" PRId64,
			       f->want[i].name, m->type);
	if (from < 0 || m->stored < 0 || (uint64_t)from > f->len ||
	    (uint64_t)m->stored > f->len - (uint64_t)from)
		return parquet_reader_damaged("a column lies beyond the end of the file", e);
	c.optional = f->optional[i];
	c.p = f->p + from;
	c.len = (size_t)m->stored;
	rc = pq_chunk_read(&c, &f->table->columns[i], f->row, &f->budget, e);
	f->filled[i] = true;
	return rc ? err_wrap(e, rc, "column '%s'", f->want[i].name) : 0;
}

static int column(struct parquet_reader_file *f, struct thrift_reader *t, uint64_t rows,
		  struct err *e)
{
	int16_t outer = thrift_read_begin(t), id;
	struct meta m = {.i = f->n_want};
	int type;

	while ((type = thrift_read_field(t, &id)) != THRIFT_STOP) {
		size_t n;

		if (id == 3 && type == THRIFT_STRUCT) {
			column_meta(f, t, &m);
		} else if (id == 1 && type == THRIFT_BINARY) {
			(void)thrift_read_bytes(t, &n);
			if (n > 0)
				return err_set(
					e, -EOPNOTSUPP,
					"Parquet: columns in other files are not supported");
		} else {
			thrift_read_skip(t, type);
		}
	}
	thrift_read_end(t, outer);
	return t->bad ? parquet_reader_damaged("the footer is damaged", e)
		      : read_column(f, &m, rows, e);
}

/* ---- groups of rows ---- */

/* group - read a row group: its number of rows follows its columns, so it takes two passes. */
static int group(struct parquet_reader_file *f, struct thrift_reader *t, bool measure,
		 struct err *e)
{
	struct thrift_reader columns = {.bad = true};
	int16_t outer = thrift_read_begin(t), id;
	int64_t rows = -1;
	int type, of, rc = 0;
	uint32_t n;

	while ((type = thrift_read_field(t, &id)) != THRIFT_STOP) {
		if (id == 1 && type == THRIFT_LIST)
			columns = *t;
		if (id == 3 && type == THRIFT_I64)
			rows = thrift_read_int(t);
		else
			thrift_read_skip(t, type);
	}
	thrift_read_end(t, outer);
	if (t->bad || columns.bad || rows < 0)
		return parquet_reader_damaged("the footer is damaged", e);
	if (measure)
		return ckd_add(&f->table->n, f->table->n, (uint64_t)rows)
			       ? parquet_reader_damaged("too many rows", e)
			       : 0;
	memset(f->filled, 0, sizeof(f->filled));
	n = thrift_read_list(&columns, &of);
	if (of != THRIFT_STRUCT && n > 0)
		return parquet_reader_damaged("the footer is damaged", e);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = column(f, &columns, (uint64_t)rows, e);
	for (size_t i = 0; rc == 0 && i < f->n_want; i++)
		if (f->is[i] && !f->filled[i] && rows > 0)
			rc = parquet_reader_damaged("a row group lacks a column", e);
	f->row += (uint64_t)rows;
	return rc;
}

static int parquet_reader_groups(struct parquet_reader_file *f, struct thrift_reader t,
				 bool measure, struct err *e)
{
	int type, rc = 0;
	uint32_t n = thrift_read_list(&t, &type);

	if (t.bad || (type != THRIFT_STRUCT && n > 0))
		return parquet_reader_damaged("the footer is damaged", e);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = group(f, &t, measure, e);
	return rc;
}

static int footer(struct parquet_reader_file *f, struct thrift_reader t, struct err *e)
{
	struct thrift_reader rows = {.bad = true};
	int16_t id;
	int type, rc = 0;

	while (rc == 0 && (type = thrift_read_field(&t, &id)) != THRIFT_STOP) {
		if (id == 4 && type == THRIFT_LIST)
			rows = t;
		if (id == 2 && type == THRIFT_LIST)
			rc = schema(f, &t, e);
		else
			thrift_read_skip(&t, type);
	}
	if (rc == 0 && (t.bad || rows.bad))
		rc = parquet_reader_damaged("the footer is damaged", e);
	if (rc == 0)
		rc = parquet_reader_groups(f, rows, true, e);
	if (rc == 0)
		rc = make_columns(f, e);
	return rc ? rc : parquet_reader_groups(f, rows, false, e);
}

void pq_table_release(struct pq_table *t)
{
	for (size_t i = 0; i < PQ_COLUMNS; i++) {
		struct pq_column *c = &t->columns[i];

		free(c->nulls);
		free(c->ints);
		free(c->at);
		free(c->len);
		buf_release(&c->bytes);
	}
	*t = (struct pq_table){0};
}

int pq_read(const uint8_t *p, size_t len, const struct pq_want *want, size_t n_want,
	    uint64_t max, struct pq_table *ret, struct err *e)
{
	struct parquet_reader_file f = {
		.p = p, .len = len, .want = want, .n_want = n_want, .budget = max};
	struct slice tail;
	uint32_t n;
	int rc;

	*ret = (struct pq_table){0};
	f.table = ret;
	if (len < 12 || n_want > PQ_COLUMNS || memcmp(p, PQ_MAGIC, 4) != 0 ||
	    memcmp(p + len - 4, PQ_MAGIC, 4) != 0)
		return parquet_reader_damaged("not a Parquet file, or truncated", e);
	tail = slice_of(p + len - 8, 4);
	n = rd_le32(&tail);
	if (n > len - 12)
		return parquet_reader_damaged("the length of the footer is damaged", e);
	rc = footer(&f, (struct thrift_reader){.p = p + len - 8 - n, .end = p + len - 8}, e);
	ret->bytes = max - f.budget;
	if (rc)
		pq_table_release(ret);
	return rc;
}
