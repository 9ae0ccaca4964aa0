/* concat_int.h - shared by join*.c.
 *
 * What is known of a member without opening it is its `join_member`: which file it is, how long it
 * is along the dimension, the values of its coordinate, and the *form* of each of its joined
 * arrays: all that joining has to know of an array, as bytes. Arrays of the same form are
 * interchangeable; 10,000 files have a handful of forms. The index file is members and forms. */
#ifndef TRANSLATE_CONCAT_CONCAT_INT_H
#define TRANSLATE_CONCAT_CONCAT_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/cursor.h"
#include "translate/concat/cf_pack_int.h"
#include "translate/concat/cf_time_int.h"
#include "translate/chunkio/chunkio.h"
#include "translate/concat/concat.h"

#define JOIN_NONE UINT32_MAX
#define JOIN_LISTED 64      /* members, at most, of which all chunks are located for a list */
#define JOIN_BLOB_MEMBER ((uint32_t)1 << 31) /* a blob of a member that may be closed any time */

/* ---- forms ---- */

/* join_form - one array of a member. Everything points into `bytes` or the arena. */
struct join_form {
	const uint8_t *bytes;   /* as join_describe made them; n_bytes */
	size_t n_bytes;
	uint32_t next;          /* of the same hash; JOIN_NONE: none */
	const char *path;       /* "/g/v" */
	struct dtype type;      /* kind, byte order, size; of compounds no fields */
	uint32_t rank, axis;    /* axis: which is the dimension that is joined along */
	const uint64_t *shape, *chunk;
	const char *const *dims;
	enum ds_access access;
	bool uniform, unreadable;
	struct slice type_bytes, chain, fill; /* fill: presented bytes, or a text */
	uint32_t n_attrs;
	const struct ds_attr *attrs; /* those that have a say: units, scale_factor ... */
	const char *units, *calendar, *grid_mapping; /* of them; NULL: not there, or no text */
};

/* join_forms - all that there are, each once. */
struct join_forms {
	struct arena arena;
	struct join_form *v;
	size_t n, cap;
	uint32_t *heads;        /* n_heads, a power of two: chains by hash */
	size_t n_heads;
};

int join_forms_init(struct join_forms *f, uint64_t max_bytes, struct err *e) NZ_MUST_USE;
void join_forms_release(struct join_forms *f);

/* join_describe - append the form of an array to b. Returns its axis, or JOIN_NONE when it has no
 * dimension of that name; *ret_twice: it has more than one. */
uint32_t join_describe(const struct dataset *ds, uint32_t array, const char *dim, struct buf *b,
		       bool *ret_twice);

/* join_bounded_by - the array that names this one as its bounds (CF 7.1, 7.4); JOIN_NONE: none. */
uint32_t join_bounded_by(const struct dataset *ds, uint32_t array);

/* join_intern - the number of the form with these bytes, which may be hostile. Returns 0; -EBADMSG
 * they are no form; -ENOMEM, -ERANGE. */
int join_intern(struct join_forms *f, const uint8_t *bytes, size_t n, uint32_t *ret,
		struct err *e) NZ_MUST_USE;

/* ---- members ---- */

/* join_id - which version of a file it is. */
struct join_id {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
	bool dir;               /* its id says nothing of what is in it */
};

struct join_member {
	char *path;
	struct join_id id;
	bool known;             /* the rest holds for id */
	bool young;             /* it may have been written after that with the same id */
	uint64_t len, start;    /* elements along the dimension; start: once they are in order */
	uint32_t n_forms;
	uint32_t *forms;        /* of joined arrays, ascending by path; owned */
	uint32_t coord_form;    /* of the coordinate, one of forms; JOIN_NONE: none is kept */
	uint8_t *coord;         /* its presented bytes, len elements; owned */
	size_t n_coord;
	uint64_t others;        /* digest of the other variables; 0 unless they have to be equal */
	long double first, last; /* of the coordinate, in the units of the first member */
	uint32_t rank;          /* place in the order of names */
};

void join_id_of(const struct stat *st, struct join_id *ret);
bool join_id_same(const struct join_id *a, const struct join_id *b);
void join_member_release(struct join_member *m);
void join_members_free(struct join_member *v, size_t n);

struct join;
/* join_list - paths of the members in natural order; *ret is new. Also those that cannot be opened:
 * whoever opens them says why. -ENOENT: none. */
int join_list(const struct join *j, struct join_member **ret, size_t *ret_n,
	      struct err *e) NZ_MUST_USE;
/* join_natural - a < b as people order them: "f2" before "f10". <0, 0, >0. */
int join_natural(const char *a, const char *b);

