/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_v3.c - zarr.json of Zarr v3. Each document is a function of the frozen model and the
 * plans, without state. */
#include "nczarr/view/metadata.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/endian.h"
#include "base/core/half.h"
#include "codecs/spec/spec.h"
#include "nczarr/dtype.h"
#include "nczarr/view/metadata_values.h"

/* begin_named, end_named - {"name": ..., "configuration": {...}}, an extension. */
static void begin_named(struct jw *j, const char *name)
{
	jw_object(j, true);
	jw_str(jw_key(j, "name"), name);
	jw_object(jw_key(j, "configuration"), true);
}

static void end_named(struct jw *j)
{
	jw_end(j);
	jw_end(j);
}

/* v3_put_lengths - v times w, if given, and the additional dimension. */
static void v3_put_lengths(struct jw *j, const struct ds_array *a, const uint64_t *v,
			   const uint64_t *w, const struct zr_type3 *t)
{
	jw_array(j, true);
	for (uint32_t d = 0; d < a->rank; d++)
		jw_u64(j, v[d] * (w ? w[d] : 1));
	if (t->bytes)
		jw_u64(j, t->bytes);
	jw_end(j);
}

static void v3_put_fill(struct jw *j, const struct ds_array *a, const struct zr_type3 *t)
{
	jw_key(j, "fill_value");
	if (a->type.kind == DT_VSTRING)
		jw_text(j, a->fill_text.s, a->fill_text.s ? a->fill_text.len : 0);
	else if (a->type.kind == DT_VLEN || !a->fill)
		jw_str(j, "");
	else if (zr_type3_fill(a) || t->type.kind == a->type.kind)
		zr_put_value(j, &t->type, a->fill, false, true);
	else
		jw_u64(j, 0); /* no chunk is absent */
}

/* v3_put_name - {"name": ...}: an extension without a configuration. */
static void v3_put_name(struct jw *j, const char *name)
{
	jw_object(j, true);
	jw_str(jw_key(j, "name"), name);
	jw_end(j);
}

/* put_bytes - the codec "bytes" of numbers. */
static void put_bytes(struct jw *j, bool big)
{
	begin_named(j, "bytes");
	jw_str(jw_key(j, "endian"), big ? "big" : "little");
	end_named(j);
}

/* put_serializer - the codec from elements to bytes. */
static void put_serializer(struct jw *j, const struct dtype *t)
{
	if (t->kind == DT_VSTRING)
		v3_put_name(j, "vlen-utf8");
	else if (t->kind == DT_VLEN)
		v3_put_name(j, "vlen-bytes");
	else if (t->size > 1)
		put_bytes(j, t->big_endian);
	else
		v3_put_name(j, "bytes");
}

/* v3_put_codec - one filter by its name and with its parameters in Zarr v3. */
static void v3_put_codec(struct jw *j, const struct codec_spec *spec, size_t elem_size)
{
	struct buf b;

	buf_init(&b, 8192);
	if (!codec_spec_json3(spec, elem_size, &b))
		b.failed = true; /* plans have no such codec */
	jw_take_raw(j, &b);
}

/* v3_put_codecs - codecs of elements, the one from elements to bytes, codecs of bytes. */
static void v3_put_codecs(struct jw *j, const struct zr_metadata *em, uint32_t ord,
			  const struct zr_type3 *t)
{
	const struct codec_chain *chain = &em->plans[ord].chain;
	size_t elem_size = em->ds->arrays[ord].type.size;
	uint32_t i = 0;

	jw_array(j, true);
	for (; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!ops || !ops->elements)
			break;
		v3_put_codec(j, &chain->specs[i], elem_size);
	}
	put_serializer(j, &t->type);
	for (; i < chain->n; i++)
		v3_put_codec(j, &chain->specs[i], elem_size);
	jw_end(j);
}

/* put_sharded - the sharding codec with the chunks' own codecs. */
static void put_sharded(struct jw *j, const struct zr_metadata *em, uint32_t ord,
			const struct zr_type3 *t)
{
	const struct ds_array *a = &em->ds->arrays[ord];

	jw_array(j, true);
	begin_named(j, "sharding_indexed");
	v3_put_lengths(jw_key(j, "chunk_shape"), a, a->chunk, NULL, t);
	v3_put_codecs(jw_key(j, "codecs"), em, ord, t);
	jw_array(jw_key(j, "index_codecs"), true);
	put_bytes(j, false);
	v3_put_name(j, "crc32c");
	jw_end(j);
	jw_str(jw_key(j, "index_location"), "end");
	end_named(j);
	jw_end(j);
}

