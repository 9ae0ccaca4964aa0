/* SPDX-License-Identifier: BSD-3-Clause */
/* schema.h - the decisions about a virtual netCDF-4 file, and declarations shared by the code that
 * builds it.
 *
 * schema.c and its helpers fill an nc_model from the dataset alone: names, types, dimensions,
 * attributes, filters. writer.c and its helpers carry it out with libhdf5 and decide nothing, so
 * every object that cannot be shown is known before anything is built. */
#ifndef HDF5VIEW_NETCDF4_SCHEMA_H
#define HDF5VIEW_NETCDF4_SCHEMA_H

#include "base/core/map.h"
#include "hdf5view/netcdf4/netcdf4.h"

#define NC_NAME_LIMIT 256    /* bytes of a name: NC_MAX_NAME */
#define NC_RANK_LIMIT 32     /* H5S_MAX_RANK */
#define NC_MESSAGE_MAX 48000 /* bytes of one header message, less a margin for its surroundings */
#define NC_TEXT_ELEM 16      /* bytes of a string in a dataset: length, heap address, index */

/* ---- schema_names.c ---- */

/* nc_names - the names in use, by scope: a group's ordinal, or a special scope. */
struct nc_name {
	struct link link;
	uint32_t scope;
	uint32_t value;    /* the user's */
	uint32_t next;     /* next suffix to try for this name */
	const char *name;
};

struct nc_names {
	struct map map;
};

#define NC_SCOPE_DIMS 0x80000000 /* ORed to a group: names of its dimensions */
#define NC_SCOPE_STRINGS UINT32_MAX /* lengths of the last dimensions of strings */

void nc_names_release(struct nc_names *t);
/* nc_names_find - look up a name; NULL: none. Borrowed. */
struct nc_name *nc_names_find(const struct nc_names *t, uint32_t scope, const char *name);
/* nc_names_add - add a name, which is borrowed. Returns 0, -EEXIST (nothing changed), -ENOMEM. */
int nc_names_add(struct nc_names *t, uint32_t scope, const char *name, uint32_t value);
/* nc_names_claim - add `want`, or the first free one of "want_1", "want_2" ..., of at most `limit`
 * bytes. Returns the name, in the arena; NULL when memory is short. */
const char *nc_names_claim(struct nc_names *t, struct arena *a, uint32_t scope,
			   const char *want, uint32_t value, size_t limit);

/* nc_escape - make a name valid for netCDF, at most `limit` bytes: a valid name stays, else %XX
 * stands for each character that is not allowed. Different names stay different.
 * docs/dev/reading/virtual-file.md has the rule.
 * Returns a string in the arena, or `name` itself; NULL when memory is short. */
const char *nc_escape(struct arena *a, const char *name, size_t limit);

/* ---- the model ---- */

/* nc_type - a named datatype. In netCDF every compound, opaque and vlen type has a name. */
struct nc_type {
	uint32_t group;
	const char *name;
	const struct dtype *type;
	uint32_t n_fields;        /* type->n_fields */
	const uint32_t *fields;   /* DT_COMPOUND: a type ordinal for each field, or DS_NONE */
};

enum nc_attr_form {
	NC_ATTR_TEXT,    /* netCDF's char attribute: the one string of src, if any */
	NC_ATTR_STRINGS, /* netCDF's string attribute: src->n strings */
	NC_ATTR_VALUES,  /* src->n values of src->type, stored as `as` */
	NC_ATTR_LISTS,   /* src->n vlen values */
};

struct nc_attr {
	const char *name;
	const struct ds_attr *src;
	enum nc_attr_form form;
	struct dtype as;          /* type in the file; numbers are little-endian there */
	uint32_t type;            /* its nc_type, or DS_NONE */
};

struct nc_attrs {
	uint32_t n;
	const struct nc_attr *list;
};

struct nc_dim {
	const char *name;
	uint64_t len;
	uint32_t group;
	uint32_t scale;           /* its coordinate variable, or DS_NONE */
	uint32_t id;              /* netCDF's number: the order in which readers list dimensions */
	bool unlimited;
};

struct nc_array {
	const char *name;         /* name in netCDF; NULL: not shown */
	const char *link;         /* name of the dataset: the same, or with netCDF's prefix */
	uint32_t type;            /* its nc_type, or DS_NONE */
	uint32_t text_dim;        /* last dimension of strings of a fixed size > 1, or DS_NONE */
	uint32_t scale_of;        /* the dimension whose coordinate variable it is, or DS_NONE */
	enum nc_data data;
	bool chunked;             /* chunked storage, whatever `data` is */
	bool fill;                /* has an HDF5 fill value */
	struct nc_attrs attrs;
};

