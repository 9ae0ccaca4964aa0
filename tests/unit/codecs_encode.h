/* SPDX-License-Identifier: BSD-3-Clause */
/* codecs_encode.h - encode through a chain, for tests that have no working memory of their own. */
#ifndef TESTS_UNIT_CODECS_ENCODE_H
#define TESTS_UNIT_CODECS_ENCODE_H

#include <errno.h>

#include "codecs/core/codec.h"

static inline int encode_chain(const struct codec_chain *chain, size_t elem_size,
			       const uint8_t *in, size_t n, struct buf *out, struct err *e)
{
	struct codec_scratch *scratch = codec_scratch_new();
	int rc = scratch ? codec_chain_encode(chain, elem_size, in, n, scratch, out, e) : -ENOMEM;

	codec_scratch_free(scratch);
	return rc;
}

#endif
