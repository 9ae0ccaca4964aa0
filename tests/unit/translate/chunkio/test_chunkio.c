/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans executed over a fake source: sizes, bytes, errors. */
#include "tests/unit/chunkio_fake.h"
#include "tests/unit/codecs_encode.h"

static uint8_t room[4096]; /* a reader's memory */

/* ---- PASS ---- */

static void test_pass_range(void **state)
{
	struct fake *f = *state;
	struct span s;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	pass(f, 0);
	store(f, 0, "0123456789", 10, 0);
	store_values(f, 1, 0);
	start(f);
	assert_int_equal(size_of(f, 0), 10); /* never looked at */
	assert_int_equal(chunkio_read(f->io, 0, 0, 3, 100, room, &s, NULL), 0);
	assert_null(s.mem);
	assert_null(s.done);
	assert_int_equal(s.fd, f->fd);
	assert_int_equal(s.off, 3);
	assert_int_equal(s.len, 7);
	assert_int_equal(s.zeros, 0);
	is_chunk(f, 1);
	assert_int_equal(atomic_load(&f->checks), 0);
	/* bits beyond the chain mean nothing */
	f->refs[1].filter_mask = 0xfffffffc;
	is_chunk(f, 1);
	assert_int_equal(atomic_load(&f->checks), 0);
}

static void test_pass_trailer(void **state)
{
	struct fake *f = *state;
	uint64_t len;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, CODEC_FLETCHER32);
	pass(f, 4);
	store_values(f, 0, 0);
	store_values(f, 1, 4);
	store_values(f, 2, 2);
	store_values(f, 3, CODEC_ALL_SKIPPED);
	store(f, 4, "abc", 3, 0);
	start(f);
	len = f->refs[0].len;
	assert_int_equal(size_of(f, 0), len - 4);
	is_chunk(f, 0);
	assert_int_equal(size_of(f, 1), f->refs[1].len);
	is_chunk(f, 1);
	assert_int_equal(atomic_load(&f->checks), 0);
	assert_int_equal(size_of(f, 2), codec_chain_framed_size(&f->plans[0].chain, BYTES));
	is_chunk(f, 2);
	is_chunk(f, 3);
	fails(f, 4, -EBADMSG, "'/g/v' chunk 4: stored length 3");
	stat_fails(f, 4, -EBADMSG);

	/* a checksum alone */
	chain(f, CODEC_FLETCHER32, 0, 0);
	pass(f, 4);
	store_values(f, 0, 0);
	start(f);
	assert_int_equal(size_of(f, 0), BYTES);
	is_chunk(f, 0);
	is_chunk(f, 3);
	fails(f, 1, -EBADMSG, "differs from 256 bytes");
}

static void test_pass_plain(void **state)
{
	struct fake *f = *state;
	uint8_t got[BYTES];
	int32_t v[ELEMS];
	struct span s;

	pass(f, 0);
	store_values(f, 0, 0);
	values(1, v);
	store(f, 1, v, 100, 0);
	f->refs[1].pad = BYTES - 100;
	store(f, 2, v, 100, 0);
	store(f, 3, v, 0, 0);
	f->refs[3].pad = BYTES;
	store(f, 4, v, 100, 0);
	f->refs[4].pad = INT64_MAX;
	start(f);
	is_chunk(f, 0);
	memset((uint8_t *)v + 100, 0, BYTES - 100);
	is_values(f, 1, v);
	assert_int_equal(chunkio_read(f->io, 0, 1, 90, 20, room, &s, NULL), 0);
	assert_int_equal(s.off, f->refs[1].off + 90);
	assert_int_equal(s.len, 10);
	assert_int_equal(s.zeros, 10);
	assert_int_equal(chunkio_read(f->io, 0, 1, 100, 1000, room, &s, NULL), 0);
	assert_int_equal(s.len, 0);
	assert_int_equal(s.zeros, BYTES - 100);
	fails(f, 2, -EBADMSG, "stored length 100 differs from 256");
	fails(f, 4, -EBADMSG, "stored length");
	assert_int_equal(whole(f, 3, got, sizeof(got)), BYTES);
	assert_int_equal(got[BYTES - 1], 0);
	assert_int_equal(atomic_load(&f->checks), 0);
}

