/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_v2.c - .zarray, .zattrs, .zgroup and .zmetadata. Each document is a function of the
 * frozen model and the plans, without state. */
#include "nczarr/view/metadata.h"

#include <inttypes.h>
#include <string.h>

#include "codecs/vlen/vlen.h"
#include "nczarr/dtype.h"
#include "nczarr/view/metadata_values.h"

void zr_dtype_text(struct buf *b, const struct dtype *t, bool big)
{
	bool ordered = t->size > 1 && t->kind != DT_STRING && t->kind != DT_OPAQUE;

	buf_printf(b, "%c%c%" PRIu32,
		   !ordered ? '|'
		   : big    ? '>'
			    : '<',
		   zr_dtype_letter(t->kind), t->size);
}

/* put_simple - a dtype other than a compound, as a JSON string. */
static void put_simple(struct jw *j, const struct dtype *t)
{
	struct buf b;

	buf_init(&b, 32);
	zr_dtype_text(&b, t, t->big_endian);
	jw_take_text(j, &b);
}

void zr_put_dtype(struct jw *j, const struct dtype *t)
{
	if (t->kind != DT_COMPOUND) {
		put_simple(j, t);
		return;
	}
	jw_array(j, true);
	for (uint32_t i = 0; i < t->n_fields && buf_ok(j->out); i++) {
		const struct dt_field *f = &t->fields[i];

		jw_array(j, true);
		jw_str(j, f->name);
		zr_put_dtype(j, &f->type);
		if (f->rank > 0) {
			jw_array(j, true);
			for (uint32_t d = 0; d < f->rank; d++)
				jw_u64(j, f->dims[d]);
			jw_end(j);
		}
		jw_end(j);
	}
	jw_end(j);
}

/* presented_type - the type in the view, if it differs from the model's. */
static struct dtype presented_type(const struct zr_metadata *em, const struct ds_array *a,
				   const struct plan *plan)
{
	struct dtype t = a->type;

	if (em->mode == ZARR_NCZARR && t.kind == DT_BOOL)
		t.kind = DT_UINT;
	if (em->mode == ZARR_NCZARR && t.kind == DT_VSTRING)
		t = (struct dtype){.kind = DT_STRING,
				   .size = plan->fixed_size ? plan->fixed_size : 1};
	return t;
}

/* v2_put_codec - {"id": ..., parameters} of one filter. */
static void v2_put_codec(struct jw *j, const struct codec_spec *spec, size_t elem_size)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);
	struct buf b;

	if (!ops || !ops->zarr2_id) {
		j->out->failed = true; /* plans have no such codec */
		return;
	}
	buf_init(&b, 4096);
	buf_printf(&b, "{\"id\": \"%s\"", ops->zarr2_id);
	if (ops->zarr2_params)
		ops->zarr2_params(spec, elem_size, &b);
	buf_putc(&b, '}');
	jw_take_raw(j, &b);
}

/* n_filters - number of filters of the chain in "filters". The last one is the compressor if it is
 * one: readers (GDAL) expect filters that rearrange bytes only in "filters". */
static uint32_t n_filters(const struct codec_chain *chain)
{
	const struct codec_ops *last =
		chain->n ? codec_find(chain->specs[chain->n - 1].h5_id) : NULL;

	return last && last->compressor ? chain->n - 1 : chain->n;
}

static void put_filters(struct jw *j, const struct plan *plan, const struct dtype *t)
{
	uint32_t n = n_filters(&plan->chain);

	if (!dt_is_vlen(t) && n == 0) {
		jw_null(j);
		return;
	}
	jw_array(j, true);
	if (dt_is_vlen(t)) {
		jw_object(j, true);
		jw_str(jw_key(j, "id"),
		       codec_vlen_id(t->kind == DT_VSTRING ? CODEC_VLEN_UTF8
							   : CODEC_VLEN_ARRAY));
		if (t->kind == DT_VLEN && t->base)
			put_simple(jw_key(j, "dtype"), t->base);
		jw_end(j);
	} else {
		for (uint32_t i = 0; i < n; i++)
			v2_put_codec(j, &plan->chain.specs[i], t->size);
	}
	jw_end(j);
}

static void v2_put_fill(struct jw *j, const struct zr_metadata *em, const struct ds_array *a,
			const struct plan *plan, const struct dtype *t)
{
	bool nczarr = em->mode == ZARR_NCZARR;

	if (!plan->fill_declared || a->type.kind == DT_VLEN) {
		jw_null(j);
	} else if (a->type.kind == DT_VSTRING) {
		jw_text(j, a->fill_text.s, a->fill_text.s ? a->fill_text.len : 0);
	} else if (!a->fill) {
		jw_null(j);
	} else if ((t->kind == DT_STRING && !nczarr) || t->kind == DT_OPAQUE ||
		   t->kind == DT_COMPOUND) {
		jw_base64(j, a->fill, t->size);
	} else {
		zr_put_value(j, t, a->fill, false, true);
	}
}

uint64_t zr_chunk_rows(enum zarr_mode mode, const struct ds_array *a)
{
	if (mode != ZARR_NCZARR || a->n_chunks == 0)
		return a->chunk[0];
	return u64_min(a->chunk[0], a->shape[0]);
}

/* put_shape - a scalar has no dimensions in Zarr, but one of length 1 for netCDF-C. first: the
 * value for v[0]. */
