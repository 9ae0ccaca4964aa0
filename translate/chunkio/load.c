/* SPDX-License-Identifier: BSD-3-Clause */
/* load.c - makes the bytes of one presented chunk: read, decoded, quantised, encoded, framed.
 * Nothing is locked meanwhile but the list of scratch objects, to take one and to give it back. */
#include "base/core/endian.h"
#include "codecs/isolate/decoder.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codecs/vlen/vlen.h"
#include "translate/chunkio/chunkio_int.h"

#define SCRATCH_KEPT 16                /* scratch objects kept for the next load */
#define SCRATCH_BIG ((size_t)64 << 20) /* one that grew beyond this is not kept */
#define SCRATCH_ALL ((size_t)32 << 20) /* of several, no more than this */

/* chunkio_scratch - what one load needs besides the memory for its result. */
struct chunkio_scratch {
	struct chunkio_scratch *next;
	struct codec_scratch *codec;
	struct buf stored; /* bytes as stored, source_read_vlen's, or an encoded chunk */
	struct buf elems;  /* elements of a chunk that is framed or encoded next */
	uint64_t most;     /* bytes of the largest chunk that it was used for */
};

static void scratch_free(struct chunkio_scratch *m)
{
	if (!m)
		return;
	codec_scratch_free(m->codec);
	buf_release(&m->stored);
	buf_release(&m->elems);
	free(m);
}

struct chunkio_shared *chunkio_shared_alone(void)
{
	struct chunkio_shared *s = alloc_array(1, sizeof(*s));

	if (s)
		(void)pthread_mutex_init(&s->lock, NULL); /* cannot fail without attributes */
	return s;
}

struct chunkio_shared *chunkio_shared_new(uint64_t cache_bytes)
{
	struct chunkio_shared *s = chunkio_shared_alone();

	if (s)
		s->pool = cache_pool_new(cache_bytes);
	if (s && !s->pool) {
		chunkio_shared_free(s);
		return NULL;
	}
	return s;
}

