/* print_value.c - types and values as `info` writes them. */
#include "fusefs/cmd/info_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/core/str.h"

enum { TEXT_SHOWN = 64, DEPTH_MAX = 8 };

static void print_value_put_type(struct buf *out, const struct dtype *t, int depth);

static void print_value_put_fields(struct buf *out, const struct dtype *t, int depth)
{
	buf_puts(out, "compound {");
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];

		buf_puts(out, i ? ", " : "");
		str_put_plain(out, f->name);
		buf_puts(out, ": ");
		print_value_put_type(out, &f->type, depth + 1);
		for (uint32_t d = 0; d < f->rank; d++)
			buf_printf(out, "[%" PRIu64 "]", f->dims[d]);
	}
	buf_putc(out, '}');
}

static void print_value_put_type(struct buf *out, const struct dtype *t, int depth)
{
	static const char *const names[] = {
		[DT_BOOL] = "bool",   [DT_INT] = "int",         [DT_UINT] = "uint",
		[DT_FLOAT] = "float", [DT_COMPLEX] = "complex",
	};

	if (depth > DEPTH_MAX) {
		buf_puts(out, "...");
		return;
	}
	switch (t->kind) {
	case DT_BOOL:
		buf_puts(out, names[t->kind]);
		break;
	case DT_INT:
	case DT_UINT:
	case DT_FLOAT:
	case DT_COMPLEX:
		buf_printf(out, "%s%" PRIu64 "%s", names[t->kind], (uint64_t)t->size * 8,
			   t->big_endian && t->size > 1 ? " big-endian" : "");
		break;
	case DT_STRING:
		if (dt_is_char(t))
			buf_puts(out, "char");
		else
			buf_printf(out, "text of %" PRIu32 " bytes", t->size);
		break;
	case DT_OPAQUE:
		buf_printf(out, "opaque of %" PRIu32 " bytes", t->size);
		break;
	case DT_COMPOUND:
		print_value_put_fields(out, t, depth);
		break;
	case DT_VSTRING:
		buf_puts(out, "string");
		break;
	case DT_VLEN:
		buf_puts(out, "list of ");
		if (t->base)
			print_value_put_type(out, t->base, depth + 1);
		break;
	}
}

void info_type(struct buf *out, const struct dtype *t)
{
	print_value_put_type(out, t, 0);
}

static void put_string(struct buf *out, const char *s, size_t n, bool json)
{
	size_t shown = json || n <= TEXT_SHOWN ? n : TEXT_SHOWN;

	str_put_json(out, s, shown);
	if (shown < n)
		buf_puts(out, "...");
}

static void print_value_put_hex(struct buf *out, const uint8_t *p, size_t n, bool json)
{
	size_t shown = json || n <= TEXT_SHOWN / 2 ? n : TEXT_SHOWN / 2;

	buf_puts(out, json ? "\"0x" : "0x");
	for (size_t i = 0; i < shown; i++)
		buf_printf(out, "%02x", p[i]);
	buf_puts(out, json ? "\"" : shown < n ? "..." : "");
}

static double half_to_double(uint16_t h)
{
	int exponent = h >> 10 & 31, mantissa = h & 1023;
	double v;

	if (exponent == 31)
		v = mantissa ? NAN : INFINITY;
	else if (exponent)
		v = ldexp(mantissa + 1024, exponent - 25);
	else
		v = ldexp(mantissa, -24);
	return h >> 15 ? -v : v;
}

static double get_double(const uint8_t *p, uint32_t size)
{
	uint16_t h;
	float f;
	double d;

	switch (size) {
	case 2:
		memcpy(&h, p, sizeof(h));
		return half_to_double(h);
	case 4:
		memcpy(&f, p, sizeof(f));
		return (double)f;
	default:
		memcpy(&d, p, sizeof(d));
		return d;
	}
}

static void print_value_put_float(struct buf *out, const uint8_t *p, uint32_t size, bool json)
{
	double v = get_double(p, size);
	bool quoted = json && !isfinite(v);

	if (quoted)
		buf_putc(out, '"');
	if (size == 4 && isfinite(v))
		buf_printf(out, "%.9g", v);
	else
		str_put_double(out, v);
	if (quoted)
		buf_putc(out, '"');
}

static uint64_t get_uint(const uint8_t *p, uint32_t size)
{
	uint16_t v2;
	uint32_t v4;
	uint64_t v8;

	switch (size) {
	case 1:
		return p[0];
	case 2:
		memcpy(&v2, p, sizeof(v2));
		return v2;
	case 4:
		memcpy(&v4, p, sizeof(v4));
		return v4;
	default:
		memcpy(&v8, p, sizeof(v8));
		return v8;
	}
}

static void print_value_put_int(struct buf *out, const uint8_t *p, uint32_t size,
				bool is_signed)
{
	uint64_t v = get_uint(p, size);

	if (!is_signed)
		buf_printf(out, "%" PRIu64, v);
	else if (size < 8 && v >> (8 * size - 1))
		buf_printf(out, "%" PRId64, (int64_t)(v | UINT64_MAX << 8 * size));
	else
		buf_printf(out, "%" PRId64, (int64_t)v);
}

void info_fill(struct buf *out, const struct ds_array *a, bool json)
{
	const struct dtype *t = &a->type;
	uint8_t v[16];

	if (dt_is_vlen(t)) {
		put_string(out, a->fill_text.s ? a->fill_text.s : "", a->fill_text.len, json);
		return;
	}
	if (!a->fill || (t->kind <= DT_COMPLEX && (t->size == 0 || t->size > sizeof(v)))) {
		buf_puts(out, json ? "null" : "none");
		return;
	}
	if (t->kind <= DT_COMPLEX) {
		memcpy(v, a->fill, t->size);
		dt_swap_to_host(t, v, 1);
	}
	switch (t->kind) {
	case DT_BOOL:
		buf_puts(out, v[0] ? "true" : "false");
		break;
	case DT_INT:
	case DT_UINT:
		print_value_put_int(out, v, t->size, t->kind == DT_INT);
		break;
	case DT_FLOAT:
		print_value_put_float(out, v, t->size, json);
		break;
	case DT_COMPLEX:
		buf_puts(out, json ? "[" : "");
		print_value_put_float(out, v, t->size / 2, json);
		buf_puts(out, json ? ", " : " + i ");
		print_value_put_float(out, v + t->size / 2, t->size / 2, json);
		buf_puts(out, json ? "]" : "");
		break;
	case DT_STRING:
		put_string(out, (const char *)a->fill, strnlen((const char *)a->fill, t->size),
			   json);
		break;
	default:
		print_value_put_hex(out, a->fill, t->size, json);
	}
}
