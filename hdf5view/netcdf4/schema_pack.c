/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_pack.c - packs a model, with the parts of the dataset that it refers to, into one piece
 * of memory that can be copied to any address.
 *
 * A pointer in it is an offset from its start, and the list of all pointers' positions is at its
 * end: the child adds the address of its copy to each. Offset 0 is the packed object itself, to
 * which no pointer leads, so it represents NULL. Only the data for making a file is packed. */
#include "hdf5view/virtual/structure_process.h"

#include <string.h>

#define ALIGN 16

struct schema_pack_pack {
	struct buf *out;
	struct buf moves; /* uint64_t each */
};

/* schema_pack_room - append n zeroed things; returns 0 if n is 0, or on failure. */
static size_t schema_pack_room(struct schema_pack_pack *p, uint64_t n, size_t size)
{
	static const uint8_t zeroes[ALIGN];
	uint64_t bytes;
	size_t at;
	uint8_t *to;

	if (n == 0)
		return 0;
	if (ckd_mul(&bytes, n, (uint64_t)size) || bytes > SIZE_MAX / 2)
		bytes = SIZE_MAX / 2; /* which nothing has room for */
	buf_put(p->out, zeroes, (ALIGN - p->out->len % ALIGN) % ALIGN);
	at = p->out->len;
	to = buf_grow(p->out, (size_t)bytes);
	if (!to)
		return 0;
	memset(to, 0, (size_t)bytes);
	return at;
}

static void schema_pack_put(struct schema_pack_pack *p, size_t at, const void *v, size_t n)
{
	if (buf_ok(p->out))
		memcpy(p->out->data + at, v, n);
}
/* PUT - append a structure whose pointers are set later. */
#define PUT(p, at, type, ...) schema_pack_put(p, at, &(const type){__VA_ARGS__}, sizeof(type))

/* lead - set the pointer at `at` to the data at `to`; 0: NULL. */
static void lead(struct schema_pack_pack *p, size_t at, size_t to)
{
	const uintptr_t v = to;
	const uint64_t place = at;

	if (to == 0)
		return;
	schema_pack_put(p, at, &v, sizeof(v));
	buf_put(&p->moves, &place, sizeof(place));
}
#define LEAD(p, at, type, field, to) lead(p, (at) + offsetof(type, field), to)

static size_t bytes(struct schema_pack_pack *p, const void *v, uint64_t n, size_t size)
{
	size_t at = v ? schema_pack_room(p, n, size) : 0;

	if (at)
		schema_pack_put(p, at, v, (size_t)n * size);
	return at;
}

static size_t schema_pack_text(struct schema_pack_pack *p, const char *s)
{
	return s ? bytes(p, s, strlen(s) + 1, 1) : 0;
}

/* ---- the dataset ---- */

static void schema_pack_put_type(struct schema_pack_pack *p, size_t at, const struct dtype *t)
{
	size_t fields = t->fields ? schema_pack_room(p, t->n_fields, sizeof(*t->fields)) : 0;
	size_t base = t->base ? schema_pack_room(p, 1, sizeof(*t->base)) : 0;

	PUT(p, at, struct dtype, .kind = t->kind, .big_endian = t->big_endian, .size = t->size,
	    .n_fields = fields ? t->n_fields : 0);
	LEAD(p, at, struct dtype, fields, fields);
	LEAD(p, at, struct dtype, base, base);
	for (uint32_t i = 0; fields && i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];
		size_t x = fields + i * sizeof(*f);

		PUT(p, x, struct dt_field, .offset = f->offset, .rank = f->rank);
		LEAD(p, x, struct dt_field, name, schema_pack_text(p, f->name));
		LEAD(p, x, struct dt_field, dims, bytes(p, f->dims, f->rank, sizeof(*f->dims)));
		schema_pack_put_type(p, x + offsetof(struct dt_field, type), &f->type);
	}
	if (base)
		schema_pack_put_type(p, base, t->base);
}

static void schema_pack_put_text(struct schema_pack_pack *p, size_t at, const struct ds_text *t)
{
	PUT(p, at, struct ds_text, .len = t->s ? t->len : 0);
	LEAD(p, at, struct ds_text, s, bytes(p, t->s, t->len, 1));
}

