/* SPDX-License-Identifier: BSD-3-Clause */
/* index_extensible_array.c - chunk index of type extensible array, for one unlimited dimension.
 *
 * Elements are in the index block first, then in data blocks that grow: "super block" u stands
 * for 2^(u/2) data blocks of 2^((u+1)/2) times the minimum number of elements. The data blocks
 * of the first super blocks are listed in the index block itself, those of later ones in super
 * blocks of their own; data blocks above a size consist of pages, which their super block says
 * are initialised or not.
 *
 * Spec: HDF5 File Format 3.0, VII.D. */
#include "hdf5view/format/format_int.h"

#include <errno.h>

struct earray {
	struct index_builder *b;
	struct array_index elems;
	struct chunk_iter walk;
	unsigned index_elems; /* elements in the index block */
	unsigned min_elems;   /* of the smallest data block; a power of two */
	unsigned n_super;     /* super blocks, real or not */
	unsigned n_direct;    /* of them, those whose data blocks the index block lists */
	unsigned min_pointers;
	unsigned page_bits;
	unsigned off_size; /* bytes of a block's offset field */
	uint64_t index_block;
	uint8_t *buf, *list; /* node being read; the index block */
	size_t cap, list_cap;
};

static bool power_of_two(unsigned v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

static unsigned log2_of(unsigned v)
{
	unsigned n = 0;

	while (v >>= 1)
		n++;
	return n;
}

#define PREFETCH_MOST ((uint64_t)1 << 20) /* bytes of a block to prefetch before it is read */
#define PREFETCH_MORE 128                 /* bytes around its elements */

static int earray_read_header(struct earray *a, struct err *e)
{
	const struct h5_file *f = a->b->f;
	uint64_t n = 4 + 8 + 6 * (uint64_t)f->length_size + f->offset_size + 4;
	int rc = index_builder_node(a->b, a->b->l->addr, &a->buf, &a->cap, n, "EAHD", e);
	struct slice s = slice_of(a->buf, rc < 0 ? 0 : (size_t)n);
	unsigned bits;
	uint8_t client, size;

	if (rc < 0)
		return rc;
	rd_skip(&s, 5);
	client = rd_u8(&s);
	size = rd_u8(&s);
	bits = rd_u8(&s);
	a->index_elems = rd_u8(&s);
	a->min_elems = rd_u8(&s);
	a->min_pointers = rd_u8(&s);
	a->page_bits = rd_u8(&s);
	rd_skip(&s, 6 * (size_t)f->length_size); /* statistics */
	a->index_block = h5_rd_addr(f, &s);
	rc = array_index_init(&a->elems, a->b, client, size, e);
	if (rc < 0)
		return rc;
	if (bits < 1 || bits > 64 || !power_of_two(a->min_elems) ||
	    !power_of_two(a->min_pointers) || a->page_bits > 32 || bits < log2_of(a->min_elems))
		return err_set(e, -EBADMSG, "extensible array: invalid parameters");
	a->off_size = (bits + 7) / 8;
	a->n_super = 1 + bits - log2_of(a->min_elems);
	a->n_direct = 2 * log2_of(a->min_pointers);
	if (a->n_direct > a->n_super)
		return err_set(e, -EBADMSG, "extensible array: invalid parameters");
	return 0;
}

/* Shapes of super block u. Both fit 64 bits: u <= 64, min_elems <= 128. */
static uint64_t earray_blocks_of(unsigned u)
{
	return (uint64_t)1 << u / 2;
}

static uint64_t elems_of(const struct earray *a, unsigned u)
{
	return ((uint64_t)1 << (u + 1) / 2) * a->min_elems;
}

static uint64_t pages_of(const struct earray *a, unsigned u)
{
	uint64_t n = elems_of(a, u) >> a->page_bits;

	return n > 1 ? n : 0;
}

/* The pages of a data block that the bitmap marks, of which the first is bit `bit`; `idx` is
 * the first element of the block. */
static int earray_read_pages(struct earray *a, uint64_t addr, uint64_t pages,
			     const uint8_t *bitmap, uint64_t bit, uint64_t idx, struct err *e)
{
	uint64_t n = (uint64_t)1 << a->page_bits, bytes = n * a->elems.size + 4;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < pages && idx < a->walk.count; i++, idx += n) {
		if (bitmap[(bit + i) / 8] & 0x80U >> (bit + i) % 8) {
			rc = array_index_page(a->b, "extensible array", addr, &a->buf, &a->cap,
					      bytes, e);
			rc = rc ? rc
				: array_index_add(a->b, &a->elems, &a->walk, idx, a->buf, n, e);
		}
		if (ckd_add(&addr, addr, bytes))
			addr = HDF5_NOWHERE;
	}
	return rc;
}

/* Data block number i of super block u. bitmap: which pages of all these blocks are
 * initialised, NULL when they are not paged. */
