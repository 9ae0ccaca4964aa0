/* SPDX-License-Identifier: BSD-3-Clause */
/* attributes.c - attributes and dimensions of existing nodes: single members of documents.
 *
 * A list of one value stays a list if the store had one. `_FillValue` is not always an attribute:
 * for xarray it is Zarr v2's fill_value, for NCZarr both, and in Zarr v3 an attribute with an
 * encoding of its own. A new fill_value would change the value of absent chunks: these are written
 * with their old value. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <string.h>

#include "nczarr/source/open.h"

#define FILL "_FillValue"
#define NAMES "_ARRAY_DIMENSIONS"
#define LONG 200

/* attrs_node - a group or array whose attributes change. */
struct attrs_node {
	const char *key, *from;
	struct zs_array *za; /* NULL: a group */
	const struct ds_array *a;
	uint32_t array;
};

static int attrs_find_node(struct zarr_sink *s, uint32_t group, uint32_t array,
			   struct attrs_node *ret, struct err *e)
{
	int rc;

	*ret = (struct attrs_node){.array = array};
	if (array == DS_NONE) {
		rc = zs_has_root(s, e);
		if (rc)
			return rc;
		ret->key = zs_group_key(s, group, e);
		ret->from = ret->key && !s->groups[group].is_new ? ret->key : NULL;
		return ret->key ? 0 : e && e->code ? e->code : -EIO;
	}
	rc = zs_array_of(s, array, &ret->za, e);
	if (rc)
		return rc;
	ret->a = &s->now->ds.arrays[array];
	ret->key = ret->za->key;
	ret->from = ret->za->was_key;
	return 0;
}

/* ---- values ---- */

/* set_member - v is taken; a list of one value stays a list. */
static int set_member(json_t *attrs, const struct ds_attr *a, json_t *v, struct err *e)
{
	const json_t *old = json_object_get(attrs, a->name);

	if (json_kind(old) == JSON_IS_LIST && json_array_size(old) == 1 && a->n == 1 &&
	    json_kind(v) != JSON_IS_LIST) {
		json_t *list = json_array();

		if (!list || json_array_append_new(list, v) < 0) {
			json_decref(list);
			return err_nomem(e);
		}
		v = list;
	}
	return json_object_set_new(attrs, a->name, v) < 0 ? err_nomem(e) : 0;
}

static int set_value(const struct zarr_sink *s, json_t *attrs, const struct ds_attr *a,
		     struct err *e)
{
	struct zs_made m;
	json_t *v;
	int rc;

	zr_put_attr(zs_made_begin(&m), a, s->mode == ZARR_NCZARR, s->opts.strict_json);
	rc = zs_made_end(&m, &v, e);
	return rc ? rc : set_member(attrs, a, v, e);
}

/* ---- _FillValue ---- */

/* fill_json - a value in the form of fill_value of Zarr v2. */
static int fill_json(const struct zarr_sink *s, const struct ds_attr *a, json_t **ret,
		     struct err *e)
{
	struct zs_made m;
	struct jw *j = zs_made_begin(&m);

	if (a->n != 1 || a->type.kind == DT_VLEN)
		jw_null(j);
	else if (a->type.kind == DT_STRING && s->mode != ZARR_NCZARR)
		jw_base64(j, (const uint8_t *)(a->strings[0].len ? a->strings[0].s : "\0"),
			  a->strings[0].len ? a->strings[0].len : 1);
	else if (a->type.kind == DT_STRING || a->type.kind == DT_VSTRING)
		jw_text(j, a->strings[0].s, a->strings[0].len);
	else
		zr_put_value(j, &a->type, a->data, true, true);
	return zs_made_end(&m, ret, e);
}

static bool same_json(const json_t *a, const json_t *b)
{
	double x, y;

	if (json_double(a, &x) == 0 && json_double(b, &y) == 0 &&
	    json_number_is_int(a) == json_number_is_int(b))
		return json_number_is_int(a)
			       ? strcmp(json_number_text(a), json_number_text(b)) == 0
			       : memcmp(&x, &y, sizeof(x)) == 0;
	return json_equal(a, b);
}

