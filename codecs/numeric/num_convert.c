/* SPDX-License-Identifier: BSD-3-Clause */
/* num_convert.c - numpy's numbers: see num_convert.h. */
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/core/endian.h"
#include "base/core/half.h"

#define PACK_BIG 0x10000u

/* ---- dtype strings ---- */

static const struct {
	const char *text;
	enum num_kind kind;
	uint32_t size;
} names[] = {
	{"b1", NUM_BOOL, 1},       {"i1", NUM_INT, 1},        {"i2", NUM_INT, 2},
	{"i4", NUM_INT, 4},        {"i8", NUM_INT, 8},        {"u1", NUM_UINT, 1},
	{"u2", NUM_UINT, 2},       {"u4", NUM_UINT, 4},       {"u8", NUM_UINT, 8},
	{"f2", NUM_FLOAT, 2},      {"f4", NUM_FLOAT, 4},      {"f8", NUM_FLOAT, 8},
	{"bool", NUM_BOOL, 1},     {"int8", NUM_INT, 1},      {"int16", NUM_INT, 2},
	{"int32", NUM_INT, 4},     {"int64", NUM_INT, 8},     {"uint8", NUM_UINT, 1},
	{"uint16", NUM_UINT, 2},   {"uint32", NUM_UINT, 4},   {"uint64", NUM_UINT, 8},
	{"float16", NUM_FLOAT, 2}, {"float32", NUM_FLOAT, 4}, {"float64", NUM_FLOAT, 8},
};

static bool num_exists(struct num_type t)
{
	for (size_t k = 0; k < ARRAY_LEN(names); k++)
		if (names[k].kind == t.kind && names[k].size == t.size)
			return true;
	return false;
}

int num_from_conf(const struct codec_conf *conf, const char *member, uint32_t missing,
		  uint32_t *ret, struct err *e)
{
	const char *text = NULL, *name;
	int rc = codec_conf_text(conf, member, NULL, &text, e);

	if (rc)
		return rc;
	if (!text && !missing)
		return err_set(e, -EBADMSG, "'%s' is missing", member);
	*ret = missing;
	if (!text)
		return 0;
	name = text + (*text && strchr("<>|=", *text) != NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		bool big = *text == '>';

		if (strcmp(names[i].text, name) != 0)
			continue;
		*ret = num_pack((struct num_type){names[i].kind, names[i].size, big});
		return 0;
	}
	return err_set(e, -EOPNOTSUPP, "%s '%.40s' is not supported", member, text);
}

struct num_type num_of(const struct codec_spec *spec, uint32_t i)
{
	uint32_t p = spec->n_params > i ? spec->params[i] : 0;
	struct num_type t = {(enum num_kind)(p >> 8 & 0xff), p & 0xff, (p & PACK_BIG) != 0};

	return num_exists(t) ? t : (struct num_type){NUM_UINT, 1, false};
}

uint32_t num_pack(struct num_type t)
{
	return (uint32_t)t.kind << 8 | t.size | (t.big ? PACK_BIG : 0);
}

int num_of_array(const char *name, const struct codec_array *a, uint32_t *ret, struct err *e)
{
	struct num_type t = {a->class == CODEC_INT    ? NUM_INT
			     : a->class == CODEC_UINT ? NUM_UINT
						      : NUM_FLOAT,
			     a->elem_size, a->big_endian && a->elem_size > 1};

	if (a->class == CODEC_OTHER || !num_exists(t))
		return err_set(e, -EOPNOTSUPP, "%s is for numbers of at most 8 bytes", name);
	*ret = num_pack(t);
	return 0;
}

int num_of_user(const struct codec_spec *spec, uint32_t i, uint32_t own, uint32_t *ret,
		struct err *e)
{
	const int32_t v = spec->n_params > i ? (int32_t)spec->params[i] : 0;
	struct num_type t = {NUM_UINT, (uint32_t)v, false};

	*ret = own;
	if (spec->n_params <= i)
		return 0;
	if (v < 0)
		t = (struct num_type){NUM_INT, -(uint32_t)v, false};
	else if (v > 8 && v % 8 == 0)
		t = (struct num_type){NUM_FLOAT, (uint32_t)v / 8, false};
	t.big = (own & PACK_BIG) && t.size > 1;
	if (num_exists(t)) {
		*ret = num_pack(t);
		return 0;
	}
	return err_set(e, -EINVAL,
		       "%d is not a type to store: write 1, 2, 4 or 8 (bytes) for unsigned and "
		       "-1, -2, -4 or -8 for signed integers; 16, 32 or 64 (bits) for floats",
		       (int)v);
}

