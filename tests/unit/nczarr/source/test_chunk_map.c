/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of objects: its forms, sizes that do not fit, its limit; and how it is filled from what
 * lies about in a store. */
#include "tests/unit/nczarr/source/zr_source_fake.h"

/* expect - the table holds exactly what `every` says: objects 0, every, 2 * every ... */
static void expect(const struct zr_table *t, uint64_t total, uint64_t every, uint64_t size)
{
	uint64_t found = 0, n = 0, got;

	for (uint64_t i = 0; i < total; i++) {
		assert_int_equal(zr_table_get(t, i, &got), i % every == 0);
		if (i % every == 0)
			assert_int_equal(got, t->sized ? size + i : 0);
	}
	for (uint64_t from = 0; zr_table_next(t, from, &found); from = found + 1) {
		assert_int_equal(found, n * every);
		n++;
	}
	assert_int_equal(n, (total + every - 1) / every);
	assert_false(zr_table_get(t, total, &got));
	assert_false(zr_table_next(t, total, &got));
}

static void fill_backwards(struct zr_table *t, uint64_t total, uint64_t every, uint64_t size)
{
	for (uint64_t i = (total + every - 1) / every; i-- > 0;)
		assert_int_equal(zr_table_add(t, i * every, size + i * every, NULL), 0);
	zr_table_end(t);
}

static void test_forms(void **state)
{
	static const struct {
		uint64_t total, every;
		bool sized;
	} rows[] = {{1, 1, true},        {100, 7, true},     {100, 7, false},  {40000, 3, true},
		    {40000, 9999, true}, {900000, 2, false}, {40000, 40, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct zr_table t;

		zr_table_init(&t, rows[i].total, rows[i].sized, (uint64_t)1 << 20);
		fill_backwards(&t, rows[i].total, rows[i].every, 1000);
		expect(&t, rows[i].total, rows[i].every, 1000);
		zr_table_release(&t);
	}
}

static void test_empty(void **state)
{
	struct zr_table t;
	uint64_t v;

	(void)state;
	zr_table_init(&t, 0, true, 1000);
	zr_table_end(&t);
	assert_false(zr_table_get(&t, 0, &v));
	assert_false(zr_table_next(&t, 0, &v));
	zr_table_release(&t);
}

/* Sizes that mean something else in 32 bits, and one that means something else in 64. */
static void test_large_sizes(void **state)
{
	static const uint64_t sizes[] = {5,          UINT32_MAX - 2,    UINT32_MAX - 1,
					 UINT32_MAX, (uint64_t)1 << 32, ZR_UNREADABLE,
					 0};
	struct zr_table t;
	uint64_t v;

	(void)state;
	zr_table_init(&t, 100, true, 4096);
	for (uint64_t i = 0; i < ARRAY_LEN(sizes); i++) {
		assert_int_equal(zr_table_add(&t, 10 + i, sizes[i], NULL), 0);
		for (uint64_t k = 0; k <= i; k++) {
			assert_true(zr_table_get(&t, 10 + k, &v));
			assert_int_equal(v, sizes[k]);
		}
	}
	assert_false(zr_table_get(&t, 9, &v));
	assert_true(zr_table_next(&t, 0, &v));
	assert_int_equal(v, 10);
	assert_false(zr_table_next(&t, 17, &v));
	zr_table_release(&t);
}

static void test_huge_grid(void **state)
{
	const uint64_t total = 1000000000000, at[] = {999999999999, 5, 123456789012};
	struct zr_table t;
	uint64_t v;

	(void)state;
	for (int sized = 0; sized < 2; sized++) {
		zr_table_init(&t, total, sized != 0, 4096);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(zr_table_add(&t, at[i], i, NULL), 0);
		zr_table_end(&t);
		assert_true(zr_table_next(&t, 0, &v));
		assert_int_equal(v, 5);
		assert_true(zr_table_next(&t, 6, &v));
		assert_int_equal(v, at[2]);
		assert_true(zr_table_next(&t, at[2] + 1, &v));
		assert_int_equal(v, at[0]);
		assert_false(zr_table_get(&t, 6, &v));
		assert_true(zr_table_get(&t, at[2], &v));
		assert_int_equal(v, sized ? 2 : 0);
		zr_table_release(&t);
	}
}

/* SECURITY S50 */
static void test_limit(void **state)
{
	struct err e = ERR_INIT;
	struct zr_table t;
	uint64_t n = 0;

	(void)state;
	zr_table_init(&t, 1000000000000, true, 8192);
	while (zr_table_add(&t, n * 1000, 1, &e) == 0)
		n++;
	assert_int_equal(e.code, -ERANGE);
	assert_non_null(strstr(e.msg, "8192 bytes (a quarter of -o memory)"));
	assert_in_range(n, 128, 8192 / sizeof(struct chunk_size_entry));
	zr_table_release(&t);
	/* the size that makes all of them wide */
	zr_table_init(&t, 1000, true, 4096);
	assert_int_equal(zr_table_add(&t, 1, 1, &e), 0);
	assert_int_equal(zr_table_add(&t, 2, UINT64_MAX / 2, &e), -ERANGE);
	zr_table_release(&t);
}

/* ---- filled from a store ---- */

static void test_listing(void **state)
{
	static const struct {
		char separator;
		bool prefixed;
		const char *there[4], *noise[4];
	} rows[] = {
		{'.',
		 false,
		 {"t/0.0", "t/2.3", "t/1.1"},
		 {"t/.zarray", "t/3.0", "t/01.1", "t/1/2"}},
		{'/',
		 false,
		 {"t/0/0", "t/2/3", "t/1/1"},
		 {"t/.zarray", "t/3/0", "t/1/01", "t/2/x/0"}},
		{'.',
		 true,
		 {"t/c.0.0", "t/c.2.3", "t/c.1.1"},
		 {"t/zarr.json", "t/0.1", "t/c/0/1"}},
		{'/',
		 true,
		 {"t/c/0/0", "t/c/2/3", "t/c/1/1"},
		 {"t/zarr.json", "t/0/1", "t/c/1/4"}},
	};
	const uint64_t shape[] = {30, 40}, chunk[] = {10, 10};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		size_t r = i / 2;
		uint64_t n = 0, at = 0;
		struct zr_meta *m;
		struct fake f;

		fake_init(&f, i % 2 != 0);
		m = fake_array(&f, "t", 2, shape, chunk);
		m->separator = rows[r].separator;
		m->prefixed = rows[r].prefixed;
		for (size_t k = 0; k < 4; k++) {
			if (rows[r].there[k])
				fake_put(&f, rows[r].there[k], "12345", 5);
			if (rows[r].noise[k])
				fake_put(&f, rows[r].noise[k], "", 0);
		}
		fake_start(&f);
		for (uint64_t k = 0; k < 12; k++)
			n += fake_where(&f, 0, k) == CHUNK_RANGE;
		assert_int_equal(n, 3);
		assert_int_equal(fake_where(&f, 0, 0), CHUNK_RANGE);
		assert_int_equal(fake_where(&f, 0, 5), CHUNK_RANGE);
		assert_int_equal(fake_where(&f, 0, 11), CHUNK_RANGE);
		assert_int_equal(zr_next(&f.s.base, 0, 6, &at, NULL), 0);
		assert_int_equal(at, 11);
		assert_int_equal(zr_next(&f.s.base, 0, 1, &at, NULL), 0);
		assert_int_equal(at, 5);
		fake_release(&f);
	}
}

