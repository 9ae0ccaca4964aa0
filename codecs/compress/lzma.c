/* SPDX-License-Identifier: BSD-3-Clause */
/* lzma.c - numcodecs' lzma: .xz streams, the older .lzma ("alone"), or raw ones, by liblzma.
 *
 * The filters of a raw stream are only in the document; those of .xz are in the stream as well. The
 * stream, or the document, determines how much memory a decoder needs; more than any preset needs
 * is rejected.
 *
 * Parameters: format, check, preset, the last two as in numcodecs, with -1 for "not stated"; then
 * the filters, if any. */
#include "codecs/compress/lzma_filters_int.h"

#include <errno.h>

#define MEMORY_MAX ((uint64_t)256 << 20) /* of a decoder; the largest preset needs 65 MiB */
#define PRESET_MAX 9

enum { FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW };
enum { P_FORMAT, P_CHECK, P_PRESET, P_FILTERS };

static int32_t lzma_format_of(const struct codec_spec *spec)
{
	return codec_level(spec, P_FORMAT, FORMAT_AUTO, FORMAT_RAW, FORMAT_XZ);
}

static void lzma_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			      struct buf *json)
{
	int32_t preset = codec_level(spec, P_PRESET, -1, PRESET_MAX, -1);

	buf_printf(json,
		   ", \"format\": %d, \"check\": %d, \"preset\": ", (int)lzma_format_of(spec),
		   (int)codec_level(spec, P_CHECK, -1, LZMA_CHECK_ID_MAX, -1));
	if (preset < 0)
		buf_puts(json, "null");
	else
		buf_printf(json, "%d", (int)preset);
	buf_puts(json, ", \"filters\": ");
	lzma_filters_put(spec, P_FILTERS, json);
}

static int lzma_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			  struct err *e)
{
	int64_t format;
	uint32_t n = 0;
	int rc = codec_conf_int(conf, "format", FORMAT_XZ, &format, e);

	if (rc)
		return rc;
	if (format < FORMAT_AUTO || format > FORMAT_RAW)
		return err_set(e, -EBADMSG, "lzma: unknown format %lld", (long long)format);
	params[P_FORMAT] = (uint32_t)format;
	rc = codec_conf_level(conf, "check", -1, LZMA_CHECK_ID_MAX, -1, &params[P_CHECK], e);
	if (!rc)
		rc = codec_conf_level(conf, "preset", -1, PRESET_MAX, -1, &params[P_PRESET], e);
	rc = rc ? rc : lzma_filters_from(conf, params + P_FILTERS, &n, e);
	if (!rc && format == FORMAT_RAW && n == 0)
		rc = err_set(e, -EOPNOTSUPP, "lzma: a raw stream needs 'filters'");
	*ret_n = P_FILTERS + n;
	return rc;
}

/* start_raw - start a decoder of a raw stream. */
static lzma_ret start_raw(lzma_stream *z, const struct codec_spec *spec)
{
	struct lzma_chain chain;
	uint64_t need;

	if (!lzma_filters_of(spec, P_FILTERS, &chain))
		return LZMA_OPTIONS_ERROR;
	need = lzma_raw_decoder_memusage(chain.f);
	if (need == UINT64_MAX)
		return LZMA_OPTIONS_ERROR;
	return need > MEMORY_MAX ? LZMA_MEMLIMIT_ERROR : lzma_raw_decoder(z, chain.f);
}

/* lzma_start - start a decoder of the format. */
static lzma_ret lzma_start(lzma_stream *z, const struct codec_spec *spec)
{
	switch (lzma_format_of(spec)) {
	case FORMAT_RAW:
		return start_raw(z, spec);
	case FORMAT_AUTO:
		return lzma_auto_decoder(z, MEMORY_MAX, LZMA_CONCATENATED);
	case FORMAT_ALONE:
		return lzma_alone_decoder(z, MEMORY_MAX);
	default:
		return lzma_stream_decoder(z, MEMORY_MAX, LZMA_CONCATENATED);
	}
}

/* lzma_run - decode until the end of the content. When the output is full, one more byte of room
 * distinguishes "too long" from "the end was not read yet". */
static int lzma_run(lzma_stream *z, const struct codec_call *c)
{
	uint8_t spare;

	for (;;) {
		bool full = z->avail_out == 0;
		lzma_ret rc;

		if (full) {
			z->next_out = &spare;
			z->avail_out = 1;
		}
		rc = lzma_code(z, LZMA_FINISH);
		if (full && z->avail_out == 0)
			return err_set(c->e, -ERANGE, "lzma: content is larger than %zu bytes",
				       c->cap);
		if (rc == LZMA_STREAM_END)
			return 0;
		if (rc == LZMA_MEM_ERROR)
			return err_nomem(c->e);
		if (rc == LZMA_MEMLIMIT_ERROR)
			return err_set(
				c->e, -EOPNOTSUPP,
				"lzma: decoding needs %llu bytes of memory, the limit is %llu",
				(unsigned long long)lzma_memusage(z),
				(unsigned long long)MEMORY_MAX);
		if (rc != LZMA_OK || full)
			return err_set(c->e, -EBADMSG,
				       "lzma: %zu bytes are not a complete stream", c->in_len);
	}
}

