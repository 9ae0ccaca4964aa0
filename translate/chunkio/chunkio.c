/* SPDX-License-Identifier: BSD-3-Clause */
/* chunkio.c - executes plans. Every call locates the chunk and then takes one of three ways:
 *   RANGE  bytes of the source's descriptor: nothing here is locked, allocated or copied
 *   FILL   a chunk that was never written and that the view presents: made once an array
 *   LOAD   bytes that have to be made (decoded, re-framed, collected): through the cache
 * Locks of the cache, of the prefetch queue and of the scratch list are never held together, nor
 * across a call into the source or a codec. docs/dev/reading/chunkio.md has the order. */
#include "translate/chunkio/chunkio.h"

#include "base/core/utf8.h"
#include "translate/chunkio/chunkio_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PREFETCH_MAX 64
/* Bytes of chunks that may be on their way at the same time, with a cache that is smaller. */
#define LOADING_MIN ((uint64_t)64 << 20)
/* For sizes that are remembered, four bytes a chunk: this part of the cache's budget more. */
#define SIZES_PART 16
#define SIZES_MIN ((uint64_t)64 << 10)
#define SIZES_MAX ((uint64_t)64 << 20)
#define PATH_LONG ((size_t)64 << 10)
/* Of an array's path in an error, so that what went wrong fits as well. */
#define PATH_SHOWN (ERR_TEXT_MAX / 2)

/* ---- errors ---- */

/* Absence is decided when a chunk is located, and nowhere else: an -ENOENT that comes up here is
 * something that went wrong. */
int chunkio_say_where(const struct chunkio *c, uint32_t array, uint64_t linear, int code,
		      struct err *e)
{
	const struct dataset *ds = &c->source->ds;
	const struct ds_array *a = &ds->arrays[array];
	uint64_t coords[DS_RANK_MAX] = {0};
	auto_buf path = buf_of(PATH_LONG);
	auto_buf at = buf_of(ERR_TEXT_MAX / 4);
	size_t cut;

	if (code == -ENOENT)
		code = -EIO;
	if (!e)
		return code;
	if (e->code == 0)
		(void)err_set(e, code, "failed");
	ds_array_path(ds, array, &path);
	cut = utf8_tail(path.data, path.len, PATH_SHOWN);
	if (linear == CHUNKIO_NONE)
		return err_wrap(e, code, "'%s%.*s'", cut > 0 ? "..." : "",
				(int)(path.len - cut), (const char *)path.data + cut);
	if (linear < a->n_chunks)
		ds_chunk_coords(a, linear, coords);
	buf_printf(&at, "%" PRIu64, coords[0]);
	for (size_t i = 1; i < a->rank; i++)
		buf_printf(&at, ".%" PRIu64, coords[i]);
	if (linear >= a->n_chunks || !buf_ok(&at)) {
		buf_clear(&at);
		buf_printf(&at, "number %" PRIu64, linear);
	}
	return err_wrap(e, code, "'%s%.*s' chunk %.*s", cut > 0 ? "..." : "",
			(int)(path.len - cut), (const char *)path.data + cut, (int)at.len,
			(const char *)at.data);
}

/* ---- which way ---- */

static int check_array(const struct chunkio *c, uint32_t array, struct err *e)
{
	return array < c->n_arrays
		       ? 0
		       : err_set(e, -EINVAL,
				 "there is no array %" PRIu32 ": the dataset has %" PRIu32, array,
				 c->n_arrays);
}

/* fill_of - the never-written chunk of an array, made by the first thread that needs it. If two
 * threads make it, the bytes are the same and one copy is kept. */
static int fill_of(struct chunkio *c, uint32_t array, const struct fill **ret, struct err *e)
{
	struct array_state *st = &c->arrays[array];
	struct fill *f = atomic_load_explicit(&st->fill, memory_order_acquire);
	struct fill *made, *none = NULL;
	int rc;

	if (!f) {
		rc = frame_fill_make(&c->source->ds.arrays[array], &c->plans[array], &made, e);
		if (rc < 0)
			return rc;
		f = made;
		if (!atomic_compare_exchange_strong_explicit(&st->fill, &none, made,
							     memory_order_acq_rel,
							     memory_order_acquire)) {
			free(made);
			f = none;
		}
	}
	*ret = f;
	return 0;
}

/* locate - locate a chunk and choose. -ENOENT is proven absence, all else is not. */
static int locate(struct chunkio *c, uint32_t array, uint64_t linear, struct located *ret,
		  struct err *e)
{
	const struct fill *f = NULL;
	int rc = check_array(c, array, e);

