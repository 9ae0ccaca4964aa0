/* SPDX-License-Identifier: BSD-3-Clause */
/* nczarr_sample.h - a dataset built by hand with one array of every kind, and a source that
 * serves it: the arrays' values are a function of their ordinal and the element's index. */
#ifndef TESTS_UNIT_NCZARR_VIEW_NCZARR_SAMPLE_H
#define TESTS_UNIT_NCZARR_VIEW_NCZARR_SAMPLE_H

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "translate/contract/source.h"

enum {
	S_I,     /* <i4 (y, x), stored without filters, fill value declared, one chunk absent */
	S_F,     /* <f4 (t, y, x), stored shuffled and deflated, fill value not declared */
	S_BIG,   /* >f8 (x), one chunk absent and presented */
	S_SC,    /* <i4 scalar */
	S_C,     /* char (y, x) */
	S_S,     /* texts (y) */
	S_B,     /* bool (y) */
	S_H,     /* <f2 (y) */
	S_CX,    /* <c8 (y) */
	S_CMP,   /* compound (y) */
	S_OP,    /* opaque of 5 (y) */
	S_VL,    /* vlen of <i4 (y) */
	S_FS,    /* texts of 5 bytes (y) */
	S_EMPTY, /* <i8 (none, x), no chunks */
	S_BAD,   /* <i2 (y), cannot be read */
	S_HUGE,  /* |u1 with more chunks than ids */
	S_REC,   /* <i2 (t), deflated, its chunk longer than the array */
	S_V,     /* |u1 (z, y) in /g1 */
	S_DEEP,  /* <i2 (x) in /g1/g2, with a name that is not ASCII */
	S_N
};

#define S_DEEP_NAME "na\xc3\xafve\xf0\x9f\x98\x80"

struct sample {
	struct source base;
	int fd;                         /* stored chunks */
	struct chunk_ref refs[S_N][32]; /* of the arrays that are stored */
};

static inline void *s_alloc(struct dataset *ds, size_t n, size_t size)
{
	void *p = arena_alloc(&ds->arena, n, size);

	assert(p);
	return p;
}

/* s_u64 - an array of n numbers in the arena. */
static inline const uint64_t *s_u64(struct dataset *ds, size_t n, const uint64_t *v)
{
	uint64_t *p = s_alloc(ds, n, sizeof(*p));

	if (n)
		memcpy(p, v, n * sizeof(*p));
	return p;
}

/* ---- values ---- */

static inline void s_number(const struct dtype *t, uint32_t size, uint64_t k, uint8_t *out)
{
	double d = (double)k + 0.5;
	float f = (float)d;
	uint64_t bits = k;
	uint32_t bits32;

	if (t->kind == DT_FLOAT || t->kind == DT_COMPLEX) {
		memcpy(&bits32, &f, sizeof(f));
		memcpy(&bits, &d, sizeof(d));
		if (size == 4)
			bits = bits32;
		if (size == 2)
			bits = 0x3c00 + (k & 7) * 64; /* 1.0, 1.0625, ... */
	}
	for (uint32_t i = 0; i < size; i++)
		out[t->big_endian ? size - 1 - i : i] = (uint8_t)(bits >> 8 * i);
}

static inline void s_value(const struct dtype *t, uint64_t k, uint8_t *out)
{
	k %= 100;
	memset(out, 0, t->size);
	switch (t->kind) {
	case DT_BOOL:
		out[0] = k & 1;
		break;
	case DT_STRING:
		for (uint32_t i = 0; i < t->size && i <= k % 5; i++)
			out[i] = (uint8_t)('a' + k % 26);
		break;
	case DT_OPAQUE:
		memset(out, (int)k, t->size);
		break;
	case DT_COMPLEX:
		s_number(t, t->size / 2, k, out);
		s_number(t, t->size / 2, k + 1, out + t->size / 2);
		break;
	case DT_COMPOUND:
		for (uint32_t i = 0; i < t->n_fields; i++)
			s_value(&t->fields[i].type, k + i, out + t->fields[i].offset);
		break;
	default:
		s_number(t, t->size, k, out);
	}
}

