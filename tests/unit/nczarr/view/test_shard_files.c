/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards over chunkio and a fake source: what they are made of is compared, byte by byte, with the
 * chunks as chunkio presents them and with an index that is made here. */
#include "nczarr/view/shard_files_int.h"
#include "tests/unit/chunkio_fake.h"

#include "codecs/spec/spec.h"

#include <pthread.h>

#define SHARD_MAX (1 << 20)
#define NONE UINT64_MAX

static struct zr_grid grids[ARRAYS];
static struct arena memory;
static struct zr_shards *shards;

static int begin(void **state)
{
	arena_init(&memory, 1 << 12);
	return setup(state);
}

static int finish(void **state)
{
	zr_shards_free(shards);
	shards = NULL;
	arena_release(&memory);
	return teardown(state);
}

/* open_shards - of `slots` chunks, after the source and the plans are as they should be. */
static void open_shards(struct fake *f, uint64_t slots, uint64_t budget)
{
	if (!f->io)
		start(f);
	for (uint32_t i = 0; i < ARRAYS; i++)
		assert_int_equal(zr_grid_shards(&f->arrays[i], slots * f->arrays[i].chunk_bytes,
						&memory, &grids[i], NULL),
				 0);
	zr_shards_free(shards);
	assert_int_equal(zr_shards_new(&f->base, f->io, grids, budget, &shards, NULL), 0);
}

