/* SPDX-License-Identifier: BSD-3-Clause */
/* objects.c - adds, removes and renames groups and arrays. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- removing ---- */

/* objects_leave - record the removal of an object, if it has no other links. obj is taken. */
static int objects_leave(struct h5_sink *s, hid_t obj)
{
	uint64_t addr = nc_h5_address(obj);

	if (!hdf5_sink_links_one(obj)) {
		h5_id_close(&obj);
		return 0;
	}
	if (hdf5_sink_note_references(s, obj) < 0) {
		h5_id_close(&obj);
		return -1;
	}
	return hdf5_sink_moved(s, addr, HADDR_UNDEF, obj);
}

/* was_fail - as hdf5_sink_fail, for an object that `was` has. */
static int was_fail(struct h5_sink *s, const char *name, struct err *e)
{
	int rc = hdf5_sink_reason(s, "the HDF5 library cannot remove it", e);

	return err_wrap(e, rc, "'%.150s'", name);
}

static int no_such(const char *name, struct err *e)
{
	return err_set(e, -EOPNOTSUPP,
		       "'%.150s' is not in this file, or has another name in it: change it in "
		       "the place where it is stored",
		       name);
}

/* keep_soft - soft links to an object that loses a hard one: each is an array of its own in the
 * model, and becomes a hard link. */
static int keep_soft(struct h5_sink *s, uint32_t array)
{
	const struct dataset *ds = &s->real->g.base.ds;
	const struct h5_array *x = &s->real->arrays[array];
	auto_hid hid_t obj = -1;

	for (uint32_t i = 0; s->shared[array] && i < ds->n_arrays; i++) {
		const struct h5_array *y = &s->real->arrays[i];
		auto_hid hid_t group = -1;
		auto_free char *link = NULL;
		H5L_info_t info;

		if (i == array || y->file != 0 || y->addr != x->addr)
			continue;
		group = hdf5_sink_object(s, s->real->groups[ds->arrays[i].group].addr);
		if (obj <= 0)
			obj = hdf5_sink_object(s, x->addr);
		if (group < 0 || obj < 0 ||
		    hdf5_sink_link(group, x->addr, ds->arrays[i].name, &link) < 0 ||
		    H5Lget_info(group, link, &info, H5P_DEFAULT) < 0 ||
		    info.type != H5L_TYPE_SOFT)
			continue; /* removed already, or the link stays valid */
		if (H5Ldelete(group, link, H5P_DEFAULT) < 0 ||
		    H5Olink(obj, group, link, H5P_DEFAULT, H5P_DEFAULT) < 0)
			return -1;
	}
	return 0;
}

/* unlink_at - remove a group's link to an object. hard: the object is removed with it. */
static int unlink_at(struct h5_sink *s, uint64_t group, uint64_t addr, const char *name)
{
	auto_hid hid_t parent = hdf5_sink_object(s, group);
	auto_free char *link = NULL;
	H5L_info_t info;

	if (parent < 0 || hdf5_sink_link(parent, addr, name, &link) < 0 ||
	    H5Lget_info(parent, link, &info, H5P_DEFAULT) < 0)
		return -1;
	if (info.type == H5L_TYPE_HARD) {
		hid_t obj = hdf5_sink_object(s, addr);

		if (obj < 0 || objects_leave(s, obj) < 0)
			return -1;
	}
	return H5Ldelete(parent, link, H5P_DEFAULT) < 0 ? -1 : 0;
}

int hdf5_sink_remove_array(struct h5_sink *s, uint32_t array, struct err *e)
{
	const struct ds_array *a = &s->was->ds.arrays[array];
	uint32_t r = s->real_array[array], g = s->real_group[a->group];

	if (r == DS_NONE || g == DS_NONE || s->real->arrays[r].file != 0 ||
	    s->real->groups[g].file != 0)
		return no_such(a->name, e);
	if (keep_soft(s, r) < 0 ||
	    unlink_at(s, s->real->groups[g].addr,
		      hdf5_sink_current_address(s, s->real->arrays[r].addr), a->name) < 0)
		return was_fail(s, a->name, e);
	return 0;
}

