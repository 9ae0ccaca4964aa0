/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.c - makes the structure of the file with libhdf5, in memory, in a process of its own
 * (virtual/structure_child.c).
 *
 * Nothing is decided here. The order is: groups, named types, dimensions without a variable,
 * variables; then, when everything has an address, the connections of variables and dimensions,
 * attributes, variable-length elements. netCDF-C lists objects in the order of their creation:
 * variables come in the model's order; dimensions carry their number.
 *
 * The same dataset gives the same bytes: objects carry no times, and nothing depends on addresses
 * in memory or on other users of the library. */
#include "hdf5view/netcdf4/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GROWTH ((size_t)1 << 20) /* of the file in memory, at a time */
#define IN_ORDER (H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED)

/* ---- shared with other files ---- */

uint64_t nc_h5_address(hid_t id)
{
	H5O_info_t info;

	return H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0 ? HADDR_UNDEF : info.addr;
}

int nc_h5_fail(const struct nc_builder *b, uint32_t group, uint32_t array, struct err *e)
{
	int rc = h5_error(e, -EIO, "the HDF5 library cannot create the netCDF file");

	return nc_err_path(b->ds, group, array, rc, e);
}

hid_t nc_h5_dcpl(void)
{
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

	return h5_id_unless(dcpl < 0 || H5Pset_obj_track_times(dcpl, 0) < 0 ||
				    H5Pset_attr_creation_order(dcpl, IN_ORDER) < 0 ||
				    H5Pset_fill_time(dcpl, H5D_FILL_TIME_IFSET) < 0 ||
				    H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_LATE) < 0,
			    dcpl);
}

hid_t nc_h5_group(struct nc_builder *b, uint32_t group)
{
	if (b->group > 0 && b->at == group)
		return b->group;
	h5_id_close(&b->group);
	b->group = H5Oopen_by_addr(b->file, b->groups[group]);
	b->at = group;
	return b->group;
}

/* ---- file and groups ---- */

/* set_gcpl - set the properties shared by all groups, and by a file for its root. 0 or -1. */
static int set_gcpl(hid_t gcpl)
{
	return gcpl < 0 || H5Pset_obj_track_times(gcpl, 0) < 0 ||
			       H5Pset_link_creation_order(gcpl, IN_ORDER) < 0 ||
			       H5Pset_attr_creation_order(gcpl, IN_ORDER) < 0
		       ? -1
		       : 0;
}

/* writer_create - create the file. Its name only distinguishes files in memory. */
static int writer_create(struct nc_builder *b)
{
	static uint64_t serial; /* h5_lock */
	char name[40];
	auto_hid hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
	auto_hid hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	auto_hid hid_t root = -1;

	if (fapl < 0 || set_gcpl(fcpl) < 0 || H5Pset_fapl_core(fapl, GROWTH, 0) < 0 ||
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0 ||
	    H5Pset_libver_bounds(fapl, b->m->v18 ? H5F_LIBVER_V18 : H5F_LIBVER_EARLIEST,
				 H5F_LIBVER_V18) < 0)
		return -1;
	/* An absolute name: for a relative one HDF5 2.2 needs the working directory, which a
	 * process in the sandbox may not query, and fails an assertion without it. */
	(void)snprintf(name, sizeof(name), "/netcdf %" PRIu64, serial++);
	b->file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, fapl);
	root = b->file < 0 ? -1 : H5Gopen2(b->file, "/", H5P_DEFAULT);
	if (root < 0)
		return -1;
	b->groups[0] = nc_h5_address(root);
	return 0;
}

int nc_h5_make_group(struct nc_builder *b, uint32_t g)
{
	auto_hid hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE);
	hid_t parent = nc_h5_group(b, b->ds->groups[g].parent);
	auto_hid hid_t id = -1;

	if (parent < 0 || set_gcpl(gcpl) < 0)
		return -1;
	id = H5Gcreate2(parent, b->m->groups[g].name, H5P_DEFAULT, gcpl, H5P_DEFAULT);
	if (id < 0)
		return -1;
	b->groups[g] = nc_h5_address(id);
	return 0;
}

/* ---- variables ---- */

/* space_of - the dataspace of a dataset. HDF5 rejects a chunk longer than its axis can become. */
static hid_t space_of(const struct nc_builder *b, uint32_t array, const struct nc_storage *how)
{
	const struct ds_array *a = &b->ds->arrays[array];
	hsize_t len[NC_RANK_LIMIT], max[NC_RANK_LIMIT];
	uint32_t rank = nc_rank(a);

	for (uint32_t d = 0; d < a->rank; d++) {
		len[d] = a->shape[d];
		max[d] = len[d];
		if (how->chunked)
			max[d] = b->ds->dims[a->dims[d]].unlimited
					 ? H5S_UNLIMITED
					 : u64_max(len[d], how->chunk[d]);
	}
	if (rank > a->rank)
		len[rank - 1] = max[rank - 1] = a->type.size;
	return rank ? H5Screate_simple((int)rank, len, max) : H5Screate(H5S_SCALAR);
}

void nc_h5_chunk(const struct ds_array *a, hsize_t *ret)
{
	for (uint32_t d = 0; d < a->rank; d++)
		ret[d] = a->chunk[d];
	if (dt_is_vlen(&a->type))
		nc_strings_chunk(a, ret);
	if (nc_rank(a) > a->rank)
		ret[a->rank] = a->type.size;
}

/* text_fill - set the fill value that netCDF-C gives every variable. Returns 0 or -1. */
static int text_fill(hid_t dcpl, hid_t type, const struct ds_array *a)
{
	char *text;
	int rc;

	if (a->type.kind != DT_VSTRING)
		return 0;
	text = strndup(a->fill_text.s ? a->fill_text.s : "", a->fill_text.len);
	rc = !text || H5Pset_fill_value(dcpl, type, &text) < 0 ? -1 : 0;
	free(text);
	return rc;
}

