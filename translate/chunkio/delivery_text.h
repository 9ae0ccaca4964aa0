/* delivery_text.h - the words for what is done with arrays and with single chunks: of `nczarrfs
 * info`, of extended attributes and of counters. */
#ifndef TRANSLATE_CHUNKIO_DELIVERY_TEXT_H
#define TRANSLATE_CHUNKIO_DELIVERY_TEXT_H

#include "base/observe/metrics.h"
#include "translate/plan/plan.h"
#include "translate/chunkio/delivery.h"

/* chunk_treatment - what a chunk file is made of. */
enum chunk_treatment {
	TREATMENT_PASS,   /* stored bytes; maybe less a checksum, maybe zeros after them */
	TREATMENT_HEAD,   /* a head, then stored bytes */
	TREATMENT_FRAME,  /* a chunk that is not like its array: decoded and framed */
	TREATMENT_FILL,   /* never written, shown as fill values */
	TREATMENT_DECODE, /* elements */
	TREATMENT_ENCODE, /* elements, encoded as asked for */
	TREATMENT_VLEN,   /* elements without a fixed size */
	TREATMENT_FIXED,  /* texts, padded */
};

/* plan_kind_name - "pass", "decode", ...: what is done with an array. */
const char *plan_kind_name(enum plan_kind kind);

/* chunk_treatment_of - of a chunk that was located. */
enum chunk_treatment chunk_treatment_of(const struct plan *p, const struct delivery *w);
const char *chunk_treatment_name(enum chunk_treatment how);
/* chunk_treatment_metric - the counter of chunks of that kind. */
enum metric chunk_treatment_metric(enum chunk_treatment how);

#endif
