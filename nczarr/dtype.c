/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.c - numpy's dtypes (Zarr v2) and data_types (Zarr v3) as types of the model.
 *
 * Both versions share three constructors: numbers, times and structures. A structure is presented
 * packed; if the stored one has gaps, the moves map its fields. */
#include "nczarr/dtype.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/endian.h"
#include "base/core/str.h"
#include "nczarr/source/array_metadata.h"

#define ELEMENT_MAX ((uint32_t)1 << 20) /* bytes of one element */
#define FIELDS_MAX 4096 /* fields of a whole dtype; names are compared pairwise */
#define MOVES_MAX ((size_t)1 << 16)
#define DEPTH_MAX 16  /* structures within structures */
#define TEXT_MAX 4096 /* of a structure's dtype as an attribute */
#define QUOTE_MAX 80  /* bytes of a name in a message */

/* dtype_reading - state of a dtype parser. */
struct dtype_reading {
	struct arena *a;
	bool old_char;
	uint32_t n_fields; /* so far, of all structures */
	bool lossy;        /* a field is presented as something else */
	struct err *e;
};

static int not_supported(const struct dtype_reading *r, const char *name)
{
	return err_set(r->e, -EOPNOTSUPP, "data type '%.*s' is not supported", QUOTE_MAX, name);
}

/* dtype_sized - a type whose size in bytes a document states. */
static int dtype_sized(const struct dtype_reading *r, enum dt_kind kind, uint64_t bytes,
		       const char *name, struct zr_dtype *ret)
{
	if (bytes == 0)
		return err_set(
			r->e, -EOPNOTSUPP,
			"data type '%.*s' has elements of 0 bytes, which is not supported",
			QUOTE_MAX, name);
	if (bytes > ELEMENT_MAX)
		return err_set(r->e, -ERANGE,
			       "data type '%.*s' has elements of %" PRIu64
			       " bytes, which exceeds %" PRIu32,
			       QUOTE_MAX, name, bytes, ELEMENT_MAX);
	ret->type.kind = kind;
	ret->type.size = (uint32_t)bytes;
	ret->stored = (uint32_t)bytes;
	return 0;
}

/* ---- times ---- */

/* CF's units for numpy's. CF has none for months and years, whose length varies, and readers do
 * not support weeks or less than nanoseconds. */
static const struct {
	const char *numpy, *span, *date;
} time_units[] = {
	{"D", "days", "days since 1970-01-01"},
	{"h", "hours", "hours since 1970-01-01"},
	{"m", "minutes", "minutes since 1970-01-01"},
	{"s", "seconds", "seconds since 1970-01-01"},
	{"ms", "milliseconds", "milliseconds since 1970-01-01"},
	{"us", "microseconds", "microseconds since 1970-01-01"},
	{"ns", "nanoseconds", "nanoseconds since 1970-01-01"},
	{"Y", NULL, NULL},
	{"M", NULL, NULL},
	{"W", NULL, NULL},
	{"ps", NULL, NULL},
	{"fs", NULL, NULL},
	{"as", NULL, NULL},
	{"generic", NULL, NULL},
};

/* make_time - 64-bit integers that count `factor` units. false: numpy has no such unit. */
static bool make_time(bool is_date, const char *unit, size_t len, uint64_t factor,
		      struct zr_dtype *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(time_units); i++) {
		const char *name = time_units[i].numpy;

		if (!str_is(name, unit, len))
			continue;
		ret->type.kind = DT_INT;
		ret->type.size = 8;
		ret->stored = 8;
		if (factor == 1)
			ret->units = is_date ? time_units[i].date : time_units[i].span;
		if (ret->units) {
			ret->is_date = is_date;
			ret->is_ns = strcmp(name, "ns") == 0;
		}
		return true;
	}
	return false;
}

/* ---- structures ---- */

