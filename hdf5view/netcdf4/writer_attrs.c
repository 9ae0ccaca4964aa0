/* SPDX-License-Identifier: BSD-3-Clause */
/* writer_attrs.c - writes attributes as netCDF-C does: a string as one string of exactly its
 * length, everything else as a list of one dimension, an empty list as a null dataspace. */
#include "hdf5view/netcdf4/schema.h"

#include <string.h>

/* attrs_put - write one attribute at once. data: NULL when there are no values. */
static int attrs_put(hid_t obj, const char *name, hid_t file, hid_t mem, hid_t space,
		     const void *data)
{
	auto_hid hid_t at = -1;

	if (file < 0 || mem < 0 || space < 0)
		return -1;
	at = H5Acreate2(obj, name, file, space, H5P_DEFAULT, H5P_DEFAULT);
	if (at < 0)
		return -1;
	return data && H5Awrite(at, mem, data) < 0 ? -1 : 0;
}

/* list_space - the dataspace of n values; 0: a null dataspace. Returns a new id. */
static hid_t list_space(uint64_t n)
{
	hsize_t dim = n;

	return n ? H5Screate_simple(1, &dim, NULL) : H5Screate(H5S_NULL);
}

int nc_h5_attr_text(hid_t obj, const char *name, const char *text, size_t n, bool utf8)
{
	auto_hid hid_t type = H5Tcopy(H5T_C_S1);
	auto_hid hid_t space = H5Screate(H5S_SCALAR);

	if (type < 0 || H5Tset_size(type, n ? n : 1) < 0 ||
	    (utf8 && H5Tset_cset(type, H5T_CSET_UTF8) < 0))
		return -1;
	return attrs_put(obj, name, type, type, space, n ? text : "");
}

int nc_h5_attr_raw(hid_t obj, const char *name, hid_t type, uint64_t n, const void *values)
{
	auto_hid hid_t space = n ? list_space(n) : H5Screate(H5S_SCALAR);

	return attrs_put(obj, name, type, type, space, values);
}

bool nc_ascii(const struct ds_text *t)
{
	for (size_t i = 0; i < t->len; i++)
		if ((unsigned char)t->s[i] >= 0x80)
			return false;
	return true;
}

char **nc_texts(const struct ds_text *t, uint64_t n)
{
	char **list = alloc_array(n + 1, sizeof(*list));

	for (uint64_t i = 0; list && i < n; i++) {
		list[i] = strndup(t[i].s ? t[i].s : "", t[i].len);
		if (!list[i]) {
			nc_texts_free(list);
			return NULL;
		}
	}
	return list;
}

void nc_texts_free(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

/* attrs_put_strings - write a list of variable-length strings. */
static int attrs_put_strings(const struct nc_builder *b, hid_t obj, const struct nc_attr *at)
{
	const struct dtype t = {.kind = DT_VSTRING};
	uint64_t n = at->src->n;
	auto_hid hid_t type = nc_h5_type(b, &t, DS_NONE);
	auto_hid hid_t space = list_space(n);
	char **list = nc_texts(at->src->strings, n);
	int rc = list ? 0 : -1;

	rc = rc ? rc : attrs_put(obj, at->name, type, type, space, n ? list : NULL);
	nc_texts_free(list);
	return rc;
}

/* put_lists - write values that are variable-length arrays. */
static int put_lists(const struct nc_builder *b, hid_t obj, const struct nc_attr *at)
{
	const struct ds_attr *src = at->src;
	const struct dtype *base = src->type.base;
	auto_hid hid_t type = nc_h5_type(b, &at->as, at->type);
	auto_hid hid_t mem = nc_h5_type_host(b, &src->type);
	auto_hid hid_t space = list_space(src->n);
	auto_free hvl_t *list = alloc_array(src->n, sizeof(*list));
	auto_free uint8_t *room = NULL;
	size_t total = 0;

	if (!list || base->size == 0)
		return -1;
	for (uint64_t i = 0; i < src->n; i++)
		total += src->strings[i].len; /* they are all in memory */
	room = alloc_array(total, 1);
	if (!room)
		return -1;
	total = 0;
	for (uint64_t i = 0; i < src->n; i++) {
		size_t n = src->strings[i].len - src->strings[i].len % base->size;

		if (n > 0)
			memcpy(room + total, src->strings[i].s, n);
		list[i] = (hvl_t){.len = n / base->size, .p = room + total};
		total += n;
	}
	return attrs_put(obj, at->name, type, mem, space, src->n ? list : NULL);
}

static int attrs_put_values(const struct nc_builder *b, hid_t obj, const struct nc_attr *at)
{
	struct dtype as = at->as;
	auto_hid hid_t type = -1;
	auto_hid hid_t mem = nc_h5_type_host(b, &at->src->type);
	auto_hid hid_t space = list_space(at->src->n);

	as.big_endian = false;
	type = nc_h5_type(b, &as, at->type);
	return attrs_put(obj, at->name, type, mem, space, at->src->n ? at->src->data : NULL);
}

static int attrs_put_one(const struct nc_builder *b, hid_t obj, const struct nc_attr *at)
{
	static const struct ds_text empty;
	const struct ds_text *t = at->src->n ? at->src->strings : &empty;

	switch (at->form) {
	case NC_ATTR_TEXT:
		return nc_h5_attr_text(obj, at->name, t->s, t->len, !nc_ascii(t));
	case NC_ATTR_STRINGS:
		return attrs_put_strings(b, obj, at);
	case NC_ATTR_LISTS:
		return put_lists(b, obj, at);
	default:
		return attrs_put_values(b, obj, at);
	}
}

int nc_h5_attrs(const struct nc_builder *b, hid_t obj, const struct nc_attrs *attrs)
{
	for (uint32_t i = 0; i < attrs->n; i++)
		if (attrs_put_one(b, obj, &attrs->list[i]) < 0)
			return -1;
	return 0;
}
