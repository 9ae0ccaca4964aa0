/* SPDX-License-Identifier: BSD-3-Clause */
/* fill_chunk.c - content that is made here rather than stored: fill values and variable-length
 * framing. Everything is a pure function of the model and the plan, so that two threads that
 * make the same thing make the same bytes. */
#include "translate/chunkio/fill_chunk.h"

#include "base/core/endian.h"
#include "codecs/vlen/vlen.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define ENCODED_MAX ((size_t)1 << 20) /* a larger encoded fill chunk is not kept in memory */
#define TILE_STEP 16384u              /* bytes that are copied from the tile's own start */

int frame_count(const struct ds_array *a, uint64_t *ret, struct err *e)
{
	uint64_t n = 1;

	if (!u64_product(&n, a->chunk, a->rank, UINT32_MAX))
		return err_set(e, -ERANGE, "more than %" PRIu32 " elements in a chunk",
			       UINT32_MAX);
	*ret = n;
	return 0;
}

static bool fill_chunk_all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* fill_new - kind FILL_TILED with room for n bytes of content, zeroed. */
static struct fill *fill_new(size_t n, uint64_t size)
{
	struct fill *f;
	size_t total;

	if (ckd_add(&total, sizeof(*f), n))
		return NULL;
	f = alloc_array(1, total);
	if (!f)
		return NULL;
	f->kind = FILL_TILED;
	f->size = size;
	f->n = n;
	return f;
}

void frame_fill_tile(const struct fill *f, uint64_t off, uint8_t *out, size_t n)
{
	size_t phase = (size_t)(off % f->n), done = 0, period = f->n;

	if (f->n == 1) {
		memset(out, f->bytes[0], n);
		return;
	}
	/* one period from the tile, then copies of the bytes so far, doubling up to a step that
	 * stays in the processor's nearest cache */
	while (done < n && done < period) {
		size_t at = (phase + done) % period;
		size_t k = (size_t)u64_min(u64_min(period - at, period - done), n - done);

		memcpy(out + done, f->bytes + at, k);
		done += k;
	}
	for (size_t step = period; done < n;) {
		size_t k = (size_t)u64_min(step, n - done);

		memcpy(out + done, out + done - step, k);
		done += k;
		if (step < TILE_STEP)
			step = done / period * period;
	}
}

/* bound_text - the most bytes of s that fit into size without splitting a character. */
static size_t bound_text(const uint8_t *s, size_t len, size_t size)
{
	size_t n = size;

	if (len <= size)
		return len;
	while (n > 0 && size - n < 3 && (s[n] & 0xc0) == 0x80)
		n--;
	return (s[n] & 0xc0) == 0x80 ? size : n;
}

int frame_size(uint64_t n, uint64_t each, uint64_t head, uint64_t *ret, struct err *e)
{
	uint64_t size;

	if (ckd_mul(&size, n, each) || ckd_add(&size, size, head) || size > FRAME_BYTES_MAX)
		return err_set(e, -ERANGE,
			       "%" PRIu64 " elements of %" PRIu64 " bytes exceed %" PRIu64
			       " bytes per chunk",
			       n, each, FRAME_BYTES_MAX);
	*ret = size;
	return 0;
}

static int fill_vlen(const struct ds_array *a, struct fill **ret, struct err *e)
{
	struct ds_text text = a->fill_text;
	uint64_t n = 0, size = 0;
	struct fill *f;
	int rc = frame_count(a, &n, e);

	if (rc < 0)
		return rc;
	if (a->type.kind != DT_VSTRING || !text.s)
		text.len = 0;
	if (text.len > FRAME_BYTES_MAX)
		return err_set(e, -ERANGE, "a fill string of %zu bytes is too long", text.len);
	rc = frame_size(n, 4 + text.len, CODEC_VLEN_HEAD, &size, e);
	if (rc < 0)
		return rc;
	f = fill_new(4 + text.len, size);
	if (!f)
		return err_nomem(e);
	put_le32(f->head, (uint32_t)n);
	f->head_len = CODEC_VLEN_HEAD;
	put_le32(f->bytes, (uint32_t)text.len);
	if (text.len > 0)
		memcpy(f->bytes + 4, text.s, text.len);
	*ret = f;
	return 0;
}

