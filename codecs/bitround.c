/* bitround.c - numcodecs' bitround: low bits of floats were rounded away when the array was
 * written. What is stored is what is read, so that encoding loses nothing here either.
 *
 * Parameter: the bits that were kept. */
#include "codecs/codec_int.h"

#include <errno.h>
#include <string.h>

#define KEEP_MAX 52

static void zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			 struct buf *json)
{
	buf_printf(json, ", \"keepbits\": %d",
		   (int)codec_level(spec, 0, 0, KEEP_MAX, KEEP_MAX));
}

static int from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
		     struct err *e)
{
	*ret_n = 1;
	return codec_conf_level(conf, "keepbits", 0, KEEP_MAX, KEEP_MAX, params, e);
}

static int check(const uint8_t *in NZ_UNUSED, size_t in_len, size_t *ret_len,
		 struct err *e NZ_UNUSED)
{
	*ret_len = in_len;
	return 0;
}

static int decode(struct codec_scratch *s NZ_UNUSED, const struct codec_spec *spec NZ_UNUSED,
		  size_t elem_size NZ_UNUSED, const uint8_t *in, size_t in_len, uint8_t *out,
		  size_t cap, size_t *ret_len, struct err *e)
{
	if (in_len > cap)
		return err_set(e, -ERANGE, "bitround: length %zu exceeds %zu", in_len, cap);
	if (in_len > 0)
		memcpy(out, in, in_len);
	*ret_len = in_len;
	return 0;
}

static uint64_t framed_size(uint64_t n)
{
	return n;
}

static void frame(const struct codec_spec *spec NZ_UNUSED, size_t elem_size NZ_UNUSED,
		  const uint8_t *in, size_t n, uint8_t *out)
{
	if (n > 0)
		memcpy(out, in, n);
}

static int encode(struct codec_scratch *s NZ_UNUSED, const struct codec_spec *spec NZ_UNUSED,
		  size_t elem_size NZ_UNUSED, const uint8_t *in, size_t n, struct buf *out,
		  struct err *e)
{
	if (n > 0)
		buf_put(out, in, n);
	return buf_ok(out) ? 0 : err_nomem(e);
}

const struct codec_ops codec_bitround = {
	.name = "bitround",
	.h5_id = CODEC_BITROUND,
	.zarr2_id = "bitround",
	.zarr2_params = zarr2_params,
	.from_zarr = from_zarr,
	.decode = decode,
	.check = check,
	.framed_size = framed_size,
	.frame = frame,
	.encode = encode,
};
