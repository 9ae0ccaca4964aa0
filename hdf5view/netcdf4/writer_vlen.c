/* SPDX-License-Identifier: BSD-3-Clause */
/* writer_vlen.c - writes variable-length elements. They are stored in the file's global heap,
 * which only the library can write, so all of them are written while the structure is made. The
 * server reads them (virtual/vlen_feed.c) and sends lengths and bytes of all elements of a chunk;
 * those inside the shape are given to the library. */
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

/* writer_vlen_piece - the part of one chunk inside the shape. */
struct writer_vlen_piece {
	const struct ds_array *a;
	hsize_t start[NC_RANK_LIMIT], count[NC_RANK_LIMIT];
	uint64_t inside; /* elements */
	uint8_t *raw;    /* the source's bytes, and one more */
	size_t len;      /* without that byte */
	void *values;    /* char * or hvl_t for each element inside */
	uint64_t bytes;  /* in the heap */
};

static bool writer_vlen_is_text(const struct ds_array *a)
{
	return a->type.kind == DT_VSTRING;
}

static void bounds(struct writer_vlen_piece *p, uint64_t linear)
{
	uint64_t at[DS_RANK_MAX];

	ds_chunk_coords(p->a, linear, at);
	p->inside = 1;
	for (uint32_t d = 0; d < p->a->rank; d++) {
		p->start[d] = at[d] * p->a->chunk[d];
		p->count[d] = u64_min(p->a->chunk[d], p->a->shape[d] - p->start[d]);
		p->inside *= p->count[d];
	}
}

/* writer_vlen_set_value - set element i of those inside. The string's NUL is written later, over
 * the next element's length. */
static void writer_vlen_set_value(struct writer_vlen_piece *p, uint64_t i, const uint8_t *bytes,
				  size_t n)
{
	uint64_t room = (n + 1 + 7) / 8 * 8 + HEAP_HEAD;

	/* the library only reads them */
	if (writer_vlen_is_text(p->a))
		((char **)p->values)[i] = (char *)(uintptr_t)bytes;
	else
		((hvl_t *)p->values)[i] = (hvl_t){.len = n / p->a->type.base->size,
						  .p = (void *)(uintptr_t)bytes};
	p->bytes += n ? room : 0;
}

/* writer_vlen_step - next element of a whole chunk in C order. Returns whether idx is inside the
 * shape. */
static bool writer_vlen_step(const struct writer_vlen_piece *p, uint64_t *idx)
{
	bool inside = true;

	for (uint32_t d = p->a->rank; d-- > 0;) {
		if (++idx[d] < p->a->chunk[d])
			break;
		idx[d] = 0;
	}
	for (uint32_t d = 0; d < p->a->rank; d++)
		inside = inside && idx[d] < p->count[d];
	return inside;
}

/* writer_vlen_parse - find the elements in the source's bytes. */
static int writer_vlen_parse(struct writer_vlen_piece *p, struct err *e)
{
	struct slice s = slice_of(p->raw, p->len);
	uint64_t idx[DS_RANK_MAX] = {0}, n = 1, i = 0;
	bool inside = true;

	for (uint32_t d = 0; d < p->a->rank; d++)
		n *= p->a->chunk[d]; /* each takes bytes of p->raw, or the slice ends */
	for (uint64_t k = 0; k < n && slice_ok(&s); k++) {
		uint8_t *mark = p->raw + (p->len - s.len);
		uint32_t len = rd_le32(&s);
		const uint8_t *bytes = rd_bytes(&s, len);

		*mark = 0; /* terminates the string before it; the length has been read */
		if (!slice_ok(&s) ||
		    (!writer_vlen_is_text(p->a) && len % p->a->type.base->size != 0))
			break;
		if (inside)
			writer_vlen_set_value(p, i++, bytes, len);
		inside = writer_vlen_step(p, idx);
	}
	if (!slice_ok(&s) || i != p->inside)
		return err_set(e, -EBADMSG, "elements end before the chunk does");
	p->raw[p->len - s.len] = 0;
	return 0;
}

/* same_values - set all elements to the fill value: an absent chunk. text: the fill value,
 * NUL-terminated. */
