/* SPDX-License-Identifier: BSD-3-Clause */
/* signature.c - forms: everything about an array that concatenation needs, as bytes that can be
 * compared, stored in a file, and read back. Bytes that are read back are not trusted. */
#include "base/core/hash.h"
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <string.h>

#define DEPTH_MAX 32 /* compounds within compounds */

const char *const concat_of_numbers[CONCAT_OF_NUMBERS] = {
	"units",      "calendar",      "scale_factor", "add_offset",
	"_FillValue", "missing_value", "_Unsigned",
};

/* Attributes that are part of a form; all others are the first member's. */
enum { TELLING = CONCAT_OF_NUMBERS + 3 };

static const char *telling(size_t i)
{
	static const char *const more[] = {"grid_mapping", "flag_values", "flag_meanings"};

	return i < CONCAT_OF_NUMBERS ? concat_of_numbers[i] : more[i - CONCAT_OF_NUMBERS];
}

/* of_enum - attributes that only tell where they are what the type says. */
static bool of_enum(const char *name)
{
	return strcmp(name, "flag_values") == 0 || strcmp(name, "flag_meanings") == 0;
}

/* ---- writing ---- */

void concat_put_blob(struct buf *b, const void *p, size_t n)
{
	buf_put_le(b, n, 8);
	if (n > 0)
		buf_put(b, p, n);
}

void concat_put_text(struct buf *b, const char *s)
{
	concat_put_blob(b, s, strlen(s) + 1);
}

/* put_buf - what another buffer has, which is released. */
static void put_buf(struct buf *b, struct buf *own)
{
	concat_put_blob(b, own->data, own->len);
	if (!buf_ok(own))
		buf_fail(b, own);
	buf_release(own);
}

static void signature_put_type(struct buf *b, const struct dtype *t, unsigned depth)
{
	buf_putc(b, (char)t->kind);
	buf_putc(b, (char)t->big_endian);
	buf_put_le32(b, t->size);
	buf_put_le32(b, t->n_fields);
	for (uint32_t i = 0; i < t->n_fields && depth < DEPTH_MAX; i++) {
		const struct dt_field *f = &t->fields[i];

		concat_put_text(b, f->name);
		buf_put_le32(b, f->offset);
		buf_put_le32(b, f->rank);
		for (uint32_t d = 0; d < f->rank; d++)
			buf_put_le(b, f->dims[d], 8);
		signature_put_type(b, &f->type, depth + 1);
	}
	if (t->kind == DT_VLEN && t->base && depth < DEPTH_MAX)
		signature_put_type(b, t->base, depth + 1);
}

/* has_level - filters whose parameters only say how hard a writer tried: readers need none. */
static bool has_level(uint32_t id)
{
	return id == CODEC_DEFLATE || id == CODEC_ZSTD || id == CODEC_BZIP2;
}

static void signature_put_chain(struct buf *b, const struct codec_chain *chain)
{
	struct buf own = buf_of(b->max);

	for (uint32_t i = 0; i < chain->n; i++) {
		buf_put_le32(&own, chain->specs[i].h5_id);
		if (has_level(chain->specs[i].h5_id))
			continue;
		buf_put_le32(&own, chain->specs[i].n_params);
		for (uint32_t k = 0; k < chain->specs[i].n_params; k++)
			buf_put_le32(&own, chain->specs[i].params[k]);
		if (chain->specs[i].h5_id == 0) /* a codec that only has a name */
			concat_put_text(&own, chain->specs[i].name);
	}
	put_buf(b, &own);
}

static void put_attr(struct buf *b, const struct ds_attr *a)
{
	concat_put_text(b, a->name);
	buf_putc(b, (char)a->type.kind);
	buf_put_le32(b, a->type.size);
	buf_put_le(b, a->n, 8);
	if (a->strings) {
		buf_putc(b, 1);
		for (uint64_t i = 0; i < a->n; i++)
			concat_put_blob(b, a->strings[i].s, a->strings[i].len);
	} else {
		buf_putc(b, 0);
		concat_put_blob(b, a->data, (size_t)a->n * a->type.size);
	}
}

static bool signature_tells(const struct ds_attr *a)
{
	for (size_t i = 0; i < TELLING; i++)
		if (strcmp(a->name, telling(i)) == 0)
			return a->type.kind != DT_VLEN && a->type.kind != DT_COMPOUND &&
			       (a->of_type || !of_enum(a->name));
	return false;
}

