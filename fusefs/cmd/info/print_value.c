/* SPDX-License-Identifier: BSD-3-Clause */
/* print_value.c - types and values as `info` writes them: for people, as JSON, and in CDL as ncdump
 * does. */
#include "fusefs/cmd/info/info_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "translate/model/value.h"

enum { TEXT_SHOWN = 64, DEPTH_MAX = 8 };

static void put_type(struct buf *out, const struct dtype *t, bool cdl, int depth);

/* put_type_fields - nested types are written out, as the model does not have netCDF's names for
 * them. */
static void put_type_fields(struct buf *out, const struct dtype *t, bool cdl, int depth)
{
	buf_puts(out, cdl ? "compound { " : "compound {");
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];

		if (cdl) {
			put_type(out, &f->type, cdl, depth + 1);
			buf_putc(out, ' ');
			info_cdl_name(out, f->name);
		} else {
			buf_puts(out, i ? ", " : "");
			str_put_plain(out, f->name);
			buf_puts(out, ": ");
			put_type(out, &f->type, cdl, depth + 1);
		}
		for (uint32_t d = 0; d < f->rank; d++)
			buf_printf(out, "%s%" PRIu64 "%s", !cdl ? "[" : d ? ", " : "(", f->dims[d],
				   !cdl ? "]" : d + 1 < f->rank ? "" : ")");
		buf_puts(out, cdl ? " ; " : "");
	}
	buf_putc(out, '}');
}

static void put_number_type(struct buf *out, const struct dtype *t, bool cdl)
{
	static const char *const names[] = {[DT_INT] = "int",
					    [DT_UINT] = "uint",
					    [DT_FLOAT] = "float",
					    [DT_COMPLEX] = "complex"};
	static const char *const ints[] = {[1] = "byte", [2] = "short", [4] = "int", [8] = "int64"};

	if (!cdl)
		buf_printf(out, "%s%" PRIu64 "%s", names[t->kind], (uint64_t)t->size * 8,
			   t->big_endian && t->size > 1 ? " big-endian" : "");
	else if (t->kind == DT_FLOAT)
		buf_puts(out, t->size == 4 ? "float" : t->size == 8 ? "double" : "float16");
	else if (t->kind == DT_COMPLEX)
		buf_puts(out, t->size == 8 ? "complex64" : "complex128");
	else if (t->size >= ARRAY_LEN(ints) || !ints[t->size])
		buf_putc(out, '?');
	else
		buf_printf(out, "%s%s", t->kind == DT_UINT ? "u" : "", ints[t->size]);
}

/* put_type - cdl: as ncdump writes it. */
static void put_type(struct buf *out, const struct dtype *t, bool cdl, int depth)
{
	if (depth > DEPTH_MAX) {
		buf_puts(out, "...");
		return;
	}
	switch (t->kind) {
	case DT_BOOL:
		buf_puts(out, "bool");
		break;
	case DT_INT:
	case DT_UINT:
	case DT_FLOAT:
	case DT_COMPLEX:
		put_number_type(out, t, cdl);
		break;
	case DT_STRING:
		buf_puts(out, dt_is_char(t) ? "char" : "string");
		if (!cdl && !dt_is_char(t))
			buf_printf(out, " of %" PRIu32 " bytes", t->size);
		break;
	case DT_OPAQUE:
		buf_printf(out, cdl ? "opaque(%" PRIu32 ")" : "opaque of %" PRIu32 " bytes",
			   t->size);
		break;
	case DT_COMPOUND:
		put_type_fields(out, t, cdl, depth);
		break;
	case DT_VSTRING:
		buf_puts(out, "string");
		break;
	case DT_VLEN:
		buf_puts(out, cdl ? "" : "list of ");
		if (t->base)
			put_type(out, t->base, cdl, depth + 1);
		buf_puts(out, cdl ? "(*)" : "");
		break;
	}
}

