/* SPDX-License-Identifier: BSD-3-Clause */
/* endian.h - integers stored in either byte order, at any address. */
#ifndef BASE_CORE_ENDIAN_H
#define BASE_CORE_ENDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HOST_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* get_uint - an unsigned number of n bytes, n <= 8. With a constant n of 1, 2, 4 or 8 it is one
 * load. */
static inline uint64_t get_uint(const void *p, size_t n, bool big)
{
	const bool swap = big != HOST_BIG_ENDIAN;
	const uint8_t *b = p;
	uint64_t v = 0;
	uint32_t v4;
	uint16_t v2;

	switch (n) {
	case 2:
		memcpy(&v2, p, 2);
		return swap ? __builtin_bswap16(v2) : v2;
	case 4:
		memcpy(&v4, p, 4);
		return swap ? __builtin_bswap32(v4) : v4;
	case 8:
		memcpy(&v, p, 8);
		return swap ? __builtin_bswap64(v) : v;
	default:
		for (size_t i = 0; i < n; i++)
			v = v << 8 | b[big ? i : n - 1 - i];
		return v;
	}
}

/* put_uint - the low n bytes of v, n <= 8; one store as above. */
static inline void put_uint(void *p, uint64_t v, size_t n, bool big)
{
	const bool swap = big != HOST_BIG_ENDIAN;
	uint32_t v4 = (uint32_t)v;
	uint16_t v2 = (uint16_t)v;
	uint8_t *b = p;

	switch (n) {
	case 2:
		v2 = swap ? __builtin_bswap16(v2) : v2;
		memcpy(p, &v2, 2);
		break;
	case 4:
		v4 = swap ? __builtin_bswap32(v4) : v4;
		memcpy(p, &v4, 4);
		break;
	case 8:
		v = swap ? __builtin_bswap64(v) : v;
		memcpy(p, &v, 8);
		break;
	default:
		for (size_t i = 0; i < n; i++, v >>= 8)
			b[big ? n - 1 - i : i] = (uint8_t)v;
	}
}

static inline uint64_t get_le(const void *p, size_t n)
{
	return get_uint(p, n, false);
}

static inline uint64_t get_be(const void *p, size_t n)
{
	return get_uint(p, n, true);
}

static inline void put_le(void *p, uint64_t v, size_t n)
{
	put_uint(p, v, n, false);
}

static inline void put_be(void *p, uint64_t v, size_t n)
{
	put_uint(p, v, n, true);
}

static inline uint32_t get_le32(const void *p)
{
	return (uint32_t)get_le(p, 4);
}

static inline uint64_t get_le64(const void *p)
{
	return get_le(p, 8);
}

static inline uint64_t get_be64(const void *p)
{
	return get_be(p, 8);
}

static inline void put_le16(void *p, uint16_t v)
{
	put_le(p, v, 2);
}

static inline void put_le32(void *p, uint32_t v)
{
	put_le(p, v, 4);
}

static inline void put_le64(void *p, uint64_t v)
{
	put_le(p, v, 8);
}

#endif
