/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_wrap.c - heads that make Blosc buffers of stored chunks, frames of elements without a fixed
 * size, and chunks that are framed without compression.
 *
 * Input: flags, the size of an element, the length of what is stored as it is said to be, then the
 * elements; or, FRAMES, a body of texts.
 *
 * Properties: what is put together from a head and a stored chunk is a Blosc buffer of these
 * elements, whichever filters were skipped; a head is as long as it says; a body that is taken has
 * that many elements, none longer than is said, and each fits where it is cut; the framed form is
 * as long as the formula says and decodes to the same.
 *
 *   make fuzz TIME=60 FUZZ=wrap */
#include "codecs/core/codec.h"
#include "codecs/plugin/plugin.h"
#include "codecs/compress/blosc_wrap.h"
#include "tests/fuzz/fuzz.h"
#include "translate/chunkio/fill_chunk.h"

#define BYTES ((size_t)1 << 20)

enum { ZSTD = 1, SHUFFLED = 2, SKIP = 4, FRAMES = 8, FALSE_LENGTH = 16 };

static struct codec_scratch *scratch;

/* wrapped - head and stored bytes, decoded as what the head makes of them. */
static void wrapped(const uint32_t params[7], const uint8_t *head, size_t n_head,
		    const struct buf *stored, size_t elem, const uint8_t *want, size_t n)
{
	const struct codec_spec blosc = {CODEC_BLOSC, 7, params, ""};
	const struct codec_chain chain = {1, &blosc};
	uint8_t *out = malloc(n), *in = malloc(n_head + stored->len);

	require(out && in);
	memcpy(in, head, n_head);
	memcpy(in + n_head, stored->data, stored->len);
	require(codec_chain_decode(&chain, 0, elem, in, n_head + stored->len, out, n, scratch,
				   NULL) == 0);
	require(memcmp(out, want, n) == 0);
	free(out);
	free(in);
}

/* part_of - the filters of a chain that were not skipped. */
static struct codec_chain part_of(const struct codec_chain *c, uint32_t mask,
				  struct codec_spec out[2])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (!(mask >> i & 1))
			out[n++] = c->specs[i];
	return (struct codec_chain){n, out};
}

static void wraps(struct slice *s, uint8_t flags)
{
	static const uint32_t level = 1;
	size_t elem = 1 + rd_u8(s) % 40;
	uint64_t said = rd_le32(s);
	uint32_t size = (uint32_t)elem, params[7], len, mask = flags & SKIP ? said & 3 : 0;
	struct codec_spec all[2], some[2];
	struct codec_chain chain = {0, all}, did;
	uint8_t head[CODEC_WRAP_MAX];
	struct buf stored;

	if (flags & SHUFFLED)
		all[chain.n++] = (struct codec_spec){CODEC_SHUFFLE, 1, &size, ""};
	all[chain.n++] =
		(struct codec_spec){flags & ZSTD ? CODEC_ZSTD : CODEC_DEFLATE, 1, &level, ""};
	if (!codec_wrap_fits(&chain, elem, s->len, params))
		return;
	len = codec_wrap_head(&chain, mask, elem, s->len, said, head);
	require(len == 0 || len == 16 || len == CODEC_WRAP_MAX);
	if (flags & FALSE_LENGTH)
		return;
	did = part_of(&chain, mask, some);
	buf_init(&stored, BYTES);
	require(codec_chain_encode(&did, elem, s->p, s->len, scratch, &stored, NULL) == 0);
	len = codec_wrap_head(&chain, mask, elem, s->len, stored.len, head);
	if (len > 0)
		wrapped(params, head, len, &stored, elem, s->p, s->len);
	else
		require(did.n > 0 && stored.len >= s->len);
	buf_release(&stored);
}

static void framed(struct slice *s)
{
	static const uint32_t ids[] = {CODEC_DEFLATE, CODEC_SHUFFLE, CODEC_FLETCHER32,
				       CODEC_ZSTD,    CODEC_BLOSC,   CODEC_LZ4,
				       CODEC_GZIP,    CODEC_BZIP2};
	struct codec_spec spec = {ids[rd_u8(s) % ARRAY_LEN(ids)], 0, NULL, ""};
	struct codec_chain chain = {1, &spec};
	uint64_t n = codec_chain_framed_size(&chain, s->len);
	uint8_t *out, *back;

	if (n == 0 || !slice_ok(s))
		return;
	out = malloc((size_t)n);
	back = malloc(s->len ? s->len : 1);
	require(out && back);
	require(codec_chain_frame(&chain, 4, s->p, s->len, out, NULL) == 0);
	require(codec_chain_decode(&chain, 0, 4, out, (size_t)n, back, s->len, scratch, NULL) ==
		0);
	require(s->len == 0 || memcmp(back, s->p, s->len) == 0);
	free(out);
	free(back);
}

static void bodies(struct slice *s)
{
	uint64_t n = rd_u8(s);
	uint32_t size = rd_u8(s), most = 0;
	struct err e = ERR_INIT;
	uint8_t *out;
	int rc;

	if (!slice_ok(s))
		return;
	rc = frame_vlen_check(s->p, s->len, n, &most, &e);
	if (rc) {
		require(rc == -EBADMSG);
		failed_well(rc, &e);
		return;
	}
	require(most <= s->len);
	size += size == 0;
	out = malloc((size_t)(n * size) + 1);
	require(out != NULL);
	out[n * size] = 0xa5;
	frame_fixed(s->p, s->len, n, size, out);
	require(out[n * size] == 0xa5);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	uint8_t flags = rd_u8(&s);

	codec_plugins_off();
	scratch = codec_scratch_new();
	require(scratch != NULL);
	if (flags & FRAMES) {
		if (flags & 1)
			framed(&s);
		else
			bodies(&s);
	} else if (slice_ok(&s)) {
		wraps(&s, flags);
	}
	codec_scratch_free(scratch);
	return 0;
}