void info_type(struct buf *out, const struct dtype *t)
{
	put_type(out, t, false, 0);
}

void info_cdl_type(struct buf *out, const struct dtype *t)
{
	put_type(out, t, true, 0);
}

void info_cdl_name(struct buf *out, const char *name)
{
	char one[2] = "";

	for (const char *p = name; *p; p++) {
		if (strchr(" !\"#$%&'()*,:;<=>?[\\]^`{|}~", *p) ||
		    (p == name && *p >= '0' && *p <= '9'))
			buf_putc(out, '\\');
		one[0] = *p;
		if ((unsigned char)*p >= 0x80)
			buf_putc(out, *p);
		else
			str_put_plain(out, one);
	}
}

/* put_cdl_string - append a string attribute as ncdump does. */
static void put_cdl_string(struct buf *out, const char *s, size_t n)
{
	static const char from[] = "\b\f\n\r\t\v\\'\"", to[] = "bfnrtv\\'\"";

	while (n > 0 && s[n - 1] == '\0')
		n--;
	buf_putc(out, '"');
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)s[i];
		const char *at = c ? strchr(from, c) : NULL;

		if (at)
			buf_printf(out, "\\%c", to[at - from]);
		else if (c < 0x20 || c == 0x7f || (i > 0 && (unsigned char)s[i - 1] == 0xc2 &&
						    c >= 0x80 && c < 0xa0))
			buf_printf(out, "\\%03o", c); /* terminals interpret the last one, too */
		else
			buf_putc(out, (char)c);
	}
	buf_putc(out, '"');
}

static void put_string(struct buf *out, const char *s, size_t n, enum info_style style)
{
	size_t shown = style == INFO_JSON || n <= TEXT_SHOWN ? n : TEXT_SHOWN;

	if (style == INFO_CDL) {
		put_cdl_string(out, s, n);
		return;
	}
	str_put_json(out, s, shown);
	if (shown < n)
		buf_puts(out, "...");
}

static void print_value_put_hex(struct buf *out, const uint8_t *p, size_t n,
				enum info_style style)
{
	const bool json = style == INFO_JSON;
	size_t shown = style != INFO_TEXT || n <= TEXT_SHOWN / 2 ? n : TEXT_SHOWN / 2;

	buf_puts(out, json ? "\"0x" : style == INFO_CDL ? "0X" : "0x");
	for (size_t i = 0; i < shown; i++)
		buf_printf(out, style == INFO_CDL ? "%02X" : "%02x", p[i]);
	buf_puts(out, json ? "\"" : shown < n ? "..." : "");
}

/* put_cdl_float - append the digits that ncdump writes: those that are exact for the type. */
static void put_cdl_float(struct buf *out, double v, uint32_t size)
{
	const char *end = size == 4 ? "f" : "";
	char text[40];
	size_t n, last;

	if (!isfinite(v)) {
		str_put_double(out, v);
		buf_puts(out, end);
		return;
	}
	(void)snprintf(text, sizeof(text), "%#.*g", size == 8 ? 15 : 7, v); /* fits */
	n = strcspn(text, "e");
	for (last = n; text[last - 1] == '0';)
		last--;
	buf_printf(out, "%.*s%s%s", (int)last, text, text + n, end);
}

static void print_value_put_float(struct buf *out, const uint8_t *p, uint32_t size,
				  enum info_style style)
{
	const struct num_type type = {NUM_FLOAT, size, HOST_BIG_ENDIAN};
	double v;
	bool quoted;

	num_load_real(type, p, 1, &v);
	quoted = style == INFO_JSON && !isfinite(v);
	if (style == INFO_CDL) {
		put_cdl_float(out, v, size);
		return;
	}
	if (quoted)
		buf_putc(out, '"');
	if (size == 4 && isfinite(v))
		buf_printf(out, "%.9g", v);
	else
		str_put_double(out, v);
	if (quoted)
		buf_putc(out, '"');
}

