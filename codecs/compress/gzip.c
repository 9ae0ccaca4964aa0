/* SPDX-License-Identifier: BSD-3-Clause */
/* gzip.c - gzip members, by libdeflate.
 *
 * Several consecutive members are one content; zeros may follow the last, as gzip allows. The
 * framed form is one member of stored blocks.
 *
 * Spec: RFC 1952; https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/ */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#define HEAD 10
#define TAIL 8

static const struct codec_effort effort = {"gzip",      "level",   0,        9,
					   .stored = 1, .zarr = 1, .user = 4};
CODEC_EFFORT(gzip, effort)

static bool gzip_all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static int gzip_decode(const struct codec_call *c)
{
	struct libdeflate_decompressor *d = codec_inflater(c->scratch);
	size_t from = 0, to = 0;

	if (!d)
		return err_nomem(c->e);
	do {
		size_t used = 0, got = 0;
		enum libdeflate_result rc =
			libdeflate_gzip_decompress_ex(d, c->in + from, c->in_len - from,
						      c->out + to, c->cap - to, &used, &got);

		if (rc == LIBDEFLATE_INSUFFICIENT_SPACE)
			return err_set(c->e, -ERANGE,
				       "gzip: %zu bytes inflate to more than %zu", c->in_len,
				       c->cap);
		if (rc != LIBDEFLATE_SUCCESS || used == 0)
			return err_set(
				c->e, -EBADMSG,
				"gzip: %zu bytes at offset %zu are not a valid gzip member",
				c->in_len - from, from);
		from += used;
		to += got;
	} while (!gzip_all_zero(c->in + from, c->in_len - from));
	*c->ret_len = to;
	return 0;
}

static uint64_t gzip_framed_size(uint64_t n)
{
	uint64_t r = codec_stored_size(n);

	return r ? codec_plus(r, HEAD + TAIL) : 0;
}

static void gzip_frame(const struct codec_call *c)
{
	uint8_t *out = c->out;
	/* magic, deflate, no flags, no time, fastest, unknown system */
	static const uint8_t head[HEAD] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255};
	uint32_t crc = libdeflate_crc32(0, c->in, c->in_len);

	memcpy(out, head, HEAD);
	out = codec_stored_blocks(c->in, c->in_len, out + HEAD);
	put_le32(out, crc);
	put_le32(out + 4, (uint32_t)c->in_len);
}

static int gzip_encode(const struct codec_call *c)
{
	return codec_deflate_as(c, "gzip", codec_effort_of(&effort, c->spec),
				libdeflate_gzip_compress_bound, libdeflate_gzip_compress);
}

const struct codec_ops codec_gzip = {
	.name = "gzip",
	.h5_id = CODEC_GZIP,
	.zarr2_id = "gzip",
	.zarr3_name = "gzip",
	.zarr3_stock = true,
	.compressor = true,
	.zarr2_params = gzip_zarr2_params,
	.from_zarr = gzip_from_zarr,
	.prepare = gzip_prepare,
	.stored_max = codec_packed_max,
	.decode = gzip_decode,
	.framed_size = gzip_framed_size,
	.frame = gzip_frame,
	.encode = gzip_encode,
};
