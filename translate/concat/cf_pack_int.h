/* SPDX-License-Identifier: BSD-3-Clause */
/* cf_pack_int.h - packed numbers as the CF conventions have them (8.1, 2.5.1), and the netCDF
 * User's Guide's _Unsigned: what attributes make of the elements of a variable when a client
 * decodes them.
 *
 * The client is xarray with mask_and_scale as in Debian 12 (numpy before 2): result types, the type
 * of each operation and with it every rounding are its, so that unpacked values are bit-equal to
 * what it shows. In particular:
 *   - _Unsigned "true" makes signed integers unsigned, "false" unsigned ones signed, the
 *     _FillValue with them, missing_value not;
 *   - elements equal to _FillValue or to a missing_value are NaN: integers of 1 and 2 bytes become
 *     float32, larger ones float64, floats stay. A fill value of NaN masks nothing;
 *   - scale_factor and add_offset: float16 and float32 become float32, also those from masking;
 *     integers of 1 and 2 bytes float32 without an add_offset; everything else float64. */
#ifndef TRANSLATE_CONCAT_CF_PACK_INT_H
#define TRANSLATE_CONCAT_CF_PACK_INT_H

#include "translate/model/dataset.h"

#define CF_FILLS_MAX 64

/* cf_operand - scale_factor or add_offset. */
struct cf_operand {
	bool present;
	bool wide;      /* in double even if `to` is a float, to which the result is rounded */
	double v;       /* as the operation uses it */
};

/* cf_pack - plain data; pointers are only those in the types, borrowed. */
struct cf_pack {
	bool packed;          /* an attribute changes values or their type */
	struct dtype from;    /* as presented, after _Unsigned */
	struct dtype to;      /* of unpacked elements, in host byte order */
	uint32_t n_fills;
	double fills[CF_FILLS_MAX];   /* ascending; elements that equal one are NaN */
	struct cf_operand scale, add;
};

/* cf_pack_of - evaluate the attributes of a variable of type t. Only integers and floats are ever
 * packed; for other types, and without such attributes, ret->packed is false and `to` is t in host
 * byte order. Strings in _FillValue and missing_value mask nothing. Returns 0; -EINVAL scale_factor
 * or add_offset is not one number, or _FillValue does not fit the type that _Unsigned makes;
 * -ERANGE more than CF_FILLS_MAX values that mean missing. */
int cf_pack_of(const struct ds_attr *attrs, uint32_t n, const struct dtype *t, struct cf_pack *ret,
	       struct err *e) NZ_MUST_USE;

/* cf_pack_same - whether elements mean the same in both, so that raw elements of both can be mixed.
 * Byte order is not compared. */
bool cf_pack_same(const struct cf_pack *a, const struct cf_pack *b);

/* cf_unpack - n elements as presented (byte order of p->from; at any address) to n of p->to. Types
 * without a fixed size have no such elements. in and out must not overlap. */
void cf_unpack(const struct cf_pack *p, const uint8_t *in, uint8_t *out, size_t n);

#endif
