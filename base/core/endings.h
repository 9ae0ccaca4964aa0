/* SPDX-License-Identifier: BSD-3-Clause */
/* endings.h - the table of file name extensions: the type of a file or directory by its name.
 *
 * Case is ignored. A name that is only an extension, such as ".nc", does not have it. */
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
	ENDING_TREE,    /* of a Zarr hierarchy: ".zarr", ".zr3", ".zr2" */
	ENDING_ZIP,     /* ".zarr.zip", ".zip" */
	ENDING_JSON,    /* of references: ".json" */
	ENDING_PARQUET, /* of references: ".parq", ".parquet" */
};

struct ending_row {
	const char *text;
	enum ending means;
};

/* ending_rows - if one extension ends with another, the longer one comes first. If the converted
 * views of several files, or of several Zarr hierarchies, in a mirrored directory would have the
 * same name, the source whose extension comes first in the table gets it. */
enum { ENDING_ROWS = 18 };
extern const struct ending_row ending_rows[ENDING_ROWS];

/* ending_find - the row of the extension of a name of len bytes, with the number of bytes before
 * it, at least 1, in *ret_stem; NULL when the name has none. */
const struct ending_row *ending_find(const char *name, size_t len, size_t *ret_stem);

/* ending_of - the same for the last component of a path, which may end with '/'. */
enum ending ending_of(const char *path);

/* ending_is_netcdf4 - whether a file with this extension is created and read as netCDF-4:
 * ENDING_NETCDF, NETCDF4, HDF5. */
bool ending_is_netcdf4(enum ending ending);

#endif
