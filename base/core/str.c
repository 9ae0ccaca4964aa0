/* SPDX-License-Identifier: BSD-3-Clause */
/* str.c - text primitives. Nothing here depends on the locale. */
#include "base/core/str.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/utf8.h"

char *str_printf(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

char *str_trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\r");
	for (n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

int str_u64(const char *s, size_t n, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (n == 0 || (n > 1 && s[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9' || ckd_mul(&v, v, (uint64_t)10) ||
		    ckd_add(&v, v, (uint64_t)(s[i] - '0')))
			return -EINVAL;
	}
	if (v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

int str_size(const char *s, uint64_t max, uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	size_t n = strlen(s);
	const char *hit = n ? strchr(suffixes, s[n - 1]) : NULL;
	uint64_t unit = 1, v;

	if (hit) {
		unit = (uint64_t)1 << (10 * (hit - suffixes + 1));
		n--;
	}
	if (str_u64(s, n, UINT64_MAX, &v) || ckd_mul(&v, v, unit) || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

void str_put_json(struct buf *b, const char *s, size_t n)
{
	auto_buf utf8 = buf_of(SIZE_MAX / 4);

	utf8_put_text(&utf8, s, n);
	buf_putc(b, '"');
	for (size_t i = 0; i < utf8.len; i++) {
		uint8_t c = utf8.data[i];

		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(b, "\\u%04x", (unsigned int)c);
		else
			buf_putc(b, (char)c);
	}
	buf_putc(b, '"');
	if (!buf_ok(&utf8))
		buf_fail(b, &utf8);
}

/* comma_due - true if the text so far ends in a value, blanks aside. */
static bool comma_due(const struct buf *b)
{
	size_t n = b->len;

	while (n && (b->data[n - 1] == ' ' || b->data[n - 1] == '\n'))
		n--;
	return n && b->data[n - 1] != '{' && b->data[n - 1] != ',';
}

void str_put_member(struct buf *b, const char *name, const char *value)
{
	buf_puts(b, comma_due(b) ? ", " : "");
	str_put_json(b, name, strlen(name));
	buf_puts(b, ": ");
	if (value)
		str_put_json(b, value, strlen(value));
	else
		buf_puts(b, "null");
}

void str_put_plain(struct buf *b, const char *s)
{
	for (; *s; s++)
		buf_putc(b, (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

void str_put_xml(struct buf *b, const char *s, size_t n)
{
	static const char special[] = "&<>\"'";
	static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	for (size_t i = 0; i < n; i++) {
		const char *at = s[i] ? strchr(special, s[i]) : NULL;

		if (at)
			buf_puts(b, escaped[at - special]);
		else
			buf_putc(b, s[i]);
	}
}

void str_put_double(struct buf *b, double v)
{
	char text[40];

	if (isnan(v)) {
		buf_puts(b, "NaN");
		return;
	}
	if (isinf(v)) {
		buf_puts(b, v > 0 ? "Infinity" : "-Infinity");
		return;
	}
	/* This program never calls setlocale, so both printf and strtod use the C locale. */
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_puts(b, text);
	if (!strpbrk(text, ".e"))
		buf_puts(b, ".0");
}
