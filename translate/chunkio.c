/* chunkio.c - executes plans. Every call locates the chunk and then takes one of three ways:
 *   RANGE  bytes of the source's descriptor: nothing here is locked, allocated or copied
 *   FILL   a chunk that was never written and that the view presents: made once an array
 *   LOAD   bytes that have to be made (decoded, re-framed, collected): through the cache
 * Locks of the cache, of the ahead queue and of the scratch list are never held together, nor
 * across a call into the source or a codec. docs/chunkio.md has the order. */
#include "translate/chunkio.h"

#include "translate/ahead.h"
#include "translate/cache.h"
#include "translate/way.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SCRATCH_KEPT 16                   /* scratch objects kept for the next load */
#define SCRATCH_BIG ((size_t)64 << 20)    /* one that grew beyond this is not kept */
#define STORED_SLACK ((uint64_t)64 << 10) /* headers and checksums of a stored chunk */
#define AHEAD_MAX 64
#define PATH_LONG ((size_t)64 << 10)
#define NO_CHUNK UINT64_MAX /* of an error that is the whole array's */
/* Of an array's path in an error, so that what went wrong fits as well. */
#define PATH_SHOWN (ERR_TEXT_MAX / 2)

/* scratch - what one load needs besides the memory for its result. */
struct scratch {
	struct scratch *next;
	struct codec_scratch *codec;
	struct buf stored; /* bytes as stored, or source_read_vlen's */
	struct buf elems;  /* elements of a chunk that is framed next */
};

struct array_state {
	uint32_t owner; /* first array that is the same object under the same plan */
	uint32_t depth; /* chunks to load ahead; 0: this array's cost little */
	bool decodable; /* DS_STORED, and every filter is built in */
	_Atomic(struct fill *) fill;
};

struct chunkio {
	struct source *source;
	const struct plan *plans;
	uint32_t n_arrays;
	struct array_state *arrays;
	struct cache *cache;
	struct ahead *ahead;  /* NULL: no threads */
	pthread_mutex_t lock; /* of the scratch list */
	struct scratch *scratch;
	uint32_t n_scratch;
};

/* ---- errors ---- */

/* say_where - "'/g/v' chunk 0.3: " in front of a data error. Absence is decided when a chunk is
 * located, and nowhere else: an -ENOENT that comes up here is something that went wrong. */
static int say_where(const struct chunkio *c, uint32_t array, uint64_t linear, int code,
		     struct err *e)
{
	const struct dataset *ds = &c->source->ds;
	const struct ds_array *a = &ds->arrays[array];
	uint64_t coords[DS_RANK_MAX] = {0};
	struct buf path, at;
	size_t cut = 0;

	if (code == -ENOENT)
		code = -EIO;
	if (!e)
		return code;
	if (e->code == 0)
		(void)err_set(e, code, "failed");
	buf_init(&path, PATH_LONG);
	buf_init(&at, ERR_TEXT_MAX / 4);
	ds_array_path(ds, array, &path);
	if (path.len > PATH_SHOWN)
		cut = path.len - PATH_SHOWN;
	while (cut > 0 && cut < path.len && (path.data[cut] & 0xc0) == 0x80)
		cut++; /* not inside a character */
	if (linear == NO_CHUNK) {
		(void)err_wrap(e, code, "'%s%.*s'", cut > 0 ? "..." : "", (int)(path.len - cut),
			       (const char *)path.data + cut);
		goto out;
	}
	if (linear < a->n_chunks)
		ds_chunk_coords(a, linear, coords);
	buf_printf(&at, "%" PRIu64, coords[0]);
	for (size_t i = 1; i < a->rank; i++)
		buf_printf(&at, ".%" PRIu64, coords[i]);
	if (linear >= a->n_chunks || !buf_ok(&at)) {
		buf_clear(&at);
		buf_printf(&at, "number %" PRIu64, linear);
	}
	(void)err_wrap(e, code, "'%s%.*s' chunk %.*s", cut > 0 ? "..." : "",
		       (int)(path.len - cut), (const char *)path.data + cut, (int)at.len,
		       (const char *)at.data);
out:
	e->code = code;
	buf_release(&path);
	buf_release(&at);
	return code;
}

/* ---- which way ---- */

/* fill_of - the never-written chunk of an array, made by whoever needs it first. Two threads
 * may both make it; the bytes are the same and one copy is kept. */
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

/* way_find - locate a chunk and choose. -ENOENT is proven absence, all else is not. */
static int way_find(struct chunkio *c, uint32_t array, uint64_t linear, struct way *w,
		    struct err *e)
{
	const struct fill *f = NULL;
	const struct plan *p;
	int rc;

