/* SPDX-License-Identifier: BSD-3-Clause */
/* schema.h - the decisions about a virtual netCDF-4 file, and what building it shares.
 *
 * schema.c and its helpers fill a nc_model from the dataset alone: names, types, dimensions,
 * attributes, filters. writer.c and its helpers do what it says with libhdf5; they decide
 * nothing, so that whatever cannot be shown is known before anything is built. */
#ifndef HDF5VIEW_NETCDF4_SCHEMA_H
#define HDF5VIEW_NETCDF4_SCHEMA_H

#include "hdf5view/netcdf4/netcdf4.h"

#define NC_NAME_LIMIT 256    /* bytes of a name: NC_MAX_NAME */
#define NC_RANK_LIMIT 32     /* H5S_MAX_RANK */
#define NC_MESSAGE_MAX 48000 /* bytes of one header message, with room for what surrounds it */
#define NC_TEXT_ELEM 16      /* bytes that a text takes in a dataset: length, heap address, index */

/* ---- schema_names.c ---- */

/* nc_names - names in use, by scope: a group's ordinal, or one of the special ones. */
struct nc_name {
	uint32_t scope;
	uint32_t value;    /* the user's */
	uint32_t next;     /* suffix to try for the next one that wants this name */
	uint32_t hash;
	const char *name;  /* NULL: free slot */
};

struct nc_names {
	struct nc_name *slots;
	size_t n, cap;     /* cap: 0 or a power of two */
};

#define NC_SCOPE_DIMS 0x80000000 /* or'ed to a group: names of its dimensions */
#define NC_SCOPE_STRINGS UINT32_MAX /* lengths of text dimensions */

void nc_names_release(struct nc_names *t);
/* nc_names_find - NULL: not there. Borrowed until the next addition. */
struct nc_name *nc_names_find(const struct nc_names *t, uint32_t scope, const char *name);
/* nc_names_add - name is borrowed. Returns 0, -EEXIST (nothing done), -ENOMEM. */
int nc_names_add(struct nc_names *t, uint32_t scope, const char *name, uint32_t value);
/* nc_names_claim - add `want`, or "want_1", "want_2" ... of at most `limit` bytes, whichever is
 * free. Returns the name, in the arena; NULL: memory. */
const char *nc_names_claim(struct nc_names *t, struct arena *a, uint32_t scope,
			   const char *want, uint32_t value, size_t limit);

/* nc_escape - a name as netCDF takes it, of at most `limit` bytes: itself when it is one, else
 * with %XX for what is not allowed. Different names stay different. In the arena, or `name`
 * itself; NULL: memory. docs/dev/reading/virtual-file.md has the rule. */
const char *nc_escape(struct arena *a, const char *name, size_t limit);

/* ---- the model ---- */

/* nc_type - a named datatype. netCDF wants every compound, opaque and vlen type to have a name. */
struct nc_type {
	uint32_t group;
	const char *name;
	const struct dtype *type;
	const uint32_t *fields;   /* DT_COMPOUND: a type ordinal for each field, or DS_NONE */
};

enum nc_attr_form {
	NC_ATTR_TEXT,    /* netCDF's char attribute: the one text of src, if any */
	NC_ATTR_STRINGS, /* netCDF's string attribute: src->n texts */
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
	uint32_t scale;           /* the array that is its coordinate variable, or DS_NONE */
	uint32_t id;              /* netCDF's number: the order that readers show */
	bool unlimited;
};

struct nc_array {
	const char *name;         /* for netCDF; NULL: not shown */
	const char *link;         /* of the dataset: the name, or with netCDF's prefix */
	uint32_t type;            /* its nc_type, or DS_NONE */
	uint32_t text_dim;        /* last dimension of texts of a fixed size > 1, or DS_NONE */
	uint32_t scale_of;        /* the dimension that it is the coordinate variable of */
	enum nc_data data;
	bool chunked;             /* chunked storage, whatever `data` says */
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
	bool v18; /* the file has no format older than that of HDF5 1.8 */
	uint64_t max_bytes, build_ms;
	struct nc_asker *asker;    /* of nc_model_new, while that runs */
	uint32_t *order;           /* ds->n_groups ordinals, parents first */
	struct nc_group *groups;   /* as ds->groups */
	struct nc_array *arrays;   /* as ds->arrays */
	struct nc_dim *dims;       /* ds->n_dims of the dataset, then those of texts */
	uint32_t n_dims;
	struct nc_type *types;     /* those that others need come first */
	uint32_t n_types;
	size_t c_dims, c_types;
	struct nc_names names;
	const char **notes;
	uint32_t n_notes;
	size_t c_notes;
	uint64_t notes_dropped;
};

/* nc_note - one line for the user: "<path of the object>: <text>". array, group: DS_NONE, or
 * what it is about. Returns 0 or -ENOMEM. */
int nc_note(struct nc_model *m, uint32_t group, uint32_t array, const char *fmt, ...)
	NZ_PRINTF(4, 5);
