/* SPDX-License-Identifier: BSD-3-Clause */
/* register_filters.c - the built-in codecs as filters of libhdf5, in the children that read with
 * it.
 *
 * libhdf5 does not tell a filter's function which filter it is, so each codec gets a function of
 * its own from a fixed number of them. Only decoding is offered. */
#include <hdf5.h>

#include "codecs/core/codec.h"
#include "codecs/export/h5z.h"
#include "codecs/plugin/plugin.h"
#include "hdf5view/hdf5/library.h"

#define SLOTS(F)                                                                               \
	F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)

/* Written under h5_lock. */
static const struct codec_ops *codecs[16];
static size_t n_codecs, most = CODEC_H5Z_MAX;

#define FUNCTION(i)                                                                            \
	static size_t run_##i(unsigned flags, size_t n_params, const unsigned params[],        \
			      size_t n, size_t *size, void **buf)                              \
	{                                                                                      \
		return flags & H5Z_FLAG_REVERSE ? codec_h5z(codecs[i], most, flags, n_params,  \
							    params, n, size, buf)              \
						: 0;                                           \
	}
SLOTS(FUNCTION)

#define NAME(i) run_##i,
static const H5Z_func_t functions[] = {SLOTS(NAME)};

/* h5_codec_ready - let libhdf5 in this process decode a filter with its built-in codec. Returns
 * whether it now can; false for libhdf5's own filters, and for filters without a built-in codec. */
static bool h5_codec_ready(uint32_t h5_id)
{
	const struct codec_ops *ops;
	H5Z_class2_t class = {.version = H5Z_CLASS_T_VERS, .decoder_present = 1};

	for (size_t i = 0; i < n_codecs; i++)
		if (codecs[i]->h5_id == h5_id)
			return true;
	if (h5_id < H5Z_FILTER_RESERVED || h5_id > H5Z_FILTER_MAX)
		return false;
	ops = codec_find(h5_id);
	if (!ops || ops->origin || !ops->decode || n_codecs == ARRAY_LEN(codecs))
		return false;
	class.id = (H5Z_filter_t)h5_id;
	class.name = ops->name;
	class.filter = functions[n_codecs];
	codecs[n_codecs] = ops;
	if (H5Zregister(&class) < 0)
		return false;
	n_codecs++;
	return true;
}

void h5_codecs_max(size_t bytes)
{
	most = bytes > 0 && bytes < CODEC_H5Z_MAX ? bytes : CODEC_H5Z_MAX;
}

/* libhdf5's filters in the children that read: its own, then the built-in codecs, then plugins.
 * libhdf5 does not search for plugins itself, because it would load them from directories that
 * other users may write to. */

bool h5_filter_ready(uint32_t h5_id)
{
	const struct H5Z_class2_t *class;

	if (h5_id > H5Z_FILTER_MAX)
		return false;
	if (h5_codec_ready(h5_id) || H5Zfilter_avail((H5Z_filter_t)h5_id) > 0)
		return true;
	class = codec_plugins_class(h5_id);
	return class && class->decoder_present && H5Zregister(class) >= 0;
}

void h5_filters_ready(void)
{
	const struct codec_ops *ops;
	uint32_t id;

	for (size_t i = 0; (ops = codec_at(i)) && !ops->origin; i++)
		(void)h5_codec_ready(ops->h5_id);
	for (size_t i = 0; (id = codec_plugins_id(i)); i++)
		(void)h5_filter_ready(id);
}
