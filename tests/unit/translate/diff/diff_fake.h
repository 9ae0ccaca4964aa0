/* SPDX-License-Identifier: BSD-3-Clause */
/* diff_fake.h - sources made of a few lines, whose elements are numbers that give their position,
 * and a sink that records its calls. */
#ifndef TESTS_UNIT_TRANSLATE_DIFF_DIFF_FAKE_H
#define TESTS_UNIT_TRANSLATE_DIFF_DIFF_FAKE_H

#include "translate/diff/diff.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_OBJECTS = 2100, MAX_CHUNKS = 512, MAX_ATTRS = 4 };

/* model - a source. Chunks of array i are int16 elements: value + their number in the array. */
struct model {
	struct source base;
	struct arena arena;
	struct ds_group groups[8];
	struct ds_dim dims[64];
	struct ds_array arrays[MAX_OBJECTS];
	struct ds_attr attrs[MAX_OBJECTS + 8][MAX_ATTRS];
	char names[MAX_OBJECTS][24];
	bool absent[8][MAX_CHUNKS], bad[8][MAX_CHUNKS]; /* of the first arrays */
	int16_t value[8];
	uint32_t mask; /* of all stored chunks */
	uint64_t pad;
	_Atomic int reads, stored_reads;
};

static inline struct model *model_of(struct source *s)
{
	return CONTAINER_OF(s, struct model, base);
}

static inline int fake_locate(struct source *s, uint32_t array, uint64_t linear,
			      struct chunk_ref *ret, struct err *e)
{
	struct model *m = model_of(s);

	(void)e;
	*ret = (struct chunk_ref){.where = CHUNK_RANGE,
				  .off = linear * 1000,
				  .len = s->ds.arrays[array].chunk_bytes,
				  .pad = m->pad,
				  .filter_mask = m->mask};
	if (array < 8 && linear < MAX_CHUNKS && m->absent[array][linear])
		*ret = (struct chunk_ref){.where = CHUNK_ABSENT};
	return 0;
}

static inline int fake_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
			    struct err *e)
{
	for (; from < s->ds.arrays[array].n_chunks; from++)
		if (array >= 8 || from >= MAX_CHUNKS || !model_of(s)->absent[array][from]) {
			*ret = from;
			return 0;
		}
	return err_set(e, -ENOENT, "none");
}

/* place - number of an element of the array; -1: the array ends before it. */
static inline int64_t place(const struct ds_array *a, uint64_t linear, uint64_t i)
{
	uint64_t coords[DS_RANK_MAX], in[DS_RANK_MAX], n = 0;

	ds_chunk_coords(a, linear, coords);
	for (uint32_t d = a->rank; d-- > 0;) {
		in[d] = i % a->chunk[d] + coords[d] * a->chunk[d];
		i /= a->chunk[d];
		if (in[d] >= a->shape[d])
			return -1;
	}
	for (uint32_t d = 0; d < a->rank; d++)
		n = n * a->shape[d] + in[d];
	return (int64_t)n;
}

static inline int fake_read_chunk(struct source *s, uint32_t array, uint64_t linear,
				  uint8_t *out, size_t len, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	struct model *m = model_of(s);

	m->reads++;
	if (array < 8 && m->bad[array][linear])
		return err_set(e, -EBADMSG, "damaged");
	for (uint64_t i = 0; i < len / 2; i++) {
		int64_t at = place(a, linear, i);
		int16_t v = at < 0 ? -1 : (int16_t)((array < 8 ? m->value[array] : 0) + at);

		if (array < 8 && m->absent[array][linear])
			memcpy(&v, a->fill, 2);
		memcpy(out + 2 * i, &v, 2);
	}
	return 0;
}

static inline int fake_read_vlen(struct source *s, uint32_t array, uint64_t linear,
				 struct buf *out, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t n = 1;
	char text[32];

	(void)e;
	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d];
	for (uint64_t i = 0; i < n; i++) {
		int len = snprintf(text, sizeof(text), "t%lld", (long long)place(a, linear, i));

		buf_put_le32(out, (uint32_t)len);
		buf_put(out, text, (size_t)len);
	}
	return 0;
}

