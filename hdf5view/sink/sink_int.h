/* SPDX-License-Identifier: BSD-3-Clause */
/* sink_int.h - changes a netCDF-4 file in place so that it becomes another dataset; private to
 * hdf5view.
 *
 * nc_model decides about new objects, and the functions that build virtual files make them
 * (netcdf4/schema.h). Existing objects are found through `real`, by the addresses of their object
 * headers, and opened by address in a file that libhdf5 writes. Only the objects named in the
 * change set are modified.
 *
 * The attributes that connect variables and dimensions (DIMENSION_LIST, REFERENCE_LIST) contain
 * addresses. Recreated objects get new addresses, so all lists are updated once, at the end:
 * dimension_lists.c.
 *
 * All functions are called between h5_enter and h5_leave, on one thread, in a process of its
 * own. */
#ifndef HDF5VIEW_SINK_SINK_INT_H
#define HDF5VIEW_SINK_SINK_INT_H

#include "hdf5view/hdf5view.h"
#include "hdf5view/netcdf4/schema.h"
#include "hdf5view/hdf5/library.h"

#define SINK_OPEN_MAX 64 /* limit of open datasets */

/* hdf5_sink_array - the state of an array of `now`. */
struct hdf5_sink_array {
	uint32_t was, real;       /* its ordinals in the other models, or DS_NONE */
	uint64_t addr;            /* header address in the file; HADDR_UNDEF: none */
	bool fresh;               /* made by this sink */
	bool retie;               /* its dimension lists are rewritten */
	bool put;                 /* this sink has written chunks */

	/* The fields below are valid after hdf5_sink_dataset (seen). */
	bool seen;
	bool chunked;
	bool raw_edges;           /* partial edge chunks have no filters */
	bool convert;             /* elements in the file are not the presented ones */
	uint32_t rank;            /* of the dataspace */
	uint32_t elem;            /* bytes of an element of the dataspace, in the file */
	uint64_t chunk_bytes;     /* of a whole chunk in the file; 0: not chunked */
	uint64_t *extent;         /* rank entries, owned */
	uint64_t *chunk;          /* entries for every axis of the model, owned; NULL: none */
	struct codec_chain chain; /* borrowed from real or the sink's arena */
	hid_t set;                /* open, or 0 */
	uint64_t used;            /* time of the last use, for closing the oldest */
};

/* hdf5_sink_dim - the state of a dimension of `now`, numbered as in the netCDF file's model. */
struct hdf5_sink_dim {
	uint32_t real;            /* its ordinal in the file's model, or DS_NONE */
	uint64_t addr;            /* current address of its scale; HADDR_UNDEF: none (yet) */
	int32_t id;               /* netCDF's number; -1: the file has none */
};

/* hdf5_sink_move - the removal or replacement of an object. */
struct hdf5_sink_move {
	uint64_t from, to;        /* to: HADDR_UNDEF if it was removed */
	hid_t held;               /* the old object, kept open so that its address is not reused */
};

struct hdf5_sink_list {
	uint64_t *at;
	size_t n, cap;
};

struct h5_sink {
	struct sink base;
	int dir_fd; /* of the state directory; borrowed */
	char *path;
	struct h5_source *real;   /* borrowed; so are: */
	struct source *was, *now;
	struct source nothing;    /* an empty `was` */
	struct ds_group root;
	struct h5_journal *journal;
	hid_t file;
	struct arena arena;
	struct codec_scratch *scratch;

	struct ds_array *shown;   /* the model's view of now's arrays */
	struct ds_dim *shown_dims; /* and dimensions: unlimited if unlimited in the file */
	struct source view;       /* `now` with these */
	struct plan *plans;
	struct nc_model *m;
	struct nc_builder b;      /* addresses of groups, arrays and scales of the model */
	struct nc_filters filters;

