/* SPDX-License-Identifier: BSD-3-Clause */
/* attributes.c - an attribute from JSON.
 *
 * JSON has no types. NCZarr stores types next to its attributes, and these decide: numbers are
 * checked against the range of their type. Without types they are inferred:
 *
 *   whole numbers            the smallest of int32, uint32, int64, uint64 that holds all
 *   numbers with a real one  double, and whole ones that fit none of these
 *   true, false              uint8
 *   a string                 char
 *   a list of strings        strings
 *   an empty list            an empty attribute of double
 *   null, objects, lists of  their JSON text, as char
 *   lists, mixed lists
 *
 * netCDF-C infers the same with three deliberate exceptions. It takes a list's type from the first
 * element, so that [1, 2.5] loses a half; a list of strings is JSON text there, while xarray
 * writes such lists and expects them back; it rejects a dataset with empty or mixed lists.
 *
 * `_FillValue` has the array's type if its value fits. */
#include "nczarr/source/open.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/core/base64.h"
#include "base/core/endian.h"
#include "base/core/half.h"
#include "base/core/str.h"
#include "base/core/utf8.h"
#include "nczarr/dtype.h"
#include "translate/model/value.h"

/* ---- numbers ---- */

/* attr_real_of - a number, a boolean, or one of the strings for non-finite numbers. */
static int attr_real_of(const json_t *v, double *ret)
{
	static const struct {
		const char *text;
		double v;
	} words[] = {{"NaN", (double)NAN},
		     {"Infinity", (double)INFINITY},
		     {"-Infinity", -(double)INFINITY}};
	struct ds_text t;

	if (json_kind(v) == JSON_IS_BOOL) {
		*ret = json_is_true(v);
		return 0;
	}
	for (size_t i = 0; json_text_of(v, &t) && i < ARRAY_LEN(words); i++)
		if (t.len == strlen(words[i].text) && strcasecmp(t.s, words[i].text) == 0) {
			*ret = words[i].v;
			return 0;
		}
	return json_double(v, ret);
}

static int attr_put_float(uint32_t size, double d, uint8_t *out)
{
	uint16_t h = half_of_double(d);
	float f = (float)d;

	if (isfinite(d) && ((size == 4 && isinf(f)) || (size == 2 && (h & 0x7fff) == 0x7c00)))
		return -EINVAL;
	if (size == 2)
		memcpy(out, &h, 2);
	else if (size == 4)
		memcpy(out, &f, 4);
	else
		memcpy(out, &d, 8);
	return 0;
}

/* attr_put_number - v as one number of type t; -EINVAL: no number, or out of range. */
static int attr_put_number(const struct dtype *t, const json_t *v, uint8_t *out)
{
	uint64_t top = t->size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * t->size) - 1, u;
	int64_t i;
	double d;

	if (t->kind == DT_FLOAT)
		return attr_real_of(v, &d) < 0 ? -EINVAL : attr_put_float(t->size, d, out);
	if (json_kind(v) == JSON_IS_BOOL) {
		put_uint(out, json_is_true(v), t->size, HOST_BIG_ENDIAN);
		return 0;
	}
	if (t->kind == DT_UINT) {
		if (json_u64(v, &u) < 0 || u > top)
			return -EINVAL;
		put_uint(out, u, t->size, HOST_BIG_ENDIAN);
		return 0;
	}
	if (json_i64(v, &i) < 0 || i > (int64_t)(top / 2) || i < -(int64_t)(top / 2) - 1)
		return -EINVAL;
	put_uint(out, (uint64_t)i, t->size, HOST_BIG_ENDIAN);
	return 0;
}

/* attr_extent - one value is a scalar; a list has a dimension. */
static int attr_extent(struct arena *a, const json_t *v, struct ds_attr *at, struct err *e)
{
	uint64_t *dims;

	at->n = 1;
	if (json_kind(v) != JSON_IS_LIST)
		return 0;
	dims = arena_alloc(a, 1, sizeof(*dims));
	if (!dims)
		return zr_full(a, e);
	at->n = dims[0] = json_array_size(v);
	at->rank = 1;
	at->dims = dims;
	return 0;
}

