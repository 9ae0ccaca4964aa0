/* SPDX-License-Identifier: BSD-3-Clause */
/* xorcodec.c - the codec of xor.c's filter, in a library of its own. */
#include "tests/plugins/common.h"

#include <stdio.h>

static int to_hdf5(const char *json, size_t *nparams, unsigned **params)
{
	return one_param(number_in(json, "key"), nparams, params);
}

static int to_codec(size_t nparams, const unsigned *params, char **json)
{
	*json = malloc(80);
	if (!*json || nparams < 1)
		return -137;
	(void)snprintf(*json, 80, "{\"id\": \"xorz\",\"key\":%u , \"t\" : [1, 2]}", params[0]);
	return 0;
}

static const codec_t codec = {1, 1, "xorz", 40001, NULL, NULL, to_hdf5, to_codec, NULL};

const void *NCZ_get_codec_info(void)
{
	return &codec;
}
