/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_header.c - reads the storage layout of one dataset from its object header.
 *
 * Only the dataspace, layout, filter pipeline (presence) and external files (presence) messages
 * are parsed. A message that is stored elsewhere (shared) gives -EOPNOTSUPP: the caller then uses
 * libhdf5.
 *
 * Spec: HDF5 File Format 3.0, IV.A.2.b dataspace, IV.A.2.h external files, IV.A.2.i layout,
 * IV.A.2.l pipeline. Layout version 5 is version 4 with another rule for the width of stored chunk
 * sizes, which the index headers state anyway. */
#include "hdf5view/format/format_int.h"

#include <errno.h>

#define RANK_MAX 32 /* HDF5's own limit */

#define CHUNK_EDGES_UNFILTERED 0x01U
#define CHUNK_SINGLE_FILTERED 0x02U

struct dataset_header_reader {
	const struct h5_file *f;
	struct h5_layout *l;
	bool have_layout, have_space, have_pipeline;
	uint32_t chunk_rank; /* as the layout states it, without the element size */
};

static int header_read_space(struct dataset_header_reader *r, struct slice s, struct err *e)
{
	struct h5_layout *l = r->l;
	unsigned version = rd_u8(&s), flags;

	l->rank = rd_u8(&s);
	flags = rd_u8(&s);
	if (slice_ok(&s) && version != 1 && version != 2)
		return err_set(e, -EOPNOTSUPP, "dataspace version %u is not known", version);
	rd_skip(&s, version == 1 ? 5 : 1);
	if (l->rank > RANK_MAX)
		return err_set(e, -EBADMSG, "dataspace: rank %u exceeds %u", l->rank, RANK_MAX);
	for (size_t d = 0; d < l->rank; d++) {
		l->dims[d] = rd_uint(&s, r->f->length_size);
		l->maxdims[d] = l->dims[d];
	}
	for (size_t d = 0; d < l->rank && (flags & 1); d++)
		l->maxdims[d] = h5_rd_length(r->f, &s);
	if (!slice_ok(&s))
		return err_set(e, -EBADMSG, "dataspace message is truncated");
	for (size_t d = 0; d < l->rank; d++)
		if (l->maxdims[d] < l->dims[d])
			return err_set(e, -EBADMSG,
				       "dataspace: length %llu exceeds maximum %llu",
				       (unsigned long long)l->dims[d],
				       (unsigned long long)l->maxdims[d]);
	return 0;
}

/* n chunk lengths of `width` bytes, the last of them the element size. */
static int chunk_dims(struct dataset_header_reader *r, struct slice *s, unsigned n,
		      unsigned width, struct err *e)
{
	uint64_t v = 0;

	if (n < 2 || n > RANK_MAX + 1)
		return err_set(e, -EBADMSG, "layout: invalid number of chunk dimensions %u", n);
	if (width < 1 || width > 8)
		return err_set(e, -EBADMSG, "layout: invalid size of chunk lengths, %u bytes",
			       width);
	r->chunk_rank = n - 1;
	for (size_t d = 0; d < n; d++) {
		v = rd_uint(s, width);
		if (!slice_ok(s) || v == 0)
			return err_set(e, -EBADMSG, "layout: chunk length is 0 or missing");
		if (d + 1 < n)
			r->l->chunk[d] = v;
	}
	if (v > UINT32_MAX)
		return err_set(e, -EBADMSG, "layout: invalid element size, %llu bytes",
			       (unsigned long long)v);
	r->l->elem_size = (uint32_t)v;
	return 0;
}

/* Versions 1 and 2: dimensions are stored for every class, the chunk index is a B-tree v1. */
static int read_layout_old(struct dataset_header_reader *r, const struct h5_message *m,
			   struct slice s, struct err *e)
{
	struct h5_layout *l = r->l;
	unsigned n = rd_u8(&s), cls = rd_u8(&s);

	if (cls > HDF5_LAYOUT_CHUNKED)
		return err_set(e, -EBADMSG, "layout: unknown class %u", cls);
	l->cls = (enum h5_layout_class)cls;
	rd_skip(&s, 5);
	if (l->cls != HDF5_LAYOUT_COMPACT)
		l->addr = h5_rd_addr(r->f, &s);
	if (l->cls == HDF5_LAYOUT_CHUNKED)
		return chunk_dims(r, &s, n, 4, e);
	rd_skip(&s, (size_t)n * 4);
	if (l->cls == HDF5_LAYOUT_COMPACT) {
		l->size = rd_le32(&s);
		l->addr = m->addr + (m->body.len - s.len);
		rd_skip(&s, (size_t)l->size);
	}
	return slice_ok(&s) ? 0 : err_set(e, -EBADMSG, "layout message is truncated");
}

/* Version 4 and later: after the chunk lengths, the kind of index and its parameters. */
static int header_read_index(struct dataset_header_reader *r, unsigned flags, struct slice *s,
			     struct err *e)
{
	static const enum h5_index_type kinds[] = {HDF5_INDEX_BTREE1,   HDF5_INDEX_SINGLE,
						   HDF5_INDEX_IMPLICIT, HDF5_INDEX_FARRAY,
						   HDF5_INDEX_EARRAY,   HDF5_INDEX_BTREE2};
	struct h5_layout *l = r->l;
	unsigned kind = rd_u8(s);