static const json_t *attr_element(const json_t *v, uint64_t i)
{
	return json_kind(v) == JSON_IS_LIST ? json_array_get(v, (size_t)i) : v;
}

/* attr_numbers - one number or a list of them. -EINVAL without a message: out of
 * range. */
static int attr_numbers(struct arena *a, const struct dtype *t, const json_t *v,
			struct ds_attr *at, struct err *e)
{
	uint8_t *data;
	int rc = attr_extent(a, v, at, e);

	if (rc < 0)
		return rc;
	at->type = *t;
	at->type.big_endian = false;
	data = arena_alloc(a, (size_t)at->n, t->size);
	if (!data)
		return zr_full(a, e);
	at->data = data;
	for (uint64_t i = 0; i < at->n; i++)
		if (attr_put_number(t, attr_element(v, i), data + i * t->size) < 0)
			return -EINVAL;
	return 0;
}

/* ---- strings ---- */

static int attr_one_text(struct arena *a, const struct ds_text *t, struct ds_text *ret,
			 struct err *e)
{
	size_t len = t->len;

	while (len && t->s[len - 1] == '\0')
		len--;
	ret->s = arena_copy(a, t->s, len);
	ret->len = len;
	return ret->s ? 0 : zr_full(a, e);
}

/* as_char - a char attribute from one string. */
static int as_char(struct arena *a, const struct ds_text *t, struct ds_attr *at, struct err *e)
{
	struct ds_text *text = arena_alloc(a, 1, sizeof(*text));

	if (!text)
		return zr_full(a, e);
	if (t->len > UINT32_MAX)
		return err_set(e, -ERANGE, "a string of %zu bytes is too long", t->len);
	at->type = (struct dtype){.kind = DT_STRING, .size = t->len ? (uint32_t)t->len : 1};
	at->n = 1;
	at->strings = text;
	return attr_one_text(a, t, text, e);
}

/* attr_text_of - a string, or any other value as its JSON text, which is in b. */
static int attr_text_of(struct arena *a, const json_t *v, struct buf *b, struct ds_text *ret,
			struct err *e)
{
	if (json_text_of(v, ret))
		return 0;
	json_write_text(v, b);
	*ret = (struct ds_text){.s = (const char *)b->data, .len = b->len};
	return buf_ok(b) ? 0 : zr_full(a, e);
}

/* as_json - one char attribute: a string, or any value as its JSON text. */
static int as_json(struct arena *a, const json_t *v, struct ds_attr *at, struct err *e)
{
	auto_buf b = buf_of(a->max);
	struct ds_text t;
	int rc = attr_text_of(a, v, &b, &t, e);

	return rc ? rc : as_char(a, &t, at, e);
}

static int as_strings(struct arena *a, const json_t *v, struct ds_attr *at, struct err *e)
{
	struct ds_text *strings, t;
	int rc = attr_extent(a, v, at, e);

	if (rc < 0)
		return rc;
	strings = arena_alloc(a, (size_t)at->n, sizeof(*strings));
	if (!strings)
		return zr_full(a, e);
	at->type = (struct dtype){.kind = DT_VSTRING};
	at->strings = strings;
	for (uint64_t i = 0; i < at->n && rc == 0; i++) {
		auto_buf b = buf_of(a->max);

		rc = attr_text_of(a, attr_element(v, i), &b, &t, e);
		rc = rc ? rc : attr_one_text(a, &t, &strings[i], e);
	}
	return rc;
}

int zr_attr_text(struct arena *a, const char *name, const char *text, struct ds_attr *ret,
		 struct err *e)
{
	struct ds_text t = {.s = text, .len = strlen(text)};
	struct ds_attr at = {.name = arena_strdup(a, name)};
	int rc = at.name ? as_char(a, &t, &at, e) : zr_full(a, e);

