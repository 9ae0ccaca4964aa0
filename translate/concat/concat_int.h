/* SPDX-License-Identifier: BSD-3-Clause */
/* concat_int.h - shared by the files of this room.
 *
 * A `concat_member` is the information on a member that is available without opening it: the file's
 * identity, its length along the dimension, the values of its coordinate, and the *form* of each of
 * its joined arrays: everything about an array that concatenation needs, as bytes. Arrays of the
 * same form are interchangeable; 10,000 files have a handful of forms. The index file holds members
 * and forms. */
#ifndef TRANSLATE_CONCAT_CONCAT_INT_H
#define TRANSLATE_CONCAT_CONCAT_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/cursor.h"
#include "base/core/map.h"
#include "base/os/lock.h"
#include "translate/concat/cf_pack_int.h"
#include "translate/concat/cf_time_int.h"
#include "translate/chunkio/chunkio.h"
#include "translate/concat/concat.h"
#include "translate/model/value.h"

#define CONCAT_NONE UINT32_MAX
#define CONCAT_LISTED 64 /* members, at most, of which all chunks are located for a list */
#define CONCAT_BLOB_MEMBER                                                                     \
	((uint32_t)1 << 31) /* a blob of a member that may be closed any time */

/* ---- forms ---- */

/* concat_form - one array of a member. All pointers lead into `bytes` or the arena. */
struct concat_form {
	const uint8_t *bytes; /* as concat_describe made them; n_bytes */
	size_t n_bytes;
	const char *path;       /* "/g/v" */
	struct dtype type;      /* kind, byte order, size; of compounds no fields */
	uint32_t rank, axis;    /* axis: the one of the dimension */
	const uint64_t *shape, *chunk;
	const char *const *dims;
	enum ds_access access;
	bool uniform, unreadable;
	struct slice type_bytes, chain, fill; /* fill: presented bytes, or a text */
	uint32_t n_attrs;
	const struct ds_attr *attrs; /* those that matter: units, scale_factor ... */
	const char *units, *calendar, *grid_mapping; /* of them; NULL: absent, or no string */
};

/* concat_of_numbers - the attributes that say what numbers mean. */
enum { CONCAT_OF_NUMBERS = 7 };
extern const char *const concat_of_numbers[CONCAT_OF_NUMBERS];

/* concat_forms - all forms, each once. */
struct concat_forms {
	struct arena arena;
	struct concat_form *v;
	size_t n, cap;
	struct map by_bytes;
};

void concat_forms_init(struct concat_forms *f, uint64_t max_bytes);
void concat_forms_release(struct concat_forms *f);

/* concat_describe - append the form of an array to b. Returns its axis, or CONCAT_NONE when it has
 * no dimension of that name; *ret_twice: it has more than one. */
uint32_t concat_describe(const struct dataset *ds, uint32_t array, const char *dim,
			 struct buf *b, bool *ret_twice);

/* concat_bounded_by - the array that names this one as its bounds (CF 7.1, 7.4); CONCAT_NONE:
 * none. */
uint32_t concat_bounded_by(const struct dataset *ds, uint32_t array);

/* concat_intern - the number of the form with these bytes, which may be hostile. Returns 0;
 * -EBADMSG they are no form; -ENOMEM, -ERANGE. */
int concat_intern(struct concat_forms *f, const uint8_t *bytes, size_t n, uint32_t *ret,
		  struct err *e) NZ_MUST_USE;

/* concat_put_blob - append bytes with their number; a text with its NUL, so that it can be used
 * where it is. concat_get_*: what these appended, borrowed; bad bytes mark s, and give nothing. */
void concat_put_blob(struct buf *b, const void *p, size_t n);
void concat_put_text(struct buf *b, const char *s);
struct slice concat_get_blob(struct slice *s);
static inline bool concat_blob_same(const struct slice *a, const struct slice *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->p, b->p, a->len) == 0);
}
const char *concat_get_text(struct slice *s);

/* ---- members ---- */

/* concat_id - identifies a version of a file. */
enum { ID_DEV, ID_INO, ID_SIZE, ID_MTIME, ID_MTIME_NS, ID_CTIME, ID_CTIME_NS, ID_PARTS };
struct concat_id {
	uint64_t v[ID_PARTS];   /* of stat */
	bool dir;               /* its id does not reflect its contents */
};

struct concat_member {
	char *path;
	struct concat_id id;
	bool known;             /* the rest holds for id */
	bool young;             /* it may have been written again without a change of the id */
	uint64_t len, start;    /* elements along the dimension; start: once they are in order */
	uint32_t n_forms;
	uint32_t *forms;        /* of joined arrays, ascending by path; owned */
	uint32_t coord_form;    /* of the coordinate, one of forms; CONCAT_NONE: none is kept */
	uint8_t *coord;         /* its presented bytes, len elements; owned */
	size_t n_coord;
	uint64_t others;        /* digest of the other variables; 0 unless they have to be equal */
	long double first, last; /* of the coordinate, in the units of the first member */
	uint32_t rank;          /* place in the order of names */
};

