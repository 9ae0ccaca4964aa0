/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_names.h - what the counterpart of a dataset is called.
 *
 * In a directory of datasets a name says what may lie behind it; what does lie there is for the
 * formats to say. */
#ifndef FUSEFS_APP_DATASET_NAMES_H
#define FUSEFS_APP_DATASET_NAMES_H

#include "base/core/util.h"

#define NAME_BYTES 256 /* what a directory entry can hold, and its NUL */
#define NAME_RANKS 20  /* so many entries may have the same counterpart */

/* name_kind - what a counterpart is. */
enum name_kind {
	NAME_PLAIN, /* none */
	NAME_TREE,  /* of a netCDF, HDF5 or HDF4 file: a directory "a.zarr" */
	NAME_FILE,  /* of a Zarr tree: a file "a.nc" */
	NAME_NC4,   /* of a classic netCDF or HDF4 file, besides: a netCDF-4 file "a.nc4" */
};

/* name_of_file - name of the virtual netCDF-4 file that shows the source at path, into out.
 * store.zarr, store.zarr.zip, store.zip, store.zr3, store.zr2, store: store.nc. Of a source that
 * is a file (a.nc, a.nc4, a.h5, a.hdf, ...): a.nc. Too long a name is cut. */
void name_of_file(const char *path, char out[NAME_BYTES]);

/* name_counterpart - whether an entry of a directory may, by its name alone, have a counterpart of
 * this kind, and what that is called. *ret_rank: below NAME_RANKS; of the entries with the same
 * counterpart the lowest has it. A directory may be a Zarr tree whatever it is called. */
bool name_counterpart(const char *name, bool is_dir, enum name_kind kind, char out[NAME_BYTES],
		      unsigned *ret_rank);

/* name_source - the reverse: the entry of this rank whose counterpart is called `name`, into out.
 * *ret_dir_only: only a directory has it; else a file has, and a directory if it is a NAME_FILE.
 * Returns the counterpart's kind; NAME_PLAIN: no entry of this rank has it. */
enum name_kind name_source(const char *name, unsigned rank, char out[NAME_BYTES],
			   bool *ret_dir_only);

/* name_of_new - what a new file (or directory) of this name becomes as a dataset of the other
 * family: "a.nc" is "a.zarr" then, and the other way round. false: it becomes none. */
bool name_of_new(const char *name, bool is_dir, char out[NAME_BYTES]);

/* name_says_dataset - whether an entry of a directory is a dataset as far as its name says: what
 * could not be looked at, or is none, is worth a word then. Plain ".zip" says nothing. is_dir: it
 * is a directory, of which only Zarr trees have names. */
bool name_says_dataset(const char *name, bool is_dir);

#endif
