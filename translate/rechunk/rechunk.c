/* SPDX-License-Identifier: BSD-3-Clause */
/* rechunk.c - opens and closes a rechunked source, and has its table of operations. */
#include "translate/rechunk/rechunk.h"

#include <errno.h>
#include <string.h>

#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "translate/rechunk/rechunk_int.h"

#define MADE_PART 4   /* of memory: assembled chunks, including those of runs */
#define INNER_PART 16 /* decoded chunks of inner sources */

struct rechunk_shared *rechunk_shared_new(uint64_t memory)
{
	struct rechunk_shared *s = alloc_array(1, sizeof(*s));

	if (!s)
		return NULL;
	s->made_bytes = memory / MADE_PART;
	s->run_bytes = memory / RECHUNK_RUN_PART;
	s->inner_bytes = memory / INNER_PART;
	(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&s->freed);
	s->made = cache_pool_new(s->made_bytes);
	s->inner = chunkio_shared_new(s->inner_bytes);
	if (s->made && s->inner)
		return s;
	rechunk_shared_free(s);
	return NULL;
}

void rechunk_shared_free(struct rechunk_shared *s)
{
	if (!s)
		return;
	cache_pool_free(s->made);
	chunkio_shared_free(s->inner);
	(void)pthread_cond_destroy(&s->freed);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* make_plans - all inner arrays as elements. Chunks that were never written are absent. */
static int make_plans(struct rechunk *r, struct err *e)
{
	const struct dataset *ds = &r->inner->ds;

	r->plans = alloc_array(ds->n_arrays, sizeof(*r->plans));
	if (!r->plans)
		return err_nomem(e);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[i];

		r->plans[i].kind = !r->arrays[i].changed  ? PLAN_HIDE
				   : dt_is_vlen(&a->type) ? PLAN_VLEN
							  : PLAN_DECODE;
		r->plans[i].fill_declared = true;
	}
	return 0;
}

/* make_io - the caches, and what decodes chunks of the inner source. */
static int make_io(struct rechunk *r, const struct rechunk_options *opts, struct err *e)
{
	const struct chunkio_options io = {
		.cache_bytes = opts->shared->inner_bytes,
		.shared = opts->shared->inner,
		.threads = opts->threads,
		.ahead = 2 * opts->threads,
		.uncounted = true,
	};
	int rc = make_plans(r, e);

	if (rc < 0)
		return rc;
	r->made = cache_new(opts->shared->made_bytes);
	if (!r->made)
		return err_nomem(e);
	cache_join(r->made, opts->shared->made);
	cache_of_remote(r->made); /* a run may take long: readers that wait can be cancelled */
	return chunkio_new(r->inner, r->plans, &io, &r->io, e);
}

/* rechunk_free - all but the inner source. */
static void rechunk_free(struct rechunk *r)
{
	chunkio_free(r->io);
	cache_free(r->made);
	free(r->plans);
	for (uint32_t i = 0; r->arrays && i < r->base.ds.n_arrays; i++)
		rechunk_present_free(atomic_load(&r->arrays[i].present));
	free(r->arrays);
	arena_release(&r->base.ds.arena);
	free(r);
}

/* take_inner - the wrapper is in the metrics of open sources in place of the inner source. */
static void take_inner(struct rechunk *r)
{
	struct source *in = r->inner;

	r->base.shown = steal(&in->shown);
	r->base.model_bytes = in->model_bytes;
	if (!r->base.shown)
		return;
	r->base.model_bytes += r->base.ds.arena.used;
	metrics_gauge_add(G_MEM_MODEL, (int64_t)r->base.ds.arena.used);
}

int rechunk_open(struct source *inner, const struct rechunk_options *opts, struct source **ret,
		 struct err *e)
{
	struct rechunk *r = alloc_array(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e);
	r->base.ops = &rechunk_source_ops;
	r->inner = inner;
	r->shared = opts->shared;
	r->base.remote = inner->remote;
	r->base.unlisted = inner->unlisted;
	r->base.cancels = true;
	arena_init(&r->base.ds.arena, (size_t)u64_min(opts->source->max_meta_bytes, SIZE_MAX));
	rc = rechunk_model(r, opts, e);
	if (rc > 0)
		rc = make_io(r, opts, e);
	else if (rc == 0)
		rc = 1; /* the dataset is the inner one */
	if (rc != 0) {
		rechunk_free(r);
		if (rc > 0)
			*ret = inner;
		return rc < 0 ? rc : 0;
	}
	take_inner(r);
	*ret = &r->base;
	return 0;
}

const struct source *rechunk_inner(const struct source *s)
{
	return s->ops == &rechunk_source_ops ? rechunk_of((struct source *)(uintptr_t)s)->inner : s;
}

/* ---- operations that are the inner source's ---- */

static void rechunk_close(struct source *s)
{
	struct rechunk *r = rechunk_of(s);
	struct source *inner = r->inner;

	rechunk_free(r);
	source_close(inner);
}

static int rechunk_read_stored(struct source *s, uint32_t array, uint64_t linear,
			       const struct chunk_ref *ref, uint64_t off, uint8_t *out,
			       size_t len, struct err *e)
{
	return source_read_stored(rechunk_of(s)->inner, array, linear, ref, off, out, len, e);
}

static int rechunk_place(struct source *s, uint32_t array, uint64_t linear,
			 const struct chunk_ref *ref, struct store_place *ret, struct err *e)
{
	return source_place(rechunk_of(s)->inner, array, linear, ref, ret, e);
}

static int rechunk_fd(struct source *s, uint32_t blob)
{
	return source_fd(rechunk_of(s)->inner, blob);
}

/* rechunk_want - a pass announces the inner chunks of changed arrays itself. */
static void rechunk_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n)
{
	struct rechunk *r = rechunk_of(s);

	if (!r->arrays[array].changed)
		source_want(r->inner, array, linear, n);
}

/* rechunk_forget - inner chunks of changed arrays were read again by then. */
static void rechunk_forget(struct source *s, uint32_t array, uint64_t linear)
{
	struct rechunk *r = rechunk_of(s);

	if (!r->arrays[array].changed)
		(void)source_forget(r->inner, array, linear);
}

static int rechunk_check(struct source *s, struct err *e)
{
	return source_check(rechunk_of(s)->inner, e);
}

static int rechunk_poll(struct source *s, struct err *e)
{
	return source_poll(rechunk_of(s)->inner, e);
}

static void rechunk_hold(struct source *s, bool on)
{
	source_hold(rechunk_of(s)->inner, on);
}

const struct source_ops rechunk_source_ops = {
	.name = "rechunk",
	.close = rechunk_close,
	.locate = rechunk_locate,
	.next = rechunk_next,
	.read_chunk = rechunk_read_chunk,
	.read_vlen = rechunk_read_vlen,
	.read_stored = rechunk_read_stored,
	.place = rechunk_place,
	.fd = rechunk_fd,
	.want = rechunk_want,
	.forget = rechunk_forget,
	.check = rechunk_check,
	.poll = rechunk_poll,
	.hold = rechunk_hold,
};
