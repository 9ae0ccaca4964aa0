/* SPDX-License-Identifier: BSD-3-Clause */
/* sink_int.h - a netCDF-4 file that is changed to be another dataset; private to hdf5view.
 *
 * What is new is decided by nc_model and made by the functions that build virtual files
 * (netcdf4/schema.h). What exists is found through `real`, by the address of its object header, and
 * is opened by it in a file that libhdf5 writes; of it only that is touched which is told.
 *
 * What ties variables to dimensions (DIMENSION_LIST, REFERENCE_LIST) are addresses. Objects that
 * are made again have others, so that all lists are brought in line at the end, at once:
 * dimension_lists.c.
 *
 * Everything runs between h5_enter and h5_leave, on one thread, in a process of its own. */
#ifndef HDF5VIEW_SINK_SINK_INT_H
#define HDF5VIEW_SINK_SINK_INT_H

#include "hdf5view/hdf5view.h"
#include "hdf5view/netcdf4/schema.h"
#include "hdf5view/hdf5/library.h"

#define SINK_OPEN_MAX 64 /* datasets that are kept open */

/* hdf5_sink_array - an array of `now`. */
struct hdf5_sink_array {
	uint32_t was, real;       /* the same in the other models, or DS_NONE */
	uint64_t addr;            /* header address in the file; HADDR_UNDEF: not there */
	bool fresh;               /* made by us */
	bool retie;               /* its dimensions are written anew */
	bool put;                 /* has got chunks from us */

	/* What follows is known once hdf5_sink_dataset has seen it (seen). */
	bool seen;
	bool chunked;
	bool raw_edges;           /* chunks that the array ends inside of have no filters */
	bool convert;             /* elements in the file are not the presented ones */
	uint32_t rank;            /* of the dataspace */
	uint32_t elem;            /* bytes of an element of the dataspace, in the file */
	uint64_t chunk_bytes;     /* of a whole chunk in the file; 0: not chunked */
	uint64_t *extent;         /* rank entries, owned */
	uint64_t *chunk;          /* entries for every axis of the model, owned; NULL: none */
	struct codec_chain chain; /* borrowed from real or the sink's arena */
	hid_t set;                /* open, or 0 */
	uint64_t used;            /* when last, for the one to be closed */
};

/* hdf5_sink_dim - a dimension of `now`, as the model of the netCDF file counts them. */
struct hdf5_sink_dim {
	uint32_t real;            /* the same in the file's model, or DS_NONE */
	uint64_t addr;            /* of its scale now; HADDR_UNDEF: has none (yet) */
	int32_t id;               /* netCDF's number; -1: the file has none */
};

/* hdf5_sink_move - an object is another one now. */
struct hdf5_sink_move {
	uint64_t from, to;        /* to: HADDR_UNDEF when it is gone */
	hid_t held;               /* the old one, open, so that its address is not used again */
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
	struct source nothing;    /* what was, when there was nothing */
	struct ds_group root;
	struct h5_journal *journal;
	hid_t file;
	struct arena arena;
	struct codec_scratch *scratch;

	struct ds_array *shown;   /* arrays of now as the model sees them */
	struct ds_dim *shown_dims; /* and dimensions: unlimited where they are so in the file */
	struct source view;       /* `now` with them */
	struct plan *plans;
	struct nc_model *m;
	struct nc_builder b;      /* addresses of groups, arrays and scales of the model */
	struct nc_filters filters;

	struct hdf5_sink_array *arrays; /* now's */
	uint32_t *group_was;      /* of now's groups */
	uint32_t *real_array;     /* of was's arrays: those of real */
	uint32_t *real_group;     /* the same of groups */
	bool *shared;             /* of real's arrays: has other names */
	struct hdf5_sink_dim *dims; /* the model's */
	int32_t next_id;          /* netCDF's number for the next dimension; -1: there are none */

	struct hdf5_sink_move *moves;
	size_t n_moves, c_moves;
	bool sorted;              /* moves are in order */
	struct hdf5_sink_list scales; /* whose REFERENCE_LIST has to be looked at */
	struct hdf5_sink_list users;  /* whose DIMENSION_LIST has to be looked at */

