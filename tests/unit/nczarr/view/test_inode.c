/* SPDX-License-Identifier: BSD-3-Clause */
/* The id space: every id below the end stands for one thing and back; limits hide arrays. */
#include "nczarr/view/inode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 54)

static struct zr_grid g_grids[8];

static int init_as(struct zr_inodes *ids, const struct dataset *ds, uint32_t format,
		   struct zr_keys keys, uint64_t limit, bool *hidden)
{
	for (uint32_t a = 0; a < ds->n_arrays; a++) {
		zr_grid_chunks(&ds->arrays[a], &g_grids[a]);
		g_grids[a].keys = keys;
	}
	*ids = (struct zr_inodes){.ds = ds, .format = zr_format_of(format, true), .grids = g_grids};
	return zr_inodes_init(ids, limit, hidden, NULL);
}

static int init(struct zr_inodes *ids, const struct dataset *ds, bool nested, uint64_t limit,
		bool *hidden)
{
	return init_as(ids, ds, 2, (struct zr_keys){.nested = nested}, limit, hidden);
}

static const uint64_t g_cube[] = {3, 2, 4}, g_empty[] = {0, 5}, g_line[] = {7};

static void test_all(void **state)
{
	struct ds_array arrays[] = {{.rank = 2, .grid = g_empty, .n_chunks = 0},
				    {.rank = 3, .grid = g_cube, .n_chunks = 24},
				    {.rank = 1, .grid = g_line, .n_chunks = 7}, /* hidden */
				    {.rank = 0, .n_chunks = 1},
				    {.rank = 1, .grid = g_line, .n_chunks = 7},
				    {.rank = 2, .grid = g_empty, .n_chunks = 0}};
	const struct dataset ds = {
		.n_groups = 3, .n_arrays = ARRAY_LEN(arrays), .arrays = arrays};

	(void)state;
	for (int nested = 0; nested < 2; nested++) {
		/* groups, arrays, documents, prefixes of the cube, chunks */
		uint64_t end = 1 + 3 + 6 + 3 * 3 + 6 * 2 + (nested ? 3 + 6 : 0) + 24 + 1 + 7;
		bool hidden[ARRAY_LEN(arrays)] = {false, false, true};
		uint64_t seen[5] = {0}, stale = 0;
		struct zr_inodes ids;
		struct zr_node n;

		assert_int_equal(init(&ids, &ds, nested, LIMIT, hidden), 0);
		for (uint64_t id = 0; id < end + 10; id++) {
			if (zr_inodes_find(&ids, id, &n)) {
				stale++;
				continue;
			}
			assert_int_equal(zr_inodes_of(&ids, &n), id);
			seen[n.kind]++;
			assert_true(n.kind != ZR_CHUNK || n.index < arrays[n.ord].n_chunks);
			assert_false(n.kind == ZR_CHUNK && hidden[n.ord]);
		}
		assert_int_equal(seen[ZR_GROUP], 3);
		assert_int_equal(seen[ZR_ARRAY], 6);
		assert_int_equal(seen[ZR_DOC], 3 + 2 + 2 + 6 * 2);
		assert_int_equal(seen[ZR_PREFIX], nested ? 9 : 0);
		assert_int_equal(seen[ZR_CHUNK], 32);
		/* 0, .zmetadata of two sub-groups, and the ten behind the end */
		assert_int_equal(stale, 1 + 2 + 10);
		zr_inodes_release(&ids);
	}
}

