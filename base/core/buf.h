/* SPDX-License-Identifier: BSD-3-Clause */
/* buf.h - a growing byte buffer with a ceiling.
 *
 * Failure is sticky: after the first append that would pass the ceiling or runs out of memory,
 * all appends do nothing and buf_ok() is false, so that a writer checks once at its end. */
#ifndef BASE_CORE_BUF_H
#define BASE_CORE_BUF_H

#include "base/core/err.h"

struct buf {
	uint8_t *data;  /* owned; NULL while empty */
	size_t len;     /* bytes in use */
	size_t cap;     /* bytes allocated */
	size_t max;     /* ceiling in bytes */
	bool failed;
	bool starved;   /* malloc failed; false: the ceiling was reached */
};

/* buf_init - empty buffer that never grows past max bytes; allocates nothing. */
void buf_init(struct buf *b, size_t max);
static inline struct buf buf_of(size_t max)
{
	return (struct buf){.max = max};
}
/* buf_release - free the memory; b is then empty with the same ceiling. */
void buf_release(struct buf *b);
/* buf_wipe - the same for a secret, which is erased. */
void buf_wipe(struct buf *b);
/* auto_buf - a local buffer that is released at the end of its block: auto_buf b = buf_of(max); */
#define auto_buf __attribute__((cleanup(buf_release))) struct buf
/* buf_clear - forget the content and any failure, keep the memory. */
void buf_clear(struct buf *b);
/* buf_ok - false when an append failed. */
static inline bool buf_ok(const struct buf *b)
{
	return !b->failed;
}
/* buf_fail - mark b as failed, for the reason that another buffer failed for. */
void buf_fail(struct buf *b, const struct buf *why);
/* buf_full - the error of a buffer that failed: -ENOMEM, or `code` with the formatted text. Returns
 * the code. */
int buf_full(const struct buf *b, struct err *e, int code, const char *fmt, ...) NZ_PRINTF(4, 5);
/* buf_take - hand the memory over (new: caller frees; may be NULL when empty), b is then empty. */
uint8_t *buf_take(struct buf *b, size_t *ret_len);

/* buf_grow - append n bytes left uninitialised, NULL on failure. Borrowed until the next append. */
uint8_t *buf_grow(struct buf *b, size_t n);
void buf_put(struct buf *b, const void *data, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
/* buf_put_le - the low n bytes of v, n <= 8, in little-endian order. */
void buf_put_le(struct buf *b, uint64_t v, size_t n);
void buf_put_le32(struct buf *b, uint32_t v);
/* buf_next - of strings that were appended with their NULs: the one after `text`, the first one if
 * text is NULL; NULL: no more. */
const char *buf_next(const struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *fmt, ...) NZ_PRINTF(2, 3);

#endif
