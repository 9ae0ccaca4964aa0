/* SPDX-License-Identifier: BSD-3-Clause */
/* same.c - filter 40003, which changes nothing and has no codec of its own.
 * Another library has one as a default. */
#include "tests/plugins/common.h"

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

/* no name at all */
static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, 40003, 0, 1, NULL, NULL, NULL, filter};

H5PL_type_t H5PLget_plugin_type(void)
{
	return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
	return &class;
}