	if (array >= c->n_arrays)
		return err_set(e, -EINVAL, "array %" PRIu32 " of %" PRIu32, array, c->n_arrays);
	p = &c->plans[array];
	if (p->kind == PLAN_HIDE || c->source->ds.arrays[array].n_chunks == 0)
		return err_set(e, -ENOENT, "no such chunk");
	*w = (struct way){.kind = WAY_LOAD};
	if (p->kind == PLAN_ERROR) {
		/* the same text for every chunk: it is logged once */
		rc = err_set(e, -EOPNOTSUPP, "%s", p->reason);
		return say_where(c, array, NO_CHUNK, rc, e);
	}
	rc = source_locate(c->source, array, linear, &w->ref, e);
	if (rc == 0 && w->ref.where != CHUNK_ABSENT) {
		rc = way_of_stored(&c->source->ds.arrays[array], p, w, e);
	} else if (rc == 0) {
		if (p->fill_declared)
			return err_set(e, -ENOENT, "the chunk was never written");
		rc = fill_of(c, array, &f, e);
		if (rc == 0)
			way_of_absent(f, w);
	}
	return rc < 0 ? say_where(c, array, linear, rc, e) : 0;
}

/* ---- loading ---- */

static void scratch_free(struct scratch *m)
{
	if (!m)
		return;
	codec_scratch_free(m->codec);
	buf_release(&m->stored);
	buf_release(&m->elems);
	free(m);
}

static struct scratch *scratch_take(struct chunkio *c)
{
	struct scratch *m;

	(void)pthread_mutex_lock(&c->lock);
	m = c->scratch;
	if (m) {
		c->scratch = m->next;
		c->n_scratch--;
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (m)
		return m;
	m = alloc_array(1, sizeof(*m));
	if (!m)
		return NULL;
	buf_init(&m->stored, PTRDIFF_MAX);
	buf_init(&m->elems, PTRDIFF_MAX);
	m->codec = codec_scratch_new();
	if (!m->codec) {
		scratch_free(m);
		return NULL;
	}
	return m;
}

/* scratch_give - keep it for the next load. used: bytes of the chunk it was used for. */
static void scratch_give(struct chunkio *c, struct scratch *m, uint64_t used)
{
	buf_clear(&m->stored);
	buf_clear(&m->elems);
	if (used <= SCRATCH_BIG && m->stored.cap <= SCRATCH_BIG) {
		(void)pthread_mutex_lock(&c->lock);
		if (c->n_scratch < SCRATCH_KEPT) {
			m->next = c->scratch;
			c->scratch = m;
			c->n_scratch++;
			m = NULL;
		}
		(void)pthread_mutex_unlock(&c->lock);
	}
	scratch_free(m);
}

/* load_stored - read a stored chunk and undo its filters into out, chunk_bytes long. */
static int load_stored(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		       struct scratch *m, uint8_t *out, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	bool plain = way_plain(a, &w->ref);
	uint64_t whole = a->chunk_bytes, want;
	uint8_t *in;
	int rc;

	if (ckd_sub(&want, whole, w->ref.pad))
		return err_set(e, -EBADMSG, "padding of %" PRIu64 " bytes exceeds %" PRIu64,
			       w->ref.pad, whole);
	if (plain && w->ref.len != want)
		return way_bad_length(w->ref.len, want, e);
	/* no filter doubles incompressible bytes; a length beyond that is damage, and is not
	 * allocated */
	if (w->ref.len / 2 > whole && w->ref.len - 2 * whole > STORED_SLACK)
		return err_set(e, -EBADMSG,
			       "stored length %" PRIu64 " is too large for %" PRIu64 " bytes",
			       w->ref.len, whole);
	in = plain ? out : buf_grow(&m->stored, (size_t)w->ref.len);
	if (!in && w->ref.len > 0)
		return err_nomem(e);
	rc = source_read_stored(c->source, array, linear, &w->ref, 0, in, (size_t)w->ref.len,
				e);
	if (rc == 0 && !plain)
		rc = codec_chain_decode(&a->chain, way_skipped(a, &w->ref), a->type.size, in,
					(size_t)w->ref.len, out, (size_t)want, m->codec, e);
	if (rc == 0)
		memset(out + want, 0, (size_t)w->ref.pad);
	return rc;
}

/* load_elements - the presented elements of one chunk, a->chunk_bytes, however stored. */
static int load_elements(struct chunkio *c, uint32_t array, uint64_t linear,
			 const struct way *w, struct scratch *m, uint8_t *out, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];

