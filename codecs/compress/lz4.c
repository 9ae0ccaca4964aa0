/* SPDX-License-Identifier: BSD-3-Clause */
/* lz4.c - LZ4 blocks in the two framings of datasets: numcodecs' (little-endian length of 4 bytes,
 * one block) and the HDF5 filter's (big-endian: 8 bytes total, 4 bytes block size, then blocks with
 * their stored length in 4 bytes; a block as long as its content is not compressed).
 *
 * Spec: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md,
 * https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

#define SIZE_BYTES 4
#define H5_HEAD 12
#define H5_BLOCK ((uint32_t)1 << 30) /* bytes of a block when a file states none */

static int lz4_block(const uint8_t *in, size_t in_len, uint8_t *out, size_t n, struct err *e)
{
	int got;

	if (in_len > INT_MAX || n > INT_MAX)
		return err_set(e, -EBADMSG,
			       "lz4: a block of %zu bytes that decodes to %zu is too large",
			       in_len, n);
	got = LZ4_decompress_safe((const char *)in, (char *)out, (int)in_len, (int)n);
	if (got < 0 || (size_t)got != n)
		return err_set(e, -EBADMSG, "lz4: a block of %zu bytes does not decode to %zu",
			       in_len, n);
	return 0;
}

static void lz4_put_be(struct buf *out, uint64_t v, size_t n)
{
	uint8_t *p = buf_grow(out, n);

	if (p)
		put_be(p, v, n);
}

static const struct codec_effort effort = {"lz4",       "acceleration", 1,        INT_MAX,
					   .stored = 1, .zarr = 1,      .user = 1};
CODEC_EFFORT(lz4, effort)

static int lz4_decode(const struct codec_call *c)
{
	size_t n;

	if (c->in_len < SIZE_BYTES)
		return err_set(c->e, -EBADMSG, "lz4: length %zu is less than 4", c->in_len);
	n = get_le32(c->in);
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "lz4: content of %zu bytes exceeds %zu", n,
			       c->cap);
	*c->ret_len = n;
	if (n == 0)
		return 0;
	return lz4_block(c->in + SIZE_BYTES, c->in_len - SIZE_BYTES, c->out, n, c->e);
}

/* put_block - compress n bytes and append them. */
static int put_block(const uint8_t *in, size_t n, int acceleration, struct buf *out,
		     struct err *e)
{
	size_t start = out->len;
	uint8_t *p;
	int bound, got;

	if (n > LZ4_MAX_INPUT_SIZE)
		return err_set(e, -ERANGE, "lz4: length %zu exceeds %d", n, LZ4_MAX_INPUT_SIZE);
	bound = LZ4_compressBound((int)n);
	p = buf_grow(out, (size_t)bound);
	if (!p)
		return err_nomem(e);
	got = LZ4_compress_fast((const char *)in, (char *)p, (int)n, bound, acceleration);
	out->len = start + (got > 0 ? (size_t)got : 0);
	return got > 0 ? 0 : err_set(e, -EIO, "lz4: the library cannot encode %zu bytes", n);
}

static int lz4_encode(const struct codec_call *c)
{
	size_t start = c->to->len;
	int rc;

	buf_put_le32(c->to, (uint32_t)c->in_len);
	rc = put_block(c->in, c->in_len, codec_effort_of(&effort, c->spec), c->to, c->e);
	if (rc)
		c->to->len = start;
	return rc;
}

const struct codec_ops codec_lz4 = {
	.name = "lz4",
	.h5_id = CODEC_LZ4,
	.zarr2_id = "lz4",
	.compressor = true,
	.zarr2_params = lz4_zarr2_params,
	.from_zarr = lz4_from_zarr,
	.prepare = lz4_prepare,
	.stored_max = codec_packed_max,
	.decode = lz4_decode,
	.encode = lz4_encode,
};