/* dtype_record - state of a structure. */
struct dtype_record {
	struct dt_field *fields;
	uint32_t n, cap;
	uint64_t stored, size;  /* bytes so far; at most ELEMENT_MAX */
	struct zr_field *moves; /* owned; adjacent ones are merged */
	size_t n_moves, c_moves;
};

static int add_move(const struct dtype_reading *r, struct dtype_record *rec, uint64_t from,
		    uint64_t to, uint64_t bytes)
{
	struct zr_field *last = rec->n_moves ? &rec->moves[rec->n_moves - 1] : NULL;

	if (last && last->from + last->bytes == from && last->to + last->bytes == to) {
		last->bytes += (uint32_t)bytes;
		return 0;
	}
	if (rec->n_moves == MOVES_MAX)
		return err_set(r->e, -ERANGE, "a structure has more than %zu gaps", MOVES_MAX);
	if (grow_array(&rec->moves, &rec->c_moves, rec->n_moves + 1, sizeof(*rec->moves)))
		return err_nomem(r->e);
	rec->moves[rec->n_moves++] = (struct zr_field){
		.from = (uint32_t)from, .to = (uint32_t)to, .bytes = (uint32_t)bytes};
	return 0;
}

/* take_field - append the moves of `count` values of a field's type at the end of the record. */
static int take_field(const struct dtype_reading *r, struct dtype_record *rec,
		      const struct zr_dtype *t, uint64_t count)
{
	uint64_t from = rec->stored, to = rec->size, stored, size;
	int rc = 0;

	if (ckd_mul(&stored, count, (uint64_t)t->stored) ||
	    ckd_mul(&size, count, (uint64_t)t->type.size) || stored > ELEMENT_MAX ||
	    rec->stored + stored > ELEMENT_MAX)
		return err_set(r->e, -ERANGE, "a structure is larger than %" PRIu32 " bytes",
			       ELEMENT_MAX);
	if (t->conv != ZR_FIELDS)
		rc = add_move(r, rec, from, to, stored);
	for (uint64_t i = 0; t->conv == ZR_FIELDS && rc == 0 && i < count; i++)
		for (uint32_t k = 0; rc == 0 && k < t->n_moves; k++)
			rc = add_move(r, rec, from + i * t->stored + t->moves[k].from,
				      to + i * t->type.size + t->moves[k].to,
				      t->moves[k].bytes);
	rec->stored += stored;
	rec->size += size;
	return rc;
}

static int dtype_check_name(const struct dtype_reading *r, const struct dtype_record *rec,
			    const struct ds_text *name)
{
	if (name->len == 0 || name->len > DS_NAME_MAX || memchr(name->s, '\0', name->len))
		return err_set(r->e, -EBADMSG,
			       "the name of a field has %zu bytes, or contains a NUL",
			       name->len);
	for (uint32_t i = 0; i < rec->n; i++)
		if (str_is(rec->fields[i].name, name->s, name->len))
			return err_set(r->e, -EBADMSG, "two fields have the name '%.*s'",
				       (int)name->len, name->s);
	return 0;
}

/* dtype_present - the presented type of a field: numbers for bool and for characters, whose
 * codes add a dimension. */
static int dtype_present(struct dtype_reading *r, const struct ds_text *name,
			 struct zr_dtype *t, struct dt_field *f)
{
	if (t->type.kind == DT_OPAQUE || dt_is_vlen(&t->type))
		return err_set(r->e, -EOPNOTSUPP,
			       "field '%.*s' has a type that is not supported in a structure",
			       (int)name->len, name->s);
	r->lossy = r->lossy || t->type.kind == DT_BOOL || t->conv == ZR_UTF32 || t->numpy ||
		   t->units;
	if (t->type.kind == DT_BOOL)
		t->type.kind = DT_UINT;
	if (t->conv == ZR_UTF32) {
		uint64_t *dims = arena_alloc(r->a, (size_t)f->rank + 1, sizeof(*dims));

		if (!dims)
			return zr_full(r->a, r->e);
		for (uint32_t i = 0; i < f->rank; i++)
			dims[i] = f->dims[i];
		dims[f->rank++] = t->type.size / 4;
		f->dims = dims;
		t->type = (struct dtype){.kind = DT_UINT, .size = 4, .big_endian = t->big};
	}
	f->type = t->type;
	return 0;
}

