/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.c - files of references as Parquet: row groups, a page for each of their columns,
 * compressed by zstd. The output is deterministic. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "base/core/endian.h"
#include "base/core/hash.h"
#include "nczarr/parquet/parquet_int.h"

#define LEVEL 3

struct parquet_writer_row {
	uint64_t off, size;
	uint32_t path; /* 0: none; else a number in the dictionary, from 1 */
	bool raw;
	uint32_t raw_len;
};

struct pq_writer {
	struct parquet_writer_row *rows; /* of the current group */
	size_t n, cap;
	struct buf raws;
	struct buf paths; /* the dictionary in the form of its page: lengths and strings */
	size_t *path_at;  /* of each in paths */
	size_t n_paths, c_paths;
	uint32_t *table; /* hash table of numbers; 0: empty */
	size_t c_table;
	struct buf page, packed, head, groups;
	uint32_t n_groups;
	uint64_t total; /* rows of all groups */
	uint64_t at;    /* bytes of the file so far */
};

int pq_writer_new(struct pq_writer **ret, struct err *e)
{
	struct pq_writer *w = alloc_array(1, sizeof(*w));
	struct buf *bufs[6];

	if (!w)
		return err_nomem(e);
	memcpy(bufs,
	       (struct buf *[]){&w->raws, &w->paths, &w->page, &w->packed, &w->head,
				&w->groups},
	       sizeof(bufs));
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		buf_init(bufs[i], INT32_MAX); /* lengths of pages are 31 bits */
	*ret = w;
	return 0;
}

void pq_writer_free(struct pq_writer *w)
{
	if (!w)
		return;
	buf_release(&w->raws);
	buf_release(&w->paths);
	buf_release(&w->page);
	buf_release(&w->packed);
	buf_release(&w->head);
	buf_release(&w->groups);
	free(w->rows);
	free(w->path_at);
	free(w->table);
	free(w);
}

uint64_t pq_writer_rows(const struct pq_writer *w)
{
	return w->total + w->n;
}

uint64_t pq_writer_waits(const struct pq_writer *w)
{
	return w->raws.len + w->paths.len;
}

/* ---- the dictionary ---- */

static const char *parquet_writer_path_of(const struct pq_writer *w, uint32_t number,
					  size_t *ret_len)
{
	const uint8_t *p = w->paths.data + w->path_at[number - 1];

	*ret_len = get_le32(p);
	return (const char *)p + 4;
}

static uint32_t *parquet_writer_slot_of(const struct pq_writer *w, uint32_t *table, size_t c,
					const char *path, size_t n)
{
	const uint64_t h = hash_bytes(HASH_SEED, path, n);
	size_t i, len;

	for (i = (size_t)(h ^ h >> 29) & (c - 1); table[i]; i = (i + 1) & (c - 1)) {
		const char *have = parquet_writer_path_of(w, table[i], &len);

		if (len == n && memcmp(have, path, n) == 0)
			break;
	}
	return &table[i];
}

static int grow_table(struct pq_writer *w, struct err *e)
{
	size_t c = w->c_table ? 2 * w->c_table : 256, n;
	uint32_t *table = alloc_array(c, sizeof(*table));

	if (!table)
		return err_nomem(e);
	for (uint32_t k = 1; k <= w->n_paths; k++) {
		const char *path = parquet_writer_path_of(w, k, &n);

		*parquet_writer_slot_of(w, table, c, path, n) = k;
	}
	free(w->table);
	w->table = table;
	w->c_table = c;
	return 0;
}

static int parquet_writer_number_of(struct pq_writer *w, const char *path, uint32_t *ret,
				    struct err *e)
{
	size_t n = strlen(path);
	uint32_t *slot;
	int rc = w->n_paths * 2 >= w->c_table ? grow_table(w, e) : 0;

	if (rc)
		return rc;
	slot = parquet_writer_slot_of(w, w->table, w->c_table, path, n);
	if (!*slot) {
		if (grow_array(&w->path_at, &w->c_paths, w->n_paths + 1, sizeof(*w->path_at)))
			return err_nomem(e);
		w->path_at[w->n_paths] = w->paths.len;
		buf_put_le32(&w->paths, (uint32_t)n);
		buf_put(&w->paths, path, n);
		if (!buf_ok(&w->paths))
			return err_nomem(e);
		*slot = (uint32_t)++w->n_paths;
	}
	*ret = *slot;
	return 0;
}

