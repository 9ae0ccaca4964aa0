/* SPDX-License-Identifier: BSD-3-Clause */
/* szip.c - HDF5's szip: adaptive Rice coding by libaec, with the framing of libsz.
 *
 * Stored are the length of the elements in 4 bytes, little-endian, and the stream. Elements of 32
 * and 64 bits are coded as bytes: all first bytes, then all second ones, ... A scanline is padded
 * to whole blocks: with its last sample where neighbours are compared (NN), else with zeros (EC).
 * Streams are byte for byte those of libhdf5, but chunks that do not get shorter, which libhdf5
 * stores unfiltered, are encoded, too.
 *
 * Parameters are those of the HDF5 filter: mask, pixels per block, bits per pixel, pixels per
 * scanline.
 *
 * Spec: CCSDS 121.0-B; https://github.com/MathisRosenhauer/libaec/blob/master/src/sz_compat.c and
 * H5Zszip.c in HDF5 1.10.8 for the framing; NCZszip.c in netCDF-C for Zarr. */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <libaec.h>
#include <string.h>

#define HEAD ((size_t)4)
#define BLOCK_MAX 32u   /* samples; HDF5's limit */
#define LINE_MAX 4096u  /* samples; szip's limit */
#define BLOCKS_MAX 128u /* of a scanline; szip's limit */
#define ROOM 32768      /* bytes of padded scanlines */
#define SLACK 64        /* bytes after a stream of maximum length */

/* Bits of the mask. Spec: H5Zpublic.h, szlib.h. */
enum { K13 = 1, CHIP = 2, LSB = 8, MSB = 16, NN = 32, RAW = 128 };
enum { P_MASK, P_BLOCK, P_BITS, P_LINE, P_N };

/* szip_form - the layout of the samples of one chunk in its stream. */
struct szip_form {
	unsigned int bits; /* of a sample */
	size_t bytes;      /* of a sample in memory: 1, 2 or 4 */
	size_t planes; /* planes of bytes that the elements are coded as; 1: they are not */
	unsigned int block; /* samples */
	unsigned int rsi;   /* blocks of a scanline */
	size_t line;        /* bytes of a scanline */
	size_t padded;      /* the same with padding */
	unsigned int flags; /* libaec's */
};

/* szip_form_of - decode the parameters; returns `code` when they are invalid. libaec gets checked
 * values only: with odd blocks it writes out of bounds. */
static int szip_form_of(const struct codec_spec *spec, struct szip_form *ret, int code,
			struct err *e)
{
	const uint32_t *p = spec->params;
	uint32_t bits;
	bool wide;

	if (spec->n_params < P_N)
		return err_set(e, code, "szip: %" PRIu32 " parameters given, %d are needed",
			       spec->n_params, P_N);
	bits = p[P_BITS];
	wide = bits == 32 || bits == 64;
	if (p[P_BLOCK] < 2 || p[P_BLOCK] > BLOCK_MAX || p[P_BLOCK] % 2 || bits == 0 ||
	    (bits > 32 && bits != 64) || p[P_LINE] < p[P_BLOCK] || p[P_LINE] > LINE_MAX)
		return err_set(e, code,
			       "szip: %" PRIu32 " pixels per block, %" PRIu32
			       " per scanline and %" PRIu32
			       " bits per pixel are not supported together",
			       p[P_BLOCK], p[P_LINE], bits);
	*ret = (struct szip_form){
		.bits = wide ? 8 : bits,
		.bytes = wide || bits <= 8 ? 1
			 : bits <= 16      ? 2
					   : 4,
		.planes = wide ? bits / 8 : 1,
		.block = p[P_BLOCK],
		.rsi = (p[P_LINE] + p[P_BLOCK] - 1) / p[P_BLOCK],
		.flags = (p[P_MASK] & NN ? AEC_DATA_PREPROCESS : 0) |
			 (p[P_MASK] & MSB ? AEC_DATA_MSB : 0),
	};
	ret->line = p[P_LINE] * ret->bytes;
	ret->padded = (size_t)ret->rsi * ret->block * ret->bytes;
	return 0;
}

static struct aec_stream stream_of(const struct szip_form *f)
{
	return (struct aec_stream){.bits_per_sample = f->bits,
				   .block_size = f->block,
				   .rsi = f->rsi,
				   .flags = f->flags | AEC_NOT_ENFORCE};
}

/* szip_bound - the most bytes of the stream of n bytes: every block uncompressed, with a byte for
 * its header. 0 on overflow. */
