/* SPDX-License-Identifier: BSD-3-Clause */
/* Which chunks exist and how long they are: every representation against the list it was made
 * from, its memory, and chunks whose size cannot be stated. */
#include "tests/unit/hdf5view/virtual/nc_fake.h"

static struct nc_chunks *make(struct ncf *f, uint64_t *used)
{
	struct nc_budget budget = {.max = 1 << 28};
	struct nc_chunks *c = NULL;
	struct err e = ERR_INIT;

	ncf_start(f);
	if (nc_chunks_make(f->io, &f->a, 0, &f->plan, &budget, &c, &e) < 0)
		fail_msg("%s", e.msg);
	*used = budget.used;
	return c;
}

/* matches - every question about every chunk, from the references. */
static void matches(const struct ncf *f, const struct nc_chunks *c)
{
	uint64_t i = 0, off = 0, linear, at, size;

	for (uint64_t l = 0; l < f->a.n_chunks; l++) {
		uint64_t want = f->refs[l].len;

		if (f->refs[l].where == CHUNK_ABSENT)
			continue;
		if (f->plan.chain.n == 0)
			want = f->a.chunk_bytes;
		nc_chunks_nth(c, i, &linear, &at, &size);
		if (linear != l || at != off || size != want)
			fail_msg("chunk %llu is %llu at %llu, %llu bytes",
				 (unsigned long long)l, (unsigned long long)linear,
				 (unsigned long long)at, (unsigned long long)size);
		assert_int_equal(nc_chunks_at(c, off), i);
		assert_int_equal(nc_chunks_at(c, off + size / 2), i);
		assert_int_equal(nc_chunks_at(c, off + size - 1), i);
		off += size;
		i++;
	}
	assert_int_equal(nc_chunks_n(c), i);
	assert_int_equal(nc_chunks_bytes(c), off);
}

/* one - a linear array of n chunks of 4 elements. */
static void one(struct ncf *f, uint64_t n)
{
	uint64_t shape = 4 * n, chunk = 4;

	ncf_init(f, 1, &shape, &chunk);
}

static void set(struct ncf *f, uint64_t l, uint64_t size)
{
	f->refs[l] = (struct chunk_ref){.where = CHUNK_RANGE, .len = size};
}

static void test_constant(void **state)
{
	static const uint64_t counts[] = {1, 63, 64, 65, 128, 1000, 4096};
	struct nc_chunks *c;
	uint64_t used;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
		struct ncf f;

		one(&f, counts[k]);
		for (uint64_t l = 0; l < counts[k]; l++)
			set(&f, l, 16);
		c = make(&f, &used);
		matches(&f, c);
		assert_true(used < 300);
		nc_chunks_free(c);
		ncf_release(&f);
	}
}

static void test_million_cost_nothing(void **state)
{
	uint64_t used, linear, off, size;
	struct nc_chunks *c;
	struct ncf f;

	(void)state;
	one(&f, 1000000);
	f.where = CHUNK_RANGE;
	free(f.refs);
	f.refs = NULL;
	c = make(&f, &used);
	assert_true(used < 300);
	assert_int_equal(nc_chunks_n(c), 1000000);
	nc_chunks_nth(c, 999999, &linear, &off, &size);
	assert_int_equal(linear, 999999);
	assert_int_equal(off, 16 * 999999);
	assert_int_equal(f.looks, 0); /* sizes that are known are not asked for */
	nc_chunks_free(c);
	ncf_release(&f);
}

/* A file that claims any number of chunks does not block a caller without limit. */
static void test_claims(void **state)
{
	struct nc_budget budget = {.max = NC_LOOKED * 1000};
	struct nc_chunks *c = NULL;
	struct err e = ERR_INIT;
	struct ncf f;

	(void)state;
	one(&f, (uint64_t)1 << 50);
	f.where = CHUNK_RANGE;
	free(f.refs);
	f.refs = NULL;
	ncf_start(&f);
	assert_int_equal(nc_chunks_make(f.io, &f.a, 0, &f.plan, &budget, &c, &e), -ERANGE);
	assert_null(c);
	assert_true(budget.looked <= 1001);
	ncf_release(&f);
}

/* Where every chunk is presented, the source is not queried. */
static void test_undeclared(void **state)
{
	struct nc_chunks *c;
	uint64_t used, linear, off, size;
	struct ncf f;

	(void)state;
	one(&f, 100);
	f.plan.fill_declared = false;
	c = make(&f, &used);
	assert_int_equal(nc_chunks_n(c), 100);
	nc_chunks_nth(c, 99, &linear, &off, &size);
	assert_int_equal(linear, 99);
	assert_int_equal(nc_chunks_bytes(c), 1600);
	nc_chunks_free(c);
	ncf_release(&f);
}

