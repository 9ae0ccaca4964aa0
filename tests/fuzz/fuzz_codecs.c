/* fuzz_codecs.c - chains of codecs over arbitrary bytes.
 *
 * Property 1: decoding anything as any chain to any length neither crashes nor writes outside
 * its memory. Property 2: what is encoded or framed decodes to the same bytes, and the framed
 * form is as long as promised. Input: one byte each for the number of filters, mask, element
 * size and mode, two for the decoded length, two for each filter (codec, parameter), then the
 * bytes.
 *
 *   clang -std=c17 -D_GNU_SOURCE -I. -g -O1 -fsanitize=fuzzer,address,undefined \
 *     tests/fuzz/fuzz_codecs.c codecs/[a-z]*.c base/[a-z]*.c -ldeflate -o build/fuzz_codecs */
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "codecs/codec.h"

#define FILTERS_MAX 6

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
	int rc;

	require(out != NULL);
	rc = codec_chain_decode(c, 0, elem_size, z, z_len, out, n, scratch, NULL);
	require(rc == 0 && (n == 0 || memcmp(out, want, n) == 0));
	free(out);
}

static void round_trip(const struct codec_chain *c, size_t elem_size, const uint8_t *in,
		       size_t n, struct codec_scratch *scratch)
{
	size_t framed = (size_t)codec_chain_framed_size(c, n);
	uint8_t *z = malloc(framed + 1);
	struct buf b;

	require(z != NULL);
	require(framed > 0 || n == 0);
	if (framed > 0) {
		require(codec_chain_frame(c, elem_size, in, n, z, NULL) == 0);
		same(c, elem_size, z, framed, in, n, scratch);
	}
	free(z);

	buf_init(&b, (size_t)1 << 24);
	require(codec_chain_encode(c, elem_size, in, n, &b, NULL) == 0);
	same(c, elem_size, b.data, b.len, in, n, scratch);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	struct codec_spec specs[FILTERS_MAX];
	uint32_t params[FILTERS_MAX];
	struct codec_chain chain = {rd_u8(&s) % (FILTERS_MAX + 1), specs};
	uint32_t mask = rd_u8(&s);
	size_t elem_size = rd_u8(&s), out_len;
	bool trip = rd_u8(&s) & 1;
	struct codec_scratch *scratch = codec_scratch_new();
	uint8_t *out;
	int rc;

	require(scratch != NULL);
	out_len = rd_le16(&s);
	for (uint32_t i = 0; i < chain.n; i++) {
		uint32_t id = rd_u8(&s) % (trip ? 3u : 5u);

		params[i] = rd_u8(&s);
		specs[i] = (struct codec_spec){.h5_id = id + 1,
					       .n_params = params[i] != 255,
					       .params = &params[i],
					       .name = ""};
	}
	if (slice_ok(&s) && trip) {
		round_trip(&chain, elem_size, s.p, s.len, scratch);
	} else if (slice_ok(&s)) {
		/* exactly as long as promised, so that the sanitizer sees every byte too far */
		out = malloc(out_len ? out_len : 1);
		require(out != NULL);
		rc = codec_chain_decode(&chain, mask, elem_size, s.p, s.len, out, out_len,
					scratch, NULL);
		require(rc <= 0);
		free(out);
	}
	codec_scratch_free(scratch);
	return 0;
}
