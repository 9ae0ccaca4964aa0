/* SPDX-License-Identifier: BSD-3-Clause */
/* index_prefetch.c - for remote files: if chunks of one array after the other are located, as a
 * listing of everything does, prefetch the indexes of the next arrays in parallel. Their object
 * headers are cached by then: the model was made from them. */
#include "hdf5view/hdf5/library.h"

#define SCOUT_MOST 64               /* arrays at a time */
#define ROOT_BYTES ((uint64_t)4096) /* bytes of an index to prefetch */

/* index_prefetch_index_of - the start of an array's index; false if it has none of its own. */
static bool index_prefetch_index_of(struct h5_source *s, uint32_t array, uint64_t *ret)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	struct h5_layout l;

	if (x->file || a->unreadable || a->layout == DS_VIRTUAL || a->layout == DS_EXTERNAL ||
	    atomic_load_explicit(&s->places[x->slot], memory_order_relaxed) ||
	    h5_layout_read(&s->raw, s->raw.base + x->addr, &l, NULL) < 0 ||
	    l.cls != HDF5_LAYOUT_CHUNKED || l.index == HDF5_INDEX_SINGLE ||
	    l.index == HDF5_INDEX_IMPLICIT)
		return false;
	*ret = l.addr;
	return l.addr < s->raw.size;
}

void index_prefetch(struct h5_source *s, uint32_t array)
{
	struct index_prefetch *c = &s->scout;
	struct blob_part parts[SCOUT_MOST];
	uint32_t n = s->g.base.ds.n_arrays;
	size_t some = 0;
	uint64_t at;

	if (!isolated_remote(&s->g))
		return;
	if (array != c->last + 1) {
		c->last = c->end = array;
		c->step = 1;
		return;
	}
	c->last = array;
	if (array + c->step / 2 < c->end)
		return;
	c->step = c->step < SCOUT_MOST ? 2 * c->step : SCOUT_MOST;
	c->end = c->end > array ? c->end : array + 1;
	for (uint32_t i = 0; i < c->step && c->end < n; i++, c->end++)
		if (index_prefetch_index_of(s, c->end, &at))
			parts[some++] =
				(struct blob_part){at, u64_min(ROOT_BYTES, s->raw.size - at)};
	if (some)
		blob_want(s->g.blob, parts, some);
}