static int data_block(struct earray *a, uint64_t addr, unsigned u, uint64_t i,
		      const uint8_t *bitmap, uint64_t idx, struct err *e)
{
	uint64_t prefix = 6 + (uint64_t)a->b->f->offset_size + a->off_size;
	uint64_t n = elems_of(a, u), bytes = prefix + 4;
	int rc;

	if (!bitmap &&
	    (ckd_mul(&bytes, n, (uint64_t)a->elems.size) || ckd_add(&bytes, bytes, prefix + 4)))
		bytes = UINT64_MAX;
	rc = index_builder_node(a->b, addr, &a->buf, &a->cap, bytes, "EADB", e);
	rc = rc ? rc : array_index_owner(a->b, "extensible array", a->buf, e);
	if (rc < 0)
		return rc;
	if (bitmap)
		return earray_read_pages(a, addr + bytes, pages_of(a, u), bitmap,
					 i * pages_of(a, u), idx, e);
	return array_index_add(a->b, &a->elems, &a->walk, idx, a->buf + prefix, n, e);
}

/* block_list - where the data blocks of a super block are. */
struct block_list {
	const struct h5_file *f;
	const uint8_t *p;
};

static uint64_t block_at(const void *arg, size_t i)
{
	const struct block_list *l = arg;

	return h5_addr(l->f, l->p + i * l->f->offset_size);
}

/* The data blocks of super block u, whose addresses are at p, from element idx on. */
static int data_blocks(struct earray *a, const uint8_t *p, unsigned u, const uint8_t *bitmap,
		       uint64_t idx, struct err *e)
{
	const struct block_list list = {a->b->f, p};
	struct readahead ra = {.f = a->b->f};
	uint64_t bytes; /* checksums of pages are few */
	int rc = 0;

	if (ckd_mul(&bytes, elems_of(a, u), (uint64_t)a->elems.size))
		bytes = PREFETCH_MOST;
	for (uint64_t i = 0; rc == 0 && i < earray_blocks_of(u) && idx < a->walk.count; i++) {
		uint64_t addr = block_at(&list, (size_t)i);

		readahead_nodes(&ra, (size_t)i, (size_t)earray_blocks_of(u),
				u64_min(bytes, PREFETCH_MOST) + PREFETCH_MORE, block_at, &list);
		if (addr != HDF5_ABSENT)
			rc = data_block(a, addr, u, i, bitmap, idx, e);
		if (ckd_add(&idx, idx, elems_of(a, u)))
			break;
	}
	return rc;
}

static int super_block(struct earray *a, uint64_t addr, unsigned u, uint64_t idx, struct err *e)
{
	uint64_t prefix = 6 + (uint64_t)a->b->f->offset_size + a->off_size;
	/* space for the bits of each data block in whole bytes, though the bits themselves are
	 * packed without regard to that */
	uint64_t one = (pages_of(a, u) + 7) / 8, maps, list, bytes;
	auto_free uint8_t *buf = NULL;
	size_t cap = 0;
	int rc;

	if (ckd_mul(&maps, one, earray_blocks_of(u)) ||
	    ckd_mul(&list, earray_blocks_of(u), (uint64_t)a->b->f->offset_size) ||
	    ckd_add(&bytes, maps, list) || ckd_add(&bytes, bytes, prefix + 4))
		bytes = UINT64_MAX;
	rc = index_builder_node(a->b, addr, &buf, &cap, bytes, "EASB", e);
	rc = rc ? rc : array_index_owner(a->b, "extensible array", buf, e);
	if (rc < 0)
		return rc;
	return data_blocks(a, buf + prefix + maps, u, one ? buf + prefix : NULL, idx, e);
}

/* Everything hangs off the index block: elements, data blocks, super blocks. */
static int index_block(struct earray *a, struct err *e)
{
	size_t osize = a->b->f->offset_size;
	uint64_t prefix = 6 + osize, elems = (uint64_t)a->index_elems * a->elems.size;
	uint64_t direct = 2 * ((uint64_t)a->min_pointers - 1), idx = a->index_elems;
	uint64_t bytes = prefix + elems + (direct + a->n_super - a->n_direct) * osize + 4;
	const uint8_t *p;
	int rc = index_builder_node(a->b, a->index_block, &a->list, &a->list_cap, bytes, "EAIB",
				    e);

	rc = rc ? rc : array_index_owner(a->b, "extensible array", a->list, e);
	if (rc < 0)
		return rc;
	p = a->list + prefix;
	rc = array_index_add(a->b, &a->elems, &a->walk, 0, p, a->index_elems, e);
	p += elems;
	for (unsigned u = 0; rc == 0 && u < a->n_super && idx < a->walk.count; u++) {
		uint64_t n;

		if (u < a->n_direct) {
			rc = data_blocks(a, p, u, NULL, idx, e);
			p += earray_blocks_of(u) * osize;
		} else {
			uint64_t addr = h5_addr(a->b->f, p);

			if (addr != HDF5_ABSENT)
				rc = super_block(a, addr, u, idx, e);
			p += osize;
		}
		if (ckd_mul(&n, earray_blocks_of(u), elems_of(a, u)) || ckd_add(&idx, idx, n))
			break;
	}
	return rc;
}

int h5_earray_load(struct index_builder *b, struct err *e)
{
	struct earray a = {.b = b};
	int rc = chunk_iter_init(&a.walk, b, true, e);

	if (rc == 0 && a.walk.count > 0)
		rc = earray_read_header(&a, e);
	if (rc == 0 && a.walk.count > 0 && a.index_block != HDF5_ABSENT)
		rc = index_block(&a, e);
	free(a.buf);
	free(a.list);
	return rc;
}