/* add_field - append a field. rank and dims: of an array field. */
static int add_field(struct dtype_reading *r, struct dtype_record *rec,
		     const struct ds_text *name, struct zr_dtype t, uint32_t rank,
		     const uint64_t *dims)
{
	struct dt_field *f = &rec->fields[rec->n];
	uint64_t count = 1;
	int rc = dtype_check_name(r, rec, name);

	for (uint32_t i = 0; rc == 0 && i < rank; i++)
		if (ckd_mul(&count, count, dims[i]))
			rc = err_set(r->e, -ERANGE,
				     "field '%.*s' is larger than %" PRIu32 " bytes",
				     (int)name->len, name->s, ELEMENT_MAX);
	if (rc < 0)
		return rc;
	*f = (struct dt_field){.offset = (uint32_t)rec->size, .rank = rank, .dims = dims};
	f->name = arena_copy(r->a, name->s, name->len);
	if (!f->name)
		return zr_full(r->a, r->e);
	rc = take_field(r, rec, &t, count);
	rc = rc ? rc : dtype_present(r, name, &t, f);
	rec->n += rc == 0;
	return rc;
}

static int dtype_begin(struct dtype_reading *r, struct dtype_record *rec, size_t n,
		       unsigned int depth)
{
	*rec = (struct dtype_record){.fields = NULL};
	if (n == 0)
		return err_set(r->e, -EBADMSG, "a structure has no fields");
	if (n > FIELDS_MAX - r->n_fields)
		return err_set(r->e, -ERANGE, "a structure has more than %d fields",
			       FIELDS_MAX);
	if (depth >= DEPTH_MAX)
		return err_set(r->e, -ERANGE, "structures are nested more than %d deep",
			       DEPTH_MAX);
	r->n_fields += (uint32_t)n;
	rec->fields = arena_alloc(r->a, n, sizeof(*rec->fields));
	return rec->fields ? 0 : zr_full(r->a, r->e);
}

static int dtype_finish(const struct dtype_reading *r, const struct dtype_record *rec,
			struct zr_dtype *ret)
{
	bool as_stored = rec->n_moves == 1 && rec->stored == rec->size;

	if (rec->n == 0)
		return err_set(r->e, -EBADMSG, "a structure has no fields");
	ret->type = (struct dtype){.kind = DT_COMPOUND, .size = (uint32_t)rec->size};
	ret->type.n_fields = rec->n;
	ret->type.fields = rec->fields;
	ret->stored = (uint32_t)rec->stored;
	if (as_stored)
		return 0;
	ret->conv = ZR_FIELDS;
	ret->n_moves = (uint32_t)rec->n_moves;
	ret->moves = arena_copy(r->a, rec->moves, rec->n_moves * sizeof(*rec->moves));
	return ret->moves ? 0 : zr_full(r->a, r->e);
}

/* ---- Zarr v2 ---- */

bool zr_dtype_split(const char *s, struct zr_dtype_parts *ret)
{
	size_t digits, rest;

	*ret = (struct zr_dtype_parts){.big = false};
	if (*s && strchr("<>|=", *s)) {
		ret->order = *s++;
		ret->big = ret->order == '>' || (ret->order == '=' && HOST_BIG_ENDIAN);
	}
	ret->kind = *s ? *s++ : '\0';
	digits = strspn(s, "0123456789");
	ret->has_n = digits > 0;
	if (digits && str_u64(s, digits, UINT32_MAX, &ret->n) < 0)
		return false;
	s += digits;
	rest = strlen(s);
	if (rest == 0)
		return true;
	if (rest < 3 || s[0] != '[' || s[rest - 1] != ']')
		return false;
	ret->unit = s + 1;
	ret->len = rest - 2;
	return true;
}

