/* metadata_v3_dtype.c - types under the names that all readers of Zarr v3 know. One that a reader
 * does not know fails more than its array: zarr-python opens no group whose consolidated metadata
 * has it. */
#include "nczarr/view/metadata.h"

#include <errno.h>
#include <string.h>

static const struct {
	enum dt_kind kind;
	uint32_t size;
	const char *name;
} plain[] = {
	{DT_BOOL, 1, "bool"},         {DT_INT, 1, "int8"},
	{DT_INT, 2, "int16"},         {DT_INT, 4, "int32"},
	{DT_INT, 8, "int64"},         {DT_UINT, 1, "uint8"},
	{DT_UINT, 2, "uint16"},       {DT_UINT, 4, "uint32"},
	{DT_UINT, 8, "uint64"},       {DT_FLOAT, 2, "float16"},
	{DT_FLOAT, 4, "float32"},     {DT_FLOAT, 8, "float64"},
	{DT_COMPLEX, 8, "complex64"}, {DT_COMPLEX, 16, "complex128"},
	{DT_VSTRING, 0, "string"},    {DT_VLEN, 0, "bytes"},
};

static const char *plain_name(const struct dtype *t)
{
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (plain[i].kind == t->kind && plain[i].size == t->size)
			return plain[i].name;
	return NULL;
}

int zr_type3_of(const struct dtype *t, struct zr_type3 *ret)
{
	*ret = (struct zr_type3){.name = plain_name(t), .type = *t};
	if (ret->name) {
		ret->says = t->kind == DT_VLEN && t->base &&
			    (t->base->kind != DT_UINT || t->base->size != 1);
		return 0;
	}
	if (t->kind != DT_STRING && t->kind != DT_OPAQUE && t->kind != DT_COMPOUND)
		return -EOPNOTSUPP;
	ret->type = (struct dtype){.kind = DT_UINT, .size = 1};
	ret->name = plain_name(&ret->type);
	ret->bytes = t->size > 1 ? t->size : 0;
	ret->says = true;
	return 0;
}

/* said_nan - whether a NaN is the one that "NaN" stands for. */
static bool said_nan(const uint8_t *p, size_t n, bool big)
{
	uint64_t v = 0, mant = n == 2 ? 10 : n == 4 ? 23 : 52, all, frac;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[big ? i : n - 1 - i];
	all = ((uint64_t)1 << (8 * n - 1 - mant)) - 1; /* of the exponent */
	frac = v & (((uint64_t)1 << mant) - 1);
	if ((v >> mant & all) != all || frac == 0)
		return true; /* no NaN */
	return v == (all << mant | (uint64_t)1 << (mant - 1));
}

bool zr_type3_fill(const struct ds_array *a)
{
	const struct dtype *t = &a->type;

	switch (t->kind) {
	case DT_VSTRING:
		return true;
	case DT_VLEN:
		return false;
	case DT_FLOAT:
		return said_nan(a->fill, t->size, t->big_endian);
	case DT_COMPLEX:
		return said_nan(a->fill, t->size / 2, t->big_endian) &&
		       said_nan(a->fill + t->size / 2, t->size / 2, t->big_endian);
	case DT_STRING:
	case DT_OPAQUE:
	case DT_COMPOUND: /* one value for all bytes */
		return memcmp(a->fill, a->fill + 1, t->size - 1) == 0;
	default:
		return true;
	}
}
