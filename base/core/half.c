/* SPDX-License-Identifier: BSD-3-Clause */
/* half.c - a half has 10 fraction bits and bias 15, a double 52 and 1023. */
#include "base/core/half.h"

#include <math.h>

double half_to_double(uint16_t h)
{
	uint64_t sign = (uint64_t)(h >> 15) << 63, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;

	if (exponent == 0)
		return sign ? -ldexp((double)fraction, -24) : ldexp((double)fraction, -24);
	exponent = exponent == 0x1f ? 0x7ff : exponent + 1023 - 15;
	return f64_from_bits(sign | exponent << 52 | fraction << 42);
}

uint16_t half_of_double(double v)
{
	const uint64_t bits = f64_bits(v);
	const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
	uint64_t mag = bits & ~((uint64_t)1 << 63);
	uint16_t h;

	if (isnan(v)) {
		h = (uint16_t)(mag >> 42 & 0x3ff);
		return sign | 0x7c00 | (h ? h : 1);
	}
	if (fabs(v) >= 65520.0)
		return sign | 0x7c00;
	if (fabs(v) < 0x1p-14)
		return sign | (uint16_t)nearbyint(fabs(v) * 0x1p24);
	mag += (((uint64_t)1 << 41) - 1) + (mag >> 42 & 1);
	return sign | (uint16_t)((mag >> 42) - ((uint64_t)(1023 - 15) << 10));
}