static void print_value_put_int(struct buf *out, const uint8_t *p, uint32_t size, bool is_signed,
				enum info_style style)
{
	static const char *const ends[] = {[1] = "b", [2] = "s", [8] = "LL"};
	static const char *const unsigned_ends[] = {
		[1] = "UB", [2] = "US", [4] = "U", [8] = "ULL"};
	const char *end = size > 8 ? NULL : is_signed ? ends[size] : unsigned_ends[size];
	uint64_t v = get_uint(p, size, HOST_BIG_ENDIAN);

	if (!is_signed)
		buf_printf(out, "%" PRIu64, v);
	else if (size < 8 && v >> (8 * size - 1))
		buf_printf(out, "%" PRId64, (int64_t)(v | UINT64_MAX << 8 * size));
	else
		buf_printf(out, "%" PRId64, (int64_t)v);
	if (style == INFO_CDL && end)
		buf_puts(out, end);
}

static void put_element(struct buf *out, const struct dtype *t, const uint8_t *p,
			enum info_style style, int depth);

/* put_fields - append the fields of a compound, or its values. */
static void put_fields(struct buf *out, const struct dtype *t, const uint8_t *p,
		       enum info_style style, int depth)
{
	const bool json = style == INFO_JSON;

	buf_putc(out, json ? '[' : '{');
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];
		uint64_t n = 1;

		for (uint32_t d = 0; d < f->rank; d++)
			n *= f->dims[d];
		buf_puts(out, i ? ", " : "");
		if (f->rank)
			buf_putc(out, json ? '[' : '{');
		for (uint64_t k = 0; k < n; k++) {
			buf_puts(out, k ? ", " : "");
			put_element(out, &f->type, p + f->offset + k * f->type.size, style,
				    depth + 1);
		}
		if (f->rank)
			buf_putc(out, json ? ']' : '}');
	}
	buf_putc(out, json ? ']' : '}');
}

/* put_element - one element of a fixed size in the host's byte order. */
static void put_element(struct buf *out, const struct dtype *t, const uint8_t *p,
			enum info_style style, int depth)
{
	switch (t->kind) {
	case DT_BOOL:
		buf_puts(out, p[0] ? "true" : "false");
		break;
	case DT_INT:
	case DT_UINT:
		print_value_put_int(out, p, t->size, t->kind == DT_INT, style);
		break;
	case DT_FLOAT:
		print_value_put_float(out, p, t->size, style);
		break;
	case DT_COMPLEX:
		buf_puts(out, style == INFO_JSON ? "[" : style == INFO_CDL ? "{" : "");
		print_value_put_float(out, p, t->size / 2, style);
		buf_puts(out, style == INFO_TEXT ? " + i " : ", ");
		print_value_put_float(out, p + t->size / 2, t->size / 2, style);
		buf_puts(out, style == INFO_JSON ? "]" : style == INFO_CDL ? "}" : "");
		break;
	case DT_STRING:
		put_string(out, (const char *)p, strnlen((const char *)p, t->size), style);
		break;
	case DT_COMPOUND:
		if (style != INFO_TEXT && depth < DEPTH_MAX) {
			put_fields(out, t, p, style, depth);
			break;
		}
		print_value_put_hex(out, p, t->size, style);
		break;
	default:
		print_value_put_hex(out, p, t->size, style);
	}
}

void info_fill(struct buf *out, const struct ds_array *a, enum info_style style)
{
	const struct dtype *t = &a->type;
	uint8_t v[16];

	if (dt_is_vlen(t)) {
		put_string(out, a->fill_text.s ? a->fill_text.s : "", a->fill_text.len, style);
		return;
	}
	if (!a->fill || (t->kind <= DT_COMPLEX && (t->size == 0 || t->size > sizeof(v)))) {
		buf_puts(out, style == INFO_JSON ? "null" : "none");
		return;
	}
	if (t->kind > DT_COMPLEX) {
		if (t->kind == DT_COMPOUND) /* its bytes, in the order of the file */
			print_value_put_hex(out, a->fill, t->size, style);
		else
			put_element(out, t, a->fill, style, 0);
		return;
	}
	memcpy(v, a->fill, t->size);
	dt_swap_to_host(t, v, 1);
	put_element(out, t, v, style, 0);
}

