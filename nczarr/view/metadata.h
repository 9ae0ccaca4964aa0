/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata.h - the metadata documents of a Zarr v2 or v3 store, made from the dataset model.
 *
 * Spec: Zarr v2, "Metadata"; for _ARRAY_DIMENSIONS xarray's encoding; for the NCZarr keys the
 * layout that netCDF-C 4.9.2 and later read. Zarr v3 core, "Metadata documents"; for consolidated
 * metadata the format of zarr-python 3. */
#ifndef NCZARR_VIEW_METADATA_H
#define NCZARR_VIEW_METADATA_H

#include "nczarr/view/inode.h"
#include "nczarr/nczarr.h"

/* zr_metadata - input of the documents; all borrowed. */
struct zr_metadata {
	const struct dataset *ds;
	const struct plan *plans;  /* one for each array; PLAN_FIXED with its size known */
	const bool *hidden_groups; /* hidden, with their members */
	const bool *hidden_arrays;
	const struct zr_grid *grids; /* one for each array */
	const struct zr_format *format;
	enum zarr_mode mode;
	bool strict_json;
};

/* zr_metadata_doc - append one document to out, with a newline at its end. ord: ordinal of its
 * group or array. Documents are ASCII, because zarr-python 2 reads only that; but in NCZarr mode
 * all except .zmetadata are UTF-8, because netCDF-C does not support \uXXXX in names. Returns 0;
 * -ERANGE if the limit of the buffer was reached, or memory is short. */
int zr_metadata_doc(const struct zr_metadata *em, enum zr_doc doc, uint32_t ord,
		    struct buf *out, struct err *e) NZ_MUST_USE;

/* zr_fill_stated - whether the array's document has the fill value, so that chunks that were never
 * written may be absent. */
bool zr_fill_stated(const struct zr_format *f, const struct ds_array *a, bool nczarr);
/* zr_name_reserved - whether a name is that of a metadata file. */
bool zr_name_reserved(const struct zr_format *f, const char *name);

/* zr_chunk_rows - the presented length of chunks along the first dimension (rank >= 1). netCDF-C
 * before 4.9.3 rejects a dataset with a chunk longer than its array, which is how netCDF stores a
 * short record variable. In NCZarr mode such a chunk is truncated to its first rows, if it is not
 * compressed. */
uint64_t zr_chunk_rows(enum zarr_mode mode, const struct ds_array *a);

/* zr_type3 - presentation of an array's elements in Zarr v3. Types that readers do not agree on
 * are presented as bytes, with one more dimension, and an attribute with the type.
 * docs/dev/reading/zarr-view.md lists the readers. */
struct zr_type3 {
	const char *name;  /* data_type */
	struct dtype type; /* of data_type; the type of the fill value */
	uint32_t bytes;    /* length of the additional last dimension; 0: none */
	bool says;         /* numpy_dtype has the type of the elements */
};

/* zr_type3_of - the presentation of a type. Returns 0; -EOPNOTSUPP none. */
int zr_type3_of(const struct dtype *t, struct zr_type3 *ret) NZ_MUST_USE;

/* zr_type3_fill - whether the document can express the fill value exactly. Otherwise absent chunks
 * must be presented. */
bool zr_type3_fill(const struct ds_array *a);

/* zr_netcdf_name - whether netCDF-C accepts a name; one invalid name makes its open fail. */
bool zr_netcdf_name(const char *name);

/* zr_nczarr_lacks - the reason why netCDF-C's Zarr cannot express a type, or NULL. */
const char *zr_nczarr_lacks(const struct dtype *t);

#endif
