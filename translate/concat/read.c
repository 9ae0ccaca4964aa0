/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - chunks of the joined dataset: a member's, or made of pieces of several. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/chunkio/fill_chunk.h"

/* ---- where ---- */

uint32_t concat_member_at(const struct concat *j, uint64_t at)
{
	size_t low = 0, high = j->n_members;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		/* members without an element are the last: their places are all the end */
		if (j->members[mid].len > 0 && j->members[mid].start <= at)
			low = mid;
		else
			high = mid;
	}
	return (uint32_t)low;
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

int concat_checked(struct concat *j, uint32_t member, const struct concat_opened *at, int rc,
		   struct err *e)
{
	struct err own = ERR_INIT;

	if (source_check(at->source, &own) < 0) {
		if (own.code == -ESTALE)
			atomic_store(&j->stale, true);
		rc = err_set(e, own.code, "'%s': %s", concat_name(j->members[member].path),
			     own.msg);
	} else if (rc < 0) {
		rc = err_wrap(e, rc, "'%s'", concat_name(j->members[member].path));
	}
	concat_give(j, member);
	return rc;
}

static int checked(struct concat *j, const struct taken *t, int rc, struct err *e)
{
	return concat_checked(j, t->member, t->at, rc, e);
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
	uint64_t row = a->n_chunks / a->grid[0], local, found = 0, end;
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
	local = from - p.first * row;
	rc = source_next(t.at->source, t.array, local, &found, e);
	if (rc == -ENOENT) {
		*ret = end;
		return checked(j, &t, 1, e);
	}
	*ret = found + p.first * row;
	return checked(j, &t, rc, e);
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
	struct concat_read_place p;
	struct taken t;
	int rc;

	if (!j->arrays[array].joined)
		return source_read_stored(j->first, array, linear, ref, off, out, len, e);
	find_place(j, array, linear, &p);
	rc = concat_read_take(j, p.member, array, &t, e);
	if (rc < 0)
		return rc;
	own.blob &= ~CONCAT_BLOB_MEMBER;
	rc = source_read_stored(t.at->source, t.array, ds_chunk_linear(t.a, p.coords), &own, off,
				out, len, e);
	return checked(j, &t, rc, e);
}

/* member_key - the member's path, as others find it: absolute. */
static int member_key(const struct concat_member *m, const struct taken *t, uint64_t linear,
		      const struct chunk_ref *ref, struct chunk_place *ret, struct err *e)
{
	struct buf key;
	struct chunk_place own = {.key = &key};
	int rc;

	buf_init(&key, (size_t)64 << 10);
	rc = source_place(t->at->source, t->array, linear, ref, &own, e);
	if (rc == 0) {
		ret->full = true;
		ret->whole = own.whole;
		ret->off = own.off;
		if (!own.full)
			buf_printf(ret->key, "%s%s", m->path, key.len > 0 ? "/" : "");
		if (key.len > 0)
			buf_put(ret->key, key.data, key.len);
		if (!buf_ok(&key))
			buf_fail(ret->key, &key);
	}
	buf_release(&key);
	return rc;
}

int concat_place(struct source *s, uint32_t array, uint64_t linear, const struct chunk_ref *ref,
		 struct chunk_place *ret, struct err *e)
{
	struct concat *j = concat_of(s);
	struct chunk_ref own = *ref;
	struct concat_read_place p = {.member = 0};
	struct taken t;
	int rc;

	if (j->arrays[array].joined) {
		find_place(j, array, linear, &p);
		rc = concat_read_take(j, p.member, array, &t, e);
		if (rc < 0)
			return rc;
		linear = ds_chunk_linear(t.a, p.coords);
	} else {
		rc = concat_take(j, 0, &t.at, e);
		if (rc < 0)
			return rc;
		t.member = 0;
		t.array = array;
	}
	own.blob &= ~CONCAT_BLOB_MEMBER;
	rc = member_key(&j->members[t.member], &t, linear, &own, ret, e);
	return checked(j, &t, rc, e);
}

