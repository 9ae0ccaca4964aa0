/* SPDX-License-Identifier: BSD-3-Clause */
/* base64.h - RFC 4648, section 4. */
#ifndef BASE_CORE_BASE64_H
#define BASE_CORE_BASE64_H

#include <sys/types.h>

#include "base/core/buf.h"

/* base64_put - append n bytes as base64 with its padding. */
void base64_put(struct buf *b, const void *p, size_t n);
/* base64_decode - decode n characters, a multiple of four with padding; out has room for n / 4 * 3
 * bytes. Returns the number of bytes, or -1 when the text is not base64. */
ssize_t base64_decode(const char *s, size_t n, uint8_t *out);
/* base64_decode_loose - append the bytes that n characters encode. Line ends are skipped, and
 * padding may be missing. Returns -1, or the index of the first character that is not base64; n
 * when the data end within a byte. */
ssize_t base64_decode_loose(struct buf *b, const char *s, size_t n);

#endif
