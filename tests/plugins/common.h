/* SPDX-License-Identifier: BSD-3-Clause */
/* common.h - the plugins of the tests are written against these two interfaces only: HDF5's
 * headers, and the structure of netCDF-C's codecs as a plugin's author finds it in netCDF-C's
 * documentation. They share nothing with the program. */
#ifndef TESTS_PLUGINS_COMMON_H
#define TESTS_PLUGINS_COMMON_H

#include <stdlib.h>
#include <string.h>

#include <H5PLextern.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
	int version, sort;
	const char *codecid;
	unsigned hdf5id;
	void (*initialize)(void);
	void (*finalize)(void);
	int (*codec_to_hdf5)(const char *json, size_t *nparams, unsigned **params);
	int (*hdf5_to_codec)(size_t nparams, const unsigned *params, char **json);
	int (*modify_parameters)(int ncid, int varid, size_t *vn, unsigned **v, size_t *wn,
				 unsigned **w);
} codec_t;

EXPORT const void *NCZ_get_codec_info(void);
EXPORT const void *NCZ_codec_info_defaults(void);

/* number_in - the number behind "key": in a text, quoted or not; missing: -1. */
static inline long number_in(const char *json, const char *key)
{
	char name[40] = "\"";
	const char *p;

	strncat(name, key, sizeof(name) - 3);
	strcat(name, "\"");
	p = strstr(json, name);
	if (!p)
		return -1;
	p += strlen(name);
	p += strspn(p, " :\"");
	return strtol(p, NULL, 10);
}

/* one_param - a result of codec_to_hdf5. */
static inline int one_param(long v, size_t *nparams, unsigned **params)
{
	if (v < 0)
		return -137; /* NC_EFILTER is one like it */
	*params = malloc(sizeof(**params));
	if (!*params)
		return -61;
	(*params)[0] = (unsigned)v;
	*nparams = 1;
	return 0;
}

#endif