static int lzma_decode(const struct codec_call *c)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret started = lzma_start(&z, c->spec);
	int rc;

	if (started == LZMA_MEM_ERROR)
		return err_nomem(c->e);
	if (started != LZMA_OK)
		return err_set(c->e, -EOPNOTSUPP,
			       "lzma: the filters are not supported, or need more than %llu "
			       "bytes of memory",
			       (unsigned long long)MEMORY_MAX);
	z.next_in = c->in;
	z.avail_in = c->in_len;
	z.next_out = c->out;
	z.avail_out = c->cap;
	rc = lzma_run(&z, c);
	if (!rc)
		*c->ret_len = (size_t)u64_min(z.total_out, c->cap);
	lzma_end(&z);
	return rc;
}

/* lzma_begin - start an encoder with the parameters. */
static lzma_ret lzma_begin(lzma_stream *z, const struct codec_spec *spec)
{
	int32_t preset = codec_level(spec, P_PRESET, -1, PRESET_MAX, -1);
	int32_t check = codec_level(spec, P_CHECK, -1, LZMA_CHECK_ID_MAX, -1);
	struct lzma_chain chain;
	bool filters = lzma_filters_of(spec, P_FILTERS, &chain);
	lzma_options_lzma o;

	if (lzma_format_of(spec) == FORMAT_RAW)
		return filters ? lzma_raw_encoder(z, chain.f) : LZMA_OPTIONS_ERROR;
	if (lzma_format_of(spec) != FORMAT_ALONE && filters)
		return lzma_stream_encoder(z, chain.f,
					   check < 0 ? LZMA_CHECK_CRC64 : (lzma_check)check);
	if (filters)
		return chain.f[0].id == LZMA_FILTER_LZMA1 && chain.f[1].id == LZMA_VLI_UNKNOWN
			       ? lzma_alone_encoder(z, chain.f[0].options)
			       : LZMA_OPTIONS_ERROR;
	if (preset < 0)
		preset = LZMA_PRESET_DEFAULT;
	if (lzma_format_of(spec) != FORMAT_ALONE)
		return lzma_easy_encoder(z, (uint32_t)preset,
					 check < 0 ? LZMA_CHECK_CRC64 : (lzma_check)check);
	if (lzma_lzma_preset(&o, (uint32_t)preset))
		return LZMA_OPTIONS_ERROR;
	return lzma_alone_encoder(z, &o);
}

static int lzma_encode(const struct codec_call *c)
{
	uint64_t bound =
		codec_packed_max(c->spec, c->in_len); /* .lzma has no uncompressed blocks */
	size_t at = c->to->len;
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *p;
	lzma_ret rc;

	if (bound == 0 || bound > SIZE_MAX)
		return err_set(c->e, -ERANGE, "lzma: length %zu is too large", c->in_len);
	p = buf_grow(c->to, (size_t)bound);
	if (!p)
		return err_nomem(c->e);
	rc = lzma_begin(&z, c->spec);
	z.next_in = c->in;
	z.avail_in = c->in_len;
	z.next_out = p;
	z.avail_out = (size_t)bound;
	if (rc == LZMA_OK)
		rc = lzma_code(&z, LZMA_FINISH);
	c->to->len = at + (rc == LZMA_STREAM_END ? (size_t)bound - z.avail_out : 0);
	lzma_end(&z);
	if (rc == LZMA_MEM_ERROR)
		return err_nomem(c->e);
	if (rc == LZMA_OPTIONS_ERROR || rc == LZMA_UNSUPPORTED_CHECK)
		return err_set(
			c->e, -EOPNOTSUPP,
			"lzma: this combination of preset, check and filters is not supported");
	return rc == LZMA_STREAM_END
		       ? 0
		       : err_set(c->e, -EIO, "lzma: the library cannot encode %zu bytes",
				 c->in_len);
}

const struct codec_ops codec_lzma = {
	.name = "lzma",
	.h5_id = CODEC_LZMA,
	.zarr2_id = "lzma",
	.compressor = true,
	.zarr2_params = lzma_zarr2_params,
	.from_zarr = lzma_from_zarr,
	.stored_max = codec_packed_max,
	.decode = lzma_decode,
	.encode = lzma_encode,
};