	uint32_t open[SINK_OPEN_MAX]; /* arrays whose datasets are open */
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

/* hdf5_sink_enter - h5_enter, with the library's words kept for hdf5_sink_library, which records
 * "<what>: <its reason>" and returns -EIO. */
void hdf5_sink_enter(void);
int hdf5_sink_library(struct err *e, const char *what);
/* hdf5_sink_fail - record the library's reason for an object of `now` (array: DS_NONE for a group),
 * or that of the driver below it. Returns -EIO, or the driver's. */
int hdf5_sink_fail(struct h5_sink *s, uint32_t group, uint32_t array, struct err *e);
/* h5s_err_prefix_path - put the path of an object of `now` in front of what e says. Returns rc. */
int h5s_err_prefix_path(const struct h5_sink *s, uint32_t group, uint32_t array, int rc,
			struct err *e);
int hdf5_sink_list_add(struct hdf5_sink_list *l, uint64_t addr);

/* hdf5_sink_attrs_held - whether a model has all attributes of an object, under their names.
 * Returns 0; -EOPNOTSUPP, -EINVAL with the first that it has not. */
int hdf5_sink_attrs_held(const struct nc_model *m, uint32_t group, uint32_t array,
			 struct err *e) NZ_MUST_USE;

/* ---- sink.c ---- */

int hdf5_sink_file_open(struct h5_sink *s, struct err *e) NZ_MUST_USE;
/* hdf5_sink_file_commit - no id of it is open but the file's own: all of it becomes the file. */
int hdf5_sink_file_commit(struct h5_sink *s, int (*gate)(void *arg, struct err *e), void *arg,
			  struct err *e) NZ_MUST_USE;
void hdf5_sink_file_close(struct h5_sink *s);
/* hdf5_sink_file_reason - why the driver failed; 0: it did not. */
int hdf5_sink_file_reason(const struct h5_sink *s, struct err *e);

/* ---- match.c ---- */

/* hdf5_sink_match - which group, array and dimension of `to` has the path of each in `from`;
 * DS_NONE: none has. Lists with room for all of from's; NULL: not asked. */
int hdf5_sink_match(const struct dataset *from, const struct dataset *to, uint32_t *groups,
		    uint32_t *arrays, uint32_t *dims, struct err *e) NZ_MUST_USE;
/* hdf5_sink_begin - all that is known before anything is changed. */
int hdf5_sink_begin(struct h5_sink *s, struct err *e) NZ_MUST_USE;

/* ---- links.c ---- */

/* hdf5_sink_link - the link of a group that leads to the object at addr; `guess` is tried first.
 * The name is new (free). Returns 0; -ENOENT. */
int hdf5_sink_link(hid_t group, uint64_t addr, const char *guess, char **ret);
/* hdf5_sink_object - open what is at an address. New id; -1. */
hid_t hdf5_sink_object(struct h5_sink *s, uint64_t addr);
/* hdf5_sink_moved - record that an object is gone (to: HADDR_UNDEF) or another one; held is
 * taken. */
int hdf5_sink_moved(struct h5_sink *s, uint64_t from, uint64_t to, hid_t held);
/* h5s_current_address - where the object that was at an address is; HADDR_UNDEF: gone. */
uint64_t h5s_current_address(struct h5_sink *s, uint64_t addr);
/* hdf5_sink_relink - a link gets another name, and maybe group. Returns 0 or -1. */
int hdf5_sink_relink(hid_t from, const char *link, hid_t to, const char *name);
/* hdf5_sink_links_one - whether one link leads to an object. */
bool hdf5_sink_links_one(hid_t obj);

/* ---- objects.c ---- */

int hdf5_sink_remove_array(struct h5_sink *s, uint32_t array, struct err *e);
int hdf5_sink_remove_group(struct h5_sink *s, uint32_t group, struct err *e);
int hdf5_sink_add_group(struct h5_sink *s, uint32_t group, struct err *e);
int hdf5_sink_add_array(struct h5_sink *s, uint32_t array, const struct sink_new *how,
			struct err *e);
int hdf5_sink_rename_array(struct h5_sink *s, uint32_t was, uint32_t now, struct err *e);
/* hdf5_sink_dim_only - whether a dataset is a dimension without a variable. */
bool hdf5_sink_dim_only(hid_t set);
/* hdf5_sink_type_ready - make the named type of the model and those that it needs; DS_NONE:
 * nothing. */
int hdf5_sink_type_ready(struct h5_sink *s, uint32_t type, struct err *e) NZ_MUST_USE;
/* h5s_require_in_file - an array of now that is in the file and can be written. Returns 0;
 * -EOPNOTSUPP. */
int h5s_require_in_file(struct h5_sink *s, uint32_t array, struct err *e) NZ_MUST_USE;

/* ---- dims.c, dimension_lists.c ---- */

int hdf5_sink_dims(struct h5_sink *s, struct err *e);
/* h5s_note_references - an object is about to go or to be made again: remember whose lists name
 * it. */
int h5s_note_references(struct h5_sink *s, hid_t obj);
/* h5s_dimension_lists - bring all lists in line. */
int h5s_dimension_lists(struct h5_sink *s, struct err *e) NZ_MUST_USE;
/* hdf5_sink_sweep - scales without a variable that nobody uses any more, and `now` does not
 * have. */
int hdf5_sink_sweep(struct h5_sink *s, struct err *e) NZ_MUST_USE;

/* ---- recreate.c ---- */

int hdf5_sink_resize(struct h5_sink *s, uint32_t array, struct err *e);
/* hdf5_sink_remake_fill - an array without chunks gets another fill value. */
int hdf5_sink_remake_fill(struct h5_sink *s, uint32_t array, const uint8_t *fill,
			  struct err *e);
/* hdf5_sink_scale_resize - a scale without a variable gets another length. */
int hdf5_sink_scale_resize(struct h5_sink *s, uint32_t dim, struct err *e) NZ_MUST_USE;

/* ---- attrs.c ---- */

int hdf5_sink_set_attr(struct h5_sink *s, uint32_t group, uint32_t array,
		       const struct ds_attr *a, struct err *e);
int hdf5_sink_remove_attr(struct h5_sink *s, uint32_t group, uint32_t array, const char *name,
			  struct err *e);
/* hdf5_sink_attrs_copy - all attributes of an object to another, but for those in a NULL-ended
 * list. */
int hdf5_sink_attrs_copy(hid_t from, hid_t to, const char *const *without);

/* ---- chunks.c ---- */

/* hdf5_sink_dataset - the dataset of an array, open, with all that is known of it. Borrowed until
 * the next call. Returns 0. */
int hdf5_sink_dataset(struct h5_sink *s, uint32_t array, hid_t *ret, struct err *e) NZ_MUST_USE;
/* hdf5_sink_forget - it is another object now: close it and ask again. */
void hdf5_sink_forget(struct h5_sink *s, uint32_t array);
int hdf5_sink_target(struct h5_sink *s, uint32_t array, struct sink_array *ret, struct err *e);
int hdf5_sink_put(struct h5_sink *s, uint32_t array, uint64_t linear,
		  const struct sink_chunk *c, struct err *e);
int hdf5_sink_drop(struct h5_sink *s, uint32_t array, uint64_t linear, struct err *e);

#endif
