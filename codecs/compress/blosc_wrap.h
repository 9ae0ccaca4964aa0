/* SPDX-License-Identifier: BSD-3-Clause */
/* blosc_wrap.h - stored chunks that become Blosc buffers by a few bytes in front of them.
 *
 * A Blosc buffer of one block is a header of 16 bytes, the block's offset, the length of what was
 * compressed, and a zlib stream or Zstandard frame of the shuffled elements: byte for byte what
 * HDF5's shuffle and deflate, or Zstandard, make. Zarr v3 knows neither shuffle nor zlib, but all
 * its readers know Blosc. Spec: c-blosc 1, README_HEADER.rst ("Blosc header format"). */
#ifndef CODECS_COMPRESS_BLOSC_WRAP_H
#define CODECS_COMPRESS_BLOSC_WRAP_H

#include "codecs/core/codec.h"

#define CODEC_WRAP_MAX 24 /* bytes of a head */

/* codec_wrap_fits - whether chunks of n decoded bytes that this chain made can be wrapped: deflate,
 * zlib, or zstd, with shuffle over elem_size before it or without. ret_params: 7 parameters of
 * the codec CODEC_BLOSC as HDF5's filter has them, for the chain that a document names. */
bool codec_wrap_fits(const struct codec_chain *chain, size_t elem_size, uint64_t n,
		     uint32_t ret_params[7]);

/* codec_wrap_head - what comes in front of one stored chunk.
 * mask    filters of the chain that were skipped for it; what is then stored is said in the head
 * n       bytes of the decoded chunk
 * stored  bytes as stored
 * Returns the head's length; 0: this chunk cannot be wrapped (what was compressed is as long as n:
 * Blosc would take it for bytes that were not; or a length is impossible), and has to be decoded
 * and framed. */
uint32_t codec_wrap_head(const struct codec_chain *chain, uint32_t mask, size_t elem_size,
			 uint64_t n, uint64_t stored, uint8_t out[CODEC_WRAP_MAX]);

#endif
