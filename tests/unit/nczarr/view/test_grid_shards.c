/* SPDX-License-Identifier: BSD-3-Clause */
/* Which chunks a shard has: every chunk is in one slot of one shard, shards are about as large as
 * was asked for, and the numbers agree with arithmetic over coordinates. */
#include "nczarr/view/grid.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RANK_MAX 4

struct shape {
	struct ds_array a;
	uint64_t grid[RANK_MAX];
	struct arena arena;
	struct zr_grid g;
};

static void make(struct shape *s, uint32_t rank, const uint64_t *grid, uint64_t chunk_bytes,
		 uint64_t target)
{
	*s = (struct shape){.a = {.rank = rank, .n_chunks = 1, .chunk_bytes = chunk_bytes}};
	s->a.grid = s->grid;
	for (uint32_t d = 0; d < rank; d++) {
		s->grid[d] = grid[d];
		s->a.n_chunks *= grid[d];
	}
	arena_init(&s->arena, 1 << 12);
	assert_int_equal(zr_grid_shards(&s->a, target, &s->arena, &s->g, NULL), 0);
}

/* by_coords - slot `slot` of a file, by the coordinates of both. */
static bool by_coords(const struct shape *s, uint64_t file, uint64_t slot, uint64_t *ret)
{
	uint64_t at[RANK_MAX] = {0}, linear = 0;

	for (uint32_t d = s->a.rank; d-- > 0;) {
		at[d] = file % s->g.len[d] * s->g.per[d] + slot % s->g.per[d];
		file /= s->g.len[d];
		slot /= s->g.per[d];
		if (at[d] >= s->grid[d])
			return false;
	}
	for (uint32_t d = 0; d < s->a.rank; d++)
		linear = linear * s->grid[d] + at[d];
	*ret = linear;
	return true;
}

/* agrees - walks all files and all slots. */
static void agrees(const struct shape *s)
{
	uint64_t n = 0, files = 1, slots = 1;

	assert_int_equal(s->g.rank, s->a.rank);
	for (uint32_t d = 0; d < s->a.rank; d++) {
		files *= s->g.len[d];
		slots *= s->g.per[d];
		assert_true(s->g.per[d] >= 1 && s->g.per[d] <= s->grid[d]);
		assert_int_equal(s->g.len[d], (s->grid[d] + s->g.per[d] - 1) / s->g.per[d]);
	}
	assert_int_equal(s->g.n, files);
	assert_int_equal(s->g.slots, slots);
	for (uint64_t file = 0; file < files; file++) {
		uint64_t first, from, run, want = 0, chunk = 0;

		assert_int_equal(zr_grid_runs(&s->a, &s->g), 1);
		zr_grid_run(&s->a, &s->g, file, 0, &first, &from, &run);
		assert_int_equal(from, 0);
		assert_int_equal(first, n);
		for (uint64_t slot = 0; slot < slots; slot++) {
			assert_int_equal(zr_grid_slot(&s->a, &s->g, file, slot, &chunk),
					 by_coords(s, file, slot, &want));
			assert_int_equal(chunk, want);
			if (slot >= run)
				continue;
			assert_int_equal(chunk, n++);
			assert_int_equal(zr_grid_file(&s->a, &s->g, chunk), file);
		}
	}
	assert_int_equal(n, s->a.n_chunks);
}

static void test_every_chunk(void **state)
{
	static const struct {
		uint32_t rank;
		uint64_t grid[RANK_MAX];
	} rows[] = {{1, {2}},           {1, {17}},         {2, {1, 9}},
		    {2, {9, 1}},        {2, {5, 7}},       {3, {1, 1, 5}},
		    {3, {3, 4, 5}},     {3, {5, 1, 3}},    {4, {2, 3, 1, 7}},
		    {4, {1, 13, 2, 1}}, {4, {1, 1, 1, 2}}, {4, {3, 1, 1, 4}}};
	struct shape s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (uint64_t want = 1; want < 70; want++) {
			make(&s, rows[i].rank, rows[i].grid, 100, want * 100 + want % 100);
			if (s.g.per) {
				assert_true(s.g.slots > 1 && s.g.slots <= want);
				agrees(&s);
			} else {
				assert_true(want < 2 || s.g.len == s.grid);
				assert_int_equal(s.g.n, s.a.n_chunks);
				assert_int_equal(s.g.slots, 1);
			}
			arena_release(&s.arena);
		}
}

