/* SPDX-License-Identifier: BSD-3-Clause */
/* packbits.c - numcodecs' packbits: booleans as bits, the first one highest, after a byte with the
 * number of unused bits in the last byte. */
#include "codecs/core/codec_impl.h"

#include <errno.h>

static uint64_t packbits_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return 1 + n / 8 + (n % 8 != 0);
}

static int packbits_decode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	uint8_t *out = c->out;
	size_t n;

	if (c->in_len < 1)
		return err_set(c->e, -EBADMSG, "packbits: the chunk is empty");
	if (in[0] > 7 || (in[0] > 0 && c->in_len == 1))
		return err_set(c->e, -EBADMSG, "packbits: %u padding bits do not fit %zu bytes",
			       in[0], c->in_len - 1);
	if (c->in_len - 1 > SIZE_MAX / 8)
		return err_set(c->e, -ERANGE, "packbits: length %zu is too large", c->in_len);
	n = (c->in_len - 1) * 8 - in[0];
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "packbits: %zu booleans exceed %zu", n, c->cap);
	for (size_t i = 0; i < n; i++)
		out[i] = in[1 + i / 8] >> (7 - i % 8) & 1;
	*c->ret_len = n;
	return 0;
}

static int packbits_encode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	const size_t n = c->in_len;
	uint8_t *p = buf_grow(c->to, (size_t)packbits_stored_max(NULL, n));

	if (!p)
		return err_nomem(c->e);
	*p = (uint8_t)((8 - n % 8) % 8);
	for (size_t i = 0; i < n; i++) {
		p += i % 8 == 0;
		*p = (uint8_t)((i % 8 ? *p : 0) | (in[i] != 0) << (7 - i % 8));
	}
	return 0;
}

const struct codec_ops codec_packbits = {
	.name = "packbits",
	.h5_id = CODEC_PACKBITS,
	.zarr2_id = "packbits",
	.elements = true,
	.stored_max = packbits_stored_max,
	.decode = packbits_decode,
	.encode = packbits_encode,
};
