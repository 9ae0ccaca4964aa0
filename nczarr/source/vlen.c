/* vlen.c - elements without a fixed size: from what numcodecs' filters store (codecs/vlen/vlen.h)
 * to the body that translate/contract/source.h promises.
 *
 * Where the stored elements are the model's in the model's order, their body is what is wanted.
 * Else the elements are found in it first, and put in order as pointers. NCZarr's strings have no
 * frame: they are as long as the dtype says. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"

/* item - one element, wherever it is. */
struct item {
	const uint8_t *p;
	size_t len;
};

/* fixed_items - texts of `size` bytes each, up to their first NUL. netCDF-C cuts what is longer at
 * any byte: half a character at the end is left out. */
static int fixed_items(const uint8_t *in, size_t len, uint64_t n, uint32_t size,
		       struct item *ret, struct err *e)
{
	if (len / size != n || len % size != 0)
		return err_set(e, -EBADMSG,
			       "%zu bytes for %" PRIu64 " texts of %" PRIu32 " bytes", len, n,
			       size);
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *p = in + i * size;
		size_t k = strnlen((const char *)p, size), cut = k;

		for (int tries = 0; tries < 3 && k == size && cut > 0 && !str_utf8_ok(p, cut);
		     tries++)
			cut--;
		ret[i] = (struct item){p, str_utf8_ok(p, cut) ? cut : k};
	}
	return 0;
}

/* framing - what the elements are to codecs/vlen/vlen.h; those without a frame are texts. */
static enum codec_vlen framing(enum zr_vlen v)
{
	return v == ZR_VLEN_FIXED ? CODEC_VLEN_UTF8 : (enum codec_vlen)v;
}

/* base_size - bytes of what lists are made of. */
static uint32_t base_size(const struct ds_array *a)
{
	return a->type.kind == DT_VLEN ? a->type.base->size : 1;
}

static int full(const struct buf *out, struct err *e)
{
	if (buf_ok(out))
		return 0;
	return buf_full(out, e, -ERANGE, "a chunk's elements take more than %zu bytes",
			out->max);
}

/* put_items - the model's elements out of the stored ones. */
static int put_items(const struct ds_array *a, const struct zr_place *p,
		     const struct item *items, struct zr_scratch *m, struct buf *out,
		     struct err *e)
{
	uint64_t n = 1;
	int rc = 0;

	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d]; /* <= n_elems */
	if (!p->as_is) {
		struct item *moved;

		buf_clear(&m->elems); /* free: elements are where they were decoded */
		moved = (void *)buf_grow(&m->elems, (size_t)n * sizeof(*moved));
		if (!moved)
			return err_nomem(e);
		zr_rearrange(a, p, sizeof(*moved), (const void *)items, (void *)moved);
		items = moved;
	}
	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = codec_vlen_check(framing(p->meta->vlen), base_size(a), items[i].p,
				      items[i].len, i, e);
		if (!rc)
			codec_vlen_put(items[i].p, items[i].len, out);
	}
	return rc ? rc : full(out, e);
}

/* body_of - the body of the stored elements, in the stored order. Borrowed from in or m. */
static int body_of(const struct ds_array *a, const struct zr_place *p, const uint8_t *in,
		   size_t len, struct zr_scratch *m, struct item *ret, struct err *e)
{
	m->texts.max = (size_t)ZR_FRAME_MAX;
	return codec_vlen_decode(framing(p->meta->vlen), base_size(a), in, len, p->n_elems,
				 &m->texts, &ret->p, &ret->len, e);
}

/* put_decoded - the model's elements out of a decoded chunk. */
static int put_decoded(const struct ds_array *a, const struct zr_place *p, const uint8_t *in,
		       size_t len, struct zr_scratch *m, struct buf *out, struct err *e)
{
	const bool fixed = p->meta->vlen == ZR_VLEN_FIXED;
	struct item body = {in, len}, *items;
	int rc = fixed ? 0 : body_of(a, p, in, len, m, &body, e);

	if (rc)
		return rc;
	if (p->as_is && !fixed) {
		if (body.len > 0)
			buf_put(out, body.p, body.len);
		return full(out, e);
	}
	/* a count that lies asks for no memory: an element takes some bytes in any frame */
	if (p->n_elems > body.len)
		return err_set(e, -EBADMSG, "%zu bytes for %" PRIu64 " elements", body.len,
			       p->n_elems);
	buf_clear(&m->moved);
	items = (void *)buf_grow(&m->moved, (size_t)p->n_elems * sizeof(*items));
	if (!items)
		return err_nomem(e);
	if (fixed)
		rc = fixed_items(in, len, p->n_elems, p->meta->dtype.stored, items, e);
	for (uint64_t i = 0; !fixed && i < p->n_elems; i++) {
		uint32_t k;

		items[i].p = codec_vlen_next(&body.p, &body.len, &k);
		items[i].len = k;
	}
	return rc ? rc : put_items(a, p, items, m, out, e);
}

/* put_absent - the fill value for every element. */
static int put_absent(const struct ds_array *a, struct buf *out, struct err *e)
{
	struct ds_text fill = a->fill_text;
	const uint8_t *text = (const uint8_t *)fill.s;
	uint64_t n = 1;
	int rc = codec_vlen_check(a->type.kind == DT_VSTRING ? CODEC_VLEN_UTF8
							     : CODEC_VLEN_BYTES,
				  base_size(a), text, fill.len, 0, e);

	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d]; /* ds_array_finish has checked it */
	for (uint64_t i = 0; !rc && i < n && buf_ok(out); i++)
		codec_vlen_put(text, fill.len, out);
	return rc ? rc : full(out, e);
}

static int read_found(struct zr_source *s, uint32_t array, const struct zr_place *p,
		      const struct zr_spot *x, struct zr_scratch *m, struct buf *out,
		      struct err *e)
{
	const uint8_t *in, *decoded;
	uint32_t elem = p->meta->vlen == ZR_VLEN_FIXED ? p->meta->dtype.stored : 1;
	size_t n, len;
	int rc = zr_spot_bytes(s, array, p, x, ZR_FRAME_MAX, m, &in, &n, e);

	if (rc)
		return rc;
	rc = codec_chain_decode_any(&p->meta->chain, elem, in, n, ZR_FRAME_MAX, m->codec,
				    &decoded, &len, e);
	if (!rc)
		rc = put_decoded(&s->base.ds.arrays[array], p, decoded, len, m, out, e);
	return rc ? zr_object_blame(s, p, x, rc, e) : 0;
}

int zr_read_vlen(struct source *src, uint32_t array, uint64_t linear, struct buf *out,
		 struct err *e)
{
	struct zr_source *s = zr_of(src);
	const struct zr_place *p = zr_place_of(s, array, e);
	struct zr_scratch *m;
	struct zr_spot x;
	int rc;

	if (!p)
		return e && e->code ? e->code : -EIO;
	rc = zr_find(s, array, p, linear, &x, e);
	if (rc)
		return rc;
	if (x.where == ZR_NOWHERE)
		return put_absent(&src->ds.arrays[array], out, e);
	m = zr_scratch_take(s->data);
	rc = m ? read_found(s, array, p, &x, m, out, e) : err_nomem(e);
	if (m)
		zr_scratch_give(s->data, m);
	zr_spot_release(&x);
	return rc;
}
