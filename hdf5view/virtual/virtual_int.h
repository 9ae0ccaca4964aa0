/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_int.h - what the files of the virtual netCDF-4 file share; private to hdf5view.
 *
 * Life of a virtual file: nc_model decides how each group, dimension, variable and attribute is
 * called and typed (netcdf4/schema.c, netcdf4/schema_names.c, netcdf4/schema_types.c,
 * netcdf4/schema_attrs.c, netcdf4/schema_dims.c, netcdf4/schema_filters.c). At the first look
 * nc_build has the structure made by libhdf5, in memory and in a process of its own: everything but
 * chunks and their indexes (structure_process*.c, netcdf4/schema_pack.c; in the process
 * netcdf4/writer.c, netcdf4/writer_vlen.c). Then nc_layout gives every chunk and every node of
 * every index an address behind it, and the object headers are patched to lead there
 * (file_layout.c, chunk_sizes.c, patch.c). A read is answered from the image, from nodes that are
 * computed (btree_nodes.c), and from chunks (view.c).
 *
 * Layout of the file, in this order:
 *   image     the structure, with texts of no fixed size
 *   indexes   for each chunked variable its B-tree nodes, leaves first, each level in order
 *   data      for each variable its chunks in C order, back to back. The data of the first one,
 *             of one with 64 KiB or more and of what follows that begin at a multiple of 4096,
 *             and in a file of up to 1000 variables those of all: the page cache keeps and loses
 *             whole pages, and a chunk that cannot be read takes only its neighbours with it
 *   broken    for each variable of texts that cannot be read a place of its own, which gives the
 *             error to who reads it, and to nobody else
 * All of it is a function of the dataset and of the sizes of its chunks. */
#ifndef HDF5VIEW_VIRTUAL_VIRTUAL_INT_H
#define HDF5VIEW_VIRTUAL_VIRTUAL_INT_H

#include "hdf5view/netcdf4/netcdf4.h"

/* ---- chunk_sizes.c: which chunks of a variable exist, and how long they are ---- */

/* nc_chunks - constant sizes cost nothing, others a few bytes a chunk. Immutable once made. */
struct nc_chunks;

/* nc_budget - of all arrays of a file. A pass takes time for each chunk, also where it needs no
 * memory, and a file of a few bytes may claim any number of them: as many are looked at as could
 * have their sizes kept. */
struct nc_budget {
	uint64_t max;      /* bytes */
	uint64_t used;     /* bytes */
	uint64_t looked;   /* chunks that were passed, by NC_LOOKED bytes each below max */
};
#define NC_LOOKED 4

/* nc_chunks_make - look at every chunk of an array once.
 * Returns 0 with *ret new; -ERANGE too large; what chunkio_stat says. */
int nc_chunks_make(struct chunkio *io, const struct ds_array *a, uint32_t array,
		   const struct plan *p, struct nc_budget *budget, struct nc_chunks **ret,
		   struct err *e) NZ_MUST_USE;
void nc_chunks_free(struct nc_chunks *c);
/* nc_chunks_n - chunks that exist. nc_chunks_bytes - of all of them together. */
uint64_t nc_chunks_n(const struct nc_chunks *c);
uint64_t nc_chunks_bytes(const struct nc_chunks *c);
/* nc_chunks_nth - existing chunk i < n in C order: its linear index, its offset from the
 * variable's first byte, its size. */
void nc_chunks_nth(const struct nc_chunks *c, uint64_t i, uint64_t *ret_linear, uint64_t *ret_off,
		   uint64_t *ret_size);
/* nc_chunks_at - the existing chunk that holds byte off < nc_chunks_bytes; its i. */
uint64_t nc_chunks_at(const struct nc_chunks *c, uint64_t off);

/* ---- btree_nodes.c: version 1 B-trees of chunks. Spec: HDF5 File Format 3.0, III.A.1 ---- */

#define NC_BTREE_K 32  /* half of a node's children; the superblock says nothing else */

/* nc_index - one variable's tree; a pure function of its chunks. */
struct nc_index {
	const struct nc_chunks *chunks; /* borrowed */
	const struct nc_var *var;       /* borrowed */
	const struct ds_array *a;       /* borrowed */
	uint32_t mask;                  /* of every chunk: the checksum that none has */
	uint64_t at;                    /* file address of its first node */
	uint64_t data;                  /* file address of its first chunk */
	uint32_t node_bytes;
	uint32_t levels;
	uint64_t first[16];             /* node number of each level's first node */
	uint64_t n_nodes;
};

/* nc_index_init - sizes only; at and data are the caller's to set. -ERANGE. */
int nc_index_init(struct nc_index *x, const struct nc_chunks *c, const struct nc_var *v,
		  const struct ds_array *a, uint32_t n_filters, struct err *e) NZ_MUST_USE;
/* nc_index_root - file address of the root node. */
uint64_t nc_index_root(const struct nc_index *x);
/* nc_index_node - the bytes of one node; out has room for node_bytes. */
void nc_index_node(const struct nc_index *x, uint64_t node, uint8_t *out);

/* ---- patch.c ---- */

/* nc_patch_address - write a data address into the layout message of the object header at
 * `header`, and its checksum where it has one. left: bytes of headers that may still be looked
 * through, at first len: those of all datasets of a file share none. Returns 0; -EBADMSG the header
 * has no such message, or is none. */
int nc_patch_address(uint8_t *image, size_t len, size_t *left, uint64_t header, uint64_t addr,
		     struct err *e) NZ_MUST_USE;
/* nc_patch_eof - write the end of the file into the superblock. */
int nc_patch_eof(uint8_t *image, size_t len, uint64_t eof, struct err *e) NZ_MUST_USE;

#endif