/* is_netcdf_default - true if an element, in the host's order, is netCDF's NC_FILL_... */
static bool is_netcdf_default(const struct dtype *t, const uint8_t *v)
{
	const uint64_t bits = t->size < 8 ? ((uint64_t)1 << 8 * t->size) - 1 : UINT64_MAX;
	static const float f4 = 9.9692099683868690e+36f;
	static const double f8 = 9.9692099683868690e+36;

	switch (t->kind) {
	case DT_INT: /* the lowest value plus 1, for 8 bytes plus 2 */
		return get_uint(v, t->size, HOST_BIG_ENDIAN) ==
		       (bits >> 1) + (t->size == 8 ? 3 : 2);
	case DT_UINT: /* the highest value, for 8 bytes minus 1 */
		return get_uint(v, t->size, HOST_BIG_ENDIAN) == bits - (t->size == 8 ? 1 : 0);
	case DT_FLOAT:
		return t->size == 4   ? memcmp(v, &f4, 4) == 0
		       : t->size == 8 ? memcmp(v, &f8, 8) == 0
				      : false;
	default:
		return dt_is_char(t) && v[0] == '\0';
	}
}

enum info_fill_kind info_fill_kind(const struct ds_array *a)
{
	uint8_t v[8];

	if (!a->fill_defined)
		return INFO_FILL_NONE;
	if (ds_attr_find(a->attrs, a->n_attrs, "_FillValue"))
		return INFO_FILL_FILE;
	if (a->type.kind == DT_VSTRING)
		return a->fill_text.len ? INFO_FILL_FILE : INFO_FILL_NETCDF;
	if (!a->fill || a->type.size == 0 || a->type.size > sizeof(v))
		return INFO_FILL_FILE;
	memcpy(v, a->fill, a->type.size);
	dt_swap_to_host(&a->type, v, 1);
	return is_netcdf_default(&a->type, v) ? INFO_FILL_NETCDF : INFO_FILL_FILE;
}

/* put_list - append the elements of a variable-length value. */
static void put_list(struct buf *out, const struct dtype *base, const struct ds_text *v,
		     enum info_style style)
{
	const bool json = style == INFO_JSON;
	const size_t size = base ? base->size : 0;

	buf_putc(out, json ? '[' : '{');
	for (size_t at = 0; size && at + size <= v->len; at += size) {
		buf_puts(out, at ? ", " : "");
		put_element(out, base, (const uint8_t *)v->s + at, style, 0);
	}
	buf_putc(out, json ? ']' : '}');
}

static void put_attr_element(struct buf *out, const struct ds_attr *a, uint64_t i,
			     enum info_style style)
{
	if (a->strings && a->type.kind == DT_VLEN)
		put_list(out, a->type.base, &a->strings[i], style);
	else if (a->strings)
		put_string(out, a->strings[i].s ? a->strings[i].s : "", a->strings[i].len, style);
	else if (a->data)
		put_element(out, &a->type, a->data + i * a->type.size, style, 0);
	else
		buf_puts(out, "null");
}

void info_attr_value(struct buf *out, const struct ds_attr *attr, enum info_style style)
{
	const bool list = style == INFO_JSON && attr->n != 1;

	if (attr->n == 0 && style == INFO_CDL)
		buf_puts(out, "\"\""); /* as ncdump does for every type */
	buf_puts(out, list ? "[" : "");
	for (uint64_t i = 0; i < attr->n && buf_ok(out); i++) {
		buf_puts(out, i ? ", " : "");
		put_attr_element(out, attr, i, style);
	}
	buf_puts(out, list ? "]" : "");
}
