/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_fill.c - converts `_FillValue` to the form that netCDF requires: one value of exactly the
 * variable's type.
 *
 * The attribute may have another type (a Zarr store's JSON has 0 for a variable of doubles). It is
 * converted if that gives the same number, or the nearest float. Otherwise it could not equal any
 * element, and is left out. */
#include "base/core/half.h"
#include "hdf5view/netcdf4/schema.h"

#include <string.h>

static bool schema_fill_is_number(const struct dtype *t)
{
	return t->kind == DT_INT || t->kind == DT_UINT || t->kind == DT_FLOAT ||
	       t->kind == DT_BOOL;
}

/* number - a value of any numeric type. */
struct number {
	bool is_float, negative;
	double d;
	uint64_t u; /* the bits of a whole number, two's complement */
};

/* schema_fill_load - load one value in host byte order. */
static struct number schema_fill_load(const struct dtype *t, const uint8_t *p)
{
	struct number v = {.is_float = t->kind == DT_FLOAT};
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		float f;
		double d;
	} x = {0};

	memcpy(&x, p, t->size <= sizeof(x) ? t->size : sizeof(x));
	if (v.is_float)
		v.d = t->size == 2 ? half_to_double(x.u16) : t->size == 4 ? (double)x.f : x.d;
	else
		v.u = t->size == 1 ? x.u8 : t->size == 2 ? x.u16 : t->size == 4 ? x.u32 : x.u64;
	if (t->kind == DT_INT && t->size < 8 && v.u >> (8 * t->size - 1) & 1)
		v.u |= ~(uint64_t)0 << 8 * t->size;
	v.negative = t->kind == DT_INT && v.u >> 63;
	return v;
}

/* schema_fill_whole - the value as a whole number; false if it is not one of 64 bits. */
static bool schema_fill_whole(struct number *v)
{
	if (!v->is_float)
		return true;
	if (!(v->d >= -0x1p63 && v->d < 0x1p64))
		return false;
	v->negative = v->d < 0;
	v->u = v->negative ? (uint64_t)(int64_t)v->d : (uint64_t)v->d;
	v->is_float = false;
	return (v->negative ? (double)(int64_t)v->u : (double)v->u) == v->d;
}

/* schema_fill_store - store the value as type t, host byte order. Returns false if it does not
 * fit. */
static bool schema_fill_store(struct number v, const struct dtype *t, uint8_t *out)
{
	unsigned int bits = 8 * t->size;
	bool fits;
	double d = v.is_float ? v.d : v.negative ? (double)(int64_t)v.u : (double)v.u;
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		float f;
		double d;
	} x = {0};

	if (t->kind == DT_FLOAT) {
		if (t->size == 8)
			x.d = d;
		else
			x.f = (float)d;
		memcpy(out, &x, t->size);
		return true;
	}
	if (!schema_fill_whole(&v))
		return false;
	if (t->kind == DT_INT)
		fits = v.u >> (bits - 1) == (v.negative ? ~(uint64_t)0 >> (bits - 1) : 0);
	else
		fits = !v.negative && (bits == 64 || v.u >> bits == 0);
	if (!fits)
		return false;
	x.u64 = v.u;
	if (t->size == 1)
		x.u8 = (uint8_t)v.u;
	else if (t->size == 2)
		x.u16 = (uint16_t)v.u;
	else if (t->size == 4)
		x.u32 = (uint32_t)v.u;
	memcpy(out, &x, t->size);
	return true;
}

/* made - src with other content, in the arena; NULL when memory is short. */
static struct ds_attr *made(struct nc_model *m, const struct ds_attr *src)
{
	struct ds_attr *at = arena_alloc(&m->arena, 1, sizeof(*at));

	if (at) {
		*at = *src;
		at->n = 1;
		at->rank = 0;
		at->dims = NULL;
	}
	return at;
}

/* fill_number - _FillValue of a numeric variable. */
static int fill_number(struct nc_model *m, const struct ds_array *a, const struct ds_attr *src,
		       struct nc_attr *ret, const char **ret_why)
{
	struct ds_attr *at = made(m, src);
	uint8_t *value = arena_alloc(&m->arena, 1, 8);

	if (!at || !value)
		return -ENOMEM;
	if (!schema_fill_is_number(&src->type) || !src->data) {
		*ret_why = "is left out: it is not a number, but the variable is numeric";
		return 0;
	}
	at->type = a->type;
	at->type.big_endian = false;
	if (at->type.kind == DT_FLOAT && at->type.size == 2)
		at->type.size = 4; /* netCDF's presentation of half floats */
	if (at->type.kind == DT_BOOL)
		at->type.kind = DT_INT;
	if (!schema_fill_store(schema_fill_load(&src->type, src->data), &at->type, value)) {
		*ret_why = "is left out: its value does not fit the variable's type";
		return 0;
	}
	at->data = value;
	ret->src = at;
	ret->as = at->type;
	ret->form = NC_ATTR_VALUES;
	return 1;
}

/* fill_chars - _FillValue of a variable of characters: one character. */
static int fill_chars(struct nc_model *m, const struct ds_array *a, const struct ds_attr *src,
		      struct nc_attr *ret, const char **ret_why)
{
	struct ds_attr *at = made(m, src);
	struct ds_text *text = arena_alloc(&m->arena, 1, sizeof(*text));
	const struct ds_text *t = src->strings;
	bool same = t != NULL && (t->len == 0 || t->len == a->type.size);

	if (!at || !text)
		return -ENOMEM;
	for (size_t i = 1; same && i < t->len; i++)
		same = t->s[i] == t->s[0];
	if (!same) {
		*ret_why = "is left out: the fill value of a netCDF variable of characters is "
			   "one character";
		return 0;
	}
	*text = (struct ds_text){t->s, t->len ? 1 : 0};
	at->type = (struct dtype){.kind = DT_STRING, .size = 1};
	at->strings = text;
	ret->src = at;
	ret->form = NC_ATTR_TEXT;
	return 1;
}

int nc_fill_attr(struct nc_model *m, uint32_t array, const struct ds_attr *src,
		 struct nc_attr *ret, const char **ret_why)
{
	const struct ds_array *a = &m->ds->arrays[array];
	bool text = src->type.kind == DT_STRING || src->type.kind == DT_VSTRING;

	if (src->n != 1) {
		*ret_why = "is left out: it is not a single value";
		return 0;
	}
	if (schema_fill_is_number(&a->type))
		return fill_number(m, a, src, ret, ret_why);
	if (a->type.kind == DT_STRING)
		return fill_chars(m, a, src, ret, ret_why);
	if (a->type.kind == DT_VSTRING && text) {
		ret->form = NC_ATTR_STRINGS;
		return 1;
	}
	if (a->type.kind == DT_VLEN || !nc_type_same(&a->type, &src->type, true)) {
		*ret_why = "is left out: its type differs from the variable's";
		return 0;
	}
	ret->form = NC_ATTR_VALUES;
	ret->as = a->type;
	ret->type = m->arrays[array].type;
	return 1;
}
