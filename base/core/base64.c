/* SPDX-License-Identifier: BSD-3-Clause */
/* base64.c - three bytes become four characters. */
#include "base/core/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

void base64_put(struct buf *b, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n && buf_ok(b); i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (left > 2 ? p[i + 2] : 0);

		buf_putc(b, digits[v >> 18]);
		buf_putc(b, digits[v >> 12 & 63]);
		buf_putc(b, left > 1 ? digits[v >> 6 & 63] : '=');
		buf_putc(b, left > 2 ? digits[v & 63] : '=');
	}
}

ssize_t base64_decode(const char *s, size_t n, uint8_t *out)
{
	size_t end = n, at = 0;
	uint32_t bits = 0;

	if (n % 4)
		return -1;
	while (end > 0 && n - end < 2 && s[end - 1] == '=')
		end--;
	for (size_t i = 0; i < end; i++) {
		int d = base64_digit(s[i]);

		if (d < 0)
			return -1;
		bits = bits << 6 | (uint32_t)d;
		if (i % 4)
			out[at++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
	}
	return (ssize_t)at;
}

ssize_t base64_decode_loose(struct buf *b, const char *s, size_t n)
{
	const size_t all = n;
	uint32_t v = 0;
	unsigned bits = 0;

	while (n > 0 && s[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++) {
		int d = base64_digit(s[i]);

		if (s[i] == '\n' || s[i] == '\r')
			continue;
		if (d < 0)
			return (ssize_t)i;
		v = v << 6 | (uint32_t)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_putc(b, (char)(v >> bits & 0xff));
		}
	}
	return bits == 6 ? (ssize_t)all : -1;
}
