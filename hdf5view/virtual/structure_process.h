/* SPDX-License-Identifier: BSD-3-Clause */
/* structure_process.h - the structure of a virtual netCDF-4 file is made by libhdf5 in a process of
 * its own; private to hdf5view.
 *
 * The library ends a process where memory is short, and crashes on some of what it is asked to
 * write. So the server (structure_process.c) puts what nc_model decided into memory that it shares
 * with a child (base/process/child.h), all in one piece (netcdf4/schema_pack.c); the child
 * (structure_child.c) makes the file and gives its bytes back the same way. Neither of them opens
 * anything, and the child may do nothing but compute. What it says is copied once and checked: it
 * may have been taken over by what a strange tree made the library write.
 *
 * The bytes of a new, empty file on disk (hdf5_create) come from such a child as well.
 *
 * One child is for one file, or for the questions of one nc_model_new. */
#ifndef HDF5VIEW_VIRTUAL_STRUCTURE_PROCESS_H
#define HDF5VIEW_VIRTUAL_STRUCTURE_PROCESS_H

#include "base/process/worker.h"
#include "hdf5view/netcdf4/schema.h"

#define NC_PROCESS "nczarrfs-netcdf"

/* Its job is a struct sandbox_limits. */
extern const struct child_kind nc_apart_kind;

enum nc_op {
	NC_OP_MAKE,    /* a packed model: all but texts. Answers the bytes of the file so far */
	NC_OP_STRINGS, /* pieces of `array`, one nc_piece behind the other. Answers as MAKE;
	               * -EBADMSG: one of them is damaged, and those before it were written */
	NC_OP_FINISH,  /* answers the bytes of the file */
	NC_OP_IMAGE, /* `len` bytes of it, then at nc_apart_headers the addresses of headers */
	NC_OP_AGREE, /* a packed nc_ask: answers an nc_agreed */
};

/* nc_order - what a child is asked, over its socket. It answers with a child_answer: a number in
 * `len`, or an error and the length of its text, which follows. */
struct nc_order {
	uint32_t op, array;
	uint64_t size;             /* of the region by now */
	uint64_t len;              /* bytes of it that the order is about, from its beginning on */
	uint64_t moves;            /* of a packed thing: pointers in it */
	uint64_t max_bytes;        /* MAKE: most of the file */
};

/* nc_piece - elements of one chunk of texts; its bytes follow, as source_read_vlen gives them, then
 * at least one more, to a multiple of 8. */
struct nc_piece {
	uint64_t linear;
	uint64_t len;              /* NC_PIECE_ABSENT: no bytes, all of them the fill value */
};
#define NC_PIECE_ABSENT UINT64_MAX

/* nc_ask - of nc_filters_agree. */
struct nc_ask {
	struct ds_array a;         /* type and fill */
	struct codec_array as;
	struct codec_chain chain;
};

/* nc_apart_headers - where in the region the addresses of `len` bytes of image are: one for each
 * array of the dataset, little-endian. */
static inline uint64_t nc_apart_headers(uint64_t len)
{
	return (len + 7) / 8 * 8;
}

/* ---- netcdf4/schema_pack.c ---- */

/* nc_pack_model, nc_pack_ask - what a child needs of it, appended to an empty buffer: the thing
 * itself, all that it leads to, and the places of *ret_moves pointers, which are offsets in it. Of
 * arrays that are not shown there is nothing. On failure out is not ok. */
void nc_pack_model(const struct nc_model *m, struct buf *out, uint64_t *ret_moves);
void nc_pack_ask(const struct nc_ask *q, struct buf *out, uint64_t *ret_moves);

/* nc_unpack - in the child: a copy of n packed bytes, whose pointers lead into it; new, and first
 * what was packed. NULL: memory is short, or it is not packed. */
void *nc_unpack(const uint8_t *packed, size_t n, uint64_t moves);

/* ---- structure_process.c ---- */

/* structure_process - zeroes: no process. */
struct structure_process {
	struct worker w;
	uint64_t timeout_ms;       /* for an answer; 0: no limit */
};

/* nc_asker - asks libhdf5 about its filters: a child when the first question comes, none before.
 * Zeroes: nobody was asked yet. */
struct nc_asker {
	struct structure_process x;
	int rc;                    /* of the first question that could not be put: the last one */
	struct err why;
};

/* nc_asker_agree - nc_filters_agree in the child; NULL as well when it cannot be asked: then k->rc
 * says why. */
const char *nc_asker_agree(struct nc_asker *k, const struct ds_array *a,
			   const struct codec_array *as, const struct codec_chain *chain);
void nc_asker_end(struct nc_asker *k);

/* nc_apart_fault - NULL but in tests: called in a child before it obeys an order, and may answer
 * it. Before children start. Returns true: it did. */
extern bool (*nc_apart_fault)(const struct nc_order *q, struct shm *r, int sock);

#endif
