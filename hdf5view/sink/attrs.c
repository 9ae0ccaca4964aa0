/* SPDX-License-Identifier: BSD-3-Clause */
/* attrs.c - attributes of existing objects.
 *
 * A value came through JSON, which has few types. An attribute keeps its type in the file if that
 * type can represent the new value exactly; otherwise it gets the type of a new attribute. */
#include "hdf5view/sink/sink_int.h"
#include "translate/model/value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 30)

/* ---- copies ---- */

struct copying {
	hid_t to;
	const char *const *without;
};

static herr_t copy_one(hid_t from, const char *name, const H5A_info_t *info NZ_UNUSED,
		       void *arg)
{
	const struct copying *x = arg;
	auto_attr struct hdf5_sink_attr a = {0};
	auto_hid hid_t out = -1, acpl = -1;
	auto_free uint8_t *p = NULL;
	size_t bytes;
	int rc = 0;

	for (size_t i = 0; x->without && x->without[i]; i++)
		if (strcmp(name, x->without[i]) == 0)
			return 0;
	acpl = hdf5_sink_attr_open(from, name, &a) ? H5Aget_create_plist(a.at) : -1;
	if (acpl < 0 || ckd_mul(&bytes, (size_t)a.n, H5Tget_size(a.type)))
		return -1;
	out = H5Acreate2(x->to, name, a.type, a.space, acpl, H5P_DEFAULT);
	if (out < 0)
		return -1;
	if (bytes == 0)
		return 0;
	p = alloc_array(bytes, 1);
	if (!p || H5Aread(a.at, a.type, p) < 0)
		return -1;
	rc = H5Awrite(out, a.type, p) < 0 ? -1 : 0;
	if (H5Tdetect_class(a.type, H5T_VLEN) > 0 || H5Tdetect_class(a.type, H5T_STRING) > 0)
		(void)H5Dvlen_reclaim(a.type, a.space, H5P_DEFAULT, p);
	return rc;
}

int hdf5_sink_attrs_copy(hid_t from, hid_t to, const char *const *without)
{
	struct copying x = {.to = to, .without = without};
	auto_hid hid_t dcpl = H5Dget_create_plist(from);
	unsigned order = 0;

	if (dcpl >= 0)
		(void)H5Pget_attr_creation_order(dcpl, &order);
	return H5Aiterate2(from, order ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, NULL,
			   copy_one, &x) < 0
		       ? -1
		       : 0;
}

/* ---- the same type ---- */

/* put_as - replace the attribute by n values of a type. mem: the type of p. */
static int put_as(hid_t obj, const char *name, struct hdf5_sink_attr *x, hid_t type, hid_t mem,
		  uint64_t n, const void *p)
{
	hsize_t dim = n;
	auto_hid hid_t space = -1, at = -1, keep = H5Tcopy(type);

	/* the same dataspace if the number is unchanged */
	if (x->n == n && n > 0 && H5Tequal(type, x->type) > 0)
		return H5Awrite(x->at, mem, p) < 0 ? -1 : 0;
	space = x->n == n ? H5Scopy(x->space)
		: n == 0  ? H5Screate(H5S_NULL)
			  : H5Screate_simple(1, &dim, NULL);
	hdf5_sink_attr_close(x);
	if (keep < 0 || space < 0 || H5Adelete(obj, name) < 0)
		return -1;
	at = H5Acreate2(obj, name, keep, space, H5P_DEFAULT, H5P_DEFAULT);
	return at < 0 || (n > 0 && H5Awrite(at, mem, p) < 0) ? -1 : 0;
}

/* vlen_text - write variable-length strings, if the attribute has that type. Returns 1: done. */
static int vlen_text(hid_t obj, const char *name, struct hdf5_sink_attr *x,
		     const struct ds_attr *a)
{
	auto_hid hid_t type = H5Tcopy(x->type);
	char **list = nc_texts(a->strings, a->n);
	int rc = type < 0 || !list ? -1 : 1;

	for (uint64_t i = 0; i < a->n && rc == 1; i++)
		if (!nc_ascii(&a->strings[i]))
			rc = H5Tset_cset(type, H5T_CSET_UTF8) < 0 ? -1 : 1;
	if (rc == 1 && put_as(obj, name, x, type, type, a->n, list) < 0)
		rc = -1;
	nc_texts_free(list);
	return rc;
}

/* fixed_text - write one fixed-size string, if the attribute is one, at exactly its new length, as
 * in netCDF-C. Returns 1: done; 0: no. */
