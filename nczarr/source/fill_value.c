/* SPDX-License-Identifier: BSD-3-Clause */
/* fill_value.c - the bytes of absent elements from fill_value.
 *
 * The forms of Zarr v2 and v3 differ little, and readers are lenient: a form of one version is
 * accepted in both if it is unambiguous. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/base64.h"
#include "base/core/endian.h"
#include "base/core/half.h"
#include "base/core/str.h"
#include "base/core/utf8.h"
#include "nczarr/source/array_metadata.h"
#include "nczarr/source/chunks.h"

#define NAT INT64_MIN /* numpy's "not a time" */

struct filling {
	struct arena *a;
	const struct zr_meta *m;
	bool in_fields; /* in an object of field values */
	struct err *e;
};

/* fill_bad - "fill_value 300 is not a value of uint8". */
static int fill_bad(const struct filling *f, const json_t *v, const char *what)
{
	auto_buf b = buf_of(1 << 16); /* longer values are not shown */

	json_write_text(v, &b);
	if (!buf_ok(&b))
		return err_set(f->e, -EBADMSG, "fill_value is not %s", what);
	return err_set(f->e, -EBADMSG, "fill_value %.*s is not %s", (int)u64_min(b.len, 60),
		       (const char *)b.data, what);
}

/* byte_list - [1, 2, 255], for r16 and similar types. */
static bool byte_list(const json_t *v, uint8_t *out)
{
	uint64_t one;

	for (size_t i = 0; i < json_array_size(v); i++) {
		if (json_u64(json_array_get(v, i), &one) < 0 || one > UINT8_MAX)
			return false;
		out[i] = (uint8_t)one;
	}
	return true;
}

/* stored_bytes - bytes from base64 or a list. *ret is new (free it). Returns 0; -EINVAL: not
 * bytes; -ENOMEM. */
static int stored_bytes(const struct filling *f, const json_t *v, uint8_t **ret,
			size_t *ret_len)
{
	struct ds_text s;
	bool text = json_text_of(v, &s);
	auto_free uint8_t *p = NULL;
	ssize_t n = (ssize_t)json_array_size(v);

	if (!text && json_kind(v) != JSON_IS_LIST)
		return -EINVAL;
	p = alloc_array(text ? s.len : (size_t)n, 1);
	if (!p)
		return err_nomem(f->e);
	if (text)
		n = base64_decode(s.s, s.len, p);
	if (n < 0 || (!text && !byte_list(v, p)))
		return -EINVAL;
	*ret_len = (size_t)n;
	*ret = steal(&p);
	return 0;
}

static bool is_zero(const json_t *v)
{
	int64_t i;

	return (json_i64(v, &i) == 0 && i == 0) || json_is_false(v);
}

/* ---- numbers ---- */

/* fill_quoted - a number in a string, as bioformats2raw writes "0"; without surrounding
 * white space. false: v is no string. */
static bool fill_quoted(const json_t *v, struct ds_text *ret)
{
	if (!json_text_of(v, ret))
		return false;
	while (ret->len && memchr(" \t\n\r", ret->s[0], 4))
		ret->s++, ret->len--;
	while (ret->len && memchr(" \t\n\r", ret->s[ret->len - 1], 4))
		ret->len--;
	return true;
}

static int put_bool(const struct filling *f, const json_t *v, uint8_t *out)
{
	double d;

	if (json_kind(v) == JSON_IS_BOOL)
		out[0] = json_is_true(v);
	else if (json_double(v, &d) == 0 && (f->m->format < 3 || d == 0 || d == 1))
		out[0] = d != 0;
	else
		return fill_bad(f, v, "a bool");
	return 0;
}

/* fill_int_of - the sign and the magnitude of an integer: a number, a bool, or a quoted
 * number. Zarr v2 truncates fractions, as numpy does. */
