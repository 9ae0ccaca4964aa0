/* SPDX-License-Identifier: BSD-3-Clause */
/* scaleoffset.c - HDF5's scale-offset: the minimum of each chunk, and for each element its distance
 * from the minimum in as few bits as the largest distance needs. It is lossless for integers unless
 * the user sets the number of bits; for floats it keeps a number of decimal digits after the point.
 * Elements equal to the fill value are stored as ones in all bits.
 *
 * Stored: the number of bits (4 bytes, little-endian), the length of the minimum (8), the minimum
 * (8 bytes), 8 zeros, then the packed elements and 1 to 8 zero bits more. Elements that need all
 * their bits follow unchanged, little-endian. If the user sets as many bits as the type has, the
 * filter does nothing.
 *
 * Floats are computed in their own precision, step by step as in libhdf5 1.10: both give the same
 * bits.
 *
 * Parameters (20): type of scaling, its factor, elements of a chunk, class, size, sign, byte order,
 * whether there is a fill value, its bytes. Spec: H5Pset_scaleoffset in the HDF5 reference manual;
 * H5Z__set_local_scaleoffset. */
#include "codecs/shuffle/bit_pack_int.h"
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/core/half.h"

enum {
	P_SCALING,
	P_FACTOR,
	P_COUNT,
	P_CLASS,
	P_SIZE,
	P_SIGN,
	P_ORDER,
	P_HAS_FILL,
	P_FILL,
	P_N = 20
};
enum { DECIMAL_DIGITS = 0, INTEGERS = 2 };
enum { CLASS_INT, CLASS_FLOAT };

#define HEADER 21
#define MIN_AT 5    /* offset of the minimum */
#define MIN_BYTES 8 /* used bytes of it */

/* so - the checked parameters. */
struct so {
	bool real;
	bool as_it_is; /* stored unchanged */
	bool has_fill;
	uint64_t fill;  /* its bits */
	int32_t factor; /* bits of integers, 0 when they are counted; digits of floats */
	uint64_t n;     /* elements */
	struct num_type type;
	unsigned int full; /* bits of an element */
};

static int scaleoffset_bad(struct err *e, const char *what, uint32_t v)
{
	return err_set(e, -EBADMSG, "scaleoffset: wrong %s %" PRIu32, what, v);
}

static int so_of(const struct codec_spec *spec, struct so *ret, struct err *e)
{
	const uint32_t *p = spec->params;
	uint32_t size;

	if (spec->n_params != P_N)
		return scaleoffset_bad(e, "number of parameters", spec->n_params);
	size = p[P_SIZE];
	if (size < 1 || size > UINT16_MAX)
		return scaleoffset_bad(e, "element size", size);
	*ret = (struct so){.real = p[P_CLASS] == CLASS_FLOAT,
			   .has_fill = p[P_HAS_FILL] == 1,
			   .factor = (int32_t)p[P_FACTOR],
			   .n = p[P_COUNT],
			   .full = 8 * size};
	if (p[P_CLASS] > CLASS_FLOAT)
		return scaleoffset_bad(e, "class", p[P_CLASS]);
	if (p[P_SCALING] != (ret->real ? DECIMAL_DIGITS : INTEGERS))
		return scaleoffset_bad(e, "type of scaling", p[P_SCALING]);
	ret->type =
		(struct num_type){p[P_SIGN] == 1 ? NUM_INT : NUM_UINT, size, p[P_ORDER] == 1};
	if (!ret->real) {
		if (ret->factor < 0)
			ret->factor = 0;
		if ((uint32_t)ret->factor > ret->full)
			return scaleoffset_bad(e, "number of bits", (uint32_t)ret->factor);
		ret->as_it_is = (uint32_t)ret->factor == ret->full;
	}
	if (ret->as_it_is)
		return 0;
	if ((size != 4 && size != 8) && (ret->real || (size != 1 && size != 2)))
		return scaleoffset_bad(e, "element size", size);
	if (!ret->real && p[P_SIGN] > 1) /* undefined for floats */
		return scaleoffset_bad(e, "sign", p[P_SIGN]);
	ret->fill = p[P_FILL] | (size == 8 ? (uint64_t)p[P_FILL + 1] << 32 : 0);
	if (size < 4)
		ret->fill &= ((uint64_t)1 << ret->full) - 1;
	return 0;
}