/* s_chunk - the presented bytes of a chunk. */
static inline void s_chunk(const struct ds_array *a, uint32_t ord, uint64_t linear,
			   uint8_t *out)
{
	uint64_t coords[DS_RANK_MAX];
	uint64_t n = a->chunk_bytes / a->type.size;

	ds_chunk_coords(a, linear, coords);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t rest = i, at = 0, scale = 1;
		bool inside = true;

		for (uint32_t d = a->rank; d-- > 0;) {
			uint64_t x = coords[d] * a->chunk[d] + rest % a->chunk[d];

			rest /= a->chunk[d];
			inside = inside && x < a->shape[d];
			at += x * scale;
			scale *= a->shape[d];
		}
		if (inside)
			s_value(&a->type, ord * 7 + at, out + i * a->type.size);
		else
			memcpy(out + i * a->type.size, a->fill, a->type.size);
	}
}

/* ---- the source ---- */

static inline bool s_absent(uint32_t array, uint64_t linear)
{
	return (array == S_I && linear == 3) || (array == S_BIG && linear == 1);
}

static inline int s_locate(struct source *s, uint32_t array, uint64_t linear,
			   struct chunk_ref *ret, struct err *e)
{
	struct sample *x = CONTAINER_OF(s, struct sample, base);

	(void)e;
	*ret = (struct chunk_ref){.where = CHUNK_SYNTH};
	if (s_absent(array, linear))
		ret->where = CHUNK_ABSENT;
	else if (array == S_I || array == S_F || array == S_REC)
		*ret = x->refs[array][linear];
	return 0;
}

static inline int s_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
			 struct err *e)
{
	while (s_absent(array, from))
		from++;
	if (from >= s->ds.arrays[array].n_chunks)
		return err_set(e, -ENOENT, "no more chunks");
	*ret = from;
	return 0;
}

static inline int s_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
			       size_t len, struct err *e)
{
	(void)e;
	assert(len == s->ds.arrays[array].chunk_bytes);
	s_chunk(&s->ds.arrays[array], array, linear, out);
	return 0;
}

static inline int s_read_vlen(struct source *s, uint32_t array, uint64_t linear,
			      struct buf *out, struct err *e)
{
	static const char *const texts[] = {"", "a", "b\xc3\xa9", "four"};

	(void)s;
	(void)e;
	for (uint64_t i = linear * 2; i < linear * 2 + 2; i++) {
		if (array == S_S) {
			buf_put_le32(out, (uint32_t)strlen(texts[i]));
			buf_puts(out, texts[i]);
			continue;
		}
		buf_put_le32(out, (uint32_t)i * 4);
		for (uint32_t k = 0; k < i; k++)
			buf_put_le32(out, k);
	}
	return 0;
}

static inline int s_fd(struct source *s, uint32_t blob)
{
	(void)blob;
	return CONTAINER_OF(s, struct sample, base)->fd;
}

