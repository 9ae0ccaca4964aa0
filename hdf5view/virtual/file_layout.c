/* SPDX-License-Identifier: BSD-3-Clause */
/* file_layout.c - assigns an address to everything in the virtual file, and reads it.
 *
 * The file is the structure, then pieces in ascending order: the nodes of a variable's index, or
 * its chunks. Bytes between pieces are gaps of alignment, which read as zeros. A read inside the
 * structure or inside one chunk is returned without a copy; one that spans several is assembled in
 * the caller's room. */
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LARGE ((uint64_t)64 << 10) /* variables from here on have pages of their own */
#define FEW 1000                   /* up to this many, all have: virtual_int.h says why */
#define PAGE 4096
#define NODE_MAX (24 + (2 * NC_BTREE_K + 1) * (8 + 8 * (DS_RANK_MAX + 1)) + 2 * NC_BTREE_K * 8)
#define FILE_MAX ((uint64_t)1 << 62) /* offsets are signed, and this leaves room to round up */

/* layout_part - one variable with data. */
struct layout_part {
	uint32_t array;
	struct nc_chunks *chunks; /* owned */
	struct nc_index x;        /* chunked variables; n_nodes is 0 for the others */
};

/* layout_piece - bytes [at, end) of the file. */
struct layout_piece {
	uint64_t at, end;
	uint32_t part;               /* its variable, unless broken */
	bool nodes;                  /* the variable's index; else its chunks */
	const struct nc_var *broken; /* every read is an error; else NULL */
};

struct nc_layout {
	struct source *source;
	const struct plan *plans;
	struct chunkio *io;
	struct nc_image image;
	struct layout_part *parts;
	struct layout_piece *pieces; /* ascending; none is empty */
	size_t n_parts, n_pieces;
	uint64_t size;
};

/* ---- making ---- */

/* whole_chunks - check that libhdf5's size of an unfiltered chunk, which it computes itself, is
 * the size used here. */
static int whole_chunks(const struct ds_array *a, const struct nc_var *v, struct err *e)
{
	uint64_t bytes = v->elem;

	for (size_t d = 0; d < v->rank; d++)
		if (ckd_mul(&bytes, bytes, v->chunk[d]))
			bytes = UINT64_MAX;
	if (bytes > UINT32_MAX)
		return err_set(e, -ERANGE,
			       "'%s': HDF5 does not support chunks of 4 GiB or more", a->name);
	if (bytes != a->chunk_bytes)
		return err_set(e, -EBADMSG,
			       "'%s': chunks of %" PRIu64 " bytes are laid out as %" PRIu64
			       " bytes",
			       a->name, a->chunk_bytes, bytes);
	return 0;
}

/* add_part - add a variable that has or may have chunks. */
static int add_part(struct nc_layout *l, const struct nc_var *v, struct nc_budget *budget,
		    struct err *e)
{
	const struct ds_array *a = &l->source->ds.arrays[v->array];
	struct layout_part *p = &l->parts[l->n_parts];
	int rc = v->data == NC_CHUNKED ? whole_chunks(a, v, e) : 0;

	rc = rc ? rc
		: nc_chunks_make(l->io, a, v->array, &l->plans[v->array], budget, &p->chunks,
				 e);
	if (rc < 0)
		return rc;
	p->array = v->array;
	l->n_parts++; /* from here on freed with the layout */
	return v->data == NC_CHUNKED ? nc_index_init(&p->x, p->chunks, v, a,
						     l->plans[v->array].chain.n, e)
				     : 0;
}

/* add_piece - add len bytes after everything so far, at a multiple of align. */
static int add_piece(struct nc_layout *l, uint32_t part, bool nodes, uint64_t len,
		     uint64_t align, struct err *e)
{
	uint64_t at = (l->size + align - 1) / align * align;

	if (len > FILE_MAX || at > FILE_MAX - len)
		return err_set(e, -ERANGE, "the file would be larger than %" PRIu64 " bytes",
			       FILE_MAX);
	l->pieces[l->n_pieces++] =
		(struct layout_piece){.at = at, .end = at + len, .part = part, .nodes = nodes};
	l->size = at + len;
	return 0;
}

/* layout_place - place indexes, then data. */
static int layout_place(struct nc_layout *l, struct err *e)
{
	uint64_t len;
	bool own = true;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->n_parts; i++) {
		struct layout_part *p = &l->parts[i];

		len = p->x.n_nodes * p->x.node_bytes;
		if (len == 0)
			continue;
		rc = add_piece(l, i, true, len, 8, e);
		p->x.at = l->size - len;
	}
	for (uint32_t i = 0; rc == 0 && i < l->n_parts; i++) {
		struct layout_part *p = &l->parts[i];

		len = nc_chunks_bytes(p->chunks);
		if (len == 0)
			continue;
		own = own || len >= LARGE || l->n_parts <= FEW;
		rc = add_piece(l, i, false, len, own ? PAGE : 8, e);
		p->x.data = l->size - len;
		own = len >= LARGE;
	}
	return rc;
}