/* scaleoffset_plain - the unsigned type of the elements' bits, big-endian or not. */
static struct num_type scaleoffset_plain(const struct so *so, bool big)
{
	return (struct num_type){NUM_UINT, so->type.size, big};
}

static uint64_t scaleoffset_ones(unsigned int bits)
{
	return bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
}

/* ---- decoding ---- */

/* undo_ints, undo_singles, undo_doubles - n codes become the bits of elements. none: the code of
 * the fill value; more than any code when there is none. */
static void undo_ints(const struct so *so, uint64_t min, uint64_t none, uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = v[i] == none ? so->fill : v[i] + min;
}

static void undo_singles(const struct so *so, uint64_t min, uint64_t none, uint64_t *v,
			 size_t n)
{
	const float lo = f32_from_bits((uint32_t)min), scale = powf(10.0F, (float)so->factor);

	for (size_t i = 0; i < n; i++) {
		float scaled = (float)(int32_t)v[i] / scale;

		v[i] = v[i] == none ? so->fill : f32_bits(scaled + lo);
	}
}

static void undo_doubles(const struct so *so, uint64_t min, uint64_t none, uint64_t *v,
			 size_t n)
{
	const double lo = f64_from_bits(min), scale = pow(10.0, so->factor);

	for (size_t i = 0; i < n; i++) {
		double scaled = (double)(int64_t)v[i] / scale;

		v[i] = v[i] == none ? so->fill : f64_bits(scaled + lo);
	}
}

/* scaleoffset_unpack - convert n <= NUM_BLOCK codes of `bits` < full bits to elements' bits. */
static void scaleoffset_unpack(const struct so *so, unsigned int bits, uint64_t min,
			       struct bit_reader *in, size_t n, uint64_t *v)
{
	const uint64_t none = so->has_fill ? scaleoffset_ones(bits) : UINT64_MAX;

	if (bits > 0)
		bits_get(in, bits, v, n);
	else
		memset(v, 0, n * sizeof(*v));
	if (!so->real)
		undo_ints(so, min, none, v, n);
	else if (so->type.size == 4)
		undo_singles(so, min, none, v, n);
	else
		undo_doubles(so, min, none, v, n);
}

/* scaleoffset_header - read the beginning of a chunk: *ret_bits <= full. The rest has the length
 * that these bits need. */
static int scaleoffset_header(const struct so *so, const struct codec_call *c,
			      unsigned int *ret_bits, uint64_t *ret_min)
{
	uint64_t need, min = 0;
	uint32_t bits;

	if (c->in_len < HEADER)
		return err_set(c->e, -EBADMSG,
			       "scaleoffset: %zu bytes are too short for the header",
			       c->in_len);
	bits = get_le32(c->in);
	if (bits > so->full)
		return err_set(c->e, -EBADMSG, "scaleoffset: %" PRIu32 " bits exceed %u", bits,
			       so->full);
	for (unsigned int i = 0; i < MIN_BYTES && i < c->in[MIN_AT - 1]; i++)
		min |= (uint64_t)c->in[MIN_AT + i] << (8 * i);
	need = (so->n * bits + 7) / 8; /* n < 2^32, bits <= 64 */
	if (c->in_len - HEADER < need)
		return err_set(c->e, -EBADMSG,
			       "scaleoffset: %" PRIu64 " elements of %" PRIu32
			       " bits do not fit in %zu bytes",
			       so->n, bits, c->in_len - HEADER);
	*ret_bits = bits;
	*ret_min = min;
	return 0;
}

static void decode_all(const struct so *so, unsigned int bits, uint64_t min, const uint8_t *in,
		       size_t in_len, uint8_t *out)
{
	struct bit_reader from = {in, in_len, 0};
	const struct num_type to = scaleoffset_plain(so, so->type.big);
	uint64_t v[NUM_BLOCK];
	size_t n = (size_t)so->n;

	if (bits == so->full) {
		num_convert(scaleoffset_plain(so, false), to, in, n, out);
		return;
	}
	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, out += m * to.size) {
		scaleoffset_unpack(so, bits, min, &from, m, v);
		num_store_bits(to, false, v, m, out);
	}
}

