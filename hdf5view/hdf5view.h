/* hdf5view.h - everything of the netCDF/HDF5 family that the program wires together. */
#ifndef HDF5VIEW_HDF5VIEW_H
#define HDF5VIEW_HDF5VIEW_H

#include "translate/source.h"

/* hdf5_source_ops - netCDF-4 and plain HDF5 files as a source. libhdf5 reads names, types,
 * attributes and filters once, then its file is closed so that its lock does not block writers;
 * chunk indexes are read by h5_raw.h on first use. */
extern const struct source_ops hdf5_source_ops;

/* hdf5_version - version of the HDF5 library in use, into text. */
void hdf5_version(char *text, size_t cap);

#endif