/* ---- elements ---- */

/* pieces - one joined chunk while it is made. */
struct pieces {
	struct concat *j;
	uint32_t array;
	const struct ds_array *a;
	uint64_t begin[DS_RANK_MAX], end[DS_RANK_MAX]; /* of the chunk, inside the shape */
	uint8_t *out;
	struct buf raw, made; /* a member's chunk: as it has it, as it is presented */
};

/* concat_read_fetch - one decoded chunk of a member, as it is presented; *ret is borrowed. */
static int concat_read_fetch(struct pieces *x, const struct taken *t, uint64_t linear,
			     const uint8_t **ret, struct err *e)
{
	const struct concat_conv *conv = &concat_part_of(x->j, x->array, t->member)->conv;
	size_t n = (size_t)(t->a->chunk_bytes / t->a->type.size), got;
	uint8_t *raw, *made;
	struct span span;
	int rc;

	buf_clear(&x->raw);
	buf_clear(&x->made);
	raw = buf_grow(&x->raw, (size_t)t->a->chunk_bytes);
	if (!raw)
		return err_nomem(e);
	rc = chunkio_read(t->at->io, t->array, linear, 0, (size_t)t->a->chunk_bytes, raw, &span,
			  e);
	if (rc == 0)
		rc = span_fetch(&span, raw, (size_t)t->a->chunk_bytes, &got, e);
	if (rc == 0 && got != t->a->chunk_bytes)
		rc = err_set(e, -EIO, "a chunk has %zu bytes instead of %" PRIu64, got,
			     t->a->chunk_bytes);
	*ret = raw;
	if (rc < 0 || conv->same)
		return rc;
	made = buf_grow(&x->made, n * conv->to.size);
	*ret = made;
	return made ? concat_convert(conv, raw, made, n, e) : err_nomem(e);
}

/* put_piece - what chunk `coords` of a member has of the joined one. */
static int put_piece(struct pieces *x, const struct taken *t, const uint64_t *coords,
		     struct err *e)
{
	const struct ds_array *a = x->a, *b = t->a;
	uint32_t axis = x->j->arrays[x->array].axis;
	uint64_t lens[DS_RANK_MAX], in_at[DS_RANK_MAX], out_at[DS_RANK_MAX];
	const uint8_t *in = NULL;
	int rc = concat_read_fetch(x, t, ds_chunk_linear(b, coords), &in, e);

	if (rc < 0)
		return rc;
	for (uint32_t d = 0; d < a->rank; d++) {
		uint64_t shift = d == axis ? x->j->members[t->member].start : 0;
		uint64_t low = coords[d] * b->chunk[d];
		uint64_t high = u64_min(low + b->chunk[d], b->shape[d]) + shift;
		uint64_t from = u64_max(low + shift, x->begin[d]);
		uint64_t to = u64_min(high, x->end[d]);

		lens[d] = to > from ? to - from : 0;
		in_at[d] = from - low - shift;
		out_at[d] = from - x->begin[d];
	}
	concat_box(a->rank, a->type.size, lens, in, b->chunk, in_at, x->out, a->chunk, out_at);
	return 0;
}

/* concat_read_range - which chunks of a member have a part in the joined one. Returns false:
 * none. */
static bool concat_read_range(const struct pieces *x, const struct taken *t, uint64_t *low,
			      uint64_t *high)
{
	uint32_t axis = x->j->arrays[x->array].axis;

	for (uint32_t d = 0; d < x->a->rank; d++) {
		uint64_t begin = x->begin[d], end = x->end[d];

		if (d == axis) {
			uint64_t start = x->j->members[t->member].start;

			begin = begin > start ? begin - start : 0;
			end -= start;
		}
		end = u64_min(end, t->a->shape[d]);
		if (begin >= end)
			return false;
		low[d] = begin / t->a->chunk[d];
		high[d] = (end - 1) / t->a->chunk[d];
	}
	return true;
}