static bool fill_int_of(const struct filling *f, const json_t *v, bool *negative, uint64_t *ret)
{
	struct ds_text s;
	int64_t i;
	double d;

	*negative = false;
	if (json_kind(v) == JSON_IS_BOOL) {
		*ret = json_is_true(v);
		return true;
	}
	if (fill_quoted(v, &s)) {
		*negative = s.len && s.s[0] == '-';
		if (s.len && (s.s[0] == '-' || s.s[0] == '+'))
			s.s++, s.len--;
		while (s.len > 1 && s.s[0] == '0')
			s.s++, s.len--;
		return str_u64(s.s, s.len, UINT64_MAX, ret) == 0;
	}
	if (json_u64(v, ret) == 0)
		return true;
	if (json_i64(v, &i) == 0) {
		*negative = true;
		*ret = 0 - (uint64_t)i;
		return true;
	}
	if (f->m->format > 2 || json_double(v, &d) < 0 || !(fabs(d) < 0x1p63))
		return false;
	*negative = d < 0;
	*ret = (uint64_t)fabs(d);
	return true;
}

/* fill_put_int - in Zarr v2 an integer that is too large for the type is reduced modulo the
 * type's range, as zarr-python 2 does. */
static int fill_put_int(const struct filling *f, const struct dtype *t, const json_t *v,
			uint8_t *out)
{
	bool sign = t->kind == DT_INT, negative;
	bool time = f->in_fields || f->m->dtype.units || f->m->dtype.numpy;
	uint64_t max = UINT64_MAX >> (64 - 8 * t->size + sign);
	char what[32];
	uint64_t u;

	(void)snprintf(what, sizeof(what), "a value of %sint%" PRIu32, sign ? "" : "u",
		       8 * t->size);
	if (sign && time && t->size == 8 && json_is(v, "NaT")) {
		put_uint(out, (uint64_t)NAT, t->size, t->big_endian);
		return 0;
	}
	/* a quoted date is no quoted number */
	if ((time && json_kind(v) == JSON_IS_TEXT) || !fill_int_of(f, v, &negative, &u))
		return fill_bad(f, v, what);
	if (u > (negative ? (sign ? max + 1 : 0) : max) &&
	    (f->m->format > 2 || u > (uint64_t)INT64_MAX + negative))
		return fill_bad(f, v, what);
	put_uint(out, negative ? 0 - u : u, t->size, t->big_endian);
	return 0;
}

/* float_bits - v in `size` bytes; a number that is too large is infinite, as in numpy. */
static uint64_t float_bits(double v, uint32_t size)
{
	if (size == 2)
		return half_of_double(v);
	if (isnan(v)) /* the NaN without sign and payload */
		return size == 8 ? 0x7ff8000000000000 : 0x7fc00000;
	return size == 8 ? f64_bits(v) : f32_bits((float)v);
}

/* float_of - a number, a bool, or a quoted number. */
static bool float_of(const json_t *v, double *ret)
{
	struct ds_text s;
	const char *word;
	char *end;

	if (json_kind(v) == JSON_IS_BOOL) {
		*ret = json_is_true(v);
		return true;
	}
	if (!fill_quoted(v, &s))
		return json_double(v, ret) == 0;
	word = s.s + (s.len && (s.s[0] == '-' || s.s[0] == '+'));
	/* neither hexadecimal, which stands for bits here, nor nan(...) */
	if (s.len == 0 || !strchr("0123456789.iInN", *word) || memchr(s.s, 'x', s.len) ||
	    memchr(s.s, 'X', s.len) || memchr(s.s, '(', s.len))
		return false;
	*ret = strtod(s.s, &end);
	return end == s.s + s.len;
}

/* hex_bits - "0x7fc00000": as many digits as the type has, or fewer. */
static bool hex_bits(const struct ds_text *s, uint32_t size, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdefABCDEF";

	if (s->len < 3 || s->len > 2 + 2 * (size_t)size || strncmp(s->s, "0x", 2) != 0 ||
	    strspn(s->s + 2, digits) != s->len - 2)
		return false;
	*ret = 0;
	for (size_t i = 2; i < s->len; i++) {
		const uint64_t at = (uint64_t)(strchr(digits, s->s[i]) - digits);

		*ret = *ret << 4 | (at < 16 ? at : at - 6);
	}
	return true;
}

static int fill_put_float(const struct filling *f, const json_t *v, uint32_t size, bool big,
			  uint8_t *out)
{
	struct ds_text s;
	char what[32];
	uint64_t bits;
	double d;

	(void)snprintf(what, sizeof(what), "a value of float%" PRIu32, 8 * size);
	if (!json_text_of(v, &s) || !hex_bits(&s, size, &bits)) {
		if (!float_of(v, &d))
			return fill_bad(f, v, what);
		bits = float_bits(d, size);
	}
	put_uint(out, bits, size, big);
	return 0;
}

