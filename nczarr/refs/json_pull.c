/* SPDX-License-Identifier: BSD-3-Clause */
/* json_pull.c - parses JSON in place. */
#include "nczarr/refs/refs_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/str.h"
#include "base/core/utf8.h"

int scan_bad(const struct scan *s, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "JSON: byte %zu: %s", (size_t)(s->p - s->begin), what);
}

uint8_t scan_peek(struct scan *s)
{
	while (s->p < s->end &&
	       (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
	return s->p < s->end ? *s->p : 0;
}

bool scan_is(struct scan *s, char c)
{
	if (scan_peek(s) != (uint8_t)c || s->p == s->end)
		return false;
	s->p++;
	return true;
}

int scan_next(struct scan *s, char close, struct err *e)
{
	if (scan_is(s, ','))
		return 1;
	return scan_is(s, close) ? 0 : scan_bad(s, "a comma or the end is expected", e);
}

int scan_text(struct scan *s, struct buf *out, struct err *e)
{
	const uint8_t *from;
	const char *why;
	uint32_t c;
	size_t n;

	if (!scan_is(s, '"'))
		return scan_bad(s, "a string is expected", e);
	for (;;) {
		for (from = s->p; s->p < s->end && *s->p != '"' && *s->p != '\\'; s->p++)
			if (*s->p < 0x20)
				return scan_bad(s, "a control character in a string", e);
		n = (size_t)(s->p - from);
		if (!utf8_ok(from, n))
			return scan_bad(s, "a string is not UTF-8", e);
		buf_put(out, from, n);
		if (s->p == s->end)
			return scan_bad(s, "unterminated string", e);
		if (*s->p++ == '"')
			return out->starved ? err_nomem(e) : 0;
		why = utf8_unescape(&s->p, s->end, &c);
		if (why)
			return scan_bad(s, why, e);
		utf8_put(out, c);
	}
}

int scan_u64(struct scan *s, uint64_t *ret, struct err *e)
{
	const uint8_t *from;

	(void)scan_peek(s);
	for (from = s->p; s->p < s->end && *s->p >= '0' && *s->p <= '9';)
		s->p++;
	if (str_u64((const char *)from, (size_t)(s->p - from), UINT64_MAX, ret) ||
	    (s->p < s->end && strchr(".eE+-", *s->p) && *s->p))
		return scan_bad(s, "a non-negative whole number is expected", e);
	return 0;
}

/* skip_text - skip a string. */
static int skip_text(struct scan *s, struct err *e)
{
	for (s->p++; s->p < s->end; s->p++) {
		if (*s->p == '"') {
			s->p++;
			return 0;
		}
		if (*s->p == '\\' && ++s->p == s->end)
			break;
	}
	return scan_bad(s, "unterminated string", e);
}

static bool json_pull_is_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '.' ||
	       c == '+' || c == '-';
}

/* scan_colon - after a key. */
static int scan_colon(struct scan *s, struct err *e)
{
	return scan_is(s, ':') ? 0 : scan_bad(s, "a colon is expected", e);
}

static int skip_value(struct scan *s, int depth, struct err *e);

/* skip_inside - skip the members or elements of a container, and its end. */
static int skip_inside(struct scan *s, char close, int depth, struct err *e)
{
	int rc;

	if (depth == 0)
		return scan_bad(s, "values are nested too deeply", e);
	if (scan_is(s, close))
		return 0;
	do {
		rc = 0;
		if (close == '}' && scan_peek(s) != '"')
			return scan_bad(s, "a key is expected", e);
		if (close == '}')
			rc = skip_text(s, e);
		if (close == '}' && rc == 0)
			rc = scan_colon(s, e);
		rc = rc ? rc : skip_value(s, depth - 1, e);
		rc = rc ? rc : scan_next(s, close, e);
	} while (rc > 0);
	return rc;
}

static int skip_value(struct scan *s, int depth, struct err *e)
{
	const uint8_t c = scan_peek(s);

	if (c == '"')
		return skip_text(s, e);
	if (scan_is(s, '{'))
		return skip_inside(s, '}', depth, e);
	if (scan_is(s, '['))
		return skip_inside(s, ']', depth, e);
	if (!json_pull_is_word(c))
		return scan_bad(s, "a value is expected", e);
	while (s->p < s->end && json_pull_is_word(*s->p))
		s->p++;
	return 0;
}

int scan_skip(struct scan *s, struct err *e)
{
	return skip_value(s, SCAN_DEPTH, e);
}

int scan_members(struct scan *s, struct buf *key, scan_member *fn, void *arg, struct err *e)
{
	int rc;

	if (!scan_is(s, '{'))
		return scan_bad(s, "an object is expected", e);
	if (scan_is(s, '}'))
		return 0;
	do {
		buf_clear(key);
		rc = scan_text(s, key, e);
		rc = rc ? rc : scan_colon(s, e);
		(void)scan_peek(s);
		rc = rc ? rc : fn(arg, s, e);
		rc = rc ? rc : scan_next(s, '}', e);
	} while (rc > 0);
	return rc;
}
