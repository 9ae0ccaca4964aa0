/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset.c - questions about the dataset model, and the arithmetic of chunk grids.
 *
 * Shapes and chunk lengths come from files: every product is checked here, once, so that what
 * works on a finished array may multiply freely within n_chunks and chunk_bytes. */
#include "translate/model/dataset.h"

#include "translate/model/grid.h"
#include "translate/model/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PRODUCT_MAX ((uint64_t)1 << 62)

const struct ds_attr *ds_attr_find(const struct ds_attr *attrs, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(attrs[i].name, name) == 0)
			return &attrs[i];
	return NULL;
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
		struct ds_text fill = a->fill_text;

		if (!dataset_is_text(&attr->type) || !attr->strings)
			return false;
		if (a->type.kind == DT_STRING) {
			if (!a->fill)
				return false;
			fill = (struct ds_text){(const char *)a->fill, a->type.size};
		}
		/* the attribute's text has its trailing NULs cut off: so has the fill value */
		while (fill.len > 0 && fill.s[fill.len - 1] == '\0')
			fill.len--;
		return value_text_equal(&attr->strings[0], &fill);
	}

	if (!attr->data || !a->fill)
		return false;
	host = attr->type;
	host.big_endian = HOST_BIG_ENDIAN;
	return value_equal(&host, attr->data, &a->type, a->fill);
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

const char *ds_array_path_text(const struct dataset *ds, uint32_t array, struct buf *b)
{
	buf_clear(b);
	ds_array_path(ds, array, b);
	buf_putc(b, '\0');
	return buf_ok(b) ? (const char *)b->data : NULL;
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

uint64_t ds_chunk_in(const struct ds_array *a, uint64_t linear, const struct ds_array *b)
{
	uint64_t coords[DS_RANK_MAX];

	if (a->rank != b->rank || b->n_chunks == 0)
		return UINT64_MAX;
	ds_chunk_coords(a, linear, coords);
	for (uint32_t i = 0; i < a->rank; i++)
		if (coords[i] >= b->grid[i])
			return UINT64_MAX;
	return ds_chunk_linear(b, coords);
}

enum member { MEMBER_GROUP, MEMBER_ARRAY, MEMBER_DIM };

static uint32_t group_of(const struct dataset *ds, enum member what, uint32_t i)
{
	return what == MEMBER_GROUP   ? ds->groups[i].parent
	       : what == MEMBER_ARRAY ? ds->arrays[i].group
				      : ds->dims[i].group;
}

/* members_of - list[first[g]..first[g + 1]) are the members of group g. */
static int members_of(struct dataset *ds, enum member what, uint32_t n, uint32_t **ret_list,
		      uint32_t **ret_first, struct err *e)
{
	uint32_t *list = arena_alloc(&ds->arena, n, sizeof(*list));
	uint32_t *first = arena_alloc(&ds->arena, (size_t)ds->n_groups + 1, sizeof(*first));
	auto_free uint32_t *at = alloc_array((size_t)ds->n_groups + 1, sizeof(*at));

	if (!list || !first)
		return arena_full(&ds->arena, e, "the metadata");
	if (!at)
		return err_nomem(e);
	for (uint32_t i = 0; i < n; i++)
		if (group_of(ds, what, i) != DS_NONE)
			first[group_of(ds, what, i) + 1]++;
	for (uint32_t g = 0; g < ds->n_groups; g++)
		first[g + 1] += first[g];
	memcpy(at, first, ((size_t)ds->n_groups + 1) * sizeof(*at));
	for (uint32_t i = 0; i < n; i++)
		if (group_of(ds, what, i) != DS_NONE)
			list[at[group_of(ds, what, i)]++] = i;
	*ret_list = list;
	*ret_first = first;
	return 0;
}

int ds_group_members(struct dataset *ds, struct err *e)
{
	uint32_t *groups, *arrays, *dims, *fg, *fa, *fd;
	int rc = members_of(ds, MEMBER_GROUP, ds->n_groups, &groups, &fg, e);

	rc = rc ? rc : members_of(ds, MEMBER_ARRAY, ds->n_arrays, &arrays, &fa, e);
	rc = rc ? rc : members_of(ds, MEMBER_DIM, ds->n_dims, &dims, &fd, e);
	for (uint32_t i = 0; rc == 0 && i < ds->n_groups; i++) {
		struct ds_group *g = &ds->groups[i];

		g->groups = groups + fg[i];
		g->n_groups = fg[i + 1] - fg[i];
		g->arrays = arrays + fa[i];
		g->n_arrays = fa[i + 1] - fa[i];
		g->dims = dims + fd[i];
		g->n_dims = fd[i + 1] - fd[i];
	}
	return rc;
}
