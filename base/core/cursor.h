/* SPDX-License-Identifier: BSD-3-Clause */
/* cursor.h - a cursor over untrusted bytes.
 *
 * Every read checks the number of bytes left. The first read past the end sets `bad` and returns 0,
 * as do all later reads, so that a parser may read a whole structure and check slice_ok() once. */
#ifndef BASE_CORE_CURSOR_H
#define BASE_CORE_CURSOR_H

#include "base/core/endian.h"
#include "base/core/util.h"

struct slice {
	const uint8_t *p;  /* borrowed */
	size_t len;        /* bytes left */
	bool bad;
};

static inline struct slice slice_of(const void *p, size_t len)
{
	return (struct slice){.p = p, .len = len, .bad = false};
}

static inline bool slice_ok(const struct slice *s)
{
	return !s->bad;
}

/* rd_bytes - borrow the next n bytes; NULL (and bad) when fewer are left. */
static inline const uint8_t *rd_bytes(struct slice *s, size_t n)
{
	const uint8_t *p = s->p;

	if (s->bad || n > s->len) {
		s->bad = true;
		return NULL;
	}
	s->p += n;
	s->len -= n;
	return p;
}

/* rd_uint - little-endian unsigned of n bytes, n <= 8; a larger n is bad. */
static inline uint64_t rd_uint(struct slice *s, size_t n)
{
	const uint8_t *p = n <= 8 ? rd_bytes(s, n) : NULL;

	if (!p) {
		s->bad = true;
		return 0;
	}
	return get_le(p, n);
}

static inline uint8_t rd_u8(struct slice *s)
{
	return (uint8_t)rd_uint(s, 1);
}

static inline uint16_t rd_le16(struct slice *s)
{
	return (uint16_t)rd_uint(s, 2);
}

static inline uint32_t rd_le32(struct slice *s)
{
	return (uint32_t)rd_uint(s, 4);
}

static inline uint64_t rd_le64(struct slice *s)
{
	return rd_uint(s, 8);
}

static inline void rd_skip(struct slice *s, size_t n)
{
	(void)rd_bytes(s, n);  /* a skip past the end sets s->bad */
}

#endif
