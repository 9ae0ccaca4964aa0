/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_filters.c - decides the filters of chunks, and describes them in the file.
 *
 * Datasets are only described here, never written, so the library does not need the filters. But
 * it calls them while a dataset is created: it rejects an unknown filter, and a known one may
 * change its parameters (`set_local`), which would then differ from those of the chunks. So
 * meanwhile an empty class replaces each filter with a registered id. HDF5's own filters cannot be
 * replaced: of them only those are used whose parameters do not change (schema_agree.c). */
#include "hdf5view/virtual/structure_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ID_MAX 65535
#define LEVEL_MAX 9
#define SPEC_BYTES 300 /* of a filter in a header message, without parameters; generous */

/* filters_refused - the reason why a filter cannot be named for chunks of this array; NULL:
 * it can. */
static const char *filters_refused(const struct ds_array *a, const struct codec_spec *spec)
{
	uint32_t size;

	if (spec->h5_id > ID_MAX)
		return "a filter has no HDF5 id";
	if (spec->h5_id != CODEC_SHUFFLE)
		return NULL;
	size = spec->n_params > 0 && spec->params[0] > 0 ? spec->params[0] : a->type.size;
	if (size == nc_elem(a))
		return NULL;
	return size == a->type.size
		       ? "shuffle works on whole strings, but netCDF stores characters"
		       : "shuffle's element size differs from the array's";
}

/* question - an array's plan, and the process that answers questions about the library. */
struct question {
	struct plan_ask ask;
	struct nc_asker *asker;
};

/* filters_refuses - the same of a chain, see plan_ask. */
static const char *filters_refuses(const struct plan_ask *ask, const struct codec_chain *chain)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	bool own = false; /* a filter of the library's that sets parameters */
	uint64_t bytes = 0;

	if (a->rank == 0 && chain->n > 0)
		return "a scalar cannot have filters in HDF5";
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *spec = &chain->specs[i];
		const char *why = filters_refused(a, spec);

		if (why)
			return why;
		bytes += SPEC_BYTES + 4 * (uint64_t)spec->n_params;
		if (bytes > NC_MESSAGE_MAX)
			return "the description of the filters is too large";
		own |= spec->h5_id < H5Z_FILTER_RESERVED && spec->h5_id > CODEC_FLETCHER32;
	}
	if (!own)
		return NULL;
	return nc_asker_agree(((const struct question *)(const void *)ask)->asker, a, ask->as,
			      chain);
}

/* elements - the elements in HDF5's terms: characters of strings, in a dimension of their own.
 * chunk has room for nc_rank lengths. */
static void elements(const struct ds_array *a, struct codec_array *ret, uint64_t *chunk)
{
	plan_elements(a, ret);
	for (uint32_t d = 0; d < a->rank; d++)
		chunk[d] = a->chunk[d];
	if (nc_rank(a) > a->rank)
		chunk[a->rank] = a->type.size;
	ret->rank = nc_rank(a);
	ret->chunk = chunk;
	ret->elem_size = nc_elem(a);
	ret->fill = nc_fill(a) ? a->fill : NULL;
	if (a->type.kind == DT_BOOL)
		ret->class = CODEC_INT;
}

int nc_filters_plan(struct nc_model *m, uint32_t array, const struct plan_policy *policy,
		    struct plan *ret, struct err *e)
{
	const struct ds_array *a = &m->ds->arrays[array];
	uint64_t chunk[DS_RANK_MAX + 1];
	struct codec_array as;
	struct nc_asker once = {0};
	struct nc_asker *asker = m->asker ? m->asker : &once;
	const struct question q = {.ask = {.ds = m->ds,
					   .array = array,
					   .format = PLAN_HDF5,
					   .policy = policy,
					   .fill_declared = true,
					   .as = &as,
					   .refuses = filters_refuses,
					   .arena = &m->arena},
				   .asker = asker};
	int rc;

	elements(a, &as, chunk);
	rc = plan_make(&q.ask, ret, e);
	nc_asker_end(&once);
	if (rc == 0 && asker->rc < 0)
		return err_set(e, asker->rc, "%s", asker->why.msg);
	if (rc == 0 && ret->note && nc_note(m, 0, array, "%s", ret->note) < 0)
		rc = err_nomem(e);
	return rc;
}

/* filters_nothing - fails: while the structure is made, no chunk goes through a filter. */
static size_t filters_nothing(unsigned flags NZ_UNUSED, size_t n NZ_UNUSED,
			      const unsigned *params NZ_UNUSED, size_t bytes NZ_UNUSED,
			      size_t *room NZ_UNUSED, void **data NZ_UNUSED)
{
	return 0;
}

/* filters_stand_in - register an empty class for one filter. Its name is stored in the
 * file, and is used until the class is removed. */
static int filters_stand_in(struct nc_filters *t, const struct codec_spec *spec)
{
	char tmp[40];
	H5Z_class2_t class = {
		.version = H5Z_CLASS_T_VERS,
		.id = (H5Z_filter_t)spec->h5_id,
		.encoder_present = 1,
		.decoder_present = 1,
		.filter = filters_nothing,
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

int nc_filters_stand_in(struct nc_filters *t, const struct codec_chain *chain)
{
	for (uint32_t k = 0; k < chain->n; k++) {
		const struct codec_spec *spec = &chain->specs[k];
		uint8_t *seen = &t->seen[spec->h5_id / 8 % sizeof(t->seen)];

		if (spec->h5_id < H5Z_FILTER_RESERVED || *seen >> spec->h5_id % 8 & 1)
			continue;
		*seen |= (uint8_t)(1U << spec->h5_id % 8);
		if (filters_stand_in(t, spec) < 0)
			return -1;
	}
	return 0;
}

int nc_filters_begin(const struct nc_model *m, struct nc_filters *ret)
{
	*ret = (struct nc_filters){0};
	for (uint32_t i = 0; i < m->ds->n_arrays; i++)
		if (m->arrays[i].name && nc_filters_stand_in(ret, &m->plans[i].chain) < 0)
			return -1;
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

/* set_blosc - the parameters that the plugin would have written: in place of the size of a block,
 * which is in each chunk, the size of a whole chunk. */
static herr_t set_blosc(hid_t dcpl, uint64_t chunk_bytes, const struct codec_spec *spec)
{
	unsigned v[8] = {0};
	size_t n = spec->n_params < ARRAY_LEN(v) ? spec->n_params : ARRAY_LEN(v);

	for (size_t i = 0; i < n; i++)
		v[i] = spec->params[i];
	if (n > 3)
		v[3] = (unsigned)chunk_bytes; /* at most CHUNK_MAX, or the array is not shown */
	return H5Pset_filter(dcpl, CODEC_BLOSC, H5Z_FLAG_MANDATORY, n, v);
}

int nc_filters_set(hid_t dcpl, uint64_t chunk_bytes, const struct codec_chain *chain)
{
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *spec = &chain->specs[i];
		unsigned level = spec->n_params > 0 ? spec->params[0] : 6;
		herr_t rc;

		switch (spec->h5_id) {
		case CODEC_DEFLATE: /* readers require a valid level */
			rc = H5Pset_deflate(dcpl, level > LEVEL_MAX ? LEVEL_MAX : level);
			break;
		case CODEC_SHUFFLE:
			rc = H5Pset_shuffle(dcpl);
			break;
		case CODEC_FLETCHER32:
			rc = H5Pset_fletcher32(dcpl);
			break;
		case CODEC_BLOSC:
			rc = set_blosc(dcpl, chunk_bytes, spec);
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
