/* SPDX-License-Identifier: BSD-3-Clause */
/* attributes.c - attributes of a classic file: a string, or a list of numbers of one type.
 *
 * CDF-1 and CDF-2 have no unsigned and no 64-bit integers. Attributes often have such types without
 * a need: JSON has one kind of integer, and numpy's is int64. They are stored as int if all their
 * values fit, so that such an attribute alone does not make a file that netCDF-3 cannot read. */
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/half.h"
#include "translate/model/value.h"

/* attributes_text - the one string of an attribute that becomes characters, or an empty one; NULL:
 * it does not. */
static const struct ds_text *attributes_text(const struct nc_attr *at)
{
	static const struct ds_text none = {"", 0};

	if ((at->form != NC_ATTR_TEXT && at->form != NC_ATTR_STRINGS) || at->src->n > 1)
		return NULL;
	return at->src->n ? &at->src->strings[0] : &none;
}

/* attributes_type - the type of an attribute of numbers; 0: it is something else. */
static uint32_t attributes_type(const struct nc_attr *at)
{
	const uint32_t type = at->form == NC_ATTR_VALUES ? cdf_type_of(&at->as) : 0;

	return type == CDF_CHAR ? 0 : type;
}

/* attributes_int - integer i of an attribute. Returns false if it does not fit an int. */
static bool attributes_int(const struct ds_attr *src, uint64_t i, int32_t *ret)
{
	const uint32_t size = src->type.size;
	uint64_t v = get_uint(src->data + i * size, size, HOST_BIG_ENDIAN);

	if (src->type.kind == DT_INT && size < 8 && v >> (8 * size - 1))
		v |= ~(uint64_t)0 << 8 * size;
	*ret = (int32_t)(uint32_t)v;
	return src->type.kind == DT_INT ? (uint64_t)(int64_t)*ret == v : v <= INT32_MAX;
}

/* attributes_ints - whether all integers of an attribute fit an int. */
static bool attributes_ints(const struct ds_attr *src)
{
	int32_t v;

	for (uint64_t i = 0; i < src->n; i++)
		if (!attributes_int(src, i, &v))
			return false;
	return true;
}

bool cdf_attrs_fit(const struct nc_attrs *attrs)
{
	for (uint32_t i = 0; i < attrs->n; i++)
		if (attributes_type(&attrs->list[i]) > CDF_DOUBLE &&
		    !attributes_ints(attrs->list[i].src))
			return false;
	return true;
}

/* attributes_put_text - characters; NULs at the end, which the model cuts off, belong to them. */
static bool attributes_put_text(struct nc_model *m, const struct ds_attr *src,
				const struct ds_text *t, struct cdf_attr *ret)
{
	uint64_t n = t->len;

	if (src->type.kind == DT_STRING && src->n)
		n = u64_max(n, src->type.size);
	ret->type = CDF_CHAR;
	ret->n = n;
	ret->data = arena_alloc(&m->arena, (size_t)n, 1);
	if (ret->data && t->len)
		memcpy(ret->data, t->s, t->len);
	return ret->data != NULL;
}

/* attributes_put_ints - integers as int. */
static bool attributes_put_ints(struct nc_model *m, const struct ds_attr *src,
				struct cdf_attr *ret)
{
	ret->type = CDF_INT;
	ret->n = src->n;
	ret->data = arena_alloc(&m->arena, (size_t)src->n, 4);
	for (uint64_t i = 0; ret->data && i < src->n; i++) {
		int32_t v;

		(void)attributes_int(src, i, &v); /* it fits */
		put_be(ret->data + 4 * i, (uint32_t)v, 4);
	}
	return ret->data != NULL;
}

/* attributes_put_values - numbers in their own type, half floats as floats. */
static bool attributes_put_values(struct nc_model *m, const struct ds_attr *src, uint32_t type,
				  struct cdf_attr *ret)
{
	const size_t size = cdf_type_bytes(type);

	ret->type = type;
	ret->n = src->n;
	ret->data = arena_alloc(&m->arena, (size_t)src->n, size);
	for (uint64_t i = 0; ret->data && i < src->n; i++) {
		const uint8_t *p = src->data + i * src->type.size;
		uint64_t v = get_uint(p, src->type.size, HOST_BIG_ENDIAN);

		if (src->type.kind == DT_FLOAT && src->type.size == 2)
			v = f32_bits((float)half_to_double((uint16_t)v));
		put_be(ret->data + i * size, v, size);
	}
	return ret->data != NULL;
}

/* attributes_refused - why an attribute is not in the file; NULL: it is. */
static const char *attributes_refused(const struct nc_attr *at, unsigned version)
{
	const uint32_t type = attributes_type(at);

	if (attributes_text(at))
		return NULL;
	if (at->form == NC_ATTR_STRINGS || at->form == NC_ATTR_TEXT)
		return "is left out: classic netCDF has no lists of strings";
	if (!type)
		return "is left out: classic netCDF has no such type";
	if (type > CDF_DOUBLE && version != 5 && !attributes_ints(at->src))
		return "is left out: its integers fit only CDF-5";
	return NULL;
}

static bool attributes_put(struct nc_model *m, const struct nc_attr *at,
			   struct cdf_attrs_how *how, struct cdf_attr *ret)
{
	const struct ds_text *text = attributes_text(at);
	const uint32_t type = attributes_type(at);

	ret->name = (struct ds_text){at->name, strlen(at->name)};
	if (text)
		return attributes_put_text(m, at->src, text, ret);
	if (type <= CDF_DOUBLE || how->version == 5)
		return attributes_put_values(m, at->src, type, ret);
	how->made++;
	return attributes_put_ints(m, at->src, ret);
}

int cdf_attrs_make(struct nc_model *m, uint32_t array, const struct nc_attrs *attrs,
		   struct cdf_attrs_how *how, struct cdf_attr **ret, uint32_t *ret_n,
		   struct err *e)
{
	struct cdf_attr *list = arena_alloc(&m->arena, attrs->n, sizeof(*list));
	uint32_t n = 0;

	if (!list)
		return nc_full(m, e);
	for (uint32_t i = 0; i < attrs->n; i++) {
		const struct nc_attr *at = &attrs->list[i];
		const char *why = attributes_refused(at, how->version);

		if (why && !how->noted &&
		    nc_note(m, 0, array, "attribute '%s' %s", at->name, why) < 0)
			return err_nomem(e);
		if (!why && !attributes_put(m, at, how, &list[n++]))
			return nc_full(m, e);
	}
	*ret = list;
	*ret_n = n;
	return 0;
}
