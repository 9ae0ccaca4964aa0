/* np.h - numpy's numbers for filters that compute: dtype texts, and blocks of elements as wide
 * numbers, converted as numpy's astype does.
 *
 * Elements are worked on in blocks that fit the first-level cache: loaded as doubles or 64-bit
 * integers of any type and byte order, stored as any other. */
#ifndef CODECS_NP_H
#define CODECS_NP_H

#include "codecs/codec_int.h"

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

/* np_put_member - append ', "member": "<f4"'. */
void np_put_member(struct buf *json, const char *member, struct np_type t);

/* np_stored_max - stored_max of a filter that turns each element `from` into one `to`. */
uint64_t np_stored_max(struct np_type from, struct np_type to, uint64_t n);

/* np_count - elements `enc` in in_len bytes, when as many `dec` fit cap; *ret_len is their bytes.
 * name: of the filter. Returns 0; -EBADMSG not a whole number of them; -ERANGE. */
int np_count(const char *name, struct np_type enc, struct np_type dec, size_t in_len,
	     size_t cap, size_t *ret_n, size_t *ret_len, struct err *e) NZ_MUST_USE;

/* np_load_real, np_load_bits - n <= NP_BLOCK elements as doubles; or, no floats, as 64-bit
 * integers: sign-extended for NP_INT. */
void np_load_real(struct np_type t, const uint8_t *in, size_t n, double *v);
void np_load_bits(struct np_type t, const uint8_t *in, size_t n, uint64_t *v);

/* np_store_real, np_store_bits - the reverse. Integers are cut to their low bits; reals become
 * integers towards zero, and those that do not fit what x86 processors make of them, which is
 * what datasets were checked with. is_signed: what the 64 bits mean when t is a float. */
void np_store_real(struct np_type t, const double *v, size_t n, uint8_t *out);
void np_store_bits(struct np_type t, bool is_signed, const uint64_t *v, size_t n, uint8_t *out);

/* np_convert - n elements of one type to another. in and out do not overlap. */
void np_convert(struct np_type from, struct np_type to, const uint8_t *in, size_t n,
		uint8_t *out);

/* np_round - a double to the nearest number that a float of `size` bytes has. */
double np_round(double v, uint32_t size);

#endif