static inline int fake_read_stored(struct source *s, uint32_t array, uint64_t linear,
				   const struct chunk_ref *ref, uint64_t off, uint8_t *out,
				   size_t len, struct err *e)
{
	(void)ref;
	(void)off;
	(void)linear;
	(void)e;
	model_of(s)->stored_reads++;
	if (array < 8 && model_of(s)->bad[array][linear])
		return err_set(e, -EBADMSG, "damaged");
	memset(out, 's', len);
	return 0;
}

static const struct source_ops fake_source_ops = {
	.name = "fake",
	.locate = fake_locate,
	.next = fake_next,
	.read_chunk = fake_read_chunk,
	.read_vlen = fake_read_vlen,
	.read_stored = fake_read_stored,
};

/* ---- building ---- */

static inline struct model *model_new(void)
{
	struct model *m = alloc_array(1, sizeof(*m));
	struct dataset *ds;

	assert_non_null(m);
	ds = &m->base.ds;
	m->base.ops = &fake_source_ops;
	arena_init(&m->arena, SIZE_MAX / 2);
	*ds = (struct dataset){.format = "fake",
			       .n_groups = 1,
			       .groups = m->groups,
			       .dims = m->dims,
			       .arrays = m->arrays};
	m->groups[0] = (struct ds_group){.name = "", .parent = DS_NONE, .attrs = m->attrs[0]};
	return m;
}

static inline void model_free(struct model *m)
{
	arena_release(&m->arena);
	free(m);
}

static inline void *keep(struct model *m, const void *p, size_t n)
{
	void *q = arena_copy(&m->arena, p, n);

	assert_non_null(q);
	return q;
}

/* append - one more ordinal behind n of a list in the arena. */
static inline const uint32_t *append(struct model *m, const uint32_t *list, uint32_t n,
				     uint32_t x)
{
	uint32_t *v = arena_alloc(&m->arena, n + 1, sizeof(*v));

	assert_non_null(v);
	if (n > 0)
		memcpy(v, list, n * sizeof(*v));
	v[n] = x;
	return v;
}

static inline uint32_t group(struct model *m, uint32_t parent, const char *name)
{
	uint32_t i = m->base.ds.n_groups++;
	struct ds_group *up = &m->groups[parent];

	m->groups[i] = (struct ds_group){
		.name = name, .parent = parent, .attrs = m->attrs[MAX_OBJECTS + i]};
	up->groups = append(m, up->groups, up->n_groups, i);
	up->n_groups++;
	return i;
}

static inline uint32_t dim(struct model *m, uint32_t g, const char *name, uint64_t len,
			   bool unlimited)
{
	uint32_t i = m->base.ds.n_dims++;
	struct ds_group *up = &m->groups[g];

	m->dims[i] =
		(struct ds_dim){.name = name, .len = len, .unlimited = unlimited, .group = g};
	up->dims = append(m, up->dims, up->n_dims, i);
	up->n_dims++;
	return i;
}

static inline void finish(struct model *m, uint32_t array)
{
	struct ds_array *a = &m->arrays[array];

	m->base.ds.arena = m->arena;
	assert_int_equal(ds_array_finish(&m->base.ds, a, (uint64_t)1 << 32, NULL), 0);
	m->arena = m->base.ds.arena;
}

/* array - of int16; n dims with chunk lengths. The lengths are those of the dimensions. */
static inline uint32_t array(struct model *m, uint32_t g, const char *name, uint32_t rank,
			     const uint32_t *dims, const uint64_t *chunk)
{
	static const int16_t fill = -7;
	uint32_t i = m->base.ds.n_arrays++;
	struct ds_group *up = &m->groups[g];
	uint64_t shape[DS_RANK_MAX] = {0};

	for (uint32_t d = 0; d < rank; d++)
		shape[d] = m->dims[dims[d]].len;
	(void)snprintf(m->names[i], sizeof(m->names[i]), "%s", name);
	m->arrays[i] = (struct ds_array){
		.name = m->names[i],
		.group = g,
		.type = {.kind = DT_INT, .size = 2},
		.rank = rank,
		.shape = keep(m, shape, rank * sizeof(*shape) + 1),
		.chunk = keep(m, chunk, rank * sizeof(*chunk)),
		.dims = keep(m, dims, rank * sizeof(*dims)),
		.attrs = m->attrs[i + 1 < MAX_OBJECTS ? i + 1 : 0],
		.fill = (const uint8_t *)&fill,
		.fill_defined = true,
		.layout = DS_CHUNKED,
		.access = DS_STORED,
	};
	finish(m, i);
	up->arrays = append(m, up->arrays, up->n_arrays, i);
	up->n_arrays++;
	return i;
}

