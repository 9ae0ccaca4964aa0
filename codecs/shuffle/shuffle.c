/* SPDX-License-Identifier: BSD-3-Clause */
/* shuffle.c - HDF5's byte shuffle: all first bytes of the elements, then all second bytes, ...
 *
 * Both directions are transpositions of a matrix of bytes. Sizes 2, 4, 8 and 16 are done 16
 * elements at a time in vector registers, by log2(size) rounds of interleaving (undo) or of taking
 * even and odd bytes (do). All other sizes are done in blocks that fit the first-level cache. Bytes
 * after the last whole element are copied unchanged.
 *
 * Spec: HDF5 File Format 3.0, IV.A.2.l (filter 2): client data 0 is the element size. */
#include "codecs/core/codec_impl.h"
#include "codecs/shuffle/byte_vectors_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BLOCK_BYTES 4096 /* of whole elements, for sizes without vector code */

/* TRANSPOSE - define undo_<size> and do_<size> over n elements, n a multiple of LANES; planes
 * are `plane` bytes apart. in and out do not overlap. */
#define TRANSPOSE(size, mix, part)                                                             \
	static void undo_##size(const uint8_t *restrict in, size_t plane, size_t n,            \
				uint8_t *restrict out)                                         \
	{                                                                                      \
		for (size_t i = 0; i < n; i += LANES, out += (size_t)(size)*LANES) {           \
			vec x[size], y[size];                                                  \
                                                                                               \
			LOAD_##size(x, in + i, plane);                                         \
			mix;                                                                   \
			STORE_##size(out, (size_t)LANES, x);                                   \
		}                                                                              \
	}                                                                                      \
	static void do_##size(const uint8_t *restrict in, size_t plane, size_t n,              \
			      uint8_t *restrict out)                                           \
	{                                                                                      \
		for (size_t i = 0; i < n; i += LANES, in += (size_t)(size)*LANES) {            \
			vec x[size], y[size];                                                  \
                                                                                               \
			LOAD_##size(x, in, (size_t)LANES);                                     \
			part;                                                                  \
			STORE_##size(out + i, plane, x);                                       \
		}                                                                              \
	}

TRANSPOSE(2, (MIX1(y, x), x[0] = y[0], x[1] = y[1]), (PART1(y, x), x[0] = y[0], x[1] = y[1]))
TRANSPOSE(4, (MIX2(y, x), MIX2(x, y)), (PART2(y, x), PART2(x, y)))
TRANSPOSE(8, (MIX4(y, x), MIX4(x, y), MIX4(y, x), memcpy(x, y, sizeof(x))),
	  (PART4(y, x), PART4(x, y), PART4(y, x), memcpy(x, y, sizeof(x))))
TRANSPOSE(16, (MIX8(y, x), MIX8(x, y), MIX8(y, x), MIX8(x, y)),
	  (PART8(y, x), PART8(x, y), PART8(y, x), PART8(x, y)))

/* turn_any - elements [from, n) of any size, byte by byte in blocks. */
static void turn_any(bool undo, const uint8_t *restrict in, size_t size, size_t from, size_t n,
		     uint8_t *restrict out)
{
	size_t step = size < BLOCK_BYTES / LANES ? BLOCK_BYTES / size : LANES;

	for (size_t i = from; i < n; i += step) {
		size_t m = n - i < step ? n - i : step;

		for (size_t j = 0; j < size; j++) {
			const size_t elem = i * size + j, plane = j * n + i;

			if (undo)
				for (size_t k = 0; k < m; k++)
					out[elem + k * size] = in[plane + k];
			else
				for (size_t k = 0; k < m; k++)
					out[plane + k] = in[elem + k * size];
		}
	}
}

