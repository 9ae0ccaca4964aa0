/* SPDX-License-Identifier: BSD-3-Clause */
/* h5z.h - one codec as a filter of HDF5's pipeline: the function of an H5Z_class2_t.
 *
 * It does not need libhdf5: a filter takes and returns memory of malloc, and numbers. Our plugins
 * and the children in which libhdf5 reads elements share it. */
#ifndef CODECS_EXPORT_H5Z_H
#define CODECS_EXPORT_H5Z_H

#include "codecs/core/codec.h"

/* Flags of a call. Spec: H5Z_FLAG_REVERSE and H5Z_FLAG_OPTIONAL of HDF5's H5Zpublic.h. */
#define CODEC_H5Z_REVERSE 0x0100u
#define CODEC_H5Z_OPTIONAL 0x0001u

/* Upper bound for a decoded chunk: HDF5's chunks are shorter than 4 GiB, and the filters before
 * this one may have added bytes. */
#define CODEC_H5Z_MAX                                                                            \
	((size_t)(SIZE_MAX > UINT32_MAX ? (uint64_t)UINT32_MAX + UINT32_MAX / 4 : SIZE_MAX / 4))

/* codec_h5z - encode or decode a chunk in *buf.
 * max     the most bytes that decoding may give, <= CODEC_H5Z_MAX
 * flags   CODEC_H5Z_REVERSE: decode. CODEC_H5Z_OPTIONAL: fail if the encoding is longer than the
 *         chunk
 * params  n_params of them, as stored in the file
 * n       bytes of the chunk, in *buf, which has room for *size
 * Returns the number of bytes that *buf then has, with room for *size: new memory of malloc, or the
 * same. Returns 0 on failure (HDF5's convention), with *buf, *size and the bytes unchanged. Any
 * thread. */
size_t codec_h5z(const struct codec_ops *ops, size_t max, unsigned flags, size_t n_params,
		 const unsigned *params, size_t n, size_t *size, void **buf);

#endif