struct nc_group {
	const char *name;
	struct nc_attrs attrs;
};

struct nc_asker; /* virtual/structure_process.h */

struct nc_model {
	struct arena arena;
	const struct dataset *ds;  /* borrowed from the source */
	const struct plan *plans;  /* borrowed from the caller */
	bool unlisted;       /* the source cannot list chunks */
	bool keep_going;
	bool root_only;      /* notes are about the root group only */
	bool v18; /* the file uses formats of HDF5 1.8 or later */
	uint64_t max_bytes, build_ms;
	struct nc_asker *asker;    /* during nc_model_new */
	uint32_t *order;           /* ds->n_groups ordinals, parents first */
	struct nc_group *groups;   /* as ds->groups */
	struct nc_array *arrays;   /* as ds->arrays */
	struct nc_dim *dims;       /* ds->n_dims of the dataset, then those of strings */
	uint32_t n_dims;
	struct nc_type *types;     /* a type follows the types that it uses */
	uint32_t n_types;
	size_t c_dims, c_types;
	struct nc_names names;
	const char **notes;
	uint32_t n_notes;
	size_t c_notes;
	uint64_t notes_dropped;
	char more[64];       /* the note that counts them */
};

/* nc_note - add a note for the user: "<path of the object>: <text>". array, group: the object's
 * ordinal, or DS_NONE. Returns 0 or -ENOMEM. */
int nc_note(struct nc_model *m, uint32_t group, uint32_t array, const char *fmt, ...)
	NZ_PRINTF(4, 5);
/* nc_full - record that the model exceeds its limit. Returns -ERANGE. */
int nc_full(const struct nc_model *m, struct err *e);

/* nc_elem - bytes of an HDF5 element of an array: 1 for strings, else the model's size; the
 * library's descriptor of a variable-length element in memory does not count. nc_rank - the rank
 * of its HDF5 dataspace. */
uint32_t nc_elem(const struct ds_array *a);
uint32_t nc_rank(const struct ds_array *a);
/* nc_axis_dim - the dimension of an axis of an array's dataset, or DS_NONE. */
uint32_t nc_axis_dim(const struct nc_model *m, uint32_t array, uint32_t axis);
/* nc_fill - whether an array of fixed-size elements has an HDF5 fill value. */
bool nc_fill(const struct ds_array *a);

/* ---- schema_types.c: decisions about types ---- */

/* nc_type_check - check that HDF5 and netCDF can describe a type. Returns 0; -EOPNOTSUPP with the
 * reason. */
int nc_type_check(const struct dtype *t, struct err *e) NZ_MUST_USE;
/* nc_type_need - find or add the nc_type for values of a checked type t in a group; a new one is
 * named `base`_t if it needs a name. *ret = DS_NONE for plain numbers and strings.
 * Returns 0; -ERANGE, -ENOMEM. */
int nc_type_need(struct nc_model *m, uint32_t group, const struct dtype *t, const char *base,
		 uint32_t *ret, struct err *e) NZ_MUST_USE;
/* nc_type_same - whether two types are equal; any_order: ignoring byte order. */
bool nc_type_same(const struct dtype *a, const struct dtype *b, bool any_order);

/* ---- schema_dims.c: decisions about dimensions ---- */

/* nc_dims_scales - determine the coordinate variable of each dimension. */
void nc_dims_scales(struct nc_model *m);
/* nc_dims_names - name the dimensions; after the names of groups and arrays. */
int nc_dims_names(struct nc_model *m, struct err *e) NZ_MUST_USE;
/* nc_dims_strings - add the last dimensions of fixed-size strings. */
int nc_dims_strings(struct nc_model *m, struct err *e) NZ_MUST_USE;

/* ---- schema_attrs.c, schema_fill.c: decisions about attributes ---- */

/* nc_attrs_decide - decide the attributes of an array, or of a group if array is DS_NONE. */
int nc_attrs_decide(struct nc_model *m, uint32_t group, uint32_t array, struct nc_attrs *ret,
		    struct err *e) NZ_MUST_USE;
/* nc_fill_attr - convert `_FillValue` to the form that netCDF requires: one value of exactly the
 * variable's type.
 * Returns 1 with *ret written; 0 if there is no such form, with the reason in *ret_why;
 * -ENOMEM. */
int nc_fill_attr(struct nc_model *m, uint32_t array, const struct ds_attr *src,
		 struct nc_attr *ret, const char **ret_why);

/* ---- schema_filters.c ---- */

