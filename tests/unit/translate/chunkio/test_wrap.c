/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wrap.c - wrapped chunks through chunkio: a head, then the bytes as stored; every
 * filter mask, checksums that are cut off, and chunks that have to be framed. */
#include "tests/unit/chunkio_fake.h"

#include "codecs/compress/blosc_wrap.h"

static struct codec_spec blosc = {CODEC_BLOSC, 7, NULL, ""};
static uint32_t params[7];
static uint8_t room[4096];

/* wrap - present the first array's chunks wrapped, less its last filter's trailer. */
static void wrap(struct fake *f, uint32_t trailer)
{
	struct plan *p = &f->plans[0];
	struct codec_chain left = f->arrays[0].chain;

	pass(f, trailer);
	left.n -= trailer > 0;
	assert_true(codec_wrap_fits(&left, 4, BYTES, params));
	blosc.params = params;
	p->wrap = true;
	p->chain = (struct codec_chain){1, &blosc};
}

/* is_headed - chunk `linear` is a head of head_len bytes and the stored bytes, less a trailer; a
 * read after the head is a range of the file. */
static void is_headed(struct fake *f, uint64_t linear, uint64_t head_len, uint64_t trailer)
{
	const struct chunk_ref *ref = &f->refs[linear];
	uint64_t stored = ref->len - trailer;
	uint8_t got[4096], raw[4096];
	struct span s;

	is_chunk(f, linear);
	assert_int_equal(whole(f, linear, got, sizeof(got)), head_len + stored);
	assert_int_equal(pread(f->fd, raw, stored, (off_t)ref->off), (ssize_t)stored);
	assert_memory_equal(got + head_len, raw, stored);

	assert_int_equal(chunkio_read(f->io, 0, linear, head_len, 4096, room, &s, NULL), 0);
	assert_null(s.mem);
	assert_int_equal(s.fd, f->fd);
	assert_int_equal(s.off, ref->off);
	assert_int_equal(s.len, stored);
	assert_int_equal(chunkio_read(f->io, 0, linear, head_len + 5, 7, room, &s, NULL), 0);
	assert_int_equal(s.off, ref->off + 5);
	assert_int_equal(s.len, 7);
	assert_int_equal(chunkio_read(f->io, 0, linear, 3, 5, room, &s, NULL), 0);
	assert_ptr_equal(s.mem, room);
	assert_int_equal(s.len, 5);
	assert_memory_equal(room, got + 3, 5);
}

static void test_masks(void **state)
{
	struct fake *f = *state;

	for (int i = 0; i < 2; i++) {
		chain(f, CODEC_SHUFFLE, i ? CODEC_ZSTD : CODEC_DEFLATE, 0);
		wrap(f, 0);
		for (uint32_t mask = 0; mask < 4; mask++)
			store_values(f, mask, mask);
		store_values(f, 4, CODEC_ALL_SKIPPED);
		start(f);
		is_headed(f, 0, 24, 0);
		is_headed(f, 1, 24, 0);
		is_headed(f, 2, 24, 0);
		is_headed(f, 3, 16, 0);
		is_headed(f, 4, 16, 0);
		assert_int_equal(atomic_load(&f->checks), 0); /* nothing was made */
		assert_int_equal(atomic_load(&f->reads), 0);
	}
	chain(f, CODEC_DEFLATE, 0, 0);
	wrap(f, 0);
	store_values(f, 0, 0);
	store_values(f, 1, 1);
	start(f);
	is_headed(f, 0, 24, 0);
	is_headed(f, 1, 16, 0);
}

static void test_trailer(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, CODEC_FLETCHER32);
	wrap(f, 4);
	for (uint32_t mask = 0; mask < 8; mask++)
		store_values(f, mask, mask);
	store(f, 8, "abc", 3, 0);
	store(f, 9, "abcd", 4, 0);
	start(f);
	for (uint32_t mask = 0; mask < 8; mask++)
		is_headed(f, mask, (mask & 3) == 3 ? 16 : 24, mask & 4 ? 0 : 4);
	fails(f, 8, -EBADMSG, "stored length 3 is less than a checksum");
	fails(f, 9, -EBADMSG, "");
}

/* What cannot be wrapped is decoded, and has a size that is known before. */
static void test_framed(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS];
	uint8_t junk[BYTES] = {0};

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	wrap(f, 0);
	f->refs[0].where = CHUNK_SYNTH;
	values(1, v);
	store(f, 1, v, 100, CODEC_ALL_SKIPPED);
	f->refs[1].pad = BYTES - 100;
	store_values(f, 2, 0); /* made as long as the elements: deflate ignores what follows */
	f->refs[2].len = BYTES;
	store(f, 3, junk, BYTES, 0);
	store(f, 4, v, 99, CODEC_ALL_SKIPPED);
	f->end += BYTES;
	assert_int_equal(pwrite(f->fd, junk, BYTES, (off_t)f->end), BYTES);
	start(f);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(size_of(f, i), BYTES + 16);
	assert_int_equal(atomic_load(&f->checks), 0);
	is_chunk(f, 0);
	memset((uint8_t *)v + 100, 0, BYTES - 100);
	is_values(f, 1, v);
	is_chunk(f, 2);
	fails(f, 3, -EBADMSG, "'/g/v' chunk 3");
	fails(f, 4, -EBADMSG, "stored length 99");
}

/* A chunk that was never written, presented: really encoded, by Blosc. */
static void test_absent(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS];

	f->fill = 77;
	for (size_t i = 0; i < ELEMS; i++)
		v[i] = f->fill;
	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	wrap(f, 0);
	f->plans[0].fill_declared = false;
	start(f);
	assert_true(size_of(f, 0) < BYTES);
	is_values(f, 0, v);
	assert_int_equal(atomic_load(&f->reads), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_masks),
		TEST(test_trailer),
		TEST(test_framed),
		TEST(test_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
