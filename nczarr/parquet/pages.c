/* SPDX-License-Identifier: BSD-3-Clause */
/* pages.c - the pages of one column: levels, dictionaries, values. */
#include "nczarr/parquet/parquet_int.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <snappy-c.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/core/cursor.h"

/* pages_page - a page's header. */
struct pages_page {
	int type, encoding, levels;
	uint64_t size, stored, values;
	uint64_t def_len, rep_len; /* version 2 */
	bool as_is;                /* version 2: not compressed */
};

/* pages - state of reading the pages of a column. */
struct pages {
	const struct pq_chunk *c;
	struct pq_column *col;
	uint64_t row, end; /* of the column */
	uint64_t *budget;
	uint8_t *body; /* of a page, when it was compressed; owned */
	uint64_t n_dict;
	size_t *dict_at;    /* owned; in col->bytes */
	uint32_t *dict_len; /* owned */
	int64_t *dict_int;  /* owned */
};

static int pages_damaged(const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "Parquet: %s", what);
}

static int spend(uint64_t *budget, uint64_t n, struct err *e)
{
	if (n > *budget)
		return err_set(e, -ERANGE,
			       "Parquet: the table needs more memory than is allowed");
	*budget -= n;
	return 0;
}

/* ---- the hybrid of runs and packed values ---- */

static size_t hybrid_header(const uint8_t *p, size_t len, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < len && i < 9; i++) {
		*ret |= (uint64_t)(p[i] & 0x7f) << 7 * i;
		if (!(p[i] & 0x80))
			return i + 1;
	}
	return 0;
}

static void pages_unpack(const uint8_t *p, size_t len, uint32_t width, uint32_t *out,
			 uint64_t n)
{
	const uint64_t mask = width ? UINT64_MAX >> (64 - width) : 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t bit = i * width, v = 0;

		for (size_t k = 0; k < 5 && bit / 8 + k < len; k++)
			v |= (uint64_t)p[bit / 8 + k] << 8 * k;
		out[i] = (uint32_t)(v >> bit % 8 & mask);
	}
}

size_t rle_bitpacked_hybrid(const uint8_t *p, size_t len, uint32_t width, uint32_t *out,
			    uint64_t n)
{
	size_t at = 0, value_bytes = (width + 7) / 8;

	if (width > 32)
		return SIZE_MAX;
	for (uint64_t done = 0; done < n;) {
		uint64_t head, some;
		size_t took = hybrid_header(p + at, len - at, &head);

		at += took;
		if (took == 0 || head >> 1 == 0)
			return SIZE_MAX;
		if (head & 1) {
			/* groups of eight; writers omit bytes after the last value */
			uint64_t groups = head >> 1, bytes;

			if (groups > UINT64_MAX / 64)
				return SIZE_MAX;
			some = u64_min(groups * 8, n - done);
			bytes = u64_min(groups * width, len - at);
			if (bytes < (some * width + 7) / 8)
				return SIZE_MAX;
			pages_unpack(p + at, (size_t)bytes, width, out + done, some);
			at += (size_t)bytes;
		} else {
			uint32_t v = 0;

			if (len - at < value_bytes)
				return SIZE_MAX;
			for (size_t k = 0; k < value_bytes; k++)
				v |= (uint32_t)p[at + k] << 8 * k;
			at += value_bytes;
			if (width < 32 && v >> width != 0) /* more bits than values need */
				return SIZE_MAX;
			some = u64_min(head >> 1, n - done);
			for (uint64_t i = 0; i < some; i++)
				out[done + i] = v;
		}
		done += some;
	}
	return at;
}

/* ---- page headers ---- */

static uint64_t natural(struct thrift_reader *t)
{
	int64_t v = thrift_read_int(t);

	t->bad = t->bad || v < 0;
	return v < 0 ? 0 : (uint64_t)v;
}

static void read_inner(struct thrift_reader *t, struct pages_page *g, int kind)
{
	int16_t outer = thrift_read_begin(t), id;
	int type;

	while ((type = thrift_read_field(t, &id)) != THRIFT_STOP) {
		bool is_int = type == THRIFT_I32;
		bool v2 = kind == PQ_DATA_PAGE_2;

		if (id == 1 && is_int)
			g->values = natural(t);
		else if (id == (v2 ? 4 : 2) && is_int)
			g->encoding = (int)thrift_read_int(t);
		else if (kind == PQ_DATA_PAGE && id == 3 && is_int)
			g->levels = (int)thrift_read_int(t);
		else if (v2 && id == 5 && is_int)
			g->def_len = natural(t);
		else if (v2 && id == 6 && is_int)
			g->rep_len = natural(t);
		else if (v2 && id == 7)
			g->as_is = type == THRIFT_FALSE;
		else
			thrift_read_skip(t, type);
	}
	thrift_read_end(t, outer);
}

