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

/* ---- what the child needs: the other members of these structures are zero there ---- */

enum pack_kind {
	PACK_END,
	PACK_VALUE,   /* `len` bytes */
	PACK_INNER,   /* a structure in place, with the rows `of` */
	PACK_TEXT,    /* a string, or NULL */
	PACK_BYTES,   /* a pointer to elements of `len` bytes without pointers, or NULL */
	PACK_OBJECTS, /* a pointer to such structures with the rows `of`, or NULL */
	PACK_DATA,    /* the values of a struct ds_attr */
};

struct pack_row {
	enum pack_kind kind;
	size_t at, len;
	size_t n_at, n_len; /* the member with the number of elements; n_len 0: there is one */
	const struct pack_row *of;
};

#define MEMBER(type, x) offsetof(struct type, x), sizeof(((struct type *)NULL)->x)
#define TARGET(type, x) offsetof(struct type, x), sizeof(*((struct type *)NULL)->x)
#define ROW(...)                                                                               \
	{                                                                                      \
		__VA_ARGS__                                                                    \
	}
#define VALUE(type, x) ROW(PACK_VALUE, MEMBER(type, x), 0, 0, NULL)
#define INNER(type, x, rows) ROW(PACK_INNER, MEMBER(type, x), 0, 0, rows)
#define TEXT(type, x) ROW(PACK_TEXT, MEMBER(type, x), 0, 0, NULL)
#define DATA(type, x) ROW(PACK_DATA, MEMBER(type, x), 0, 0, NULL)
#define BYTES(type, x, n) ROW(PACK_BYTES, TARGET(type, x), MEMBER(type, n), NULL)
#define OBJECTS(type, x, n, rows) ROW(PACK_OBJECTS, TARGET(type, x), MEMBER(type, n), rows)
#define OBJECT(type, x, rows) ROW(PACK_OBJECTS, TARGET(type, x), 0, 0, rows)
#define ROWS(name, ...)                                                                        \
	static const struct pack_row name##_rows[] = {__VA_ARGS__,                             \
						      ROW(PACK_END, 0, 0, 0, 0, NULL)}

static const struct pack_row dtype_rows[7];

ROWS(field, VALUE(dt_field, offset), VALUE(dt_field, rank), TEXT(dt_field, name),
     BYTES(dt_field, dims, rank), INNER(dt_field, type, dtype_rows));
ROWS(dtype, VALUE(dtype, kind), VALUE(dtype, big_endian), VALUE(dtype, size),
     VALUE(dtype, n_fields), OBJECTS(dtype, fields, n_fields, field_rows),
     OBJECT(dtype, base, dtype_rows));
ROWS(text, VALUE(ds_text, len), BYTES(ds_text, s, len));
ROWS(value, VALUE(ds_attr, n), INNER(ds_attr, type, dtype_rows), DATA(ds_attr, data),
     OBJECTS(ds_attr, strings, n, text_rows));
ROWS(attr, VALUE(nc_attr, form), VALUE(nc_attr, type), TEXT(nc_attr, name),
     OBJECT(nc_attr, src, value_rows), INNER(nc_attr, as, dtype_rows));
ROWS(attrs, VALUE(nc_attrs, n), OBJECTS(nc_attrs, list, n, attr_rows));
ROWS(array, VALUE(ds_array, group), VALUE(ds_array, rank), VALUE(ds_array, n_chunks),
     VALUE(ds_array, chunk_bytes), VALUE(ds_array, checksum), INNER(ds_array, type, dtype_rows),
     TEXT(ds_array, name), BYTES(ds_array, shape, rank), BYTES(ds_array, chunk, rank),
     BYTES(ds_array, grid, rank), BYTES(ds_array, dims, rank), BYTES(ds_array, fill, type.size),
     INNER(ds_array, fill_text, text_rows));
ROWS(group, VALUE(ds_group, parent), TEXT(ds_group, name));
ROWS(dim, VALUE(ds_dim, len), VALUE(ds_dim, unlimited), VALUE(ds_dim, group));
ROWS(dataset, VALUE(dataset, n_groups), VALUE(dataset, n_arrays), VALUE(dataset, n_dims),
     OBJECTS(dataset, groups, n_groups, group_rows),
     OBJECTS(dataset, arrays, n_arrays, array_rows), OBJECTS(dataset, dims, n_dims, dim_rows));
ROWS(spec, VALUE(codec_spec, h5_id), VALUE(codec_spec, n_params),
     BYTES(codec_spec, params, n_params), TEXT(codec_spec, name));
ROWS(chain, VALUE(codec_chain, n), OBJECTS(codec_chain, specs, n, spec_rows));
ROWS(plan, INNER(plan, chain, chain_rows));
ROWS(nc_group, TEXT(nc_group, name), INNER(nc_group, attrs, attrs_rows));
ROWS(nc_array, VALUE(nc_array, type), VALUE(nc_array, text_dim), VALUE(nc_array, scale_of),
     VALUE(nc_array, data), VALUE(nc_array, chunked), VALUE(nc_array, fill),
     TEXT(nc_array, name), TEXT(nc_array, link), INNER(nc_array, attrs, attrs_rows));
ROWS(nc_dim, VALUE(nc_dim, len), VALUE(nc_dim, group), VALUE(nc_dim, scale), VALUE(nc_dim, id),
     VALUE(nc_dim, unlimited), TEXT(nc_dim, name));
ROWS(nc_type, VALUE(nc_type, group), TEXT(nc_type, name), OBJECT(nc_type, type, dtype_rows),
     BYTES(nc_type, fields, n_fields));
