/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_classic.h - a dataset as one classic netCDF file: CDF-1, CDF-2 or CDF-5.
 *
 * The header is made of the model when the view is opened, and the offset of every value follows
 * by arithmetic, so that the size of the file is known at once. Values are read from decoded chunks
 * as programs request them. docs/dev/reading/virtual-classic.md. */
#ifndef HDF5VIEW_VIRTUAL_CLASSIC_VIRTUAL_CLASSIC_H
#define HDF5VIEW_VIRTUAL_CLASSIC_VIRTUAL_CLASSIC_H

#include "translate/chunkio/chunkio.h"
#include "translate/contract/view.h"

/* cdf_format - the version of the format. */
enum cdf_format {
	CDF_FORMAT_AUTO = 0, /* the first of them that can hold the data */
	CDF_FORMAT_1 = 1,
	CDF_FORMAT_2 = 2,
	CDF_FORMAT_5 = 5,
};

struct cdf_view_options {
	const char *name; /* name of the file, "store.nc"; borrowed for the view's life */
	enum cdf_format format;
	struct plan_policy policy; /* only its quantisation applies: the file has no filters */
	struct chunkio_options io;
	uint64_t max_meta_bytes; /* memory limit of the decisions, and of the header */
	bool keep_going;         /* leave out arrays that cannot be read, with a note */
};

/* cdf_view_open - present the root group of a source as one classic netCDF file in the root
 * directory. The source is borrowed and outlives the view. No data are read. Objects that the
 * format cannot express are left out, with a note for each. Ids: VIEW_ROOT for the directory, 2
 * for the file. The view is read-only; all its functions may be called from any thread.
 * Returns 0 with *ret new (view->ops->close); -EOPNOTSUPP an array cannot be read, and keep_going
 * is false; -ERANGE the data do not fit the requested version, or the metadata exceeds its limit;
 * -ENOMEM. */
int cdf_view_open(struct source *s, const struct cdf_view_options *opts, struct view **ret,
		  struct err *e) NZ_MUST_USE;

#endif
