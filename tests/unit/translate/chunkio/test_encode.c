/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks that are presented in another chain than they are stored in, or quantised. */
#include "tests/unit/chunkio_fake.h"

#include <pthread.h>

#include "codecs/spec/spec.h"

#define READERS 5

static const uint32_t level[] = {3}, four[] = {4};
static const struct codec_spec target[] = {{CODEC_SHUFFLE, 1, four, ""},
					   {CODEC_ZSTD, 1, level, ""}};

/* encode - present array 0 and 1 in the target chain. */
static void encode(struct fake *f)
{
	for (size_t i = 0; i < ARRAYS; i++)
		f->plans[i] = (struct plan){.kind = PLAN_ENCODE,
					    .chain = {2, target},
					    .elem_size = 4,
					    .bytes = BYTES,
					    .fill_declared = true};
}

static void fill_all(struct fake *f)
{
	for (uint64_t i = 0; i < CHUNKS; i++)
		store_values(f, i, 0);
}

static void test_encode(void **state)
{
	struct fake *f = *state;
	uint64_t size;

	encode(f);
	store_values(f, 0, 0); /* without filters */
	start(f);
	size = size_of(f, 0);
	assert_true(size < BYTES);
	is_chunk(f, 0);
	assert_int_equal(size_of(f, 0), size);
	stat_fails(f, 1, -ENOENT);

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	store_values(f, 0, 0);
	store_values(f, 1, 1);
	store_values(f, 2, CODEC_ALL_SKIPPED);
	f->refs[3].where = CHUNK_SYNTH;
	start(f);
	for (uint64_t i = 0; i < 4; i++)
		is_chunk(f, i);
	assert_int_equal(size_of(f, 0), size); /* however it is stored */
	assert_int_equal(atomic_load(&f->reads), 1);
	assert_int_equal(chunkio_next(f->io, 0, 2, &size, NULL), 0);
	assert_int_equal(size, 2);
	assert_int_equal(chunkio_next(f->io, 0, 4, &size, NULL), -ENOENT);
}

/* Sizes are remembered when the chunks are not kept: listing again makes nothing again. */
static void test_sizes_remembered(void **state)
{
	struct fake *f = *state;
	uint64_t size[CHUNKS];
	int checks;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	encode(f);
	fill_all(f);
	start_with(f, 0, 0);
	assert_false(chunkio_stat_cheap(f->io, 0, 0));
	for (uint64_t i = 0; i < CHUNKS; i++)
		size[i] = size_of(f, i);
	checks = atomic_load(&f->checks);
	assert_int_equal(checks, CHUNKS);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		assert_int_equal(size_of(f, i), size[i]);
		assert_true(chunkio_stat_cheap(f->io, 0, i));
	}
	assert_int_equal(atomic_load(&f->checks), checks);
	assert_false(chunkio_stat_cheap(f->io, 1, 0));
	assert_false(chunkio_stat_cheap(f->io, ARRAYS, 0));
	for (uint64_t i = 0; i < CHUNKS; i += 7)
		is_chunk(f, i);
	f->plans[0].kind = PLAN_DECODE;
	assert_true(chunkio_stat_cheap(f->io, 0, 0));
}

/* If a chunk is encoded again to another length than was reported, that is an error, not a file of
 * another length. */
static void test_other_length(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS];
	uint64_t size;

	encode(f);
	memset(v, 0, sizeof(v));
	store(f, 0, v, sizeof(v), 0);
	store_values(f, 1, 0);
	start_with(f, 0, 0);
	size = size_of(f, 0);
	(void)size_of(f, 1); /* pushes it out of the cache */
	values(0, v);
	assert_int_equal(pwrite(f->fd, v, sizeof(v), (off_t)f->refs[0].off), sizeof(v));
	fails(f, 0, -EIO, "'/g/v' chunk 0: encoding produced ");
	assert_int_equal(size_of(f, 0), size);
	memset(v, 0, sizeof(v));
	assert_int_equal(pwrite(f->fd, v, sizeof(v), (off_t)f->refs[0].off), sizeof(v));
	is_values(f, 0, v);
}

static void test_damage(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	encode(f);
	store(f, 0, "0123456789", 10, 0);
	store_values(f, 1, 0);
	f->refs[2].where = CHUNK_SYNTH;
	f->refs[1].len -= 5;
	atomic_store(&f->fail_reads, 3);
	start(f);
	fails(f, 0, -EBADMSG, "'/g/v' chunk 0: ");
	fails(f, 1, -EBADMSG, "'/g/v' chunk 1: ");
	fails(f, 2, -EBADMSG, "'/g/v' chunk 2: made up");
	stat_fails(f, 0, -EBADMSG);
	assert_false(chunkio_stat_cheap(f->io, 0, 0));
	stat_fails(f, 2, -EBADMSG);
	is_chunk(f, 2); /* the next one may work */
	atomic_store(&f->fail_checks, 1);
	f->refs[3] = f->refs[2];
	fails(f, 3, -ESTALE, "the file changed");
}

