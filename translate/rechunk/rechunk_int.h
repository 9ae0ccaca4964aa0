/* SPDX-License-Identifier: BSD-3-Clause */
/* rechunk_int.h - shared by the files of this room.
 *
 * Words: a chunk of the *inner* source is decoded; a *new* chunk is assembled. A *band* is the set
 * of new chunks that begin in the same inner chunk along each dimension where new chunks are
 * shorter, and one new chunk along the others: its members need the same inner chunks, but for
 * those at its ends. A *run* is the part of a band that is assembled in one pass, because memory is
 * bounded. */
#ifndef TRANSLATE_RECHUNK_RECHUNK_INT_H
#define TRANSLATE_RECHUNK_RECHUNK_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "translate/cache/cache.h"
#include "translate/chunkio/chunkio.h"
#include "translate/model/grid.h"
#include "translate/rechunk/rechunk.h"

#define RECHUNK_RUN_PART 8     /* a run takes this part of memory */
#define RECHUNK_RUN_MAX 65536u /* new chunks in a run */
#define RECHUNK_ENTRY 256u /* bytes of a cached chunk in addition to its elements, at most */

struct rechunk_shared {
	uint64_t run_bytes; /* most bytes of a run, unless it is one chunk */
	uint64_t made_bytes, inner_bytes;
	struct cache_pool *made;      /* of assembled chunks */
	struct chunkio_shared *inner; /* of decoded chunks of inner sources */
	pthread_mutex_t lock;
	pthread_cond_t freed; /* assembling became less, or a run has no leader any more */
	uint64_t assembling;  /* lock: bytes of runs */
};

/* rechunk_present - the new chunks of an array that have an existing inner chunk below them, a bit
 * each. */
struct rechunk_present {
	uint64_t n_words;
	uint64_t words[];
};

struct rechunk_array {
	bool changed;                              /* else the array is the inner source's */
	_Atomic(struct rechunk_present *) present; /* owned; NULL: not needed until now */
};

struct rechunk {
	struct source base;
	struct source *inner;
	struct rechunk_array *arrays; /* as ds.arrays */
	struct plan *plans;           /* all arrays of inner, as elements */
	struct chunkio *io;           /* of inner, with these plans */
	struct cache *made;           /* assembled chunks */
	struct rechunk_shared *shared;
	struct rechunk_leader *leaders; /* shared->lock: runs that are being assembled */
};

/* rechunk_leader - a thread that assembles a run; in its own memory. */
struct rechunk_leader {
	struct rechunk_leader *next;
	uint32_t array;
	uint64_t linear; /* of the run's first chunk */
};

static inline struct rechunk *rechunk_of(struct source *s)
{
	return CONTAINER_OF(s, struct rechunk, base);
}

/* ---- model.c ---- */

/* rechunk_model - make the dataset from the inner one, and mark the arrays that change. Returns 1;
 * 0 if it is the inner one: no array changes, and there is no note that says why; -ERANGE,
 * -ENOMEM. */
int rechunk_model(struct rechunk *r, const struct rechunk_options *opts,
		  struct err *e) NZ_MUST_USE;

/* ---- band.c: arithmetic. in: the inner array; a: the same with the new chunk lengths. ---- */

/* rechunk_run - new chunks [first, first + n) of a band, in C order within it. */
struct rechunk_run {
	struct grid_box band;       /* of new chunks */
	uint64_t dims[DS_RANK_MAX]; /* its lengths */
	uint64_t n_band;            /* their product */
	uint64_t first;
	uint32_t n;
	struct grid_box box;   /* the smallest box of new chunks around the run */
	struct grid_box inner; /* inner chunks that overlap it */
};

/* rechunk_run_of - the run of a new chunk, with at most `bytes` bytes of chunks, or one chunk. */
void rechunk_run_of(const struct ds_array *in, const struct ds_array *a, uint64_t linear,
		    uint64_t bytes, struct rechunk_run *ret);
/* rechunk_run_at - the place of a new chunk of the band in the run; UINT32_MAX: it is not in
 * it. */
uint32_t rechunk_run_at(const struct rechunk_run *run, uint32_t rank, const uint64_t *coords);
/* rechunk_run_linear - the reverse: the linear index of new chunk i of the run. */
uint64_t rechunk_run_linear(const struct rechunk_run *run, const struct ds_array *a, uint32_t i,
			    uint64_t *ret_coords);
/* rechunk_over - the chunks of `of` that overlap one chunk of `by`, as a box. */
void rechunk_over(const struct ds_array *of, const struct ds_array *by, const uint64_t *coords,
		  struct grid_box *ret);
/* rechunk_passes - how often each inner chunk is decoded when all new chunks are read in order,
 * with runs of `bytes`, apart from those at the ends of bands. *ret_band: bytes of a band. */
uint64_t rechunk_passes(const struct ds_array *in, const struct ds_array *a, uint64_t bytes,
			uint64_t *ret_band);

/* ---- assemble.c, strings.c ---- */

int rechunk_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		       size_t len, struct err *e);
int rechunk_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		      struct err *e);
/* rechunk_where - prefix the error of an inner chunk, which names that chunk. Returns its code. */
int rechunk_where(int rc, struct err *e);

/* ---- present.c ---- */

int rechunk_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		   struct err *e);
int rechunk_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e);
/* rechunk_missing - whether an inner chunk is known not to exist without locating it, so that
 * sparse arrays cost their existing chunks. Call it with ascending indices; *there begins at 0.
 * Always false where listing chunks would cost requests. */
bool rechunk_missing(struct rechunk *r, uint32_t array, uint64_t linear, uint64_t *there);
void rechunk_present_free(struct rechunk_present *p); /* takes NULL */

#endif
