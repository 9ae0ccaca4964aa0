/* SPDX-License-Identifier: BSD-3-Clause */
/* nczarr_lists.c - NCZarr's dictionaries of existing nodes: the arrays, groups and dimensions of a
 * group, the dimensions of an array and the types of attributes. Each is changed where the store
 * has it, in all spellings. Also the hints of a plain Zarr store. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "nczarr/source/open.h"

/* any_case - the member of an object that is an object, in any spelling of its name; NULL: none. */
static json_t *any_case(json_t *o, const char *name)
{
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v)
	{
		if (strcasecmp(key, name) == 0 && json_is_object(v))
			return v;
	}
	return NULL;
}

/* dict - a dictionary of a group or array, in its document or its attributes; NULL: none. Marks
 * that document dirty. */
static int dict(struct zarr_sink *s, const char *key, const char *from, bool array,
		const char *name, json_t **ret, struct err *e)
{
	*ret = NULL;
	for (int attrs = 1; attrs >= 0 && !*ret; attrs--) {
		struct zs_doc *d;
		int rc = zs_node_doc(s, key, from, array, attrs == 1, &d, e);

		if (rc)
			return rc;
		*ret = any_case(d->v, name);
		d->dirty = d->dirty || *ret;
	}
	return 0;
}

/* list_edit - add or remove a name in a list of a dictionary. */
static int list_edit(json_t *d, const char *member, const char *name, bool add, bool make,
		     struct err *e)
{
	json_t *list = json_object_get(d, member);
	size_t at;

	if (!json_is_array(list)) {
		if (!make || !add)
			return 0;
		list = json_array();
		if (!list || json_object_set_new(d, member, list) < 0)
			return err_nomem(e);
	}
	for (at = 0; at < json_array_size(list); at++)
		if (json_is(json_array_get(list, at), name))
			break;
	if (at < json_array_size(list))
		return add || json_array_remove(list, at) == 0 ? 0 : err_nomem(e);
	if (add && json_array_append_new(list, zs_json_text(name, strlen(name))) < 0)
		return err_nomem(e);
	return 0;
}

int zs_nc_list(struct zarr_sink *s, const char *key, bool array, const char *name, bool add,
	       struct err *e)
{
	json_t *d;
	int rc;

	if (s->mode != ZARR_NCZARR || s->format == 3)
		return 0;
	rc = dict(s, key, key, false, "_nczarr_group", &d, e);
	if (rc || !d)
		return rc;
	if (!array)
		return list_edit(d, "groups", name, add, true, e);
	rc = list_edit(d, "vars", name, add, !json_object_get(d, "arrays"), e);
	return rc ? rc : list_edit(d, "arrays", name, add, false, e);
}

int zs_nc_type(struct zarr_sink *s, json_t *attrs, const struct ds_attr *at, const char *name,
	       struct err *e)
{
	json_t *types, *made = NULL, *v;
	struct zs_made m;
	struct jw *j;
	int rc;

	if (s->mode != ZARR_NCZARR || s->format == 3)
		return 0;
	types = json_object_get(any_case(attrs, "_nczarr_attr"), "types");
	if (!at) {
		if (types)
			(void)json_object_del(types, name); /* it may have had none */
		return 0;
	}
	j = zs_made_begin(&m);
	jw_object(j, false);
	zr_put_nczarr_types(j, &s->em, at, 1, NULL, true);
	jw_end(j);
	rc = zs_made_end(&m, &made, e);
	if (rc)
		return rc;
	v = json_object_get(made, "_nczarr_attr");
	if (!types)
		rc = json_object_set(attrs, "_nczarr_attr", v);
	else
		rc = json_object_set(types, name,
				     json_object_get(json_object_get(v, "types"), name));
	json_decref(made);
	return rc < 0 ? err_nomem(e) : 0;
}

/* ---- dimensions ---- */

/* dim_json - a dimension in the form of a dictionary: {"size": 5, "unlimited": 1} in the newer
 * spelling. */