/* What has a chunk's name and is no file is there, and reading it is an error. */
static void test_odd_things(void **state)
{
	const uint64_t shape[] = {80}, chunk[] = {10};
	char path[128];
	uint8_t out[40];
	struct fake f;

	(void)state;
	fake_init(&f, true);
	fake_array(&f, "t", 1, shape, chunk);
	fake_put(&f, "t/1/x", "", 0);
	snprintf(path, sizeof(path), "%s/t/2", f.dir);
	assert_int_equal(symlink("nowhere", path), 0);
	snprintf(path, sizeof(path), "%s/t/3", f.dir);
	assert_int_equal(mkfifo(path, 0666), 0);
	fake_put(&f, "t/4", "", 0);
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_ABSENT);
	for (uint64_t i = 1; i < 4; i++) {
		char name[8];

		assert_int_equal(fake_where(&f, 0, i), CHUNK_SYNTH);
		assert_int_equal(fake_read(&f, 0, i, out), -EIO);
		snprintf(name, sizeof(name), "t/%d", (int)i);
		assert_non_null(strstr(f.e.msg, name));
	}
	assert_int_equal(fake_where(&f, 0, 4), CHUNK_RANGE);
	assert_int_equal(fake_read(&f, 0, 4, out), -EBADMSG);
	fake_release(&f);
}

