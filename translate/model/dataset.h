/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset.h - the dataset model: the contents of a source in the terms that all views share.
 *
 * A source builds it on one thread; then it is frozen: const, readable by any thread without a
 * lock, and free of pointers into libraries, so that a source can live in another process. All
 * memory is in the dataset's arena. Groups, dimensions and arrays are identified by ordinal; group
 * 0 is the root. Names are valid UTF-8, without '/', never empty, never "." or "..", at most
 * DS_NAME_MAX bytes, and unique among the groups and arrays of one group.
 *
 * Objects are in the order in which a reader of the file would see them (creation order when
 * tracked). */
#ifndef TRANSLATE_MODEL_DATASET_H
#define TRANSLATE_MODEL_DATASET_H

#include "base/core/arena.h"
#include "base/core/err.h"
#include "codecs/core/codec.h"
#include "translate/model/dtype.h"

#include <sys/stat.h>

#define DS_RANK_MAX 64    /* HDF5 allows 32, and an array type's dimensions are appended */
#define DS_NAME_MAX 255   /* bytes; what a directory entry can hold */
#define DS_NONE UINT32_MAX

/* ds_text - bytes with a length: a string, or the elements of a vlen value. */
struct ds_text {
	const char *s;   /* not NUL-terminated */
	size_t len;      /* bytes */
};

/* ds_attr - one attribute. Numbers are in host byte order whatever the file's order was. */
struct ds_attr {
	const char *name;
	struct dtype type;           /* big_endian is false where data is in host order */
	uint32_t rank;               /* 0: scalar dataspace */
	const uint64_t *dims;        /* rank entries */
	uint64_t n;                  /* elements; 0 for an empty attribute */
	const uint8_t *data;         /* n * type.size bytes; NULL for strings */
	const struct ds_text *strings; /* n entries for DT_STRING, DT_VSTRING (valid UTF-8,
	                              * trailing NULs cut off) and DT_VLEN (raw base elements) */
	bool of_type;                /* not stored: it has the names of an enumeration */
};

struct ds_dim {
	const char *name;
	uint64_t len;       /* the largest extent of any array that uses it */
	bool unlimited;
	bool phony;         /* invented for a file without dimension scales */
	uint32_t group;     /* where it is defined */
};

enum ds_layout { DS_CHUNKED, DS_CONTIGUOUS, DS_COMPACT, DS_VIRTUAL, DS_EXTERNAL };

/* ds_access - how presented bytes of a chunk come about. */
enum ds_access {
	DS_STORED,   /* undoing `chain` gives exactly the presented elements */
	DS_CONVERT,  /* only source_read_chunk gives them (types or chains that need a library) */
	DS_VARIABLE, /* dt_is_vlen: source_read_vlen */
};

struct ds_array {
	const char *name;
	uint32_t group;
	struct dtype type;
	uint32_t rank;              /* <= DS_RANK_MAX; 0 for a scalar */
	const uint64_t *shape;      /* rank entries: elements */
	const uint64_t *chunk;      /* rank entries: elements, each >= 1 */
	const uint64_t *grid;       /* rank entries: chunks, ceil(shape / chunk) */
	uint64_t n_chunks;          /* product of grid; 1 for a scalar, 0 when a length is 0 */
	uint64_t chunk_bytes;       /* presented bytes of one whole chunk; 0 when dt_is_vlen */
	const uint32_t *dims;       /* rank entries: dimension ordinals, never DS_NONE */
	uint32_t n_attrs;
	const struct ds_attr *attrs;

	bool fill_defined;          /* the file says so (as opposed to a library's implicit 0) */
	const uint8_t *fill;        /* type.size bytes in presented form, never NULL unless
	                             * dt_is_vlen, where fill_text is used */
	struct ds_text fill_text;   /* for DT_VSTRING: text of an absent element */

	enum ds_layout layout;      /* for messages and `info` */
	enum ds_access access;
	struct codec_chain chain;   /* as stored; empty when nothing is applied */
	bool checksum;              /* its writer requested fletcher32, which no stored chunk has: a
				     * format with filter masks can state both */
	const char *convert;        /* DS_CONVERT: why only the source can make the elements,
				     * human-readable; NULL: the view guesses */
	bool uniform;               /* every stored chunk has been through the whole chain: no
	                             * filter masks, no short chunks, so that none has to be
	                             * framed */
	const char *unreadable;     /* NULL, or why every chunk is an error (unknown filter ...) */
	uint64_t key;               /* the same for arrays that are one object (hard links) */
};

