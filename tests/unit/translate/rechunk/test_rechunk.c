/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of other shapes: which are made together, what they hold, which exist, what a damaged
 * chunk of the source does, and limits. */
#include "translate/rechunk/rechunk_int.h"

#include <sched.h>

#include "base/os/cancel.h"
#include "tests/unit/translate/diff/diff_fake.h"

#define MIB ((uint64_t)1 << 20)

static bool listed_less; /* source_next of `ops` is not to be used */
static struct cancel *cancelled;
static struct rechunk_shared *watched; /* its limit must hold whenever a chunk is read */
static _Atomic int reads, locates;

static int counting_read(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
			 size_t len, struct err *e)
{
	atomic_fetch_add(&reads, 1);
	if (watched) {
		(void)pthread_mutex_lock(&watched->lock);
		assert_true(watched->assembling > 0 &&
			    (watched->assembling <= watched->run_bytes ||
			     watched->assembling == 60 * 2 + RECHUNK_ENTRY));
		(void)pthread_mutex_unlock(&watched->lock);
	}
	if (cancelled)
		cancel_request(cancelled);
	return fake_read_chunk(s, array, linear, out, len, e);
}

static int counting_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
			 struct err *e)
{
	atomic_fetch_add(&reads, 1);
	return fake_read_vlen(s, array, linear, out, e);
}

static int maybe_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
		      struct err *e)
{
	assert_false(listed_less);
	return fake_next(s, array, from, ret, e);
}

static int counting_locate(struct source *s, uint32_t array, uint64_t linear,
			   struct chunk_ref *ret, struct err *e)
{
	atomic_fetch_add(&locates, 1);
	return fake_locate(s, array, linear, ret, e);
}

static void no_close(struct source *s)
{
	(void)s;
}

static const struct source_ops ops = {
	.name = "counting",
	.close = no_close,
	.locate = counting_locate,
	.next = maybe_next,
	.read_chunk = counting_read,
	.read_vlen = counting_vlen,
	.read_stored = fake_read_stored,
};

/* fx - an inner source, and the same in other chunks. */
struct fx {
	struct model *m;
	struct rechunk_shared *shared;
	struct source_options limits;
	struct source *s;
};

/* cube - an inner source with x(t, u, v), which only it can decode. */
static void cube(struct fx *f, const uint64_t *shape, const uint64_t *chunk)
{
	static const char *const names[] = {"t", "u", "v"};
	uint32_t d[3];

	*f = (struct fx){.m = model_new(),
			 .limits = {.max_chunk_bytes = (uint64_t)1 << 32,
				    .max_index_bytes = MIB,
				    .max_meta_bytes = MIB}};
	f->m->base.ops = &ops;
	for (uint32_t i = 0; i < 3; i++)
		d[i] = dim(f->m, 0, names[i], shape[i], false);
	(void)array(f->m, 0, "x", 3, d, chunk);
	f->m->arrays[0].access = DS_CONVERT;
	f->m->value[0] = 100;
	atomic_store(&reads, 0);
}

static int try_open(struct fx *f, uint64_t memory, const char *rule, struct err *e)
{
	const struct rechunk_options opts = {.rules = &rule,
					     .n_rules = 1,
					     .shared = f->shared = rechunk_shared_new(memory),
					     .source = &f->limits};

	assert_non_null(f->shared);
	return rechunk_open(&f->m->base, &opts, &f->s, e);
}

static void open_with(struct fx *f, uint64_t memory, const char *rule)
{
	struct err e = ERR_INIT;

	assert_int_equal(try_open(f, memory, rule, &e), 0);
	assert_ptr_equal(rechunk_inner(f->s), &f->m->base);
}

static void end(struct fx *f)
{
	source_close(f->s);
	rechunk_shared_free(f->shared);
	model_free(f->m);
}

/* expect_chunk - whether out holds what chunk `linear` has to. */
static void expect_chunk(const struct fx *f, const struct ds_array *a, uint64_t linear,
			 const int16_t *out)
{
	const struct ds_array *in = &f->m->arrays[0];
	uint64_t coords[DS_RANK_MAX], at[DS_RANK_MAX], n = a->chunk_bytes / 2;

	for (uint64_t i = 0; i < n; i++) {
		const int64_t where = place(a, linear, i);
		int16_t want = -7;

		if (where >= 0) {
			grid_coords(3, a->shape, (uint64_t)where, at);
			for (uint32_t d = 0; d < 3; d++)
				coords[d] = at[d] / in->chunk[d];
			if (!f->m->absent[0][ds_chunk_linear(in, coords)])
				want = (int16_t)(100 + where);
		}
		assert_int_equal(out[i], want);
	}
}

