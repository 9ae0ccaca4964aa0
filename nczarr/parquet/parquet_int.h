/* SPDX-License-Identifier: BSD-3-Clause */
/* parquet_int.h - numbers of the Parquet format that its files share; private to them.
 * Spec: parquet.thrift of Apache Parquet. */
#ifndef NCZARR_PARQUET_PARQUET_INT_H
#define NCZARR_PARQUET_PARQUET_INT_H

#include "nczarr/parquet/parquet.h"

#define PQ_MAGIC "PAR1"

enum { PQ_INT32 = 1, PQ_INT64 = 2, PQ_BYTES = 6 };
enum { PQ_REQUIRED = 0, PQ_OPTIONAL = 1 };
enum { PQ_PLAIN = 0, PQ_PLAIN_DICTIONARY = 2, PQ_RLE = 3, PQ_RLE_DICTIONARY = 8 };
enum { PQ_DATA_PAGE = 0, PQ_DICTIONARY_PAGE = 2, PQ_DATA_PAGE_2 = 3 };
enum { PQ_AS_IS = 0, PQ_SNAPPY = 1, PQ_GZIP = 2, PQ_ZSTD = 6 };
#define PQ_UTF8 0 /* a converted type */

/* pq_chunk - one column of one group of rows, as the footer has it. */
struct pq_chunk {
	int type;          /* PQ_INT32 ... */
	int codec;
	bool optional;
	uint64_t values;   /* rows, with nulls */
	const uint8_t *p;  /* its pages */
	size_t len;
};

/* pq_chunk_read - append its rows, of which there are c->values, from row `first` of the column on;
 * the column's arrays have room. budget: bytes of memory that may still be taken, lowered.
 * (pages.c) */
int pq_chunk_read(const struct pq_chunk *c, struct pq_column *col, uint64_t first,
		  uint64_t *budget, struct err *e) NZ_MUST_USE;

#endif