static uint64_t szip_bound(const struct szip_form *f, uint64_t n)
{
	uint64_t lines = n / f->line + (n % f->line != 0), r;

	return ckd_mul(&r, lines, (uint64_t)f->padded + f->rsi) ||
			       ckd_add(&r, r, (uint64_t)SLACK)
		       ? 0
		       : r;
}

/* ---- decoding ---- */

/* pull - decode exactly n bytes of samples. */
static int pull(struct aec_stream *a, uint8_t *out, size_t n, struct err *e)
{
	int rc;

	a->next_out = out;
	a->avail_out = n;
	rc = aec_decode(a, AEC_FLUSH);
	if (rc == AEC_MEM_ERROR)
		return err_nomem(e);
	if (rc != AEC_OK || a->avail_out > 0)
		return err_set(e, -EBADMSG, "szip: the stream is %s",
			       rc == AEC_OK ? "too short" : "damaged");
	return 0;
}

/* unpack_lines - decode n bytes without the padding of scanlines. */
static int unpack_lines(struct aec_stream *a, const struct szip_form *f, uint8_t *out, size_t n,
			struct err *e)
{
	uint8_t room[ROOM];
	const size_t most = sizeof(room) / f->padded;

	while (n > 0) {
		size_t lines = n / f->line + (n % f->line != 0), last;
		int rc;

		lines = lines < most ? lines : most;
		last = n - (lines - 1) * f->line; /* bytes of the last line */
		last = last < f->line ? last : f->padded;
		rc = pull(a, room, (lines - 1) * f->padded + last, e);
		if (rc)
			return rc;
		for (size_t i = 0; i < lines; i++) {
			size_t len = n < f->line ? n : f->line;

			memcpy(out, room + i * f->padded, len);
			out += len;
			n -= len;
		}
	}
	return 0;
}

static int szip_unpack(const struct szip_form *f, const struct codec_call *c, uint8_t *out,
		       size_t n)
{
	struct aec_stream a = stream_of(f);
	int rc;

	a.next_in = c->in + HEAD;
	a.avail_in = c->in_len - HEAD;
	if (aec_decode_init(&a) != AEC_OK) /* its other errors were checked for */
		return err_nomem(c->e);
	rc = f->line == f->padded ? pull(&a, out, n, c->e) : unpack_lines(&a, f, out, n, c->e);
	(void)aec_decode_end(&a); /* cannot fail */
	return rc;
}

static int szip_decode(const struct codec_call *c)
{
	uint8_t *to = c->out;
	struct szip_form f;
	size_t n;
	int rc = szip_form_of(c->spec, &f, -EBADMSG, c->e);

	if (rc)
		return rc;
	if (c->in_len < HEAD)
		return err_set(c->e, -EBADMSG, "szip: length %zu is less than %zu", c->in_len,
			       HEAD);
	n = get_le32(c->in);
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "szip: content of %zu bytes exceeds %zu", n,
			       c->cap);
	if (n % f.bytes)
		return err_set(c->e, -EBADMSG,
			       "szip: %zu bytes are not a whole number of samples of %zu bytes",
			       n, f.bytes);
	*c->ret_len = n;
	if (n == 0)
		return 0;
	if (f.planes > 1)
		to = codec_scratch_get(c->scratch, CODEC_SCRATCH_OWN, n);
	if (!to)
		return err_nomem(c->e);
	rc = szip_unpack(&f, c, to, n);
	if (!rc && to != c->out)
		codec_unshuffle_bytes(f.planes, to, n, c->out);
	return rc;
}

/* ---- encoding ---- */

/* szip_do_fits - whether the samples have no bits above those that are coded. */
static bool szip_do_fits(const struct szip_form *f, const uint8_t *in, size_t n)
{
	uint32_t all = 0;

	if (f->bits == 8 * f->bytes)
		return true;
	for (size_t i = 0; i < n; i += f->bytes)
		all |= (uint32_t)get_uint(in + i, f->bytes, f->flags & AEC_DATA_MSB);
	return all >> f->bits == 0;
}

/* fill_line - pad a scanline of len bytes. */
static void fill_line(const struct szip_form *f, const uint8_t *in, size_t len, uint8_t *out)
{
	memcpy(out, in, len);
	memset(out + len, 0, f->padded - len);
	if (!(f->flags & AEC_DATA_PREPROCESS))
		return;
	for (size_t i = len; i < f->padded; i += f->bytes)
		memcpy(out + i, in + len - f->bytes, f->bytes);
}

static int szip_push(struct aec_stream *a, const uint8_t *in, size_t n, int flush)
{
	a->next_in = in;
	a->avail_in = n;
	return aec_encode(a, flush);
}