static bool by_pattern(unsigned pattern, uint64_t l, uint64_t n)
{
	switch (pattern) {
	case 0:
		return false;
	case 1:
		return l == 0;
	case 2:
		return l == n - 1;
	case 3:
		return l > 0;
	case 4:
		return l < n - 1;
	case 5:
		return l != n / 2;
	case 6:
		return l % 2 == 0;
	case 7:
		return l % 3 == 1;
	case 8:
		return l > 1000 && l < 2000;
	case 9:
		return l % 700 < 300;
	case 10:
		return (l * 2654435761u >> 7) % 16 == 0;
	default:
		return l >= n - 600 && l % 2 == 1;
	}
}

static void test_absent(void **state)
{
	static const uint64_t counts[] = {3, 64, 512, 513, 5000, 70000};
	struct nc_chunks *c;
	uint64_t used;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(counts); k++)
		for (unsigned pattern = 0; pattern < 12; pattern++) {
			struct ncf f;
			uint64_t n = counts[k];

			one(&f, n);
			for (uint64_t l = 0; l < n; l++)
				if (by_pattern(pattern, l, n))
					set(&f, l, 16);
			c = make(&f, &used);
			matches(&f, c);
			assert_true(used <= 5000 + n / 5);
			nc_chunks_free(c);
			ncf_release(&f);
		}
}

/* A grid that no bitmap covers. */
static void test_sparse(void **state)
{
	struct nc_chunks *c;
	uint64_t used;
	struct ncf f;

	(void)state;
	one(&f, 1 << 20);
	for (uint64_t l = 1000; l < 1 << 20; l += 9973)
		set(&f, l, 16);
	c = make(&f, &used);
	matches(&f, c);
	assert_true(used < 16 * 256 + 300);
	nc_chunks_free(c);
	ncf_release(&f);
}

static void test_sizes(void **state)
{
	/* what the largest exceeds the smallest by, and bytes that takes */
	static const struct {
		uint64_t over;
		unsigned width;
	} rows[] = {{0, 0},     {1, 1},     {255, 1},     {256, 2},
		    {65535, 2}, {65536, 3}, {1 << 24, 4}, {UINT32_MAX - 100, 4}};
	static const uint64_t counts[] = {1, 4, 40, 64, 65, 121, 128, 364, 1093, 4096};
	struct nc_chunks *c;
	uint64_t used;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++)
		for (size_t j = 0; j < ARRAY_LEN(counts); j++) {
			uint64_t n = counts[j];
			struct ncf f;

			one(&f, n);
			ncf_deflate(&f, false);
			for (uint64_t l = 0; l < n; l++)
				if (n % 64 == 0 || l % 11 != 3)
					set(&f, l, 100 + (l * 7919) % (rows[k].over + 1));
			set(&f, n / 2, 100 + rows[k].over);
			c = make(&f, &used);
			matches(&f, c);
			assert_true(used <=
				    500 + n / 11 * 33 + n * (8 * rows[k].width + 1) / 8);
			nc_chunks_free(c);
			ncf_release(&f);
		}
}

/* 0, 4 GiB, unreadable: there, with a size that an index can state. */
static void test_unknown(void **state)
{
	uint64_t used, linear, off, size;
	struct nc_chunks *c;
	struct ncf f;

	(void)state;
	one(&f, 10);
	ncf_deflate(&f, false);
	for (uint64_t l = 0; l < 10; l++)
		set(&f, l, 50);
	set(&f, 3, 0);
	set(&f, 4, (uint64_t)1 << 32);
	f.bad = 5;
	f.bad_rc = -EBADMSG;
	c = make(&f, &used);
	assert_int_equal(nc_chunks_n(c), 10);
	for (uint64_t i = 0; i < 10; i++) {
		nc_chunks_nth(c, i, &linear, &off, &size);
		assert_int_equal(linear, i);
		assert_int_equal(size, i >= 3 && i <= 5 ? NC_SIZE_UNKNOWN : 50);
	}
	nc_chunks_free(c);
	ncf_release(&f);
}

static void test_errors(void **state)
{
	struct nc_chunks *c = NULL;
	struct nc_budget budget = {.max = 4000};
	struct err e = ERR_INIT;
	struct ncf f;

	(void)state;
	one(&f, 5000);
	ncf_deflate(&f, false);
	for (uint64_t l = 0; l < 5000; l++)
		set(&f, l, 50 + l);
	ncf_start(&f);
	assert_int_equal(nc_chunks_make(f.io, &f.a, 0, &f.plan, &budget, &c, &e), -ERANGE);
	assert_int_equal(e.code, -ERANGE);
	f.bad = 17;
	f.bad_rc = -ESTALE; /* not a matter of that chunk */
	budget = (struct nc_budget){.max = 1 << 20};
	assert_int_equal(nc_chunks_make(f.io, &f.a, 0, &f.plan, &budget, &c, &e), -ESTALE);
	assert_null(c);
	ncf_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constant),   cmocka_unit_test(test_million_cost_nothing),
		cmocka_unit_test(test_undeclared), cmocka_unit_test(test_absent),
		cmocka_unit_test(test_sparse),     cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_unknown),    cmocka_unit_test(test_claims),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
