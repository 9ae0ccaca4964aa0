/* SPDX-License-Identifier: BSD-3-Clause */
/* str.h - text, independent of locale: strict decimals, JSON strings, numbers that read back. */
#ifndef BASE_CORE_STR_H
#define BASE_CORE_STR_H

#include <string.h>
#include <strings.h>

#include "base/core/buf.h"

/* str_is - whether the n bytes at s are the string `name`; NULL is never equal. str_is_nocase - the
 * same, ignoring the case of ASCII letters. */
static inline bool str_is(const char *name, const char *s, size_t n)
{
	return name && strlen(name) == n && memcmp(name, s, n) == 0;
}

static inline bool str_is_nocase(const char *name, const char *s, size_t n)
{
	return name && strlen(name) == n && strncasecmp(name, s, n) == 0;
}

/* str_copy - a copy of a string; NULL for NULL. Memory is short: NULL, and *failed is set. */
static inline char *str_copy(const char *s, bool *failed)
{
	char *copy = s ? strdup(s) : NULL;

	*failed |= s && !copy;
	return copy;
}

/* str_wipe - erase a secret and free it. Takes NULL. */
static inline void str_wipe(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

/* str_digit - whether c is one of 0 to 9. */
static inline bool str_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* str_printf - a new string; NULL when memory is short. */
char *str_printf(const char *fmt, ...) NZ_PRINTF(1, 2);

/* str_trim - the text without blanks at both ends; changed in place. */
char *str_trim(char *text);

/* str_u64 - canonical decimal: digits only, no sign, no leading zero but for "0" itself, the
 * whole of the n bytes, value <= max. Returns 0 with *ret written, or -EINVAL. */
int str_u64(const char *s, size_t n, uint64_t max, uint64_t *ret) NZ_MUST_USE;

/* str_size - like str_u64 but with an optional suffix K, M or G (times 1024, 1024^2, 1024^3). */
int str_size(const char *s, uint64_t max, uint64_t *ret) NZ_MUST_USE;

/* str_put_json - append a JSON string; bytes that are not UTF-8 are taken as Latin-1. */
void str_put_json(struct buf *b, const char *s, size_t n);

/* str_put_member - append a member of a JSON object, "name": "value", or null for NULL; after a
 * comma, unless the text so far is empty or ends in '{' or a comma. */
void str_put_member(struct buf *b, const char *name, const char *value);

/* str_put_plain - append untrusted text for a terminal, with '?' for each control character. */
void str_put_plain(struct buf *b, const char *s);

/* str_put_xml - append n bytes of text escaped for XML and HTML, also within quotes. */
void str_put_xml(struct buf *b, const char *s, size_t n);

/* str_put_double - append the shortest decimal that reads back to the same double, always with
 * a '.' or an exponent; non-finite values as NaN, Infinity, -Infinity. Independent of locale. */
void str_put_double(struct buf *b, double v);

#endif
