/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata.h - the metadata documents of a Zarr v2 or v3 tree, made from the dataset model.
 *
 * Spec: Zarr v2, "Metadata"; for _ARRAY_DIMENSIONS xarray's encoding; for the NCZarr keys the
 * layout that netCDF-C 4.9.2 and all later versions read. Zarr v3 core, "Metadata documents"; for
 * consolidated metadata what zarr-python 3 writes. */
#ifndef NCZARR_VIEW_METADATA_H
#define NCZARR_VIEW_METADATA_H

#include "nczarr/view/inode.h"
#include "nczarr/nczarr.h"

/* zr_metadata - what documents are made from; all borrowed. */
struct zr_metadata {
	const struct dataset *ds;
	const struct plan *plans;  /* one for each array; PLAN_FIXED with its size known */
	const bool *hidden_groups; /* not shown, and nothing in them */
	const bool *hidden_arrays;
	const struct zr_grid *grids; /* one for each array */
	const struct zr_format *format;
	enum zarr_mode mode;
	bool strict_json;
};

/* zr_metadata_doc - append one document to out, ending in a newline.
 * ord  group or array ordinal, as the kind of document says
 * Documents are ASCII, because zarr-python 2 reads nothing else; but in NCZarr mode all but
 * .zmetadata are UTF-8, because netCDF-C does not know \uXXXX and would miss names.
 * Returns 0; -ERANGE when the buffer's ceiling was hit, or memory is short. */
int zr_metadata_doc(const struct zr_metadata *em, enum zr_doc doc, uint32_t ord,
		    struct buf *out, struct err *e) NZ_MUST_USE;

/* zr_fill_stated - whether the array's document states the fill value, so that chunks that were
 * never written need not be there. */
bool zr_fill_stated(const struct zr_format *f, const struct ds_array *a, bool nczarr);
/* zr_name_reserved - a name of the tree's own files. */
bool zr_name_reserved(const struct zr_format *f, const char *name);

/* zr_chunk_rows - the length of chunks along the first dimension, as presented (rank >= 1).
 * netCDF-C before 4.9.3 refuses a dataset when a chunk is longer than the array, which is how
 * netCDF stores a short record variable. In NCZarr mode such a chunk is cut: its first rows are
 * its first bytes, as long as it is not compressed. */
uint64_t zr_chunk_rows(enum zarr_mode mode, const struct ds_array *a);

/* zr_type3 - how Zarr v3's readers see an array's elements. Types that they do not agree on are
 * shown as the bytes that they are, with one more dimension, and an attribute that says what they
 * mean. docs/dev/reading/zarr-view.md says who reads what. */
struct zr_type3 {
	const char *name;  /* data_type */
	struct dtype type; /* of it; what the fill value is written as */
	uint32_t bytes;    /* length of the dimension that is added at the end; 0: none is */
	bool says;         /* numpy_dtype says what the elements are */
};

/* zr_type3_of - returns 0; -EOPNOTSUPP there is none. */
int zr_type3_of(const struct dtype *t, struct zr_type3 *ret) NZ_MUST_USE;

/* zr_type3_fill - whether the document can say what absent elements of an array are, exactly. Else
 * absent chunks have to be shown. */
bool zr_type3_fill(const struct ds_array *a);

/* zr_netcdf_name - whether netCDF-C accepts a name; one bad name fails its whole open. */
bool zr_netcdf_name(const char *name);

/* zr_nczarr_lacks - why netCDF-C's Zarr cannot express a type, or NULL when it can. */
const char *zr_nczarr_lacks(const struct dtype *t);

#endif