/* read_all - all chunks in order, compared. */
static void read_all(const struct fx *f)
{
	const struct ds_array *a = &f->s->ds.arrays[0];
	int16_t *out = malloc((size_t)a->chunk_bytes);
	struct err e = ERR_INIT;

	for (uint64_t i = 0; i < a->n_chunks; i++) {
		assert_int_equal(source_read_chunk(f->s, 0, i, (uint8_t *)out,
						   (size_t)a->chunk_bytes, &e),
				 0);
		expect_chunk(f, a, i, out);
	}
	free(out);
}

/* ---- bands ---- */

/* run_covers - whether every inner chunk below a new chunk is in the run's box. */
static void run_covers(const struct ds_array *in, const struct ds_array *a,
		       const struct rechunk_run *run, const uint64_t *coords)
{
	struct grid_box over;

	rechunk_over(in, a, coords, &over);
	for (uint32_t d = 0; d < a->rank; d++) {
		assert_true(run->inner.lo[d] <= over.lo[d] && over.hi[d] <= run->inner.hi[d]);
		assert_true(run->box.lo[d] <= coords[d] && coords[d] < run->box.hi[d]);
	}
}

static void test_runs(void **state)
{
	static const struct {
		uint64_t shape[3], chunk[3];
		const char *rule;
		uint64_t memory;
		uint64_t passes; /* of the first band */
	} rows[] = {
		{{30, 20, 10}, {1, 20, 10}, "t=all,u=5,v=5", MIB, 1},
		{{30, 20, 10}, {1, 20, 10}, "t=all,u=5,v=5", 8 * 3 * (1500 + 256), 3},
		{{30, 20, 10}, {1, 20, 10}, "t=all,u=5,v=5", 64, 8},
		{{30, 20, 10}, {30, 3, 3}, "t=1,u=all,v=all", MIB, 1},
		{{30, 20, 10}, {30, 3, 3}, "t=1,u=all,v=all", 8 * 7 * (400 + 256), 5},
		{{30, 20, 10}, {7, 3, 10}, "t=4,u=5,v=3", MIB, 1},
		{{30, 20, 10}, {4, 5, 3}, "t=7,u=3,v=10", 4096, 2},
		{{1, 1, 1}, {1, 1, 1}, "t=1", MIB, 1},
		{{5, 1, 7}, {5, 1, 7}, "t=1,v=1", MIB, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t coords[DS_RANK_MAX], back[DS_RANK_MAX], band;
		struct rechunk_run run, again;
		const struct ds_array *in, *a;
		uint64_t bytes;
		struct fx f;

		cube(&f, rows[i].shape, rows[i].chunk);
		assert_int_equal(try_open(&f, rows[i].memory, rows[i].rule, NULL), 0);
		in = &f.m->arrays[0];
		a = &f.s->ds.arrays[0];
		bytes = f.shared->run_bytes;
		assert_int_equal(rechunk_passes(in, a, bytes, &band), rows[i].passes);
		for (uint64_t n = 0; n < a->n_chunks; n++) {
			rechunk_run_of(in, a, n, bytes, &run);
			ds_chunk_coords(a, n, coords);
			assert_true(run.n > 0 && rechunk_run_at(&run, 3, coords) < run.n);
			assert_true(run.n == 1 || run.n * a->chunk_bytes <= bytes);
			for (uint32_t k = 0; k < run.n; k++) {
				uint64_t other = rechunk_run_linear(&run, a, k, back);

				assert_int_equal(rechunk_run_at(&run, 3, back), k);
				run_covers(in, a, &run, back);
				/* all chunks of a run have the same run */
				rechunk_run_of(in, a, other, bytes, &again);
				assert_int_equal(again.first, run.first);
				assert_memory_equal(again.band.lo, run.band.lo, 24);
			}
		}
		end(&f);
	}
}

/* ---- elements ---- */

static void test_elements(void **state)
{
	static const char *const rules[] = {"t=all,u=4,v=3", "t=7,u=all,v=2", "t=2,v=all",
					    "t=5,u=7,v=4",   "x,t=11",        "t=1,u=1,v=1"};
	static const uint64_t shape[] = {23, 12, 9}, chunk[] = {3, 5, 9};
	static const uint64_t memory[] = {256, 20000, 100 * MIB};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		for (size_t k = 0; k < ARRAY_LEN(memory); k++) {
			struct fx f;

			cube(&f, shape, chunk);
			for (uint32_t n = 0; n < f.m->arrays[0].n_chunks; n += 3)
				f.m->absent[0][n] = true;
			open_with(&f, memory[k], rules[i]);
			read_all(&f);
			read_all(&f);
			end(&f);
		}
}

/* test_any_shape - shapes, chunks, rules, memory and absent chunks in no order. */
static void test_any_shape(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int k = 0; k < 300; k++) {
		uint64_t shape[3], chunk[3], n[8];
		char rule[64];
		struct fx f;

		for (size_t i = 0; i < ARRAY_LEN(n); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			n[i] = seed >> 33;
		}
		for (size_t i = 0; i < 3; i++) {
			shape[i] = 1 + n[i] % (i == 2 ? 5 : 10); /* up to MAX_CHUNKS */
			chunk[i] = 1 + n[i] / 16 % shape[i];
		}
		(void)snprintf(rule, sizeof(rule), "t=%d,u=%d,v=%d", (int)(1 + n[3] % 13),
			       (int)(1 + n[4] % 13), (int)(1 + n[5] % 6));
		cube(&f, shape, chunk);
		for (size_t i = 0; n[6] % 3 > 0 && i < f.m->arrays[0].n_chunks; i++)
			f.m->absent[0][i] = i * n[7] % 5 < n[6] % 3;
		assert_int_equal(try_open(&f, 64 << n[7] % 12, rule, NULL), 0);
		if (rechunk_inner(f.s) != f.s)
			read_all(&f);
		end(&f);
	}
}