	if (rc)
		return rc;
	*ret = (struct located){.c = c,
				.a = &c->source->ds.arrays[array],
				.p = &c->plans[array],
				.array = array,
				.linear = linear,
				.w = {.kind = DELIVER_MAKE}};
	if (ret->p->kind == PLAN_HIDE || ret->a->n_chunks == 0)
		return err_set(e, -ENOENT, "no such chunk");
	if (ret->p->kind == PLAN_ERROR) {
		/* the same text for every chunk: it is logged once */
		rc = err_set(e, -EOPNOTSUPP, "%s", ret->p->reason);
		return chunkio_say_where(c, array, CHUNKIO_NONE, rc, e);
	}
	rc = source_locate(c->source, array, linear, &ret->w.ref, e);
	if (rc < 0 && rc != -ESTALE && rc != -EINTR)
		metrics_count(M_FAULT_SOURCE);
	if (rc == 0 && ret->w.ref.where != CHUNK_ABSENT) {
		rc = delivery_of_stored(ret->a, ret->p, &ret->w, e);
	} else if (rc == 0) {
		if (ret->p->fill_declared)
			return err_set(e, -ENOENT, "the chunk was never written");
		rc = fill_of(c, array, &f, e);
		if (rc == 0)
			delivery_of_absent(f, &ret->w);
	}
	return rc < 0 ? chunkio_say_where(c, array, linear, rc, e) : 0;
}

/* ---- entries ---- */

static uint32_t owner_of(const struct located *k)
{
	return k->c->arrays[k->array].owner;
}

static int chunkio_entry_get(const struct located *k, struct cache_entry **ret, struct err *e)
{
	int rc = cache_get(k->c->cache, owner_of(k), k->linear, ret, e);

	return rc == CACHE_LOAD ? chunkio_load(k, *ret, e) : rc;
}

/* known_size - the size of a chunk as presented; 0: only making it tells. */
static uint64_t known_size(const struct located *k)
{
	return k->w.sized ? k->w.size : sizes_get(k->c->sizes, owner_of(k), k->linear);
}

/* ---- ahead ---- */

/* chunkio_prefetch - run one request on a worker thread. Errors are dropped: the read of the chunk
 * fails with them again, and reports them. */
static void chunkio_prefetch(void *arg, uint32_t array, uint64_t linear)
{
	struct chunkio *c = arg;
	struct cache_entry *x;
	struct located k;
	uint64_t bytes;

	if (access_pattern_passed(c->pattern, array, linear) ||
	    locate(c, array, linear, &k, NULL) < 0 || k.w.kind != DELIVER_MAKE)
		return;
	bytes = known_size(&k);
	if (!k.w.sized && bytes == 0)
		bytes = k.p->kind == PLAN_ENCODE ? k.p->bytes : CHUNKIO_SLACK;
	if (cache_start(c->cache, array, linear, bytes, &x) && chunkio_load(&k, x, NULL) == 0)
		cache_put(x);
}

/* ---- the object ---- */

struct keyed {
	uint64_t key;
	uint32_t array;
};

static int keyed_cmp(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->array < y->array ? -1 : x->array > y->array;
}

/* same_chunks - whether arrays i and j, which are one object, are also presented alike. */
static bool same_chunks(const struct chunkio *c, uint32_t i, uint32_t j)
{
	const struct ds_array *a = &c->source->ds.arrays[i], *b = &c->source->ds.arrays[j];

	return plan_same(&c->plans[i], &c->plans[j]) && a->n_chunks == b->n_chunks &&
	       a->chunk_bytes == b->chunk_bytes;
}

/* find_owners - hard links share cached chunks. Key 0 says nothing. */
static int find_owners(struct chunkio *c, struct err *e)
{
	auto_free struct keyed *k = alloc_array(c->n_arrays, sizeof(*k));
	uint32_t first = 0;

	if (!k)
		return err_nomem(e);
	for (uint32_t i = 0; i < c->n_arrays; i++)
		k[i] = (struct keyed){.key = c->source->ds.arrays[i].key, .array = i};
	qsort(k, c->n_arrays, sizeof(*k), keyed_cmp);
	for (uint32_t i = 0; i < c->n_arrays; i++) {
		uint32_t array = k[i].array;

		if (k[i].key != k[first].key)
			first = i;
		c->arrays[array].owner = array;
		if (k[i].key != 0 && same_chunks(c, k[first].array, array))
			c->arrays[array].owner = k[first].array;
	}
	return 0;
}