static const struct {
	char letter;
	enum dt_kind kind;
	uint64_t sizes; /* bit n: n bytes; 0: no number */
} kinds[] = {
	{'b', DT_BOOL, 1 << 1},
	{'i', DT_INT, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8},
	{'u', DT_UINT, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8},
	{'f', DT_FLOAT, 1 << 2 | 1 << 4 | 1 << 8},
	{'c', DT_COMPLEX, 1 << 8 | 1 << 16},
	{'S', DT_STRING, 0},
};

bool zr_dtype_number(const struct zr_dtype_parts *t, struct dtype *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].letter != t->kind || t->n > 16 || !(kinds[i].sizes >> t->n & 1))
			continue;
		*ret = (struct dtype){.kind = kinds[i].kind, .size = (uint32_t)t->n};
		ret->big_endian = t->big && t->n > 1;
		return true;
	}
	return false;
}

char zr_dtype_letter(enum dt_kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].kind == kind)
			return kinds[i].letter;
	return 'V';
}

/* time_v2 - "M8[ns]", "m8[25s]"; without brackets the unit is not known. */
static int time_v2(const struct dtype_reading *r, const struct zr_dtype_parts *t, const char *s,
		   struct zr_dtype *ret)
{
	const char *unit = t->unit ? t->unit : "generic";
	size_t len = t->unit ? t->len : strlen(unit), digits = strspn(unit, "0123456789");
	uint64_t factor = 1;

	if (t->n != 8 || digits >= len ||
	    (digits && str_u64(unit, digits, INT32_MAX, &factor) < 0) || factor == 0 ||
	    !make_time(t->kind == 'M', unit + digits, len - digits, factor, ret))
		return not_supported(r, s);
	ret->type.big_endian = t->big;
	if (!ret->units) {
		ret->numpy = arena_strdup(r->a, s);
		if (!ret->numpy)
			return zr_full(r->a, r->e);
	}
	return 0;
}

static int plain_v2(const struct dtype_reading *r, const char *s, struct zr_dtype *ret)
{
	struct zr_dtype_parts t;

	if (!zr_dtype_split(s, &t))
		return not_supported(r, s);
	if (t.kind == 'M' || t.kind == 'm')
		return time_v2(r, &t, s, ret);
	if (t.unit)
		return not_supported(r, s);
	if (zr_dtype_number(&t, &ret->type)) {
		ret->stored = ret->type.size;
		return 0;
	}
	switch (t.kind) {
	case 'S':
		return dtype_sized(r, DT_STRING, t.n, s, ret);
	case 'V':
		return dtype_sized(r, DT_OPAQUE, t.n, s, ret);
	case 'U':
		if (r->old_char && t.n == 1)
			return dtype_sized(r, DT_STRING, 1, s, ret);
		ret->conv = ZR_UTF32;
		ret->big = t.big;
		return dtype_sized(r, DT_STRING, u64_min(4 * t.n, UINT32_MAX), s, ret);
	case 'O': /* the filter decides */
		if (t.has_n && t.n != 8)
			break;
		ret->type.kind = DT_VSTRING;
		return 0;
	default:
		break;
	}
	return not_supported(r, s);
}

static int any_v2(struct dtype_reading *r, const json_t *v, unsigned int depth,
		  struct zr_dtype *ret);