static void test_decodes_once(void **state)
{
	static const uint64_t shape[] = {40, 12, 10}, chunk[] = {1, 12, 10};
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	open_with(&f, 100 * MIB, "t=all,u=4,v=5");
	assert_int_equal(f.s->ds.n_notes, 0);
	read_all(&f);
	assert_int_equal(atomic_load(&reads), 40);
	end(&f);
	/* two of six new chunks at a time: three passes */
	cube(&f, shape, chunk);
	open_with(&f, 8 * 2 * (1600 + RECHUNK_ENTRY), "t=all,u=4,v=5");
	assert_int_equal(f.s->ds.n_notes, 1);
	assert_non_null(
		strstr(f.s->ds.notes[0], "'/x' decodes each chunk of the source 3 times"));
	read_all(&f);
	assert_int_equal(atomic_load(&reads), 120);
	end(&f);
	/* shorter chunks across those of the source */
	cube(&f, shape, (const uint64_t[]){10, 12, 10});
	open_with(&f, 100 * MIB, "t=3");
	read_all(&f);
	assert_int_equal(atomic_load(&reads), 4);
	end(&f);
}

/* several - threads that read all chunks at the same time, each from another one on. */
struct several {
	struct fx *f;
	uint64_t first;
};

static void *read_from(void *arg)
{
	const struct several *x = arg;
	const struct ds_array *a = &x->f->s->ds.arrays[0];
	int16_t *out = malloc((size_t)a->chunk_bytes);

	for (uint64_t i = 0; i < a->n_chunks; i++) {
		const uint64_t n = (i + x->first) % a->n_chunks;

		if (source_read_chunk(x->f->s, 0, n, (uint8_t *)out, (size_t)a->chunk_bytes,
				      NULL) < 0)
			abort();
		expect_chunk(x->f, a, n, out);
	}
	free(out);
	return NULL;
}

/* SEMANTICS B6 */
static void test_threads(void **state)
{
	static const uint64_t shape[] = {16, 12, 10}, chunk[] = {4, 3, 10};
	static const uint64_t memory[] = {2000, 9000, MIB};
	pthread_t t[4];
	struct several x[4];

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(memory); k++) {
		struct fx f;

		cube(&f, shape, chunk);
		open_with(&f, memory[k], "t=5,u=4,v=3");
		watched = f.shared;
		for (size_t i = 0; i < ARRAY_LEN(t); i++) {
			x[i] = (struct several){&f, i * 11};
			assert_int_equal(pthread_create(&t[i], NULL, read_from, &x[i]), 0);
		}
		for (size_t i = 0; i < ARRAY_LEN(t); i++)
			(void)pthread_join(t[i], NULL);
		assert_int_equal(f.shared->assembling, 0);
		watched = NULL;
		end(&f);
	}
}

