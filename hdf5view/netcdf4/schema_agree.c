/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_agree.c - checks whether libhdf5 would store the parameters with which chunks were or
 * will be encoded.
 *
 * Its own szip, n-bit and scale-offset filters compute their parameters anew for every dataset
 * that names them. So this file lets the library make a dataset like the planned one, in a
 * temporary file in memory. */
#include "hdf5view/netcdf4/schema.h"

#include <string.h>

#define SMALL ((size_t)1 << 16) /* the file's growth */

static bool schema_agree_own(const struct codec_spec *s)
{
	return s->h5_id > CODEC_FLETCHER32 && s->h5_id < H5Z_FILTER_RESERVED;
}

/* can_encode - whether the library has a filter for both directions, which it requires to make a
 * dataset. */
static bool can_encode(uint32_t id)
{
	unsigned flags = 0;

	return H5Zfilter_avail((H5Z_filter_t)id) > 0 &&
	       H5Zget_filter_info((H5Z_filter_t)id, &flags) >= 0 &&
	       (flags & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0;
}

/* schema_agree_describe - creation properties with the library's filters of the chain. New; -1. */
static hid_t schema_agree_describe(const struct ds_array *a, const struct codec_array *as,
				   hid_t type, const struct codec_chain *chain)
{
	hid_t dcpl = nc_h5_dcpl();
	hsize_t chunk[NC_RANK_LIMIT];
	bool ok = dcpl >= 0;

	for (uint32_t d = 0; d < as->rank; d++)
		chunk[d] = as->chunk[d];
	ok = ok && H5Pset_chunk(dcpl, (int)as->rank, chunk) >= 0 &&
	     (!as->fill || H5Pset_fill_value(dcpl, type, a->fill) >= 0);
	for (uint32_t i = 0; ok && i < chain->n; i++) {
		const struct codec_spec *s = &chain->specs[i];

		if (schema_agree_own(s))
			ok = H5Pset_filter(dcpl, (H5Z_filter_t)s->h5_id, H5Z_FLAG_MANDATORY,
					   s->n_params, s->params) >= 0;
	}
	return h5_id_unless(!ok, dcpl);
}

/* schema_agree_stored - whether a dataset has a filter with these parameters. */
static bool schema_agree_stored(hid_t dcpl, const struct codec_spec *s)
{
	unsigned flags, config, params[CODEC_PARAMS_MAX];
	size_t n = ARRAY_LEN(params);

	if (H5Pget_filter_by_id2(dcpl, (H5Z_filter_t)s->h5_id, &flags, &n, params, 0, NULL,
				 &config) < 0 ||
	    n != s->n_params)
		return false;
	for (size_t i = 0; i < n; i++)
		if (params[i] != s->params[i])
			return false;
	return true;
}

static enum nc_agreed schema_agree_ask(const struct ds_array *a, const struct codec_array *as,
				       const struct codec_chain *chain)
{
	auto_hid hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	auto_hid hid_t type = nc_h5_type(NULL, &a->type, DS_NONE);
	auto_hid hid_t file = -1, dcpl = -1, space = -1, set = -1, made = -1;
	hsize_t len[NC_RANK_LIMIT];

	for (uint32_t d = 0; d < as->rank; d++)
		len[d] = as->chunk[d];
	if (fapl >= 0 && H5Pset_fapl_core(fapl, SMALL, 0) >= 0)
		file = H5Fcreate("/filters", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
	space = H5Screate_simple((int)as->rank, len, NULL);
	dcpl = type < 0 ? -1 : schema_agree_describe(a, as, type, chain);
	if (file >= 0 && space >= 0 && dcpl >= 0)
		set = H5Dcreate2(file, "v", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	made = set < 0 ? -1 : H5Dget_create_plist(set);
	if (made < 0)
		return NC_AGREE_REFUSES;
	for (uint32_t i = 0; i < chain->n; i++)
		if (schema_agree_own(&chain->specs[i]) &&
		    !schema_agree_stored(made, &chain->specs[i]))
			return NC_AGREE_OTHERS;
	return NC_AGREES;
}

enum nc_agreed nc_filters_agree(const struct ds_array *a, const struct codec_array *as,
				const struct codec_chain *chain)
{
	enum nc_agreed said = NC_AGREES;

	if (as->rank == 0 || as->rank > NC_RANK_LIMIT)
		return NC_AGREE_NO_CHUNKS;
	if (a->type.kind > DT_FLOAT && a->type.kind != DT_STRING)
		return NC_AGREE_NO_NUMBERS;
	for (uint32_t i = 0; said == NC_AGREES && i < chain->n; i++)
		if (schema_agree_own(&chain->specs[i]) &&
		    (!can_encode(chain->specs[i].h5_id) ||
		     chain->specs[i].n_params > CODEC_PARAMS_MAX))
			said = NC_AGREE_LACKS;
	return said == NC_AGREES ? schema_agree_ask(a, as, chain) : said;
}

const char *nc_disagrees(enum nc_agreed said)
{
	static const char *const why[] = {
		[NC_AGREE_NO_CHUNKS] = "the HDF5 library does not support such chunks",
		[NC_AGREE_NO_NUMBERS] = "HDF5's built-in filters are for numbers only",
		[NC_AGREE_LACKS] =
			"the installed HDF5 library lacks one of its built-in filters",
		[NC_AGREE_REFUSES] =
			"the HDF5 library rejects one of its built-in filters for such chunks",
		[NC_AGREE_OTHERS] =
			"the HDF5 library would set different parameters for a filter"};

	return why[said];
}
