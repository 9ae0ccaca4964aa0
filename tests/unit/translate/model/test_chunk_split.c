/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of arrays that are stored in one piece. */
#include "translate/model/grid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_cut(void **state)
{
	const uint64_t shape[3] = {7, 1000, 10}, prime[1] = {1000003}, empty[2] = {0, 3};
	const uint64_t huge[2] = {UINT64_MAX, (uint64_t)1 << 62};
	uint64_t c[3];

	(void)state;
	ds_split_chunks(shape, 3, 4, 1 << 20, c);
	assert_true(c[0] == 7 && c[1] == 1000 && c[2] == 10);
	ds_split_chunks(shape, 3, 4, 4000, c);
	assert_true(c[0] == 1 && c[1] == 100 && c[2] == 10);
	ds_split_chunks(shape, 3, 4, 1, c);
	assert_true(c[0] == 1 && c[1] == 1 && c[2] == 1);
	ds_split_chunks(prime, 1, 8, 4096, c);
	assert_true(c[0] == 512);
	ds_split_chunks(empty, 2, 8, 4096, c); /* a length of 0 counts as 1 */
	assert_true(c[0] == 1 && c[1] == 3);
	ds_split_chunks(empty, 0, 8, 4096, c); /* a scalar has none */
	ds_split_chunks(huge, 2, 8, 4096, c);  /* products that overflow end the row */
	assert_true(c[0] == 1 && c[1] == 512);
}

static void test_range(void **state)
{
	const uint64_t shape[3] = {7, 1000, 10}, chunk[3] = {1, 300, 10}, at[3] = {2, 3, 0};
	const struct ds_array a = {
		.rank = 3, .shape = shape, .chunk = chunk, .type = {.size = 4}};
	uint64_t off, len;

	(void)state;
	assert_int_equal(ds_split_range(&a, 0, at, &off, &len), 280000);
	assert_int_equal(off, 2 * 40000 + 900 * 40);
	assert_int_equal(len, 100 * 40); /* the last chunk of an axis is partial */
	assert_int_equal(ds_split_range(&a, 1, at, &off, &len), 40000);
	assert_int_equal(off, 900 * 40);
	assert_int_equal(len, 100 * 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
