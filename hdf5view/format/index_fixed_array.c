/* SPDX-License-Identifier: BSD-3-Clause */
/* index_fixed_array.c - chunk index of type fixed array: one element for each chunk of the maximum
 * extent, in one data block or, when there are many, in pages of it that may be uninitialised.
 *
 * Spec: HDF5 File Format 3.0, VII.C. */
#include "hdf5view/format/format_int.h"

#include <errno.h>
#include <string.h>

struct farray {
	struct index_builder *b;
	struct array_index elems;
	struct chunk_iter walk;
	uint64_t page;  /* elements of a page */
	uint64_t n;     /* elements in all */
	uint64_t block; /* address of the data block */
	uint8_t *buf;
	size_t cap;
};

#define PREFETCH_MOST ((uint64_t)8 << 20) /* bytes of a block to prefetch before it is read */

static int farray_read_header(struct farray *a, struct err *e)
{
	const struct h5_file *f = a->b->f;
	uint64_t n = 4 + 4 + (uint64_t)f->length_size + f->offset_size + 4;
	int rc = index_builder_node(a->b, a->b->l->addr, &a->buf, &a->cap, n, "FAHD", e);
	struct slice s = slice_of(a->buf, rc < 0 ? 0 : (size_t)n);
	uint8_t client, size, bits;

	if (rc < 0)
		return rc;
	rd_skip(&s, 5);
	client = rd_u8(&s);
	size = rd_u8(&s);
	bits = rd_u8(&s);
	a->n = rd_uint(&s, f->length_size);
	a->block = h5_rd_addr(f, &s);
	rc = array_index_init(&a->elems, a->b, client, size, e);
	if (rc < 0)
		return rc;
	if (bits > 32)
		return err_set(e, -EBADMSG, "fixed array: invalid page size, 2^%u elements",
			       bits);
	a->page = (uint64_t)1 << bits;
	if (a->n != a->walk.count)
		return err_set(e, -EBADMSG, "fixed array: %llu elements for %llu chunks",
			       (unsigned long long)a->n, (unsigned long long)a->walk.count);
	return 0;
}

/* All pages, each followed by its checksum; the last one may be short. */
static int farray_read_pages(struct farray *a, const uint8_t *bitmap, uint64_t addr,
			     struct err *e)
{
	int rc = 0;

	for (uint64_t at = 0, i = 0; rc == 0 && at < a->n; at += a->page, i++) {
		uint64_t n = u64_min(a->page, a->n - at), bytes = n * a->elems.size + 4;

		if (bitmap[i / 8] & 0x80U >> i % 8) {
			rc = array_index_page(a->b, "fixed array", addr, &a->buf, &a->cap,
					      bytes, e);
			rc = rc ? rc
				: array_index_add(a->b, &a->elems, &a->walk, at, a->buf, n, e);
		}
		if (ckd_add(&addr, addr, bytes))
			addr = HDF5_NOWHERE;
	}
	return rc;
}

static int farray_read_block(struct farray *a, struct err *e)
{
	const struct h5_file *f = a->b->f;
	uint64_t prefix = 6 + (uint64_t)f->offset_size, bytes, bitmap;
	struct readahead ra = {.f = f};
	int rc;

	if (ckd_mul(&bytes, a->n, (uint64_t)a->elems.size) || bytes > PREFETCH_MOST)
		bytes = PREFETCH_MOST;
	readahead_add(&ra, a->block, bytes);
	readahead_done(&ra);
	if (a->n <= a->page) {
		bytes = prefix + a->n * a->elems.size + 4; /* n <= 2^32: no overflow */
		rc = index_builder_node(a->b, a->block, &a->buf, &a->cap, bytes, "FADB", e);
		rc = rc ? rc : array_index_owner(a->b, "fixed array", a->buf, e);
		return rc < 0 ? rc
			      : array_index_add(a->b, &a->elems, &a->walk, 0, a->buf + prefix,
						a->n, e);
	}
	bitmap = ((a->n - 1) / a->page + 1 + 7) / 8; /* a bit for each page */
	bytes = prefix + bitmap + 4;
	rc = index_builder_node(a->b, a->block, &a->buf, &a->cap, bytes, "FADB", e);
	rc = rc ? rc : array_index_owner(a->b, "fixed array", a->buf, e);
	if (rc == 0) {
		auto_free uint8_t *copy = malloc((size_t)bitmap);

		if (!copy)
			return err_nomem(e);
		memcpy(copy, a->buf + prefix, (size_t)bitmap);
		rc = farray_read_pages(a, copy, a->block + bytes, e);
	}
	return rc;
}

int h5_farray_load(struct index_builder *b, struct err *e)
{
	struct farray a = {.b = b};
	int rc = chunk_iter_init(&a.walk, b, false, e);

	rc = rc ? rc : farray_read_header(&a, e);
	if (rc == 0 && a.block != HDF5_ABSENT && a.n > 0)
		rc = farray_read_block(&a, e);
	free(a.buf);
	return rc;
}
