/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - declarations shared by the files of the HDF5 source; private to hdf5view.
 *
 * Life of a source: in a child, h5_walk gathers the model with libhdf5 on one thread
 * (model_groups.c and the files it calls), h5_freeze turns it into a dataset, and libhdf5's file
 * is closed. From then on locate.c finds chunks with format/hdf5_format.h. Only for elements that
 * this program cannot decode itself, isolate/read_worker.c starts a process in which
 * library_read.c opens libhdf5's file again. */
#ifndef HDF5VIEW_HDF5_LIBRARY_H
#define HDF5VIEW_HDF5_LIBRARY_H

#include "base/core/buf.h"
#include "hdf5view/isolate/isolated_source.h"
#include "hdf5view/format/hdf5_format.h"
#include "translate/model/builder.h"

#include <errno.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>

#define HDF5_DEPTH_MAX 64      /* groups within groups */
#define HDF5_NODES_MAX 1000000 /* groups and arrays */
/* Limit of files reached by external links: fewer than the 256 descriptors of a library process
 * (base/process/sandbox.c), some of which it needs for sources of virtual datasets. */
#define HDF5_FILES_MAX 192

/* netCDF's words in HDF5 files: the prefix of the dataset of a variable that has the name of a
 * dimension without being its coordinate variable; the beginning of the attribute NAME of the
 * dataset of a dimension without a variable. */
#define NETCDF_NON_COORD "_nc4_non_coord_"
#define NETCDF_DIM_ONLY "This is a netCDF dimension but not a netCDF variable"

/* ---- library.c: one thread at a time in libhdf5 ---- */

/* h5_enter, h5_leave - surround every use of libhdf5. Not recursive. While it is held, no other
 * lock is taken but a source's own. In between the library prints no errors. */
void h5_enter(void);
void h5_leave(void);
/* h5_gate_close, h5_gate_open - surround a fork, so that no other thread is inside libhdf5. They
 * do not call libhdf5: a server without its forker forks, too. */
void h5_gate_close(void);
void h5_gate_open(void);
/* h5_has_files - whether the library has files open in this process: a test, or another program
 * with one thread, may have forked it in that state. */
bool h5_has_files(void);
/* h5_reason - write the innermost message of the library's last failure to text; "" if it has
 * none. */
void h5_reason(char *text, size_t cap);
/* h5_transient_error - find out whether, since h5_enter, a call in the library failed for a reason
 * outside the file: a read failed, memory or descriptors ran out. Then the library's results are
 * not valid. Returns 0, or -errno with a message. h5_lock is held. */
int h5_transient_error(struct err *e);
/* h5_error - record `code` and the message "<what>: <the library's reason>". Returns code. */
int h5_error(struct err *e, int code, const char *what);

/* h5_id_close - release a library id of any kind; for the scope attribute. */
static inline void h5_id_close(const hid_t *id)
{
	if (*id > 0)
		(void)H5Idec_ref(*id);  /* an error cannot be handled at scope end */
}
#define auto_hid __attribute__((cleanup(h5_id_close)))

/* h5_id_unless - the id; if a step failed, release it and return -1. */
static inline hid_t h5_id_unless(bool failed, hid_t id)
{
	if (!failed)
		return id;
	h5_id_close(&id);
	return -1;
}

/* ---- datatypes.c ---- */

/* h5_type - an HDF5 type in the model's terms. */
struct h5_type {
	struct dtype type;
	bool stored;           /* the file's bytes can be presented unchanged */
	bool rounded;          /* the file's floats have more precision than is presented */
	uint32_t n_dims;       /* an array type's own dimensions, to be appended to the shape */
	uint64_t dims[DS_RANK_MAX];
};

/* h5_type_map - describe file type `t`. host: present numbers in host byte order (for attributes)
 * instead of the file's. Memory comes from the arena.
 * Returns 0; -EOPNOTSUPP with the reason for types that are left out; -ERANGE, -EIO. */
int h5_type_map(struct arena *a, hid_t t, bool host, struct h5_type *ret,
		struct err *e) NZ_MUST_USE;
/* h5_number - the library's type of a DT_INT, DT_UINT or DT_FLOAT of 1, 2, 4 or 8 bytes. bits: an
 * unsigned bit field instead. Returns a new id; -1: none. */
hid_t h5_number(enum dt_kind kind, uint32_t size, bool big, bool bits);
/* h5_type_mem - make the library's memory type for elements in presented form. Returns a new id;
 * -1 on failure. */