/* turn_bytes - shuffle, or undo it. */
static void turn_bytes(bool undo, size_t size, const uint8_t *in, size_t len, uint8_t *out)
{
	size_t n = size > 1 ? len / size : 0, whole = n - n % LANES;

	if (n <= 1) { /* nothing to move; a size of 0 ends here */
		memcpy(out, in, len);
		return;
	}
	if (size == 2)
		(undo ? undo_2 : do_2)(in, n, whole, out);
	else if (size == 4)
		(undo ? undo_4 : do_4)(in, n, whole, out);
	else if (size == 8)
		(undo ? undo_8 : do_8)(in, n, whole, out);
	else if (size == 16)
		(undo ? undo_16 : do_16)(in, n, whole, out);
	else
		whole = 0;
	turn_any(undo, in, size, whole, n, out);
	if (len > n * size)
		memcpy(out + n * size, in + n * size, len - n * size);
}

void codec_unshuffle_bytes(size_t size, const uint8_t *in, size_t len, uint8_t *out)
{
	turn_bytes(true, size, in, len, out);
}

void codec_shuffle_bytes(size_t size, const uint8_t *in, size_t len, uint8_t *out)
{
	turn_bytes(false, size, in, len, out);
}

/* shuffle_size_of - the element size of the filter; netCDF-C writes 0 for "the size of the
 * type". */
static size_t shuffle_size_of(const struct codec_spec *spec, size_t elem_size)
{
	return spec->n_params > 0 && spec->params[0] > 0 ? spec->params[0] : elem_size;
}

static void shuffle_zarr2_params(const struct codec_spec *spec, size_t elem_size,
				 struct buf *json)
{
	buf_printf(json, ", \"elementsize\": %zu", shuffle_size_of(spec, elem_size));
}

/* shuffle_from_zarr - netCDF-C writes 0 for "the size of the type", and shuffles by that size
 * whatever the document states. */
static int shuffle_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			     struct err *e)
{
	int64_t size;
	int rc = codec_conf_int(conf, "elementsize", 0, &size, e);

	if (rc)
		return rc;
	if (size == 0)
		size = conf->elem_size < UINT32_MAX ? (int64_t)conf->elem_size : UINT32_MAX;
	if (size < 0 || size > UINT32_MAX)
		return err_set(e, -EBADMSG, "shuffle: wrong element size %" PRId64, size);
	params[0] = (uint32_t)size;
	*ret_n = 1;
	return 0;
}

/* shuffle_prepare - drop all parameters: H5Pset_shuffle has none. */
static int shuffle_prepare(const struct codec_spec *spec NZ_UNUSED, const struct codec_array *a,
			   uint32_t *params, uint32_t *ret_n, struct err *e NZ_UNUSED)
{
	params[0] = a->elem_size;
	*ret_n = 1;
	return 0;
}

static int shuffle_decode(const struct codec_call *c)
{
	if (c->in_len > c->cap)
		return err_set(c->e, -ERANGE, "shuffle: length %zu exceeds %zu", c->in_len,
			       c->cap);
	if (c->in_len > 0)
		codec_unshuffle_bytes(shuffle_size_of(c->spec, c->elem_size), c->in, c->in_len,
				      c->out);
	*c->ret_len = c->in_len;
	return 0;
}

static void shuffle_frame(const struct codec_call *c)
{
	if (c->in_len > 0)
		codec_shuffle_bytes(shuffle_size_of(c->spec, c->elem_size), c->in, c->in_len,
				    c->out);
}

static int shuffle_encode(const struct codec_call *c)
{
	return c->in_len ? codec_append_frame(c, c->in_len, shuffle_frame) : 0;
}

const struct codec_ops codec_shuffle = {
	.name = "shuffle",
	.h5_id = CODEC_SHUFFLE,
	.zarr2_id = "shuffle",
	.portable = true,
	.h5_stock = true,
	.zarr2_params = shuffle_zarr2_params,
	.from_zarr = shuffle_from_zarr,
	.prepare = shuffle_prepare,
	.decode = shuffle_decode,
	.framed_size = codec_identity_framed_size,
	.frame = shuffle_frame,
	.encode = shuffle_encode,
};