static int fixed_text(hid_t obj, const char *name, struct hdf5_sink_attr *x,
		      const struct ds_attr *a)
{
	const struct ds_text *t = a->strings;
	auto_hid hid_t type = H5Tcopy(x->type);
	size_t room = t->len ? t->len : 1;
	auto_free char *p = NULL;

	if (a->n != 1 || x->n != 1 || t->len > TEXT_MAX)
		return 0;
	p = alloc_array(room, 1);
	if (!p || type < 0 || H5Tset_size(type, room) < 0 ||
	    (!nc_ascii(t) && H5Tset_cset(type, H5T_CSET_UTF8) < 0))
		return -1;
	if (t->len)
		memcpy(p, t->s, t->len);
	/* the same type: a conversion would keep the last byte of a terminated text for a NUL */
	return put_as(obj, name, x, type, type, 1, p) < 0 ? -1 : 1;
}

/* short_as - whether a double equals a float's shortest decimal form: JSON has lost the type. */
static bool short_as(float f, double d)
{
	char text[40];

	if ((double)f == d || (isnan(f) && isnan(d)))
		return true;
	for (int digits = 1; digits <= 9; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, (double)f);
		if (strtof(text, NULL) == f)
			return strtod(text, NULL) == d;
	}
	return false;
}

/* floats_say - whether values of doubles can be floats of the file. */
static bool floats_say(const struct ds_attr *a, hid_t type)
{
	if (a->type.kind != DT_FLOAT || a->type.size != 8 || H5Tget_class(type) != H5T_FLOAT ||
	    H5Tget_size(type) != 4)
		return false;
	for (uint64_t i = 0; i < a->n; i++) {
		double d;

		memcpy(&d, a->data + i * sizeof(d), sizeof(d));
		if (!short_as((float)d, d))
			return false;
	}
	return true;
}

/* numbers_say - whether n values are unchanged by a conversion to the file's type and back. */
static bool numbers_say(const struct ds_attr *a, hid_t mem, hid_t type)
{
	size_t size = u64_max(H5Tget_size(type), a->type.size), bytes;
	auto_free uint8_t *p = NULL;

	if (ckd_mul(&bytes, size, (size_t)a->n))
		return false;
	p = alloc_array(bytes, 1);
	if (!p)
		return false;
	memcpy(p, a->data, (size_t)a->n * a->type.size);
	return H5Tconvert(mem, type, (size_t)a->n, p, NULL, H5P_DEFAULT) >= 0 &&
	       H5Tconvert(type, mem, (size_t)a->n, p, NULL, H5P_DEFAULT) >= 0 &&
	       memcmp(p, a->data, (size_t)a->n * a->type.size) == 0;
}

/* attrs_put_number - write numbers in the existing type. Returns 1: done; 0: the type
 * cannot represent them. */
static int attrs_put_number(struct h5_sink *s, hid_t obj, const char *name,
			    struct hdf5_sink_attr *x, const struct ds_attr *a)
{
	H5T_class_t class = H5Tget_class(x->type);
	auto_hid hid_t mem = nc_h5_type_host(&s->b, &a->type), type = H5Tcopy(x->type);

	if ((class != H5T_INTEGER && class != H5T_FLOAT) || mem < 0 || type < 0 || a->n == 0)
		return 0;
	if (!numbers_say(a, mem, type) && !floats_say(a, type))
		return 0;
	return put_as(obj, name, x, type, mem, a->n, a->data) < 0 ? -1 : 1;
}

/* attrs_put_same - write the value in the existing type. Returns 1: done; 0: not
 * possible; -1. */
static int attrs_put_same(struct h5_sink *s, hid_t obj, const char *name,
			  const struct ds_attr *a)
{
	auto_attr struct hdf5_sink_attr x = {0};

	if (!hdf5_sink_attr_open(obj, name, &x))
		return 0;
	if ((a->type.kind == DT_STRING || a->type.kind == DT_VSTRING) && a->strings &&
	    H5Tget_class(x.type) == H5T_STRING)
		return H5Tis_variable_str(x.type) > 0 ? vlen_text(obj, name, &x, a)
						      : fixed_text(obj, name, &x, a);
	if (value_is_number(&a->type) && a->data)
		return attrs_put_number(s, obj, name, &x, a);
	return 0;
}

/* ---- _FillValue ---- */

/* fill_stays - whether missing elements read as the same value as before. */
static bool fill_stays(struct h5_sink *s, uint32_t array)
{
	const struct ds_array *a = &s->view.ds.arrays[array], *r;

	if (s->arrays[array].real == DS_NONE)
		return true;
	r = &s->real->g.base.ds.arrays[s->arrays[array].real];
	if (dt_is_vlen(&a->type) || !a->fill || !r->fill || a->type.size != r->type.size)
		return true;
	return memcmp(a->fill, r->fill, a->type.size) == 0;
}

