/* SPDX-License-Identifier: BSD-3-Clause */
/* thrift.c - thrift's compact protocol, as far as Parquet uses it. */
#include "nczarr/parquet/parquet.h"

#include <string.h>

#define DEPTH_MAX 32
#define SKIP_MAX 1000000 /* elements of an ignored list */

uint64_t thrift_read_varint(struct thrift_reader *t)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t c;

		if (t->bad || t->p == t->end)
			break;
		c = *t->p++;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return v;
	}
	t->bad = true;
	return 0;
}

static int64_t thrift_read_int(struct thrift_reader *t)
{
	uint64_t v = thrift_read_varint(t);

	return (int64_t)(v >> 1 ^ (~(v & 1) + 1));
}

/* thrift_next - type of the next field of a struct, THRIFT_STOP at the end. */
static int thrift_next(struct thrift_reader *t, int16_t *ret_id)
{
	uint8_t c = 0;
	int64_t id;

	*ret_id = 0;
	if (t->bad || t->p == t->end)
		t->bad = true;
	else
		c = *t->p++;
	if (c == THRIFT_STOP)
		return THRIFT_STOP;
	id = c >> 4 ? (int64_t)t->last + (c >> 4) : thrift_read_int(t);
	if (t->bad || id < INT16_MIN || id > INT16_MAX || (c & 15) > THRIFT_STRUCT ||
	    (c & 15) == THRIFT_STOP) {
		t->bad = true;
		return THRIFT_STOP;
	}
	*ret_id = t->last = (int16_t)id;
	return c & 15;
}

const uint8_t *thrift_read_bytes(struct thrift_reader *t, size_t *ret_len)
{
	uint64_t n = thrift_read_varint(t);
	const uint8_t *p = t->p;

	*ret_len = 0;
	if (t->bad || n > (uint64_t)(t->end - t->p)) {
		t->bad = true;
		return NULL;
	}
	t->p += n;
	*ret_len = (size_t)n;
	return p;
}

uint32_t thrift_read_list(struct thrift_reader *t, int *ret_type)
{
	uint64_t n;
	uint8_t c;

	*ret_type = THRIFT_STOP;
	if (t->bad || t->p == t->end) {
		t->bad = true;
		return 0;
	}
	c = *t->p++;
	n = c >> 4 == 15 ? thrift_read_varint(t) : c >> 4;
	/* every element takes a byte at least */
	if (t->bad || n > (uint64_t)(t->end - t->p) || (c & 15) > THRIFT_STRUCT) {
		t->bad = true;
		return 0;
	}
	*ret_type = c & 15;
	return (uint32_t)n;
}

static void thrift_skip(struct thrift_reader *t, int type, int depth, bool element);

static void skip_some(struct thrift_reader *t, int type, uint64_t n, int depth)
{
	if (n > SKIP_MAX)
		t->bad = true;
	for (; n > 0 && !t->bad; n--)
		thrift_skip(t, type, depth, true);
}

static void skip_map(struct thrift_reader *t, int depth)
{
	uint64_t n = thrift_read_varint(t);
	uint8_t types;

	if (t->bad || n == 0)
		return;
	if (t->p == t->end || n > SKIP_MAX) {
		t->bad = true;
		return;
	}
	types = *t->p++;
	for (; n > 0 && !t->bad; n--) {
		thrift_skip(t, types >> 4, depth, true);
		thrift_skip(t, types & 15, depth, true);
	}
}

