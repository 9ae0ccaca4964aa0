/* SPDX-License-Identifier: BSD-3-Clause */
/* parquet.h - a little of Parquet: flat tables of a few columns, as references to chunks are kept
 * in; private to nczarr.
 *
 * Reading: what fastparquet, pyarrow and parquet_writer write: columns of INT32, INT64 and
 * BYTE_ARRAY that are required or optional, pages of versions 1 and 2, encodings PLAIN, RLE and
 * dictionaries, bodies as they are or by zstd, gzip or snappy. Nothing else of the format. Every
 * length is checked; memory is bounded by the caller's ceiling.
 * Spec: Apache Parquet, "File Format", "Encodings"; Thrift compact protocol. */
#ifndef NCZARR_PARQUET_PARQUET_H
#define NCZARR_PARQUET_PARQUET_H

#include "base/core/buf.h"
#include "base/core/err.h"

/* ---- thrift: the compact protocol (thrift.c) ---- */

enum {
	THRIFT_STOP = 0, THRIFT_TRUE = 1, THRIFT_FALSE = 2, THRIFT_BYTE = 3, THRIFT_I16 = 4,
	THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_DOUBLE = 7, THRIFT_BINARY = 8, THRIFT_LIST = 9,
	THRIFT_SET = 10, THRIFT_MAP = 11, THRIFT_STRUCT = 12,
};

/* thrift_reader - a place in thrift's bytes. What is wrong sets bad, after which everything reads
 * as the end. */
struct thrift_reader {
	const uint8_t *p, *end;
	int16_t last;  /* field of the struct that is read */
	bool bad;
};

/* thrift_read_field - the next field of a struct: its type, THRIFT_STOP at the end. */
int thrift_read_field(struct thrift_reader *t, int16_t *ret_id);
/* thrift_read_int - of a field of type I16, I32 or I64 (or an element of such a list). */
int64_t thrift_read_int(struct thrift_reader *t);
/* thrift_read_bytes - of BINARY; borrowed. */
const uint8_t *thrift_read_bytes(struct thrift_reader *t, size_t *ret_len);
/* thrift_read_list - elements of a list; *ret_type: theirs. */
uint32_t thrift_read_list(struct thrift_reader *t, int *ret_type);
/* thrift_read_begin, thrift_read_end - around a struct within one. begin returns what end takes. */
int16_t thrift_read_begin(struct thrift_reader *t);
void thrift_read_end(struct thrift_reader *t, int16_t outer);
/* thrift_read_skip - a value of a type. */
void thrift_read_skip(struct thrift_reader *t, int type);

/* thrift_writer - thrift's bytes, appended to a buffer. */
struct thrift_writer {
	struct buf *out;
	int16_t last;
};
void thrift_write_int(struct thrift_writer *t, int16_t id, int type, int64_t v);
void thrift_write_text(struct thrift_writer *t, int16_t id, const char *text);
void thrift_write_list(struct thrift_writer *t, int16_t id, int type, uint32_t n);
/* thrift_write_element_int, _text - of a list. */
void thrift_write_element_int(struct thrift_writer *t, int64_t v);
void thrift_write_element_text(struct thrift_writer *t, const char *text);
/* thrift_write_begin - a struct as field id, or, id 0, as an element of a list. */
int16_t thrift_write_begin(struct thrift_writer *t, int16_t id);
void thrift_write_end(struct thrift_writer *t, int16_t outer);

/* ---- reading ---- */

/* pq_column - one column, read: n rows. */
struct pq_column {
	bool there;          /* the file has it */
	bool *nulls;         /* n; NULL: no row is null */
	int64_t *ints;       /* n; of INT32 and INT64 */
	size_t *at;          /* n; of BYTE_ARRAY: where it is in bytes */
	uint32_t *len;       /* n */
	struct buf bytes;    /* behind each value a NUL */
};

/* pq_want - a column that is wanted, by its name; others are not looked at. */
struct pq_want {
	const char *name;
	bool is_int;         /* INT32 or INT64; else BYTE_ARRAY. Another type is an error */
};

#define PQ_COLUMNS 4

struct pq_table {
	uint64_t n;          /* rows */
	uint64_t bytes;      /* of memory that it takes, about */
	struct pq_column columns[PQ_COLUMNS];
};

/* pq_read - the columns wanted (at most PQ_COLUMNS) of a file in memory. max: bytes of memory that
 * pages and columns may take. Returns 0 (pq_table_release); -EBADMSG damaged; -EOPNOTSUPP something
 * of Parquet that is not read here; -ERANGE; -ENOMEM. */
int pq_read(const uint8_t *file, size_t len, const struct pq_want *want, size_t n_want,
	    uint64_t max, struct pq_table *ret, struct err *e) NZ_MUST_USE;
void pq_table_release(struct pq_table *t);

/* rle_bitpacked_hybrid - n values of `width` bits (0 to 32) in the encoding RLE, from p on: runs
 * and packed ones. Returns the bytes that were taken; SIZE_MAX: damaged. (pages.c) */
size_t rle_bitpacked_hybrid(const uint8_t *p, size_t len, uint32_t width, uint32_t *out,
			    uint64_t n);

/* pq_snappy - decompress snappy's raw format into out, which takes the n bytes that it must have.
 * -EBADMSG. (pages.c) */
int pq_snappy(const uint8_t *in, size_t n_in, uint8_t *out, size_t n, struct err *e) NZ_MUST_USE;

/* ---- writing ---- */

/* pq_writer - a file of references: path (optional text, by a dictionary), offset, size (INT64),
 * raw (optional bytes). Rows are collected; pq_writer_end gives the bytes of the file. */
struct pq_writer;
int pq_writer_new(struct pq_writer **ret, struct err *e) NZ_MUST_USE;
void pq_writer_free(struct pq_writer *w);
/* pq_writer_row - path NULL and raw NULL: there is no reference. */
int pq_writer_row(struct pq_writer *w, const char *path, uint64_t off, uint64_t size,
		  const uint8_t *raw, uint64_t raw_len, struct err *e) NZ_MUST_USE;
uint64_t pq_writer_rows(const struct pq_writer *w);
/* pq_writer_waits - bytes that wait to be written, beside rows.
 * pq_writer_flush - write what waits, as a group of rows. */
uint64_t pq_writer_waits(const struct pq_writer *w);
int pq_writer_flush(struct pq_writer *w, int fd, struct err *e) NZ_MUST_USE;
/* pq_writer_end - the rest and the footer; then the writer is empty and begins another file. */
int pq_writer_end(struct pq_writer *w, int fd, struct err *e) NZ_MUST_USE;

#endif
