/* SPDX-License-Identifier: BSD-3-Clause */
/* write_table.c - a table of chunks as one Parquet file: a row for each chunk, with all that a
 * program needs to fetch and decode it. For programs that read tables, such as Spark and SQL.
 *
 * A dataset is added as records (array, chunks, array ...) in the text of its part, because other
 * datasets may be added at the same time. With the turn, records become rows. */
#include "nczarr/refs/write_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/cursor.h"
#include "base/os/lock.h"

#define HELD ((size_t)256 << 10)       /* bytes of records that wait for more */
#define ROWS 100000                    /* in a row group */
#define PENDING_MAX ((uint64_t)64 << 20) /* bytes of strings in a row group */

enum { DATASET, VARIABLE, CHUNK, URL, OFFSET, LENGTH, DATA, ZARRAY, ZATTRS };
static const struct pq_field fields[] = {
	[DATASET] = {"dataset", PQ_TEXT, false, false},
	[VARIABLE] = {"variable", PQ_TEXT, false, false},
	[CHUNK] = {"chunk", PQ_RAW, false, true},
	[URL] = {"url", PQ_TEXT, true, false},
	[OFFSET] = {"offset", PQ_INT, true, false},
	[LENGTH] = {"length", PQ_INT, true, false},
	[DATA] = {"data", PQ_RAW, true, false},
	[ZARRAY] = {"zarray", PQ_TEXT, false, false},
	[ZATTRS] = {"zattrs", PQ_TEXT, true, false},
};

/* ---- records ---- */

enum record { RECORD_ARRAY, RECORD_CHUNK };
enum { HAS_URL = 1, HAS_RANGE = 2, HAS_DATA = 4 };

struct table_out {
	struct refs_part *part;
	struct buf zarray, zattrs; /* of the array that begins next */
	bool has_zattrs;
};

static void put_string(struct buf *out, const void *p, size_t n)
{
	buf_put_le(out, n, 8);
	buf_put(out, p, n);
}

static int write_table_doc(void *arg, const char *key, const struct buf *text, struct err *e)
{
	struct table_out *o = arg;
	const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
	struct buf *to = strcmp(name, ".zarray") == 0   ? &o->zarray
			 : strcmp(name, ".zattrs") == 0 ? &o->zattrs
							: NULL;

	if (to == &o->zarray) /* the document of an array comes before its attributes */
		o->has_zattrs = false;
	if (to == &o->zattrs)
		o->has_zattrs = true;
	if (!to)
		return 0;
	buf_clear(to);
	buf_put(to, text->data, text->len);
	return buf_ok(to) ? 0 : err_nomem(e);
}

static int write_table_begin(void *arg, const char *key, uint64_t n NZ_UNUSED, struct err *e)
{
	struct table_out *o = arg;
	struct buf *out = &o->part->text;
	const size_t group = strlen(o->part->group);

	/* the path within the dataset */
	key += group + (group && key[group] == '/');
	buf_putc(out, (char)RECORD_ARRAY);
	put_string(out, key, strlen(key));
	put_string(out, o->zarray.data, o->zarray.len);
	buf_putc(out, o->has_zattrs);
	put_string(out, o->zattrs.data, o->has_zattrs ? o->zattrs.len : 0);
	return buf_ok(out) ? 0 : err_nomem(e);
}

static int write_table_chunk(void *arg, const char *name, uint64_t linear NZ_UNUSED,
			     const struct refs_chunk *c, struct err *e)
{
	struct table_out *o = arg;
	struct buf *out = &o->part->text;
	const bool ranged = !c->data && !c->whole;

	buf_putc(out, (char)RECORD_CHUNK);
	put_string(out, name, strlen(name));
	buf_putc(out, (char)((c->data ? HAS_DATA : HAS_URL) | (ranged ? HAS_RANGE : 0)));
	buf_put_le(out, ranged ? c->off : 0, 8);
	buf_put_le(out, c->data || ranged ? c->len : 0, 8);
	if (c->data)
		put_string(out, c->data, (size_t)c->len);
	else
		put_string(out, c->url, strlen(c->url));
	return refs_part_flush(o->part, HELD, e);
}

