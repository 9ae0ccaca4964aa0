/* SPDX-License-Identifier: BSD-3-Clause */
/* json2.c - a JSON list of strings, as numcodecs' json2 writes object arrays: the strings, in lists
 * nested as deep as the array has dimensions, then the dtype "|O", then the shape.
 *
 * It is parsed in one pass, without a tree. The end of the list may be two values more than the
 * elements, which is known only at the end. So the positions of the last two values of the
 * outermost list are kept. The shape itself is not needed: the array's metadata has it, and the
 * number of strings must match it.
 *
 * Spec: RFC 8259; numcodecs 0.11, numcodecs/json.py, and Python's json.JSONEncoder with
 * ensure_ascii and the separators ',' and ':'. */
#include "codecs/vlen/json2_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/utf8.h"
#include "codecs/core/codec_impl.h"

#define DEPTH_MAX 64
#define MARKS 2 /* dtype and shape */

/* ---- reading ---- */

enum json2_kind { TEXT, LIST, OTHER };

/* mark - one value of the outermost list. */
struct mark {
	enum json2_kind kind;
	size_t len;      /* of the body before it */
	uint64_t n;      /* strings before it */
	uint64_t others; /* values before it that are neither strings nor null nor lists */
};

struct json2_reader {
	const uint8_t *in, *p, *end;
	struct buf *out;
	uint64_t n, most, others;
	unsigned int depth;      /* of open lists */
	struct mark last[MARKS]; /* the last values of the outermost list, latest first */
	uint64_t values;         /* of that list */
	struct err *e;
};

static int json2_bad(const struct json2_reader *r, const char *what)
{
	return err_set(r->e, -EBADMSG, "not JSON at byte %zu: %s", (size_t)(r->p - r->in),
		       what);
}

static void json2_blanks(struct json2_reader *r)
{
	while (r->p < r->end &&
	       (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

static int json2_escape(struct json2_reader *r)
{
	uint32_t c;
	const char *why = utf8_unescape(&r->p, r->end, &c);

	if (why)
		return json2_bad(r, why);
	utf8_put(r->out, c);
	return 0;
}

/* json2_text - append a string; its opening quote was read. */
static int json2_text(struct json2_reader *r)
{
	const size_t start = r->out->len;

	buf_put_le32(r->out, 0);
	for (;;) {
		const uint8_t *from = r->p;
		int rc;

		while (r->p < r->end && *r->p != '"' && *r->p != '\\' && *r->p >= 0x20)
			r->p++;
		if (r->p > from)
			buf_put(r->out, from, (size_t)(r->p - from));
		if (r->p == r->end)
			return json2_bad(r, "unterminated string");
		if (*r->p++ == '"')
			break;
		if (r->p[-1] != '\\')
			return json2_bad(r, "control character in a string");
		rc = json2_escape(r);
		if (rc)
			return rc;
	}
	if (!buf_ok(r->out))
		return buf_full(r->out, r->e, -ERANGE, "the elements need more than %zu bytes",
				r->out->max);
	put_le32(r->out->data + start, (uint32_t)(r->out->len - start - CODEC_VLEN_HEAD));
	return codec_vlen_check(CODEC_VLEN_JSON2, 1, r->out->data + start + CODEC_VLEN_HEAD,
				r->out->len - start - CODEC_VLEN_HEAD, r->n, r->e);
}

static bool json2_word(struct json2_reader *r, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, s, n) != 0)
		return false;
	r->p += n;
	return true;
}

/* json2_number - a whole number; a shape has no others. */
static bool json2_number(struct json2_reader *r)
{
	const uint8_t *p = r->p;

	if (p < r->end && *p == '-')
		p++;
	if (p == r->end || *p < '0' || *p > '9')
		return false;
	while (p < r->end && *p >= '0' && *p <= '9')
		p++;
	r->p = p;
	return true;
}

/* json2_begin - record a value of the outermost list. */
static void json2_begin(struct json2_reader *r, enum json2_kind kind)
{
	r->last[1] = r->last[0];
	r->last[0] = (struct mark){kind, r->out->len, r->n, r->others};
	r->values++;
}

/* counted - count a string, or null, which is an empty one. The dtype is a string, too. */
static int counted(struct json2_reader *r)
{
	if (r->n++ <= r->most)
		return 0;
	return err_set(r->e, -EBADMSG, "the list has more than %" PRIu64 " elements", r->most);
}

/* json2_value - parse a value; of a list only its beginning. */
static int json2_value(struct json2_reader *r)
{
	const bool outer = r->depth == 1;
	int rc = 0;

	if (r->p == r->end)
		return json2_bad(r, "unexpected end");
	if (*r->p == '[') {
		if (r->depth == DEPTH_MAX)
			return json2_bad(r, "nested lists");
		if (outer)
			json2_begin(r, LIST);
		r->p++;
		r->depth++;
		return 0;
	}
	if (outer)
		json2_begin(r, *r->p == '"' ? TEXT : OTHER);
	if (*r->p == '"') {
		r->p++;
		rc = json2_text(r);
	} else if (json2_word(r, "null")) {
		buf_put_le32(r->out, 0);
	} else if (json2_word(r, "true") || json2_word(r, "false") || json2_number(r)) {
		r->others++;
		return 0;
	} else {
		return json2_bad(r, "neither a string nor a list");
	}
	return rc ? rc : counted(r);
}

/* json2_list - parse to the end of the outermost list. */
static int json2_list(struct json2_reader *r)
{
	bool first = true; /* the next value is the first of its list */
	int rc = 0;

	while (!rc && r->depth > 0) {
		json2_blanks(r);
		if (r->p < r->end && *r->p == ']') {
			r->p++;
			r->depth--;
			first = false;
			continue;
		}
		if (!first) {
			if (r->p == r->end || *r->p != ',')
				return json2_bad(r, r->p == r->end ? "unexpected end"
								   : "comma expected");
			r->p++;
			json2_blanks(r);
		}
		first = r->p < r->end && *r->p == '[';
		rc = json2_value(r);
		/* a value that is no string is no error yet while it may belong to the shape */
		if (!rc && r->values > MARKS && r->last[1].others > 0)
			rc = err_set(r->e, -EBADMSG, "an element of the list is not a string");
	}
	return rc;
}

/* json2_finish - the last two values must be no elements. */
static int json2_finish(struct json2_reader *r, uint64_t n)
{
	const struct mark *dtype = &r->last[1], *shape = &r->last[0];

	if (r->values < MARKS || shape->kind != LIST || dtype->kind != TEXT)
		return err_set(r->e, -EBADMSG,
			       "the list does not end with a dtype and a shape");
	if (dtype->others > 0)
		return err_set(r->e, -EBADMSG, "an element of the list is not a string");
	if (dtype->n != n)
		return err_set(r->e, -EBADMSG,
			       "the list has %" PRIu64 " elements, the chunk has %" PRIu64,
			       dtype->n, n);
	if (!buf_ok(r->out))
		return buf_full(r->out, r->e, -ERANGE, "the elements need more than %zu bytes",
				r->out->max);
	r->out->len = dtype->len;
	return 0;
}

int codec_json2_decode(const uint8_t *in, size_t len, uint64_t n, struct buf *out,
		       struct err *e)
{
	struct json2_reader r = {
		.in = in, .p = in, .end = in + len, .out = out, .most = n, .depth = 1, .e = e};
	int rc;

	json2_blanks(&r);
	if (r.p == r.end || *r.p != '[')
		return json2_bad(&r, "a list is expected");
	r.p++;
	rc = json2_list(&r);
	json2_blanks(&r);
	if (!rc && r.p < r.end)
		rc = json2_bad(&r, "there is more after the list");
	return rc ? rc : json2_finish(&r, n);
}

/* ---- writing ---- */

static void json2_put_escaped(uint32_t c, struct buf *out)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = c && c < 0x80 ? strchr(from, (int)c) : NULL;

	if (at) {
		buf_putc(out, '\\');
		buf_putc(out, to[at - from]);
	} else if (c >= 0x10000) {
		buf_printf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((c - 0x10000) >> 10),
			   0xdc00 + (c & 0x3ff));
	} else {
		buf_printf(out, "\\u%04" PRIx32, c);
	}
}