/* concat_read_put_member - all pieces of one member. */
static int concat_read_put_member(struct pieces *x, const struct taken *t, struct err *e)
{
	uint64_t low[DS_RANK_MAX], high[DS_RANK_MAX], at[DS_RANK_MAX];
	uint32_t d = 0;
	int rc = 0;

	if (!concat_read_range(x, t, low, high))
		return 0;
	memcpy(at, low, sizeof(at));
	while (rc == 0) {
		rc = put_piece(x, t, at, e);
		for (d = x->a->rank; d-- > 0;) {
			if (at[d]++ < high[d])
				break;
			at[d] = low[d];
		}
		if (d == UINT32_MAX)
			break; /* all of them */
	}
	return rc;
}

/* fill_all - elements outside the shape, and those that no member has. */
static void fill_all(const struct ds_array *a, uint8_t *out)
{
	size_t size = a->type.size, n = (size_t)(a->chunk_bytes / size);

	for (size_t i = 0; i < n; i++)
		memcpy(out + i * size, a->fill, size);
}

static int read_pieces(struct pieces *x, struct err *e)
{
	struct concat *j = x->j;
	uint32_t axis = j->arrays[x->array].axis;
	int rc = 0;

	for (uint32_t m = concat_member_at(j, x->begin[axis]);
	     rc == 0 && m < j->n_members && j->members[m].start < x->end[axis]; m++) {
		struct taken t;

		if (j->members[m].len == 0)
			continue;
		rc = concat_read_take(j, m, x->array, &t, e);
		if (rc < 0)
			return rc;
		rc = checked(j, &t, concat_read_put_member(x, &t, e), e);
	}
	return rc;
}

/* read_values - of the coordinate, which are in memory. */
static void read_values(const struct concat_array *x, const struct ds_array *a, uint64_t linear,
			uint8_t *out)
{
	uint64_t at = linear * a->chunk[0], n = u64_min(a->chunk[0], a->shape[0] - at);

	fill_all(a, out);
	memcpy(out, x->values + at * a->type.size, (size_t)n * a->type.size);
}

int concat_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		      size_t len, struct err *e)
{
	struct concat *j = concat_of(s);
	struct pieces x = {.j = j, .array = array, .a = &s->ds.arrays[array], .out = out};
	uint64_t coords[DS_RANK_MAX];
	int rc;

	if (!j->arrays[array].joined)
		return source_read_chunk(j->first, array, linear, out, len, e);
	if (j->arrays[array].coord) {
		read_values(&j->arrays[array], x.a, linear, out);
		return 0;
	}
	ds_chunk_coords(x.a, linear, coords);
	for (uint32_t d = 0; d < x.a->rank; d++) {
		x.begin[d] = coords[d] * x.a->chunk[d];
		x.end[d] = u64_min(x.begin[d] + x.a->chunk[d], x.a->shape[d]);
	}
	buf_init(&x.raw, PTRDIFF_MAX);
	buf_init(&x.made, PTRDIFF_MAX);
	fill_all(x.a, out);
	rc = read_pieces(&x, e);
	buf_release(&x.raw);
	buf_release(&x.made);
	return rc;
}

/* Chunks of elements without a fixed size, made of what several members have. */

/* concat_read_table - the elements of one joined chunk, wherever their bytes are. */
struct concat_read_table {
	struct ds_text *v;
	uint64_t n;
};

/* concat_read_body - what a member gave for one of its chunks; kept until the joined one is
 * written. */
struct concat_read_body {
	struct concat_read_body *next;
	struct buf b;
};

struct vlen {
	struct concat *j;
	uint32_t array;
	const struct ds_array *a;
	uint64_t begin[DS_RANK_MAX], end[DS_RANK_MAX];
	struct concat_read_table t;
	struct concat_read_body *bodies;
};