static void test_absent(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS];
	uint64_t size;

	encode(f);
	f->fill = -559038737;
	f->plans[0].fill_declared = false;
	start(f);
	for (size_t i = 0; i < ELEMS; i++)
		v[i] = f->fill;
	size = size_of(f, 3);
	is_values(f, 3, v);
	is_values(f, 4, v);
	assert_int_equal(size_of(f, 4), size);
	assert_int_equal(atomic_load(&f->checks), 0); /* made once, and kept */
	stat_fails(f, CHUNKS, -EINVAL);

	/* shuffle alone makes nothing smaller, as requested */
	f->plans[0].chain.n = 1;
	start(f);
	assert_int_equal(size_of(f, 3), BYTES);
	is_values(f, 3, v);
}

/* A fill chunk that is too large to be kept is made each time, and is always the same. */
static void test_absent_large(void **state)
{
	struct fake *f = *state;
	struct err e = ERR_INIT;
	uint8_t *got = malloc(8 << 20);
	uint64_t size = 0;
	int rc;

	assert_non_null(got);
	f->fill = 77;
	f->arrays[0].chunk_bytes = 4 << 20;
	f->chunk = f->arrays[0].chunk_bytes / 4;
	encode(f);
	f->plans[0].bytes = f->arrays[0].chunk_bytes;
	f->plans[0].chain.n = 1;
	f->plans[0].fill_declared = false;
	start_with(f, 1 << 20, 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(chunkio_stat(f->io, 0, i, &size, NULL), 0);
		assert_int_equal(size, 4 << 20);
		assert_int_equal(piece(f->io, 0, i, 0, 8 << 20, got, &e, &rc), 4 << 20);
		assert_int_equal(got[0], 77);
		assert_int_equal(got[1 << 20], 0);
	}
	free(got);
}

/* A chunk that is cut has its first rows. */
static void test_cut(void **state)
{
	struct fake *f = *state;
	struct codec_scratch *scratch = codec_scratch_new();
	int32_t v[ELEMS], want[ELEMS];
	uint8_t got[4096];
	size_t n;

	encode(f);
	f->plans[0].bytes = 40;
	store_values(f, 0, 0);
	start(f);
	n = whole(f, 0, got, sizeof(got));
	values(0, want);
	assert_int_equal(codec_chain_decode(&f->plans[0].chain, 0, 4, got, n, (uint8_t *)v, 40,
					    scratch, NULL),
			 0);
	assert_memory_equal(v, want, 40);
	codec_scratch_free(scratch);
}

/* ---- quantisation ---- */

/* rounded - the values of a chunk, taken as floats, with ten bits. */
static void rounded(uint64_t chunk, int32_t *out)
{
	const struct codec_quant q = {.mode = CODEC_QUANT_BITROUND, .digits = 10};

	values(chunk, out);
	codec_quantize(&q, 4, false, NULL, (uint8_t *)out, ELEMS);
}

static void test_quantise(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS], plain[ELEMS];

	for (int pass = 0; pass < 4; pass++) {
		chain(f, pass % 2 ? CODEC_DEFLATE : 0, 0, 0);
		if (pass < 2)
			encode(f);
		else
			f->plans[0] = (struct plan){.kind = PLAN_DECODE, .fill_declared = true};
		f->plans[0].quant =
			(struct codec_quant){.mode = CODEC_QUANT_BITROUND, .digits = 10};
		f->arrays[0].type.kind = DT_FLOAT;
		store_values(f, 150, 0);
		start(f);
		rounded(150, v);
		values(150, plain);
		assert_memory_not_equal(v, plain, sizeof(v));
		is_values(f, 150, v);
		stat_fails(f, 1, -ENOENT);
	}
}

/* What stays as it is: the fill value of the plan, and chunks of it. */
static void test_quantise_fill(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS], fill;

	values(150, v);
	fill = v[20];
	f->fill = fill;
	f->arrays[0].type.kind = DT_FLOAT;
	f->plans[0] = (struct plan){
		.kind = PLAN_DECODE,
		.quant = {.mode = CODEC_QUANT_BITROUND, .digits = 10},
		.quant_fill = (const uint8_t *)&fill,
	};
	store_values(f, 150, 0);
	start(f);
	rounded(150, v);
	assert_int_not_equal(v[20], fill);
	v[20] = fill;
	is_values(f, 150, v);
	for (size_t i = 0; i < ELEMS; i++)
		v[i] = fill;
	is_values(f, 1, v);
}

/* ---- many ---- */

