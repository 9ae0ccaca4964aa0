/* hdf5view.h - everything of the netCDF/HDF5 family that the program wires together. */
#ifndef HDF5VIEW_HDF5VIEW_H
#define HDF5VIEW_HDF5VIEW_H

#include "translate/chunkio.h"
#include "translate/view.h"

/* hdf5_source_ops - netCDF-4 and plain HDF5 files as a source. libhdf5 reads names, types,
 * attributes and filters once, then its file is closed so that its lock does not block writers;
 * chunk indexes are read by h5_raw.h on first use. */
extern const struct source_ops hdf5_source_ops;

/* cdf_source_ops - classic netCDF files (CDF-1, CDF-2, CDF-5) as a source. Own parser; chunks are
 * byte ranges of the file. docs/classic.md. */
extern const struct source_ops cdf_source_ops;

/* hdf4_source_ops - Scientific Data Sets of HDF4 files as a source, through libhdf4 in processes of
 * its own. Only where NCZARRFS_HDF4 is defined. docs/hdf4.md. */
extern const struct source_ops hdf4_source_ops;

struct nc_view_options {
	const char *name;         /* of the one file, "store.nc"; borrowed for the view's life */
	struct plan_policy policy;
	struct chunkio_options io;
	uint64_t max_image_bytes; /* most memory for structure and texts of the file */
	uint64_t max_index_bytes; /* most memory for the sizes of its chunks */
	bool keep_going;          /* arrays that cannot be shown are left out, with a note */
};

/* nc_view_open - present a source as one virtual netCDF-4 file in the root directory. The source
 * is borrowed and outlives the view. Nothing is read: the file is laid out at the first look at
 * it (its size says where everything is), and again never. Ids: VIEW_ROOT and 2.
 * Returns 0 with *ret new (view->ops->close). docs/virtual-file.md. */
int nc_view_open(struct source *s, const struct nc_view_options *opts, struct view **ret,
		 struct err *e) NZ_MUST_USE;

/* hdf5_prepare - start the process that later processes for libhdf5 are forked from, while this
 * one has a single thread and holds no lock. Without it they are forked from the caller, which
 * is right for programs with one thread only. Call it at most once. Returns 0 or -errno. */
int hdf5_prepare(struct err *e) NZ_MUST_USE;

/* hdf5_version - version of the HDF5 library in use, into text. */
void hdf5_version(char *text, size_t cap);

/* hdf4_version - the same of libhdf4; "" where it was built without. */
void hdf4_version(char *text, size_t cap);

#endif