/* nc_full - record that the model outgrew its limit. Returns -ERANGE. */
int nc_full(const struct nc_model *m, struct err *e);

/* nc_elem - bytes of an HDF5 element of an array: 1 for texts, the vlen descriptor's in memory
 * does not count. nc_rank - of its HDF5 dataspace. */
uint32_t nc_elem(const struct ds_array *a);
uint32_t nc_rank(const struct ds_array *a);
/* nc_fill - whether an array of elements with a fixed size has an HDF5 fill value. */
bool nc_fill(const struct ds_array *a);

/* ---- schema_types.c: decisions about types ---- */

/* nc_type_check - whether HDF5 and netCDF can describe a type. Returns 0; -EOPNOTSUPP with the
 * reason. */
int nc_type_check(const struct dtype *t, struct err *e) NZ_MUST_USE;
/* nc_type_need - the nc_type of values of a checked type t in a group, made when there is none
 * yet; named `base`_t where a name is needed. *ret = DS_NONE for plain numbers and texts.
 * Returns 0; -ERANGE, -ENOMEM. */
int nc_type_need(struct nc_model *m, uint32_t group, const struct dtype *t, const char *base,
		 uint32_t *ret, struct err *e) NZ_MUST_USE;
/* nc_type_same - whether values have the same type; any_order: whatever their byte orders. */
bool nc_type_same(const struct dtype *a, const struct dtype *b, bool any_order);

/* ---- schema_dims.c: decisions about dimensions ---- */

/* nc_dims_scales - which array is the coordinate variable of which dimension. */
void nc_dims_scales(struct nc_model *m);
/* nc_dims_names - names for dimensions; after those of groups and arrays. */
int nc_dims_names(struct nc_model *m, struct err *e) NZ_MUST_USE;
/* nc_dims_strings - the last dimension of texts. */
int nc_dims_strings(struct nc_model *m, struct err *e) NZ_MUST_USE;

/* ---- schema_attrs.c, schema_fill.c: decisions about attributes ---- */

/* nc_attrs_decide - those of a group, or of an array when array is not DS_NONE. */
int nc_attrs_decide(struct nc_model *m, uint32_t group, uint32_t array, struct nc_attrs *ret,
		    struct err *e) NZ_MUST_USE;
/* nc_fill_attr - `_FillValue` as netCDF insists on: one value of exactly the variable's type.
 * Returns 1 with *ret written; 0 there is no such form, *ret_why says why; -ENOMEM. */
int nc_fill_attr(struct nc_model *m, uint32_t array, const struct ds_attr *src,
		 struct nc_attr *ret, const char **ret_why);

/* ---- schema_filters.c ---- */

/* nc_filters_plan - the plan of an array: chunks have only filters that libhdf5 will undo from what
 * a dataset can say, those of the array or those of a rule. May ask libhdf5, which parameters it
 * would store for filters of its own. Returns 0; -ENOMEM; it could not be asked. */
int nc_filters_plan(struct nc_model *m, uint32_t array, const struct plan_policy *policy,
		    struct plan *ret, struct err *e) NZ_MUST_USE;

/* nc_filters_agree - whether libhdf5 itself would store the same parameters for the filters of its
 * own in a chain of an array. h5_lock is held: in a process for libhdf5 (nc_asker_agree).
 * nc_disagrees - why not, for people; NULL: it would. */
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

/* nc_filters - classes that stand in for filters while the structure is made. */
struct nc_filters {
	struct { uint32_t id; char *name; } *list;
	size_t n, cap;
	uint8_t seen[8192];  /* a bit for each id */
};

/* nc_filters_begin - let libhdf5 accept every filter of the plans without having it, until
 * nc_filters_end, which must come in any case, after the file was flushed and all its datasets
 * were closed; h5_lock is held all the while. Returns 0 or -1. */
int nc_filters_begin(const struct nc_model *m, struct nc_filters *ret);
/* nc_filters_stand_in - the same for one chain more, between begin (or zeroes) and end. */
int nc_filters_stand_in(struct nc_filters *t, const struct codec_chain *chain);
void nc_filters_end(struct nc_filters *t);
/* nc_filters_set - a chain into creation properties; chunk_bytes: of a whole chunk. Returns 0 or
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

/* nc_h5_group - the id of a group, opened when it is not the last one asked for. Borrowed. */
hid_t nc_h5_group(struct nc_builder *b, uint32_t group);
/* nc_h5_address - header address of an open object; HADDR_UNDEF on failure. */
uint64_t nc_h5_address(hid_t id);
/* nc_h5_dcpl - creation properties that all datasets share. New; -1. */
hid_t nc_h5_dcpl(void);
/* nc_h5_make_group - in its parent, which is there. Returns 0 or -1. */
int nc_h5_make_group(struct nc_builder *b, uint32_t group);

/* nc_storage - how a dataset is stored. */
struct nc_storage {
	bool chunked;
	const hsize_t *chunk;            /* nc_rank entries, where it is */
	uint64_t chunk_bytes;
	const struct codec_chain *chain; /* NULL: none */
	bool text_fill;                  /* texts of any length have a fill value, too */
};