	struct hdf5_sink_array *arrays; /* now's */
	uint32_t *group_was;      /* of now's groups */
	uint32_t *real_array;     /* real's ordinals of was's arrays */
	uint32_t *real_group;     /* the same of groups */
	bool *shared;             /* of real's arrays: has more than one name */
	struct hdf5_sink_dim *dims; /* the model's */
	int32_t next_id;          /* netCDF's number of the next dimension; -1: the file uses
				   * none */

	struct hdf5_sink_move *moves;
	size_t n_moves, c_moves;
	bool sorted;              /* moves are sorted */
	struct hdf5_sink_list scales; /* objects whose REFERENCE_LIST may need changes */
	struct hdf5_sink_list users;  /* objects whose DIMENSION_LIST may need changes */

	uint32_t open[SINK_OPEN_MAX]; /* arrays with open datasets */
	uint32_t n_open;
	uint64_t clock;
	struct buf room;          /* for encoding */
	struct buf room2;
	bool committed;
};

static inline struct h5_sink *hdf5_sink_of(struct sink *s)
{
	return CONTAINER_OF(s, struct h5_sink, base);
}

/* hdf5_sink_enter - h5_enter, and record the library's errors for hdf5_sink_reason. */
void hdf5_sink_enter(void);
/* hdf5_sink_reason - record the failure of the driver below the library, or else "<what>: <the
 * library's reason>". Returns the driver's code, or -EIO. */
int hdf5_sink_reason(const struct h5_sink *s, const char *what, struct err *e);
/* hdf5_sink_fail - hdf5_sink_reason for an object of `now` (array: DS_NONE for a group). */
int hdf5_sink_fail(struct h5_sink *s, uint32_t group, uint32_t array, struct err *e);
int hdf5_sink_list_add(struct hdf5_sink_list *l, uint64_t addr);

/* hdf5_sink_attrs_held - check that a model has all attributes of an object, under their names.
 * Returns 0; -EOPNOTSUPP, -EINVAL with the first missing one. */
int hdf5_sink_attrs_held(const struct nc_model *m, uint32_t group, uint32_t array,
			 struct err *e) NZ_MUST_USE;

/* ---- match.c ---- */

/* hdf5_sink_begin - gather all data that is known before the first change. */
int hdf5_sink_begin(struct h5_sink *s, struct err *e) NZ_MUST_USE;

/* ---- links.c ---- */

/* hdf5_sink_link - find a group's link to the object at addr; `guess` is tried first. *ret: its
 * name, new (free). Returns 0; -ENOENT. */
int hdf5_sink_link(hid_t group, uint64_t addr, const char *guess, char **ret);
/* hdf5_sink_object - open the object at an address. Returns a new id; -1. */
hid_t hdf5_sink_object(struct h5_sink *s, uint64_t addr);
/* hdf5_sink_moved - record that an object was removed (to: HADDR_UNDEF) or replaced; held is
 * taken. */
int hdf5_sink_moved(struct h5_sink *s, uint64_t from, uint64_t to, hid_t held);
/* hdf5_sink_redirect - the last recorded move from an address now leads to another one. from may be
 * HADDR_UNDEF. */
void hdf5_sink_redirect(struct h5_sink *s, uint64_t from, uint64_t to);
/* hdf5_sink_current_address - the current address of the object that was at an address;
 * HADDR_UNDEF: removed. */
uint64_t hdf5_sink_current_address(struct h5_sink *s, uint64_t addr);
/* hdf5_sink_relink - rename a link, also to another group. Returns 0 or -1. */
int hdf5_sink_relink(hid_t from, const char *link, hid_t to, const char *name);
/* hdf5_sink_links_one - whether an object has exactly one link. */
bool hdf5_sink_links_one(hid_t obj);

/* hdf5_sink_attr - an open attribute; ids are -1 or 0 if there is none. */
struct hdf5_sink_attr {
	hid_t at, type, space;
	uint64_t n; /* elements */
};
#define auto_attr __attribute__((cleanup(hdf5_sink_attr_close)))
/* hdf5_sink_attr_open - open an attribute of an object, and its type and dataspace. Returns false
 * if there is none that can be opened. hdf5_sink_attr_close - also after a failure. */