int pq_writer_row(struct pq_writer *w, const char *path, uint64_t off, uint64_t size,
		  const uint8_t *raw, uint64_t raw_len, struct err *e)
{
	struct parquet_writer_row r = {.off = off, .size = size, .raw = raw != NULL};
	int rc = 0;

	if (off > INT64_MAX || size > INT64_MAX || raw_len > INT32_MAX)
		return err_set(e, -ERANGE,
			       "Parquet cannot store a reference to %" PRIu64
			       " bytes at offset %" PRIu64,
			       size, off);
	if (grow_array(&w->rows, &w->cap, w->n + 1, sizeof(*w->rows)))
		return err_nomem(e);
	if (path)
		rc = parquet_writer_number_of(w, path, &r.path, e);
	if (rc)
		return rc;
	if (raw) {
		r.raw_len = (uint32_t)raw_len;
		buf_put_le32(&w->raws, r.raw_len);
		buf_put(&w->raws, raw, (size_t)raw_len);
		if (!buf_ok(&w->raws))
			return err_nomem(e);
	}
	w->rows[w->n++] = r;
	return 0;
}

/* ---- pages ---- */

static int put_out(struct pq_writer *w, int fd, const struct buf *b, struct err *e)
{
	size_t at = 0;

	if (!buf_ok(b))
		return err_nomem(e);
	while (at < b->len) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "cannot write the references");
		at += n > 0 ? (size_t)n : 0;
	}
	w->at += b->len;
	return 0;
}

/* put_packed_head - of a run of n packed values. */
static void put_packed_head(struct buf *out, uint64_t n)
{
	uint64_t v = (n + 7) / 8 << 1 | 1;

	for (; v >= 0x80; v >>= 7)
		buf_putc(out, (char)(v | 0x80));
	buf_putc(out, (char)v);
}

/* put_levels - bit-packed flags of rows with a value. raw: of raws, else of paths. */
static void put_levels(struct pq_writer *w, bool raw)
{
	struct buf *out = &w->page;
	size_t from = out->len;
	uint32_t len;

	buf_put_le32(out, 0);
	put_packed_head(out, w->n);
	for (size_t i = 0; i < w->n; i += 8) {
		uint8_t bits = 0;

		for (size_t k = 0; k < 8 && i + k < w->n; k++)
			if (raw ? w->rows[i + k].raw : w->rows[i + k].path > 0)
				bits |= (uint8_t)(1u << k);
		buf_putc(out, (char)bits);
	}
	if (!buf_ok(out))
		return;
	len = (uint32_t)(out->len - from - 4);
	put_le32(out->data + from, len);
}

