/* SPDX-License-Identifier: BSD-3-Clause */
/* write_int.h - writers of reference files: private to nczarr.
 *
 *   write.c          walks a view: documents, then each array's chunks, in the view's order
 *   write_prefetch.c opens files before the walk needs them
 *   write_set.c      the document of all datasets, to which they are added in order
 *   write_json.c     writes kerchunk's JSON
 *   write_parquet.c  writes kerchunk's directory of Parquet files
 *   write_table.c    writes a table of chunks, one Parquet file */
#ifndef NCZARR_REFS_WRITE_INT_H
#define NCZARR_REFS_WRITE_INT_H

#include <pthread.h>

#include "nczarr/nczarr.h"
#include "nczarr/parquet/parquet.h"
#include "nczarr/view/view.h"

/* ---- write.c ---- */

/* refs_chunk - one reference. */
struct refs_chunk {
	const uint8_t *data;  /* inline chunk, len bytes; NULL: it is at url */
	const char *url;      /* NUL-terminated */
	bool whole;           /* the whole target */
	uint64_t off, len;
};

/* refs_out - a writer. The functions return 0 or a negative errno. Strings are borrowed for the
 * call. */
struct refs_out {
	void *arg;
	bool all; /* consolidated metadata are wanted */
	bool templates; /* readers may take "{{" in an address for a template */
	/* doc - add a document: its key and its JSON. */
	int (*doc)(void *arg, const char *key, const struct buf *text, struct err *e);
	/* begin - start an array with n chunks. key: of its directory ("": the root). */
	int (*begin)(void *arg, const char *key, uint64_t n, struct err *e);
	/* chunk - add a reference. name: in the array's directory; linear: ascending. */
	int (*chunk)(void *arg, const char *name, uint64_t linear, const struct refs_chunk *c,
		     struct err *e);
	int (*end)(void *arg, struct err *e); /* NULL: not needed */
};

/* refs_walk - pass all documents and chunks of a view to `out`, with keys below the group. Arrays
 * that need inline chunks which are not allowed fail before any output, as far as their first chunk
 * shows it. *ret_out: the error is one of `out`. */
int refs_walk(struct source *s, struct view *v, const char *group,
	      const struct refs_options *opts, const struct refs_out *out, bool *ret_out,
	      struct err *e) NZ_MUST_USE;

/* ---- write_prefetch.c ---- */

/* refs_prefetch - threads that open files before the walk needs them. */
struct refs_prefetch;
/* refs_prefetch_new - NULL if opts has no threads for it, or memory is short; the others take
 * NULL. */
struct refs_prefetch *refs_prefetch_new(struct view *v, const struct refs_options *opts);
/* refs_prefetch_array - the walk begins with an array whose n chunks follow the order of the files;
 * 0: with another array. refs_prefetch_at - it is at a chunk. */
void refs_prefetch_array(struct refs_prefetch *a, uint32_t array, uint64_t n);
void refs_prefetch_at(struct refs_prefetch *a, uint64_t chunk);
void refs_prefetch_free(struct refs_prefetch *a);

/* ---- write_set.c ---- */

#define REFS_IDLE_MAX 16

/* refs_set - write_set.c has the document, write_parquet.c the files next to it, write_table.c the
 * rows. */
struct refs_set {
	enum refs_kind {
		REFS_SET_JSON,
		REFS_SET_PARQUET, /* the document is .zmetadata */
		REFS_SET_TABLE,   /* the document is the table */
	} kind;
	int fd;              /* of the document; owned if REFS_SET_PARQUET */
	bool truncates;      /* fd is a regular file: what a failed dataset wrote is removed */
	pthread_mutex_t lock;
	pthread_cond_t turn_passed;
	uint64_t turn;       /* lock: number of the dataset that may write to fd */
	uint64_t bytes;      /* lock: written */
	struct err broken;   /* lock: code 0: none */
	/* of the thread with the turn */
	bool has_entries;
	struct buf last;     /* group of the last dataset that was added, NUL-terminated */
	/* Parquet */
	int dir_fd;
	uint64_t records;
	struct pq_writer *idle[REFS_IDLE_MAX]; /* lock: n_idle that no thread uses */
	size_t n_idle;          /* lock */
	/* a table, of the thread with the turn */
	struct pq_writer *rows;
	uint64_t pending;    /* rows that are not written */
	struct refs_columns {
		struct buf variable, zarray, zattrs; /* of the rows that follow */
		bool has_zattrs;
	} columns;
};

/* refs_part - a dataset that is added. */
struct refs_part {
	struct refs_set *set;
	uint64_t number;
	const char *group;
	struct buf text; /* entries that are not written yet: each begins with ",\n", or is a record
			  * of write_table.c */
	bool has_turn;
	bool had_entries;    /* at the start of the turn: set->has_entries, position of fd */
	off_t from;
	struct pq_mark mark; /* of a table */
};

/* refs_part_key - append ",\n" and a key to the part's text. */
void refs_part_key(struct refs_part *p, const char *key);
/* refs_part_flush - when it is the part's turn, write its text if it has more than `above`
 * bytes. */
int refs_part_flush(struct refs_part *p, size_t above, struct err *e) NZ_MUST_USE;

/* refs_set_json_add, refs_set_parquet_add, refs_set_table_add - write a dataset (write_json.c,
 * write_parquet.c, write_table.c). *ret_out: as refs_walk. */
int refs_set_json_add(struct refs_part *p, struct source *s, struct view *v,
		      const struct refs_options *opts, bool *ret_out,
		      struct err *e) NZ_MUST_USE;
int refs_set_parquet_add(struct refs_part *p, struct source *s, struct view *v,
			 const struct refs_options *opts, bool *ret_out,
			 struct err *e) NZ_MUST_USE;
int refs_set_table_add(struct refs_part *p, struct source *s, struct view *v,
		       const struct refs_options *opts, bool *ret_out,
		       struct err *e) NZ_MUST_USE;

/* refs_set_new - the part that all kinds share. fd: as above. head: the document up to its first
 * entry. */
int refs_set_new(int fd, enum refs_kind kind, const char *head, struct refs_set **ret,
		 struct err *e) NZ_MUST_USE;
/* refs_table_add - add the records of a part's text to the table, with the turn.
 * refs_table_flush - write pending rows. refs_table_release - free what only a table has. */
int refs_table_add(struct refs_set *set, const char *group, const struct buf *text,
		    struct err *e) NZ_MUST_USE;
int refs_table_flush(struct refs_set *set, struct err *e) NZ_MUST_USE;
void refs_table_release(struct refs_set *set);
/* refs_set_parquet_sync - write everything to stable storage. */
int refs_set_parquet_sync(struct refs_set *set, struct err *e) NZ_MUST_USE;
/* refs_set_parquet_release - close and free what only Parquet has. */
void refs_set_parquet_release(struct refs_set *set);

#endif