/* shape_v2 - third member of a field: a list of lengths, or one. */
static int shape_v2(const struct dtype_reading *r, const json_t *v, uint32_t *ret_rank,
		    const uint64_t **ret_dims)
{
	size_t n = v ? json_array_size(v) : 0;
	uint64_t *dims = NULL;
	int rc = 0;

	if (json_kind(v) == JSON_IS_NUMBER) {
		n = 1;
		dims = arena_alloc(r->a, n, sizeof(*dims));
		if (!dims)
			return zr_full(r->a, r->e);
		if (json_u64(v, dims) < 0 || dims[0] == 0)
			rc = err_set(r->e, -EBADMSG,
				     "the shape of a field is not a list: '%.*s'", QUOTE_MAX,
				     json_number_text(v));
	} else if (v && n >= DS_RANK_MAX) {
		rc = err_set(r->e, -ERANGE, "a field has %zu dimensions, which exceeds %d", n,
			     DS_RANK_MAX - 1);
	} else if (v) {
		rc = zr_lengths(r->a, v, "the shape of a field", (uint32_t)n, 1, &dims, r->e);
	}
	*ret_rank = (uint32_t)n;
	*ret_dims = n ? dims : NULL;
	return rc;
}

/* field_v2 - ["name", dtype], ["name", dtype, shape]; ["title", "name"] is allowed as the name. A
 * void field without a name is a gap: numpy writes aligned structures so. */
static int field_v2(struct dtype_reading *r, struct dtype_record *rec, const json_t *v,
		    unsigned int depth)
{
	size_t n = json_kind(v) == JSON_IS_LIST ? json_array_size(v) : 0;
	const json_t *named = json_array_get(v, 0);
	struct zr_dtype t = {.units = NULL};
	struct ds_text name;
	const uint64_t *dims = NULL;
	uint32_t rank = 0;
	int rc;

	if (json_kind(named) == JSON_IS_LIST && json_array_size(named) == 2)
		named = json_array_get(named, 1);
	if (n < 2 || n > 3 || !json_text_of(named, &name))
		return err_set(r->e, -EBADMSG,
			       "a field is not a list of name, dtype and shape");
	rc = any_v2(r, json_array_get(v, 1), depth + 1, &t);
	if (rc < 0)
		return err_wrap(r->e, rc, "field '%.*s'", (int)u64_min(name.len, QUOTE_MAX),
				name.s);
	if (n == 2 && name.len == 0 && t.type.kind == DT_OPAQUE) {
		if (rec->stored + t.stored > ELEMENT_MAX)
			return err_set(r->e, -ERANGE,
				       "a structure is larger than %" PRIu32 " bytes",
				       ELEMENT_MAX);
		rec->stored += t.stored;
		return 0;
	}
	rc = shape_v2(r, json_array_get(v, 2), &rank, &dims);
	return rc < 0 ? rc : add_field(r, rec, &name, t, rank, dims);
}

/* fields_of - a structure from a list of fields, each added by `one`. */
static int fields_of(struct dtype_reading *r, const json_t *v, unsigned int depth,
		     int (*one)(struct dtype_reading *r, struct dtype_record *rec,
				const json_t *v, unsigned int depth),
		     struct zr_dtype *ret)
{
	struct dtype_record rec;
	int rc = dtype_begin(r, &rec, json_array_size(v), depth);

	for (size_t i = 0; rc == 0 && i < json_array_size(v); i++)
		rc = one(r, &rec, json_array_get(v, i), depth);
	rc = rc ? rc : dtype_finish(r, &rec, ret);
	free(rec.moves);
	return rc;
}

static int any_v2(struct dtype_reading *r, const json_t *v, unsigned int depth,
		  struct zr_dtype *ret)
{
	struct ds_text s;

	*ret = (struct zr_dtype){.conv = ZR_AS_STORED};
	if (json_kind(v) == JSON_IS_LIST)
		return fields_of(r, v, depth, field_v2, ret);
	if (!json_text_of(v, &s) || memchr(s.s, '\0', s.len))
		return err_set(r->e, -EBADMSG,
			       "dtype is neither a string nor a list of fields");
	return plain_v2(r, s.s, ret);
}

/* dtype_keep_text - keep the dtype of a structure with converted fields, for an
 * attribute. */