/* attr - an int attribute of an array; or of a group when array is DS_NONE. */
static inline struct ds_attr *attr(struct model *m, uint32_t g, uint32_t x, const char *name,
				   int32_t v)
{
	struct ds_attr *list =
		x == DS_NONE ? m->attrs[g ? MAX_OBJECTS + g : 0] : m->attrs[x + 1];
	uint32_t *n = x == DS_NONE ? &m->groups[g].n_attrs : &m->arrays[x].n_attrs;

	list[*n] = (struct ds_attr){.name = name,
				    .type = {.kind = DT_INT, .size = 4},
				    .n = 1,
				    .data = keep(m, &v, sizeof(v))};
	return &list[(*n)++];
}

/* ---- the sink ---- */

struct recorder {
	struct sink base;
	struct source *was, *now;
	struct buf log;
	const uint64_t *chunk; /* of target; NULL: now's */
	struct codec_chain chain;
	bool takes_stored;
	struct sink_new how; /* the last; what it points to is copied */
	uint64_t how_chunk[8];
	struct codec_spec how_specs[4];
	struct buf last; /* content of the last put */
	int fail_put;    /* an error for it */
};

static inline struct recorder *rec_of(struct sink *s)
{
	return CONTAINER_OF(s, struct recorder, base);
}

static inline void say(struct sink *s, const char *verb, const struct dataset *ds, uint32_t g,
		       uint32_t a, const char *rest)
{
	struct buf *b = &rec_of(s)->log;

	buf_printf(b, "%s ", verb);
	if (a != DS_NONE)
		ds_array_path(ds, a, b);
	else
		ds_group_path(ds, g, b);
	buf_printf(b, "%s%s\n", rest[0] ? " " : "", rest);
}

static inline void rec_close(struct sink *s)
{
	buf_release(&rec_of(s)->log);
	buf_release(&rec_of(s)->last);
}

static inline int rec_begin(struct sink *s, struct source *was, struct source *now,
			    struct err *e)
{
	(void)e;
	assert_null(rec_of(s)->now);
	rec_of(s)->was = was;
	rec_of(s)->now = now;
	return 0;
}

static inline int rec_remove_array(struct sink *s, uint32_t a, struct err *e)
{
	(void)e;
	say(s, "-array", &rec_of(s)->was->ds, 0, a, "");
	return 0;
}

static inline int rec_remove_group(struct sink *s, uint32_t g, struct err *e)
{
	(void)e;
	say(s, "-group", &rec_of(s)->was->ds, g, DS_NONE, "");
	return 0;
}

static inline int rec_add_group(struct sink *s, uint32_t g, struct err *e)
{
	(void)e;
	say(s, "+group", &rec_of(s)->now->ds, g, DS_NONE, "");
	return 0;
}

static inline int rec_add_array(struct sink *s, uint32_t a, const struct sink_new *how,
				struct err *e)
{
	struct recorder *r = rec_of(s);
	uint32_t rank = r->now->ds.arrays[a].rank;

	(void)e;
	r->how = *how;
	if (how->chunk)
		memcpy(r->how_chunk, how->chunk, rank * sizeof(uint64_t));
	for (uint32_t i = 0; i < how->chain.n; i++)
		r->how_specs[i] = how->chain.specs[i];
	r->chain = (struct codec_chain){how->chain.n, r->how_specs};
	say(s, "+array", &r->now->ds, 0, a, "");
	return 0;
}

static inline int rec_rename(struct sink *s, uint32_t was, uint32_t now, struct err *e)
{
	(void)e;
	say(s, "rename", &rec_of(s)->was->ds, 0, was, "");
	say(s, "to", &rec_of(s)->now->ds, 0, now, "");
	return 0;
}

