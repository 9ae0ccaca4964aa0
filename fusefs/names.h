/* names.h - what the counterpart of a dataset is called.
 *
 * In a directory of datasets a name says what may lie behind it; what does lie there is for the
 * formats to say. */
#ifndef FUSEFS_NAMES_H
#define FUSEFS_NAMES_H

#include "base/util.h"

#define NAME_BYTES 256 /* what a directory entry can hold, and its NUL */
#define NAME_RANKS 6   /* so many entries may have the same counterpart */

enum name_kind {
	NAME_PLAIN, /* nothing that has a counterpart */
	NAME_HDF5,  /* a file of the HDF5 family, whose counterpart is a directory "a.zarr" */
	NAME_ZARR,  /* a Zarr tree, whose counterpart is a file "a.nc" */
};

/* name_of_file - name of the virtual netCDF-4 file that shows the source at path, into out.
 * store.zarr, store.zarr.zip, store.zip, store.zr3, store.zr2, store: store.nc. Of a source that
 * is a file of the HDF5 family (a.nc, a.nc4, a.h5, a.hdf5, a.he5): a.nc. Too long a name is
 * cut. */
void name_of_file(const char *path, char out[NAME_BYTES]);

/* name_counterpart - what an entry of a directory may be, by its name alone, and what its
 * counterpart is called then. *ret_rank: below NAME_RANKS; of the entries with the same
 * counterpart the lowest has it. A directory may be a Zarr tree whatever it is called. */
enum name_kind name_counterpart(const char *name, bool is_dir, char out[NAME_BYTES],
				unsigned *ret_rank);

/* name_source - the reverse: the entry of this rank whose counterpart is called `name`, into out.
 * *ret_dir_only: only a directory has it; else a file has, and a directory if it is a NAME_ZARR.
 * NAME_PLAIN: no entry of this rank has. */
enum name_kind name_source(const char *name, unsigned rank, char out[NAME_BYTES],
			   bool *ret_dir_only);

#endif