/* put_added_name - name of the additional dimension: the same for all of one length. */
static void put_added_name(struct jw *j, const struct dataset *ds, const struct dtype *t)
{
	const char *what = t->kind == DT_STRING ? "string" : "bytes";
	char name[32];
	int n = snprintf(name, sizeof(name), "%s%" PRIu32, what, t->size);

	for (uint32_t d = 0; d < ds->n_dims && n + 1 < (int)sizeof(name); d++)
		if (strcmp(ds->dims[d].name, name) == 0) { /* another one: start over */
			name[n++] = '_';
			name[n] = '\0';
			d = UINT32_MAX;
		}
	jw_str(j, name);
}

static void v3_put_dimension_names(struct jw *j, const struct zr_metadata *em,
				   const struct ds_array *a, const struct zr_type3 *t)
{
	if (em->mode == ZARR_NOXARRAY)
		return;
	jw_array(jw_key(j, "dimension_names"), true);
	for (uint32_t d = 0; d < a->rank; d++)
		jw_str(j, em->ds->dims[a->dims[d]].name);
	if (t->bytes)
		put_added_name(j, em->ds, &a->type);
	jw_end(j);
}

static void v3_put_array_attrs(struct jw *j, const struct zr_metadata *em, uint32_t ord,
			       const struct zr_type3 *t)
{
	const struct ds_array *a = &em->ds->arrays[ord];
	struct ds_attr room;
	int32_t value;
	const struct ds_attr *quant = zr_quant_attr(a, &em->plans[ord], &value, &room);

	jw_object(jw_key(j, "attributes"), false);
	zr_put_attrs3(j, em, a, t);
	if (quant)
		zr_put_attrs(j, em, quant, 1, true, false);
	jw_end(j);
}

static void begin_node(struct jw *j, const char *type)
{
	jw_object(j, false);
	jw_u64(jw_key(j, "zarr_format"), 3);
	jw_str(jw_key(j, "node_type"), type);
}

static void v3_put_array(struct jw *j, const struct zr_metadata *em, uint32_t ord)
{
	const struct ds_array *a = &em->ds->arrays[ord];
	const struct zr_grid *g = &em->grids[ord];
	struct zr_type3 t;

	if (zr_type3_of(&a->type, &t)) {
		j->out->failed = true; /* such an array is hidden */
		return;
	}
	begin_node(j, "array");
	v3_put_lengths(jw_key(j, "shape"), a, a->shape, NULL, &t);
	jw_str(jw_key(j, "data_type"), t.name);
	begin_named(jw_key(j, "chunk_grid"), "regular");
	v3_put_lengths(jw_key(j, "chunk_shape"), a, a->chunk, g->per, &t);
	end_named(j);
	begin_named(jw_key(j, "chunk_key_encoding"), g->keys.lead ? "default" : "v2");
	jw_str(jw_key(j, "separator"), g->keys.nested ? "/" : ".");
	end_named(j);
	v3_put_fill(j, a, &t);
	jw_key(j, "codecs");
	if (g->per)
		put_sharded(j, em, ord, &t);
	else
		v3_put_codecs(j, em, ord, &t);
	v3_put_array_attrs(j, em, ord, &t);
	v3_put_dimension_names(j, em, a, &t);
	jw_end(j);
}

/* begin_group - leaves the node open, for consolidated metadata. */
static void begin_group(struct jw *j, const struct zr_metadata *em, uint32_t ord)
{
	const struct ds_group *g = &em->ds->groups[ord];

	begin_node(j, "group");
	jw_object(jw_key(j, "attributes"), false);
	zr_put_attrs(j, em, g->attrs, g->n_attrs, false, false);
	jw_end(j);
}

/* put_consolidated - all nodes below the root, in the form of zarr-python 3. All nodes of one
 * group must be adjacent: otherwise zarr-python 3.0 does not find a group. */
static void put_consolidated(struct jw *j, const struct zr_metadata *em)
{
	jw_object(jw_key(j, "consolidated_metadata"), false);
	jw_str(jw_key(j, "kind"), "inline");
	jw_bool(jw_key(j, "must_understand"), false);
	jw_object(jw_key(j, "metadata"), false);
	for (uint32_t i = 0; i < em->ds->n_groups && buf_ok(j->out); i++) {
		const struct ds_group *g = &em->ds->groups[i];

		for (uint32_t k = 0; k < g->n_groups && !em->hidden_groups[i]; k++)
			if (!em->hidden_groups[g->groups[k]] && buf_ok(j->out))
				zr_put_member(j, em, ZR_DOC_GROUP_JSON, g->groups[k]);
		for (uint32_t k = 0; k < g->n_arrays && !em->hidden_groups[i]; k++)
			if (!em->hidden_arrays[g->arrays[k]] && buf_ok(j->out))
				zr_put_member(j, em, ZR_DOC_ARRAY_JSON, g->arrays[k]);
	}
	jw_end(j);
	jw_end(j);
}

void zr_put_v3(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord)
{
	switch (doc) {
	case ZR_DOC_ROOT_JSON:
		begin_group(j, em, ord);
		put_consolidated(j, em);
		jw_end(j);
		break;
	case ZR_DOC_GROUP_JSON:
		begin_group(j, em, ord);
		jw_end(j);
		break;
	case ZR_DOC_ARRAY_JSON:
		v3_put_array(j, em, ord);
		break;
	default:
		j->out->failed = true; /* not of this format */
	}
}

