/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.c - elements of a member as the joined array has them. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <string.h>

#define BATCH 256 /* elements that are unpacked at a time */

/* num - a number between two types. */
struct num {
	bool real;
	bool neg;    /* not real: v is a negative int64 */
	uint64_t v;  /* not real: two's complement */
	double d;    /* real */
};

static struct num concat_convert_load(const struct dtype *t, const uint8_t *p)
{
	struct num x = {.real = t->kind == DT_FLOAT};

	if (x.real)
		num_load_real(value_num(t), p, 1, &x.d);
	else
		num_load_bits(value_num(t), p, 1, &x.v);
	x.neg = t->kind == DT_INT && (int64_t)x.v < 0;
	return x;
}

static double concat_convert_real_of(const struct num *x)
{
	return x->real ? x->d : x->neg ? (double)(int64_t)x->v : (double)x->v;
}

/* concat_convert_store - types were chosen so that numbers fit; what does not fit is an error. */
static bool concat_convert_store(const struct dtype *t, const struct num *x, uint8_t *p)
{
	const double d = concat_convert_real_of(x);

	if (t->kind == DT_FLOAT) {
		num_store_real(value_num(t), 8, &d, 1, p);
		return true;
	}
	if (x->real || (t->kind == DT_UINT && x->neg) ||
	    (t->kind == DT_INT && !x->neg && x->v > INT64_MAX))
		return false;
	num_store_bits(value_num(t), t->kind == DT_INT, &x->v, 1, p);
	return true;
}

static int no_counterpart(struct err *e)
{
	return err_set(e, -EBADMSG, "a value cannot be converted to the joined array's units");
}

/* shifted - in the other units of time; whole numbers stay whole where the goal is whole. */
static bool shifted(const struct concat_conv *c, struct num *x)
{
	int64_t v;

	if (c->to.kind == DT_FLOAT) {
		x->d = cf_shift_f64(c->shift, concat_convert_real_of(x));
		x->real = true;
		return true;
	}
	if (x->real || (!x->neg && x->v > INT64_MAX) ||
	    cf_shift_i64(c->shift, (int64_t)x->v, &v) < 0)
		return false;
	x->v = (uint64_t)v;
	x->neg = v < 0;
	return true;
}

/* one_by_one - n elements of type t. */
static int one_by_one(const struct concat_conv *c, const struct dtype *t, const uint8_t *in,
		      uint8_t *out, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct num x = concat_convert_load(t, in + i * t->size);

		if ((c->shift && !shifted(c, &x)) ||
		    !concat_convert_store(&c->to, &x, out + i * c->to.size))
			return no_counterpart(e);
	}
	return 0;
}

static bool same_type(const struct dtype *a, const struct dtype *b)
{
	return a->kind == b->kind && a->size == b->size &&
	       (a->big_endian == b->big_endian || a->size == 1);
}

int concat_convert(const struct concat_conv *c, const uint8_t *in, uint8_t *out, size_t n,
		   struct err *e)
{
	uint8_t raw[BATCH * 8];
	int rc = 0;

	if (c->same) {
		memcpy(out, in, n * c->to.size);
		return 0;
	}
	if (c->swap) {
		memcpy(out, in, n * c->to.size);
		dt_swap_numbers(out, c->to.size, n);
		return 0;
	}
	if (!c->unpack)
		return one_by_one(c, &c->from, in, out, n, e);
	if (!c->shift && same_type(&c->unpack->to, &c->to)) {
		cf_unpack(c->unpack, in, out, n);
		return 0;
	}
	for (size_t i = 0; i < n && rc == 0; i += BATCH) {
		size_t m = n - i < BATCH ? n - i : BATCH;

		cf_unpack(c->unpack, in + i * c->from.size, raw, m);
		rc = one_by_one(c, &c->unpack->to, raw, out + i * c->to.size, m, e);
	}
	return rc;
}

long double concat_value_at(const struct concat_conv *c, const uint8_t *in, uint64_t i)
{
	uint8_t raw[16];
	const struct dtype *t = &c->from;
	const uint8_t *p = in + i * t->size;
	const struct cf_shift *s = c->shift;
	struct num x;
	long double v;

	if (c->unpack) {
		cf_unpack(c->unpack, p, raw, 1);
		t = &c->unpack->to;
		p = raw;
	}
	x = concat_convert_load(t, p);
	v = x.real ? (long double)x.d : x.neg ? (long double)(int64_t)x.v : (long double)x.v;
	if (s)
		v = v * (long double)s->num / (long double)s->den +
		    (long double)s->off_num / (long double)s->off_den;
	return v;
}