static json_t *dim_json(const struct ds_dim *dim, bool rich)
{
	json_t *v;

	if (!rich || !dim->unlimited)
		return zs_json_u64(dim->len);
	v = json_object();
	if (v && (json_object_set_new(v, "size", zs_json_u64(dim->len)) < 0 ||
		  json_object_set_new(v, "unlimited", zs_json_u64(1)) < 0)) {
		json_decref(v);
		v = NULL;
	}
	return v;
}

static int set_dim(json_t *d, const struct ds_dim *dim, struct err *e)
{
	static const char *const members[] = {"dimensions", "dims"};
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_t *o = json_object_get(d, members[i]);

		if (!json_is_object(o))
			continue;
		any = true;
		/* netCDF-C 4.9.2, which reads the old spelling, rejects it */
		if (i == 1 && dim->len == 0 && json_object_get(d, "dimensions")) {
			(void)json_object_del(o, dim->name); /* it may be absent */
			continue;
		}
		if (json_object_set_new(o, dim->name, dim_json(dim, i == 0)) < 0)
			return err_nomem(e);
	}
	if (!any) {
		json_t *o = json_object();

		if (!o || json_object_set_new(d, "dims", o) < 0 ||
		    json_object_set_new(o, dim->name, dim_json(dim, false)) < 0)
			return err_nomem(e);
	}
	return 0;
}

static const struct ds_dim *dim_named(const struct dataset *ds, uint32_t group,
				      const char *name)
{
	const struct ds_group *g = &ds->groups[group];

	for (uint32_t i = 0; i < g->n_dims; i++)
		if (strcmp(ds->dims[g->dims[i]].name, name) == 0)
			return &ds->dims[g->dims[i]];
	return NULL;
}

int zs_nc_group_dims(struct zarr_sink *s, uint32_t was, uint32_t now, struct err *e)
{
	const struct dataset *a = &s->was->ds, *b = &s->now->ds;
	const char *key;
	json_t *d = NULL;
	int rc = 0;

	if (s->mode != ZARR_NCZARR || s->format == 3)
		return 0;
	key = zs_group_key(s, now, e);
	if (!key)
		return -EIO;
	for (uint32_t i = 0; rc == 0 && i < b->groups[now].n_dims; i++) {
		const struct ds_dim *dim = &b->dims[b->groups[now].dims[i]];
		const struct ds_dim *old = dim_named(a, was, dim->name);

		if (old && old->len == dim->len && old->unlimited == dim->unlimited)
			continue;
		if (!d)
			rc = dict(s, key, key, false, "_nczarr_group", &d, e);
		if (rc == 0 && d)
			rc = set_dim(d, dim, e);
	}
	for (uint32_t i = 0; rc == 0 && i < a->groups[was].n_dims; i++) {
		const struct ds_dim *dim = &a->dims[a->groups[was].dims[i]];

		if (dim_named(b, now, dim->name))
			continue;
		if (!d)
			rc = dict(s, key, key, false, "_nczarr_group", &d, e);
		if (rc == 0 && d) {
			(void)json_object_del(json_object_get(d, "dimensions"), dim->name);
			(void)json_object_del(json_object_get(d, "dims"), dim->name);
		}
	}
	return rc;
}

int zs_nc_array_dims(struct zarr_sink *s, uint32_t array, const struct zs_array *za,
		     struct err *e)
{
	struct ds_array a = s->now->ds.arrays[array];
	json_t *d, *made = NULL, *v;
	struct zs_made m;
	struct jw *j;
	int rc;

	if (s->mode != ZARR_NCZARR || s->format == 3)
		return 0;
	rc = dict(s, za->key, za->was_key, true, "_nczarr_array", &d, e);
	if (rc || !d)
		return rc;
	a.rank -= za->spread;
	j = zs_made_begin(&m);
	jw_object(j, false);
	zr_put_nczarr_array(j, &s->em, &a);
	jw_end(j);
	rc = zs_made_end(&m, &made, e);
	if (rc)
		return rc;
	v = json_object_get(json_object_get(made, "_nczarr_array"), "dimrefs");
	if (json_object_get(d, "dimension_references") &&
	    json_object_set(d, "dimension_references", v) < 0)
		rc = err_nomem(e);
	if (rc == 0 &&
	    (json_object_get(d, "dimrefs") || !json_object_get(d, "dimension_references")) &&
	    json_object_set(d, "dimrefs", v) < 0)
		rc = err_nomem(e);
	json_decref(made);
	return rc;
}