static void put_shape(struct jw *j, const struct zr_metadata *em, const struct ds_array *a,
		      const uint64_t *v, uint64_t first)
{
	jw_array(j, true);
	for (uint32_t d = 0; d < a->rank; d++)
		jw_u64(j, d == 0 ? first : v[d]);
	if (a->rank == 0 && em->mode == ZARR_NCZARR)
		jw_u64(j, 1);
	jw_end(j);
}

static void put_zarray(struct jw *j, const struct zr_metadata *em, uint32_t ord)
{
	const struct ds_array *a = &em->ds->arrays[ord];
	const struct plan *plan = &em->plans[ord];
	struct dtype t = presented_type(em, a, plan);
	uint32_t n = n_filters(&plan->chain);

	jw_object(j, false);
	put_shape(jw_key(j, "chunks"), em, a, a->chunk,
		  a->rank ? zr_chunk_rows(em->mode, a) : 1);
	jw_key(j, "compressor");
	if (n < plan->chain.n)
		v2_put_codec(j, &plan->chain.specs[n], t.size);
	else
		jw_null(j);
	if (em->grids[ord].keys.nested)
		jw_str(jw_key(j, "dimension_separator"), "/");
	jw_key(j, "dtype");
	if (dt_is_vlen(&t))
		jw_str(j, "|O");
	else if (em->mode == ZARR_NCZARR && dt_is_char(&t) && a->type.kind == DT_STRING)
		jw_str(j, ">S1"); /* netCDF-C distinguishes char from a string of one byte by
				   * the '>' */
	else
		zr_put_dtype(j, &t);
	v2_put_fill(jw_key(j, "fill_value"), em, a, plan, &t);
	put_filters(jw_key(j, "filters"), plan, &t);
	jw_str(jw_key(j, "order"), "C");
	put_shape(jw_key(j, "shape"), em, a, a->shape, a->rank ? a->shape[0] : 1);
	jw_u64(jw_key(j, "zarr_format"), 2);
	if (em->mode == ZARR_NCZARR)
		zr_put_nczarr_array(j, em, a);
	jw_end(j);
}

static void v2_put_array_attrs(struct jw *j, const struct zr_metadata *em, uint32_t ord)
{
	const struct ds_array *a = &em->ds->arrays[ord];
	struct ds_attr room;
	int32_t value;
	const struct ds_attr *quant = zr_quant_attr(a, &em->plans[ord], &value, &room);

	jw_object(j, false);
	zr_put_attrs(j, em, a->attrs, a->n_attrs, true, em->plans[ord].fill_declared);
	if (quant)
		zr_put_attrs(j, em, quant, 1, true, false);
	if (em->mode != ZARR_NOXARRAY) {
		jw_array(jw_key(j, "_ARRAY_DIMENSIONS"), true);
		for (uint32_t d = 0; d < a->rank; d++)
			jw_str(j, em->ds->dims[a->dims[d]].name);
		if (a->rank == 0 && em->mode == ZARR_NCZARR)
			jw_str(j, "_scalar_");
		jw_end(j);
	}
	if (em->mode == ZARR_NCZARR)
		zr_put_nczarr_types(j, em, a->attrs, a->n_attrs, quant, true);
	jw_end(j);
}

static void put_zmetadata(struct jw *j, const struct zr_metadata *em)
{
	jw_object(j, false);
	jw_object(jw_key(j, "metadata"), false);
	for (uint32_t g = 0; g < em->ds->n_groups && buf_ok(j->out); g++) {
		if (em->hidden_groups[g])
			continue;
		zr_put_member(j, em, ZR_DOC_GROUP_ATTRS, g);
		zr_put_member(j, em, ZR_DOC_ZGROUP, g);
	}
	for (uint32_t a = 0; a < em->ds->n_arrays && buf_ok(j->out); a++) {
		if (em->hidden_arrays[a])
			continue;
		zr_put_member(j, em, ZR_DOC_ZARRAY, a);
		zr_put_member(j, em, ZR_DOC_ARRAY_ATTRS, a);
	}
	jw_end(j);
	jw_u64(jw_key(j, "zarr_consolidated_format"), 1);
	jw_end(j);
}

void zr_put_v2(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord)
{
	const struct ds_group *g = &em->ds->groups[zr_doc_of_group(doc) ? ord : 0];

	switch (doc) {
	case ZR_DOC_ZGROUP:
		jw_object(j, false);
		jw_u64(jw_key(j, "zarr_format"), 2);
		if (em->mode == ZARR_NCZARR)
			zr_put_nczarr_group(j, em, ord);
		jw_end(j);
		break;
	case ZR_DOC_GROUP_ATTRS:
		jw_object(j, false);
		zr_put_attrs(j, em, g->attrs, g->n_attrs, false, false);
		if (em->mode == ZARR_NCZARR)
			zr_put_nczarr_types(j, em, g->attrs, g->n_attrs, NULL, false);
		jw_end(j);
		break;
	case ZR_DOC_ZMETADATA:
		put_zmetadata(j, em);
		break;
	case ZR_DOC_ZARRAY:
		put_zarray(j, em, ord);
		break;
	case ZR_DOC_ARRAY_ATTRS:
		v2_put_array_attrs(j, em, ord);
		break;
	default:
		j->out->failed = true; /* not of this format */
	}
}