hid_t h5_type_mem(hid_t t, bool host);
/* h5_type_flags - the values and names of an enumeration that is presented as integers. *ret_n = 0
 * for other types. values: n elements of base's size in host byte order; names: separated by
 * blanks. Both in the arena.
 * Returns 0, -ERANGE, -EIO. */
int h5_type_flags(struct arena *a, hid_t t, const struct dtype *base, uint64_t *ret_n,
		  uint8_t **ret_values, struct ds_text *ret_names, struct err *e) NZ_MUST_USE;

/* ---- the model while it grows ---- */

/* netcdf_hints - bookkeeping attributes, which are hidden; arrays are in the arena. */
struct netcdf_hints {
	bool is_scale;            /* a dimension scale */
	bool dim_only;            /* a netCDF dimension without a variable */
	bool has_dimid;
	int64_t dimid;            /* _Netcdf4Dimid */
	uint32_t n_coords;        /* _Netcdf4Coordinates */
	const int32_t *coords;
	uint32_t n_refs;          /* DIMENSION_LIST: the last scale of each dimension */
	const uint64_t *refs;     /* header addresses as the library gives them */
};

struct h5_bgroup {
	struct ds_group g;
	uint32_t file;
	uint64_t addr;
	uint32_t first_group, first_array;  /* g.n_groups and g.n_arrays follow each other */
	bool dead;                          /* dropped: its name is in use */
};

struct h5_bdim {
	struct ds_dim d;
	uint32_t file;
	uint64_t addr;   /* of the scale; UINT64_MAX for a phony one */
	int64_t dimid;
	bool has_dimid;  /* the file says so */
	uint32_t next;   /* model_dims.c */
};

/* h5_array - the source's own data of an array. */
struct h5_array {
	uint64_t addr;            /* header address as the library counts (from the base) */
	uint32_t file;            /* 0: the source; n: files[n - 1] */
	uint32_t slot;            /* index into places; arrays that are one object share it */
	uint32_t rank;            /* of the dataspace; array types add to it */
	const uint64_t *extent;   /* rank entries: elements that the file stores */
	uint64_t elem_bytes;      /* of an element of the dataspace, in the file */
	const char *raw_path;     /* the library's path, if an address is not enough */
	bool pad_unknown;         /* stored bytes beyond the extent may be anything */
};

/* h5_node - the address of a group or of a dimension's scale, for the sink. */
struct h5_node {
	uint64_t addr;            /* as in h5_array; UINT64_MAX for a phony dimension */
	int64_t dimid;            /* netCDF's number of a dimension; -1: the file has none */
	uint32_t file;            /* as in h5_array */
};

struct h5_barray {
	struct ds_array a;
	struct h5_array x;
	struct netcdf_hints facts;
	const uint64_t *max;      /* x.rank entries */
	uint32_t own_dim;         /* the dimension that this scale is, or DS_NONE */
	bool dead;
};

/* h5_linked - a file that external links refer to. */
struct h5_linked {
	const char *path;         /* canonical */
	dev_t dev;
	ino_t ino;
	hid_t id;                 /* open while building, later in the worker; 0: closed */
};

struct h5_build {
	struct h5_source *src;
	struct arena *arena;      /* the dataset's */
	hid_t file;               /* the source itself */
	hid_t lapl;               /* rejects external links inside paths */
	struct h5_bgroup *groups;
	struct h5_barray *arrays;
	struct h5_bdim *dims;
	size_t n_groups, c_groups, n_arrays, c_arrays, n_dims, c_dims;
	struct ds_notes notes;
	struct unreadable lost; /* groups by their index in groups */
	int64_t next_dimid;
	bool netcdf;              /* written by netCDF */
	struct buf path;          /* the object being read, for notes */
	struct {
		uint32_t file;
		uint64_t addr;
	} up[HDF5_DEPTH_MAX];                                       /* the open ancestor groups */
	struct { uint32_t id; bool avail; } filters[16];            /* cached results */
	uint32_t n_filters;
};

/* h5_note - add a note for the user: "<path>: <text>". */
int h5_note(struct h5_build *b, struct err *e, const char *fmt, ...) NZ_PRINTF(3, 4);
/* h5_mark_unreadable - leave out a member of a group (its index in b->groups) and add a note with
 * the reason `why`. Unless the member was read and has no presentation (-EOPNOTSUPP), the view
 * will not report its name as absent. name: in the arena. Returns 0, or an error that ends the
 * opening. */
int h5_mark_unreadable(struct h5_build *b, uint32_t group, const char *name,
		       const struct err *why, struct err *e) NZ_MUST_USE;
/* h5_full - record -ERANGE if the model outgrew its limit, -ENOMEM if memory was short. Returns
 * it. */
