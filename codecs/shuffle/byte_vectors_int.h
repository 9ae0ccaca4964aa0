/* SPDX-License-Identifier: BSD-3-Clause */
/* byte_vectors_int.h - vectors of bytes, and the interleaving steps that transpose matrices of
 * bytes, for shuffle.c and bitplanes.c. */
#ifndef CODECS_SHUFFLE_BYTE_VECTORS_INT_H
#define CODECS_SHUFFLE_BYTE_VECTORS_INT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES 16 /* bytes of a vector */

typedef uint8_t vec __attribute__((vector_size(LANES)));

static inline vec load(const uint8_t *p)
{
	vec v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void store(uint8_t *p, vec v)
{
	memcpy(p, &v, sizeof(v));
}

/* low, high - a0 b0 a1 b1 ... of the lower (upper) halves. */
static inline vec low(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
				       23);
}

static inline vec high(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
				       30, 15, 31);
}

/* even, odd - every second byte of the 32 bytes a, b: the inverse of low and high. */
static inline vec even(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
				       28, 30);
}

static inline vec odd(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
				       29, 31);
}

/* One round over SIZE vectors: interleave x[i] with x[i + SIZE / 2] into a neighbouring pair,
 * or the reverse. Written out, because loops over arrays of vectors are not unrolled at -O2. */
#define MIX(y, x, i, h)                                                                        \
	((y)[2 * (i)] = low((x)[i], (x)[(i) + (h)]),                                           \
	 (y)[2 * (i) + 1] = high((x)[i], (x)[(i) + (h)]))
#define MIX1(y, x) MIX(y, x, 0, 1)
#define MIX2(y, x) (MIX(y, x, 0, 2), MIX(y, x, 1, 2))
#define MIX4(y, x) (MIX(y, x, 0, 4), MIX(y, x, 1, 4), MIX(y, x, 2, 4), MIX(y, x, 3, 4))
#define MIX8(y, x)                                                                             \
	(MIX(y, x, 0, 8), MIX(y, x, 1, 8), MIX(y, x, 2, 8), MIX(y, x, 3, 8), MIX(y, x, 4, 8),  \
	 MIX(y, x, 5, 8), MIX(y, x, 6, 8), MIX(y, x, 7, 8))
#define PART(y, x, i, h)                                                                       \
	((y)[i] = even((x)[2 * (i)], (x)[2 * (i) + 1]),                                        \
	 (y)[(i) + (h)] = odd((x)[2 * (i)], (x)[2 * (i) + 1]))
#define PART1(y, x) PART(y, x, 0, 1)
#define PART2(y, x) (PART(y, x, 0, 2), PART(y, x, 1, 2))
#define PART4(y, x) (PART(y, x, 0, 4), PART(y, x, 1, 4), PART(y, x, 2, 4), PART(y, x, 3, 4))
#define PART8(y, x)                                                                            \
	(PART(y, x, 0, 8), PART(y, x, 1, 8), PART(y, x, 2, 8), PART(y, x, 3, 8),               \
	 PART(y, x, 4, 8), PART(y, x, 5, 8), PART(y, x, 6, 8), PART(y, x, 7, 8))

#define LOAD1(x, i, p, step) ((x)[i] = load((p) + (i) * (step)))
#define LOAD_2(x, p, s) (LOAD1(x, 0, p, s), LOAD1(x, 1, p, s))
#define LOAD_4(x, p, s) (LOAD_2(x, p, s), LOAD1(x, 2, p, s), LOAD1(x, 3, p, s))
#define LOAD_8(x, p, s)                                                                        \
	(LOAD_4(x, p, s), LOAD1(x, 4, p, s), LOAD1(x, 5, p, s), LOAD1(x, 6, p, s),             \
	 LOAD1(x, 7, p, s))
#define LOAD_16(x, p, s)                                                                       \
	(LOAD_8(x, p, s), LOAD1(x, 8, p, s), LOAD1(x, 9, p, s), LOAD1(x, 10, p, s),            \
	 LOAD1(x, 11, p, s), LOAD1(x, 12, p, s), LOAD1(x, 13, p, s), LOAD1(x, 14, p, s),       \
	 LOAD1(x, 15, p, s))
#define STORE1(p, step, i, x) store((p) + (i) * (step), (x)[i])
#define STORE_2(p, s, x) (STORE1(p, s, 0, x), STORE1(p, s, 1, x))
#define STORE_4(p, s, x) (STORE_2(p, s, x), STORE1(p, s, 2, x), STORE1(p, s, 3, x))
#define STORE_8(p, s, x)                                                                       \
	(STORE_4(p, s, x), STORE1(p, s, 4, x), STORE1(p, s, 5, x), STORE1(p, s, 6, x),         \
	 STORE1(p, s, 7, x))
#define STORE_16(p, s, x)                                                                      \
	(STORE_8(p, s, x), STORE1(p, s, 8, x), STORE1(p, s, 9, x), STORE1(p, s, 10, x),        \
	 STORE1(p, s, 11, x), STORE1(p, s, 12, x), STORE1(p, s, 13, x), STORE1(p, s, 14, x),   \
	 STORE1(p, s, 15, x))

#endif
