/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dataset.c - chunk grids, paths, and whether a fill value is declared. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "translate/model/builder.h"

#include <errno.h>

#include <cmocka.h>

static struct dataset ds;

static int setup(void **state)
{
	(void)state;
	arena_init(&ds.arena, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&ds.arena);
	return 0;
}

static int finish(uint32_t rank, const uint64_t *shape, const uint64_t *chunk, uint32_t size,
		  uint64_t max, struct ds_array *a)
{
	*a = (struct ds_array){.name = "v",
			       .type = {.kind = DT_INT, .size = size},
			       .rank = rank,
			       .shape = shape,
			       .chunk = chunk,
			       .n_chunks = 77};
	return ds_array_finish(&ds, a, max, NULL);
}

static void test_grid(void **state)
{
	const uint64_t shape[] = {10, 7, 3}, chunk[] = {4, 7, 5};
	struct ds_array a;
	uint64_t c[3];

	(void)state;
	assert_int_equal(finish(3, shape, chunk, 8, 1 << 20, &a), 0);
	assert_int_equal(a.grid[0], 3);
	assert_int_equal(a.grid[1], 1);
	assert_int_equal(a.grid[2], 1);
	assert_int_equal(a.n_chunks, 3);
	assert_int_equal(a.chunk_bytes, 4 * 7 * 5 * 8);
	for (uint64_t i = 0; i < 3; i++) {
		ds_chunk_coords(&a, i, c);
		assert_int_equal(c[0], i);
		assert_int_equal(ds_chunk_linear(&a, c), i);
	}

	assert_int_equal(finish(3, shape, (const uint64_t[]){3, 2, 2}, 8, 1 << 20, &a), 0);
	assert_int_equal(a.n_chunks, 4 * 4 * 2);
	for (uint64_t i = 0; i < a.n_chunks; i++) {
		ds_chunk_coords(&a, i, c);
		assert_int_equal((c[0] * 4 + c[1]) * 2 + c[2], i);
		assert_int_equal(ds_chunk_linear(&a, c), i);
	}
}

/* the chunk of another array with the same coordinates */
static void test_chunk_in(void **state)
{
	uint64_t grid_a[] = {3, 4}, grid_b[] = {2, 5}, none[] = {0, 4};
	const struct ds_array a = {.rank = 2, .grid = grid_a, .n_chunks = 12};
	const struct ds_array b = {.rank = 2, .grid = grid_b, .n_chunks = 10};
	const struct ds_array other = {.rank = 1, .grid = grid_a, .n_chunks = 3};
	const struct ds_array empty = {.rank = 2, .grid = none};
	const struct ds_array scalar = {.n_chunks = 1};

	(void)state;
	assert_int_equal(ds_chunk_in(&a, 0, &b), 0);
	assert_int_equal(ds_chunk_in(&a, 7, &b), 8);          /* 1, 3 */
	assert_int_equal(ds_chunk_in(&a, 8, &b), UINT64_MAX); /* 2, 0 */
	assert_int_equal(ds_chunk_in(&b, 4, &a), UINT64_MAX); /* 0, 4 */
	assert_int_equal(ds_chunk_in(&a, 0, &empty), UINT64_MAX);
	assert_int_equal(ds_chunk_in(&a, 0, &other), UINT64_MAX);
	assert_int_equal(ds_chunk_in(&scalar, 0, &scalar), 0);
	assert_int_equal(ds_chunk_in(&scalar, 0, &(struct ds_array){.n_chunks = 0}),
			 UINT64_MAX);
}

static void test_scalar_and_empty(void **state)
{
	const uint64_t huge = (uint64_t)1 << 63;
	const uint64_t shape[] = {huge, huge, 0}, ones[] = {1, 1, 1};
	struct ds_array a;

	(void)state;
	assert_int_equal(finish(0, NULL, NULL, 4, 100, &a), 0);
	assert_int_equal(a.n_chunks, 1);
	assert_int_equal(a.chunk_bytes, 4);
	assert_non_null(a.grid);
	assert_int_equal(ds_chunk_linear(&a, NULL), 0);
	ds_chunk_coords(&a, 0, NULL);

	assert_int_equal(finish(3, shape, ones, 4, 100, &a), 0);
	assert_int_equal(a.n_chunks, 0);
}

