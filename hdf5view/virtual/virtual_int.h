/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_int.h - declarations shared by the files of the virtual netCDF-4 file; private to
 * hdf5view.
 *
 * Life of a virtual file: nc_model decides the names and types of groups, dimensions, variables
 * and attributes (netcdf4/schema*.c). At the first use, libhdf5 makes the structure for nc_build,
 * in memory and in a process of its own: everything but chunks and their indexes
 * (structure_process*.c, netcdf4/schema_pack.c; in the process netcdf4/writer.c,
 * netcdf4/writer_vlen.c). Then nc_layout gives every chunk and every node of every index an
 * address after it, and patches the object headers accordingly (file_layout.c, chunk_sizes.c,
 * patch.c). A read returns bytes of the image, of computed index nodes (btree_nodes.c), and of
 * chunks (view.c).
 *
 * Layout of the file, in this order:
 *   image     the structure, with variable-length elements
 *   indexes   for each chunked variable its B-tree nodes, leaves first, each level in order
 *   data      for each variable its chunks in C order, back to back. The data of the first
 *             variable, of a variable with 64 KiB or more and of its successor begin at a multiple
 *             of 4096; in a file of up to 1000 variables those of all do. The page cache keeps and
 *             drops whole pages, so an unreadable chunk affects only its neighbours
 *   broken    for each variable of unreadable strings a region of its own, where every read fails
 * The layout depends only on the dataset and the sizes of its chunks. */
#ifndef HDF5VIEW_VIRTUAL_VIRTUAL_INT_H
#define HDF5VIEW_VIRTUAL_VIRTUAL_INT_H

#include "hdf5view/netcdf4/netcdf4.h"

/* ---- chunk_sizes.c: the existing chunks of a variable, and their sizes ---- */

/* nc_chunks - the chunks of a variable. Constant sizes need no memory, others a few bytes a chunk.
 * Immutable once made. */
struct nc_chunks;

/* nc_budget - limits for all arrays of a file. A pass takes time for each chunk, even if it needs
 * no memory, and a file of a few bytes may claim any number of chunks: the number of passed chunks
 * is limited to those whose sizes would fit in the memory. */
struct nc_budget {
	uint64_t max;      /* bytes */
	uint64_t used;     /* bytes */
	uint64_t looked;   /* chunks passed; at NC_LOOKED bytes each, below max */
};
#define NC_LOOKED 4

/* nc_chunks_make - query every chunk of an array once.
 * Returns 0 with *ret new; -ERANGE too large; an error of chunkio_stat. */
int nc_chunks_make(struct chunkio *io, const struct ds_array *a, uint32_t array,
		   const struct plan *p, struct nc_budget *budget, struct nc_chunks **ret,
		   struct err *e) NZ_MUST_USE;
void nc_chunks_free(struct nc_chunks *c);
/* nc_chunks_n - the number of existing chunks. nc_chunks_bytes - their total size. */
uint64_t nc_chunks_n(const struct nc_chunks *c);
uint64_t nc_chunks_bytes(const struct nc_chunks *c);
/* nc_chunks_nth - existing chunk i < n in C order: its linear index, its offset from the
 * variable's first byte, its size. */
void nc_chunks_nth(const struct nc_chunks *c, uint64_t i, uint64_t *ret_linear, uint64_t *ret_off,
		   uint64_t *ret_size);
/* nc_chunks_at - the number i of the existing chunk that holds byte off < nc_chunks_bytes. */
uint64_t nc_chunks_at(const struct nc_chunks *c, uint64_t off);

/* ---- btree_nodes.c: version 1 B-trees of chunks. Spec: HDF5 File Format 3.0, III.A.1 ---- */

#define NC_BTREE_K 32  /* half of a node's children, as in the superblock */

/* nc_index - one variable's tree, computed from its chunks. */
struct nc_index {
	const struct nc_chunks *chunks; /* borrowed */
	const struct nc_var *var;       /* borrowed */
	const struct ds_array *a;       /* borrowed */
	uint32_t mask;                  /* of every chunk: skips the checksum, which no chunk
					 * has */
	uint64_t at;                    /* file address of its first node */
	uint64_t data;                  /* file address of its first chunk */
	uint32_t node_bytes;
	uint32_t levels;
	uint64_t first[16];             /* node number of each level's first node */
	uint64_t n_nodes;
};

/* nc_index_init - compute sizes only; the caller sets at and data. -ERANGE. */
int nc_index_init(struct nc_index *x, const struct nc_chunks *c, const struct nc_var *v,
		  const struct ds_array *a, uint32_t n_filters, struct err *e) NZ_MUST_USE;
/* nc_index_root - the file address of the root node. */
uint64_t nc_index_root(const struct nc_index *x);
/* nc_index_node - write the bytes of one node to out, which has room for node_bytes. */
void nc_index_node(const struct nc_index *x, uint64_t node, uint8_t *out);

/* ---- patch.c ---- */

/* nc_patch_address - write a data address into the layout message of the object header at
 * `header`, and update the header's checksum if it has one. left: bytes of headers that may still
 * be read, initially NC_PATCH_READS times len: headers of a file's datasets do not overlap.
 * Returns 0; -EBADMSG there is no such message, or no valid header. */
#define NC_PATCH_READS 2 /* the beginning of a header is read twice */
int nc_patch_address(uint8_t *image, size_t len, size_t *left, uint64_t header, uint64_t addr,
		     struct err *e) NZ_MUST_USE;
/* nc_patch_eof - write the end of the file into the superblock. */
int nc_patch_eof(uint8_t *image, size_t len, uint64_t eof, struct err *e) NZ_MUST_USE;

#endif
