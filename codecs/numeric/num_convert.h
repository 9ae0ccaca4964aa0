/* SPDX-License-Identifier: BSD-3-Clause */
/* num_convert.h - numpy's numbers for filters that compute: dtype texts and counts. */
#ifndef CODECS_NUMERIC_NUM_CONVERT_H
#define CODECS_NUMERIC_NUM_CONVERT_H

#include "codecs/core/codec_impl.h"
#include "codecs/numeric/numbers.h"

/* num_from_conf - the dtype that a member states, as one parameter: "<f4", "|u1", "i2", "float32".
 * missing: a parameter for when it states none; 0: it must.
 * Returns 0; -EOPNOTSUPP another type; -EBADMSG missing, or no text. */
int num_from_conf(const struct codec_conf *conf, const char *member, uint32_t missing,
		  uint32_t *ret, struct err *e) NZ_MUST_USE;

/* num_of - what num_from_conf packed into parameter i of a spec; bytes when that is no type. */
struct num_type num_of(const struct codec_spec *spec, uint32_t i);

/* num_pack - a type as num_of reads it. */
uint32_t num_pack(struct num_type t);

/* num_of_array - the type of an array's elements, packed. name: of the filter.
 * Returns 0; -EOPNOTSUPP no number, or one of another size. */
int num_of_array(const char *name, const struct codec_array *a, uint32_t *ret,
		 struct err *e) NZ_MUST_USE;

/* num_of_user - the stored type that a user names in parameter i of a spec, in the byte order of
 * the packed type `own`: 1, 2, 4, 8 bytes without a sign, -1, -2, -4, -8 with one; floats of 16,
 * 32, 64 bits. Without that parameter `own`. Returns 0; -EINVAL another number. */
int num_of_user(const struct codec_spec *spec, uint32_t i, uint32_t own, uint32_t *ret,
		struct err *e) NZ_MUST_USE;

/* num_put_member - append ', "member": "<f4"'. */
void num_put_member(struct buf *json, const char *member, struct num_type t);

/* num_stored_max - stored_max of a filter that turns each element `from` into one `to`. */
uint64_t num_stored_max(struct num_type from, struct num_type to, uint64_t n);

/* num_count - elements `enc` in in_len bytes, when as many `dec` fit cap; *ret_len is their bytes.
 * name: of the filter. Returns 0; -EBADMSG not a whole number of them; -ERANGE. */
int num_count(const char *name, struct num_type enc, struct num_type dec, size_t in_len,
	      size_t cap, size_t *ret_n, size_t *ret_len, struct err *e) NZ_MUST_USE;

/* num_room - for encoding: elements `dec` in n bytes, *ret_n; room for as many `enc` is appended to
 * out, *ret_out (NULL for none). Returns 0; -EOPNOTSUPP not a whole number of them; -ERANGE;
 * -ENOMEM. */
int num_room(const char *name, struct num_type dec, struct num_type enc, size_t n,
	     struct buf *out, size_t *ret_n, uint8_t **ret_out, struct err *e) NZ_MUST_USE;

#endif
