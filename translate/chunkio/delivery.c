/* SPDX-License-Identifier: BSD-3-Clause */
/* delivery.c - decides; reads nothing and locks nothing. A size given here is exact, because a
 * kernel shows it before any byte of the chunk has been looked at. */
#include "translate/chunkio/delivery.h"

#include <errno.h>
#include <inttypes.h>


static uint32_t all_filters(const struct ds_array *a)
{
	return a->chain.n >= 32 ? UINT32_MAX : ((uint32_t)1 << a->chain.n) - 1;
}

uint32_t delivery_skipped(const struct ds_array *a, const struct chunk_ref *ref)
{
	return ref->filter_mask & all_filters(a);
}

bool delivery_plain(const struct ds_array *a, const struct chunk_ref *ref)
{
	return delivery_skipped(a, ref) == all_filters(a);
}

int delivery_bad_length(uint64_t got, uint64_t want, struct err *e)
{
	return err_set(e, -EBADMSG, "stored length %" PRIu64 " differs from %" PRIu64 " bytes",
		       got, want);
}

/* range_elements - stored elements without a filter, then zeros up to a whole chunk. */
static int range_elements(const struct ds_array *a, uint64_t stored, struct delivery *w,
			  struct err *e)
{
	uint64_t whole;

	if (ckd_add(&whole, stored, w->ref.pad) || whole != a->chunk_bytes)
		return delivery_bad_length(stored, a->chunk_bytes, e);
	w->kind = DELIVER_RANGE;
	w->file_len = stored;
	w->size = whole;
	return 0;
}

/* framed - an odd chunk of a passed array: decoded, then encoded without compressing. */
static int framed(const struct ds_array *a, const struct plan *p, struct delivery *w,
		  struct err *e)
{
	w->kind = DELIVER_MAKE;
	w->size = a->chunk_bytes;
	if (p->chain.n > 0)
		w->size = codec_chain_framed_size(&p->chain, a->chunk_bytes);
	if (w->size == 0)
		return err_set(e, -ERANGE, "a chunk of %" PRIu64 " bytes cannot be framed",
			       a->chunk_bytes);
	return 0;
}

static int short_of_trailer(const struct plan *p, const struct delivery *w, struct err *e)
{
	return err_set(e, -EBADMSG,
		       "stored length %" PRIu64 " is less than a checksum of %" PRIu32 " bytes",
		       w->ref.len, p->trailer);
}

/* wrapped - a head, then the stored bytes. */
static int wrapped(const struct ds_array *a, const struct plan *p, struct delivery *w,
		   struct err *e)
{
	struct codec_chain chain = a->chain;
	uint32_t skipped = delivery_skipped(a, &w->ref);
	uint64_t stored = w->ref.len;

	if (p->trailer > 0) {
		chain.n--;
		if (!(skipped & p->trailer_bit) &&
		    ckd_sub(&stored, stored, (uint64_t)p->trailer))
			return short_of_trailer(p, w, e);
	}
	if (w->ref.pad == 0)
		w->head_len = codec_wrap_head(&chain, skipped, a->type.size, a->chunk_bytes,
					      stored, w->head);
	if (w->head_len == 0)
		return framed(a, p, w, e);
	w->kind = DELIVER_RANGE;
	w->file_len = stored;
	w->size = w->head_len + stored; /* a head was only made where this has 31 bits */
	return 0;
}

static int delivery_pass(const struct ds_array *a, const struct plan *p, struct delivery *w,
			 struct err *e)
{
	uint32_t skipped = delivery_skipped(a, &w->ref);
	uint64_t stored = w->ref.len;

	if (w->ref.where == CHUNK_SYNTH)
		return framed(a, p, w, e);
	if (p->wrap)
		return wrapped(a, p, w, e);
	if (p->trailer > 0 && skipped == 0) {
		if (ckd_sub(&stored, stored, (uint64_t)p->trailer))
			return short_of_trailer(p, w, e);
	} else if (skipped != 0 && (p->trailer == 0 || skipped != p->trailer_bit)) {
		return framed(a, p, w, e);
	}
	if (p->chain.n == 0)
		return range_elements(a, stored, w, e);
	if (w->ref.pad != 0)
		return framed(a, p, w, e);
	w->kind = DELIVER_RANGE;
	w->file_len = stored;
	w->size = stored;
	return 0;
}

