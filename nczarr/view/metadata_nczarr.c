/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_nczarr.c - the keys of netCDF-C's own stores: groups, dimensions and types.
 *
 * No layout of netCDF-C is readable for all its versions. This one has superblock, groups and
 * arrays in .zgroup and .zarray (as required by 4.9.2) with both spellings of the inner keys
 * (4.9.3 and later look for the new ones first and then for the old), and only the types of
 * attributes in .zattrs. */
#include "base/core/endian.h"
#include "nczarr/view/metadata_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool zr_netcdf_name(const char *name)
{
	unsigned char c = (unsigned char)name[0];
	size_t n = strlen(name);

	if (!(c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	      (c >= 'A' && c <= 'Z')))
		return false;
	for (size_t i = 0; i < n; i++) {
		c = (unsigned char)name[i];
		if (c < 0x20 || c == 0x7f || c == '/')
			return false;
	}
	return c != ' ';
}

const char *zr_nczarr_lacks(const struct dtype *t)
{
	switch (t->kind) {
	case DT_BOOL:
	case DT_INT:
	case DT_UINT:
	case DT_STRING:
	case DT_VSTRING:
		return NULL;
	case DT_FLOAT:
		return t->size == 2 ? "NCZarr has no 16-bit floats" : NULL;
	case DT_COMPLEX:
		return "NCZarr has no complex numbers";
	case DT_OPAQUE:
		return "NCZarr has no opaque type";
	case DT_COMPOUND:
		return "NCZarr has no compound types";
	case DT_VLEN:
		return "NCZarr has no variable-length type";
	}
	return "NCZarr has no such type";
}

/* put_dims - the dimensions of a group. rich: for 4.9.3 and later, which support unlimited
 * dimensions and length 0. */
static void put_dims(struct jw *j, const struct zr_metadata *em, const struct ds_group *g,
		     bool rich)
{
	jw_object(j, true);
	for (uint32_t i = 0; i < g->n_dims && buf_ok(j->out); i++) {
		const struct ds_dim *dim = &em->ds->dims[g->dims[i]];

		if (!zr_netcdf_name(dim->name) || (!rich && dim->len == 0) ||
		    (dim->phony && em->mode != ZARR_NCZARR))
			continue;
		jw_key(j, dim->name);
		if (rich && dim->unlimited) {
			jw_object(j, true);
			jw_u64(jw_key(j, "size"), dim->len);
			jw_u64(jw_key(j, "unlimited"), 1);
			jw_end(j);
		} else {
			jw_u64(j, dim->len);
		}
	}
	jw_end(j);
}

/* put_arrays - rich: all; else without those for which netCDF-C 4.9.2, which alone reads the old
 * spelling, would reject the dataset: without elements, or with a chunk longer than the array. */
static void put_arrays(struct jw *j, const struct zr_metadata *em, const struct ds_group *g,
		       bool rich)
{
	jw_array(j, true);
	for (uint32_t i = 0; i < g->n_arrays && buf_ok(j->out); i++) {
		const struct ds_array *a = &em->ds->arrays[g->arrays[i]];
		bool fits = rich || a->rank == 0 ||
			    (a->n_chunks > 0 && zr_chunk_rows(em->mode, a) <= a->shape[0]);

		for (uint32_t d = 1; !rich && d < a->rank; d++)
			fits = fits && a->chunk[d] <= a->shape[d];
		if (fits && !em->hidden_arrays[g->arrays[i]])
			jw_str(j, a->name);
	}
	jw_end(j);
}

void zr_put_nczarr_group(struct jw *j, const struct zr_metadata *em, uint32_t group)
{
	const struct ds_group *g = &em->ds->groups[group];

	if (group == 0) {
		jw_object(jw_key(j, "_nczarr_superblock"), true);
		jw_str(jw_key(j, "version"), "2.0.0");
		jw_end(j);
	}
	jw_object(jw_key(j, "_nczarr_group"), false);
	put_dims(jw_key(j, "dims"), em, g, false);
	put_dims(jw_key(j, "dimensions"), em, g, true);
	put_arrays(jw_key(j, "vars"), em, g, false);
	put_arrays(jw_key(j, "arrays"), em, g, true);
	jw_array(jw_key(j, "groups"), true);
	for (uint32_t i = 0; i < g->n_groups && buf_ok(j->out); i++)
		if (!em->hidden_groups[g->groups[i]])
			jw_str(j, em->ds->groups[g->groups[i]].name);
	jw_end(j);
	jw_end(j);
}

