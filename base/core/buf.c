/* SPDX-License-Identifier: BSD-3-Clause */
/* buf.c - growing buffer; the ceiling is checked before memory is allocated. */
#include "base/core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/endian.h"

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_release(struct buf *b)
{
	free(b->data);
	buf_init(b, b->max);
}

void buf_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	buf_release(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = b->starved = false;
}

uint8_t *buf_take(struct buf *b, size_t *ret_len)
{
	uint8_t *p = b->data;

	*ret_len = b->len;
	buf_init(b, b->max);
	return p;
}

uint8_t *buf_grow(struct buf *b, size_t n)
{
	size_t want;

	if (b->failed || ckd_add(&want, b->len, n) || want > b->max) {
		b->failed = true;
		return NULL;
	}
	if (grow_array(&b->data, &b->cap, want, 1)) {
		b->failed = b->starved = true;
		return NULL;
	}
	b->len = want;
	return b->data + want - n;
}

void buf_put(struct buf *b, const void *data, size_t n)
{
	uint8_t *p;

	if (n == 0)
		return;
	p = buf_grow(b, n);
	if (p)
		memcpy(p, data, n);
}

void buf_fail(struct buf *b, const struct buf *why)
{
	b->failed = true;
	b->starved |= why->starved;
}

int buf_full(const struct buf *b, struct err *e, int code, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	if (b->starved)
		return err_nomem(e);
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	return err_set(e, code, "%s", text);
}

void buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void buf_put_le(struct buf *b, uint64_t v, size_t n)
{
	uint8_t p[8];

	put_le(p, v, n);
	buf_put(b, p, n);
}

void buf_put_le32(struct buf *b, uint32_t v)
{
	buf_put_le(b, v, 4);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	char text[512];
	uint8_t *room;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
	} else if ((size_t)n < sizeof(text)) {
		buf_put(b, text, (size_t)n);
	} else {
		room = buf_grow(b, (size_t)n + 1); /* with a NUL, which is not counted */
		if (!room)
			return;
		va_start(ap, fmt);
		(void)vsnprintf((char *)room, (size_t)n + 1, fmt, ap); /* as long as before */
		va_end(ap);
		b->len--;
	}
}

const char *buf_next(const struct buf *b, const char *text)
{
	const char *first = (const char *)b->data;
	size_t at = text ? (size_t)(text - first) + strlen(text) + 1 : 0;

	return at < b->len ? first + at : NULL;
}