static int scaleoffset_decode(const struct codec_call *c)
{
	struct so so;
	unsigned int bits = 0;
	uint64_t min = 0;
	int rc = so_of(c->spec, &so, c->e);

	if (rc)
		return rc;
	if (so.as_it_is)
		return codec_copy(c, c->in_len, "scaleoffset");
	if (so.n > c->cap / so.type.size)
		return err_set(c->e, -ERANGE,
			       "scaleoffset: %" PRIu64 " elements of %u bytes "
			       "exceed %zu bytes",
			       so.n, so.full / 8, c->cap);
	rc = scaleoffset_header(&so, c, &bits, &min);
	if (rc)
		return rc;
	decode_all(&so, bits, min, c->in + HEADER, c->in_len - HEADER, c->out);
	*c->ret_len = (size_t)so.n * so.type.size;
	return 0;
}

/* ---- encoding ---- */

/* packing - the storage of a chunk: bits of a code, and the minimum. */
struct packing {
	unsigned int bits;
	uint64_t min;
};

/* log2_up - the base-2 logarithm of v >= 1, rounded up. */
static unsigned int log2_up(uint64_t v)
{
	return v > 1 ? 64 - (unsigned int)__builtin_clzll(v - 1) : 0;
}

/* scaleoffset_range - the minimum and maximum of the integers that are no fill values, both 0 when
 * there are none; sign-extended. */
static void scaleoffset_range(const struct so *so, const uint8_t *in, uint64_t *ret_min,
			      uint64_t *ret_max)
{
	const uint64_t flip = so->type.kind == NUM_INT ? (uint64_t)1 << 63 : 0;
	const uint64_t mask = scaleoffset_ones(so->full);
	uint64_t v[NUM_BLOCK], lo = UINT64_MAX, hi = 0; /* `flip` makes the order unsigned */
	bool any = false;
	size_t n = (size_t)so->n;

	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, in += m * so->type.size) {
		num_load_bits(so->type, in, m, v);
		for (size_t k = 0; k < m; k++) {
			if (so->has_fill && (v[k] & mask) == so->fill)
				continue;
			any = true;
			v[k] ^= flip;
			lo = v[k] < lo ? v[k] : lo;
			hi = v[k] > hi ? v[k] : hi;
		}
	}
	*ret_min = any ? lo ^ flip : 0;
	*ret_max = any ? hi ^ flip : 0;
}

/* plan_ints - compute bits and minimum. If no bit is saved, libhdf5 leaves the minimum out, except
 * for signed bytes without a fill value. */
static struct packing plan_ints(const struct so *so, const uint8_t *in)
{
	struct packing r = {(unsigned int)so->factor, 0};
	uint64_t max, span;

	scaleoffset_range(so, in, &r.min, &max);
	if (r.bits > 0)
		return r;
	span = max - r.min;
	if (span > scaleoffset_ones(so->full) - 2) {
		r.bits = so->full;
		if (so->has_fill || so->type.kind != NUM_INT || so->type.size != 1)
			r.min = 0;
		return r;
	}
	r.bits = log2_up(span + 1 + so->has_fill);
	return r;
}

static void code_ints(const struct so *so, const struct packing *how, uint64_t *v, size_t n)
{
	const uint64_t mask = scaleoffset_ones(so->full), code = scaleoffset_ones(how->bits);

	for (size_t i = 0; i < n; i++)
		v[i] = so->has_fill && (v[i] & mask) == so->fill ? code
								 : (v[i] - how->min) & code;
}

/* scaling - floats as doubles, rounded to their own precision after every step. */
struct scaling {
	bool single;
	double scale;     /* 10 to the number of digits */
	double near;      /* numbers closer to the fill value equal it; */
	double near_code; /* threshold of the second comparison of singles */
	double fill;
};

static double scaleoffset_step(const struct scaling *s, double v)
{
	return s->single ? (double)(float)v : v;
}

static struct scaling scaling_of(const struct so *so)
{
	struct scaling s = {.single = so->type.size == 4,
			    .near = pow(10.0, -(double)so->factor)};

	s.scale = s.single ? (double)powf(10.0F, (float)so->factor) : pow(10.0, so->factor);
	s.near_code = s.single ? (double)powf(10.0F, (float)-(double)so->factor) : s.near;
	s.fill = s.single ? (double)f32_from_bits((uint32_t)so->fill) : f64_from_bits(so->fill);
	return s;
}

