/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_attrs.c - decides which attributes the file has, and in what form.
 *
 * netCDF's attributes are a string, or a list of one dimension. Attributes that netCDF and HDF5
 * reserve are left out; schema_fill.c handles `_FillValue`. */
#include "hdf5view/netcdf4/schema.h"

#include <string.h>

/* Names with a meaning to netCDF-C or to HDF5's dimension scales. */
static const char *const reserved[] = {
	"CLASS",          "NAME",
	"DIMENSION_LIST", "REFERENCE_LIST",
	"_Netcdf4Dimid",  "_Netcdf4Coordinates",
	"_nc3_strict",    "_NCProperties",
	"_IsNetcdf4",     "_SuperblockVersion",
	"_Format",        "_Codecs",
};

static bool is_reserved(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (strcmp(name, reserved[i]) == 0)
			return true;
	return false;
}

/* deciding - the decisions about one object's attributes. */
struct deciding {
	struct nc_model *m;
	uint32_t group, array; /* array: DS_NONE for the group itself */
	struct nc_attr *list;
	uint32_t n;
};

static int attrs_note(struct deciding *x, const char *name, const char *what)
{
	return nc_note(x->m, x->group, x->array, "attribute '%s' %s", name, what);
}

/* attrs_form_of - the storage of an attribute other than `_FillValue`. */
static int attrs_form_of(struct deciding *x, const struct ds_attr *src, struct nc_attr *at,
			 struct err *e)
{
	int rc;

	switch (src->type.kind) {
	case DT_STRING:
		at->form = src->n <= 1 ? NC_ATTR_TEXT : NC_ATTR_STRINGS;
		return 0;
	case DT_VSTRING:
		at->form = NC_ATTR_STRINGS;
		return 0;
	case DT_VLEN:
		at->form = NC_ATTR_LISTS;
		break;
	default:
		at->form = NC_ATTR_VALUES;
		/* netCDF has no half floats */
		if (src->type.kind == DT_FLOAT && src->type.size == 2)
			at->as.size = 4;
	}
	rc = nc_type_check(&src->type, e);
	return rc ? rc : nc_type_need(x->m, x->group, &src->type, at->name, &at->type, e);
}

/* attrs_keep - decide one attribute. */
static int attrs_keep(struct deciding *x, const struct ds_attr *src, struct err *e)
{
	struct nc_attr at = {.src = src, .as = src->type, .type = DS_NONE};
	struct err why = ERR_INIT;
	const char *text = NULL;
	int rc;

	if (is_reserved(src->name))
		return attrs_note(x, src->name,
				  "is left out: the name is reserved by HDF5 or netCDF");
	at.name = nc_escape(&x->m->arena, src->name, NC_NAME_LIMIT);
	if (!at.name)
		return nc_full(x->m, e);
	if (x->array != DS_NONE && strcmp(src->name, "_FillValue") == 0) {
		rc = nc_fill_attr(x->m, x->array, src, &at, &text);
		if (rc == 0)
			return attrs_note(x, src->name, text);
	} else {
		rc = attrs_form_of(x, src, &at, &why);
		if (rc == -EOPNOTSUPP)
			return attrs_note(x, src->name, why.msg);
	}
	if (rc < 0)
		return err_set(e, rc, "%s", why.msg[0] ? why.msg : "out of memory");
	x->list[x->n++] = at;
	if (at.name != src->name && strcmp(at.name, src->name) != 0 &&
	    nc_note(x->m, x->group, x->array, "attribute '%s' is shown as '%s'", src->name,
		    at.name) < 0)
		return -ENOMEM;
	if (src->rank > 1)
		return attrs_note(x, src->name,
				  "is shown with one dimension instead of several");
	return 0;
}

/* attrs_add - add an attribute that readers need. */
static int attrs_add(struct deciding *x, enum nc_attr_form form, struct ds_attr from, struct err *e)
{
	struct ds_attr *src = arena_copy(&x->m->arena, &from, sizeof(from));

	if (!src)
		return nc_full(x->m, e);
	x->list[x->n++] = (struct nc_attr){
		.name = src->name, .src = src, .form = form, .as = src->type, .type = DS_NONE};
	return 0;
}

static int attrs_add_text(struct deciding *x, const char *name, const char *text, struct err *e)
{
	const struct ds_text one = {text, strlen(text)};
	const struct ds_text *t = arena_copy(&x->m->arena, &one, sizeof(one));

	return t ? attrs_add(x, NC_ATTR_TEXT,
			     (struct ds_attr){.name = name,
					      .type = {.kind = DT_STRING},
					      .n = 1,
					      .strings = t},
			     e)
		 : nc_full(x->m, e);
}

/* add_quant - add netCDF's attribute of quantised elements. */
static int add_quant(struct deciding *x, const struct codec_quant *q, struct err *e)
{
	const int32_t digits = (int32_t)q->digits;
	const uint8_t *value = arena_copy(&x->m->arena, &digits, sizeof(digits));

	return value ? attrs_add(x, NC_ATTR_VALUES,
				 (struct ds_attr){.name = codec_quant_attr(q->mode),
						  .type = {.kind = DT_INT, .size = sizeof(digits)},
						  .n = 1,
						  .data = value},
				 e)
		     : nc_full(x->m, e);
}

int nc_attrs_decide(struct nc_model *m, uint32_t group, uint32_t array, struct nc_attrs *ret,
		    struct err *e)
{
	const struct ds_array *a = array == DS_NONE ? NULL : &m->ds->arrays[array];
	uint32_t n = a ? a->n_attrs : m->ds->groups[group].n_attrs;
	const struct ds_attr *src = a ? a->attrs : m->ds->groups[group].attrs;
	const struct codec_quant *quant = a ? &m->plans[array].quant : NULL;
	struct deciding x = {.m = m, .group = group, .array = array};
	int rc = 0;

	if (n > UINT32_MAX - 3)
		return nc_full(m, e);
	x.list = arena_alloc(&m->arena, (size_t)n + 3, sizeof(*x.list));
	if (!x.list)
		return nc_full(m, e);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = attrs_keep(&x, &src[i], e);
	if (!rc && a && a->type.kind == DT_BOOL && !ds_attr_find(src, n, "dtype"))
		rc = attrs_add_text(&x, "dtype", "bool", e);
	if (!rc && a && a->type.kind == DT_STRING && a->type.size > 1 &&
	    !ds_attr_find(src, n, "_Encoding"))
		rc = attrs_add_text(&x, "_Encoding", "utf-8", e);
	if (!rc && quant && quant->mode != CODEC_QUANT_NONE &&
	    !ds_attr_find(src, n, codec_quant_attr(quant->mode)))
		rc = add_quant(&x, quant, e);
	if (rc == -ENOMEM)
		return err_nomem(e);
	*ret = (struct nc_attrs){.n = x.n, .list = x.list};
	return rc;
}
