/* SPDX-License-Identifier: BSD-3-Clause */
/* lzf.c - LZF, h5py's fast compressor, as an HDF5 filter.
 *
 * A stream consists of runs of up to 32 literal bytes (after a byte with their number less one) and
 * references of 3 to 264 bytes to at most 8192 bytes before. Decoding uses liblzf; encoding does
 * not, because liblzf's output may depend on old content of the stack. h5py stores chunks
 * unfiltered if they do not get shorter; here they become runs of literals, which every decoder
 * accepts, and which are also the framed form.
 *
 * Parameters are those of the HDF5 filter: its revision, liblzf's version, bytes of a chunk.
 * Decoding does not need them.
 *
 * Spec: https://github.com/h5py/h5py/tree/master/lzf (lzf_filter.c, and the format in lzf_c.c). */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <liblzf/lzf.h>
#include <string.h>

#define REVISION 4 /* of h5py's filter */
#define RUN_MAX 32u
#define REF_MIN 3u
#define REF_MAX 264u
#define LOOK 4u     /* bytes that are loaded at once */
#define REF_LONG 7u /* in the three bits of a length: the next byte is added */
#define AWAY_MAX 8192u
#define HASH_BITS 14

enum { P_REVISION, P_VERSION, P_BYTES, P_N };

static int lzf_decode(const struct codec_call *c)
{
	unsigned int room = c->cap < UINT32_MAX ? (unsigned int)c->cap : UINT32_MAX, got;

	*c->ret_len = 0;
	if (c->in_len == 0)
		return 0;
	if (c->in_len > UINT32_MAX)
		return err_set(c->e, -EBADMSG, "lzf: length %zu exceeds %u", c->in_len,
			       UINT32_MAX);
	errno = 0;
	got = lzf_decompress(c->in, (unsigned int)c->in_len, c->out, room);
	if (got == 0 && errno == E2BIG)
		return err_set(c->e, -ERANGE, "lzf: content is larger than %u bytes", room);
	if (got == 0)
		return err_set(c->e, -EBADMSG, "lzf: %zu bytes are not a valid stream",
			       c->in_len);
	*c->ret_len = got;
	return 0;
}

/* ---- runs of literals ---- */

static uint64_t lzf_framed_size(uint64_t n)
{
	return codec_plus(n, n / RUN_MAX + (n % RUN_MAX != 0));
}

/* put_literals - write n bytes as runs; returns the end of the output. */
static uint8_t *put_literals(const uint8_t *in, size_t n, uint8_t *out)
{
	while (n > 0) {
		size_t len = n < RUN_MAX ? n : RUN_MAX;

		*out++ = (uint8_t)(len - 1);
		memcpy(out, in, len);
		out += len;
		in += len;
		n -= len;
	}
	return out;
}

static void lzf_frame(const struct codec_call *c)
{
	(void)put_literals(c->in, c->in_len, c->out);
}

/* ---- encoding ---- */

/* three - three bytes as a number; four can be read. */
static inline uint32_t three(const uint8_t *p)
{
	return get_le32(p) & 0xffffff;
}

static inline uint32_t lzf_hash(uint32_t bytes)
{
	return bytes * 2654435761u >> (32 - HASH_BITS);
}

/* lzf_match - the number of equal bytes, at most n, after the first three. */
static size_t lzf_match(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = REF_MIN;

	for (uint64_t x, y; i + sizeof(x) <= n; i += sizeof(x)) {
		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		if (x != y)
			break;
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* put_reference - write a reference to len bytes at distance `away`. */
static uint8_t *put_reference(size_t len, size_t away, uint8_t *out)
{
	size_t code = len - 2, back = away - 1;

	*out++ = (uint8_t)((code < REF_LONG ? code : REF_LONG) << 5 | back >> 8);
	if (code >= REF_LONG)
		*out++ = (uint8_t)(code - REF_LONG);
	*out++ = (uint8_t)back;
	return out;
}

/* lzf_pack - encode n > 0 bytes to at most framed_size(n) + 1: a reference is shorter than
 * its content by at least the byte that begins the next run. last[hash] is the offset where bytes
 * with that hash were last seen, or 0, which is as valid, because bytes are compared. Returns the
 * end of the output. */
static uint8_t *lzf_pack(const uint8_t *in, size_t n, uint32_t *last, uint8_t *out)
{
	size_t i = 0, from = 0; /* literals since `from` are not written yet */

	memset(last, 0, sizeof(*last) << HASH_BITS);
	while (i + LOOK <= n) {
		uint32_t bytes = three(in + i);
		uint32_t *slot = &last[lzf_hash(bytes)];
		size_t at = *slot, len;

		*slot = (uint32_t)i;
		if (three(in + at) != bytes || i - at - 1 >= AWAY_MAX) { /* or at is i */
			i++;
			continue;
		}
		len = lzf_match(in + at, in + i, n - i < REF_MAX ? n - i : REF_MAX);
		out = put_literals(in + from, i - from, out);
		out = put_reference(len, i - at, out);
		i += len;
		from = i;
		for (size_t k = i - 2; k < i && k + LOOK <= n; k++)
			last[lzf_hash(three(in + k))] = (uint32_t)k;
	}
	return put_literals(in + from, n - from, out);
}

static int lzf_encode(const struct codec_call *c)
{
	size_t start = c->to->len;
	void *last;
	uint8_t *p;

	if (c->in_len == 0)
		return 0;
	if (c->in_len >= UINT32_MAX - UINT32_MAX / RUN_MAX)
		return err_set(c->e, -ERANGE, "lzf: length %zu is too large", c->in_len);
	last = codec_scratch_get(c->scratch, CODEC_SCRATCH_OWN, sizeof(uint32_t) << HASH_BITS);
	p = last ? buf_grow(c->to, (size_t)lzf_framed_size(c->in_len) + 1) : NULL;
	if (!p)
		return err_nomem(c->e);
	c->to->len = start + (size_t)(lzf_pack(c->in, c->in_len, last, p) - p);
	return 0;
}

/* ---- parameters ---- */

/* lzf_prepare - as h5py's filter: it sets the first three and keeps the others. */
static int lzf_prepare(const struct codec_spec *spec, const struct codec_array *a,
		       uint32_t *params, uint32_t *ret_n, struct err *e)
{
	uint64_t bytes = a->elem_size;
	uint32_t n = spec->n_params < P_N ? P_N : spec->n_params;

	if (n > CODEC_PARAMS_MAX)
		return err_set(e, -EINVAL, "lzf: more than %d parameters given",
			       CODEC_PARAMS_MAX);
	if (!u64_product(&bytes, a->chunk, a->rank, UINT32_MAX))
		return err_set(e, -EOPNOTSUPP, "lzf: chunks are larger than %u bytes",
			       UINT32_MAX);
	for (uint32_t i = P_N; i < n; i++)
		params[i] = spec->params[i];
	params[P_REVISION] = REVISION;
	params[P_VERSION] = LZF_VERSION;
	params[P_BYTES] = (uint32_t)bytes;
	*ret_n = n;
	return 0;
}

const struct codec_ops codec_lzf = {
	.name = "lzf",
	.h5_id = CODEC_LZF,
	.prepare = lzf_prepare,
	.stored_max = codec_packed_max,
	.decode = lzf_decode,
	.framed_size = lzf_framed_size,
	.frame = lzf_frame,
	.encode = lzf_encode,
};