/* ---- hints in a store of plain Zarr ---- */

static bool same_layout(const struct dataset *a, uint32_t ga, const struct dataset *b, uint32_t gb)
{
	const struct ds_group *g = &a->groups[ga], *h = &b->groups[gb];

	if (g->n_arrays != h->n_arrays || g->n_groups != h->n_groups || g->n_dims != h->n_dims)
		return false;
	for (uint32_t i = 0; i < g->n_arrays; i++)
		if (strcmp(a->arrays[g->arrays[i]].name, b->arrays[h->arrays[i]].name) != 0)
			return false;
	for (uint32_t i = 0; i < g->n_groups; i++)
		if (strcmp(a->groups[g->groups[i]].name, b->groups[h->groups[i]].name) != 0)
			return false;
	for (uint32_t i = 0; i < g->n_dims; i++) {
		const struct ds_dim *d = &a->dims[g->dims[i]], *x = &b->dims[h->dims[i]];

		if (strcmp(d->name, x->name) != 0 || d->len != x->len ||
		    d->unlimited != x->unlimited)
			return false;
	}
	return true;
}

/* dims_follow - whether a group's dimensions are those of its arrays, in the order of their first
 * use. */
static bool dims_follow(const struct dataset *ds, const struct ds_group *g)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < g->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[g->arrays[i]];

		for (uint32_t k = 0; k < a->rank && next < g->n_dims; k++)
			next += a->dims[k] == g->dims[next];
	}
	return next == g->n_dims;
}

/* plain_says - whether plain Zarr expresses a group completely: its arrays and groups are sorted
 * by name, and its dimensions are fixed and follow from its arrays. */
static bool plain_says(const struct dataset *ds, uint32_t group)
{
	const struct ds_group *g = &ds->groups[group];

	for (uint32_t i = 0; i < g->n_dims; i++)
		if (ds->dims[g->dims[i]].unlimited)
			return false;
	for (uint32_t i = 1; i < g->n_arrays; i++)
		if (strcmp(ds->arrays[g->arrays[i - 1]].name, ds->arrays[g->arrays[i]].name) > 0)
			return false;
	for (uint32_t i = 1; i < g->n_groups; i++)
		if (strcmp(ds->groups[g->groups[i - 1]].name, ds->groups[g->groups[i]].name) > 0)
			return false;
	return dims_follow(ds, g);
}

int zs_group_hints(struct zarr_sink *s, uint32_t was, uint32_t now, struct err *e)
{
	static const char name[] = "_nczarr_group";
	const bool said = plain_says(&s->now->ds, now);
	const char *key;
	struct zs_made m;
	struct zs_doc *d;
	json_t *in, *v;
	int rc;

	if (s->mode == ZARR_NCZARR || zs_has_root(s, NULL) < 0 ||
	    (was != DS_NONE && same_layout(&s->was->ds, was, &s->now->ds, now)))
		return 0;
	key = zs_group_key(s, now, e);
	if (!key)
		return -EIO;
	rc = zs_doc_in(s, key, s->groups[now].is_new ? NULL : key, zs_doc_name(s, false, false),
		       false, &d, e);
	if (rc || !d->v)
		return rc; /* a root without a document */
	in = s->format == 3 ? json_object_get(d->v, "attributes") : d->v;
	if (said) {
		d->dirty = json_object_del(in, name) == 0 || d->dirty;
		return 0;
	}
	if (!json_is_object(in)) {
		in = json_object();
		if (!in || json_object_set_new(d->v, "attributes", in) < 0)
			return err_nomem(e);
	}
	zr_put_group_hints(zs_made_begin(&m), &s->em, now);
	rc = zs_made_end(&m, &v, e);
	if (rc)
		return rc;
	d->dirty = true;
	return json_object_set_new(in, name, v) < 0 ? err_nomem(e) : 0;
}
