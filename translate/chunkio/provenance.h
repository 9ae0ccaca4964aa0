/* SPDX-License-Identifier: BSD-3-Clause */
/* provenance.h - extended attributes that say where a file's bytes come from, of all views.
 *
 * user.nczarrfs.source, .offset, .length, .chain, .plan and, of shards, .pieces: they answer when
 * they are asked for by name, and are in no list: `cp -a` must not copy a statement about this
 * file's bytes to another's. docs/reference/metrics-and-attributes.md has them,
 * which a test compares. */
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

/* provenance_of - which of them a name is; NULL and all others: NONE. */
enum provenance provenance_of(const char *name);

/* provenance_array - of an array's directory: source, chain, plan. -ENODATA: none of the others. */
int provenance_array(const struct source *s, const struct ds_array *a, const struct plan *p,
		     enum provenance what, struct buf *out, struct err *e) NZ_MUST_USE;

/* provenance_chunk - of the file of one chunk: all but pieces. -ENODATA: there is nothing to be
 * said: offset and length of bytes that are stored nowhere as such. Errors as chunkio_about. */
int provenance_chunk(struct chunkio *c, struct source *s, const struct plan *p, uint32_t array,
		     uint64_t linear, enum provenance what, struct buf *out,
		     struct err *e) NZ_MUST_USE;

/* provenance_view - of a file that shows all of a source: source and plan, how many arrays have
 * which plan: "pass 3, decode 1". plans: of its arrays. */
int provenance_view(const struct source *s, const struct plan *plans, enum provenance what,
		    struct buf *out, struct err *e) NZ_MUST_USE;

/* provenance_piece - a line of a shard's pieces: "0.3 1024 512 pass 8192 512\n", the chunk's
 * coordinates, where it is in the shard and how long, its plan, and where its stored bytes are ("-
 * -": nowhere). Returns as provenance_chunk. */
int provenance_piece(struct chunkio *c, struct source *s, uint32_t array, uint64_t linear,
		     uint64_t at, uint64_t len, struct buf *out, struct err *e) NZ_MUST_USE;

#endif
