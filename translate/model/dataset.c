/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset.c - questions about the dataset model, and the arithmetic of chunk grids.
 *
 * Shapes and chunk lengths come from files: every product is checked here, once, so that what
 * works on a finished array may multiply freely within n_chunks and chunk_bytes. */
#include "translate/model/dataset.h"

#include "translate/model/grid.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PRODUCT_MAX ((uint64_t)1 << 62)
#define DEPTH_MAX 32 /* compounds within compounds; sources refuse deeper ones */
#define NUMBER_MAX 8 /* bytes of the widest number */

const struct ds_attr *ds_attr_find(const struct ds_attr *attrs, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(attrs[i].name, name) == 0)
			return &attrs[i];
	return NULL;
}

/* number_get - one number's bits, from either byte order. */
static uint64_t number_get(const uint8_t *p, size_t size, bool big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | p[big ? i : size - 1 - i];
	return v;
}

/* dataset_is_nan - whether the bits of an IEEE 754 number of `size` bytes are a NaN. */
static bool dataset_is_nan(uint64_t bits, size_t size)
{
	switch (size) {
	case 2:
		return (bits & 0x7fff) > 0x7c00;
	case 4:
		return (bits & 0x7fffffff) > 0x7f800000;
	default:
		return (bits & INT64_MAX) > 0x7ff0000000000000;
	}
}

/* numbers_equal - n neighbouring numbers of `size` bytes; NaNs equal each other. */
static bool numbers_equal(const uint8_t *a, bool a_big, const uint8_t *b, bool b_big,
			  size_t size, size_t n, bool is_float)
{
	if (size == 0 || size > NUMBER_MAX)
		return false;
	for (size_t i = 0; i < n * size; i += size) {
		uint64_t x = number_get(a + i, size, a_big), y = number_get(b + i, size, b_big);

		if (x != y && !(is_float && dataset_is_nan(x, size) && dataset_is_nan(y, size)))
			return false;
	}
	return true;
}

static bool values_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
			 const uint8_t *b, unsigned int depth);

/* same_shape - fields of the same name, place and extent; *ret_n values each. */
static bool same_shape(const struct dt_field *a, const struct dt_field *b, size_t *ret_n)
{
	size_t n = 1;

	if (strcmp(a->name, b->name) != 0 || a->offset != b->offset || a->rank != b->rank)
		return false;
	for (uint32_t d = 0; d < a->rank; d++) {
		if (a->dims[d] != b->dims[d])
			return false;
		n *= (size_t)a->dims[d];
	}
	*ret_n = n;
	return true;
}

static bool fields_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
			 const uint8_t *b, unsigned int depth)
{
	if (ta->n_fields != tb->n_fields || depth >= DEPTH_MAX)
		return false;
	for (uint32_t i = 0; i < ta->n_fields; i++) {
		const struct dt_field *fa = &ta->fields[i], *fb = &tb->fields[i];
		size_t n;

		if (!same_shape(fa, fb, &n))
			return false;
		for (size_t k = 0; k < n; k++)
			if (!values_equal(&fa->type, a + fa->offset + k * fa->type.size,
					  &fb->type, b + fb->offset + k * fb->type.size,
					  depth + 1))
				return false;
	}
	return true;
}

/* values_equal - one value against another, each in its own type's byte order. */
static bool values_equal(const struct dtype *ta, const uint8_t *a, const struct dtype *tb,
			 const uint8_t *b, unsigned int depth)
{
	if (ta->kind != tb->kind || ta->size != tb->size)
		return false;
	switch (ta->kind) {
	case DT_INT:
	case DT_UINT:
		return numbers_equal(a, ta->big_endian, b, tb->big_endian, ta->size, 1, false);
	case DT_FLOAT:
		return numbers_equal(a, ta->big_endian, b, tb->big_endian, ta->size, 1, true);
	case DT_COMPLEX:
		return numbers_equal(a, ta->big_endian, b, tb->big_endian, ta->size / 2, 2,
				     true);
	case DT_COMPOUND:
		return fields_equal(ta, a, tb, b, depth);
	case DT_BOOL:
	case DT_STRING:
	case DT_OPAQUE:
		return memcmp(a, b, ta->size) == 0;
	case DT_VSTRING:
	case DT_VLEN:
		break;
	}
	return false;
}

static bool strings_equal(const struct ds_text *a, const char *s, size_t len)
{
	return a->len == len && (len == 0 || memcmp(a->s, s, len) == 0);
}

static bool dataset_is_text(const struct dtype *t)
{
	return t->kind == DT_STRING || t->kind == DT_VSTRING;
}

bool ds_fill_declared(const struct ds_array *a)
{
	const struct ds_attr *attr = ds_attr_find(a->attrs, a->n_attrs, "_FillValue");
	struct dtype host;

	if (!attr || attr->n != 1 || a->type.kind == DT_VLEN)
		return false;

	if (dataset_is_text(&a->type)) {
		const char *s = a->fill_text.s;
		size_t len = a->fill_text.len;

		if (!dataset_is_text(&attr->type) || !attr->strings)
			return false;
		if (a->type.kind == DT_STRING) {
			if (!a->fill)
				return false;
			s = (const char *)a->fill;
			len = a->type.size;
		}
		/* the attribute's text has its trailing NULs cut off: so has the fill value */
		while (len > 0 && s[len - 1] == '\0')
			len--;
		return strings_equal(&attr->strings[0], s, len);
	}

	if (!attr->data || !a->fill)
		return false;
	host = attr->type;
	host.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	return values_equal(&host, attr->data, &a->type, a->fill, 0);
}