/* put_indexes - numbers of paths, from 0, in the fewest bits. */
static void put_indexes(struct pq_writer *w)
{
	uint32_t width = 1, used = 0;
	uint64_t bits = 0, n = 0;

	while (width < 32 && (w->n_paths - 1) >> width)
		width++;
	for (size_t i = 0; i < w->n; i++)
		n += w->rows[i].path > 0;
	buf_putc(&w->page, (char)width);
	put_packed_head(&w->page, n);
	for (size_t i = 0; i < w->n; i++) {
		if (!w->rows[i].path)
			continue;
		bits |= (uint64_t)(w->rows[i].path - 1) << used;
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
static int parquet_writer_put_page(struct pq_writer *w, int fd, const struct buf *page,
				   int type, int encoding, uint64_t values, uint64_t *sum,
				   struct err *e)
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
	n = ZSTD_compress(to, bound, page->data ? page->data : (const uint8_t *)"", page->len,
			  LEVEL);
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
	rc = put_out(w, fd, &w->head, e);
	return rc ? rc : put_out(w, fd, &w->packed, e);
}

/* ---- columns ---- */

enum { PATH, OFFSET, SIZE, RAW, COLUMNS };
static const char *const names[] = {"path", "offset", "size", "raw"};

/* put_meta - a column of the group, for the footer. */
static void put_meta(struct pq_writer *w, struct thrift_writer *t, int column, uint64_t from,
		     uint64_t data, uint64_t sum)
{
	int16_t chunk = thrift_write_begin(t, 0), meta;
	bool bytes = column == PATH || column == RAW, dict = data != from;

	thrift_write_int(t, 2, THRIFT_I64, (int64_t)from);
	meta = thrift_write_begin(t, 3);
	thrift_write_int(t, 1, THRIFT_I32, bytes ? PQ_BYTES : PQ_INT64);
	thrift_write_list(t, 2, THRIFT_I32, dict ? 3 : 2);
	thrift_write_element_int(t, PQ_PLAIN);
	thrift_write_element_int(t, PQ_RLE);
	if (dict)
		thrift_write_element_int(t, PQ_RLE_DICTIONARY);
	thrift_write_list(t, 3, THRIFT_BINARY, 1);
	thrift_write_element_text(t, names[column]);
	thrift_write_int(t, 4, THRIFT_I32, PQ_ZSTD);
	thrift_write_int(t, 5, THRIFT_I64, (int64_t)w->n);
	thrift_write_int(t, 6, THRIFT_I64, (int64_t)sum);
	thrift_write_int(t, 7, THRIFT_I64, (int64_t)(w->at - from));
	thrift_write_int(t, 9, THRIFT_I64, (int64_t)data);
	if (dict)
		thrift_write_int(t, 11, THRIFT_I64, (int64_t)from);
	thrift_write_end(t, meta);
	thrift_write_end(t, chunk);
}

static int put_column(struct pq_writer *w, int fd, int column, struct thrift_writer *t,
		      uint64_t *total, struct err *e)
{
	const bool dict = column == PATH && w->n_paths > 0;
	uint64_t from = w->at, data, sum = 0;
	int rc = 0;

	if (dict)
		rc = parquet_writer_put_page(w, fd, &w->paths, PQ_DICTIONARY_PAGE, PQ_PLAIN,
					     w->n_paths, &sum, e);
	data = w->at;
	buf_clear(&w->page);
	if (column == PATH || column == RAW)
		put_levels(w, column == RAW);
	if (dict)
		put_indexes(w);
	for (size_t i = 0; (column == OFFSET || column == SIZE) && i < w->n; i++)
		buf_put_le(&w->page, column == OFFSET ? w->rows[i].off : w->rows[i].size, 8);
	if (column == RAW)
		buf_put(&w->page, w->raws.data, w->raws.len);
	if (rc == 0)
		rc = parquet_writer_put_page(w, fd, &w->page, PQ_DATA_PAGE,
					     dict ? PQ_RLE_DICTIONARY : PQ_PLAIN, w->n, &sum,
					     e);
	put_meta(w, t, column, from, data, sum);
	*total += sum;
	return rc;
}

int pq_writer_flush(struct pq_writer *w, int fd, struct err *e)
{
	struct thrift_writer t = {.out = &w->groups};
	struct buf magic;
	uint64_t total = 0;
	int rc = 0;

	if (w->at == 0) {
		buf_init(&magic, 16);
		buf_puts(&magic, PQ_MAGIC);
		rc = put_out(w, fd, &magic, e);
		buf_release(&magic);
	}
	if (rc || w->n == 0)
		return rc;
	thrift_write_list(&t, 1, THRIFT_STRUCT, COLUMNS);
	for (int c = 0; rc == 0 && c < COLUMNS; c++)
		rc = put_column(w, fd, c, &t, &total, e);
	thrift_write_int(&t, 2, THRIFT_I64, (int64_t)total);
	thrift_write_int(&t, 3, THRIFT_I64, (int64_t)w->n);
	buf_putc(&w->groups, THRIFT_STOP);
	w->n_groups++;
	w->total += w->n;
	w->n = w->n_paths = 0;
	buf_clear(&w->raws);
	buf_clear(&w->paths);
	if (w->c_table)
		memset(w->table, 0, w->c_table * sizeof(*w->table));
	return rc;
}

/* ---- the footer ---- */

static void put_schema(struct thrift_writer *t)
{
	int16_t outer;

	thrift_write_list(t, 2, THRIFT_STRUCT, COLUMNS + 1);
	outer = thrift_write_begin(t, 0);
	thrift_write_text(t, 4, "schema");
	thrift_write_int(t, 5, THRIFT_I32, COLUMNS);
	thrift_write_end(t, outer);
	for (int c = 0; c < COLUMNS; c++) {
		bool bytes = c == PATH || c == RAW;

		outer = thrift_write_begin(t, 0);
		thrift_write_int(t, 1, THRIFT_I32, bytes ? PQ_BYTES : PQ_INT64);
		thrift_write_int(t, 3, THRIFT_I32, bytes ? PQ_OPTIONAL : PQ_REQUIRED);
		thrift_write_text(t, 4, names[c]);
		if (c == PATH)
			thrift_write_int(t, 6, THRIFT_I32, PQ_UTF8);
		thrift_write_end(t, outer);
	}
}

int pq_writer_end(struct pq_writer *w, int fd, struct err *e)
{
	struct thrift_writer t = {.out = &w->page};
	int rc = pq_writer_flush(w, fd, e);

	if (rc)
		return rc;
	buf_clear(&w->page);
	thrift_write_int(&t, 1, THRIFT_I32, 1);
	put_schema(&t);
	thrift_write_int(&t, 3, THRIFT_I64, (int64_t)w->total);
	thrift_write_list(&t, 4, THRIFT_STRUCT, w->n_groups);
	buf_put(&w->page, w->groups.data, w->groups.len);
	thrift_write_text(&t, 6, "nczarrfs version " NCZARRFS_VERSION);
	buf_putc(&w->page, THRIFT_STOP);
	buf_put_le32(&w->page, (uint32_t)w->page.len);
	buf_puts(&w->page, PQ_MAGIC);
	if (!buf_ok(&w->groups))
		return err_nomem(e);
	rc = put_out(w, fd, &w->page, e);
	buf_clear(&w->groups);
	w->n_groups = 0;
	w->total = w->at = 0;
	return rc;
}
