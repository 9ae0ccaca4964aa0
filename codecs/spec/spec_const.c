/* SPDX-License-Identifier: BSD-3-Clause */
/* spec_const.c - typed constants of filter specifications: "-17b", "27US", "1.5d".
 *
 * Valid constants give the same parameters as in netCDF-C 4.9: signed bytes and shorts are cut to
 * their width and not sign-extended, floats are parsed as double. netCDF-C reads numbers with
 * sscanf and ignores invalid characters ("0x10" is 0, "1.5" is 1, "4294967296" is 0): here such
 * constants are rejected.
 *
 * Spec: netCDF-C, filter specification syntax; ncaux_h5filterspec_parse */
#include "codecs/spec/spec_int.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/core/half.h"
#include "base/core/str.h"

#define REAL_MAX ((size_t)63) /* characters of a real number */
#define SHOWN 60

/* tag - the suffix of a whole number. Limits are magnitudes. */
static const struct tag {
	const char *text;
	uint32_t bits;
	uint64_t max, min;
} tags[] = {
	{"", 32, UINT32_MAX, (uint64_t)INT32_MAX + 1},
	{"u", 32, UINT32_MAX, 0},
	{"b", 8, UINT8_MAX, INT8_MAX + 1},
	{"ub", 8, UINT8_MAX, 0},
	{"s", 16, UINT16_MAX, INT16_MAX + 1},
	{"us", 16, UINT16_MAX, 0},
	{"l", 64, INT64_MAX, (uint64_t)INT64_MAX + 1},
	{"ul", 64, UINT64_MAX, 0},
};

int spec_show(size_t n)
{
	return n < SHOWN ? (int)n : SHOWN;
}

static bool spec_const_blank(char c)
{
	return c == ' ' || c == '\t';
}

const char *spec_trim(const char *s, size_t *n)
{
	while (*n > 0 && spec_const_blank(*s)) {
		s++;
		--*n;
	}
	while (*n > 0 && spec_const_blank(s[*n - 1]))
		--*n;
	return s;
}

/* spec_const_digits - the number of digits at s. */
static size_t spec_const_digits(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] >= '0' && s[i] <= '9')
		i++;
	return i;
}

/* real_length - characters of an unsigned decimal number, with or without point and exponent; 0
 * when there is none. */
static size_t real_length(const char *s, size_t n)
{
	size_t at = spec_const_digits(s, n), mantissa = at, power, sign;

	if (at < n && s[at] == '.') {
		size_t fraction = spec_const_digits(s + at + 1, n - at - 1);

		mantissa += fraction;
		at += 1 + fraction;
	}
	if (mantissa == 0)
		return 0;
	if (at < n && (s[at] == 'e' || s[at] == 'E')) {
		sign = at + 1 < n && (s[at + 1] == '+' || s[at + 1] == '-');
		power = spec_const_digits(s + at + 1 + sign, n - at - 1 - sign);
		if (power > 0)
			at += 1 + sign + power;
	}
	return at;
}

static void spec_const_put64(uint64_t v, uint32_t *ret)
{
	ret[0] = (uint32_t)v;
	ret[1] = (uint32_t)(v >> 32);
}

/* real - convert n bytes of text to a number of 32 or (wide) 64 bits. */
static int real(const char *s, size_t n, bool wide, uint32_t *ret, uint32_t *ret_n,
		struct err *e)
{
	char text[REAL_MAX + 1];
	double v;

	if (n > REAL_MAX)
		return err_set(e, -EINVAL,
			       "a floating-point number of %zu characters exceeds %zu", n,
			       REAL_MAX);
	memcpy(text, s, n);
	text[n] = '\0';
	v = strtod(text, NULL);
	if (fabs(v) > (wide ? DBL_MAX : (double)FLT_MAX))
		return err_set(e, -EINVAL, "'%s' does not fit in %s", text,
			       wide ? "64 bits" : "32 bits: append 'd'");
	if (wide) {
		spec_const_put64(f64_bits(v), ret);
		*ret_n = 2;
	} else {
		*ret = f32_bits((float)v);
		*ret_n = 1;
	}
	return 0;
}

static const struct tag *find_tag(const char *s, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (str_is_nocase(tags[i].text, s, n))
			return &tags[i];
	return NULL;
}

/* spec_const_whole - the value of n digits. Returns false when it exceeds 64 bits. */
static bool spec_const_whole(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		if (ckd_mul(&v, v, (uint64_t)10) || ckd_add(&v, v, (uint64_t)(s[i] - '0')))
			return false;
	*ret = v;
	return true;
}

int spec_const(const char *s, size_t n, uint32_t *ret, uint32_t *ret_n, struct err *e)
{
	const bool negative = n > 0 && s[0] == '-';
	const size_t sign = negative || (n > 0 && s[0] == '+');
	const size_t len = real_length(s + sign, n - sign),
		     plain = spec_const_digits(s + sign, n - sign);
	const size_t end = sign + len, rest = n - end;
	const struct tag *t = find_tag(s + end, rest);
	uint64_t v;

	if (n == 0)
		return err_set(e, -EINVAL, "it is empty");
	if (len == 0)
		return err_set(e, -EINVAL, "'%.*s' is not a number", spec_show(n), s);
	if (rest == 1 && memchr("fFdD", s[end], 4))
		return real(s, end, s[end] == 'd' || s[end] == 'D', ret, ret_n, e);
	if (len > plain && rest == 0 && s[end - 1] == '.')
		return real(s, end, false, ret, ret_n, e);
	if (len > plain && rest == 0)
		return err_set(e, -EINVAL,
			       "'%.*s': write %.*sf or %.*sd for a floating-point number",
			       spec_show(n), s, spec_show(n), s, spec_show(n), s);
	if (!t || len > plain)
		return err_set(e, -EINVAL,
			       "'%.*s': unknown tag '%.*s': tags are b ub s us u l ul f d",
			       spec_show(n), s, spec_show(rest), s + end);
	if (!spec_const_whole(s + sign, plain, &v) || v > (negative ? t->min : t->max))
		return err_set(e, -EINVAL, "'%.*s' does not fit in %s%u bits%s", spec_show(n),
			       s, t->min ? "" : "unsigned ", (unsigned int)t->bits,
			       t->bits < 64 ? ": append l or ul" : "");
	if (negative)
		v = 0 - v;
	if (t->bits == 64)
		spec_const_put64(v, ret);
	else
		*ret = (uint32_t)(v & (((uint64_t)1 << t->bits) - 1));
	*ret_n = t->bits == 64 ? 2 : 1;
	return 0;
}
