/* SPDX-License-Identifier: BSD-3-Clause */
/* ncz.c - one of our codecs as netCDF-C's NCZarr uses it: conversion between the JSON of a Zarr
 * array and the parameters of the HDF5 filter in the same library; compiled once for each.
 *
 * PLUGIN_OPS is the codec. NetCDF-C calls the parameters of JSON and nc_def_var_filter "visible",
 * those of the filter "working". The latter depend on the variable, which is queried from the
 * libnetcdf that called; if that cannot be found, the visible ones are used.
 *
 * Spec: struct NCZ_codec_t, version 1, of netcdf_filter_build.h, and
 * https://docs.unidata.ucar.edu/netcdf-c/current/filters.html (NCZarr codecs), 4.9.2 to 4.10.1. */
#include "codecs/core/codec_impl.h"
#include "codecs/export/conf_json.h"
#include "codecs/export/plugins/caller_int.h"

#include <errno.h>
#include <string.h>

#define VERSION 1
#define SORT_HDF5 1

/* From netcdf.h. */
enum { NC_NOERR = 0, NC_EINVAL = -36, NC_ENOMEM = -61, NC_EFILTER = -132 };
enum {
	NC_BYTE = 1,
	NC_SHORT = 3,
	NC_INT,
	NC_FLOAT,
	NC_DOUBLE,
	NC_UBYTE,
	NC_USHORT,
	NC_UINT,
	NC_INT64,
	NC_UINT64
};
enum { NC_CHUNKED = 0, NC_ENDIAN_BIG = 2 };
#define RANK_MAX 1024 /* NC_MAX_VAR_DIMS */

struct ncz_codec {
	int version;
	int sort;
	const char *codec_id;
	unsigned int hdf5_id;
	void (*initialize)(void);
	void (*finalize)(void);
	int (*codec_to_hdf5)(const char *codec, size_t *n, unsigned **params);
	int (*hdf5_to_codec)(size_t n, const unsigned *params, char **codec);
	int (*modify_parameters)(int ncid, int varid, size_t *visible_n, unsigned **visible,
				 size_t *working_n, unsigned **working);
};

__attribute__((visibility("default"))) const void *NCZ_get_codec_info(void);

static const struct codec_ops *const ops = &PLUGIN_OPS;

static int nc_error(int rc)
{
	return rc == 0 ? NC_NOERR : rc == -ENOMEM ? NC_ENOMEM : NC_EFILTER;
}

/* ncz_give - replace *ret by a copy of the parameters that the caller frees. */
static int ncz_give(const uint32_t *params, size_t n, size_t *ret_n, unsigned **ret)
{
	unsigned *copy = n > 0 ? alloc_array(n, sizeof(*copy)) : NULL;

	if (n > 0 && !copy)
		return NC_ENOMEM;
	for (size_t i = 0; i < n; i++)
		copy[i] = params[i];
	free(*ret);
	*ret = copy;
	*ret_n = n;
	return NC_NOERR;
}

/* ---- JSON to parameters, and back ---- */

static int ncz_from_json(const struct codec_json *j, uint32_t *params, uint32_t *ret_n)
{
	const char *id;

	if (j->conf.text(j->conf.arg, "id", &id) || strcmp(id, ops->zarr2_id) != 0)
		return -EBADMSG;
	return ops->from_zarr ? ops->from_zarr(&j->conf, params, ret_n, NULL) : 0;
}

static int codec_to_hdf5(const char *codec, size_t *ret_n, unsigned **ret)
{
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	auto_free struct codec_json *j = alloc_array(1, sizeof(*j));
	unsigned *none = NULL; /* *ret may be an invalid pointer */
	int rc;

	if (!codec || !ret_n || !ret)
		return NC_EINVAL;
	if (!j)
		return NC_ENOMEM;
	rc = nc_error(codec_json_open(codec, strlen(codec), 1, j));
	if (rc == NC_NOERR)
		rc = nc_error(ncz_from_json(j, params, &n));
	codec_json_close(j);
	if (rc == NC_NOERR)
		rc = ncz_give(params, n, ret_n, &none);
	if (rc == NC_NOERR)
		*ret = none;
	return rc;
}

