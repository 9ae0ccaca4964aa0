/* SPDX-License-Identifier: BSD-3-Clause */
/* value.c - which values and types are equal. */
#include "translate/model/value.h"

#include <string.h>

#define DEPTH_MAX 32 /* of types in types; sources refuse deeper ones, here they differ */

/* value_is_nan - whether the bits of an IEEE 754 number of `size` bytes are a NaN. */
static bool value_is_nan(uint64_t bits, size_t size)
{
	switch (size) {
	case 2:
		return (bits & 0x7fff) > 0x7c00;
	case 4:
		return (bits & 0x7fffffff) > 0x7f800000;
	default:
		return (bits & INT64_MAX) > 0x7ff0000000000000;
	}
}

/* value_numbers_equal - n neighbouring numbers of `size` bytes; NaNs equal each other. */
static bool value_numbers_equal(const uint8_t *a, bool a_big, const uint8_t *b, bool b_big,
				size_t size, size_t n, bool is_float)
{
	if (size == 0 || size > 8)
		return false;
	for (size_t i = 0; i < n * size; i += size) {
		uint64_t x = get_uint(a + i, size, a_big), y = get_uint(b + i, size, b_big);

		if (x != y && !(is_float && value_is_nan(x, size) && value_is_nan(y, size)))
			return false;
	}
	return true;
}

static bool values_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
			 const uint8_t *b, unsigned int depth);

/* value_same_shape - fields of the same name, place and extent; *ret_n values each. */
static bool value_same_shape(const struct dt_field *a, const struct dt_field *b, size_t *ret_n)
{
	size_t n = 1;

	if (strcmp(a->name, b->name) != 0 || a->offset != b->offset || a->rank != b->rank)
		return false;
	for (uint32_t d = 0; d < a->rank; d++) {
		if (a->dims[d] != b->dims[d])
			return false;
		n *= (size_t)a->dims[d];
	}
	*ret_n = n;
	return true;
}

static bool value_fields_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
			       const uint8_t *b, unsigned int depth)
{
	if (ta->n_fields != tb->n_fields || depth >= DEPTH_MAX)
		return false;
	for (uint32_t i = 0; i < ta->n_fields; i++) {
		const struct dt_field *fa = &ta->fields[i], *fb = &tb->fields[i];
		size_t n;

		if (!value_same_shape(fa, fb, &n))
			return false;
		for (size_t k = 0; k < n; k++)
			if (!values_equal(&fa->type, a + fa->offset + k * fa->type.size,
					  &fb->type, b + fb->offset + k * fb->type.size,
					  depth + 1))
				return false;
	}
	return true;
}

/* values_equal - one value against another, each in its own type's byte order. */
static bool values_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
			 const uint8_t *b, unsigned int depth)
{
	if (ta->kind != tb->kind || ta->size != tb->size)
		return false;
	switch (ta->kind) {
	case DT_INT:
	case DT_UINT:
		return value_numbers_equal(a, ta->big_endian, b, tb->big_endian, ta->size, 1,
					   false);
	case DT_FLOAT:
		return value_numbers_equal(a, ta->big_endian, b, tb->big_endian, ta->size, 1,
					   true);
	case DT_COMPLEX:
		return value_numbers_equal(a, ta->big_endian, b, tb->big_endian, ta->size / 2,
					   2, true);
	case DT_COMPOUND:
		return value_fields_equal(ta, a, tb, b, depth);
	case DT_BOOL:
	case DT_STRING:
	case DT_OPAQUE:
		return memcmp(a, b, ta->size) == 0;
	case DT_VSTRING:
	case DT_VLEN:
		break;
	}
	return false;
}

bool value_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
		 const uint8_t *b)
{
	return values_equal(ta, a, tb, b, 0);
}

static bool value_types_same(const struct dtype *a, const struct dtype *b, int depth)
{
	if (depth > DEPTH_MAX || a->kind != b->kind || a->size != b->size ||
	    a->big_endian != b->big_endian || a->n_fields != b->n_fields ||
	    !a->base != !b->base)
		return false;
	for (uint32_t i = 0; i < a->n_fields; i++) {
		const struct dt_field *f = &a->fields[i], *g = &b->fields[i];

		if (strcmp(f->name, g->name) != 0 || f->offset != g->offset ||
		    f->rank != g->rank || !value_types_same(&f->type, &g->type, depth + 1))
			return false;
		for (uint32_t d = 0; d < f->rank; d++)
			if (f->dims[d] != g->dims[d])
				return false;
	}
	return !a->base || value_types_same(a->base, b->base, depth + 1);
}

bool value_types_equal(const struct dtype *a, const struct dtype *b)
{
	return value_types_same(a, b, 0);
}

void value_repeat(uint8_t *out, size_t len, const uint8_t *elem, size_t size)
{
	size_t done = size < len ? size : len;

	if (len == 0)
		return;
	memcpy(out, elem, done);
	while (done < len) { /* doubles the filled part */
		size_t n = done < len - done ? done : len - done;

		memcpy(out + done, out, n);
		done += n;
	}
}