/* ---- what a shard should be ---- */

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;

	for (; n > 0; n--) {
		crc ^= *p++;
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void put64(uint8_t *p, uint64_t v)
{
	for (int k = 0; k < 8; k++)
		p[k] = (uint8_t)(v >> 8 * k);
}

/* expect - the bytes of shard `file` of array 0; 0: it has no chunk. */
static size_t expect(struct fake *f, uint64_t file, uint8_t *out)
{
	const struct zr_grid *g = &grids[0];
	uint8_t *index = alloc_array(g->slots + 1, 16);
	size_t n = 0, bytes = g->slots * 16;
	bool any = false;

	assert_non_null(index);
	for (uint64_t slot = 0; slot < g->slots; slot++) {
		uint64_t chunk, size;
		int rc = -ENOENT;

		if (zr_grid_slot(&f->arrays[0], g, file, slot, &chunk))
			rc = chunkio_stat(f->io, 0, chunk, &size, NULL);
		put64(index + 16 * slot, rc ? NONE : n);
		put64(index + 16 * slot + 8, rc ? NONE : size);
		if (rc)
			continue;
		any = true;
		assert_int_equal(piece(f->io, 0, chunk, 0, size, out + n, NULL, &rc), size);
		n += size;
	}
	put64(index + bytes, crc32c(index, bytes));
	memcpy(out + n, index, bytes + 4);
	free(index);
	return any ? n + bytes + 4 : 0;
}

/* part - read [off, off+len) of a shard as the kernel would. */
static size_t part(uint64_t file, uint64_t off, size_t len, uint8_t *out, int *ret_rc)
{
	struct err e = ERR_INIT;
	struct span s;
	size_t n;

	*ret_rc = zr_shards_read(shards, 0, file, off, len, out, &s, &e);
	if (*ret_rc < 0) {
		assert_int_equal(e.code, *ret_rc);
		return 0;
	}
	n = s.len + s.zeros;
	assert_true(n <= len);
	if (s.mem && s.mem != out)
		memcpy(out, s.mem, s.len);
	if (!s.mem && s.len > 0)
		assert_int_equal(pread(s.fd, out, s.len, (off_t)s.off), s.len);
	memset(out + s.len, 0, s.zeros);
	span_done(&s);
	return n;
}

/* is_shard - one shard, whole and in pieces of many sizes. */
static void is_shard(struct fake *f, uint64_t file)
{
	static const size_t steps[] = {1, 13, 16, 100, 255, 256, 257, 4096, 65536};
	static uint8_t want[SHARD_MAX], got[SHARD_MAX];
	size_t n = expect(f, file, want);
	uint64_t size = 5;
	struct err e = ERR_INIT;
	int rc = zr_shards_stat(shards, 0, file, &size, &e);

	if (n == 0) {
		assert_int_equal(rc, -ENOENT);
		(void)part(file, 0, 100, got, &rc);
		assert_int_equal(rc, -ENOENT);
		return;
	}
	if (rc < 0)
		fail_msg("stat: %d %s", rc, e.msg);
	assert_int_equal(size, n);
	assert_int_equal(part(file, 0, SHARD_MAX, got, &rc), n);
	assert_memory_equal(got, want, n);
	for (size_t k = 0; k < ARRAY_LEN(steps); k++)
		for (size_t off = 0; off < n; off += steps[k] + (steps[k] > 1 ? k : 96)) {
			size_t len = u64_min(steps[k], n - off);

			assert_int_equal(part(file, off, steps[k], got, &rc), len);
			assert_memory_equal(got, want + off, len);
		}
	for (size_t off = 0; off < n; off += 61) {
		assert_int_equal(part(file, off, SHARD_MAX, got, &rc), n - off);
		assert_memory_equal(got, want + off, n - off);
	}
	assert_int_equal(part(file, n, 100, got, &rc), 0);
	assert_int_equal(part(file, UINT64_MAX, 100, got, &rc), 0);
	assert_int_equal(part(file, 3, 0, got, &rc), 0);
	assert_int_equal(rc, 0);
}

static void all_shards(struct fake *f)
{
	for (uint64_t i = 0; i < grids[0].n; i++)
		is_shard(f, i);
}

/* ---- */

static void test_index(void **state)
{
	struct fake *f = *state;
	uint8_t got[4096];
	int rc;

	assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
	chain(f, CODEC_DEFLATE, 0, 0);
	pass(f, 0);
	store(f, 2, "abcde", 5, 0);
	store(f, 1, "xyz", 3, 0);
	open_shards(f, 4, 1 << 20);
	assert_int_equal(part(0, 0, sizeof(got), got, &rc), 8 + 4 * 16 + 4);
	assert_memory_equal(got, "xyzabcde", 8);
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(got[8 + i], 0xff);
		assert_int_equal(got[8 + 48 + i], 0xff);
	}
	assert_memory_equal(got + 24, "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16);
	assert_memory_equal(got + 40, "\3\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0", 16);
}

/* Chunks of all ways, some never written. */
static void test_bytes(void **state)
{
	static const uint64_t slots[] = {2, 3, 7, 30, 64, 200};
	struct fake *f = *state;

	chain(f, CODEC_SHUFFLE, CODEC_DEFLATE, 0);
	for (uint64_t i = 0; i < CHUNKS; i++)
		if (i % 5 != 1 && (i < 60 || i > 130))
			store_values(f, i, i % 11 == 3 ? CODEC_ALL_SKIPPED : 0);
	for (int decoded = 0; decoded < 2; decoded++) {
		if (!decoded)
			pass(f, 0);
		else
			f->plans[0].kind = f->plans[1].kind = PLAN_DECODE;
		start_with(f, 1 << 20, 2);
		for (size_t k = 0; k < ARRAY_LEN(slots); k++) {
			open_shards(f, slots[k], 1 << 20);
			all_shards(f);
		}
	}
	f->plans[0].fill_declared = f->plans[1].fill_declared = false;
	start(f);
	open_shards(f, 64, 1 << 20);
	all_shards(f);
}

/* Uncompressed chunks, the last bytes of some missing; without descriptors; with a trailer. */
static int stored(struct source *s, uint32_t array, uint64_t linear,
		  const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		  struct err *e)
{
	(void)array;
	(void)linear;
	(void)e;
	return pread(of(s)->fd, out, len, (off_t)(ref->off + off)) == (ssize_t)len ? 0 : -EIO;
}

static int no_fd(struct source *s, uint32_t blob)
{
	(void)s;
	(void)blob;
	return -1;
}

static void test_raw(void **state)
{
	struct source_ops ops = fake_ops;
	struct fake *f = *state;

	pass(f, 0);
	for (uint64_t i = 0; i < CHUNKS; i++)
		store_values(f, i, 0);
	for (uint64_t i = 7; i < CHUNKS; i += 9) {
		f->refs[i].len -= 24;
		f->refs[i].pad = 24;
	}
	open_shards(f, 50, 1 << 20);
	all_shards(f);
	ops.fd = no_fd;
	ops.read_stored = stored;
	f->base.ops = &ops;
	all_shards(f);
	f->base.ops = &fake_ops;
}

static void test_trailer(void **state)
{
	struct fake *f = *state;

	chain(f, CODEC_DEFLATE, CODEC_FLETCHER32, 0);
	pass(f, 4);
	for (uint64_t i = 0; i < CHUNKS; i += 1 + i % 3)
		store_values(f, i, 0);
	open_shards(f, 50, 1 << 20);
	all_shards(f);
}

/* Sizes that only making the chunks tells. */
static void test_made(void **state)
{
	static const uint32_t level[] = {3};
	static const struct codec_spec zstd[] = {{CODEC_ZSTD, 1, level, ""}};
	struct fake *f = *state;
	uint64_t size;

	for (size_t i = 0; i < ARRAYS; i++)
		f->plans[i] = (struct plan){.kind = PLAN_ENCODE,
					    .chain = {1, zstd},
					    .elem_size = 4,
					    .bytes = BYTES,
					    .fill_declared = true};
	for (uint64_t i = 0; i < CHUNKS; i++)
		store_values(f, i, 0);
	start_with(f, 1 << 20, 2);
	open_shards(f, 50, 1 << 20);
	assert_false(zr_shards_stat_cheap(shards, 0, 1));
	assert_int_equal(zr_shards_stat(shards, 0, 1, &size, NULL), 0);
	assert_true(zr_shards_stat_cheap(shards, 0, 1));
	assert_false(zr_shards_stat_cheap(shards, 0, 2));
	all_shards(f);
}

static void test_next(void **state)
{
	static const uint64_t have[] = {9, 10, 77, 199};
	static const uint64_t want[] = {0, 7, 7, 7, 7, 7, 7, 7, 19, 19};
	struct fake *f = *state;
	uint64_t at = 5;

	for (size_t i = 0; i < ARRAY_LEN(have); i++)
		store_values(f, have[i], 0);
	open_shards(f, 10, 1 << 20);
	assert_int_equal(grids[0].n, 20);
	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(zr_shards_next(shards, 0, i, &at, NULL), 0);
		assert_int_equal(at, i == 1 ? 1 : want[i]);
	}
	assert_int_equal(zr_shards_next(shards, 0, 20, &at, NULL), -ENOENT);
	f->refs[199].where = CHUNK_ABSENT;
	assert_int_equal(zr_shards_next(shards, 0, 8, &at, NULL), -ENOENT);
	assert_int_equal(at, 19);
}