static int fill_fixed(const struct ds_array *a, const struct plan *p, struct fill **ret,
		      struct err *e)
{
	const struct ds_text *text = &a->fill_text;
	uint64_t n = 0, size = 0;
	struct fill *f;
	int rc = frame_count(a, &n, e);

	rc = rc ? rc : frame_size(n, p->fixed_size, 0, &size, e);
	if (rc < 0)
		return rc;
	f = fill_new(p->fixed_size, size);
	if (!f)
		return err_nomem(e);
	if (text->s)
		memcpy(f->bytes, text->s,
		       bound_text((const uint8_t *)text->s, text->len, p->fixed_size));
	*ret = f;
	return 0;
}

/* encode_fill - the first `bytes` bytes of elements f in the chain's real encoding, into out. */
static int encode_fill(const struct plan *p, size_t elem_size, uint64_t bytes,
		       const struct fill *f, struct buf *out, struct err *e)
{
	auto_free uint8_t *elems = malloc((size_t)bytes);
	struct codec_scratch *scratch = codec_scratch_new();
	int rc = 0;

	if (!elems || !scratch)
		rc = err_nomem(e);
	if (rc == 0)
		frame_fill_tile(f, 0, elems, (size_t)bytes);
	rc = rc ? rc
		: codec_chain_encode(&p->chain, elem_size, elems, (size_t)bytes, scratch, out,
				     e);
	codec_scratch_free(scratch);
	return rc;
}

/* keep_encoded - turn *f into the encoded chunk, where that is small enough to be kept. 1: it is;
 * 0; -ENOMEM: what it is to be says nothing about the chunk. */
static int keep_encoded(const struct buf *out, struct fill **f, struct err *e)
{
	struct fill *enc;

	if (out->starved)
		return err_nomem(e);
	if (!buf_ok(out) || out->len == 0 || out->len > ENCODED_MAX)
		return 0;
	enc = fill_new(out->len, out->len);
	if (!enc)
		return err_nomem(e);
	enc->kind = FILL_ENCODED;
	memcpy(enc->bytes, out->data, out->len);
	free(*f);
	*f = enc;
	return 1;
}

/* fill_chunk_exact - whether encoding a fill value gives it back: no filter of the chain rounds. */
static bool fill_chunk_exact(const struct codec_chain *chain)
{
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!ops || ops->lossy)
			return false;
	}
	return true;
}

/* present_framed - under PASS: really encoded, or framed where that is not smaller, too large to
 * keep, or not possible. */
static int present_framed(const struct ds_array *a, const struct plan *p, struct fill **f,
			  struct err *e)
{
	uint64_t framed = codec_chain_framed_size(&p->chain, a->chunk_bytes);
	struct err why = ERR_INIT;
	auto_buf out = buf_of(SIZE_MAX);
	int rc = 0;

	if (fill_chunk_exact(&p->chain))
		rc = encode_fill(p, a->type.size, a->chunk_bytes, *f, &out, &why);
	if (rc == 0 && out.len > 0 && (framed == 0 || out.len < framed))
		rc = keep_encoded(&out, f, &why);
	if (err_is_transient(rc)) /* there is one form of a chunk, not one for each day */
		return err_set(e, rc, "%s", why.msg);
	if (rc > 0)
		return 0;
	if (framed == 0)
		return err_set(e, -ERANGE, "a chunk of %" PRIu64 " bytes cannot be framed",
			       a->chunk_bytes);
	(*f)->kind = FILL_FRAMED;
	(*f)->size = framed;
	return 0;
}

/* present_encoded - under ENCODE: as any other chunk, made now to know its size. */
static int present_encoded(const struct plan *p, struct fill **f, struct err *e)
{
	auto_buf out = buf_of(SIZE_MAX);
	int rc = encode_fill(p, p->elem_size, p->bytes, *f, &out, e);

	rc = rc ? rc : keep_encoded(&out, f, e);
	if (rc == 0) {
		(*f)->kind = FILL_FRAMED;
		(*f)->size = out.len;
	}
	return rc < 0 ? rc : 0;
}