int h5_full(const struct h5_build *b, struct err *e);
/* h5_name - convert a string of the file to UTF-8 in the arena; NULL when that is full. If the
 * result differs from the file's bytes, *ret_mapped is set, else untouched. */
const char *h5_name(struct h5_build *b, const char *raw, bool *ret_mapped);
/* h5_fatal - whether an error ends the opening instead of leaving out one object. */
static inline bool h5_fatal(int rc)
{
	return rc == -ENOMEM || rc == -ERANGE;
}
void h5_build_release(struct h5_build *b);

/* h5_walk - read everything below the root group. h5_lock is held. */
int h5_walk(struct h5_build *b, struct err *e) NZ_MUST_USE;
/* h5_freeze - move the gathered model into the dataset. */
int h5_freeze(struct h5_build *b, struct err *e) NZ_MUST_USE;

/* h5_attrs_read - read all attributes of an object. ordered: by creation, else by name. Also
 * stores the bookkeeping ones in facts (zeroed by the caller). */
int h5_attrs_read(struct h5_build *b, hid_t obj, bool ordered, uint32_t *ret_n,
		  const struct ds_attr **ret, struct netcdf_hints *facts,
		  struct err *e) NZ_MUST_USE;

/* h5_dataset_add - add a dataset of the group b->groups[group]. A dataset that cannot be shown
 * leaves a note and counts as success. name: as presented, in the arena. */
int h5_dataset_add(struct h5_build *b, hid_t id, uint32_t group, uint32_t file, uint64_t addr,
		   const char *name, struct err *e) NZ_MUST_USE;

/* h5_dim_add - add the dimension of a dimension scale to its group. */
int h5_dim_add(struct h5_build *b, uint32_t group, uint32_t file, uint64_t addr,
	       const char *name, uint64_t len, bool unlimited, const struct netcdf_hints *facts,
	       uint32_t *ret, struct err *e) NZ_MUST_USE;
/* h5_dims_resolve - assign dimensions and shapes to all arrays by netCDF's rules. */
int h5_dims_resolve(struct h5_build *b, struct err *e) NZ_MUST_USE;

/* h5_filters_read - convert creation properties to a chain; may set a->unreadable and
 * a->access. */
int h5_filters_read(struct h5_build *b, hid_t dcpl, struct ds_array *a,
		    struct err *e) NZ_MUST_USE;
/* h5_fill_read - read the fill value in presented form. */
int h5_fill_read(struct h5_build *b, hid_t dcpl, hid_t file_type, struct ds_array *a,
		 struct err *e) NZ_MUST_USE;

/* ---- register_filters.c: filters of libhdf5 in a child; h5_lock is held. The server registers
 * none: there netcdf4/schema_filters.c puts empty classes in the place of filters while it writes a
 * structure, and nothing reads. ---- */

/* h5_codecs_max - limit the output of built-in codecs from now on; 0: the largest size of a
 * chunk. */
void h5_codecs_max(size_t bytes);

/* h5_filter_ready - whether the library can decode a filter in this process: by itself, with a
 * built-in codec of this program, or with a plugin. */
bool h5_filter_ready(uint32_t h5_id);
/* h5_filters_ready - register all of them: the filters of a virtual dataset's sources are not
 * known before they are read. */
void h5_filters_ready(void);

/* ---- links.c: decides which other files may be opened ---- */

/* h5_link_file - open the file that an external link names. *ret: its ordinal as in h5_array.file.
 * Returns 0; -EACCES not allowed; -ENOENT; -ERANGE too many; -EBADMSG. */
int h5_link_file(struct h5_build *b, uint32_t from, const char *name, uint32_t *ret,
		 struct err *e) NZ_MUST_USE;
/* h5_file_id - the library's id of file `n` while building. Borrowed. */
hid_t h5_file_id(const struct h5_build *b, uint32_t n);
/* h5_storage_ok - check that reading a dataset with these creation properties opens allowed files
 * only. Returns 0; -EACCES with the reason. */
int h5_storage_ok(struct h5_build *b, uint32_t file, hid_t dcpl, struct err *e) NZ_MUST_USE;
/* h5_sources_ok - repeat that check before elements [start, start + count) of a virtual dataset
 * are read: the library presents a source that it cannot open as never written. h5_lock is
 * held. */
int h5_sources_ok(struct h5_source *s, uint32_t file, hid_t set, const hsize_t *start,
		  const hsize_t *count, struct err *e) NZ_MUST_USE;
/* h5_lapl - make link access properties that reject external links. Returns a new id; -1 on
 * failure. */
