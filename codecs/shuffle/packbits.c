/* SPDX-License-Identifier: BSD-3-Clause */
/* packbits.c - numcodecs' packbits: booleans as bits, the first one highest, after a byte with the
 * number of unused bits in the last byte. */
#include "codecs/core/codec_impl.h"

#include <errno.h>

static uint64_t packbits_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return 1 + n / 8 + (n % 8 != 0);
}

static int packbits_decode(struct codec_scratch *s NZ_UNUSED,
			   const struct codec_spec *spec NZ_UNUSED, size_t elem_size NZ_UNUSED,
			   const uint8_t *in, size_t in_len, uint8_t *out, size_t cap,
			   size_t *ret_len, struct err *e)
{
	size_t n;

	if (in_len < 1)
		return err_set(e, -EBADMSG, "packbits: the chunk is empty");
	if (in[0] > 7 || (in[0] > 0 && in_len == 1))
		return err_set(e, -EBADMSG, "packbits: %u padding bits do not fit %zu bytes",
			       in[0], in_len - 1);
	if (in_len - 1 > SIZE_MAX / 8)
		return err_set(e, -ERANGE, "packbits: length %zu is too large", in_len);
	n = (in_len - 1) * 8 - in[0];
	if (n > cap)
		return err_set(e, -ERANGE, "packbits: %zu booleans exceed %zu", n, cap);
	for (size_t i = 0; i < n; i++)
		out[i] = in[1 + i / 8] >> (7 - i % 8) & 1;
	*ret_len = n;
	return 0;
}

static int packbits_encode(struct codec_scratch *s NZ_UNUSED,
			   const struct codec_spec *spec NZ_UNUSED, size_t elem_size NZ_UNUSED,
			   const uint8_t *in, size_t n, struct buf *out, struct err *e)
{
	uint8_t *p = buf_grow(out, (size_t)packbits_stored_max(NULL, n));

	if (!p)
		return err_nomem(e);
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
