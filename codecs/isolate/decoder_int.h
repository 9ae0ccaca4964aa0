/* SPDX-License-Identifier: BSD-3-Clause */
/* decoder_int.h - for decoder.c and its tests. */
#ifndef CODECS_ISOLATE_DECODER_INT_H
#define CODECS_ISOLATE_DECODER_INT_H

#include "codecs/core/codec_impl.h"
#include "codecs/isolate/decoder.h"

#define DECODER_MS 60000 /* limit of one chunk */

/* decoder_request - a request. The shared memory begins with n_specs decoder_specs, each followed
 * by its parameters; then come the stored bytes and the room for the result, at these offsets. The
 * answer is a child_answer: the length of the result, or an error and the length of its message,
 * which follows. */
struct decoder_request {
	uint64_t size;             /* of the shared memory now */
	uint64_t in, in_len, out, out_len, elem_size;
	uint32_t n_specs, mask;
	uint32_t any;              /* the result has at most out_len bytes */
	uint32_t unused;
};

#endif
