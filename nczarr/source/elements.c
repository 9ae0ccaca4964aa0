/* SPDX-License-Identifier: BSD-3-Clause */
/* elements.c - converts elements from stored order and form to those of the model.
 *
 * Rearranging reduces an N-dimensional chunk to the fewest axes: axes of one element are dropped,
 * axes that are adjacent in both orders are merged. If the last axis is the same in both, rows are
 * copied. Otherwise the last axes of both orders form planes, which are transposed in tiles that
 * fit the processor's cache. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/endian.h"
#include "base/core/utf8.h"

#define TILE 32u /* elements per side */

/* axis - of the output, outermost first. */
struct axis {
	size_t n;   /* elements */
	size_t in;  /* stride in bytes in the input */
	size_t out; /* and in the output */
};

/* plane - two axes to transpose. */
struct plane {
	size_t rows, cols;     /* columns are adjacent in the output */
	size_t in_col, in_row; /* strides in bytes; rows are adjacent */
	size_t out_row;
};

/* tile_copy - a tile's inner loop. It is inlined, so that the compiler knows common sizes. */
static inline __attribute__((always_inline)) void
tile_copy(const struct plane *p, size_t size, const uint8_t *in, uint8_t *out, size_t rows,
	  size_t cols)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < cols; c++)
			memcpy(out + r * p->out_row + c * size,
			       in + r * p->in_row + c * p->in_col, size);
}

static void tile(const struct plane *p, size_t size, const uint8_t *in, uint8_t *out,
		 size_t rows, size_t cols)
{
	switch (size) {
	case 1:
		tile_copy(p, 1, in, out, rows, cols);
		break;
	case 2:
		tile_copy(p, 2, in, out, rows, cols);
		break;
	case 4:
		tile_copy(p, 4, in, out, rows, cols);
		break;
	case 8:
		tile_copy(p, 8, in, out, rows, cols);
		break;
	case 16:
		tile_copy(p, 16, in, out, rows, cols);
		break;
	default:
		tile_copy(p, size, in, out, rows, cols);
	}
}

static void elements_transpose(const struct plane *p, size_t size, const uint8_t *in,
			       uint8_t *out)
{
	for (size_t r = 0; r < p->rows; r += TILE) {
		size_t rows = u64_min(p->rows - r, TILE);

		for (size_t c = 0; c < p->cols; c += TILE)
			tile(p, size, in + r * p->in_row + c * p->in_col,
			     out + r * p->out_row + c * size, rows,
			     u64_min(p->cols - c, TILE));
	}
}

/* elements_axes_of - the fewest axes of a chunk. All products are at most the stored chunk's bytes,
 * which were checked. */
static uint32_t elements_axes_of(const struct zr_meta *m, const uint64_t *stored, uint32_t rank,
				 const uint64_t *chunk, size_t size, bool back,
				 struct axis *ret)
{
	size_t in[DS_RANK_MAX], out[DS_RANK_MAX], step = size, next = size;
	uint32_t n = 0;

	for (uint32_t k = m->rank; k-- > 0;) {
		uint32_t d = m->order ? m->order[k] : k;

		in[d] = step;
		step *= (size_t)stored[d];
		if (k < rank) {
			out[k] = next;
			next *= (size_t)chunk[k];
		}
	}
	for (uint32_t k = rank; k-- > 0;) { /* by the order of the output */
		uint32_t d = back && m->order ? m->order[k] : k;
		struct axis x = {(size_t)chunk[d], back ? out[d] : in[d],
				 back ? in[d] : out[d]};

		if (x.n == 1)
			continue;
		if (n > 0 && x.in == ret[n - 1].in * ret[n - 1].n)
			ret[n - 1].n *= x.n;
		else
			ret[n++] = x;
	}
	return n; /* innermost first */
}

/* elements_run - iterate over axes[0..n), innermost first, with a plane or a row at each
 * position. */
static void elements_run(const struct axis *axes, uint32_t n, const struct plane *plane,
			 size_t size, size_t row, const uint8_t *in, uint8_t *out)
{
	size_t at[DS_RANK_MAX] = {0};
	uint32_t d;

	do {
		if (plane)
			elements_transpose(plane, size, in, out);
		else
			memcpy(out, in, row);
		for (d = 0; d < n; d++) {
			in += axes[d].in;
			out += axes[d].out;
			if (++at[d] < axes[d].n)
				break;
			in -= axes[d].in * axes[d].n;
			out -= axes[d].out * axes[d].n;
			at[d] = 0;
		}
	} while (d < n);
}

