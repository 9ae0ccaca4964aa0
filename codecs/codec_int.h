/* codec_int.h - what the files of this module share: the built-in codecs and the memory of a
 * decoding thread. */
#ifndef CODECS_CODEC_INT_H
#define CODECS_CODEC_INT_H

#include "codecs/codec.h"

extern const struct codec_ops codec_deflate;
extern const struct codec_ops codec_shuffle;
extern const struct codec_ops codec_fletcher32;

struct libdeflate_decompressor;

struct codec_scratch {
	struct libdeflate_decompressor *inflate; /* owned; made at first use */
	uint8_t *mem[2];                         /* owned; intermediate results, used in turn */
	size_t cap[2];
};

/* codec_scratch_get - memory `which` (0 or 1) with room for at least cap bytes, content
 * undefined. Borrowed until the next call for the same one. NULL when memory is short. */
uint8_t *codec_scratch_get(struct codec_scratch *s, unsigned int which, size_t cap);

#endif