/* One span, uncopied, inside a chunk, and over chunks that lie side by side in the file. */
static void test_uncopied(void **state)
{
	struct fake *f = *state;
	struct span s;

	pass(f, 0);
	for (uint64_t i = 0; i < 20; i++)
		store_values(f, i, 0);
	store_values(f, 30, 0);
	open_shards(f, 50, 1 << 20);
	assert_int_equal(zr_shards_read(shards, 0, 0, BYTES + 8, 100, NULL, &s, NULL), 0);
	assert_null(s.mem);
	assert_int_equal(s.fd, f->fd);
	assert_int_equal(s.off, f->refs[1].off + 8);
	assert_int_equal(s.len, 100);
	assert_int_equal(zr_shards_read(shards, 0, 0, 3, 21 * BYTES - 5, NULL, &s, NULL), 0);
	assert_null(s.mem);
	assert_int_equal(s.off, f->refs[0].off + 3);
	assert_int_equal(s.len, 21 * BYTES - 5);
}

/* The source is looked at after its bytes were copied here. */
static void test_checked(void **state)
{
	struct fake *f = *state;
	uint8_t got[4096];
	int rc, before;

	pass(f, 0);
	store_values(f, 1, 0);
	store_values(f, 0, 0);
	open_shards(f, 4, 1 << 20);
	before = atomic_load(&f->checks);
	assert_int_equal(part(0, 0, 2 * BYTES, got, &rc), 2 * BYTES);
	assert_int_equal(atomic_load(&f->checks), before + 1);
	atomic_store(&f->fail_checks, 1);
	(void)part(0, 0, 2 * BYTES, got, &rc);
	assert_int_equal(rc, -ESTALE);
	atomic_store(&f->fail_checks, 0);

	/* another size than it had, and gone */
	f->refs[0].len -= 4;
	f->refs[0].pad = 4;
	assert_int_equal(part(0, 0, 2 * BYTES, got, &rc), 2 * BYTES);
	f->refs[0].where = CHUNK_ABSENT;
	(void)part(0, 0, 2 * BYTES, got, &rc);
	assert_int_equal(rc, -ESTALE);
	(void)part(0, 8, 8, got, &rc);
	assert_int_equal(rc, -ESTALE);
	assert_int_equal(part(0, BYTES, BYTES, got, &rc), BYTES);
}