static void same_values(struct writer_vlen_piece *p, const char *text)
{
	for (uint64_t i = 0; i < p->inside; i++)
		writer_vlen_set_value(p, i, (const uint8_t *)text,
				      writer_vlen_is_text(p->a) ? p->a->fill_text.len : 0);
}

/* write_piece - returns 0 or -1. */
static int write_piece(struct nc_builder *b, hid_t set, const struct writer_vlen_piece *p,
		       uint32_t array)
{
	int rank = (int)p->a->rank;
	auto_hid hid_t type = nc_h5_type(b, &p->a->type, b->m->arrays[array].type);
	auto_hid hid_t space = H5Dget_space(set);
	auto_hid hid_t mem =
		rank ? H5Screate_simple(rank, p->count, NULL) : H5Screate(H5S_SCALAR);

	if (type < 0 || space < 0 || mem < 0)
		return -1;
	if (rank &&
	    H5Sselect_hyperslab(space, H5S_SELECT_SET, p->start, NULL, p->count, NULL) < 0)
		return -1;
	return H5Dwrite(set, type, mem, space, H5P_DEFAULT, p->values) < 0 ? -1 : 0;
}

/* room_left - the bytes by which the file may still grow. */
static uint64_t room_left(const struct nc_builder *b)
{
	hsize_t size = 0;

	if (H5Fget_filesize(b->file, &size) < 0 || size > b->max_bytes)
		return 0;
	return b->max_bytes - size;
}

/* writer_vlen_one_chunk - fill: text of the fill value. */
static int writer_vlen_one_chunk(struct nc_builder *b, hid_t set, struct writer_vlen_piece *p,
				 uint32_t array, const char *fill, struct err *e)
{
	int rc = 0;

	p->bytes = 0;
	free(p->values);
	p->values = alloc_array(p->inside, sizeof(hvl_t));
	if (!p->values)
		return err_nomem(e);
	if (p->raw)
		rc = writer_vlen_parse(p, e);
	else
		same_values(p, fill);
	if (rc < 0)
		return rc;
	if (p->bytes > room_left(b))
		return err_set(e, -ERANGE,
			       "strings of the netCDF file exceed %" PRIu64
			       " bytes (an eighth of -o memory): use a larger -o memory",
			       b->max_bytes);
	return write_piece(b, set, p, array) < 0 ? nc_h5_fail(b, 0, array, e) : 0;
}

/* writer_vlen_next - the piece at *at of n bytes. Returns false if there is none, or it is
 * truncated. */
static bool writer_vlen_next(uint8_t *pieces, size_t n, size_t *at, struct writer_vlen_piece *p)
{
	struct nc_piece head;
	size_t left = n - *at, len;

	if (left < sizeof(head))
		return false;
	memcpy(&head, pieces + *at, sizeof(head));
	left -= sizeof(head);
	*at += sizeof(head);
	if (head.linear >= p->a->n_chunks)
		return false;
	p->raw = NULL;
	p->len = 0;
	if (head.len != NC_PIECE_ABSENT) {
		if (head.len >= left)
			return false;
		p->raw = pieces + *at;
		p->len = (size_t)head.len;
		len = (p->len + 8) / 8 * 8;
		*at += len < left ? len : left;
	}
	bounds(p, head.linear);
	return true;
}

int nc_h5_strings(struct nc_builder *b, uint32_t array, uint8_t *pieces, size_t n,
		  struct err *e)
{
	const struct ds_array *a = &b->ds->arrays[array];
	struct writer_vlen_piece p = {.a = a};
	auto_hid hid_t set = H5Oopen_by_addr(b->file, b->arrays[array]);
	auto_free char *fill = strndup(a->fill_text.s ? a->fill_text.s : "", a->fill_text.len);
	int rc = fill ? 0 : err_nomem(e);
	size_t at = 0;

	if (set < 0)
		rc = nc_h5_fail(b, 0, array, e);
	while (rc == 0 && writer_vlen_next(pieces, n, &at, &p))
		rc = writer_vlen_one_chunk(b, set, &p, array, fill, e);
	free(p.values);
	return rc;
}