static void check(uint32_t rank, const uint64_t *grid, uint64_t bytes, uint64_t target,
		  const uint64_t *per)
{
	struct shape s;

	make(&s, rank, grid, bytes, target);
	assert_non_null(s.g.per);
	assert_memory_equal(s.g.per, per, rank * sizeof(*per));
	arena_release(&s.arena);
}

static void test_size(void **state)
{
	(void)state;
	/* the fastest axis first, then the next */
	check(2, (uint64_t[]){100, 10}, 1 << 20, 64 << 20, (uint64_t[]){6, 10});
	check(3, (uint64_t[]){10, 20, 30}, 1 << 20, 20 << 20, (uint64_t[]){1, 1, 15});
	check(3, (uint64_t[]){10, 20, 30}, 1 << 20, (uint64_t)9 << 30,
	      (uint64_t[]){10, 20, 30});
	/* parts are about equal */
	check(1, (uint64_t[]){100}, 1 << 20, 64 << 20, (uint64_t[]){50});
	check(1, (uint64_t[]){129}, 1 << 20, 64 << 20, (uint64_t[]){43});
	/* small chunks: no more than so many */
	check(1, (uint64_t[]){1000000}, 8, UINT64_MAX, (uint64_t[]){16130});
	check(2, (uint64_t[]){5, 16384}, 8, UINT64_MAX, (uint64_t[]){1, 16384});
	/* elements without a fixed size */
	check(1, (uint64_t[]){9000}, 0, 1, (uint64_t[]){3000});
}

/* Shards of one chunk are chunks. */
static void test_none(void **state)
{
	static const struct {
		uint32_t rank;
		uint64_t grid[RANK_MAX], bytes, target;
	} rows[] = {{0, {0}, 8, 1 << 20},
		    {1, {1}, 8, 1 << 20},
		    {3, {1, 1, 1}, 0, 1 << 20},
		    {1, {0}, 8, 1 << 20},
		    {2, {4, 0}, 8, 1 << 20},
		    {2, {4, 5}, 1 << 20, (2 << 20) - 1},
		    {1, {7}, 8, 0},
		    {1, {7}, (uint64_t)1 << 62, 64 << 20}};
	struct shape s;
	uint64_t first, slot, n, chunk;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		make(&s, rows[i].rank, rows[i].grid, rows[i].bytes, rows[i].target);
		assert_null(s.g.per);
		assert_ptr_equal(s.g.len, s.grid);
		assert_int_equal(s.g.n, s.a.n_chunks);
		assert_int_equal(s.g.slots, 1);
		zr_grid_run(&s.a, &s.g, 3, 0, &first, &slot, &n);
		assert_int_equal(first, 3);
		assert_int_equal(n, 1);
		assert_int_equal(zr_grid_file(&s.a, &s.g, 5), 5);
		assert_true(zr_grid_slot(&s.a, &s.g, 2, 0, &chunk));
		assert_int_equal(chunk, 2);
		assert_false(zr_grid_slot(&s.a, &s.g, 2, 1, &chunk));
		arena_release(&s.arena);
	}
}

