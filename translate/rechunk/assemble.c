/* SPDX-License-Identifier: BSD-3-Clause */
/* assemble.c - makes new chunks of elements of a fixed size: a run of them in one pass over the
 * inner chunks.
 *
 * The first thread that needs a new chunk of a run leads: it waits until runs leave room, claims
 * the other chunks of the run that are not in the cache, and gives each inner chunk's elements to
 * all of them. Others that need the run wait for it. A leader with room waits for nothing but inner
 * chunks, and no thread waits with room for a leader or a flight, so that no cycle exists. An inner
 * chunk that cannot be read fails the new chunks that overlap it, and no others. */
#include "translate/rechunk/rechunk_int.h"

#include <errno.h>
#include <string.h>

#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "translate/model/value.h"

#define WANT_STEP 32 /* inner chunks of a remote source that are announced at a time */

/* target - a new chunk of a run. */
struct target {
	struct cache_entry *entry; /* NULL: memory of the caller */
	uint8_t *data; /* NULL: another thread makes it, it is there, or it failed */
};

/* pass - one run while it is assembled. */
struct pass {
	struct rechunk *r;
	uint32_t array;
	const struct ds_array *in, *a;
	struct rechunk_run run;
	struct target *targets; /* run.n */
	uint32_t own;           /* the one that the caller requested */
	uint32_t live;          /* targets with data */
	struct err failed;      /* of the own one */
	uint8_t *room;          /* an inner chunk */
};

int rechunk_where(int rc, struct err *e)
{
	return err_wrap(e, rc, "source");
}

/* ---- memory for runs ---- */

/* reserve - wait until there is room for a run. */
static int reserve(struct rechunk_shared *s, uint64_t bytes, struct err *e)
{
	int rc = 0;
	LOCK_SCOPE(&s->lock);

	while (rc == 0 && s->assembling > 0 &&
	       (bytes > s->run_bytes || s->assembling > s->run_bytes - bytes))
		rc = cancel_wait(&s->freed, &s->lock);
	if (rc < 0)
		return err_set(e, rc, "cancelled");
	s->assembling += bytes;
	return 0;
}

static void unreserve(struct rechunk_shared *s, uint64_t bytes)
{
	LOCK_SCOPE(&s->lock);

	s->assembling -= bytes;
	(void)pthread_cond_broadcast(&s->freed);
}

/* ---- targets ---- */

/* target_drop - target i failed. */
static void target_drop(struct pass *p, uint32_t i, const struct err *e)
{
	struct target *t = &p->targets[i];

	if (!t->data)
		return;
	if (i == p->own)
		p->failed = *e;
	if (t->entry)
		cache_fail(t->entry, e);
	*t = (struct target){0};
	p->live--;
}

/* begin_target - elements that no inner chunk has are the fill value. */
static void begin_target(struct pass *p, uint32_t i, struct cache_entry *x, uint8_t *data)
{
	p->targets[i] = (struct target){.entry = x, .data = data};
	p->live++;
	value_repeat(data, (size_t)p->a->chunk_bytes, p->a->fill, p->a->type.size);
}

/* begin_entry - the same for an entry of the cache in flight. */
static int begin_entry(struct pass *p, uint32_t i, struct cache_entry *x)
{
	uint8_t *data = cache_alloc(x, (size_t)p->a->chunk_bytes);
	struct err e = ERR_INIT;

	if (data) {
		begin_target(p, i, x, data);
		return 0;
	}
	(void)err_nomem(&e);
	cache_fail(x, &e);
	if (i == p->own)
		p->failed = e;
	return -ENOMEM;
}

/* claim_others - the other chunks of the run, as far as they exist and no thread has them. Without
 * memory for one, the run is shorter. */
