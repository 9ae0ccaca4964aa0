/* SPDX-License-Identifier: BSD-3-Clause */
/* endings.h - what the ending of a name says of a file or directory: the one table of endings.
 *
 * Letters count in either case. The ending alone is no name: ".nc" has none. */
#ifndef BASE_CORE_ENDINGS_H
#define BASE_CORE_ENDINGS_H

#include "base/core/util.h"

enum ending {
	ENDING_NONE,
	ENDING_NETCDF,  /* of any netCDF file: ".nc", ".cdf" */
	ENDING_NETCDF4, /* ".nc4" */
	ENDING_CLASSIC, /* ".nc3" */
	ENDING_HDF5,    /* ".h5", ".hdf5", ".he5" */
	ENDING_HDF4,    /* ".hdf", ".hdf4", ".h4" */
	ENDING_TREE,    /* of a Zarr tree: ".zarr", ".zr3", ".zr2" */
	ENDING_ZIP,     /* ".zarr.zip", ".zip" */
	ENDING_JSON,    /* of references: ".json" */
	ENDING_PARQUET, /* of references: ".parq", ".parquet" */
};

struct ending_row {
	const char *text;
	enum ending means;
};

/* ending_rows - of endings that end alike the longer comes first. In a mirrored directory the
 * first of those that mean files, and of those that mean Zarr trees, wins a counterpart's name. */
enum { ENDING_ROWS = 18 };
extern const struct ending_row ending_rows[ENDING_ROWS];

/* ending_find - the row of the ending that a name of len bytes has, and how much stands before it,
 * at least one byte; NULL: it has none. */
const struct ending_row *ending_find(const char *name, size_t len, size_t *ret_stem);

/* ending_of - the same of the last component of a path, which may have '/' behind it. */
enum ending ending_of(const char *path);

/* ending_is_netcdf4 - whether a file of this ending is made as netCDF-4 and read as such:
 * ENDING_NETCDF, NETCDF4, HDF5. */
bool ending_is_netcdf4(enum ending ending);

#endif
