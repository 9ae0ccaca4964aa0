/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.c - table 3-7 of the Unicode standard: the second byte's range depends on the first. */
#include "base/core/utf8.h"

#include <string.h>

size_t utf8_decode(const void *s, size_t n, uint32_t *ret)
{
	const uint8_t *p = s;
	uint8_t c = p[0], lo = 0x80, hi = 0xbf;
	size_t len;
	uint32_t v;

	if (c < 0x80)
		len = 1;
	else if (c >= 0xc2 && c <= 0xdf)
		len = 2;
	else if (c >= 0xe0 && c <= 0xef)
		len = 3;
	else if (c >= 0xf0 && c <= 0xf4)
		len = 4;
	else
		return 0;
	if (len > n)
		return 0;
	if (c == 0xe0)
		lo = 0xa0;
	else if (c == 0xed)
		hi = 0x9f;
	else if (c == 0xf0)
		lo = 0x90;
	else if (c == 0xf4)
		hi = 0x8f;
	v = len == 1 ? c : c & (0xffU >> (len + 1));
	for (size_t i = 1; i < len; i++, lo = 0x80, hi = 0xbf) {
		if (p[i] < lo || p[i] > hi)
			return 0;
		v = v << 6 | (p[i] & 0x3fU);
	}
	if (ret)
		*ret = v;
	return len;
}

bool utf8_ok(const void *s, size_t n)
{
	const uint8_t *p = s;

	for (size_t i = 0, step; i < n; i += step) {
		step = utf8_decode(p + i, n - i, NULL);
		if (step == 0)
			return false;
	}
	return true;
}

size_t utf8_encode(uint8_t *out, uint32_t c)
{
	if (!utf8_is_char(c))
		c = 0xfffd;
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

void utf8_put(struct buf *b, uint32_t c)
{
	uint8_t bytes[UTF8_MAX];

	buf_put(b, bytes, utf8_encode(bytes, c));
}

bool utf8_put_text(struct buf *b, const void *s, size_t n)
{
	const uint8_t *p = s;

	if (utf8_ok(s, n)) {
		buf_put(b, s, n);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		utf8_put(b, p[i]);
	return true;
}

size_t utf8_prefix(const char *s, size_t max)
{
	size_t n = strnlen(s, max + 1);

	if (n <= max)
		return n;
	for (n = max; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
		;
	return n;
}
