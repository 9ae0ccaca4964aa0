/* SPDX-License-Identifier: BSD-3-Clause */
/* blosc.c - Blosc buffers (format 2 of c-blosc 1), by c-blosc without its threads and locks.
 *
 * The sizes in the header are checked here before the library reads the buffer. Bytes after the
 * length in the header are ignored, as in numcodecs. The framed form is a buffer with the flag for
 * "copied".
 *
 * Parameters are those of the HDF5 filter: version of the filter, version of the format, type size,
 * bytes of a chunk (0: not known), level, shuffle, compressor.
 *
 * Spec: https://github.com/Blosc/c-blosc/blob/master/README_CHUNK_FORMAT.rst,
 * https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/ */
#include "codecs/core/codec_impl.h"

#include <blosc.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FILTER_VERSION 2 /* of the HDF5 filter */
#define FORMAT_MIN 1
#define CODEC_FORMAT 1 /* of all compressors */
#define HEAD ((size_t)BLOSC_MIN_HEADER_LENGTH)
#define FRAME_BLOCK 262144u /* bytes of a block in the framed form */
#define LEVEL_DEFAULT 5
#define SHUFFLE_AUTO (-1)

enum { P_FILTER, P_FORMAT, P_TYPESIZE, P_BYTES, P_LEVEL, P_SHUFFLE, P_COMPRESSOR, P_N };

static const char *const compressors[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};

/* blosc_parameter - parameter i, if it is less than n; else, or if there is none, `missing`. */
static uint32_t blosc_parameter(const struct codec_spec *spec, uint32_t i, uint32_t n,
				uint32_t missing)
{
	return spec->n_params > i && spec->params[i] < n ? spec->params[i] : missing;
}

static const char *cname_of(const struct codec_spec *spec)
{
	return compressors[blosc_parameter(spec, P_COMPRESSOR, ARRAY_LEN(compressors),
					   BLOSC_BLOSCLZ)];
}

static uint32_t level_of(const struct codec_spec *spec)
{
	return blosc_parameter(spec, P_LEVEL, 10, LEVEL_DEFAULT);
}

static uint32_t shuffle_of(const struct codec_spec *spec)
{
	return blosc_parameter(spec, P_SHUFFLE, ARRAY_LEN(shuffles), BLOSC_SHUFFLE);
}

/* typesize_of - elements whose size exceeds a byte count as bytes. */
static uint32_t typesize_of(const struct codec_spec *spec, size_t elem_size)
{
	uint32_t missing =
		elem_size > 0 && elem_size <= BLOSC_MAX_TYPESIZE ? (uint32_t)elem_size : 1;
	uint32_t size = blosc_parameter(spec, P_TYPESIZE, BLOSC_MAX_TYPESIZE + 1, 1);

	return spec->n_params <= P_TYPESIZE || size == 0 ? missing : size;
}

static void blosc_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			       struct buf *json)
{
	buf_printf(json,
		   ", \"cname\": \"%s\", \"clevel\": %u, \"shuffle\": %u, \"blocksize\": 0",
		   cname_of(spec), level_of(spec), shuffle_of(spec));
}

static void blosc_zarr3_params(const struct codec_spec *spec, size_t elem_size,
			       struct buf *json)
{
	buf_printf(json,
		   ", \"cname\": \"%s\", \"clevel\": %u, \"shuffle\": \"%s\", "
		   "\"typesize\": %u, \"blocksize\": 0",
		   cname_of(spec), level_of(spec), shuffles[shuffle_of(spec)],
		   typesize_of(spec, elem_size));
}

/* blosc_index_of - the index of a string among n names; -1 when there is none. */
static int blosc_index_of(const char *const *names, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], text) == 0)
			return (int)i;
	return -1;
}

/* shuffle_from - a name in Zarr v3, a number in numcodecs, where -1 selects by the type. */
static int shuffle_from(const struct codec_conf *conf, uint32_t typesize, uint32_t *ret,
			struct err *e)
{
	const char *name = NULL;
	int64_t v = BLOSC_SHUFFLE;
	int rc;