bool hdf5_sink_attr_open(hid_t obj, const char *name, struct hdf5_sink_attr *ret);
void hdf5_sink_attr_close(struct hdf5_sink_attr *x);

/* ---- objects.c ---- */

int hdf5_sink_remove_array(struct h5_sink *s, uint32_t array, struct err *e);
int hdf5_sink_remove_group(struct h5_sink *s, uint32_t group, struct err *e);
int hdf5_sink_add_group(struct h5_sink *s, uint32_t group, struct err *e);
int hdf5_sink_add_array(struct h5_sink *s, uint32_t array, const struct sink_new *how,
			struct err *e);
int hdf5_sink_rename_array(struct h5_sink *s, uint32_t was, uint32_t now, struct err *e);
/* hdf5_sink_dim_only - whether a dataset is a dimension without a variable. */
bool hdf5_sink_dim_only(hid_t set);
/* hdf5_sink_type_ready - make a named type of the model and the types that it uses; DS_NONE:
 * nothing. */
int hdf5_sink_type_ready(struct h5_sink *s, uint32_t type, struct err *e) NZ_MUST_USE;
/* hdf5_sink_require_in_file - check that an array of now is in the file and can be written.
 * Returns 0; -EOPNOTSUPP. */
int hdf5_sink_require_in_file(struct h5_sink *s, uint32_t array, struct err *e) NZ_MUST_USE;

/* ---- dims.c, dimension_lists.c ---- */

int hdf5_sink_dims(struct h5_sink *s, struct err *e);
/* hdf5_sink_note_references - record the lists that name an object, before it is removed or
 * recreated. */
int hdf5_sink_note_references(struct h5_sink *s, hid_t obj);
/* hdf5_sink_dimension_lists - update all recorded lists. */
int hdf5_sink_dimension_lists(struct h5_sink *s, struct err *e) NZ_MUST_USE;
/* hdf5_sink_sweep - remove scales without a variable that are unused and not in `now`. */
int hdf5_sink_sweep(struct h5_sink *s, struct err *e) NZ_MUST_USE;

/* ---- recreate.c ---- */

int hdf5_sink_resize(struct h5_sink *s, uint32_t array, struct err *e);
/* hdf5_sink_remake_fill - set another fill value of an array without chunks. */
int hdf5_sink_remake_fill(struct h5_sink *s, uint32_t array, const uint8_t *fill,
			  struct err *e);
/* hdf5_sink_scale_resize - set another length of a scale without a variable. */
int hdf5_sink_scale_resize(struct h5_sink *s, uint32_t dim, struct err *e) NZ_MUST_USE;

/* ---- attrs.c ---- */

int hdf5_sink_set_attr(struct h5_sink *s, uint32_t group, uint32_t array,
		       const struct ds_attr *a, struct err *e);
int hdf5_sink_remove_attr(struct h5_sink *s, uint32_t group, uint32_t array, const char *name,
			  struct err *e);
/* hdf5_sink_attrs_copy - copy all attributes of an object to another, except those in a
 * NULL-terminated list. */
int hdf5_sink_attrs_copy(hid_t from, hid_t to, const char *const *without);

/* ---- chunks.c ---- */

/* hdf5_sink_dataset - open the dataset of an array, and fill its state. Borrowed until the next
 * call. Returns 0. */
int hdf5_sink_dataset(struct h5_sink *s, uint32_t array, hid_t *ret, struct err *e) NZ_MUST_USE;
/* hdf5_sink_forget - close an array's dataset and reset its state, because it is another object
 * now. */
void hdf5_sink_forget(struct h5_sink *s, uint32_t array);
int hdf5_sink_target(struct h5_sink *s, uint32_t array, struct sink_array *ret, struct err *e);
int hdf5_sink_put(struct h5_sink *s, uint32_t array, uint64_t linear,
		  const struct sink_chunk *c, struct err *e);
int hdf5_sink_drop(struct h5_sink *s, uint32_t array, uint64_t linear, struct err *e);

#endif