static inline int s_check(struct source *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

static inline void s_close(struct source *s)
{
	struct sample *x = CONTAINER_OF(s, struct sample, base);

	arena_release(&s->ds.arena);
	(void)close(x->fd);
	free(x);
}

static const struct source_ops s_ops = {.name = "sample",
					.close = s_close,
					.locate = s_locate,
					.next = s_next,
					.read_chunk = s_read_chunk,
					.read_vlen = s_read_vlen,
					.fd = s_fd,
					.check = s_check};

/* ---- the model ---- */

static inline struct ds_attr s_text_attr(const char *name, const char *text,
					 struct ds_text *room)
{
	*room = (struct ds_text){text, strlen(text)};
	return (struct ds_attr){.name = name,
				.n = 1,
				.strings = room,
				.type = {.kind = DT_STRING, .size = (uint32_t)strlen(text)}};
}

static inline struct ds_attr s_attr(const char *name, enum dt_kind kind, uint32_t size,
				    size_t n, const void *data, const uint64_t *dims)
{
	return (struct ds_attr){.name = name,
				.type = {.kind = kind, .size = size},
				.n = n,
				.rank = n == 1 ? 0 : 1,
				.dims = dims,
				.data = data};
}

static inline void s_set(struct dataset *ds, uint32_t ord, struct ds_array a)
{
	uint8_t *fill = s_alloc(ds, a.type.size, 1);
	uint64_t shape[4], chunk[4];
	int rc;

	for (uint32_t d = 0; d < a.rank; d++) {
		shape[d] = a.shape[d];
		chunk[d] = a.chunk[d];
	}
	a.shape = s_u64(ds, a.rank, shape);
	a.chunk = s_u64(ds, a.rank, chunk);
	if (a.fill)
		memcpy(fill, a.fill, a.type.size);
	a.fill = dt_is_vlen(&a.type) ? NULL : fill;
	rc = ds_array_finish(ds, &a, 1 << 20, NULL);
	assert(rc == 0);
	(void)rc;
	ds->arrays[ord] = a;
}

#define S_LIST(...)                                                                            \
	(const uint64_t[])                                                                     \
	{                                                                                      \
		__VA_ARGS__                                                                    \
	}

static inline void s_arrays(struct dataset *ds)
{
	static const uint32_t t_y_x[] = {0, 1, 2}, z_y[] = {3, 1}, none_x[] = {4, 2},
			      huge[] = {5};
	static const uint32_t *const y_x = t_y_x + 1, *const y = t_y_x + 1,
				     *const x = t_y_x + 2;
	static const uint64_t three[] = {3};
	static const struct dtype i4 = {.kind = DT_INT, .size = 4};
	static const struct dt_field fields[] = {
		{.name = "a", .offset = 0, .type = {.kind = DT_INT, .size = 2}},
		{.name = "v",
		 .offset = 2,
		 .rank = 1,
		 .dims = three,
		 .type = {.kind = DT_FLOAT, .size = 4}}};
	static const uint32_t level[] = {4};
	static const struct codec_spec specs[] = {
		{.h5_id = CODEC_SHUFFLE, .name = "shuffle"},
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = "deflate"}};
	static const struct {
		uint32_t ord;
		const char *name;
		struct dtype type;
	} by_y[] = {{S_S, "s", {.kind = DT_VSTRING}},
		    {S_B, "b", {.kind = DT_BOOL, .size = 1}},
		    {S_H, "h", {.kind = DT_FLOAT, .size = 2}},
		    {S_CX, "cx", {.kind = DT_COMPLEX, .size = 8}},
		    {S_CMP,
		     "cmp",
		     {.kind = DT_COMPOUND, .size = 14, .n_fields = 2, .fields = fields}},
		    {S_OP, "op", {.kind = DT_OPAQUE, .size = 5}},
		    {S_VL, "vl", {.kind = DT_VLEN, .base = &i4}},
		    {S_FS, "fs", {.kind = DT_STRING, .size = 5}},
		    {S_BAD, "bad", {.kind = DT_INT, .size = 2}}};
	static const float fill = 9.96921e+36f;

	s_set(ds, S_I,
	      (struct ds_array){.name = "i",
				.type = i4,
				.rank = 2,
				.dims = y_x,
				.shape = S_LIST(4, 6),
				.chunk = S_LIST(2, 3),
				.fill_defined = true,
				.fill = (const uint8_t *)"\xff\xff\xff\xff"});
	s_set(ds, S_F,
	      (struct ds_array){.name = "f",
				.type = {.kind = DT_FLOAT, .size = 4},
				.rank = 3,
				.dims = t_y_x,
				.shape = S_LIST(3, 4, 6),
				.chunk = S_LIST(1, 3, 6),
				.fill_defined = true,
				.fill = (const uint8_t *)&fill,
				.chain = {2, specs}});
	s_set(ds, S_BIG,
	      (struct ds_array){.name = "big",
				.rank = 1,
				.dims = x,
				.type = {.kind = DT_FLOAT, .size = 8, .big_endian = true},
				.shape = S_LIST(6),
				.chunk = S_LIST(4),
				.access = DS_CONVERT});
	s_set(ds, S_SC, (struct ds_array){.name = "sc", .type = i4, .access = DS_CONVERT});
	s_set(ds, S_C,
	      (struct ds_array){.name = "c",
				.type = {.kind = DT_STRING, .size = 1},
				.rank = 2,
				.dims = y_x,
				.shape = S_LIST(4, 6),
				.chunk = S_LIST(4, 6),
				.access = DS_CONVERT,
				.fill_defined = true});
	for (size_t i = 0; i < ARRAY_LEN(by_y); i++)
		s_set(ds, by_y[i].ord,
		      (struct ds_array){.name = by_y[i].name,
					.type = by_y[i].type,
					.rank = 1,
					.dims = y,
					.shape = S_LIST(4),
					.chunk = S_LIST(2),
					.access = dt_is_vlen(&by_y[i].type) ? DS_VARIABLE
									    : DS_CONVERT});
	ds->arrays[S_BAD].unreadable = "no decoder";
	s_set(ds, S_EMPTY,
	      (struct ds_array){.name = "empty",
				.type = {.kind = DT_INT, .size = 8},
				.rank = 2,
				.dims = none_x,
				.shape = S_LIST(0, 6),
				.chunk = S_LIST(1, 6),
				.access = DS_CONVERT});
	s_set(ds, S_HUGE,
	      (struct ds_array){.name = "huge",
				.type = {.kind = DT_UINT, .size = 1},
				.rank = 1,
				.dims = huge,
				.access = DS_CONVERT,
				.shape = S_LIST((uint64_t)1 << 60),
				.chunk = S_LIST(1)});
	s_set(ds, S_REC,
	      (struct ds_array){.name = "rec",
				.type = {.kind = DT_INT, .size = 2},
				.rank = 1,
				.dims = t_y_x,
				.shape = S_LIST(3),
				.chunk = S_LIST(16),
				.chain = {1, specs + 1}});
	s_set(ds, S_V,
	      (struct ds_array){.name = "v",
				.type = {.kind = DT_UINT, .size = 1},
				.rank = 2,
				.dims = z_y,
				.shape = S_LIST(2, 4),
				.chunk = S_LIST(2, 4),
				.group = 1,
				.access = DS_CONVERT});
	s_set(ds, S_DEEP,
	      (struct ds_array){.name = S_DEEP_NAME,
				.rank = 1,
				.dims = x,
				.group = 2,
				.type = {.kind = DT_INT, .size = 2},
				.shape = S_LIST(6),
				.chunk = S_LIST(6),
				.access = DS_CONVERT});
}

