/* SPDX-License-Identifier: BSD-3-Clause */
/* quant.c - floats with fewer significant bits, the same bits as netCDF-C.
 *
 * BitGroom clears the low bits of every other element and sets those of the others, BitRound rounds
 * to a number of bits, Granular BitRound to as many bits as the element needs for its decimal
 * digits. If more bits are requested than the type has, so that netCDF-C would shift by a negative
 * number, elements are unchanged. */
#include "codecs/numeric/quant.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/core/endian.h"
#include "base/core/half.h"
#include "base/core/str.h"
#include "codecs/spec/var_pattern.h"

#define FLOAT_BITS 23 /* of the significand, without the implied one */
#define DOUBLE_BITS 52
#define FLOAT_DIGITS 7
#define DOUBLE_DIGITS 15

/* The default fill values of netCDF: NC_FILL_FLOAT, NC_FILL_DOUBLE. */
#define FILL 9.9692099683868690e+36

static const struct {
	const char *name;
	const char *attr;
} modes[] = {
	[CODEC_QUANT_BITGROOM] = {"bitgroom", "_QuantizeBitGroomNumberOfSignificantDigits"},
	[CODEC_QUANT_GRANULARBR] = {"granularbr",
				    "_QuantizeGranularBitRoundNumberOfSignificantDigits"},
	[CODEC_QUANT_BITROUND] = {"bitround", "_QuantizeBitRoundNumberOfSignificantBits"},
};

const char *codec_quant_attr(enum codec_quant_mode mode)
{
	return (size_t)mode < ARRAY_LEN(modes) ? modes[mode].attr : NULL;
}

/* ---- elements ---- */

struct floats {
	size_t size; /* bytes of an element, 4 or 8 */
	bool big;    /* big-endian */
	double fill;
};

static double quant_value(const struct floats *f, uint64_t bits)
{
	return f->size == 4 ? (double)f32_from_bits((uint32_t)bits) : f64_from_bits(bits);
}

static struct floats floats_of(size_t elem_size, bool big_endian, const uint8_t *fill)
{
	struct floats f = {.size = elem_size, .big = big_endian};

	if (fill)
		f.fill = quant_value(&f, get_uint(fill, f.size, f.big));
	else
		f.fill = f.size == 4 ? (double)(float)FILL : FILL;
	return f;
}

static int significand_bits(const struct floats *f)
{
	return f->size == 4 ? FLOAT_BITS : DOUBLE_BITS;
}

/* ---- the number of significant bits ---- */

/* groom_bits - enough for decimal digits, of any element. Spec: Zender (2016), 2.1. */
static int groom_bits(uint32_t digits)
{
	return (int)ceil((double)digits * (M_LN10 / M_LN2)) + 1;
}

/* granular_bits - the bits that the decimal digits of this element need. It is finite and not zero.
 * Operations and their order are netCDF-C's, so that rounding is the same. Spec: Delaunay et al.
 * (2019), equations 7 and 8. */
static int granular_bits(double v, uint32_t digits)
{
	const double bit_per_digit = M_LN10 / M_LN2, digit_per_bit = M_LN2 / M_LN10;
	int exponent;
	const double log10_significand = log10(fabs(frexp(v, &exponent)));
	const int before_point =
		(int)floor((double)exponent * digit_per_bit + log10_significand) + 1;
	const int quantum = (int)floor(bit_per_digit * (double)(before_point - (int)digits));

	return abs((int)floor((double)exponent - bit_per_digit * log10_significand) - quantum) -
	       1;
}

/* low_mask - the insignificant bits of an element with `bits` significant ones in its significand;
 * 0 when all are significant. */
static uint64_t low_mask(const struct floats *f, int bits)
{
	const int low = significand_bits(f) - bits;

	return bits >= 0 && low > 0 ? ((uint64_t)1 << low) - 1 : 0;
}

/* rounded - round to nearest, halves away from zero; may carry into the exponent. */
static uint64_t rounded(uint64_t bits, uint64_t low)
{
	return (bits + (low - (low >> 1))) & ~low;
}

