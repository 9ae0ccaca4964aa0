/* SPDX-License-Identifier: BSD-3-Clause */
/* dims.c - updates dimensions and their scales to the new dataset.
 *
 * A dimension is a dataset: its coordinate variable, or one without values. When a variable of its
 * name is added or removed, this may change; references to the old one are updated at the end. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>


/* find_needed - find the dimensions of arrays whose dimension lists this sink writes. */
static bool *find_needed(const struct h5_sink *s)
{
	bool *needed = alloc_array(s->m->n_dims, sizeof(*needed));

	for (uint32_t i = 0; i < s->view.ds.n_arrays && needed; i++) {
		uint32_t n = s->arrays[i].fresh ? nc_rank(&s->view.ds.arrays[i])
						: s->view.ds.arrays[i].rank;

		for (uint32_t k = 0; k < n && s->arrays[i].retie; k++)
			if (nc_axis_dim(s->m, i, k) != DS_NONE)
				needed[nc_axis_dim(s->m, i, k)] = true;
	}
	return needed;
}

static int32_t new_id(struct h5_sink *s)
{
	return s->next_id < 0 || s->next_id == INT32_MAX ? -1 : s->next_id++;
}

static int dims_fail(struct h5_sink *s, uint32_t dim, struct err *e)
{
	int rc = hdf5_sink_reason(s, "the HDF5 library cannot change it", e);

	return err_wrap(e, rc, "dimension '%.100s'", s->m->dims[dim].name);
}

/* successor - record that references to a scale now mean another one. */
static int successor(struct h5_sink *s, uint64_t from, uint64_t to)
{
	hid_t obj;

	if (from == HADDR_UNDEF || from == to)
		return 0;
	for (size_t i = 0; i < s->n_moves; i++)
		if (s->moves[i].from == from) { /* already removed */
			s->moves[i].to = to;
			return hdf5_sink_list_add(&s->scales, to);
		}
	obj = hdf5_sink_object(s, from);
	if (obj < 0 || hdf5_sink_note_references(s, obj) < 0) {
		h5_id_close(&obj);
		return -1;
	}
	return hdf5_sink_list_add(&s->scales, to) < 0 ? -1 : hdf5_sink_moved(s, from, to, obj);
}

static const char *const marks[] = {"CLASS", "NAME", "_Netcdf4Dimid", "REFERENCE_LIST"};

/* unmark - make a scale an ordinary dataset. */
static int unmark(hid_t set)
{
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (H5Aexists(set, marks[i]) > 0 && H5Adelete(set, marks[i]) < 0)
			return -1;
	return 0;
}

static bool is_scale(hid_t set)
{
	return H5Aexists(set, "CLASS") > 0 && H5Aexists(set, "NAME") > 0;
}

/* use_variable - make an array the scale of a dimension. */
static int use_variable(struct h5_sink *s, uint32_t dim, struct err *e)
{
	uint32_t array = s->m->dims[dim].scale;
	struct hdf5_sink_dim *d = &s->dims[dim];
	uint64_t addr = s->arrays[array].addr;
	auto_hid hid_t set = -1;

	if (addr == HADDR_UNDEF)
		return 0;
	if (d->addr != HADDR_UNDEF && hdf5_sink_current_address(s, d->addr) == addr &&
	    !s->arrays[array].retie) {
		d->addr = addr;
		return 0;
	}
	set = hdf5_sink_object(s, addr);
	if (d->id < 0 && d->addr == HADDR_UNDEF)
		d->id = new_id(s);
	if (set < 0 || hdf5_sink_note_references(s, set) < 0 || unmark(set) < 0 ||
	    (H5Aexists(set, "DIMENSION_LIST") > 0 && H5Adelete(set, "DIMENSION_LIST") < 0) ||
	    nc_h5_mark(set, s->m->arrays[array].name, d->id) < 0 ||
	    hdf5_sink_list_add(&s->scales, addr) < 0 || successor(s, d->addr, addr) < 0)
		return dims_fail(s, dim, e);
	d->addr = addr;
	return 0;
}

/* dims_displace_variable - rename a variable that has the name of a dimension but is not its
 * coordinate variable. */
static int dims_displace_variable(struct h5_sink *s, uint32_t dim, struct err *e)
{
	const struct nc_dim *d = &s->m->dims[dim];
	hid_t group = nc_h5_group(&s->b, d->group);
	auto_hid hid_t set = -1;
	char other[NC_NAME_LIMIT + sizeof(NETCDF_NON_COORD)];

	if (group < 0)
		return dims_fail(s, dim, e);
	if (H5Lexists(group, d->name, H5P_DEFAULT) <= 0)
		return 0;
	set = H5Oopen(group, d->name, H5P_DEFAULT);
	if (set < 0 || H5Iget_type(set) != H5I_DATASET || hdf5_sink_dim_only(set))
		return err_set(e, -EEXIST,
			       "dimension '%.100s': the file has another object of this name",
			       d->name);
	(void)snprintf(other, sizeof(other), "%s%s", NETCDF_NON_COORD, d->name);
	return hdf5_sink_relink(group, d->name, group, other) < 0 ? dims_fail(s, dim, e) : 0;
}

