/* SPDX-License-Identifier: BSD-3-Clause */
/* test_grid.c - places, boxes and chunks; what two blocks share is copied. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "translate/model/grid.h"

/* every box of small blocks, against one element at a time */
static void test_copies(void **state)
{
	const uint64_t in_dims[3] = {3, 4, 2}, out_dims[3] = {2, 5, 2};
	uint16_t in[24], out[20], want[20];

	(void)state;
	for (uint16_t i = 0; i < 24; i++)
		in[i] = (uint16_t)(i + 1);
	for (uint32_t n = 0; n < 2 * 4 * 2 * 2 * 2; n++) {
		const uint64_t lens[3] = {n % 2 + 1, n / 2 % 4 + 1, n / 8 % 2 + 1};
		const uint64_t from[3] = {n / 16 % 2, 0, lens[2] == 1 ? 1 : 0};
		const uint64_t to[3] = {lens[0] == 1 ? n / 32 : 0, 1, 0};
		struct grid_box box;
		uint64_t in_at[3], out_at[3];
		const struct grid_block a = {in_at, in_dims}, b = {out_at, out_dims};

		memset(out, 0, sizeof(out));
		memset(want, 0, sizeof(want));
		for (uint64_t i = 0; i < lens[0]; i++)
			for (uint64_t k = 0; k < lens[1]; k++)
				for (uint64_t m = 0; m < lens[2]; m++)
					want[((to[0] + i) * 5 + to[1] + k) * 2 + to[2] + m] =
						in[((from[0] + i) * 4 + from[1] + k) * 2 +
						   from[2] + m];
		for (uint32_t d = 0; d < 3; d++) { /* blocks may begin before the box's 0 */
			box.lo[d] = n % 3;
			box.hi[d] = box.lo[d] + lens[d];
			in_at[d] = box.lo[d] - from[d];
			out_at[d] = box.lo[d] - to[d];
		}
		grid_copy(3, sizeof(*in), &box, &a, in, &b, out);
		assert_memory_equal(out, want, sizeof(out));
	}
}

static void test_scalars(void **state)
{
	struct grid_box box = {{0}, {0}};
	const struct grid_block none = {NULL, NULL};
	uint32_t in = 77, out = 0;

	(void)state;
	grid_copy(0, sizeof(in), &box, &none, &in, &none, &out);
	assert_int_equal(out, 77);
	assert_false(grid_next(0, &box, NULL));
	assert_true(grid_both(0, &box, &box, &box));
}

static void test_grids(void **state)
{
	const uint64_t shape[2] = {5, 7}, chunk[2] = {2, 3}, grid[2] = {3, 3};
	uint64_t at[2], n = 0;
	struct grid_box c, in, both;

	(void)state;
	for (uint64_t i = 0; i < 9; i++) {
		grid_coords(2, grid, i, at);
		assert_true(grid_linear(2, grid, at) == i);
	}
	grid_chunk(2, shape, chunk, at, &c); /* the last, which is cut */
	assert_true(c.lo[0] == 4 && c.hi[0] == 5 && c.lo[1] == 6 && c.hi[1] == 7);

	c = (struct grid_box){{1, 2}, {4, 4}};
	grid_chunks(2, &c, chunk, &in);
	assert_true(in.lo[0] == 0 && in.hi[0] == 2 && in.lo[1] == 0 && in.hi[1] == 2);
	memcpy(at, in.lo, sizeof(at));
	do
		assert_true(grid_linear(2, grid, at) == n % 2 + n / 2 * 3);
	while (++n, grid_next(2, &in, at));
	assert_int_equal(n, 4);

	assert_false(grid_both(2, &c, &in, &both)); /* 2 is not below 2 */
	in.hi[1] = 3;
	assert_true(grid_both(2, &c, &in, &both));
	assert_true(both.lo[0] == 1 && both.hi[0] == 2 && both.lo[1] == 2 && both.hi[1] == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_grids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
