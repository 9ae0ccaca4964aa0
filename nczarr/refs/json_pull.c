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

/* json_pull_escape - parse an escape after its backslash. */
static int json_pull_escape(struct scan *s, struct buf *out, struct err *e)
{
	uint32_t c;
	const char *why = utf8_unescape(&s->p, s->end, &c);

	if (why)
		return scan_bad(s, why, e);
	utf8_put(out, c);
	return 0;
}

int scan_text(struct scan *s, struct buf *out, struct err *e)
{
	const uint8_t *from;
	size_t n;
	int rc;

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
		rc = json_pull_escape(s, out, e);
		if (rc)
			return rc;
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

/* skip_one - skip a value, or the start of a container: +1 a container was opened. */
static int skip_one(struct scan *s, char *ret_open, struct err *e)
{
	uint8_t c = scan_peek(s);

	*ret_open = 0;
	if (c == '"')
		return skip_text(s, e);
	if (c == '{' || c == '[') {
		*ret_open = (char)c;
		s->p++;
		return 0;
	}
	if (!json_pull_is_word(c))
		return scan_bad(s, "a value is expected", e);
	while (s->p < s->end && json_pull_is_word(*s->p))
		s->p++;
	return 0;
}

static int skip_key(struct scan *s, struct err *e)
{
	int rc;

	if (scan_peek(s) != '"')
		return scan_bad(s, "a key is expected", e);
	rc = skip_text(s, e);
	if (rc == 0 && !scan_is(s, ':'))
		rc = scan_bad(s, "a colon is expected", e);
	return rc;
}

int scan_skip(struct scan *s, struct err *e)
{
	char close[SCAN_DEPTH], open;
	size_t depth = 0;
	int rc;

	do {
		rc = skip_one(s, &open, e);
		if (rc)
			return rc;
		if (open) {
			if (depth == SCAN_DEPTH)
				return scan_bad(s, "values are nested too deeply", e);
			close[depth++] = open == '{' ? '}' : ']';
			if (!scan_is(s, close[depth - 1])) {
				rc = open == '{' ? skip_key(s, e) : 0;
				if (rc)
					return rc;
				continue;
			}
			depth--;
		}
		while (depth > 0) {
			rc = scan_next(s, close[depth - 1], e);
			if (rc < 0)
				return rc;
			if (rc == 0) {
				depth--;
				continue;
			}
			rc = close[depth - 1] == '}' ? skip_key(s, e) : 0;
			if (rc)
				return rc;
			break;
		}
	} while (depth > 0);
	return 0;
}
