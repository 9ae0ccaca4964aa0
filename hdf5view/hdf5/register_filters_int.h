/* SPDX-License-Identifier: BSD-3-Clause */
/* register_filters_int.h - our own codecs as filters of libhdf5, in the children in which it reads;
 * private to hdf5view.
 *
 * The server never registers any: there netcdf4/schema_filters.c puts empty classes in the place of
 * filters while it writes a structure, and nothing reads. */
#ifndef HDF5VIEW_HDF5_REGISTER_FILTERS_INT_H
#define HDF5VIEW_HDF5_REGISTER_FILTERS_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* h5_codec_ready - let libhdf5 in this process decode a filter with its built-in codec. Returns
 * whether it now can; false for libhdf5's own filters, and for filters without a built-in codec.
 * h5_lock is held. */
bool h5_codec_ready(uint32_t h5_id);

/* h5_codecs_ready - the same for all built-in codecs: the filters of a virtual dataset's sources
 * are not known before they are read. */
void h5_codecs_ready(void);

/* h5_codecs_max - limit the output of these filters from now on; 0: the largest size of a chunk.
 * h5_lock is held. */
void h5_codecs_max(size_t bytes);

#endif
