/* SPDX-License-Identifier: BSD-3-Clause */
/* numbers.h - blocks of numpy's numbers as wide ones, converted as numpy's astype does.
 *
 * Elements are worked on in blocks that fit the first-level cache: loaded as doubles or 64-bit
 * integers of any type and byte order, stored as any other. */
#ifndef CODECS_NUMERIC_NUMBERS_H
#define CODECS_NUMERIC_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUM_BLOCK 512 /* elements */

enum num_kind { NUM_BOOL = 'b', NUM_INT = 'i', NUM_UINT = 'u', NUM_FLOAT = 'f' };

struct num_type {
	enum num_kind kind;
	uint32_t size; /* bytes: 1, 2, 4, 8 */
	bool big;      /* big-endian */
};

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
