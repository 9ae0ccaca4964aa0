/* metadata_v3_values.c - attributes of an array in zarr.json, where they are others than in
 * .zattrs: what bytes mean that stand for elements, and _FillValue.
 *
 * xarray cannot open a dataset in which _FillValue is not as it writes it itself: a number for
 * integers and booleans, base64 of a little-endian double for floats; for anything else it has no
 * form that all its versions read. So it is written so, or left out; with noxarray it is written
 * as all other attributes are. */
#include "nczarr/view/metadata_values.h"

#include <math.h>
#include <string.h>

#define NUMPY_DTYPE "numpy_dtype"
#define DTYPE_MAX ((size_t)1 << 20)

/* put_real - what struct.pack('<d', v) gives, as base64. */
static void put_real(struct jw *j, double v)
{
	uint8_t bytes[8];
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(bits >> (8 * i));
	jw_base64(j, bytes, sizeof(bytes));
}

/* put_fill - the member _FillValue of an array that is shown as type t, in xarray's form. */
static void put_fill(struct jw *j, const struct ds_array *a, const struct ds_attr *at,
		     const struct zr_type3 *t)
{
	const bool number =
		t->type.kind == DT_INT || t->type.kind == DT_UINT || t->type.kind == DT_BOOL;
	double v;

	if (at->n != 1)
		return;
	if (dt_is_char(&a->type) && at->type.kind == DT_STRING) {
		jw_key(j, at->name);
		jw_u64(j, at->texts[0].len ? (uint8_t)at->texts[0].s[0] : 0);
	} else if (t->type.kind == a->type.kind && zr_attr_real(at, &v) &&
		   (t->type.kind == DT_FLOAT || (number && isfinite(v)))) {
		jw_key(j, at->name);
		if (number)
			zr_put_attr(j, at, true, true);
		else
			put_real(j, v);
	}
}

/* put_numpy_dtype - what the elements are, in numpy's words. */
static void put_numpy_dtype(struct jw *j, const struct dtype *t)
{
	const struct dtype *shown = t->kind == DT_VLEN ? t->base : t;
	struct buf text;
	struct jw inner;

	buf_init(&text, DTYPE_MAX);
	jw_init(&inner, &text, false);
	if (shown->kind == DT_COMPOUND)
		zr_put_dtype(&inner, shown);
	else
		zr_dtype_text(&text, shown, shown->big_endian);
	jw_key(j, NUMPY_DTYPE);
	if (buf_ok(&text))
		jw_text(j, text.data, text.len);
	else
		buf_fail(j->out, &text);
	buf_release(&text);
}

void zr_put_attrs3(struct jw *j, const struct zr_emit *em, const struct ds_array *a,
		   const struct zr_type3 *t)
{
	for (uint32_t i = 0; i < a->n_attrs && buf_ok(j->out); i++) {
		const struct ds_attr *at = &a->attrs[i];

		if (t->says && strcmp(at->name, NUMPY_DTYPE) == 0)
			continue;
		if (em->mode != ZARR_NOXARRAY && strcmp(at->name, "_FillValue") == 0)
			put_fill(j, a, at, t);
		else
			zr_put_attrs(j, em, at, 1, true, false);
	}
	if (t->says)
		put_numpy_dtype(j, &a->type);
}
