/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.c - table 3-7 of the Unicode standard: the range of the second byte depends on the first. */
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
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n;

	if (!utf8_is_char(c))
		c = 0xfffd;
	n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; --i > 0; c >>= 6)
		out[i] = (uint8_t)(0x80 | (c & 0x3f));
	out[0] = (uint8_t)(lead[n] | c);
	return n;
}

/* utf8_unit - parse four hexadecimal digits. */
static bool utf8_unit(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
	if (end - p < 4)
		return false;
	*ret = 0;
	for (int i = 0; i < 4; i++) {
		const uint8_t c = p[i], low = c | 0x20;

		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uint32_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			*ret = *ret << 4 | (uint32_t)(low - 'a' + 10);
		else
			return false;
	}
	return true;
}

const char *utf8_unescape(const uint8_t **p, const uint8_t *end, uint32_t *ret)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const uint8_t *s = *p;
	uint32_t low = 0;

	if (s == end)
		return "unterminated string";
	if (*s != 'u') {
		const char *at = *s ? strchr(from, *s) : NULL;

		if (!at)
			return "invalid escape";
		*ret = (uint8_t)to[at - from];
		*p = s + 1;
		return NULL;
	}
	if (!utf8_unit(++s, end, ret))
		return "an escape needs four hexadecimal digits";
	s += 4;
	if (*ret >= 0xd800 && *ret < 0xe000) {
		if (*ret >= 0xdc00 || end - s < 6 || s[0] != '\\' || s[1] != 'u' ||
		    !utf8_unit(s + 2, end, &low) || low < 0xdc00 || low > 0xdfff)
			return "incomplete UTF-16 surrogate pair";
		*ret = 0x10000 + ((*ret & 0x3ff) << 10 | (low & 0x3ff));
		s += 6;
	}
	*p = s;
	return NULL;
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

size_t utf8_tail(const void *s, size_t n, size_t max)
{
	const uint8_t *p = s;
	size_t at = n > max ? n - max : 0;

	while (at > 0 && at < n && (p[at] & 0xc0) == 0x80)
		at++;
	return at;
}

const char *utf8_copy(struct arena *a, const void *s, size_t n, size_t *ret_n,
		      bool *ret_converted)
{
	auto_buf out = buf_of(a->max);

	if (!utf8_ok(s, n)) {
		(void)utf8_put_text(&out, s, n);
		s = out.data;
		n = out.len;
		if (ret_converted)
			*ret_converted = true;
	}
	if (ret_n)
		*ret_n = n;
	return buf_ok(&out) ? arena_copy(a, s, n) : NULL;
}