void codec_quantize(const struct codec_quant *q, size_t elem_size, bool big_endian,
		    const uint8_t *fill, uint8_t *data, uint64_t n)
{
	struct floats f;
	uint64_t low = 0;

	if (q->mode == CODEC_QUANT_NONE || (elem_size != 4 && elem_size != 8))
		return;
	f = floats_of(elem_size, big_endian, fill);
	if (q->mode == CODEC_QUANT_BITGROOM)
		low = low_mask(&f, groom_bits(q->digits));
	else if (q->mode == CODEC_QUANT_BITROUND)
		low = low_mask(&f, (int)q->digits);

	for (uint64_t i = 0; i < n; i++, data += elem_size) {
		uint64_t bits = get_uint(data, f.size, f.big);
		const double v = quant_value(&f, bits);

		if (v == f.fill || v == 0 || isnan(v))
			continue;
		if (q->mode == CODEC_QUANT_GRANULARBR)
			low = isfinite(v) ? low_mask(&f, granular_bits(v, q->digits)) : 0;
		if (low == 0)
			continue;
		if (q->mode == CODEC_QUANT_BITGROOM)
			bits = i % 2 == 0 ? bits & ~low : bits | low;
		else
			bits = rounded(bits, low);
		put_uint(data, bits, f.size, f.big);
	}
}

/* ---- rules ---- */

/* last_comma - the index of the last comma of the n bytes; n: there is none. */
static size_t last_comma(const char *s, size_t n)
{
	const char *at = memrchr(s, ',', n);

	return at ? (size_t)(at - s) : n;
}

static enum codec_quant_mode find_mode(const char *s, size_t n)
{
	for (size_t i = 1; i < ARRAY_LEN(modes); i++)
		if (str_is_nocase(modes[i].name, s, n))
			return (enum codec_quant_mode)i;
	return CODEC_QUANT_NONE;
}

/* parse_end - parse "bitgroom,3" or "none" at the end of the n bytes. Returns 0 with the number of
 * bytes before it and its comma, or -EINVAL. */
static int parse_end(const char *s, size_t n, struct codec_quant *ret, size_t *ret_before,
		     struct err *e)
{
	const size_t number = last_comma(s, n);
	const char *word = s + (number < n ? number + 1 : 0);
	size_t mode;
	uint64_t digits, max;

	*ret = (struct codec_quant){.mode = CODEC_QUANT_NONE};
	if (strlen(word) == 4 && strcasecmp(word, "none") == 0) {
		*ret_before = number < n ? number : 0;
		return 0;
	}
	if (number == n)
		return err_set(e, -EINVAL, "'%.200s' does not have the form [VARS,]MODE,N", s);

	mode = last_comma(s, number);
	word = s + (mode < number ? mode + 1 : 0);
	ret->mode = find_mode(word, (size_t)(s + number - word));
	if (ret->mode == CODEC_QUANT_NONE)
		return err_set(
			e, -EINVAL,
			"'%.*s' is not a mode: write bitgroom, granularbr, bitround or none",
			(int)u64_min((uint64_t)(s + number - word), 200), word);
	max = ret->mode == CODEC_QUANT_BITROUND ? DOUBLE_BITS : DOUBLE_DIGITS;
	if (str_u64(s + number + 1, n - number - 1, max, &digits) != 0 || digits == 0)
		return err_set(e, -EINVAL, "%s: '%.200s' is not a number from 1 to %d",
			       modes[ret->mode].name, s + number + 1, (int)max);
	ret->digits = (uint32_t)digits;
	*ret_before = mode < number ? mode : 0;
	return 0;
}

int codec_quant_rule_add(struct arena *a, const char *text, struct codec_quant_rules *rules,
			 struct err *e)
{
	struct codec_quant_rule rule = {.vars = "*"}, *v;
	size_t before = 0;
	int rc = parse_end(text, strlen(text), &rule.quant, &before, e);

	if (rc == 0 && (before > 0 || *text == ','))
		rc = codec_vars_check(text, before, e);
	if (rc != 0)
		return rc;
	if (before > 0)
		rule.vars = arena_copy(a, text, before);
	v = arena_alloc(a, (size_t)rules->n + 1, sizeof(*v));
	if (!rule.vars || !v)
		return err_nomem(e);
	if (rules->n > 0)
		memcpy(v, rules->v, rules->n * sizeof(*v));
	v[rules->n] = rule;
	*rules = (struct codec_quant_rules){.n = rules->n + 1, .v = v};
	return 0;
}

struct codec_quant codec_quant_for(const struct codec_quant_rules *rules, const char *path,
				   size_t elem_size)
{
	const struct codec_quant none = {.mode = CODEC_QUANT_NONE};
	const struct codec_quant_rule *rule =
		codec_vars_best(rules->v, rules->n, sizeof(*rules->v), path);
	const struct codec_quant *best = rule ? &rule->quant : &none;
	uint32_t max;

	if (best->mode == CODEC_QUANT_BITROUND)
		max = elem_size == 4 ? FLOAT_BITS : DOUBLE_BITS;
	else
		max = elem_size == 4 ? FLOAT_DIGITS : DOUBLE_DIGITS;
	return (elem_size == 4 || elem_size == 8) && best->digits <= max ? *best : none;
}