/* nc_filters_plan - make the plan of an array: its chunks get only filters that libhdf5 will undo
 * from a dataset's description, those of the array or those of a rule. May start libhdf5's process
 * to find out which parameters it would store for its own filters. Returns 0; -ENOMEM; the error
 * of that process. */
int nc_filters_plan(struct nc_model *m, uint32_t array, const struct plan_policy *policy,
		    struct plan *ret, struct err *e) NZ_MUST_USE;

/* nc_filters_agree - whether libhdf5 would store the same parameters for its own filters in a
 * chain of an array. Call it in a process for libhdf5 (nc_asker_agree), with h5_lock held.
 * nc_disagrees - the reason why not, for people; NULL: it would. */
enum nc_agreed {
	NC_AGREES,
	NC_AGREE_NO_CHUNKS,
	NC_AGREE_NO_NUMBERS,
	NC_AGREE_LACKS,
	NC_AGREE_REFUSES,
	NC_AGREE_OTHERS,
	NC_AGREE_LAST = NC_AGREE_OTHERS,
};
enum nc_agreed nc_filters_agree(const struct ds_array *a, const struct codec_array *as,
				const struct codec_chain *chain);
const char *nc_disagrees(enum nc_agreed said);

/* nc_filters - filter classes that replace filters while the structure is made. */
struct nc_filters {
	struct { uint32_t id; char *name; } *list;
	size_t n, cap;
	uint8_t seen[8192];  /* a bit for each id */
};

/* nc_filters_begin - let libhdf5 accept every filter of the plans without having it, until
 * nc_filters_end. h5_lock is held throughout. Always call nc_filters_end, after the file was
 * flushed and all its datasets were closed. Returns 0 or -1. */
int nc_filters_begin(const struct nc_model *m, struct nc_filters *ret);
/* nc_filters_stand_in - the same for one more chain, between begin (or zeroes) and end. */
int nc_filters_stand_in(struct nc_filters *t, const struct codec_chain *chain);
void nc_filters_end(struct nc_filters *t);
/* nc_filters_set - add a chain to creation properties; chunk_bytes: of a whole chunk. Returns 0 or
 * -1. */
int nc_filters_set(hid_t dcpl, uint64_t chunk_bytes, const struct codec_chain *chain);

/* ---- building ---- */

struct nc_builder {
	const struct nc_model *m;
	const struct dataset *ds;
	hid_t file;
	uint64_t *groups;   /* header addresses, by ordinal */
	uint64_t *arrays;
	uint64_t *scales;   /* by dimension */
	hid_t *types;       /* by ordinal, open */
	uint32_t at;        /* the open group: ordinal, id */
	hid_t group;
	uint64_t max_bytes;
};

/* nc_h5_group - the id of a group, opened unless it is the last one used. Borrowed. */
hid_t nc_h5_group(struct nc_builder *b, uint32_t group);
/* nc_h5_address - the header address of an open object; HADDR_UNDEF on failure. */
uint64_t nc_h5_address(hid_t id);
/* nc_h5_dcpl - make the creation properties that all datasets share. Returns a new id; -1. */
hid_t nc_h5_dcpl(void);
/* nc_h5_make_group - make a group in its parent, which exists. Returns 0 or -1. */
int nc_h5_make_group(struct nc_builder *b, uint32_t group);

/* nc_storage - the storage of a dataset. */
struct nc_storage {
	bool chunked;
	const hsize_t *chunk;            /* nc_rank entries, if chunked */
	uint64_t chunk_bytes;
	const struct codec_chain *chain; /* NULL: none */
	bool text_fill;                  /* variable-length strings have a fill value, too */
};

/* nc_h5_make_array - make the dataset of an array, without the additions of nc_h5_scales. Returns
 * 0 or -1. */
int nc_h5_make_array(struct nc_builder *b, uint32_t array, const struct nc_storage *how);
/* nc_h5_fail - record the library's reason for an object. Returns -EIO. */
int nc_h5_fail(const struct nc_builder *b, uint32_t group, uint32_t array, struct err *e);

/* nc_h5_type - the type of a dataset or attribute: the named type `type`, or DS_NONE for a plain
 * t. Returns a new id. */
hid_t nc_h5_type(const struct nc_builder *b, const struct dtype *t, uint32_t type);
/* nc_h5_type_host - the same for values in memory, in host byte order. Returns a new id. */
hid_t nc_h5_type_host(const struct nc_builder *b, const struct dtype *t);
/* nc_h5_types - make all named types. */
int nc_h5_types(struct nc_builder *b, struct err *e) NZ_MUST_USE;

