/* SPDX-License-Identifier: BSD-3-Clause */
/* netcdf4.h - a dataset as netCDF-4: the names and types of its groups, dimensions, variables and
 * attributes in the file (schema*.c), and the structure of such a file, made by libhdf5
 * (writer*.c). */
#ifndef HDF5VIEW_NETCDF4_NETCDF4_H
#define HDF5VIEW_NETCDF4_NETCDF4_H

#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

/* nc_data - where a variable's bytes are stored. */
enum nc_data {
	NC_NO_DATA,     /* no elements, or no stored chunk: no address */
	NC_CHUNKED,     /* chunks indexed by a B-tree v1 */
	NC_CONTIGUOUS,  /* one piece: chunk 0, decoded */
	NC_VLEN_INLINE, /* written while the structure was built */
	NC_BROKEN, /* unreadable strings: every read at its address fails */
};

/* nc_var - the file's dataset of an array. */
struct nc_var {
	uint32_t array;         /* ordinal in the model */
	enum nc_data data;      /* as built; NC_CHUNKED and NC_CONTIGUOUS have no address yet */
	uint64_t header;        /* address of its object header in the image */
	uint32_t rank;          /* of the HDF5 dataspace: the array's, plus one for strings of a
				 * fixed size > 1, whose last axis has one chunk */
	uint64_t chunk[DS_RANK_MAX]; /* NC_CHUNKED: rank entries, elements; grid as the array's */
	uint32_t elem;          /* bytes of an HDF5 element */
	char *why;              /* NC_BROKEN: the error, owned; else NULL */
};

/* nc_image - the structure of a virtual file. */
struct nc_image {
	uint8_t *bytes;         /* owned; a whole HDF5 file without chunks */
	size_t len;
	struct nc_var *vars;    /* owned; in the order of the model's arrays, shown ones only */
	uint32_t n_vars;
};

/* ---- netcdf4/schema.c: decides the contents of the file ---- */

struct nc_model; /* netcdf4/schema.h */

/* nc_model_new - make all decisions that need no data. plans: n_arrays entries, filled here:
 * PLAN_HDF5 plans, or PLAN_HIDE with the reason, which is added as a note as well. Arrays of
 * variable-length strings or lists get PLAN_VLEN. Without opts->keep_going, an array that cannot
 * be shown is an error that names it: -EOPNOTSUPP.
 * Returns 0 with *ret new. */
int nc_model_new(struct source *s, const struct nc_view_options *opts, struct plan *plans,
		 struct nc_model **ret, struct err *e) NZ_MUST_USE;
void nc_model_free(struct nc_model *m);
/* nc_model_notes - the notes, one line each; borrowed from the model. */
const char *const *nc_model_notes(const struct nc_model *m, uint32_t *ret_n);

/* nc_build - make the structure in memory, by libhdf5 in a process of its own
 * (structure_process.c). Variable-length elements are read and written into it, at most max_bytes
 * in all. The same dataset gives the same bytes: there are no times, and no order of hash tables.
 * Returns 0 with *ret filled (nc_image_release); -ERANGE beyond max_bytes; the error of reading;
 * -EIO the library crashed; -EAGAIN the process was killed, by a user or for a shortage. */
int nc_build(const struct nc_model *m, struct source *s, uint64_t max_bytes,
	     struct nc_image *ret, struct err *e) NZ_MUST_USE;
void nc_image_release(struct nc_image *i);

/* nc_err_path - prefix the message in e with the path of an object (array: DS_NONE for a group),
 * unless a function further down did so already. Returns rc. */
int nc_err_path(const struct dataset *ds, uint32_t group, uint32_t array, int rc,
		struct err *e);

#endif
