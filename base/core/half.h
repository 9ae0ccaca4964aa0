/* SPDX-License-Identifier: BSD-3-Clause */
/* half.h - IEEE 754 binary16, which has no portable type in C17: conversion to and from double. */
#ifndef BASE_CORE_HALF_H
#define BASE_CORE_HALF_H

#include <stdint.h>

/* half_to_double - exact; keeps the payload of a NaN. */
double half_to_double(uint16_t h);
/* half_of_double - round to nearest, ties to even; infinite from 65520 on. A NaN stays a NaN and
 * keeps the upper bits of its payload. */
uint16_t half_of_double(double v);

#endif