/* each_below - remove the contents of a removed group, shown or not. */
static herr_t each_below(hid_t top NZ_UNUSED, const char *name NZ_UNUSED,
			 const H5O_info_t *info, void *arg)
{
	struct h5_sink *s = arg;
	hid_t obj;

	if (info->type != H5O_TYPE_DATASET || info->rc != 1)
		return 0;
	obj = hdf5_sink_object(s, info->addr);
	return obj < 0 || objects_leave(s, obj) < 0 ? -1 : 0;
}

int hdf5_sink_remove_group(struct h5_sink *s, uint32_t group, struct err *e)
{
	const struct ds_group *g = &s->was->ds.groups[group];
	uint32_t r = s->real_group[group], up = group ? s->real_group[g->parent] : DS_NONE;
	auto_hid hid_t obj = -1;

	if (r == DS_NONE || up == DS_NONE || s->real->groups[r].file != 0 ||
	    s->real->groups[up].file != 0)
		return no_such(g->name, e);
	obj = hdf5_sink_object(s, s->real->groups[r].addr);
	if (obj < 0 ||
	    (hdf5_sink_links_one(obj) && H5Ovisit2(obj, H5_INDEX_NAME, H5_ITER_NATIVE,
						   each_below, s, H5O_INFO_BASIC) < 0) ||
	    unlink_at(s, s->real->groups[up].addr, s->real->groups[r].addr, g->name) < 0)
		return was_fail(s, g->name, e);
	if (s->b.group > 0)
		h5_id_close(&s->b.group);
	s->b.group = 0;
	return 0;
}

/* ---- adding ---- */

/* same_name - check that an object keeps its name in netCDF: otherwise it could not be found
 * again. */
static int same_name(const char *want, const char *name, struct err *e)
{
	if (name && strcmp(want, name) == 0)
		return 0;
	return err_set(e, -EINVAL,
		       "netCDF does not accept the name '%.100s', or it is already in use: "
		       "choose another name",
		       want);
}

static int name_in_use(const struct h5_sink *s, uint32_t group, uint32_t array, struct err *e)
{
	int rc = err_set(e, -EEXIST,
			 "the file has another object of this name, which is not shown: choose "
			 "another name");

	return nc_err_path(&s->view.ds, group, array, rc, e);
}

int hdf5_sink_add_group(struct h5_sink *s, uint32_t group, struct err *e)
{
	const struct ds_group *g = &s->view.ds.groups[group];
	hid_t parent;
	int rc = same_name(g->name, s->m->groups[group].name, e);

	if (rc)
		return nc_err_path(&s->view.ds, group, DS_NONE, rc, e);
	if (s->b.groups[g->parent] == HADDR_UNDEF)
		return nc_err_path(&s->view.ds, group, DS_NONE, no_such(g->name, e), e);
	parent = nc_h5_group(&s->b, g->parent);
	if (parent >= 0 && H5Lexists(parent, g->name, H5P_DEFAULT) > 0)
		return name_in_use(s, group, DS_NONE, e);
	if (nc_h5_make_group(&s->b, group) < 0)
		return hdf5_sink_fail(s, group, DS_NONE, e);
	s->group_was[group] = DS_NONE;
	return 0;
}

int hdf5_sink_type_ready(struct h5_sink *s, uint32_t type, struct err *e)
{
	struct nc_type *t = type == DS_NONE ? NULL : &s->m->types[type];
	const char *name = t ? t->name : NULL;
	int rc = 0;

	if (!t || s->b.types[type] > 0)
		return 0;
	for (uint32_t i = 0; t->fields && i < t->type->n_fields && !rc; i++)
		rc = hdf5_sink_type_ready(s, t->fields[i], e);
	for (unsigned n = 2; !rc; n++) {
		char other[NC_NAME_LIMIT + 16];
		int made = nc_h5_make_type(&s->b, type);

		if (made == 0)
			return 0;
		if (made != -EEXIST || n > 1000)
			return hdf5_sink_fail(s, t->group, DS_NONE, e);
		(void)snprintf(other, sizeof(other), "%.240s_%u", name, n);
		t->name = arena_strdup(&s->m->arena, other);
		if (!t->name)
			return err_nomem(e);
	}
	return rc;
}