/* signature_names - whether an attribute is this very name. */
static bool signature_names(const struct ds_array *a, const char *attr, const char *name)
{
	const struct ds_attr *t = ds_attr_find(a->attrs, a->n_attrs, attr);

	return t && t->strings && t->n == 1 && t->strings[0].len == strlen(name) &&
	       memcmp(t->strings[0].s, name, t->strings[0].len) == 0;
}

uint32_t concat_bounded_by(const struct dataset *ds, uint32_t array)
{
	const struct ds_array *a = &ds->arrays[array];
	const struct ds_group *g = &ds->groups[a->group];

	for (uint32_t i = 0; i < g->n_arrays; i++) {
		const struct ds_array *o = &ds->arrays[g->arrays[i]];

		if (signature_names(o, "bounds", a->name) ||
		    signature_names(o, "climatology", a->name))
			return g->arrays[i];
	}
	return CONCAT_NONE;
}

/* signature_attr_of - the array's own; bounds have units and calendar of what they bound (CF
 * 7.1). */
static const struct ds_attr *signature_attr_of(const struct dataset *ds, uint32_t array,
					       const char *name)
{
	const struct ds_array *a = &ds->arrays[array];
	const struct ds_attr *t = ds_attr_find(a->attrs, a->n_attrs, name);
	uint32_t by = CONCAT_NONE;

	if (!t && (strcmp(name, "units") == 0 || strcmp(name, "calendar") == 0))
		by = concat_bounded_by(ds, array);
	if (by != CONCAT_NONE)
		t = ds_attr_find(ds->arrays[by].attrs, ds->arrays[by].n_attrs, name);
	return t && signature_tells(t) ? t : NULL;
}

/* signature_put_attrs - in one order, whatever order the file has. */
static void signature_put_attrs(struct buf *b, const struct dataset *ds, uint32_t array)
{
	const struct ds_attr *t[TELLING];
	uint32_t n = 0;

	for (size_t k = 0; k < TELLING; k++) {
		t[k] = signature_attr_of(ds, array, telling(k));
		n += t[k] != NULL;
	}
	buf_put_le32(b, n);
	for (size_t k = 0; k < TELLING; k++)
		if (t[k])
			put_attr(b, t[k]);
}

static uint32_t axis_of(const struct dataset *ds, const struct ds_array *a, const char *dim,
			bool *ret_twice)
{
	uint32_t axis = CONCAT_NONE;

	*ret_twice = false;
	for (uint32_t d = 0; d < a->rank; d++) {
		if (strcmp(ds->dims[a->dims[d]].name, dim) != 0)
			continue;
		*ret_twice = axis != CONCAT_NONE;
		axis = d;
	}
	return axis;
}

bool concat_has_dim(const struct dataset *ds, uint32_t array, const char *dim)
{
	bool twice;

	return axis_of(ds, &ds->arrays[array], dim, &twice) != CONCAT_NONE;
}

uint32_t concat_describe(const struct dataset *ds, uint32_t array, const char *dim,
			 struct buf *b, bool *ret_twice)
{
	const struct ds_array *a = &ds->arrays[array];
	uint32_t axis = axis_of(ds, a, dim, ret_twice);
	struct buf path = buf_of(b->max), type = buf_of(b->max);

	if (axis == CONCAT_NONE)
		return axis;
	ds_array_path(ds, array, &path);
	buf_putc(&path, '\0');
	put_buf(b, &path);
	buf_putc(b, (char)a->type.kind);
	buf_putc(b, (char)a->type.big_endian);
	buf_put_le32(b, a->type.size);
	buf_putc(b, (char)a->access);
	buf_putc(b, (char)a->uniform);
	buf_putc(b, a->unreadable != NULL);
	buf_put_le32(b, axis);
	buf_put_le32(b, a->rank);
	for (uint32_t d = 0; d < a->rank; d++) {
		buf_put_le(b, a->shape[d], 8);
		buf_put_le(b, a->chunk[d], 8);
		concat_put_text(b, ds->dims[a->dims[d]].name);
	}
	signature_put_type(&type, &a->type, 0);
	put_buf(b, &type);
	signature_put_chain(b, &a->chain);
	if (dt_is_vlen(&a->type))
		concat_put_blob(b, a->fill_text.s, a->fill_text.len);
	else
		concat_put_blob(b, a->fill, a->type.size);
	signature_put_attrs(b, ds, array);
	return axis;
}

