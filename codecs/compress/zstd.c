/* SPDX-License-Identifier: BSD-3-Clause */
/* zstd.c - Zstandard frames, with and without their content size, one or several.
 *
 * Frames are decoded one by one, so that only frames of the current format reach the library: its
 * decoders of formats before 0.8 are never called. One-shot decoding needs no window, whatever size
 * a frame states. The framed form is one frame of raw blocks.
 *
 * Spec: RFC 8878; https://github.com/zarr-developers/zarr-specs/pull/256 */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#define MAGIC 0xfd2fb528u
#define SKIP_MAGIC 0x184d2a50u /* and the next 15 numbers */
#define SKIP_MASK 0xfffffff0u
#define HEAD 13         /* magic, descriptor, content size of 8 bytes */
#define DESCRIPTOR 0xe0 /* content size of 8 bytes, single segment: the window is the content */
#define BLOCK_MAX 131072u /* bytes of a block */
#define BLOCK_HEAD 3

/* `checksum` in a document is ignored: each frame states whether it has one. The range is
 * ZSTD_minCLevel() .. ZSTD_maxCLevel(). */
static const struct codec_effort effort = {
	"zstd", "level", -(1 << 17), 22, .stored = 1, .zarr = 1, .user = ZSTD_CLEVEL_DEFAULT};
CODEC_EFFORT(zstd, effort)

/* zstd_zarr3_params - numcodecs before 0.13 does not know `checksum`, readers of Zarr v3 require
 * it. */
static void zstd_zarr3_params(const struct codec_spec *spec, size_t elem_size, struct buf *json)
{
	zstd_zarr2_params(spec, elem_size, json);
	buf_puts(json, ", \"checksum\": false");
}

/* frame_length - bytes of the frame at p; 0 when it is none. */
static size_t frame_length(const uint8_t *p, size_t n)
{
	uint32_t magic = n >= 4 ? get_le32(p) : 0;
	size_t len;

	if (magic != MAGIC && (magic & SKIP_MASK) != SKIP_MAGIC)
		return 0;
	len = ZSTD_findFrameCompressedSize(p, n);
	return ZSTD_isError(len) || len > n ? 0 : len;
}

static int zstd_decode(const struct codec_call *c)
{
	struct ZSTD_DCtx_s *zstd = codec_zstd_decoder(c->scratch);
	size_t from = 0, to = 0;

	if (!zstd)
		return err_nomem(c->e);
	do {
		size_t len = frame_length(c->in + from, c->in_len - from), got;
		unsigned long long claim;

		if (len == 0)
			return err_set(c->e, -EBADMSG,
				       "zstd: %zu bytes at offset %zu are not a complete frame",
				       c->in_len - from, from);
		claim = ZSTD_getFrameContentSize(c->in + from, len);
		if (claim < ZSTD_CONTENTSIZE_ERROR && claim > c->cap - to)
			return err_set(c->e, -ERANGE, "zstd: content of %llu bytes exceeds %zu",
				       claim, c->cap - to);
		got = ZSTD_decompressDCtx(zstd, c->out + to, c->cap - to, c->in + from, len);
		if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall)
			return err_set(c->e, -ERANGE, "zstd: content is larger than %zu bytes",
				       c->cap);
		if (ZSTD_isError(got))
			return err_set(c->e, -EBADMSG, "zstd: %s", ZSTD_getErrorName(got));
		from += len;
		to += got;
	} while (from < c->in_len);
	*c->ret_len = to;
	return 0;
}

static uint64_t zstd_framed_size(uint64_t n)
{
	uint64_t r = codec_blocks_size(n, BLOCK_MAX, BLOCK_HEAD);

	return r ? codec_plus(r, HEAD) : 0;
}

static void zstd_block_head(uint8_t *out, size_t len, bool last)
{
	put_le(out, (uint32_t)len << 3 | last, BLOCK_HEAD); /* type 0, raw */
}

static void zstd_frame(const struct codec_call *c)
{
	put_le32(c->out, MAGIC);
	c->out[4] = DESCRIPTOR;
	put_le64(c->out + 5, c->in_len);
	(void)codec_put_blocks(c->in, c->in_len, BLOCK_MAX, BLOCK_HEAD, zstd_block_head,
			       c->out + HEAD);
}

static int zstd_encode(const struct codec_call *c)
{
	struct ZSTD_CCtx_s *zstd = codec_zstd_encoder(c->scratch);
	size_t bound = ZSTD_compressBound(c->in_len), start = c->to->len, got;
	uint8_t *p;

	if (ZSTD_isError(bound) || bound < c->in_len)
		return err_set(c->e, -ERANGE, "zstd: length %zu is too large", c->in_len);
	p = zstd ? buf_grow(c->to, bound) : NULL;
	if (!p)
		return err_nomem(c->e);
	got = ZSTD_compressCCtx(zstd, p, bound, c->in, c->in_len,
				codec_effort_of(&effort, c->spec));
	codec_zstd_encoded(c->scratch);
	if (ZSTD_isError(got)) {
		c->to->len = start;
		return err_set(c->e, -EIO, "zstd: %s", ZSTD_getErrorName(got));
	}
	c->to->len = start + got;
	return 0;
}

const struct codec_ops codec_zstd = {
	.name = "zstd",
	.h5_id = CODEC_ZSTD,
	.zarr2_id = "zstd",
	.zarr3_name = "zstd",
	.zarr3_stock = true,
	.compressor = true,
	.zarr2_params = zstd_zarr2_params,
	.zarr3_params = zstd_zarr3_params,
	.from_zarr = zstd_from_zarr,
	.prepare = zstd_prepare,
	.stored_max = codec_packed_max,
	.decode = zstd_decode,
	.framed_size = zstd_framed_size,
	.frame = zstd_frame,
	.encode = zstd_encode,
};

/* The contexts of libzstd, which a thread keeps for all codecs that contain Zstandard. */

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
