/* SPDX-License-Identifier: BSD-3-Clause */
/* parquet.h - a subset of Parquet: flat tables of a few columns, for references to chunks; private
 * to nczarr.
 *
 * Reads files of fastparquet, pyarrow and pq_writer: columns of INT32, INT64 and BYTE_ARRAY that
 * are required or optional, pages of versions 1 and 2, encodings PLAIN, RLE and dictionaries,
 * uncompressed or with zstd, gzip or snappy. Every length is checked; the caller limits memory.
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

/* thrift_reader - a cursor with a sticky error flag `bad`: after an error all reads return the
 * end. */
struct thrift_reader {
	const uint8_t *p, *end;
	int16_t last;  /* field of the struct that is read */
	bool bad;
};

/* thrift_field - a field of a struct to read. One of n, u and at is set. */
struct thrift_field {
	int16_t id;
	int64_t *n;   /* gets its number, or 1 or 0 for a truth value */
	uint64_t *u;  /* the same; a negative number is an error */
	struct thrift_reader *at; /* gets its position, if it is of this type */
	int type;
};

/* thrift_read_struct - read n fields of a struct, and skip the others. */
void thrift_read_struct(struct thrift_reader *t, const struct thrift_field *fields, size_t n);
/* thrift_read_varint - an unsigned number of at most 64 bits. */
uint64_t thrift_read_varint(struct thrift_reader *t);
/* thrift_read_bytes - value of BINARY; borrowed. */
const uint8_t *thrift_read_bytes(struct thrift_reader *t, size_t *ret_len);
/* thrift_read_list - number of elements of a list; *ret_type: their type. */
uint32_t thrift_read_list(struct thrift_reader *t, int *ret_type);

/* thrift_writer - writes to a buffer. */
struct thrift_writer {
	struct buf *out;
	int16_t last;
};
void thrift_put_varint(struct buf *out, uint64_t v);
void thrift_write_int(struct thrift_writer *t, int16_t id, int type, int64_t v);
void thrift_write_text(struct thrift_writer *t, int16_t id, const char *text);
void thrift_write_list(struct thrift_writer *t, int16_t id, int type, uint32_t n);
/* thrift_write_element_int, _text - write a list element. */
void thrift_write_element_int(struct thrift_writer *t, int64_t v);
void thrift_write_element_text(struct thrift_writer *t, const char *text);
/* thrift_write_begin - start a struct as field id or, if id is 0, as a list element. */
int16_t thrift_write_begin(struct thrift_writer *t, int16_t id);
void thrift_write_end(struct thrift_writer *t, int16_t outer);

/* ---- reading ---- */

/* pq_column - one column with n rows. */
struct pq_column {
	bool there;          /* the file has it */
	bool *nulls;         /* n; NULL: no row is null */
	int64_t *ints;       /* n; of INT32 and INT64 */
	size_t *at;          /* n; of BYTE_ARRAY: offset in bytes */
	uint32_t *len;       /* n */
	struct buf bytes;    /* each value is followed by a NUL */
};

/* pq_want - a column to read, by its name; others are ignored. */
struct pq_want {
	const char *name;
	bool is_int;         /* INT32 or INT64; else BYTE_ARRAY. Another type is an error */
};

#define PQ_COLUMNS 4

struct pq_table {
	uint64_t n;          /* rows */
	uint64_t bytes;      /* estimated memory */
	struct pq_column columns[PQ_COLUMNS];
};

/* pq_read - read the wanted columns (at most PQ_COLUMNS) of a file in memory. max: memory limit of
 * pages and columns, in bytes. Returns 0 (pq_table_release); -EBADMSG damaged; -EOPNOTSUPP an
 * unsupported feature of Parquet; -ERANGE; -ENOMEM. */
int pq_read(const uint8_t *file, size_t len, const struct pq_want *want, size_t n_want,
	    uint64_t max, struct pq_table *ret, struct err *e) NZ_MUST_USE;
