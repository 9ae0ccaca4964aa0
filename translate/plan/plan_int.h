/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_int.h - what the files that make plans share. */
#ifndef TRANSLATE_PLAN_PLAN_INT_H
#define TRANSLATE_PLAN_PLAN_INT_H

#include "translate/plan/plan.h"

#define PLAN_NAME_CAP 40 /* of a filter in a reason; names come from files */

/* plan_name - a filter's name, short enough for a reason; into out. */
const char *plan_name(const struct codec_spec *spec, char out[PLAN_NAME_CAP]);

/* plan_names - "shuffle, deflate" into out, cut where there is no more room. */
void plan_names(const struct codec_chain *chain, char *out, size_t cap);

/* plan_say - set the reason of a plan. */
void plan_say(struct plan *p, const char *fmt, ...) NZ_PRINTF(2, 3);

/* plan_framable - whether chunks with filters of their own can be framed, in a size that a formula
 * gives; sets the reason if not. */
bool plan_framable(const struct ds_array *a, const struct codec_chain *chain, struct plan *p);

/* plan_pass - make it a plan that passes chunks. left: the array's chain without the part that is
 * cut off; the view names it. trailer: bytes that are cut off, of the one filter that is not in
 * left. */
void plan_pass(const struct ds_array *a, const struct codec_chain *left, uint32_t trailer,
	       struct plan *p);

/* plan_bytes - bytes of the elements of one chunk in the format. */
uint64_t plan_bytes(const struct codec_array *as);

/* plan_unruled - an array that rules do not apply to: add a note for a rule that names it. Returns
 * 0; -ENOMEM. */
int plan_unruled(const struct plan_ask *ask, const char *why, struct plan *p,
		 struct err *e) NZ_MUST_USE;

/* plan_ruled - apply rules to an array that is readable and has elements of a fixed size: sets
 * p->quant, and PASS or ENCODE with all details if a rule gives it a chain. Otherwise leaves the
 * kind, and *filter is the filter to continue with. Returns 0; -ENOMEM. */
int plan_ruled(const struct plan_ask *ask, const struct codec_array *as, enum plan_filter *filter,
	       struct plan *p, struct err *e) NZ_MUST_USE;

/* plan_zarr3_stock - whether all readers of Zarr v3 know all codecs of a chain. */
bool plan_zarr3_stock(const struct codec_chain *chain);

/* plan_zarr3_wrap - the chain of Blosc that chunks of n bytes with this chain are in when they are
 * wrapped; of none when they need not be, or cannot. Returns 0; -ENOMEM. */
int plan_zarr3_wrap(struct arena *arena, const struct codec_chain *chain, size_t elem_size,
		    uint64_t n, struct codec_chain *ret, struct err *e) NZ_MUST_USE;

/* plan_zarr3_wrapped - make it a plan that passes chunks wrapped. left, trailer: as plan_pass has
 * them; blosc: what plan_zarr3_wrap gave for left. */
void plan_zarr3_wrapped(const struct ds_array *a, const struct codec_chain *left,
			uint32_t trailer, const struct codec_chain *blosc, struct plan *p);

/* plan_zarr3_passes - PASS for an array without a rule, or p->reason says why not.
 * Returns 0; -ENOMEM. */
int plan_zarr3_passes(const struct plan_ask *ask, bool keep, struct plan *p,
		      struct err *e) NZ_MUST_USE;

#endif