static void test_large(void **state)
{
	static const uint64_t grid[] = {1u << 20, 1u << 20, 1u << 20};
	uint64_t first, slot, n, last;
	struct shape s;

	(void)state;
	make(&s, 3, grid, 4096, 64 << 20);
	assert_int_equal(s.g.slots, 16384);
	assert_int_equal(s.g.n, s.a.n_chunks / 16384);
	zr_grid_run(&s.a, &s.g, s.g.n - 1, 0, &first, &slot, &n);
	assert_int_equal(first, s.a.n_chunks - 16384);
	assert_int_equal(n, 16384);
	assert_int_equal(zr_grid_file(&s.a, &s.g, s.a.n_chunks - 1), s.g.n - 1);
	assert_true(zr_grid_slot(&s.a, &s.g, s.g.n - 1, 16383, &last));
	assert_int_equal(last, s.a.n_chunks - 1);
	assert_false(zr_grid_slot(&s.a, &s.g, s.g.n - 1, UINT64_MAX, &last));
	arena_release(&s.arena);
}

/* Shards as writers choose them: every chunk is in one run, and where coordinates say. */
static void test_layouts(void **state)
{
	static const struct {
		uint32_t rank;
		uint64_t grid[RANK_MAX], per[RANK_MAX];
		bool taken;
	} rows[] = {
		{2, {5, 7}, {2, 3}, true},        {2, {5, 7}, {2, 7}, true},
		{2, {5, 7}, {1, 3}, true},        {2, {5, 7}, {8, 8}, true},
		{3, {3, 4, 5}, {2, 4, 5}, true},  {3, {3, 4, 5}, {3, 1, 5}, true},
		{1, {9}, {4}, true},              {3, {1, 1, 1}, {2, 2, 2}, true},
		{2, {5, 7}, {200, 200}, false},   {2, {5, 7}, {UINT64_MAX / 8, 8}, false},
	};
	static const uint64_t chunk[] = {2, 2, 2, 2};
	uint64_t lens[RANK_MAX], first, slot, n, got, want = 0;
	struct shape s;
	int rc = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t seen = 0;

		make(&s, rows[i].rank, rows[i].grid, 1, 1);
		s.a.chunk = chunk;
		for (uint32_t d = 0; d < s.a.rank; d++)
			lens[d] = rows[i].per[d] * 2;
		assert_int_equal(zr_grid_layout(&s.a, lens, &s.arena, &s.g, &rc), rows[i].taken);
		for (uint64_t f = 0; s.g.per && f < s.g.n; f++) {
			for (slot = 0; slot < s.g.slots; slot++) {
				bool there = by_coords(&s, f, slot, &want);

				assert_int_equal(zr_grid_slot(&s.a, &s.g, f, slot, &got), there);
				if (there)
					assert_int_equal(got, want);
				if (there)
					assert_int_equal(zr_grid_file(&s.a, &s.g, got), f);
			}
			for (uint64_t r = 0; r < zr_grid_runs(&s.a, &s.g); r++) {
				zr_grid_run(&s.a, &s.g, f, r, &first, &slot, &n);
				for (uint64_t k = 0; k < n; k++, seen++) {
					assert_true(zr_grid_slot(&s.a, &s.g, f, slot + k, &got));
					assert_int_equal(got, first + k);
				}
			}
		}
		assert_int_equal(seen, rows[i].taken ? s.a.n_chunks : 0);
		lens[0]++; /* no whole chunks */
		assert_false(zr_grid_layout(&s.a, lens, &s.arena, &s.g, &rc));
		assert_null(s.g.per);
		arena_release(&s.arena);
	}
	assert_int_equal(rc, 0);
}

static void test_no_memory(void **state)
{
	static const uint64_t grid[] = {3, 4};
	struct ds_array a = {.rank = 2, .grid = grid, .n_chunks = 12, .chunk_bytes = 8};
	struct arena arena;
	struct zr_grid g;
	struct err e = ERR_INIT;

	(void)state;
	arena_init(&arena, 8);
	assert_int_equal(zr_grid_shards(&a, 1 << 20, &arena, &g, &e), -ENOMEM);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_chunk), cmocka_unit_test(test_size),
		cmocka_unit_test(test_none),        cmocka_unit_test(test_large),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
