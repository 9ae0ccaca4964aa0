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
#include "base/core/endian.h"

/* pages_page - a page's header. */
struct pages_page {
	int64_t type, encoding, levels;
	uint64_t size, stored, values;
	uint64_t def_len, rep_len; /* version 2 */
	int64_t compressed;        /* version 2; 0: not compressed */
};

/* pages - state of reading the pages of a column. */
struct pages {
	const struct pq_chunk *c;
	struct pq_column *col;
	uint64_t row, end; /* of the column */
	uint64_t *budget;
	uint8_t *body; /* of a page, when it was compressed; owned */
	uint64_t n_dict;
	struct pq_column dict; /* n_dict values; strings are in col->bytes */
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
	struct thrift_reader t = {.p = p, .end = p + len};
	const size_t value_bytes = (width + 7) / 8;
	uint64_t some;

	if (width > 32)
		return SIZE_MAX;
	for (uint64_t done = 0; done < n; done += some) {
		const uint64_t head = thrift_read_varint(&t), left = (uint64_t)(t.end - t.p);

		if (t.bad || head >> 1 == 0)
			return SIZE_MAX;
		if (head & 1) {
			/* groups of eight; writers omit bytes after the last value */
			uint64_t groups = head >> 1, bytes;

			if (groups > UINT64_MAX / 64)
				return SIZE_MAX;
			some = u64_min(groups * 8, n - done);
			bytes = u64_min(groups * width, left);
			if (bytes < (some * width + 7) / 8)
				return SIZE_MAX;
			pages_unpack(t.p, (size_t)bytes, width, out + done, some);
			t.p += bytes;
		} else {
			uint64_t v = left < value_bytes ? UINT64_MAX : get_le(t.p, value_bytes);

			if (v >> width != 0) /* truncated, or more bits than values need */
				return SIZE_MAX;
			t.p += value_bytes;
			some = u64_min(head >> 1, n - done);
			for (uint64_t i = 0; i < some; i++)
				out[done + i] = (uint32_t)v;
		}
	}
	return (size_t)(t.p - p);
}

/* ---- page headers ---- */