static size_t schema_pack_value(struct schema_pack_pack *p, const struct ds_attr *a)
{
	size_t at = schema_pack_room(p, 1, sizeof(*a));
	size_t strings = a->strings ? schema_pack_room(p, a->n, sizeof(*a->strings)) : 0;

	PUT(p, at, struct ds_attr, .n = a->n);
	schema_pack_put_type(p, at + offsetof(struct ds_attr, type), &a->type);
	LEAD(p, at, struct ds_attr, data, bytes(p, a->data, a->n, a->type.size));
	LEAD(p, at, struct ds_attr, strings, strings);
	for (uint64_t i = 0; strings && i < a->n; i++)
		schema_pack_put_text(p, strings + (size_t)i * sizeof(*a->strings),
				     &a->strings[i]);
	return at;
}

static void schema_pack_put_attrs(struct schema_pack_pack *p, size_t at,
				  const struct nc_attrs *x)
{
	size_t list = schema_pack_room(p, x->n, sizeof(*x->list));

	PUT(p, at, struct nc_attrs, .n = list ? x->n : 0);
	LEAD(p, at, struct nc_attrs, list, list);
	for (uint32_t i = 0; list && i < x->n; i++) {
		const struct nc_attr *a = &x->list[i];
		size_t to = list + i * sizeof(*a);

		PUT(p, to, struct nc_attr, .form = a->form, .type = a->type);
		LEAD(p, to, struct nc_attr, name, schema_pack_text(p, a->name));
		LEAD(p, to, struct nc_attr, src, schema_pack_value(p, a->src));
		schema_pack_put_type(p, to + offsetof(struct nc_attr, as), &a->as);
	}
}

static void schema_pack_put_array(struct schema_pack_pack *p, size_t at,
				  const struct ds_array *a)
{
	PUT(p, at, struct ds_array, .group = a->group, .rank = a->rank, .n_chunks = a->n_chunks,
	    .chunk_bytes = a->chunk_bytes, .checksum = a->checksum);
	schema_pack_put_type(p, at + offsetof(struct ds_array, type), &a->type);
	LEAD(p, at, struct ds_array, name, schema_pack_text(p, a->name));
	LEAD(p, at, struct ds_array, shape, bytes(p, a->shape, a->rank, sizeof(*a->shape)));
	LEAD(p, at, struct ds_array, chunk, bytes(p, a->chunk, a->rank, sizeof(*a->chunk)));
	LEAD(p, at, struct ds_array, grid, bytes(p, a->grid, a->rank, sizeof(*a->grid)));
	LEAD(p, at, struct ds_array, dims, bytes(p, a->dims, a->rank, sizeof(*a->dims)));
	LEAD(p, at, struct ds_array, fill, bytes(p, a->fill, 1, a->type.size));
	schema_pack_put_text(p, at + offsetof(struct ds_array, fill_text), &a->fill_text);
}

static size_t schema_pack_dataset(struct schema_pack_pack *p, const struct nc_model *m)
{
	const struct dataset *ds = m->ds;
	size_t at = schema_pack_room(p, 1, sizeof(*ds));
	size_t groups = schema_pack_room(p, ds->n_groups, sizeof(*ds->groups));
	size_t arrays = schema_pack_room(p, ds->n_arrays, sizeof(*ds->arrays));
	size_t dims = schema_pack_room(p, ds->n_dims, sizeof(*ds->dims));

	PUT(p, at, struct dataset, .n_groups = ds->n_groups, .n_arrays = ds->n_arrays,
	    .n_dims = ds->n_dims);
	LEAD(p, at, struct dataset, groups, groups);
	LEAD(p, at, struct dataset, arrays, arrays);
	LEAD(p, at, struct dataset, dims, dims);
	for (uint32_t g = 0; g < ds->n_groups; g++) {
		size_t to = groups + g * sizeof(*ds->groups);

		PUT(p, to, struct ds_group, .parent = ds->groups[g].parent);
		LEAD(p, to, struct ds_group, name, schema_pack_text(p, ds->groups[g].name));
	}
	for (uint32_t i = 0; i < ds->n_arrays; i++)
		if (m->arrays[i].name)
			schema_pack_put_array(p, arrays + i * sizeof(*ds->arrays),
					      &ds->arrays[i]);
	for (uint32_t d = 0; d < ds->n_dims; d++)
		PUT(p, dims + d * sizeof(*ds->dims), struct ds_dim, .len = ds->dims[d].len,
		    .unlimited = ds->dims[d].unlimited, .group = ds->dims[d].group);
	return at;
}