/* storage_of - make the creation properties. Returns a new id. */
static hid_t storage_of(const struct nc_builder *b, uint32_t array, hid_t type,
			const struct nc_storage *how)
{
	const struct ds_array *a = &b->ds->arrays[array];
	const struct nc_array *x = &b->m->arrays[array];
	hid_t dcpl = nc_h5_dcpl();

	/* as in netCDF-C: a program that writes to a copy of the file allocates space for its
	 * data */
	return h5_id_unless(
		dcpl < 0 ||
			(how->chunked && (H5Pset_chunk(dcpl, (int)nc_rank(a), how->chunk) < 0 ||
					  H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_INCR) < 0)) ||
			(x->fill && H5Pset_fill_value(dcpl, type, a->fill) < 0) ||
			(how->text_fill && text_fill(dcpl, type, a) < 0) ||
			(how->chain &&
			 nc_filters_set(dcpl, how->chunk_bytes, how->chain) < 0) ||
			(how->chain && a->checksum && H5Pset_fletcher32(dcpl) < 0),
		dcpl);
}

int nc_h5_make_array(struct nc_builder *b, uint32_t array, const struct nc_storage *how)
{
	const struct ds_array *a = &b->ds->arrays[array];
	const struct nc_array *x = &b->m->arrays[array];
	auto_hid hid_t type = -1, space = -1, dcpl = -1, set = -1;
	hid_t group = nc_h5_group(b, a->group);

	type = nc_h5_type(b, &a->type, x->type);
	space = space_of(b, array, how);
	dcpl = type < 0 ? -1 : storage_of(b, array, type, how);
	if (group < 0 || space < 0 || dcpl < 0)
		return -1;
	set = H5Dcreate2(group, x->link, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	if (set < 0)
		return -1;
	b->arrays[array] = nc_h5_address(set);
	return 0;
}

/* make_array - make an array with the model's storage. */
static int make_array(struct nc_builder *b, uint32_t array)
{
	const struct ds_array *a = &b->ds->arrays[array];
	const struct nc_array *x = &b->m->arrays[array];
	hsize_t chunk[NC_RANK_LIMIT] = {0};
	const struct nc_storage how = {
		.chunked = x->chunked,
		.chunk = chunk,
		.chunk_bytes = a->chunk_bytes,
		.chain = x->data == NC_CHUNKED ? &b->m->plans[array].chain : NULL};

	nc_h5_chunk(a, chunk);
	return nc_h5_make_array(b, array, &how);
}

/* ---- attributes of groups ---- */

/* properties - write _NCProperties, netCDF-C's record of the file's creator. Returns 0 or -1. */
static int properties(hid_t root)
{
	char text[100];
	unsigned major = 0, minor = 0, release = 0;

	(void)H5get_libversion(&major, &minor, &release);
	(void)snprintf(text, sizeof(text), "version=2,nczarrfs=%s,hdf5=%u.%u.%u",
		       NCZARRFS_VERSION, major, minor, release);
	return nc_h5_attr_text(root, "_NCProperties", text, strlen(text), false);
}

static int group_attrs(struct nc_builder *b, struct err *e)
{
	for (uint32_t g = 0; g < b->ds->n_groups; g++) {
		hid_t id = nc_h5_group(b, g);

		if (id < 0 || (g == 0 && properties(id) < 0) ||
		    nc_h5_attrs(b, id, &b->m->groups[g].attrs) < 0)
			return nc_h5_fail(b, g, DS_NONE, e);
	}
	return 0;
}

/* ---- all of it ---- */

int nc_h5_structure(struct nc_builder *b, struct err *e)
{
	struct nc_filters filters;
	int rc = nc_filters_begin(b->m, &filters) < 0 || writer_create(b) < 0
			 ? nc_h5_fail(b, 0, DS_NONE, e)
			 : 0;

	for (uint32_t k = 1; k < b->ds->n_groups && !rc; k++)
		if (nc_h5_make_group(b, b->m->order[k]) < 0)
			rc = nc_h5_fail(b, b->m->order[k], DS_NONE, e);
	rc = rc ? rc : nc_h5_types(b, e);
	rc = rc ? rc : nc_h5_dims(b, e);
	for (uint32_t i = 0; i < b->ds->n_arrays && !rc; i++)
		if (b->m->arrays[i].name && make_array(b, i) < 0)
			rc = nc_h5_fail(b, 0, i, e);
	rc = rc ? rc : nc_h5_scales(b, e);
	rc = rc ? rc : group_attrs(b, e);
	h5_id_close(&b->group);
	b->group = -1;
	if (!rc && H5Fflush(b->file, H5F_SCOPE_GLOBAL) < 0)
		rc = nc_h5_fail(b, 0, DS_NONE, e);
	nc_filters_end(&filters);
	return rc;
}

int nc_builder_init(struct nc_builder *b, const struct nc_model *m, uint64_t max_bytes,
		    struct err *e)
{
	*b = (struct nc_builder){.m = m, .ds = m->ds, .max_bytes = max_bytes};
	b->groups = alloc_array(m->ds->n_groups, sizeof(*b->groups));
	b->arrays = alloc_array(m->ds->n_arrays, sizeof(*b->arrays));
	b->scales = alloc_array(m->n_dims, sizeof(*b->scales));
	b->types = alloc_array(m->n_types, sizeof(*b->types));
	return b->groups && b->arrays && b->scales && b->types ? 0 : err_nomem(e);
}
