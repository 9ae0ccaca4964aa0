/* SPDX-License-Identifier: BSD-3-Clause */
/* blosc_wrap.h - stored chunks that a few bytes before them turn into Blosc buffers.
 *
 * A Blosc buffer of one block is a header of 16 bytes, the block's offset, the compressed length,
 * and a zlib stream or Zstandard frame of the shuffled elements: byte for byte the output of HDF5's
 * shuffle and deflate, or Zstandard. Zarr v3 has neither shuffle nor zlib, but all its readers know
 * Blosc. Spec: c-blosc 1, README_HEADER.rst ("Blosc header format"). */
#ifndef CODECS_COMPRESS_BLOSC_WRAP_H
#define CODECS_COMPRESS_BLOSC_WRAP_H

#include "codecs/core/codec.h"

#define CODEC_WRAP_MAX 24 /* bytes of a header */

/* codec_wrap_fits - whether chunks of n decoded bytes by this chain can be wrapped: deflate, zlib,
 * or zstd, with or without shuffle over elem_size before it. ret_params: 7 parameters of the codec
 * CODEC_BLOSC as in HDF5, for the chain in a document. */
bool codec_wrap_fits(const struct codec_chain *chain, size_t elem_size, uint64_t n,
		     uint32_t ret_params[7]);

/* codec_wrap_head - write the bytes before one stored chunk.
 * mask    filters of the chain that were skipped for it; the header states them
 * n       bytes of the decoded chunk
 * stored  bytes as stored
 * Returns the length; 0: this chunk cannot be wrapped and has to be decoded and framed (the
 * compressed data are as long as n, so that Blosc would take them for uncompressed; or a length is
 * out of range). */
uint32_t codec_wrap_head(const struct codec_chain *chain, uint32_t mask, size_t elem_size,
			 uint64_t n, uint64_t stored, uint8_t out[CODEC_WRAP_MAX]);

#endif