static int put_complex(const struct filling *f, const struct dtype *t, const json_t *v,
		       uint8_t *out)
{
	uint32_t half = t->size / 2;
	bool pair = json_kind(v) == JSON_IS_LIST && json_array_size(v) == 2;
	int rc;

	if (!pair && json_kind(v) != JSON_IS_NUMBER)
		return fill_bad(f, v, "a pair of numbers");
	rc = fill_put_float(f, pair ? json_array_get(v, 0) : v, half, t->big_endian, out);
	if (rc == 0 && pair)
		rc = fill_put_float(f, json_array_get(v, 1), half, t->big_endian, out + half);
	return rc;
}

/* ---- bytes and strings ---- */

static size_t count_chars(const struct ds_text *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->len; i++)
		n += ((unsigned char)s->s[i] & 0xc0) != 0x80;
	return n;
}

/* put_chars - U: a string of at most this many characters. */
static int put_chars(const struct filling *f, const struct dtype *t, const json_t *v,
		     uint8_t *out)
{
	struct ds_text s;

	if (!json_text_of(v, &s) || count_chars(&s) > t->size / 4 || s.len > t->size)
		return fill_bad(f, v, "a string that fits");
	if (s.len)
		memcpy(out, s.s, s.len);
	return 0;
}

/* fill_put_text - S: base64, or the plain string as older numcodecs and netCDF-C write it. */
static int fill_put_text(const struct filling *f, const struct dtype *t, const json_t *v,
			 uint8_t *out)
{
	auto_free uint8_t *p = NULL;
	struct ds_text s;
	size_t n = 0;
	int rc = stored_bytes(f, v, &p, &n);

	if (rc == -ENOMEM)
		return rc;
	while (n > t->size && p[n - 1] == '\0')
		n--;
	if (rc == 0 && n <= t->size) {
		memcpy(out, p, n);
		return 0;
	}
	if (!json_text_of(v, &s) || s.len > t->size)
		return fill_bad(f, v, "a string that fits");
	memcpy(out, s.s, s.len);
	return 0;
}

/* ---- structures ---- */

static int fill_put_value(const struct filling *f, const struct dtype *t, const json_t *v,
			  uint8_t *out);

/* put_codes - characters of a field: their code points. */
static int put_codes(const struct filling *f, const struct dt_field *fd, const json_t *v,
		     uint8_t *out)
{
	struct ds_text s = {.s = NULL};
	size_t room = (size_t)fd->dims[fd->rank - 1], step;
	uint32_t code;

	if (!json_text_of(v, &s) || count_chars(&s) > room)
		return fill_bad(f, v, "a string that fits");
	for (size_t i = 0; i < s.len; i += step, out += 4) {
		step = utf8_decode(s.s + i, s.len - i, &code);
		if (step == 0)
			return fill_bad(f, v, "valid UTF-8");
		put_uint(out, code, 4, fd->type.big_endian);
	}
	return 0;
}

/* fill_put_fields - {"a": 1, "b": "NaN"}: other fields are zero. */
static int fill_put_fields(const struct filling *f, const struct dtype *t, const json_t *v,
			   uint8_t *out)
{
	struct filling in = *f;
	int rc = 0;

	in.in_fields = true;
	for (uint32_t i = 0; rc == 0 && i < t->n_fields; i++) {
		const struct dt_field *fd = &t->fields[i];
		const json_t *one = json_get(v, fd->name);
		uint8_t *at = out + fd->offset;

		if (!one)
			continue;
		if (fd->rank == 1 && fd->type.kind == DT_UINT && fd->type.size == 4)
			rc = put_codes(&in, fd, one, at);
		else if (fd->rank)
			rc = err_set(f->e, -EOPNOTSUPP,
				     "the fill_value of field '%s', which is an array, is not "
				     "supported",
				     fd->name);
		else
			rc = fill_put_value(&in, &fd->type, one, at);
	}
	return rc;
}

