/* SPDX-License-Identifier: BSD-3-Clause */
/* classic.h - the format of classic netCDF files: the header as a structure, the sizes that follow
 * from it, and its bytes. The source (classic_int.h) reads files in it, the virtual classic file
 * (hdf5view/virtual_classic) is one.
 *
 * Spec: "The NetCDF Classic Format Specification" in netCDF-C's documentation (appendix "File
 * Format Specifications"): CDF-1, CDF-2 (64-bit offset) and CDF-5 (64-bit data). */
#ifndef HDF5VIEW_CLASSIC_CLASSIC_H
#define HDF5VIEW_CLASSIC_CLASSIC_H

#include "base/core/buf.h"
#include "translate/model/dataset.h"

#define CDF_STREAMING UINT64_MAX

enum cdf_type {
	CDF_BYTE = 1,
	CDF_CHAR,
	CDF_SHORT,
	CDF_INT,
	CDF_FLOAT,
	CDF_DOUBLE,
	CDF_UBYTE,
	CDF_USHORT,
	CDF_UINT,
	CDF_INT64,
	CDF_UINT64, /* CDF-5 */
};

/* cdf_tag - starts a list that is not empty. */
enum cdf_tag { CDF_TAG_DIM = 10, CDF_TAG_VAR = 11, CDF_TAG_ATTR = 12 };

struct cdf_dim {
	struct ds_text name; /* up to the first NUL, as in netCDF-C; NUL-terminated */
	uint64_t len;        /* 0: the record dimension */
};

struct cdf_attr {
	struct ds_text name;
	uint32_t type; /* enum cdf_type */
	uint64_t n;
	uint8_t *data; /* n values in the file's form */
};

struct cdf_var {
	struct ds_text name;
	uint32_t type;
	uint32_t rank;
	const uint32_t *dims; /* each < n_dims */
	uint32_t n_attrs;
	struct cdf_attr *attrs;
	uint64_t begin;
	uint64_t at; /* offset of its entry in the header, for messages */
};

/* cdf_header - all memory is in the arena it was read into. */
struct cdf_header {
	unsigned version; /* 1, 2, 5 */
	uint64_t numrecs; /* CDF_STREAMING: computed from the file's length */
	uint64_t end;     /* bytes of the header */
	uint32_t n_dims, n_attrs, n_vars;
	struct cdf_dim *dims;
	struct cdf_attr *attrs;
	struct cdf_var *vars;
};

/* cdf_format_name - a version for people: "netCDF classic (CDF-1)". */
static inline const char *cdf_format_name(unsigned version)
{
	return version == 1   ? "netCDF classic (CDF-1)"
	       : version == 2 ? "netCDF 64-bit offset (CDF-2)"
			      : "netCDF 64-bit data (CDF-5)";
}

/* cdf_type_bytes - the bytes of a value; 0: no such type. */
uint32_t cdf_type_bytes(uint32_t type);
/* cdf_default_fill - write netCDF's fill value of a type, big-endian, to out[8]. */
void cdf_default_fill(uint32_t type, uint8_t out[8]);

/* cdf_number_bytes, cdf_offset_bytes - the bytes of a count, and of the offset of a variable, in
 * the header of a version. */
static inline size_t cdf_number_bytes(unsigned version)
{
	return version == 5 ? 8 : 4;
}
static inline size_t cdf_offset_bytes(unsigned version)
{
	return version == 1 ? 4 : 8;
}

/* cdf_padding - the bytes after n bytes up to a multiple of four. */
static inline uint64_t cdf_padding(uint64_t n)
{
	return -n & 3;
}

static inline bool cdf_is_record(const struct cdf_header *h, const struct cdf_var *v)
{
	return v->rank > 0 && h->dims[v->dims[0]].len == 0;
}

/* cdf_slab_bytes - the bytes of one record of a variable, or of all its values if it has no
 * records, without padding. Returns false if they exceed what a file can hold. */
bool cdf_slab_bytes(const struct cdf_header *h, const struct cdf_var *v, uint64_t *ret);

/* cdf_header_write - append the bytes of a header, as netCDF-C writes them. The begin and the slab
 * of each variable fit its version. If out is full, it has failed (buf_ok). */
void cdf_header_write(const struct cdf_header *h, struct buf *out);

#endif
