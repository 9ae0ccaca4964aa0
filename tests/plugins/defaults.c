/* SPDX-License-Identifier: BSD-3-Clause */
/* defaults.c - codecs for filters of other libraries, as netCDF-C installs them. The first is for
 * one that is built in, the second has one of its own, the fourth has another codec's name. */
#include "tests/plugins/common.h"

static int to_hdf5(const char *json, size_t *nparams, unsigned **params)
{
	(void)json;
	*nparams = 0;
	*params = NULL;
	return 0;
}

static int to_codec(size_t nparams, const unsigned *params, char **json)
{
	(void)nparams;
	(void)params;
	*json = strdup("{\"id\": \"same\"}");
	return *json ? 0 : -61;
}

static const codec_t bz2 = {1, 1, "bz2", 307, NULL, NULL, to_hdf5, to_codec, NULL};
static const codec_t rot = {1, 1, "other", 40002, NULL, NULL, to_hdf5, to_codec, NULL};
static const codec_t same = {1, 1, "same", 40003, NULL, NULL, to_hdf5, to_codec, NULL};
static const codec_t late = {1, 1, "zlib", 40004, NULL, NULL, to_hdf5, to_codec, NULL};
static const codec_t none = {1, 1, "none", 40009, NULL, NULL, to_hdf5, to_codec, NULL};
static const codec_t old = {0, 1, "old", 40001, NULL, NULL, to_hdf5, to_codec, NULL};

static const codec_t *const all[] = {&bz2, &rot, &same, &late, &none, &old, NULL};

const void *NCZ_codec_info_defaults(void)
{
	return all;
}
