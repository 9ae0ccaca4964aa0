/* SPDX-License-Identifier: BSD-3-Clause */
/* write_int.h - writers of reference files: private to nczarr.
 *
 *   write.c          walks a view: documents, then each array's chunks, in the view's order
 *   write_json.c     writes kerchunk's JSON
 *   write_parquet.c  writes kerchunk's directory of Parquet files */
#ifndef NCZARR_REFS_WRITE_INT_H
#define NCZARR_REFS_WRITE_INT_H

#include "nczarr/view/view.h"

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
	/* doc - add a document: its key and its JSON. all: it is consolidated metadata. */
	int (*doc)(void *arg, const char *key, const struct buf *text, bool all, struct err *e);
	/* begin - start an array with n chunks. key: of its directory ("": the root). */
	int (*begin)(void *arg, const char *key, uint64_t n, struct err *e);
	/* chunk - add a reference. name: in the array's directory; linear: ascending. */
	int (*chunk)(void *arg, const char *name, uint64_t linear, const struct refs_chunk *c,
		     struct err *e);
	int (*end)(void *arg, struct err *e);
};

/* refs_walk - pass all documents and chunks of a view to `out`. Arrays that need inline chunks
 * which are not allowed fail before any output, as far as their first chunk shows it. */
int refs_walk(struct source *s, struct view *v, const struct refs_options *opts,
	      const struct refs_out *out, struct err *e) NZ_MUST_USE;

#endif
