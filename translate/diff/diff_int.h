/* SPDX-License-Identifier: BSD-3-Clause */
/* diff_int.h - shared by the parts of diff: matching objects (match.c), chunks on the same grid
 * (chunks.c) and on another (regrid.c), storage of new arrays (policy.c). */
#ifndef TRANSLATE_DIFF_DIFF_INT_H
#define TRANSLATE_DIFF_DIFF_INT_H

#include "translate/diff/diff.h"

enum diff_state {
	DIFF_NEW,
	DIFF_SAME,    /* existed before, with the same shape and the same form */
	DIFF_RESIZED, /* the same, but for its shape */
	DIFF_MOVED,   /* existed before under another name, and nothing in it was touched */
};

/* diff_array - of an array of `now`. */
struct diff_array {
	uint32_t was;             /* DS_NONE when it is new */
	enum diff_state state;
	struct codec_quant quant; /* NEW: quantisation that is applied to its elements first */
};

struct diff {
	const struct diff_job *job;
	const struct diff_observer *observer; /* never NULL */
	const struct dataset *was, *now;  /* was: NULL when nothing was there */
	struct diff_report *report;
	uint32_t *group_was;         /* of each group of now; DS_NONE: new. The root never is */
	uint32_t *group_now;         /* of each group of was; DS_NONE: gone */
	uint32_t *order, *was_order; /* groups, parents before children */
	uint32_t n_order, n_was_order;
	struct diff_array *arrays;   /* of now */
	uint32_t *array_now;         /* of each array of was; DS_NONE: gone */
	uint32_t *dim_was;           /* of each dimension of now the one of that path; or DS_NONE */
	bool shaped;                 /* an object was added, removed or renamed, or has another
				      * shape */
	bool begun;                  /* the sink */
	bool changed;                /* there are changes to commit */
	struct arena arena;          /* for the storage of one new array */
	struct buf bytes, vlen;      /* a chunk */
};

/* diff_begin - begin the sink, once. diff_call - the same, before every call that makes a
 * change. */
int diff_begin(struct diff *p, struct err *e) NZ_MUST_USE;
int diff_call(struct diff *p, struct err *e) NZ_MUST_USE;
/* diff_call_chunk - the same before a call for a chunk. */
int diff_call_chunk(struct diff *p, uint32_t array, uint64_t linear,
		    struct err *e) NZ_MUST_USE;

/* ---- match.c ---- */

/* diff_match - fill groups, arrays and their reverse maps. Returns 0; -ENOMEM. */
int diff_match(struct diff *p, struct err *e) NZ_MUST_USE;
/* diff_dims_differ - whether the sink has to change dimensions. */
bool diff_dims_differ(const struct diff *p);
/* diff_form_same - whether two arrays are stored alike but for their shapes: elements, rank, chunk
 * lengths, filters, fill value. */
bool diff_form_same(const struct ds_array *a, const struct ds_array *b);

/* ---- attrs.c ---- */

/* diff_attrs - update the attributes of all groups and old arrays, and set those of new groups. */
int diff_attrs(struct diff *p, struct err *e) NZ_MUST_USE;
/* diff_values_same - compare n elements of a type; NaN equals NaN. */
bool diff_values_same(const struct dtype *t, const uint8_t *a, const uint8_t *b, uint64_t n);

/* ---- chunks.c ---- */

/* diff_chunks - store the chunks of an array of `now` that may differ. */
int diff_chunks(struct diff *p, uint32_t array, struct err *e) NZ_MUST_USE;
/* diff_refuse - handle a chunk that failed with rc: 0: it is left out; else the diff fails with
 * that error. */
int diff_refuse(struct diff *p, uint32_t array, uint64_t linear, int rc, struct err *why,
		struct err *e);
/* diff_elements - read the elements of an existing chunk into p->bytes or p->vlen, quantised if the
 * array is. */
int diff_elements(struct diff *p, uint32_t array, uint64_t linear, struct buf *out,
		  struct err *e) NZ_MUST_USE;
/* diff_each - call fn for every chunk of `now` that may have to be stored. An error of fn ends the
 * loop. */
typedef int diff_chunk_fn(void *arg, uint64_t linear, struct err *e);
int diff_each(struct diff *p, uint32_t array, diff_chunk_fn *fn, void *arg,
	      struct err *e) NZ_MUST_USE;

/* ---- regrid.c ---- */

/* diff_regrid - store the chunks of an array that has another grid in the target: chunk is rank
 * entries. */
int diff_regrid(struct diff *p, uint32_t array, const uint64_t *chunk,
		struct err *e) NZ_MUST_USE;

/* ---- policy.c ---- */

/* diff_policy_new - decide how to store a new array, in p->arena, and its quantisation. Returns 0;
 * -ENOMEM. */
int diff_policy_new(struct diff *p, uint32_t array, struct sink_new *ret,
		    struct err *e) NZ_MUST_USE;

#endif
