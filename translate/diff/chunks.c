/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks.c - the chunks of one array: finds those that may differ, and passes them to the sink, as
 * stored if the target would store them in the same way. */
#include "translate/diff/diff_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/plan/plan.h"

#define VLEN_BYTES ((uint64_t)1 << 28) /* of elements without a fixed size, at least */
#define SLACK ((uint64_t)1 << 20)      /* that filters may add to what does not compress */

/* ---- chunks that may differ ---- */

/* was_linear - the chunk of `was` at the same place; UINT64_MAX: its grid does not have it. */
static uint64_t was_linear(const struct diff *p, uint32_t array, uint64_t linear)
{
	const uint32_t was = p->arrays[array].was;

	return was == DS_NONE
		       ? UINT64_MAX
		       : ds_chunk_in(&p->now->arrays[array], linear, &p->was->arrays[was]);
}

/* was_there - whether `was` has a chunk there, as far as is known. */
static bool was_there(struct diff *p, uint32_t array, uint64_t linear)
{
	uint64_t old = was_linear(p, array, linear);
	struct chunk_ref ref;

	return old != UINT64_MAX &&
	       (source_locate(p->job->was, p->arrays[array].was, old, &ref, NULL) < 0 ||
		ref.where != CHUNK_ABSENT);
}

/* next_there - the first chunk at or after `from` that exists in `was` or `now`. */
static int next_there(struct diff *p, uint32_t array, uint64_t from, uint64_t *ret,
		      struct err *e)
{
	const struct diff_array *x = &p->arrays[array];
	uint64_t other;
	int rc = source_next(p->job->now, array, from, ret, e);

	if ((rc < 0 && rc != -ENOENT) || x->state != DIFF_SAME)
		return rc;
	switch (source_next(p->job->was, x->was, from, &other, NULL)) {
	case 0:
		*ret = rc == 0 ? u64_min(*ret, other) : other;
		return 0;
	case -ENOENT:
		return rc;
	default:
		*ret = from; /* no information: check every chunk */
		return 0;
	}
}

/* next_of - the first chunk at or after `from` that may differ. If the array has another shape, and
 * its changes are not known, every position is checked. */
static int next_of(struct diff *p, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	const struct diff_array *x = &p->arrays[array];
	const struct diff_job *job = p->job;

	if (from >= p->now->arrays[array].n_chunks)
		return -ENOENT;
	if (x->state == DIFF_NEW)
		return source_next(job->now, array, from, ret, e);
	if (job->changed)
		return job->changed(job->arg, array, x->was, from, ret, e);
	if (x->state == DIFF_SAME)
		return next_there(p, array, from, ret, e);
	*ret = from;
	return 0;
}

/* each_grown - call fn for the chunks that exist outside the old grid. */
static int each_grown(struct diff *p, uint32_t array, diff_chunk_fn *fn, void *arg,
		      struct err *e)
{
	const struct ds_array *a = &p->now->arrays[array];
	const struct ds_array *b = &p->was->arrays[p->arrays[array].was];
	uint64_t from = 0, linear = 0;
	int rc = 0;

	/* along the first axis alone the new ones come last */
	if (a->rank > 0 && (a->rank == 1 || memcmp(a->grid + 1, b->grid + 1,
						   (a->rank - 1) * sizeof(*a->grid)) == 0))
		from = b->n_chunks;
	while (rc == 0 && from < a->n_chunks) {
		rc = source_next(p->job->now, array, from, &linear, e);
		if (rc == -ENOENT)
			return 0;
		if (rc == 0 && was_linear(p, array, linear) == UINT64_MAX)
			rc = fn(arg, linear, e);
		from = linear + 1;
	}
	return rc;
}