static int delivery_strings(const struct ds_array *a, const struct plan *p, struct delivery *w,
			    struct err *e)
{
	uint64_t n = 0;
	int rc;

	w->kind = DELIVER_MAKE;
	if (p->kind == PLAN_VLEN) {
		w->sized = false;
		return 0;
	}
	rc = frame_count(a, &n, e);
	return rc ? rc : frame_size(n, p->fixed_size, 0, &w->size, e);
}

int delivery_of_stored(const struct ds_array *a, const struct plan *p, struct delivery *w,
		       struct err *e)
{
	w->sized = true;
	w->head_len = 0;
	w->fill = NULL;
	if (p->kind == PLAN_PASS)
		return delivery_pass(a, p, w, e);
	if (p->kind == PLAN_VLEN || p->kind == PLAN_FIXED)
		return delivery_strings(a, p, w, e);
	w->kind = DELIVER_MAKE;
	if (p->kind == PLAN_ENCODE) {
		w->sized = false;
		return 0;
	}
	if (w->ref.where == CHUNK_RANGE && a->access == DS_STORED &&
	    delivery_plain(a, &w->ref) && p->quant.mode == CODEC_QUANT_NONE)
		return range_elements(a, w->ref.len, w, e);
	w->size = a->chunk_bytes;
	return 0;
}

void delivery_of_absent(const struct fill *f, struct delivery *w)
{
	w->kind = f->kind == FILL_FRAMED ? DELIVER_MAKE : DELIVER_FILL;
	w->sized = true;
	w->head_len = 0;
	w->size = f->size;
	w->fill = f;
}

/* One word for each thing. */

const char *plan_kind_name(enum plan_kind kind)
{
	static const char *const names[] = {
		[PLAN_PASS] = "pass",     [PLAN_DECODE] = "decode", [PLAN_VLEN] = "vlen",
		[PLAN_FIXED] = "fixed",   [PLAN_HIDE] = "hidden",   [PLAN_ERROR] = "error",
		[PLAN_ENCODE] = "encode",
	};

	return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "?";
}

static const struct {
	const char *name;
	enum metric metric;
} hows[] = {
	[TREATMENT_PASS] = {"pass", M_CHUNK_PASS},
	[TREATMENT_HEAD] = {"head", M_CHUNK_HEAD},
	[TREATMENT_FRAME] = {"frame", M_CHUNK_FRAME},
	[TREATMENT_FILL] = {"fill", M_CHUNK_FILL},
	[TREATMENT_DECODE] = {"decode", M_CHUNK_DECODE},
	[TREATMENT_ENCODE] = {"encode", M_CHUNK_ENCODE},
	[TREATMENT_VLEN] = {"vlen", M_CHUNK_VLEN},
	[TREATMENT_FIXED] = {"fixed", M_CHUNK_FIXED},
};

enum chunk_treatment chunk_treatment_of(const struct plan *p, const struct delivery *w)
{
	if (w->fill)
		return TREATMENT_FILL;
	if (w->kind == DELIVER_RANGE)
		return w->head_len > 0 ? TREATMENT_HEAD : TREATMENT_PASS;
	switch (p->kind) {
	case PLAN_ENCODE:
		return TREATMENT_ENCODE;
	case PLAN_VLEN:
		return TREATMENT_VLEN;
	case PLAN_FIXED:
		return TREATMENT_FIXED;
	case PLAN_PASS:
		return p->chain.n > 0 ? TREATMENT_FRAME : TREATMENT_DECODE;
	default:
		return TREATMENT_DECODE;
	}
}

const char *chunk_treatment_name(enum chunk_treatment how)
{
	return hows[how].name;
}

enum metric chunk_treatment_metric(enum chunk_treatment how)
{
	return hows[how].metric;
}