ROWS(elements, VALUE(codec_array, class), VALUE(codec_array, elem_size),
     VALUE(codec_array, big_endian), VALUE(codec_array, rank), BYTES(codec_array, chunk, rank),
     BYTES(codec_array, fill, elem_size));
ROWS(ask, INNER(nc_ask, a.type, dtype_rows), BYTES(nc_ask, a.fill, a.type.size),
     INNER(nc_ask, as, elements_rows), INNER(nc_ask, chain, chain_rows));
ROWS(model, VALUE(nc_model, v18), VALUE(nc_model, n_dims), VALUE(nc_model, n_types),
     OBJECTS(nc_model, dims, n_dims, nc_dim_rows),
     OBJECTS(nc_model, types, n_types, nc_type_rows));

/* ---- packing ---- */

struct pack {
	struct buf *out;
	struct buf moves; /* uint64_t each */
};

/* pack_room - append n zeroed things; returns 0 if n is 0, or on failure. */
static size_t pack_room(struct pack *p, uint64_t n, size_t size)
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

static void pack_put(struct pack *p, size_t at, const void *v, size_t n)
{
	if (buf_ok(p->out))
		memcpy(p->out->data + at, v, n);
}

/* pack_lead - set the pointer at `at` to the data at `to`; 0: NULL. */
static void pack_lead(struct pack *p, size_t at, size_t to)
{
	const uintptr_t v = to;
	const uint64_t place = at;

	if (to == 0)
		return;
	pack_put(p, at, &v, sizeof(v));
	buf_put(&p->moves, &place, sizeof(place));
}

static size_t pack_bytes(struct pack *p, const void *v, uint64_t n, size_t size)
{
	size_t at = pack_room(p, n, size);

	if (at)
		pack_put(p, at, v, (size_t)n * size);
	return at;
}

static size_t pack_objects(struct pack *p, const void *v, uint64_t n, size_t size,
			   const struct pack_row *rows);

/* pack_members - the members of the structure at src, which has its place. */
static void pack_members(struct pack *p, size_t at, const void *src, const struct pack_row *r)
{
	for (; r->kind != PACK_END; r++) {
		const uint8_t *from = (const uint8_t *)src + r->at;
		const struct ds_attr *a = src;
		const void *v;
		uint32_t n32 = 1;
		uint64_t n = 1;
		size_t to = 0;

		if (r->kind == PACK_VALUE)
			pack_put(p, at + r->at, from, r->len);
		else if (r->kind == PACK_INNER)
			pack_members(p, at + r->at, from, r->of);
		if (r->kind == PACK_VALUE || r->kind == PACK_INNER)
			continue;
		memcpy(&v, from, sizeof(v));
		if (!v)
			continue;
		if (r->n_len == sizeof(n))
			memcpy(&n, (const uint8_t *)src + r->n_at, sizeof(n));
		else if (r->n_len)
			memcpy(&n32, (const uint8_t *)src + r->n_at, sizeof(n32));
		n *= n32;
		if (r->kind == PACK_TEXT)
			to = pack_bytes(p, v, strlen(v) + 1, 1);
		else if (r->kind == PACK_DATA)
			to = pack_bytes(p, v, a->n, a->type.size);
		else if (r->kind == PACK_BYTES)
			to = pack_bytes(p, v, n, r->len);
		else
			to = pack_objects(p, v, n, r->len, r->of);
		pack_lead(p, at + r->at, to);
	}
}

static size_t pack_objects(struct pack *p, const void *v, uint64_t n, size_t size,
			   const struct pack_row *rows)
{
	size_t at = pack_room(p, n, size);

	for (uint64_t i = 0; at && i < n; i++)
		pack_members(p, at + (size_t)i * size, (const uint8_t *)v + i * size, rows);
	return at;
}

static void pack_begin(struct pack *p, struct buf *out, size_t size)
{
	*p = (struct pack){.out = out};
	buf_init(&p->moves, SIZE_MAX);
	(void)pack_room(p, 1, size); /* at 0 */
}

static void pack_end(struct pack *p, uint64_t *ret_moves)
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
	const struct dataset *ds = m->ds;
	auto_free struct ds_array *shown = alloc_array(ds->n_arrays, sizeof(*shown));
	struct dataset part = *ds;
	struct pack p;

	for (uint32_t i = 0; shown && i < ds->n_arrays; i++)
		if (m->arrays[i].name)
			shown[i] = ds->arrays[i];
	part.arrays = shown;
	pack_begin(&p, out, sizeof(*m));
	if (!shown)
		(void)pack_room(&p, SIZE_MAX, 1); /* out is not ok */
#define LEAD(field, v, n, rows)                                                                \
	pack_lead(&p, offsetof(struct nc_model, field),                                        \
		  pack_objects(&p, v, n, sizeof(*m->field), rows))
	LEAD(ds, &part, 1, dataset_rows);
	LEAD(plans, m->plans, ds->n_arrays, plan_rows);
	LEAD(groups, m->groups, ds->n_groups, nc_group_rows);
	LEAD(arrays, m->arrays, ds->n_arrays, nc_array_rows);
	pack_members(&p, 0, m, model_rows);
	pack_lead(&p, offsetof(struct nc_model, order),
		  pack_bytes(&p, m->order, ds->n_groups, sizeof(*m->order)));
	pack_end(&p, ret_moves);
}

void nc_pack_ask(const struct nc_ask *q, struct buf *out, uint64_t *ret_moves)
{
	struct pack p;

	pack_begin(&p, out, sizeof(*q));
	pack_members(&p, 0, q, ask_rows);
	pack_end(&p, ret_moves);
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