/* chunkio_depth_of - how far ahead loading pays. A library reads one chunk at a time. */
static uint32_t chunkio_depth_of(const struct chunkio *c, uint32_t array, uint32_t ahead)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	enum plan_kind kind = c->plans[array].kind;

	if (ahead > PREFETCH_MAX)
		ahead = PREFETCH_MAX;
	if (kind == PLAN_ENCODE)
		return ahead; /* while one thread reads, others encode */
	if (kind == PLAN_DECODE && c->arrays[array].decodable)
		return a->chain.n > 0 || c->plans[array].quant.mode ? ahead : 0;
	if (kind == PLAN_DECODE || kind == PLAN_VLEN || kind == PLAN_FIXED)
		return (uint32_t)u64_min(ahead, 1);
	return 0;
}

static int fill_states(struct chunkio *c, uint32_t ahead, struct err *e)
{
	c->arrays = alloc_array(c->n_arrays, sizeof(*c->arrays));
	if (!c->arrays)
		return err_nomem(e);
	for (uint32_t i = 0; i < c->n_arrays; i++) {
		const struct ds_array *a = &c->source->ds.arrays[i];

		atomic_init(&c->arrays[i].fill, NULL);
		c->arrays[i].decodable =
			a->access == DS_STORED && codec_chain_decodable(&a->chain);
		c->arrays[i].depth = chunkio_depth_of(c, i, ahead);
	}
	return find_owners(c, e);
}

int chunkio_new(struct source *s, const struct plan *plans, const struct chunkio_options *opts,
		struct chunkio **ret, struct err *e)
{
	struct chunkio *c = alloc_array(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e);
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail with default attributes */
	c->own = opts->shared ? NULL : chunkio_shared_alone();
	c->shared = c->own ? c->own : opts->shared;
	c->source = s;
	c->plans = plans;
	c->n_arrays = s->ds.n_arrays;
	c->threads = opts->threads;
	c->verify = opts->verify;
	c->uncounted = opts->uncounted;
	c->cache = cache_new(opts->cache_bytes);
	if (c->cache)
		cache_bound(c->cache, u64_max(opts->cache_bytes, LOADING_MIN));
	c->sizes = sizes_new(
		u64_min(u64_max(opts->cache_bytes / SIZES_PART, SIZES_MIN), SIZES_MAX));
	rc = c->cache && c->sizes && c->shared ? fill_states(c, opts->ahead, e) : err_nomem(e);
	if (rc == 0 && (s->remote || (opts->threads > 0 && opts->ahead > 0))) {
		c->pattern = access_pattern_new(c->n_arrays);
		rc = c->pattern ? 0 : err_nomem(e);
	}
	if (rc == 0 && opts->threads > 0 && opts->ahead > 0) {
		c->ahead = prefetch_new(opts->threads, chunkio_prefetch, c);
		rc = c->ahead ? 0 : err_nomem(e);
	}
	if (rc == 0)
		cache_join(c->cache, c->shared->pool);
	if (rc == 0 && (s->remote || s->cancels))
		cache_of_remote(c->cache);
	if (rc < 0)
		chunkio_free(c);
	else
		*ret = c;
	return rc;
}