void chunkio_shared_free(struct chunkio_shared *s)
{
	if (!s)
		return;
	while (s->scratch) {
		struct chunkio_scratch *next = s->scratch->next;

		scratch_free(s->scratch);
		s->scratch = next;
	}
	cache_pool_free(s->pool);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* load_weight - the approximate bytes of a scratch: decoding needs one or two buffers in addition
 * to the stored chunk. */
static uint64_t load_weight(const struct chunkio_scratch *m)
{
	return m->stored.cap + m->elems.cap + m->most;
}

static struct chunkio_scratch *scratch_take(struct chunkio *c)
{
	struct chunkio_shared *s = c->shared;
	struct chunkio_scratch *m;

	(void)pthread_mutex_lock(&s->lock);
	m = s->scratch;
	if (m) {
		s->scratch = m->next;
		s->n_scratch--;
		s->scratch_bytes -= load_weight(m);
	}
	(void)pthread_mutex_unlock(&s->lock);
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
static void scratch_give(struct chunkio *c, struct chunkio_scratch *m, uint64_t used)
{
	struct chunkio_shared *s = c->shared;

	buf_clear(&m->stored);
	buf_clear(&m->elems);
	m->most = u64_max(m->most, used);
	if (used <= SCRATCH_BIG && m->stored.cap <= SCRATCH_BIG &&
	    m->elems.cap <= SCRATCH_BIG) {
		(void)pthread_mutex_lock(&s->lock);
		if (!s->n_scratch || (s->n_scratch < SCRATCH_KEPT &&
				      s->scratch_bytes + load_weight(m) <= SCRATCH_ALL)) {
			m->next = s->scratch;
			s->scratch = m;
			s->n_scratch++;
			s->scratch_bytes += load_weight(m);
			m = NULL;
		}
		(void)pthread_mutex_unlock(&s->lock);
	}
	scratch_free(m);
}

/* read_decoded - the stored bytes into `in`, and, unless that is out, what they decode to. in: NULL
 * when another process decodes. */
static int read_decoded(struct chunkio *c, uint32_t array, uint64_t linear,
			const struct delivery *w, struct chunkio_scratch *m, uint8_t *in,
			uint8_t *out, size_t want, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	const size_t n = (size_t)w->ref.len;
	int rc;

	if (!in && n > 0)
		return chunkio_decode_apart(c, array, linear, w, out, want, e);
	rc = source_read_stored(c->source, array, linear, &w->ref, 0, in, n, e);
	if (rc == 0 && in != out)
		rc = codec_chain_decode(&a->chain, delivery_skipped(a, &w->ref), a->type.size,
					in, n, out, want, m->codec, e);
	return rc;
}

/* load_stored - read a stored chunk and undo its filters into out, chunk_bytes long. */
static int load_stored(struct chunkio *c, uint32_t array, uint64_t linear,
		       const struct delivery *w, struct chunkio_scratch *m, uint8_t *out,
		       struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	bool plain = delivery_plain(a, &w->ref), apart;
	uint64_t whole = a->chunk_bytes, want;
	uint8_t *in;
	int rc;

	if (ckd_sub(&want, whole, w->ref.pad))
		return err_set(e, -EBADMSG, "padding of %" PRIu64 " bytes exceeds %" PRIu64,
			       w->ref.pad, whole);
	if (plain && w->ref.len != want)
		return delivery_bad_length(w->ref.len, want, e);
	/* no filter doubles incompressible bytes; a length beyond that is damage, and is not
	 * allocated */
	if (w->ref.len / 2 > whole && w->ref.len - 2 * whole > CHUNKIO_SLACK)
		return err_set(e, -EBADMSG,
			       "stored length %" PRIu64 " is too large for %" PRIu64 " bytes",
			       w->ref.len, whole);
	apart = !plain && codec_chain_apart(&a->chain, delivery_skipped(a, &w->ref));
	in = plain ? out : apart ? NULL : buf_grow(&m->stored, (size_t)w->ref.len);
	if (!in && !apart && w->ref.len > 0)
		return err_nomem(e);
	rc = read_decoded(c, array, linear, w, m, in, out, (size_t)want, e);
	if (rc == -EBADMSG && source_forget(c->source, array, linear))
		rc = read_decoded(c, array, linear, w, m, in, out, (size_t)want, e);
	if (rc == 0)
		memset(out + want, 0, (size_t)w->ref.pad);
	return rc;
}

/* read_elements - the elements of one chunk, a->chunk_bytes, however stored. */
static int read_elements(struct chunkio *c, uint32_t array, uint64_t linear,
			 const struct delivery *w, struct chunkio_scratch *m, uint8_t *out,
			 struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];

	if (w->ref.where == CHUNK_RANGE && c->arrays[array].decodable)
		return load_stored(c, array, linear, w, m, out, e);
	return source_read_chunk(c->source, array, linear, out, (size_t)a->chunk_bytes, e);
}

/* load_elements - the same as the plan presents them. The fill value is never quantised. */
static int load_elements(struct chunkio *c, uint32_t array, uint64_t linear,
			 const struct delivery *w, struct chunkio_scratch *m, uint8_t *out,
			 struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	const struct plan *p = &c->plans[array];
	int rc;

	if (w->fill) {
		frame_fill_tile(w->fill, 0, out, (size_t)a->chunk_bytes);
		return 0;
	}
	rc = read_elements(c, array, linear, w, m, out, e);
	if (rc == 0 && p->quant.mode != CODEC_QUANT_NONE)
		codec_quantize(&p->quant, a->type.size, a->type.big_endian, p->quant_fill, out,
			       a->chunk_bytes / a->type.size);
	return rc;
}

/* load_framed - elements in a form that the plan's chain decodes, without compressing them. */
static int load_framed(struct chunkio *c, uint32_t array, uint64_t linear,
		       const struct delivery *w, struct chunkio_scratch *m,
		       struct cache_entry *x, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	uint8_t *elems = buf_grow(&m->elems, (size_t)a->chunk_bytes);
	uint8_t *out = cache_alloc(x, (size_t)w->size);
	int rc;

	if (!elems || !out)
		return err_nomem(e);
	rc = load_elements(c, array, linear, w, m, elems, e);
	return rc ? rc
		  : codec_chain_frame(&c->plans[array].chain, a->type.size, elems,
				      (size_t)a->chunk_bytes, out, e);
}

/* was - check that a chunk which was encoded before has the same size again: that size was already
 * reported to the kernel. */
static int was(struct chunkio *c, uint32_t array, uint64_t linear, const struct delivery *w,
	       uint64_t size, struct err *e)
{
	uint64_t before =
		w->sized ? w->size : sizes_get(c->sizes, c->arrays[array].owner, linear);

	if (before == 0 || before == size)
		return 0;
	return err_set(e, -EIO, "encoding produced %" PRIu64 " bytes, but %" PRIu64 " before",
		       size, before);
}

/* load_encoded - elements in the plan's chain. */
static int load_encoded(struct chunkio *c, uint32_t array, uint64_t linear,
			const struct delivery *w, struct chunkio_scratch *m,
			struct cache_entry *x, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	const struct plan *p = &c->plans[array];
	uint8_t *elems = buf_grow(&m->elems, (size_t)a->chunk_bytes), *out;
	struct buf *made = &m->stored; /* the chunk that was read is in elems by now */
	int rc = elems ? load_elements(c, array, linear, w, m, elems, e) : err_nomem(e);

	buf_clear(made);
	rc = rc ? rc
		: codec_chain_encode(&p->chain, p->elem_size, elems, (size_t)p->bytes, m->codec,
				     made, e);
	rc = rc ? rc : was(c, array, linear, w, made->len, e);
	if (rc < 0)
		return rc;
	out = cache_alloc(x, made->len);
	if (!out)
		return err_nomem(e);
	if (made->len > 0)
		memcpy(out, made->data, made->len);
	return 0;
}

/* load_strings - elements without a fixed size, framed or cut to one. */
static int load_strings(struct chunkio *c, uint32_t array, uint64_t linear,
			const struct delivery *w, struct chunkio_scratch *m,
			struct cache_entry *x, struct err *e)
{
	const struct plan *p = &c->plans[array];
	struct buf *body = &m->stored;
	uint64_t n;
	uint8_t *out;
	int rc = frame_count(&c->source->ds.arrays[array], &n, e);

	if (rc < 0)
		return rc;
	body->max = FRAME_BYTES_MAX;
	rc = chunkio_read_vlen(c->source, array, linear, n, body, NULL, e);
	body->max = PTRDIFF_MAX;
	if (rc < 0)
		return rc;
	out = cache_alloc(x, p->kind == PLAN_FIXED ? (size_t)w->size
						   : CODEC_VLEN_HEAD + body->len);
	if (!out)
		return err_nomem(e);
	if (p->kind == PLAN_FIXED) {
		frame_fixed(body->data, body->len, n, p->fixed_size, out);
		return 0;
	}
	put_le32(out, (uint32_t)n);
	if (body->len > 0)
		memcpy(out + CODEC_VLEN_HEAD, body->data, body->len);
	return 0;
}

static int load_into(struct chunkio *c, uint32_t array, uint64_t linear,
		     const struct delivery *w, struct chunkio_scratch *m, struct cache_entry *x,
		     struct err *e)
{
	const struct plan *p = &c->plans[array];
	uint8_t *out;

	if (p->kind == PLAN_VLEN || p->kind == PLAN_FIXED)
		return load_strings(c, array, linear, w, m, x, e);
	if (p->kind == PLAN_ENCODE)
		return load_encoded(c, array, linear, w, m, x, e);
	if (p->kind == PLAN_PASS && p->chain.n > 0)
		return load_framed(c, array, linear, w, m, x, e);
	out = cache_alloc(x, (size_t)w->size);
	if (!out)
		return err_nomem(e);
	return load_elements(c, array, linear, w, m, out, e);
}

int chunkio_load(struct chunkio *c, uint32_t array, uint64_t linear, const struct delivery *w,
		 struct cache_entry *x, struct err *e)
{
	struct err own = ERR_INIT, changed = ERR_INIT;
	struct chunkio_scratch *m = scratch_take(c);
	size_t len;
	int rc, check;

	if (m) {
		rc = load_into(c, array, linear, w, m, x, &own);
		scratch_give(c, m, u64_max(w->size, c->source->ds.arrays[array].chunk_bytes));
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
		(void)cache_data(x, &len);
		if (!w->sized)
			sizes_put(c->sizes, c->arrays[array].owner, linear, len);
		cache_publish(x);
		metrics_count(M_CHUNKS_MADE);
		return 0;
	}
	if (rc != -ESTALE && rc != -EINTR)
		metrics_count(c->arrays[array].decodable && rc == -EBADMSG ? M_FAULT_CODEC
									   : M_FAULT_SOURCE);
	rc = chunkio_say_where(c, array, linear, rc, &own);
	cache_fail(x, &own);
	if (e)
		*e = own;
	return rc;
}

/* chunkio_decode_apart - the stored bytes are read into memory shared with another process, which
 * decodes them there: the only copy is that of the elements. */
int chunkio_decode_apart(struct chunkio *c, uint32_t array, uint64_t linear,
			 const struct delivery *w, uint8_t *out, size_t want, struct err *e)
{
	const struct ds_array *a = &c->source->ds.arrays[array];
	const size_t n = (size_t)w->ref.len;
	enum worker_fate fate = WORKER_RETRY;
	bool again = false;
	int rc;

	(void)pthread_mutex_lock(&c->lock);
	rc = worker_blame_check(&c->blame, array, linear, "decoding", "", e);
	(void)pthread_mutex_unlock(&c->lock);
	for (; rc == 0 && fate == WORKER_RETRY; again = true) {
		struct decoder *d;
		uint8_t *in;

		fate = WORKER_FAILED;
		rc = decoder_take(&a->chain, n, want, again, &d, &in, e);
		if (rc < 0)
			return rc;
		rc = source_read_stored(c->source, array, linear, &w->ref, 0, in, n, e);
		rc = rc ? rc
			: decoder_run(d, &a->chain, delivery_skipped(a, &w->ref), a->type.size,
				      out, &fate, e);
		decoder_give(d);
		if (fate == WORKER_FATAL) {
			LOCK_SCOPE(&c->lock);

			worker_blame_add(&c->blame, array, linear, 0);
		}
		if (fate == WORKER_RETRY)
			rc = 0;
	}
	return rc;
}
