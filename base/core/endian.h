/* SPDX-License-Identifier: BSD-3-Clause */
/* endian.h - integers stored in either byte order, at any address. */
#ifndef BASE_CORE_ENDIAN_H
#define BASE_CORE_ENDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* get_le, get_be - an unsigned number of n bytes, n <= 8. */
static inline uint64_t get_le(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | b[n];
	return v;
}

static inline uint64_t get_be(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | b[i];
	return v;
}

/* put_le, put_be - the low n bytes of v, n <= 8. */
static inline void put_le(void *p, uint64_t v, size_t n)
{
	uint8_t *b = p;

	for (size_t i = 0; i < n; i++, v >>= 8)
		b[i] = (uint8_t)v;
}

static inline void put_be(void *p, uint64_t v, size_t n)
{
	uint8_t *b = p;

	for (; n > 0; v >>= 8)
		b[--n] = (uint8_t)v;
}

/* get_uint, put_uint - with the byte order as an argument. */
static inline uint64_t get_uint(const void *p, size_t n, bool big)
{
	return big ? get_be(p, n) : get_le(p, n);
}

static inline void put_uint(void *p, uint64_t v, size_t n, bool big)
{
	if (big)
		put_be(p, v, n);
	else
		put_le(p, v, n);
}

static inline uint16_t get_le16(const void *p)
{
	return (uint16_t)get_le(p, 2);
}

static inline uint32_t get_le32(const void *p)
{
	return (uint32_t)get_le(p, 4);
}

static inline uint64_t get_le64(const void *p)
{
	return get_le(p, 8);
}

static inline uint32_t get_be32(const void *p)
{
	return (uint32_t)get_be(p, 4);
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