bool hdf5_sink_dim_only(hid_t set)
{
	auto_attr struct hdf5_sink_attr a = {0};
	auto_free char *text = NULL;
	size_t size = hdf5_sink_attr_open(set, "NAME", &a) ? H5Tget_size(a.type) : 0;

	if (size < 53 || size > 4096 || H5Tget_class(a.type) != H5T_STRING ||
	    H5Tis_variable_str(a.type) != 0 || !(text = alloc_array(size + 1, 1)) ||
	    H5Aread(a.at, a.type, text) < 0)
		return false;
	return strncmp(text, NETCDF_DIM_ONLY ".", sizeof(NETCDF_DIM_ONLY)) == 0;
}

/* displace_dimension - a dimension without a variable gives its name to its coordinate variable.
 * *ret: its old address. */
static int displace_dimension(struct h5_sink *s, uint32_t array, uint64_t *ret, struct err *e)
{
	struct nc_array *x = &s->m->arrays[array];
	hid_t group = nc_h5_group(&s->b, s->view.ds.arrays[array].group);
	hid_t set = -1;
	char *other;
	size_t n = strlen(x->link) + sizeof(NETCDF_NON_COORD);

	*ret = HADDR_UNDEF;
	if (group < 0)
		return hdf5_sink_fail(s, 0, array, e);
	if (H5Lexists(group, x->link, H5P_DEFAULT) <= 0)
		return 0;
	set = H5Oopen(group, x->link, H5P_DEFAULT);
	if (set < 0 || H5Iget_type(set) != H5I_DATASET || !hdf5_sink_dim_only(set)) {
		h5_id_close(&set);
		return name_in_use(s, 0, array, e);
	}
	if (x->scale_of == DS_NONE) { /* another variable's dimension */
		h5_id_close(&set);
		other = arena_alloc(&s->m->arena, n, 1);
		if (!other)
			return err_nomem(e);
		(void)snprintf(other, n, "%s%s", NETCDF_NON_COORD, x->link);
		x->link = other;
		return 0;
	}
	*ret = nc_h5_address(set);
	if (hdf5_sink_note_references(s, set) < 0 ||
	    H5Ldelete(group, x->link, H5P_DEFAULT) < 0 ||
	    hdf5_sink_moved(s, *ret, HADDR_UNDEF, set) < 0)
		return hdf5_sink_fail(s, 0, array, e);
	return 0;
}

/* own_storage - the requested storage in HDF5's terms. chunk has room for NC_RANK_LIMIT. */
static int own_storage(struct h5_sink *s, uint32_t array, const struct sink_new *how,
		       hsize_t *chunk, struct nc_storage *ret, struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	const uint64_t *want = how->chunk ? how->chunk : a->chunk;
	uint64_t bytes = nc_elem(a);
	bool unlimited = false;

	for (uint32_t d = 0; d < a->rank; d++)
		unlimited |= s->view.ds.dims[a->dims[d]].unlimited;
	*ret = (struct nc_storage){.chunk = chunk, .text_fill = true};
	if (a->rank == 0)
		return 0;
	ret->chunked = unlimited || !how->contiguous || how->chain.n > 0;
	for (uint32_t d = 0; d < a->rank; d++)
		chunk[d] = want[d];
	if (dt_is_vlen(&a->type)) {
		nc_strings_chunk(a, chunk);
		ret->chunked = unlimited || how->chain.n > 0;
		bytes = NC_TEXT_ELEM;
	}
	for (uint32_t d = 0; d < a->rank; d++)
		if (chunk[d] == 0 || chunk[d] > UINT32_MAX || ckd_mul(&bytes, bytes, chunk[d]))
			return err_set(e, -EOPNOTSUPP,
				       "HDF5 does not support chunks of %" PRIu64
				       " elements along an axis",
				       (uint64_t)chunk[d]);
	if (nc_rank(a) > a->rank)
		chunk[a->rank] = a->type.size;
	if (nc_rank(a) > a->rank && ckd_mul(&bytes, bytes, a->type.size))
		bytes = UINT64_MAX;
	if (ret->chunked && bytes > UINT32_MAX)
		return err_set(e, -EOPNOTSUPP,
			       "HDF5 does not support chunks of more than 4 GiB");
	ret->chunk_bytes = bytes;
	ret->chain = how->chain.n ? &how->chain : NULL;
	return 0;
}

/* objects_make - make the dataset and its attributes. */
static int objects_make(struct h5_sink *s, uint32_t array, const struct nc_storage *how,
			struct err *e)
{
	auto_hid hid_t set = -1;

