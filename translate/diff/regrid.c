/* SPDX-License-Identifier: BSD-3-Clause */
/* regrid.c - assembles chunks from others, because the target has another grid.
 *
 * First it finds the touched chunks of the target, in batches. Then it makes each of them from all
 * overlapping chunks of `now`, and keeps those that the next ones need as well, as far as the job's
 * memory allows. */
#include "translate/chunkio/fill_chunk.h"
#include "translate/diff/diff_int.h"
#include "translate/model/grid.h"
#include "translate/model/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define KEPT_MAX 1024
#define PARTS_MAX ((uint64_t)1 << 16)  /* chunks of strings in one of the target */
#define BATCH ((size_t)1 << 18)        /* touched chunks in one batch */
#define TARGET_MAX ((uint64_t)1 << 32) /* bytes of a chunk of the target */
#define TEXT_BYTES ((uint64_t)1 << 30) /* of one without a fixed size */

/* regrid_part - a decoded chunk of now. */
struct regrid_part {
	uint64_t linear, used;
	enum { PART_FREE, PART_ABSENT, PART_REFUSED, PART_THERE } state;
	struct buf data;
	struct ds_text *strings; /* without a fixed size: where each element is */
};

struct regrid {
	struct diff *p;
	const struct ds_array *a;
	uint32_t array;
	const uint64_t *chunk; /* of the target */
	uint64_t grid[DS_RANK_MAX], n_elems, n_chunks;
	bool vlen;
	struct regrid_part *kept;
	uint32_t n_kept;
	uint64_t clock;
	uint8_t *out;          /* n_elems elements */
	struct ds_text *strings; /* the same without a fixed size */
	uint64_t *touched;
	size_t n_touched, cap;
};

/* ---- chunks of now ---- */

static void part_clear(struct regrid_part *x)
{
	buf_release(&x->data);
	free(x->strings);
	*x = (struct regrid_part){0};
}

/* regrid_load - chunk `linear` of now into a free part. */
static int regrid_load(struct regrid *r, uint64_t linear, struct regrid_part *x, struct err *e)
{
	const struct diff_job *job = r->p->job;
	struct err why = ERR_INIT;
	struct chunk_ref ref;
	uint64_t n = 1;
	int rc = source_locate(job->now, r->array, linear, &ref, &why);

	x->linear = linear;
	x->state = PART_THERE;
	if (rc == 0 && ref.where == CHUNK_ABSENT) {
		x->state = PART_ABSENT;
		return 0;
	}
	if (rc == 0 && job->ready)
		rc = job->ready(job->arg, r->array, linear, &why);
	buf_init(&x->data, SIZE_MAX / 2);
	rc = rc ? rc : diff_elements(r->p, r->array, linear, &x->data, &why);
	if (rc == 0 && r->vlen)
		rc = frame_count(r->a, &n, &why);
	if (rc == 0 && r->vlen)
		rc = frame_vlen_check(x->data.data, x->data.len, n, NULL, &why);
	if (rc == 0 && r->vlen)
		rc = frame_texts(&x->data, n, &x->strings, &why);
	if (rc == 0)
		return 0;
	x->state = PART_REFUSED;
	return diff_refuse(r->p, r->array, linear, rc, &why, e);
}

/* regrid_part_of - a chunk of now, decoded. */
static int regrid_part_of(struct regrid *r, uint64_t linear, struct regrid_part **ret,
			  struct err *e)
{
	struct regrid_part *oldest = &r->kept[0];
	int rc;

	r->clock++;
	for (uint32_t i = 0; i < r->n_kept; i++) {
		struct regrid_part *x = &r->kept[i];

		if (x->state != PART_FREE && x->linear == linear) {
			x->used = r->clock;
			*ret = x;
			return 0;
		}
		if (x->used < oldest->used)
			oldest = x;
	}
	part_clear(oldest);
	rc = regrid_load(r, linear, oldest, e);
	if (rc < 0)
		part_clear(oldest);
	oldest->used = r->clock;
	*ret = oldest;
	return rc;
}

/* room_for - make room for n parts at the same time, since strings point into all of them. */
static int room_for(struct regrid *r, const struct grid_box *in, struct err *e)
{
	struct regrid_part *more;
	uint64_t n = 1;

	for (uint32_t i = 0; i < r->a->rank; i++)
		if (ckd_mul(&n, n, in->hi[i] - in->lo[i]) || n > PARTS_MAX)
			return err_set(e, -ERANGE,
				       "'%s': too many source chunks in one target chunk",
				       r->a->name);
	if (n <= r->n_kept)
		return 0;
	more = alloc_array((size_t)n, sizeof(*more));
	if (!more)
		return err_nomem(e);
	memcpy(more, r->kept, r->n_kept * sizeof(*more));
	free(r->kept);
	r->kept = more;
	r->n_kept = (uint32_t)n;
	return 0;
}

