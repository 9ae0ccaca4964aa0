/* zstd_state.c - what libzstd works in, kept by a thread for all codecs that have zstd in them. */
#include <zstd.h>

#include "codecs/core/codec_impl.h"

#define ENCODER_KEPT ((size_t)16 << 20) /* bytes of a context, kept from chunk to chunk */

static void free_decoder(void *p)
{
	(void)ZSTD_freeDCtx(p); /* cannot fail */
}

static void free_encoder(void *p)
{
	(void)ZSTD_freeCCtx(p);
}

struct ZSTD_DCtx_s *codec_zstd_decoder(struct codec_scratch *s)
{
	if (!s->zstd.p)
		s->zstd = (struct codec_kept){ZSTD_createDCtx(), free_decoder};
	return s->zstd.p;
}

struct ZSTD_CCtx_s *codec_zstd_encoder(struct codec_scratch *s)
{
	if (!s->zstd_encoder.p)
		s->zstd_encoder = (struct codec_kept){ZSTD_createCCtx(), free_encoder};
	return s->zstd_encoder.p;
}

void codec_zstd_encoded(struct codec_scratch *s)
{
	if (ZSTD_sizeof_CCtx(s->zstd_encoder.p) > ENCODER_KEPT)
		codec_kept_free(&s->zstd_encoder);
}