void num_put_member(struct buf *json, const char *member, struct num_type t)
{
	buf_printf(json, ", \"%s\": \"%c%c%u\"", member,
		   t.size == 1 ? '|'
		   : t.big     ? '>'
			       : '<',
		   (int)t.kind, (unsigned int)t.size);
}

int num_pair_from_conf(const struct codec_conf *conf, uint32_t *params, struct err *e)
{
	int rc = num_from_conf(conf, "dtype", 0, &params[NUM_DTYPE], e);

	return rc ? rc
		  : num_from_conf(conf, "astype", params[NUM_DTYPE], &params[NUM_ASTYPE], e);
}

void num_put_pair(struct buf *json, const struct codec_spec *spec)
{
	num_put_member(json, "dtype", num_of(spec, NUM_DTYPE));
	num_put_member(json, "astype", num_of(spec, NUM_ASTYPE));
}

/* ---- counts ---- */

uint64_t num_stored_max(const struct codec_spec *spec, uint64_t n)
{
	struct num_type from = num_of(spec, NUM_DTYPE), to = num_of(spec, NUM_ASTYPE);
	uint64_t r;

	return ckd_mul(&r, n / from.size + (n % from.size != 0), (uint64_t)to.size) ? 0 : r;
}

int num_count(const char *name, struct num_type enc, struct num_type dec,
	      const struct codec_call *c, size_t *ret_n)
{
	size_t n = c->in_len / enc.size;

	if (c->in_len % enc.size != 0)
		return err_set(c->e, -EBADMSG, "%s: length %zu is not a multiple of %u", name,
			       c->in_len, (unsigned int)enc.size);
	if (n > c->cap / dec.size)
		return err_set(c->e, -ERANGE, "%s: %zu elements of %u bytes exceed %zu bytes",
			       name, n, (unsigned int)dec.size, c->cap);
	*ret_n = n;
	*c->ret_len = n * dec.size;
	return 0;
}

int num_room(const char *name, struct num_type dec, struct num_type enc,
	     const struct codec_call *c, size_t *ret_n, uint8_t **ret_out)
{
	size_t bytes;

	if (c->in_len % dec.size != 0)
		return err_set(c->e, -EOPNOTSUPP, "%s: length %zu is not a multiple of %u",
			       name, c->in_len, (unsigned int)dec.size);
	*ret_n = c->in_len / dec.size;
	*ret_out = NULL;
	if (ckd_mul(&bytes, *ret_n, (size_t)enc.size))
		return err_set(c->e, -ERANGE, "%s: %zu elements are too many", name, *ret_n);
	if (bytes > 0)
		*ret_out = buf_grow(c->to, bytes);
	return bytes > 0 && !*ret_out ? err_nomem(c->e) : 0;
}

/* ---- floats ---- */

uint32_t num_wider(uint32_t size, double v)
{
	if (size == 2 && !(v > -65000 && v < 65000))
		size = 4;
	return size == 4 && !(v > -3.4e38 && v < 3.4e38) ? 8 : size;
}

double num_round(double v, uint32_t size)
{
	return size == 8 ? v : size == 4 ? (double)(float)v : half_to_double(half_of_double(v));
}

/* ---- blocks ---- */

#define SAME(x) (x)
#define SWAP1(x) (x)