/* nc_h5_attrs - write attributes to an open object. Returns 0 or -1, like all functions below. */
int nc_h5_attrs(const struct nc_builder *b, hid_t obj, const struct nc_attrs *attrs);
/* nc_h5_attr_text - write a string of n bytes in a scalar; n = 0: one NUL, as in netCDF.
 * nc_h5_attr_raw - write values of one type in a dataspace of n elements (0: a scalar)
 * unchanged. */
int nc_h5_attr_text(hid_t obj, const char *name, const char *text, size_t n, bool utf8);
int nc_h5_attr_raw(hid_t obj, const char *name, hid_t type, uint64_t n, const void *values);

/* nc_ascii - whether a string is ASCII. nc_texts - n strings with NULs for the library, then NULL;
 * new (nc_texts_free); NULL if memory is short. */
bool nc_ascii(const struct ds_text *t);
char **nc_texts(const struct ds_text *t, uint64_t n);
void nc_texts_free(char **list);

/* nc_h5_make_type - make type i under its name in its group; the types that it uses exist. An
 * equal type of that name is reused. Returns 0; -1; -EEXIST another object has the name. */
int nc_h5_make_type(struct nc_builder *b, uint32_t i);

/* nc_h5_mark - make a dataset the scale of a dimension; dimid: netCDF's number, negative: none.
 * Returns 0 or -1. */
int nc_h5_mark(hid_t set, const char *name, int32_t dimid);
/* nc_h5_make_dim - make the dataset of a dimension without a variable: b->scales[dim]. Returns 0
 * or -1. */
int nc_h5_make_dim(struct nc_builder *b, uint32_t dim, int32_t dimid);
/* nc_h5_dims - datasets for dimensions without a variable. */
int nc_h5_dims(struct nc_builder *b, struct err *e) NZ_MUST_USE;
/* nc_use - HDF5's record of an axis that uses a scale, in H5DS's memory layout, whose padding is
 * zeroed. nc_h5_use_type - its type. Returns a new id; -1. */
struct nc_use {
	hobj_ref_t set;
	int32_t axis;
	int32_t hole;
};
hid_t nc_h5_use_type(void);

/* nc_h5_scales - write the attributes that connect variables and dimensions: DIMENSION_LIST,
 * REFERENCE_LIST and netCDF's own; after all datasets have an address. */
int nc_h5_scales(struct nc_builder *b, struct err *e) NZ_MUST_USE;

/* nc_chunk_limit - make chunk lengths of an array's lengths, in place: halve the longest one until
 * a chunk has at most max bytes, at elem bytes an element. */
void nc_chunk_limit(uint32_t rank, uint64_t elem, uint64_t max, hsize_t *chunk);
/* nc_strings_chunk - chunk lengths for an array of strings that needs chunked storage. */
void nc_strings_chunk(const struct ds_array *a, hsize_t *ret);
/* nc_frames - the elements of a chunk without a fixed size, in the library's form. */
struct nc_frames {
	const struct ds_array *a;
	const hsize_t *count;      /* a->rank lengths: the chunk's part inside the shape */
	uint64_t inside;           /* elements of that part */
	void *values;              /* `inside` entries: char * or hvl_t */
	uint64_t bytes;            /* that they take in the file's heap */
};

/* nc_frames_set - set element i of those inside. */
void nc_frames_set(struct nc_frames *f, uint64_t i, const uint8_t *bytes, size_t n);
/* nc_frames_parse - find the elements in the n bytes of a chunk, in the form of source_read_vlen,
 * with room for one more. The values point into them; strings are terminated there. *ret_left:
 * bytes after the last element. Returns false if the elements end before the chunk does. */
bool nc_frames_parse(struct nc_frames *f, uint8_t *raw, size_t n, size_t *ret_left);
/* nc_h5_strings - write n bytes of pieces (virtual/structure_process.h), which it may modify.
 * h5_lock is held. Returns 0; -EBADMSG damaged elements; -ERANGE beyond b->max_bytes; -EIO;
 * -ENOMEM. */
int nc_h5_strings(struct nc_builder *b, uint32_t array, uint8_t *pieces, size_t n,
		  struct err *e) NZ_MUST_USE;

/* nc_builder_init - prepare for a model. nc_h5_structure - make everything but variable-length
 * elements, flushed. h5_lock is held. The calling process ends without releasing anything. */
int nc_builder_init(struct nc_builder *b, const struct nc_model *m, uint64_t max_bytes,
		    struct err *e) NZ_MUST_USE;
int nc_h5_structure(struct nc_builder *b, struct err *e) NZ_MUST_USE;
/* nc_h5_chunk - the chunk lengths of an array's dataset: nc_rank entries. */
void nc_h5_chunk(const struct ds_array *a, hsize_t *ret);

#endif
