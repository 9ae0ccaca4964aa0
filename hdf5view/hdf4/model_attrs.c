/* SPDX-License-Identifier: BSD-3-Clause */
/* model_attrs.c - attributes and number types of HDF4.
 *
 * An attribute that cannot be shown is left out with a note; only limits and memory end the
 * opening. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#include "base/core/utf8.h"

#include <errno.h>
#include "hdf5view/hdf4/hdf4_library.h"
#include <string.h>
#include <strings.h>

bool h4_type(int32_t nt, struct dtype *ret)
{
	static const struct {
		int32_t nt;
		enum dt_kind kind;
		uint32_t size;
	} types[] = {
		{DFNT_UCHAR8, DT_STRING, 1}, {DFNT_CHAR8, DT_STRING, 1},
		{DFNT_INT8, DT_INT, 1},      {DFNT_UINT8, DT_UINT, 1},
		{DFNT_INT16, DT_INT, 2},     {DFNT_UINT16, DT_UINT, 2},
		{DFNT_INT32, DT_INT, 4},     {DFNT_UINT32, DT_UINT, 4},
		{DFNT_FLOAT32, DT_FLOAT, 4}, {DFNT_FLOAT64, DT_FLOAT, 8},
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (types[i].nt != (nt & DFNT_MASK))
			continue;
		*ret = (struct dtype){.kind = types[i].kind, .size = types[i].size};
		return true;
	}
	return false;
}

/* attrs_reserved - bookkeeping names of netCDF and Zarr: readers would interpret
 * them. */
static bool attrs_reserved(const char *name)
{
	static const char *const names[] = {
		"_ARRAY_DIMENSIONS", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates",
		"_Netcdf4Dimid",     "_nc3_strict",    "_NCProperties"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncasecmp(name, "_nczarr_", 8) == 0;
}

/* attrs_put_text - store characters as one string, without their padding. */
static int attrs_put_text(struct h4_build *b, const char *s, size_t n, struct ds_attr *a,
			  struct err *e)
{
	struct ds_text *t = arena_alloc(b->arena, 1, sizeof(*t));

	while (n && s[n - 1] == '\0')
		n--;
	if (!t)
		return h4_full(b, e);
	t->s = utf8_copy(b->arena, s, n, &t->len, NULL);
	if (!t->s)
		return h4_full(b, e);
	a->type.size = (uint32_t)u64_max(t->len, 1);
	a->n = 1;
	a->strings = t;
	return 0;
}

static int attrs_put_numbers(struct h4_build *b, const void *data, uint64_t n,
			     struct ds_attr *a, struct err *e)
{
	uint64_t *dims = arena_alloc(b->arena, 1, sizeof(*dims));

	a->data = arena_copy(b->arena, data, (size_t)n * a->type.size);
	if (!dims || !a->data)
		return h4_full(b, e);
	dims[0] = n;
	a->rank = 1;
	a->dims = dims;
	a->n = n;
	return 0;
}

static int read_value(struct h4_build *b, int32_t id, int32_t i, int32_t nt, int32_t count,
		      struct ds_attr *a, struct err *e)
{
	auto_free uint8_t *data = NULL;
	uint64_t bytes;

	if (!h4_type(nt, &a->type) ||
	    DFKNTsize((nt & DFNT_MASK) | DFNT_NATIVE) != (int)a->type.size)
		return err_set(e, -EOPNOTSUPP, "its type (%d) is not supported", (int)nt);
	if (count < 0 || ckd_mul(&bytes, (uint64_t)count, (uint64_t)a->type.size) ||
	    bytes > b->arena->max)
		return err_set(e, -EOPNOTSUPP, "its number of elements is not supported, %d",
			       (int)count);
	data = alloc_array((size_t)bytes + 1, 1);
	if (!data)
		return err_nomem(e);
	if (count && SDreadattr(id, i, data) == FAIL)
		return h4_error(e, -EBADMSG, "it cannot be read");
	return a->type.kind == DT_STRING
		       ? attrs_put_text(b, (const char *)data, (size_t)bytes, a, e)
		       : attrs_put_numbers(b, data, (uint64_t)count, a, e);
}

/* attrs_read_one - read attribute i; *ret_name is set if it is shown. */
static int attrs_read_one(struct h4_build *b, int32_t id, int32_t i, const char *what,
			  const struct ds_attr *before, uint32_t n, struct ds_attr *ret,
			  struct err *e)
{
	struct err why = ERR_INIT;
	int32 nt = 0, count = 0;
	size_t len;
	int rc;

	if (SDattrinfo(id, i, b->text, &nt, &count) == FAIL)
		return h4_note(b, what, e, "attribute %d cannot be read", (int)i + 1);
	b->text[H4_TEXT_MAX] = '\0';
	ret->name = utf8_copy(b->arena, b->text, strlen(b->text), &len, NULL);
	if (!ret->name)
		return h4_full(b, e);
	if (len == 0 || attrs_reserved(ret->name) || ds_attr_find(before, n, ret->name)) {
		rc = h4_note(b, what, e, "attribute '%s' is left out: its name is %s",
			     ret->name,
			     len == 0                    ? "empty"
			     : attrs_reserved(ret->name) ? "reserved by netCDF"
							 : "used twice");
		ret->name = NULL;
		return rc;
	}
	rc = read_value(b, id, i, nt, count, ret, &why);
	if (h4_fatal(rc))
		return err_set(e, rc, "attribute '%s': %s", ret->name, why.msg);
	if (rc < 0) {
		rc = h4_note(b, what, e, "attribute '%s' is left out: %s", ret->name, why.msg);
		ret->name = NULL;
	}
	return rc;
}

int h4_attrs_read(struct h4_build *b, int32_t id, int32_t n, const char *what, uint32_t *ret_n,
		  const struct ds_attr **ret, struct err *e)
{
	auto_free struct ds_attr *v = NULL;
	uint32_t count = 0;
	size_t cap = 0;

	for (int32_t i = 0; i < n; i++) {
		struct ds_attr a = {0};
		int rc = attrs_read_one(b, id, i, what, v, count, &a, e);

		if (rc < 0)
			return rc;
		if (!a.name)
			continue;
		if (grow_array(&v, &cap, (size_t)count + 1, sizeof(*v)) < 0)
			return err_nomem(e);
		v[count++] = a;
	}
	*ret = arena_copy(b->arena, v, count * sizeof(*v));
	*ret_n = count;
	return *ret ? 0 : h4_full(b, e);
}

#endif
