/* delivery.h - how the presented bytes of one located chunk come about; a pure decision. */
#ifndef TRANSLATE_CHUNKIO_DELIVERY_H
#define TRANSLATE_CHUNKIO_DELIVERY_H

#include "codecs/compress/blosc_wrap.h"
#include "translate/chunkio/fill_chunk.h"
#include "translate/contract/source.h"

enum delivery_kind {
	DELIVER_RANGE, /* a head, bytes of the source's descriptor, then zeros */
	DELIVER_FILL,  /* a never-written chunk that is presented */
	DELIVER_MAKE,  /* bytes that have to be made: decoded, re-framed, collected */
};

struct delivery {
	enum delivery_kind kind;
	bool sized;                /* false: only loading tells the size */
	uint64_t size;             /* bytes as presented */
	uint32_t head_len;         /* RANGE: bytes of head that come first; 0 unless plan.wrap */
	uint64_t file_len;         /* RANGE: bytes at ref.off; the rest of size is zeros */
	uint8_t head[CODEC_WRAP_MAX];
	const struct fill *fill;   /* FILL, and LOAD of a never-written chunk; else NULL */
	struct chunk_ref ref;
};

/* delivery_of_stored - the way of a chunk that exists, under any plan but HIDE and ERROR.
 * w->ref is set. Returns 0; -EBADMSG its stored length is impossible; -ERANGE it would be too
 * large as presented. */
int delivery_of_stored(const struct ds_array *a, const struct plan *p, struct delivery *w,
		       struct err *e) NZ_MUST_USE;

/* delivery_of_absent - the way of a never-written chunk that is presented as f. */
void delivery_of_absent(const struct fill *f, struct delivery *w);

/* delivery_skipped - which filters of the array's own chain were skipped for a chunk. */
uint32_t delivery_skipped(const struct ds_array *a, const struct chunk_ref *ref);

/* delivery_plain - whether a chunk's stored bytes are its elements: every filter was skipped. */
bool delivery_plain(const struct ds_array *a, const struct chunk_ref *ref);

/* delivery_bad_length - the error of a stored length that should have been another. */
int delivery_bad_length(uint64_t got, uint64_t want, struct err *e);

#endif
