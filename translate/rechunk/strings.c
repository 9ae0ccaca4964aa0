/* SPDX-License-Identifier: BSD-3-Clause */
/* strings.c - makes new chunks of elements without a fixed size, one at a time: their bytes are not
 * known before they are read, so that no room can be reserved for a run. Decoded inner chunks are
 * kept in the cache of inner chunks. */
#include "translate/rechunk/rechunk_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/cursor.h"
#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "codecs/vlen/vlen.h"
#include "translate/chunkio/fill_chunk.h"

/* piece - an element: bytes of the text. */
struct piece {
	uint64_t end; /* 0: no inner chunk has it */
	uint64_t len;
};

/* strings - one new chunk while it is made. */
struct strings {
	struct rechunk *r;
	uint32_t array;
	const struct ds_array *in, *a;
	struct grid_box dst;  /* the new chunk, inside the shape */
	struct piece *pieces; /* of the new chunk */
	struct piece *inner;  /* of an inner chunk */
	struct buf text;
};

/* box_has - whether an element is in a box. */
static bool box_has(uint32_t rank, const struct grid_box *b, const uint64_t *at)
{
	for (uint32_t d = 0; d < rank; d++)
		if (at[d] < b->lo[d] || at[d] >= b->hi[d])
			return false;
	return true;
}

/* strings_gather - the elements in a box, of an inner chunk that begins at src: its body, which was
 * checked. */
static int strings_gather(struct strings *x, const uint64_t *src, const struct grid_box *both,
			  struct slice body, struct err *e)
{
	const uint32_t rank = x->a->rank;
	const struct grid_block from = {src, x->in->chunk}, to = {x->dst.lo, x->a->chunk};
	struct grid_box whole;
	uint64_t at[DS_RANK_MAX], i = 0;

	for (uint32_t d = 0; d < rank; d++) {
		whole.lo[d] = at[d] = src[d];
		whole.hi[d] = src[d] + x->in->chunk[d];
	}
	do {
		uint32_t n;
		const uint8_t *text = codec_vlen_next(&body, &n);

		if (text && box_has(rank, both, at)) {
			buf_put(&x->text, text, n);
			/* one more than the bytes, so that an empty one is not 0 */
			x->inner[i] = (struct piece){.end = x->text.len + 1, .len = n};
		}
		i++;
	} while (buf_ok(&x->text) && grid_next(rank, &whole, at));
	if (!buf_ok(&x->text))
		return buf_full(&x->text, e, -ERANGE, "a chunk exceeds %" PRIu64 " bytes",
				FRAME_BYTES_MAX);
	grid_copy(rank, sizeof(*x->inner), both, &from, x->inner, &to, x->pieces);
	return 0;
}

/* strings_add_inner - the elements that the new chunk has of one inner chunk. */
static int strings_add_inner(struct strings *x, const uint64_t *coords, struct err *e)
{
	struct span span = {.fd = -1};
	struct grid_box src, both;
	int rc;

	grid_chunk(x->in->rank, x->in->shape, x->in->chunk, coords, &src);
	if (!grid_both(x->in->rank, &src, &x->dst, &both))
		return 0;
	rc = chunkio_read(x->r->io, x->array, ds_chunk_linear(x->in, coords), 0,
			  (size_t)FRAME_BYTES_MAX + CODEC_VLEN_HEAD, NULL, &span, e);
	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		metrics_count(M_RECHUNK_READS);
	if (rc == 0 && (!span.mem || span.len < CODEC_VLEN_HEAD))
		rc = err_set(e, -EIO, "a chunk has %zu bytes", span.len);
	rc = rc ? rc
		: strings_gather(
			  x, src.lo, &both,
			  slice_of(span.mem + CODEC_VLEN_HEAD, span.len - CODEC_VLEN_HEAD), e);
	span_done(&span);
	return rc < 0 ? rechunk_where(rc, e) : 0;
}

static int strings_walk(struct strings *x, const uint64_t *coords, struct err *e)
{
	struct grid_box box;
	uint64_t at[DS_RANK_MAX], there = 0;
	int rc = 0;

	rechunk_over(x->in, x->a, coords, &box);
	memcpy(at, box.lo, sizeof(at));
	do {
		if (cancel_requested())
			return err_set(e, -EINTR, "cancelled");
		if (!rechunk_missing(x->r, x->array, ds_chunk_linear(x->in, at), &there))
			rc = strings_add_inner(x, at, e);
	} while (rc == 0 && grid_next(x->in->rank, &box, at));
	return rc;
}

/* strings_put - the body of the new chunk. */
static void strings_put(const struct strings *x, uint64_t n, struct buf *out)
{
	const struct ds_text *fill = &x->a->fill_text;

	for (uint64_t i = 0; i < n && buf_ok(out); i++) {
		const struct piece *p = &x->pieces[i];

		if (!p->end)
			codec_vlen_put((const uint8_t *)fill->s, fill->len, out);
		else
			codec_vlen_put(x->text.data + (p->end - 1 - p->len), (size_t)p->len,
				       out);
	}
}

int rechunk_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		      struct err *e)
{
	struct rechunk *r = rechunk_of(s);
	struct strings x = {.r = r,
			    .array = array,
			    .in = &r->inner->ds.arrays[array],
			    .a = &s->ds.arrays[array]};
	uint64_t coords[DS_RANK_MAX] = {0}, n = 0, n_in = 0;
	int rc;

	if (!r->arrays[array].changed)
		return source_read_vlen(r->inner, array, linear, out, e);
	rc = frame_count(x.a, &n, e);
	rc = rc ? rc : frame_count(x.in, &n_in, e);
	if (rc < 0)
		return rc;
	ds_chunk_coords(x.a, linear, coords);
	grid_chunk(x.a->rank, x.a->shape, x.a->chunk, coords, &x.dst);
	buf_init(&x.text, (size_t)FRAME_BYTES_MAX);
	x.pieces = alloc_array((size_t)n, sizeof(*x.pieces));
	x.inner = alloc_array((size_t)n_in, sizeof(*x.inner));
	rc = x.pieces && x.inner ? strings_walk(&x, coords, e) : err_nomem(e);
	if (rc == 0)
		strings_put(&x, n, out);
	buf_release(&x.text);
	free(x.pieces);
	free(x.inner);
	return rc; /* the caller checks whether it all fitted */
}
