/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - chunks of the joined dataset: a member's, or made of pieces of several. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/chunkio/fill_chunk.h"
#include "translate/model/grid.h"

/* ---- where ---- */

uint32_t concat_member_at(const struct concat *j, uint64_t at)
{
	/* the first member has what none begins before; members without an element are the last:
	 * their places are all the end */
	size_t low = j->n_members > 0, high = j->n_members;

	BISECT(low, high, mid, j->members[mid].len > 0 && j->members[mid].start <= at);
	return (uint32_t)low - (low > 0);
}

/* concat_read_place - of a chunk of an aligned array: which member has it, and which of its chunks
 * it is. */
struct concat_read_place {
	uint32_t member;
	uint64_t first;          /* chunks along the axis before the member's first */
	uint64_t coords[DS_RANK_MAX];
};

static void find_place(const struct concat *j, uint32_t array, uint64_t linear,
		       struct concat_read_place *p)
{
	const struct ds_array *a = &j->base.ds.arrays[array];
	uint32_t axis = j->arrays[array].axis;

	ds_chunk_coords(a, linear, p->coords);
	p->member = concat_member_at(j, p->coords[axis] * a->chunk[axis]);
	p->first = j->members[p->member].start / a->chunk[axis];
	p->coords[axis] -= p->first;
}

/* taken - a member in use, with the array that is asked for. */
struct taken {
	const struct concat_opened *at;
	const struct ds_array *a;
	uint32_t member, array;
};

static int concat_read_take(struct concat *j, uint32_t member, uint32_t array, struct taken *t,
			    struct err *e)
{
	int rc = concat_take(j, member, &t->at, e);

	if (rc < 0)
		return rc;
	t->member = member;
	t->array = t->at->arrays[array];
	t->a = &t->at->source->ds.arrays[t->array];
	return 0;
}

/* checked - give a member back after an operation on it returned rc: if the member changed, its
 * bytes are invalid. Returns rc; -errno if it changed, and then the concatenation is stale. */
static int checked(struct concat *j, const struct taken *t, int rc, struct err *e)
{
	const char *name = concat_name(j->members[t->member].path);
	struct err own = ERR_INIT;

	if (source_check(t->at->source, &own) < 0) {
		if (own.code == -ESTALE)
			atomic_store(&j->stale, true);
		rc = err_set(e, own.code, "'%s': %s", name, own.msg);
	} else if (rc < 0) {
		rc = err_wrap(e, rc, "'%s'", name);
	}
	concat_give(j, t->member);
	return rc;
}

/* take_chunk - the member that has a chunk of an aligned array; *ret_linear: which of its chunks it
 * is. */
static int take_chunk(struct concat *j, uint32_t array, uint64_t linear, struct taken *t,
		      uint64_t *ret_linear, struct err *e)
{
	struct concat_read_place p;
	int rc;

	find_place(j, array, linear, &p);
	rc = concat_read_take(j, p.member, array, t, e);
	if (rc == 0)
		*ret_linear = ds_chunk_linear(t->a, p.coords);
	return rc;
}

/* ---- locating ---- */

/* as_joined - what a chunk of a member is under the joined array's chain and fill value. */
static void as_joined(const struct concat_part *part, uint32_t member, struct chunk_ref *ref)
{
	bool as_it_is = ref->where == CHUNK_ABSENT ? part->absent
						   : part->passes && ref->where == CHUNK_RANGE;

	if (!as_it_is || (ref->blob & CONCAT_BLOB_MEMBER)) /* or more blobs than can be told */
		*ref = (struct chunk_ref){.where = CHUNK_SYNTH};
	else if (ref->where == CHUNK_RANGE && member > 0)
		ref->blob |= CONCAT_BLOB_MEMBER;
}

/* locate_member - a chunk that is one of a member. */
static int locate_member(struct concat *j, uint32_t array, uint64_t linear,
			 struct chunk_ref *ret, struct err *e)
{
	const struct concat_part *part;
	struct concat_read_place p;
	struct taken t;
	int rc;

