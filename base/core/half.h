/* SPDX-License-Identifier: BSD-3-Clause */
/* half.h - IEEE 754 binary16, which C17 has no portable type for: its bits to and from double. */
#ifndef BASE_CORE_HALF_H
#define BASE_CORE_HALF_H

#include <stdint.h>

/* half_to_double - exact; the payload of a NaN is kept. */
double half_to_double(uint16_t h);
/* half_of_double - to nearest, ties to even; infinite from 65520 on; what fits of a NaN's payload
 * is kept, and a NaN stays one. */
uint16_t half_of_double(double v);

#endif
