/* SPDX-License-Identifier: BSD-3-Clause */
/* writer_dims.c - writes dimensions as HDF5's dimension scales, with netCDF-C's additions.
 *
 * The library's H5DSattach_scale rewrites a scale's list for each attached variable, which is
 * quadratic. Here every object gets its lists at once, from the addresses of the others, in the
 * types of H5DS. Spec: HDF5 Dimension Scale Specification 1.0. */
#include "hdf5view/netcdf4/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONTIGUOUS_MAX ((uint64_t)1 << 59) /* elements of a dataset in one piece */

int nc_h5_mark(hid_t set, const char *name, int32_t dimid)
{
	if (nc_h5_attr_text(set, "CLASS", "DIMENSION_SCALE", sizeof("DIMENSION_SCALE"), false) <
		    0 ||
	    nc_h5_attr_text(set, "NAME", name, strlen(name) + 1, false) < 0)
		return -1;
	return dimid < 0 ? 0
			 : nc_h5_attr_raw(set, "_Netcdf4Dimid", H5T_NATIVE_INT32, 0, &dimid);
}

static hid_t dim_create(struct nc_builder *b, const struct nc_dim *d)
{
	hsize_t len = d->len, max = d->unlimited ? H5S_UNLIMITED : len;
	hsize_t chunk = u64_max(1, u64_min(len, 1024));
	auto_hid hid_t space = H5Screate_simple(1, &len, &max);
	auto_hid hid_t dcpl = nc_h5_dcpl();
	hid_t group = nc_h5_group(b, d->group);

	if (space < 0 || dcpl < 0 || group < 0)
		return -1;
	if ((d->unlimited || d->len > CONTIGUOUS_MAX) && H5Pset_chunk(dcpl, 1, &chunk) < 0)
		return -1;
	return H5Dcreate2(group, d->name, H5T_IEEE_F32BE, space, H5P_DEFAULT, dcpl,
			  H5P_DEFAULT);
}

int nc_h5_make_dim(struct nc_builder *b, uint32_t dim, int32_t dimid)
{
	const struct nc_dim *d = &b->m->dims[dim];
	auto_hid hid_t set = dim_create(b, d);
	char name[100];

	(void)snprintf(name, sizeof(name), NETCDF_DIM_ONLY ".%10" PRIu64, d->len);
	if (set < 0 || nc_h5_mark(set, name, dimid) < 0)
		return -1;
	b->scales[dim] = nc_h5_address(set);
	return 0;
}

int nc_h5_dims(struct nc_builder *b, struct err *e)
{
	for (uint32_t i = 0; i < b->m->n_dims; i++) {
		const struct nc_dim *d = &b->m->dims[i];

		if (d->scale == DS_NONE && nc_h5_make_dim(b, i, (int32_t)d->id) < 0) {
			(void)nc_h5_fail(b, d->group, DS_NONE, e);
			return err_wrap(e, -EIO, "dimension '%s'", d->name);
		}
	}
	return 0;
}

/* ---- uses of dimensions by variables ---- */

struct uses {
	uint64_t *first; /* by dimension; one more at the end */
	struct nc_use *list;
};

/* attached - the number of axes of an array that refer to scales; a scale itself refers to
 * none. */
static uint32_t attached(const struct nc_builder *b, uint32_t array)
{
	const struct nc_array *x = &b->m->arrays[array];

	return x->name && x->scale_of == DS_NONE ? nc_rank(&b->ds->arrays[array]) : 0;
}

/* dims_gather - gather all uses by dimension, in the order of arrays. Returns 0 or -1. */
static int dims_gather(const struct nc_builder *b, struct uses *u)
{
	auto_free uint64_t *at = NULL;

	u->first = alloc_array((size_t)b->m->n_dims + 1, sizeof(*u->first));
	if (!u->first)
		return -1;
	for (uint32_t i = 0; i < b->ds->n_arrays; i++)
		for (uint32_t k = 0; k < attached(b, i); k++)
			u->first[nc_axis_dim(b->m, i, k) + 1]++;
	for (uint32_t d = 0; d < b->m->n_dims; d++)
		u->first[d + 1] += u->first[d];
	u->list = alloc_array(u->first[b->m->n_dims], sizeof(*u->list));
	at = alloc_array(b->m->n_dims, sizeof(*at));
	if (!u->list || !at)
		return -1;
	for (uint32_t d = 0; d < b->m->n_dims; d++)
		at[d] = u->first[d];
	for (uint32_t i = 0; i < b->ds->n_arrays; i++)
		for (uint32_t k = 0; k < attached(b, i); k++)
			u->list[at[nc_axis_dim(b->m, i, k)]++] =
				(struct nc_use){.set = b->arrays[i], .axis = (int32_t)k};
	return 0;
}