static void json2_put_text(const uint8_t *p, size_t len, struct buf *out)
{
	buf_putc(out, '"');
	while (len > 0) {
		size_t n = 0;

		while (n < len && p[n] >= 0x20 && p[n] < 0x7f && p[n] != '"' && p[n] != '\\')
			n++;
		if (n > 0) {
			buf_put(out, p, n);
		} else {
			uint32_t c = 0;

			n = utf8_decode(p, len, &c); /* the text is checked UTF-8 */
			json2_put_escaped(c, out);
		}
		p += n;
		len -= n;
	}
	buf_putc(out, '"');
}

/* json2_put_items - write n items in nested lists, one level per dimension, without recursion: item
 * i is preceded by the beginning of each list that starts at it. body: strings; NULL: the items are
 * empty lists. */
static void json2_put_items(struct slice *body, uint32_t rank, const uint64_t *shape,
			    uint64_t n, struct buf *out)
{
	for (uint64_t i = 0; i < n && buf_ok(out); i++) {
		uint64_t rows = 1;
		uint32_t size;

		for (uint32_t d = rank; d-- > 1 && i % (rows *= shape[d]) == 0;)
			buf_putc(out, '[');
		if (body) {
			const uint8_t *p = codec_vlen_next(body, &size);

			json2_put_text(p, size, out);
		} else {
			buf_puts(out, "[]");
		}
		rows = 1;
		for (uint32_t d = rank; d-- > 1 && (i + 1) % (rows *= shape[d]) == 0;)
			buf_putc(out, ']');
		buf_putc(out, ',');
	}
}

void codec_json2_encode(const uint8_t *body, size_t len, uint32_t rank, const uint64_t *shape,
			struct buf *out)
{
	struct slice strings = slice_of(body, len);
	uint64_t n = 1;
	uint32_t full = 0; /* dimensions before the first of length 0 */

	for (; full < rank && shape[full] > 0; full++)
		n *= shape[full];
	buf_putc(out, '[');
	if (full == rank)
		json2_put_items(&strings, rank, shape, n, out);
	else if (full > 0)
		json2_put_items(NULL, full, shape, n, out);
	buf_puts(out, "\"|O\",[");
	for (uint32_t d = 0; d < rank; d++)
		buf_printf(out, "%s%" PRIu64, d ? "," : "", shape[d]);
	buf_puts(out, "]]");
}