static void test_limits(void **state)
{
	const uint64_t half = (uint64_t)1 << 32, max = UINT64_MAX;
	const uint64_t big[] = {half, half}, wrap[] = {max, max}, ones[] = {1, 1},
		       zero[] = {1, 0};
	const uint64_t fit[] = {half, (uint64_t)1 << 30};
	struct ds_array a;

	(void)state;
	assert_int_equal(finish(2, big, ones, 1, max, &a), -ERANGE);
	assert_int_equal(a.n_chunks, 77);
	assert_int_equal(finish(2, wrap, ones, 1, max, &a), -ERANGE);
	assert_int_equal(finish(2, fit, ones, 1, max, &a), 0);
	assert_int_equal(a.n_chunks, (uint64_t)1 << 62);
	assert_int_equal(finish(2, ones, big, 1, max, &a), -ERANGE);
	assert_int_equal(finish(2, ones, wrap, 1, max, &a), -ERANGE);
	assert_int_equal(finish(2, ones, zero, 1, max, &a), -EBADMSG);
	assert_int_equal(finish(1, &max, &max, 1, max, &a), -ERANGE);
	assert_int_equal(finish(1, &max, ones, 1, 1, &a), -ERANGE);
	assert_int_equal(finish(2, ones, ones, 9, 8, &a), -ERANGE);
	assert_int_equal(finish(2, ones, ones, 8, 8, &a), 0);
	assert_int_equal(finish(2, ones, ones, 0, 8, &a), -EBADMSG);
	assert_int_equal(finish(DS_RANK_MAX + 1, ones, ones, 1, 8, &a), -ERANGE);
	a = (struct ds_array){.name = "s",
			      .type = {.kind = DT_VSTRING},
			      .rank = 1,
			      .shape = &half,
			      .chunk = &half};
	assert_int_equal(ds_array_finish(&ds, &a, 1 << 30, NULL), -ERANGE);
	assert_int_equal(ds_array_finish(&ds, &a, (uint64_t)1 << 34, NULL), 0);
	assert_int_equal(a.chunk_bytes, 0);
	assert_int_equal(a.n_chunks, 1);
}

static void expect_path(const struct dataset *d, uint32_t ordinal, bool group, const char *text)
{
	struct buf b;

	buf_init(&b, 100);
	if (group)
		ds_group_path(d, ordinal, &b);
	else
		ds_array_path(d, ordinal, &b);
	assert_int_equal(b.len, strlen(text));
	assert_memory_equal(b.data, text, b.len);
	buf_release(&b);
}

static void test_paths(void **state)
{
	struct ds_group groups[] = {{.name = "", .parent = DS_NONE},
				    {.name = "g1", .parent = 0},
				    {.name = "g2", .parent = 1}};
	struct ds_array arrays[] = {{.name = "x", .group = 0}, {.name = "y", .group = 2}};
	const struct dataset d = {
		.n_groups = 3, .n_arrays = 2, .groups = groups, .arrays = arrays};

	(void)state;
	expect_path(&d, 0, true, "/");
	expect_path(&d, 1, true, "/g1");
	expect_path(&d, 2, true, "/g1/g2");
	expect_path(&d, 0, false, "/x");
	expect_path(&d, 1, false, "/g1/g2/y");
	groups[1].parent = 2; /* a ring ends, whatever it says */
	expect_path(&d, 1, false, "/g2/g1/g2/y");
}

/* declared - ds_fill_declared for an attribute of its own type and data. */
static bool declared(struct dtype type, const void *fill, struct dtype atype, const void *data,
		     uint64_t n)
{
	const struct ds_attr attrs[] = {
		{.name = "units", .n = 1},
		{.name = "_FillValue", .type = atype, .n = n, .data = data},
	};
	const struct ds_array a = {.type = type, .fill = fill, .n_attrs = 2, .attrs = attrs};

	return ds_fill_declared(&a);
}