static int h5_decode(const struct codec_call *c)
{
	uint64_t total, size;
	size_t from = H5_HEAD, to = 0;

	if (c->in_len < H5_HEAD)
		return err_set(c->e, -EBADMSG, "lz4: length %zu is less than %d", c->in_len,
			       H5_HEAD);
	total = get_be(c->in, 8);
	size = get_be(c->in + 8, 4);
	if (total > c->cap)
		return err_set(c->e, -ERANGE, "lz4: content of %" PRIu64 " bytes exceeds %zu",
			       total, c->cap);
	if (size == 0 && total > 0)
		return err_set(c->e, -EBADMSG, "lz4: the block size is 0");
	while (to < total) {
		size_t n = (size_t)u64_min(size, total - to), stored;
		int rc;

		if (c->in_len - from < SIZE_BYTES)
			return err_set(c->e, -EBADMSG,
				       "lz4: a chunk of %zu bytes ends after %zu of %" PRIu64
				       " decoded bytes",
				       c->in_len, to, total);
		stored = (size_t)get_be(c->in + from, SIZE_BYTES);
		from += SIZE_BYTES;
		if (stored > c->in_len - from)
			return err_set(c->e, -EBADMSG,
				       "lz4: a block of %zu bytes, but only %zu are left",
				       stored, c->in_len - from);
		if (stored == n)
			memcpy(c->out + to, c->in + from, n);
		else if ((rc = lz4_block(c->in + from, stored, c->out + to, n, c->e)) != 0)
			return rc;
		from += stored;
		to += n;
	}
	*c->ret_len = to;
	return 0;
}

/* h5_prepare - the block size is optional. */
static int h5_prepare(const struct codec_spec *spec, const struct codec_array *a NZ_UNUSED,
		      uint32_t *params, uint32_t *ret_n, struct err *e)
{
	if (spec->n_params > 1)
		return err_set(e, -EINVAL,
			       "lz4: %" PRIu32 " parameters given, at most 1 is allowed",
			       spec->n_params);
	if (spec->n_params > 0 && spec->params[0] > LZ4_MAX_INPUT_SIZE)
		return err_set(e, -EINVAL, "lz4: the block size %" PRIu32 " is larger than %d",
			       spec->params[0], LZ4_MAX_INPUT_SIZE);
	if (spec->n_params > 0)
		params[0] = spec->params[0];
	*ret_n = spec->n_params;
	return 0;
}

static uint32_t h5_block_of(const struct codec_spec *spec)
{
	uint32_t size = spec->n_params > 0 ? spec->params[0] : 0;

	return size > 0 && size < H5_BLOCK ? size : H5_BLOCK;
}

static int h5_encode(const struct codec_call *c)
{
	uint32_t size = h5_block_of(c->spec);
	size_t start = c->to->len;

	if (size > c->in_len)
		size = (uint32_t)c->in_len;
	lz4_put_be(c->to, c->in_len, 8);
	lz4_put_be(c->to, size, 4);
	for (size_t i = 0; i < c->in_len; i += size) {
		size_t m = c->in_len - i < size ? c->in_len - i : size, at = c->to->len, stored;
		int rc;

		lz4_put_be(c->to, 0, SIZE_BYTES);
		rc = put_block(c->in + i, m, 1, c->to, c->e);
		if (rc) {
			c->to->len = start;
			return rc;
		}
		stored = c->to->len - at - SIZE_BYTES;
		if (stored >= m) { /* stored uncompressed, as its length shows */
			memcpy(c->to->data + at + SIZE_BYTES, c->in + i, m);
			c->to->len = at + SIZE_BYTES + m;
			stored = m;
		}
		put_be(c->to->data + at, stored, SIZE_BYTES);
	}
	return 0;
}

/* Each block has a length field, and blocks may be as short as a byte. */
static uint64_t h5_stored_max(const struct codec_spec *spec, uint64_t n)
{
	uint64_t r = codec_packed_max(spec, n), heads;

	if (r == 0 || ckd_mul(&heads, n / h5_block_of(spec) + 1, (uint64_t)SIZE_BYTES) ||
	    ckd_add(&r, r, heads))
		return 0;
	return r;
}

const struct codec_ops codec_lz4_hdf5 = {
	.name = "lz4",
	.h5_id = CODEC_LZ4_HDF5,
	.prepare = h5_prepare,
	.stored_max = h5_stored_max,
	.decode = h5_decode,
	.encode = h5_encode,
};