/* pack_lines - encode n > 0 bytes in scanlines; the last one may be short. */
static int pack_lines(struct aec_stream *a, const struct szip_form *f, const uint8_t *in,
		      size_t n)
{
	uint8_t room[ROOM];
	const size_t most = sizeof(room) / f->padded;
	int rc = AEC_OK;

	if (f->line == f->padded) {
		size_t whole = n - n % f->line;

		rc = szip_push(a, in, whole, whole == n ? AEC_FLUSH : AEC_NO_FLUSH);
		in += whole;
		n -= whole;
	}
	while (rc == AEC_OK && n > 0) {
		size_t lines = 0;

		for (; lines < most && n > 0; lines++) {
			size_t len = n < f->line ? n : f->line;

			fill_line(f, in, len, room + lines * f->padded);
			in += len;
			n -= len;
		}
		rc = szip_push(a, room, lines * f->padded, n == 0 ? AEC_FLUSH : AEC_NO_FLUSH);
	}
	return rc;
}

static int szip_pack(const struct szip_form *f, const uint8_t *in, size_t n, uint8_t *out,
		     size_t cap, size_t *ret_len, struct err *e)
{
	struct aec_stream a = stream_of(f);
	int rc, end;

	if (aec_encode_init(&a) != AEC_OK) /* its other errors were checked for */
		return err_nomem(e);
	a.next_out = out;
	a.avail_out = cap;
	rc = pack_lines(&a, f, in, n);
	end = aec_encode_end(&a);
	if (rc != AEC_OK || end != AEC_OK)
		return err_set(e, -EIO, "szip: the output of %zu bytes does not fit in %zu", n,
			       cap);
	*ret_len = cap - a.avail_out;
	return 0;
}

static int szip_encode(const struct codec_call *c)
{
	size_t start = c->to->len, len = 0;
	const uint8_t *from = c->in;
	uint8_t *p, *planes;
	struct szip_form f;
	uint64_t most;
	int rc = szip_form_of(c->spec, &f, -EOPNOTSUPP, c->e);

	if (rc)
		return rc;
	most = szip_bound(&f, c->in_len);
	if (c->in_len > UINT32_MAX || most == 0 || most > SIZE_MAX)
		return err_set(c->e, -ERANGE, "szip: length %zu is too large", c->in_len);
	if (c->in_len % (f.bytes * f.planes)) /* libhdf5 loses the rest */
		return err_set(c->e, -EOPNOTSUPP,
			       "szip: %zu bytes are not a whole number of samples of %zu bytes",
			       c->in_len, f.bytes * f.planes);
	if (!szip_do_fits(&f, c->in, c->in_len))
		return err_set(c->e, -EOPNOTSUPP, "szip: samples have more than %u bits",
			       f.bits);
	buf_put_le32(c->to, (uint32_t)c->in_len);
	if (c->in_len == 0)
		return 0;
	if (f.planes > 1) {
		from = planes = codec_scratch_get(c->scratch, CODEC_SCRATCH_OWN, c->in_len);
		if (planes)
			codec_shuffle_bytes(f.planes, c->in, c->in_len, planes);
	}
	p = buf_grow(c->to, (size_t)most);
	rc = from && p ? szip_pack(&f, from, c->in_len, p, (size_t)most, &len, c->e)
		       : err_nomem(c->e);
	c->to->len = rc ? start : start + HEAD + len;
	return rc;
}

static uint64_t szip_stored_max(const struct codec_spec *spec, uint64_t n)
{
	struct szip_form f;
	uint64_t r;

	if (szip_form_of(spec, &f, -EBADMSG, NULL))
		return codec_packed_max(spec, n); /* invalid parameters: never decoded */
	r = szip_bound(&f, n);
	return r == 0 || ckd_add(&r, r, (uint64_t)HEAD) ? 0 : r;
}

/* ---- parameters ---- */

/* working - compute the four parameters from the first two. last: pixels in the fastest dimension,
 * of the chunk for HDF5, of the array for netCDF-C's Zarr. bad: the error for an invalid block
 * size. Spec: H5Z__set_local_szip. */