static int hdf5_to_codec(size_t n, const unsigned *params, char **ret)
{
	const struct codec_spec spec = {
		.h5_id = ops->h5_id,
		.n_params = params ? (uint32_t)u64_min(n, CODEC_PARAMS_MAX) : 0,
		.params = params,
		.name = ops->name,
	};
	auto_buf json = buf_of(CODEC_JSON_MAX);
	size_t len;

	if (!ret)
		return NC_EINVAL;
	buf_printf(&json, "{\"id\": \"%s\"", ops->zarr2_id);
	if (ops->zarr2_params)
		ops->zarr2_params(&spec, 1, &json);
	buf_put(&json, "}", sizeof("}"));
	if (!buf_ok(&json))
		return NC_ENOMEM;
	*ret = (char *)buf_take(&json, &len);
	return NC_NOERR;
}

/* ---- parameters of a variable ---- */

struct variable {
	struct codec_array array;
	size_t sizes[RANK_MAX];
	uint64_t chunk[RANK_MAX];
};

static enum codec_class ncz_class_of(int type)
{
	switch (type) {
	case NC_BYTE:
	case NC_SHORT:
	case NC_INT:
	case NC_INT64:
		return CODEC_INT;
	case NC_UBYTE:
	case NC_USHORT:
	case NC_UINT:
	case NC_UINT64:
		return CODEC_UINT;
	case NC_FLOAT:
	case NC_DOUBLE:
		return CODEC_FLOAT;
	default:
		return CODEC_OTHER;
	}
}

/* read_variable - query a variable from libnetcdf; false when that fails. Fill values are left out:
 * a query of one makes libnetcdf read attributes, and no codec with a numcodecs id needs it. */
static bool read_variable(const struct caller *c, int ncid, int varid, struct variable *v)
{
	int (*type_of)(int, int, int *), (*rank_of)(int, int, int *);
	int (*about_type)(int, int, char *, size_t *);
	int (*chunks)(int, int, int *, size_t *), (*endian_of)(int, int, int *);
	int type = 0, rank = 0, storage = -1, endian = 0;
	size_t size = 0;

	if (!caller_find(c, "nc_inq_vartype", &type_of) ||
	    !caller_find(c, "nc_inq_varndims", &rank_of) ||
	    !caller_find(c, "nc_inq_type", &about_type) ||
	    !caller_find(c, "nc_inq_var_chunking", &chunks) ||
	    !caller_find(c, "nc_inq_var_endian", &endian_of))
		return false;
	if (type_of(ncid, varid, &type) || rank_of(ncid, varid, &rank) || rank < 0 ||
	    rank > RANK_MAX || about_type(ncid, type, NULL, &size) || size == 0 ||
	    size > UINT32_MAX)
		return false;
	v->array = (struct codec_array){
		.class = ncz_class_of(type), .elem_size = (uint32_t)size, .chunk = v->chunk};
	if (rank > 0 && (chunks(ncid, varid, &storage, v->sizes) || storage != NC_CHUNKED))
		return false;
	v->array.rank = (uint32_t)rank;
	for (int i = 0; i < rank; i++)
		v->chunk[i] = v->sizes[i];
	v->array.big_endian = endian_of(ncid, varid, &endian) == 0 && endian == NC_ENDIAN_BIG;
	return true;
}

static int modify_parameters(int ncid, int varid, size_t *visible_n, unsigned **visible,
			     size_t *working_n, unsigned **working)
{
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	struct codec_spec spec = {.h5_id = ops->h5_id, .name = ops->name};
	auto_free struct variable *v = alloc_array(1, sizeof(*v));
	struct caller c;
	bool known;
	int rc;

	if (!visible_n || !visible || !working_n || !working)
		return NC_EINVAL;
	spec.n_params = *visible ? (uint32_t)u64_min(*visible_n, CODEC_PARAMS_MAX) : 0;
	spec.params = *visible;
	if (!v)
		return NC_ENOMEM;
	known = caller_open(__builtin_return_address(0), &c);
	if (known) {
		known = read_variable(&c, ncid, varid, v);
		caller_close(&c);
	}
	rc = known ? nc_error(ops->prepare(&spec, &v->array, params, &n, NULL)) : NC_NOERR;
	if (rc != NC_NOERR)
		return rc;
	return known ? ncz_give(params, n, working_n, working)
		     : ncz_give(spec.params, spec.n_params, working_n, working);
}

static struct ncz_codec codec;

static __attribute__((constructor)) void fill_codec(void)
{
	codec = (struct ncz_codec){
		.version = VERSION,
		.sort = SORT_HDF5,
		.codec_id = ops->zarr2_id,
		.hdf5_id = ops->h5_id,
		.codec_to_hdf5 = codec_to_hdf5,
		.hdf5_to_codec = hdf5_to_codec,
		.modify_parameters = ops->prepare ? modify_parameters : NULL,
	};
}

const void *NCZ_get_codec_info(void)
{
	return &codec;
}