void zr_rearrange(const struct zr_meta *m, const uint64_t *stored, uint32_t rank,
		  const uint64_t *chunk, size_t size, bool back, const uint8_t *in,
		  uint8_t *out)
{
	struct axis axes[DS_RANK_MAX];
	uint32_t n = elements_axes_of(m, stored, rank, chunk, size, back, axes), near = 0;
	struct plane plane;

	if (n == 0) {
		memcpy(out, in, size);
		return;
	}
	if (axes[0].in == size) {
		elements_run(axes + 1, n - 1, NULL, size, axes[0].n * size, in, out);
		return;
	}
	if (n == 1) {
		plane = (struct plane){.rows = 1, .cols = axes[0].n, .in_col = axes[0].in};
		elements_transpose(&plane, size, in, out);
		return;
	}
	for (uint32_t d = 1; d < n; d++)
		if (near == 0 || axes[d].in < axes[near].in)
			near = d;
	plane = (struct plane){.rows = axes[near].n,
			       .cols = axes[0].n,
			       .in_col = axes[0].in,
			       .in_row = axes[near].in,
			       .out_row = axes[near].out};
	memmove(axes + near, axes + near + 1, (n - near - 1) * sizeof(*axes));
	elements_run(axes + 1, n - 2, &plane, size, 0, in, out);
}

void zr_fields(const struct zr_dtype *t, uint64_t n, bool back, const uint8_t *in, uint8_t *out)
{
	const size_t from = back ? t->type.size : t->stored,
		     to = back ? t->stored : t->type.size;

	for (uint64_t i = 0; i < n; i++, in += from, out += to) {
		if (back) /* the gaps */
			memset(out, 0, to);
		for (uint32_t k = 0; k < t->n_moves; k++) {
			const struct zr_field *x = &t->moves[k];

			memcpy(out + (back ? x->from : x->to), in + (back ? x->to : x->from),
			       x->bytes);
		}
	}
}

/* ---- strings ---- */

int zr_utf32(uint8_t *p, uint64_t n, size_t size, bool big, struct err *e)
{
	for (uint64_t i = 0; i < n; i++, p += size) {
		size_t len = 0; /* never passes the position of the input */

		for (size_t at = 0; at + 4 <= size; at += 4) {
			const uint32_t c = (uint32_t)get_uint(p + at, 4, big);

			if (!utf8_is_char(c))
				return err_set(e, -EBADMSG,
					       "a string contains U+%" PRIX32
					       ", which is not a valid character",
					       c);
			len += utf8_encode(p + len, c);
		}
		memset(p + len, 0, size - len);
	}
	return 0;
}

int zr_to_utf32(const uint8_t *in, uint64_t n, size_t size, bool big, uint8_t *out,
		struct err *e)
{
	for (uint64_t i = 0; i < n; i++, in += size, out += size) {
		size_t len = size, at = 0, next = 0;

		while (len > 0 && in[len - 1] == 0)
			len--;
		memset(out, 0, size);
		if (!utf8_ok(in, len))
			return err_set(e, -EOPNOTSUPP, "a string is not UTF-8");
		for (uint32_t c; next < len && at + 4 <= size; at += 4) {
			next += utf8_decode(in + next, len - next, &c);
			put_uint(out + at, c, 4, big);
		}
		if (next < len)
			return err_set(e, -EOPNOTSUPP,
				       "a string has more than the %zu characters that the "
				       "store can hold",
				       size / 4);
	}
	return 0;
}

/* Elements without a fixed size: from the frames of numcodecs' filters (codecs/vlen/vlen.h) to the
 * body of translate/contract/source.h.
 *
 * If the stored elements are the model's in the model's order, the body is copied. Otherwise its
 * elements are located first and ordered as pointers. NCZarr's strings have no frame: the dtype
 * states their length. */

int zr_vlen_items(const uint8_t *body, size_t len, uint64_t n, struct zr_vlen_item *ret,
		  struct err *e)
{
	struct slice rest = slice_of(body, len);

	for (uint64_t i = 0; i < n; i++) {
		uint32_t k = 0;

		ret[i].p = codec_vlen_next(&rest, &k);
		ret[i].len = k;
		if (!ret[i].p)
			return err_set(e, -EINVAL,
				       "the chunk does not contain %" PRIu64 " elements", n);
	}
	return 0;
}

/* fixed_items - strings of `size` bytes each, up to their first NUL. netCDF-C truncates longer
 * ones at any byte: a partial character at the end is dropped. */
static int fixed_items(const uint8_t *in, size_t len, uint64_t n, uint32_t size,
		       struct zr_vlen_item *ret, struct err *e)
{
	if (len / size != n || len % size != 0)
		return err_set(e, -EBADMSG,
			       "%zu bytes are stored for %" PRIu64 " strings of %" PRIu32
			       " bytes",
			       len, n, size);
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *p = in + i * size;
		size_t k = strnlen((const char *)p, size), cut = k;

		for (int tries = 0; tries < 3 && k == size && cut > 0 && !utf8_ok(p, cut);
		     tries++)
			cut--;
		ret[i] = (struct zr_vlen_item){p, utf8_ok(p, cut) ? cut : k};
	}
	return 0;
}

