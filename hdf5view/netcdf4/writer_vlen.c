/* SPDX-License-Identifier: BSD-3-Clause */
/* writer_vlen.c - writes variable-length elements. They are stored in the file's global heap,
 * which only the library can write, so all of them are written while the structure is made. The
 * server reads them (virtual/structure_process.c) and sends lengths and bytes of all elements of a
 * chunk; those inside the shape are given to the library. */
#include "hdf5view/virtual/structure_process.h"

#include "base/core/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define CHUNK_ELEMS 32768 /* elements of a chunk of strings: half a megabyte */
#define HEAP_HEAD 16      /* of an object in the global heap */

void nc_chunk_limit(uint32_t rank, uint64_t elem, uint64_t max, hsize_t *chunk)
{
	uint32_t longest = 0;

	for (uint32_t d = 0; d < rank; d++)
		chunk[d] = u64_max(1, u64_min(chunk[d], UINT32_MAX));
	for (;;) {
		uint64_t n = elem;

		for (uint32_t d = 0; d < rank; d++) {
			if (ckd_mul(&n, n, chunk[d]))
				n = UINT64_MAX;
			if (chunk[d] > chunk[longest])
				longest = d;
		}
		if (n <= max || rank == 0 || chunk[longest] == 1)
			return;
		chunk[longest] = (chunk[longest] + 1) / 2;
	}
}

void nc_strings_chunk(const struct ds_array *a, hsize_t *ret)
{
	for (uint32_t d = 0; d < a->rank; d++)
		ret[d] = a->shape[d];
	nc_chunk_limit(a->rank, 1, CHUNK_ELEMS, ret);
}

void nc_frames_set(struct nc_frames *f, uint64_t i, const uint8_t *bytes, size_t n)
{
	/* the library only reads them */
	if (f->a->type.kind == DT_VSTRING)
		((char **)f->values)[i] = (char *)(uintptr_t)bytes;
	else
		((hvl_t *)f->values)[i] = (hvl_t){.len = n / f->a->type.base->size,
						  .p = (void *)(uintptr_t)bytes};
	f->bytes += n ? ((uint64_t)n + 1 + 7) / 8 * 8 + HEAP_HEAD : 0;
}

/* frames_step - next element of a whole chunk in C order. Returns whether idx is inside the
 * shape. */
static bool frames_step(const struct nc_frames *f, uint64_t *idx)
{
	bool inside = true;

	for (uint32_t d = f->a->rank; d-- > 0;) {
		if (++idx[d] < f->a->chunk[d])
			break;
		idx[d] = 0;
	}
	for (uint32_t d = 0; d < f->a->rank; d++)
		inside = inside && idx[d] < f->count[d];
	return inside;
}

bool nc_frames_parse(struct nc_frames *f, uint8_t *raw, size_t n, size_t *ret_left)
{
	const size_t size = f->a->type.kind == DT_VSTRING ? 1 : f->a->type.base->size;
	struct slice s = slice_of(raw, n);
	uint64_t idx[DS_RANK_MAX] = {0}, all = 1, i = 0;
	bool inside = true;

	for (uint32_t d = 0; d < f->a->rank; d++)
		if (ckd_mul(&all, all, f->a->chunk[d]))
			all = UINT64_MAX; /* each takes four bytes, so the slice ends before */
	for (uint64_t k = 0; k < all && slice_ok(&s); k++) {
		uint8_t *mark = raw + (n - s.len);
		uint32_t len = rd_le32(&s);
		const uint8_t *bytes = rd_bytes(&s, len);

		*mark = 0; /* terminates the string before it; the length has been read */
		if (!slice_ok(&s) || len % size != 0)
			break;
		if (inside)
			nc_frames_set(f, i++, bytes, len);
		inside = frames_step(f, idx);
	}
	if (!slice_ok(&s) || i != f->inside)
		return false;
	raw[n - s.len] = 0;
	*ret_left = s.len;
	return true;
}

/* piece - the part of one chunk inside the shape. */
struct piece {
	struct nc_frames f;
	hsize_t start[NC_RANK_LIMIT], count[NC_RANK_LIMIT];
	uint8_t *raw; /* the source's bytes, and one more */
	size_t len;   /* without that byte */
};

