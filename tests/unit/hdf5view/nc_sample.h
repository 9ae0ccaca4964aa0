/* SPDX-License-Identifier: BSD-3-Clause */
/* nc_sample.h - a dataset that a test puts together piece by piece, and a source of its
 * variable-length elements: the input of a netCDF file. */
#ifndef TESTS_UNIT_HDF5VIEW_NC_SAMPLE_H
#define TESTS_UNIT_HDF5VIEW_NC_SAMPLE_H

#include "hdf5view/virtual/virtual_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NF_GROUPS 64
#define NF_DIMS 128
#define NF_ARRAYS 4096

struct nc_fake {
	struct source base;
	struct ds_group groups[NF_GROUPS];
	struct ds_dim dims[NF_DIMS];
	struct ds_array arrays[NF_ARRAYS];
	struct plan plans[NF_ARRAYS];
	uint64_t absent[NF_ARRAYS]; /* bit i: chunk i was never written */
	struct nc_model *model;
	struct nc_image image;
};

static inline struct nc_fake *nf_of(struct source *s)
{
	return CONTAINER_OF(s, struct nc_fake, base);
}

static inline void *nf_alloc(struct nc_fake *f, size_t n, size_t size)
{
	void *p = arena_alloc(&f->base.ds.arena, n, size);

	assert(p);
	return p;
}

static inline int nf_locate(struct source *s, uint32_t array, uint64_t linear,
			    struct chunk_ref *ret, struct err *e)
{
	(void)e;
	*ret = (struct chunk_ref){.where = CHUNK_SYNTH};
	if (linear < 64 && nf_of(s)->absent[array] >> linear & 1)
		ret->where = CHUNK_ABSENT;
	return 0;
}

/* Text of element i of a chunk: "" for 0, then "1", "22", "333" ... "999999999", "0" ...;
 * of a list: i % 10 times i. */
static inline int nf_read_vlen(struct source *s, uint32_t array, uint64_t linear,
			       struct buf *out, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t n = 1;

	(void)e;
	(void)linear;
	for (uint32_t d = 0; d < a->rank; d++)
		n *= a->chunk[d];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = i % 10;
		uint8_t v[8] = {(uint8_t)i};

		if (a->type.kind == DT_VSTRING)
			buf_put_le32(out, len);
		else
			buf_put_le32(out, len * a->type.base->size);
		for (uint32_t k = 0; k < len; k++)
			if (a->type.kind == DT_VSTRING)
				buf_putc(out, (char)('0' + i % 10));
			else
				buf_put(out, v, a->type.base->size);
	}
	return 0;
}

static const struct source_ops nf_ops = {
	.name = "fake", .locate = nf_locate, .read_vlen = nf_read_vlen};

static inline struct nc_fake *nf_new(void)
{
	struct nc_fake *f = calloc(1, sizeof(*f));

	assert(f);
	f->base.ops = &nf_ops;
	arena_init(&f->base.ds.arena, (size_t)64 << 20);
	f->base.ds.groups = f->groups;
	f->base.ds.dims = f->dims;
	f->base.ds.arrays = f->arrays;
	f->base.ds.n_groups = 1;
	f->groups[0] = (struct ds_group){.name = "", .parent = DS_NONE};
	return f;
}

static inline void nf_free(struct nc_fake *f)
{
	nc_model_free(f->model);
	nc_image_release(&f->image);
	arena_release(&f->base.ds.arena);
	free(f);
}

static inline uint32_t nf_group(struct nc_fake *f, uint32_t parent, const char *name)
{
	uint32_t g = f->base.ds.n_groups++;

	assert(g < NF_GROUPS);
	f->groups[g] = (struct ds_group){.name = name, .parent = parent};
	return g;
}

static inline uint32_t nf_dim(struct nc_fake *f, uint32_t group, const char *name, uint64_t len,
			      bool unlimited)
{
	uint32_t d = f->base.ds.n_dims++;

	assert(d < NF_DIMS);
	f->dims[d] = (struct ds_dim){
		.name = name, .len = len, .unlimited = unlimited, .group = group};
	return d;
}

