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

#include "base/core/endian.h"
#include "base/core/utf8.h"

/* ---- forms ---- */

/* to_utf32 - convert n strings of `size` bytes, UTF-8 and padded, to UTF-32 of the same size. */
static int to_utf32(const uint8_t *in, uint64_t n, size_t size, bool big, uint8_t *out,
		    struct err *e)
{
	for (uint64_t i = 0; i < n; i++, in += size, out += size) {
		const uint8_t *p = in, *end;
		size_t len = size, at = 0;

		while (len > 0 && in[len - 1] == 0)
			len--;
		end = in + len;
		memset(out, 0, size);
		if (!utf8_ok(in, len))
			return err_set(e, -EOPNOTSUPP, "a string is not UTF-8");
		for (uint32_t c; p < end && at + 4 <= size; at += 4) {
			p += utf8_decode(p, (size_t)(end - p), &c);
			put_uint(out + at, c, 4, big);
		}
		if (p < end)
			return err_set(e, -EOPNOTSUPP,
				       "a string has more than the %zu characters that the "
				       "store can hold",
				       size / 4);
	}
	return 0;
}

/* to_fields - convert structures to those with gaps between fields. */
static void to_fields(const struct zr_dtype *t, uint64_t n, const uint8_t *in, uint8_t *out)
{
	for (uint64_t i = 0; i < n; i++, in += t->type.size, out += t->stored) {
		memset(out, 0, t->stored);
		for (uint32_t k = 0; k < t->n_moves; k++)
			memcpy(out + t->moves[k].from, in + t->moves[k].to, t->moves[k].bytes);
	}
}

/* ---- order ---- */

/* reorder - elements in C order to stored order. len: lengths of the chunk. */
static void reorder(const struct zr_meta *m, const uint64_t *len, size_t size,
		    const uint8_t *in, uint8_t *out)
{
	size_t step[DS_RANK_MAX] = {0}, next = size;
	uint64_t at[DS_RANK_MAX] = {0};
	uint32_t d;

	for (uint32_t k = m->rank; k-- > 0;) {
		step[m->order[k]] = next;
		next *= (size_t)len[m->order[k]];
	}
	do {
		memcpy(out, in, size);
		in += size;
		for (d = m->rank; d-- > 0;) {
			out += step[d];
			if (++at[d] < len[d])
				break;
			out -= step[d] * (size_t)len[d];
			at[d] = 0;
		}
	} while (d != UINT32_MAX);
}

/* encode_count - number of elements of a stored chunk. */
static int encode_count(const struct zs_array *za, uint64_t *ret, struct err *e)
{
	uint64_t n = 1;

	for (uint32_t d = 0; d < za->meta->rank; d++)
		if (ckd_mul(&n, n, za->stored[d]) || n > PTRDIFF_MAX / 64)
			return err_set(e, -ERANGE, "a chunk has too many elements");
	*ret = n;
	return 0;
}

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
	reorder(za->meta, za->stored, size, in, to);
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

/* encode_fits - whether elements of `now` can be converted to those of the store. */
static bool encode_fits(const struct dtype *t, const struct dtype *m)
{
	bool number = t->kind != DT_COMPOUND && m->kind != DT_COMPOUND;

	if (t->size != m->size)
		return false;
	if ((t->kind == DT_FLOAT) != (m->kind == DT_FLOAT) && t->kind != DT_OPAQUE &&
	    m->kind != DT_OPAQUE)
		return false;
	return number || t->kind == m->kind ||
	       (t->kind == DT_COMPOUND && m->kind == DT_COMPLEX);
}

static int encode_fixed(struct zarr_sink *s, const struct ds_array *a,
			const struct zs_array *za, const uint8_t *p, uint64_t n,
			struct buf *out, struct err *e)
{
	const struct zr_dtype *t = &za->meta->dtype;
	struct buf own[2];
	uint8_t *to;
	int rc = 0;

	buf_init(&own[0], PTRDIFF_MAX);
	buf_init(&own[1], PTRDIFF_MAX);
	if (swapped(&a->type, &t->type) && !za->spread) {
		to = buf_grow(&own[0], (size_t)n * a->type.size);
		rc = to ? 0 : err_nomem(e);
		if (rc == 0) {
			memcpy(to, p, (size_t)n * a->type.size);
			dt_swap_to_host(&a->type, to, (size_t)n);
			dt_swap_to_host(&t->type, to, (size_t)n);
			p = to;
		}
	}
	if (rc == 0 && t->conv != ZR_AS_STORED) {
		to = buf_grow(&own[1], (size_t)n * t->stored);
		if (!to)
			rc = err_nomem(e);
		else if (t->conv == ZR_UTF32)
			rc = to_utf32(p, n, t->stored, t->big, to, e);
		else
			to_fields(t, n, p, to);
		p = to;
	}
	if (rc == 0)
		rc = encode_turn(s, za, p, n, t->stored, &p, e);
	if (rc == 0)
		rc = codec_chain_encode(&za->meta->chain, t->stored, p, (size_t)n * t->stored,
					s->scratch, out, e);
	buf_release(&own[0]);
	buf_release(&own[1]);
	return rc;
}

/* ---- elements without a size ---- */

struct encode_item {
	const uint8_t *p;
	size_t len;
};

/* items_of - the elements of a body in stored order, in s->turned or own. */
static int items_of(struct zarr_sink *s, const struct zs_array *za, const uint8_t *p,
		    size_t len, uint64_t n, struct buf *own, const struct encode_item **ret,
		    struct err *e)
{
	struct encode_item *items = (void *)buf_grow(own, (size_t)n * sizeof(*items));
	const uint8_t *turned;
	int rc;

	if (!items)
		return err_nomem(e);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t k;

		if (len < 4)
			return err_set(e, -EINVAL,
				       "the chunk does not contain %" PRIu64 " elements", n);
		k = get_le32(p);
		if (k > len - 4)
			return err_set(e, -EINVAL,
				       "the chunk does not contain %" PRIu64 " elements", n);
		items[i] = (struct encode_item){p + 4, k};
		p += 4 + (size_t)k;
		len -= 4 + (size_t)k;
	}
	rc = encode_turn(s, za, (const uint8_t *)items, n, sizeof(*items), &turned, e);
	*ret = (const struct encode_item *)(const void *)turned;
	return rc;
}

/* fixed_strings - NCZarr's strings, with the size of the dtype. */
static int fixed_strings(const struct encode_item *items, uint64_t n, uint32_t size,
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
	const struct encode_item *items = NULL;
	struct buf list, body, frame;
	int rc;

	buf_init(&list, PTRDIFF_MAX);
	buf_init(&body, PTRDIFF_MAX);
	buf_init(&frame, PTRDIFF_MAX);
	rc = items_of(s, za, p, len, n, &list, &items, e);
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
	buf_release(&list);
	buf_release(&body);
	buf_release(&frame);
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
	uint64_t n = 0, bytes;
	int rc = encode_count(za, &n, e);

	if (rc)
		return blame(za, rc, e);
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
	if (!za->spread && !encode_fits(&a->type, &t->type))
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