void concat_vlen_parse(const struct buf *b, struct ds_text *out, uint64_t n)
{
	const uint8_t *p = b->data;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t len = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			       (uint32_t)p[3] << 24;

		out[i] = (struct ds_text){.s = (const char *)p + 4, .len = len};
		p += 4 + len;
	}
}

/* read_body - one chunk of a member as a table, new. */
static int read_body(struct vlen *x, struct source *s, uint32_t array, uint64_t linear,
		     struct ds_text **ret, struct err *e)
{
	struct concat_read_body *body = alloc_array(1, sizeof(*body));
	uint64_t n = 0;
	int rc = frame_count(&s->ds.arrays[array], &n, e);

	if (!body)
		return err_nomem(e);
	buf_init(&body->b, FRAME_BYTES_MAX);
	body->next = x->bodies;
	x->bodies = body;
	if (rc == 0)
		rc = source_read_vlen(s, array, linear, &body->b, e);
	if (rc == 0)
		rc = frame_vlen_check(body->b.data, body->b.len, n, NULL, e);
	if (rc < 0)
		return rc;
	*ret = alloc_array((size_t)n, sizeof(**ret));
	if (!*ret)
		return err_nomem(e);
	concat_vlen_parse(&body->b, *ret, n);
	return 0;
}

/* concat_read_put_one - the elements that chunk `coords` of a member has of the joined one. */
static int concat_read_put_one(struct vlen *x, uint32_t member, const struct concat_opened *at,
			       const uint64_t *coords, struct err *e)
{
	const uint32_t array = at->arrays[x->array], axis = x->j->arrays[x->array].axis;
	const struct ds_array *b = &at->source->ds.arrays[array];
	uint64_t lens[DS_RANK_MAX], in_at[DS_RANK_MAX], out_at[DS_RANK_MAX];
	auto_free struct ds_text *in = NULL;
	int rc = read_body(x, at->source, array, ds_chunk_linear(b, coords), &in, e);

	if (rc < 0)
		return rc;
	for (uint32_t d = 0; d < b->rank; d++) {
		uint64_t shift = d == axis ? x->j->members[member].start : 0;
		uint64_t low = coords[d] * b->chunk[d] + shift;
		uint64_t high = u64_min(coords[d] * b->chunk[d] + b->chunk[d], b->shape[d]);
		uint64_t from = u64_max(low, x->begin[d]), to = u64_min(high + shift, x->end[d]);

		lens[d] = to > from ? to - from : 0;
		in_at[d] = from - low;
		out_at[d] = from - x->begin[d];
	}
	concat_box(b->rank, sizeof(*in), lens, (const uint8_t *)in, b->chunk, in_at,
		   (uint8_t *)x->t.v, x->a->chunk, out_at);
	return 0;
}

/* put_vlen_member - all chunks of a member that have a part in it. */
static int put_vlen_member(struct vlen *x, uint32_t member, const struct concat_opened *at,
			   struct err *e)
{
	const struct ds_array *b = &at->source->ds.arrays[at->arrays[x->array]];
	uint64_t coords[DS_RANK_MAX];
	int rc = 0;

	/* chunks of texts are few: all are looked at, those without a part are passed over */
	for (uint64_t i = 0; i < b->n_chunks && rc == 0; i++) {
		bool in = true;

		ds_chunk_coords(b, i, coords);
		for (uint32_t d = 0; d < b->rank; d++) {
			uint64_t low = coords[d] * b->chunk[d], high = low + b->chunk[d];

			if (d == x->j->arrays[x->array].axis) {
				low += x->j->members[member].start;
				high = u64_min(high, b->shape[d]) +
				       x->j->members[member].start;
			}
			in = in && low < x->end[d] && high > x->begin[d];
		}
		if (in)
			rc = concat_read_put_one(x, member, at, coords, e);
	}
	return rc;
}

