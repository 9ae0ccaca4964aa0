/* SPDX-License-Identifier: BSD-3-Clause */
/* deflate.c - zlib streams, by libdeflate: whole chunks at once, no streaming.
 *
 * The framed form is a zlib stream of stored blocks, whose length is a formula. As in the HDF5
 * library, bytes after the end of the stream are ignored.
 *
 * Spec: RFC 1950 (zlib), RFC 1951 3.2.4 (stored blocks). */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#define LEVEL_ZLIB 6     /* zlib's meaning of -1 */
#define BLOCK_MAX 65535u /* bytes of a stored block */
#define BLOCK_HEAD 5
#define STREAM_HEAD 2
#define STREAM_TAIL 4

/* Only from_zarr accepts -1, zlib's default. */
static const struct codec_effort effort = {"deflate",   "level",   0,        9,
					   .stored = 4, .zarr = 1, .user = 4};
CODEC_EFFORT(deflate, effort)

/* deflate_from_zlib - the level of numcodecs' zlib. */
static int deflate_from_zlib(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			     struct err *e)
{
	int64_t v;

	if (codec_conf_int(conf, "level", effort.zarr, &v, NULL) == 0 && v < 0) {
		params[0] = LEVEL_ZLIB;
		*ret_n = 1;
		return 0;
	}
	return deflate_from_zarr(conf, params, ret_n, e);
}

static void free_inflater(void *p)
{
	libdeflate_free_decompressor(p);
}

struct libdeflate_decompressor *codec_inflater(struct codec_scratch *s)
{
	if (!s->inflate.p)
		s->inflate =
			(struct codec_kept){libdeflate_alloc_decompressor(), free_inflater};
	return s->inflate.p;
}

static void free_deflater(void *p)
{
	libdeflate_free_compressor(p);
}

struct libdeflate_compressor *codec_deflater(struct codec_scratch *s, int level)
{
	if (s->deflate.p && s->deflate_level == level)
		return s->deflate.p;
	codec_kept_free(&s->deflate);
	s->deflate = (struct codec_kept){libdeflate_alloc_compressor(level), free_deflater};
	s->deflate_level = level;
	return s->deflate.p;
}

static int deflate_decode(const struct codec_call *c)
{
	struct libdeflate_decompressor *d = codec_inflater(c->scratch);
	enum libdeflate_result rc;
	size_t used, got;

	if (!d)
		return err_nomem(c->e);
	rc = libdeflate_zlib_decompress_ex(d, c->in, c->in_len, c->out, c->cap, &used, &got);
	if (rc == LIBDEFLATE_INSUFFICIENT_SPACE)
		return err_set(c->e, -ERANGE, "deflate: %zu bytes inflate to more than %zu",
			       c->in_len, c->cap);
	if (rc != LIBDEFLATE_SUCCESS)
		return err_set(c->e, -EBADMSG, "deflate: %zu bytes are not a valid zlib stream",
			       c->in_len);
	*c->ret_len = got;
	return 0;
}

uint64_t codec_stored_size(uint64_t n)
{
	return codec_blocks_size(n, BLOCK_MAX, BLOCK_HEAD);
}

static void stored_block_head(uint8_t *out, size_t len, bool last)
{
	out[0] = last; /* type 00, stored */
	put_le16(out + 1, (uint16_t)len);
	put_le16(out + 3, (uint16_t)~len);
}

uint8_t *codec_stored_blocks(const uint8_t *in, size_t n, uint8_t *out)
{
	return codec_put_blocks(in, n, BLOCK_MAX, BLOCK_HEAD, stored_block_head, out);
}

static uint64_t deflate_framed_size(uint64_t n)
{
	uint64_t r = codec_stored_size(n);

	return r ? codec_plus(r, STREAM_HEAD + STREAM_TAIL) : 0;
}

static void deflate_frame(const struct codec_call *c)
{
	uint8_t *out = c->out;
	uint32_t adler = libdeflate_adler32(1, c->in, c->in_len);

	*out++ = 0x78; /* deflate, 32 KiB window */
	*out++ = 0x01; /* fastest level; the pair is a multiple of 31 */
	out = codec_stored_blocks(c->in, c->in_len, out);
	put_be(out, adler, 4);
}

int codec_deflate_as(const struct codec_call *c, const char *name, int level,
		     size_t (*bound_of)(struct libdeflate_compressor *z, size_t n),
		     size_t (*compress)(struct libdeflate_compressor *z, const void *in,
					size_t n, void *out, size_t cap))
{
	struct libdeflate_compressor *z = codec_deflater(c->scratch, level);
	size_t bound, got, start = c->to->len;
	uint8_t *p;

	if (!z)
		return err_nomem(c->e);
	bound = bound_of(z, c->in_len);
	if (bound < c->in_len)
		return err_set(c->e, -ERANGE, "%s: length %zu is too large", name, c->in_len);
	p = buf_grow(c->to, bound);
	if (!p)
		return err_nomem(c->e);
	got = compress(z, c->in, c->in_len, p, bound);
	c->to->len = start + got;
	if (got == 0)
		return err_set(c->e, -EIO, "%s: the output of %zu bytes does not fit in %zu",
			       name, c->in_len, bound);
	return 0;
}

static int deflate_encode(const struct codec_call *c)
{
	return codec_deflate_as(c, "deflate", codec_effort_of(&effort, c->spec),
				libdeflate_zlib_compress_bound, libdeflate_zlib_compress);
}

const struct codec_ops codec_deflate = {
	.name = "deflate",
	.h5_id = CODEC_DEFLATE,
	.zarr2_id = "zlib",
	.portable = true,
	.h5_stock = true,
	.compressor = true,
	.zarr2_params = deflate_zarr2_params,
	.from_zarr = deflate_from_zlib,
	.prepare = deflate_prepare,
	.stored_max = codec_packed_max,
	.decode = deflate_decode,
	.framed_size = deflate_framed_size,
	.frame = deflate_frame,
	.encode = deflate_encode,
};