static int pages_read_header(struct thrift_reader *t, struct pages_page *g, struct err *e)
{
	int16_t id;
	int type;

	*g = (struct pages_page){.type = -1, .encoding = -1, .levels = PQ_RLE};
	t->last = 0;
	while ((type = thrift_read_field(t, &id)) != THRIFT_STOP) {
		if (id == 1 && type == THRIFT_I32)
			g->type = (int)thrift_read_int(t);
		else if (id == 2 && type == THRIFT_I32)
			g->size = natural(t);
		else if (id == 3 && type == THRIFT_I32)
			g->stored = natural(t);
		else if (id == 5 && type == THRIFT_STRUCT)
			read_inner(t, g, PQ_DATA_PAGE);
		else if (id == 7 && type == THRIFT_STRUCT)
			read_inner(t, g, PQ_DICTIONARY_PAGE);
		else if (id == 8 && type == THRIFT_STRUCT)
			read_inner(t, g, PQ_DATA_PAGE_2);
		else
			thrift_read_skip(t, type);
	}
	if (t->bad || g->stored > (uint64_t)(t->end - t->p))
		return pages_damaged("the header of a page is damaged", e);
	return 0;
}

/* ---- bodies ---- */

static int gunzip(const uint8_t *in, size_t n_in, uint8_t *out, size_t n, struct err *e)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result rc;

	if (!d)
		return err_nomem(e);
	rc = libdeflate_gzip_decompress(d, in, n_in, out, n, NULL);
	libdeflate_free_decompressor(d);
	return rc == LIBDEFLATE_SUCCESS ? 0 : pages_damaged("gzip: the data is damaged", e);
}

int pq_snappy(const uint8_t *in, size_t n_in, uint8_t *out, size_t n, struct err *e)
{
	size_t got;

	/* the length comes first: out has room for n bytes and no more */
	if (snappy_uncompressed_length((const char *)in, n_in, &got) != SNAPPY_OK || got != n ||
	    snappy_uncompress((const char *)in, n_in, (char *)out, &got) != SNAPPY_OK)
		return pages_damaged("snappy: the data is damaged", e);
	return 0;
}

/* pages_inflate - n bytes in p->body out of a compressed part of a page. */
static int pages_inflate(struct pages *p, const uint8_t *in, size_t n_in, uint64_t n,
			 struct err *e)
{
	size_t got;
	int rc = spend(p->budget, n, e);

	if (rc)
		return rc;
	free(p->body);
	p->body = malloc(n ? (size_t)n : 1);
	if (!p->body)
		return err_nomem(e);
	*p->budget += n; /* returned with the next page */
	switch (p->c->codec) {
	case PQ_SNAPPY:
		return pq_snappy(in, n_in, p->body, (size_t)n, e);
	case PQ_GZIP:
		return gunzip(in, n_in, p->body, (size_t)n, e);
	case PQ_ZSTD:
		got = ZSTD_decompress(p->body, (size_t)n, in, n_in);
		if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
			return err_nomem(e);
		return got == n ? 0 : pages_damaged("zstd: the data is damaged", e);
	default:
		return err_set(e, -EOPNOTSUPP, "Parquet: compression %d is not supported",
			       p->c->codec);
	}
}

/* ---- values ---- */

/* pages_plain_bytes - the next BYTE_ARRAY value in PLAIN. */
static const uint8_t *pages_plain_bytes(struct slice *s, uint32_t *ret_len)
{
	*ret_len = rd_le32(s);
	return rd_bytes(s, *ret_len);
}

static int keep_bytes(struct pages *p, const uint8_t *from, uint32_t len, size_t *ret_at,
		      struct err *e)
{
	int rc = spend(p->budget, (uint64_t)len + 1, e);

	if (rc)
		return rc;
	*ret_at = p->col->bytes.len;
	buf_put(&p->col->bytes, from, len);
	buf_putc(&p->col->bytes, '\0');
	return buf_ok(&p->col->bytes) ? 0 : err_nomem(e);
}

