/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.h - JSON for people and strict parsers: indented by four spaces, short lists on
 * one line, always well-formed UTF-8 (or ASCII).
 *
 * The writer appends to a struct buf and shares its sticky failure: check buf_ok() at the end.
 * Nesting deeper than JW_DEPTH_MAX is such a failure too, so that a recursive caller which
 * stops when the buffer has failed is bounded. */
#ifndef NCZARR_JSON_WRITER_H
#define NCZARR_JSON_WRITER_H

#include "base/core/buf.h"

#define JW_DEPTH_MAX 160

struct jw {
	struct buf *out; /* borrowed */
	bool ascii;      /* everything above U+007E as \uXXXX */
	bool compact;    /* all on one line, and no space between the values of a list */
	bool after_key;
	uint32_t depth;
	uint8_t frame[JW_DEPTH_MAX]; /* flags of each open container */
};

/* jw_init - ascii: write non-ASCII characters as escapes; else as UTF-8. */
void jw_init(struct jw *j, struct buf *out, bool ascii);

/* jw_object, jw_array - open a container; on one line if one_line, or if it is inside one that is.
 * jw_end closes the innermost one. */
void jw_object(struct jw *j, bool one_line);
void jw_array(struct jw *j, bool one_line);
void jw_end(struct jw *j);

/* jw_key - the name of the next value; only inside an object. Returns j, so that a member takes one
 * statement: jw_str(jw_key(j, "name"), "value"). */
struct jw *jw_key(struct jw *j, const char *key);

/* Values. Text that is not UTF-8 is taken as Latin-1, byte by byte. */
void jw_text(struct jw *j, const void *s, size_t n);
void jw_str(struct jw *j, const char *s);
void jw_u64(struct jw *j, uint64_t v);
void jw_i64(struct jw *j, int64_t v);
void jw_bool(struct jw *j, bool v);
void jw_null(struct jw *j);
/* jw_double - shortest text that reads back exactly; NaN and infinities bare, or quoted if
 * `quote`. */
void jw_double(struct jw *j, double v, bool quote);
/* jw_base64 - bytes as a base64 string. jw_hex - bytes as "0x...". */
void jw_base64(struct jw *j, const uint8_t *p, size_t n);
void jw_hex(struct jw *j, const uint8_t *p, size_t n);
/* jw_raw - n bytes that are a JSON value already. */
void jw_raw(struct jw *j, const void *json, size_t n);
/* jw_take_text, jw_take_raw - the content of b, which is released; a failure of b is one of j. */
void jw_take_text(struct jw *j, struct buf *b);
void jw_take_raw(struct jw *j, struct buf *b);

#endif