	if (w->fill) {
		frame_fill_tile(w->fill, 0, out, (size_t)a->chunk_bytes);
		return 0;
	}
	if (w->ref.where == CHUNK_RANGE && c->arrays[array].decodable)
		return load_stored(c, array, linear, w, m, out, e);
	return source_read_chunk(c->source, array, linear, out, (size_t)a->chunk_bytes, e);
}

/* load_framed - elements in a form that the plan's chain decodes, without compressing them. */
static int load_framed(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		       struct scratch *m, struct cache_entry *x, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	uint8_t *elems = buf_grow(&m->elems, (size_t)a->chunk_bytes);
	uint8_t *out = cache_alloc(x, (size_t)w->size);
	int rc;

	if (!elems || !out)
		return err_nomem(e);
	rc = load_elements(c, array, linear, w, m, elems, e);
	if (rc < 0)
		return rc;
	return codec_chain_frame(&c->plans[array].chain, a->type.size, elems,
				 (size_t)a->chunk_bytes, out, e);
}

/* load_texts - elements without a fixed size, framed or cut to one. */
static int load_texts(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		      struct scratch *m, struct cache_entry *x, struct err *e)
{
	const struct plan *p = &c->plans[array];
	struct buf *body = &m->stored;
	uint64_t n;
	uint8_t *out;
	int rc = frame_count(&c->source->ds.arrays[array], &n, e);

	if (rc < 0)
		return rc;
	body->max = FRAME_BYTES_MAX;
	rc = source_read_vlen(c->source, array, linear, body, e);
	body->max = PTRDIFF_MAX;
	if (rc == 0 && !buf_ok(body))
		rc = err_set(e, -ERANGE, "more than %" PRIu64 " bytes in one chunk",
			     FRAME_BYTES_MAX);
	if (rc == 0)
		rc = frame_vlen_check(body->data, body->len, n, NULL, e);
	if (rc < 0)
		return rc;
	out = cache_alloc(x, p->kind == PLAN_FIXED ? (size_t)w->size : 4 + body->len);
	if (!out)
		return err_nomem(e);
	if (p->kind == PLAN_FIXED) {
		frame_fixed(body->data, body->len, n, p->fixed_size, out);
		return 0;
	}
	for (size_t i = 0; i < 4; i++)
		out[i] = (uint8_t)(n >> 8 * i);
	if (body->len > 0)
		memcpy(out + 4, body->data, body->len);
	return 0;
}

static int load_into(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		     struct scratch *m, struct cache_entry *x, struct err *e)
{
	const struct plan *p = &c->plans[array];
	uint8_t *out;

	if (p->kind == PLAN_VLEN || p->kind == PLAN_FIXED)
		return load_texts(c, array, linear, w, m, x, e);
	if (p->kind == PLAN_PASS && p->chain.n > 0)
		return load_framed(c, array, linear, w, m, x, e);
	out = cache_alloc(x, (size_t)w->size);
	if (!out)
		return err_nomem(e);
	return load_elements(c, array, linear, w, m, out, e);
}

/* load - fly: fill x and publish it, or fail it. Returns 0 with the reference still held. */
static int load(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		struct cache_entry *x, struct err *e)
{
	struct err own = ERR_INIT, changed = ERR_INIT;
	struct scratch *m = scratch_take(c);
	int rc, check;

	if (m) {
		rc = load_into(c, array, linear, w, m, x, &own);
		scratch_give(c, m, w->size);
		/* bytes of a file that was changed are neither good nor bad, whatever the
		 * decoder thought of them */
		check = source_check(c->source, &changed);
		if (check < 0) {
			rc = check;
			own = changed;
		}
	} else {
		rc = err_nomem(&own);
	}
	if (rc == 0) {
		cache_publish(x);
		return 0;
	}
	rc = say_where(c, array, linear, rc, &own);
	cache_fail(x, &own);
	if (e)
		*e = own;
	return rc;
}

static int entry_get(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		     struct cache_entry **ret, struct err *e)
{
	int rc = cache_get(c->cache, c->arrays[array].owner, linear, ret, e);

	return rc == CACHE_LOAD ? load(c, array, linear, w, *ret, e) : rc;
}

/* ---- ahead ---- */

/* prefetch - one request on a worker thread. Errors are dropped: who reads the chunk will meet
 * them again, and say them. */