/* thrift_skip - element: of a list, where a truth value is a byte. */
static void thrift_skip(struct thrift_reader *t, int type, int depth, bool element)
{
	int16_t outer, id;
	size_t n = 0;
	int of;

	if (depth >= DEPTH_MAX)
		t->bad = true;
	if (t->bad)
		return;
	switch (type) {
	case THRIFT_TRUE:
	case THRIFT_FALSE:
		n = element;
		break;
	case THRIFT_BYTE:
		n = 1;
		break;
	case THRIFT_I16:
	case THRIFT_I32:
	case THRIFT_I64:
		(void)thrift_read_varint(t);
		break;
	case THRIFT_DOUBLE:
		n = 8;
		break;
	case THRIFT_BINARY:
		(void)thrift_read_bytes(t, &n);
		n = 0;
		break;
	case THRIFT_LIST:
	case THRIFT_SET: {
		uint32_t many = thrift_read_list(t, &of);

		skip_some(t, of, many, depth + 1);
		break;
	}
	case THRIFT_MAP:
		skip_map(t, depth + 1);
		break;
	case THRIFT_STRUCT:
		outer = t->last;
		t->last = 0;
		while ((of = thrift_next(t, &id)) != THRIFT_STOP)
			thrift_skip(t, of, depth + 1, false);
		t->last = outer;
		break;
	default:
		t->bad = true;
	}
	if (n > (size_t)(t->end - t->p))
		t->bad = true;
	else
		t->p += n;
}

void thrift_read_struct(struct thrift_reader *t, const struct thrift_field *fields, size_t n)
{
	int16_t outer = t->last, id;
	int type;

	t->last = 0;
	while ((type = thrift_next(t, &id)) != THRIFT_STOP) {
		const struct thrift_field *f = fields;
		int64_t v;

		while (f < fields + n && f->id != id)
			f++;
		if (f < fields + n && f->at && f->type == type)
			*f->at = *t;
		if (f == fields + n || f->at || (type > THRIFT_FALSE && type != THRIFT_I32 &&
						 type != THRIFT_I64)) {
			thrift_skip(t, type, 0, false);
			continue;
		}
		v = type <= THRIFT_FALSE ? type == THRIFT_TRUE : thrift_read_int(t);
		if (f->n)
			*f->n = v;
		else
			*f->u = v < 0 ? 0 : (uint64_t)v;
		t->bad = t->bad || (f->u && v < 0);
	}
	t->last = outer;
}

/* ---- writing ---- */

void thrift_put_varint(struct buf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_putc(out, (char)(v | 0x80));
	buf_putc(out, (char)v);
}

static void put_zigzag(struct buf *out, int64_t v)
{
	thrift_put_varint(out, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

static void thrift_put_field(struct thrift_writer *t, int16_t id, int type)
{
	int delta = id - t->last;

	if (delta > 0 && delta < 16) {
		buf_putc(t->out, (char)(delta << 4 | type));
	} else {
		buf_putc(t->out, (char)type);
		put_zigzag(t->out, id);
	}
	t->last = id;
}

void thrift_write_int(struct thrift_writer *t, int16_t id, int type, int64_t v)
{
	thrift_put_field(t, id, type);
	put_zigzag(t->out, v);
}

void thrift_write_text(struct thrift_writer *t, int16_t id, const char *text)
{
	thrift_put_field(t, id, THRIFT_BINARY);
	thrift_write_element_text(t, text);
}

void thrift_write_list(struct thrift_writer *t, int16_t id, int type, uint32_t n)
{
	thrift_put_field(t, id, THRIFT_LIST);
	if (n < 15) {
		buf_putc(t->out, (char)(n << 4 | (uint32_t)type));
	} else {
		buf_putc(t->out, (char)(0xf0 | type));
		thrift_put_varint(t->out, n);
	}
}

void thrift_write_element_int(struct thrift_writer *t, int64_t v)
{
	put_zigzag(t->out, v);
}

void thrift_write_element_text(struct thrift_writer *t, const char *text)
{
	thrift_put_varint(t->out, strlen(text));
	buf_puts(t->out, text);
}

int16_t thrift_write_begin(struct thrift_writer *t, int16_t id)
{
	int16_t outer;

	if (id)
		thrift_put_field(t, id, THRIFT_STRUCT);
	outer = t->last;
	t->last = 0;
	return outer;
}

void thrift_write_end(struct thrift_writer *t, int16_t outer)
{
	buf_putc(t->out, THRIFT_STOP);
	t->last = outer;
}