/* ---- decisions ---- */

static void schema_pack_put_chain(struct schema_pack_pack *p, size_t at,
				  const struct codec_chain *c)
{
	size_t specs = schema_pack_room(p, c->n, sizeof(*c->specs));

	PUT(p, at, struct codec_chain, .n = specs ? c->n : 0);
	LEAD(p, at, struct codec_chain, specs, specs);
	for (uint32_t i = 0; specs && i < c->n; i++) {
		const struct codec_spec *s = &c->specs[i];
		size_t to = specs + i * sizeof(*s);

		PUT(p, to, struct codec_spec, .h5_id = s->h5_id, .n_params = s->n_params);
		LEAD(p, to, struct codec_spec, params,
		     bytes(p, s->params, s->n_params, sizeof(*s->params)));
		LEAD(p, to, struct codec_spec, name,
		     schema_pack_text(p, s->name ? s->name : ""));
	}
}

static size_t schema_pack_groups_of(struct schema_pack_pack *p, const struct nc_model *m)
{
	size_t at = schema_pack_room(p, m->ds->n_groups, sizeof(*m->groups));

	for (uint32_t g = 0; g < m->ds->n_groups; g++) {
		size_t to = at + g * sizeof(*m->groups);

		LEAD(p, to, struct nc_group, name, schema_pack_text(p, m->groups[g].name));
		schema_pack_put_attrs(p, to + offsetof(struct nc_group, attrs),
				      &m->groups[g].attrs);
	}
	return at;
}

static size_t arrays_of(struct schema_pack_pack *p, const struct nc_model *m)
{
	size_t at = schema_pack_room(p, m->ds->n_arrays, sizeof(*m->arrays));

	for (uint32_t i = 0; i < m->ds->n_arrays; i++) {
		const struct nc_array *x = &m->arrays[i];
		size_t to = at + i * sizeof(*x);

		if (!x->name)
			continue;
		PUT(p, to, struct nc_array, .type = x->type, .text_dim = x->text_dim,
		    .scale_of = x->scale_of, .data = x->data, .chunked = x->chunked,
		    .fill = x->fill);
		LEAD(p, to, struct nc_array, name, schema_pack_text(p, x->name));
		LEAD(p, to, struct nc_array, link, schema_pack_text(p, x->link));
		schema_pack_put_attrs(p, to + offsetof(struct nc_array, attrs), &x->attrs);
	}
	return at;
}

static size_t dims_of(struct schema_pack_pack *p, const struct nc_model *m)
{
	size_t at = schema_pack_room(p, m->n_dims, sizeof(*m->dims));

	for (uint32_t d = 0; d < m->n_dims; d++) {
		const struct nc_dim *x = &m->dims[d];
		size_t to = at + d * sizeof(*x);

		PUT(p, to, struct nc_dim, .len = x->len, .group = x->group, .scale = x->scale,
		    .id = x->id, .unlimited = x->unlimited);
		LEAD(p, to, struct nc_dim, name, schema_pack_text(p, x->name));
	}
	return at;
}

static size_t schema_pack_types_of(struct schema_pack_pack *p, const struct nc_model *m)
{
	size_t at = schema_pack_room(p, m->n_types, sizeof(*m->types));

	for (uint32_t i = 0; i < m->n_types; i++) {
		const struct nc_type *x = &m->types[i];
		size_t to = at + i * sizeof(*x),
		       type = schema_pack_room(p, 1, sizeof(*x->type));

		PUT(p, to, struct nc_type, .group = x->group);
		LEAD(p, to, struct nc_type, name, schema_pack_text(p, x->name));
		schema_pack_put_type(p, type, x->type);
		LEAD(p, to, struct nc_type, type, type);
		LEAD(p, to, struct nc_type, fields,
		     bytes(p, x->fields, x->type->n_fields, sizeof(*x->fields)));
	}
	return at;
}

