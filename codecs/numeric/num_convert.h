/* SPDX-License-Identifier: BSD-3-Clause */
/* num_convert.h - numpy's numbers for filters that compute: dtype texts, and blocks of elements as
 * wide numbers, converted as numpy's astype does.
 *
 * Elements are worked on in blocks that fit the first-level cache: loaded as doubles or 64-bit
 * integers of any type and byte order, stored as any other. */
#ifndef CODECS_NUMERIC_NUM_CONVERT_H
#define CODECS_NUMERIC_NUM_CONVERT_H

#include "codecs/core/codec_impl.h"

#define NUM_BLOCK 512 /* elements */

enum num_kind { NUM_BOOL = 'b', NUM_INT = 'i', NUM_UINT = 'u', NUM_FLOAT = 'f' };

struct num_type {
	enum num_kind kind;
	uint32_t size; /* bytes: 1, 2, 4, 8 */
	bool big;      /* big-endian */
};

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

/* num_load_real, num_load_bits - n <= NUM_BLOCK elements as doubles; or, no floats, as 64-bit
 * integers: sign-extended for NUM_INT. */
void num_load_real(struct num_type t, const uint8_t *in, size_t n, double *v);
void num_load_bits(struct num_type t, const uint8_t *in, size_t n, uint64_t *v);

/* num_store_real, num_store_bits - the reverse. Integers are cut to their low bits; reals become
 * integers towards zero, and those that do not fit what x86 processors make of them in most of
 * numpy's loops, which is what datasets were checked with. size: bytes of the floats that the reals
 * are. is_signed: what the 64 bits mean when t is a float. */
void num_store_real(struct num_type t, uint32_t size, const double *v, size_t n, uint8_t *out);
void num_store_bits(struct num_type t, bool is_signed, const uint64_t *v, size_t n,
		    uint8_t *out);

/* num_convert - n elements of one type to another. in and out do not overlap. */
void num_convert(struct num_type from, struct num_type to, const uint8_t *in, size_t n,
		 uint8_t *out);

/* num_wider - bytes of the floats in which numpy computes with floats of `size` bytes and the
 * number v: more when v is too large for them. */
uint32_t num_wider(uint32_t size, double v);

/* num_round - a double to the nearest number that a float of `size` bytes has. */
double num_round(double v, uint32_t size);

#endif
