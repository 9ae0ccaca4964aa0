/* SPDX-License-Identifier: BSD-3-Clause */
/* endings.c - the table of file name extensions. */
#include "base/core/endings.h"

#include <string.h>
#include <strings.h>

const struct ending_row ending_rows[ENDING_ROWS] = {
	{".nc", ENDING_NETCDF},    {".nc4", ENDING_NETCDF4},  {".h5", ENDING_HDF5},
	{".hdf5", ENDING_HDF5},    {".he5", ENDING_HDF5},     {".nc3", ENDING_CLASSIC},
	{".cdf", ENDING_NETCDF},   {".hdf", ENDING_HDF4},     {".hdf4", ENDING_HDF4},
	{".h4", ENDING_HDF4},      {".zarr", ENDING_TREE},    {".zr3", ENDING_TREE},
	{".zr2", ENDING_TREE},     {".zarr.zip", ENDING_ZIP}, {".zip", ENDING_ZIP},
	{".json", ENDING_JSON},    {".parq", ENDING_PARQUET}, {".parquet", ENDING_PARQUET},
};

const struct ending_row *ending_find(const char *name, size_t len, size_t *ret_stem)
{
	for (size_t i = 0; i < ENDING_ROWS; i++) {
		const size_t n = strlen(ending_rows[i].text);

		if (len > n && strncasecmp(name + len - n, ending_rows[i].text, n) == 0 &&
		    name[len - n - 1] != '/') {
			*ret_stem = len - n;
			return &ending_rows[i];
		}
	}
	return NULL;
}

enum ending ending_of(const char *path)
{
	size_t n = strlen(path), stem;
	const struct ending_row *row;

	while (n && path[n - 1] == '/')
		n--;
	row = ending_find(path, n, &stem);
	return row ? row->means : ENDING_NONE;
}

bool ending_is_netcdf4(enum ending ending)
{
	return ending == ENDING_NETCDF || ending == ENDING_NETCDF4 || ending == ENDING_HDF5;
}
