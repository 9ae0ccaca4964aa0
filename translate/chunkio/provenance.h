/* provenance.h - extended attributes that say where a file's bytes come from, of all views.
 *
 * user.nczarrfs.source, .offset, .length, .chain, .plan and, of shards, .pieces: they answer when
 * they are asked for by name, and are in no list: `cp -a` must not copy a statement about this
 * file's bytes to another's. docs/observability.md has them, which a test compares. */
#ifndef TRANSLATE_CHUNKIO_PROVENANCE_H
#define TRANSLATE_CHUNKIO_PROVENANCE_H

#include "translate/chunkio/chunkio.h"

#define TOLD_PREFIX "user.nczarrfs."

enum told { TOLD_NONE, TOLD_SOURCE, TOLD_OFFSET, TOLD_LENGTH, TOLD_CHAIN, TOLD_PLAN, TOLD_PIECES };

/* told_of - which of them a name is; NULL and all others: NONE. */
enum told told_of(const char *name);

/* told_array - of an array's directory: source, chain, plan. -ENODATA: none of the others. */
int told_array(const struct source *s, const struct ds_array *a, const struct plan *p,
	       enum told what, struct buf *out, struct err *e) NZ_MUST_USE;

/* told_chunk - of the file of one chunk: all but pieces. -ENODATA: there is nothing to be said:
 * offset and length of bytes that are stored nowhere as such. Errors as chunkio_about. */
int told_chunk(struct chunkio *c, struct source *s, const struct plan *p, uint32_t array,
	       uint64_t linear, enum told what, struct buf *out, struct err *e) NZ_MUST_USE;

/* told_view - of a file that shows all of a source: source and plan, how many arrays have which
 * plan: "pass 3, decode 1". plans: of its arrays. */
int told_view(const struct source *s, const struct plan *plans, enum told what, struct buf *out,
	      struct err *e) NZ_MUST_USE;

/* told_piece - a line of a shard's pieces: "0.3 1024 512 pass 8192 512\n", the chunk's coordinates,
 * where it is in the shard and how long, its plan, and where its stored bytes are ("- -": nowhere).
 * Returns as told_chunk. */
int told_piece(struct chunkio *c, struct source *s, uint32_t array, uint64_t linear, uint64_t at,
	       uint64_t len, struct buf *out, struct err *e) NZ_MUST_USE;

#endif