	find_place(j, array, linear, &p);
	part = concat_part_of(j, array, p.member);
	if (!part->passes && !part->absent) {
		ret->where = CHUNK_SYNTH;
		return 0;
	}
	rc = concat_read_take(j, p.member, array, &t, e);
	if (rc < 0)
		return rc;
	rc = source_locate(t.at->source, t.array, ds_chunk_linear(t.a, p.coords), ret, e);
	if (rc == 0)
		as_joined(part, p.member, ret);
	return checked(j, &t, rc, e);
}

int concat_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		  struct err *e)
{
	struct concat *j = concat_of(s);

	if (!j->arrays[array].joined)
		return source_locate(j->first, array, linear, ret, e);
	if (j->arrays[array].aligned)
		return locate_member(j, array, linear, ret, e);
	ret->where = CHUNK_SYNTH;
	return 0;
}

/* next_in_member - the same within the rows of one member; axis 0 is joined, so that they follow
 * each other. *ret: CONCAT_NONE chunks are left: the next member's first. */
static int next_in_member(struct concat *j, uint32_t array, uint64_t from, uint64_t *ret,
			  struct err *e)
{
	const struct ds_array *a = &j->base.ds.arrays[array];
	uint64_t row = a->n_chunks / a->grid[0], found = 0, end;
	struct concat_read_place p;
	struct taken t;
	int rc;

	find_place(j, array, from, &p);
	end = (j->members[p.member].start + j->members[p.member].len + a->chunk[0] - 1) /
	      a->chunk[0] * row;
	if (!concat_part_of(j, array, p.member)->absent) {
		*ret = from;
		return 0;
	}
	rc = concat_read_take(j, p.member, array, &t, e);
	if (rc < 0)
		return rc;
	rc = source_next(t.at->source, t.array, from - p.first * row, &found, e);
	*ret = rc == -ENOENT ? end : found + p.first * row;
	return checked(j, &t, rc == -ENOENT ? 1 : rc, e);
}

int concat_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	struct concat *j = concat_of(s);
	const struct ds_array *a = &s->ds.arrays[array];
	struct chunk_ref ref;
	int rc;

	if (!j->arrays[array].joined)
		return source_next(j->first, array, from, ret, e);
	if (!j->arrays[array].aligned || s->unlisted) {
		*ret = from;
		return 0;
	}
	for (; from < a->n_chunks; from++) {
		if (j->arrays[array].axis == 0) {
			rc = next_in_member(j, array, from, &from, e);
			if (rc == 1) {
				from--; /* the next member's first */
				continue;
			}
			*ret = from;
			return rc;
		}
		rc = concat_locate(s, array, from, &ref, e);
		if (rc < 0)
			return rc;
		if (ref.where != CHUNK_ABSENT) {
			*ret = from;
			return 0;
		}
	}
	return err_set(e, -ENOENT, "'%s': no more chunks", a->name);
}

/* ---- stored bytes ---- */

int concat_read_stored(struct source *s, uint32_t array, uint64_t linear,
		       const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		       struct err *e)
{
	struct concat *j = concat_of(s);
	struct chunk_ref own = *ref;
	struct taken t;
	int rc;

	if (!j->arrays[array].joined)
		return source_read_stored(j->first, array, linear, ref, off, out, len, e);
	rc = take_chunk(j, array, linear, &t, &linear, e);
	if (rc < 0)
		return rc;
	own.blob &= ~CONCAT_BLOB_MEMBER;
	rc = source_read_stored(t.at->source, t.array, linear, &own, off, out, len, e);
	return checked(j, &t, rc, e);
}

/* member_key - the member's path, as others find it: absolute. */
static int member_key(const struct concat_member *m, const struct taken *t, uint64_t linear,
		      const struct chunk_ref *ref, struct store_place *ret, struct err *e)
{
	auto_buf key = buf_of((size_t)64 << 10);
	struct store_place own = {.key = &key};
	int rc = source_place(t->at->source, t->array, linear, ref, &own, e);

	if (rc < 0)
		return rc;
	ret->full = true;
	ret->whole = own.whole;
	ret->off = own.off;
	if (!own.full)
		buf_printf(ret->key, "%s%s", m->path, key.len > 0 ? "/" : "");
	if (key.len > 0)
		buf_put(ret->key, key.data, key.len);
	if (!buf_ok(&key))
		buf_fail(ret->key, &key);
	return 0;
}

