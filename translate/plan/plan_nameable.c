/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_nameable.c - why a format has no name for a chain, or stock readers would not know it. */
#include "translate/plan/plan_int.h"

#include <inttypes.h>
#include <stdio.h>

#define BLOSC_COMPRESSOR 6 /* which parameter of Blosc */
#define BLOSC_SNAPPY 3     /* left out of many builds */

static bool is_stock(const struct codec_spec *spec)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);

	return ops && ops->zarr3_stock &&
	       !(spec->h5_id == CODEC_BLOSC && spec->n_params > BLOSC_COMPRESSOR &&
		 spec->params[BLOSC_COMPRESSOR] == BLOSC_SNAPPY);
}

bool plan_zarr3_stock(const struct codec_chain *chain)
{
	for (uint32_t i = 0; i < chain->n; i++)
		if (!is_stock(&chain->specs[i]))
			return false;
	return true;
}

/* hdf5_lacks - why libhdf5 cannot be given one filter. */
static const char *hdf5_lacks(const struct codec_spec *s, const struct codec_ops *ops,
			      bool keep)
{
	if (s->h5_id >= CODEC_PRIVATE)
		return "no HDF5 filter";
	return keep || (ops && ops->h5_stock) ? NULL : "HDF5 needs a plugin for it";
}

/* zarr3_lacks - why a Zarr v3 document cannot have one filter. bytes: what goes into it is no array
 * any more. */
static const char *zarr3_lacks(const struct codec_spec *s, const struct codec_ops *ops,
			       const struct codec_array *as, bool bytes)
{
	char tmp[PLAN_NAME_CAP];

	if (!ops || s->h5_id == CODEC_PACKBITS_ZARR3 ||
	    !codec_zarr3_name(ops, tmp, sizeof(tmp)))
		return "no Zarr v3 codec";
	if (ops->elements && bytes)
		return "Zarr v3 requires it before all other codecs";
	return ops->elements && as->big_endian
		       ? "Zarr v3 readers disagree about big-endian elements"
		       : NULL;
}

bool plan_cannot(enum plan_format format, const struct codec_array *as,
		 const struct codec_chain *chain, bool keep, char why[PLAN_WHY_CAP])
{
	uint64_t len = plan_bytes(as);
	bool known = true, bytes = false; /* how long what goes into a filter is */
	const char *text = NULL;
	char name[PLAN_NAME_CAP];
	uint32_t i;

	for (i = 0; format == PLAN_ZARR3 && !keep && !text && i < chain->n; i++)
		if (!is_stock(&chain->specs[i]))
			text = "standard readers cannot decode it";
	for (i = text ? i : 0; !text && i < chain->n; i++) {
		const struct codec_spec *s = &chain->specs[i];
		const struct codec_ops *ops = codec_find(s->h5_id);
		const uint64_t size =
			s->n_params > 0 && s->params[0] > 0 ? s->params[0] : as->elem_size;

		if (format == PLAN_HDF5)
			text = hdf5_lacks(s, ops, keep);
		else if (format == PLAN_ZARR3)
			text = zarr3_lacks(s, ops, as, bytes);
		else if (!ops || !codec_has_zarr2(s, as->elem_size))
			text = "no Zarr codec";
		if (text || format == PLAN_HDF5)
			continue;
		if (s->h5_id == CODEC_SHUFFLE) {
			/* numcodecs refuses lengths that are no multiple of the element size */
			if (size > 1 && (!known || len % size != 0))
				text = "Zarr readers require whole elements";
		} else if (ops->trailer > 0) {
			len += ops->trailer;
		} else {
			known = false;
		}
		bytes = bytes || !ops->elements;
	}
	if (text)
		(void)snprintf(why, PLAN_WHY_CAP, "%s: %s",
			       plan_name(&chain->specs[i - 1], name), text);
	return text != NULL;
}
