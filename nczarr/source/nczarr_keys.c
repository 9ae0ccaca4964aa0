/* SPDX-License-Identifier: BSD-3-Clause */
/* nczarr_keys.c - NCZarr's additions to Zarr v2, in all locations and spellings.
 *
 * netCDF-C     | superblock and groups           | arrays                    | attributes
 * 4.8 (V1)     | objects .nczarr and .nczgroup   | .nczarray, before .nczvar | .nczattrs, .nczattr
 * 4.9.0        | _NCZARR_SUPERBLOCK, _NCZARR_GROUP in .zgroup | _NCZARR_ARRAY in .zarray |
 *              |                                 |                           | _NCZARR_ATTR
 * 4.9.1, 4.9.2 | the same in lower case                                      | _nczarr_attr
 * from 4.9.3   | lower case, all in .zattrs; members have longer names       | _nczarr_attr
 *
 * Each is looked up in all locations, so that mixtures can be read as well.
 *
 * A store of plain Zarr that nczarrfs writes has no superblock, but a group of it may have
 * _nczarr_group with two members: "dimensions", and "order", the names of its arrays and groups in
 * netCDF's order; and an array _nczarr_array with "fletcher32". They are hints: shapes and
 * documents of arrays have precedence. */
#include "nczarr/source/open.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* in_either - a dictionary by its two spellings, in attributes or document. */
static const json_t *in_either(const struct zr_item *it, const char *lower, const char *upper)
{
	const json_t *const places[] = {it->attrs, it->meta};
	const char *const names[] = {lower, upper};

	for (size_t n = 0; n < 2; n++)
		for (size_t p = 0; p < 2; p++) {
			const json_t *v = json_get(places[p], names[n]);

			if (json_kind(v) == JSON_IS_OBJECT)
				return v;
		}
	return NULL;
}

static const json_t *nc_renamed(const json_t *v, const char *now, const char *before)
{
	const json_t *m = json_get(v, now);

	return m ? m : json_get(v, before);
}

const json_t *zr_nc_superblock(const struct zr_item *root)
{
	return in_either(root, "_nczarr_superblock", "_NCZARR_SUPERBLOCK");
}

const json_t *zr_nc_group(const struct zr_item *it)
{
	return it->extra ? it->extra : in_either(it, "_nczarr_group", "_NCZARR_GROUP");
}

const json_t *zr_nc_array(const struct zr_item *it)
{
	return it->extra ? it->extra : in_either(it, "_nczarr_array", "_NCZARR_ARRAY");
}

const json_t *zr_nc_dims(const json_t *group)
{
	return nc_renamed(group, "dimensions", "dims");
}

const json_t *zr_nc_vars(const json_t *group)
{
	return nc_renamed(group, "arrays", "vars");
}

const json_t *zr_nc_refs(const json_t *array)
{
	return nc_renamed(array, "dimension_references", "dimrefs");
}

bool zr_nc_scalar(const json_t *array)
{
	int64_t v;

	return json_is(json_get(array, "storage"), "scalar") ||
	       (json_i64(json_get(array, "scalar"), &v) == 0 && v == 1);
}

/* number_type - V1 stores netCDF's number of a type; NULL: an invalid number. */
static const char *number_type(const char *s)
{
	static const char *const types[] = {"<i1", ">S1", "<i2", "<i4", "<f4", "<f8",
					    "<u1", "<u2", "<u4", "<i8", "<u8", "|S"};
	size_t n = 0;

	for (; *s >= '0' && *s <= '9' && n < 100; s++)
		n = 10 * n + (size_t)(*s - '0');
	return *s == '\0' && n >= 1 && n <= ARRAY_LEN(types) ? types[n - 1] : NULL;
}

const char *zr_nc_type(const struct zr_item *it, const char *attr)
{
	const json_t *types = json_get(in_either(it, "_nczarr_attr", "_NCZARR_ATTR"), "types");
	struct ds_text t;
	const char *number;

	if (!json_text_of(json_get(types, attr), &t) || strlen(t.s) != t.len)
		return NULL;
	number = number_type(t.s);
	return number ? number : t.s;
}

bool zr_nc_hidden(const char *attr)
{
	return strncasecmp(attr, "_nczarr_superblock", 18) == 0 ||
	       strncasecmp(attr, "_nczarr_group", 13) == 0 ||
	       strncasecmp(attr, "_nczarr_array", 13) == 0 ||
	       strncasecmp(attr, "_nczarr_attr", 12) == 0 ||
	       strcmp(attr, "_ARRAY_DIMENSIONS") == 0 || strcmp(attr, "_NCProperties") == 0;
}

int zr_nc_dim(const json_t *v, uint64_t *ret_len, bool *ret_unlimited)
{
	bool object = json_kind(v) == JSON_IS_OBJECT;
	const json_t *u = json_get(v, "unlimited");
	int64_t flag = 0;
	uint64_t len;

	if (json_u64(object ? json_get(v, "size") : v, &len) < 0 || len > INT64_MAX)
		return -EBADMSG;
	if (json_kind(u) == JSON_IS_BOOL)
		flag = json_is_true(u);
	else if (u && json_i64(u, &flag) < 0)
		return -EBADMSG;
	*ret_len = len;
	*ret_unlimited = flag != 0;
	return 0;
}

/* nc_release - "4.9.2" as 40902; UINT32_MAX: not a version. */
static uint32_t nc_release(const char *s)
{
	uint32_t v = 0, part = 0;

	for (uint32_t parts = 1;; s++) {
		if (*s >= '0' && *s <= '9' && part < 100) {
			part = 10 * part + (uint32_t)(*s - '0');
			continue;
		}
		if (part > 99)
			return UINT32_MAX;
		v = 100 * v + part;
		part = 0;
		if (parts == 3)
			return v;
		if (*s != '.')
			return UINT32_MAX;
		parts++;
	}
}

void zr_nc_store(const struct zr_tree *t, struct zr_nc *ret)
{
	const struct zr_item *root = t->n_items ? &t->items[0] : NULL;
	uint32_t by = UINT32_MAX;
	struct ds_text p;
	const char *at;

	*ret = (struct zr_nc){.on = t->superblock != NULL};
	if (!root)
		return;
	if (json_text_of(json_get(root->attrs, "_NCProperties"), &p) &&
	    strstr(p.s, "nczarr=")) {
		at = strstr(p.s, "netcdf=");
		by = at ? nc_release(at + 7) : UINT32_MAX;
	}
	ret->swapped = by <= 40902;
	ret->old_char = by <= 40900;
	/* without a version: only old releases wrote upper case, or objects of their own */
	if (by == UINT32_MAX && ret->on)
		ret->old_char =
			root->format == 1 || json_get(root->meta, "_NCZARR_SUPERBLOCK") != NULL;
}