hid_t h5_lapl(void);
/* h5_file_dir - write the canonical directory of a file to out. Returns 0 or -ERANGE. */
int h5_file_dir(const struct h5_source *s, uint32_t file, char *out, size_t cap) NZ_MUST_USE;

/* ---- the finished source ---- */

/* h5_place - the chunk locations of an object; written once, then read without a lock. */
struct h5_place {
	int rc;                   /* the error of reading it, or 0 */
	char why[ERR_TEXT_MAX];
	bool library;             /* only the library can find its elements */
	struct h5_layout layout;
	struct h5_index *index;   /* CHUNKED */
};

/* index_prefetch - the sequence of arrays whose chunks are located: the last array, and the end of
 * the prefetched indexes. */
struct index_prefetch {
	uint32_t last, end, step;
};

struct h5_source {
	struct isolated g;
	struct h5_file raw;
	struct h5_array *arrays;  /* g.base.ds.n_arrays; in the dataset's arena */
	struct h5_node *groups;   /* g.base.ds.n_groups; also there */
	struct h5_node *dims;     /* g.base.ds.n_dims; also there */
	struct h5_linked *files;
	uint32_t n_files;
	size_t c_files;
	uint32_t n_places;
	_Atomic(struct h5_place *) *places;
	pthread_mutex_t load;     /* one thread loads an index at a time */
	struct index_prefetch scout; /* load */
	bool moved;               /* h5_lock: path now names another file */
	hid_t file;               /* open for reading elements, in the worker; 0: not yet */
};

static inline struct h5_source *h5_of_isolated(struct isolated *g)
{
	return CONTAINER_OF(g, struct h5_source, g);
}

static inline struct h5_source *h5_of(struct source *s)
{
	return h5_of_isolated(isolated_of(s));
}

/* ---- worker_ops.c ---- */

#define HDF5_WORKER_NAME "nczarrfs-hdf5" /* as ps and top show it; 15 bytes at most */

/* h5_own - the source's own data in the model's memory. */
struct h5_own {
	struct h5_array *arrays;
	struct h5_node *groups, *dims;
	const struct h5_linked *files;
	uint32_t n_files, n_places;
};

extern const struct isolated_kind h5_library_kind;

/* h5_fapl - the access properties of all files: the library requires equal ones for a file that it
 * opens twice. Returns a new id; -1 on failure. */
hid_t h5_fapl(bool lock);

/* ---- vfd.c: file drivers of libhdf5 ---- */

/* h5_vfd - a driver. read and write return 0 or a negative number. */
struct h5_vfd {
	const char *name;         /* static */
	int number;               /* HDF5 keeps those below H5_VFD_RESERVED, 256, for itself */
	void *arg;                /* of the callbacks; equal ones are the same file */
	int *fd;                  /* the file's descriptor; NULL: none */
	bool (*open)(void *arg);  /* false: it cannot be opened; NULL: always */
	void (*close)(void *arg); /* NULL: nothing to do */
	uint64_t (*size)(void *arg);
	int (*read)(void *arg, void *out, size_t n, uint64_t off);
	int (*write)(void *arg, const void *data, size_t n, uint64_t off); /* NULL: read only */
	void (*truncate)(void *arg, uint64_t size);  /* NULL: nothing to do */
};

/* h5_vfd_fapl - access properties for H5Fopen, whatever the name; files are never created. v is
 * copied; its arg outlives the list and the files. h5_lock is held. Returns a new id; -1 on
 * failure. */
hid_t h5_vfd_fapl(const struct h5_vfd *v);

/* h5_blob_fapl - access properties for H5Fopen that read from b, whatever the name. b outlives the
 * list and the files. h5_lock is held. Returns a new id; -1 on failure. */
hid_t h5_blob_fapl(struct blob *b);
/* h5_open_file - open the source (file 0) or a linked file with the library, read only. lock: hold
 * HDF5's shared lock while it is open. *ret is a new id. h5_lock is held. */
int h5_open_file(struct h5_source *s, uint32_t file, bool lock, hid_t *ret,
		 struct err *e) NZ_MUST_USE;

/* h5_library_chunk, h5_library_vlen - read elements through the library, for isolated_kind. Call
 * them only in the worker: the library may crash or never return. They take h5_lock. */
int h5_library_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out,
		     size_t len, struct err *e) NZ_MUST_USE;
int h5_library_vlen(struct isolated *g, uint32_t array, uint64_t linear, struct buf *out,
		    struct err *e) NZ_MUST_USE;

/* The source's operations; contracts in translate/contract/source.h. */
int h5_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
	      struct err *e);
int h5_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e);
void h5_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n);

#endif