void concat_id_of(const struct stat *st, struct concat_id *ret);
bool concat_id_same(const struct concat_id *a, const struct concat_id *b);
/* concat_member_forget - all that is known of a member but its path, identity and rank. */
void concat_member_forget(struct concat_member *m);
void concat_members_free(struct concat_member *v, size_t n);

struct concat;
/* concat_list - paths of the members in natural order; *ret is new. Includes members that cannot be
 * opened: opening them reports the reason. -ENOENT: none. */
int concat_list(const struct concat *j, struct concat_member **ret, size_t *ret_n,
		struct err *e) NZ_MUST_USE;
/* concat_natural - compare names as people order them: "f2" before "f10". <0, 0, >0. */
int concat_natural(const char *a, const char *b);
int concat_by_name(const void *a, const void *b); /* of members, for qsort */

/* ---- the join ---- */

/* concat_conv - how elements of a member become presented ones: unpacked, then converted to other
 * units of time, then to numbers of another type. */
struct concat_conv {
	bool same;                    /* nothing is done */
	bool swap;                    /* nothing but another byte order */
	const struct cf_pack *unpack; /* NULL: elements are as they are */
	const struct cf_shift *shift; /* NULL: as the units are */
	struct dtype from, to;        /* from: as the member has them */
};

/* concat_part - a form in which members have one array. */
struct concat_part {
	uint32_t form;
	struct concat_conv conv;
	bool passes;            /* stored chunks mean the same under the joined array's chain */
	bool absent;            /* never-written chunks read as the joined array's fill value */
};

/* concat_goal - the target of one joined array, made of its forms in the members. */
struct concat_goal {
	struct dtype type;
	bool unpack;            /* numbers without scale and offset, NaN where one is missing */
	const char *units;      /* of time; NULL: it is no time, or is not converted */
	const char *calendar;   /* with it; NULL: none is stated */
	bool other_units;       /* they are not the first member's */
};

/* concat_array - one array of the joined dataset. */
struct concat_array {
	bool joined;            /* else it is the first member's */
	uint32_t axis;
	bool aligned;           /* a chunk is one of a member; else it is made of pieces */
	bool coord;             /* its values are available without opening members */
	uint32_t slot;          /* place in concat_member.forms */
	struct concat_goal goal;
	uint32_t n_parts;
	struct concat_part *parts; /* ascending by form */
	uint8_t *values;        /* coord: of the whole array; owned */
};

/* concat_opened - a member that is open. */
struct concat_opened {
	struct source *source;
	struct plan *plans;
	struct chunkio *io;     /* all arrays as elements */
	uint32_t *arrays; /* for each array of the join which of this member; CONCAT_NONE */
};

enum concat_state { CONCAT_CLOSED, CONCAT_MOVING, CONCAT_OPEN };

struct concat_slot {
	enum concat_state state; /* lock */
	uint32_t users;         /* lock */
	uint64_t used;          /* lock: when */
	struct concat_opened at;
};

struct concat {
	struct source base;
	const struct source_ops *const *formats;
	size_t n_formats;
	char *pattern;
	char *dim;
	char *index_file;                 /* NULL: none */
	struct concat_options opts;       /* the data it points to are owned by the concatenation */
	struct source_options source_opts;
	const struct source_ops *format;  /* the first's */
	struct concat_forms forms;
	struct concat_member *members; /* in order */
	size_t n_members;
	struct concat_array *arrays; /* as ds.arrays */
	struct chunkio_shared *shared;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct concat_slot *slots;        /* one a member */
	uint32_t *open_list;              /* lock: members that are open; n_open */
	uint32_t n_open, cap_open;
	uint64_t clock;                   /* lock */
	atomic_bool stale;                /* a member was found changed */
	struct source *first;             /* member 0, open as long as the concatenation */
	size_t poll_at, dir_at, file_at;  /* the watcher's: the member to check next */
	struct timespec folder_time;      /* the watcher's */
	bool index_dirty;                 /* the index file lacks some information */
	uint64_t poll_set;                /* digest of the joined set of files */
	uint64_t seen_set;                /* the watcher's: of the set that matched the last time */
	uint64_t refused_set;             /* the watcher's: a set that cannot be joined */
};

static inline struct concat *concat_of(struct source *s)
{
	return CONTAINER_OF(s, struct concat, base);
}

/* concat_name - a member's name for messages: its path, or the end of a long one. */
const char *concat_name(const char *path);

/* concat_scan - collect the information on all members that are not known. */
int concat_scan(struct concat *j, struct err *e) NZ_MUST_USE;
/* concat_index_load - mark the members that the index file knows as known; concat_index_save. A
 * damaged index is not reported: it is written again. */
void concat_index_load(struct concat *j);
void concat_index_save(struct concat *j);