static int concat_read_collect(struct vlen *x, struct err *e)
{
	struct concat *j = x->j;
	uint32_t axis = j->arrays[x->array].axis;
	int rc = 0;

	for (uint32_t m = concat_member_at(j, x->begin[axis]);
	     rc == 0 && m < j->n_members && j->members[m].start < x->end[axis]; m++) {
		const struct concat_opened *at;

		if (j->members[m].len == 0)
			continue;
		rc = concat_take(j, m, &at, e);
		if (rc < 0)
			return rc;
		rc = concat_checked(j, m, at, put_vlen_member(x, m, at, e), e);
	}
	return rc;
}

int concat_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e)
{
	struct concat *j = concat_of(s);
	struct vlen x = {.j = j, .array = array, .a = &s->ds.arrays[array]};
	uint64_t coords[DS_RANK_MAX];
	int rc;

	if (!j->arrays[array].joined)
		return source_read_vlen(j->first, array, linear, out, e);
	rc = frame_count(x.a, &x.t.n, e);
	if (rc < 0)
		return rc;
	x.t.v = alloc_array((size_t)x.t.n, sizeof(*x.t.v));
	if (!x.t.v)
		return err_nomem(e);
	for (uint64_t i = 0; i < x.t.n; i++)
		x.t.v[i] = x.a->fill_text;
	ds_chunk_coords(x.a, linear, coords);
	for (uint32_t d = 0; d < x.a->rank; d++) {
		x.begin[d] = coords[d] * x.a->chunk[d];
		x.end[d] = u64_min(x.begin[d] + x.a->chunk[d], x.a->shape[d]);
	}
	rc = concat_read_collect(&x, e);
	for (uint64_t i = 0; i < x.t.n && rc == 0; i++) {
		buf_put_le32(out, (uint32_t)x.t.v[i].len);
		if (x.t.v[i].len > 0)
			buf_put(out, x.t.v[i].s, x.t.v[i].len);
	}
	while (x.bodies) {
		struct concat_read_body *next = x.bodies->next;

		buf_release(&x.bodies->b);
		free(x.bodies);
		x.bodies = next;
	}
	free(x.t.v);
	return rc; /* whether it all fitted the caller looks */
}

/* A box of elements from one block to another. */

/* offset_of - of an element, in elements. */
static uint64_t offset_of(uint32_t rank, const uint64_t *dims, const uint64_t *at)
{
	uint64_t off = 0;

	for (uint32_t d = 0; d < rank; d++)
		off = off * dims[d] + at[d];
	return off;
}

void concat_box(uint32_t rank, size_t elem, const uint64_t *lens, const uint8_t *in,
		const uint64_t *in_dims, const uint64_t *in_at, uint8_t *out,
		const uint64_t *out_dims, const uint64_t *out_at)
{
	uint64_t from[DS_RANK_MAX], to[DS_RANK_MAX], i[DS_RANK_MAX] = {0};
	uint32_t outer = rank;
	uint64_t run = 1;

	for (uint32_t d = 0; d < rank; d++)
		if (lens[d] == 0)
			return;
	/* trailing dimensions that are whole in both are one run, and the one before it */
	while (outer > 0) {
		outer--;
		run *= lens[outer];
		if (lens[outer] != in_dims[outer] || lens[outer] != out_dims[outer])
			break;
	}
	memcpy(from, in_at, rank * sizeof(*from));
	memcpy(to, out_at, rank * sizeof(*to));
	for (;;) {
		uint32_t d = outer;

		memcpy(out + offset_of(rank, out_dims, to) * elem,
		       in + offset_of(rank, in_dims, from) * elem, (size_t)run * elem);
		while (d > 0) {
			d--;
			i[d]++;
			from[d]++;
			to[d]++;
			if (i[d] < lens[d])
				break;
			from[d] -= i[d];
			to[d] -= i[d];
			i[d] = 0;
			if (d == 0)
				return;
		}
		if (outer == 0)
			return;
	}
}
