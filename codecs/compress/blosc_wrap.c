/* SPDX-License-Identifier: BSD-3-Clause */
/* blosc_wrap.c - headers that turn chunks of HDF5's filters into Blosc buffers of one block.
 *
 *   16 bytes  header: format 2, 1, flags, element size, n, block size n, bytes of the buffer
 *    4 bytes  offset of the block: 20
 *    4 bytes  compressed bytes, followed by the compressed data
 *
 * The flag "not split" says that a block is one stream; c-blosc knows it from 1.11.0 (2016) on. The
 * flag for shuffle concerns all of a buffer, as a chunk's filter mask concerns all of a chunk. If
 * no filter was applied, the header with the flag for "copied" is sufficient. Readers would take
 * data that were compressed to exactly n bytes for uncompressed ones.
 *
 * Blosc shuffles as HDF5 does: bytes after the last whole element stay in place. Both zlib streams
 * and Zstandard frames mark their end.
 *
 * Spec: https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst */
#include "codecs/compress/blosc_wrap.h"

#include "codecs/core/codec_impl.h"

#include <blosc.h>

#define HEAD ((uint32_t)BLOSC_MIN_HEADER_LENGTH)
#define CODEC_FORMAT 1   /* of all compressors */
#define FILTER_VERSION 2 /* of the HDF5 filter */
#define NOT_SPLIT 0x10
#define COMPRESSOR_SHIFT 5
#define BYTES_MAX 536866816u /* of a block: c-blosc 2's limit; that of c-blosc 1 is higher */
#define LEVEL_MAX 9
#define LEVEL_DEFLATE 4 /* as the deflate codec's */
#define LEVEL_ZSTD 3
#define ZSTD_HIGH 19 /* from here on it is slow */

enum { P_FILTER, P_FORMAT, P_TYPESIZE, P_BYTES, P_LEVEL, P_SHUFFLE, P_COMPRESSOR };

/* blosc_wrap_parts - the filters of a chain, as bits of the filter mask; 0: there is none. */
struct blosc_wrap_parts {
	uint32_t shuffle_bit, compress_bit;
	const struct codec_spec *compress;
	size_t size; /* of elements, as in the header */
	bool zstd;
};

/* shuffle_size - the element size by which shuffle moves bytes; 1: it moves none. */
static size_t shuffle_size(const struct codec_spec *spec, size_t elem_size, uint64_t n)
{
	size_t size = spec->n_params > 0 && spec->params[0] > 0 ? spec->params[0] : elem_size;

	return size > 1 && n / size > 1 ? size : 1;
}

static bool take_apart(const struct codec_chain *chain, size_t elem_size, uint64_t n,
		       struct blosc_wrap_parts *ret)
{
	const struct codec_spec *last;

	if (chain->n < 1 || chain->n > 2 || n == 0 || n > BYTES_MAX)
		return false;
	last = &chain->specs[chain->n - 1];
	*ret = (struct blosc_wrap_parts){
		.compress_bit = (uint32_t)1 << (chain->n - 1),
		.compress = last,
		.size = elem_size > 0 && elem_size <= BLOSC_MAX_TYPESIZE ? elem_size : 1,
		.zstd = last->h5_id == CODEC_ZSTD};
	if (last->h5_id != CODEC_DEFLATE && last->h5_id != CODEC_ZSTD)
		return false;
	if (chain->n == 1)
		return true;
	if (chain->specs[0].h5_id != CODEC_SHUFFLE)
		return false;
	if (shuffle_size(&chain->specs[0], elem_size, n) == 1)
		return true;
	ret->shuffle_bit = 1;
	ret->size = shuffle_size(&chain->specs[0], elem_size, n);
	return ret->size <= BLOSC_MAX_TYPESIZE;
}

/* blosc_wrap_level_of - the Blosc level of equal effort. c-blosc uses Zstandard's level 2l - 1 for
 * its level l, except for 9, which is the highest. */
static uint32_t blosc_wrap_level_of(const struct blosc_wrap_parts *p)
{
	int32_t level;

	if (!p->zstd)
		return (uint32_t)codec_level(p->compress, 0, 0, LEVEL_MAX, LEVEL_DEFLATE);
	level = codec_level(p->compress, 0, 1, ZSTD_HIGH, LEVEL_ZSTD);
	if (level == ZSTD_HIGH)
		return LEVEL_MAX;
	return level < 2 * LEVEL_MAX - 3 ? ((uint32_t)level + 1) / 2 : LEVEL_MAX - 1;
}

bool codec_wrap_fits(const struct codec_chain *chain, size_t elem_size, uint64_t n,
		     uint32_t ret_params[7])
{
	struct blosc_wrap_parts p;

	if (!take_apart(chain, elem_size, n, &p))
		return false;
	ret_params[P_FILTER] = FILTER_VERSION;
	ret_params[P_FORMAT] = BLOSC_VERSION_FORMAT;
	ret_params[P_TYPESIZE] = (uint32_t)p.size;
	ret_params[P_BYTES] = (uint32_t)n;
	ret_params[P_LEVEL] = blosc_wrap_level_of(&p);
	ret_params[P_SHUFFLE] = p.shuffle_bit ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE;
	ret_params[P_COMPRESSOR] = p.zstd ? BLOSC_ZSTD : BLOSC_ZLIB;
	return true;
}

uint32_t codec_wrap_head(const struct codec_chain *chain, uint32_t mask, size_t elem_size,
			 uint64_t n, uint64_t stored, uint8_t out[CODEC_WRAP_MAX])
{
	struct blosc_wrap_parts p;
	bool shuffled, compressed;
	uint32_t len = HEAD;

	if (!take_apart(chain, elem_size, n, &p) || stored == 0 ||
	    stored > INT32_MAX - CODEC_WRAP_MAX)
		return 0;
	shuffled = p.shuffle_bit & ~mask;
	compressed = p.compress_bit & ~mask;
	if (compressed == (stored == n))
		return 0;
	out[0] = BLOSC_VERSION_FORMAT;
	out[1] = CODEC_FORMAT;
	out[2] = BLOSC_MEMCPYED;
	if (shuffled || compressed) {
		out[2] = NOT_SPLIT | (shuffled ? BLOSC_DOSHUFFLE : 0);
		out[2] |= (uint8_t)((p.zstd ? BLOSC_ZSTD_FORMAT : BLOSC_ZLIB_FORMAT)
				    << COMPRESSOR_SHIFT);
		put_le32(out + HEAD, HEAD + 4);
		put_le32(out + HEAD + 4, (uint32_t)stored);
		len = CODEC_WRAP_MAX;
	}
	out[3] = (uint8_t)p.size;
	put_le32(out + 4, (uint32_t)n);
	put_le32(out + 8, (uint32_t)n);
	put_le32(out + 12, (uint32_t)stored + len);
	return len;
}