/* regrid_forget - drop kept elements without a fixed size if they exceed the job's memory. */
static void regrid_forget(struct regrid *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->n_kept; i++)
		sum += r->kept[i].data.len;
	for (uint32_t i = 0; sum > r->p->job->memory && i < r->n_kept; i++)
		part_clear(&r->kept[i]);
}

/* ---- one chunk of the target ---- */

static void regrid_fill(struct regrid *r)
{
	const size_t size = r->a->type.size;

	for (uint64_t i = 0; r->vlen && i < r->n_elems; i++)
		r->strings[i] = r->a->fill_text;
	if (!r->vlen)
		value_repeat(r->out, (size_t)r->n_elems * size, r->a->fill, size);
}

/* regrid_body - the elements without a fixed size, one after another. */
static int regrid_body(struct regrid *r, struct buf *out, struct err *e)
{
	uint64_t bytes = 0;

	buf_clear(out);
	for (uint64_t i = 0; i < r->n_elems; i++)
		bytes += 4 + r->strings[i].len;
	if (bytes > TEXT_BYTES)
		return err_set(e, -ERANGE,
			       "%" PRIu64 " bytes of strings in one chunk are too many", bytes);
	out->max = (size_t)bytes;
	frame_put_texts(r->strings, r->n_elems, out);
	return buf_ok(out) ? 0 : err_nomem(e);
}

/* regrid_gather - collect the elements of `now` in a chunk of the target. *ret_there: there are
 * any; *ret_refused: some cannot be read. Strings are copied from parts that may be dropped: they
 * are kept until the body is made. */
static int regrid_gather(struct regrid *r, const struct grid_box *dst, bool *ret_there,
			 bool *ret_refused, struct err *e)
{
	const uint32_t rank = r->a->rank;
	struct grid_box in, src, both;
	uint64_t at[DS_RANK_MAX];

	*ret_there = *ret_refused = false;
	grid_chunks(rank, dst, r->a->chunk, &in);
	memcpy(at, in.lo, sizeof(at));
	regrid_fill(r);
	if (r->vlen) {
		int rc = room_for(r, &in, e);

		if (rc < 0)
			return rc;
	}
	do {
		struct regrid_part *x;
		int rc = regrid_part_of(r, ds_chunk_linear(r->a, at), &x, e);
		const struct grid_block from = {src.lo, r->a->chunk}, to = {dst->lo, r->chunk};

		if (rc < 0)
			return rc;
		*ret_refused |= x->state == PART_REFUSED;
		if (x->state != PART_THERE)
			continue;
		*ret_there = true;
		grid_chunk(rank, r->a->shape, r->a->chunk, at, &src);
		if (!grid_both(rank, &src, dst, &both))
			continue;
		if (r->vlen)
			grid_copy(rank, sizeof(*x->strings), &both, &from, x->strings, &to,
				  r->strings);
		else
			grid_copy(rank, r->a->type.size, &both, &from, x->data.data, &to,
				  r->out);
	} while (grid_next(rank, &in, at));
	return 0;
}

static int put_target(struct regrid *r, uint64_t linear, struct err *e)
{
	struct diff *p = r->p;
	struct sink *s = p->job->sink;
	struct sink_chunk c = {.p = r->out, .len = (size_t)r->n_elems * r->a->type.size};
	uint64_t coords[DS_RANK_MAX] = {0};
	struct grid_box dst;
	bool there, refused;
	int rc;

	grid_coords(r->a->rank, r->grid, linear, coords);
	grid_chunk(r->a->rank, r->a->shape, r->chunk, coords, &dst);
	rc = regrid_gather(r, &dst, &there, &refused, e);
	if (rc < 0 || refused || (!there && p->arrays[r->array].was == DS_NONE))
		return rc;
	rc = diff_call_chunk(p, r->array, linear, e);
	if (rc == 0 && !there) {
		p->report->dropped++;
		return s->ops->drop(s, r->array, linear, e);
	}
	if (rc == 0 && r->vlen) {
		rc = regrid_body(r, &p->bytes, e);
		regrid_forget(r);
		c = (struct sink_chunk){.p = p->bytes.data, .len = p->bytes.len};
	}
	rc = rc ? rc : s->ops->put(s, r->array, linear, &c, e);
	p->report->encoded++;
	p->report->bytes += c.len;
	return rc;
}

