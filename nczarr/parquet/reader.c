/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.c - the footer of a Parquet file, and its wanted columns. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/endian.h"
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

/* parquet_reader_find - the wanted column whose name is read. */
static size_t parquet_reader_find(const struct parquet_reader_file *f, struct thrift_reader *t)
{
	size_t n;
	const uint8_t *name = thrift_read_bytes(t, &n);

	for (size_t i = 0; i < f->n_want; i++)
		if (name && str_is(f->want[i].name, (const char *)name, n))
			return i;
	return f->n_want;
}

/* ---- the schema ---- */

static int schema_element(struct parquet_reader_file *f, struct thrift_reader *t, bool root,
			  struct err *e)
{
	int64_t children = 0, repetition = PQ_REQUIRED;
	struct thrift_reader name = {.bad = true};
	const struct thrift_field fields[] = {{3, .n = &repetition},
					      {4, .at = &name, .type = THRIFT_BINARY},
					      {5, .n = &children}};
	size_t i;

	thrift_read_struct(t, fields, ARRAY_LEN(fields));
	if (root)
		return 0;
	if (children > 0)
		return err_set(e, -EOPNOTSUPP, "Parquet: nested columns are not supported");
	i = parquet_reader_find(f, &name);
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
	struct thrift_reader file = {.bad = true}, meta = file, path = file;
	const struct thrift_field fields[] = {{1, .at = &file, .type = THRIFT_BINARY},
					      {3, .at = &meta, .type = THRIFT_STRUCT}};
	struct meta m = {.i = f->n_want};
	const struct thrift_field of_meta[] = {{1, .n = &m.type},
					       {3, .at = &path, .type = THRIFT_LIST},
					       {4, .n = &m.codec},
					       {5, .n = &m.values},
					       {7, .n = &m.stored},
					       {9, .n = &m.data},
					       {11, .n = &m.dict}};
	size_t n;
	int type;

	thrift_read_struct(t, fields, ARRAY_LEN(fields));
	(void)thrift_read_bytes(&file, &n);
	if (n > 0)
		return err_set(e, -EOPNOTSUPP,
			       "Parquet: columns in other files are not supported");
	if (t->bad)
		return parquet_reader_damaged("the footer is damaged", e);
	thrift_read_struct(&meta, of_meta, ARRAY_LEN(of_meta));
	if (thrift_read_list(&path, &type) == 1 && type == THRIFT_BINARY)
		m.i = parquet_reader_find(f, &path);
	return read_column(f, &m, rows, e);
}

/* ---- groups of rows ---- */

/* group - read a row group: its number of rows follows its columns, so it takes two passes. */
static int group(struct parquet_reader_file *f, struct thrift_reader *t, bool measure,
		 struct err *e)
{
	struct thrift_reader columns = {.bad = true};
	int64_t rows = -1;
	const struct thrift_field fields[] = {{1, .at = &columns, .type = THRIFT_LIST},
					      {3, .n = &rows}};
	int of, rc = 0;
	uint32_t n;

	thrift_read_struct(t, fields, ARRAY_LEN(fields));
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
	struct thrift_reader columns = {.bad = true}, rows = columns;
	const struct thrift_field fields[] = {{2, .at = &columns, .type = THRIFT_LIST},
					      {4, .at = &rows, .type = THRIFT_LIST}};
	int rc;

	thrift_read_struct(&t, fields, ARRAY_LEN(fields));
	if (t.bad || rows.bad)
		return parquet_reader_damaged("the footer is damaged", e);
	rc = schema(f, &columns, e);
	rc = rc ? rc : parquet_reader_groups(f, rows, true, e);
	rc = rc ? rc : make_columns(f, e);
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
	uint32_t n;
	int rc;

	*ret = (struct pq_table){0};
	f.table = ret;
	if (len < 12 || n_want > PQ_COLUMNS || memcmp(p, PQ_MAGIC, 4) != 0 ||
	    memcmp(p + len - 4, PQ_MAGIC, 4) != 0)
		return parquet_reader_damaged("not a Parquet file, or truncated", e);
	n = get_le32(p + len - 8);
	if (n > len - 12)
		return parquet_reader_damaged("the length of the footer is damaged", e);
	rc = footer(&f, (struct thrift_reader){.p = p + len - 8 - n, .end = p + len - 8}, e);
	ret->bytes = max - f.budget;
	if (rc)
		pq_table_release(ret);
	return rc;
}
