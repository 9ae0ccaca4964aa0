/* SPDX-License-Identifier: BSD-3-Clause */
/* bitplanes_int.h - elements to planes of bits, and back: bitshuffle without compression.
 *
 * n elements of `size` bytes become 8 * size rows of n / 8 bytes: row 8 * j + m has bit m of byte j
 * of every element, that of element 8 * i + k as bit k of byte i. */
#ifndef CODECS_SHUFFLE_BITPLANES_INT_H
#define CODECS_SHUFFLE_BITPLANES_INT_H

#include "base/core/util.h"

/* bitplanes_room - bytes of working memory for n elements of `size` bytes: at most n * size, and
 * about 8 KiB for elements that are not large. */
size_t bitplanes_room(size_t size, size_t n);

/* bitplanes_split, bitplanes_join - convert n elements, a multiple of 8, of `size` bytes, >= 1, to
 * rows, and rows to elements. room: bitplanes_room(size, n) bytes. Buffers must not overlap. */
void bitplanes_split(size_t size, size_t n, const uint8_t *in, uint8_t *out, uint8_t *room);
void bitplanes_join(size_t size, size_t n, const uint8_t *in, uint8_t *out, uint8_t *room);

#endif
