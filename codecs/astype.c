/* astype.c - numcodecs' astype and quantize: elements stored as another type. What quantize did to
 * the values before cannot be undone.
 *
 * Parameters: the presented type, the stored one, and quantize's digits. */
#include "codecs/np.h"

#include <errno.h>

enum { P_DTYPE, P_ASTYPE, P_DIGITS };

static void astype_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			  struct buf *json)
{
	np_put_member(json, "encode_dtype", np_of(spec, P_ASTYPE));
	np_put_member(json, "decode_dtype", np_of(spec, P_DTYPE));
}

static int astype_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			    struct err *e)
{
	int rc = np_from_conf(conf, "decode_dtype", 0, &params[P_DTYPE], e);

	*ret_n = P_ASTYPE + 1;
	return rc ? rc : np_from_conf(conf, "encode_dtype", 0, &params[P_ASTYPE], e);
}

static void quantize_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			    struct buf *json)
{
	buf_printf(json, ", \"digits\": %d", (int)codec_level(spec, P_DIGITS, -400, 400, 0));
	np_put_member(json, "dtype", np_of(spec, P_DTYPE));
	np_put_member(json, "astype", np_of(spec, P_ASTYPE));
}

static int quantize_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			      struct err *e)
{
	struct codec_spec spec = {.n_params = 2, .params = params};
	int rc = np_from_conf(conf, "dtype", 0, &params[P_DTYPE], e);

	if (!rc)
		rc = np_from_conf(conf, "astype", params[P_DTYPE], &params[P_ASTYPE], e);
	if (!rc)
		rc = codec_conf_level(conf, "digits", -400, 400, 0, &params[P_DIGITS], e);
	if (rc)
		return rc;
	if (np_of(&spec, P_DTYPE).kind != NP_FLOAT || np_of(&spec, P_ASTYPE).kind != NP_FLOAT)
		return err_set(e, -EBADMSG, "quantize: only floating point types have digits");
	*ret_n = P_DIGITS + 1;
	return 0;
}

static uint64_t stored_max(const struct codec_spec *spec, uint64_t n)
{
	return np_stored_max(np_of(spec, P_DTYPE), np_of(spec, P_ASTYPE), n);
}

static int decode(struct codec_scratch *s NZ_UNUSED, const struct codec_spec *spec,
		  size_t elem_size NZ_UNUSED, const uint8_t *in, size_t in_len, uint8_t *out,
		  size_t cap, size_t *ret_len, struct err *e)
{
	struct np_type dec = np_of(spec, P_DTYPE), enc = np_of(spec, P_ASTYPE);
	size_t n;
	int rc = np_count("astype", enc, dec, in_len, cap, &n, ret_len, e);

	if (!rc)
		np_convert(enc, dec, in, n, out);
	return rc;
}

const struct codec_ops codec_astype = {
	.name = "astype",
	.h5_id = CODEC_ASTYPE,
	.zarr2_id = "astype",
	.zarr2_params = astype_params,
	.from_zarr = astype_from_zarr,
	.stored_max = stored_max,
	.decode = decode,
};

const struct codec_ops codec_quantize_zarr2 = {
	.name = "quantize",
	.h5_id = CODEC_QUANTIZE,
	.zarr2_id = "quantize",
	.zarr2_params = quantize_params,
	.from_zarr = quantize_from_zarr,
	.stored_max = stored_max,
	.decode = decode,
};
