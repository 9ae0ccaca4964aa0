/* SPDX-License-Identifier: BSD-3-Clause */
/* diff_int.h - shared by the parts of push: what goes with what (match.c), chunks on the
 * same grid (chunks.c) and on another (regrid.c), how new arrays are stored
 * (policy.c). */
#ifndef TRANSLATE_DIFF_DIFF_INT_H
#define TRANSLATE_DIFF_DIFF_INT_H

#include "translate/diff/diff.h"

enum diff_state {
	DIFF_NEW,
	DIFF_SAME,    /* was there, with the same shape and the same form */
	DIFF_RESIZED, /* the same, but for its shape */
	DIFF_MOVED,   /* was there under another name, and nothing in it was touched */
};

/* diff_array - of an array of `now`. */
struct diff_array {
	uint32_t was;             /* DS_NONE when it is new */
	enum diff_state state;
	struct codec_quant quant; /* NEW: what is done to its elements first */
};

struct diff {
	const struct diff_job *job;
	const struct dataset *was, *now;  /* was: NULL when nothing was there */
	struct diff_report *report;
	uint32_t *group_was;         /* of each group of now; DS_NONE: new. The root never is */
	uint32_t *group_now;         /* of each group of was; DS_NONE: gone */
	uint32_t *order, *was_order; /* groups, parents before children */
	uint32_t n_order, n_was_order;
	struct diff_array *arrays;   /* of now */
	uint32_t *array_now;         /* of each array of was; DS_NONE: gone */
	bool shaped;                 /* something came, went or has another name or shape */
	bool begun;                  /* the sink */
	bool changed;                /* there is something to commit */
	struct arena arena;          /* of how one new array is stored */
	struct buf bytes, vlen;      /* a chunk */
};

/* diff_begin - the sink is begun, once. diff_call - the same, before every call that changes
 * something. */
int diff_begin(struct diff *p, struct err *e) NZ_MUST_USE;
int diff_call(struct diff *p, struct err *e) NZ_MUST_USE;

/* ---- match.c ---- */

/* diff_match - fill groups, arrays and their opposites. Returns 0; -ENOMEM. */
int diff_match(struct diff *p, struct err *e) NZ_MUST_USE;
/* diff_dims_differ - whether the sink has to look at dimensions. */
int diff_dims_differ(const struct diff *p, bool *ret, struct err *e) NZ_MUST_USE;
/* diff_form_same - whether two arrays are stored alike but for their shapes: elements, rank, chunk
 * lengths, filters, fill value. */
bool diff_form_same(const struct ds_array *a, const struct ds_array *b);

/* ---- attrs.c ---- */

/* diff_attrs - all attributes of all groups and arrays that are not new, and of new groups. */
int diff_attrs(struct diff *p, struct err *e) NZ_MUST_USE;
/* diff_values_same - n elements of a type with the same value, NaN equal to NaN. */
bool diff_values_same(const struct dtype *t, const uint8_t *a, const uint8_t *b, uint64_t n);

/* ---- chunks.c ---- */

/* diff_chunks - those of an array of now. */
int diff_chunks(struct diff *p, uint32_t array, struct err *e) NZ_MUST_USE;
/* diff_refuse - what comes of a chunk that gave rc: 0 it is left out; else the push fails so. */
int diff_refuse(struct diff *p, uint32_t array, uint64_t linear, int rc, struct err *why,
		struct err *e);
/* diff_elements - the elements of a chunk that is there, into p->bytes or p->vlen: quantised where
 * that is wanted. */
int diff_elements(struct diff *p, uint32_t array, uint64_t linear, struct buf *out,
		  struct err *e) NZ_MUST_USE;
/* diff_each - call fn for every chunk of now that may have to be pushed. fn returns 0 or an error
 * that ends it. */
typedef int diff_chunk_fn(void *arg, uint64_t linear, struct err *e);
int diff_each(struct diff *p, uint32_t array, diff_chunk_fn *fn, void *arg,
	      struct err *e) NZ_MUST_USE;

/* ---- regrid.c ---- */

/* diff_regrid - the chunks of an array that the target stores in others: chunk is rank entries. */
int diff_regrid(struct diff *p, uint32_t array, const uint64_t *chunk,
		struct err *e) NZ_MUST_USE;

/* ---- policy.c ---- */

/* diff_policy_new - how a new array is to be stored, in p->arena, and its quantisation. Returns 0;
 * -ENOMEM. */
int diff_policy_new(struct diff *p, uint32_t array, struct sink_new *ret,
		    struct err *e) NZ_MUST_USE;

#endif