static bool is_near(const struct scaling *s, double v, double limit)
{
	return fabs(scaleoffset_step(s, v - s->fill)) < limit;
}

/* nearest - round to an integer, halves away from zero; out of range: the smallest one. */
static int64_t nearest(double v)
{
	int64_t whole;
	double rest;

	if (!(fabs(v) < 0x1p63))
		return INT64_MIN;
	whole = (int64_t)v;
	rest = v - (double)whole;
	return whole + (rest >= 0.5) - (rest <= -0.5);
}

/* span_of - the minimum and maximum of the numbers that are no fill values; the first of equal ones
 * counts, because the sign of zero differs. *ret_nan: some are NaN. */
static void span_of(const struct so *so, const struct scaling *s, const uint8_t *in,
		    double *ret_min, double *ret_max, bool *ret_nan)
{
	const struct num_type from = {NUM_FLOAT, so->type.size, so->type.big};
	double v[NUM_BLOCK], lo = 0, hi = 0;
	bool any = false, nan = false;
	size_t n = (size_t)so->n;

	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, in += m * from.size) {
		num_load_real(from, in, m, v);
		for (size_t k = 0; k < m; k++) {
			if (so->has_fill && is_near(s, v[k], s->near))
				continue;
			lo = !any || v[k] < lo ? v[k] : lo;
			hi = !any || v[k] > hi ? v[k] : hi;
			any = true;
			nan = nan || isnan(v[k]);
		}
	}
	*ret_min = lo;
	*ret_max = hi;
	*ret_nan = nan;
}

/* plan_reals - as libhdf5, except that libhdf5 computes a minimum with NaNs: here such chunks are
 * stored with all bits. */
static struct packing plan_reals(const struct so *so, const struct scaling *s,
				 const uint8_t *in)
{
	double lo, hi, range;
	struct packing r = {so->full, 0};
	uint64_t min;
	bool nan;

	span_of(so, s, in, &lo, &hi, &nan);
	min = s->single ? f32_bits((float)lo) : f64_bits(lo);
	range = scaleoffset_step(s, scaleoffset_step(s, hi * s->scale) -
					    scaleoffset_step(s, lo * s->scale));
	if (round(range) > ldexp(1, (int)so->full - 1))
		return r;
	if (isnan(range)) {
		r.min = s->single ? 0 : min;
		return r;
	}
	if (nan)
		return r;
	r.bits = log2_up((uint64_t)nearest(range) + 1 + so->has_fill);
	r.min = min;
	return r;
}

static void code_reals(const struct so *so, const struct scaling *s, const struct packing *how,
		       const double *real, uint64_t *v, size_t n)
{
	const uint64_t code = scaleoffset_ones(how->bits);
	const double min =
		s->single ? (double)f32_from_bits((uint32_t)how->min) : f64_from_bits(how->min);
	const double lo = scaleoffset_step(s, min * s->scale);

	for (size_t i = 0; i < n; i++)
		v[i] = so->has_fill && is_near(s, real[i], s->near_code)
			       ? code
			       : (uint64_t)nearest(scaleoffset_step(
					 s, scaleoffset_step(s, real[i] * s->scale) - lo)) &
					 code;
}

static void scaleoffset_pack(const struct so *so, const struct scaling *s,
			     const struct packing *how, const uint8_t *in, uint8_t *out)
{
	const struct num_type from = {NUM_FLOAT, so->type.size, so->type.big};
	struct bit_writer to = {out, 0, 0};
	uint64_t v[NUM_BLOCK];
	double real[NUM_BLOCK];
	size_t n = (size_t)so->n;

	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, in += m * from.size) {
		if (so->real) {
			num_load_real(from, in, m, real);
			code_reals(so, s, how, real, v, m);
		} else {
			num_load_bits(so->type, in, m, v);
			code_ints(so, how, v, m);
		}
		bits_put(&to, how->bits, v, m);
	}
	(void)bits_end(&to);
}

