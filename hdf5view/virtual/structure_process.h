/* SPDX-License-Identifier: BSD-3-Clause */
/* structure_process.h - the processes in which libhdf5 makes the structure of a virtual netCDF-4
 * file; private to hdf5view.
 *
 * The library ends a process when memory is short, and crashes on some of the structures that it
 * writes. So the server (structure_process.c) packs the decisions of nc_model into one piece of
 * memory that it shares with a child (base/process/child.h, netcdf4/schema_pack.c). The child
 * (structure_child.c) makes the file and returns its bytes in the same memory. Neither opens any
 * file, and the child's sandbox allows computing only. The server copies the child's results once
 * and checks them: a hostile dataset may have made the library give the child to an attacker.
 *
 * Such a child also makes the bytes of a new, empty file on disk (hdf5_create).
 *
 * Each child builds one file, or answers the filter queries of one nc_model_new. */
#ifndef HDF5VIEW_VIRTUAL_STRUCTURE_PROCESS_H
#define HDF5VIEW_VIRTUAL_STRUCTURE_PROCESS_H

#include "base/process/worker.h"
#include "hdf5view/netcdf4/schema.h"

#define NC_PROCESS "nczarrfs-netcdf"

/* Its job is a struct sandbox_limits. */
extern const struct child_kind nc_apart_kind;

enum nc_op {
	NC_OP_MAKE,    /* a packed model: all but variable-length elements. Replies with the bytes
		        * of the file so far */
	NC_OP_STRINGS, /* pieces of `array`, nc_piece entries in a row. Replies as MAKE; -EBADMSG:
		        * a piece is damaged, those before it were written */
	NC_OP_FINISH,  /* replies with the bytes of the file */
	NC_OP_IMAGE, /* `len` bytes of it, then at nc_apart_headers the addresses of headers */
	NC_OP_AGREE, /* a packed nc_ask: replies with an nc_agreed */
};

/* nc_order - a request to a child, over its socket. The reply is a child_answer: a number in
 * `len`, or an error and the length of its message, which follows. */
struct nc_order {
	uint32_t op, array;
	uint64_t size;             /* of the region now */
	uint64_t len;              /* bytes of the request's data, at the region's start */
	uint64_t moves;            /* packed data: pointers in it */
	uint64_t max_bytes;        /* MAKE: limit of the file */
};

/* nc_piece - variable-length elements of one chunk. Its bytes follow, in the form of
 * source_read_vlen, then padding of at least one byte to a multiple of 8. */
struct nc_piece {
	uint64_t linear;
	uint64_t len;              /* NC_PIECE_ABSENT: no bytes; every element is the fill value */
};
#define NC_PIECE_ABSENT UINT64_MAX

/* nc_ask - the arguments of nc_filters_agree. */
struct nc_ask {
	struct ds_array a;         /* type and fill */
	struct codec_array as;
	struct codec_chain chain;
};

/* nc_apart_headers - the region's offset of the header addresses that follow `len` bytes of image:
 * one for each array of the dataset, little-endian. */
static inline uint64_t nc_apart_headers(uint64_t len)
{
	return (len + 7) / 8 * 8;
}

/* ---- netcdf4/schema_pack.c ---- */

/* nc_pack_model, nc_pack_ask - append the child's data to an empty buffer: the object, everything
 * that it refers to, and the positions of *ret_moves pointers, which are offsets in it. Arrays
 * that are not shown are left out. On failure out is not ok. */
void nc_pack_model(const struct nc_model *m, struct buf *out, uint64_t *ret_moves);
void nc_pack_ask(const struct nc_ask *q, struct buf *out, uint64_t *ret_moves);

/* nc_unpack - in the child: copy n packed bytes and relocate their pointers. Returns new memory
 * that starts with the packed object; NULL if memory is short or the bytes are not a packed
 * object. */
void *nc_unpack(const uint8_t *packed, size_t n, uint64_t moves);

/* ---- structure_process.c ---- */

/* structure_process - a child; zeroes: none. */
struct structure_process {
	struct worker w;
	uint64_t timeout_ms;       /* limit of a reply; 0: none */
};

/* nc_asker - the process that answers questions about libhdf5's filters, started at the first
 * question. Zeroes: not started. */
struct nc_asker {
	struct structure_process x;
	int rc;                    /* error of the first question that failed; no other is sent */
	struct err why;
};

/* nc_asker_agree - call nc_filters_agree in the child. Returns the reason for a disagreement, or
 * NULL. NULL also if the child failed: then k->rc is the error. */
const char *nc_asker_agree(struct nc_asker *k, const struct ds_array *a,
			   const struct codec_array *as, const struct codec_chain *chain);
void nc_asker_end(struct nc_asker *k);

/* nc_apart_fault - for tests, else NULL: called in a child before each request, which it may
 * answer itself. Set it before children start. Returns true if it answered. */
extern bool (*nc_apart_fault)(const struct nc_order *q, struct shm *r, int sock);

#endif
