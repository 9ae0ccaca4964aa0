/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_names.h - names of the converted views of datasets.
 *
 * In a directory of datasets, names say which datasets are possible; the formats decide what a file
 * or directory really contains. */
#ifndef FUSEFS_APP_DATASET_NAMES_H
#define FUSEFS_APP_DATASET_NAMES_H

#include "base/core/util.h"

#define NAME_BYTES 256 /* longest directory entry and its NUL */
#define NAME_CLASSIC "classic" /* the rule of name_shaped for classic netCDF */
#define NAME_RANKS 20  /* entries that may share one converted view */

/* name_kind - kind of a converted view. */
enum name_kind {
	NAME_PLAIN, /* none */
	NAME_TREE,  /* view of a netCDF, HDF5 or HDF4 file: a directory "a.zarr" */
	NAME_FILE,  /* view of a Zarr store: a file "a.nc" */
	NAME_NC4,   /* second view of a classic netCDF or HDF4 file: a netCDF-4 file "a.nc4" */
	/* "a@RULE.zarr", "a@RULE.nc": any dataset "a" as the rule says; only looked up */
	NAME_SHAPED_TREE,
	NAME_SHAPED_FILE,
};

/* name_is_shaped - true if the name has a rule. */
static inline bool name_is_shaped(enum name_kind kind)
{
	return kind >= NAME_SHAPED_TREE;
}

/* name_is_tree - true if the view is a directory. */
static inline bool name_is_tree(enum name_kind kind)
{
	return kind == NAME_TREE || kind == NAME_SHAPED_TREE;
}

/* name_of_file - write the name of the virtual netCDF-4 file for the source at path to out.
 * store.zarr, store.zarr.zip, store.zip, store.zr3, store.zr2, store: store.nc. A source that is a
 * file (a.nc, a.nc4, a.h5, a.hdf, ...): a.nc. A name that is too long is truncated. */
void name_of_file(const char *path, char out[NAME_BYTES]);

/* name_counterpart - true if an entry of a directory may, by its name alone, have a converted view
 * of this kind; out gets the view's name. *ret_rank is below NAME_RANKS; among entries with the
 * same view, the entry with the lowest rank has it. A directory of any name may be a Zarr store. */
bool name_counterpart(const char *name, bool is_dir, enum name_kind kind, char out[NAME_BYTES],
		      unsigned *ret_rank);

/* name_source - the reverse: write to out the entry of this rank whose converted view is `name`.
 * *ret_dir_only: only a directory can have it; otherwise a file, or a directory if the kind is
 * NAME_FILE. Returns the view's kind; NAME_PLAIN: no entry of this rank has it. */
enum name_kind name_source(const char *name, unsigned rank, char out[NAME_BYTES],
			   bool *ret_dir_only);

/* name_shaped - kind of view of a name with a rule: "a@time=all,lat=64.zarr" is dataset "a" in
 * these chunks (translate/model/chunk_rule.h), "a@classic.nc" a classic netCDF file of it.
 * NAME_PLAIN: it is no such name. out: the name without the rule, which is that of the dataset or
 * of its converted view; rule: the text of the rule. */
enum name_kind name_shaped(const char *name, char out[NAME_BYTES], char rule[NAME_BYTES]);

/* name_other - write to out the name of a view with the ending of the other format: "a.nc" for
 * "a.zarr", and the reverse. false: it has neither ending, or is too long. */
bool name_other(const char *name, char out[NAME_BYTES]);

/* name_of_new - write to out the name of the dataset of the other format that a new file or
 * directory becomes: "a.nc" becomes "a.zarr", and the reverse. false: it stays as it is. */
bool name_of_new(const char *name, bool is_dir, char out[NAME_BYTES]);

/* name_says_dataset - true if an entry of a directory is a dataset by its name, so that a failure
 * to read it is worth a log line. A plain ".zip" is not. is_dir: the entry is a directory, for
 * which only names of Zarr stores count. */
bool name_says_dataset(const char *name, bool is_dir);

#endif