/* write_piece - returns 0 or -1. */
static int write_piece(struct nc_builder *b, hid_t set, const struct piece *p, uint32_t array)
{
	const struct ds_array *a = p->f.a;
	int rank = (int)a->rank;
	auto_hid hid_t type = nc_h5_type(b, &a->type, b->m->arrays[array].type);
	auto_hid hid_t space = H5Dget_space(set);
	auto_hid hid_t mem =
		rank ? H5Screate_simple(rank, p->count, NULL) : H5Screate(H5S_SCALAR);

	if (type < 0 || space < 0 || mem < 0)
		return -1;
	if (rank &&
	    H5Sselect_hyperslab(space, H5S_SELECT_SET, p->start, NULL, p->count, NULL) < 0)
		return -1;
	return H5Dwrite(set, type, mem, space, H5P_DEFAULT, p->f.values) < 0 ? -1 : 0;
}

/* write_chunk - fill: text of the fill value, of all elements of an absent chunk. */
static int write_chunk(struct nc_builder *b, hid_t set, struct piece *p, uint32_t array,
		       const char *fill, struct err *e)
{
	const struct ds_array *a = p->f.a;
	hsize_t size = 0;
	size_t left;

	p->f.bytes = 0;
	free(p->f.values);
	p->f.values = alloc_array(p->f.inside, sizeof(hvl_t));
	if (!p->f.values)
		return err_nomem(e);
	for (uint64_t i = 0; !p->raw && i < p->f.inside; i++)
		nc_frames_set(&p->f, i, (const uint8_t *)fill,
			      a->type.kind == DT_VSTRING ? a->fill_text.len : 0);
	if (p->raw && !nc_frames_parse(&p->f, p->raw, p->len, &left))
		return err_set(e, -EBADMSG, "elements end before the chunk does");
	if (H5Fget_filesize(b->file, &size) < 0 || size > b->max_bytes)
		size = b->max_bytes;
	if (p->f.bytes > b->max_bytes - size)
		return err_set(e, -ERANGE,
			       "strings of the netCDF file exceed %" PRIu64
			       " bytes (an eighth of -o memory): use a larger -o memory",
			       b->max_bytes);
	return write_piece(b, set, p, array) < 0 ? nc_h5_fail(b, 0, array, e) : 0;
}

/* next_piece - the piece at *at of n bytes. Returns false if there is none, or it is truncated. */
static bool next_piece(uint8_t *pieces, size_t n, size_t *at, struct piece *p)
{
	const struct ds_array *a = p->f.a;
	uint64_t coords[DS_RANK_MAX];
	struct nc_piece head;
	size_t left = n - *at;

	if (left < sizeof(head))
		return false;
	memcpy(&head, pieces + *at, sizeof(head));
	left -= sizeof(head);
	*at += sizeof(head);
	if (head.linear >= a->n_chunks)
		return false;
	p->raw = NULL;
	if (head.len != NC_PIECE_ABSENT) {
		if (head.len >= left)
			return false;
		p->raw = pieces + *at;
		p->len = (size_t)head.len;
		*at += (size_t)u64_min((p->len + 8) / 8 * 8, left);
	}
	ds_chunk_coords(a, head.linear, coords);
	p->f.inside = 1;
	for (uint32_t d = 0; d < a->rank; d++) {
		p->start[d] = coords[d] * a->chunk[d];
		p->count[d] = u64_min(a->chunk[d], a->shape[d] - p->start[d]);
		p->f.inside *= p->count[d];
	}
	return true;
}

int nc_h5_strings(struct nc_builder *b, uint32_t array, uint8_t *pieces, size_t n,
		  struct err *e)
{
	const struct ds_array *a = &b->ds->arrays[array];
	struct piece p = {.f = {.a = a, .count = p.count}};
	auto_hid hid_t set = H5Oopen_by_addr(b->file, b->arrays[array]);
	auto_free char *fill = strndup(a->fill_text.s ? a->fill_text.s : "", a->fill_text.len);
	int rc = fill ? 0 : err_nomem(e);
	size_t at = 0;

	if (set < 0)
		rc = nc_h5_fail(b, 0, array, e);
	while (rc == 0 && next_piece(pieces, n, &at, &p))
		rc = write_chunk(b, set, &p, array, fill, e);
	free(p.f.values);
	return rc;
}