static int working(uint32_t mask, uint32_t block, const struct codec_array *a, uint64_t last,
		   int bad, uint32_t *params, struct err *e)
{
	uint64_t points = 1;
	uint32_t bits = a->elem_size <= 8 ? 8 * a->elem_size : 0;

	if (block < 2 || block > BLOCK_MAX || block % 2)
		return err_set(e, bad,
			       "szip: pixels per block is %" PRIu32
			       ", it must be an even number from 2 to %u",
			       block, BLOCK_MAX);
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return err_set(e, -EOPNOTSUPP,
			       "szip: elements of %" PRIu32 " bytes are not supported",
			       a->elem_size);
	if (a->rank == 0)
		return err_set(e, -EOPNOTSUPP,
			       "szip: a scalar cannot be encoded: it has no scanlines");
	for (uint32_t i = 0; i < a->rank; i++)
		if (ckd_mul(&points, points, a->chunk[i]))
			points = LINE_MAX; /* no scanline is longer */
	if (last < block)
		last = points;
	if (last < block)
		return err_set(e, -EOPNOTSUPP,
			       "szip: pixels per block is %" PRIu32
			       ", but a chunk has only %" PRIu64 " elements",
			       block, points);
	mask &= ~(uint32_t)(CHIP | LSB | MSB);
	params[P_MASK] = mask | K13 | RAW | (a->big_endian ? MSB : LSB);
	params[P_BLOCK] = block;
	params[P_BITS] = bits;
	params[P_LINE] = (uint32_t)u64_min(last, (uint64_t)block * BLOCKS_MAX);
	return 0;
}

int codec_szip_in_zarr(const struct codec_spec *spec, const struct codec_array *a,
		       const uint64_t *shape, uint32_t params[4], struct err *e)
{
	if (spec->n_params <= P_BLOCK)
		return err_set(e, -EINVAL,
			       "szip: %" PRIu32
			       " parameters given, two are needed: mask and pixels per block",
			       spec->n_params);
	if (a->class == CODEC_OTHER)
		return err_set(e, -EOPNOTSUPP, "szip: elements are not numbers");
	return working(spec->params[P_MASK], spec->params[P_BLOCK], a,
		       a->rank ? shape[a->rank - 1] : 0, -EINVAL, params, e);
}

static int szip_prepare(const struct codec_spec *spec, const struct codec_array *a,
			uint32_t *params, uint32_t *ret_n, struct err *e)
{
	*ret_n = P_N;
	return codec_szip_in_zarr(spec, a, a->chunk, params, e);
}

/* szip_zarr2_params - netCDF-C reads the first two. */
static void szip_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
			      struct buf *json)
{
	static const char *const members[] = {"mask", "pixels-per-block", "bits-per-pixel",
					      "pixels-per-scanline"};

	for (uint32_t i = 0; i < ARRAY_LEN(members) && i < spec->n_params; i++)
		buf_printf(json, ", \"%s\": %" PRIu32, members[i], spec->params[i]);
}

static int szip_number(const struct codec_conf *conf, const char *member, int64_t missing,
		       uint32_t *ret, struct err *e)
{
	int64_t v;
	int rc = codec_conf_int(conf, member, missing, &v, e);

	if (rc)
		return rc;
	if (v < 0 || v > UINT32_MAX)
		return err_set(e, -EBADMSG, "szip: '%s' is %s", member,
			       v == missing ? "missing" : "out of range");
	*ret = (uint32_t)v;
	return 0;
}

/* szip_from_zarr - only this program states the other two parameters: netCDF-C computes them for
 * the array. */
static int szip_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			  struct err *e)
{
	const struct codec_array *a = conf->array;
	int rc = szip_number(conf, "mask", -1, &params[P_MASK], e);

	rc = rc ? rc : szip_number(conf, "pixels-per-block", -1, &params[P_BLOCK], e);
	rc = rc ? rc : szip_number(conf, "bits-per-pixel", 0, &params[P_BITS], e);
	rc = rc ? rc : szip_number(conf, "pixels-per-scanline", 0, &params[P_LINE], e);
	*ret_n = P_N;
	if (rc || (params[P_BITS] > 0 && params[P_LINE] > 0))
		return rc;
	if (!a || !conf->shape)
		return err_set(e, -EOPNOTSUPP, "szip: 'pixels_per_scanline' is missing");
	if (a->class == CODEC_OTHER && a->elem_size > 1) /* netCDF-C accepts characters */
		return err_set(e, -EOPNOTSUPP, "szip: elements are not numbers");
	return working(params[P_MASK], params[P_BLOCK], a,
		       a->rank ? conf->shape[a->rank - 1] : 0, -EBADMSG, params, e);
}

const struct codec_ops codec_szip = {
	.name = "szip",
	.h5_id = CODEC_SZIP,
	.zarr2_id = "szip",
	.h5_stock = true,
	.compressor = true,
	.zarr2_params = szip_zarr2_params,
	.from_zarr = szip_from_zarr,
	.prepare = szip_prepare,
	.stored_max = szip_stored_max,
	.decode = szip_decode,
	.encode = szip_encode,
};
