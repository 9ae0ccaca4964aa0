/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.c - the JSON writer: its only state is a byte of flags for each open container. Output is
 * appended to the buffer directly. */
#include "nczarr/json/writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/core/base64.h"
#include "base/core/str.h"
#include "base/core/utf8.h"

enum { IN_OBJECT = 1, ONE_LINE = 2, NOT_EMPTY = 4 };

void jw_init(struct jw *j, struct buf *out, bool ascii)
{
	*j = (struct jw){.out = out, .ascii = ascii};
}

static void new_line(struct jw *j, uint32_t depth)
{
	buf_putc(j->out, '\n');
	for (uint32_t i = 0; i < depth; i++)
		buf_puts(j->out, "    ");
}

/* separate - write the separator before a member of the innermost container. */
static void separate(struct jw *j)
{
	uint8_t *f;

	if (j->depth == 0 || j->depth > JW_DEPTH_MAX)
		return;
	f = &j->frame[j->depth - 1];
	if (*f & NOT_EMPTY)
		buf_puts(j->out, *f & ONE_LINE && (*f & IN_OBJECT || !j->compact) ? ", " : ",");
	if (!(*f & ONE_LINE))
		new_line(j, j->depth);
	*f |= NOT_EMPTY;
}

static void json_writer_value(struct jw *j)
{
	if (j->after_key)
		j->after_key = false;
	else
		separate(j);
}

static void open_container(struct jw *j, uint8_t flags, char c)
{
	json_writer_value(j);
	buf_putc(j->out, c);
	if (j->compact)
		flags |= ONE_LINE;
	if (j->depth > 0 && j->depth <= JW_DEPTH_MAX)
		flags |= j->frame[j->depth - 1] & ONE_LINE;
	if (j->depth < JW_DEPTH_MAX)
		j->frame[j->depth] = flags;
	else
		j->out->failed = true;
	j->depth++;
}

void jw_object(struct jw *j, bool one_line)
{
	open_container(j, IN_OBJECT | (one_line ? ONE_LINE : 0), '{');
}

void jw_array(struct jw *j, bool one_line)
{
	open_container(j, one_line ? ONE_LINE : 0, '[');
}

void jw_end(struct jw *j)
{
	uint8_t f;

	if (j->depth == 0)
		return;
	j->depth--;
	if (j->depth >= JW_DEPTH_MAX)
		return;
	f = j->frame[j->depth];
	if ((f & NOT_EMPTY) && !(f & ONE_LINE))
		new_line(j, j->depth);
	buf_putc(j->out, f & IN_OBJECT ? '}' : ']');
}

static void put_u16(struct jw *j, uint32_t v)
{
	buf_printf(j->out, "\\u%04x", (unsigned)(v & 0xffff));
}

/* put_char - one code point above U+007E, or a control character. */
static void put_special(struct jw *j, uint32_t c, const uint8_t *utf8, size_t n)
{
	static const char shorts[] = "\bb\ff\nn\rr\tt";

	for (size_t i = 0; i + 1 < sizeof(shorts); i += 2) {
		if (c == (uint32_t)shorts[i]) {
			buf_putc(j->out, '\\');
			buf_putc(j->out, shorts[i + 1]);
			return;
		}
	}
	if (c > 0x7f && !j->ascii) {
		buf_put(j->out, utf8, n);
	} else if (c > 0xffff) {
		put_u16(j, 0xd800 + ((c - 0x10000) >> 10));
		put_u16(j, 0xdc00 + ((c - 0x10000) & 0x3ff));
	} else {
		put_u16(j, c);
	}
}

static void json_writer_quoted(struct jw *j, const void *s, size_t n)
{
	const uint8_t *p = s;
	bool utf8 = utf8_ok(s, n);

	buf_putc(j->out, '"');
	for (size_t i = 0, step; i < n && buf_ok(j->out); i += step) {
		step = 1;
		if (p[i] == '"' || p[i] == '\\') {
			buf_putc(j->out, '\\');
			buf_putc(j->out, (char)p[i]);
		} else if (p[i] >= 0x20 && p[i] < 0x7f) {
			buf_putc(j->out, (char)p[i]);
		} else if (utf8) {
			uint32_t c;

			step = utf8_decode(p + i, n - i, &c);

			put_special(j, c, p + i, step);
		} else {
			uint8_t two[2] = {(uint8_t)(0xc0 | p[i] >> 6),
					  (uint8_t)(0x80 | (p[i] & 0x3f))};

			put_special(j, p[i], two, 2);
		}
	}
	buf_putc(j->out, '"');
}

struct jw *jw_key(struct jw *j, const char *key)
{
	separate(j);
	json_writer_quoted(j, key, strlen(key));
	buf_puts(j->out, ": ");
	j->after_key = true;
	return j;
}

void jw_text(struct jw *j, const void *s, size_t n)
{
	json_writer_value(j);
	json_writer_quoted(j, s, n);
}

void jw_str(struct jw *j, const char *s)
{
	jw_text(j, s, strlen(s));
}

void jw_raw(struct jw *j, const void *json, size_t n)
{
	json_writer_value(j);
	buf_put(j->out, json, n);
}

static void json_writer_take(struct jw *j, struct buf *b,
			     void (*put)(struct jw *j, const void *p, size_t n))
{
	if (buf_ok(b))
		put(j, b->data, b->len);
	else
		buf_fail(j->out, b);
	buf_release(b);
}

void jw_take_text(struct jw *j, struct buf *b)
{
	json_writer_take(j, b, jw_text);
}

void jw_take_raw(struct jw *j, struct buf *b)
{
	json_writer_take(j, b, jw_raw);
}

void jw_u64(struct jw *j, uint64_t v)
{
	json_writer_value(j);
	buf_printf(j->out, "%" PRIu64, v);
}

void jw_i64(struct jw *j, int64_t v)
{
	json_writer_value(j);
	buf_printf(j->out, "%" PRId64, v);
}

void jw_bool(struct jw *j, bool v)
{
	json_writer_value(j);
	buf_puts(j->out, v ? "true" : "false");
}

void jw_null(struct jw *j)
{
	json_writer_value(j);
	buf_puts(j->out, "null");
}

void jw_double(struct jw *j, double v, bool quote)
{
	bool quotes = quote && !isfinite(v);

	json_writer_value(j);
	if (quotes)
		buf_putc(j->out, '"');
	str_put_double(j->out, v);
	if (quotes)
		buf_putc(j->out, '"');
}

void jw_base64(struct jw *j, const uint8_t *p, size_t n)
{
	json_writer_value(j);
	buf_putc(j->out, '"');
	base64_put(j->out, p, n);
	buf_putc(j->out, '"');
}

void jw_hex(struct jw *j, const uint8_t *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	json_writer_value(j);
	buf_puts(j->out, "\"0x");
	for (size_t i = 0; i < n && buf_ok(j->out); i++) {
		buf_putc(j->out, digits[p[i] >> 4]);
		buf_putc(j->out, digits[p[i] & 15]);
	}
	buf_putc(j->out, '"');
}