	if (rc == 0)
		*ret = at;
	return rc;
}

/* ---- inference ---- */

struct attr_kinds {
	bool bools, ints, reals, words, strings, others;
};

/* note_kind - classify a value. words: the strings of strict JSON for non-finite numbers. */
static void note_kind(const json_t *v, struct attr_kinds *k)
{
	double d;

	switch (json_kind(v)) {
	case JSON_IS_BOOL:
		k->bools = true;
		break;
	case JSON_IS_NUMBER:
		k->ints |= json_number_is_int(v);
		k->reals |= !json_number_is_int(v);
		break;
	case JSON_IS_TEXT:
		*(attr_real_of(v, &d) == 0 ? &k->words : &k->strings) = true;
		break;
	case JSON_IS_NULL:
	case JSON_IS_LIST:
	case JSON_IS_OBJECT:
		k->others = true;
		break;
	}
}

/* attr_whole - the smallest type for whole numbers; else double. */
static int attr_whole(struct arena *a, const json_t *v, struct ds_attr *at, struct err *e)
{
	static const struct dtype types[] = {{.kind = DT_INT, .size = 4},
					     {.kind = DT_UINT, .size = 4},
					     {.kind = DT_INT, .size = 8},
					     {.kind = DT_UINT, .size = 8},
					     {.kind = DT_FLOAT, .size = 8}};
	size_t n = json_kind(v) == JSON_IS_LIST ? json_array_size(v) : 1, i, k;
	uint8_t tmp[8];

	for (i = 0; i + 1 < ARRAY_LEN(types); i++) {
		for (k = 0; k < n && attr_put_number(&types[i], attr_element(v, k), tmp) == 0;)
			k++;
		if (k == n)
			break;
	}
	return attr_numbers(a, &types[i], v, at, e);
}

static int attr_infer(struct arena *a, const json_t *v, struct ds_attr *at, struct err *e)
{
	static const struct dtype real = {.kind = DT_FLOAT, .size = 8},
				  byte = {.kind = DT_UINT, .size = 1};
	bool list = json_kind(v) == JSON_IS_LIST;
	size_t n = list ? json_array_size(v) : 1;
	struct attr_kinds k = {0};

	if (json_kind(v) == JSON_IS_TEXT)
		return as_json(a, v, at, e);
	for (size_t i = 0; i < n; i++)
		note_kind(attr_element(v, i), &k);
	k.strings = k.strings || (k.words && !k.reals);
	if (k.others || k.bools + k.strings + (k.ints || k.reals) > 1)
		return as_json(a, v, at, e);
	if (k.strings)
		return as_strings(a, v, at, e);
	if (k.bools)
		return attr_numbers(a, &byte, v, at, e);
	return k.reals || n == 0 ? attr_numbers(a, &real, v, at, e) : attr_whole(a, v, at, e);
}

/* ---- given types ---- */

/* typed - an attribute with a dtype of NCZarr. ">S1" and "<U1" are char, "|S<n>" strings. */
static int typed(struct arena *a, const json_t *v, const char *type, struct ds_attr *at,
		 struct err *e)
{
	struct zr_dtype_parts t;
	struct dtype as;
	bool ok = zr_dtype_split(type, &t);
	int rc;

	if (t.kind == 'S' || t.kind == 'U')
		return ok && t.n == 1 && t.order && t.order != '|' ? as_json(a, v, at, e)
								   : as_strings(a, v, at, e);
	if (!ok || t.unit || !zr_dtype_number(&t, &as) || !value_is_number(&as))
		return attr_infer(a, v, at, e);
	rc = attr_numbers(a, &as, v, at, e);
	return rc == -EINVAL
		       ? err_set(e, -EBADMSG, "a value does not fit the type '%.20s'", type)
		       : rc;
}

/* ---- _FillValue ---- */

