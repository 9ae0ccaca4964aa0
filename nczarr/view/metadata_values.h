/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_values.h - shared by the writers of documents. */
#ifndef NCZARR_VIEW_METADATA_VALUES_H
#define NCZARR_VIEW_METADATA_VALUES_H

#include "nczarr/view/metadata.h"
#include "nczarr/json/writer.h"

/* zr_put_value - one element of a fixed-size type at p as JSON.
 * host   numbers are in host order whatever the type says (attributes)
 * quote  NaN and infinities as strings */
void zr_put_value(struct jw *j, const struct dtype *t, const uint8_t *p, bool host, bool quote);

/* zr_put_attr - the value of an attribute. flat: a list for any rank. */
void zr_put_attr(struct jw *j, const struct ds_attr *at, bool flat, bool quote);

/* zr_put_attrs - of a group (fill_declared false) or an array, as members of the open object. */
void zr_put_attrs(struct jw *j, const struct zr_metadata *em, const struct ds_attr *attrs,
		  uint32_t n, bool of_array, bool fill_declared);

/* zr_put_attrs3 - attributes of an array for Zarr v3; t: its presentation. */
void zr_put_attrs3(struct jw *j, const struct zr_metadata *em, const struct ds_array *a,
		   const struct zr_type3 *t);

/* zr_attr_real - get the value of an attribute that is one real number. */
bool zr_attr_real(const struct ds_attr *at, double *ret);

/* zr_quant_attr - netCDF's attribute about quantised elements; NULL: they are not, or the array
 * has it already. value and room: memory for it. */
const struct ds_attr *zr_quant_attr(const struct ds_array *a, const struct plan *plan,
				    int32_t *value, struct ds_attr *room);

/* zr_put_v2, zr_put_v3 - the value of one document, of the formats. */
void zr_put_v2(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord);
void zr_put_v3(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord);

/* zr_put_member - the same as a member of consolidated metadata, by its key. */
void zr_put_member(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord);

/* zr_dtype_text - append the dtype of a simple type ("<f8") to b, in the given byte order. */
void zr_dtype_text(struct buf *b, const struct dtype *t, bool big);

/* zr_put_dtype - any dtype of Zarr v2, a compound as a list of its fields. */
void zr_put_dtype(struct jw *j, const struct dtype *t);

/* zr_attr_skipped - whether an attribute of the file is expressed by keys of the mode. */
bool zr_attr_skipped(const struct zr_metadata *em, const struct ds_attr *at, bool of_array);

/* The NCZarr keys: members of the innermost open object. */
void zr_put_nczarr_group(struct jw *j, const struct zr_metadata *em, uint32_t group);
/* zr_put_group_hints - properties of a group that plain Zarr lacks and netCDF has: its dimensions
 * and the order of its arrays and groups (source/nczarr_keys.c). A value. */
void zr_put_group_hints(struct jw *j, const struct zr_metadata *em, uint32_t group);
void zr_put_nczarr_array(struct jw *j, const struct zr_metadata *em, const struct ds_array *a);
/* zr_put_nczarr_types - the types of n attributes, and of one more or NULL. */
void zr_put_nczarr_types(struct jw *j, const struct zr_metadata *em, const struct ds_attr *attrs,
			 uint32_t n, const struct ds_attr *more, bool of_array);

#endif
