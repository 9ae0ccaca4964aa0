/* SPDX-License-Identifier: BSD-3-Clause */
/* fixedscaleoffset.c - numcodecs' fixedscaleoffset: (value - offset) * scale, rounded, stored as
 * another type. Decoded as stored / scale + offset. Both are computed in the precision of their
 * input type when that is a float, or in a higher one when scale or offset is too large for it,
 * else in doubles. (numcodecs computes with integers where type, scale and offset are whole: the
 * result is the same unless it overflows.)
 *
 * Parameters: the presented type, the stored one, and the bits of offset and scale, low half
 * first. */
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/core/half.h"
#include "base/core/str.h"

enum { P_OFFSET = NUM_ASTYPE + 1, P_SCALE = P_OFFSET + 2, P_N = P_SCALE + 2 };

static double real_at(const struct codec_spec *spec, uint32_t i)
{
	return f64_from_bits(spec->n_params >= P_N
				     ? spec->params[i] | (uint64_t)spec->params[i + 1] << 32
				     : 0);
}

static void fixedscaleoffset_zarr2_params(const struct codec_spec *spec,
					  size_t elem_size NZ_UNUSED, struct buf *json)
{
	buf_puts(json, ", \"scale\": ");
	str_put_double(json, real_at(spec, P_SCALE));
	buf_puts(json, ", \"offset\": ");
	str_put_double(json, real_at(spec, P_OFFSET));
	num_put_pair(json, spec);
}

/* real_from - a required member, as two parameters. */
static int real_from(const struct codec_conf *conf, const char *member, uint32_t *params,
		     struct err *e)
{
	double v;
	uint64_t bits;
	int rc = codec_conf_real(conf, member, NAN, &v, e);

	if (rc)
		return rc;
	if (!isfinite(v))
		return err_set(e, -EBADMSG, "'%s' is missing or not finite", member);
	bits = f64_bits(v);
	params[0] = (uint32_t)bits;
	params[1] = (uint32_t)(bits >> 32);
	return 0;
}

static int fixedscaleoffset_from_zarr(const struct codec_conf *conf, uint32_t *params,
				      uint32_t *ret_n, struct err *e)
{
	int rc = num_pair_from_conf(conf, params, e);

	rc = rc ? rc : real_from(conf, "offset", &params[P_OFFSET], e);
	rc = rc ? rc : real_from(conf, "scale", &params[P_SCALE], e);
	*ret_n = P_N;
	return rc;
}

/* fixedscaleoffset_computed - the two numbers of one direction, in the order of their use, and the
 * precision of each step in bytes. */
struct computed {
	double v[2];
	uint32_t size[2];
};

static struct computed fixedscaleoffset_computed(const struct codec_spec *spec,
						 struct num_type from, uint32_t first,
						 uint32_t second)
{
	struct computed c = {.v = {real_at(spec, first), real_at(spec, second)}};

	c.size[0] = num_wider(from.kind == NUM_FLOAT ? from.size : 8, c.v[0]);
	c.size[1] = num_wider(c.size[0], c.v[1]);
	for (size_t i = 0; i < 2; i++)
		c.v[i] = num_round(c.v[i], c.size[i]);
	return c;
}

static int fixedscaleoffset_decode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	uint8_t *out = c->out;
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	struct computed step = fixedscaleoffset_computed(c->spec, enc, P_SCALE, P_OFFSET);
	double v[NUM_BLOCK];
	size_t n;
	int rc = num_count("fixedscaleoffset", enc, dec, c, &n);

	if (rc)
		return rc;
	for (size_t i = 0, m; (m = num_block(n - i)) > 0;
	     i += m, in += m * enc.size, out += m * dec.size) {
		num_load_real(enc, in, m, v);
		for (size_t k = 0; k < m; k++)
			v[k] = num_round(num_round(v[k] / step.v[0], step.size[0]) + step.v[1],
					 step.size[1]);
		num_store_real(dec, step.size[1], v, m, out);
	}
	return 0;
}

static int fixedscaleoffset_encode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	struct computed step = fixedscaleoffset_computed(c->spec, dec, P_OFFSET, P_SCALE);
	double v[NUM_BLOCK];
	size_t count = 0;
	uint8_t *p = NULL;
	int rc = num_room("fixedscaleoffset", dec, enc, c, &count, &p);

	if (rc)
		return rc;
	for (size_t i = 0, m; (m = num_block(count - i)) > 0;
	     i += m, in += m * dec.size, p += m * enc.size) {
		num_load_real(dec, in, m, v);
		for (size_t k = 0; k < m; k++)
			v[k] = rint(
				num_round(num_round(v[k] - step.v[0], step.size[0]) * step.v[1],
					  step.size[1]));
		num_store_real(enc, step.size[1], v, m, p);
	}
	return 0;
}

/* fixedscaleoffset_prepare - users give offset and scale as doubles, and the stored type. */
static int fixedscaleoffset_prepare(const struct codec_spec *spec, const struct codec_array *a,
				    uint32_t *params, uint32_t *ret_n, struct err *e)
{
	const uint32_t n = P_N - P_OFFSET; /* words of both numbers */
	struct codec_spec made = {.n_params = P_N, .params = params};
	int rc;

	if (spec->n_params < n)
		return err_set(e, -EINVAL,
			       "fixedscaleoffset needs two parameters, offset and scale, as "
			       "doubles: fixedscaleoffset,0d,10d");
	rc = num_of_array("fixedscaleoffset", a, &params[NUM_DTYPE], e);
	rc = rc ? rc : num_of_user(spec, n, params[NUM_DTYPE], &params[NUM_ASTYPE], e);
	if (rc)
		return rc;
	memcpy(params + P_OFFSET, spec->params, n * sizeof(*params));
	*ret_n = P_N;
	if (!isfinite(real_at(&made, P_OFFSET)) || !isfinite(real_at(&made, P_SCALE)))
		return err_set(e, -EINVAL, "fixedscaleoffset: offset or scale is not finite");
	return 0;
}

const struct codec_ops codec_fixedscaleoffset = {
	.name = "fixedscaleoffset",
	.h5_id = CODEC_FIXEDSCALEOFFSET,
	.zarr2_id = "fixedscaleoffset",
	.elements = true,
	.zarr2_params = fixedscaleoffset_zarr2_params,
	.from_zarr = fixedscaleoffset_from_zarr,
	.lossy = true,
	.prepare = fixedscaleoffset_prepare,
	.stored_max = num_stored_max,
	.decode = fixedscaleoffset_decode,
	.encode = fixedscaleoffset_encode,
};