static void claim_others(struct pass *p)
{
	uint64_t coords[DS_RANK_MAX];

	for (uint32_t i = 0; i < p->run.n; i++) {
		uint64_t linear = rechunk_run_linear(&p->run, p->a, i, coords);
		struct cache_entry *x;

		if (i != p->own && cache_claim(p->r->made, p->array, linear, &x) &&
		    begin_entry(p, i, x) < 0)
			return;
	}
}

/* targets_publish - the chunks are complete. The own one stays referenced. */
static void targets_publish(struct pass *p)
{
	for (uint32_t i = 0; i < p->run.n; i++) {
		struct target *t = &p->targets[i];

		if (!t->data || !t->entry)
			continue;
		cache_publish(t->entry);
		if (i != p->own)
			cache_put(t->entry);
	}
}

/* ---- inner chunks ---- */

/* targets_needed - whether a new chunk that is being made is in a box. */
static bool targets_needed(const struct pass *p, const struct grid_box *over)
{
	uint64_t at[DS_RANK_MAX];

	memcpy(at, over->lo, sizeof(at));
	do {
		const uint32_t i = rechunk_run_at(&p->run, p->a->rank, at);

		if (i != UINT32_MAX && p->targets[i].data)
			return true;
	} while (grid_next(p->a->rank, over, at));
	return false;
}

/* targets_drop_over - an inner chunk cannot be read: nor can the new chunks in this box. */
static void targets_drop_over(struct pass *p, const struct grid_box *over, const struct err *e)
{
	uint64_t at[DS_RANK_MAX];

	memcpy(at, over->lo, sizeof(at));
	do {
		const uint32_t i = rechunk_run_at(&p->run, p->a->rank, at);

		if (i != UINT32_MAX)
			target_drop(p, i, e);
	} while (grid_next(p->a->rank, over, at));
}

/* targets_copy - copy an inner chunk's elements to the new chunks in a box. */
static void targets_copy(const struct pass *p, const uint64_t *coords,
			 const struct grid_box *over, const uint8_t *in)
{
	const uint32_t rank = p->a->rank;
	struct grid_box src, dst, both;
	uint64_t at[DS_RANK_MAX];

	grid_chunk(rank, p->in->shape, p->in->chunk, coords, &src);
	memcpy(at, over->lo, sizeof(at));
	do {
		const struct grid_block from = {src.lo, p->in->chunk},
					to = {dst.lo, p->a->chunk};
		const uint32_t i = rechunk_run_at(&p->run, rank, at);

		if (i == UINT32_MAX || !p->targets[i].data)
			continue;
		grid_chunk(rank, p->a->shape, p->a->chunk, at, &dst);
		if (grid_both(rank, &src, &dst, &both))
			grid_copy(rank, p->a->type.size, &both, &from, in, &to,
				  p->targets[i].data);
	} while (grid_next(rank, over, at));
}

/* inner_fetch - one decoded inner chunk, in *ret_span or in p->room. Returns 1; 0: it was never
 * written. */
static int inner_fetch(struct pass *p, uint64_t linear, struct span *ret_span,
		       const uint8_t **ret, struct err *e)
{
	const size_t len = (size_t)p->in->chunk_bytes;
	size_t got = 0;
	int rc = chunkio_read(p->r->io, p->array, linear, 0, len, p->room, ret_span, e);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	metrics_count(M_RECHUNK_READS);
	*ret = ret_span->mem;
	if (ret_span->mem && ret_span->len == len)
		return 1;
	rc = span_fetch(ret_span, p->room, len, &got, e);
	if (rc == 0 && got != len)
		rc = err_set(e, -EIO, "a chunk has %zu bytes instead of %zu", got, len);
	*ret = p->room;
	return rc < 0 ? rc : 1;
}

/* ends_all - errors that are not about one chunk. */
static bool ends_all(int rc)
{
	return rc == -ESTALE || rc == -EINTR || err_is_transient(rc);
}

