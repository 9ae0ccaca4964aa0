/* SPDX-License-Identifier: BSD-3-Clause */
/* xor.c - a filter, 40001, without a codec. Parameter 0 is the byte; when a dataset is made it adds
 * the size of an element, of a chunk, and whether there is a fill value. */
#include "tests/plugins/common.h"

#define ID 40001

static htri_t can_apply(hid_t dcpl, hid_t type, hid_t space)
{
	(void)dcpl;
	(void)space;
	return H5Tget_class(type) != H5T_OPAQUE;
}

static herr_t set_local(hid_t dcpl, hid_t type, hid_t space)
{
	unsigned params[4] = {0}, flags;
	H5D_fill_value_t fill;
	size_t n = 1;

	if (H5Pget_filter_by_id2(dcpl, ID, &flags, &n, params, 0, NULL, NULL) < 0 || n != 1)
		return -1;
	params[1] = (unsigned)H5Tget_size(type) | (unsigned)H5Tget_order(type) << 8;
	params[2] = (unsigned)((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type));
	if (H5Pfill_value_defined(dcpl, &fill) < 0)
		return -1;
	params[3] = fill == H5D_FILL_VALUE_USER_DEFINED;
	return H5Pmodify_filter(dcpl, ID, flags, 4, params);
}

static size_t filter(unsigned flags, size_t n_params, const unsigned *params, size_t n,
		     size_t *room, void **data)
{
	unsigned char *out = malloc(n + 1);
	const unsigned char *in = *data;

	if (!out || n_params < 1 || n < ((flags & H5Z_FLAG_REVERSE) ? 2 : 1)) {
		free(out);
		return 0;
	}
	/* a mark in front, so that what was encoded is longer */
	if (!(flags & H5Z_FLAG_REVERSE)) {
		out[0] = 0x58;
		for (size_t i = 0; i < n; i++)
			out[i + 1] = in[i] ^ (unsigned char)params[0];
		n++;
	} else {
		if (in[0] != 0x58) {
			free(out);
			return 0;
		}
		for (size_t i = 1; i < n; i++)
			out[i - 1] = in[i] ^ (unsigned char)params[0];
		n--;
	}
	free(*data);
	*data = out;
	*room = n + 1 - !(flags & H5Z_FLAG_REVERSE);
	return n;
}

static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, ID,        1,         1,
				   "xor; bytes",     can_apply, set_local, filter};

H5PL_type_t H5PLget_plugin_type(void)
{
	return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
	return &class;
}