/* framing - the frame format for codecs/vlen/vlen.h; elements without a frame are strings. */
static enum codec_vlen framing(enum zr_vlen v)
{
	return v == ZR_VLEN_FIXED ? CODEC_VLEN_UTF8 : (enum codec_vlen)v;
}

/* base_size - bytes of the base type of lists. */
static uint32_t base_size(const struct ds_array *a)
{
	return a->type.kind == DT_VLEN ? a->type.base->size : 1;
}

static int full(const struct buf *out, struct err *e)
{
	if (buf_ok(out))
		return 0;
	return buf_full(out, e, -ERANGE, "the elements of a chunk need more than %zu bytes",
			out->max);
}

/* put_items - append the model's elements from the stored ones. */
static int put_items(const struct zr_place *p, const struct zr_vlen_item *items,
		     struct zr_scratch *m, struct buf *out, struct err *e)
{
	uint64_t n = 1;
	int rc = 0;

	for (uint32_t d = 0; d < p->a->rank; d++)
		n *= p->a->chunk[d]; /* <= n_elems */
	if (!p->as_is) {
		struct zr_vlen_item *moved;

		buf_clear(&m->elems); /* unused here: elements stay in the decode buffer */
		moved = (void *)buf_grow(&m->elems, (size_t)n * sizeof(*moved));
		if (!moved)
			return err_nomem(e);
		zr_rearrange(p->meta, p->array->stored, p->a->rank, p->a->chunk, sizeof(*moved),
			     false, (const void *)items, (void *)moved);
		items = moved;
	}
	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = codec_vlen_check(framing(p->meta->vlen), base_size(p->a), items[i].p,
				      items[i].len, i, e);
		if (!rc)
			codec_vlen_put(items[i].p, items[i].len, out);
	}
	return rc ? rc : full(out, e);
}

/* put_decoded - append the model's elements from a decoded chunk. */
static int put_decoded(const struct zr_place *p, const uint8_t *in, size_t len,
		       struct zr_scratch *m, struct buf *out, struct err *e)
{
	const bool fixed = p->meta->vlen == ZR_VLEN_FIXED;
	struct zr_vlen_item body = {in, len}, *items;
	int rc = 0;

	m->strings.max = (size_t)ZR_FRAME_MAX;
	if (!fixed)
		rc = codec_vlen_decode(framing(p->meta->vlen), base_size(p->a), in, len,
				       p->n_elems, &m->strings, &body.p, &body.len, e);
	if (rc)
		return rc;
	if (p->as_is && !fixed) {
		if (body.len > 0)
			buf_put(out, body.p, body.len);
		return full(out, e);
	}
	/* a false count allocates no memory: an element takes some bytes in any frame */
	if (p->n_elems > body.len)
		return err_set(e, -EBADMSG, "%zu bytes are stored for %" PRIu64 " elements",
			       body.len, p->n_elems);
	buf_clear(&m->moved);
	items = (void *)buf_grow(&m->moved, (size_t)p->n_elems * sizeof(*items));
	if (!items)
		return err_nomem(e);
	rc = fixed ? fixed_items(in, len, p->n_elems, p->meta->dtype.stored, items, e)
		   : zr_vlen_items(body.p, body.len, p->n_elems, items, e);
	return rc ? rc : put_items(p, items, m, out, e);
}

/* elements_put_absent - append the fill value for every element. */
static int elements_put_absent(const struct ds_array *a, struct buf *out, struct err *e)
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

static int elements_read_found(const struct chunk_location *x, struct zr_scratch *m,
			       struct buf *out, struct err *e)
{
	const struct zr_meta *meta = x->p->meta;
	const uint8_t *in, *decoded;
	size_t n, len;
	int rc = chunk_location_bytes(x, ZR_FRAME_MAX, m, &in, &n, e);

	if (rc)
		return rc;
	rc = codec_chain_decode_any(&meta->chain,
				    meta->vlen == ZR_VLEN_FIXED ? meta->dtype.stored : 1, in, n,
				    ZR_FRAME_MAX, m->codec, &decoded, &len, e);
	rc = rc ? rc : put_decoded(x->p, decoded, len, m, out, e);
	return rc ? zr_object_blame(x, rc, e) : 0;
}

int zr_read_vlen(struct source *src, uint32_t array, uint64_t linear, struct buf *out,
		 struct err *e)
{
	struct zr_data *d = zr_of(src)->data;
	struct zr_scratch *m;
	struct chunk_location x;
	int rc = zr_find_in(src, array, linear, &x, e);

	if (rc)
		return rc;
	if (x.where == ZR_NOWHERE)
		return elements_put_absent(x.p->a, out, e);
	m = zr_scratch_take(d);
	rc = m ? elements_read_found(&x, m, out, e) : err_nomem(e);
	zr_scratch_give(d, m);
	chunk_location_release(&x);
	return rc;
}
