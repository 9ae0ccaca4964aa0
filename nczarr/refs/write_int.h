/* SPDX-License-Identifier: BSD-3-Clause */
/* write_int.h - the parts of references to chunks: private to nczarr.
 *
 *   write.c          walks a view: documents, then each array's chunks, in the view's order
 *   write_json.c     writes what it finds as kerchunk's JSON
 *   write_parquet.c  writes it as kerchunk's directory of Parquet files */
#ifndef NCZARR_REFS_WRITE_INT_H
#define NCZARR_REFS_WRITE_INT_H

#include "nczarr/view/view.h"

/* refs_chunk - one reference. */
struct refs_chunk {
	const uint8_t *data;  /* the chunk itself, len bytes; NULL: it is at url */
	const char *url;      /* NUL-terminated */
	bool whole;           /* all that is there */
	uint64_t off, len;
};

/* refs_out - where references are written to. The functions return 0 or a negative errno. Borrowed
 * texts are for the time of a call. */
struct refs_out {
	void *arg;
	/* doc - a document: its key and its bytes, JSON. all: it repeats all the others. */
	int (*doc)(void *arg, const char *key, const struct buf *text, bool all, struct err *e);
	/* begin - an array with the key of its directory ("" the root's) and n chunks is next. */
	int (*begin)(void *arg, const char *key, uint64_t n, struct err *e);
	/* chunk - name: of it in the array's directory; linear: ascending. */
	int (*chunk)(void *arg, const char *name, uint64_t linear, const struct refs_chunk *c,
		     struct err *e);
	int (*end)(void *arg, struct err *e);
};

/* refs_walk - give everything of a view to `out`. What cannot be referred to and may not be put
 * into the document is found before anything is given, as far as the first chunk of an array says
 * it. */
int refs_walk(struct source *s, struct view *v, const struct refs_options *opts,
	      const struct refs_out *out, struct err *e) NZ_MUST_USE;

#endif