/* group_depth - groups above it, the root not counted; bounded even when parents form a ring.
 */
static uint32_t group_depth(const struct dataset *ds, uint32_t group)
{
	uint32_t depth = 0;

	while (group < ds->n_groups && group != 0 && depth < ds->n_groups) {
		group = ds->groups[group].parent;
		depth++;
	}
	return depth;
}

/* put_parents - "/g1/g2" of a group, nothing for the root. */
static void put_parents(const struct dataset *ds, uint32_t group, struct buf *b)
{
	uint32_t depth = group_depth(ds, group);

	while (depth-- > 0) {
		uint32_t g = group;

		for (uint32_t i = 0; i < depth; i++)
			g = ds->groups[g].parent;
		buf_putc(b, '/');
		buf_puts(b, ds->groups[g].name);
	}
}

/* dataset_reserved - names that directories or the Zarr format have for themselves. */
static bool dataset_reserved(const char *s)
{
	static const char *const names[] = {".",       "..",      ".zarray",
					    ".zgroup", ".zattrs", ".zmetadata"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(s, names[i]) == 0)
			return true;
	return false;
}

const char *ds_name_escape(struct arena *a, const char *name)
{
	bool dot = dataset_reserved(name);
	char *s, *p;

	if (!dot && !strpbrk(name, "/\\"))
		return name;
	s = p = arena_alloc(a, 3 * strlen(name) + 1, 1);
	for (; s && *name; name++) {
		if (*name == '/' || *name == '\\' || (dot && p == s))
			p = stpcpy(p, *name == '/' ? "%2F" : *name == '.' ? "%2E" : "%5C");
		else
			*p++ = *name;
	}
	return s;
}

void ds_array_path(const struct dataset *ds, uint32_t array, struct buf *b)
{
	put_parents(ds, ds->arrays[array].group, b);
	buf_putc(b, '/');
	buf_puts(b, ds->arrays[array].name);
}

void ds_group_path(const struct dataset *ds, uint32_t group, struct buf *b)
{
	if (group == 0)
		buf_putc(b, '/');
	else
		put_parents(ds, group, b);
}

/* finish_grid - fill grid and *ret_n with the chunks of an array. */
static int finish_grid(const struct ds_array *a, uint64_t *grid, uint64_t *ret_n, struct err *e)
{
	uint64_t n = 1;
	bool none = false;

	for (uint32_t d = 0; d < a->rank; d++) {
		if (a->chunk[d] == 0)
			return err_set(e, -EBADMSG,
				       "array '%s': chunk length 0 in dimension %" PRIu32,
				       a->name, d);
		grid[d] = a->shape[d] / a->chunk[d] + (a->shape[d] % a->chunk[d] != 0);
		none = none || grid[d] == 0;
	}
	/* a length of 0 anywhere means no chunks, however large the others are */
	if (!none && !u64_product(&n, grid, a->rank, PRODUCT_MAX))
		return err_set(e, -ERANGE, "array '%s': more than 2^62 chunks", a->name);
	*ret_n = none ? 0 : n;
	return 0;
}

int ds_array_finish(struct dataset *ds, struct ds_array *a, uint64_t max_chunk_bytes,
		    struct err *e)
{
	/* a text or sequence takes at least its length, four bytes */
	uint64_t bytes = dt_is_vlen(&a->type) ? 4 : a->type.size, n = 0;
	uint64_t *grid;
	int rc;

	if (a->rank > DS_RANK_MAX)
		return err_set(e, -ERANGE, "array '%s': rank %" PRIu32 " exceeds %d", a->name,
			       a->rank, DS_RANK_MAX);
	if (bytes == 0)
		return err_set(e, -EBADMSG, "array '%s': its elements have 0 bytes", a->name);
	grid = arena_alloc(&ds->arena, a->rank, sizeof(*grid));
	if (!grid)
		return err_nomem(e);
	rc = finish_grid(a, grid, &n, e);
	if (rc)
		return rc;

	if (!u64_product(&bytes, a->chunk, a->rank, PRODUCT_MAX))
		return err_set(e, -ERANGE, "array '%s': a chunk has more than 2^62 bytes",
			       a->name);
	if (bytes > max_chunk_bytes)
		return err_set(e, -ERANGE,
			       "array '%s': a chunk of %" PRIu64
			       " bytes exceeds max_chunk=%" PRIu64,
			       a->name, bytes, max_chunk_bytes);
	a->grid = grid;
	a->n_chunks = n;
	a->chunk_bytes = dt_is_vlen(&a->type) ? 0 : bytes;
	return 0;
}

void ds_chunk_coords(const struct ds_array *a, uint64_t linear, uint64_t *ret_coords)
{
	grid_coords(a->rank, a->grid, linear, ret_coords);
}

uint64_t ds_chunk_linear(const struct ds_array *a, const uint64_t *coords)
{
	return grid_linear(a->rank, a->grid, coords);
}