static void test_pass_odd(void **state)
{
	struct fake *f = *state;
	uint64_t framed;
	int32_t v[ELEMS];

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	pass(f, 0);
	store_values(f, 0, 1);
	store_values(f, 1, 2);
	store_values(f, 2, 3);
	store_values(f, 3, CODEC_ALL_SKIPPED);
	f->refs[4].where = CHUNK_SYNTH;
	values(5, v);
	store(f, 5, v, 100, CODEC_ALL_SKIPPED);
	f->refs[5].pad = BYTES - 100;
	start(f);
	framed = codec_chain_framed_size(&f->plans[0].chain, BYTES);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(size_of(f, i), framed);
	assert_int_equal(atomic_load(&f->checks), 0); /* sizes are arithmetic */
	for (uint64_t i = 0; i < 5; i++)
		is_chunk(f, i);
	memset((uint8_t *)v + 100, 0, BYTES - 100);
	is_values(f, 5, v);
	assert_int_equal(atomic_load(&f->checks), 6); /* and each was made once */

	f->refs[5].pad = 1;
	f->refs[4] = f->refs[5];
	f->refs[6] = f->refs[5];
	f->refs[6].pad = 1000;
	start(f);
	fails(f, 4, -EBADMSG, "'/g/v' chunk 4: stored length 100 differs from 255 bytes");
	fails(f, 6, -EBADMSG, "padding of 1000 bytes exceeds 256");
}

/* ---- never written ---- */

static void test_absent(void **state)
{
	struct fake *f = *state;
	int32_t v[ELEMS];
	uint64_t size;

	start(f);
	stat_fails(f, 0, -ENOENT);
	fails(f, 0, -ENOENT, "never written");
	assert_int_equal(chunkio_next(f->io, 0, 0, &size, NULL), -ENOENT);

	f->fill = -559038737;
	for (size_t i = 0; i < ELEMS; i++)
		v[i] = f->fill;
	f->plans[0].fill_declared = false;
	start(f);
	assert_int_equal(size_of(f, 9), BYTES);
	is_values(f, 9, v);

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	pass(f, 0);
	start(f);
	size = size_of(f, 3);
	assert_true(size < codec_chain_framed_size(&f->plans[0].chain, BYTES));
	is_values(f, 3, v);
	is_values(f, 4, v);
	assert_int_equal(size_of(f, 4), size);

	/* shuffle makes nothing smaller: framed, through the cache */
	chain(f, CODEC_SHUFFLE, 0, 0);
	pass(f, 0);
	start(f);
	assert_int_equal(size_of(f, 3), BYTES);
	is_values(f, 3, v);
	assert_int_equal(atomic_load(&f->reads), 0);
}

static void test_absent_zeros(void **state)
{
	struct fake *f = *state;
	struct span s;

	f->plans[0].fill_declared = false;
	start(f);
	assert_int_equal(chunkio_read(f->io, 0, 0, 5, 1000, room, &s, NULL), 0);
	assert_null(s.mem);
	assert_null(s.done);
	assert_int_equal(s.len, 0);
	assert_int_equal(s.zeros, BYTES - 5);
	assert_int_equal(size_of(f, 1), BYTES);
}

static void test_fill_tile(void **state)
{
	struct fill *f = alloc_array(1, sizeof(*f) + 300);
	uint8_t *out = alloc_array(70000, 1);

	(void)state;
	assert_non_null(f);
	assert_non_null(out);
	for (size_t period = 1; period <= 300; period = period * 2 + 1) {
		f->n = period;
		for (size_t i = 0; i < period; i++)
			f->bytes[i] = (uint8_t)(i + 1);
		for (uint64_t off = 0; off < 700; off += 77)
			for (size_t n = 1; n < 70000; n = n * 3 + 1) {
				frame_fill_tile(f, off, out, n);
				for (size_t i = 0; i < n; i++)
					if (out[i] != (uint8_t)((off + i) % period + 1))
						fail_msg("period %zu at %zu", period, i);
			}
	}
	free(out);
	free(f);
}

/* ---- DECODE ---- */