void chunkio_free(struct chunkio *c)
{
	if (!c)
		return;
	prefetch_free(c->ahead);
	access_pattern_free(c->pattern);
	cache_free(c->cache);
	sizes_free(c->sizes);
	chunkio_shared_free(c->own);
	worker_blame_release(&c->blame);
	for (uint32_t i = 0; c->arrays && i < c->n_arrays; i++)
		free(atomic_load(&c->arrays[i].fill));
	free(c->arrays);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

int chunkio_stat(struct chunkio *c, uint32_t array, uint64_t linear, uint64_t *ret_size,
		 struct err *e)
{
	struct access_pattern_say said;
	struct cache_entry *x;
	struct located k;
	uint64_t size;
	size_t len;
	int rc;

	said = chunkio_touch(c, array, linear, PREFETCH_STAT, true);
	rc = locate(c, array, linear, &k, e);
	if (rc < 0)
		return rc;
	if (k.w.kind == DELIVER_MAKE)
		chunkio_hint(c, array, linear, PREFETCH_STAT, said);
	size = known_size(&k);
	if (k.w.sized || size > 0) {
		*ret_size = size;
		return 0;
	}
	rc = chunkio_entry_get(&k, &x, e);
	if (rc < 0)
		return rc;
	(void)cache_data(x, &len);
	cache_put(x);
	*ret_size = len;
	return 0;
}

bool chunkio_stat_cheap(struct chunkio *c, uint32_t array, uint64_t linear)
{
	enum plan_kind kind;

	/* without a list, whether a chunk is there costs a request */
	if (array >= c->n_arrays || c->source->unlisted)
		return false;
	kind = c->plans[array].kind;
	if (kind == PLAN_PASS || kind == PLAN_DECODE || kind == PLAN_FIXED)
		return true;
	return sizes_get(c->sizes, c->arrays[array].owner, linear) > 0;
}

static void entry_done(void *arg)
{
	cache_put(arg);
}

static int read_loaded(const struct located *k, uint64_t off, size_t len, struct span *ret,
		       struct err *e)
{
	struct cache_entry *x;
	const uint8_t *data;
	size_t size, n;
	int rc = chunkio_entry_get(k, &x, e);

	if (rc < 0)
		return rc;
	data = cache_data(x, &size);
	*ret = (struct span){.fd = -1};
	if (off >= size) {
		cache_put(x);
		return 0;
	}
	n = (size_t)u64_min(len, size - off);
	cache_handed(x, (size_t)off, n);
	*ret = (struct span){
		.mem = data + off, .fd = -1, .len = n, .done = entry_done, .arg = x};
	return 0;
}

/* read_bytes - stored bytes. */
static int read_bytes(const struct located *k, uint64_t off, uint8_t *out, size_t len,
		      struct err *e)
{
	int rc = source_read_stored(k->c->source, k->array, k->linear, &k->w.ref, off, out, len,
				    e);

	return rc < 0 ? chunkio_say_where(k->c, k->array, k->linear, rc, e) : 0;
}

/* read_range - n bytes of a chunk from `off`. If that lies in its head, the rest of the head and
 * the stored bytes after it are collected in room. */
static int read_range(const struct located *k, uint64_t off, size_t n, uint8_t *room,
		      struct span *ret, struct err *e)
{
	const struct delivery *w = &k->w;
	size_t head = off < w->head_len ? (size_t)u64_min(n, w->head_len - off) : 0, len;

	if (head > 0)
		memcpy(room, w->head + off, head);
	off = head > 0 ? 0 : off - w->head_len;
	len = off < w->file_len ? (size_t)u64_min(n - head, w->file_len - off) : 0;
	*ret = (struct span){.fd = -1, .len = head + len, .zeros = n - head - len};
	if (head == 0 && len > 0) {
		ret->fd = source_fd(k->c->source, w->ref.blob);
		ret->off = w->ref.off + off;
	}
	if (ret->fd >= 0 || ret->len == 0)
		return 0;
	ret->mem = room;
	return read_bytes(k, off, room + head, len, e);
}

/* chunkio_verify - the checksum at the end of a stored chunk, which is not shown. */
static int chunkio_verify(const struct located *k, struct err *e)
{
	const struct chunk_ref *ref = &k->w.ref;
	const struct codec_ops *last = codec_find(k->a->chain.specs[k->a->chain.n - 1].h5_id);
	auto_free uint8_t *stored = NULL;
	size_t n;
	int rc;

	if ((delivery_skipped(k->a, ref) & k->p->trailer_bit) || !last || !last->check)
		return 0;
	if (ref->len / 2 > k->a->chunk_bytes + CHUNKIO_SLACK)
		return chunkio_say_where(k->c, k->array, k->linear,
					 delivery_bad_length(ref->len, k->a->chunk_bytes, e), e);
	stored = malloc((size_t)ref->len);
	if (!stored)
		return err_nomem(e);
	rc = read_bytes(k, 0, stored, (size_t)ref->len, e);
	if (rc)
		return rc;
	rc = last->check(&(const struct codec_call){
		.in = stored, .in_len = (size_t)ref->len, .ret_len = &n, .e = e});
	return rc < 0 ? chunkio_say_where(k->c, k->array, k->linear, rc, e) : 0;
}

int chunkio_read(struct chunkio *c, uint32_t array, uint64_t linear, uint64_t off, size_t len,
		 uint8_t *room, struct span *ret, struct err *e)
{
	struct access_pattern_say said;
	struct located k;
	size_t n = len;
	int rc;

	said = chunkio_touch(c, array, linear, PREFETCH_READ, off == 0);
	rc = locate(c, array, linear, &k, e);
	if (rc < 0)
		return rc;
	if (len == 0 || (k.w.sized && off >= k.w.size)) {
		*ret = (struct span){.fd = -1};
		return 0;
	}
	if (k.w.sized)
		n = (size_t)u64_min(len, k.w.size - off);
	if (off == 0 && !c->uncounted)
		metrics_count(chunk_treatment_metric(chunk_treatment_of(k.p, &k.w)));
	if (k.w.kind == DELIVER_MAKE) {
		chunkio_hint(c, array, linear, PREFETCH_READ, said);
		return read_loaded(&k, off, n, ret, e);
	}
	if (k.w.kind == DELIVER_RANGE) {
		rc = c->verify && off == 0 && k.p->trailer > 0 ? chunkio_verify(&k, e) : 0;
		return rc ? rc : read_range(&k, off, n, room, ret, e);
	}
	rc = frame_fill_span(k.w.fill, off, n, ret, e);
	return rc < 0 ? chunkio_say_where(c, array, linear, rc, e) : 0;
}

int chunkio_about(struct chunkio *c, uint32_t array, uint64_t linear, struct chunk_about *ret,
		  struct err *e)
{
	struct located k;
	int rc = locate(c, array, linear, &k, e);

	if (rc < 0)
		return rc;
	*ret = (struct chunk_about){.how = chunk_treatment_of(k.p, &k.w), .ref = k.w.ref};
	if (k.w.kind == DELIVER_RANGE) {
		ret->cut = k.w.ref.len - k.w.file_len;
		ret->zeros = k.w.size - k.w.head_len - k.w.file_len;
	}
	return 0;
}

int chunkio_next(struct chunkio *c, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	const struct plan *p;
	int rc = check_array(c, array, e);

	if (rc)
		return rc;
	p = &c->plans[array];
	if (p->kind == PLAN_HIDE || from >= c->source->ds.arrays[array].n_chunks)
		return err_set(e, -ENOENT, "no more chunks");
	if (!p->fill_declared) {
		*ret = from;
		return 0;
	}
	rc = source_next(c->source, array, from, ret, e);
	return rc < 0 && rc != -ENOENT ? chunkio_say_where(c, array, from, rc, e) : rc;
}

int chunkio_read_whole(struct chunkio *c, uint32_t array, uint64_t linear, uint8_t *out,
		       struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	struct span span;
	size_t got;
	int rc = chunkio_read(c, array, linear, 0, (size_t)a->chunk_bytes, out, &span, e);

	rc = rc ? rc : span_fetch(&span, out, (size_t)a->chunk_bytes, &got, e);
	if (rc == 0 && got != a->chunk_bytes)
		rc = err_set(e, -EIO, "'%s': a chunk has %zu bytes instead of %" PRIu64,
			     a->name, got, a->chunk_bytes);
	return rc;
}

int chunkio_read_vlen(struct source *s, uint32_t array, uint64_t linear, uint64_t n,
		      struct buf *body, uint32_t *ret_longest, struct err *e)
{
	int rc;

	buf_clear(body);
	rc = source_read_vlen(s, array, linear, body, e);
	if (rc < 0)
		return rc;
	if (!buf_ok(body))
		return buf_full(body, e, -ERANGE, "a chunk exceeds %" PRIu64 " bytes",
				FRAME_BYTES_MAX);
	return frame_vlen_check(body->data, body->len, n, ret_longest, e);
}

int chunkio_max_text(struct source *s, uint32_t array, uint32_t *ret, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t n = 0, at, wanted = 0;
	uint32_t max, all = 0;
	auto_buf body = buf_of(FRAME_BYTES_MAX);
	int rc = frame_count(a, &n, e);

	if (rc < 0)
		return rc;
	if (a->fill_text.len > FRAME_BYTES_MAX)
		return err_set(e, -ERANGE, "a fill string of %zu bytes is too long",
			       a->fill_text.len);
	if (a->fill_text.s)
		all = (uint32_t)a->fill_text.len;
	for (at = 0; rc == 0 && at < a->n_chunks; at++) {
		rc = source_next(s, array, at, &at, e);
		if (rc == -ENOENT) {
			rc = 0;
			break;
		}
		if (rc == 0 && at >= wanted) {
			wanted = at + ACCESS_PATTERN_PREFETCH / 2;
			chunkio_want_run(s, array, at, ACCESS_PATTERN_PREFETCH);
		}
		rc = rc ? rc : chunkio_read_vlen(s, array, at, n, &body, &max, e);
		if (rc == 0 && max > all)
			all = max;
	}
	if (rc == 0)
		*ret = all;
	return rc;
}
