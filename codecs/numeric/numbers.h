/* SPDX-License-Identifier: BSD-3-Clause */
/* numbers.h - conversion of numbers as by numpy's astype, in blocks.
 *
 * Elements are converted in blocks that fit the first-level cache: loaded as doubles or 64-bit
 * integers from any type and byte order, stored as any other. */
#ifndef CODECS_NUMERIC_NUMBERS_H
#define CODECS_NUMERIC_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUM_BLOCK 512 /* elements */

/* num_block - the elements of the next block, if n are left; 0: none. */
static inline size_t num_block(size_t n)
{
	return n < NUM_BLOCK ? n : NUM_BLOCK;
}

enum num_kind { NUM_BOOL = 'b', NUM_INT = 'i', NUM_UINT = 'u', NUM_FLOAT = 'f' };

struct num_type {
	enum num_kind kind;
	uint32_t size; /* bytes: 1, 2, 4, 8 */
	bool big;      /* big-endian */
};

/* num_load_real, num_load_bits - load n <= NUM_BLOCK elements as doubles, or (not for floats) as
 * 64-bit integers, sign-extended for NUM_INT. */
void num_load_real(struct num_type t, const uint8_t *in, size_t n, double *v);
void num_load_bits(struct num_type t, const uint8_t *in, size_t n, uint64_t *v);

/* num_store_real, num_store_bits - the reverse. Integers are cut to their low bits. Reals are
 * truncated to integers; those out of range get the result that x86 processors give in most of
 * numpy's loops, which is the reference. size: bytes of the float type of the reals. is_signed:
 * whether the 64 bits are signed when t is a float. */
void num_store_real(struct num_type t, uint32_t size, const double *v, size_t n, uint8_t *out);
void num_store_bits(struct num_type t, bool is_signed, const uint64_t *v, size_t n,
		    uint8_t *out);

/* num_convert - n elements of one type to another. in and out do not overlap. */
void num_convert(struct num_type from, struct num_type to, const uint8_t *in, size_t n,
		 uint8_t *out);

/* num_wider - bytes of the floats in which numpy computes with floats of `size` bytes and the
 * number v: more than size when v is too large for them. */
uint32_t num_wider(uint32_t size, double v);

/* num_round - round a double to a float of `size` bytes. */
double num_round(double v, uint32_t size);

#endif
