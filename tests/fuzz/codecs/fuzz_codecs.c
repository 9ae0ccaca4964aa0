/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_codecs.c - chains of codecs over arbitrary bytes.
 *
 * Property 1: decoding anything as any chain, to any length or to an unknown one, neither crashes
 * nor writes outside its memory. Property 2: what is encoded or framed decodes to the same bytes,
 * and the framed form is as long as promised. Property 3: what any one filter encodes it decodes to
 * the same length. Input: one byte each for the number of filters, mask, element size and mode, two
 * for the decoded length, 22 for each filter (codec, number of parameters, parameters), then the
 * bytes.
 *
 *   make fuzz TIME=60 FUZZ=codecs */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/cursor.h"
#include "codecs/core/codec.h"
#include "codecs/plugin/plugin.h"
#include "tests/unit/codecs_encode.h"

#define FILTERS_MAX 6
#define PARAMS 20

/* Those that give back what they got come first. */
static const uint32_t ids[] = {
	CODEC_DEFLATE, CODEC_SHUFFLE, CODEC_FLETCHER32, CODEC_GZIP, CODEC_ZSTD, CODEC_BLOSC,
	CODEC_BZIP2, CODEC_LZ4, CODEC_LZ4_HDF5, CODEC_CRC32C, CODEC_CRC32C_ZARR2, CODEC_CRC32,
	CODEC_ADLER32, CODEC_SZIP, CODEC_LZF, CODEC_BITSHUFFLE,
	/* slow, lossy, or of some lengths only */
	CODEC_BITROUND, CODEC_NBIT, CODEC_SCALEOFFSET, CODEC_LZMA, CODEC_DELTA,
	CODEC_FIXEDSCALEOFFSET, CODEC_QUANTIZE, CODEC_ASTYPE, CODEC_PACKBITS, CODEC_BITGROOM,
	CODEC_GRANULARBR, CODEC_PACKBITS_ZARR3};
#define N_LOSSLESS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* same - decode what was encoded and compare. */
static void same(const struct codec_chain *c, size_t elem_size, const uint8_t *z, size_t z_len,
		 const uint8_t *want, size_t n, struct codec_scratch *scratch)
{
	uint8_t *out = malloc(n + 1);
	const uint8_t *any;
	size_t len;

	require(out != NULL);
	require(codec_chain_decode(c, 0, elem_size, z, z_len, out, n, scratch, NULL) == 0);
	require(n == 0 || memcmp(out, want, n) == 0);
	require(codec_chain_decode_any(c, elem_size, z, z_len, n, scratch, &any, &len, NULL) ==
		0);
	require(len == n && (n == 0 || memcmp(any, want, n) == 0));
	free(out);
}

static void round_trip(const struct codec_chain *c, size_t elem_size, const uint8_t *in,
		       size_t n, struct codec_scratch *scratch)
{
	size_t framed = (size_t)codec_chain_framed_size(c, n);
	uint8_t *z = malloc(framed + 1);
	struct buf b;
	int rc;

	require(z != NULL);
	if (framed > 0) {
		require(codec_chain_frame(c, elem_size, in, n, z, NULL) == 0);
		same(c, elem_size, z, framed, in, n, scratch);
	}
	free(z);

	buf_init(&b, (size_t)1 << 24);
	rc = encode_chain(c, elem_size, in, n, &b, NULL);
	require(rc == 0 || rc == -EOPNOTSUPP);
	if (rc == 0)
		same(c, elem_size, b.data, b.len, in, n, scratch);
	buf_release(&b);
}

/* decode - anything, into memory exactly as long as promised, so that the sanitizer sees every
 * byte too far. */
