/* num_convert.h - numpy's numbers for filters that compute: dtype texts, and blocks of elements as
 * wide numbers, converted as numpy's astype does.
 *
 * Elements are worked on in blocks that fit the first-level cache: loaded as doubles or 64-bit
 * integers of any type and byte order, stored as any other. */
#ifndef CODECS_NUMERIC_NUM_CONVERT_H
#define CODECS_NUMERIC_NUM_CONVERT_H

#include "codecs/core/codec_impl.h"

#define NP_BLOCK 512 /* elements */

enum np_kind { NP_BOOL = 'b', NP_INT = 'i', NP_UINT = 'u', NP_FLOAT = 'f' };

struct np_type {
	enum np_kind kind;
	uint32_t size; /* bytes: 1, 2, 4, 8 */
	bool big;      /* big-endian */
};

/* np_from_conf - the dtype that a member states, as one parameter: "<f4", "|u1", "i2", "float32".
 * missing: a parameter for when it states none; 0: it must.
 * Returns 0; -EOPNOTSUPP another type; -EBADMSG missing, or no text. */
int np_from_conf(const struct codec_conf *conf, const char *member, uint32_t missing,
		 uint32_t *ret, struct err *e) NZ_MUST_USE;

/* np_of - what np_from_conf packed into parameter i of a spec; bytes when that is no type. */
struct np_type np_of(const struct codec_spec *spec, uint32_t i);

/* np_pack - a type as np_of reads it. */
uint32_t np_pack(struct np_type t);

/* np_of_array - the type of an array's elements, packed. name: of the filter.
 * Returns 0; -EOPNOTSUPP no number, or one of another size. */
int np_of_array(const char *name, const struct codec_array *a, uint32_t *ret,
		struct err *e) NZ_MUST_USE;

/* np_of_user - the stored type that a user names in parameter i of a spec, in the byte order of the
 * packed type `own`: 1, 2, 4, 8 bytes without a sign, -1, -2, -4, -8 with one; floats of 16, 32, 64
 * bits. Without that parameter `own`. Returns 0; -EINVAL another number. */
int np_of_user(const struct codec_spec *spec, uint32_t i, uint32_t own, uint32_t *ret,
	       struct err *e) NZ_MUST_USE;

/* np_put_member - append ', "member": "<f4"'. */
void np_put_member(struct buf *json, const char *member, struct np_type t);

/* np_stored_max - stored_max of a filter that turns each element `from` into one `to`. */
uint64_t np_stored_max(struct np_type from, struct np_type to, uint64_t n);

/* np_count - elements `enc` in in_len bytes, when as many `dec` fit cap; *ret_len is their bytes.
 * name: of the filter. Returns 0; -EBADMSG not a whole number of them; -ERANGE. */
int np_count(const char *name, struct np_type enc, struct np_type dec, size_t in_len,
	     size_t cap, size_t *ret_n, size_t *ret_len, struct err *e) NZ_MUST_USE;

/* np_room - for encoding: elements `dec` in n bytes, *ret_n; room for as many `enc` is appended to
 * out, *ret_out (NULL for none). Returns 0; -EOPNOTSUPP not a whole number of them; -ERANGE;
 * -ENOMEM. */
int np_room(const char *name, struct np_type dec, struct np_type enc, size_t n, struct buf *out,
	    size_t *ret_n, uint8_t **ret_out, struct err *e) NZ_MUST_USE;

/* np_load_real, np_load_bits - n <= NP_BLOCK elements as doubles; or, no floats, as 64-bit
 * integers: sign-extended for NP_INT. */
void np_load_real(struct np_type t, const uint8_t *in, size_t n, double *v);
void np_load_bits(struct np_type t, const uint8_t *in, size_t n, uint64_t *v);

/* np_store_real, np_store_bits - the reverse. Integers are cut to their low bits; reals become
 * integers towards zero, and those that do not fit what x86 processors make of them in most of
 * numpy's loops, which is what datasets were checked with. size: bytes of the floats that the reals
 * are. is_signed: what the 64 bits mean when t is a float. */
void np_store_real(struct np_type t, uint32_t size, const double *v, size_t n, uint8_t *out);
void np_store_bits(struct np_type t, bool is_signed, const uint64_t *v, size_t n, uint8_t *out);

/* np_convert - n elements of one type to another. in and out do not overlap. */
void np_convert(struct np_type from, struct np_type to, const uint8_t *in, size_t n,
		uint8_t *out);

/* np_wider - bytes of the floats in which numpy computes with floats of `size` bytes and the
 * number v: more when v is too large for them. */
uint32_t np_wider(uint32_t size, double v);

/* np_round - a double to the nearest number that a float of `size` bytes has. */
double np_round(double v, uint32_t size);

#endif