static void prefetch(void *arg, uint32_t array, uint64_t linear)
{
	struct chunkio *c = arg;
	struct cache_entry *x;
	struct way w;
	uint64_t bytes;

	if (way_find(c, array, linear, &w, NULL) < 0 || w.kind != WAY_LOAD)
		return;
	bytes = w.sized ? w.size : STORED_SLACK;
	if (cache_start(c->cache, array, linear, bytes, &x) &&
	    load(c, array, linear, &w, x, NULL) == 0)
		cache_put(x);
}

/* hint - a chunk that costs something was touched: start what its reader will want. */
static void hint(struct chunkio *c, uint32_t array, uint64_t linear, enum ahead_touch what)
{
	uint32_t owner = c->arrays[array].owner, depth = c->arrays[owner].depth;
	unsigned want;

	if (!c->ahead || depth == 0)
		return;
	want = ahead_note(c->ahead, owner, linear, what);
	if ((want & AHEAD_SELF) && !cache_has(c->cache, owner, linear))
		ahead_push(c->ahead, owner, linear);
	if (!(want & AHEAD_NEXT))
		return;
	for (uint32_t i = 0; i < depth; i++) {
		if (source_next(c->source, owner, linear + 1, &linear, NULL) < 0)
			return;
		if (!cache_has(c->cache, owner, linear))
			ahead_push(c->ahead, owner, linear);
	}
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
	const struct plan *p = &c->plans[i], *q = &c->plans[j];

	return p->kind == q->kind && p->chain.n == q->chain.n && p->trailer == q->trailer &&
	       p->fixed_size == q->fixed_size && p->fill_declared == q->fill_declared &&
	       a->n_chunks == b->n_chunks && a->chunk_bytes == b->chunk_bytes;
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

/* depth_of - how far ahead loading pays. A library reads one chunk at a time. */
static uint32_t depth_of(const struct chunkio *c, uint32_t array, uint32_t ahead)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	enum plan_kind kind = c->plans[array].kind;

	if (ahead > AHEAD_MAX)
		ahead = AHEAD_MAX;
	if (kind == PLAN_DECODE && c->arrays[array].decodable)
		return a->chain.n > 0 ? ahead : 0;
	if (kind == PLAN_DECODE || kind == PLAN_VLEN || kind == PLAN_FIXED)
		return (uint32_t)u64_min(ahead, 1);
	return 0;
}

int chunkio_new(struct source *s, const struct plan *plans, const struct chunkio_options *opts,
		struct chunkio **ret, struct err *e)
{
	struct chunkio *c = alloc_array(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e);
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail with default attributes */
	c->source = s;
	c->plans = plans;
	c->n_arrays = s->ds.n_arrays;
	c->arrays = alloc_array(c->n_arrays, sizeof(*c->arrays));
	c->cache = cache_new(opts->cache_bytes);
	if (!c->arrays || !c->cache) {
		rc = err_nomem(e);
		goto fail;
	}
	rc = find_owners(c, e);
	if (rc < 0)
		goto fail;
	for (uint32_t i = 0; i < c->n_arrays; i++) {
		const struct ds_array *a = &s->ds.arrays[i];

		atomic_init(&c->arrays[i].fill, NULL);
		c->arrays[i].decodable =
			a->access == DS_STORED && codec_chain_decodable(&a->chain);
		c->arrays[i].depth = depth_of(c, i, opts->ahead);
	}
	if (opts->threads > 0 && opts->ahead > 0) {
		c->ahead = ahead_new(c->n_arrays, opts->threads, prefetch, c);
		if (!c->ahead) {
			rc = err_nomem(e);
			goto fail;
		}
	}
	*ret = c;
	return 0;
fail:
	chunkio_free(c);
	return rc;
}

