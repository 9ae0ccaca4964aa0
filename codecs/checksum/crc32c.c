/* SPDX-License-Identifier: BSD-3-Clause */
/* crc32c.c - the CRC-32C of bytes.
 *
 * The processor's instruction has a latency of three cycles and a throughput of one per cycle, so
 * that three pieces are summed at once. The sums are joined by a table that maps the sum of a piece
 * to its sum after PIECE zeros. The map is linear, so that the table needs the sum of each bit
 * only.
 *
 * Spec: RFC 3720 B.4. */
#include <pthread.h>
#include <string.h>

#include "codecs/core/codec_impl.h"

#define PIECE ((size_t)4096) /* bytes: joining smaller pieces costs more than it saves */

/* Remainders of a byte, reflected, by the polynomial 0x1edc6f41. */
static uint32_t castagnoli[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_castagnoli(void)
{
	for (uint32_t i = 0; i < ARRAY_LEN(castagnoli); i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
		castagnoli[i] = crc;
	}
}

static uint32_t of_bytes(uint32_t crc, const uint8_t *p, size_t n)
{
	for (; n > 0; n--)
		crc = crc >> 8 ^ castagnoli[(crc ^ *p++) & 0xff];
	return crc;
}

#ifdef __x86_64__
#define HAS_CRC __attribute__((target("sse4.2")))

/* behind[k][b] - the sum after PIECE zeros of a sum whose byte k is b and whose others are 0. */
static uint32_t behind[4][256];

static inline uint64_t crc32c_word(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

HAS_CRC static uint32_t of_words(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t c = crc;

	for (; n >= 8; n -= 8, p += 8)
		c = __builtin_ia32_crc32di(c, crc32c_word(p));
	return of_bytes((uint32_t)c, p, n);
}

HAS_CRC static void make_behind(void)
{
	static const uint8_t zeros[PIECE];
	uint32_t bit[32];

	for (uint32_t i = 0; i < 32; i++)
		bit[i] = of_words((uint32_t)1 << i, zeros, PIECE);
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t b = 0; b < 256; b++)
			for (uint32_t i = 0; i < 8; i++)
				if (b >> i & 1)
					behind[k][b] ^= bit[8 * k + i];
}

static inline uint32_t crc32c_move(uint32_t crc)
{
	return behind[0][crc & 0xff] ^ behind[1][crc >> 8 & 0xff] ^
	       behind[2][crc >> 16 & 0xff] ^ behind[3][crc >> 24];
}

HAS_CRC static uint32_t of_pieces(uint32_t crc, const uint8_t *p, size_t n)
{
	for (; n >= 3 * PIECE; n -= 3 * PIECE, p += 3 * PIECE) {
		uint64_t a = crc, b = 0, c = 0;

		for (size_t i = 0; i < PIECE; i += 8) {
			a = __builtin_ia32_crc32di(a, crc32c_word(p + i));
			b = __builtin_ia32_crc32di(b, crc32c_word(p + PIECE + i));
			c = __builtin_ia32_crc32di(c, crc32c_word(p + 2 * PIECE + i));
		}
		crc = crc32c_move(crc32c_move((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	return of_words(crc, p, n);
}
#endif

static void make_tables(void)
{
	make_castagnoli();
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		make_behind();
#endif
}

uint32_t codec_crc32c_sum(uint32_t sum, const uint8_t *p, size_t n)
{
	(void)pthread_once(&once, make_tables); /* cannot fail */
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~of_pieces(~sum, p, n);
#endif
	return ~of_bytes(~sum, p, n);
}