int concat_place(struct source *s, uint32_t array, uint64_t linear, const struct chunk_ref *ref,
		 struct store_place *ret, struct err *e)
{
	struct concat *j = concat_of(s);
	struct chunk_ref own = *ref;
	struct taken t = {.array = array};
	int rc = j->arrays[array].joined ? take_chunk(j, array, linear, &t, &linear, e)
					 : concat_take(j, 0, &t.at, e);

	if (rc < 0)
		return rc;
	own.blob &= ~CONCAT_BLOB_MEMBER;
	rc = member_key(&j->members[t.member], &t, linear, &own, ret, e);
	return checked(j, &t, rc, e);
}

/* ---- elements ---- */

/* body - what a member gave for one of its chunks of elements without a fixed size; kept until the
 * joined chunk is written. */
struct body {
	struct body *next;
	struct buf b;
};

/* pieces - one joined chunk while it is made. Elements without a fixed size are a table of where
 * their bytes are. */
struct pieces {
	struct concat *j;
	uint32_t array;
	const struct ds_array *a;
	struct grid_box box; /* of the chunk, inside the shape */
	size_t elem;         /* bytes of an element of `out` */
	uint8_t *out;
	struct buf raw, made;  /* a member's chunk: as it has it, as it is presented */
	struct ds_text *texts; /* the same without a fixed size */
	struct body *bodies;
};

/* fetch_texts - one chunk of a member, as a table. */
static int fetch_texts(struct pieces *x, const struct taken *t, uint64_t linear, struct err *e)
{
	struct body *body = alloc_array(1, sizeof(*body));
	uint64_t n = 0;
	int rc = frame_count(t->a, &n, e);

	if (!body)
		return err_nomem(e);
	buf_init(&body->b, FRAME_BYTES_MAX);
	body->next = x->bodies;
	x->bodies = body;
	free(steal(&x->texts));
	rc = rc ? rc : chunkio_read_vlen(t->at->source, t->array, linear, n, &body->b, NULL, e);
	return rc ? rc : frame_texts(&body->b, n, &x->texts, e);
}

/* fetch - one decoded chunk of a member, as it is presented; *ret is borrowed. */
static int fetch(struct pieces *x, const struct taken *t, uint64_t linear, const void **ret,
		 struct err *e)
{
	const struct concat_conv *conv = &concat_part_of(x->j, x->array, t->member)->conv;
	uint8_t *raw, *made;
	size_t n;
	int rc;

	if (dt_is_vlen(&x->a->type)) {
		rc = fetch_texts(x, t, linear, e);
		*ret = x->texts;
		return rc;
	}
	n = (size_t)(t->a->chunk_bytes / t->a->type.size);
	buf_clear(&x->raw);
	buf_clear(&x->made);
	raw = buf_grow(&x->raw, (size_t)t->a->chunk_bytes);
	if (!raw)
		return err_nomem(e);
	rc = chunkio_read_whole(t->at->io, t->array, linear, raw, e);
	*ret = raw;
	if (rc < 0 || conv->same)
		return rc;
	made = buf_grow(&x->made, n * conv->to.size);
	*ret = made;
	return made ? concat_convert(conv, raw, made, n, e) : err_nomem(e);
}