/* concat_index_drop - the index file is wrong: drop it. */
void concat_index_drop(struct concat *j);
/* concat_index_parse - false: it is damaged, and some of it may have been taken over. */
bool concat_index_parse(struct concat *j, const uint8_t *data, size_t len);

/* concat_coord_of - the form of a member's coordinate: of variables of numbers with the dimension's
 * name and no other dimension, that with the shortest path; CONCAT_NONE: there is none, or it is
 * not as long as the dimension. */
uint32_t concat_coord_of(const struct concat *j, const struct concat_member *m);

/* concat_order - sort the members, and set their positions along the dimension; *ret_total
 * elements. */
int concat_order(struct concat *j, uint64_t *ret_total, struct err *e) NZ_MUST_USE;
/* concat_model - make the dataset from member 0, which is open as j->first, and all others. */
int concat_model(struct concat *j, uint64_t total, struct err *e) NZ_MUST_USE;

/* concat_decide - the goal of the forms v[0] .. v[n-1], v[0] being the first member's, and the
 * conversion of each. like: use its units of time; NULL: the first's, or those in which whole
 * numbers stay whole. Returns 0; -EINVAL they cannot be joined, *ret_at is the form that prevents
 * it. */
int concat_decide(struct arena *arena, const struct concat_form *const *v, size_t n,
		  const struct concat_goal *like, struct concat_goal *ret,
		  struct concat_conv *ret_convs, size_t *ret_at, struct err *e) NZ_MUST_USE;

/* concat_convert - convert n elements; in and out do not overlap. Returns 0; -EBADMSG a number has
 * no counterpart, or none in the type. */
int concat_convert(const struct concat_conv *c, const uint8_t *in, uint8_t *out, size_t n,
		   struct err *e) NZ_MUST_USE;

/* concat_value_at - element i as a number in the units of the conversion. NaN: it is missing. */
long double concat_value_at(const struct concat_conv *c, const uint8_t *in, uint64_t i);

/* concat_copy_model - copy the first member's model, to be changed, into the concatenation's arena.
 * Unchanged parts are borrowed from that member, which stays open as long. */
int concat_copy_model(struct concat *j, struct err *e) NZ_MUST_USE;

/* concat_member_at - the member with element `at` along the dimension. */
uint32_t concat_member_at(const struct concat *j, uint64_t at);
const struct concat_part *concat_part_of(const struct concat *j, uint32_t array,
					 uint32_t member);

/* concat_verify - check that an open source is a member as it is recorded: its arrays along the
 * dimension have the forms of m, and there are no others. ret: NULL, or the array of each form, and
 * then there may be others. -ESTALE: they have not. */
int concat_verify(struct concat *j, const struct concat_member *m, struct source *s,
		  uint32_t *ret, struct err *e) NZ_MUST_USE;

/* concat_io - a chunkio of a source's arrays as elements, or of one of them only (CONCAT_NONE:
 * all). Elements without a fixed size and unreadable arrays are left out. *ret_plans is new and
 * outlives *ret: free it in any case. */
int concat_io(const struct concat *j, struct source *s, uint32_t only, uint64_t cache_bytes,
	      struct plan **ret_plans, struct chunkio **ret, struct err *e) NZ_MUST_USE;

/* concat_take - a member, opened if it is closed; finish with concat_give. Returns 0; -ESTALE it is
 * not the member that was joined any more. */
int concat_take(struct concat *j, uint32_t member, const struct concat_opened **ret,
		struct err *e) NZ_MUST_USE;
void concat_give(struct concat *j, uint32_t member);
void concat_close_members(struct concat *j);

/* concat_set_digest - of the paths and identities of a set of files, in whatever order. */
uint64_t concat_set_digest(const struct concat_member *v, size_t n);

/* concat_has_dim - whether an array has a dimension of that name. */
bool concat_has_dim(const struct dataset *ds, uint32_t array, const char *dim);
/* concat_others_of - the digest of a member's variables without the dimension. */
int concat_others_of(const struct concat *j, struct source *s, uint64_t *ret,
		     struct err *e) NZ_MUST_USE;
/* concat_others_check - where other variables have to be equal: that they are. */
int concat_others_check(struct concat *j, struct err *e) NZ_MUST_USE;

/* concat_poll - as source_poll. */
int concat_poll(struct source *s, struct err *e);

/* concat_new - as concat_open, without counting it among open sources: also to find out whether the
 * present matches of a pattern can be joined. */
int concat_new(const struct source_ops *const *formats, size_t n, const char *pattern,
	       const struct concat_options *opts, struct concat **ret,
	       struct err *e) NZ_MUST_USE;
void concat_free(struct concat *j);

int concat_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		  struct err *e);
int concat_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e);
int concat_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		      size_t len, struct err *e);
int concat_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e);
int concat_read_stored(struct source *s, uint32_t array, uint64_t linear,
		       const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		       struct err *e);
int concat_place(struct source *s, uint32_t array, uint64_t linear, const struct chunk_ref *ref,
		 struct store_place *ret, struct err *e);

#endif