/* inner_scatter - give the elements of one inner chunk to the new chunks that overlap it. */
static int inner_scatter(struct pass *p, const uint64_t *coords, struct err *e)
{
	struct grid_box over, inside;
	struct span span = {.fd = -1};
	const uint8_t *in = NULL;
	int rc;

	rechunk_over(p->a, p->in, coords, &over);
	if (!grid_both(p->a->rank, &over, &p->run.box, &inside) || !targets_needed(p, &inside))
		return 0;
	rc = inner_fetch(p, ds_chunk_linear(p->in, coords), &span, &in, e);
	if (rc == 1)
		targets_copy(p, coords, &inside, in);
	span_done(&span);
	if (rc >= 0)
		return 0;
	rc = rechunk_where(rc, e);
	if (ends_all(rc))
		return rc;
	targets_drop_over(p, &inside, e);
	return 0;
}

/* inner_want - tell a remote inner source which of its chunks, at most n, follow `at` in a box.
 * Moves `at` on; *ret_more: the box goes on. */
static void inner_want(struct rechunk *r, uint32_t array, const struct grid_box *box,
		       uint64_t *at, uint32_t n, bool *ret_more)
{
	const struct ds_array *in = &r->inner->ds.arrays[array];
	uint64_t list[2 * WANT_STEP];
	uint32_t k = 0;

	while (*ret_more && k < n && k < ARRAY_LEN(list)) {
		list[k++] = ds_chunk_linear(in, at);
		*ret_more = grid_next(in->rank, box, at);
	}
	if (k > 0)
		source_want(r->inner, array, list, k);
}

/* pass_walk - the pass itself. */
static int pass_walk(struct pass *p, struct err *e)
{
	const struct grid_box *box = &p->run.inner;
	uint64_t at[DS_RANK_MAX], want[DS_RANK_MAX];
	bool more = p->r->inner->remote;
	uint64_t n = 0, there = 0;
	int rc = 0;

	memcpy(at, box->lo, sizeof(at));
	memcpy(want, box->lo, sizeof(want));
	inner_want(p->r, p->array, box, want, WANT_STEP, &more);
	do {
		if (n++ % WANT_STEP == 0)
			inner_want(p->r, p->array, box, want, WANT_STEP, &more);
		if (cancel_requested())
			return err_set(e, -EINTR, "cancelled");
		if (!rechunk_missing(p->r, p->array, ds_chunk_linear(p->in, at), &there))
			rc = inner_scatter(p, at, e);
	} while (rc == 0 && p->live > 0 && grid_next(p->in->rank, box, at));
	return rc;
}

/* ---- a pass ---- */

/* run_pass - fill the targets; those that fail are dropped. */
static void run_pass(struct pass *p)
{
	struct err e = ERR_INIT;
	int rc;

	p->room = malloc((size_t)p->in->chunk_bytes);
	rc = p->room ? pass_walk(p, &e) : err_nomem(&e);
	/* elements of a file that was changed are neither good nor bad */
	rc = rc ? rc : source_check(p->r->inner, &e);
	if (rc < 0)
		for (uint32_t i = 0; i < p->run.n; i++)
			target_drop(p, i, &e);
	free(p->room);
}

/* pass_lead - make the run of a chunk. x: its entry in flight; or NULL, and out is its memory.
 * Returns 0 with the reference to x still held; on error it is dropped. */
static int pass_lead(struct pass *p, struct cache_entry *x, uint8_t *out, struct err *e)
{
	struct rechunk_shared *s = p->r->shared;
	const uint64_t bytes = p->run.n * (p->a->chunk_bytes + RECHUNK_ENTRY);
	auto_free struct target *targets = alloc_array(p->run.n, sizeof(*targets));
	int rc = targets ? reserve(s, bytes, e) : err_nomem(e);

	if (rc < 0) {
		if (x)
			cache_fail(x, e);
		return rc;
	}
	p->targets = targets;
	if (!x)
		begin_target(p, p->own, NULL, out);
	else if (begin_entry(p, p->own, x) == 0)
		claim_others(p);
	if (p->live > 0)
		run_pass(p);
	targets_publish(p);
	unreserve(s, bytes);
	if (targets[p->own].data)
		return 0;
	*e = p->failed;
	return p->failed.code;
}