static void test_changed_size(void **state)
{
	struct fake *f = *state;
	uint8_t got[4096];
	int rc;

	chain(f, CODEC_DEFLATE, 0, 0);
	pass(f, 0);
	store(f, 0, "abcdef", 6, 0);
	store(f, 1, "ghi", 3, 0);
	open_shards(f, 4, 1 << 20);
	assert_int_equal(part(0, 0, 9, got, &rc), 9);
	f->refs[0].len = 4;
	(void)part(0, 0, 9, got, &rc);
	assert_int_equal(rc, -ESTALE);
	(void)part(0, 2, 4, got, &rc);
	assert_int_equal(rc, -ESTALE);
	assert_int_equal(part(0, 0, 2, got, &rc), 2);
}

static void test_errors(void **state)
{
	struct fake *f = *state;
	uint8_t got[8192];
	uint64_t size = 77;
	struct err e = ERR_INIT;
	int rc;

	chain(f, CODEC_DEFLATE, 0, 0);
	for (uint64_t i = 0; i < 20; i++)
		store_values(f, i, 0);
	store(f, 5, "damaged", 7, 0);
	open_shards(f, 10, 1 << 20);
	/* decoded: the size is arithmetic, and only reads of the chunk fail */
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, NULL), 0);
	assert_int_equal(size, 10 * BYTES + 10 * 16 + 4);
	assert_int_equal(part(0, 0, 5 * BYTES, got, &rc), 5 * BYTES);
	(void)part(0, 0, 5 * BYTES + 1, got, &rc);
	assert_int_equal(rc, -EBADMSG);
	(void)part(0, 6 * BYTES - 1, 1, got, &rc);
	assert_int_equal(rc, -EBADMSG);
	assert_int_equal(part(0, 6 * BYTES, sizeof(got), got, &rc), 4 * BYTES + 164);

	/* its size cannot be known */
	for (size_t i = 0; i < ARRAYS; i++)
		f->plans[i] = (struct plan){.kind = PLAN_ENCODE,
					    .chain = f->arrays[0].chain,
					    .elem_size = 4,
					    .bytes = BYTES,
					    .fill_declared = true};
	start(f);
	open_shards(f, 10, 1 << 20);
	size = 77;
	for (int i = 0; i < 2; i++) { /* errors are not kept */
		assert_int_equal(zr_shards_stat(shards, 0, 0, &size, &e), -EBADMSG);
		assert_int_equal(size, 77);
		assert_non_null(strstr(e.msg, "'/g/v' chunk 5: "));
	}
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, NULL), -EBADMSG);
	(void)part(0, 0, 1, got, &rc);
	assert_int_equal(rc, -EBADMSG);
	assert_int_equal(zr_shards_stat(shards, 0, 1, &size, NULL), 0);
	store_values(f, 5, 0);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, NULL), 0);
}

static void test_plans(void **state)
{
	struct fake *f = *state;
	uint64_t size = 0, at;
	struct err e = ERR_INIT;

	store_values(f, 3, 0);
	for (size_t i = 0; i < ARRAYS; i++) {
		f->plans[i].kind = PLAN_ERROR;
		strcpy(f->plans[i].reason, "nobody can");
	}
	open_shards(f, 10, 1 << 20);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "nobody can"));
	assert_int_equal(zr_shards_stat(shards, 0, 1, &size, NULL), -ENOENT);
	assert_int_equal(zr_shards_next(shards, 0, 0, &at, NULL), 0);
	for (size_t i = 0; i < ARRAYS; i++)
		f->plans[i].kind = PLAN_HIDE;
	open_shards(f, 10, 1 << 20);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, NULL), -ENOENT);

	/* what has no shards, and numbers that are none */
	assert_int_equal(zr_shards_stat(shards, 2, 0, &size, NULL), -EINVAL);
	assert_int_equal(zr_shards_stat(shards, 0, 20, &size, NULL), -ENOENT);
	assert_int_equal(zr_shards_stat(shards, 0, UINT64_MAX, &size, NULL), -ENOENT);
	assert_false(zr_shards_stat_cheap(shards, 0, 20));
	open_shards(f, 1, 1 << 20);
	assert_null(grids[0].per);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, NULL), -EINVAL);
}