/* one_chunk - reads one chunk once all threads are there. */
struct one_chunk {
	struct fx *f;
	pthread_barrier_t *start;
	uint64_t linear;
};

static void *read_one(void *arg)
{
	const struct one_chunk *x = arg;
	const struct ds_array *a = &x->f->s->ds.arrays[0];
	int16_t out[1600];

	(void)pthread_barrier_wait(x->start);
	if (source_read_chunk(x->f->s, 0, x->linear, (uint8_t *)out, (size_t)a->chunk_bytes,
			      NULL) < 0)
		abort();
	expect_chunk(x->f, a, x->linear, out);
	return NULL;
}

/* take_room - as another run would; give_room - as when it ends, once threads wait for it. */
static void take_room(struct rechunk_shared *s)
{
	s->assembling = s->run_bytes;
}

static void give_room(struct fx *f)
{
	struct rechunk *r = rechunk_of(f->s);
	struct cache_stats stats = {.entries = 0};

	while (stats.entries == 0)
		cache_stats(r->made, &stats);
	for (int i = 0; i < 200; i++) /* most of the others come, too */
		(void)sched_yield();
	(void)pthread_mutex_lock(&f->shared->lock);
	f->shared->assembling = 0;
	(void)pthread_cond_broadcast(&f->shared->freed);
	(void)pthread_mutex_unlock(&f->shared->lock);
}

/* test_one_pass - threads that need chunks of one run at the same time share a pass. */
static void test_one_pass(void **state)
{
	static const uint64_t shape[] = {40, 12, 10}, chunk[] = {1, 12, 10};

	(void)state;
	for (int k = 0; k < 50; k++) {
		struct one_chunk x[6];
		pthread_barrier_t start;
		pthread_t t[6];
		struct fx f;

		cube(&f, shape, chunk);
		/* decoded chunks of the source do not fit their part of it */
		open_with(&f, 96000, "t=all,u=4,v=5");
		take_room(f.shared);
		(void)pthread_barrier_init(&start, NULL, ARRAY_LEN(t));
		for (size_t i = 0; i < ARRAY_LEN(t); i++) {
			x[i] = (struct one_chunk){&f, &start, i};
			assert_int_equal(pthread_create(&t[i], NULL, read_one, &x[i]), 0);
		}
		give_room(&f);
		for (size_t i = 0; i < ARRAY_LEN(t); i++)
			(void)pthread_join(t[i], NULL);
		(void)pthread_barrier_destroy(&start);
		assert_int_equal(atomic_load(&reads), 40);
		end(&f);
	}
}

/* ---- existing chunks ---- */

static void expect_present(const struct fx *f, uint64_t n, bool there)
{
	struct chunk_ref ref;

	assert_int_equal(source_locate(f->s, 0, n, &ref, NULL), 0);
	assert_int_equal(ref.where, there ? CHUNK_SYNTH : CHUNK_ABSENT);
}

static void test_absent(void **state)
{
	static const uint64_t shape[] = {12, 6, 4}, chunk[] = {2, 6, 4};
	uint64_t next = 0;
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	memset(f.m->absent[0], true, sizeof(f.m->absent[0]));
	f.m->absent[0][3] = false;     /* t is 6 or 7 */
	open_with(&f, MIB, "t=4,u=2"); /* 3 by 3 chunks */
	assert_int_equal(source_next(f.s, 0, 0, &next, NULL), 0);
	assert_int_equal(next, 3);
	assert_int_equal(source_next(f.s, 0, 5, &next, NULL), 0);
	assert_int_equal(next, 5);
	assert_int_equal(source_next(f.s, 0, 6, &next, NULL), -ENOENT);
	for (uint64_t n = 0; n < 9; n++)
		expect_present(&f, n, n >= 3 && n < 6);
	read_all(&f);
	assert_int_equal(atomic_load(&reads), 1);
	end(&f);
}

/* test_sparse - a new chunk over many inner chunks that do not exist costs those that do. */
static void test_sparse(void **state)
{
	static const uint64_t shape[] = {100, 2, 2}, chunk[] = {1, 1, 1};
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	memset(f.m->absent[0], true, sizeof(f.m->absent[0]));
	f.m->absent[0][70] = f.m->absent[0][301] = false;
	open_with(&f, MIB, "t=all,u=all,v=all");
	atomic_store(&locates, 0);
	read_all(&f);
	assert_int_equal(atomic_load(&reads), 2);
	assert_int_equal(atomic_load(&locates), 2);
	end(&f);
}