/* nf_array - chunk: of the first axis, 0: the whole shape. Ends with rank dimensions. */
static inline uint32_t nf_array(struct nc_fake *f, uint32_t group, const char *name,
				struct dtype type, uint64_t chunk, uint32_t rank,
				const uint32_t *dims)
{
	uint32_t i = f->base.ds.n_arrays++;
	uint64_t *shape = nf_alloc(f, rank, sizeof(*shape));
	uint64_t *chunks = nf_alloc(f, rank, sizeof(*chunks));
	uint32_t *own = nf_alloc(f, rank, sizeof(*own));
	struct ds_array *a = &f->arrays[i];
	int rc;

	assert(i < NF_ARRAYS);
	for (uint32_t d = 0; d < rank; d++) {
		own[d] = dims[d];
		shape[d] = f->dims[dims[d]].len;
		chunks[d] = d == 0 && chunk ? chunk : u64_max(1, shape[d]);
	}
	*a = (struct ds_array){.name = name,
			       .group = group,
			       .type = type,
			       .rank = rank,
			       .shape = shape,
			       .chunk = chunks,
			       .dims = own,
			       .fill = dt_is_vlen(&type) ? NULL : nf_alloc(f, type.size, 1),
			       .access = dt_is_vlen(&type) ? DS_VARIABLE : DS_STORED,
			       .uniform = true,
			       .key = i + 1};
	rc = ds_array_finish(&f->base.ds, a, (uint64_t)1 << 40, NULL);
	assert(rc == 0);
	(void)rc;
	return i;
}

#define NF_DIM(...) ((const uint32_t[]){__VA_ARGS__})

/* nf_attr - add an attribute to an array, or to a group when array is DS_NONE. */
static inline void nf_attr(struct nc_fake *f, uint32_t group, uint32_t array, struct ds_attr at)
{
	uint32_t *n = array == DS_NONE ? &f->groups[group].n_attrs : &f->arrays[array].n_attrs;
	const struct ds_attr **list =
		array == DS_NONE ? &f->groups[group].attrs : &f->arrays[array].attrs;
	struct ds_attr *room;

	if ((*n & (*n - 1)) == 0) { /* full: grow to twice the size */
		room = nf_alloc(f, *n ? 2 * (size_t)*n : 1, sizeof(*room));
		if (*n)
			memcpy(room, *list, *n * sizeof(*room));
		*list = room;
	}
	room = (struct ds_attr *)(uintptr_t)*list;
	room[(*n)++] = at;
}

static inline struct ds_attr nf_text(struct nc_fake *f, const char *name, const char *text,
				     enum dt_kind kind)
{
	struct ds_text *t = nf_alloc(f, 1, sizeof(*t));

	*t = (struct ds_text){text, strlen(text)};
	return (struct ds_attr){.name = name,
				.type = {.kind = kind, .size = (uint32_t)strlen(text)},
				.n = 1,
				.strings = t};
}

static inline struct ds_attr nf_values(const char *name, struct dtype type, uint64_t n,
				       const void *data)
{
	static const uint64_t none[4];

	return (struct ds_attr){
		.name = name, .type = type, .rank = 1, .dims = none, .n = n, .data = data};
}

/* nf_finish - lists of what each group holds. */
static inline void nf_finish(struct nc_fake *f)
{
	struct dataset *ds = &f->base.ds;

	for (uint32_t g = 0; g < ds->n_groups; g++) {
		uint32_t *groups = nf_alloc(f, ds->n_groups, sizeof(*groups));
		uint32_t *arrays = nf_alloc(f, ds->n_arrays, sizeof(*arrays));
		uint32_t *dims = nf_alloc(f, ds->n_dims, sizeof(*dims));
		struct ds_group *x = &f->groups[g];

		x->groups = groups;
		x->arrays = arrays;
		x->dims = dims;
		x->n_groups = x->n_arrays = x->n_dims = 0;
		for (uint32_t k = 1; k < ds->n_groups; k++)
			if (f->groups[k].parent == g)
				groups[x->n_groups++] = k;
		for (uint32_t k = 0; k < ds->n_arrays; k++)
			if (f->arrays[k].group == g)
				arrays[x->n_arrays++] = k;
		for (uint32_t k = 0; k < ds->n_dims; k++)
			if (f->dims[k].group == g)
				dims[x->n_dims++] = k;
	}
}

