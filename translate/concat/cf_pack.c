/* SPDX-License-Identifier: BSD-3-Clause */
/* cf_pack.c - packed numbers (CF conventions 8.1), unpacked as xarray does it. */
#include "translate/concat/cf_pack_int.h"
#include "translate/model/value.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

static bool is_integer(const struct dtype *t)
{
	return t->kind == DT_INT || t->kind == DT_UINT;
}

/* Which attributes say something; values of xarray's decoding steps in their order. */

/* resign - _Unsigned: the type whose sign it turns. */
static void resign(const struct ds_attr *attrs, uint32_t n, struct dtype *t)
{
	const struct ds_attr *a = ds_attr_find(attrs, n, "_Unsigned");
	const struct ds_text *text;

	if (!a || !is_integer(t) || !a->strings || a->n != 1)
		return;
	text = &a->strings[0];
	if (t->kind == DT_INT && text->len == 4 && memcmp(text->s, "true", 4) == 0)
		t->kind = DT_UINT;
	else if (t->kind == DT_UINT && text->len == 5 && memcmp(text->s, "false", 5) == 0)
		t->kind = DT_INT;
}

/* cf_pack_wrap - the value that an integer has in type t, which _Unsigned made: its low bits.
 * -EINVAL for floats that no integer of 32 bits is equal to. */
static int cf_pack_wrap(const struct ds_attr *a, uint64_t i, const struct dtype *t, double *ret,
			struct err *e)
{
	struct num_type own = value_num(&a->type);
	double v = value_attr(a, i);
	uint64_t bits;

	if (a->type.kind == DT_FLOAT) {
		if (!(v >= INT32_MIN && v <= UINT32_MAX) || v != floor(v))
			return err_set(e, -EINVAL,
				       "attribute '_FillValue' is not of the integer type that "
				       "'_Unsigned' requires");
		bits = (uint64_t)(int64_t)v;
	} else {
		own.big = HOST_BIG_ENDIAN;
		num_load_bits(own, a->data + i * own.size, 1, &bits);
	}
	if (t->size < 8)
		bits &= ((uint64_t)1 << 8 * t->size) - 1;
	if (t->kind == DT_INT && t->size < 8 && bits >> (8 * t->size - 1))
		bits |= UINT64_MAX << 8 * t->size;
	*ret = t->kind == DT_INT ? (double)(int64_t)bits : (double)bits;
	return 0;
}

/* add_fill - in order, each once. */
static int add_fill(struct cf_pack *p, double v, struct err *e)
{
	uint32_t at = 0;

	while (at < p->n_fills && p->fills[at] < v)
		at++;
	if (at < p->n_fills && p->fills[at] == v)
		return 0;
	if (p->n_fills == CF_FILLS_MAX)
		return err_set(e, -ERANGE, "'missing_value' has more than %d values",
			       CF_FILLS_MAX);
	memmove(&p->fills[at + 1], &p->fills[at], (p->n_fills - at) * sizeof(p->fills[0]));
	p->fills[at] = v;
	p->n_fills++;
	return 0;
}

/* fills_of - the values of one attribute; *masks: there is one, be it text, which nothing equals.
 * size: of the floats that are compared. */
static int fills_of(const struct ds_attr *a, bool resigned, uint32_t size, struct cf_pack *p,
		    bool *masks, struct err *e)
{
	int rc;

	if (!a || a->n == 0)
		return 0;
	if (!value_is_number(&a->type)) {
		*masks = true;
		return 0;
	}
	for (uint64_t i = 0; i < a->n; i++) {
		double v = value_attr(a, i);

		if (resigned && (rc = cf_pack_wrap(a, i, &p->from, &v, e)) < 0)
			return rc;
		if (isnan(v))
			continue;
		*masks = true;
		if (a->type.kind == DT_FLOAT && !resigned)
			v = num_round(v, num_wider(size, v)); /* as numpy compares it */
		if ((rc = add_fill(p, v, e)) < 0)
			return rc;
	}
	return 0;
}

/* masked_size - of the float that elements become before they are compared. */
static uint32_t masked_size(const struct dtype *t)
{
	if (t->kind == DT_FLOAT)
		return t->size;
	return t->size <= 2 ? 4 : 8;
}

/* operand_of - scale_factor or add_offset; what type it has in the operation follows later. */
static int operand_of(const struct ds_attr *a, struct cf_operand *ret, struct err *e)
{
	if (!a)
		return 0;
	if (!value_is_number(&a->type) || a->n != 1)
		return err_set(e, -EINVAL, "attribute '%s' is not a single number", a->name);
	ret->present = true;
	ret->v = value_attr(a, 0);
	return 0;
}

/* fit_operand - a float's operation is in float, unless numpy finds the operand too large: integers
 * of more than 16 bits, and floats near float's end. */
static void fit_operand(const struct ds_attr *a, uint32_t size, struct cf_operand *o)
{
	if (!o->present || size == 8)
		return;
	if (is_integer(&a->type))
		o->wide = o->v < INT16_MIN || o->v > UINT16_MAX;
	else
		o->wide = isfinite(o->v) && !(o->v > -3.4e38 && o->v < 3.4e38) &&
			  a->type.size == 8;
	if (!o->wide)
		o->v = (double)(float)o->v;
}

