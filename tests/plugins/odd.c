/* SPDX-License-Identifier: BSD-3-Clause */
/* odd.c - libraries that are no plugins, one for each way: built with -DODD=1 ... */
#include "tests/plugins/common.h"

#include <unistd.h>

static size_t filter(unsigned flags, size_t n_params, const unsigned *params, size_t n,
		     size_t *room, void **data)
{
	(void)flags;
	(void)n_params;
	(void)params;
	(void)room;
	(void)data;
	return n;
}

EXPORT const H5Z_class2_t class = {ODD == 2 ? 7 : H5Z_CLASS_T_VERS,
				   ODD == 3 ? 70000 : 40005,
				   1,
				   1,
				   "odd",
				   NULL,
				   NULL,
				   filter};

#if ODD != 4 /* 4: a library without symbols of either kind */
H5PL_type_t H5PLget_plugin_type(void)
{
	return ODD == 1 ? (H5PL_type_t)1 : H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
	return ODD == 5 ? NULL : &class;
}
#endif

#if ODD == 6 || ODD == 7
__attribute__((constructor)) static void when_loaded(void)
{
	if (ODD == 6)
		abort();
	for (;;)
		(void)pause();
}
#endif

#if ODD == 8
static const codec_t codec = {2, 1, "odd", 40005, NULL, NULL, NULL, NULL, NULL};

const void *NCZ_get_codec_info(void)
{
	return &codec;
}
#endif