static int dtype_keep_text(const struct dtype_reading *r, const json_t *v, struct zr_dtype *ret)
{
	auto_buf b = buf_of(TEXT_MAX);

	json_write_text(v, &b);
	if (!buf_ok(&b))
		return 0; /* it is too long, and omitted */
	ret->numpy = arena_copy(r->a, b.data, b.len);
	return ret->numpy ? 0 : zr_full(r->a, r->e);
}

int zr_dtype_v2(struct arena *a, const json_t *v, bool old_char, struct zr_dtype *ret,
		struct err *e)
{
	struct dtype_reading r = {.a = a, .old_char = old_char, .e = e};
	int rc = any_v2(&r, v, 0, ret);

	if (rc == 0 && r.lossy)
		rc = dtype_keep_text(&r, v, ret);
	return rc;
}

/* ---- Zarr v3 ---- */

static const struct {
	const char *name;
	enum dt_kind kind;
	uint32_t size;
} plain_v3[] = {
	{"bool", DT_BOOL, 1},
	{"int8", DT_INT, 1},
	{"int16", DT_INT, 2},
	{"int32", DT_INT, 4},
	{"int64", DT_INT, 8},
	{"uint8", DT_UINT, 1},
	{"uint16", DT_UINT, 2},
	{"uint32", DT_UINT, 4},
	{"uint64", DT_UINT, 8},
	{"float16", DT_FLOAT, 2},
	{"float32", DT_FLOAT, 4},
	{"float64", DT_FLOAT, 8},
	{"complex64", DT_COMPLEX, 8},
	{"complex128", DT_COMPLEX, 16},
	{"complex_float32", DT_COMPLEX, 8},
	{"complex_float64", DT_COMPLEX, 16},
	{"string", DT_VSTRING, 0},
	{"bytes", DT_VLEN, 0},
	{"variable_length_bytes", DT_VLEN, 0},
};

const char *zr_dtype_name3(const struct dtype *t)
{
	for (size_t i = 0; i < ARRAY_LEN(plain_v3); i++)
		if (plain_v3[i].kind == t->kind && plain_v3[i].size == t->size)
			return plain_v3[i].name; /* aliases come later */
	return NULL;
}

static int time_v3(const struct dtype_reading *r, const struct zr_named *t,
		   struct zr_dtype *ret)
{
	bool is_date = strcmp(t->name, "numpy.datetime64") == 0;
	const json_t *scale = json_get(t->config, "scale_factor");
	struct ds_text unit;
	uint64_t factor = 1;

	if (!json_text_of(json_get(t->config, "unit"), &unit) ||
	    (scale && json_u64(scale, &factor) < 0) || factor < 1 || factor > INT32_MAX)
		return err_set(
			r->e, -EBADMSG,
			"data type '%s' needs a unit and a scale_factor from 1 to 2147483647",
			t->name);
	if (str_is("\xce\xbcs", unit.s, unit.len))
		unit = (struct ds_text){.s = "us", .len = 2};
	if (!make_time(is_date, unit.s, unit.len, factor, ret))
		return err_set(r->e, -EOPNOTSUPP, "data type '%s' has the unknown unit '%.*s'",
			       t->name, (int)u64_min(unit.len, QUOTE_MAX), unit.s);
	if (ret->units)
		return 0;
	if (factor == 1)
		ret->numpy = zr_say(r->a, "%s[%.*s]", t->name + strlen("numpy."), (int)unit.len,
				    unit.s);
	else
		ret->numpy = zr_say(r->a, "%s[%" PRIu64 "%.*s]", t->name + strlen("numpy."),
				    factor, (int)unit.len, unit.s);
	return ret->numpy ? 0 : zr_full(r->a, r->e);
}

/* lengths_v3 - types with a length_bytes member. */
static int lengths_v3(const struct dtype_reading *r, const struct zr_named *t,
		      struct zr_dtype *ret)
{
	bool utf32 = strcmp(t->name, "fixed_length_utf32") == 0;
	enum dt_kind kind = strcmp(t->name, "raw_bytes") == 0 ? DT_OPAQUE : DT_STRING;
	uint64_t n;