/* A directory that cannot be looked into hides nothing. */
static void test_unreadable_dir(void **state)
{
	const uint64_t shape[] = {30, 40}, chunk[] = {10, 10};
	char path[128];
	struct fake f;
	uint64_t at;

	(void)state;
	fake_init(&f, true);
	fake_array(&f, "t", 2, shape, chunk)->separator = '/';
	fake_put(&f, "t/0/0", "x", 1);
	snprintf(path, sizeof(path), "%s/t/1", f.dir);
	assert_int_equal(symlink("nowhere", path), 0);
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), -EIO);
	assert_int_equal(fake_where(&f, 0, 11), -EIO);
	assert_int_equal(zr_next(&f.s.base, 0, 0, &at, &f.e), -EIO);
	/* it is looked at again */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_RANGE);
	assert_int_equal(fake_where(&f, 0, 11), CHUNK_ABSENT);
	fake_release(&f);

	if (geteuid() == 0)
		return; /* permissions do not apply */
	fake_init(&f, true);
	fake_array(&f, "t", 2, shape, chunk);
	fake_put(&f, "t/0.0", "x", 1);
	fake_start(&f);
	snprintf(path, sizeof(path), "%s/t", f.dir);
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(fake_where(&f, 0, 0), -EACCES);
	assert_int_equal(fake_where(&f, 0, 1), -EACCES);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(fake_where(&f, 0, 1), CHUNK_ABSENT);
	fake_release(&f);
}

static void test_no_directory(void **state)
{
	const uint64_t shape[] = {300}, chunk[] = {10};
	struct fake f;
	uint64_t at;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fake_init(&f, true);
		fake_array(&f, "none", 1, shape, chunk)->prefixed = i != 0;
		fake_start(&f);
		assert_int_equal(fake_where(&f, 0, 3), CHUNK_ABSENT);
		assert_int_equal(zr_next(&f.s.base, 0, 0, &at, NULL), -ENOENT);
		fake_release(&f);
	}
}

/* SECURITY S50 */
static void test_index_size(void **state)
{
	const uint64_t shape[] = {1000000, 1000000}, chunk[] = {1, 1};
	char key[32];
	struct fake f;

	(void)state;
	fake_init(&f, false);
	fake_array(&f, "t", 2, shape, chunk);
	f.s.opts.max_index_bytes = 4096;
	for (int i = 0; i < 400; i++) {
		snprintf(key, sizeof(key), "t/%d.%d", i, i);
		fake_put(&f, key, "x", 1);
	}
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), -ERANGE);
	assert_non_null(strstr(f.e.msg, "a quarter of -o memory"));
	assert_int_equal(fake_where(&f, 0, 0), -ERANGE);
	fake_release(&f);
}

/* The same with a scalar, an empty array, and one that has few chunks. */
static void test_small_arrays(void **state)
{
	const uint64_t shape[] = {0, 20}, chunk[] = {10, 10}, few[] = {15, 20};
	struct fake f;
	uint64_t at;

	(void)state;
	fake_init(&f, false);
	fake_array(&f, "s", 0, shape, chunk);
	fake_array(&f, "s3", 0, shape, chunk)->prefixed = true;
	fake_array(&f, "e", 2, shape, chunk);
	fake_array(&f, "few", 2, few, chunk);
	fake_put(&f, "s/0", "1234", 4);
	fake_put(&f, "s3/c", "1234", 4);
	fake_put(&f, "e/0.0", "1234", 4);
	fake_put(&f, "few/1.0", "1234", 4);
	fake_start(&f);
	assert_int_equal(fake_where(&f, 0, 0), CHUNK_RANGE);
	assert_int_equal(fake_where(&f, 1, 0), CHUNK_RANGE);
	assert_int_equal(zr_next(&f.s.base, 1, 0, &at, NULL), 0);
	assert_int_equal(f.a[2].n_chunks, 0);
	assert_int_equal(fake_where(&f, 3, 0), CHUNK_ABSENT);
	assert_int_equal(fake_where(&f, 3, 2), CHUNK_RANGE);
	assert_int_equal(zr_next(&f.s.base, 3, 0, &at, NULL), 0);
	assert_int_equal(at, 2);
	fake_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),        cmocka_unit_test(test_empty),
		cmocka_unit_test(test_large_sizes),  cmocka_unit_test(test_huge_grid),
		cmocka_unit_test(test_limit),        cmocka_unit_test(test_listing),
		cmocka_unit_test(test_odd_things),   cmocka_unit_test(test_unreadable_dir),
		cmocka_unit_test(test_no_directory), cmocka_unit_test(test_index_size),
		cmocka_unit_test(test_small_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