/* scaled_size - of the float in which scale and offset are applied. */
static uint32_t scaled_size(const struct dtype *t, bool offset)
{
	if (t->kind == DT_FLOAT)
		return t->size <= 4 ? 4 : 8;
	return t->size <= 2 && !offset ? 4 : 8;
}

int cf_pack_of(const struct ds_attr *attrs, uint32_t n, const struct dtype *t,
	       struct cf_pack *ret, struct err *e)
{
	const struct ds_attr *scale = ds_attr_find(attrs, n, "scale_factor");
	const struct ds_attr *add = ds_attr_find(attrs, n, "add_offset");
	struct cf_pack p = {.from = *t, .to = *t};
	bool masks = false, resigned;
	uint32_t size;
	int rc;

	p.to.big_endian = HOST_BIG_ENDIAN;
	if (!value_is_number(t)) {
		*ret = p;
		return 0;
	}
	resign(attrs, n, &p.from);
	resigned = p.from.kind != t->kind;
	p.to.kind = p.from.kind;
	size = masked_size(&p.from);
	if ((rc = fills_of(ds_attr_find(attrs, n, "missing_value"), false, size, &p, &masks,
			   e)) ||
	    (rc = fills_of(ds_attr_find(attrs, n, "_FillValue"), resigned, size, &p, &masks,
			   e)) ||
	    (rc = operand_of(scale, &p.scale, e)) || (rc = operand_of(add, &p.add, e)))
		return rc;
	if (masks) {
		p.to.kind = DT_FLOAT;
		p.to.size = size;
	}
	if (p.scale.present || p.add.present) {
		p.to.size = scaled_size(&p.to, p.add.present);
		p.to.kind = DT_FLOAT;
		fit_operand(scale, p.to.size, &p.scale);
		fit_operand(add, p.to.size, &p.add);
	}
	p.packed = masks || p.scale.present || p.add.present || resigned;
	*ret = p;
	return 0;
}

static bool same_operand(const struct cf_operand *a, const struct cf_operand *b)
{
	return a->present == b->present && a->wide == b->wide &&
	       memcmp(&a->v, &b->v, sizeof(a->v)) == 0;
}

bool cf_pack_same(const struct cf_pack *a, const struct cf_pack *b)
{
	if (a->packed != b->packed || a->from.kind != b->from.kind ||
	    a->from.size != b->from.size || a->to.kind != b->to.kind ||
	    a->to.size != b->to.size || a->n_fills != b->n_fills)
		return false;
	for (uint32_t i = 0; i < a->n_fills; i++) {
		if (a->fills[i] != b->fills[i])
			return false;
	}
	return same_operand(&a->scale, &b->scale) && same_operand(&a->add, &b->add);
}

static bool is_fill(const struct cf_pack *p, double v)
{
	for (uint32_t i = 0; i < p->n_fills; i++) {
		if (p->fills[i] == v)
			return true;
	}
	return false;
}

/* put_nan - numpy's NaN at element i. */
static void put_nan(uint8_t *out, uint32_t size, size_t i)
{
	static const uint16_t half = 0x7e00;
	const float single = NAN;
	const double twice = (double)NAN;

	memcpy(out + i * size,
	       size == 2   ? (const void *)&half
	       : size == 4 ? (const void *)&single
			   : &twice,
	       size);
}

static float apply4(const struct cf_operand *o, bool times, float x)
{
	float f = (float)o->v;
	double d;

	if (!o->present)
		return x;
	if (!o->wide)
		return times ? x * f : x + f;
	d = times ? (double)x * o->v : (double)x + o->v;
	return (float)d;
}

static double apply8(const struct cf_operand *o, bool times, double x)
{
	if (!o->present)
		return x;
	return times ? x * o->v : x + o->v;
}

/* cf_pack_store - n values, scaled, as elements of p->to. */
static void cf_pack_store(const struct cf_pack *p, const double *v, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p->to.size == 4) {
			float f = apply4(&p->scale, true, (float)v[i]);

			f = apply4(&p->add, false, f);
			memcpy(out + i * 4, &f, 4);
		} else {
			double d = apply8(&p->scale, true, v[i]);

			d = apply8(&p->add, false, d);
			memcpy(out + i * 8, &d, 8);
		}
	}
}

static void unpack_block(const struct cf_pack *p, const uint8_t *in, uint8_t *out, size_t n)
{
	bool as_is = !p->scale.present && !p->add.present && p->from.kind == p->to.kind &&
		     p->from.size == p->to.size;
	double v[NUM_BLOCK];

	num_load_real(value_num(&p->from), in, n, v);
	if (as_is) {
		memcpy(out, in, n * p->to.size); /* NaNs stay which they are */
		dt_swap_to_host(&p->from, out, n);
	} else {
		cf_pack_store(p, v, out, n);
	}
	for (size_t i = 0; i < n && p->n_fills; i++) {
		if (is_fill(p, v[i]))
			put_nan(out, p->to.size, i);
	}
}

void cf_unpack(const struct cf_pack *p, const uint8_t *in, uint8_t *out, size_t n)
{
	if (!p->packed) {
		memcpy(out, in, n * p->from.size);
		dt_swap_to_host(&p->from, out, n);
		return;
	}
	for (size_t done = 0, now; done < n; done += now) {
		now = n - done < NUM_BLOCK ? n - done : NUM_BLOCK;
		unpack_block(p, in + done * p->from.size, out + done * p->to.size, now);
	}
}