	if (json_u64(json_get(t->config, "length_bytes"), &n) < 0 || (utf32 && n % 4))
		return err_set(r->e, -EBADMSG, "data type '%s' has no valid length_bytes",
			       t->name);
	if (utf32)
		ret->conv = ZR_UTF32;
	return dtype_sized(r, kind, n, t->name, ret);
}

static int any_v3(struct dtype_reading *r, const json_t *v, unsigned int depth,
		  struct zr_dtype *ret);

/* field_v3 - {"name": ..., "data_type": ...}, or a list of the two as in early documents. */
static int field_v3(struct dtype_reading *r, struct dtype_record *rec, const json_t *v,
		    unsigned int depth)
{
	const json_t *named = json_get(v, "name"), *type = json_get(v, "data_type");
	struct zr_dtype t;
	struct ds_text name;
	int rc;

	if (json_kind(v) == JSON_IS_LIST && json_array_size(v) == 2) {
		named = json_array_get(v, 0);
		type = json_array_get(v, 1);
	}
	if (!json_text_of(named, &name) || !type)
		return err_set(r->e, -EBADMSG, "a field has no name or no data_type");
	rc = any_v3(r, type, depth + 1, &t);
	if (rc < 0)
		return err_wrap(r->e, rc, "field '%.*s'", (int)u64_min(name.len, QUOTE_MAX),
				name.s);
	return add_field(r, rec, &name, t, 0, NULL);
}

static int any_v3(struct dtype_reading *r, const json_t *v, unsigned int depth,
		  struct zr_dtype *ret)
{
	static const struct dtype byte = {.kind = DT_UINT, .size = 1};
	struct zr_named t;
	uint64_t bits;
	int rc = zr_named_of(v, "data_type", &t, r->e);

	*ret = (struct zr_dtype){.conv = ZR_AS_STORED};
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(plain_v3); i++) {
		if (strcmp(plain_v3[i].name, t.name) != 0)
			continue;
		ret->type = (struct dtype){.kind = plain_v3[i].kind, .size = plain_v3[i].size};
		ret->stored = plain_v3[i].size;
		if (ret->type.kind == DT_VLEN)
			ret->type.base = &byte;
		return 0;
	}
	if (strcmp(t.name, "numpy.datetime64") == 0 || strcmp(t.name, "numpy.timedelta64") == 0)
		return time_v3(r, &t, ret);
	if (strcmp(t.name, "fixed_length_utf32") == 0 ||
	    strcmp(t.name, "null_terminated_bytes") == 0 || strcmp(t.name, "raw_bytes") == 0)
		return lengths_v3(r, &t, ret);
	if (strcmp(t.name, "struct") == 0 || strcmp(t.name, "structured") == 0) {
		v = json_get(t.config, "fields");
		if (json_kind(v) != JSON_IS_LIST)
			return err_set(r->e, -EBADMSG, "a structure has no list of fields");
		return fields_of(r, v, depth, field_v3, ret);
	}
	if (t.name[0] != 'r' || t.name[1] < '0' || t.name[1] > '9' ||
	    str_u64(t.name + 1, strlen(t.name + 1), INT64_MAX, &bits) < 0)
		return not_supported(r, t.name);
	if (bits % 8)
		return err_set(r->e, -EBADMSG,
			       "data type '%.*s' is not a whole number of bytes", QUOTE_MAX,
			       t.name);
	return dtype_sized(r, DT_OPAQUE, bits / 8, t.name, ret);
}

int zr_dtype_v3(struct arena *a, const json_t *v, struct zr_dtype *ret, struct err *e)
{
	struct dtype_reading r = {.a = a, .e = e};

	return any_v3(&r, v, 0, ret);
}