static void test_measure(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	encode(f);
	fill_all(f);
	f->refs[5].where = CHUNK_ABSENT;
	f->refs[9].len = 3;
	start_with(f, 0, 3);
	chunkio_measure(f->io, 0, 2, 100);
	for (uint64_t i = 0; i < CHUNKS; i++)
		assert_int_equal(chunkio_stat_cheap(f->io, 0, i),
				 i >= 2 && i < 102 && i != 5 && i != 9);
	assert_int_equal(atomic_load(&f->checks), 99);
	stat_fails(f, 9, -EBADMSG);
	chunkio_measure(f->io, 0, 150, UINT64_MAX);
	assert_true(chunkio_stat_cheap(f->io, 0, CHUNKS - 1));
	chunkio_measure(f->io, ARRAYS, 0, 100); /* nothing to do */
	chunkio_measure(f->io, 0, CHUNKS, 100);
	atomic_store(&f->fail_checks, 1);
	chunkio_measure(f->io, 1, 0, CHUNKS); /* ends soon */
	assert_true(atomic_load(&f->checks) < 2 * CHUNKS);
}

struct reader {
	struct fake *f;
	bool bad;
	struct err e;
};

static void *reads(void *arg)
{
	struct reader *r = arg;
	struct codec_scratch *scratch = codec_scratch_new();

	for (uint64_t k = 0; k < CHUNKS && !r->bad; k++) {
		uint8_t got[1024];
		int32_t v[ELEMS], want[ELEMS];
		uint64_t size = 0;
		size_t n = 0;
		int rc = chunkio_stat(r->f->io, 0, k, &size, &r->e);

		for (size_t off = 0; rc == 0 && off < size; off += 50)
			n += piece(r->f->io, 0, k, off, 50, got + off, &r->e, &rc);
		values(k, want);
		r->bad = rc < 0 || n != size ||
			 codec_chain_decode(&r->f->plans[0].chain, 0, 4, got, n, (uint8_t *)v,
					    BYTES, scratch, &r->e) < 0 ||
			 memcmp(v, want, BYTES) != 0;
	}
	codec_scratch_free(scratch);
	return NULL;
}

/* Readers of the same chunks, with threads that encode ahead, and next to no room. */
static void test_readers(void **state)
{
	struct fake *f = *state;
	struct reader r[READERS];
	pthread_t ids[READERS];

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	encode(f);
	fill_all(f);
	for (int pass = 0; pass < 3; pass++) {
		start_with(f, pass == 2 ? 1 << 20 : 2 * BYTES, pass == 0 ? 0 : 3);
		for (size_t i = 0; i < READERS; i++) {
			r[i] = (struct reader){.f = f};
			assert_int_equal(pthread_create(&ids[i], NULL, reads, &r[i]), 0);
		}
		for (size_t i = 0; i < READERS; i++)
			assert_int_equal(pthread_join(ids[i], NULL), 0);
		for (size_t i = 0; i < READERS; i++)
			if (r[i].bad)
				fail_msg("pass %d: %s", pass, r[i].e.msg);
	}
}

/* With room for all, each chunk is encoded once, by the first thread that needs it. */
static void test_ahead(void **state)
{
	struct fake *f = *state;
	struct reader r = {.f = f};

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	encode(f);
	fill_all(f);
	start_with(f, 1 << 20, 3);
	(void)reads(&r);
	assert_false(r.bad);
	chunkio_free(f->io);
	f->io = NULL;
	assert_int_equal(atomic_load(&f->checks), CHUNKS);
}

static void test_hard_links(void **state)
{
	struct fake *f = *state;
	uint64_t size;

	encode(f);
	f->refs[0].where = CHUNK_SYNTH;
	f->arrays[1].key = f->arrays[0].key;
	start(f);
	assert_int_equal(chunkio_stat(f->io, 0, 0, &size, NULL), 0);
	assert_int_equal(chunkio_stat(f->io, 1, 0, &size, NULL), 0);
	assert_int_equal(atomic_load(&f->reads), 1);
	f->plans[1].quant = (struct codec_quant){.mode = CODEC_QUANT_BITROUND, .digits = 3};
	start(f);
	assert_int_equal(chunkio_stat(f->io, 0, 0, &size, NULL), 0);
	assert_int_equal(chunkio_stat(f->io, 1, 0, &size, NULL), 0);
	assert_int_equal(atomic_load(&f->reads), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_encode),     TEST(test_sizes_remembered), TEST(test_other_length),
		TEST(test_damage),     TEST(test_absent),           TEST(test_absent_large),
		TEST(test_cut),        TEST(test_quantise),         TEST(test_quantise_fill),
		TEST(test_measure),    TEST(test_readers),          TEST(test_ahead),
		TEST(test_hard_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
