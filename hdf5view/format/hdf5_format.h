/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf5_format.h - the parts of HDF5's file format that this program reads itself: the superblock,
 * one dataset's object header (layout, dataspace, filter flags), and its chunk index.
 *
 * libhdf5 reads names, types and attributes. For chunk indexes it is too slow: its chunk queries
 * walk the index from the start, under one global lock. All functions here read untrusted bytes
 * from a blob: each size is checked against the file and against a limit before it is used, and
 * cycles and depth are bounded.
 *
 * Spec: HDF5 File Format Specification Version 3.0. */
#ifndef HDF5VIEW_FORMAT_HDF5_FORMAT_H
#define HDF5VIEW_FORMAT_HDF5_FORMAT_H

#include "base/core/cursor.h"
#include "base/core/err.h"
#include "translate/contract/blob.h"
#include "translate/model/dataset.h"

/* The first bytes of a superblock. Spec: II.A */
#define HDF5_SIGNATURE "\211HDF\r\n\032\n"
#define HDF5_SIGNATURE_LEN 8

/* h5_file - the superblock; plain data. */
struct h5_file {
	struct blob *blob;     /* its bytes; borrowed */
	uint64_t size;         /* bytes of the file at its opening */
	uint64_t base;         /* base address = start of the superblock (user block length) */
	uint8_t offset_size;   /* bytes of an address in the file: 2, 4, 8 */
	uint8_t length_size;   /* bytes of a length: 2, 4, 8 */
	uint64_t eof;          /* end-of-file address that the superblock states, absolute */
};

/* h5_lookup3 - Bob Jenkins' lookup3 over n bytes with initial value 0: the checksum of all
 * structures that have one. */
uint32_t h5_lookup3(const uint8_t *p, size_t n);

/* h5_file_find - find the superblock (offset 0, 512, 1024, 2048 ...); in a remote file, only in
 * the first MiB.
 * Returns 0, -EBADMSG when there is no HDF5 signature, -EIO. Spec: II.A */
int h5_file_find(struct blob *b, uint64_t *ret_offset, struct err *e) NZ_MUST_USE;

/* h5_file_read - parse the superblock, versions 0 to 3. b: borrowed while *ret is in use.
 * Returns as h5_file_find; also -EBADMSG if the stated end of file lies beyond the file
 * ("truncated"). Spec: II.A */
int h5_file_read(struct blob *b, struct h5_file *ret, struct err *e) NZ_MUST_USE;

enum h5_index_type {
	HDF5_INDEX_BTREE1,
	HDF5_INDEX_SINGLE,
	HDF5_INDEX_IMPLICIT,
	HDF5_INDEX_FARRAY,
	HDF5_INDEX_EARRAY,
	HDF5_INDEX_BTREE2
};

enum h5_layout_class {
	HDF5_LAYOUT_COMPACT,
	HDF5_LAYOUT_CONTIGUOUS,
	HDF5_LAYOUT_CHUNKED,
	HDF5_LAYOUT_VIRTUAL
};

/* ---- object header messages ---- */

enum {
	HDF5_MSG_DATASPACE = 0x01,
	HDF5_MSG_EXTERNAL = 0x07,
	HDF5_MSG_LAYOUT = 0x08,
	HDF5_MSG_PIPELINE = 0x0b,
	HDF5_MSG_CONTINUATION = 0x10
};

struct h5_message {
	uint32_t type;
	bool shared;         /* the body is a reference to where the message really is */
	uint64_t addr;       /* of the body, absolute */
	uint64_t block, sum; /* of its block, and of the block's checksum; sum 0: it has none */
	struct slice body;
};

/* h5_header_walk - call fn for each message of the object header at `header`. Continuation
 * messages are followed, not passed to fn. Stops at the first error, also fn's, and returns it. */
int h5_header_walk(const struct h5_file *f, uint64_t header,
		   int (*fn)(void *arg, const struct h5_message *m, struct err *e), void *arg,
		   struct err *e) NZ_MUST_USE;

/* h5_layout - one dataset's storage, plain data. Addresses are absolute file offsets (the base
 * address is added); UINT64_MAX is "undefined": nothing is allocated. */