static inline int nf_model(struct nc_fake *f, enum plan_filter filter, bool keep_going,
			   struct err *e)
{
	struct nc_view_options o = {.name = "store.nc",
				    .policy.filter = filter,
				    .max_image_bytes = (uint64_t)64 << 20,
				    .keep_going = keep_going};

	nf_finish(f);
	nc_model_free(f->model);
	f->model = NULL;
	return nc_model_new(&f->base, &o, f->plans, &f->model, e);
}

static inline int nf_build(struct nc_fake *f, uint64_t max, struct err *e)
{
	nc_image_release(&f->image);
	return nc_build(f->model, &f->base, max, &f->image, e);
}

/* nf_var - what the image says about an array; NULL: hidden. */
static inline const struct nc_var *nf_var(const struct nc_fake *f, uint32_t array)
{
	for (uint32_t i = 0; i < f->image.n_vars; i++)
		if (f->image.vars[i].array == array)
			return &f->image.vars[i];
	return NULL;
}

static inline bool nf_noted(const struct nc_fake *f, const char *text)
{
	uint32_t n;
	const char *const *notes = nc_model_notes(f->model, &n);

	for (uint32_t i = 0; i < n; i++)
		if (strstr(notes[i], text))
			return true;
	return false;
}

/* ---- types ---- */

static const struct dtype nf_i1 = {.kind = DT_INT, .size = 1},
			  nf_i2 = {.kind = DT_INT, .size = 2},
			  nf_i4 = {.kind = DT_INT, .size = 4},
			  nf_i8 = {.kind = DT_INT, .size = 8},
			  nf_u1 = {.kind = DT_UINT, .size = 1},
			  nf_f2 = {.kind = DT_FLOAT, .size = 2},
			  nf_f4 = {.kind = DT_FLOAT, .size = 4},
			  nf_f8 = {.kind = DT_FLOAT, .size = 8},
			  nf_f8be = {.kind = DT_FLOAT, .size = 8, .big_endian = true},
			  nf_bool = {.kind = DT_BOOL, .size = 1},
			  nf_c8 = {.kind = DT_COMPLEX, .size = 8},
			  nf_c16be = {.kind = DT_COMPLEX, .size = 16, .big_endian = true},
			  nf_char = {.kind = DT_STRING, .size = 1},
			  nf_s5 = {.kind = DT_STRING, .size = 5},
			  nf_op3 = {.kind = DT_OPAQUE, .size = 3},
			  nf_str = {.kind = DT_VSTRING},
			  nf_list = {.kind = DT_VLEN, .base = &nf_i4};

/* A structure with a bit of everything. */
static const struct dt_field nf_inner_fields[] = {
	{.name = "o", .offset = 0, .type = {.kind = DT_OPAQUE, .size = 3}},
	{.name = "j", .offset = 3, .type = {.kind = DT_INT, .size = 2}}};
static const uint64_t nf_two[] = {2};
static const struct dt_field nf_fields[] = {
	{.name = "a", .offset = 0, .type = {.kind = DT_INT, .size = 2}},
	{.name = "b", .offset = 2, .type = {.kind = DT_BOOL, .size = 1}},
	{.name = "text",
	 .offset = 3,
	 .rank = 1,
	 .dims = nf_two,
	 .type = {.kind = DT_STRING, .size = 4}},
	{.name = "z", .offset = 11, .type = {.kind = DT_COMPLEX, .size = 8}},
	{.name = "in",
	 .offset = 19,
	 .type = {.kind = DT_COMPOUND, .size = 5, .n_fields = 2, .fields = nf_inner_fields}},
	{.name = "x", .offset = 24, .type = {.kind = DT_FLOAT, .size = 8, .big_endian = true}}};
static const struct dtype nf_cmp = {
	.kind = DT_COMPOUND, .size = 32, .n_fields = 6, .fields = nf_fields};

#endif
