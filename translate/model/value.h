/* SPDX-License-Identifier: BSD-3-Clause */
/* value.h - elements of the model's types: numbers of any type and byte order, and equality. */
#ifndef TRANSLATE_MODEL_VALUE_H
#define TRANSLATE_MODEL_VALUE_H

#include <string.h>

#include "base/core/endian.h"
#include "codecs/numeric/numbers.h"
#include "translate/model/dataset.h"

static inline bool value_is_number(const struct dtype *t)
{
	return t->kind == DT_INT || t->kind == DT_UINT || t->kind == DT_FLOAT;
}

/* value_num - a type of numbers for num_load_real and similar functions. */
static inline struct num_type value_num(const struct dtype *t)
{
	return (struct num_type){.kind = t->kind == DT_INT     ? NUM_INT
					 : t->kind == DT_FLOAT ? NUM_FLOAT
							       : NUM_UINT,
				 .size = t->size,
				 .big = t->big_endian};
}

/* value_attr - element i of an attribute of numbers. */
static inline double value_attr(const struct ds_attr *a, uint64_t i)
{
	struct num_type t = value_num(&a->type);
	double v;

	t.big = HOST_BIG_ENDIAN; /* whatever the type says */
	num_load_real(t, a->data + i * t.size, 1, &v);
	return v;
}

/* value_equal - compare two values, each in its own type's byte order; NaNs are equal. Elements
 * without a fixed size are never equal. */
bool value_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
		 const uint8_t *b);
/* value_types_equal - whether elements of both types have the same bytes. */
bool value_types_equal(const struct dtype *a, const struct dtype *b);

static inline bool value_text_equal(const struct ds_text *a, const struct ds_text *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->s, b->s, a->len) == 0);
}

/* value_texts_equal - compare n strings. */
static inline bool value_texts_equal(const struct ds_text *a, const struct ds_text *b,
				     uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (!value_text_equal(&a[i], &b[i]))
			return false;
	return true;
}

/* value_repeat - fill len bytes with copies of an element of size > 0 bytes, the last perhaps a
 * part of one. */
void value_repeat(uint8_t *out, size_t len, const uint8_t *elem, size_t size);

#endif
