/* read_vlen.c - chunks of elements without a fixed size, made of what several members have. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/chunkio/fill_chunk.h"

/* table - the elements of one joined chunk, wherever their bytes are. */
struct table {
	struct ds_text *v;
	uint64_t n;
};

/* body - what a member gave for one of its chunks; kept until the joined one is written. */
struct body {
	struct body *next;
	struct buf b;
};

struct vlen {
	struct join *j;
	uint32_t array;
	const struct ds_array *a;
	uint64_t begin[DS_RANK_MAX], end[DS_RANK_MAX];
	struct table t;
	struct body *bodies;
};

void join_vlen_parse(const struct buf *b, struct ds_text *out, uint64_t n)
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
	struct body *body = alloc_array(1, sizeof(*body));
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
	join_vlen_parse(&body->b, *ret, n);
	return 0;
}

/* put_one - the elements that chunk `coords` of a member has of the joined one. */
static int put_one(struct vlen *x, uint32_t member, const struct join_opened *at,
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
	join_box(b->rank, sizeof(*in), lens, (const uint8_t *)in, b->chunk, in_at,
		 (uint8_t *)x->t.v, x->a->chunk, out_at);
	return 0;
}

/* put_member - all chunks of a member that have a part in it. */
static int put_member(struct vlen *x, uint32_t member, const struct join_opened *at,
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
			rc = put_one(x, member, at, coords, e);
	}
	return rc;
}

static int collect(struct vlen *x, struct err *e)
{
	struct join *j = x->j;
	uint32_t axis = j->arrays[x->array].axis;
	int rc = 0;

	for (uint32_t m = join_member_at(j, x->begin[axis]);
	     rc == 0 && m < j->n_members && j->members[m].start < x->end[axis]; m++) {
		const struct join_opened *at;

		if (j->members[m].len == 0)
			continue;
		rc = join_take(j, m, &at, e);
		if (rc < 0)
			return rc;
		rc = join_checked(j, m, at, put_member(x, m, at, e), e);
	}
	return rc;
}

int join_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		   struct err *e)
{
	struct join *j = join_of(s);
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
	rc = collect(&x, e);
	for (uint64_t i = 0; i < x.t.n && rc == 0; i++) {
		buf_put_le32(out, (uint32_t)x.t.v[i].len);
		if (x.t.v[i].len > 0)
			buf_put(out, x.t.v[i].s, x.t.v[i].len);
	}
	while (x.bodies) {
		struct body *next = x.bodies->next;

		buf_release(&x.bodies->b);
		free(x.bodies);
		x.bodies = next;
	}
	free(x.t.v);
	return rc; /* whether it all fitted the caller looks */
}