static int check_fill(struct h5_sink *s, uint32_t array, hid_t *set, struct err *e)
{
	if (fill_stays(s, array))
		return 0;
	if (H5Dget_storage_size(*set) > 0) /* missing elements are the fill value */
		return err_set(e, -EOPNOTSUPP,
			       "the fill value of a variable with data cannot be changed: "
			       "write the data to a new variable");
	h5_id_close(set);
	*set = -1;
	if (hdf5_sink_remake_fill(s, array, s->view.ds.arrays[array].fill, e) < 0)
		return e ? e->code : -EIO;
	*set = hdf5_sink_object(s, s->arrays[array].addr);
	return *set < 0 ? hdf5_sink_fail(s, 0, array, e) : 0;
}

/* ---- operations ---- */

static const struct nc_attr *attrs_decided(const struct nc_attrs *l, const char *name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->list[i].src->name, name) == 0)
			return &l->list[i];
	return NULL;
}

/* further - the number of an attribute that `now` does not have: one that the file's writer
 * adds. */
static const struct nc_attr *further(struct h5_sink *s, uint32_t group, uint32_t array,
				     const struct ds_attr *a, struct nc_attr *room)
{
	const struct ds_array *x = array == DS_NONE ? NULL : &s->view.ds.arrays[array];
	const struct ds_group *g = &s->view.ds.groups[group];

	if (!value_is_number(&a->type) ||
	    ds_attr_find(x ? x->attrs : g->attrs, x ? x->n_attrs : g->n_attrs, a->name))
		return NULL;
	*room = (struct nc_attr){.name = a->name,
				 .src = a,
				 .form = NC_ATTR_VALUES,
				 .as = a->type,
				 .type = DS_NONE};
	return room;
}

static hid_t attrs_object_of(struct h5_sink *s, uint32_t group, uint32_t array)
{
	if (array != DS_NONE)
		return hdf5_sink_object(s, s->arrays[array].addr);
	return hdf5_sink_object(s, s->b.groups[group]);
}

/* attrs_fail - record a failure; the caller adds the object's path. */
static int attrs_fail(struct h5_sink *s, struct err *e)
{
	return hdf5_sink_reason(s, "the HDF5 library cannot write it", e);
}

static int attrs_set_attr(struct h5_sink *s, uint32_t group, uint32_t array,
			  const struct ds_attr *a, struct err *e)
{
	const struct nc_attrs *l =
		array == DS_NONE ? &s->m->groups[group].attrs : &s->m->arrays[array].attrs;
	const struct nc_attr *at = attrs_decided(l, a->name);
	struct nc_attr room;
	bool fill = array != DS_NONE && strcmp(a->name, "_FillValue") == 0;
	auto_hid hid_t obj = attrs_object_of(s, group, array);
	int rc;

	if (obj < 0)
		return attrs_fail(s, e);
	if (!at)
		at = further(s, group, array, a, &room);
	if (!at)
		return err_set(e, -EOPNOTSUPP,
			       "netCDF-4 cannot store this attribute, or reserves its name");
	rc = fill ? check_fill(s, array, &obj, e) : 0;
	rc = rc ? rc : hdf5_sink_type_ready(s, at->type, e);
	if (rc)
		return rc;
	rc = fill ? 0 : attrs_put_same(s, obj, at->name, at->src);
	if (rc == 0 && H5Aexists(obj, at->name) > 0)
		rc = H5Adelete(obj, at->name);
	rc = rc ? rc : nc_h5_attrs(&s->b, obj, &(const struct nc_attrs){.n = 1, .list = at});
	return rc < 0 ? attrs_fail(s, e) : 0;
}

int hdf5_sink_set_attr(struct h5_sink *s, uint32_t group, uint32_t array,
		       const struct ds_attr *a, struct err *e)
{
	int rc = array == DS_NONE ? 0 : hdf5_sink_require_in_file(s, array, e);

	if (rc)
		return rc;
	rc = attrs_set_attr(s, group, array, a, e);
	if (rc) {
		rc = err_wrap(e, rc, "attribute '%.100s'", a->name);
		rc = nc_err_path(&s->view.ds, group, array, rc, e);
	}
	return rc;
}

int hdf5_sink_remove_attr(struct h5_sink *s, uint32_t group, uint32_t array, const char *name,
			  struct err *e)
{
	const char *own = nc_escape(&s->arena, name, NC_NAME_LIMIT);
	auto_hid hid_t obj = attrs_object_of(s, group, array);

	if (!own)
		return err_nomem(e);
	if (obj < 0)
		return hdf5_sink_fail(s, group, array, e);
	if (H5Aexists(obj, own) <= 0)
		own = name;
	if (H5Aexists(obj, own) > 0 && H5Adelete(obj, own) < 0)
		return hdf5_sink_fail(s, group, array, e);
	return 0;
}