static inline void s_attrs(struct dataset *ds)
{
	static struct ds_text text[6];
	static const struct ds_text list[] = {{"one", 3}, {"t\xc3\xb6o", 4}};
	static const uint64_t n0[] = {0}, n2[] = {2}, n3[] = {3}, n2x2[] = {2, 2};
	static const int32_t minus[] = {-1}, four[] = {1, 2, 3, 4};
	static const int64_t big[] = {INT64_MIN};
	static const double third[] = {0.1};
	static const uint32_t bits[] = {0x3f800000, 0x7fc00000, 0xff800000}; /* 1, NaN, -inf */
	static const uint8_t yes[] = {1};
	struct ds_attr *at = s_alloc(ds, 7, sizeof(*at));

	ds->groups[0].attrs = at;
	ds->groups[0].n_attrs = 7;
	at[0] = s_text_attr("title", "\"caf\xc3\xa9\"\n", &text[0]);
	at[1] = s_attr("g_int", DT_INT, 8, 1, big, n0);
	at[2] = (struct ds_attr){.name = "names",
				 .type = {.kind = DT_VSTRING},
				 .rank = 1,
				 .dims = n2,
				 .n = 2,
				 .strings = list};
	at[3] = s_attr("none", DT_INT, 4, 0, NULL, n0);
	at[4] = s_attr("flag", DT_BOOL, 1, 1, yes, n0);
	at[5] = s_text_attr("json", "17", &text[1]);
	at[6] = s_attr("square", DT_INT, 4, 4, four, n2x2);
	at[6].rank = 2;

	at = s_alloc(ds, 4, sizeof(*at));
	ds->arrays[S_I].attrs = at;
	ds->arrays[S_I].n_attrs = 4;
	at[0] = s_attr("_FillValue", DT_INT, 4, 1, minus, n0);
	at[1] = s_text_attr("units",
			    "\xc2\xb0"
			    "C",
			    &text[2]);
	at[2] = s_attr("scale_factor", DT_FLOAT, 8, 1, third, n0);
	at[3] = s_text_attr("_ARRAY_DIMENSIONS", "mine", &text[3]);
	at = s_alloc(ds, 1, sizeof(*at));
	ds->arrays[S_F].attrs = at;
	ds->arrays[S_F].n_attrs = 1;
	at[0] = s_attr("valid", DT_FLOAT, 4, 3, bits, n3);
}