/* fill_real - a real, or, as xarray writes it to Zarr v3, base64 of a little-endian double. */
static int fill_real(const json_t *v, bool v3, double *ret)
{
	struct ds_text t;
	uint8_t b[16];

	if (attr_real_of(v, ret) == 0)
		return 0;
	if (!v3 || !json_text_of(v, &t) || t.len != 12 || base64_decode(t.s, t.len, b) != 8)
		return -EINVAL;
	*ret = f64_from_bits(get_le64(b));
	return 0;
}

/* attr_fill_text - a string fill value. xarray writes Zarr v3's byte strings as base64:
 * a string longer than an element is base64. */
static int attr_fill_text(struct arena *a, const json_t *v, const struct dtype *like, bool v3,
			  struct ds_attr *at, struct err *e)
{
	struct ds_text t, decoded;
	uint64_t code;
	uint8_t *b;
	ssize_t n;
	char c;

	if (v3 && like->size == 1 && json_u64(v, &code) == 0 && code < 0x80) { /* as a byte */
		c = (char)code;
		t = (struct ds_text){.s = &c, .len = 1};
		return as_char(a, &t, at, e);
	}
	if (!json_text_of(v, &t))
		return -EINVAL;
	if (!v3 || t.len <= like->size)
		return as_char(a, &t, at, e);
	b = arena_alloc(a, t.len + 1, 1);
	if (!b)
		return zr_full(a, e);
	n = base64_decode(t.s, t.len, b);
	if (n < 0 || (size_t)n > like->size || !utf8_ok(b, (size_t)n))
		return as_char(a, &t, at, e);
	decoded = (struct ds_text){.s = (const char *)b, .len = (size_t)n};
	return as_char(a, &decoded, at, e);
}

/* fill_value - v as a value of the array's type; -EINVAL: it is none. */
static int fill_value(struct arena *a, const json_t *v, const struct dtype *like, bool v3,
		      struct ds_attr *at, struct err *e)
{
	uint32_t parts = like->kind == DT_COMPLEX ? 2 : 1;
	uint8_t *data;
	double d;

	if (like->kind == DT_STRING)
		return attr_fill_text(a, v, like, v3, at, e);
	if (parts == 1 && json_kind(v) == JSON_IS_LIST && json_array_size(v) == 1)
		v = json_array_get(v, 0);
	if (like->kind == DT_INT || like->kind == DT_UINT)
		return json_kind(v) == JSON_IS_NUMBER ? attr_numbers(a, like, v, at, e)
						      : -EINVAL;
	if (like->kind == DT_BOOL && json_kind(v) != JSON_IS_BOOL)
		return -EINVAL;
	if (like->kind != DT_FLOAT && like->kind != DT_BOOL && like->kind != DT_COMPLEX)
		return -EINVAL;
	data = arena_alloc(a, 1, like->size);
	if (!data)
		return zr_full(a, e);
	if (like->kind == DT_BOOL)
		data[0] = json_is_true(v);
	else if (parts == 2 && json_array_size(v) != 2)
		return -EINVAL;
	for (uint32_t i = 0; like->kind != DT_BOOL && i < parts; i++)
		if (fill_real(attr_element(v, i), v3, &d) < 0 ||
		    attr_put_float(like->size / parts, d, data + i * (like->size / parts)) < 0)
			return -EINVAL;
	at->type = *like;
	at->type.big_endian = false;
	at->n = 1;
	at->data = data;
	return 0;
}

int zr_attr_make(struct arena *a, const char *name, const json_t *v, const char *type,
		 const struct dtype *like, bool v3, struct ds_attr *ret, struct err *e)
{
	struct ds_attr at = {0};
	int rc = -EINVAL;

	if (type)
		rc = typed(a, v, type, &at, e);
	else if (like)
		rc = fill_value(a, v, like, v3, &at, e);
	if (rc == -EINVAL) {
		at = (struct ds_attr){0};
		rc = attr_infer(a, v, &at, e);
	}
	if (rc == 0) {
		at.name = arena_strdup(a, name);
		if (!at.name)
			rc = zr_full(a, e);
	}
	if (rc == 0)
		*ret = at;
	return rc;
}
