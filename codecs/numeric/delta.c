/* SPDX-License-Identifier: BSD-3-Clause */
/* delta.c - numcodecs' delta: each element is stored as its difference from the one before, the
 * first unchanged.
 *
 * The sum runs in the type that numpy's cumsum takes for both types: wrapping integers, or floats
 * rounded after each step.
 *
 * Parameters: the presented type, the stored one. */
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <inttypes.h>

enum { P_N = NUM_ASTYPE + 1 };

static void delta_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			       struct buf *json)
{
	num_put_pair(json, spec);
}

static int delta_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			   struct err *e)
{
	struct codec_spec spec = {.n_params = P_N, .params = params};
	int rc = num_pair_from_conf(conf, params, e);

	if (rc)
		return rc;
	if (num_of(&spec, NUM_DTYPE).kind == NUM_BOOL || num_of(&spec, NUM_ASTYPE).kind == NUM_BOOL)
		return err_set(e, -EOPNOTSUPP, "delta: booleans are not supported");
	*ret_n = P_N;
	return 0;
}

/* delta_float_for - bytes of the float that holds all numbers of a type, in numpy. */
static uint32_t delta_float_for(struct num_type t)
{
	return t.kind == NUM_FLOAT ? t.size : t.size == 1 ? 2 : t.size == 2 ? 4 : 8;
}

/* sum_size - bytes of the float in which the sum runs; 0: integers. */
static uint32_t sum_size(struct num_type a, struct num_type b)
{
	bool floats = a.kind == NUM_FLOAT || b.kind == NUM_FLOAT;
	bool mixed = a.kind != b.kind && ((a.kind == NUM_UINT && a.size == 8) ||
					  (b.kind == NUM_UINT && b.size == 8));
	uint32_t x = delta_float_for(a), y = delta_float_for(b);

	if (!floats && !mixed)
		return 0;
	return x > y ? x : y;
}

static void sum_integers(struct num_type enc, struct num_type dec, const uint8_t *in, size_t n,
			 uint8_t *out)
{
	uint64_t v[NUM_BLOCK], sum = 0;

	for (size_t i = 0, m; (m = num_block(n - i)) > 0;
	     i += m, in += m * enc.size, out += m * dec.size) {
		num_load_bits(enc, in, m, v);
		for (size_t k = 0; k < m; k++)
			v[k] = sum += v[k];
		num_store_bits(dec, true, v, m, out);
	}
}

static void sum_reals(struct num_type enc, struct num_type dec, uint32_t size,
		      const uint8_t *in, size_t n, uint8_t *out)
{
	double v[NUM_BLOCK], sum = -0.0; /* the identity of addition, also for -0 */

	for (size_t i = 0, m; (m = num_block(n - i)) > 0;
	     i += m, in += m * enc.size, out += m * dec.size) {
		num_load_real(enc, in, m, v);
		for (size_t k = 0; k < m; k++)
			v[k] = sum = num_round(sum + v[k], size);
		num_store_real(dec, size, v, m, out);
	}
}

static int delta_decode(const struct codec_call *c)
{
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	uint32_t size = sum_size(enc, dec);
	size_t n;
	int rc = num_count("delta", enc, dec, c, &n);

	if (rc)
		return rc;
	if (size > 0)
		sum_reals(enc, dec, size, c->in, n, c->out);
	else
		sum_integers(enc, dec, c->in, n, c->out);
	return 0;
}

/* ---- encoding ---- */

/* first - convert the first element as numpy assigns a scalar: unlike in whole arrays, Python
 * truncates a number to a signed integer, and rejects NaN and numbers beyond 64 bits. */
static int first(struct num_type dec, struct num_type enc, const uint8_t *in, uint8_t *out,
		 struct err *e)
{
	uint64_t bits;
	double v;

	if (dec.kind == NUM_FLOAT) {
		num_load_real(dec, in, 1, &v);
		if (enc.kind == NUM_FLOAT || (enc.kind == NUM_UINT && enc.size != 4)) {
			num_store_real(enc, dec.size, &v, 1, out);
			return 0;
		}
		if (enc.kind == NUM_INT && !(v >= -0x1p63 && v < 0x1p63))
			return err_set(e, -EOPNOTSUPP,
				       "delta: the first element %g is not an integer", v);
		bits = v >= -0x1p63 && v < 0x1p63 ? (uint64_t)(int64_t)v : (uint64_t)INT64_MIN;
	} else {
		num_load_bits(dec, in, 1, &bits);
		if (enc.kind == NUM_INT && dec.kind == NUM_UINT && bits > INT64_MAX)
			return err_set(e, -EOPNOTSUPP,
				       "delta: the first element %" PRIu64 " is too large",
				       bits);
	}
	num_store_bits(enc, dec.kind != NUM_UINT, &bits, 1, out);
	return 0;
}

/* delta_wrap - a difference modulo the range of the type. */
static uint64_t delta_wrap(struct num_type t, uint64_t v)
{
	unsigned int unused = 64 - 8 * t.size;

	return t.kind == NUM_INT ? (uint64_t)((int64_t)(v << unused) >> unused)
				 : v << unused >> unused;
}

/* differences - subtract from n elements the one before each of them; `in` begins with it. */
static void differences(struct num_type dec, struct num_type enc, const uint8_t *in, size_t n,
			uint8_t *out)
{
	uint64_t v[NUM_BLOCK + 1];
	double r[NUM_BLOCK + 1];

	for (size_t i = 0, m; i < n; i += m, in += m * dec.size, out += m * enc.size) {
		m = n - i < NUM_BLOCK - 1 ? n - i : NUM_BLOCK - 1;

		if (dec.kind == NUM_FLOAT) {
			num_load_real(dec, in, m + 1, r);
			for (size_t k = 0; k < m; k++)
				r[k] = num_round(r[k + 1] - r[k], dec.size);
			num_store_real(enc, dec.size, r, m, out);
		} else {
			num_load_bits(dec, in, m + 1, v);
			for (size_t k = 0; k < m; k++)
				v[k] = delta_wrap(dec, v[k + 1] - v[k]);
			num_store_bits(enc, dec.kind == NUM_INT, v, m, out);
		}
	}
}

static int delta_encode(const struct codec_call *c)
{
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	size_t at = c->to->len, count = 0;
	uint8_t *p = NULL;
	int rc = num_room("delta", dec, enc, c, &count, &p);

	if (rc || count == 0)
		return rc;
	rc = first(dec, enc, c->in, p, c->e);
	if (rc)
		c->to->len = at;
	else
		differences(dec, enc, c->in, count - 1, p + enc.size);
	return rc;
}

/* delta_prepare - users give the stored type, or nothing. */
static int delta_prepare(const struct codec_spec *spec, const struct codec_array *a,
			 uint32_t *params, uint32_t *ret_n, struct err *e)
{
	int rc = num_of_array("delta", a, &params[NUM_DTYPE], e);

	*ret_n = P_N;
	return rc ? rc : num_of_user(spec, 0, params[NUM_DTYPE], &params[NUM_ASTYPE], e);
}

const struct codec_ops codec_delta = {
	.name = "delta",
	.h5_id = CODEC_DELTA,
	.zarr2_id = "delta",
	.elements = true,
	.zarr2_params = delta_zarr2_params,
	.from_zarr = delta_from_zarr,
	.prepare = delta_prepare,
	.stored_max = num_stored_max,
	.decode = delta_decode,
	.encode = delta_encode,
};