static int pages_read_header(struct thrift_reader *t, struct pages_page *g, struct err *e)
{
	struct thrift_reader data = {.bad = true}, dict = data, data_2 = data, *inner = t;
	const struct thrift_field of_page[] = {
		{1, .n = &g->type},
		{2, .u = &g->size},
		{3, .u = &g->stored},
		{5, .at = &data, .type = THRIFT_STRUCT},
		{7, .at = &dict, .type = THRIFT_STRUCT},
		{8, .at = &data_2, .type = THRIFT_STRUCT},
	};
	const struct thrift_field of_data[] = {
		{1, .u = &g->values}, {2, .n = &g->encoding}, {3, .n = &g->levels}};
	const struct thrift_field of_data_2[] = {{1, .u = &g->values},
						 {4, .n = &g->encoding},
						 {5, .u = &g->def_len},
						 {6, .u = &g->rep_len},
						 {7, .n = &g->compressed}};

	*g = (struct pages_page){
		.type = -1, .encoding = -1, .levels = PQ_RLE, .compressed = true};
	thrift_read_struct(t, of_page, ARRAY_LEN(of_page));
	if (g->type == PQ_DATA_PAGE_2)
		thrift_read_struct(inner = &data_2, of_data_2, ARRAY_LEN(of_data_2));
	else if (g->type == PQ_DATA_PAGE || g->type == PQ_DICTIONARY_PAGE)
		thrift_read_struct(inner = g->type == PQ_DATA_PAGE ? &data : &dict, of_data,
				   ARRAY_LEN(of_data));
	if (t->bad || inner->bad || g->stored > (uint64_t)(t->end - t->p))
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

/* pages_put_plain - n values of a column from row `from` on, without those that are null.
 * truncated: the error if s ends before. */
static int pages_put_plain(struct pages *p, struct pq_column *to, uint64_t from, uint64_t n,
			   struct slice *s, const char *truncated, struct err *e)
{
	const bool bytes = p->c->type == PQ_BYTES;
	int rc = 0;

	for (uint64_t i = from; rc == 0 && i < from + n; i++) {
		const uint8_t *b = NULL;

		if (to->nulls && to->nulls[i])
			continue;
		if (bytes) {
			to->len[i] = rd_le32(s);
			b = rd_bytes(s, to->len[i]);
		} else {
			to->ints[i] = p->c->type == PQ_INT32 ? (int32_t)rd_le32(s)
							     : (int64_t)rd_le64(s);
		}
		if (!slice_ok(s))
			return pages_damaged(truncated, e);
		if (bytes)
			rc = keep_bytes(p, b, to->len[i], &to->at[i], e);
	}
	return rc;
}

static int read_dictionary(struct pages *p, const struct pages_page *g, struct slice *s,
			   struct err *e)
{
	static const char truncated[] = "a dictionary page is truncated";
	const size_t n = (size_t)g->values;
	int rc;

	if (p->dict.at || (g->encoding != PQ_PLAIN && g->encoding != PQ_PLAIN_DICTIONARY))
		return pages_damaged("a dictionary page is not valid", e);
	/* every entry takes four bytes at least */
	if (g->values > s->len / 4)
		return pages_damaged(truncated, e);
	rc = spend(p->budget, g->values * 16, e);
	if (rc)
		return rc;
	p->n_dict = g->values;
	p->dict.at = alloc_array(n, sizeof(*p->dict.at));
	p->dict.len = alloc_array(n, sizeof(*p->dict.len));
	p->dict.ints = alloc_array(n, sizeof(*p->dict.ints));
	if (!p->dict.at || !p->dict.len || !p->dict.ints)
		return err_nomem(e);
	return pages_put_plain(p, &p->dict, 0, g->values, s, truncated, e);
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
	if (!slice_ok(s) || !p->dict.at ||
	    rle_bitpacked_hybrid(s->p, s->len, width, index, present) == SIZE_MAX)
		return pages_damaged("a page is truncated", e);
	for (uint64_t i = p->row; i < p->row + n; i++) {
		if (col->nulls && col->nulls[i])
			continue;
		if (index[k] >= p->n_dict)
			return pages_damaged("a value is not in the dictionary", e);
		if (p->c->type == PQ_BYTES) {
			col->at[i] = p->dict.at[index[k]];
			col->len[i] = p->dict.len[index[k]];
		} else {
			col->ints[i] = p->dict.ints[index[k]];
		}
		k++;
	}
	return 0;
}

/* put_nulls - set the null flags of n rows; *ret: number of the others. */
static int put_nulls(struct pages *p, uint64_t n, const uint8_t *levels, size_t len,
		     uint64_t *ret, struct err *e)
{
	auto_free uint32_t *def = alloc_array((size_t)n, sizeof(*def));

	if (!def)
		return err_nomem(e);
	if (!levels || rle_bitpacked_hybrid(levels, len, 1, def, n) == SIZE_MAX)
		return pages_damaged("the levels of a page are damaged", e);
	*ret = 0;
	for (uint64_t i = 0; i < n; i++) {
		p->col->nulls[p->row + i] = def[i] == 0;
		*ret += def[i] != 0;
	}
	return 0;
}

static int pages_put_values(struct pages *p, const struct pages_page *g, uint64_t present,
			    struct slice *s, struct err *e)
{
	int rc;

	switch (g->encoding) {
	case PQ_PLAIN:
		rc = pages_put_plain(p, p->col, p->row, g->values, s, "a page is truncated", e);
		break;
	case PQ_PLAIN_DICTIONARY:
	case PQ_RLE_DICTIONARY:
		rc = put_indexed(p, g->values, present, s, e);
		break;
	default:
		return err_set(e, -EOPNOTSUPP, "Parquet: encoding %" PRId64 " is not supported",
			       g->encoding);
	}
	p->row += g->values;
	return rc;
}

static int data_page(struct pages *p, const struct pages_page *g, struct slice s, struct err *e)
{
	uint64_t present = g->values;
	int rc = 0;

	if (p->c->optional && p->col->nulls && g->values > 0) {
		const uint32_t n = rd_le32(&s);
		const uint8_t *levels = rd_bytes(&s, n);

		if (g->levels != PQ_RLE)
			return err_set(e, -EOPNOTSUPP,
				       "Parquet: levels in encoding %" PRId64 " are not supported",
				       g->levels);
		rc = put_nulls(p, g->values, levels, n, &present, e);
	}
	return rc ? rc : pages_put_values(p, g, present, &s, e);
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
		rc = put_nulls(p, g->values, body, (size_t)g->def_len, &present, e);
	if (rc)
		return rc;
	s = slice_of(body + lead, (size_t)(g->stored - lead));
	if (g->compressed && p->c->codec != PQ_AS_IS && g->size > lead) {
		rc = pages_inflate(p, s.p, s.len, g->size - lead, e);
		s = slice_of(p->body, (size_t)(g->size - lead));
	}
	return rc ? rc : pages_put_values(p, g, present, &s, e);
}

static int pages_one_page(struct pages *p, const struct pages_page *g, const uint8_t *body,
			  struct err *e)
{
	struct slice s = slice_of(body, (size_t)g->stored);
	int rc = 0;

	if (g->type != PQ_DICTIONARY_PAGE && g->values > p->end - p->row)
		return pages_damaged("a column has more values than its row group has rows", e);
	if (g->type == PQ_DATA_PAGE_2)
		return data_page_2(p, g, body, e);
	if (g->type != PQ_DATA_PAGE && g->type != PQ_DICTIONARY_PAGE)
		return 0; /* an index: not needed */
	if (p->c->codec != PQ_AS_IS) {
		rc = pages_inflate(p, s.p, s.len, g->size, e);
		s = slice_of(p->body, (size_t)g->size);
	}
	if (rc == 0)
		rc = g->type == PQ_DATA_PAGE ? data_page(p, g, s, e) : read_dictionary(p, g, &s, e);
	return rc;
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
		rc = t.p == t.end ? pages_damaged("a column is truncated", e)
				  : pages_read_header(&t, &g, e);
		rc = rc ? rc : pages_one_page(&p, &g, t.p, e);
		if (rc == 0)
			t.p += g.stored;
	}
	free(p.body);
	free(p.dict.at);
	free(p.dict.len);
	free(p.dict.ints);
	return rc;
}
