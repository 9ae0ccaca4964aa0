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
	if (!m->codec)
		scratch_free(steal(&m));
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

/* decode_apart - read a stored chunk into memory that is shared with another process, which undoes
 * its filters there, `want` bytes to out: the only copy is that of the elements. Returns the errors
 * of codec_chain_decode, or -EIO. */
static int decode_apart(const struct located *k, uint8_t *out, size_t want, struct err *e)
{
	struct chunkio *c = k->c;
	const size_t n = (size_t)k->w.ref.len;
	enum worker_fate fate = WORKER_RETRY;
	bool again = false;
	int rc;

	(void)pthread_mutex_lock(&c->lock);
	rc = worker_blame_check(&c->blame, k->array, k->linear, "decoding", "", e);
	(void)pthread_mutex_unlock(&c->lock);
	for (; rc == 0 && fate == WORKER_RETRY; again = true) {
		struct decoder *d;
		uint8_t *in;

		fate = WORKER_FAILED;
		rc = decoder_take(&k->a->chain, n, want, again, &d, &in, e);
		if (rc < 0)
			return rc;
		rc = source_read_stored(c->source, k->array, k->linear, &k->w.ref, 0, in, n, e);
		rc = rc ? rc
			: decoder_run(d, &k->a->chain, delivery_skipped(k->a, &k->w.ref),
				      k->a->type.size, out, &fate, e);
		decoder_give(d);
		if (fate == WORKER_FATAL) {
			LOCK_SCOPE(&c->lock);

			worker_blame_add(&c->blame, k->array, k->linear, 0);
		}
		if (fate == WORKER_RETRY)
			rc = 0;
	}
	return rc;
}

/* read_decoded - the stored bytes into `in`, and, unless that is out, what they decode to. in: NULL
 * when another process decodes. */
static int read_decoded(const struct located *k, struct chunkio_scratch *m, uint8_t *in,
			uint8_t *out, size_t want, struct err *e)
{
	const size_t n = (size_t)k->w.ref.len;
	int rc;

	if (!in && n > 0)
		return decode_apart(k, out, want, e);
	rc = source_read_stored(k->c->source, k->array, k->linear, &k->w.ref, 0, in, n, e);
	if (rc == 0 && in != out)
		rc = codec_chain_decode(&k->a->chain, delivery_skipped(k->a, &k->w.ref),
					k->a->type.size, in, n, out, want, m->codec, e);
	return rc;
}

/* load_stored - read a stored chunk and undo its filters into out, chunk_bytes long. */
static int load_stored(const struct located *k, struct chunkio_scratch *m, uint8_t *out,
		       struct err *e)
{
	const struct chunk_ref *ref = &k->w.ref;
	bool plain = delivery_plain(k->a, ref), apart;
	uint64_t whole = k->a->chunk_bytes, want;
	uint8_t *in;
	int rc;

	if (ckd_sub(&want, whole, ref->pad))
		return err_set(e, -EBADMSG, "padding of %" PRIu64 " bytes exceeds %" PRIu64,
			       ref->pad, whole);
	if (plain && ref->len != want)
		return delivery_bad_length(ref->len, want, e);
	/* no filter doubles incompressible bytes; a length beyond that is damage, and is not
	 * allocated */
	if (ref->len / 2 > whole && ref->len - 2 * whole > CHUNKIO_SLACK)
		return err_set(e, -EBADMSG,
			       "stored length %" PRIu64 " is too large for %" PRIu64 " bytes",
			       ref->len, whole);
	apart = !plain && codec_chain_apart(&k->a->chain, delivery_skipped(k->a, ref));
	in = plain ? out : apart ? NULL : buf_grow(&m->stored, (size_t)ref->len);
	if (!in && !apart && ref->len > 0)
		return err_nomem(e);
	rc = read_decoded(k, m, in, out, (size_t)want, e);
	if (rc == -EBADMSG && source_forget(k->c->source, k->array, k->linear))
		rc = read_decoded(k, m, in, out, (size_t)want, e);
	if (rc == 0)
		memset(out + want, 0, (size_t)ref->pad);
	return rc;
}

/* load_elements - the elements of one chunk, a->chunk_bytes, however stored, as the plan presents
 * them. The fill value is never quantised. */
static int load_elements(const struct located *k, struct chunkio_scratch *m, uint8_t *out,
			 struct err *e)
{
	const size_t n = (size_t)k->a->chunk_bytes;
	int rc;

	if (k->w.fill) {
		frame_fill_tile(k->w.fill, 0, out, n);
		return 0;
	}
	if (k->w.ref.where == CHUNK_RANGE && k->c->arrays[k->array].decodable)
		rc = load_stored(k, m, out, e);
	else
		rc = source_read_chunk(k->c->source, k->array, k->linear, out, n, e);
	if (rc == 0 && k->p->quant.mode != CODEC_QUANT_NONE)
		codec_quantize(&k->p->quant, k->a->type.size, k->a->type.big_endian,
			       k->p->quant_fill, out, n / k->a->type.size);
	return rc;
}

