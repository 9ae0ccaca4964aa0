/* SPDX-License-Identifier: BSD-3-Clause */
/* checksum.c - four bytes of checksum with the data: crc32c, crc32 and adler32, little-endian.
 *
 * Zarr v3's crc32c always follows the data, so that it is checked in place. numcodecs' codecs have
 * it before the data, except for crc32c; "location" overrides this.
 *
 * Spec: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/; RFC 3720 B.4 (crc32c); RFC
 * 1950 (adler32), RFC 1952 (crc32). */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

#define SUM 4 /* bytes */

enum { AT_START, AT_END };

/* checksum_sum_of - the checksum of a codec. */
static uint32_t checksum_sum_of(uint32_t id, const uint8_t *p, size_t n)
{
	switch (id) {
	case CODEC_CRC32:
		return libdeflate_crc32(0, n ? p : NULL, n);
	case CODEC_ADLER32:
		return libdeflate_adler32(1, n ? p : NULL, n);
	default:
		return codec_crc32c_sum(0, p, n);
	}
}

static bool at_end(const struct codec_spec *spec)
{
	if (spec->h5_id == CODEC_CRC32C || spec->n_params == 0)
		return spec->h5_id == CODEC_CRC32C || spec->h5_id == CODEC_CRC32C_ZARR2;
	return spec->params[0] == AT_END;
}

static void checksum_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
				  struct buf *json)
{
	/* readers before numcodecs 0.14 know no location, and expect crc32 and adler32 before the
	 * data */
	if (at_end(spec) != (spec->h5_id == CODEC_CRC32C_ZARR2))
		buf_printf(json, ", \"location\": \"%s\"", at_end(spec) ? "end" : "start");
}

static int location(const struct codec_conf *conf, const char *missing, uint32_t *params,
		    uint32_t *ret_n, struct err *e)
{
	const char *where = NULL;
	int rc = codec_conf_text(conf, "location", missing, &where, e);

	if (rc)
		return rc;
	if (strcmp(where, "start") != 0 && strcmp(where, "end") != 0)
		return err_set(e, -EBADMSG,
			       "checksum: location '%s' is neither 'start' nor 'end'", where);
	params[0] = strcmp(where, "end") == 0 ? AT_END : AT_START;
	*ret_n = 1;
	return 0;
}

static int from_zarr_start(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			   struct err *e)
{
	return location(conf, "start", params, ret_n, e);
}

static int from_zarr_end(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			 struct err *e)
{
	return location(conf, "end", params, ret_n, e);
}

/* checksum_verify - compare the sum of n bytes with the stored one at `sum`. */
static int checksum_verify(uint32_t id, const uint8_t *p, size_t n, const uint8_t *sum,
			   struct err *e)
{
	const struct codec_spec spec = {.h5_id = id, .name = ""};
	uint32_t got = checksum_sum_of(id, p, n), stored = get_le32(sum);

	if (got == stored)
		return 0;
	return err_set(e, -EBADMSG,
		       "%s: checksum mismatch: computed %08" PRIx32
		       " over %zu bytes, stored %08" PRIx32,
		       codec_name(&spec, NULL, 0), got, n, stored);
}

static int short_of(size_t in_len, struct err *e)
{
	return err_set(e, -EBADMSG, "checksum: length %zu is less than %d", in_len, SUM);
}

static int checksum_check(const struct codec_call *c)
{
	if (c->in_len < SUM)
		return short_of(c->in_len, c->e);
	*c->ret_len = c->in_len - SUM;
	return checksum_verify(CODEC_CRC32C, c->in, c->in_len - SUM, c->in + c->in_len - SUM,
			       c->e);
}

static int checksum_decode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	const uint8_t *sum;
	size_t n;
	int rc;

	if (c->in_len < SUM)
		return short_of(c->in_len, c->e);
	n = c->in_len - SUM;
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "checksum: length %zu exceeds %zu", n, c->cap);
	sum = at_end(c->spec) ? in + n : in;
	in += at_end(c->spec) ? 0 : SUM;
	rc = checksum_verify(c->spec->h5_id, in, n, sum, c->e);
	if (rc)
		return rc;
	if (n > 0)
		memcpy(c->out, in, n);
	*c->ret_len = n;
	return 0;
}

static uint64_t checksum_framed_size(uint64_t n)
{
	return codec_plus(n, SUM);
}

static uint64_t checksum_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return checksum_framed_size(n);
}

static void checksum_frame(const struct codec_call *c)
{
	uint32_t sum = checksum_sum_of(c->spec->h5_id, c->in, c->in_len);
	uint8_t *to = at_end(c->spec) ? c->out : c->out + SUM;

	if (c->in_len > 0)
		memcpy(to, c->in, c->in_len);
	put_le32(at_end(c->spec) ? c->out + c->in_len : c->out, sum);
}

static int checksum_encode(const struct codec_call *c)
{
	uint64_t size = checksum_framed_size(c->in_len);
	struct codec_call framed = *c;

	framed.out = size && size <= SIZE_MAX ? buf_grow(c->to, (size_t)size) : NULL;
	if (!framed.out)
		return err_nomem(c->e);
	checksum_frame(&framed);
	return 0;
}

const struct codec_ops codec_crc32c = {
	.name = "crc32c",
	.h5_id = CODEC_CRC32C,
	.zarr3_name = "crc32c",
	.zarr3_stock = true,
	.trailer = SUM,
	.stored_max = checksum_stored_max,
	.decode = checksum_decode,
	.check = checksum_check,
	.framed_size = checksum_framed_size,
	.frame = checksum_frame,
	.encode = checksum_encode,
};

#define NUMCODECS_SUM(variable, text, id, from)                                                \
	const struct codec_ops variable = {                                                    \
		.name = (text),                                                                \
		.h5_id = (id),                                                                 \
		.zarr2_id = (text),                                                            \
		.zarr2_params = checksum_zarr2_params,                                         \
		.from_zarr = (from),                                                           \
		.stored_max = checksum_stored_max,                                             \
		.decode = checksum_decode,                                                     \
		.framed_size = checksum_framed_size,                                           \
		.frame = checksum_frame,                                                       \
		.encode = checksum_encode,                                                     \
	}

NUMCODECS_SUM(codec_crc32c_zarr2, "crc32c", CODEC_CRC32C_ZARR2, from_zarr_end);
NUMCODECS_SUM(codec_crc32, "crc32", CODEC_CRC32, from_zarr_start);
NUMCODECS_SUM(codec_adler32, "adler32", CODEC_ADLER32, from_zarr_start);
