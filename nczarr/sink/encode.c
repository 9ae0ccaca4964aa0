/* SPDX-License-Identifier: BSD-3-Clause */
/* encode.c - encodes elements of `now` as a stored chunk: the reverse of source/chunk_read.c and
 * source/elements.c, step by step.
 *
 * Elements are converted to the type that the store's reader would present (byte order), then to
 * the stored form (UTF-32, gaps between fields), then to the stored order, and then encoded by the
 * array's filters. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* encode_turn - convert n elements of `size` bytes to stored order. *ret: in, or s->turned. */
static int encode_turn(struct zarr_sink *s, const struct zs_array *za, const uint8_t *in,
		       uint64_t n, size_t size, const uint8_t **ret, struct err *e)
{
	uint8_t *to;

	*ret = in;
	if (!za->meta->order)
		return 0;
	buf_clear(&s->turned);
	to = buf_grow(&s->turned, (size_t)n * size);
	if (!to)
		return err_nomem(e);
	zr_rearrange(za->meta, za->stored, za->meta->rank, za->stored, size, true, in, to);
	*ret = to;
	return 0;
}

/* ---- elements with a size ---- */

/* swapped - whether numbers of the two types have different byte orders. */
static bool swapped(const struct dtype *a, const struct dtype *b)
{
	if (a->kind == DT_COMPOUND && b->kind == DT_COMPOUND && a->n_fields == b->n_fields) {
		for (uint32_t i = 0; i < a->n_fields; i++)
			if (swapped(&a->fields[i].type, &b->fields[i].type))
				return true;
		return false;
	}
	return a->big_endian != b->big_endian &&
	       (a->kind == DT_INT || a->kind == DT_UINT || a->kind == DT_FLOAT ||
		a->kind == DT_COMPLEX) &&
	       a->size > 1;
}

static int encode_fixed(struct zarr_sink *s, const struct ds_array *a,
			const struct zs_array *za, const uint8_t *p, uint64_t n,
			struct buf *out, struct err *e)
{
	const struct zr_dtype *t = &za->meta->dtype;
	auto_buf host = buf_of(PTRDIFF_MAX), stored = buf_of(PTRDIFF_MAX);
	uint8_t *to;
	int rc = 0;

	if (swapped(&a->type, &t->type) && !za->spread) {
		to = buf_grow(&host, (size_t)n * a->type.size);
		if (!to)
			return err_nomem(e);
		memcpy(to, p, (size_t)n * a->type.size);
		dt_swap_to_host(&a->type, to, (size_t)n);
		dt_swap_to_host(&t->type, to, (size_t)n);
		p = to;
	}
	if (t->conv != ZR_AS_STORED) {
		to = buf_grow(&stored, (size_t)n * t->stored);
		if (!to)
			return err_nomem(e);
		if (t->conv == ZR_UTF32)
			rc = zr_to_utf32(p, n, t->stored, t->big, to, e);
		else
			zr_fields(t, n, true, p, to);
		p = to;
	}
	rc = rc ? rc : encode_turn(s, za, p, n, t->stored, &p, e);
	rc = rc ? rc : codec_chain_encode(&za->meta->chain, t->stored, p, (size_t)n * t->stored,
					  s->scratch, out, e);
	return rc;
}

/* ---- elements without a size ---- */

/* items_of - the elements of a body in stored order, in s->turned or own. */
static int items_of(struct zarr_sink *s, const struct zs_array *za, const uint8_t *p,
		    size_t len, uint64_t n, struct buf *own, const struct zr_vlen_item **ret,
		    struct err *e)
{
	struct zr_vlen_item *items = (void *)buf_grow(own, (size_t)n * sizeof(*items));
	const uint8_t *turned;
	int rc = items ? zr_vlen_items(p, len, n, items, e) : err_nomem(e);

	if (rc)
		return rc;
	rc = encode_turn(s, za, (const uint8_t *)items, n, sizeof(*items), &turned, e);
	*ret = (const struct zr_vlen_item *)(const void *)turned;
	return rc;
}

/* fixed_strings - NCZarr's strings, with the size of the dtype. */
static int fixed_strings(const struct zr_vlen_item *items, uint64_t n, uint32_t size,
			 struct buf *out, struct err *e)
{
	for (uint64_t i = 0; i < n; i++) {
		uint8_t *to;

		if (items[i].len > size)
			return err_set(e, -EOPNOTSUPP,
				       "a string has %zu bytes, the store can hold %" PRIu32
				       " per string",
				       items[i].len, size);
		to = buf_grow(out, size);
		if (!to)
			return err_nomem(e);
		memset(to, 0, size);
		memcpy(to, items[i].p, items[i].len);
	}
	return 0;
}