/* ---- reading ---- */

struct slice concat_get_blob(struct slice *s)
{
	uint64_t n = rd_le64(s);
	const uint8_t *p;

	if (n > s->len) {
		s->bad = true;
		n = 0;
	}
	p = rd_bytes(s, (size_t)n);
	return slice_of(p, p ? (size_t)n : 0);
}

const char *concat_get_text(struct slice *s)
{
	struct slice t = concat_get_blob(s);

	if (t.len == 0 || t.p[t.len - 1] != '\0' || strlen((const char *)t.p) != t.len - 1) {
		s->bad = true;
		return "";
	}
	return (const char *)t.p;
}

/* get_type - a number is one that arithmetic knows. */
static void get_type(struct slice *s, struct dtype *ret, bool with_order)
{
	uint8_t kind = rd_u8(s), big = with_order ? rd_u8(s) : 0;
	uint32_t size = rd_le32(s);
	bool ok = kind <= DT_VLEN && big <= 1;

	switch (kind) {
	case DT_INT:
	case DT_UINT:
		ok = ok && (size == 1 || size == 2 || size == 4 || size == 8);
		break;
	case DT_FLOAT:
		ok = ok && (size == 2 || size == 4 || size == 8);
		break;
	case DT_VSTRING:
	case DT_VLEN:
		ok = ok && size == 0;
		break;
	default:
		ok = ok && size > 0;
		break;
	}
	s->bad = s->bad || !ok;
	*ret = (struct dtype){.kind = ok ? (enum dt_kind)kind : DT_OPAQUE,
			      .big_endian = big,
			      .size = ok ? size : 1};
}

static int get_strings(struct arena *arena, struct slice *s, struct ds_attr *a)
{
	struct ds_text *strings;

	if (a->n > s->len / 8) { /* each has a length of 8 bytes */
		s->bad = true;
		return 0;
	}
	strings = arena_alloc(arena, (size_t)a->n, sizeof(*strings));
	if (!strings)
		return -ENOMEM;
	for (uint64_t i = 0; i < a->n; i++) {
		struct slice t = concat_get_blob(s);

		strings[i] = (struct ds_text){.s = (const char *)t.p, .len = t.len};
	}
	a->strings = strings;
	return 0;
}

static int get_attr(struct arena *arena, struct slice *s, struct ds_attr *a)
{
	struct slice data;
	uint64_t bytes;

	a->name = concat_get_text(s);
	get_type(s, &a->type, false);
	a->type.big_endian = HOST_BIG_ENDIAN;
	a->n = rd_le64(s);
	a->rank = a->n == 1 ? 0 : 1;
	if (rd_u8(s) == 1)
		return get_strings(arena, s, a);
	data = concat_get_blob(s);
	if (ckd_mul(&bytes, a->n, (uint64_t)a->type.size) || bytes != data.len)
		s->bad = true;
	a->data = data.p;
	return 0;
}

/* signature_text_of - an attribute that is one text; NULL: there is none. */
static int signature_text_of(struct arena *arena, const struct concat_form *f, const char *name,
			     const char **ret)
{
	const struct ds_attr *a = ds_attr_find(f->attrs, f->n_attrs, name);

	*ret = NULL;
	if (!a || !a->strings || a->n != 1)
		return 0;
	*ret = arena_copy(arena, a->strings[0].s ? a->strings[0].s : "", a->strings[0].len);
	return *ret ? 0 : -ENOMEM;
}

static int get_attrs(struct arena *arena, struct slice *s, struct concat_form *f)
{
	struct ds_attr *attrs;
	int rc = 0;

	f->n_attrs = rd_le32(s);
	if (f->n_attrs > TELLING) {
		s->bad = true;
		f->n_attrs = 0;
	}
	attrs = arena_alloc(arena, f->n_attrs, sizeof(*attrs));
	if (!attrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_attrs && rc == 0; i++)
		rc = get_attr(arena, s, &attrs[i]);
	f->attrs = attrs;
	if (rc == 0 && slice_ok(s))
		rc = signature_text_of(arena, f, "units", &f->units);
	if (rc == 0 && slice_ok(s))
		rc = signature_text_of(arena, f, "calendar", &f->calendar);
	if (rc == 0 && slice_ok(s))
		rc = signature_text_of(arena, f, "grid_mapping", &f->grid_mapping);
	return rc;
}