static int64_t plain_int(struct slice *s, int type)
{
	if (type == PQ_INT32)
		return (int32_t)rd_le32(s);
	return (int64_t)rd_le64(s);
}

static int read_dictionary(struct pages *p, const struct pages_page *g, struct slice *s,
			   struct err *e)
{
	int rc = 0;

	if (p->dict_at || p->dict_int ||
	    (g->encoding != PQ_PLAIN && g->encoding != PQ_PLAIN_DICTIONARY))
		return pages_damaged("a dictionary page is not valid", e);
	/* every entry takes four bytes at least */
	if (g->values > s->len / 4)
		return pages_damaged("a dictionary page is truncated", e);
	rc = spend(p->budget, g->values * 16, e);
	if (rc)
		return rc;
	p->n_dict = g->values;
	p->dict_at = alloc_array((size_t)g->values, sizeof(*p->dict_at));
	p->dict_len = alloc_array((size_t)g->values, sizeof(*p->dict_len));
	p->dict_int = alloc_array((size_t)g->values, sizeof(*p->dict_int));
	if (!p->dict_at || !p->dict_len || !p->dict_int)
		return err_nomem(e);
	for (uint64_t i = 0; rc == 0 && i < g->values; i++) {
		const uint8_t *b = NULL;

		if (p->c->type == PQ_BYTES)
			b = pages_plain_bytes(s, &p->dict_len[i]);
		else
			p->dict_int[i] = plain_int(s, p->c->type);
		if (!slice_ok(s))
			return pages_damaged("a dictionary page is truncated", e);
		if (b)
			rc = keep_bytes(p, b, p->dict_len[i], &p->dict_at[i], e);
	}
	return rc;
}

/* pages_put_plain - values of rows that are not null. */
static int pages_put_plain(struct pages *p, uint64_t n, struct slice *s, struct err *e)
{
	struct pq_column *col = p->col;
	int rc = 0;

	for (uint64_t i = p->row; rc == 0 && i < p->row + n; i++) {
		const uint8_t *b = NULL;

		if (col->nulls && col->nulls[i])
			continue;
		if (p->c->type == PQ_BYTES)
			b = pages_plain_bytes(s, &col->len[i]);
		else
			col->ints[i] = plain_int(s, p->c->type);
		if (!slice_ok(s))
			return pages_damaged("a page is truncated", e);
		if (b)
			rc = keep_bytes(p, b, col->len[i], &col->at[i], e);
	}
	return rc;
}

static int put_indexed(struct pages *p, uint64_t n, uint64_t present, struct slice *s,
		       struct err *e)
{
	struct pq_column *col = p->col;
	auto_free uint32_t *index = NULL;
	uint32_t width, k = 0;

	if (present == 0)
		return 0;
	width = rd_u8(s);
	index = alloc_array((size_t)present, sizeof(*index));
	if (!index)
		return err_nomem(e);
	if (!slice_ok(s) || !p->dict_at ||
	    rle_bitpacked_hybrid(s->p, s->len, width, index, present) == SIZE_MAX)
		return pages_damaged("a page is truncated", e);
	for (uint64_t i = p->row; i < p->row + n; i++) {
		if (col->nulls && col->nulls[i])
			continue;
		if (index[k] >= p->n_dict)
			return pages_damaged("a value is not in the dictionary", e);
		if (p->c->type == PQ_BYTES) {
			col->at[i] = p->dict_at[index[k]];
			col->len[i] = p->dict_len[index[k]];
		} else {
			col->ints[i] = p->dict_int[index[k]];
		}
		k++;
	}
	return 0;
}

#define STARVED (UINT64_MAX - 1)

/* put_nulls - set the null flags of n rows; returns the number of other rows, UINT64_MAX: damaged,
 * STARVED: out of memory. */
static uint64_t put_nulls(struct pages *p, uint64_t n, const uint8_t *levels, size_t len)
{
	auto_free uint32_t *def = alloc_array((size_t)n, sizeof(*def));
	uint64_t present = 0;

	if (!def)
		return STARVED;
	if (rle_bitpacked_hybrid(levels, len, 1, def, n) == SIZE_MAX)
		return UINT64_MAX;
	for (uint64_t i = 0; i < n; i++) {
		p->col->nulls[p->row + i] = def[i] == 0;
		present += def[i] != 0;
	}
	return present;
}