/* put_member - all that one member has of the joined chunk. */
static int put_member(struct pieces *x, const struct taken *t, struct err *e)
{
	const struct ds_array *b = t->a;
	const uint64_t start = x->j->members[t->member].start;
	const uint32_t axis = x->j->arrays[x->array].axis;
	uint64_t origin[DS_RANK_MAX], at[DS_RANK_MAX];
	struct grid_box box = x->box, chunks, src;
	int rc;

	/* from here on in the member's numbers; its part may begin behind the chunk's */
	memcpy(origin, box.lo, b->rank * sizeof(*origin));
	origin[axis] -= start;
	box.lo[axis] -= u64_min(start, box.lo[axis]);
	box.hi[axis] -= start;
	for (uint32_t d = 0; d < b->rank; d++) {
		box.hi[d] = u64_min(box.hi[d], b->shape[d]);
		if (box.lo[d] >= box.hi[d])
			return 0;
	}
	grid_chunks(b->rank, &box, b->chunk, &chunks);
	memcpy(at, chunks.lo, b->rank * sizeof(*at));
	do {
		const struct grid_block from = {src.lo, b->chunk}, to = {origin, x->a->chunk};
		const void *in = NULL;
		struct grid_box both;

		rc = fetch(x, t, ds_chunk_linear(b, at), &in, e);
		if (rc < 0)
			return rc;
		grid_chunk(b->rank, b->shape, b->chunk, at, &src);
		if (grid_both(b->rank, &src, &box, &both))
			grid_copy(b->rank, x->elem, &both, &from, in, &to, x->out);
	} while (grid_next(b->rank, &chunks, at));
	return 0;
}

/* read_pieces - put what the members have of chunk `linear` into x->out. */
static int read_pieces(struct pieces *x, uint64_t linear, struct err *e)
{
	struct concat *j = x->j;
	uint32_t axis = j->arrays[x->array].axis;
	uint64_t coords[DS_RANK_MAX] = {0};
	int rc = 0;

	buf_init(&x->raw, PTRDIFF_MAX);
	buf_init(&x->made, PTRDIFF_MAX);
	ds_chunk_coords(x->a, linear, coords);
	grid_chunk(x->a->rank, x->a->shape, x->a->chunk, coords, &x->box);
	for (uint32_t m = concat_member_at(j, x->box.lo[axis]);
	     rc == 0 && m < j->n_members && j->members[m].start < x->box.hi[axis]; m++) {
		struct taken t;

		if (j->members[m].len == 0)
			continue;
		rc = concat_read_take(j, m, x->array, &t, e);
		rc = rc ? rc : checked(j, &t, put_member(x, &t, e), e);
	}
	buf_release(&x->raw);
	buf_release(&x->made);
	free(x->texts);
	return rc;
}

/* read_values - of the coordinate, which are in memory. */
static void read_values(const struct concat_array *x, const struct ds_array *a, uint64_t linear,
			uint8_t *out)
{
	uint64_t at = linear * a->chunk[0], n = u64_min(a->chunk[0], a->shape[0] - at);

	value_repeat(out, (size_t)a->chunk_bytes, a->fill, a->type.size);
	memcpy(out, x->values + at * a->type.size, (size_t)n * a->type.size);
}

int concat_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		      size_t len, struct err *e)
{
	struct concat *j = concat_of(s);
	struct pieces x = {.j = j, .array = array, .a = &s->ds.arrays[array], .out = out};

	if (!j->arrays[array].joined)
		return source_read_chunk(j->first, array, linear, out, len, e);
	if (j->arrays[array].coord) {
		read_values(&j->arrays[array], x.a, linear, out);
		return 0;
	}
	x.elem = x.a->type.size;
	value_repeat(out, len, x.a->fill, x.a->type.size);
	return read_pieces(&x, linear, e);
}

int concat_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e)
{
	struct concat *j = concat_of(s);
	struct pieces x = {.j = j, .array = array, .a = &s->ds.arrays[array]};
	auto_free struct ds_text *all = NULL;
	uint64_t n = 0;
	int rc;

	if (!j->arrays[array].joined)
		return source_read_vlen(j->first, array, linear, out, e);
	rc = frame_count(x.a, &n, e);
	if (rc < 0)
		return rc;
	all = alloc_array((size_t)n, sizeof(*all));
	if (!all)
		return err_nomem(e);
	for (uint64_t i = 0; i < n; i++)
		all[i] = x.a->fill_text;
	x.elem = sizeof(*all);
	x.out = (uint8_t *)all;
	rc = read_pieces(&x, linear, e);
	if (rc == 0)
		frame_put_texts(all, n, out);
	while (x.bodies) {
		struct body *next = x.bodies->next;

		buf_release(&x.bodies->b);
		free(x.bodies);
		x.bodies = next;
	}
	return rc; /* whether it all fitted the caller looks */
}
