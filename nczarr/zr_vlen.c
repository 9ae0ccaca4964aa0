/* zr_vlen.c - elements without a fixed size: from the frame of numcodecs' filters to the body that
 * source.h promises.
 *
 * The frame is a count, then a length and bytes for each element, all little-endian. Where the
 * stored elements are the model's in the model's order, its body is already what is wanted and is
 * only checked. Else the elements are found first, and put in order as pointers. NCZarr's strings
 * have no frame: they are as long as the dtype says. */
#include "nczarr/zr_data_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/slice.h"
#include "base/str.h"

/* next_item - one element off the frame. */
static int next_item(struct slice *s, uint64_t i, uint64_t n, struct zr_item_bytes *ret,
		     struct err *e)
{
	uint32_t len = rd_le32(s);
	size_t left = s->len;
	const uint8_t *p = rd_bytes(s, len);

	if (!slice_ok(s))
		return err_set(e, -EBADMSG,
			       "element %" PRIu64 " of %" PRIu64 " has %" PRIu32
			       " bytes where %zu are left",
			       i, n, len, left);
	*ret = (struct zr_item_bytes){p, len};
	return 0;
}

int zr_frame_items(const uint8_t *body, size_t len, uint64_t n, struct zr_item_bytes *ret,
		   struct err *e)
{
	struct slice s = slice_of(body, len);
	uint32_t count = rd_le32(&s);
	int rc = 0;

	if (!slice_ok(&s) || count != n)
		return err_set(e, -EBADMSG, "%" PRIu32 " elements in a chunk of %" PRIu64,
			       count, n);
	for (uint64_t i = 0; !rc && i < n; i++)
		rc = next_item(&s, i, n, &ret[i], e);
	if (!rc && s.len > 0)
		rc = err_set(e, -EBADMSG, "%zu bytes behind the last element", s.len);
	return rc;
}

/* fixed_items - texts of `size` bytes each, up to their first NUL. netCDF-C cuts what is longer at
 * any byte: half a character at the end is left out. */
static int fixed_items(const uint8_t *in, size_t len, uint64_t n, uint32_t size,
		       struct zr_item_bytes *ret, struct err *e)
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
		ret[i] = (struct zr_item_bytes){p, str_utf8_ok(p, cut) ? cut : k};
	}
	return 0;
}

/* check_item - whether an element is what the model says. */
static int check_item(const struct ds_array *a, const struct zr_item_bytes *x, uint64_t i,
		      struct err *e)
{
	if (a->type.kind == DT_VSTRING && !str_utf8_ok(x->p, x->len))
		return err_set(e, -EBADMSG, "element %" PRIu64 " is not valid UTF-8", i);
	if (a->type.kind == DT_VLEN && x->len % a->type.base->size != 0)
		return err_set(e, -EBADMSG,
			       "element %" PRIu64 " of %zu bytes is no list of %" PRIu32
			       " bytes each",
			       i, x->len, a->type.base->size);
	if (x->len > UINT32_MAX)
		return err_set(e, -ERANGE, "element %" PRIu64 " has %zu bytes", i, x->len);
	return 0;
}

static void put_item(const struct zr_item_bytes *x, struct buf *out)
{
	buf_put_le32(out, (uint32_t)x->len);
	if (x->len > 0)
		buf_put(out, x->p, x->len);
}

static int full(const struct buf *out, struct err *e)
{
	if (buf_ok(out))
		return 0;
	return err_set(e, -ERANGE, "a chunk's elements take more than %zu bytes", out->max);
}

/* put_items - the model's elements out of the stored ones. */
static int put_items(const struct ds_array *a, const struct zr_place *p,
		     const struct zr_item_bytes *items, struct zr_scratch *m, struct buf *out,
		     struct err *e)
{
	uint64_t n = 1;
	int rc = 0;

	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d]; /* <= n_elems */
	if (!p->as_is) {
		struct zr_item_bytes *moved;

		buf_clear(&m->elems); /* free: elements are where they were decoded */
		moved = (void *)buf_grow(&m->elems, (size_t)n * sizeof(*moved));
		if (!moved)
			return err_nomem(e);
		zr_rearrange(a, p, sizeof(*moved), (const void *)items, (void *)moved);
		items = moved;
	}
	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = check_item(a, &items[i], i, e);
		if (!rc)
			put_item(&items[i], out);
	}
	return rc ? rc : full(out, e);
}

/* put_body - a frame whose body is the model's. */
static int put_body(const struct ds_array *a, const uint8_t *in, size_t len, uint64_t n,
		    struct buf *out, struct err *e)
{
	struct slice s = slice_of(in, len);
	uint32_t count = rd_le32(&s);
	size_t body = s.len;
	struct zr_item_bytes x = {NULL, 0};
	int rc = 0;

	if (!slice_ok(&s) || count != n)
		return err_set(e, -EBADMSG, "%" PRIu32 " elements in a chunk of %" PRIu64,
			       count, n);
	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = next_item(&s, i, n, &x, e);
		if (!rc)
			rc = check_item(a, &x, i, e);
	}
	if (!rc && s.len > 0)
		rc = err_set(e, -EBADMSG, "%zu bytes behind the last element", s.len);
	if (rc)
		return rc;
	if (body > 0)
		buf_put(out, in + 4, body);
	return full(out, e);
}

/* put_decoded - the model's elements out of a decoded chunk. */
static int put_decoded(const struct ds_array *a, const struct zr_place *p, const uint8_t *in,
		       size_t len, struct zr_scratch *m, struct buf *out, struct err *e)
{
	struct zr_item_bytes *items;
	json_t *doc = NULL;
	int rc;

	if (p->as_is && p->meta->vlen != ZR_VLEN_JSON && p->meta->vlen != ZR_VLEN_FIXED)
		return put_body(a, in, len, p->n_elems, out, e);
	/* a count that lies asks for no memory: an element takes some bytes in any frame */
	if (p->n_elems > len)
		return err_set(e, -EBADMSG, "%zu bytes for %" PRIu64 " elements", len,
			       p->n_elems);
	buf_clear(&m->moved);
	items = (void *)buf_grow(&m->moved, (size_t)p->n_elems * sizeof(*items));
	if (!items)
		return err_nomem(e);
	if (p->meta->vlen == ZR_VLEN_JSON)
		rc = zr_json_items(in, len, p->n_elems, items, &doc, e);
	else if (p->meta->vlen == ZR_VLEN_FIXED)
		rc = fixed_items(in, len, p->n_elems, p->meta->dtype.stored, items, e);
	else
		rc = zr_frame_items(in, len, p->n_elems, items, e);
	if (!rc)
		rc = put_items(a, p, items, m, out, e);
	json_decref(doc);
	return rc;
}

/* put_absent - the fill value for every element. */
static int put_absent(const struct ds_array *a, struct buf *out, struct err *e)
{
	struct ds_text fill = a->fill_text;
	struct zr_item_bytes x = {(const uint8_t *)fill.s, fill.len};
	uint64_t n = 1;
	int rc = check_item(a, &x, 0, e);

	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d]; /* ds_array_finish has checked it */
	for (uint64_t i = 0; !rc && i < n && buf_ok(out); i++)
		put_item(&x, out);
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
	rc = codec_chain_decode_any(&p->meta->chain, elem, in, n, ZR_FRAME_MAX, m->codec, &decoded,
				    &len, e);
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