/* set_fill_value - v is taken. Absent chunks keep their value. */
static int set_fill_value(struct zarr_sink *s, const struct attrs_node *n, json_t *v,
			  struct err *e)
{
	struct zs_array *za = n->za;
	const json_t *old;
	struct zs_doc *d;
	int rc = zs_node_doc(s, n->key, n->from, true, false, &d, e);

	if (rc == 0 && !d->v)
		rc = err_set(e, -EBADMSG, "'%.*s' has no metadata file", LONG, n->key);
	old = rc == 0 ? json_object_get(d->v, "fill_value") : NULL;
	if (rc || (old && same_json(old, v))) {
		json_decref(v);
		return rc;
	}
	if (za->stated && za->state == ZS_OLD) {
		rc = zs_resolve_layout(s, n->array, za, e);
		za->stated = false;
		if (rc == 0 && !za->bits)
			rc = zs_track(za, e);
		rc = rc ? rc : zs_mark_stored(s, za, e);
	}
	if (rc == 0 && json_object_set(d->v, "fill_value", v) < 0)
		rc = err_nomem(e);
	d->dirty = true;
	json_decref(v);
	return rc;
}

/* set_fill3 - the attribute in xarray's encoding for Zarr v3; a number if the store had one. */
static int set_fill3(struct zarr_sink *s, const struct attrs_node *n, json_t *attrs,
		     const struct ds_attr *a, struct err *e)
{
	const json_t *old = json_object_get(attrs, FILL);
	struct ds_array one = *n->a;
	json_t *all, *v;
	struct zr_type3 t;
	struct zs_made m;
	struct jw *j;
	int rc;

	if (json_kind(old) == JSON_IS_NUMBER || json_kind(old) == JSON_IS_LIST ||
	    zr_type3_of(&one.type, &t) < 0) {
		return set_value(s, attrs, a, e);
	}
	one.attrs = a;
	one.n_attrs = 1;
	j = zs_made_begin(&m);
	jw_object(j, false);
	zr_put_attrs3(j, &s->em, &one, &t);
	jw_end(j);
	rc = zs_made_end(&m, &all, e);
	if (rc)
		return rc;
	v = json_incref(json_object_get(all, FILL));
	json_decref(all);
	/* omitted if xarray could not read it, as in the view */
	return v ? set_member(attrs, a, v, e) : 0;
}

/* by_fill_value - whether _FillValue is expressed by fill_value alone. */
static bool by_fill_value(const struct zarr_sink *s, const json_t *attrs)
{
	return s->format == 2 && s->mode != ZARR_NCZARR && json_object_get(attrs, NAMES);
}

static int attrs_set_fill(struct zarr_sink *s, const struct attrs_node *n, json_t *attrs,
			  const struct ds_attr *a, struct err *e)
{
	json_t *v;
	int rc = 0;

	if (s->format == 3)
		return set_fill3(s, n, attrs, a, e);
	if (by_fill_value(s, attrs) || s->mode == ZARR_NCZARR) {
		rc = fill_json(s, a, &v, e);
		rc = rc ? rc : set_fill_value(s, n, v, e);
	}
	if (rc || (by_fill_value(s, attrs) && !json_object_get(attrs, FILL)))
		return rc;
	return set_value(s, attrs, a, e);
}

/* ---- */

int zs_set_attr(struct sink *sink, uint32_t group, uint32_t array, const struct ds_attr *a,
		struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	struct attrs_node n;
	json_t *attrs;
	int rc = attrs_find_node(s, group, array, &n, e);

	rc = rc ? rc : zs_attrs(s, n.key, n.from, n.za != NULL, &attrs, e);
	if (rc || zr_nc_hidden(a->name))
		return rc;
	rc = n.za && strcmp(a->name, FILL) == 0 ? attrs_set_fill(s, &n, attrs, a, e)
						: set_value(s, attrs, a, e);
	return rc ? rc : zs_nc_type(s, attrs, a, a->name, e);
}