	if (conf->version == 3 && conf->text(conf->arg, "shuffle", &name) == 0) {
		v = blosc_index_of(shuffles, ARRAY_LEN(shuffles), name);
		if (v < 0)
			return err_set(e, -EBADMSG, "blosc: unknown shuffle '%s'", name);
	} else {
		rc = codec_conf_int(conf, "shuffle", BLOSC_SHUFFLE, &v, e);
		if (rc)
			return rc;
	}
	if (v == SHUFFLE_AUTO)
		v = typesize == 1 ? BLOSC_BITSHUFFLE : BLOSC_SHUFFLE;
	if (v < 0 || v > BLOSC_BITSHUFFLE)
		return err_set(e, -EBADMSG, "blosc: unknown shuffle %" PRId64, v);
	*ret = (uint32_t)v;
	return 0;
}

static int blosc_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			   struct err *e)
{
	const char *cname = NULL;
	int64_t typesize = 0;
	int c, rc = codec_conf_text(conf, "cname", "lz4", &cname, e);

	if (rc)
		return rc;
	c = blosc_index_of(compressors, ARRAY_LEN(compressors), cname);
	if (c < 0)
		return err_set(e, -EOPNOTSUPP, "blosc: compressor '%s' is not supported",
			       cname);
	rc = codec_conf_int(conf, "typesize", 0, &typesize, e);
	if (rc)
		return rc;
	if (typesize <= 0 && conf->elem_size <= BLOSC_MAX_TYPESIZE)
		typesize = (int64_t)conf->elem_size;
	if (typesize <= 0 || typesize > BLOSC_MAX_TYPESIZE)
		typesize = 1;
	params[P_FILTER] = FILTER_VERSION;
	params[P_FORMAT] = BLOSC_VERSION_FORMAT;
	params[P_TYPESIZE] = (uint32_t)typesize;
	params[P_BYTES] = 0;
	params[P_COMPRESSOR] = (uint32_t)c;
	*ret_n = P_N;
	rc = codec_conf_level(conf, "clevel", 0, 9, LEVEL_DEFAULT, &params[P_LEVEL], e);
	return rc ? rc : shuffle_from(conf, (uint32_t)typesize, &params[P_SHUFFLE], e);
}

/* blosc_prepare - the writer sets the first four, as the HDF5 filter does. The others are the given
 * ones, or lz4 at level 5 with shuffle. Elements whose size exceeds a byte are bytes for Blosc. */
static int blosc_prepare(const struct codec_spec *spec, const struct codec_array *a,
			 uint32_t *params, uint32_t *ret_n, struct err *e)
{
	static const uint32_t limits[P_N] = {
		[P_LEVEL] = 9, [P_SHUFFLE] = BLOSC_BITSHUFFLE, [P_COMPRESSOR] = BLOSC_ZSTD};
	uint64_t bytes = a->elem_size;

	if (spec->n_params > P_N)
		return err_set(e, -EINVAL,
			       "blosc: %" PRIu32 " parameters given, at most %d are allowed",
			       spec->n_params, P_N);
	for (uint32_t i = P_LEVEL; i < spec->n_params; i++) {
		params[i] = spec->params[i];
		if (params[i] > limits[i])
			return err_set(e, -EINVAL,
				       "blosc: parameter %" PRIu32 " is %" PRIu32
				       ", the maximum is %" PRIu32,
				       i + 1, params[i], limits[i]);
	}
	if (spec->n_params > P_COMPRESSOR &&
	    blosc_compname_to_compcode(compressors[params[P_COMPRESSOR]]) < 0)
		return err_set(e, -EOPNOTSUPP,
			       "blosc: the Blosc library was built without '%s'",
			       compressors[params[P_COMPRESSOR]]);
	if (!u64_product(&bytes, a->chunk, a->rank, BLOSC_MAX_BUFFERSIZE))
		return err_set(e, -EOPNOTSUPP, "blosc: chunks are larger than %d bytes",
			       BLOSC_MAX_BUFFERSIZE);
	params[P_FILTER] = FILTER_VERSION;
	params[P_FORMAT] = BLOSC_VERSION_FORMAT;
	params[P_TYPESIZE] = a->elem_size <= BLOSC_MAX_TYPESIZE ? a->elem_size : 1;
	params[P_BYTES] = (uint32_t)bytes;
	*ret_n = spec->n_params > P_LEVEL ? spec->n_params : P_LEVEL;
	if (spec->n_params == 0) {
		params[P_LEVEL] = LEVEL_DEFAULT;
		params[P_SHUFFLE] = BLOSC_SHUFFLE;
		params[P_COMPRESSOR] = BLOSC_LZ4;
		*ret_n = P_N;
	}
	return 0;
}