int refs_set_table_add(struct refs_part *p, struct source *s, struct view *v,
		       const struct refs_options *opts, bool *ret_out, struct err *e)
{
	struct table_out o = {
		.part = p, .zarray = buf_of(SIZE_MAX / 2), .zattrs = buf_of(SIZE_MAX / 2)};
	const struct refs_out out = {
		.arg = &o,
		.doc = write_table_doc,
		.begin = write_table_begin,
		.chunk = write_table_chunk,
	};
	struct buf *text = &p->text;
	int rc;

	rc = refs_walk(s, v, p->group, opts, &out, ret_out, e);
	if (rc == 0 && !buf_ok(text))
		rc = err_nomem(e);
	buf_release(&o.zarray);
	buf_release(&o.zattrs);
	return rc;
}

/* ---- rows ---- */

static const uint8_t *read_string(struct slice *s, size_t *ret)
{
	*ret = (size_t)rd_le64(s);
	return rd_bytes(s, *ret);
}

/* copy_string - copy a string of a record. */
static int copy_string(struct slice *s, struct buf *to, struct err *e)
{
	size_t n;
	const uint8_t *p = read_string(s, &n);

	buf_clear(to);
	buf_put(to, p, n);
	return buf_ok(to) ? 0 : err_nomem(e);
}

static int read_array(struct refs_set *set, struct slice *s, struct err *e)
{
	struct refs_columns *c = &set->columns;
	int rc = copy_string(s, &c->variable, e);

	rc = rc ? rc : copy_string(s, &c->zarray, e);
	c->has_zattrs = rd_u8(s) != 0;
	return rc ? rc : copy_string(s, &c->zattrs, e);
}

static int add_row(struct refs_set *set, const char *group, struct slice *s, struct err *e)
{
	const struct refs_columns *c = &set->columns;
	size_t n_name, n;
	const uint8_t *name = read_string(s, &n_name);
	const unsigned has = rd_u8(s);
	const uint64_t off = rd_le64(s), len = rd_le64(s);
	const uint8_t *p = read_string(s, &n);
	const struct pq_cell row[] = {
		[DATASET] = {true, strlen(group), group},
		[VARIABLE] = {true, c->variable.len, c->variable.data},
		[CHUNK] = {true, n_name, name},
		[URL] = {has & HAS_URL, n, p},
		[OFFSET] = {has & HAS_RANGE, off, NULL},
		[LENGTH] = {has & (HAS_RANGE | HAS_DATA), len, NULL},
		[DATA] = {has & HAS_DATA, n, p},
		[ZARRAY] = {true, c->zarray.len, c->zarray.data},
		[ZATTRS] = {c->has_zattrs, c->zattrs.len, c->zattrs.data},
	};

	return pq_writer_row(set->rows, row, e);
}

int refs_table_add(struct refs_set *set, const char *group, const struct buf *text,
		    struct err *e)
{
	struct slice s = slice_of(text->data, text->len);
	int rc = 0;

	while (rc == 0 && s.len > 0) {
		if (rd_u8(&s) == RECORD_ARRAY) {
			rc = read_array(set, &s, e);
			continue;
		}
		rc = add_row(set, group, &s, e);
		if (rc == 0 &&
		    (++set->pending == ROWS || pq_writer_pending(set->rows) > PENDING_MAX))
			rc = refs_table_flush(set, e);
	}
	return rc;
}

int refs_table_flush(struct refs_set *set, struct err *e)
{
	int rc = pq_writer_flush(set->rows, set->fd, e);
	struct pq_mark mark;
	LOCK_SCOPE(&set->lock);

	set->pending = 0;
	pq_writer_mark(set->rows, &mark);
	set->bytes = mark.at;
	return rc;
}

/* ---- the set ---- */

int refs_set_table(int fd, struct refs_set **ret, struct err *e)
{
	struct refs_set *set = NULL;
	int rc = refs_set_new(fd, REFS_SET_TABLE, "", &set, e);

	rc = rc ? rc : pq_writer_new(fields, ARRAY_LEN(fields), &set->rows, e);
	if (rc < 0) {
		refs_set_free(set);
		return rc;
	}
	set->columns.variable = set->columns.zarray = set->columns.zattrs = buf_of(SIZE_MAX / 2);
	*ret = set;
	return 0;
}

void refs_table_release(struct refs_set *set)
{
	pq_writer_free(set->rows);
	buf_release(&set->columns.variable);
	buf_release(&set->columns.zarray);
	buf_release(&set->columns.zattrs);
}