/* demote_coordinate - the dimension's variable is no longer its coordinate variable. */
static int demote_coordinate(struct h5_sink *s, uint64_t addr)
{
	for (uint32_t i = 0; i < s->view.ds.n_arrays; i++)
		if (s->arrays[i].addr == addr) {
			auto_hid hid_t set = hdf5_sink_object(s, addr);

			s->arrays[i].retie = true;
			return set < 0 ? -1 : unmark(set);
		}
	return 0;
}

/* use_nothing - make the scale a dataset without values. */
static int use_nothing(struct h5_sink *s, uint32_t dim, bool needed, struct err *e)
{
	struct hdf5_sink_dim *d = &s->dims[dim];
	uint64_t at = hdf5_sink_current_address(s, d->addr), old = d->addr;
	bool of_text = dim >= s->view.ds.n_dims;
	auto_hid hid_t set = at == HADDR_UNDEF ? -1 : hdf5_sink_object(s, at);
	int rc;

	if (set >= 0 && is_scale(set) && hdf5_sink_dim_only(set)) {
		d->addr = at;
		return hdf5_sink_scale_resize(s, dim, e);
	}
	if (set >= 0 && is_scale(set)) {
		bool other = false; /* a variable that is no longer its scale */

		for (uint32_t i = 0; i < s->view.ds.n_arrays; i++)
			other |= s->arrays[i].addr == at && s->arrays[i].retie;
		if (!other)
			return 0;
	}
	if (!needed && old == HADDR_UNDEF &&
	    (of_text || s->view.ds.dims[dim].phony || d->real != DS_NONE))
		return 0; /* no axis of an array with scales */
	rc = dims_displace_variable(s, dim, e);
	if (rc)
		return rc;
	if (d->id < 0 && old == HADDR_UNDEF)
		d->id = new_id(s);
	if (nc_h5_make_dim(&s->b, dim, d->id) < 0 || successor(s, old, s->b.scales[dim]) < 0 ||
	    (set >= 0 && demote_coordinate(s, at) < 0))
		return dims_fail(s, dim, e);
	d->addr = s->b.scales[dim];
	return 0;
}

/* plain - unmark arrays that were coordinate variables of dimensions that they no longer have. */
static int make_plain(struct h5_sink *s, struct err *e)
{
	for (uint32_t i = 0; i < s->view.ds.n_arrays; i++) {
		const struct ds_array *a = &s->view.ds.arrays[i];
		const struct hdf5_sink_array *x = &s->arrays[i];
		auto_hid hid_t set = -1;

		if (!x->retie || x->fresh || x->addr == HADDR_UNDEF ||
		    (a->rank > 0 && s->dims[a->dims[0]].addr == x->addr))
			continue;
		set = hdf5_sink_object(s, x->addr);
		if (set < 0 || (is_scale(set) &&
				(hdf5_sink_note_references(s, set) < 0 || unmark(set) < 0)))
			return hdf5_sink_fail(s, 0, i, e);
	}
	return 0;
}

/* find_unused - find dimensions that the dataset had, no longer has, and that have no other users:
 * they are removed with the lists. */
static int find_unused(struct h5_sink *s, struct err *e)
{
	const struct dataset *was = &s->was->ds, *real = &s->real->g.base.ds;
	auto_free uint32_t *of = alloc_array(was->n_dims, sizeof(*of));
	auto_free bool *kept = alloc_array(real->n_dims, sizeof(*kept));
	int rc = of && kept ? ds_match(was, real, NULL, NULL, of, e) : err_nomem(e);

	if (rc)
		return rc;
	for (uint32_t d = 0; d < s->m->n_dims; d++)
		if (s->dims[d].real != DS_NONE)
			kept[s->dims[d].real] = true;
	for (uint32_t d = 0; d < was->n_dims; d++) {
		const struct h5_node *x = of[d] == DS_NONE ? NULL : &s->real->dims[of[d]];

		if (x && !kept[of[d]] && x->file == 0 && x->addr != UINT64_MAX &&
		    hdf5_sink_list_add(&s->scales, x->addr) < 0)
			return err_nomem(e);
	}
	return 0;
}

int hdf5_sink_dims(struct h5_sink *s, struct err *e)
{
	auto_free bool *needed = find_needed(s);
	int rc = needed ? 0 : err_nomem(e);

	for (uint32_t d = 0; d < s->m->n_dims && !rc; d++)
		if (s->m->dims[d].scale != DS_NONE)
			rc = use_variable(s, d, e);
	for (uint32_t d = 0; d < s->m->n_dims && !rc; d++)
		if (s->m->dims[d].scale == DS_NONE)
			rc = use_nothing(s, d, needed[d], e);
	rc = rc ? rc : make_plain(s, e);
	return rc ? rc : find_unused(s, e);
}
