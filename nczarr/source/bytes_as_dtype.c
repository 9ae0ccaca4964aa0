/* bytes_as_dtype.c - bytes that stand for elements: types that the readers of Zarr v3 do not agree
 * on are shown as uint8 by our own view of Zarr v3 (view/metadata_v3_dtype.c), with one axis more
 * for elements of several bytes, and ragged arrays as lists of bytes. An attribute says what they
 * are.
 *
 * The stored axes stay as they are but for the last, which becomes one of a single, larger element,
 * so that keys, shards and chunks are found as if nothing had happened. */
#include <errno.h>
#include <string.h>

#include "nczarr/source/array_v3.h"

#define MEANING "numpy_dtype"

/* parse - the dtype in the attribute. Returns 0; -ENOENT it says none that can be used. */
static int parse(struct arena *a, const struct ds_text *text, struct zr_dtype *ret,
		 struct err *e)
{
	struct err why = ERR_INIT;
	json_t *said = NULL;
	struct buf b;
	int rc;

	buf_init(&b, ZR_DOC_MAX);
	if (text->len > 0 && text->s[0] == '[')
		buf_put(&b, text->s, text->len);
	else if (text->len > 0 && !memchr(text->s, '"', text->len))
		buf_printf(&b, "\"%.*s\"", (int)u64_min(text->len, 64), text->s);
	rc = b.len > 0 && buf_ok(&b) ? json_read(b.data, b.len, &said, &why) : -EBADMSG;
	buf_release(&b);
	if (rc == 0)
		rc = zr_dtype_v2(a, said, false, ret, &why);
	if (said)
		json_decref(said);
	if (rc == -ENOMEM)
		return err_nomem(e);
	return rc < 0 || ret->conv != ZR_AS_STORED ? -ENOENT : 0;
}

/* rearranged - whether something depends on the elements or axes as they are stored. */
static bool rearranged(const struct zr_meta *m)
{
	bool is = m->order != NULL || m->unreadable;

	for (const struct zr_shard *s = m->shard; s; s = s->next)
		is = is || s->order;
	for (uint32_t i = 0; i < m->chain.n; i++) {
		const struct codec_ops *ops = codec_find(m->chain.specs[i].h5_id);

		is = is || !ops || ops->elements;
	}
	return is;
}

/* whole - whether the last axis is exactly the bytes of an element, in every chunk. */
static bool whole(const struct zr_meta *m, uint32_t size)
{
	const uint32_t last = m->rank - 1;

	if (m->rank == 0 || m->shape[last] != size || m->chunk[last] != size)
		return false;
	for (const struct zr_shard *s = m->shard; s; s = s->next)
		if (s->inner[last] != size || s->grid[last] != 1)
			return false;
	return true;
}

/* one_at_end - a copy of lengths with 1 as the last. */
static const uint64_t *one_at_end(struct arena *a, const uint64_t *v, uint32_t n)
{
	uint64_t *copy = arena_copy(a, v, n * sizeof(*v));

	if (copy)
		copy[n - 1] = 1;
	return copy;
}

/* shorten - the last axis becomes one element. */
static int shorten(struct arena *a, struct zr_meta *m, struct err *e)
{
	const struct zr_shard **link = &m->shard;

	m->shape = one_at_end(a, m->shape, m->rank);
	m->chunk = one_at_end(a, m->chunk, m->rank);
	if (!m->shape || !m->chunk)
		return zr_no_room(a, e);
	for (const struct zr_shard *s = m->shard; s; s = s->next) {
		struct zr_shard *copy = arena_copy(a, s, sizeof(*s));

		if (!copy)
			return zr_no_room(a, e);
		copy->inner = one_at_end(a, s->inner, m->rank);
		if (!copy->inner)
			return zr_no_room(a, e);
		*link = copy;
		link = &copy->next;
	}
	m->tail = true;
	return 0;
}

/* lists - of bytes, which are lists of numbers. */
static void lists(struct zr_meta *m, const struct dtype *base)
{
	m->dtype.type.base = base;
	m->vlen = ZR_VLEN_ARRAY;
}

static bool is_number(const struct dtype *t)
{
	return t->kind == DT_BOOL || t->kind == DT_INT || t->kind == DT_UINT ||
	       t->kind == DT_FLOAT || t->kind == DT_COMPLEX;
}

static bool is_bytes(const struct dtype *t)
{
	return t->kind == DT_STRING || t->kind == DT_OPAQUE || t->kind == DT_COMPOUND;
}

int zr_bytes_meaning(struct arena *a, struct zr_meta *m, struct err *e)
{
	const struct dtype *t = &m->dtype.type;
	const bool vlen = t->kind == DT_VLEN && m->vlen == ZR_VLEN_BYTES;
	struct ds_text text;
	struct dtype *base;
	struct zr_dtype meant;
	int rc;

	if ((!vlen && (t->kind != DT_UINT || t->size != 1)) || rearranged(m) ||
	    !json_text_of(json_get(m->attrs, MEANING), &text))
		return 0;
	rc = parse(a, &text, &meant, e);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	if (vlen && is_number(&meant.type)) {
		base = arena_copy(a, &meant.type, sizeof(meant.type));
		if (!base)
			return zr_no_room(a, e);
		lists(m, base);
	} else if (!vlen && is_bytes(&meant.type) &&
		   (meant.type.size == 1 || whole(m, meant.type.size))) {
		rc = meant.type.size > 1 ? shorten(a, m, e) : 0;
		m->dtype = meant;
		m->as_bytes = true;
	} else {
		return 0;
	}
	(void)json_object_del((json_t *)(uintptr_t)m->attrs, MEANING); /* it was there */
	return rc;
}
