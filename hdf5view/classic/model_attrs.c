/* SPDX-License-Identifier: BSD-3-Clause */
/* model_attrs.c - types, fill values and attributes in the model's terms: as in a netCDF-4 file
 * that netCDF-C made of the classic one, so that all views of both are the same. */
#include "hdf5view/classic/classic_int.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

struct dtype cdf_dtype(uint32_t type, bool host)
{
	static const enum dt_kind kinds[] = {
		[CDF_BYTE] = DT_INT,   [CDF_CHAR] = DT_STRING, [CDF_SHORT] = DT_INT,
		[CDF_INT] = DT_INT,    [CDF_FLOAT] = DT_FLOAT, [CDF_DOUBLE] = DT_FLOAT,
		[CDF_UBYTE] = DT_UINT, [CDF_USHORT] = DT_UINT, [CDF_UINT] = DT_UINT,
		[CDF_INT64] = DT_INT,  [CDF_UINT64] = DT_UINT,
	};
	struct dtype t = {.kind = kinds[type], .size = cdf_type_bytes(type)};

	t.big_endian = !host && t.size > 1;
	return t;
}

void cdf_default_fill(uint32_t type, uint8_t out[8])
{
	static const uint8_t fills[][8] = {
		[CDF_BYTE] = {0x81},
		[CDF_CHAR] = {0},
		[CDF_SHORT] = {0x80, 0x01},
		[CDF_INT] = {0x80, 0, 0, 0x01},
		[CDF_FLOAT] = {0x7c, 0xf0},
		[CDF_DOUBLE] = {0x47, 0x9e},
		[CDF_UBYTE] = {0xff},
		[CDF_USHORT] = {0xff, 0xff},
		[CDF_UINT] = {0xff, 0xff, 0xff, 0xff},
		[CDF_INT64] = {0x80, 0, 0, 0, 0, 0, 0, 0x02},
		[CDF_UINT64] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe},
	};

	memcpy(out, fills[type], 8);
}

/* classic_model_attrs_reserved - attributes that views write themselves. */
static bool classic_model_attrs_reserved(const char *name)
{
	return strcmp(name, "_ARRAY_DIMENSIONS") == 0 || strncasecmp(name, "_nczarr_", 8) == 0;
}

/* text_value - NC_CHAR is one string, as netCDF-C writes it to HDF5; without characters it is an
 * empty list of strings. */
static int text_value(struct cdf_notes *notes, const struct cdf_attr *in, struct ds_attr *a,
		      bool *ret_mapped, struct err *e)
{
	struct ds_text *t = arena_alloc(notes->arena, 1, sizeof(*t));
	size_t len = (size_t)in->n;

	if (!t)
		return cdf_full(notes->arena, e);
	a->strings = t;
	if (in->n == 0)
		return 0;
	a->rank = 0;
	a->n = 1;
	a->type.size = (uint32_t)u64_min(in->n, UINT32_MAX);
	while (len > 0 && in->data[len - 1] == '\0')
		len--;
	return cdf_text(notes->arena, (const char *)in->data, len, t, ret_mapped, e);
}

static int classic_model_attrs_convert(struct cdf_notes *notes, const struct cdf_attr *in,
				       struct ds_attr *a, bool *ret_mapped, struct err *e)
{
	struct dtype file = cdf_dtype(in->type, false);
	uint64_t *dims = arena_alloc(notes->arena, 1, sizeof(*dims));

	if (!dims)
		return cdf_full(notes->arena, e);
	dims[0] = in->n;
	a->type = cdf_dtype(in->type, true);
	a->rank = 1;
	a->dims = dims;
	a->n = in->n;
	if (in->type == CDF_CHAR)
		return text_value(notes, in, a, ret_mapped, e);
	dt_swap_to_host(&file, in->data, (size_t)in->n);
	a->data = in->data;
	return 0;
}

/* classic_model_attrs_names - the names of all attributes in UTF-8; NULL, with a note, for those
 * that are not shown. */
static int classic_model_attrs_names(struct cdf_notes *notes, const char *where,
				     const struct cdf_attr *in, uint32_t n, const char **v,
				     bool *ret_mapped, struct err *e)
{
	auto_free bool *twice = alloc_array(n, sizeof(*twice));
	int rc = twice ? 0 : err_nomem(e);

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		struct ds_text t = in[i].name;

		rc = cdf_text(notes->arena, in[i].name.s, in[i].name.len, &t, ret_mapped, e);
		v[i] = t.s;
	}
	rc = rc ? rc : cdf_find_duplicates(v, n, twice, e);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const char *why = twice[i] ? "another attribute has the same name"
				  : !*v[i] ? "it has no name"
				  : classic_model_attrs_reserved(v[i])
					  ? "its name is reserved by Zarr"
					  : NULL;

		if (!why)
			continue;
		rc = cdf_note(notes, e, "%sattribute '%.80s' is left out: %s", where, v[i],
			      why);
		v[i] = NULL;
	}
	return rc;
}

int cdf_attrs(struct cdf_notes *notes, const char *where, const struct cdf_attr *in, uint32_t n,
	      const struct ds_attr **ret, uint32_t *ret_n, struct err *e)
{
	auto_free const char **v = alloc_array(n, sizeof(*v));
	struct ds_attr *all = arena_alloc(notes->arena, n, sizeof(*all));
	bool mapped = false;
	uint32_t m = 0;
	int rc;

	if (!v)
		return err_nomem(e);
	if (!all)
		return cdf_full(notes->arena, e);
	rc = classic_model_attrs_names(notes, where, in, n, v, &mapped, e);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		if (!v[i])
			continue;
		all[m].name = v[i];
		rc = classic_model_attrs_convert(notes, &in[i], &all[m++], &mapped, e);
	}
	if (rc == 0 && mapped)
		rc = cdf_note(notes, e, "%sstrings that are not UTF-8 are read as Latin-1",
			      where);
	*ret = all;
	*ret_n = m;
	return rc;
}