static void test_fill_numbers(void **state)
{
	const struct dtype i4 = {.kind = DT_INT, .size = 4}, u4 = {.kind = DT_UINT, .size = 4};
	const struct dtype i4b = {.kind = DT_INT, .size = 4, .big_endian = true};
	const struct dtype i2 = {.kind = DT_INT, .size = 2};
	const struct dtype f4 = {.kind = DT_FLOAT, .size = 4},
			   f2 = {.kind = DT_FLOAT, .size = 2};
	const struct dtype f8b = {.kind = DT_FLOAT, .size = 8, .big_endian = true};
	const struct dtype f8 = {.kind = DT_FLOAT, .size = 8};
	const struct dtype c8 = {.kind = DT_COMPLEX, .size = 8};
	const int32_t seven = 7, eight = 8;
	const float nan1 = __builtin_nanf("1"), nan2 = -__builtin_nanf("77"),
		    inf = __builtin_inff();
	const float zero = 0.0f, minus = -0.0f, pair1[] = {1, nan1}, pair2[] = {1, nan2};
	const double nan8 = __builtin_nan("5");
	const uint8_t nan_big[8] = {0x7f, 0xf8, 0, 0, 0, 0, 0, 0};
	const uint8_t inf_big[8] = {0x7f, 0xf0, 0, 0, 0, 0, 0, 0};

	(void)state;
	assert_true(declared(i4, &seven, i4, &seven, 1));
	assert_false(declared(i4, &seven, i4, &eight, 1));
	assert_false(declared(i4, &seven, u4, &seven, 1));
	assert_false(declared(i4, &seven, i2, &seven, 1));
	assert_false(declared(i4, &seven, i4, &seven, 2));
	assert_false(declared(i4, &seven, i4, &seven, 0));
	assert_false(declared(i4, &seven, i4, NULL, 1));
	assert_false(declared(i4, NULL, i4, &seven, 1));
	/* the fill value is in presented order, the attribute in the host's */
	assert_true(declared(i4b, "\0\0\0\7", i4, &seven, 1));
	assert_true(declared(i4b, "\0\0\0\7", i4b, &seven, 1));
	assert_false(declared(i4b, &seven, i4, &seven, 1));
	assert_true(declared(f4, &nan1, f4, &nan2, 1));
	assert_false(declared(f4, &nan1, f4, &inf, 1));
	assert_false(declared(f4, &zero, f4, &minus, 1));
	assert_true(declared(f4, &inf, f4, &inf, 1));
	assert_true(declared(f8b, nan_big, f8, &nan8, 1));
	assert_false(declared(f8b, inf_big, f8, &nan8, 1));
	assert_true(declared(f2, "\1\x7c", f2, "\2\xfe", 1));
	assert_false(declared(f2, "\0\x7c", f2, "\2\xfe", 1));
	assert_true(declared(c8, pair1, c8, pair2, 1));
	assert_false(declared(c8, pair1, f8, pair1, 1));
}

static void test_fill_compound(void **state)
{
	const uint64_t two = 2;
	const struct dt_field f1[] = {
		{.name = "a", .type = {.kind = DT_INT, .size = 2, .big_endian = true}},
		{.name = "b",
		 .offset = 2,
		 .rank = 1,
		 .dims = &two,
		 .type = {.kind = DT_INT, .size = 1}},
	};
	struct dt_field f2[] = {
		{.name = "a", .type = {.kind = DT_INT, .size = 2}},
		{.name = "b",
		 .offset = 2,
		 .rank = 1,
		 .dims = &two,
		 .type = {.kind = DT_INT, .size = 1}},
	};
	const struct dtype t1 = {.kind = DT_COMPOUND, .size = 4, .n_fields = 2, .fields = f1};
	const struct dtype t2 = {.kind = DT_COMPOUND, .size = 4, .n_fields = 2, .fields = f2};

	(void)state;
	assert_true(declared(t1, "\0\1\2\3", t2, "\1\0\2\3", 1));
	assert_false(declared(t1, "\0\1\2\3", t2, "\1\0\2\4", 1));
	f2[1].name = "c";
	assert_false(declared(t1, "\0\1\2\3", t2, "\1\0\2\3", 1));
}

