/* SPDX-License-Identifier: BSD-3-Clause */
/* Many readers of the same chunks, and chunks loaded ahead of them. */
#include "tests/unit/chunkio_fake.h"

#include <pthread.h>

#define READERS 5

struct reader {
	struct fake *f;
	uint64_t from, to;
	int rc;
	size_t bad;
	struct err e;
};

/* reads - chunks [from, to) of array 0, statted and then read in pieces. */
static void *reads(void *arg)
{
	struct reader *r = arg;
	int32_t v[ELEMS];
	uint8_t got[BYTES];
	uint64_t size;

	atomic_fetch_add(&r->f->entered, 1);
	for (uint64_t k = r->from; k < r->to; k++) {
		size_t n = 0;

		r->rc = chunkio_stat(r->f->io, 0, k, &size, &r->e);
		for (size_t off = 0; r->rc == 0 && off < BYTES; off += 96)
			n += piece(r->f->io, 0, k, off, 96, got + off, &r->e, &r->rc);
		if (r->rc < 0)
			return NULL;
		values(k, v);
		r->bad += size != BYTES || n != BYTES || memcmp(got, v, BYTES) != 0;
	}
	return NULL;
}

static void run_readers(struct fake *f, struct reader *r, uint64_t from, uint64_t to)
{
	pthread_t ids[READERS];

	for (size_t i = 0; i < READERS; i++) {
		r[i] = (struct reader){.f = f, .from = from, .to = to};
		assert_int_equal(pthread_create(&ids[i], NULL, reads, &r[i]), 0);
	}
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(ids[i], NULL), 0);
}

static void test_decode_once(void **state)
{
	struct fake *f = *state;
	struct reader r[READERS];

	f->refs[0].where = CHUNK_SYNTH;
	start(f);
	atomic_store(&f->wait_for, READERS); /* the load ends when all readers are under way */
	run_readers(f, r, 0, 1);
	for (size_t i = 0; i < READERS; i++) {
		assert_int_equal(r[i].rc, 0);
		assert_int_equal(r[i].bad, 0);
	}
	assert_int_equal(atomic_load(&f->reads), 1);
}

static void test_retry(void **state)
{
	struct fake *f = *state;
	struct reader r[READERS];

	f->refs[0].where = CHUNK_SYNTH;
	start(f);
	atomic_store(&f->fail_reads, READERS);
	atomic_store(&f->wait_for, READERS);
	run_readers(f, r, 0, 1);
	for (size_t i = 0; i < READERS; i++) {
		assert_int_equal(r[i].rc, -EBADMSG);
		assert_string_equal(r[i].e.msg, "'/g/v' chunk 0: made up");
	}
	atomic_store(&f->fail_reads, 0);
	is_chunk(f, 0);
}

static void test_ahead(void **state)
{
	struct fake *f = *state;
	struct reader r[READERS];

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	for (uint64_t i = 0; i < CHUNKS; i++)
		store_values(f, i, 0);
	/* room for all: however the threads are scheduled, each chunk is made once */
	start_with(f, 1 << 20, 3);
	r[0] = (struct reader){.f = f, .from = 0, .to = CHUNKS};
	(void)reads(&r[0]);
	assert_int_equal(r[0].rc, 0);
	assert_int_equal(r[0].bad, 0);
	chunkio_free(f->io);
	f->io = NULL;
	assert_int_equal(atomic_load(&f->checks), CHUNKS);

	/* little room: made again and again, and still right */
	start_with(f, 8 * BYTES, 2);
	run_readers(f, r, 0, CHUNKS);
	for (size_t i = 0; i < READERS; i++) {
		assert_int_equal(r[i].rc, 0);
		assert_int_equal(r[i].bad, 0);
	}
}

static void test_ahead_of_list(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	for (uint64_t i = 0; i < CHUNKS; i++)
		store_values(f, i, 0);
	start_with(f, 1 << 20, 2);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(size_of(f, i), BYTES);
	chunkio_free(f->io);
	f->io = NULL;
	assert_int_equal(atomic_load(&f->checks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_decode_once),
		TEST(test_retry),
		TEST(test_ahead),
		TEST(test_ahead_of_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
