/* SPDX-License-Identifier: BSD-3-Clause */
/* format_int.h - shared by the files that implement hdf5_format.h, and private to them. */
#ifndef HDF5VIEW_FORMAT_FORMAT_INT_H
#define HDF5VIEW_FORMAT_FORMAT_INT_H

#include "base/core/cursor.h"
#include "base/core/endian.h"
#include "hdf5view/format/hdf5_format.h"

#define HDF5_ABSENT UINT64_MAX
#define HDF5_NOWHERE (UINT64_MAX - 1) /* a stated address that no file can hold */
#define FORMAT_DEPTH_MAX 64

/* h5_addr - an address field of f->offset_size bytes made absolute; all ones is HDF5_ABSENT, a sum
 * that overflows is HDF5_NOWHERE. */
static inline uint64_t h5_addr(const struct h5_file *f, const uint8_t *p)
{
	uint64_t v = get_le(p, f->offset_size), sum;

	if (v == UINT64_MAX >> (64 - 8 * f->offset_size))
		return HDF5_ABSENT;
	return ckd_add(&sum, v, f->base) || sum == HDF5_ABSENT ? HDF5_NOWHERE : sum;
}

/* h5_rd_addr, h5_rd_length - the same from a slice; a length of all ones is UINT64_MAX. */
uint64_t h5_rd_addr(const struct h5_file *f, struct slice *s);
uint64_t h5_rd_length(const struct h5_file *f, struct slice *s);

/* h5_in_file - whether [addr, addr + n) lies inside the file. */
static inline bool h5_in_file(const struct h5_file *f, uint64_t addr, uint64_t n)
{
	return addr <= f->size && n <= f->size - addr;
}

/* h5_pread - exactly n bytes at an absolute address; -EBADMSG names `what` when they are not
 * all inside the file. */
int h5_pread(const struct h5_file *f, uint64_t addr, void *out, size_t n, const char *what,
	     struct err *e) NZ_MUST_USE;

/* ---- readahead.c ---- */

#define READAHEAD_PARTS 64

/* readahead - ranges gathered for one parallel prefetch. */
struct readahead {
	const struct h5_file *f;
	size_t n;
	struct blob_part parts[READAHEAD_PARTS];
};

/* readahead_add - add a range. Ignored if the file is local, or addr is outside it. */
void readahead_add(struct readahead *x, uint64_t addr, uint64_t n);
/* readahead_done - prefetch the gathered ranges. */
void readahead_done(struct readahead *x);
/* readahead_nodes - called before node i of n is read, in order from 0: prefetch the nodes after
 * it, of about `bytes` bytes each. */
void readahead_nodes(struct readahead *x, size_t i, size_t n, uint64_t bytes,
		     uint64_t (*addr)(const void *arg, size_t i), const void *arg);

/* h5_sum_ok - whether the last 4 of n bytes are the checksum of those before. */
static inline bool h5_sum_ok(const uint8_t *p, size_t n)
{
	return n >= 4 && h5_lookup3(p, n - 4) == get_le32(p + n - 4);
}

/* ---- collecting the chunks of an index ---- */

struct h5_entry {
	uint64_t linear;
	struct h5_chunk c;
};

struct index_builder {
	const struct h5_file *f;
	const struct h5_layout *l;
	uint32_t rank;
	uint64_t limit[DS_RANK_MAX];   /* chunks in the grid and in the extent: chunks that the
				        * library would ignore are not stored */
	uint64_t stride[DS_RANK_MAX];  /* linear distance of neighbours, C order */
	uint64_t total;                /* product of the grid */
	uint64_t max_bytes;
	uint32_t chunk_bytes;          /* of a whole unfiltered chunk */
	uint64_t budget;               /* bytes of nodes that may still be read: nodes do not
	                                * overlap, so all of them together fit in the file */
	struct h5_entry *entries;      /* n of them, in the order found */
	size_t n, cap;
	bool sorted;                   /* strictly ascending so far */
};