static void test_fill_texts(void **state)
{
	struct ds_text text = {.s = "ab", .len = 2};
	struct ds_attr attr = {.name = "_FillValue",
			       .type = {.kind = DT_STRING, .size = 2},
			       .n = 1,
			       .strings = &text};
	struct ds_array a = {.type = {.kind = DT_STRING, .size = 4},
			     .n_attrs = 1,
			     .attrs = &attr,
			     .fill = (const uint8_t *)"ab\0\0"};

	(void)state;
	assert_true(ds_fill_declared(&a));
	a.fill = (const uint8_t *)"abc\0";
	assert_false(ds_fill_declared(&a));
	a = (struct ds_array){.type = {.kind = DT_VSTRING},
			      .n_attrs = 1,
			      .attrs = &attr,
			      .fill_text = {.s = "ab", .len = 2}};
	assert_true(ds_fill_declared(&a));
	a.fill_text.len = 1;
	assert_false(ds_fill_declared(&a));
	text = (struct ds_text){.s = NULL, .len = 0};
	a.fill_text = text;
	assert_true(ds_fill_declared(&a));
	attr.type.kind = DT_INT;
	assert_false(ds_fill_declared(&a));
	/* char with a NUL as its fill value: the attribute's text is empty */
	attr.type = (struct dtype){.kind = DT_STRING, .size = 1};
	a.type = attr.type;
	a.fill = (const uint8_t *)"";
	assert_true(ds_fill_declared(&a));
	a.n_attrs = 0;
	assert_false(ds_fill_declared(&a));
}

static void test_escape(void **state)
{
	static const char *const rows[][2] = {
		{"a", "a"},
		{".a", ".a"},
		{"a/b", "a%2Fb"},
		{"a\\b", "a%5Cb"},
		{".zarray", "%2Ezarray"},
		{"..", "%2E."},
		{".", "%2E"},
		{"x.zgroup", "x.zgroup"},
	};
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 16);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(ds_name_escape(&a, rows[i][0]), rows[i][1]);
	assert_ptr_equal(ds_name_escape(&a, rows[0][0]), rows[0][0]); /* no copy */
	arena_release(&a);
}

/* A dataset above another one has the notes of both. */
static void test_notes(void **state)
{
	static const char *const below[] = {"one", "two"};
	struct dataset d = {.notes = below, .n_notes = 2};
	struct err e = ERR_INIT;
	int n = 0;

	(void)state;
	arena_init(&d.arena, 128 << 10);
	assert_int_equal(ds_note_append(&d, &e, "'a\nb': %s", "three"), 0);
	assert_int_equal(d.n_notes, 3);
	assert_string_equal(d.notes[0], "one");
	assert_string_equal(d.notes[1], "two");
	assert_string_equal(d.notes[2], "'a?b': three");
	assert_string_equal(below[1], "two");
	/* the list takes memory in proportion to the notes */
	for (; n < 2000 && ds_note_append(&d, &e, "%d", n) == 0; n++)
		;
	assert_int_equal(n, 2000);
	assert_string_equal(d.notes[2002], "1999");
	while (ds_note_append(&d, &e, "%d", n) == 0)
		n++;
	assert_int_equal(e.code, -ERANGE);
	assert_int_equal(d.n_notes, 3 + n);
	arena_release(&d.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),       cmocka_unit_test(test_grid),
		cmocka_unit_test(test_chunk_in),     cmocka_unit_test(test_scalar_and_empty),
		cmocka_unit_test(test_limits),       cmocka_unit_test(test_paths),
		cmocka_unit_test(test_fill_numbers), cmocka_unit_test(test_fill_compound),
		cmocka_unit_test(test_fill_texts),   cmocka_unit_test(test_notes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