static int blosc_decode(const struct codec_call *c)
{
	size_t n, stored, claim;
	int got;

	if (c->in_len < HEAD)
		return err_set(c->e, -EBADMSG, "blosc: length %zu is less than %zu", c->in_len,
			       HEAD);
	if (c->in[0] < FORMAT_MIN || c->in[0] > BLOSC_VERSION_FORMAT)
		return err_set(c->e, -EBADMSG,
			       "blosc: unknown format version %u (the latest known is %d)",
			       c->in[0], BLOSC_VERSION_FORMAT);
	n = get_le32(c->in + 4);
	stored = get_le32(c->in + 12);
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "blosc: content of %zu bytes exceeds %zu", n,
			       c->cap);
	if (stored < HEAD || stored > c->in_len)
		return err_set(c->e, -EBADMSG,
			       "blosc: the chunk has %zu bytes, its header states %zu",
			       c->in_len, stored);
	*c->ret_len = n;
	if (n == 0)
		return 0;
	if (blosc_cbuffer_validate(c->in, stored, &claim) != 0 || claim != n)
		return err_set(c->e, -EBADMSG, "blosc: the header is damaged");
	got = blosc_decompress_ctx(c->in, c->out, n, 1);
	if (got < 0 || (size_t)got != n)
		return err_set(c->e, -EBADMSG, "blosc: %zu bytes do not decode to %zu", stored,
			       n);
	return 0;
}

static uint64_t blosc_framed_size(uint64_t n)
{
	return n <= BLOSC_MAX_BUFFERSIZE ? n + HEAD : 0;
}

static void blosc_frame(const struct codec_call *c)
{
	uint32_t typesize = typesize_of(c->spec, c->elem_size);
	uint32_t block = c->in_len < FRAME_BLOCK ? (uint32_t)c->in_len
						 : FRAME_BLOCK - FRAME_BLOCK % typesize;

	c->out[0] = BLOSC_VERSION_FORMAT;
	c->out[1] = CODEC_FORMAT;
	c->out[2] = BLOSC_MEMCPYED;
	c->out[3] = (uint8_t)typesize;
	put_le32(c->out + 4, (uint32_t)c->in_len);
	put_le32(c->out + 8, block);
	put_le32(c->out + 12, (uint32_t)(c->in_len + HEAD));
	if (c->in_len > 0)
		memcpy(c->out + HEAD, c->in, c->in_len);
}

static int blosc_encode(const struct codec_call *c)
{
	size_t start = c->to->len, bound;
	struct codec_call framed = *c;
	int got;

	if (c->in_len > BLOSC_MAX_BUFFERSIZE)
		return err_set(c->e, -ERANGE, "blosc: length %zu exceeds %d", c->in_len,
			       BLOSC_MAX_BUFFERSIZE);
	bound = c->in_len + HEAD;
	framed.out = buf_grow(c->to, bound);
	if (!framed.out)
		return err_nomem(c->e);
	if (c->in_len == 0) {
		blosc_frame(&framed);
		return 0;
	}
	got = blosc_compress_ctx((int)level_of(c->spec), (int)shuffle_of(c->spec),
				 typesize_of(c->spec, c->elem_size), c->in_len, c->in,
				 framed.out, bound, cname_of(c->spec), 0, 1);
	if (got <= 0) {
		c->to->len = start;
		return err_set(c->e, -EIO, "blosc: the library cannot encode %zu bytes",
			       c->in_len);
	}
	c->to->len = start + (size_t)got;
	return 0;
}

const struct codec_ops codec_blosc = {
	.name = "blosc",
	.h5_id = CODEC_BLOSC,
	.zarr2_id = "blosc",
	.zarr3_name = "blosc",
	.zarr3_stock = true,
	.compressor = true,
	.zarr2_params = blosc_zarr2_params,
	.zarr3_params = blosc_zarr3_params,
	.from_zarr = blosc_from_zarr,
	.prepare = blosc_prepare,
	.stored_max = codec_packed_max,
	.decode = blosc_decode,
	.framed_size = blosc_framed_size,
	.frame = blosc_frame,
	.encode = blosc_encode,
};