static int encode_all(const struct so *so, const struct codec_call *c)
{
	const struct scaling s = so->real ? scaling_of(so) : (struct scaling){0};
	const struct packing how = so->real ? plan_reals(so, &s, c->in) : plan_ints(so, c->in);
	bool full = how.bits == so->full;
	uint64_t packed = so->n * how.bits / 8 + !full; /* n < 2^32, bits <= 64 */
	uint8_t *p =
		packed <= SIZE_MAX - HEADER ? buf_grow(c->to, HEADER + (size_t)packed) : NULL;

	if (!p)
		return err_nomem(c->e);
	memset(p, 0, HEADER);
	put_le32(p, how.bits);
	p[MIN_AT - 1] = MIN_BYTES;
	put_le64(p + MIN_AT, how.min);
	if (packed > 0)
		p[HEADER + packed - 1] = 0; /* the last byte may have no bits */
	if (full)
		num_convert(scaleoffset_plain(so, so->type.big), scaleoffset_plain(so, false),
			    c->in, (size_t)so->n, p + HEADER);
	else if (how.bits > 0)
		scaleoffset_pack(so, &s, &how, c->in, p + HEADER);
	return 0;
}

static int scaleoffset_encode(const struct codec_call *c)
{
	struct so so;
	int rc = so_of(c->spec, &so, NULL);

	if (rc)
		return err_set(c->e, -EOPNOTSUPP, "scaleoffset: the parameters are not valid");
	if (so.as_it_is)
		return codec_append(c);
	if (c->in_len % so.type.size != 0 || c->in_len / so.type.size != so.n)
		return err_set(c->e, -EOPNOTSUPP,
			       "scaleoffset: %zu bytes are not %" PRIu64
			       " elements of %u bytes",
			       c->in_len, so.n, so.full / 8);
	return encode_all(&so, c);
}

static uint64_t scaleoffset_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return codec_plus(n, HEADER + 1);
}

/* ---- parameters ---- */

static int scaleoffset_prepare(const struct codec_spec *spec, const struct codec_array *a,
			       uint32_t *params, uint32_t *ret_n, struct err *e)
{
	const bool real = a->class == CODEC_FLOAT;
	uint32_t size = a->elem_size;
	int32_t factor;

	if (spec->n_params < 2)
		return err_set(e, -EINVAL,
			       "scaleoffset needs 2 parameters: the type of scaling (0 for "
			       "floats, 2 for integers) and its factor");
	factor = (int32_t)spec->params[P_FACTOR];
	if (a->class == CODEC_OTHER || (size != 4 && size != 8 && (real || size > 2)))
		return err_set(e, -EOPNOTSUPP,
			       "scaleoffset is for integers and for floats of 4 or 8 bytes");
	if (spec->params[P_SCALING] != (real ? DECIMAL_DIGITS : INTEGERS))
		return err_set(e, -EINVAL, "scaleoffset: type of scaling %" PRIu32 " for %s",
			       spec->params[P_SCALING], real ? "floats" : "integers");
	if (!real && factor > 8 * (int32_t)size)
		return err_set(e, -EINVAL, "scaleoffset: %" PRId32 " bits exceed %" PRIu32,
			       factor, 8 * size);
	memset(params, 0, P_N * sizeof(*params));
	if (!codec_elements(a, &params[P_COUNT]))
		return err_set(e, -EOPNOTSUPP,
			       "scaleoffset: a chunk has more than 2^32 elements");
	params[P_SCALING] = spec->params[P_SCALING];
	params[P_FACTOR] = spec->params[P_FACTOR];
	params[P_CLASS] = real ? CLASS_FLOAT : CLASS_INT;
	params[P_SIZE] = size;
	params[P_SIGN] = a->class == CODEC_INT;
	params[P_ORDER] = a->big_endian && size > 1;
	/* HDF5's default fill value, 0, applies if the array has none */
	params[P_HAS_FILL] = 1;
	for (uint32_t i = 0; a->fill && i < size; i++)
		params[P_FILL + i / 4] |= (uint32_t)a->fill[a->big_endian ? size - 1 - i : i]
					  << (8 * (i % 4));
	*ret_n = P_N;
	return 0;
}

const struct codec_ops codec_scaleoffset = {
	.name = "scaleoffset",
	.h5_id = CODEC_SCALEOFFSET,
	.h5_stock = true,
	.lossy = true,
	.prepare = scaleoffset_prepare,
	.stored_max = scaleoffset_stored_max,
	.decode = scaleoffset_decode,
	.encode = scaleoffset_encode,
};