struct h5_layout {
	enum h5_layout_class cls;
	uint64_t addr;          /* CONTIGUOUS, COMPACT: first byte; CHUNKED: the index */
	uint64_t size;          /* CONTIGUOUS, COMPACT: bytes; 0 if not stated (old layouts) */
	bool external;          /* raw data is in external files: addr is meaningless */
	uint32_t rank;          /* of the dataspace; chunk, dims, maxdims have rank entries */
	uint64_t dims[DS_RANK_MAX];     /* current extent, elements */
	uint64_t maxdims[DS_RANK_MAX];  /* UINT64_MAX: unlimited */
	uint64_t chunk[DS_RANK_MAX];    /* CHUNKED: elements */
	uint32_t elem_size;     /* CHUNKED: bytes of an element as the layout states it */
	enum h5_index_type index;
	bool filtered;          /* the dataset has a filter pipeline */
	bool edges_unfiltered;  /* partial edge chunks are stored unfiltered (mask stays 0) */
	uint64_t single_size;   /* SINGLE with filters: stored bytes */
	uint32_t single_mask;   /* SINGLE with filters: filter mask */
	uint8_t fa_page_bits;   /* FARRAY */
	uint8_t ea_max_bits, ea_index_elems, ea_min_pointers, ea_min_elems, ea_page_bits;
};

/* h5_layout_read - parse the object header at `header` (absolute) of a dataset.
 * Header versions 1 and 2, continuation blocks, layout messages 1 to 5 (dataspace 1 and 2).
 * Returns 0; -EBADMSG damaged; -EOPNOTSUPP a version that is not known, or a message that is
 * shared in another object. Spec: IV.A.1 object headers, IV.A.2.b, IV.A.2.i data layout */
int h5_layout_read(const struct h5_file *f, uint64_t header, struct h5_layout *ret,
		   struct err *e) NZ_MUST_USE;

/* h5_chunk - one stored chunk. */
struct h5_chunk {
	uint64_t addr;   /* absolute file offset; UINT64_MAX: absent */
	uint32_t size;   /* stored bytes */
	uint32_t mask;   /* filter mask; edges stored unfiltered have CODEC_ALL_SKIPPED here */
};

/* h5_index - the chunks of one dataset, addressed by linear position in a grid. */
struct h5_index;

/* h5_index_load - read the whole chunk index.
 * l        a CHUNKED layout
 * grid     l->rank entries: chunks per dimension of the grid to number by (C order); it may be
 *          larger than the extent (a variable shorter than its dimension). Chunks outside the
 *          grid are ignored.
 * max_bytes  memory for the table: -ERANGE beyond
 * Returns 0 with *ret new (h5_index_free); -EBADMSG damaged (a node outside the file, a chunk
 * twice, cycles, depth); -EOPNOTSUPP an unknown index version, chunks of 4 GiB; -EIO. The ranges
 * of chunks are given as stated, also beyond the end of the file: check them before use.
 * Cost: one pass over the index's nodes, 15 to 60 ns a chunk when in the page cache.
 * Spec: III.A.1 B-tree v1, III.A.2 B-tree v2, VII.C fixed array, VII.D extensible array,
 * VII.B implicit, VII.A single chunk */
int h5_index_load(const struct h5_file *f, const struct h5_layout *l, const uint64_t *grid,
		  uint64_t max_bytes, struct h5_index **ret, struct err *e) NZ_MUST_USE;
void h5_index_free(struct h5_index *x);

/* h5_index_get - chunk at a linear position < product of the grid; absent ones give addr
 * UINT64_MAX. Constant time for dense tables, binary search for sparse ones. Any thread. */
struct h5_chunk h5_index_get(const struct h5_index *x, uint64_t linear);

/* h5_index_next - first stored position at or after `from`; UINT64_MAX: none. Any thread. */
uint64_t h5_index_next(const struct h5_index *x, uint64_t from);

/* h5_index_count - stored chunks. */
uint64_t h5_index_count(const struct h5_index *x);

#endif