/* fill_put_whole - an element as its stored bytes, for opaque types and structures. */
static int fill_put_whole(const struct filling *f, const struct dtype *t, const json_t *v,
			  uint8_t *out)
{
	const struct zr_dtype *d = &f->m->dtype;
	const bool fields = t->kind == DT_COMPOUND && d->conv == ZR_FIELDS;
	auto_free uint8_t *p = NULL;
	size_t n = 0;
	int rc = t->kind == DT_COMPOUND && f->in_fields ? -EINVAL : stored_bytes(f, v, &p, &n);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0 || (n && n != (t->kind == DT_COMPOUND ? d->stored : t->size)))
		return fill_bad(f, v, "as many bytes as an element");
	if (n && fields)
		zr_fields(d, 1, false, p, out);
	else
		memcpy(out, p, n);
	return 0;
}

/* fill_put_value - write one value to t.size zeroed bytes. The depth of recursion is that of
 * the type. */
static int fill_put_value(const struct filling *f, const struct dtype *t, const json_t *v,
			  uint8_t *out)
{
	const bool bytes =
		t->kind == DT_STRING || t->kind == DT_OPAQUE || t->kind == DT_COMPOUND;

	if (t->kind == DT_COMPOUND && json_kind(v) == JSON_IS_OBJECT)
		return fill_put_fields(f, t, v, out);
	if (bytes && is_zero(v))
		return 0;
	switch (t->kind) {
	case DT_BOOL:
		return put_bool(f, v, out);
	case DT_INT:
	case DT_UINT:
		return fill_put_int(f, t, v, out);
	case DT_FLOAT:
		return fill_put_float(f, v, t->size, t->big_endian, out);
	case DT_COMPLEX:
		return put_complex(f, t, v, out);
	case DT_STRING:
		return !f->in_fields && f->m->dtype.conv == ZR_UTF32
			       ? put_chars(f, t, v, out)
			       : fill_put_text(f, t, v, out);
	case DT_OPAQUE:
	case DT_COMPOUND:
		return fill_put_whole(f, t, v, out);
	case DT_VSTRING:
	case DT_VLEN:
		break;
	}
	return fill_bad(f, v, "of a type of fixed size");
}

/* ---- elements of any length ---- */

/* fill_objects - strings; a number is its source text, and 0 the empty string. Lists have only the
 * empty list as a fill value in the model. */
static int fill_objects(const struct filling *f, const json_t *v, struct ds_array *ret)
{
	const char *number = json_number_text(v);
	struct ds_text s = {.s = "", .len = 0};

	if (ret->type.kind == DT_VLEN) {
		if (!is_zero(v) && !json_is(v, "") &&
		    (json_kind(v) != JSON_IS_LIST || json_array_size(v)))
			return err_set(
				f->e, -EOPNOTSUPP,
				"a fill_value for variable-length elements is not supported");
	} else if (number && !is_zero(v)) {
		s = (struct ds_text){.s = number, .len = strlen(number)};
	} else if (!json_text_of(v, &s) && !is_zero(v)) {
		return fill_bad(f, v, "a string");
	}
	ret->fill_text = (struct ds_text){.s = arena_copy(f->a, s.s, s.len), .len = s.len};
	ret->fill_defined = true;
	return ret->fill_text.s ? 0 : zr_full(f->a, f->e);
}

int zr_fill_value(struct arena *a, const struct zr_meta *m, struct ds_array *ret, struct err *e)
{
	struct filling f = {.a = a, .m = m, .e = e};
	uint8_t *fill;
	uint64_t u;
	int rc;

	ret->fill_defined = false;
	ret->fill = NULL;
	ret->fill_text = (struct ds_text){.s = "", .len = 0};
	if (dt_is_vlen(&ret->type))
		return json_kind(m->fill) == JSON_IS_NULL ? 0 : fill_objects(&f, m->fill, ret);
	fill = arena_alloc(a, ret->type.size, 1);
	if (!fill)
		return zr_full(a, e);
	ret->fill = fill;
	if (json_kind(m->fill) == JSON_IS_NULL)
		return 0;
	if (m->as_bytes) { /* one value for all bytes */
		if (json_u64(m->fill, &u) < 0 || u > UINT8_MAX)
			return fill_bad(&f, m->fill, "a value of uint8");
		memset(fill, (int)u, ret->type.size);
		rc = 0;
	} else {
		rc = fill_put_value(&f, &ret->type, m->fill, fill);
	}
	ret->fill_defined = rc == 0;
	return rc;
}
