/* nc_filters.c - which chunks pass as they are, and how their filters are named in the file.
 *
 * Datasets are only described here, never written, so the library does not need the filters. But it
 * asks them while a dataset is created: an unknown one is refused, and a known one may change its
 * parameters (`set_local`), which would no longer be those the chunks were made with. So filters
 * with a registered id are replaced by an empty class of ours meanwhile. HDF5's own cannot be
 * replaced: of them only those pass whose parameters come out as they were. */
#include "hdf5view/nc_build_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ID_MAX 65535
#define LEVEL_MAX 9
#define SPEC_BYTES 300 /* of a filter in a header message, without parameters; generous */

static void decode(struct plan *p, const char *why)
{
	p->kind = PLAN_DECODE;
	p->chain = (struct codec_chain){0};
	(void)snprintf(p->reason, sizeof(p->reason), "%s", why);
}

/* refused - why a filter cannot be named for chunks of this array; NULL: it can. */
static const char *refused(const struct ds_array *a, const struct codec_spec *spec)
{
	switch (spec->h5_id) {
	case CODEC_DEFLATE:
	case CODEC_FLETCHER32:
		return NULL;
	case CODEC_SHUFFLE:
		if (a->type.size != nc_elem(a))
			return "shuffle works on whole texts, netCDF has characters";
		return spec->n_params > 0 && spec->params[0] != a->type.size
			       ? "shuffle works on other bytes than elements have"
			       : NULL;
	default:
		if (spec->h5_id > ID_MAX)
			return "a filter without an HDF5 id";
		return spec->h5_id < H5Z_FILTER_RESERVED
			       ? "the HDF5 library would set other parameters for a filter"
			       : NULL;
	}
}

void nc_filters_plan(const struct ds_array *a, enum plan_filter filter, struct plan *ret)
{
	uint64_t bytes = 0;

	plan_make(a, PLAN_HDF5, filter, true, ret);
	if (ret->kind != PLAN_PASS)
		return;
	if (a->rank == 0 && ret->chain.n > 0) {
		decode(ret, "a scalar has no filters in HDF5");
		return;
	}
	for (uint32_t i = 0; i < ret->chain.n; i++) {
		const struct codec_spec *spec = &ret->chain.specs[i];
		const char *why = refused(a, spec);

		bytes += SPEC_BYTES + 4 * (uint64_t)spec->n_params;
		if (!why && bytes > NC_MESSAGE_MAX)
			why = "filters take too much to describe";
		if (why) {
			decode(ret, why);
			return;
		}
	}
}

/* nothing - no chunk is ever put through a filter while the structure is made. */
static size_t nothing(unsigned flags, size_t n, const unsigned *params, size_t bytes,
		      size_t *room, void **data)
{
	(void)flags;
	(void)n;
	(void)params;
	(void)bytes;
	(void)room;
	(void)data;
	return 0;
}

/* stand_in - an empty class for one filter. Its name ends up in the file, and is used until the
 * class is taken away. */
static int stand_in(struct nc_filters *t, const struct codec_spec *spec)
{
	char tmp[40];
	H5Z_class2_t class = {
		.version = H5Z_CLASS_T_VERS,
		.id = (H5Z_filter_t)spec->h5_id,
		.encoder_present = 1,
		.decoder_present = 1,
		.filter = nothing,
	};

	if (grow_array(&t->list, &t->cap, t->n + 1, sizeof(*t->list)) < 0)
		return -1;
	t->list[t->n].name = strdup(codec_name(spec, tmp, sizeof(tmp)));
	if (!t->list[t->n].name)
		return -1;
	class.name = t->list[t->n].name;
	if (H5Zregister(&class) < 0) {
		free(t->list[t->n].name);
		return -1;
	}
	t->list[t->n++].id = spec->h5_id;
	return 0;
}

int nc_filters_begin(const struct nc_model *m, struct nc_filters *ret)
{
	*ret = (struct nc_filters){0};
	for (uint32_t i = 0; i < m->ds->n_arrays; i++)
		for (uint32_t k = 0; m->arrays[i].name && k < m->plans[i].chain.n; k++) {
			const struct codec_spec *spec = &m->plans[i].chain.specs[k];
			uint8_t *seen = &ret->seen[spec->h5_id / 8 % sizeof(ret->seen)];

			if (spec->h5_id < H5Z_FILTER_RESERVED || *seen >> spec->h5_id % 8 & 1)
				continue;
			*seen |= (uint8_t)(1U << spec->h5_id % 8);
			if (stand_in(ret, spec) < 0)
				return -1;
		}
	return 0;
}

void nc_filters_end(struct nc_filters *t)
{
	for (size_t i = 0; i < t->n; i++) {
		(void)H5Zunregister((H5Z_filter_t)t->list[i].id);
		free(t->list[i].name);
	}
	free(t->list);
	*t = (struct nc_filters){0};
}

/* set_blosc - what the plugin itself would have written: in place of the size of a block, which is
 * in each chunk, the size of a whole chunk. */
static herr_t set_blosc(hid_t dcpl, const struct ds_array *a, const struct codec_spec *spec)
{
	unsigned v[8] = {0};
	size_t n = spec->n_params < ARRAY_LEN(v) ? spec->n_params : ARRAY_LEN(v);

	for (size_t i = 0; i < n; i++)
		v[i] = spec->params[i];
	if (n > 3)
		v[3] = (unsigned)a->chunk_bytes; /* at most CHUNK_MAX, or the array is not shown */
	return H5Pset_filter(dcpl, CODEC_BLOSC, H5Z_FLAG_MANDATORY, n, v);
}

int nc_filters_set(hid_t dcpl, const struct ds_array *a, const struct plan *p)
{
	for (uint32_t i = 0; i < p->chain.n; i++) {
		const struct codec_spec *spec = &p->chain.specs[i];
		unsigned level = spec->n_params > 0 ? spec->params[0] : 6;
		herr_t rc;

		switch (spec->h5_id) {
		case CODEC_DEFLATE: /* readers insist on a level that exists */
			rc = H5Pset_deflate(dcpl, level > LEVEL_MAX ? LEVEL_MAX : level);
			break;
		case CODEC_SHUFFLE:
			rc = H5Pset_shuffle(dcpl);
			break;
		case CODEC_FLETCHER32:
			rc = H5Pset_fletcher32(dcpl);
			break;
		case CODEC_BLOSC:
			rc = set_blosc(dcpl, a, spec);
			break;
		default:
			rc = H5Pset_filter(dcpl, (H5Z_filter_t)spec->h5_id, H5Z_FLAG_MANDATORY,
					   spec->n_params, spec->params);
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}