static inline int rec_dims(struct sink *s, struct err *e)
{
	(void)e;
	buf_puts(&rec_of(s)->log, "dims\n");
	return 0;
}

static inline int rec_resize(struct sink *s, uint32_t a, struct err *e)
{
	(void)e;
	say(s, "resize", &rec_of(s)->now->ds, 0, a, "");
	return 0;
}

static inline int rec_set_attr(struct sink *s, uint32_t g, uint32_t a, const struct ds_attr *x,
			       struct err *e)
{
	(void)e;
	say(s, "set", &rec_of(s)->now->ds, g, a, x->name);
	return 0;
}

static inline int rec_remove_attr(struct sink *s, uint32_t g, uint32_t a, const char *name,
				  struct err *e)
{
	(void)e;
	say(s, "unset", &rec_of(s)->now->ds, g, a, name);
	return 0;
}

static inline int rec_target(struct sink *s, uint32_t a, struct sink_array *ret, struct err *e)
{
	struct recorder *r = rec_of(s);

	(void)a;
	(void)e;
	*ret = (struct sink_array){
		.chunk = r->chunk, .chain = r->chain, .takes_stored = r->takes_stored};
	return 0;
}

static inline int rec_put(struct sink *s, uint32_t a, uint64_t linear,
			  const struct sink_chunk *c, struct err *e)
{
	struct recorder *r = rec_of(s);
	char text[64];

	if (r->fail_put)
		return err_set(e, r->fail_put, "no");
	(void)snprintf(text, sizeof(text), "%llu %s%s%zu", (unsigned long long)linear,
		       c->stored ? "stored " : "", c->filter_mask ? "masked " : "", c->len);
	say(s, "put", &r->now->ds, 0, a, text);
	buf_clear(&r->last);
	buf_put(&r->last, c->p, c->len);
	return 0;
}

static inline int rec_drop(struct sink *s, uint32_t a, uint64_t linear, struct err *e)
{
	char text[32];

	(void)e;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)linear);
	say(s, "drop", &rec_of(s)->now->ds, 0, a, text);
	return 0;
}

static inline int rec_commit(struct sink *s, int (*gate)(void *arg, struct err *e), void *arg,
			     struct err *e)
{
	int rc = gate ? gate(arg, e) : 0;

	buf_puts(&rec_of(s)->log, rc ? "gate\n" : "commit\n");
	return rc;
}

static const struct sink_ops recorder_ops = {
	.name = "recorder",
	.close = rec_close,
	.begin = rec_begin,
	.remove_array = rec_remove_array,
	.remove_group = rec_remove_group,
	.add_group = rec_add_group,
	.add_array = rec_add_array,
	.rename_array = rec_rename,
	.dims = rec_dims,
	.resize = rec_resize,
	.set_attr = rec_set_attr,
	.remove_attr = rec_remove_attr,
	.target = rec_target,
	.put = rec_put,
	.drop = rec_drop,
	.commit = rec_commit,
};

static inline void recorder_init(struct recorder *r)
{
	*r = (struct recorder){.base.ops = &recorder_ops};
	buf_init(&r->log, (size_t)1 << 24);
	buf_init(&r->last, (size_t)1 << 24);
}

/* said - everything that the recorder was told; borrowed. */
static inline const char *said(struct recorder *r)
{
	buf_putc(&r->log, '\0');
	r->log.len--;
	return (const char *)r->log.data;
}

/* fake_changed - chunks whose number is in the list that arg begins with; see struct changes. */
struct changes {
	uint64_t linear[16];
	size_t n;
	uint32_t moved; /* for moved_from */
	int refusals;
	bool refuse; /* leave out what cannot be read */
	int gate;
};

static inline int fake_changed(void *arg, uint32_t a, uint32_t was, uint64_t from,
			       uint64_t *ret, struct err *e)
{
	const struct changes *c = arg;

	(void)a;
	(void)was;
	(void)e;
	for (size_t i = 0; i < c->n; i++)
		if (c->linear[i] >= from) {
			*ret = c->linear[i];
			return 0;
		}
	return -ENOENT;
}

#endif