static void decode(const struct codec_chain *c, uint32_t mask, size_t elem_size,
		   const uint8_t *in, size_t n, size_t out_len, struct codec_scratch *scratch)
{
	uint8_t *out = malloc(out_len ? out_len : 1);
	const uint8_t *any;
	size_t len = 0;
	int rc;

	require(out != NULL);
	rc = codec_chain_decode(c, mask, elem_size, in, n, out, out_len, scratch, NULL);
	require(rc <= 0 && rc != -ERANGE);
	rc = codec_chain_decode_any(c, elem_size, in, n, out_len, scratch, &any, &len, NULL);
	require(rc < 0 || (rc == 0 && len <= out_len));
	free(out);
}

/* szip_param - one that is mostly possible: bits per pixel and pixels per scanline have few. */
static uint32_t szip_param(uint32_t k, uint8_t b)
{
	static const uint32_t bits[] = {8, 16, 32, 64};

	switch (k) {
	case 1:
		return b % 20 * 2;
	case 2:
		return b < 200 ? bits[b % 4] : (uint32_t)b - 199;
	case 3:
		return b < 100 ? b : b * 17u;
	default:
		return b;
	}
}

/* encode - anything with one filter; what it gives is decoded again. */
static void encode(const struct codec_chain *c, size_t elem_size, const uint8_t *in, size_t n,
		   struct codec_scratch *scratch)
{
	uint8_t *out = malloc(n ? n : 1);
	struct buf b;

	require(out != NULL);
	buf_init(&b, (size_t)1 << 24);
	if (c->n == 1 && c->specs[0].h5_id != CODEC_LZMA &&
	    codec_chain_encode(c, elem_size, in, n, scratch, &b, NULL) == 0)
		require(codec_chain_decode(c, 0, elem_size, b.data, b.len, out, n, scratch,
					   NULL) == 0);
	buf_release(&b);
	free(out);
}

/* param_of - a byte as a parameter: a small number, or a type as filters that compute pack it;
 * n-bit counts its parameters in the first one. */
static uint32_t param_of(uint32_t id, uint32_t k, uint32_t n, uint8_t b)
{
	if (id == CODEC_NBIT && k == 0 && b < 250)
		return n;
	if (id == CODEC_SZIP)
		return szip_param(k, b);
	if (id == CODEC_BITSHUFFLE) /* elements of a block: mostly a multiple of 8 */
		return k == 3 && b > 20 ? b * 8u : b % 20;
	if (id < CODEC_DELTA)
		return b;
	return (uint32_t) "biuf"[b & 3] << 8 | 1u << (b >> 2 & 3) | (uint32_t)(b & 16) << 12;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	struct codec_spec specs[FILTERS_MAX];
	uint32_t params[FILTERS_MAX][PARAMS];
	struct codec_chain chain = {rd_u8(&s) % (FILTERS_MAX + 1), specs};
	uint32_t mask = rd_u8(&s);
	size_t elem_size = rd_u8(&s), out_len;
	bool trip = rd_u8(&s) & 1;
	struct codec_scratch *scratch = codec_scratch_new();

	codec_plugins_off();
	require(scratch != NULL);
	out_len = rd_le16(&s);
	for (uint32_t i = 0; i < chain.n; i++) {
		uint32_t id =
			ids[rd_u8(&s) % (trip ? N_LOSSLESS : sizeof(ids) / sizeof(ids[0]))];
		uint32_t n = rd_u8(&s);

		n = id == CODEC_SCALEOFFSET && n > PARAMS ? PARAMS : n % (PARAMS + 1);
		for (uint32_t k = 0; k < PARAMS; k++)
			params[i][k] = param_of(id, k, n, rd_u8(&s));
		specs[i] = (struct codec_spec){
			.h5_id = id, .n_params = n, .params = params[i], .name = ""};
	}
	if (slice_ok(&s) && trip)
		round_trip(&chain, elem_size, s.p, s.len, scratch);
	else if (slice_ok(&s)) {
		decode(&chain, mask, elem_size, s.p, s.len, out_len, scratch);
		encode(&chain, elem_size, s.p, s.len, scratch);
	}
	codec_scratch_free(scratch);
	return 0;
}