int zs_remove_attr(struct sink *sink, uint32_t group, uint32_t array, const char *name,
		   struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	struct attrs_node n;
	json_t *attrs;
	int rc = attrs_find_node(s, group, array, &n, e);

	rc = rc ? rc : zs_attrs(s, n.key, n.from, n.za != NULL, &attrs, e);
	if (rc || zr_nc_hidden(name))
		return rc;
	if (n.za && strcmp(name, FILL) == 0 && s->format == 2 &&
	    (by_fill_value(s, attrs) || s->mode == ZARR_NCZARR)) {
		json_t *v = json_null();

		rc = set_fill_value(s, &n, v, e);
	}
	(void)json_object_del(attrs, name); /* it may be fill_value alone */
	return rc ? rc : zs_nc_type(s, attrs, NULL, name, e);
}

/* ---- dimensions ---- */

/* same_dims - dims: of each dimension of `now`, the one of `was` with the same path. */
static bool same_dims(const struct zarr_sink *s, uint32_t was, uint32_t now,
		      const uint32_t *dims)
{
	const struct ds_array *a = &s->was->ds.arrays[was], *b = &s->now->ds.arrays[now];

	if (a->rank != b->rank)
		return false;
	for (uint32_t d = 0; d < a->rank; d++)
		if (dims[b->dims[d]] != a->dims[d])
			return false;
	return true;
}

/* rename_dims - update the dimension names of an array, where the store has them. */
static int rename_dims(struct zarr_sink *s, uint32_t array, struct zs_array *za, struct err *e)
{
	const struct dataset *ds = &s->now->ds;
	const struct ds_array *a = &ds->arrays[array];
	json_t *list, *attrs, *old;
	struct zs_doc *d;
	int rc = zs_resolve_layout(s, array, za, e);

	rc = rc ? rc : zs_attrs(s, za->key, za->was_key, true, &attrs, e);
	rc = rc ? rc : zs_node_doc(s, za->key, za->was_key, true, false, &d, e);
	if (rc)
		return rc;
	list = json_array();
	old = json_object_get(d->v, "dimension_names");
	for (uint32_t i = 0; list && i < a->rank - za->spread; i++) {
		const char *name = ds->dims[a->dims[i]].name;

		if (json_array_append_new(list, zs_json_text(name, strlen(name))) < 0) {
			json_decref(list);
			list = NULL;
		}
	}
	/* elements of several bytes in the form of bytes have an axis that the model does not
	 * have */
	if (list && za->meta->tail && json_array_size(old) == za->meta->rank &&
	    json_array_append(list, json_array_get(old, za->meta->rank - 1)) < 0) {
		json_decref(list);
		list = NULL;
	}
	if (!list || json_object_set_new(s->format == 3 ? d->v : attrs,
					 s->format == 3 ? "dimension_names" : NAMES, list) < 0)
		return err_nomem(e);
	d->dirty = true;
	return zs_nc_array_dims(s, array, za, e);
}

int zs_dims(struct sink *sink, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	const struct dataset *now = &s->now->ds;
	auto_free uint32_t *groups = alloc_array(now->n_groups, sizeof(*groups));
	auto_free uint32_t *arrays = alloc_array(now->n_arrays, sizeof(*arrays));
	auto_free uint32_t *dims = alloc_array(now->n_dims, sizeof(*dims));
	int rc = groups && arrays && dims ? 0 : err_nomem(e);

	if (rc == 0 && s->was)
		rc = ds_match(now, &s->was->ds, groups, arrays, dims, e);
	for (uint32_t i = 0; rc == 0 && s->was && i < now->n_arrays; i++) {
		struct zs_array *za = &s->arrays[i];
		uint32_t was = za->was ? za->was - 1 : arrays[i];

		if (za->state == ZS_NEW || was == DS_NONE || same_dims(s, was, i, dims))
			continue;
		rc = zs_array_of(s, i, &za, e);
		rc = rc ? rc : rename_dims(s, i, za, e);
	}
	for (uint32_t g = 0; rc == 0 && g < now->n_groups; g++) {
		uint32_t was = s->was && !s->groups[g].is_new ? groups[g] : DS_NONE;

		if (was != DS_NONE)
			rc = zs_nc_group_dims(s, was, g, e);
		rc = rc ? rc : zs_group_hints(s, was, g, e);
	}
	return rc;
}