/* ---- touched chunks ---- */

static int regrid_by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* compact - sorted, each once. */
static void compact(struct regrid *r)
{
	size_t n = 0;

	if (r->n_touched > 1)
		qsort(r->touched, r->n_touched, sizeof(*r->touched), regrid_by_value);
	for (size_t i = 0; i < r->n_touched; i++)
		if (i == 0 || r->touched[i] != r->touched[n - 1])
			r->touched[n++] = r->touched[i];
	r->n_touched = n;
}

static int regrid_flush(struct regrid *r, struct err *e)
{
	int rc = 0;

	compact(r);
	for (size_t i = 0; rc == 0 && i < r->n_touched; i++)
		rc = put_target(r, r->touched[i], e);
	r->n_touched = 0;
	return rc;
}

static int regrid_touch(void *arg, uint64_t linear, struct err *e)
{
	struct regrid *r = arg;
	uint64_t at[DS_RANK_MAX];
	struct grid_box src, in;

	ds_chunk_coords(r->a, linear, at);
	grid_chunk(r->a->rank, r->a->shape, r->a->chunk, at, &src);
	grid_chunks(r->a->rank, &src, r->chunk, &in);
	memcpy(at, in.lo, sizeof(at));
	do {
		int rc = 0;

		if (r->n_touched == BATCH) {
			compact(r);
			if (r->n_touched > BATCH / 2)
				rc = regrid_flush(r, e);
		}
		if (rc < 0)
			return rc;
		if (grow_array(&r->touched, &r->cap, r->n_touched + 1, sizeof(uint64_t)) < 0)
			return err_nomem(e);
		r->touched[r->n_touched++] = grid_linear(r->a->rank, r->grid, at);
	} while (grid_next(r->a->rank, &in, at));
	return 0;
}

static int regrid_init(struct regrid *r, struct err *e)
{
	const struct ds_array *a = r->a;
	uint64_t bytes, room = r->p->job->memory, part = u64_max(a->chunk_bytes, 64);

	r->n_elems = r->n_chunks = 1;
	for (uint32_t i = 0; i < a->rank; i++) {
		if (r->chunk[i] == 0)
			return err_set(e, -EINVAL, "'%s': a chunk length is 0", a->name);
		r->grid[i] = (a->shape[i] - 1) / r->chunk[i] + 1;
	}
	if (!u64_product(&r->n_elems, r->chunk, a->rank, UINT64_MAX) ||
	    !u64_product(&r->n_chunks, r->grid, a->rank, UINT64_MAX))
		return err_set(e, -ERANGE, "'%s': chunks are too large", a->name);
	if (ckd_mul(&bytes, r->n_elems, r->vlen ? sizeof(*r->strings) : a->type.size) ||
	    bytes > TARGET_MAX)
		return err_set(e, -ERANGE, "'%s': a chunk of %" PRIu64 " elements is too large",
			       a->name, r->n_elems);
	r->n_kept = KEPT_MAX;
	if (!r->vlen)
		r->n_kept = (uint32_t)u64_max(
			1, u64_min(KEPT_MAX, (room > bytes ? room - bytes : 0) / part));
	r->kept = alloc_array(r->n_kept, sizeof(*r->kept));
	if (r->vlen)
		r->strings = alloc_array((size_t)r->n_elems, sizeof(*r->strings));
	else
		r->out = alloc_array((size_t)bytes, 1);
	return r->kept && (r->vlen ? (void *)r->strings : (void *)r->out) ? 0 : err_nomem(e);
}

int diff_regrid(struct diff *p, uint32_t array, const uint64_t *chunk, struct err *e)
{
	struct regrid r = {.p = p, .a = &p->now->arrays[array], .array = array};
	uint64_t lens[DS_RANK_MAX];
	int rc;

	memcpy(lens, chunk, r.a->rank * sizeof(*lens)); /* borrowed until the sink changes */
	r.chunk = lens;
	r.vlen = dt_is_vlen(&r.a->type);
	rc = regrid_init(&r, e);
	rc = rc ? rc : diff_each(p, array, regrid_touch, &r, e);
	rc = rc ? rc : regrid_flush(&r, e);
	for (uint32_t i = 0; r.kept && i < r.n_kept; i++)
		part_clear(&r.kept[i]);
	free(r.kept);
	free(r.out);
	free(r.strings);
	free(r.touched);
	return rc;
}