static int fill_elements(const struct ds_array *a, const struct plan *p, struct fill **ret,
			 struct err *e)
{
	struct fill *f;
	int rc = 0;

	if (a->type.size == 0 || a->chunk_bytes == 0)
		return err_set(e, -EOPNOTSUPP,
			       "elements without a fixed size are not supported here");
	f = fill_new(a->type.size, a->chunk_bytes);
	if (!f)
		return err_nomem(e);
	if (a->fill)
		memcpy(f->bytes, a->fill, a->type.size);
	if (p->kind == PLAN_ENCODE)
		rc = present_encoded(p, &f, e);
	else if (p->kind == PLAN_PASS && p->chain.n > 0)
		rc = present_framed(a, p, &f, e);
	if (rc < 0)
		free(f);
	else
		*ret = f;
	return rc;
}

int frame_fill_make(const struct ds_array *a, const struct plan *p, struct fill **ret,
		    struct err *e)
{
	int rc;

	if (p->kind == PLAN_VLEN)
		rc = fill_vlen(a, ret, e);
	else if (p->kind == PLAN_FIXED)
		rc = fill_fixed(a, p, ret, e);
	else
		rc = fill_elements(a, p, ret, e);
	if (rc == 0)
		(*ret)->zeros = fill_chunk_all_zero((*ret)->bytes, (*ret)->n);
	return rc;
}

int frame_fill_span(const struct fill *f, uint64_t off, size_t n, struct span *ret,
		    struct err *e)
{
	uint8_t *p;
	size_t head;

	*ret = (struct span){.fd = -1};
	if (f->kind == FILL_ENCODED) {
		ret->mem = f->bytes + off;
		ret->len = n;
		return 0;
	}
	head = off < f->head_len ? (size_t)u64_min(f->head_len - off, n) : 0;
	if (f->zeros) {
		if (head > 0)
			ret->mem = f->head + off;
		ret->len = head;
		ret->zeros = n - head;
		return 0;
	}
	p = malloc(n);
	if (!p)
		return err_nomem(e);
	if (head > 0)
		memcpy(p, f->head + off, head);
	if (head < n)
		frame_fill_tile(f, off + head - f->head_len, p + head, n - head);
	ret->mem = p;
	ret->len = n;
	ret->done = free;
	ret->arg = p;
	return 0;
}

int frame_vlen_check(const uint8_t *body, size_t len, uint64_t n, uint32_t *ret_max,
		     struct err *e)
{
	struct slice s = slice_of(body, len);
	uint32_t max = 0;

	for (uint64_t i = 0; i < n && slice_ok(&s); i++) {
		uint32_t k;

		(void)codec_vlen_next(&s, &k);
		max = k > max ? k : max;
	}
	if (!slice_ok(&s))
		return err_set(e, -EBADMSG, "fewer than %" PRIu64 " elements in %zu bytes", n,
			       len);
	if (s.len > 0)
		return err_set(e, -EBADMSG, "%zu bytes follow the last of %" PRIu64 " elements",
			       s.len, n);
	if (ret_max)
		*ret_max = max;
	return 0;
}

int frame_texts(const struct buf *body, uint64_t n, struct ds_text **ret, struct err *e)
{
	struct slice s = slice_of(body->data, body->len);
	struct ds_text *v = alloc_array((size_t)n, sizeof(*v));

	if (!v)
		return err_nomem(e);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t k;

		v[i].s = (const char *)codec_vlen_next(&s, &k);
		v[i].len = k;
	}
	*ret = v;
	return 0;
}

void frame_put_texts(const struct ds_text *v, uint64_t n, struct buf *out)
{
	for (uint64_t i = 0; i < n && buf_ok(out); i++)
		codec_vlen_put((const uint8_t *)v[i].s, v[i].len, out);
}

void frame_fixed(const uint8_t *body, size_t len, uint64_t n, uint32_t size, uint8_t *out)
{
	struct slice s = slice_of(body, len);

	for (uint64_t i = 0; i < n; i++, out += size) {
		uint32_t k;
		const uint8_t *text = codec_vlen_next(&s, &k);
		size_t use = text ? bound_text(text, k, size) : 0;

		if (use > 0)
			memcpy(out, text, use);
		memset(out + use, 0, size - use);
	}
}
