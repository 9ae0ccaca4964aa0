/* SPDX-License-Identifier: BSD-3-Clause */
/* num_convert.h - types and counts of numpy's numbers, for filters that compute. */
#ifndef CODECS_NUMERIC_NUM_CONVERT_H
#define CODECS_NUMERIC_NUM_CONVERT_H

#include "codecs/core/codec_impl.h"
#include "codecs/numeric/numbers.h"

/* num_from_conf - the dtype in a member, as one parameter: "<f4", "|u1", "i2", "float32". missing:
 * the parameter when there is no such member; 0: it is required. Returns 0; -EOPNOTSUPP another
 * type; -EBADMSG missing, or no string. */
int num_from_conf(const struct codec_conf *conf, const char *member, uint32_t missing,
		  uint32_t *ret, struct err *e) NZ_MUST_USE;

/* num_of - unpack parameter i of a spec, packed by num_from_conf; bytes when it is no type. */
struct num_type num_of(const struct codec_spec *spec, uint32_t i);

/* num_pack - pack a type for num_of. */
uint32_t num_pack(struct num_type t);

/* num_of_array - the type of an array's elements, packed. name: of the filter. Returns 0;
 * -EOPNOTSUPP no number, or one of another size. */
int num_of_array(const char *name, const struct codec_array *a, uint32_t *ret,
		 struct err *e) NZ_MUST_USE;

/* num_of_user - the stored type in a user's parameter i of a spec, in the byte order of the packed
 * type `own`: 1, 2, 4, 8 bytes unsigned; -1, -2, -4, -8 signed; floats of 16, 32, 64 bits. `own` if
 * there is no such parameter. Returns 0; -EINVAL another number. */
int num_of_user(const struct codec_spec *spec, uint32_t i, uint32_t own, uint32_t *ret,
		struct err *e) NZ_MUST_USE;

/* num_put_member - append ', "member": "<f4"'. */
void num_put_member(struct buf *json, const char *member, struct num_type t);

/* The first two parameters of a filter that converts each element: the presented type, the stored
 * one. num_stored_max - its stored_max. num_pair_from_conf, num_put_pair - its members "dtype" and
 * "astype", by default the same. */
enum { NUM_DTYPE, NUM_ASTYPE };
uint64_t num_stored_max(const struct codec_spec *spec, uint64_t n);
int num_pair_from_conf(const struct codec_conf *conf, uint32_t *params,
		       struct err *e) NZ_MUST_USE;
void num_put_pair(struct buf *json, const struct codec_spec *spec);

/* num_count - for decoding: the number of elements `enc` in the input, if as many `dec` fit the
 * output; sets *c->ret_len to the bytes of the latter. name: of the filter. Returns 0; -EBADMSG not
 * a whole number of elements; -ERANGE. */
int num_count(const char *name, struct num_type enc, struct num_type dec,
	      const struct codec_call *c, size_t *ret_n) NZ_MUST_USE;

/* num_room - for encoding: the number of elements `dec` in the input in *ret_n; appends room for as
 * many `enc` to the output, at *ret_out (NULL for none). Returns 0; -EOPNOTSUPP not a whole number
 * of elements; -ERANGE; -ENOMEM. */
int num_room(const char *name, struct num_type dec, struct num_type enc,
	     const struct codec_call *c, size_t *ret_n, uint8_t **ret_out) NZ_MUST_USE;

#endif