void zr_put_group_hints(struct jw *j, const struct zr_metadata *em, uint32_t group)
{
	const struct ds_group *g = &em->ds->groups[group];

	jw_object(j, false);
	put_dims(jw_key(j, "dimensions"), em, g, true);
	jw_array(jw_key(j, "order"), true);
	for (uint32_t i = 0; i < g->n_arrays && buf_ok(j->out); i++)
		jw_str(j, em->ds->arrays[g->arrays[i]].name);
	for (uint32_t i = 0; i < g->n_groups && buf_ok(j->out); i++)
		jw_str(j, em->ds->groups[g->groups[i]].name);
	jw_end(j);
	jw_end(j);
}

/* put_dimrefs - full names of an array's dimensions. */
static void put_dimrefs(struct jw *j, const struct zr_metadata *em, const struct ds_array *a)
{
	struct buf path;

	jw_array(j, true);
	for (uint32_t d = 0; d < a->rank && buf_ok(j->out); d++) {
		const struct ds_dim *dim = &em->ds->dims[a->dims[d]];

		buf_init(&path, j->out->max);
		if (dim->group != 0)
			ds_group_path(em->ds, dim->group, &path);
		buf_putc(&path, '/');
		buf_puts(&path, dim->name);
		jw_take_text(j, &path);
	}
	jw_end(j);
}

void zr_put_nczarr_array(struct jw *j, const struct zr_metadata *em, const struct ds_array *a)
{
	jw_object(jw_key(j, "_nczarr_array"), false);
	put_dimrefs(jw_key(j, "dimrefs"), em, a);
	put_dimrefs(jw_key(j, "dimension_references"), em, a);
	jw_str(jw_key(j, "storage"), a->rank ? "chunked" : "scalar");
	if (a->rank == 0)
		jw_u64(jw_key(j, "scalar"), 1);
	jw_end(j);
}

/* nc_put_type - the netCDF type of an attribute's JSON. If there is none, the JSON is
 * presented as a string. */
static void nc_put_type(struct jw *j, const struct ds_attr *at)
{
	const struct dtype *t = &at->type;
	bool text = t->kind == DT_VSTRING || (t->kind == DT_STRING && at->rank > 0);
	struct dtype as = *t;
	size_t longest = 1;
	char tmp[32];

	if (at->n > 0 && text) {
		for (uint64_t i = 0; i < at->n; i++)
			if (at->strings[i].len > longest)
				longest = at->strings[i].len;
		(void)snprintf(tmp, sizeof(tmp), "|S%zu", longest);
		jw_str(j, tmp);
		return;
	}
	if (at->n > 1 && t->kind == DT_OPAQUE) {
		(void)snprintf(tmp, sizeof(tmp), "|S%" PRIu64, 2 + 2 * (uint64_t)t->size);
		jw_str(j, tmp);
		return;
	}
	if (t->kind == DT_BOOL)
		as.kind = DT_UINT;
	if (t->kind == DT_COMPLEX && at->n == 1)
		as = (struct dtype){.kind = DT_FLOAT, .size = t->size / 2};
	if (as.kind == DT_FLOAT && as.size == 2)
		as.size = 4;
	if (at->n == 0 || (as.kind != DT_INT && as.kind != DT_UINT && as.kind != DT_FLOAT)) {
		jw_str(j, ">S1");
		return;
	}
	(void)snprintf(tmp, sizeof(tmp), "%c%c%" PRIu32, HOST_BIG_ENDIAN ? '>' : '<',
		       as.kind == DT_INT    ? 'i'
		       : as.kind == DT_UINT ? 'u'
					    : 'f',
		       as.size);
	jw_str(j, tmp);
}

/* put_types - of n attributes, as members of the open object. */
static void put_types(struct jw *j, const struct zr_metadata *em, const struct ds_attr *attrs,
		      uint32_t n, bool of_array)
{
	for (uint32_t i = 0; i < n && buf_ok(j->out); i++) {
		if (zr_attr_skipped(em, &attrs[i], of_array))
			continue;
		jw_key(j, attrs[i].name);
		nc_put_type(j, &attrs[i]);
	}
}

void zr_put_nczarr_types(struct jw *j, const struct zr_metadata *em,
			 const struct ds_attr *attrs, uint32_t n, const struct ds_attr *more,
			 bool of_array)
{
	jw_object(jw_key(j, "_nczarr_attr"), false);
	jw_object(jw_key(j, "types"), true);
	put_types(j, em, attrs, n, of_array);
	if (more)
		put_types(j, em, more, 1, of_array);
	jw_end(j);
	jw_end(j);
}
