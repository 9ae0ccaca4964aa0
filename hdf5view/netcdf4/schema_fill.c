/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_fill.c - converts `_FillValue` to the form that netCDF requires: one value of exactly the
 * variable's type.
 *
 * The attribute may have another type (a Zarr store's JSON has 0 for a variable of doubles). It is
 * converted if that gives the same number, or the nearest float. Otherwise it could not equal any
 * element, and is left out. */
#include "hdf5view/netcdf4/schema.h"
#include "translate/model/value.h"

#include <string.h>

static bool schema_fill_is_number(const struct dtype *t)
{
	return value_is_number(t) || t->kind == DT_BOOL;
}

/* schema_fill_store - store a number of one type as another, both in host byte order. Returns false
 * if it does not fit. */
static bool schema_fill_store(const struct dtype *from, const uint8_t *p,
			      const struct dtype *to, uint8_t *out)
{
	struct num_type f = value_num(from), t = value_num(to);
	const unsigned int bits = 8 * to->size;
	bool negative;
	uint64_t u; /* two's complement */
	double d;

	f.big = t.big = HOST_BIG_ENDIAN;
	num_load_real(f, p, 1, &d);
	if (to->kind == DT_FLOAT) {
		num_store_real(t, 8, &d, 1, out);
		return true;
	}
	if (from->kind == DT_FLOAT) {
		if (!(d >= -0x1p63 && d < 0x1p64))
			return false;
		negative = d < 0;
		u = negative ? (uint64_t)(int64_t)d : (uint64_t)d;
		if ((negative ? (double)(int64_t)u : (double)u) != d)
			return false;
	} else {
		num_load_bits(f, p, 1, &u);
		negative = from->kind == DT_INT && u >> 63;
	}
	if (to->kind == DT_INT ? u >> (bits - 1) != (negative ? ~(uint64_t)0 >> (bits - 1) : 0)
			       : negative || (bits < 64 && u >> bits != 0))
		return false;
	num_store_bits(t, false, &u, 1, out);
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
	if (!schema_fill_store(&src->type, src->data, &at->type, value)) {
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
