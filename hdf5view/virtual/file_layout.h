/* SPDX-License-Identifier: BSD-3-Clause */
/* file_layout.h - the addresses in the virtual netCDF-4 file, and its bytes; private to hdf5view.
 * A layout is made once and then immutable: any thread reads it without a lock. */
#ifndef HDF5VIEW_VIRTUAL_FILE_LAYOUT_H
#define HDF5VIEW_VIRTUAL_FILE_LAYOUT_H

#include "hdf5view/virtual/virtual_int.h"

/* NC_SIZE_UNKNOWN - the index's size of a chunk that exists but whose size cannot be stated.
 * Reading such a chunk fails, unless that is its size. */
#define NC_SIZE_UNKNOWN 1

struct nc_layout;

/* nc_layout_new - query all chunks, assign an address to everything, and write the addresses into
 * the structure. s, plans (one for each array) and io are borrowed; image is taken on success and
 * is then empty. Returns 0 with *ret new; -ERANGE a limit of this program or of HDF5; an error of
 * querying the chunks. */
int nc_layout_new(struct source *s, const struct plan *plans, struct chunkio *io,
		  struct nc_image *image, uint64_t max_index_bytes, struct nc_layout **ret,
		  struct err *e) NZ_MUST_USE;
/* nc_layout_free - takes NULL. */
void nc_layout_free(struct nc_layout *l);

/* nc_layout_size - the length of the file, bytes. */
uint64_t nc_layout_size(const struct nc_layout *l);

/* nc_layout_read - read bytes [off, off + len), clipped at the file's end, never fewer. room: len
 * bytes, which may hold the result. ret: release it with span_done.
 * Returns 0; -ESTALE a chunk changed since the layout; an error of reading a chunk. */
int nc_layout_read(const struct nc_layout *l, uint64_t off, size_t len, uint8_t *room,
		   struct span *ret, struct err *e) NZ_MUST_USE;

/* nc_layout_structure - range i of the bytes that are not chunk data: the structure, then indexes.
 * Returns false if there are fewer ranges. */
bool nc_layout_structure(const struct nc_layout *l, size_t i, uint64_t *ret_off, uint64_t *ret_len);
/* nc_layout_chunk - the location of chunk `linear` of an array in the file. Returns false if it
 * has none. */
bool nc_layout_chunk(const struct nc_layout *l, uint32_t array, uint64_t linear, uint64_t *ret_off,
		     uint64_t *ret_len);

/* nc_view_layout - the layout of the file of a view by nc_view_open, made now if it does not exist
 * yet. Borrowed until the view is closed. Returns 0, or the error of making it. */
int nc_view_layout(struct view *v, const struct nc_layout **ret, struct err *e) NZ_MUST_USE;

#endif
