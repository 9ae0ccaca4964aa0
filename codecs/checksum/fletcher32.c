/* SPDX-License-Identifier: BSD-3-Clause */
/* fletcher32.c - the sum of HDF5's checksum.
 *
 * The sum runs over big-endian 16-bit words modulo 65535. Swapping the bytes of every word swaps
 * the bytes of both sums (256 * 256 = 1 modulo 65535), so it is computed over little-endian words
 * and swapped at the end.
 *
 * Spec: HDF5 File Format 3.0, IV.A.2.l (filter 3); the sum itself is RFC 1146's with 16-bit words,
 * where a last odd byte is the upper half of a word. */
#include "codecs/core/codec_impl.h"

#include <string.h>

#define LANES 8
/* Rows of LANES words that 32-bit lanes can sum twice: rows * (rows + 1) / 2 * 65535 < 2^32. */
#define ROWS_MAX 360

typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));

static uint32_t fold(uint64_t v)
{
	while (v > 0xffff)
		v = (v & 0xffff) + (v >> 16);
	return (uint32_t)v;
}

static uint32_t swap16(uint32_t v)
{
	return (v >> 8 | v << 8) & 0xffff;
}

/* sum_rows - add n_rows rows of LANES little-endian words to both sums. Lane j of row k counts n -
 * (LANES * k + j) times in sum2: LANES times the lane's own double sum, less j times the lane's
 * sum. */
static void sum_rows(const uint8_t *p, size_t n_rows, uint64_t *sum1, uint64_t *sum2)
{
	u32x8 lane1 = {0}, lane2 = {0};
	uint64_t total = 0, twice = 0, late = 0;

	for (size_t k = 0; k < n_rows; k++, p += LANES * 2) {
		u16x8 w;

		memcpy(&w, p, sizeof(w));
		lane1 += __builtin_convertvector(w, u32x8);
		lane2 += lane1;
	}
	for (unsigned int j = 0; j < LANES; j++) {
		total += lane1[j];
		twice += lane2[j];
		late += (uint64_t)j * lane1[j];
	}

	*sum2 = fold(*sum2 + *sum1 * (n_rows * LANES) + (twice * LANES - late));
	*sum1 = fold(*sum1 + total);
}

uint32_t codec_fletcher32_sum(const uint8_t *p, size_t n)
{
	uint64_t sum1 = 0, sum2 = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	while (n >= LANES * 2) {
		size_t rows = n / (LANES * 2) < ROWS_MAX ? n / (LANES * 2) : ROWS_MAX;

		sum_rows(p, rows, &sum1, &sum2);
		p += rows * LANES * 2;
		n -= rows * LANES * 2;
	}
#endif
	for (; n > 0; p += 2, n -= n > 1 ? 2 : 1) {
		uint32_t hi = n > 1 ? p[1] : 0;

		sum1 = fold(sum1 + (p[0] | hi << 8));
		sum2 = fold(sum2 + sum1);
	}
	return swap16((uint32_t)sum2) << 16 | swap16((uint32_t)sum1);
}
