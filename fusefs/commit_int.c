/* commit_int.c - what commits in both directions need: lists of chunks, the policy for new
 * arrays. */
#include "fusefs/commit_int.h"

#include <errno.h>

void commit_chunks_add(struct commit_chunks *c, uint32_t array, uint64_t linear)
{
	if (c->failed || grow_array(&c->v, &c->cap, c->n + 1, sizeof(*c->v)) < 0) {
		c->failed = true;
		return;
	}
	c->v[c->n++] = (struct commit_chunk){array, linear};
}

void commit_chunks_all(struct commit_chunks *c, uint32_t array, uint32_t n_arrays)
{
	if (!c->whole) {
		c->whole = alloc_array(n_arrays, sizeof(*c->whole));
		c->n_arrays = n_arrays;
	}
	c->failed |= !c->whole;
	if (c->whole && array < c->n_arrays)
		c->whole[array] = true;
}

static int by_place(const void *a, const void *b)
{
	const struct commit_chunk *x = a, *y = b;

	if (x->array != y->array)
		return x->array < y->array ? -1 : 1;
	return x->linear < y->linear ? -1 : x->linear > y->linear;
}

int commit_chunks_sort(struct commit_chunks *c, struct err *e)
{
	if (c->failed)
		return err_nomem(e);
	if (c->n > 1)
		qsort(c->v, c->n, sizeof(*c->v), by_place);
	return 0;
}

int commit_chunks_next(const struct commit_chunks *c, uint32_t array, uint64_t from,
		       uint64_t *ret)
{
	const struct commit_chunk want = {array, from};
	size_t lo = 0, hi = c->n;

	if (c->whole && array < c->n_arrays && c->whole[array]) {
		*ret = from;
		return 0;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (by_place(&c->v[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->n || c->v[lo].array != array)
		return -ENOENT;
	*ret = c->v[lo].linear;
	return 0;
}

void commit_chunks_release(struct commit_chunks *c)
{
	free(c->v);
	free(c->whole);
	*c = (struct commit_chunks){0};
}

void commit_policy(const struct fs_setup *setup, enum plan_format format,
		   struct push_policy *ret)
{
	const struct cfg *cfg = setup->cfg;

	*ret = (struct push_policy){
		.chunk_bytes = cfg->chunk_size,
		.filters = setup->rules ? &setup->rules->filters : NULL,
		.quant = setup->rules ? &setup->rules->quants : NULL,
		.keep = cfg->filter == CFG_FILTER_KEEP ? PLAN_KEEP : PLAN_PORTABLE,
		.format = format,
	};
	/* a Zarr writer goes on writing chunks of the lengths that it said: those of rules are
	 * for what comes without */
	if (format != PLAN_HDF5) {
		ret->chunks = (const char *const *)cfg->chunk_rules;
		ret->n_chunks = cfg->n_chunk_rules;
	}
}