static void test_decode(void **state)
{
	struct fake *f = *state;
	struct span s;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, CODEC_FLETCHER32);
	for (uint64_t i = 0; i < 8; i++)
		store_values(f, i, (uint32_t)i);
	store_values(f, 8, CODEC_ALL_SKIPPED);
	f->refs[9].where = CHUNK_SYNTH;
	start(f);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(size_of(f, i), BYTES);
	assert_int_equal(atomic_load(&f->checks), 0);
	for (uint64_t i = 0; i < 10; i++)
		is_chunk(f, i);
	assert_int_equal(atomic_load(&f->checks), 8); /* 7 and 8 were stored as they are */
	assert_int_equal(atomic_load(&f->reads), 1);
	assert_int_equal(chunkio_read(f->io, 0, 8, 5, 10, room, &s, NULL), 0);
	assert_int_equal(s.fd, f->fd);
	assert_null(s.mem);
	assert_null(s.done);
}

static void test_decode_library(void **state)
{
	struct fake *f = *state;

	/* a filter that is not built in, and types that only a library converts */
	chain(f, 40000, 0, 0);
	store(f, 0, "whatever", 8, 0);
	start(f);
	is_chunk(f, 0);
	assert_int_equal(atomic_load(&f->reads), 1);
	chain(f, CODEC_DEFLATE, 0, 0);
	f->arrays[0].access = DS_CONVERT;
	store_values(f, 1, 0);
	store_values(f, 2, CODEC_ALL_SKIPPED);
	start(f);
	is_chunk(f, 1);
	is_chunk(f, 2);
	assert_int_equal(atomic_load(&f->reads), 3);
}

static void test_decode_damage(void **state)
{
	struct fake *f = *state;
	struct codec_chain one = {.n = 1, .specs = f->specs};
	uint8_t junk[400] = {1, 2, 3};
	struct buf out;

	chain(f, CODEC_DEFLATE, 0, 0);
	store(f, 0, junk, sizeof(junk), 0);
	buf_init(&out, 1000);
	assert_int_equal(encode_chain(&one, 4, junk, BYTES - 4, &out, NULL), 0);
	store(f, 1, out.data, out.len, 0);
	buf_clear(&out);
	assert_int_equal(encode_chain(&one, 4, junk, BYTES + 4, &out, NULL), 0);
	store(f, 2, out.data, out.len, 0);
	buf_release(&out);
	f->refs[3] = f->refs[2];
	f->refs[3].len = 2 * BYTES + 65536 + 2;
	f->refs[4] = f->refs[2];
	f->refs[4].len = (uint64_t)1 << 62;
	f->refs[5] = f->refs[2];
	f->refs[5].len += 1;
	f->refs[6] = f->refs[2];
	f->refs[6].blob = 9;
	store(f, 7, junk, 100, CODEC_ALL_SKIPPED);
	f->end = 0;
	start(f);
	fails(f, 0, -EBADMSG, "'/g/v' chunk 0: ");
	fails(f, 1, -EBADMSG, "'/g/v' chunk 1: ");
	fails(f, 2, -EBADMSG, "'/g/v' chunk 2: ");
	fails(f, 3, -EBADMSG, "too large for 256 bytes");
	fails(f, 4, -EBADMSG, "too large for 256 bytes");
	assert_int_equal(ftruncate(f->fd, (off_t)f->refs[2].off + 3), 0);
	fails(f, 5, -EIO, "'/g/v' chunk 5: ");
	fails(f, 6, -EIO, "no blob 9");
	fails(f, 7, -EBADMSG, "stored length 100 differs from 256");
	assert_int_equal(size_of(f, 0), BYTES);
}

static void test_stale(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_DEFLATE, 0, 0);
	store_values(f, 0, 0);
	store(f, 1, "junk", 4, 0);
	start(f);
	atomic_store(&f->fail_checks, 1);
	fails(f, 0, -ESTALE, "'/g/v' chunk 0: the file changed");
	fails(f, 1, -ESTALE, "the file changed");
	atomic_store(&f->fail_checks, 0);
	is_chunk(f, 0);
	fails(f, 1, -EBADMSG, "chunk 1");
}