/* Attributes of an array in zarr.json that differ from .zattrs: the type of elements presented as
 * bytes, and _FillValue.
 *
 * xarray cannot open a dataset unless _FillValue has the form that it writes itself: a number for
 * integers and booleans, base64 of a little-endian double for floats; for all other types there is
 * no form that all its versions read. So it has this form, or is omitted; with noxarray it is
 * written as any other attribute. */

#define NUMPY_DTYPE "numpy_dtype"
#define DTYPE_MAX ((size_t)1 << 20)

/* put_fill_attr - the member _FillValue of an array presented as type t, in xarray's form. */
static void put_fill_attr(struct jw *j, const struct ds_array *a, const struct ds_attr *at,
		     const struct zr_type3 *t)
{
	const bool number =
		t->type.kind == DT_INT || t->type.kind == DT_UINT || t->type.kind == DT_BOOL;
	uint8_t bytes[8];
	double v;

	if (at->n != 1)
		return;
	if (dt_is_char(&a->type) && at->type.kind == DT_STRING) {
		jw_u64(jw_key(j, at->name),
		       at->strings[0].len ? (uint8_t)at->strings[0].s[0] : 0);
	} else if (t->type.kind == a->type.kind && zr_attr_real(at, &v) &&
		   (t->type.kind == DT_FLOAT || (number && isfinite(v)))) {
		put_le64(bytes, f64_bits(v)); /* as struct.pack('<d', v) */
		jw_key(j, at->name);
		if (number)
			zr_put_attr(j, at, true, true);
		else
			jw_base64(j, bytes, sizeof(bytes));
	}
}

/* put_numpy_dtype - the type of the elements as numpy's dtype. */
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
	jw_take_text(jw_key(j, NUMPY_DTYPE), &text);
}

void zr_put_attrs3(struct jw *j, const struct zr_metadata *em, const struct ds_array *a,
		   const struct zr_type3 *t)
{
	for (uint32_t i = 0; i < a->n_attrs && buf_ok(j->out); i++) {
		const struct ds_attr *at = &a->attrs[i];

		if (t->says && strcmp(at->name, NUMPY_DTYPE) == 0)
			continue;
		if (em->mode != ZARR_NOXARRAY && strcmp(at->name, "_FillValue") == 0)
			put_fill_attr(j, a, at, t);
		else
			zr_put_attrs(j, em, at, 1, true, false);
	}
	if (t->says)
		put_numpy_dtype(j, &a->type);
}

/* Type names that all readers of Zarr v3 know. An unknown type breaks more than its array:
 * zarr-python opens no group with it in consolidated metadata. */

int zr_type3_of(const struct dtype *t, struct zr_type3 *ret)
{
	*ret = (struct zr_type3){.name = zr_dtype_name3(t), .type = *t};
	if (ret->name) {
		ret->says = t->kind == DT_VLEN && t->base &&
			    (t->base->kind != DT_UINT || t->base->size != 1);
		return 0;
	}
	if (t->kind != DT_STRING && t->kind != DT_OPAQUE && t->kind != DT_COMPOUND)
		return -EOPNOTSUPP;
	ret->type = (struct dtype){.kind = DT_UINT, .size = 1};
	ret->name = zr_dtype_name3(&ret->type);
	ret->bytes = t->size > 1 ? t->size : 0;
	ret->says = true;
	return 0;
}

/* said_nan - whether a NaN is the one of the string "NaN". */
static bool said_nan(const uint8_t *p, size_t n, bool big)
{
	const uint64_t v = get_uint(p, n, big), mant = n == 2 ? 10 : n == 4 ? 23 : 52;
	uint64_t all, frac;

	all = ((uint64_t)1 << (8 * n - 1 - mant)) - 1; /* of the exponent */
	frac = v & (((uint64_t)1 << mant) - 1);
	if ((v >> mant & all) != all || frac == 0)
		return true; /* no NaN */
	return v == (all << mant | (uint64_t)1 << (mant - 1));
}

bool zr_type3_fill(const struct ds_array *a)
{
	const struct dtype *t = &a->type;

	switch (t->kind) {
	case DT_VSTRING:
		return true;
	case DT_VLEN:
		return false;
	case DT_FLOAT:
		return said_nan(a->fill, t->size, t->big_endian);
	case DT_COMPLEX:
		return said_nan(a->fill, t->size / 2, t->big_endian) &&
		       said_nan(a->fill + t->size / 2, t->size / 2, t->big_endian);
	case DT_STRING:
	case DT_OPAQUE:
	case DT_COMPOUND: /* one value for all bytes */
		return memcmp(a->fill, a->fill + 1, t->size - 1) == 0;
	default:
		return true;
	}
}
