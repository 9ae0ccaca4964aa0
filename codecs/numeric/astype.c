/* SPDX-License-Identifier: BSD-3-Clause */
/* astype.c - numcodecs' astype and quantize: elements stored as another type. quantize first rounds
 * them to a multiple of a power of two that is finer than the last digit kept; decoding cannot undo
 * this.
 *
 * Parameters: the presented type, the stored one, and quantize's digits. */
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <math.h>

enum { P_DIGITS = NUM_ASTYPE + 1 };

static void astype_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			  struct buf *json)
{
	num_put_member(json, "encode_dtype", num_of(spec, NUM_ASTYPE));
	num_put_member(json, "decode_dtype", num_of(spec, NUM_DTYPE));
}

static int astype_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			    struct err *e)
{
	int rc = num_from_conf(conf, "decode_dtype", 0, &params[NUM_DTYPE], e);

	*ret_n = NUM_ASTYPE + 1;
	return rc ? rc : num_from_conf(conf, "encode_dtype", 0, &params[NUM_ASTYPE], e);
}

static void quantize_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			    struct buf *json)
{
	buf_printf(json, ", \"digits\": %d", (int)codec_level(spec, P_DIGITS, -400, 400, 0));
	num_put_pair(json, spec);
}

static int quantize_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			      struct err *e)
{
	struct codec_spec spec = {.n_params = 2, .params = params};
	int rc = num_pair_from_conf(conf, params, e);

	rc = rc ? rc : codec_conf_level(conf, "digits", -400, 400, 0, &params[P_DIGITS], e);
	if (rc)
		return rc;
	if (num_of(&spec, NUM_DTYPE).kind != NUM_FLOAT ||
	    num_of(&spec, NUM_ASTYPE).kind != NUM_FLOAT)
		return err_set(e, -EBADMSG,
			       "quantize: the elements are not floating-point numbers");
	*ret_n = P_DIGITS + 1;
	return 0;
}

static int astype_decode(const struct codec_call *c)
{
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	size_t n;
	int rc = num_count("astype", enc, dec, c, &n);

	if (!rc)
		num_convert(enc, dec, c->in, n, c->out);
	return rc;
}

/* ---- encoding ---- */

static int astype_encode(const struct codec_call *c)
{
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	size_t count = 0;
	uint8_t *p = NULL;
	int rc = num_room("astype", dec, enc, c, &count, &p);

	if (!rc)
		num_convert(dec, enc, c->in, count, p);
	return rc;
}

/* scale_of - numcodecs' power of two for a number of digits, by logarithms as in numcodecs; 0 when
 * there is none. */
static double scale_of(int32_t digits)
{
	double precision = pow(10.0, -(double)digits), exponent;

	if (!(precision > 0) || !isfinite(precision))
		return 0;
	exponent = log(precision) / log(10.0);
	exponent = exponent < 0 ? floor(exponent) : ceil(exponent);
	precision = pow(10.0, -exponent);
	if (!(precision > 0) || !isfinite(precision))
		return 0;
	precision = pow(2.0, ceil(log(precision) / log(2.0)));
	return isfinite(precision) ? precision : 0;
}

static int quantize_encode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	struct num_type dec = num_of(c->spec, NUM_DTYPE), enc = num_of(c->spec, NUM_ASTYPE);
	int32_t digits = codec_level(c->spec, P_DIGITS, -400, 400, 0);
	double scale = scale_of(digits), v[NUM_BLOCK];
	uint32_t size = num_wider(dec.size, scale);
	size_t count = 0;
	uint8_t *p = NULL;
	int rc;

	if (scale == 0 || dec.kind != NUM_FLOAT)
		return err_set(c->e, -EOPNOTSUPP,
			       "quantize: a float of this size cannot keep %d digits",
			       (int)digits);
	rc = num_room("quantize", dec, enc, c, &count, &p);
	if (rc)
		return rc;
	scale = num_round(scale, size);
	for (size_t i = 0, m; (m = num_block(count - i)) > 0;
	     i += m, in += m * dec.size, p += m * enc.size) {
		num_load_real(dec, in, m, v);
		for (size_t k = 0; k < m; k++)
			v[k] = num_round(rint(num_round(scale * v[k], size)) / scale, size);
		num_store_real(enc, size, v, m, p);
	}
	return 0;
}

/* astype_prepare - users give the stored type. */
static int astype_prepare(const struct codec_spec *spec, const struct codec_array *a,
			  uint32_t *params, uint32_t *ret_n, struct err *e)
{
	int rc = num_of_array("astype", a, &params[NUM_DTYPE], e);

	if (!rc && spec->n_params < 1)
		return err_set(e, -EINVAL, "astype needs a parameter: the data type to store");
	*ret_n = NUM_ASTYPE + 1;
	return rc ? rc : num_of_user(spec, 0, params[NUM_DTYPE], &params[NUM_ASTYPE], e);
}

/* quantize_prepare - users give digits and the stored type. */
static int quantize_prepare(const struct codec_spec *spec, const struct codec_array *a,
			    uint32_t *params, uint32_t *ret_n, struct err *e)
{
	struct codec_spec made = {.n_params = NUM_ASTYPE + 1, .params = params};
	int rc;

	if (spec->n_params < 1 || scale_of((int32_t)spec->params[0]) == 0)
		return err_set(e, -EINVAL, "quantize needs a parameter: the number of digits");
	rc = num_of_array("quantize", a, &params[NUM_DTYPE], e);
	rc = rc ? rc : num_of_user(spec, 1, params[NUM_DTYPE], &params[NUM_ASTYPE], e);
	if (rc)
		return rc;
	if (a->class != CODEC_FLOAT)
		return err_set(e, -EOPNOTSUPP, "quantize is for floating-point numbers only");
	if (num_of(&made, NUM_ASTYPE).kind != NUM_FLOAT)
		return err_set(e, -EINVAL, "quantize can store floating-point types only");
	params[P_DIGITS] = spec->params[0];
	*ret_n = P_DIGITS + 1;
	return 0;
}

const struct codec_ops codec_astype = {
	.name = "astype",
	.h5_id = CODEC_ASTYPE,
	.zarr2_id = "astype",
	.elements = true,
	.zarr2_params = astype_params,
	.from_zarr = astype_from_zarr,
	.lossy = true,
	.prepare = astype_prepare,
	.stored_max = num_stored_max,
	.decode = astype_decode,
	.encode = astype_encode,
};

const struct codec_ops codec_quantize_zarr2 = {
	.name = "quantize",
	.h5_id = CODEC_QUANTIZE,
	.zarr2_id = "quantize",
	.elements = true,
	.zarr2_params = quantize_params,
	.from_zarr = quantize_from_zarr,
	.lossy = true,
	.prepare = quantize_prepare,
	.stored_max = num_stored_max,
	.decode = astype_decode,
	.encode = quantize_encode,
};
