/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_classic_int.h - declarations shared by the files of the virtual classic file.
 *
 * Life of a file: contents.c decides which dimensions and variables it has, attributes.c which
 * attributes, both from the model of a netCDF-4 file (hdf5view/netcdf4), whose names and forms of
 * attributes are netCDF's. layout.c gives each variable its offset. After that nothing is written
 * any more, so that read.c takes no lock.
 *
 * Layout: the header, the variables without records, then the records, each with one slab of every
 * record variable. A slab is padded to four bytes, unless there is only one record variable. */
#ifndef HDF5VIEW_VIRTUAL_CLASSIC_VIRTUAL_CLASSIC_INT_H
#define HDF5VIEW_VIRTUAL_CLASSIC_VIRTUAL_CLASSIC_INT_H

#include "hdf5view/classic/classic.h"
#include "hdf5view/netcdf4/schema.h"
#include "hdf5view/virtual_classic/virtual_classic.h"

/* ---- layout.c: offsets ---- */

/* cdf_layout - where the parts of a file are. */
struct cdf_layout {
	uint64_t header;  /* bytes of the header */
	uint64_t records; /* offset of the first record: the end of what has no records */
	uint64_t recsize; /* bytes of a record; 0: there are no record variables */
	uint64_t size;    /* bytes of the file */
};

/* cdf_layout_make - lay out a file in one version: sets h->version, h->end and the begin of each
 * variable. The limits are netCDF-C's (nc_enddef). text: room for the header, which is written
 * into it.
 * Returns 0; -ERANGE this version cannot hold the data, or text is full: e says what does not fit;
 * -ENOMEM. */
int cdf_layout_make(struct cdf_header *h, unsigned version, struct cdf_layout *ret,
		    struct buf *text, struct err *e) NZ_MUST_USE;

/* ---- contents.c, attributes.c ---- */

/* cdf_place - a variable's place in the file, and in the dataset. Strings of more than one byte are
 * characters here, with one more dimension. */
struct cdf_place {
	uint32_t array; /* ordinal in the dataset */
	uint32_t rank;
	const uint64_t *shape; /* rank lengths, of the variable's dimensions */
	const uint64_t *have;  /* rank lengths, of the array; values beyond are fill values */
	const uint64_t *chunk; /* rank lengths */
	uint32_t elem;         /* bytes of an element as chunkio gives it */
	uint32_t size;         /* bytes of a value in the file */
	bool half;             /* elements are half floats, values floats */
	bool swap;             /* elements are not in the file's byte order */
	bool grown;            /* have differs from shape */
	const uint8_t *fill;   /* fill_size bytes, as the array has them */
	uint32_t fill_size;
	uint64_t values; /* of a slab, which is a record, or all if there are none */
	uint64_t bytes;  /* of a slab, without padding */
	uint64_t begin;  /* offset of the first slab */
	uint8_t pad[8];  /* a fill value in the file's form: padding consists of them */
};

/* cdf_file - the finished file. Immutable. */
struct cdf_file {
	struct source *source;  /* borrowed */
	struct nc_model *model; /* owned; all memory below is in its arena, unless noted */
	struct chunkio *io;     /* borrowed */
	struct cdf_header h;
	struct cdf_layout at;
	struct buf header;         /* owned */
	struct cdf_place *fixed;   /* without records, ascending begins */
	struct cdf_place *records; /* with records, ascending begins */
	uint32_t n_fixed, n_records;
};

/* cdf_contents - decide everything about a file, and lay it out. f->model is set. plans: those of
 * the model; arrays that are not in the file get PLAN_HIDE with the reason, and a note.
 * Returns 0; -EOPNOTSUPP, -ERANGE, -ENOMEM as cdf_view_open. */
int cdf_contents(struct cdf_file *f, struct plan *plans, const struct cdf_view_options *opts,
		 struct err *e) NZ_MUST_USE;

/* cdf_type_of - the type of values of a type of the model; 0: classic netCDF has none. Half floats
 * are CDF_FLOAT, booleans CDF_BYTE, strings CDF_CHAR. */
uint32_t cdf_type_of(const struct dtype *t);

/* cdf_attrs_fit - whether all numbers of attributes have a form in CDF-1: a type of it, or, for
 * other integers, values that fit an int. */
bool cdf_attrs_fit(const struct nc_attrs *attrs);

struct cdf_attrs_how {
	unsigned version;
	bool noted;    /* the notes have been added before */
	uint64_t made; /* number of attributes that became int so far */
};

/* cdf_attrs_make - the attributes of an array in the file, or global ones if array is DS_NONE.
 * Integers that the version has no type for become int. Others that have no form are left out, with
 * a note. Returns 0; -ERANGE; -ENOMEM. */
int cdf_attrs_make(struct nc_model *m, uint32_t array, const struct nc_attrs *attrs,
		   struct cdf_attrs_how *how, struct cdf_attr **ret, uint32_t *ret_n,
		   struct err *e) NZ_MUST_USE;

/* ---- read.c ---- */

/* cdf_file_read - bytes [off, off + len) of a file into out; the range is inside the file.
 * Returns 0; the error of the first chunk that could not be read. Threads: any. */
int cdf_file_read(const struct cdf_file *f, uint64_t off, size_t len, uint8_t *out,
		  struct err *e) NZ_MUST_USE;

#endif
