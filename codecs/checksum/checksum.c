/* SPDX-License-Identifier: BSD-3-Clause */
/* checksum.c - four bytes of checksum with the data: fletcher32, crc32c, crc32 and adler32,
 * little-endian.
 *
 * HDF5's fletcher32 and Zarr v3's crc32c always follow the data, so that they are checked in place.
 * numcodecs' codecs have the sum before the data, except for crc32c; "location" overrides this.
 *
 * Spec: HDF5 File Format 3.0, IV.A.2.l (filter 3);
 * https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/; RFC 3720 B.4 (crc32c); RFC 1950
 * (adler32), RFC 1952 (crc32). */
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
	case CODEC_FLETCHER32:
		return codec_fletcher32_sum(p, n);
	default:
		return codec_crc32c_sum(0, p, n);
	}
}

static bool at_end(const struct codec_spec *spec)
{
	const uint32_t id = spec->h5_id;

	if (id == CODEC_CRC32C || id == CODEC_FLETCHER32)
		return true;
	return spec->n_params > 0 ? spec->params[0] == AT_END : id == CODEC_CRC32C_ZARR2;
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

/* checksum_verify - compare the sum of n bytes with the stored one at `sum`. Libraries up to HDF5
 * 1.6.2 wrote fletcher32 on little-endian machines with the bytes of both halves swapped. */
static int checksum_verify(uint32_t id, const uint8_t *p, size_t n, const uint8_t *sum,
			   struct err *e)
{
	const struct codec_spec spec = {.h5_id = id, .name = ""};
	uint32_t got = checksum_sum_of(id, p, n), stored = get_le32(sum);
	uint32_t halves = (stored & 0xff00ff) << 8 | (stored >> 8 & 0xff00ff);

	if (got == stored || (id == CODEC_FLETCHER32 && got == halves))
		return 0;
	return err_set(e, -EBADMSG,
		       "%s: checksum mismatch: computed %08" PRIx32
		       " over %zu bytes, stored %08" PRIx32,
		       codec_name(&spec, NULL, 0), got, n, stored);
}

/* checksum_word - the beginning of messages about a length. */
static const char *checksum_word(uint32_t id)
{
	return id == CODEC_FLETCHER32 ? "fletcher32" : "checksum";
}

static int short_of(const struct codec_call *c, uint32_t id)
{
	return err_set(c->e, -EBADMSG, "%s: length %zu is less than %d", checksum_word(id),
		       c->in_len, SUM);
}

static int checksum_check(const struct codec_call *c, uint32_t id)
{
	if (c->in_len < SUM)
		return short_of(c, id);
	*c->ret_len = c->in_len - SUM;
	return checksum_verify(id, c->in, *c->ret_len, c->in + *c->ret_len, c->e);
}

static int crc32c_check(const struct codec_call *c)
{
	return checksum_check(c, CODEC_CRC32C);
}

static int fletcher32_check(const struct codec_call *c)
{
	return checksum_check(c, CODEC_FLETCHER32);
}

static int checksum_decode(const struct codec_call *c)
{
	const uint32_t id = c->spec->h5_id;
	const bool end = at_end(c->spec);
	const uint8_t *in;
	size_t n;
	int rc;

	if (c->in_len < SUM)
		return short_of(c, id);
	n = c->in_len - SUM;
	in = end ? c->in : c->in + SUM;
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "%s: length %zu exceeds %zu", checksum_word(id),
			       n, c->cap);
	rc = checksum_verify(id, in, n, end ? in + n : c->in, c->e);
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
	return codec_append_frame(c, checksum_framed_size(c->in_len), checksum_frame);
}

/* fletcher32_prepare - drop all parameters: H5Pset_fletcher32 has none. */
static int fletcher32_prepare(const struct codec_spec *spec NZ_UNUSED,
			      const struct codec_array *a NZ_UNUSED, uint32_t *params NZ_UNUSED,
			      uint32_t *ret_n, struct err *e NZ_UNUSED)
{
	*ret_n = 0;
	return 0;
}

#define SUM_BYTES                                                                              \
	.decode = checksum_decode, .framed_size = checksum_framed_size,                        \
	.frame = checksum_frame, .encode = checksum_encode

const struct codec_ops codec_fletcher32 = {
	.name = "fletcher32",
	.h5_id = CODEC_FLETCHER32,
	.zarr2_id = "fletcher32",
	.portable = false, /* numcodecs has it from 0.12 on */
	.h5_stock = true,
	.trailer = SUM,
	.prepare = fletcher32_prepare,
	.check = fletcher32_check,
	SUM_BYTES,
};

const struct codec_ops codec_crc32c = {
	.name = "crc32c",
	.h5_id = CODEC_CRC32C,
	.zarr3_name = "crc32c",
	.zarr3_stock = true,
	.trailer = SUM,
	.check = crc32c_check,
	SUM_BYTES,
};

#define NUMCODECS_SUM(variable, text, id, from)                                                \
	const struct codec_ops variable = {                                                    \
		.name = (text),                                                                \
		.h5_id = (id),                                                                 \
		.zarr2_id = (text),                                                            \
		.zarr2_params = checksum_zarr2_params,                                         \
		.from_zarr = (from),                                                           \
		SUM_BYTES,                                                                     \
	}

NUMCODECS_SUM(codec_crc32c_zarr2, "crc32c", CODEC_CRC32C_ZARR2, from_zarr_end);
NUMCODECS_SUM(codec_crc32, "crc32", CODEC_CRC32, from_zarr_start);
NUMCODECS_SUM(codec_adler32, "adler32", CODEC_ADLER32, from_zarr_start);