/* ---- elements without a fixed size ---- */

static void put_text(struct fake *f, const char *s)
{
	buf_put_le32(&f->vlen, (uint32_t)strlen(s));
	buf_puts(&f->vlen, s);
}

static void texts(struct fake *f, enum plan_kind kind, uint32_t fixed)
{
	f->chunk = 3;
	f->shape = 3 * CHUNKS;
	f->arrays[0].type = (struct dtype){.kind = DT_VSTRING};
	f->arrays[0].chunk_bytes = 0;
	f->arrays[0].access = DS_VARIABLE;
	f->plans[0].kind = kind;
	f->plans[0].fixed_size = fixed;
	f->plans[0].fill_declared = false;
	f->refs[0].where = CHUNK_SYNTH;
	put_text(f, "one");
	put_text(f, "");
	put_text(f, "f\xc3\xbcnf");
}

static void test_vlen(void **state)
{
	struct fake *f = *state;
	uint8_t got[4096];
	uint32_t max;

	texts(f, PLAN_VLEN, 0);
	start(f);
	assert_int_equal(size_of(f, 0), 4 + 3 * 4 + 8);
	assert_int_equal(whole(f, 0, got, sizeof(got)), 24);
	assert_memory_equal(got, "\3\0\0\0\3\0\0\0one\0\0\0\0\5\0\0\0f\xc3\xbcnf", 24);
	assert_int_equal(atomic_load(&f->reads), 1);
	assert_int_equal(size_of(f, 1), 16);
	assert_int_equal(whole(f, 1, got, sizeof(got)), 16);
	assert_memory_equal(got, "\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(chunkio_max_text(&f->base, 0, &max, NULL), 0);
	assert_int_equal(max, 5);

	f->arrays[0].fill_text = (struct ds_text){.s = "absent", .len = 6};
	start(f);
	assert_int_equal(whole(f, 1, got, sizeof(got)), 34);
	assert_memory_equal(got, "\3\0\0\0\6\0\0\0absent\6\0\0\0absent\6\0\0\0absent", 34);
	assert_int_equal(chunkio_max_text(&f->base, 0, &max, NULL), 0);
	assert_int_equal(max, 6);

	/* what a source must not give */
	f->vlen.len--;
	start(f);
	fails(f, 0, -EBADMSG, "'/g/v' chunk 0: fewer than 3 elements");
	stat_fails(f, 0, -EBADMSG);
	assert_int_equal(chunkio_max_text(&f->base, 0, &max, NULL), -EBADMSG);
	f->vlen.len++;
	put_text(f, "four");
	fails(f, 0, -EBADMSG, "8 bytes follow");
	f->chunk = UINT64_MAX / 2;
	fails(f, 0, -ERANGE, "elements in a chunk");
}

static void test_fixed(void **state)
{
	struct fake *f = *state;
	uint8_t got[4096];

	texts(f, PLAN_FIXED, 4);
	start(f);
	assert_int_equal(size_of(f, 0), 12);
	assert_int_equal(atomic_load(&f->reads), 0);
	assert_int_equal(whole(f, 0, got, sizeof(got)), 12);
	assert_memory_equal(got, "one\0\0\0\0\0f\xc3\xbcn", 12);
	assert_int_equal(whole(f, 1, got, sizeof(got)), 12);
	assert_memory_equal(got, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);

	f->plans[0].fixed_size = 2; /* a character is not split */
	f->arrays[0].fill_text = (struct ds_text){.s = "absent", .len = 6};
	start(f);
	assert_int_equal(whole(f, 0, got, sizeof(got)), 6);
	assert_memory_equal(got, "on\0\0f\0", 6);
	assert_int_equal(whole(f, 1, got, sizeof(got)), 6);
	assert_memory_equal(got, "ababab", 6);

	f->plans[0].fixed_size = UINT32_MAX;
	start(f);
	stat_fails(f, 0, -ERANGE);
	stat_fails(f, 1, -ERANGE);
}

/* ---- the rest ---- */

static void test_no_chunks(void **state)
{
	struct fake *f = *state;
	uint64_t at = 5;

	store_values(f, 0, 0);
	f->plans[0].kind = PLAN_ERROR;
	memcpy(f->plans[0].reason, "filter 'x' is not built in", 27);
	f->plans[1].kind = PLAN_HIDE;
	start(f);
	fails(f, 0, -EOPNOTSUPP, "'/g/v': filter 'x' is not built in");
	stat_fails(f, 1, -EOPNOTSUPP);
	assert_int_equal(chunkio_next(f->io, 0, 0, &at, NULL), 0);
	assert_int_equal(at, 0);
	assert_int_equal(chunkio_stat(f->io, 1, 0, &at, NULL), -ENOENT);
	assert_int_equal(chunkio_next(f->io, 1, 0, &at, NULL), -ENOENT);
	assert_int_equal(chunkio_stat(f->io, ARRAYS, 0, &at, NULL), -EINVAL);
	f->plans[0].kind = PLAN_DECODE;
	f->arrays[0].n_chunks = 0;
	start(f);
	stat_fails(f, 0, -ENOENT);
	assert_int_equal(chunkio_next(f->io, 0, 0, &at, NULL), -ENOENT);
}

static void test_next(void **state)
{
	struct fake *f = *state;
	uint64_t at = 0;

	store_values(f, 3, 0);
	store_values(f, 9, 0);
	start(f);
	assert_int_equal(chunkio_next(f->io, 0, 0, &at, NULL), 0);
	assert_int_equal(at, 3);
	assert_int_equal(chunkio_next(f->io, 0, 4, &at, NULL), 0);
	assert_int_equal(at, 9);
	assert_int_equal(chunkio_next(f->io, 0, 10, &at, NULL), -ENOENT);
	assert_int_equal(chunkio_next(f->io, 0, UINT64_MAX, &at, NULL), -ENOENT);
	f->plans[0].fill_declared = false;
	start(f);
	assert_int_equal(chunkio_next(f->io, 0, 4, &at, NULL), 0);
	assert_int_equal(at, 4);
	assert_int_equal(chunkio_next(f->io, 0, CHUNKS, &at, NULL), -ENOENT);
}

static void test_hard_links(void **state)
{
	struct fake *f = *state;
	uint8_t got[BYTES];
	int rc;

	f->refs[0].where = CHUNK_SYNTH;
	start(f);
	(void)piece(f->io, 0, 0, 0, BYTES, got, NULL, &rc);
	(void)piece(f->io, 1, 0, 0, BYTES, got, NULL, &rc);
	assert_int_equal(atomic_load(&f->reads), 2);
	f->arrays[1].key = f->arrays[0].key;
	start(f);
	(void)piece(f->io, 0, 0, 0, BYTES, got, NULL, &rc);
	(void)piece(f->io, 1, 0, 0, BYTES, got, NULL, &rc);
	assert_int_equal(atomic_load(&f->reads), 3);
	f->arrays[1].key = f->arrays[0].key = 0; /* not known */
	start(f);
	(void)piece(f->io, 0, 0, 0, BYTES, got, NULL, &rc);
	(void)piece(f->io, 1, 0, 0, BYTES, got, NULL, &rc);
	assert_int_equal(atomic_load(&f->reads), 5);
}

static void test_long_names(void **state)
{
	struct fake *f = *state;
	char name[DS_NAME_MAX + 1];

	memset(name, 'x', DS_NAME_MAX);
	name[DS_NAME_MAX - 1] = 'y';
	name[DS_NAME_MAX] = '\0';
	f->arrays[0].name = name;
	f->refs[7].where = CHUNK_SYNTH;
	atomic_store(&f->fail_reads, 2);
	start(f);
	fails(f, 7, -EBADMSG, "xxxy' chunk 7: made up"); /* the text's end is what matters */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pass_range),    TEST(test_pass_trailer), TEST(test_pass_plain),
		TEST(test_pass_odd),      TEST(test_absent),       TEST(test_absent_zeros),
		TEST(test_fill_tile),     TEST(test_decode),       TEST(test_decode_library),
		TEST(test_decode_damage), TEST(test_stale),        TEST(test_vlen),
		TEST(test_fixed),         TEST(test_no_chunks),    TEST(test_next),
		TEST(test_hard_links),    TEST(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
