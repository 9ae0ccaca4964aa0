/* SPDX-License-Identifier: BSD-3-Clause */
/* rechunk.h - a dataset in chunks of other shapes: a source over another source, whose model has
 * other chunk lengths, and whose chunks are assembled from the decoded chunks of the other one.
 * docs/how-to/other-chunk-shapes.md has the rules, docs/dev/rechunk.md the design.
 *
 * Arrays whose chunk lengths stay are those of the inner source: their chunks pass. */
#ifndef TRANSLATE_RECHUNK_RECHUNK_H
#define TRANSLATE_RECHUNK_RECHUNK_H

#include "translate/contract/source.h"

/* rechunk_shared - memory of all rechunked sources of a process. A quarter of `memory` holds
 * assembled chunks, half of it those that are being assembled; a sixteenth holds decoded chunks of
 * the inner sources. One chunk, of either kind, may exceed its part. */
struct rechunk_shared;

/* rechunk_shared_new - NULL if memory is short. memory: bytes, as of -o memory=. */
struct rechunk_shared *rechunk_shared_new(uint64_t memory);
/* rechunk_shared_free - after the sources that use it. Takes NULL. */
void rechunk_shared_free(struct rechunk_shared *s);

struct rechunk_options {
	const char *const
		*rules; /* n_rules strings, which chunk_rules_check accepts; borrowed for
				   * the call */
	size_t n_rules;
	struct rechunk_shared *shared; /* borrowed for the source's life */
	uint32_t threads; /* threads that decode chunks of the inner source ahead */
	const struct source_options *source; /* limits, keep_going; borrowed for the call */
};

extern const struct source_ops
	rechunk_source_ops; /* of the result of rechunk_open; never bids */

/* rechunk_open - present a source in the chunk lengths that rules set. Lengths beyond a dimension
 * that is not unlimited are cut to it. Variables whose chunks do not change, scalars, and those
 * that cannot be read stay as they are.
 * inner  taken on success only; *ret closes it
 * Returns 0 with *ret new, or inner itself if the dataset stays as it is; -ERANGE a chunk is larger
 * than max_chunk_bytes, or an array has more chunks than max_index_bytes allows (with keep_going it
 * keeps its chunks, with a note); -ENOMEM. */
int rechunk_open(struct source *inner, const struct rechunk_options *opts, struct source **ret,
		 struct err *e) NZ_MUST_USE;

/* rechunk_inner - the source below a rechunked one; any other source itself. Borrowed. */
const struct source *rechunk_inner(const struct source *s);

#endif
