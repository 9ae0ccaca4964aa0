/* codecs_util.h - bytes for the tests of codecs: from hexadecimal text, or reproducible noise.
 */
#ifndef TESTS_UNIT_CODECS_UTIL_H
#define TESTS_UNIT_CODECS_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "codecs/codec.h"

#include <cmocka.h>

static inline uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* from_hex - bytes of a lower-case hexadecimal text into out; returns their number. */
static inline size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	return n;
}

/* noise - n reproducible bytes. */
static inline void noise(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (uint8_t)(seed >> 24);
	}
}

/* chunk20 - twenty little-endian doubles 0, 0.25, 0.5 ... */
static inline void chunk20(uint8_t out[160])
{
	for (unsigned int i = 0; i < 20; i++) {
		double v = 0.25 * i;
		uint64_t bits;

		memcpy(&bits, &v, sizeof(bits));
		for (unsigned int j = 0; j < 8; j++)
			out[8 * i + j] = (uint8_t)(bits >> (8 * j));
	}
}

#endif