int diff_each(struct diff *p, uint32_t array, diff_chunk_fn *fn, void *arg, struct err *e)
{
	const struct diff_array *x = &p->arrays[array];
	uint64_t from = 0, linear = 0;
	bool known = x->state == DIFF_RESIZED && p->job->changed;
	int rc;

	for (;;) {
		rc = next_of(p, array, from, &linear, e);
		if (rc == 0 && linear < from)
			rc = err_set(e, -EINVAL,
				     "the source lists chunk %" PRIu64 " after chunk %" PRIu64,
				     linear, from);
		if (rc == 0 && linear >= p->now->arrays[array].n_chunks)
			rc = -ENOENT;
		if (rc < 0)
			break;
		if (!known || was_linear(p, array, linear) != UINT64_MAX)
			rc = fn(arg, linear, e);
		if (rc < 0)
			return rc;
		from = linear + 1;
	}
	if (rc != -ENOENT)
		return rc;
	return known ? each_grown(p, array, fn, arg, e) : 0;
}

/* ---- one chunk ---- */

int diff_refuse(struct diff *p, uint32_t array, uint64_t linear, int rc, struct err *why,
		struct err *e)
{
	const struct diff_job *job = p->job;

	if ((rc == -EBADMSG || rc == -EOPNOTSUPP || rc == -ERANGE) && job->refused &&
	    job->refused(job->arg, array, linear, why) == 0)
		return 0;
	return err_set(e, rc, "%s", why->msg);
}

/* quantise - quantise the elements in out, if the array is quantised. */
static void quantise(const struct diff *p, uint32_t array, struct buf *out)
{
	const struct ds_array *a = &p->now->arrays[array];
	const struct codec_quant *q = &p->arrays[array].quant;

	if (q->mode != CODEC_QUANT_NONE)
		codec_quantize(q, a->type.size, a->type.big_endian,
			       a->fill_defined ? a->fill : NULL, out->data,
			       out->len / a->type.size);
}

int diff_elements(struct diff *p, uint32_t array, uint64_t linear, struct buf *out,
		  struct err *e)
{
	const struct ds_array *a = &p->now->arrays[array];
	uint8_t *room;
	int rc;

	buf_clear(out);
	if (dt_is_vlen(&a->type)) {
		out->max = (size_t)u64_max(VLEN_BYTES, p->job->memory);
		return source_read_vlen(p->job->now, array, linear, out, e);
	}
	out->max = (size_t)a->chunk_bytes;
	room = buf_grow(out, (size_t)a->chunk_bytes);
	if (!room && a->chunk_bytes > 0)
		return err_nomem(e);
	rc = source_read_chunk(p->job->now, array, linear, room, (size_t)a->chunk_bytes, e);
	if (rc == 0)
		quantise(p, array, out);
	return rc;
}

/* cut_of - the number of bytes at the end of a stored chunk that the target does not store: 0, or
 * those of a checksum that comes last. UINT32_MAX: the target has other filters. */
static uint32_t cut_of(const struct ds_array *a, const struct sink_array *t)
{
	struct codec_chain left = a->chain;
	uint32_t sum;

	if (plan_chain_alike(&a->chain, &t->chain, a->type.size))
		return 0;
	sum = codec_chain_without_sum(&left);
	return sum > 0 && plan_chain_alike(&left, &t->chain, a->type.size) ? sum : UINT32_MAX;
}

/* job of one array whose chunks have the target's grid */
struct same {
	struct diff *p;
	uint32_t array, cut;
	bool stored; /* chunks may be stored as they are */
	bool masks;  /* including those that have not been through every filter */
};

/* diff_chunks_passes - whether a chunk is stored as it is. */
static bool diff_chunks_passes(const struct same *s, const struct chunk_ref *ref)
{
	const struct ds_array *a = &s->p->now->arrays[s->array];

	if (!s->stored || ref->where != CHUNK_RANGE || ref->pad > 0 || ref->len <= s->cut ||
	    ref->len > 2 * a->chunk_bytes + SLACK)
		return false;
	if (a->chain.n == 0)
		return ref->len == a->chunk_bytes;
	return ref->filter_mask == 0 || (s->masks && s->cut == 0);
}

static int put_stored(const struct same *s, uint64_t linear, const struct chunk_ref *ref,
		      struct sink_chunk *c, struct err *e)
{
	struct diff *p = s->p;
	size_t len = (size_t)ref->len - s->cut;
	uint8_t *room;

