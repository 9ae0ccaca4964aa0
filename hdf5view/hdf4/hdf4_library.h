/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf4_library.h - libhdf4's header: distributions install it in hdf/ or in include/ itself. */
#ifndef HDF5VIEW_HDF4_HDF4_LIBRARY_H
#define HDF5VIEW_HDF4_HDF4_LIBRARY_H

#if __has_include(<hdf/mfhdf.h>)
#include <hdf/mfhdf.h>
#else
#include <mfhdf.h>
#endif

#endif