/* load_framed - elements in a form that the plan's chain decodes, without compressing them. */
static int load_framed(const struct located *k, struct chunkio_scratch *m,
		       struct cache_entry *x, struct err *e)
{
	const size_t n = (size_t)k->a->chunk_bytes;
	uint8_t *elems = buf_grow(&m->elems, n), *out = cache_alloc(x, (size_t)k->w.size);
	int rc = elems && out ? load_elements(k, m, elems, e) : err_nomem(e);

	return rc ? rc
		  : codec_chain_frame(&k->p->chain, k->a->type.size, elems, n, out, e);
}

/* was - check that a chunk which was encoded before has the same size again: that size was already
 * reported to the kernel. */
static int was(const struct located *k, uint64_t size, struct err *e)
{
	uint64_t before = k->w.sized ? k->w.size
				     : sizes_get(k->c->sizes, k->c->arrays[k->array].owner,
						 k->linear);

	if (before == 0 || before == size)
		return 0;
	return err_set(e, -EIO, "encoding produced %" PRIu64 " bytes, but %" PRIu64 " before",
		       size, before);
}

/* load_encoded - elements in the plan's chain. */
static int load_encoded(const struct located *k, struct chunkio_scratch *m,
			struct cache_entry *x, struct err *e)
{
	uint8_t *elems = buf_grow(&m->elems, (size_t)k->a->chunk_bytes), *out;
	struct buf *made = &m->stored; /* the chunk that was read is in elems by now */
	int rc = elems ? load_elements(k, m, elems, e) : err_nomem(e);

	buf_clear(made);
	rc = rc ? rc
		: codec_chain_encode(&k->p->chain, k->p->elem_size, elems, (size_t)k->p->bytes,
				     m->codec, made, e);
	rc = rc ? rc : was(k, made->len, e);
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
static int load_strings(const struct located *k, struct chunkio_scratch *m,
			struct cache_entry *x, struct err *e)
{
	struct buf *body = &m->stored;
	uint64_t n;
	uint8_t *out;
	int rc = frame_count(k->a, &n, e);

	if (rc < 0)
		return rc;
	body->max = FRAME_BYTES_MAX;
	rc = chunkio_read_vlen(k->c->source, k->array, k->linear, n, body, NULL, e);
	body->max = PTRDIFF_MAX;
	if (rc < 0)
		return rc;
	out = cache_alloc(x, k->p->kind == PLAN_FIXED ? (size_t)k->w.size
						      : CODEC_VLEN_HEAD + body->len);
	if (!out)
		return err_nomem(e);
	if (k->p->kind == PLAN_FIXED) {
		frame_fixed(body->data, body->len, n, k->p->fixed_size, out);
		return 0;
	}
	put_le32(out, (uint32_t)n);
	if (body->len > 0)
		memcpy(out + CODEC_VLEN_HEAD, body->data, body->len);
	return 0;
}

static int load_into(const struct located *k, struct chunkio_scratch *m, struct cache_entry *x,
		     struct err *e)
{
	uint8_t *out;

	if (k->p->kind == PLAN_VLEN || k->p->kind == PLAN_FIXED)
		return load_strings(k, m, x, e);
	if (k->p->kind == PLAN_ENCODE)
		return load_encoded(k, m, x, e);
	if (k->p->kind == PLAN_PASS && k->p->chain.n > 0)
		return load_framed(k, m, x, e);
	out = cache_alloc(x, (size_t)k->w.size);
	return out ? load_elements(k, m, out, e) : err_nomem(e);
}

int chunkio_load(const struct located *k, struct cache_entry *x, struct err *e)
{
	const struct array_state *st = &k->c->arrays[k->array];
	struct err own = ERR_INIT, changed = ERR_INIT;
	struct chunkio_scratch *m = scratch_take(k->c);
	size_t len;
	int rc, check;

	if (m) {
		rc = load_into(k, m, x, &own);
		scratch_give(k->c, m, u64_max(k->w.size, k->a->chunk_bytes));
		/* bytes of a file that was changed are neither good nor bad, whatever the
		 * decoder thought of them */
		check = source_check(k->c->source, &changed);
		if (check < 0) {
			rc = check;
			own = changed;
		}
	} else {
		rc = err_nomem(&own);
	}
	if (rc == 0) {
		(void)cache_data(x, &len);
		if (!k->w.sized)
			sizes_put(k->c->sizes, st->owner, k->linear, len);
		cache_publish(x);
		metrics_count(M_CHUNKS_MADE);
		return 0;
	}
	if (rc != -ESTALE && rc != -EINTR)
		metrics_count(st->decodable && rc == -EBADMSG ? M_FAULT_CODEC : M_FAULT_SOURCE);
	rc = chunkio_say_where(k->c, k->array, k->linear, rc, &own);
	cache_fail(x, &own);
	if (e)
		*e = own;
	return rc;
}
