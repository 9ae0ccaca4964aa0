/* SPDX-License-Identifier: BSD-3-Clause */
/* bzip2.c - bzip2 streams, one or several; other bytes after them are ignored, as in numcodecs.
 *
 * The library counts in `unsigned int`, so that long chunks are passed in parts. When the output is
 * full and the stream has not ended, one more byte of room distinguishes "too long" from "the end
 * was not read yet". */
#include "codecs/core/codec_impl.h"

#include <bzlib.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

static const struct codec_effort effort = {"bzip2",     "level",   1,        9,
					   .stored = 9, .zarr = 1, .user = 9};
CODEC_EFFORT(bzip2, effort)

static unsigned int bzip2_part(size_t n)
{
	return n < UINT_MAX ? (unsigned int)n : UINT_MAX;
}

/* one_stream - decode the stream at *from to *to; advance both by the bytes read and written. */
static int one_stream(const struct codec_call *c, size_t *from, size_t *to)
{
	const uint8_t *in = c->in + *from;
	const size_t in_len = c->in_len - *from, cap = c->cap - *to;
	bz_stream z = {0};
	size_t used = 0, got = 0;
	char spare;
	int rc = BZ2_bzDecompressInit(&z, 0, 0);

	if (rc != BZ_OK)
		return err_nomem(c->e);
	for (;;) {
		bool full = got == cap;
		unsigned int had_in = bzip2_part(in_len - used),
			     had_out = full ? 1 : bzip2_part(cap - got);

		/* the library's pointer is not const, but it only reads */
		z.next_in = (char *)(uintptr_t)(in + used);
		z.avail_in = had_in;
		z.next_out = full ? &spare : (char *)c->out + *to + got;
		z.avail_out = had_out;
		rc = BZ2_bzDecompress(&z);
		used += had_in - z.avail_in;
		if (full && z.avail_out == 0) {
			rc = err_set(c->e, -ERANGE, "bzip2: content is larger than %zu bytes",
				     cap);
			break;
		}
		got += full ? 0 : had_out - z.avail_out;
		if (rc == BZ_STREAM_END || rc == BZ_MEM_ERROR) {
			rc = rc == BZ_MEM_ERROR ? err_nomem(c->e) : 0;
			break;
		}
		if (rc != BZ_OK || (z.avail_in == had_in && z.avail_out == had_out)) {
			rc = err_set(c->e, -EBADMSG,
				     "bzip2: %zu bytes are not a complete stream", in_len);
			break;
		}
	}
	(void)BZ2_bzDecompressEnd(&z); /* fails only without BZ2_bzDecompressInit */
	*from += used;
	*to += got;
	return rc;
}

static int bzip2_decode(const struct codec_call *c)
{
	size_t from = 0, to = 0;

	do {
		int rc = one_stream(c, &from, &to);

		if (rc)
			return rc;
	} while (c->in_len - from >= 3 && memcmp(c->in + from, "BZh", 3) == 0);
	*c->ret_len = to;
	return 0;
}

static int bzip2_encode(const struct codec_call *c)
{
	size_t start = c->to->len,
	       bound = c->in_len + c->in_len / 100 + 601; /* as in its manual */
	unsigned int got;
	uint8_t *p;
	int rc;

	if (c->in_len > UINT_MAX - UINT_MAX / 50)
		return err_set(c->e, -ERANGE, "bzip2: length %zu is too large", c->in_len);
	p = buf_grow(c->to, bound);
	if (!p)
		return err_nomem(c->e);
	got = (unsigned int)bound;
	rc = BZ2_bzBuffToBuffCompress(
		(char *)p, &got, (char *)(uintptr_t)(c->in_len ? c->in : p),
		(unsigned int)c->in_len, codec_effort_of(&effort, c->spec), 0, 0);
	c->to->len = start + (rc == BZ_OK ? got : 0);
	if (rc == BZ_MEM_ERROR)
		return err_nomem(c->e);
	return rc == BZ_OK ? 0
			   : err_set(c->e, -EIO, "bzip2: the library cannot encode %zu bytes",
				     c->in_len);
}

const struct codec_ops codec_bzip2 = {
	.name = "bzip2",
	.h5_id = CODEC_BZIP2,
	.zarr2_id = "bz2",
	.compressor = true,
	.zarr2_params = bzip2_zarr2_params,
	.from_zarr = bzip2_from_zarr,
	.prepare = bzip2_prepare,
	.stored_max = codec_packed_max,
	.decode = bzip2_decode,
	.encode = bzip2_encode,
};
