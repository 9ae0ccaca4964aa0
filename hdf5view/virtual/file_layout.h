/* SPDX-License-Identifier: BSD-3-Clause */
/* file_layout.h - where everything is in the virtual netCDF-4 file, and its bytes; private to
 * hdf5view. Made once, then immutable: any thread reads it without a lock. */
#ifndef HDF5VIEW_VIRTUAL_FILE_LAYOUT_H
#define HDF5VIEW_VIRTUAL_FILE_LAYOUT_H

#include "hdf5view/virtual/virtual_int.h"

#include <endian.h>
#include <string.h>

/* NC_SIZE_UNKNOWN - size in an index of a chunk that exists and whose size cannot be stated.
 * Reading such a chunk fails, unless that is its size. */
#define NC_SIZE_UNKNOWN 1

struct nc_layout;

/* nc_layout_new - look at all chunks, give everything an address and write the addresses into
 * the structure. s, plans (one for each array) and io are borrowed; image is taken on success
 * and is then empty. Returns 0 with *ret new; -ERANGE a limit of ours or of HDF5; what looking at
 * chunks gave. */
int nc_layout_new(struct source *s, const struct plan *plans, struct chunkio *io,
		  struct nc_image *image, uint64_t max_index_bytes, struct nc_layout **ret,
		  struct err *e) NZ_MUST_USE;
/* nc_layout_free - takes NULL. */
void nc_layout_free(struct nc_layout *l);

/* nc_layout_size - bytes of the file. */
uint64_t nc_layout_size(const struct nc_layout *l);

/* nc_layout_read - bytes [off, off + len), cut at the file's end, never shorter than that. room:
 * len bytes, which the answer may be in. ret is finished with span_done.
 * Returns 0; -ESTALE a chunk is not the one that was laid out; what reading a chunk gave. */
int nc_layout_read(const struct nc_layout *l, uint64_t off, size_t len, uint8_t *room,
		   struct span *ret, struct err *e) NZ_MUST_USE;

/* nc_layout_structure - range i of what is not data of chunks: the structure, then indexes. Returns
 * false when there are not that many. */
bool nc_layout_structure(const struct nc_layout *l, size_t i, uint64_t *ret_off, uint64_t *ret_len);
/* nc_layout_chunk - where chunk `linear` of an array is in the file. Returns false: nowhere. */
bool nc_layout_chunk(const struct nc_layout *l, uint32_t array, uint64_t linear, uint64_t *ret_off,
		     uint64_t *ret_len);

/* nc_view_layout - of the file of a view by nc_view_open, which it is laid out for when nobody has
 * looked at it yet. Borrowed until the view is closed. Returns 0, or why it cannot be. */
int nc_view_layout(struct view *v, const struct nc_layout **ret, struct err *e) NZ_MUST_USE;

/* Little-endian numbers into bytes. */
static inline void nc_put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void nc_put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void nc_put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
