/* diff_int.h - shared by the parts of push: what goes with what (match.c), chunks on the
 * same grid (chunks.c) and on another (regrid.c), how new arrays are stored
 * (policy.c). */
#ifndef TRANSLATE_DIFF_DIFF_INT_H
#define TRANSLATE_DIFF_DIFF_INT_H

#include "translate/diff/diff.h"

enum push_state {
	PUSH_NEW,
	PUSH_SAME,     /* was there, with the same shape and the same form */
	PUSH_RESIZED,  /* the same, but for its shape */
	PUSH_MOVED,    /* was there under another name, and nothing in it was touched */
};

/* push_array - of an array of `now`. */
struct push_array {
	uint32_t was;             /* DS_NONE when it is new */
	enum push_state state;
	struct codec_quant quant; /* NEW: what is done to its elements first */
};

struct push {
	const struct push_job *job;
	const struct dataset *was, *now;  /* was: NULL when nothing was there */
	struct push_report *report;
	uint32_t *group_was;         /* of each group of now; DS_NONE: new. The root never is */
	uint32_t *group_now;         /* of each group of was; DS_NONE: gone */
	uint32_t *order, *was_order; /* groups, parents before children */
	uint32_t n_order, n_was_order;
	struct push_array *arrays;   /* of now */
	uint32_t *array_now;         /* of each array of was; DS_NONE: gone */
	bool shaped;                 /* something came, went or has another name or shape */
	bool begun;                  /* the sink */
	bool changed;                /* there is something to commit */
	struct arena arena;          /* of how one new array is stored */
	struct buf bytes, vlen;      /* a chunk */
};

/* push_begin - the sink is begun, once. push_call - the same, before every call that changes
 * something. */
int push_begin(struct push *p, struct err *e) NZ_MUST_USE;
int push_call(struct push *p, struct err *e) NZ_MUST_USE;

/* ---- match.c ---- */

/* push_match - fill groups, arrays and their opposites. Returns 0; -ENOMEM. */
int push_match(struct push *p, struct err *e) NZ_MUST_USE;
/* push_dims_differ - whether the sink has to look at dimensions. */
int push_dims_differ(const struct push *p, bool *ret, struct err *e) NZ_MUST_USE;
/* push_form_same - whether two arrays are stored alike but for their shapes: elements, rank, chunk
 * lengths, filters, fill value. */
bool push_form_same(const struct ds_array *a, const struct ds_array *b);

/* ---- attrs.c ---- */

/* push_attrs - all attributes of all groups and arrays that are not new, and of new groups. */
int push_attrs(struct push *p, struct err *e) NZ_MUST_USE;
/* push_values_same - n elements of a type with the same value, NaN equal to NaN. */
bool push_values_same(const struct dtype *t, const uint8_t *a, const uint8_t *b, uint64_t n);
bool push_types_same(const struct dtype *a, const struct dtype *b);

/* ---- chunks.c ---- */

/* push_chunks - those of an array of now. */
int push_chunks(struct push *p, uint32_t array, struct err *e) NZ_MUST_USE;
/* push_refuse - what comes of a chunk that gave rc: 0 it is left out; else the push fails so. */
int push_refuse(struct push *p, uint32_t array, uint64_t linear, int rc, struct err *why,
		struct err *e);
/* push_elements - the elements of a chunk that is there, into p->bytes or p->vlen: quantised where
 * that is wanted. */
int push_elements(struct push *p, uint32_t array, uint64_t linear, struct buf *out,
		  struct err *e) NZ_MUST_USE;
/* push_each - call fn for every chunk of now that may have to be pushed. fn returns 0 or an error
 * that ends it. */
typedef int push_chunk_fn(void *arg, uint64_t linear, struct err *e);
int push_each(struct push *p, uint32_t array, push_chunk_fn *fn, void *arg,
	      struct err *e) NZ_MUST_USE;

/* ---- regrid.c ---- */

/* push_regrid - the chunks of an array that the target stores in others: chunk is rank entries. */
int push_regrid(struct push *p, uint32_t array, const uint64_t *chunk,
		struct err *e) NZ_MUST_USE;

/* ---- policy.c ---- */

/* push_policy_new - how a new array is to be stored, in p->arena, and its quantisation. Returns 0;
 * -ENOMEM. */
int push_policy_new(struct push *p, uint32_t array, struct sink_new *ret,
		    struct err *e) NZ_MUST_USE;

#endif