static int encode_vlen(struct zarr_sink *s, const struct ds_array *a, const struct zs_array *za,
		       const uint8_t *p, size_t len, uint64_t n, struct buf *out, struct err *e)
{
	const struct zr_meta *m = za->meta;
	uint32_t base = a->type.kind == DT_VLEN && a->type.base ? a->type.base->size : 1;
	const struct zr_vlen_item *items = NULL;
	auto_buf list = buf_of(PTRDIFF_MAX), body = list, frame = list;
	int rc = items_of(s, za, p, len, n, &list, &items, e);

	if (rc == 0 && m->vlen == ZR_VLEN_FIXED) {
		rc = fixed_strings(items, n, m->dtype.stored, &frame, e);
	} else if (rc == 0) {
		for (uint64_t i = 0; i < n; i++)
			codec_vlen_put(items[i].p, items[i].len, &body);
		rc = !buf_ok(&body)
			     ? err_nomem(e)
			     : codec_vlen_encode((enum codec_vlen)m->vlen, base, body.data,
						 body.len, m->rank, za->stored, &frame, e);
	}
	if (rc == 0)
		rc = codec_chain_encode(&m->chain,
					m->vlen == ZR_VLEN_FIXED ? m->dtype.stored : 1,
					frame.data, frame.len, s->scratch, out, e);
	return rc;
}

/* ---- */

/* blame - the message that names the filter without an encoder. */
static int blame(const struct zs_array *za, int rc, struct err *e)
{
	char tmp[64];

	for (uint32_t i = 0; rc == -EOPNOTSUPP && i < za->meta->chain.n; i++) {
		const struct codec_spec *spec = &za->meta->chain.specs[i];
		const struct codec_ops *ops = codec_find(spec->h5_id);

		if (!ops || !ops->encode)
			return err_set(e, rc,
				       "'%.200s': filter '%s' can be read but not written",
				       za->key, codec_name(spec, tmp, sizeof(tmp)));
	}
	return err_wrap(e, rc, "'%.200s'", za->key);
}

int zs_encode(struct zarr_sink *s, uint32_t array, const struct zs_array *za, const uint8_t *p,
	      size_t len, struct buf *out, struct err *e)
{
	const struct ds_array *a = &s->now->ds.arrays[array];
	const struct zr_dtype *t = &za->meta->dtype;
	uint64_t n = 1, bytes;
	bool plain;
	int rc;

	if (!u64_product(&n, za->stored, za->meta->rank, PTRDIFF_MAX / 64))
		return blame(za, err_set(e, -ERANGE, "a chunk has too many elements"), e);
	if (dt_is_vlen(&a->type) != dt_is_vlen(&t->type) && za->meta->vlen == ZR_VLEN_NONE)
		return err_set(e, -EOPNOTSUPP,
			       "'%.200s': in the store its elements have another type",
			       za->key);
	if (a->type.base && t->type.base &&
	    (a->type.base->size != t->type.base->size || swapped(a->type.base, t->type.base)))
		return err_set(
			e, -EOPNOTSUPP,
			"'%.200s': in the store its variable-length elements have another type",
			za->key);
	if (dt_is_vlen(&a->type)) {
		rc = encode_vlen(s, a, za, p, len, n, out, e);
		return rc ? blame(za, rc, e) : 0;
	}
	/* whether elements of `now` can be converted to those of the store */
	plain = a->type.kind != DT_OPAQUE && t->type.kind != DT_OPAQUE;
	if (!za->spread &&
	    (a->type.size != t->type.size ||
	     (plain && (a->type.kind == DT_FLOAT) != (t->type.kind == DT_FLOAT)) ||
	     (a->type.kind != t->type.kind && t->type.kind == DT_COMPOUND) ||
	     (a->type.kind == DT_COMPOUND && t->type.kind != DT_COMPOUND &&
	      t->type.kind != DT_COMPLEX)))
		return err_set(e, -EOPNOTSUPP,
			       "'%.200s': in the store its elements have another type",
			       za->key);
	bytes = za->spread ? t->stored : t->type.size;
	if (ckd_mul(&bytes, bytes, n) || bytes != len)
		return err_set(e, -EINVAL,
			       "'%.200s': the chunk has %zu bytes instead of %" PRIu64, za->key,
			       len, bytes);
	rc = encode_fixed(s, a, za, p, n, out, e);
	return rc ? blame(za, rc, e) : 0;
}
