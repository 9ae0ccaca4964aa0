/* SPDX-License-Identifier: BSD-3-Clause */
/* present.c - which new chunks exist: those with an existing inner chunk below them.
 *
 * Whether one chunk exists is usually decided by the first inner chunk below it. If that is absent,
 * and for the next existing chunk, one walk over the existing chunks of the inner source makes a
 * bit for each new chunk, which is kept: a sparse array costs its existing chunks, once. A source
 * that cannot list its chunks is asked for each inner chunk of one new chunk. */
#include "translate/rechunk/rechunk_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/observe/metrics.h"
#include "base/os/cancel.h"

void rechunk_present_free(struct rechunk_present *p)
{
	if (p)
		metrics_gauge_add(G_MEM_INDEX, -(int64_t)(p->n_words * sizeof(*p->words)));
	free(p);
}

static void mark(struct rechunk_present *p, uint64_t linear)
{
	p->words[linear / 64] |= (uint64_t)1 << (linear % 64);
}

/* present_walk - mark the new chunks above all existing inner chunks. */
static int present_walk(struct rechunk *r, uint32_t array, struct rechunk_present *p,
			struct err *e)
{
	const struct ds_array *in = &r->inner->ds.arrays[array], *a = &r->base.ds.arrays[array];
	uint64_t coords[DS_RANK_MAX] = {0}, at[DS_RANK_MAX];
	int rc = 0;

	for (uint64_t i = 0; i < in->n_chunks; i++) {
		struct grid_box over;

		if (cancel_requested())
			return err_set(e, -EINTR, "cancelled");
		rc = source_next(r->inner, array, i, &i, e);
		if (rc < 0)
			break;
		ds_chunk_coords(in, i, coords);
		rechunk_over(a, in, coords, &over);
		memcpy(at, over.lo, sizeof(at));
		do
			mark(p, ds_chunk_linear(a, at));
		while (grid_next(a->rank, &over, at));
	}
	return rc == -ENOENT ? 0 : rc;
}

/* present_of - the existing chunks of an array, found by the first thread that needs them. If two
 * threads do, one result is kept. */
static int present_of(struct rechunk *r, uint32_t array, const struct rechunk_present **ret,
		      struct err *e)
{
	struct rechunk_array *x = &r->arrays[array];
	struct rechunk_present *p = atomic_load_explicit(&x->present, memory_order_acquire);
	struct rechunk_present *none = NULL;
	const uint64_t n = r->base.ds.arrays[array].n_chunks / 64 + 1;
	int rc;

	if (p) {
		*ret = p;
		return 0;
	}
	/* the model allows no more chunks than fit the memory for an index */
	p = calloc(1, sizeof(*p) + (size_t)n * sizeof(*p->words));
	if (!p)
		return err_nomem(e);
	p->n_words = n;
	metrics_gauge_add(G_MEM_INDEX, (int64_t)(n * sizeof(*p->words)));
	rc = present_walk(r, array, p, e);
	if (rc < 0) {
		rechunk_present_free(p);
		return rc;
	}
	if (!atomic_compare_exchange_strong_explicit(
		    &x->present, &none, p, memory_order_acq_rel, memory_order_acquire)) {
		rechunk_present_free(p);
		p = none;
	}
	*ret = p;
	return 0;
}

/* ask_each - query an inner source without a list for the inner chunks of one new chunk. */
static int ask_each(struct rechunk *r, uint32_t array, const struct grid_box *box,
		    struct chunk_ref *ret, struct err *e)
{
	const struct ds_array *in = &r->inner->ds.arrays[array];
	uint64_t at[DS_RANK_MAX];

	memcpy(at, box->lo, sizeof(at));
	do {
		int rc = cancel_requested() ? err_set(e, -EINTR, "cancelled")
					    : source_locate(r->inner, array,
							    ds_chunk_linear(in, at), ret, e);

		if (rc < 0 || ret->where != CHUNK_ABSENT)
			return rc;
	} while (grid_next(in->rank, box, at));
	return 0;
}

bool rechunk_missing(struct rechunk *r, uint32_t array, uint64_t linear, uint64_t *there)
{
	int rc;

	if (r->inner->unlisted || r->inner->remote)
		return false;
	if (linear < *there)
		return true;
	rc = source_next(r->inner, array, linear, there, NULL);
	if (rc == -ENOENT)
		*there = UINT64_MAX;
	else if (rc < 0)
		*there = 0; /* reading the chunk reports the error */
	return *there > linear;
}

int rechunk_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		   struct err *e)
{
	struct rechunk *r = rechunk_of(s);
	const struct ds_array *in = &r->inner->ds.arrays[array], *a = &s->ds.arrays[array];
	const struct rechunk_present *p;
	uint64_t coords[DS_RANK_MAX] = {0};
	struct grid_box box;
	struct chunk_ref ref;
	int rc;

	if (!r->arrays[array].changed)
		return source_locate(r->inner, array, linear, ret, e);
	ds_chunk_coords(a, linear, coords);
	rechunk_over(in, a, coords, &box);
	rc = source_locate(r->inner, array, ds_chunk_linear(in, box.lo), &ref, e);
	if (rc == 0 && ref.where == CHUNK_ABSENT && r->inner->unlisted)
		rc = ask_each(r, array, &box, &ref, e);
	if (rc < 0)
		return rc;
	*ret = (struct chunk_ref){.where = CHUNK_SYNTH};
	if (ref.where != CHUNK_ABSENT)
		return 0;
	if (r->inner->unlisted) {
		ret->where = CHUNK_ABSENT;
		return 0;
	}
	rc = present_of(r, array, &p, e);
	if (rc == 0 && !(p->words[linear / 64] >> (linear % 64) & 1))
		ret->where = CHUNK_ABSENT;
	return rc;
}

int rechunk_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	struct rechunk *r = rechunk_of(s);
	const struct rechunk_present *p;
	uint64_t word;
	int rc;

	if (!r->arrays[array].changed)
		return source_next(r->inner, array, from, ret, e);
	if (r->inner->unlisted) {
		*ret = from;
		return 0;
	}
	rc = present_of(r, array, &p, e);
	if (rc < 0)
		return rc;
	word = p->words[from / 64] >> (from % 64) << (from % 64);
	for (uint64_t i = from / 64; i < p->n_words; word = ++i < p->n_words ? p->words[i] : 0)
		if (word) {
			*ret = i * 64 + (uint64_t)__builtin_ctzll(word);
			return 0;
		}
	return err_set(e, -ENOENT, "'%s': no more chunks", s->ds.arrays[array].name);
}