	if (kind == 0 || kind >= ARRAY_LEN(kinds))
		return err_set(e, -EOPNOTSUPP, "layout: chunk index type %u is not known",
			       kind);
	l->index = kinds[kind];
	switch (l->index) {
	case HDF5_INDEX_SINGLE:
		if (flags & CHUNK_SINGLE_FILTERED) {
			l->single_size = rd_uint(s, r->f->length_size);
			l->single_mask = rd_le32(s);
		}
		break;
	case HDF5_INDEX_FARRAY:
		l->fa_page_bits = rd_u8(s);
		break;
	case HDF5_INDEX_EARRAY:
		l->ea_max_bits = rd_u8(s);
		l->ea_index_elems = rd_u8(s);
		l->ea_min_pointers = rd_u8(s);
		l->ea_min_elems = rd_u8(s);
		l->ea_page_bits = rd_u8(s);
		break;
	case HDF5_INDEX_BTREE2:
		rd_skip(s, 6); /* node size and fill percentages: repeated in its header */
		break;
	default:
		break;
	}
	l->addr = h5_rd_addr(r->f, s);
	return slice_ok(s) ? 0 : err_set(e, -EBADMSG, "layout message is truncated");
}

static int read_chunked(struct dataset_header_reader *r, unsigned version, struct slice *s,
			struct err *e)
{
	unsigned flags, n, width;
	int rc;

	if (version == 3) {
		n = rd_u8(s);
		r->l->addr = h5_rd_addr(r->f, s);
		return chunk_dims(r, s, n, 4, e);
	}
	flags = rd_u8(s);
	n = rd_u8(s);
	width = rd_u8(s);
	if (flags & ~(CHUNK_EDGES_UNFILTERED | CHUNK_SINGLE_FILTERED))
		return err_set(e, -EOPNOTSUPP, "layout: unknown chunk flags %u", flags);
	r->l->edges_unfiltered = flags & CHUNK_EDGES_UNFILTERED;
	rc = chunk_dims(r, s, n, width, e);
	return rc < 0 ? rc : header_read_index(r, flags, s, e);
}

static int header_read_layout(struct dataset_header_reader *r, const struct h5_message *m,
			      struct err *e)
{
	struct h5_layout *l = r->l;
	struct slice s = m->body;
	unsigned version = rd_u8(&s), cls;

	if (slice_ok(&s) && (version < 1 || version > 5))
		return err_set(e, -EOPNOTSUPP, "layout version %u is not known", version);
	if (version < 3)
		return read_layout_old(r, m, s, e);
	cls = rd_u8(&s);
	if (!slice_ok(&s) || cls > HDF5_LAYOUT_VIRTUAL ||
	    (cls == HDF5_LAYOUT_VIRTUAL && version < 4))
		return err_set(e, -EBADMSG, "layout: unknown class %u", cls);
	l->cls = (enum h5_layout_class)cls;
	switch (l->cls) {
	case HDF5_LAYOUT_COMPACT:
		l->size = rd_le16(&s);
		l->addr = m->addr + (m->body.len - s.len);
		rd_skip(&s, (size_t)l->size);
		break;
	case HDF5_LAYOUT_CONTIGUOUS:
		l->addr = h5_rd_addr(r->f, &s);
		l->size = rd_uint(&s, r->f->length_size);
		break;
	case HDF5_LAYOUT_CHUNKED:
		return read_chunked(r, version, &s, e);
	case HDF5_LAYOUT_VIRTUAL:
		break; /* the mapping is in a global heap, which only libhdf5 reads */
	}
	return slice_ok(&s) ? 0 : err_set(e, -EBADMSG, "layout message is truncated");
}

static int read_pipeline(struct dataset_header_reader *r, struct slice s, struct err *e)
{
	unsigned version = rd_u8(&s);

	r->l->filtered = rd_u8(&s) > 0;
	if (!slice_ok(&s))
		return err_set(e, -EBADMSG, "filter pipeline message is truncated");
	if (version != 1 && version != 2)
		return err_set(e, -EOPNOTSUPP, "filter pipeline version %u is not known",
			       version);
	return 0;
}

static int on_message(void *arg, const struct h5_message *m, struct err *e)
{
	struct dataset_header_reader *r = arg;
	bool *have = m->type == HDF5_MSG_DATASPACE  ? &r->have_space
		     : m->type == HDF5_MSG_LAYOUT   ? &r->have_layout
		     : m->type == HDF5_MSG_PIPELINE ? &r->have_pipeline
						    : NULL;

	r->l->external |= m->type == HDF5_MSG_EXTERNAL;
	if (!have)
		return 0;
	if (m->shared)
		return err_set(e, -EOPNOTSUPP, "message %u is shared, which is not supported",
			       m->type);
	if (*have)
		return err_set(e, -EBADMSG, "object header: message %u appears twice", m->type);
	*have = true;
	if (m->type == HDF5_MSG_DATASPACE)
		return header_read_space(r, m->body, e);
	if (m->type == HDF5_MSG_LAYOUT)
		return header_read_layout(r, m, e);
	return read_pipeline(r, m->body, e);
}

int h5_layout_read(const struct h5_file *f, uint64_t header, struct h5_layout *ret,
		   struct err *e)
{
	struct h5_layout l = {.addr = HDF5_ABSENT, .index = HDF5_INDEX_BTREE1};
	struct dataset_header_reader r = {.f = f, .l = &l};
	int rc = h5_header_walk(f, header, on_message, &r, e);

	if (rc < 0)
		return rc;
	if (!r.have_layout || !r.have_space)
		return err_set(e, -EBADMSG, "object header: no %s message, not a dataset",
			       r.have_space ? "layout" : "dataspace");
	if (l.cls == HDF5_LAYOUT_CHUNKED && r.chunk_rank != l.rank)
		return err_set(e, -EBADMSG,
			       "layout: chunks have rank %u, but the dataspace has rank %u",
			       r.chunk_rank, l.rank);
	*ret = l;
	return 0;
}
