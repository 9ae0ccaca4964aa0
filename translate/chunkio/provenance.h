/* SPDX-License-Identifier: BSD-3-Clause */
/* provenance.h - extended attributes that tell where a file's bytes come from, for all views.
 *
 * user.nczarrfs.source, .offset, .length, .chain, .plan and, for shards, .pieces. They can be read
 * by name and are not listed, because `cp -a` must not copy a statement about one file's bytes to
 * another file. docs/reference/metrics-and-attributes.md documents them; a test compares it. */
#ifndef TRANSLATE_CHUNKIO_PROVENANCE_H
#define TRANSLATE_CHUNKIO_PROVENANCE_H

#include "translate/chunkio/chunkio.h"

#define PROVENANCE_PREFIX "user.nczarrfs."

enum provenance {
	PROVENANCE_NONE,
	PROVENANCE_SOURCE,
	PROVENANCE_OFFSET,
	PROVENANCE_LENGTH,
	PROVENANCE_CHAIN,
	PROVENANCE_PLAN,
	PROVENANCE_PIECES
};

/* provenance_of - the attribute of a name; NONE for NULL and for other names. */
enum provenance provenance_of(const char *name);

/* provenance_array - append source, chain or plan of an array's directory. -ENODATA for the
 * others. */
int provenance_array(const struct source *s, const struct ds_array *a, const struct plan *p,
		     enum provenance what, struct buf *out, struct err *e) NZ_MUST_USE;

/* provenance_chunk - append an attribute of the file of one chunk: all but pieces. -ENODATA: it
 * does not apply, as for offset and length of bytes that are not stored. Errors as
 * chunkio_about. */
int provenance_chunk(struct chunkio *c, struct source *s, const struct plan *p, uint32_t array,
		     uint64_t linear, enum provenance what, struct buf *out,
		     struct err *e) NZ_MUST_USE;

/* provenance_view - append source or plan of a file that shows all of a source. The plan counts
 * arrays: "pass 3, decode 1". plans: of its arrays. */
int provenance_view(const struct source *s, const struct plan *plans, enum provenance what,
		    struct buf *out, struct err *e) NZ_MUST_USE;

/* provenance_piece - append a line of a shard's pieces: "0.3 1024 512 pass 8192 512\n": the chunk's
 * coordinates, its offset and length in the shard, its plan, and offset and length of its stored
 * bytes ("- -": not stored). Returns as provenance_chunk. */
int provenance_piece(struct chunkio *c, struct source *s, uint32_t array, uint64_t linear,
		     uint64_t at, uint64_t len, struct buf *out, struct err *e) NZ_MUST_USE;

#endif