/* ---- writing them ---- */

hid_t nc_h5_use_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct nc_use));

	return h5_id_unless(type < 0 ||
				    H5Tinsert(type, "dataset", offsetof(struct nc_use, set),
					      H5T_STD_REF_OBJ) < 0 ||
				    H5Tinsert(type, "dimension", offsetof(struct nc_use, axis),
					      H5T_NATIVE_INT32) < 0,
			    type);
}

static int put_references(hid_t set, const struct uses *u, uint32_t dim)
{
	uint64_t n = u->first[dim + 1] - u->first[dim];
	auto_hid hid_t type = nc_h5_use_type();

	if (n == 0)
		return 0;
	return type < 0 ? -1
			: nc_h5_attr_raw(set, "REFERENCE_LIST", type, n,
					 u->list + u->first[dim]);
}

static int dims_put_list(const struct nc_builder *b, hid_t set, uint32_t array, uint32_t rank)
{
	auto_hid hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
	hobj_ref_t refs[NC_RANK_LIMIT];
	hvl_t list[NC_RANK_LIMIT];

	for (uint32_t k = 0; k < rank; k++) {
		uint32_t d = nc_axis_dim(b->m, array, k);
		uint32_t scale = b->m->dims[d].scale;

		refs[k] = scale == DS_NONE ? b->scales[d] : b->arrays[scale];
		list[k] = (hvl_t){.len = 1, .p = &refs[k]};
	}
	return type < 0 ? -1 : nc_h5_attr_raw(set, "DIMENSION_LIST", type, rank, list);
}

/* dims_tie - write all attributes of one variable's dimensions. */
static int dims_tie(struct nc_builder *b, uint32_t array, const struct uses *u)
{
	const struct nc_array *x = &b->m->arrays[array];
	uint32_t rank = nc_rank(&b->ds->arrays[array]);
	auto_hid hid_t set = H5Oopen_by_addr(b->file, b->arrays[array]);
	int32_t ids[NC_RANK_LIMIT];

	if (set < 0)
		return -1;
	if (x->scale_of != DS_NONE &&
	    (nc_h5_mark(set, x->name, (int32_t)b->m->dims[x->scale_of].id) < 0 ||
	     put_references(set, u, x->scale_of) < 0))
		return -1;
	if (x->scale_of == DS_NONE && rank > 0 && dims_put_list(b, set, array, rank) < 0)
		return -1;
	for (uint32_t k = 0; k < rank; k++) /* which netCDF-C reads first */
		ids[k] = (int32_t)b->m->dims[nc_axis_dim(b->m, array, k)].id;
	if (rank > 0 &&
	    nc_h5_attr_raw(set, "_Netcdf4Coordinates", H5T_NATIVE_INT32, rank, ids) < 0)
		return -1;
	return nc_h5_attrs(b, set, &x->attrs);
}

/* tie_dim - write the list of variables of a dimension without a variable of its own. */
static int tie_dim(struct nc_builder *b, uint32_t dim, const struct uses *u)
{
	auto_hid hid_t set = -1;

	if (u->first[dim + 1] == u->first[dim])
		return 0;
	set = H5Oopen_by_addr(b->file, b->scales[dim]);
	return set < 0 ? -1 : put_references(set, u, dim);
}

int nc_h5_scales(struct nc_builder *b, struct err *e)
{
	struct uses u = {0};
	int rc = dims_gather(b, &u) < 0 ? err_nomem(e) : 0;

	for (uint32_t d = 0; d < b->m->n_dims && !rc; d++)
		if (b->m->dims[d].scale == DS_NONE && tie_dim(b, d, &u) < 0)
			rc = nc_h5_fail(b, b->m->dims[d].group, DS_NONE, e);
	for (uint32_t i = 0; i < b->ds->n_arrays && !rc; i++)
		if (b->m->arrays[i].name && dims_tie(b, i, &u) < 0)
			rc = nc_h5_fail(b, 0, i, e);
	free(u.first);
	free(u.list);
	return rc;
}
