/* SPDX-License-Identifier: BSD-3-Clause */
/* chunkio over a remote source: chunks are prefetched before their readers wait for them, whatever
 * the plan, and a local source gets no requests. */
#include "tests/unit/chunkio_fake.h"

static uint64_t wanted[1000];
static size_t n_wanted;
static int locates, when; /* how often a chunk was located; and when the last want came */

static void fake_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n)
{
	(void)s;
	assert_int_equal(array, 0);
	for (size_t i = 0; i < n && n_wanted < ARRAY_LEN(wanted); i++)
		wanted[n_wanted++] = linear[i];
	when = locates;
}

static int count_locate(struct source *s, uint32_t array, uint64_t linear,
			struct chunk_ref *ret, struct err *e)
{
	locates++;
	return fake_locate(s, array, linear, ret, e);
}

static struct source_ops ops;

static void begin(struct fake *f, bool far)
{
	ops = fake_ops;
	ops.want = fake_want;
	ops.locate = count_locate;
	f->base.ops = &ops;
	f->base.remote = far;
	n_wanted = 0;
	locates = when = 0;
	start(f);
}

/* read_one - as a kernel does: size, then bytes. */
static void read_one(struct fake *f, uint64_t k)
{
	uint8_t got[BYTES];
	struct err e = ERR_INIT;
	uint64_t size;
	int rc = chunkio_stat(f->io, 0, k, &size, &e);

	assert_int_equal(rc, 0);
	(void)piece(f->io, 0, k, 0, BYTES / 2, got, &e, &rc);
	assert_int_equal(rc, 0);
	(void)piece(f->io, 0, k, BYTES / 2, BYTES / 2, got, &e, &rc);
	assert_int_equal(rc, 0);
}

static void wanted_are(size_t n, const uint64_t *list)
{
	assert_int_equal(n_wanted, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(wanted[i], list[i]);
	n_wanted = 0;
}

/* order - chunks in order, under whatever plan the arrays have. */
static void order(struct fake *f)
{
	begin(f, true);
	for (uint64_t k = 0; k < 40; k++)
		store_values(f, k, 0);
	read_one(f, 0);
	wanted_are(1, (const uint64_t[]){0});
	locates = 0;
	read_one(f, 1);
	wanted_are(5, (const uint64_t[]){1, 2, 3, 4, 5});
	assert_int_equal(when, 0); /* before a reader waits */
	read_one(f, 2);
	wanted_are(9, (const uint64_t[]){2, 3, 4, 5, 6, 7, 8, 9, 10});
	read_one(f, 30);
	wanted_are(1, (const uint64_t[]){30});
}

static void test_order_decoded(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_DEFLATE, 0, 0);
	order(f);
}

static void test_order_passed(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_DEFLATE, 0, 0);
	pass(f, 0);
	order(f);
}

static void test_end(void **state)
{
	struct fake *f = *state;

	begin(f, true);
	for (uint64_t k = CHUNKS - 3; k < CHUNKS; k++)
		store_values(f, k, 0);
	read_one(f, CHUNKS - 3);
	read_one(f, CHUNKS - 2);
	wanted_are(3, (const uint64_t[]){CHUNKS - 3, CHUNKS - 2, CHUNKS - 1});
}

/* Of uncompressed chunks a piece may be all that is wanted. */
static void test_pieces(void **state)
{
	struct fake *f = *state;
	uint8_t got[16];
	struct err e = ERR_INIT;
	int rc = 0;

	pass(f, 0);
	begin(f, true);
	store_values(f, 7, 0);
	assert_int_equal(piece(f->io, 0, 7, 64, 16, got, &e, &rc), 16);
	wanted_are(0, NULL);
}

static void test_near(void **state)
{
	struct fake *f = *state;

	begin(f, false);
	for (uint64_t k = 0; k < 10; k++)
		store_values(f, k, 0);
	for (uint64_t k = 0; k < 10; k++)
		read_one(f, k);
	wanted_are(0, NULL);
}

static void test_listing(void **state)
{
	struct fake *f = *state;
	uint64_t size;

	begin(f, true);
	for (uint64_t k = 0; k < 40; k++)
		store_values(f, k, 0);
	for (uint64_t k = 0; k < 40; k++)
		assert_int_equal(chunkio_stat(f->io, 0, k, &size, NULL), 0);
	wanted_are(0, NULL);
	f->base.unlisted = true;
	assert_false(chunkio_stat_cheap(f->io, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order_decoded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_passed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_near, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
