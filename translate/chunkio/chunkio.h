/* SPDX-License-Identifier: BSD-3-Clause */
/* chunkio.h - executes plans: size and bytes of one presented chunk.
 *
 * PASS chunks are answered with a range of the source's descriptor: no copy, no lock, no
 * allocation. Other chunks are decoded into a cache with a byte budget, with one decode for any
 * number of waiting readers, and worker threads decode the chunks that a sequential reader requests
 * next. Chunks of a remote source are also prefetched (source_want), whatever their plan. */
#ifndef TRANSLATE_CHUNKIO_CHUNKIO_H
#define TRANSLATE_CHUNKIO_CHUNKIO_H

#include "translate/chunkio/delivery.h"
#include "translate/plan/plan.h"
#include "translate/contract/source.h"
#include "translate/contract/span.h"

struct chunkio;
struct chunkio_shared;

struct chunkio_options {
	uint64_t cache_bytes;  /* budget for decoded chunks; a chunk in use may exceed it */
	struct chunkio_shared *shared; /* what several views share, borrowed; NULL: its own */
	uint32_t threads;      /* threads that prefetch; 0: none, readers decode */
	uint32_t ahead;        /* chunks to prefetch for a sequential reader */
	bool verify;           /* if a checksum is cut off a chunk, verify it when the first bytes
			        * are read: for copies, which do not have it any more */
	bool uncounted;        /* its reads are not those of a mount's readers: the metrics do not
				* count them by plan */
};

/* chunkio_shared_new - memory that all views of a mount share: cache_bytes for decoded chunks, and
 * buffers for decoding, which the next chunk reuses. NULL if memory is short. */
struct chunkio_shared *chunkio_shared_new(uint64_t cache_bytes);
/* chunkio_shared_free - free it after everything that was made with it. Takes NULL. */
void chunkio_shared_free(struct chunkio_shared *s);

/* chunkio_new - plans: one for each array of the source. Source and plans are borrowed. The first
 * decode starts the threads. */
int chunkio_new(struct source *s, const struct plan *plans, const struct chunkio_options *opts,
		struct chunkio **ret, struct err *e) NZ_MUST_USE;
/* chunkio_free - joins the threads; no other call may be running. Takes NULL. */
void chunkio_free(struct chunkio *c);

/* chunkio_stat - exact size in bytes of chunk `linear` of an array as presented. Also starts a
 * prefetch where that helps. Returns 0; -ENOENT proven absence (never written, and the view
 * declares the fill value); else the error of source_locate or of the decoder. */
int chunkio_stat(struct chunkio *c, uint32_t array, uint64_t linear, uint64_t *ret_size,
		 struct err *e) NZ_MUST_USE;

/* chunkio_measure - find the sizes of the existing chunks in [from, from + n) with all threads, so
 * that chunkio_stat is fast for them. Does nothing where sizes cost little. Errors are ignored:
 * chunkio_stat reports them. */
void chunkio_measure(struct chunkio *c, uint32_t array, uint64_t from, uint64_t n);

/* chunkio_stat_cheap - whether chunkio_stat decodes and encodes nothing, and at most reads an
 * index. */
bool chunkio_stat_cheap(struct chunkio *c, uint32_t array, uint64_t linear);

/* chunkio_read - bytes [off, off+len) of the chunk, cut at its end. Finish ret with span_done.
 * room: len bytes of the caller, which receive stored bytes of a source without descriptors, so
 * that they are not copied. */
int chunkio_read(struct chunkio *c, uint32_t array, uint64_t linear, uint64_t off, size_t len,
		 uint8_t *room, struct span *ret, struct err *e) NZ_MUST_USE;

/* chunkio_read_whole - all elements of a chunk whose plan is PLAN_DECODE, chunk_bytes. */
int chunkio_read_whole(struct chunkio *c, uint32_t array, uint64_t linear, uint8_t *out,
		       struct err *e) NZ_MUST_USE;

/* chunkio_read_vlen - the body of a chunk of n elements (frame_count) without a fixed size, which
 * is checked. body: cleared; its ceiling is FRAME_BYTES_MAX. ret_longest: bytes; may be NULL. */
int chunkio_read_vlen(struct source *s, uint32_t array, uint64_t linear, uint64_t n,
		      struct buf *body, uint32_t *ret_longest, struct err *e) NZ_MUST_USE;

/* chunk_about - information about a chunk file that is known without making it. */
struct chunk_about {
	enum chunk_treatment how;
	struct chunk_ref ref;  /* as source_locate gave it; of a FILL, ABSENT */
	uint64_t cut, zeros;   /* PASS, HEAD: number of stored bytes that are not shown; of zeros
			        * after them */
};

/* chunkio_about - information about the chunk whose size chunkio_stat returns. Reads nothing but an
 * index. Errors as chunkio_stat. */
int chunkio_about(struct chunkio *c, uint32_t array, uint64_t linear, struct chunk_about *ret,
		  struct err *e) NZ_MUST_USE;

/* chunkio_next - the first chunk at or after `from` that exists as a file; -ENOENT: none. */
int chunkio_next(struct chunkio *c, uint32_t array, uint64_t from, uint64_t *ret,
		 struct err *e) NZ_MUST_USE;

/* chunkio_want_run - prefetch chunks [from, from + n) of an array of a remote source. */
void chunkio_want_run(struct source *s, uint32_t array, uint64_t from, uint64_t n);

/* chunkio_max_text - longest text in bytes of a DT_VSTRING array, found by reading all of it. */
int chunkio_max_text(struct source *s, uint32_t array, uint32_t *ret, struct err *e) NZ_MUST_USE;

#endif