static void test_unlisted(void **state)
{
	static const uint64_t shape[] = {12, 6, 4}, chunk[] = {2, 6, 4};
	uint64_t next = 0;
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	memset(f.m->absent[0], true, sizeof(f.m->absent[0]));
	f.m->absent[0][3] = false;
	f.m->base.unlisted = true;
	listed_less = true;
	open_with(&f, MIB, "t=4,u=2");
	assert_true(f.s->unlisted);
	assert_int_equal(source_next(f.s, 0, 7, &next, NULL), 0);
	assert_int_equal(next, 7); /* any may exist */
	for (uint64_t n = 0; n < 9; n++)
		expect_present(&f, n, n >= 3 && n < 6);
	end(&f);
	listed_less = false;
}

/* ---- damage, cancellation ---- */

static void test_damage(void **state)
{
	static const uint64_t shape[] = {12, 6, 4}, chunk[] = {2, 6, 4};
	struct err e = ERR_INIT;
	int16_t out[96];
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	f.m->bad[0][3] = true; /* t is 6 or 7 */
	open_with(&f, MIB, "t=1,u=2");
	for (uint64_t n = 0; n < f.s->ds.arrays[0].n_chunks; n++) {
		const bool bad = n / 3 == 6 || n / 3 == 7;
		int rc = source_read_chunk(f.s, 0, n, (uint8_t *)out, 16, &e);

		assert_int_equal(rc, bad ? -EBADMSG : 0);
		if (bad)
			assert_string_equal(e.msg, "source: '/x' chunk 3.0.0: damaged");
		else
			expect_chunk(&f, &f.s->ds.arrays[0], n, out);
	}
	end(&f);
	/* in one run, the new chunks next to those that fail are made */
	cube(&f, shape, (const uint64_t[]){4, 6, 4});
	f.m->bad[0][1] = true; /* t is 4 to 7 */
	open_with(&f, MIB, "t=3");
	for (uint64_t n = 0; n < 4; n++) {
		int rc = source_read_chunk(f.s, 0, n, (uint8_t *)out, 144, &e);

		assert_int_equal(rc, n == 1 || n == 2 ? -EBADMSG : 0);
	}
	assert_int_equal(f.shared->assembling, 0);
	end(&f);
}

static void test_cancel(void **state)
{
	static const uint64_t shape[] = {12, 6, 4}, chunk[] = {2, 6, 4};
	struct err e = ERR_INIT;
	struct cancel stop;
	uint8_t out[96];
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	open_with(&f, MIB, "t=all,u=1");
	assert_true(f.s->cancels);
	cancel_begin(&stop);
	cancelled = &stop;
	assert_int_equal(source_read_chunk(f.s, 0, 0, out, 96, &e), -EINTR);
	assert_int_equal(atomic_load(&reads), 1); /* and no further one */
	cancelled = NULL;
	cancel_end(&stop);
	read_all(&f);
	end(&f);
}

/* ---- the model ---- */

static void test_limits(void **state)
{
	static const uint64_t shape[] = {3000, 60, 40}, chunk[] = {2, 60, 40};
	struct err e = ERR_INIT;
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	f.limits.max_chunk_bytes = MIB;
	assert_int_equal(try_open(&f, MIB, "t=all", &e), -ERANGE);
	assert_string_equal(e.msg, "-o rechunk: use smaller lengths: array 'x': a chunk of "
				   "14400000 bytes exceeds max_chunk=1048576");
	rechunk_shared_free(f.shared);
	f.limits.keep_going = true;
	f.s = NULL;
	assert_int_equal(try_open(&f, MIB, "t=all", &e), 0);
	assert_int_equal(f.s->ds.n_notes, 1);
	assert_string_equal(f.s->ds.notes[0],
			    "'/x': it keeps its chunks: -o rechunk: use smaller lengths: array "
			    "'x': a chunk of 14400000 bytes exceeds max_chunk=1048576");
	assert_int_equal(f.s->ds.arrays[0].chunk[0], 2);
	source_close(f.s);
	rechunk_shared_free(f.shared);
	f.limits.keep_going = false;
	f.limits.max_index_bytes = 64;
	assert_int_equal(try_open(&f, MIB, "t=1", &e), -ERANGE);
	assert_string_equal(e.msg,
			    "-o rechunk: use larger lengths: array 'x' would have 3000 "
			    "chunks, and the index of a variable holds 512 (a quarter of "
			    "memory=)");
	rechunk_shared_free(f.shared);
	/* products that do not fit 64 bits */
	f.m->dims[0].unlimited = f.m->dims[1].unlimited = f.m->dims[2].unlimited = true;
	f.limits.max_chunk_bytes = UINT64_MAX;
	assert_int_equal(try_open(&f, MIB, "t=1099511627776,u=1099511627776", &e), -ERANGE);
	rechunk_shared_free(f.shared);
	model_free(f.m);
}