void chunkio_free(struct chunkio *c)
{
	if (!c)
		return;
	ahead_free(c->ahead);
	cache_free(c->cache);
	while (c->scratch) {
		struct scratch *next = c->scratch->next;

		scratch_free(c->scratch);
		c->scratch = next;
	}
	for (uint32_t i = 0; c->arrays && i < c->n_arrays; i++)
		free(atomic_load(&c->arrays[i].fill));
	free(c->arrays);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

int chunkio_stat(struct chunkio *c, uint32_t array, uint64_t linear, uint64_t *ret_size,
		 struct err *e)
{
	struct cache_entry *x;
	struct way w;
	size_t len;
	int rc = way_find(c, array, linear, &w, e);

	if (rc < 0)
		return rc;
	if (w.kind == WAY_LOAD)
		hint(c, array, linear, AHEAD_STAT);
	if (w.sized) {
		*ret_size = w.size;
		return 0;
	}
	rc = entry_get(c, array, linear, &w, &x, e);
	if (rc < 0)
		return rc;
	(void)cache_data(x, &len);
	cache_put(x);
	*ret_size = len;
	return 0;
}

static void entry_done(void *arg)
{
	cache_put(arg);
}

static int read_loaded(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		       uint64_t off, size_t len, struct span *ret, struct err *e)
{
	struct cache_entry *x;
	const uint8_t *data;
	size_t size, n;
	int rc = entry_get(c, array, linear, w, &x, e);

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
	ret->mem = data + off;
	ret->len = n;
	ret->done = entry_done;
	ret->arg = x;
	return 0;
}

static int read_range(struct chunkio *c, uint32_t array, uint64_t linear, const struct way *w,
		      uint64_t off, size_t n, uint8_t *room, struct span *ret, struct err *e)
{
	int rc = 0;

	*ret = (struct span){.fd = -1};
	if (off < w->file_len) {
		ret->fd = source_fd(c->source, w->ref.blob);
		ret->off = w->ref.off + off;
		ret->len = (size_t)u64_min(n, w->file_len - off);
	}
	ret->zeros = n - ret->len;
	if (ret->len == 0 || ret->fd >= 0)
		return 0;
	rc = source_read_stored(c->source, array, linear, &w->ref, off, room, ret->len, e);
	if (rc < 0)
		return say_where(c, array, linear, rc, e);
	ret->mem = room;
	return 0;
}

int chunkio_read(struct chunkio *c, uint32_t array, uint64_t linear, uint64_t off, size_t len,
		 uint8_t *room, struct span *ret, struct err *e)
{
	struct way w;
	size_t n = len;
	int rc = way_find(c, array, linear, &w, e);

	if (rc < 0)
		return rc;
	if (len == 0 || (w.sized && off >= w.size)) {
		*ret = (struct span){.fd = -1};
		return 0;
	}
	if (w.sized)
		n = (size_t)u64_min(len, w.size - off);
	if (w.kind == WAY_LOAD) {
		hint(c, array, linear, AHEAD_READ);
		return read_loaded(c, array, linear, &w, off, n, ret, e);
	}
	if (w.kind == WAY_RANGE)
		return read_range(c, array, linear, &w, off, n, room, ret, e);
	rc = frame_fill_span(w.fill, off, n, ret, e);
	return rc < 0 ? say_where(c, array, linear, rc, e) : 0;
}

int chunkio_next(struct chunkio *c, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	const struct plan *p;
	int rc;

	if (array >= c->n_arrays)
		return err_set(e, -EINVAL, "array %" PRIu32 " of %" PRIu32, array, c->n_arrays);
	p = &c->plans[array];
	if (p->kind == PLAN_HIDE || from >= c->source->ds.arrays[array].n_chunks)
		return err_set(e, -ENOENT, "no more chunks");
	if (!p->fill_declared) {
		*ret = from;
		return 0;
	}
	rc = source_next(c->source, array, from, ret, e);
	return rc < 0 && rc != -ENOENT ? say_where(c, array, from, rc, e) : rc;
}

/* longest_text - of one chunk; body is a buffer to work with. */
static int longest_text(struct source *s, uint32_t array, uint64_t linear, uint64_t n,
			struct buf *body, uint32_t *ret, struct err *e)
{
	int rc;

	buf_clear(body);
	rc = source_read_vlen(s, array, linear, body, e);
	if (rc < 0)
		return rc;
	if (!buf_ok(body))
		return err_set(e, -ERANGE, "more than %" PRIu64 " bytes in one chunk",
			       FRAME_BYTES_MAX);
	return frame_vlen_check(body->data, body->len, n, ret, e);
}

int chunkio_max_text(struct source *s, uint32_t array, uint32_t *ret, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t n = 0, at;
	uint32_t max, all = 0;
	struct buf body;
	int rc = frame_count(a, &n, e);

	if (rc < 0)
		return rc;
	if (a->fill_text.len > FRAME_BYTES_MAX)
		return err_set(e, -ERANGE, "a fill text of %zu bytes is too long",
			       a->fill_text.len);
	if (a->fill_text.s)
		all = (uint32_t)a->fill_text.len;
	buf_init(&body, FRAME_BYTES_MAX);
	for (at = 0; rc == 0 && at < a->n_chunks; at++) {
		rc = source_next(s, array, at, &at, e);
		if (rc == -ENOENT) {
			rc = 0;
			break;
		}
		if (rc == 0)
			rc = longest_text(s, array, at, n, &body, &max, e);
		if (rc == 0 && max > all)
			all = max;
	}
	buf_release(&body);
	if (rc == 0)
		*ret = all;
	return rc;
}
