/* SPDX-License-Identifier: BSD-3-Clause */
/* dtypes of Zarr v2 and data_types of Zarr v3: what they become, and what is refused. */
#include "tests/unit/nczarr/source/nczarr_zr.h"

#include <errno.h>
#include <stdio.h>

static int read_type(struct arena *a, int version, bool old_char, const char *text,
		     struct zr_dtype *ret, struct err *e)
{
	json_t *v = zr_json(text);
	int rc = version == 2 ? zr_dtype_v2(a, v, old_char, ret, e) : zr_dtype_v3(a, v, ret, e);

	json_decref(v);
	return rc;
}

/* simple - a type of these properties, stored as presented. */
static void simple(int version, const char *text, enum dt_kind kind, uint32_t size, bool big)
{
	struct zr_dtype t;
	struct arena a;
	struct err e = ERR_INIT;

	arena_init(&a, 1 << 20);
	if (read_type(&a, version, false, text, &t, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_int_equal(t.type.kind, kind);
	assert_int_equal(t.type.size, size);
	assert_int_equal(t.stored, size);
	assert_int_equal(t.type.big_endian, big);
	assert_int_equal(t.conv, ZR_AS_STORED);
	assert_null(t.units);
	assert_null(t.numpy);
	arena_release(&a);
}

static void test_v2_simple(void **state)
{
	(void)state;
	simple(2, "'|b1'", DT_BOOL, 1, false);
	simple(2, "'|i1'", DT_INT, 1, false);
	simple(2, "'<i1'", DT_INT, 1, false);
	simple(2, "'>i1'", DT_INT, 1, false);
	simple(2, "'i4'", DT_INT, 4, false);
	simple(2, "'>i2'", DT_INT, 2, true);
	simple(2, "'<i8'", DT_INT, 8, false);
	simple(2, "'|u1'", DT_UINT, 1, false);
	simple(2, "'>u8'", DT_UINT, 8, true);
	simple(2, "'<f2'", DT_FLOAT, 2, false);
	simple(2, "'>f4'", DT_FLOAT, 4, true);
	simple(2, "'=f8'", DT_FLOAT, 8, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	simple(2, "'<c8'", DT_COMPLEX, 8, false);
	simple(2, "'>c16'", DT_COMPLEX, 16, true);
	simple(2, "'|S1'", DT_STRING, 1, false);
	simple(2, "'>S1'", DT_STRING, 1, false);
	simple(2, "'|S12'", DT_STRING, 12, false);
	simple(2, "'|V7'", DT_OPAQUE, 7, false);
	simple(2, "'|S1048576'", DT_STRING, 1048576, false);
	simple(2, "'|O'", DT_VSTRING, 0, false);
	simple(2, "'|O8'", DT_VSTRING, 0, false);
}

static void test_v3_simple(void **state)
{
	(void)state;
	simple(3, "'bool'", DT_BOOL, 1, false);
	simple(3, "'int8'", DT_INT, 1, false);
	simple(3, "'int64'", DT_INT, 8, false);
	simple(3, "'uint16'", DT_UINT, 2, false);
	simple(3, "{'name': 'uint32'}", DT_UINT, 4, false);
	simple(3, "'float16'", DT_FLOAT, 2, false);
	simple(3, "'float64'", DT_FLOAT, 8, false);
	simple(3, "'complex64'", DT_COMPLEX, 8, false);
	simple(3, "'complex_float64'", DT_COMPLEX, 16, false);
	simple(3, "'r8'", DT_OPAQUE, 1, false);
	simple(3, "'r24'", DT_OPAQUE, 3, false);
	simple(3, "'string'", DT_VSTRING, 0, false);
	simple(3, "'bytes'", DT_VLEN, 0, false);
	simple(3, "{'name': 'variable_length_bytes', 'configuration': {}}", DT_VLEN, 0, false);
	simple(3, "{'name': 'null_terminated_bytes', 'configuration': {'length_bytes': 5}}",
	       DT_STRING, 5, false);
	simple(3, "{'name': 'raw_bytes', 'configuration': {'length_bytes': 5}}", DT_OPAQUE, 5,
	       false);
}

static void test_chars(void **state)
{
	struct zr_dtype t;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(read_type(&a, 2, false, "'>U7'", &t, NULL), 0);
	assert_int_equal(t.type.kind, DT_STRING);
	assert_int_equal(t.type.size, 28);
	assert_int_equal(t.stored, 28);
	assert_int_equal(t.conv, ZR_UTF32);
	assert_true(t.big);
	assert_false(t.type.big_endian);
	assert_int_equal(read_type(&a, 2, false, "'<U1'", &t, NULL), 0);
	assert_int_equal(t.stored, 4);
	assert_false(t.big);
	assert_int_equal(read_type(&a, 2, true, "'<U1'", &t, NULL), 0);
	assert_int_equal(t.stored, 1);
	assert_int_equal(t.conv, ZR_AS_STORED);
	assert_true(dt_is_char(&t.type));
	assert_int_equal(read_type(&a, 2, true, "'<U2'", &t, NULL), 0);
	assert_int_equal(t.stored, 8);
	assert_int_equal(
		read_type(
			&a, 3, false,
			"{'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 8}}",
			&t, NULL),
		0);
	assert_int_equal(t.stored, 8);
	assert_int_equal(t.conv, ZR_UTF32);
	arena_release(&a);
}

static void time_is(int version, const char *text, const char *units, bool is_date, bool is_ns,
		    bool big, const char *numpy)
{
	struct zr_dtype t;
	struct arena a;
	struct err e = ERR_INIT;

	arena_init(&a, 1 << 20);
	if (read_type(&a, version, false, text, &t, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_int_equal(t.type.kind, DT_INT);
	assert_int_equal(t.type.size, 8);
	assert_int_equal(t.stored, 8);
	assert_int_equal(t.type.big_endian, big);
	if (units)
		assert_string_equal(t.units, units);
	else
		assert_null(t.units);
	if (numpy)
		assert_string_equal(t.numpy, numpy);
	else
		assert_null(t.numpy);
	assert_int_equal(t.is_date, is_date);
	assert_int_equal(t.is_ns, is_ns);
	arena_release(&a);
}

#define V3_TIME(kind, unit, factor)                                                            \
	"{'name': 'numpy." kind "', 'configuration': {'unit': '" unit                          \
	"', 'scale_factor': " factor "}}"

static void test_times(void **state)
{
	(void)state;
	time_is(2, "'<M8[D]'", "days since 1970-01-01", true, false, false, NULL);
	time_is(2, "'<M8[h]'", "hours since 1970-01-01", true, false, false, NULL);
	time_is(2, "'>M8[m]'", "minutes since 1970-01-01", true, false, true, NULL);
	time_is(2, "'<M8[1s]'", "seconds since 1970-01-01", true, false, false, NULL);
	time_is(2, "'<M8[ns]'", "nanoseconds since 1970-01-01", true, true, false, NULL);
	time_is(2, "'<m8[us]'", "microseconds", false, false, false, NULL);
	time_is(2, "'>m8[ms]'", "milliseconds", false, false, true, NULL);
	time_is(2, "'<m8[ns]'", "nanoseconds", false, true, false, NULL);
	time_is(2, "'<M8[Y]'", NULL, false, false, false, "<M8[Y]");
	time_is(2, "'<M8[M]'", NULL, false, false, false, "<M8[M]");
	time_is(2, "'<m8[W]'", NULL, false, false, false, "<m8[W]");
	time_is(2, "'<M8[10ms]'", NULL, false, false, false, "<M8[10ms]");
	time_is(2, "'<M8[10ns]'", NULL, false, false, false, "<M8[10ns]");
	time_is(2, "'>m8'", NULL, false, false, true, ">m8");
	time_is(3, V3_TIME("datetime64", "s", "1"), "seconds since 1970-01-01", true, false,
		false, NULL);
	time_is(3, V3_TIME("timedelta64", "\xce\xbcs", "1"), "microseconds", false, false,
		false, NULL);
	time_is(3, V3_TIME("timedelta64", "us", "10"), NULL, false, false, false,
		"timedelta64[10us]");
	time_is(3, V3_TIME("datetime64", "W", "1"), NULL, false, false, false, "datetime64[W]");
	time_is(3, V3_TIME("datetime64", "generic", "1"), NULL, false, false, false,
		"datetime64[generic]");
}

static void test_structure(void **state)
{
	struct zr_dtype t;
	const struct dt_field *f;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(
		read_type(&a, 2, false,
			  "[['a', '|u1'], ['p', [['x', '<f8'], ['y', '>i2', [2, 3]]]], "
			  "[['a title', 's'], '|S3'], ['k', '<u2', 4]]",
			  &t, NULL),
		0);
	assert_int_equal(t.type.kind, DT_COMPOUND);
	assert_int_equal(t.type.size, 1 + 8 + 12 + 3 + 8);
	assert_int_equal(t.stored, t.type.size);
	assert_int_equal(t.conv, ZR_AS_STORED);
	assert_int_equal(t.n_moves, 0);
	assert_null(t.numpy);
	assert_int_equal(t.type.n_fields, 4);
	f = t.type.fields;
	assert_string_equal(f[1].name, "p");
	assert_int_equal(f[1].offset, 1);
	assert_int_equal(f[1].type.kind, DT_COMPOUND);
	assert_int_equal(f[1].type.size, 20);
	assert_int_equal(f[1].type.fields[1].offset, 8);
	assert_int_equal(f[1].type.fields[1].rank, 2);
	assert_int_equal(f[1].type.fields[1].dims[1], 3);
	assert_true(f[1].type.fields[1].type.big_endian);
	assert_false(f[1].type.fields[0].type.big_endian);
	assert_string_equal(f[2].name, "s");
	assert_int_equal(f[2].offset, 21);
	assert_int_equal(f[3].rank, 1);
	assert_int_equal(f[3].dims[0], 4);
	arena_release(&a);
}

static void test_presented_fields(void **state)
{
	static const char text[] =
		"[['b', '|b1'], ['u', '>U3'], ['v', '<U2', [5]], ['t', '<M8[D]']]";
	struct zr_dtype t;
	const struct dt_field *f;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(read_type(&a, 2, false, text, &t, NULL), 0);
	assert_int_equal(t.type.size, 1 + 12 + 40 + 8);
	assert_int_equal(t.conv, ZR_AS_STORED);
	f = t.type.fields;
	assert_int_equal(f[0].type.kind, DT_UINT);
	assert_int_equal(f[1].type.kind, DT_UINT);
	assert_int_equal(f[1].type.size, 4);
	assert_true(f[1].type.big_endian);
	assert_int_equal(f[1].rank, 1);
	assert_int_equal(f[1].dims[0], 3);
	assert_int_equal(f[2].rank, 2);
	assert_int_equal(f[2].dims[0], 5);
	assert_int_equal(f[2].dims[1], 2);
	assert_int_equal(f[3].type.kind, DT_INT);
	assert_non_null(t.numpy);
	assert_memory_equal(t.numpy, "[[\"b\",\"|b1\"],", 13);
	arena_release(&a);
}

/* numpy.dtype([('a','i1'),('b','<i4'),('c','u1')], align=True), alone and as an array in another */
static void test_gaps(void **state)
{
	static const char inner[] =
		"[['a', '|i1'], ['', '|V3'], ['b', '<i4'], ['c', '|u1'], ['', '|V3']]";
	struct zr_dtype t;
	struct arena a;
	char text[200];

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(read_type(&a, 2, false, inner, &t, NULL), 0);
	assert_int_equal(t.stored, 12);
	assert_int_equal(t.type.size, 6);
	assert_int_equal(t.type.n_fields, 3);
	assert_int_equal(t.type.fields[1].offset, 1);
	assert_int_equal(t.conv, ZR_FIELDS);
	assert_int_equal(t.n_moves, 2);
	assert_int_equal(t.moves[0].bytes, 1);
	assert_int_equal(t.moves[1].from, 4);
	assert_int_equal(t.moves[1].to, 1);
	assert_int_equal(t.moves[1].bytes, 5);

	(void)snprintf(text, sizeof(text), "[['n', %s, [2]], ['z', '<i2']]", inner);
	assert_int_equal(read_type(&a, 2, false, text, &t, NULL), 0);
	assert_int_equal(t.stored, 26);
	assert_int_equal(t.type.size, 14);
	assert_int_equal(t.n_moves, 5);
	assert_int_equal(t.moves[2].from, 12);
	assert_int_equal(t.moves[2].to, 6);
	assert_int_equal(t.moves[4].from, 24);
	assert_int_equal(t.moves[4].to, 12);
	assert_int_equal(t.moves[4].bytes, 2);
	arena_release(&a);
}

static void test_v3_structure(void **state)
{
	static const char *const texts[] = {
		"{'name': 'struct', 'configuration': {'fields': [{'name': 'x', 'data_type': "
		"'float32'}, {'name': 't', 'data_type': " V3_TIME("datetime64", "s",
								  "1") "}]}}",
		"{'name': 'structured', 'configuration': {'fields': [['x', 'float32'], ['t', "
		"'int64']]}}",
	};
	struct zr_dtype t;
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(read_type(&a, 3, false, texts[i], &t, NULL), 0);
		assert_int_equal(t.type.kind, DT_COMPOUND);
		assert_int_equal(t.stored, 12);
		assert_int_equal(t.type.n_fields, 2);
		assert_int_equal(t.type.fields[1].offset, 4);
		assert_int_equal(t.type.fields[1].type.kind, DT_INT);
		assert_null(t.numpy);
	}
	arena_release(&a);
}

static void test_refused(void **state)
{
	static const struct {
		int version, rc;
		const char *text;
	} rows[] = {
		{2, -EOPNOTSUPP, "'|S0'"},
		{2, -EOPNOTSUPP, "'<U0'"},
		{2, -EOPNOTSUPP, "'|V0'"},
		{2, -EOPNOTSUPP, "'S'"},
		{2, -EOPNOTSUPP, "'<f16'"},
		{2, -EOPNOTSUPP, "'<c32'"},
		{2, -EOPNOTSUPP, "'<i3'"},
		{2, -EOPNOTSUPP, "'<i99999999999999999999999'"},
		{2, -EOPNOTSUPP, "'<i08'"},
		{2, -EOPNOTSUPP, "'<i4x'"},
		{2, -EOPNOTSUPP, "'<i4[s]'"},
		{2, -EOPNOTSUPP, "''"},
		{2, -EOPNOTSUPP, "'<'"},
		{2, -EOPNOTSUPP, "'<M4[s]'"},
		{2, -EOPNOTSUPP, "'<M8[]'"},
		{2, -EOPNOTSUPP, "'<M8[10]'"},
		{2, -EOPNOTSUPP, "'<M8[0s]'"},
		{2, -EOPNOTSUPP, "'<M8[4294967296s]'"},
		{2, -EOPNOTSUPP, "'<M8[parsec]'"},
		{2, -EOPNOTSUPP, "'<M8[s'"},
		{2, -ERANGE, "'|S1048577'"},
		{2, -ERANGE, "'<U262145'"},
		{2, -ERANGE, "'<U1073741825'"},
		{2, -ERANGE, "'<U4294967295'"},
		{2, -EBADMSG, "4"},
		{2, -EBADMSG, "null"},
		{2, -EBADMSG, "{'a': 1}"},
		{2, -EBADMSG, "'<i4\\u0000'"},
		{2, -EBADMSG, "[]"},
		{2, -EBADMSG, "[['', '|V3']]"},
		{2, -EBADMSG, "[['a']]"},
		{2, -EBADMSG, "['a', '<i4']"},
		{2, -EBADMSG, "[['a', '<i4', [1], 2]]"},
		{2, -EBADMSG, "[['', '<i4']]"},
		{2, -EBADMSG, "[['a\\u0000b', '<i4']]"},
		{2, -EBADMSG, "[['a', '<i4'], ['a', '<i4']]"},
		{2, -EBADMSG, "[['a', '<i4', [0]]]"},
		{2, -EBADMSG, "[['a', '<i4', [-1]]]"},
		{2, -EBADMSG, "[['a', '<i4', [1.5]]]"},
		{2, -EBADMSG, "[['a', '<i4', 'x']]"},
		{2, -EBADMSG, "[['a', '<i4', 0]]"},
		{2, -EOPNOTSUPP, "[['a', '|V3']]"},
		{2, -EOPNOTSUPP, "[['a', '|O']]"},
		{2, -EOPNOTSUPP, "[['a', '<f16']]"},
		{2, -ERANGE, "[['a', '<i4', [4294967296, 4294967296]]]"},
		{2, -ERANGE, "[['a', '<i4', [9223372036854775807, 3]]]"},
		{2, -ERANGE, "[['a', '<i4', 262145]]"},
		{2, -ERANGE, "[['a', '|S1048576'], ['b', '|i1']]"},
		{2, -ERANGE, "[['a', '|S1048576'], ['', '|V1']]"},
		{3, -EOPNOTSUPP, "'bfloat16'"},
		{3, -EOPNOTSUPP, "{'name': 'optional', 'configuration': {'name': 'uint8'}}"},
		{3, -EOPNOTSUPP, "'r'"},
		{3, -EOPNOTSUPP, "'r0'"},
		{3, -EOPNOTSUPP, "'r8x'"},
		{3, -EBADMSG, "'r7'"},
		{3, -ERANGE, "'r8388616'"},
		{3, -EBADMSG, "''"},
		{3, -EBADMSG, "{}"},
		{3, -EBADMSG, "{'name': 5}"},
		{3, -EBADMSG, "{'name': 'int32', 'configuration': []}"},
		{3, -EBADMSG, "{'name': 'null_terminated_bytes'}"},
		{3, -EBADMSG, "{'name': 'raw_bytes', 'configuration': {'length_bytes': -1}}"},
		{3, -EBADMSG,
		 "{'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 6}}"},
		{3, -EBADMSG, "{'name': 'numpy.datetime64'}"},
		{3, -EBADMSG, V3_TIME("datetime64", "s", "0")},
		{3, -EBADMSG, V3_TIME("datetime64", "s", "2147483648")},
		{3, -EOPNOTSUPP, V3_TIME("datetime64", "fortnight", "1")},
		{3, -EBADMSG, "{'name': 'struct'}"},
		{3, -EBADMSG, "{'name': 'struct', 'configuration': {'fields': []}}"},
		{3, -EBADMSG,
		 "{'name': 'struct', 'configuration': {'fields': [{'name': 'a'}]}}"},
		{3, -EOPNOTSUPP,
		 "{'name': 'struct', 'configuration': {'fields': [['a', 'string']]}}"},
		{3, -EOPNOTSUPP,
		 "{'name': 'struct', 'configuration': {'fields': [['a', 'r8']]}}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct zr_dtype t;
		struct arena a;
		struct err e = ERR_INIT;
		int rc;

		arena_init(&a, 1 << 20);
		rc = read_type(&a, rows[i].version, false, rows[i].text, &t, &e);
		if (rc != rows[i].rc)
			fail_msg("%s: %d, not %d: %s", rows[i].text, rc, rows[i].rc, e.msg);
		assert_int_equal(e.code, rc);
		assert_true(strlen(e.msg) > 0);
		arena_release(&a);
	}
}

/* nested - structures in structures, `depth` of them. */
static int nested(unsigned int depth)
{
	char text[2048] = "'<i4'", next[2048];
	struct zr_dtype t;
	struct arena a;
	int rc;

	arena_init(&a, 1 << 20);
	while (depth-- > 0) {
		(void)snprintf(next, sizeof(next), "[['a', %.1900s]]", text);
		memcpy(text, next, sizeof(text));
	}
	rc = read_type(&a, 2, false, text, &t, NULL);
	arena_release(&a);
	return rc;
}

static void test_limits(void **state)
{
	struct zr_dtype t;
	struct arena a;
	struct buf b;

	(void)state;
	assert_int_equal(nested(16), 0);
	assert_int_equal(nested(17), -ERANGE);

	buf_init(&b, 1 << 20);
	buf_putc(&b, '[');
	for (int i = 0; i < 4096; i++)
		buf_printf(&b, "%s['f%d', '<i4']", i ? "," : "", i);
	buf_puts(&b, "]");
	buf_putc(&b, '\0');
	arena_init(&a, 4 << 20);
	assert_int_equal(read_type(&a, 2, false, (const char *)b.data, &t, NULL), 0);
	assert_int_equal(t.type.n_fields, 4096);
	b.len -= 2;
	buf_puts(&b, ", ['g', '<i4']]");
	buf_putc(&b, '\0');
	assert_int_equal(read_type(&a, 2, false, (const char *)b.data, &t, NULL), -ERANGE);
	/* gaps without end */
	assert_int_equal(read_type(&a, 2, false,
				   "[['a', [['x', '|i1'], ['', '|V1']], [100000]]]", &t, NULL),
			 -ERANGE);
	arena_release(&a);
	/* memory that ends */
	arena_init(&a, 64);
	assert_int_equal(read_type(&a, 2, false, (const char *)b.data, &t, NULL), -ERANGE);
	assert_true(read_type(&a, 2, false, "[['a', '<i4'], ['b', '<i4']]", &t, NULL) < 0);
	arena_release(&a);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v2_simple), cmocka_unit_test(test_v3_simple),
		cmocka_unit_test(test_chars),     cmocka_unit_test(test_times),
		cmocka_unit_test(test_structure), cmocka_unit_test(test_presented_fields),
		cmocka_unit_test(test_gaps),      cmocka_unit_test(test_v3_structure),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