static size_t plans_of(struct schema_pack_pack *p, const struct nc_model *m)
{
	size_t at = schema_pack_room(p, m->ds->n_arrays, sizeof(*m->plans));

	for (uint32_t i = 0; i < m->ds->n_arrays; i++)
		if (m->arrays[i].name)
			schema_pack_put_chain(
				p, at + i * sizeof(*m->plans) + offsetof(struct plan, chain),
				&m->plans[i].chain);
	return at;
}

/* ---- all of it ---- */

static void schema_pack_begin(struct schema_pack_pack *p, struct buf *out)
{
	*p = (struct schema_pack_pack){.out = out};
	buf_init(&p->moves, SIZE_MAX);
}

static void schema_pack_end(struct schema_pack_pack *p, uint64_t *ret_moves)
{
	*ret_moves = p->moves.len / sizeof(uint64_t);
	if (p->moves.len)
		buf_put(p->out, p->moves.data, p->moves.len);
	if (!buf_ok(&p->moves))
		buf_fail(p->out, &p->moves);
	buf_release(&p->moves);
}

void nc_pack_model(const struct nc_model *m, struct buf *out, uint64_t *ret_moves)
{
	struct schema_pack_pack p;

	schema_pack_begin(&p, out);
	(void)schema_pack_room(&p, 1, sizeof(*m));
	PUT(&p, 0, struct nc_model, .v18 = m->v18, .n_dims = m->n_dims, .n_types = m->n_types);
	LEAD(&p, 0, struct nc_model, ds, schema_pack_dataset(&p, m));
	LEAD(&p, 0, struct nc_model, plans, plans_of(&p, m));
	LEAD(&p, 0, struct nc_model, order,
	     bytes(&p, m->order, m->ds->n_groups, sizeof(*m->order)));
	LEAD(&p, 0, struct nc_model, groups, schema_pack_groups_of(&p, m));
	LEAD(&p, 0, struct nc_model, arrays, arrays_of(&p, m));
	LEAD(&p, 0, struct nc_model, dims, dims_of(&p, m));
	LEAD(&p, 0, struct nc_model, types, schema_pack_types_of(&p, m));
	schema_pack_end(&p, ret_moves);
}

void nc_pack_ask(const struct nc_ask *q, struct buf *out, uint64_t *ret_moves)
{
	const struct codec_array *as = &q->as;
	const size_t to = offsetof(struct nc_ask, as);
	struct schema_pack_pack p;

	schema_pack_begin(&p, out);
	(void)schema_pack_room(&p, 1, sizeof(*q));
	schema_pack_put_type(&p, offsetof(struct nc_ask, a.type), &q->a.type);
	LEAD(&p, 0, struct nc_ask, a.fill, bytes(&p, q->a.fill, 1, q->a.type.size));
	PUT(&p, to, struct codec_array, .class = as->class, .elem_size = as->elem_size,
	    .big_endian = as->big_endian, .rank = as->rank);
	LEAD(&p, to, struct codec_array, chunk,
	     bytes(&p, as->chunk, as->rank, sizeof(*as->chunk)));
	LEAD(&p, to, struct codec_array, fill, bytes(&p, as->fill, 1, as->elem_size));
	schema_pack_put_chain(&p, offsetof(struct nc_ask, chain), &q->chain);
	schema_pack_end(&p, ret_moves);
}

void *nc_unpack(const uint8_t *packed, size_t n, uint64_t moves)
{
	const size_t list = moves <= n / sizeof(uint64_t) ? moves * sizeof(uint64_t) : n;
	uint8_t *to = moves <= n / sizeof(uint64_t) ? alloc_array(n, 1) : NULL;

	if (!to)
		return NULL;
	memcpy(to, packed, n);
	for (size_t i = n - list; i < n; i += sizeof(uint64_t)) {
		uint64_t at;
		uintptr_t v;

		memcpy(&at, to + i, sizeof(at));
		if (at > n - list || n - list - at < sizeof(v)) {
			free(to);
			return NULL;
		}
		memcpy(&v, to + at, sizeof(v));
		v += (uintptr_t)to;
		memcpy(to + at, &v, sizeof(v));
	}
	return to;
}
