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

static int gzip_decode(struct codec_scratch *s, const struct codec_spec *spec NZ_UNUSED,
		       size_t elem_size NZ_UNUSED, const uint8_t *in, size_t in_len,
		       uint8_t *out, size_t cap, size_t *ret_len, struct err *e)
{
	struct libdeflate_decompressor *d = codec_inflater(s);
	size_t from = 0, to = 0;

	if (!d)
		return err_nomem(e);
	do {
		size_t used = 0, got = 0;
		enum libdeflate_result rc = libdeflate_gzip_decompress_ex(
			d, in + from, in_len - from, out + to, cap - to, &used, &got);

		if (rc == LIBDEFLATE_INSUFFICIENT_SPACE)
			return err_set(e, -ERANGE, "gzip: %zu bytes inflate to more than %zu",
				       in_len, cap);
		if (rc != LIBDEFLATE_SUCCESS || used == 0)
			return err_set(
				e, -EBADMSG,
				"gzip: %zu bytes at offset %zu are not a valid gzip member",
				in_len - from, from);
		from += used;
		to += got;
	} while (!gzip_all_zero(in + from, in_len - from));
	*ret_len = to;
	return 0;
}

static uint64_t gzip_framed_size(uint64_t n)
{
	uint64_t r = codec_stored_size(n);

	if (r == 0 || ckd_add(&r, r, (uint64_t)(HEAD + TAIL)))
		return 0;
	return r;
}

static void gzip_frame(const struct codec_spec *spec NZ_UNUSED, size_t elem_size NZ_UNUSED,
		       const uint8_t *in, size_t n, uint8_t *out)
{
	/* magic, deflate, no flags, no time, fastest, unknown system */
	static const uint8_t head[HEAD] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255};
	uint32_t crc = libdeflate_crc32(0, in, n);

	memcpy(out, head, HEAD);
	out = codec_stored_blocks(in, n, out + HEAD);
	put_le32(out, crc);
	put_le32(out + 4, (uint32_t)n);
}

static int gzip_encode(struct codec_scratch *s, const struct codec_spec *spec,
		       size_t elem_size NZ_UNUSED, const uint8_t *in, size_t n, struct buf *out,
		       struct err *e)
{
	struct libdeflate_compressor *c = codec_deflater(s, codec_effort_of(&effort, spec));
	size_t bound, got, start = out->len;
	uint8_t *p;

	if (!c)
		return err_nomem(e);
	bound = libdeflate_gzip_compress_bound(c, n);
	p = bound > n ? buf_grow(out, bound) : NULL;
	if (!p)
		return err_nomem(e);
	got = libdeflate_gzip_compress(c, in, n, p, bound);
	out->len = start + got;
	if (got == 0)
		return err_set(e, -EIO, "gzip: the output of %zu bytes does not fit in %zu", n,
			       bound);
	return 0;
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
