/* SPDX-License-Identifier: BSD-3-Clause */
/* half.h - IEEE 754 numbers as bits: float and double, and binary16, which has no portable type in
 * C17. */
#ifndef BASE_CORE_HALF_H
#define BASE_CORE_HALF_H

#include <stdint.h>
#include <string.h>

/* f32_bits, f64_bits - the bits of a number; f32_from_bits, f64_from_bits - the reverse. */
static inline uint32_t f32_bits(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline float f32_from_bits(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint64_t f64_bits(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline double f64_from_bits(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* half_to_double - exact; keeps the payload of a NaN. */
double half_to_double(uint16_t h);
/* half_of_double - round to nearest, ties to even; infinite from 65520 on. A NaN stays a NaN and
 * keeps the upper bits of its payload. */
uint16_t half_of_double(double v);

#endif