/* EACH - v[i] = f(element i); elements are read as unsigned integers of `bits` bits. */
#define EACH(bits, swap, f)                                                                    \
	for (size_t i = 0; i < n; i++) {                                                       \
		uint##bits##_t x;                                                              \
                                                                                               \
		memcpy(&x, in + i * sizeof(x), sizeof(x));                                     \
		x = (uint##bits##_t)swap(x);                                                   \
		v[i] = f;                                                                      \
	}

/* LOAD - EACH in the byte order of the elements. */
#define LOAD(bits, bswap, f)                                                                   \
	do {                                                                                   \
		if (swapped)                                                                   \
			EACH(bits, bswap, f)                                                   \
		else                                                                           \
			EACH(bits, SAME, f)                                                    \
	} while (0)

/* STORE - element i = f, of `bits` bits, in the byte order of the elements. */
#define STORE(bits, bswap, f)                                                                  \
	for (size_t i = 0; i < n; i++) {                                                       \
		uint##bits##_t x = (uint##bits##_t)(f);                                        \
                                                                                               \
		if (swapped)                                                                   \
			x = (uint##bits##_t)bswap(x);                                          \
		memcpy(out + i * sizeof(x), &x, sizeof(x));                                    \
	}

void num_load_bits(struct num_type t, const uint8_t *in, size_t n, uint64_t *v)
{
	bool swapped = t.big != HOST_BIG_ENDIAN;

	if (t.kind == NUM_BOOL)
		EACH(8, SWAP1, x != 0)
	else if (t.kind == NUM_INT && t.size == 1)
		EACH(8, SWAP1, (uint64_t)(int8_t)x)
	else if (t.kind == NUM_INT && t.size == 2)
		LOAD(16, __builtin_bswap16, (uint64_t)(int16_t)x);
	else if (t.kind == NUM_INT && t.size == 4)
		LOAD(32, __builtin_bswap32, (uint64_t)(int32_t)x);
	else if (t.size == 1)
		EACH(8, SWAP1, x)
	else if (t.size == 2)
		LOAD(16, __builtin_bswap16, x);
	else if (t.size == 4)
		LOAD(32, __builtin_bswap32, x);
	else
		LOAD(64, __builtin_bswap64, x);
}

void num_load_real(struct num_type t, const uint8_t *in, size_t n, double *v)
{
	bool swapped = t.big != HOST_BIG_ENDIAN;
	uint64_t bits[NUM_BLOCK];

	if (t.kind == NUM_FLOAT && t.size == 8) {
		LOAD(64, __builtin_bswap64, f64_from_bits(x));
	} else if (t.kind == NUM_FLOAT && t.size == 4) {
		LOAD(32, __builtin_bswap32, (double)f32_from_bits(x));
	} else if (t.kind == NUM_FLOAT) {
		LOAD(16, __builtin_bswap16, half_to_double((uint16_t)x));
	} else {
		num_load_bits(t, in, n, bits);
		for (size_t i = 0; i < n; i++)
			v[i] = t.kind == NUM_INT ? (double)(int64_t)bits[i] : (double)bits[i];
	}
}

/* num_convert_int_of, uint_of - truncate; a number out of range first becomes the smallest one of
 * that width, as by x86 instructions, and is then cut to the low bits. */
static uint64_t num_convert_int_of(double v, uint32_t size)
{
	if (size < 8 && !(v > -2147483649.0 && v < 2147483648.0))
		return (uint64_t)INT32_MIN;
	if (size == 8 && !(v >= -0x1p63 && v < 0x1p63))
		return (uint64_t)INT64_MIN;
	return (uint64_t)(int64_t)v;
}

/* from: bytes of the float type of v. numpy converts halves to 32 bits through 64-bit integers. */
static uint64_t uint_of(double v, uint32_t size, uint32_t from)
{
	double half = size == 8 ? 0x1p63 : 0x1p31; /* the end of the signed range */

	if (size == 4 && from == 2)
		return num_convert_int_of(v, 8);
	if (size < 4 || !(v >= half))
		return num_convert_int_of(v, size);
	return num_convert_int_of(v - half, size) ^
	       (size == 8 ? (uint64_t)1 << 63 : (uint64_t)1 << 31);
}

void num_store_real(struct num_type t, uint32_t size, const double *v, size_t n, uint8_t *out)
{
	bool swapped = t.big != HOST_BIG_ENDIAN;
	uint64_t bits[NUM_BLOCK];

	if (t.kind == NUM_FLOAT && t.size == 8) {
		STORE(64, __builtin_bswap64, f64_bits(v[i]));
	} else if (t.kind == NUM_FLOAT && t.size == 4) {
		STORE(32, __builtin_bswap32, f32_bits((float)v[i]));
	} else if (t.kind == NUM_FLOAT) {
		STORE(16, __builtin_bswap16, half_of_double(v[i]));
	} else {
		for (size_t i = 0; i < n; i++)
			bits[i] = t.kind == NUM_BOOL  ? v[i] != 0
				  : t.kind == NUM_INT ? num_convert_int_of(v[i], t.size)
						      : uint_of(v[i], t.size, size);
		num_store_bits(t, true, bits, n, out);
	}
}

/* single - convert an integer to float with one rounding. */
static float single(uint64_t v, bool is_signed)
{
	return is_signed ? (float)(int64_t)v : (float)v;
}

void num_store_bits(struct num_type t, bool is_signed, const uint64_t *v, size_t n,
		    uint8_t *out)
{
	bool swapped = t.big != HOST_BIG_ENDIAN;

	if (t.kind == NUM_FLOAT && t.size == 8)
		STORE(64, __builtin_bswap64,
		      f64_bits(is_signed ? (double)(int64_t)v[i] : (double)v[i]))
	else if (t.kind == NUM_FLOAT && t.size == 4)
		STORE(32, __builtin_bswap32, f32_bits(single(v[i], is_signed)))
	else if (t.kind == NUM_FLOAT)
		STORE(16, __builtin_bswap16, half_of_double(single(v[i], is_signed)))
	else if (t.kind == NUM_BOOL)
		STORE(8, SWAP1, v[i] != 0)
	else if (t.size == 1)
		STORE(8, SWAP1, v[i])
	else if (t.size == 2)
		STORE(16, __builtin_bswap16, v[i])
	else if (t.size == 4)
		STORE(32, __builtin_bswap32, v[i])
	else
		STORE(64, __builtin_bswap64, v[i])
}

/* single_of_half, half_of_single - on the bits, as in numpy: a signalling NaN stays one. */
static uint64_t single_of_half(uint32_t h)
{
	if ((h & 0x7fff) > 0x7c00)
		return (h & 0x8000) << 16 | 0x7f800000 | (h & 0x3ff) << 13;
	return f32_bits((float)half_to_double((uint16_t)h));
}

static uint64_t half_of_single(uint32_t b)
{
	uint32_t left = b >> 13 & 0x3ff;

	if ((b & 0x7fffffff) > 0x7f800000)
		return (b >> 16 & 0x8000) | 0x7c00 | (left ? left : 1);
	return half_of_double((double)f32_from_bits(b));
}

/* convert_halves - convert n <= NUM_BLOCK elements between halves and floats of 4 bytes. */
static void convert_halves(struct num_type from, struct num_type to, const uint8_t *in,
			   size_t n, uint8_t *out)
{
	const struct num_type raw = {NUM_UINT, from.size, from.big};
	const struct num_type cooked = {NUM_UINT, to.size, to.big};
	uint64_t bits[NUM_BLOCK];

	num_load_bits(raw, in, n, bits);
	for (size_t i = 0; i < n; i++)
		bits[i] = from.size == 2 ? single_of_half((uint32_t)bits[i])
					 : half_of_single((uint32_t)bits[i]);
	num_store_bits(cooked, false, bits, n, out);
}

void num_convert(struct num_type from, struct num_type to, const uint8_t *in, size_t n,
		 uint8_t *out)
{
	struct num_type raw = {NUM_UINT, from.size, from.big};
	bool same = from.kind == to.kind && from.size == to.size;
	uint64_t bits[NUM_BLOCK];
	double real[NUM_BLOCK];

	if (same && (from.big == to.big || from.size == 1) && from.kind != NUM_BOOL) {
		if (n > 0)
			memcpy(out, in, n * from.size);
		return;
	}
	for (size_t i = 0, m; (m = num_block(n - i)) > 0;
	     i += m, in += m * from.size, out += m * to.size) {
		if (same &&
		    from.kind == NUM_FLOAT) { /* only the byte order may differ */
			num_load_bits(raw, in, m, bits);
			raw.big = to.big;
			num_store_bits(raw, false, bits, m, out);
			raw.big = from.big;
		} else if (from.kind == NUM_FLOAT && to.kind == NUM_FLOAT &&
			   from.size + to.size == 6) {
			convert_halves(from, to, in, m, out);
		} else if (from.kind == NUM_FLOAT) {
			num_load_real(from, in, m, real);
			num_store_real(to, from.size, real, m, out);
		} else {
			num_load_bits(from, in, m, bits);
			num_store_bits(to, from.kind == NUM_INT, bits, m, out);
		}
	}
}
