/* SPDX-License-Identifier: BSD-3-Clause */
/* bitround.c - numcodecs' bitround: rounds floats to fewer bits, to nearest, ties to even, so that
 * the low bits are zeros for a compressor. Decoding changes nothing.
 *
 * Parameters: the bits that are kept; the type of the elements, 0 when it is not known: then
 * encoding is not supported. */
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define KEEP_MAX 52

enum { P_KEEP, P_TYPE, P_N };

/* mantissa - bits after the point of a float. */
static uint32_t mantissa(struct num_type t)
{
	return t.size == 2 ? 10 : t.size == 4 ? 23 : 52;
}

static void bitround_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
				  struct buf *json)
{
	buf_printf(json, ", \"keepbits\": %d",
		   (int)codec_level(spec, 0, 0, KEEP_MAX, KEEP_MAX));
}

static int bitround_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			      struct err *e)
{
	struct err ignored = ERR_INIT; /* only an encoder needs the type */

	*ret_n = P_N;
	params[P_TYPE] = 0;
	if (conf->array && conf->array->class == CODEC_FLOAT &&
	    num_of_array("bitround", conf->array, &params[P_TYPE], &ignored))
		params[P_TYPE] = 0;
	return codec_conf_level(conf, "keepbits", 0, KEEP_MAX, KEEP_MAX, &params[P_KEEP], e);
}

/* round_all - round n elements from in to out, ties to even. NaNs and infinities are not treated
 * specially, as in numcodecs. */
static void round_all(struct num_type t, uint32_t keep, const uint8_t *in, size_t n,
		      uint8_t *out)
{
	const struct num_type raw = {NUM_UINT, t.size, t.big};
	const uint32_t drop = mantissa(t) - keep;
	const uint64_t half = ((uint64_t)1 << (drop - 1)) - 1;
	uint64_t v[NUM_BLOCK];

	for (size_t i = 0, m; (m = num_block(n - i)) > 0;
	     i += m, in += m * t.size, out += m * t.size) {
		num_load_bits(raw, in, m, v);
		for (size_t k = 0; k < m; k++)
			v[k] = (v[k] + (v[k] >> drop & 1) + half) >> drop << drop;
		num_store_bits(raw, false, v, m, out);
	}
}

static int bitround_encode(const struct codec_call *c)
{
	const struct num_type t = num_of(c->spec, P_TYPE);
	const uint32_t keep = (uint32_t)codec_level(c->spec, P_KEEP, 0, KEEP_MAX, KEEP_MAX);
	size_t count = 0;
	uint8_t *p = NULL;
	int rc;

	if (t.kind != NUM_FLOAT || keep > mantissa(t))
		return err_set(
			c->e, -EOPNOTSUPP,
			"bitround: the elements are not floating-point numbers with %" PRIu32
			" mantissa bits",
			keep);
	rc = num_room("bitround", t, t, c, &count, &p);
	if (rc || count == 0)
		return rc;
	if (keep < mantissa(t))
		round_all(t, keep, c->in, count, p);
	else
		memcpy(p, c->in, c->in_len);
	return 0;
}

static int bitround_prepare(const struct codec_spec *spec, const struct codec_array *a,
			    uint32_t *params, uint32_t *ret_n, struct err *e)
{
	struct codec_spec made = {.n_params = P_N, .params = params};
	int rc = num_of_array("bitround", a, &params[P_TYPE], e);

	if (rc)
		return rc;
	if (a->class != CODEC_FLOAT)
		return err_set(e, -EOPNOTSUPP, "bitround is for floating-point numbers only");
	if (spec->n_params < 1 || spec->params[P_KEEP] > mantissa(num_of(&made, P_TYPE)))
		return err_set(e, -EINVAL,
			       "bitround needs a parameter: the number of bits to keep, at "
			       "most %" PRIu32,
			       mantissa(num_of(&made, P_TYPE)));
	params[P_KEEP] = spec->params[P_KEEP];
	*ret_n = P_N;
	return 0;
}

const struct codec_ops codec_bitround = {
	.name = "bitround",
	.h5_id = CODEC_BITROUND,
	.zarr2_id = "bitround",
	.elements = true,
	.zarr2_params = bitround_zarr2_params,
	.lossy = true,
	.from_zarr = bitround_from_zarr,
	.prepare = bitround_prepare,
	CODEC_IDENTITY,
	.encode = bitround_encode,
};