static int get_dims(struct arena *arena, struct slice *s, struct concat_form *f)
{
	uint64_t *shape, *chunk;
	const char **dims;

	f->axis = rd_le32(s);
	f->rank = rd_le32(s);
	if (f->rank == 0 || f->rank > DS_RANK_MAX || f->axis >= f->rank) {
		s->bad = true;
		f->rank = 0;
	}
	shape = arena_alloc(arena, f->rank, sizeof(*shape));
	chunk = arena_alloc(arena, f->rank, sizeof(*chunk));
	dims = arena_alloc(arena, f->rank, sizeof(*dims));
	if (!shape || !chunk || !dims)
		return -ENOMEM;
	for (uint32_t d = 0; d < f->rank; d++) {
		shape[d] = rd_le64(s);
		chunk[d] = rd_le64(s);
		dims[d] = concat_get_text(s);
		s->bad = s->bad || chunk[d] == 0;
	}
	f->shape = shape;
	f->chunk = chunk;
	f->dims = dims;
	return 0;
}

/* signature_parse - what bytes say; they are borrowed. */
static int signature_parse(struct arena *arena, const uint8_t *bytes, size_t n,
			   struct concat_form *f, struct err *e)
{
	struct slice s = slice_of(bytes, n);
	uint8_t access;
	int rc;

	*f = (struct concat_form){.bytes = bytes, .n_bytes = n};
	f->path = concat_get_text(&s);
	get_type(&s, &f->type, true);
	access = rd_u8(&s);
	f->uniform = rd_u8(&s) == 1;
	f->unreadable = rd_u8(&s) == 1;
	f->access = access <= DS_VARIABLE ? (enum ds_access)access : DS_CONVERT;
	rc = get_dims(arena, &s, f);
	f->type_bytes = concat_get_blob(&s);
	f->chain = concat_get_blob(&s);
	f->fill = concat_get_blob(&s);
	if (!dt_is_vlen(&f->type) && f->fill.len != f->type.size)
		s.bad = true;
	rc = rc ? rc : get_attrs(arena, &s, f);
	if (rc < 0)
		return arena_full(arena, e, "the index of the joined files");
	if (!slice_ok(&s) || s.len != 0 || access > DS_VARIABLE || f->path[0] != '/')
		return err_set(e, -EBADMSG, "a form of %zu bytes is damaged", n);
	return 0;
}

/* ---- the table ---- */

void concat_forms_init(struct concat_forms *f, uint64_t max_bytes)
{
	*f = (struct concat_forms){0};
	arena_init(&f->arena, (size_t)u64_min(max_bytes, SIZE_MAX));
}

void concat_forms_release(struct concat_forms *f)
{
	arena_release(&f->arena);
	free(f->v);
	map_free(&f->by_bytes);
	*f = (struct concat_forms){.n = 0};
}

/* signature_entry - which form it is, in the table by bytes. */
struct signature_entry {
	struct link link;
	uint32_t form;
};

int concat_intern(struct concat_forms *f, const uint8_t *bytes, size_t n, uint32_t *ret,
		  struct err *e)
{
	const uint64_t h = hash_u64(hash_bytes(HASH_SEED, bytes, n));
	struct signature_entry *x;
	uint8_t *own;
	int rc;

	MAP_EACH(x, &f->by_bytes, h, link) {
		if (f->v[x->form].n_bytes == n && memcmp(f->v[x->form].bytes, bytes, n) == 0) {
			*ret = x->form;
			return 0;
		}
	}
	if (f->n >= CONCAT_NONE - 1)
		return err_set(e, -ERANGE, "more than 2^32 different arrays");
	if (grow_array(&f->v, &f->cap, f->n + 1, sizeof(*f->v)) < 0)
		return err_nomem(e);
	own = arena_copy(&f->arena, bytes, n);
	x = arena_alloc(&f->arena, 1, sizeof(*x));
	if (!own || !x)
		return arena_full(&f->arena, e, "the index of the joined files");
	rc = signature_parse(&f->arena, own, n, &f->v[f->n], e);
	if (rc < 0)
		return rc;
	if (map_add(&f->by_bytes, &x->link, h) < 0)
		return err_nomem(e);
	x->form = (uint32_t)f->n;
	*ret = (uint32_t)f->n++;
	return 0;
}