static inline void s_tree(struct dataset *ds)
{
	static const uint32_t groups[] = {1, 2}, dims[] = {0, 1, 2, 4, 5, 3};
	static const uint32_t in_g1[] = {S_V}, in_g2[] = {S_DEEP};
	uint32_t *root = s_alloc(ds, S_N, sizeof(*root));

	ds->n_groups = 3;
	ds->n_arrays = S_N;
	ds->n_dims = 6;
	ds->groups = s_alloc(ds, 3, sizeof(*ds->groups));
	ds->arrays = s_alloc(ds, S_N, sizeof(*ds->arrays));
	ds->dims = s_alloc(ds, 6, sizeof(*ds->dims));
	for (uint32_t a = 0; a < S_V; a++)
		root[a] = a;
	ds->groups[0] = (struct ds_group){.name = "",
					  .parent = DS_NONE,
					  .n_groups = 1,
					  .groups = groups,
					  .n_arrays = S_V,
					  .arrays = root,
					  .n_dims = 5,
					  .dims = dims};
	ds->groups[1] = (struct ds_group){.name = "g1",
					  .parent = 0,
					  .n_groups = 1,
					  .groups = groups + 1,
					  .n_arrays = 1,
					  .arrays = in_g1,
					  .n_dims = 1,
					  .dims = dims + 5};
	ds->groups[2] =
		(struct ds_group){.name = "g2", .parent = 1, .n_arrays = 1, .arrays = in_g2};
	ds->dims[0] = (struct ds_dim){.name = "t", .len = 3, .unlimited = true};
	ds->dims[1] = (struct ds_dim){.name = "y", .len = 4};
	ds->dims[2] = (struct ds_dim){.name = "x", .len = 6};
	ds->dims[3] = (struct ds_dim){.name = "z", .len = 2, .group = 1};
	ds->dims[4] = (struct ds_dim){.name = "none", .len = 0};
	ds->dims[5] = (struct ds_dim){.name = "huge", .len = (uint64_t)1 << 60};
}

/* s_store - put the chunks of an array into the blob, in a form that its chain decodes. */
static inline void s_store(struct sample *s, uint32_t ord, uint64_t *at)
{
	const struct ds_array *a = &s->base.ds.arrays[ord];
	uint8_t raw[1024], out[2048];

	for (uint64_t c = 0; c < a->n_chunks; c++) {
		uint64_t n = a->chunk_bytes;
		ssize_t wrote;
		int rc = 0;

		assert(c < 32 && n <= sizeof(raw));
		s_chunk(a, ord, c, raw);
		memcpy(out, raw, (size_t)n);
		if (a->chain.n) {
			n = codec_chain_framed_size(&a->chain, a->chunk_bytes);
			assert(n > 0 && n <= sizeof(out));
			rc = codec_chain_frame(&a->chain, a->type.size, raw,
					       (size_t)a->chunk_bytes, out, NULL);
		}
		wrote = pwrite(s->fd, out, (size_t)n, (off_t)*at);
		assert(rc == 0 && wrote == (ssize_t)n);
		(void)rc;
		(void)wrote;
		s->refs[ord][c] =
			(struct chunk_ref){.where = CHUNK_RANGE, .off = *at, .len = n};
		*at += n;
	}
}

static inline struct source *sample_new(void)
{
	struct sample *s = calloc(1, sizeof(*s));
	uint64_t at = 0;

	assert(s);
	s->base.ops = &s_ops;
	s->fd = memfd_create("sample", MFD_CLOEXEC);
	assert(s->fd >= 0);
	arena_init(&s->base.ds.arena, 1 << 20);
	s_tree(&s->base.ds);
	s_arrays(&s->base.ds);
	s_attrs(&s->base.ds);
	s_store(s, S_I, &at);
	s_store(s, S_F, &at);
	s_store(s, S_REC, &at);
	return &s->base;
}

#endif