/* Offsets beyond 32 bits, and beyond what a file can have. */
static void test_large(void **state)
{
	struct fake *f = *state;
	uint8_t got[4 * 16 + 4], want[8];
	uint64_t size = 0;
	struct err e = ERR_INIT;
	int rc;

	chain(f, CODEC_DEFLATE, 0, 0);
	pass(f, 0);
	for (uint64_t i = 0; i < 4; i++)
		store_values(f, i, 0);
	for (uint64_t i = 0; i < 4; i++)
		f->refs[i].len = (uint64_t)3 << 40;
	open_shards(f, 4, 1 << 20);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, NULL), 0);
	assert_int_equal(size, ((uint64_t)12 << 40) + sizeof(got));
	assert_int_equal(part(0, (uint64_t)12 << 40, 1000, got, &rc), sizeof(got));
	put64(want, (uint64_t)9 << 40);
	assert_memory_equal(got + 48, want, 8);

	for (uint64_t i = 0; i < 4; i++)
		f->refs[i].len = (uint64_t)1 << 62;
	open_shards(f, 4, 1 << 20);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, &e), -ERANGE);
	f->refs[2].where = f->refs[3].where = CHUNK_ABSENT;
	f->refs[1].len = ((uint64_t)1 << 62) - sizeof(got);
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, &e), -ERANGE);
	f->refs[1].len--;
	assert_int_equal(zr_shards_stat(shards, 0, 0, &size, &e), 0);
	assert_int_equal(size, INT64_MAX);
}

/* A chunk file without bytes is no chunk that was never written. */
static void test_empty_chunks(void **state)
{
	struct fake *f = *state;
	uint8_t got[200];
	int rc;

	chain(f, CODEC_DEFLATE, 0, 0);
	pass(f, 0);
	store(f, 0, "", 0, 0);
	store(f, 1, "ab", 2, 0);
	store(f, 2, "", 0, 0);
	store(f, 3, "cd", 2, 0);
	store(f, 9, "", 0, 0);
	open_shards(f, 4, 1 << 20);
	all_shards(f);
	assert_int_equal(part(0, 0, sizeof(got), got, &rc), 4 + 68);
	assert_memory_equal(got, "abcd", 4);
	assert_int_equal(part(2, 0, sizeof(got), got, &rc), 68);
	assert_memory_equal(got + 16, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
}

/* ---- threads ---- */

#define THREADS 6
#define ROUNDS 300

struct runner {
	pthread_t id;
	uint32_t seed;
	uint8_t (*want)[SHARD_MAX / 16];
	const size_t *size;
	bool ok;
};

static void *run(void *arg)
{
	struct runner *r = arg;
	uint8_t got[4096];
	uint64_t size;
	int rc;

	r->ok = true;
	for (int i = 0; r->ok && i < ROUNDS; i++) {
		uint32_t v = r->seed = r->seed * 1664525 + 1013904223;
		uint64_t file = (v >> 8) % grids[0].n;
		size_t off = (v >> 4) % r->size[file], n;

		n = part(file, off, sizeof(got), got, &rc);
		r->ok = rc == 0 && n == u64_min(sizeof(got), r->size[file] - off) &&
			memcmp(got, r->want[file] + off, n) == 0 &&
			zr_shards_stat(shards, 0, file, &size, NULL) == 0 &&
			size == r->size[file];
		(void)zr_shards_stat_cheap(shards, 0, file);
	}
	return NULL;
}

/* Readers on the same shards, and no room to keep what was found. */
static void test_threads(void **state)
{
	static uint8_t want[8][SHARD_MAX / 16];
	struct runner r[THREADS];
	struct fake *f = *state;
	size_t size[8];

	for (uint64_t i = 0; i < CHUNKS; i += i % 7 == 0 ? 2 : 1)
		store_values(f, i, 0);
	start_with(f, 1 << 16, 2);
	open_shards(f, 25, 1);
	assert_int_equal(grids[0].n, 8);
	for (uint64_t i = 0; i < 8; i++) {
		size[i] = expect(f, i, want[i]);
		assert_true(size[i] > 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		r[i] = (struct runner){.seed = i, .want = want, .size = size};
		assert_int_equal(pthread_create(&r[i].id, NULL, run, &r[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		(void)pthread_join(r[i].id, NULL);
		assert_true(r[i].ok);
	}
}

#define SHARDS(t) cmocka_unit_test_setup_teardown(t, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHARDS(test_index),        SHARDS(test_bytes),   SHARDS(test_raw),
		SHARDS(test_trailer),      SHARDS(test_made),    SHARDS(test_next),
		SHARDS(test_uncopied),     SHARDS(test_checked), SHARDS(test_changed_size),
		SHARDS(test_errors),       SHARDS(test_plans),   SHARDS(test_large),
		SHARDS(test_empty_chunks), SHARDS(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