/* ---- the join ---- */

/* join_conv - how elements of a member become those that are presented: unpacked, then counted in
 * the other units of time, then as numbers of the other type. */
struct join_conv {
	bool same;                    /* nothing is done */
	bool swap;                    /* nothing but another byte order */
	const struct cf_pack *unpack; /* NULL: elements are as they are */
	const struct cf_shift *shift; /* NULL: as the units are */
	struct dtype from, to;        /* from: as the member has them */
};

/* join_part - a form that members have one array in. */
struct join_part {
	uint32_t form;
	struct join_conv conv;
	bool passes;            /* stored chunks mean the same under the joined array's chain */
	bool absent;            /* what was never written reads as the joined array's fill value */
};

/* join_goal - what one joined array will be; made of the forms that members have it in. */
struct join_goal {
	struct dtype type;
	bool unpack;            /* numbers without scale and offset, NaN where one is missing */
	const char *units;      /* of time; NULL: it is no time, or nothing is converted */
	const char *calendar;   /* with it; NULL: none is said */
	bool other_units;       /* they are not the first member's */
};

/* join_array - one array of the joined dataset. */
struct join_array {
	bool joined;            /* else it is the first member's */
	uint32_t axis;
	bool aligned;           /* a chunk is one of a member; else it is made of pieces */
	bool coord;             /* its values are known without opening members */
	uint32_t slot;          /* place in join_member.forms */
	struct join_goal goal;
	uint32_t n_parts;
	struct join_part *parts; /* ascending by form */
	uint8_t *values;        /* coord: of the whole array; owned */
};

/* join_open_member - a member that is open. */
struct join_opened {
	struct source *source;
	struct plan *plans;
	struct chunkio *io;     /* all arrays as elements */
	uint32_t *arrays;       /* for each array of the join which of this member; JOIN_NONE */
};

enum join_state { JOIN_CLOSED, JOIN_MOVING, JOIN_OPEN };

struct join_slot {
	enum join_state state;  /* lock */
	uint32_t users;         /* lock */
	uint64_t used;          /* lock: when */
	struct join_opened at;
};

struct join {
	struct source base;
	const struct source_ops *const *formats;
	size_t n_formats;
	char *pattern;
	char *dim;
	char *index_file;                 /* NULL: none */
	struct join_options opts;         /* what it points to is the join's own */
	struct source_options source_opts;
	const struct source_ops *format;  /* the first's */
	struct join_forms forms;
	struct join_member *members;      /* in order */
	size_t n_members;
	struct join_array *arrays;        /* as ds.arrays */
	struct chunkio_shared *shared;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct join_slot *slots;          /* one a member */
	uint32_t *open_list;              /* lock: members that are open; n_open */
	uint32_t n_open, cap_open;
	uint64_t clock;                   /* lock */
	atomic_bool stale;                /* a member was found changed */
	struct source *first;             /* member 0, open as long as the join */
	size_t poll_at, dir_at, file_at;  /* the watcher's: which member is looked at next */
	struct timespec folder_time;      /* the watcher's */
	bool index_dirty;                 /* the index file does not say what is known */
	uint64_t poll_set;                /* digest of what is joined */
	uint64_t seen_set;                /* the watcher's: of what was matched the last time */
	uint64_t refused_set;             /* the watcher's: such a set could not be joined */
};

static inline struct join *join_of(struct source *s)
{
	return CONTAINER_OF(s, struct join, base);
}

/* join_name - what a message calls a member: its path, or the end of a long one. */
const char *join_name(const char *path);

/* join_scan - find out of all members that are not known. */
int join_scan(struct join *j, struct err *e) NZ_MUST_USE;
/* join_index_load - mark as known what the index file knows; join_index_save. What is wrong with
 * the file is not said: it is made again. */
void join_index_load(struct join *j);
void join_index_save(struct join *j);

/* join_index_drop - what the file says is not so. */
void join_index_drop(struct join *j);
/* join_index_parse - false: it is damaged, and some of it may have been taken over. */
bool join_index_parse(struct join *j, const uint8_t *data, size_t len);

/* join_coord_of - the form of a member's coordinate: of variables of numbers with the dimension's
 * name and no other dimension, that with the shortest path; JOIN_NONE: there is none, or it is not
 * as long as the dimension. */
uint32_t join_coord_of(const struct join *j, const struct join_member *m);

/* join_order - members into order, their places along the dimension, *ret_total elements. */
int join_order(struct join *j, uint64_t *ret_total, struct err *e) NZ_MUST_USE;
/* join_model - the dataset of member 0, which is open as j->first, and all others. */
int join_model(struct join *j, uint64_t total, struct err *e) NZ_MUST_USE;