static void test_passes_through(void **state)
{
	static const uint64_t shape[] = {12, 6, 4}, chunk[] = {2, 6, 4};
	const struct ds_array *a;
	struct chunk_ref ref;
	struct fx f;
	uint32_t d[] = {1};

	(void)state;
	cube(&f, shape, chunk);
	(void)array(f.m, 0, "y", 1, d, (const uint64_t[]){2});
	open_with(&f, MIB, "t=6,u=100");
	a = f.s->ds.arrays;
	assert_true(a[0].chunk[0] == 6 && a[0].chunk[1] == 6 && a[0].chunk[2] == 4);
	assert_int_equal(a[0].access, DS_CONVERT);
	assert_string_equal(a[0].convert, "rechunk: assembled from chunks of 2x6x4");
	assert_int_equal(a[1].chunk[0], 6); /* cut to the dimension */
	end(&f);
	cube(&f, shape, chunk);
	(void)array(f.m, 0, "y", 1, d, (const uint64_t[]){2});
	open_with(&f, MIB, "t=6");
	assert_memory_equal(&f.s->ds.arrays[1], &f.m->arrays[1], sizeof(*a));
	assert_int_equal(source_locate(f.s, 1, 2, &ref, NULL), 0);
	assert_int_equal(ref.where, CHUNK_RANGE);
	assert_int_equal(ref.off, 2000);
	end(&f);
	/* nothing changes: it is the inner source itself */
	cube(&f, shape, chunk);
	assert_int_equal(try_open(&f, MIB, "t=2,other=4", NULL), 0);
	assert_ptr_equal(f.s, &f.m->base);
	rechunk_shared_free(f.shared);
	model_free(f.m);
}

static void test_unlimited(void **state)
{
	static const uint64_t shape[] = {5, 6, 4}, chunk[] = {1, 6, 4};
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	f.m->dims[0].unlimited = true;
	open_with(&f, MIB, "t=8,u=2");
	assert_int_equal(f.s->ds.arrays[0].chunk[0], 8); /* longer than the array */
	read_all(&f);
	end(&f);
}

static void test_strings(void **state)
{
	static const uint64_t shape[] = {7, 3, 4}, chunk[] = {2, 3, 4};
	struct buf body;
	struct fx f;

	(void)state;
	cube(&f, shape, chunk);
	f.m->arrays[0].type = (struct dtype){.kind = DT_VSTRING};
	f.m->arrays[0].access = DS_VARIABLE;
	f.m->arrays[0].chunk_bytes = 0;
	f.m->arrays[0].fill_text = (struct ds_text){"none", 4};
	f.m->absent[0][1] = true;
	open_with(&f, MIB, "t=3,v=3");
	buf_init(&body, MIB);
	for (uint64_t n = 0; n < f.s->ds.arrays[0].n_chunks; n++) {
		size_t off = 0;

		buf_clear(&body);
		assert_int_equal(source_read_vlen(f.s, 0, n, &body, NULL), 0);
		for (uint64_t i = 0; i < 27; i++) {
			const int64_t at = place(&f.s->ds.arrays[0], n, i);
			char want[32] = "none";
			uint32_t len;

			if (at >= 0 && at / 24 != 1)
				(void)snprintf(want, sizeof(want), "t%lld", (long long)at);
			memcpy(&len, body.data + off, 4);
			assert_int_equal(len, strlen(want));
			assert_memory_equal(body.data + off + 4, want, len);
			off += 4 + len;
		}
		assert_int_equal(off, body.len);
	}
	assert_int_equal(atomic_load(&reads), 3); /* of four chunks, one is absent */
	buf_release(&body);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),           cmocka_unit_test(test_elements),
		cmocka_unit_test(test_any_shape),      cmocka_unit_test(test_one_pass),
		cmocka_unit_test(test_decodes_once),   cmocka_unit_test(test_threads),
		cmocka_unit_test(test_absent),         cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_unlisted),       cmocka_unit_test(test_damage),
		cmocka_unit_test(test_cancel),         cmocka_unit_test(test_limits),
		cmocka_unit_test(test_passes_through), cmocka_unit_test(test_unlimited),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
