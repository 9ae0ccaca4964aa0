/* SPDX-License-Identifier: BSD-3-Clause */
/* delivery.h - how the presented bytes of one located chunk are made; a pure decision. */
#ifndef TRANSLATE_CHUNKIO_DELIVERY_H
#define TRANSLATE_CHUNKIO_DELIVERY_H

#include "base/observe/metrics.h"
#include "codecs/compress/blosc_wrap.h"
#include "translate/chunkio/fill_chunk.h"
#include "translate/contract/source.h"

enum delivery_kind {
	DELIVER_RANGE, /* a head, bytes of the source's descriptor, then zeros */
	DELIVER_FILL,  /* a never-written chunk that is presented */
	DELIVER_MAKE,  /* bytes that have to be decoded, re-framed or collected */
};

struct delivery {
	enum delivery_kind kind;
	bool sized;                /* false: the size is known after loading only */
	uint64_t size;             /* bytes as presented */
	uint32_t head_len;         /* RANGE: bytes of head that come first; 0 unless plan.wrap */
	uint64_t file_len;         /* RANGE: bytes at ref.off; the rest of size is zeros */
	uint8_t head[CODEC_WRAP_MAX];
	const struct fill *fill;   /* FILL, and LOAD of a never-written chunk; else NULL */
	struct chunk_ref ref;
};

/* delivery_of_stored - the delivery of a chunk that exists, under any plan but HIDE and ERROR. The
 * caller has set w->ref. Returns 0; -EBADMSG its stored length is impossible; -ERANGE it would be
 * too large as presented. */
int delivery_of_stored(const struct ds_array *a, const struct plan *p, struct delivery *w,
		       struct err *e) NZ_MUST_USE;

/* delivery_of_absent - the delivery of a never-written chunk that is presented as f. */
void delivery_of_absent(const struct fill *f, struct delivery *w);

/* delivery_skipped - which filters of the array's own chain were skipped for a chunk. */
uint32_t delivery_skipped(const struct ds_array *a, const struct chunk_ref *ref);

/* delivery_plain - whether a chunk's stored bytes are its elements: every filter was skipped. */
bool delivery_plain(const struct ds_array *a, const struct chunk_ref *ref);

/* delivery_bad_length - the error of a stored length that should have been another. */
int delivery_bad_length(uint64_t got, uint64_t want, struct err *e);

/* ---- names for `nczarrfs info`, extended attributes and counters ---- */

/* chunk_treatment - what a chunk file is made of. */
enum chunk_treatment {
	TREATMENT_PASS,   /* stored bytes; maybe less a checksum, maybe zeros after them */
	TREATMENT_HEAD,   /* a head, then stored bytes */
	TREATMENT_FRAME,  /* a chunk with other filters than its array: decoded and framed */
	TREATMENT_FILL,   /* never written, shown as fill values */
	TREATMENT_DECODE, /* elements */
	TREATMENT_ENCODE, /* elements, encoded as a rule requests */
	TREATMENT_VLEN,   /* elements without a fixed size */
	TREATMENT_FIXED,  /* strings, padded */
};

/* plan_kind_name - the name of a kind of plan: "pass", "decode", ... */
const char *plan_kind_name(enum plan_kind kind);

/* chunk_treatment_of - of a chunk that was located. */
enum chunk_treatment chunk_treatment_of(const struct plan *p, const struct delivery *w);
const char *chunk_treatment_name(enum chunk_treatment how);
/* chunk_treatment_metric - the counter of chunks of that kind. */
enum metric chunk_treatment_metric(enum chunk_treatment how);

#endif
