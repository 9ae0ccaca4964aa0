/* delivery_text.h - the words for what is done with arrays and with single chunks: of `nczarrfs
 * info`, of extended attributes and of counters. */
#ifndef TRANSLATE_CHUNKIO_DELIVERY_TEXT_H
#define TRANSLATE_CHUNKIO_DELIVERY_TEXT_H

#include "base/observe/metrics.h"
#include "translate/plan/plan.h"
#include "translate/chunkio/delivery.h"

/* chunk_how - what a chunk file is made of. */
enum chunk_how {
	HOW_PASS,    /* stored bytes; maybe less a checksum, maybe zeros behind them */
	HOW_HEAD,    /* a head, then stored bytes */
	HOW_FRAME,   /* a chunk that is not like its array: decoded, put into its array's form */
	HOW_FILL,    /* never written, shown as fill values */
	HOW_DECODE,  /* elements */
	HOW_ENCODE,  /* elements, encoded as asked for */
	HOW_VLEN,    /* elements without a fixed size */
	HOW_FIXED,   /* texts, padded */
};

/* plan_kind_name - "pass", "decode", ...: what is done with an array. */
const char *plan_kind_name(enum plan_kind kind);

/* chunk_how_of - of a chunk that was located. */
enum chunk_how chunk_how_of(const struct plan *p, const struct way *w);
const char *chunk_how_name(enum chunk_how how);
/* chunk_how_metric - the counter of chunks of that kind. */
enum metric chunk_how_metric(enum chunk_how how);

#endif