/* place_broken - place broken variables on pages of their own, as long as libhdf5's reads there:
 * the elements, or the root of an index. */
static int place_broken(struct nc_layout *l, size_t *left, struct err *e)
{
	for (uint32_t i = 0; i < l->image.n_vars; i++) {
		const struct nc_var *v = &l->image.vars[i];
		const struct ds_array *a = &l->source->ds.arrays[v->array];
		uint64_t n = 16; /* bytes of a reference to the heap */
		int rc;

		if (v->data != NC_BROKEN)
			continue;
		for (uint32_t d = 0; d < a->rank; d++)
			if (ckd_mul(&n, n, a->shape[d]))
				n = UINT64_MAX;
		rc = add_piece(l, 0, false, u64_max(n, NODE_MAX), PAGE, e);
		if (rc < 0)
			return rc;
		l->pieces[l->n_pieces - 1].broken = v;
		rc = nc_patch_address(l->image.bytes, l->image.len, left, v->header,
				      l->pieces[l->n_pieces - 1].at, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* patch - write the addresses. A variable without a chunk keeps its undefined address, so it reads
 * as fill values. */
static int patch(struct nc_layout *l, size_t *left, struct err *e)
{
	struct nc_image *m = &l->image;
	struct layout_part *p = l->parts;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->n_vars; i++) {
		const struct nc_var *v = &m->vars[i];

		if (v->data != NC_CHUNKED && v->data != NC_CONTIGUOUS)
			continue;
		if (nc_chunks_n(p->chunks) > 0)
			rc = nc_patch_address(
				m->bytes, m->len, left, v->header,
				p->x.n_nodes > 0 ? nc_index_root(&p->x) : p->x.data, e);
		p++;
	}
	return rc < 0 ? rc : nc_patch_eof(m->bytes, m->len, l->size, e);
}

static int layout_make(struct nc_layout *l, uint64_t max, struct err *e)
{
	struct nc_budget budget = {.max = max};
	size_t left = NC_PATCH_READS * l->image.len; /* nc_patch_address */
	int rc = 0;

	l->parts = alloc_array(l->image.n_vars, sizeof(*l->parts));
	l->pieces = alloc_array((size_t)l->image.n_vars * 2, sizeof(*l->pieces));
	if (!l->parts || !l->pieces)
		return err_nomem(e);
	for (uint32_t i = 0; rc == 0 && i < l->image.n_vars; i++) {
		const struct nc_var *v = &l->image.vars[i];

		if (v->array >= l->source->ds.n_arrays)
			return err_set(e, -EBADMSG, "variable of array %" PRIu32, v->array);
		if (v->data == NC_CHUNKED || v->data == NC_CONTIGUOUS)
			rc = add_part(l, v, &budget, e);
	}
	l->size = l->image.len;
	rc = rc ? rc : layout_place(l, e);
	rc = rc ? rc : place_broken(l, &left, e);
	return rc < 0 ? rc : patch(l, &left, e);
}

int nc_layout_new(struct source *s, const struct plan *plans, struct chunkio *io,
		  struct nc_image *image, uint64_t max_index_bytes, struct nc_layout **ret,
		  struct err *e)
{
	struct nc_layout *l = alloc_array(1, sizeof(*l));
	int rc;

	if (!l)
		return err_nomem(e);
	l->source = s;
	l->plans = plans;
	l->io = io;
	l->image = *image;
	rc = layout_make(l, max_index_bytes, e);
	if (rc < 0) {
		l->image = (struct nc_image){0}; /* still the caller's */
		nc_layout_free(l);
		return rc;
	}
	*image = (struct nc_image){0};
	*ret = l;
	return 0;
}

void nc_layout_free(struct nc_layout *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_parts; i++)
		nc_chunks_free(l->parts[i].chunks);
	free(l->parts);
	free(l->pieces);
	nc_image_release(&l->image);
	free(l);
}

uint64_t nc_layout_size(const struct nc_layout *l)
{
	return l->size;
}

bool nc_layout_structure(const struct nc_layout *l, size_t i, uint64_t *ret_off,
			 uint64_t *ret_len)
{
	size_t k;

	if (i == 0) {
		*ret_off = 0;
		*ret_len = l->image.len;
		return true;
	}
	/* Indexes come before all chunks, so pieces[k] is index number k. */
	k = i - 1;
	if (k >= l->n_pieces || !l->pieces[k].nodes)
		return false;
	*ret_off = l->pieces[k].at;
	*ret_len = l->pieces[k].end - l->pieces[k].at;
	return true;
}

/* layout_part_of - the part of an array; NULL: it has no chunks in the file. Parts are in the
 * order of arrays. */
static const struct layout_part *layout_part_of(const struct nc_layout *l, uint32_t array)
{
	size_t low = 0;

	BISECT(low, l->n_parts, mid, l->parts[mid].array < array);
	return low < l->n_parts && l->parts[low].array == array ? &l->parts[low] : NULL;
}

bool nc_layout_chunk(const struct nc_layout *l, uint32_t array, uint64_t linear,
		     uint64_t *ret_off, uint64_t *ret_len)
{
	const struct layout_part *p = layout_part_of(l, array);
	uint64_t low = 0, n = p ? nc_chunks_n(p->chunks) : 0, at = 0, off = 0, len = 0;

	BISECT(low, n, mid, (nc_chunks_nth(p->chunks, mid, &at, &off, &len), at < linear));
	if (low >= n)
		return false;
	nc_chunks_nth(p->chunks, low, &at, &off, &len);
	*ret_off = p->x.data + off;
	*ret_len = len;
	return at == linear;
}

/* ---- reading ---- */

/* piece_at - the first piece that ends after off; n_pieces: none. */
static size_t piece_at(const struct nc_layout *l, uint64_t off)
{
	size_t low = 0;

	BISECT(low, l->n_pieces, mid, l->pieces[mid].end <= off);
	return low;
}

/* chunk_wrong - report a chunk that does not have the index's size. */
static int chunk_wrong(const struct nc_layout *l, uint32_t array, uint64_t linear, int code,
		       const char *what, struct err *e)
{
	const struct ds_array *a = &l->source->ds.arrays[array];
	uint64_t coords[DS_RANK_MAX] = {0};
	struct buf at;

	buf_init(&at, ERR_TEXT_MAX);
	ds_array_path(&l->source->ds, array, &at);
	buf_puts(&at, "' chunk ");
	ds_chunk_coords(a, linear, coords);
	buf_printf(&at, "%" PRIu64, coords[0]);
	for (size_t d = 1; d < a->rank; d++)
		buf_printf(&at, ".%" PRIu64, coords[d]);
	(void)err_set(e, code, "'%.*s: %s", (int)at.len, (const char *)at.data, what);
	buf_release(&at);
	return code;
}

/* layout_unknown - report why the size of a chunk could not be stated. */
static int layout_unknown(const struct nc_layout *l, uint32_t array, uint64_t linear,
			  struct err *e)
{
	uint64_t size;
	int rc = chunkio_stat(l->io, array, linear, &size, e);

	if (rc == -ENOENT)
		return chunk_wrong(l, array, linear, -ESTALE, "it was removed", e);
	if (rc < 0 || size == NC_SIZE_UNKNOWN)
		return rc;
	if (size == 0)
		return chunk_wrong(l, array, linear, -EBADMSG, "it is empty", e);
	if (size > UINT32_MAX)
		return chunk_wrong(l, array, linear, -ERANGE,
				   "HDF5 does not support chunks of 4 GiB or more", e);
	return chunk_wrong(l, array, linear, -EIO,
			   "its size could not be determined when the file was laid out", e);
}

/* same_size - check that an encoded chunk is as long as in the layout, which the encoder
 * guarantees. Encodes the chunk unless it is cached; it is read next. */
static int same_size(const struct nc_layout *l, uint32_t array, uint64_t linear, uint64_t size,
		     struct err *e)
{
	uint64_t now;
	int rc = chunkio_stat(l->io, array, linear, &now, e);

	if (rc == -ENOENT)
		return chunk_wrong(l, array, linear, -ESTALE, "it was removed", e);
	if (rc < 0 || now == size)
		return rc;
	return chunk_wrong(l, array, linear, -EIO, "its encoded length differs from before", e);
}

/* layout_read_chunk - read bytes [off, off + n) of a chunk of `size` bytes, all inside it. */
static int layout_read_chunk(const struct nc_layout *l, const struct layout_part *p,
			     uint64_t linear, uint64_t size, uint64_t off, size_t n,
			     uint8_t *room, struct span *ret, struct err *e)
{
	int rc = 0;

	if (size == NC_SIZE_UNKNOWN)
		rc = layout_unknown(l, p->array, linear, e);
	else if (l->plans[p->array].kind == PLAN_ENCODE)
		rc = same_size(l, p->array, linear, size, e);
	rc = rc ? rc : chunkio_read(l->io, p->array, linear, off, n, room, ret, e);
	if (rc == -ENOENT)
		return chunk_wrong(l, p->array, linear, -ESTALE, "it was removed", e);
	if (rc < 0 || ret->len + ret->zeros == n)
		return rc;
	span_done(ret);
	return chunk_wrong(l, p->array, linear, -ESTALE,
			   "it is shorter than it was when the file was laid out", e);
}

/* copy_chunks - bytes [off, off + n) of a variable's chunks. */
static int copy_chunks(const struct nc_layout *l, const struct layout_part *p, uint64_t off,
		       size_t n, uint8_t *out, bool *ret_raw, struct err *e)
{
	uint64_t linear, at, size;
	struct span s;
	size_t part, got;
	int rc;

	for (uint64_t i = nc_chunks_at(p->chunks, off); n > 0; i++) {
		nc_chunks_nth(p->chunks, i, &linear, &at, &size);
		part = (size_t)u64_min(n, at + size - off);
		rc = layout_read_chunk(l, p, linear, size, off - at, part, out, &s, e);
		*ret_raw |= rc == 0 && s.len > 0 && !s.mem; /* not checked for changes yet */
		rc = rc ? rc : span_fetch(&s, out, part, &got, e);
		if (rc < 0)
			return rc;
		off += part;
		out += part;
		n -= part;
	}
	return 0;
}

/* copy_nodes - bytes [off, off + n) of a variable's index. */
static void copy_nodes(const struct nc_index *x, uint64_t off, size_t n, uint8_t *out)
{
	uint8_t node[NODE_MAX];

	while (n > 0) {
		size_t skip = (size_t)(off % x->node_bytes);
		size_t part = (size_t)u64_min(n, x->node_bytes - skip);

		if (part == x->node_bytes) {
			nc_index_node(x, off / x->node_bytes, out);
		} else {
			nc_index_node(x, off / x->node_bytes, node);
			memcpy(out, node + skip, part);
		}
		off += part;
		out += part;
		n -= part;
	}
}

/* layout_copy - copy bytes [off, off + n) of the file from all pieces that they touch. k: the
 * first piece. */
static int layout_copy(const struct nc_layout *l, size_t k, uint64_t off, size_t n,
		       uint8_t *out, struct err *e)
{
	bool raw = false;
	size_t part;
	int rc = 0;

	if (off < l->image.len) {
		part = (size_t)u64_min(n, l->image.len - off);
		memcpy(out, l->image.bytes + off, part);
		off += part;
		out += part;
		n -= part;
	}
	for (; rc == 0 && n > 0; k++) {
		const struct layout_piece *g = &l->pieces[k];
		const struct layout_part *p = &l->parts[g->part];

		part = off < g->at ? (size_t)u64_min(n, g->at - off) : 0;
		memset(out, 0, part);
		off += part;
		out += part;
		n -= part;
		if (n == 0)
			break;
		part = (size_t)u64_min(n, g->end - off);
		if (g->broken)
			rc = nc_err_path(&l->source->ds, 0, g->broken->array,
					 err_set(e, -EIO, "%s", g->broken->why), e);
		else if (g->nodes)
			copy_nodes(&p->x, off - g->at, part, out);
		else
			rc = copy_chunks(l, p, off - g->at, part, out, &raw, e);
		off += part;
		out += part;
		n -= part;
	}
	return rc < 0 || !raw ? rc : source_check(l->source, e);
}

int nc_layout_read(const struct nc_layout *l, uint64_t off, size_t len, uint8_t *room,
		   struct span *ret, struct err *e)
{
	size_t n = (size_t)u64_min(len, off < l->size ? l->size - off : 0), k;
	uint64_t linear, at, size, into;
	const struct layout_piece *g;
	int rc;

	*ret = (struct span){.fd = -1};
	if (n == 0)
		return 0;
	if (off + n <= l->image.len) {
		ret->mem = l->image.bytes + off;
		ret->len = n;
		return 0;
	}
	k = piece_at(l, off);
	g = &l->pieces[k]; /* a piece exists: off + n is inside the file and after the image */
	if (!g->nodes && !g->broken && off >= g->at) {
		const struct layout_part *p = &l->parts[g->part];

		into = off - g->at;
		nc_chunks_nth(p->chunks, nc_chunks_at(p->chunks, into), &linear, &at, &size);
		if (n <= at + size - into)
			return layout_read_chunk(l, p, linear, size, into - at, n, room, ret,
						 e);
	}
	rc = layout_copy(l, k, off, n, room, e);
	if (rc == 0) {
		ret->mem = room;
		ret->len = n;
	}
	return rc;
}
