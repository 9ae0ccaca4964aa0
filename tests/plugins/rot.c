/* SPDX-License-Identifier: BSD-3-Clause */
/* rot.c - filter 40002 and its codec in one library, which needs to be initialised. Works in place.
 * The library brings a netCDF of its own, as far as one needs it to ask for a variable: what was
 * defined comes back as parameters. */
#include "tests/plugins/common.h"

#include <stdio.h>

#define ID 40002

EXPORT int nc_create(const char *path, int mode, int *ret);
EXPORT int nc_def_dim(int ncid, const char *name, size_t len, int *ret);
EXPORT int nc_def_var(int ncid, const char *name, int type, int rank, const int *dims,
		      int *ret);
EXPORT int nc_def_var_chunking(int ncid, int var, int storage, const size_t *lens);
EXPORT int nc_def_var_endian(int ncid, int var, int endian);
EXPORT int nc_abort(int ncid);

static int started;
static unsigned seen_type, seen_rank, seen_first;

static void initialize(void)
{
	started++;
}

static size_t filter(unsigned flags, size_t n_params, const unsigned *params, size_t n,
		     size_t *room, void **data)
{
	unsigned char *p = *data;
	unsigned by = n_params > 0 ? params[0] : 0;

	(void)room;
	if (flags & H5Z_FLAG_REVERSE)
		by = 256 - by % 256;
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(p[i] + by);
	return n;
}

static const H5Z_class2_t class = {H5Z_CLASS_T_VERS,     ID,   1,    1,
				   "rotate by a number", NULL, NULL, filter};

H5PL_type_t H5PLget_plugin_type(void)
{
	return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
	return &class;
}

static int to_hdf5(const char *json, size_t *nparams, unsigned **params)
{
	return started == 1 ? one_param(number_in(json, "by"), nparams, params) : -1;
}

static int to_codec(size_t nparams, const unsigned *params, char **json)
{
	*json = malloc(80);
	if (!*json || nparams < 1)
		return -137;
	(void)snprintf(*json, 80, "{\"id\": \"rot\", \"by\": \"%u\"}", params[0]);
	return 0;
}

static int modify(int ncid, int varid, size_t *vn, unsigned **v, size_t *wn, unsigned **w)
{
	if (*vn < 1)
		return -137;
	*w = malloc(6 * sizeof(**w));
	if (!*w)
		return -61;
	(*w)[0] = (*v)[0];
	(*w)[1] = (unsigned)ncid;
	(*w)[2] = (unsigned)varid;
	(*w)[3] = seen_type;
	(*w)[4] = seen_rank;
	(*w)[5] = seen_first;
	*wn = 6;
	free(*v); /* a codec may replace the visible ones */
	*v = NULL;
	*vn = 0;
	return 0;
}

static const codec_t codec = {1, 1, "rot", ID, initialize, NULL, to_hdf5, to_codec, modify};

const void *NCZ_get_codec_info(void)
{
	return &codec;
}

int nc_create(const char *path, int mode, int *ret)
{
	(void)path;
	*ret = 21;
	seen_type = seen_rank = seen_first = 0;
	return mode == 0x1008 ? 0 : -36;
}

int nc_def_dim(int ncid, const char *name, size_t len, int *ret)
{
	(void)name;
	(void)len;
	*ret = 0;
	return ncid == 21 ? 0 : -33;
}

int nc_def_var(int ncid, const char *name, int type, int rank, const int *dims, int *ret)
{
	(void)ncid;
	(void)name;
	(void)dims;
	*ret = 3;
	seen_type = (unsigned)type;
	seen_rank = (unsigned)rank;
	return 0;
}

int nc_def_var_chunking(int ncid, int var, int storage, const size_t *lens)
{
	(void)ncid;
	(void)var;
	seen_first = (unsigned)lens[0];
	return storage == 0 ? 0 : -36;
}

int nc_def_var_endian(int ncid, int var, int endian)
{
	seen_type |= (unsigned)endian << 8;
	return ncid == 21 && var == 3 ? 0 : -36;
}

int nc_abort(int ncid)
{
	(void)ncid;
	return 0;
}