	buf_clear(&p->bytes);
	p->bytes.max = len;
	room = buf_grow(&p->bytes, len);
	if (!room)
		return err_nomem(e);
	*c = (struct sink_chunk){
		.stored = true, .filter_mask = ref->filter_mask, .p = room, .len = len};
	return source_read_stored(p->job->now, s->array, linear, ref, 0, room, len, e);
}

static int drop_one(const struct same *s, uint64_t linear, struct err *e)
{
	struct diff *p = s->p;
	int rc;

	if (!was_there(p, s->array, linear))
		return 0;
	rc = diff_call_chunk(p, s->array, linear, e);
	p->report->dropped++;
	return rc ? rc : p->job->sink->ops->drop(p->job->sink, s->array, linear, e);
}

/* diff_chunks_read_one - read an existing chunk `linear` in the form for the sink, into p->bytes or
 * p->vlen. */
static int diff_chunks_read_one(const struct same *s, uint64_t linear,
				const struct chunk_ref *ref, struct sink_chunk *c,
				struct err *e)
{
	struct diff *p = s->p;
	struct buf *out = dt_is_vlen(&p->now->arrays[s->array].type) ? &p->vlen : &p->bytes;
	int rc = p->job->ready ? p->job->ready(p->job->arg, s->array, linear, e) : 0;

	if (rc < 0)
		return rc;
	if (diff_chunks_passes(s, ref))
		return put_stored(s, linear, ref, c, e);
	rc = diff_elements(p, s->array, linear, out, e);
	*c = (struct sink_chunk){.p = out->data, .len = out->len};
	return rc;
}

static int diff_chunks_put_one(void *arg, uint64_t linear, struct err *e)
{
	const struct same *s = arg;
	struct diff *p = s->p;
	struct err why = ERR_INIT;
	struct sink_chunk c = {0};
	struct chunk_ref ref;
	int rc = source_locate(p->job->now, s->array, linear, &ref, &why);

	if (rc == 0 && ref.where == CHUNK_ABSENT)
		return drop_one(s, linear, e);
	rc = rc ? rc : diff_chunks_read_one(s, linear, &ref, &c, &why);
	if (rc < 0)
		return diff_refuse(p, s->array, linear, rc, &why, e);
	rc = diff_call_chunk(p, s->array, linear, e);
	rc = rc ? rc : p->job->sink->ops->put(p->job->sink, s->array, linear, &c, e);
	p->report->passed += c.stored;
	p->report->encoded += !c.stored;
	p->report->bytes += c.len;
	return rc;
}

/* diff_chunks_anything - ends at the first chunk. */
static int diff_chunks_anything(void *arg NZ_UNUSED, uint64_t linear NZ_UNUSED,
				struct err *e NZ_UNUSED)
{
	return -EEXIST;
}

int diff_chunks(struct diff *p, uint32_t array, struct err *e)
{
	const struct ds_array *a = &p->now->arrays[array];
	struct same s = {.p = p, .array = array};
	const struct diff_policy *policy = p->job->policy;
	struct sink_array t = {0};
	int rc;

	if (p->arrays[array].state == DIFF_MOVED)
		return 0;
	rc = diff_each(p, array, diff_chunks_anything, NULL, e);
	if (rc != -EEXIST)
		return rc;
	rc = diff_begin(p, e);
	rc = rc ? rc : p->job->sink->ops->target(p->job->sink, array, &t, e);
	if (rc < 0)
		return rc;
	if (t.chunk && a->rank > 0 &&
	    memcmp(t.chunk, a->chunk, a->rank * sizeof(*t.chunk)) != 0)
		return diff_regrid(p, array, t.chunk, e);
	s.cut = cut_of(a, &t);
	s.stored = t.takes_stored && a->access == DS_STORED && s.cut != UINT32_MAX &&
		   p->arrays[array].quant.mode == CODEC_QUANT_NONE;
	s.masks = policy && policy->format == PLAN_HDF5;
	return diff_each(p, array, diff_chunks_put_one, &s, e);
}
