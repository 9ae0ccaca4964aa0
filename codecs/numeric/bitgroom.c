/* SPDX-License-Identifier: BSD-3-Clause */
/* bitgroom.c - filters that clear bits of floats before compression: BitGroom (32022) and Granular
 * BitRound (32023) of the Community Codec Repository, BitRound (32032) of the HDF Group's plugins.
 * Decoding changes nothing.
 *
 * Parameters: digits, bytes of an element, whether there is a fill value, and its two words, the
 * lower one first. Users give the digits alone. Spec: https://github.com/ccr/ccr hdf5_plugins; the
 * HDF Group's list of registered filters. */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codecs/numeric/quant.h"

#define N_PARAMS 5
#define DIGITS_DEFAULT 3
#define DIGITS_MAX 16 /* of both plugins, whatever the type */

/* bitgroom_prepare - the plugins take the stored bytes for numbers in the byte order of the
 * machine: in big-endian arrays they would round the wrong bits. */
static int bitgroom_prepare(const struct codec_spec *spec, const struct codec_array *a,
			    uint32_t *params, uint32_t *ret_n, struct err *e)
{
	const char *name = spec->h5_id == CODEC_BITGROOM ? "bitgroom" : "granularbr";
	const uint32_t digits = spec->n_params > 0 ? spec->params[0] : DIGITS_DEFAULT;

	if (a->class != CODEC_FLOAT || (a->elem_size != 4 && a->elem_size != 8))
		return err_set(e, -EOPNOTSUPP,
			       "%s is for floating-point numbers of 4 or 8 bytes", name);
	if (a->big_endian)
		return err_set(e, -EOPNOTSUPP, "%s is for little-endian floating-point numbers",
			       name);
	if (digits < 1 || digits > DIGITS_MAX)
		return err_set(e, -EINVAL, "%s: %" PRIu32 " digits given, allowed are 1 to %d",
			       name, digits, DIGITS_MAX);

	memset(params, 0, N_PARAMS * sizeof(*params));
	params[0] = digits;
	params[1] = a->elem_size;
	params[2] = a->fill != NULL;
	if (a->fill) {
		params[3] = get_le32(a->fill);
		params[4] = a->elem_size == 8 ? get_le32(a->fill + 4) : 0;
	}
	*ret_n = N_PARAMS;
	return 0;
}

static int bitgroom_encode(const struct codec_call *c)
{
	size_t elem_size = c->elem_size;
	const bool groom = c->spec->h5_id == CODEC_BITGROOM;
	const uint32_t *p = c->spec->params;
	struct codec_quant q = {.mode = groom ? CODEC_QUANT_BITGROOM : CODEC_QUANT_GRANULARBR,
				.digits = c->spec->n_params > 0 ? p[0] : DIGITS_DEFAULT};
	uint8_t fill[8] = {0}, *data;

	if (c->spec->n_params > 1)
		elem_size = p[1];
	if ((elem_size != 4 && elem_size != 8) || q.digits < 1 || q.digits > DIGITS_MAX)
		return err_set(c->e, -EOPNOTSUPP,
			       "filter %" PRIu32 ": %" PRIu32
			       " digits for elements of %zu bytes are not supported",
			       c->spec->h5_id, q.digits, elem_size);
	for (uint32_t i = 3; i < c->spec->n_params && i < N_PARAMS; i++)
		put_le32(fill + (size_t)4 * (i - 3), p[i]);

	data = c->in_len > 0 ? buf_grow(c->to, c->in_len) : NULL;
	if (c->in_len > 0 && !data)
		return err_nomem(c->e);
	if (c->in_len > 0)
		memcpy(data, c->in, c->in_len);
	codec_quantize(&q, elem_size, false, c->spec->n_params > 2 && p[2] ? fill : NULL, data,
		       c->in_len / elem_size);
	return 0;
}

#define ROUNDING(variable, text, id)                                                           \
	const struct codec_ops variable = {                                                    \
		.name = (text),                                                                \
		.h5_id = (id),                                                                 \
		.lossy = true,                                                                 \
		.prepare = bitgroom_prepare,                                                   \
		CODEC_IDENTITY,                                                                \
		.encode = bitgroom_encode,                                                     \
	}

ROUNDING(codec_bitgroom, "bitgroom", CODEC_BITGROOM);
ROUNDING(codec_granularbr, "granularbr", CODEC_GRANULARBR);

/* Chunks of this filter are decoded only: an encoder would have to break ties to even, as the
 * plugin does. */
const struct codec_ops codec_bitround_hdf5 = {
	.name = "bitround",
	.h5_id = 32032,
	.lossy = true,
	CODEC_IDENTITY,
};