/* led_locked - whether another thread assembles a run. */
static bool led_locked(const struct rechunk *r, const struct rechunk_leader *me)
{
	for (const struct rechunk_leader *x = r->leaders; x; x = x->next)
		if (x->array == me->array && x->linear == me->linear)
			return true;
	return false;
}

/* enter - become the leader of a run, after another one has assembled it. */
static int enter(struct pass *p, struct rechunk_leader *me, struct err *e)
{
	uint64_t coords[DS_RANK_MAX];
	struct rechunk *r = p->r;
	int rc = 0;
	LOCK_SCOPE(&r->shared->lock);

	me->array = p->array;
	me->linear = rechunk_run_linear(&p->run, p->a, 0, coords);
	while (rc == 0 && led_locked(r, me))
		rc = cancel_wait(&r->shared->freed, &r->shared->lock);
	if (rc < 0)
		return err_set(e, rc, "cancelled");
	me->next = r->leaders;
	r->leaders = me;
	return 0;
}

static void leave(struct rechunk *r, const struct rechunk_leader *me)
{
	struct rechunk_leader **at = &r->leaders;
	LOCK_SCOPE(&r->shared->lock);

	while (*at != me)
		at = &(*at)->next;
	*at = me->next;
	(void)pthread_cond_broadcast(&r->shared->freed);
}

/* get_or_lead - a new chunk from the cache, or made with its run. Returns 0 with a reference. */
static int get_or_lead(struct pass *p, uint64_t linear, struct cache_entry **ret, struct err *e)
{
	int rc = cache_get(p->r->made, p->array, linear, ret, e);

	return rc == CACHE_LOAD ? pass_lead(p, *ret, NULL, e) : rc;
}

/* from_cache - copy a new chunk that is in the cache, or that is made with its run. A thread waits
 * for the leader of its run before it has a flight of its own: else that leader could not claim the
 * chunk, and it would take another pass. */
static int from_cache(struct pass *p, uint64_t linear, uint8_t *out, size_t len, struct err *e)
{
	struct rechunk_leader me;
	struct cache_entry *x;
	size_t size;
	int rc;

	if (cache_has(p->r->made, p->array, linear)) {
		rc = get_or_lead(p, linear, &x, e);
	} else {
		rc = enter(p, &me, e);
		if (rc < 0)
			return rc;
		rc = get_or_lead(p, linear, &x, e);
		leave(p->r, &me);
	}
	if (rc < 0)
		return rc;
	memcpy(out, cache_data(x, &size), len);
	cache_handed(x, 0, len); /* the caller keeps it */
	cache_put(x);
	return 0;
}

int rechunk_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		       size_t len, struct err *e)
{
	struct rechunk *r = rechunk_of(s);
	struct pass p = {.r = r,
			 .array = array,
			 .in = &r->inner->ds.arrays[array],
			 .a = &s->ds.arrays[array],
			 .failed = ERR_INIT};
	uint64_t coords[DS_RANK_MAX] = {0};
	struct err own = ERR_INIT;
	int rc;

	if (!r->arrays[array].changed)
		return source_read_chunk(r->inner, array, linear, out, len, e);
	rechunk_run_of(p.in, p.a, linear, r->shared->run_bytes, &p.run);
	ds_chunk_coords(p.a, linear, coords);
	p.own = rechunk_run_at(&p.run, p.a->rank, coords);
	/* a chunk that is alone is kept by the caller only */
	rc = p.run.n > 1 ? from_cache(&p, linear, out, len, &own)
			 : pass_lead(&p, NULL, out, &own);
	if (rc < 0 && e)
		*e = own;
	return rc;
}