/* nc_h5_make_array - the dataset of an array, without what nc_h5_scales adds. Returns 0 or -1. */
int nc_h5_make_array(struct nc_builder *b, uint32_t array, const struct nc_storage *how);
/* nc_h5_fail - record the library's reason for an object. Returns -EIO. */
int nc_h5_fail(const struct nc_builder *b, uint32_t group, uint32_t array, struct err *e);

/* nc_h5_type - the type of a dataset or attribute: `type` names it, or t is plain. New. */
hid_t nc_h5_type(const struct nc_builder *b, const struct dtype *t, uint32_t type);
/* nc_h5_type_host - the same of values in memory, in host byte order. New. */
hid_t nc_h5_type_host(const struct nc_builder *b, const struct dtype *t);
/* nc_h5_types - make all named types. */
int nc_h5_types(struct nc_builder *b, struct err *e) NZ_MUST_USE;

/* nc_h5_attrs - write attributes to an open object. Returns 0 or -1, as all that follow. */
int nc_h5_attrs(const struct nc_builder *b, hid_t obj, const struct nc_attrs *attrs);
/* nc_h5_attr_text - a text of n bytes in a scalar; n = 0: one NUL, as netCDF does.
 * nc_h5_attr_raw - values of one type in a dataspace of n elements (0: a scalar) as they are. */
int nc_h5_attr_text(hid_t obj, const char *name, const char *text, size_t n, bool utf8);
int nc_h5_attr_raw(hid_t obj, const char *name, hid_t type, uint64_t n, const void *values);

/* nc_h5_make_type - type i, given its name in its group; those that it needs are there. One that
 * is there already is taken. Returns 0; -1; -EEXIST something else has the name. */
int nc_h5_make_type(struct nc_builder *b, uint32_t i);

/* nc_h5_mark - make a dataset the scale of a dimension; dimid: netCDF's number, negative: none.
 * Returns 0 or -1. */
int nc_h5_mark(hid_t set, const char *name, int32_t dimid);
/* nc_h5_make_dim - the dataset of a dimension without a variable: b->scales[dim]. As nc_h5_mark. */
int nc_h5_make_dim(struct nc_builder *b, uint32_t dim, int32_t dimid);
/* nc_h5_dims - datasets for dimensions without a variable. */
int nc_h5_dims(struct nc_builder *b, struct err *e) NZ_MUST_USE;
/* nc_use - HDF5's record of an axis that uses a scale, as H5DS has it in memory: with a hole, which
 * is zeroed. nc_h5_use_type - its type. New; -1. */
struct nc_use {
	hobj_ref_t set;
	int32_t axis;
	int32_t hole;
};
hid_t nc_h5_use_type(void);

/* nc_h5_scales - what ties variables to dimensions: DIMENSION_LIST, REFERENCE_LIST and netCDF's
 * own; after all datasets have an address. */
int nc_h5_scales(struct nc_builder *b, struct err *e) NZ_MUST_USE;

/* nc_strings_chunk - chunk lengths for an array of texts whose storage has to be chunked. */
void nc_strings_chunk(const struct ds_array *a, uint64_t *ret);
/* nc_strings - reads all elements of arrays without a fixed size, for who writes them. */
struct nc_strings {
	struct source *source;
	uint64_t bytes, max_bytes; /* of the file: by now, at most */
	/* write - t->pieces into the file; says t->bytes. -EBADMSG: one of them is damaged */
	int (*write)(struct nc_strings *t, uint32_t array, struct err *e);
	struct buf raw, pieces;    /* of one chunk; struct nc_piece, each with what follows */
};

/* nc_strings_read - those of one array. What the source cannot read makes the array broken, which
 * is no error: *ret_broken says why, owned; NULL before, and otherwise. */
int nc_strings_read(struct nc_strings *t, uint32_t array, char **ret_broken,
		    struct err *e) NZ_MUST_USE;
/* nc_h5_strings - write n bytes of pieces (virtual/structure_process.h), which it may change.
 * h5_lock is held. Returns 0; -EBADMSG elements are damaged; -ERANGE beyond b->max_bytes; -EIO;
 * -ENOMEM. */
int nc_h5_strings(struct nc_builder *b, uint32_t array, uint8_t *pieces, size_t n,
		  struct err *e) NZ_MUST_USE;

/* nc_builder_init - for a model; nc_h5_structure - everything but texts, flushed. h5_lock is held.
 * The process that makes it ends, and nothing is released. */
int nc_builder_init(struct nc_builder *b, const struct nc_model *m, uint64_t max_bytes,
		    struct err *e) NZ_MUST_USE;
int nc_h5_structure(struct nc_builder *b, struct err *e) NZ_MUST_USE;
/* nc_h5_chunk - chunk lengths of an array's dataset: nc_rank entries. */
void nc_h5_chunk(const struct ds_array *a, hsize_t *ret);

#endif