void pq_table_release(struct pq_table *t);

/* rle_bitpacked_hybrid - decode n values of `width` bits (0 to 32) of the encoding RLE: runs and
 * bit-packed groups. Returns the bytes consumed; SIZE_MAX: damaged. (pages.c) */
size_t rle_bitpacked_hybrid(const uint8_t *p, size_t len, uint32_t width, uint32_t *out,
			    uint64_t n);

/* pq_snappy - decompress snappy's raw format into out, which takes the n bytes that it must have.
 * -EBADMSG. (pages.c) */
int pq_snappy(const uint8_t *in, size_t n_in, uint8_t *out, size_t n, struct err *e) NZ_MUST_USE;

/* ---- writing ---- */

/* pq_field - a column of a file that is written. */
struct pq_field {
	const char *name; /* static */
	enum pq_kind {
		PQ_INT,   /* INT64 */
		PQ_TEXT,  /* UTF-8, by a dictionary: for few different values */
		PQ_RAW,   /* bytes, or UTF-8 if text is set */
	} kind;
	bool optional;    /* rows may be null */
	bool text;
};

#define PQ_FIELDS_MAX 16

/* pq_writer - writes files of flat rows to a descriptor, which is only appended to. Rows are
 * collected; pq_writer_flush() writes them as a row group, pq_writer_end() completes the file. The
 * same rows give the same bytes. */
struct pq_writer;
/* pq_writer_new - fields: at most PQ_FIELDS_MAX, static. */
int pq_writer_new(const struct pq_field *fields, size_t n_fields, struct pq_writer **ret,
		  struct err *e) NZ_MUST_USE;
void pq_writer_free(struct pq_writer *w);
/* pq_writer_int, pq_writer_bytes, pq_writer_null - add the next value of a column. Each column gets
 * one for each row. bytes: of PQ_TEXT or PQ_RAW. -ERANGE: a number of more than 63 bits, more than
 * 2 GiB. */
int pq_writer_int(struct pq_writer *w, size_t field, uint64_t v, struct err *e) NZ_MUST_USE;
int pq_writer_bytes(struct pq_writer *w, size_t field, const void *p, uint64_t n,
		    struct err *e) NZ_MUST_USE;
int pq_writer_null(struct pq_writer *w, size_t field, struct err *e) NZ_MUST_USE;
/* pq_writer_row - add a row: a cell for each column. */
struct pq_cell {
	bool has;      /* else null */
	uint64_t n;    /* the number, or the bytes at p */
	const void *p;
};
int pq_writer_row(struct pq_writer *w, const struct pq_cell *cells, struct err *e) NZ_MUST_USE;
/* pq_writer_rows - rows of this file, by its first column. */
uint64_t pq_writer_rows(const struct pq_writer *w);
/* pq_writer_pending - pending bytes of PQ_TEXT and PQ_RAW. pq_writer_flush - write the pending rows
 * as a row group. */
uint64_t pq_writer_pending(const struct pq_writer *w);
int pq_writer_flush(struct pq_writer *w, int fd, struct err *e) NZ_MUST_USE;
/* pq_writer_end - write the rest and the footer; after that the writer is empty and starts another
 * file. */
int pq_writer_end(struct pq_writer *w, int fd, struct err *e) NZ_MUST_USE;

/* pq_write - write all bytes to a file or a pipe. */
int pq_write(int fd, const uint8_t *p, size_t n, struct err *e) NZ_MUST_USE;

/* pq_mark - a state of the writer between two row groups, after pq_writer_flush. */
struct pq_mark {
	uint64_t at;     /* bytes of the file */
	uint64_t total;  /* rows */
	size_t groups;
	uint32_t n_groups;
};
void pq_writer_mark(const struct pq_writer *w, struct pq_mark *ret);
/* pq_writer_back - forget the rows since a mark. The caller truncates the file to mark->at. */
void pq_writer_back(struct pq_writer *w, const struct pq_mark *mark);

#endif
