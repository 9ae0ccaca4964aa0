/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_values.c - values as JSON: attributes, and fill values that are not bytes.
 *
 * Every float has a '.' or an exponent, so that a reader that infers types recognises it; an empty
 * list is never written, because netCDF-C rejects the whole dataset for one. */
#include "nczarr/view/metadata_values.h"

#include "base/core/half.h"
#include "translate/model/value.h"

static double load_float(const uint8_t *p, size_t n, bool big)
{
	uint64_t v = get_uint(p, n, big);

	if (n == 2)
		return half_to_double((uint16_t)v);
	return n == 4 ? (double)f32_from_bits((uint32_t)v) : f64_from_bits(v);
}

bool zr_attr_real(const struct ds_attr *at, double *ret)
{
	if (at->n != 1 || (at->type.kind != DT_BOOL && !value_is_number(&at->type)))
		return false;
	*ret = value_attr(at, 0);
	return true;
}

/* values_put_field - one field of a compound, from dimension d on. *at walks over its
 * values. */
static void values_put_field(struct jw *j, const struct dt_field *f, uint32_t d,
			     const uint8_t **at, bool host, bool quote)
{
	if (d == f->rank) {
		zr_put_value(j, &f->type, *at, host, quote);
		*at += f->type.size;
		return;
	}
	jw_array(j, true);
	for (uint64_t i = 0; i < f->dims[d] && buf_ok(j->out); i++)
		values_put_field(j, f, d + 1, at, host, quote);
	jw_end(j);
}

static void values_put_compound(struct jw *j, const struct dtype *t, const uint8_t *p,
				bool host, bool quote)
{
	jw_object(j, true);
	for (uint32_t i = 0; i < t->n_fields && buf_ok(j->out); i++) {
		const uint8_t *at = p + t->fields[i].offset;

		jw_key(j, t->fields[i].name);
		values_put_field(j, &t->fields[i], 0, &at, host, quote);
	}
	jw_end(j);
}

void zr_put_value(struct jw *j, const struct dtype *t, const uint8_t *p, bool host, bool quote)
{
	bool big = host ? HOST_BIG_ENDIAN : t->big_endian;
	size_t n = t->size;
	uint64_t top;

	switch (t->kind) {
	case DT_BOOL:
		jw_bool(j, p[0] != 0);
		break;
	case DT_INT:
		top = n < 8 ? (uint64_t)1 << (8 * n - 1) : 0;
		jw_i64(j, (int64_t)((get_uint(p, n, big) ^ top) - top)); /* sign-extended */
		break;
	case DT_UINT:
		jw_u64(j, get_uint(p, n, big));
		break;
	case DT_FLOAT:
		jw_double(j, load_float(p, n, big), quote);
		break;
	case DT_COMPLEX:
		jw_array(j, true);
		jw_double(j, load_float(p, n / 2, big), quote);
		jw_double(j, load_float(p + n / 2, n / 2, big), quote);
		jw_end(j);
		break;
	case DT_STRING:
		while (n > 0 && p[n - 1] == 0) /* padding */
			n--;
		jw_text(j, p, n);
		break;
	case DT_OPAQUE:
		jw_hex(j, p, n);
		break;
	case DT_COMPOUND:
		values_put_compound(j, t, p, host, quote);
		break;
	case DT_VSTRING:
	case DT_VLEN:
		jw_null(j); /* no fixed size: their values are strings */
		break;
	}
}

/* values_put_list - the base elements of a vlen value. */
static void values_put_list(struct jw *j, const struct dtype *base, const struct ds_text *value,
			    bool quote)
{
	jw_array(j, true);
	for (size_t at = 0; base && base->size > 0 && value->len - at >= base->size;
	     at += base->size) {
		if (!buf_ok(j->out))
			break;
		zr_put_value(j, base, (const uint8_t *)value->s + at, true, quote);
	}
	jw_end(j);
}

static void put_element(struct jw *j, const struct ds_attr *at, uint64_t i, bool quote)
{
	if (at->type.kind == DT_VLEN)
		values_put_list(j, at->type.base, &at->strings[i], quote);
	else if (at->type.kind == DT_STRING || at->type.kind == DT_VSTRING)
		jw_text(j, at->strings[i].s, at->strings[i].len);
	else
		zr_put_value(j, &at->type, at->data + (size_t)i * at->type.size, true, quote);
}

/* put_nested - dimension d on; *i counts elements. */
static void put_nested(struct jw *j, const struct ds_attr *at, uint32_t d, uint64_t *i,
		       bool quote)
{
	if (d == at->rank) {
		put_element(j, at, *i, quote);
		++*i;
		return;
	}
	jw_array(j, true);
	for (uint64_t k = 0; k < at->dims[d] && *i < at->n && buf_ok(j->out); k++)
		put_nested(j, at, d + 1, i, quote);
	jw_end(j);
}

void zr_put_attr(struct jw *j, const struct ds_attr *at, bool flat, bool quote)
{
	uint64_t i = 0;

	if (at->n == 0 || (at->n == 1 && at->type.kind == DT_VLEN && at->rank <= 1 &&
			   at->strings[0].len == 0)) {
		jw_str(j, "");
	} else if (!flat && at->rank > 1) {
		put_nested(j, at, 0, &i, quote);
	} else if (at->n == 1) {
		put_element(j, at, 0, quote);
	} else {
		jw_array(j, true);
		for (; i < at->n && buf_ok(j->out); i++)
			put_element(j, at, i, quote);
		jw_end(j);
	}
}