struct ds_group {
	const char *name;           /* "" for the root */
	uint32_t parent;            /* DS_NONE for the root */
	uint32_t n_attrs, n_groups, n_arrays, n_dims;
	const struct ds_attr *attrs;
	const uint32_t *groups;     /* children, n_groups ordinals */
	const uint32_t *arrays;     /* n_arrays ordinals */
	const uint32_t *dims;       /* defined here, n_dims ordinals */
};

/* ds_unreadable - a member of a group that is in the source and cannot be read. */
struct ds_unreadable {
	uint32_t group;
	const char *name;           /* NULL: the set of the group's members is not known */
};

struct dataset {
	struct arena arena;
	const char *format;         /* human-readable: "netCDF-4", "HDF5" */
	struct stat st;             /* of the source file or directory when it was opened */
	uint32_t n_groups, n_arrays, n_dims, n_notes;
	struct ds_group *groups;
	struct ds_array *arrays;
	struct ds_dim *dims;
	const char *const *notes;   /* one line each: parts that were left out or changed, and the
				     * reason */
	uint32_t notes_room;        /* length of the list that ds_note_append may write to; 0: the
				     * list is another dataset's, or complete */
	const struct ds_unreadable
		*lost; /* n_unreadable: members that are not in the model because they are
		        * damaged */
	uint32_t n_unreadable;
};

/* ds_attr_find - attribute by name; NULL = absent. Borrowed. */
const struct ds_attr *ds_attr_find(const struct ds_attr *attrs, uint32_t n, const char *name);

/* ds_absent - the error for a look-up of a member that a group of the model does not have; name:
 * len bytes. Returns -ENOENT; -EIO if the source has it, or may have it, and it cannot be read. */
int ds_absent(const struct dataset *ds, uint32_t group, const char *name, size_t len,
	      struct err *e);

/* ds_fill_declared - whether the array has a `_FillValue` attribute that is bit-equal (NaN
 * payloads aside) to what absent elements read as. Only then may a view declare the fill value:
 * xarray masks a declared one. */
bool ds_fill_declared(const struct ds_array *a);

/* ds_name_escape - a name as the name of a Zarr node: '/' is a separator, and so is '\\' for
 * zarr-python; names that are reserved for directories or Zarr lose their first '.'. Returns the
 * name itself if it needs no change, else a string of the arena, up to three times as long; NULL if
 * memory is short. */
const char *ds_name_escape(struct arena *a, const char *name);

/* ds_path - append "/g1/g2/name" of an array (or "/" for the root group) to b. */
void ds_array_path(const struct dataset *ds, uint32_t array, struct buf *b);
/* ds_array_path_text - an array's path with its NUL, in b, which is cleared first; NULL: b is full,
 * or memory is short. */
const char *ds_array_path_text(const struct dataset *ds, uint32_t array, struct buf *b);
void ds_group_path(const struct dataset *ds, uint32_t group, struct buf *b);

/* ds_group_members - set the members of all groups, ascending, in ds->arena. The tables of ds and
 * the groups of their entries (DS_NONE: none) are set. Returns 0; -ERANGE; -ENOMEM. */
int ds_group_members(struct dataset *ds, struct err *e) NZ_MUST_USE;

/* ds_array_finish - compute grid, n_chunks and chunk_bytes from shape, chunk and type, with
 * every product checked. Returns 0, or -ERANGE when a product overflows 2^62 or a whole chunk
 * is larger than max_chunk_bytes. */
int ds_array_finish(struct dataset *ds, struct ds_array *a, uint64_t max_chunk_bytes,
		    struct err *e) NZ_MUST_USE;

/* ds_chunk_coords - linear chunk index (C order) to rank coordinates, in chunks. */
void ds_chunk_coords(const struct ds_array *a, uint64_t linear, uint64_t *ret_coords);
/* ds_chunk_linear - the reverse; coordinates must be inside the grid. */
uint64_t ds_chunk_linear(const struct ds_array *a, const uint64_t *coords);
/* ds_chunk_in - the chunk of b with the coordinates that chunk `linear` of a has; UINT64_MAX: b has
 * no such chunk, or another rank. */
uint64_t ds_chunk_in(const struct ds_array *a, uint64_t linear, const struct ds_array *b);

/* ds_group_order - the groups, parents before children. New; NULL if memory is short. */
uint32_t *ds_group_order(const struct dataset *ds, uint32_t *ret_n);
/* ds_match - for each group, array and dimension of `from`, the ordinal of the one in `to` with the
 * same path, or DS_NONE. Each list has as many entries as `from`, or is NULL. Returns 0 or -ENOMEM.
 */
int ds_match(const struct dataset *from, const struct dataset *to, uint32_t *groups,
	     uint32_t *arrays, uint32_t *dims, struct err *e) NZ_MUST_USE;

#endif