/* test_v3 - one document for each group and array, and a directory "c" where keys are paths. */
static void test_v3(void **state)
{
	struct ds_array arrays[] = {{.rank = 2, .grid = g_empty, .n_chunks = 0},
				    {.rank = 3, .grid = g_cube, .n_chunks = 24},
				    {.rank = 0, .n_chunks = 1},
				    {.rank = 1, .grid = g_line, .n_chunks = 7}};
	const struct dataset ds = {
		.n_groups = 3, .n_arrays = ARRAY_LEN(arrays), .arrays = arrays};

	(void)state;
	for (int form = 0; form < 4; form++) {
		const struct zr_keys keys = {.nested = form & 1, .lead = form & 2};
		bool hidden[ARRAY_LEN(arrays)] = {false};
		uint64_t seen[5] = {0}, stale = 0;
		struct zr_inodes ids;
		struct zr_node n;

		assert_int_equal(init_as(&ids, &ds, 3, keys, LIMIT, hidden), 0);
		for (uint64_t id = 0; id < 100; id++) {
			if (zr_inodes_find(&ids, id, &n)) {
				stale++;
				continue;
			}
			assert_int_equal(zr_inodes_of(&ids, &n), id);
			assert_true(n.kind != ZR_DOC || zr_doc_of_group(n.doc) == (id < 11));
			seen[n.kind]++;
		}
		assert_int_equal(seen[ZR_DOC], 3 + 4);
		assert_int_equal(seen[ZR_CHUNK], 24 + 1 + 7);
		/* those of the cube, "c" of the cube and of the line */
		assert_int_equal(seen[ZR_PREFIX], !keys.nested ? 0
						  : keys.lead  ? 3 + 6 + 1 + 1
							       : 3 + 6);
		assert_int_equal(stale,
				 100 - 3 - 4 - seen[ZR_DOC] - seen[ZR_CHUNK] - seen[ZR_PREFIX]);
		zr_inodes_release(&ids);
	}
}

static void test_limit(void **state)
{
	static const uint64_t wide[] = {(uint64_t)1 << 40, (uint64_t)1 << 13};
	static const uint64_t vast[] = {(uint64_t)1 << 60, 2};
	struct ds_array arrays[] = {{.rank = 2, .grid = wide, .n_chunks = (uint64_t)1 << 53},
				    {.rank = 2, .grid = wide, .n_chunks = (uint64_t)1 << 53},
				    {.rank = 2, .grid = vast, .n_chunks = (uint64_t)1 << 61},
				    {.rank = 1, .grid = g_line, .n_chunks = 7}};
	const struct dataset ds = {
		.n_groups = 1, .n_arrays = ARRAY_LEN(arrays), .arrays = arrays};
	bool hidden[ARRAY_LEN(arrays)] = {false};
	struct zr_inodes ids;
	struct zr_node n = {.kind = ZR_CHUNK, .ord = 0, .index = ((uint64_t)1 << 53) - 1}, back;

	(void)state;
	assert_int_equal(init(&ids, &ds, true, LIMIT, hidden), 0);
	assert_false(hidden[0]);
	assert_true(hidden[1] && hidden[2]);
	assert_false(hidden[3]);
	assert_true(zr_inodes_of(&ids, &n) < LIMIT);
	assert_int_equal(zr_inodes_find(&ids, zr_inodes_of(&ids, &n), &back), 0);
	assert_int_equal(back.ord, 0);
	assert_true(back.kind == ZR_CHUNK && back.index == n.index);
	n = (struct zr_node){.kind = ZR_CHUNK, .ord = 3, .index = 6};
	assert_int_equal(zr_inodes_find(&ids, zr_inodes_of(&ids, &n), &back), 0);
	assert_int_equal(back.ord, 3);
	assert_int_equal(zr_inodes_find(&ids, zr_inodes_of(&ids, &n) + 1, &back), -ESTALE);
	assert_int_equal(zr_inodes_find(&ids, UINT64_MAX, &back), -ESTALE);
	zr_inodes_release(&ids);

	memset(hidden, 0, sizeof(hidden));
	assert_int_equal(init(&ids, &ds, true, 10, hidden), -ERANGE);
	zr_inodes_release(&ids);
}

static void test_no_arrays(void **state)
{
	const struct dataset ds = {.n_groups = 1};
	struct zr_inodes ids;
	struct zr_node n;

	(void)state;
	assert_int_equal(init(&ids, &ds, false, LIMIT, NULL), 0);
	assert_int_equal(zr_inodes_find(&ids, 1, &n), 0);
	assert_int_equal(zr_inodes_find(&ids, 4, &n), 0);
	assert_int_equal(n.doc, ZR_DOC_ZMETADATA);
	assert_int_equal(zr_inodes_find(&ids, 5, &n), -ESTALE);
	zr_inodes_release(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_v3),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_no_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