/* index_builder_spend - account for n bytes of nodes; -EBADMSG when they exceed the file. */
int index_builder_spend(struct index_builder *b, uint64_t n, struct err *e) NZ_MUST_USE;

/* index_builder_read - h5_pread and index_builder_spend. */
int index_builder_read(struct index_builder *b, uint64_t addr, void *out, size_t n,
		       const char *what, struct err *e) NZ_MUST_USE;

/* index_builder_node - n bytes at addr into *buf (capacity *cap, grown when needed, freed by the
 * caller), with the 4-letter signature, version 0 and the trailing checksum checked. */
int index_builder_node(struct index_builder *b, uint64_t addr, uint8_t **buf, size_t *cap,
		       uint64_t n, const char *signature, struct err *e) NZ_MUST_USE;

/* index_builder_add - one stored chunk. coords: rank chunk coordinates; outside the grid or
 * the extent it is ignored. size and mask are used when the dataset is filtered. */
int index_builder_add(struct index_builder *b, const uint64_t *coords, uint64_t addr,
		      uint64_t size, uint32_t mask, struct err *e) NZ_MUST_USE;

/* ---- index families: each adds all chunks of the index at l->addr, which is defined ---- */

int h5_btree1_load(struct index_builder *b, struct err *e) NZ_MUST_USE;
int h5_btree2_load(struct index_builder *b, struct err *e) NZ_MUST_USE;
int h5_farray_load(struct index_builder *b, struct err *e) NZ_MUST_USE;
int h5_earray_load(struct index_builder *b, struct err *e) NZ_MUST_USE;

/* ---- array indexes: element number <-> chunk coordinates ---- */

/* chunk_iter - position in an array index. Elements are numbered in C order over the chunks of
 * the *maximum* extent, in an extensible array with the unlimited dimension moved first. */
struct chunk_iter {
	uint32_t rank;
	uint32_t dim[DS_RANK_MAX];     /* dimension of each slot, slowest first */
	uint64_t n[DS_RANK_MAX];       /* chunks in each slot; slot 0 of an EA: unlimited */
	uint64_t coords[DS_RANK_MAX];  /* current chunk, by dimension */
	uint64_t count;                /* elements in all (EA: in the grid's part) */
};

/* chunk_iter_init - extensible: exactly one dimension is unlimited. -EBADMSG when the extent does
 * not fit the kind of index; -EOPNOTSUPP when element numbers do not fit 64 bits. */
int chunk_iter_init(struct chunk_iter *w, const struct index_builder *b, bool extensible,
		    struct err *e) NZ_MUST_USE;

/* array_index - how elements of an array index are stored. */
struct array_index {
	uint8_t size;      /* bytes of an element */
	uint8_t len_size;  /* bytes of the stored size; 0: unfiltered, an address alone */
};

/* array_index_init - check client id and element size against the layout. */
int array_index_init(struct array_index *m, const struct index_builder *b, uint8_t client,
		     uint8_t size, struct err *e) NZ_MUST_USE;
/* array_index_owner - check that a block, of which at least 6 bytes and an address were read,
 * belongs to the array. what: for messages. */
int array_index_owner(const struct index_builder *b, const char *what, const uint8_t *block,
		      struct err *e) NZ_MUST_USE;
/* array_index_page - read a page of `bytes` bytes with its checksum into *buf, which grows. */
int array_index_page(struct index_builder *b, const char *what, uint64_t addr, uint8_t **buf,
		     size_t *cap, uint64_t bytes, struct err *e) NZ_MUST_USE;
/* array_index_add - add elements idx .. idx + n (cut at w->count) from n * m->size bytes at p. */
int array_index_add(struct index_builder *b, const struct array_index *m, struct chunk_iter *w,
		    uint64_t idx, const uint8_t *p, uint64_t n, struct err *e) NZ_MUST_USE;

#endif
