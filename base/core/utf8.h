/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.h - UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef BASE_CORE_UTF8_H
#define BASE_CORE_UTF8_H

#include "base/core/arena.h"
#include "base/core/buf.h"

enum { UTF8_MAX = 4 };

/* utf8_decode - the character at p, where n >= 1 bytes can be read. Returns its length with *ret
 * written (ret may be NULL), or 0 when the bytes are not well-formed. */
size_t utf8_decode(const void *p, size_t n, uint32_t *ret);
/* utf8_ok - true when the n bytes are well-formed. */
bool utf8_ok(const void *s, size_t n);
/* utf8_is_char - whether c is a Unicode scalar value: no surrogate, not above U+10FFFF. */
static inline bool utf8_is_char(uint32_t c)
{
	return c < 0xd800 || (c >= 0xe000 && c <= 0x10ffff);
}

/* utf8_encode - write at most UTF8_MAX bytes to out. Returns the length. If c is no character,
 * U+FFFD is written. */
size_t utf8_encode(uint8_t *out, uint32_t c);
/* utf8_put - append one character to b. */
void utf8_put(struct buf *b, uint32_t c);
/* utf8_unescape - decode the escape at *p, after the backslash, in a JSON string, and move *p past
 * it. Two escapes that form a surrogate pair are one character. Returns NULL with *ret written, or
 * the reason why the escape is invalid. */
const char *utf8_unescape(const uint8_t **p, const uint8_t *end, uint32_t *ret);
/* utf8_put_text - append n bytes to b: unchanged if they are well-formed, else with every byte
 * above 0x7f converted from Latin-1, so that nothing is lost. Returns true if it had to convert. */
bool utf8_put_text(struct buf *b, const void *s, size_t n);
/* utf8_prefix - the length of the longest prefix of at most max bytes that ends with a whole
 * character; text that is not well-formed is truncated at a byte. */
size_t utf8_prefix(const char *s, size_t max);
/* utf8_tail - the offset of the longest suffix of at most max bytes that begins with a
 * character. */
size_t utf8_tail(const void *s, size_t n, size_t max);
/* utf8_copy - copy n bytes to the arena, converted as by utf8_put_text, and append a NUL. *ret_n:
 * bytes of the copy without the NUL; *ret_converted: set if they were converted, else untouched.
 * Both may be NULL. Returns NULL when the arena is full. */
const char *utf8_copy(struct arena *a, const void *s, size_t n, size_t *ret_n,
		      bool *ret_converted);

#endif