	if ((how->chain && nc_filters_stand_in(&s->filters, how->chain) < 0) ||
	    nc_h5_make_array(&s->b, array, how) < 0)
		return hdf5_sink_fail(s, 0, array, e);
	set = hdf5_sink_object(s, s->b.arrays[array]);
	if (set < 0 || nc_h5_attrs(&s->b, set, &s->m->arrays[array].attrs) < 0)
		return hdf5_sink_fail(s, 0, array, e);
	return 0;
}

int hdf5_sink_add_array(struct h5_sink *s, uint32_t array, const struct sink_new *how,
			struct err *e)
{
	const struct ds_array *a = &s->view.ds.arrays[array];
	const struct nc_array *m = &s->m->arrays[array];
	struct hdf5_sink_array *x = &s->arrays[array];
	hsize_t chunk[NC_RANK_LIMIT] = {0};
	struct nc_storage storage;
	uint64_t was_at;
	int rc;

	rc = m->name ? same_name(a->name, m->name, e)
		     : err_set(e, -EOPNOTSUPP, "netCDF-4 cannot store it: %s",
			       s->plans[array].reason);
	if (!rc && s->b.groups[a->group] == HADDR_UNDEF)
		rc = no_such(a->name, e);
	rc = rc ? rc : hdf5_sink_attrs_held(s->m, a->group, array, e);
	rc = rc ? rc : own_storage(s, array, how, chunk, &storage, e);
	if (rc)
		return nc_err_path(&s->view.ds, 0, array, rc, e);
	rc = displace_dimension(s, array, &was_at, e);
	rc = rc ? rc : hdf5_sink_type_ready(s, m->type, e);
	for (uint32_t i = 0; i < m->attrs.n && !rc; i++)
		rc = hdf5_sink_type_ready(s, m->attrs.list[i].type, e);
	rc = rc ? rc : objects_make(s, array, &storage, e);
	if (rc)
		return rc;
	hdf5_sink_forget(s, array);
	x->addr = s->b.arrays[array];
	x->real = DS_NONE;
	x->fresh = x->retie = true;
	/* the same dimension at a new address */
	hdf5_sink_redirect(s, was_at, x->addr);
	return 0;
}

/* ---- names ---- */

int hdf5_sink_require_in_file(struct h5_sink *s, uint32_t array, struct err *e)
{
	if (s->arrays[array].addr != HADDR_UNDEF)
		return 0;
	return nc_err_path(&s->view.ds, 0, array, no_such(s->view.ds.arrays[array].name, e), e);
}

int hdf5_sink_rename_array(struct h5_sink *s, uint32_t was, uint32_t now, struct err *e)
{
	const struct ds_array *w = &s->was->ds.arrays[was], *a = &s->view.ds.arrays[now];
	uint32_t r = s->real_array[was], g = s->real_group[w->group];
	struct hdf5_sink_array *x = &s->arrays[now];
	auto_free char *link = NULL;
	auto_hid hid_t from = -1;
	uint64_t was_at;
	hid_t to;
	int rc;

	if (r == DS_NONE || g == DS_NONE || s->real->arrays[r].file != 0)
		return no_such(w->name, e);
	rc = same_name(a->name, s->m->arrays[now].name, e);
	if (!rc && s->b.groups[a->group] == HADDR_UNDEF)
		rc = no_such(a->name, e);
	if (rc)
		return nc_err_path(&s->view.ds, 0, now, rc, e);
	rc = displace_dimension(s, now, &was_at, e);
	if (rc)
		return rc;
	from = hdf5_sink_object(s, s->real->groups[g].addr);
	to = nc_h5_group(&s->b, a->group);
	x->addr = hdf5_sink_current_address(s, s->real->arrays[r].addr);
	if (from < 0 || to < 0 || keep_soft(s, r) < 0 ||
	    hdf5_sink_link(from, x->addr, w->name, &link) < 0 ||
	    hdf5_sink_relink(from, link, to, s->m->arrays[now].link) < 0)
		return hdf5_sink_fail(s, 0, now, e);
	x->real = r;
	x->was = was;
	x->retie = true; /* a new name may make it a coordinate variable, or no longer one */
	s->b.arrays[now] = x->addr;
	hdf5_sink_redirect(s, was_at, x->addr);
	return 0;
}