static int pages_put_values(struct pages *p, const struct pages_page *g, uint64_t present,
			    struct slice *s, struct err *e)
{
	int rc;

	switch (g->encoding) {
	case PQ_PLAIN:
		rc = pages_put_plain(p, g->values, s, e);
		break;
	case PQ_PLAIN_DICTIONARY:
	case PQ_RLE_DICTIONARY:
		rc = put_indexed(p, g->values, present, s, e);
		break;
	default:
		return err_set(e, -EOPNOTSUPP, "Parquet: encoding %d is not supported",
			       g->encoding);
	}
	p->row += g->values;
	return rc;
}

static int data_page(struct pages *p, const struct pages_page *g, const uint8_t *body,
		     size_t len, struct err *e)
{
	struct slice s = slice_of(body, len);
	uint64_t present = g->values;

	if (p->c->optional && p->col->nulls && g->values > 0) {
		uint32_t n = rd_le32(&s);
		const uint8_t *levels = rd_bytes(&s, n);

		if (g->levels != PQ_RLE)
			return err_set(e, -EOPNOTSUPP,
				       "Parquet: levels in encoding %d are not supported",
				       g->levels);
		present = levels ? put_nulls(p, g->values, levels, n) : UINT64_MAX;
	}
	if (present == STARVED)
		return err_nomem(e);
	if (present == UINT64_MAX)
		return pages_damaged("the levels of a page are damaged", e);
	return pages_put_values(p, g, present, &s, e);
}

static int data_page_2(struct pages *p, const struct pages_page *g, const uint8_t *body,
		       struct err *e)
{
	uint64_t lead, present = g->values;
	struct slice s;
	int rc = 0;

	if (g->rep_len != 0 || ckd_add(&lead, g->def_len, g->rep_len) || lead > g->stored ||
	    lead > g->size)
		return pages_damaged("the header of a page is damaged", e);
	if (p->c->optional && p->col->nulls && g->values > 0)
		present = put_nulls(p, g->values, body, (size_t)g->def_len);
	if (present == STARVED)
		return err_nomem(e);
	if (present == UINT64_MAX)
		return pages_damaged("the levels of a page are damaged", e);
	s = slice_of(body + lead, (size_t)(g->stored - lead));
	if (!g->as_is && p->c->codec != PQ_AS_IS && g->size > lead) {
		rc = pages_inflate(p, s.p, s.len, g->size - lead, e);
		s = slice_of(p->body, (size_t)(g->size - lead));
	}
	return rc ? rc : pages_put_values(p, g, present, &s, e);
}

static int pages_one_page(struct pages *p, const struct pages_page *g, const uint8_t *body,
			  struct err *e)
{
	size_t len = (size_t)g->stored;
	struct slice s;
	int rc;

	if (g->type != PQ_DICTIONARY_PAGE && g->values > p->end - p->row)
		return pages_damaged("a column has more values than its row group has rows", e);
	if (g->type == PQ_DATA_PAGE_2)
		return data_page_2(p, g, body, e);
	if (g->type != PQ_DATA_PAGE && g->type != PQ_DICTIONARY_PAGE)
		return 0; /* an index: not needed */
	if (p->c->codec != PQ_AS_IS) {
		rc = pages_inflate(p, body, len, g->size, e);
		if (rc)
			return rc;
		body = p->body;
		len = (size_t)g->size;
	}
	if (g->type == PQ_DATA_PAGE)
		return data_page(p, g, body, len, e);
	s = slice_of(body, len);
	return read_dictionary(p, g, &s, e);
}

int pq_chunk_read(const struct pq_chunk *c, struct pq_column *col, uint64_t first,
		  uint64_t *budget, struct err *e)
{
	struct pages p = {
		.c = c, .col = col, .row = first, .end = first + c->values, .budget = budget};
	struct thrift_reader t = {.p = c->p, .end = c->p + c->len};
	struct pages_page g;
	int rc = 0;

	while (rc == 0 && p.row < p.end) {
		if (t.p == t.end)
			rc = pages_damaged("a column is truncated", e);
		if (rc == 0)
			rc = pages_read_header(&t, &g, e);
		if (rc == 0)
			rc = pages_one_page(&p, &g, t.p, e);
		if (rc == 0)
			t.p += g.stored;
	}
	free(p.body);
	free(p.dict_at);
	free(p.dict_len);
	free(p.dict_int);
	return rc;
}