/* join_decide - the goal of the forms v[0] .. v[n-1], v[0] being the first member's, and how each
 * becomes it. like: units of time are its; NULL: the first's, or those in which whole numbers
 * stay whole.
 * Returns 0; -EINVAL they cannot be joined, *ret_at says which form is in the way. */
int join_decide(struct arena *arena, const struct join_form *const *v, size_t n,
		const struct join_goal *like, struct join_goal *ret, struct join_conv *ret_convs,
		size_t *ret_at, struct err *e) NZ_MUST_USE;

/* join_convert - n elements; in and out do not overlap. Returns 0; -EBADMSG a number has no
 * counterpart, or none in the type. */
int join_convert(const struct join_conv *c, const uint8_t *in, uint8_t *out, size_t n,
		 struct err *e) NZ_MUST_USE;

/* join_value_at - element i as a number in the units that conv leads to. NaN: it is missing. */
long double join_value_at(const struct join_conv *c, const uint8_t *in, uint64_t i);

/* join_box - copy a box of elements between two blocks in C order. lens: its lengths; *_at: where
 * it begins in each; *_dims: the lengths of each block; rank entries. */
void join_box(uint32_t rank, size_t elem, const uint64_t *lens, const uint8_t *in,
	      const uint64_t *in_dims, const uint64_t *in_at, uint8_t *out,
	      const uint64_t *out_dims, const uint64_t *out_at);

/* join_copy_model - the first member's model as that of the join, to be changed. join_attrs - an
 * array's attributes as its goal has them. Both in the join's arena. */
int join_copy_model(struct join *j, struct err *e) NZ_MUST_USE;
int join_attrs(struct join *j, struct ds_array *a, const struct join_goal *goal,
	       struct err *e) NZ_MUST_USE;
/* join_note - one line about the joined dataset. */
int join_note(struct join *j, struct err *e, const char *fmt, ...) NZ_PRINTF(3, 4);

/* join_member_at - the member that has element `at` along the dimension. */
uint32_t join_member_at(const struct join *j, uint64_t at);
const struct join_part *join_part_of(const struct join *j, uint32_t array, uint32_t member);

/* join_verify - whether an open member's joined arrays have the forms that are known of it. */
int join_verify(struct join *j, const struct join_member *m, struct source *s,
		struct err *e) NZ_MUST_USE;

/* join_take - a member, opened if it is not; join_give it back. Returns 0; -ESTALE it is not what
 * was joined any more. */
int join_take(struct join *j, uint32_t member, const struct join_opened **ret,
	      struct err *e) NZ_MUST_USE;
void join_give(struct join *j, uint32_t member);
/* join_checked - give a member back after rc came of it: bytes of a member that changed are neither
 * good nor bad. Returns rc; -errno when it changed, and then the join is stale. */
int join_checked(struct join *j, uint32_t member, const struct join_opened *at, int rc,
		 struct err *e) NZ_MUST_USE;
void join_close_members(struct join *j);

/* join_set_digest - of the paths and identities of a set of files, in whatever order. */
uint64_t join_set_digest(const struct join_member *v, size_t n);

/* join_has_dim - whether an array has a dimension of that name. */
bool join_has_dim(const struct dataset *ds, uint32_t array, const char *dim);
/* join_others_of - the digest of a member's variables without the dimension. */
int join_others_of(const struct join *j, struct source *s, uint64_t *ret,
		   struct err *e) NZ_MUST_USE;
/* join_vlen_parse - the n elements of a body that frame_vlen_check has looked at. */
void join_vlen_parse(const struct buf *body, struct ds_text *out, uint64_t n);

/* join_others_check - where other variables have to be equal: that they are. */
int join_others_check(struct join *j, struct err *e) NZ_MUST_USE;

/* join_poll - as source_poll. */
int join_poll(struct source *s, struct err *e);

/* join_new - as join_open, without counting it among open sources: also to find out whether what a
 * pattern names now can be joined. */
int join_new(const struct source_ops *const *formats, size_t n, const char *pattern,
	     const struct join_options *opts, struct join **ret, struct err *e) NZ_MUST_USE;
void join_free(struct join *j);

int join_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		struct err *e);
int join_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e);
int join_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		    struct err *e);
int join_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		   struct err *e);
int join_read_stored(struct source *s, uint32_t array, uint64_t linear,
		     const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		     struct err *e);
int join_place(struct source *s, uint32_t array, uint64_t linear, const struct chunk_ref *ref,
	       struct chunk_place *ret, struct err *e);

#endif
