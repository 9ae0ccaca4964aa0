/* SPDX-License-Identifier: BSD-3-Clause */
/* h5z.h - one codec as a filter of HDF5's pipeline: what an H5Z_class2_t points to.
 *
 * Nothing here needs libhdf5: a filter takes and gives memory of malloc, and numbers. Our plugins
 * and the children in which libhdf5 reads elements share it. */
#ifndef CODECS_EXPORT_H5Z_H
#define CODECS_EXPORT_H5Z_H

#include "codecs/core/codec.h"

/* Flags of a call. Spec: H5Z_FLAG_REVERSE and H5Z_FLAG_OPTIONAL of HDF5's H5Zpublic.h. */
#define CODEC_H5Z_REVERSE 0x0100u
#define CODEC_H5Z_OPTIONAL 0x0001u

/* What nobody sensible has in a chunk: HDF5's chunks are shorter than 4 GiB, and the filters before
 * this one may have added to them. */
#define CODEC_H5Z_MAX                                                                            \
	((size_t)(SIZE_MAX > UINT32_MAX ? (uint64_t)UINT32_MAX + UINT32_MAX / 4 : SIZE_MAX / 4))

/* codec_h5z - encode or decode a chunk in place of *buf.
 * max     the most bytes that decoding may give; at most CODEC_H5Z_MAX makes sense
 * flags   CODEC_H5Z_REVERSE: decode. CODEC_H5Z_OPTIONAL: an encoding that is longer than the chunk
 *         is not wanted
 * params  n_params of them, as they are stored in the file
 * n       bytes of the chunk, in *buf, which has room for *size
 * Returns the bytes that *buf then has, with room for *size: new memory of malloc, or the same. 0
 * when it failed or is not wanted (HDF5's way to say it), with *buf, *size and the bytes as they
 * were. Any thread. */
size_t codec_h5z(const struct codec_ops *ops, size_t max, unsigned flags, size_t n_params,
		 const unsigned *params, size_t n, size_t *size, void **buf);

#endif
