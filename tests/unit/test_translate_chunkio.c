/* Plans executed over a fake source whose blob is a memfd: sizes, bytes, errors, threads. */
#include "translate/chunkio.h"
#include "translate/frame.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define CHUNKS 200
#define ELEMS 64
#define BYTES (ELEMS * sizeof(int32_t))
#define ARRAYS 2
#define READERS 5

/* ---- the fake source: two one-dimensional int32 arrays of 64-element chunks ---- */

struct fake {
	struct source base;
	struct ds_group groups[2];
	struct ds_array arrays[ARRAYS];
	struct plan plans[ARRAYS];
	uint64_t shape, chunk, grid;
	int32_t fill;
	struct codec_spec specs[4];
	struct chunk_ref refs[CHUNKS];
	uint64_t end; /* of the blob */
	int fd;
	struct buf vlen; /* what read_vlen gives for chunk 0 */
	_Atomic int checks, reads, fail_reads, fail_checks, entered, wait_for;
	struct chunkio *io;
};

static struct fake *of(struct source *s)
{
	return CONTAINER_OF(s, struct fake, base);
}

static int32_t value(uint64_t chunk, size_t i)
{
	return (int32_t)(chunk * 1000 + i * i);
}

static void values(uint64_t chunk, int32_t *out)
{
	for (size_t i = 0; i < ELEMS; i++)
		out[i] = value(chunk, i);
}

static int fake_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		       struct err *e)
{
	(void)array;
	(void)e;
	*ret = of(s)->refs[linear];
	return 0;
}

static int fake_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
		     struct err *e)
{
	for (; from < s->ds.arrays[array].n_chunks; from++)
		if (of(s)->refs[from].where != CHUNK_ABSENT) {
			*ret = from;
			return 0;
		}
	return err_set(e, -ENOENT, "none");
}

static int fake_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
			   size_t len, struct err *e)
{
	struct fake *f = of(s);
	int32_t v[ELEMS];

	(void)array;
	atomic_fetch_add(&f->reads, 1);
	while (atomic_load(&f->entered) < atomic_load(&f->wait_for))
		(void)sched_yield();
	if (atomic_load(&f->fail_reads) > 0) {
		atomic_fetch_sub(&f->fail_reads, 1);
		return err_set(e, -EBADMSG, "made up");
	}
	assert_int_equal(len, sizeof(v));
	values(linear, v);
	memcpy(out, v, sizeof(v));
	return 0;
}

static int fake_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
			  struct err *e)
{
	(void)array;
	(void)linear;
	(void)e;
	atomic_fetch_add(&of(s)->reads, 1);
	buf_put(out, of(s)->vlen.data, of(s)->vlen.len);
	return 0;
}

static int fake_fd(struct source *s, uint32_t blob)
{
	return blob == 0 ? of(s)->fd : -1;
}

static int fake_check(struct source *s, struct err *e)
{
	struct fake *f = of(s);

	atomic_fetch_add(&f->checks, 1);
	return atomic_load(&f->fail_checks) ? err_set(e, -ESTALE, "the file changed") : 0;
}

static void fake_close(struct source *s)
{
	(void)s;
}

static const struct source_ops fake_ops = {
	.name = "fake",
	.close = fake_close,
	.locate = fake_locate,
	.next = fake_next,
	.read_chunk = fake_read_chunk,
	.read_vlen = fake_read_vlen,
	.fd = fake_fd,
	.check = fake_check,
};

static int setup(void **state)
{
	struct fake *f = alloc_array(1, sizeof(*f));

	assert_non_null(f);
	f->shape = CHUNKS * ELEMS;
	f->chunk = ELEMS;
	f->grid = CHUNKS;
	f->fill = 0;
	f->groups[0] = (struct ds_group){.name = "", .parent = DS_NONE};
	f->groups[1] = (struct ds_group){.name = "g", .parent = 0};
	for (size_t i = 0; i < ARRAYS; i++) {
		f->arrays[i] = (struct ds_array){
			.name = i ? "w" : "v",
			.group = 1,
			.type = {.kind = DT_INT, .size = 4},
			.rank = 1,
			.shape = &f->shape,
			.chunk = &f->chunk,
			.grid = &f->grid,
			.n_chunks = CHUNKS,
			.chunk_bytes = BYTES,
			.fill = (const uint8_t *)&f->fill,
			.access = DS_STORED,
			.chain = {.specs = f->specs},
			.key = i + 1,
		};
		f->plans[i] = (struct plan){.kind = PLAN_DECODE, .fill_declared = true};
	}
	f->base.ops = &fake_ops;
	f->base.ds.n_groups = 2;
	f->base.ds.groups = f->groups;
	f->base.ds.n_arrays = ARRAYS;
	f->base.ds.arrays = f->arrays;
	buf_init(&f->vlen, 1 << 20);
	f->fd = memfd_create("fake", MFD_CLOEXEC);
	assert_true(f->fd >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fake *f = *state;

	chunkio_free(f->io);
	buf_release(&f->vlen);
	(void)close(f->fd);
	free(f);
	return 0;
}

static void start_with(struct fake *f, uint64_t cache, uint32_t threads)
{
	struct chunkio_options o = {.cache_bytes = cache, .threads = threads, .ahead = 4};

	chunkio_free(f->io);
	f->io = NULL;
	assert_int_equal(chunkio_new(&f->base, f->plans, &o, &f->io, NULL), 0);
}

static void start(struct fake *f)
{
	start_with(f, 1 << 20, 0);
}

static uint32_t chain_params[2] = {6, sizeof(int32_t)};

/* chain - the arrays' filters, by HDF5 id, 0 ends the list. */
static void chain(struct fake *f, uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t ids[3] = {a, b, c}, n = 0;

	for (; n < 3 && ids[n]; n++)
		f->specs[n] = (struct codec_spec){
			.h5_id = ids[n],
			.n_params = ids[n] == CODEC_FLETCHER32 ? 0 : 1,
			.params = &chain_params[ids[n] == CODEC_SHUFFLE],
			.name = "",
		};
	for (size_t i = 0; i < ARRAYS; i++)
		f->arrays[i].chain.n = n;
}

/* pass - present stored chunks with the array's chain, less its last filter's trailer. */
static void pass(struct fake *f, uint32_t trailer)
{
	for (size_t i = 0; i < ARRAYS; i++) {
		struct plan *p = &f->plans[i];

		p->kind = PLAN_PASS;
		p->chain = f->arrays[i].chain;
		p->trailer = trailer;
		if (trailer > 0) {
			p->chain.n--;
			p->trailer_bit = (uint32_t)1 << p->chain.n;
		}
	}
}

static void store(struct fake *f, uint64_t linear, const void *data, size_t n, uint32_t mask)
{
	f->refs[linear] = (struct chunk_ref){
		.where = CHUNK_RANGE, .off = f->end, .len = n, .filter_mask = mask};
	assert_int_equal(pwrite(f->fd, data, n, (off_t)f->end), n);
	f->end += n;
}

/* store_values - chunk `linear` with its values, through the first n filters of the chain. */
static void store_values(struct fake *f, uint64_t linear, uint32_t mask)
{
	struct codec_spec specs[4];
	struct codec_chain used = {.specs = specs};
	int32_t v[ELEMS];
	struct buf out;

	for (uint32_t i = 0; i < f->arrays[0].chain.n; i++)
		if (!(mask >> i & 1))
			specs[used.n++] = f->specs[i];
	values(linear, v);
	buf_init(&out, 1 << 20);
	if (used.n == 0)
		buf_put(&out, v, sizeof(v));
	else
		assert_int_equal(codec_chain_encode(&used, 4, (uint8_t *)v, BYTES, &out, NULL),
				 0);
	store(f, linear, out.data, out.len, mask);
	buf_release(&out);
}

static uint64_t size_of(struct fake *f, uint64_t linear)
{
	struct err e = ERR_INIT;
	uint64_t size = 12345;
	int rc = chunkio_stat(f->io, 0, linear, &size, &e);

	if (rc < 0)
		fail_msg("stat: %d %s", rc, e.msg);
	return size;
}

/* piece - read [off, off+len) of a chunk as the kernel would; returns bytes. */
static size_t piece(struct chunkio *io, uint32_t array, uint64_t linear, uint64_t off,
		    size_t len, uint8_t *out, struct err *e, int *ret_rc)
{
	struct span s;
	size_t n;

	*ret_rc = chunkio_read(io, array, linear, off, len, &s, e);
	if (*ret_rc < 0)
		return 0;
	n = s.len + s.zeros;
	if (n > len || (s.mem && !s.len))
		abort();
	if (s.mem)
		memcpy(out, s.mem, s.len);
	else if (s.len > 0 && pread(s.fd, out, s.len, (off_t)s.off) != (ssize_t)s.len)
		abort();
	memset(out + s.len, 0, s.zeros);
	span_done(&s);
	return n;
}

/* whole - all bytes of a chunk, in one read, and checked against reads of odd pieces. */
static size_t whole(struct fake *f, uint64_t linear, uint8_t *out, size_t cap)
{
	struct err e = ERR_INIT;
	uint8_t part[8192];
	uint64_t size = size_of(f, linear);
	size_t n, got;
	int rc;

	assert_true(size <= cap && size < sizeof(part));
	n = piece(f->io, 0, linear, 0, cap, out, &e, &rc);
	if (rc < 0)
		fail_msg("read: %d %s", rc, e.msg);
	assert_int_equal(n, size);
	for (size_t off = 0; off < n; off += 7) {
		got = piece(f->io, 0, linear, off, 13, part, &e, &rc);
		assert_int_equal(got, u64_min(13, n - off));
		assert_memory_equal(part, out + off, got);
	}
	assert_int_equal(piece(f->io, 0, linear, n, 100, part, &e, &rc), 0);
	assert_int_equal(rc, 0);
	assert_int_equal(piece(f->io, 0, linear, UINT64_MAX, SIZE_MAX, part, &e, &rc), 0);
	assert_int_equal(rc, 0);
	assert_int_equal(piece(f->io, 0, linear, 3, 0, part, &e, &rc), 0);
	assert_int_equal(rc, 0);
	return n;
}

/* is_values - what a reader of the plan's chain makes of a presented chunk. */
static void is_values(struct fake *f, uint64_t linear, const int32_t *want)
{
	struct codec_scratch *scratch = codec_scratch_new();
	uint8_t got[4096];
	int32_t v[ELEMS];
	struct err e = ERR_INIT;
	size_t n = whole(f, linear, got, sizeof(got));

	if (codec_chain_decode(&f->plans[0].chain, 0, 4, got, n, (uint8_t *)v, BYTES, scratch,
			       &e) < 0)
		fail_msg("%s", e.msg);
	assert_memory_equal(v, want, sizeof(v));
	codec_scratch_free(scratch);
}

static void is_chunk(struct fake *f, uint64_t linear)
{
	int32_t v[ELEMS];

	values(linear, v);
	is_values(f, linear, v);
}

static void fails(struct fake *f, uint64_t linear, int want, const char *text)
{
	struct err e = ERR_INIT;
	uint8_t out[4096];
	int rc;

	(void)piece(f->io, 0, linear, 0, sizeof(out), out, &e, &rc);
	assert_int_equal(rc, want);
	assert_int_equal(e.code, want);
	if (!strstr(e.msg, text))
		fail_msg("'%s' is not in '%s'", text, e.msg);
	(void)piece(f->io, 0, linear, 0, sizeof(out), out, NULL, &rc);
	assert_int_equal(rc, want);
}

static void stat_fails(struct fake *f, uint64_t linear, int want)
{
	uint64_t size = 77;

	assert_int_equal(chunkio_stat(f->io, 0, linear, &size, NULL), want);
	assert_int_equal(size, 77);
}

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
	assert_int_equal(chunkio_read(f->io, 0, 0, 3, 100, &s, NULL), 0);
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
	assert_int_equal(chunkio_read(f->io, 0, 1, 90, 20, &s, NULL), 0);
	assert_int_equal(s.off, f->refs[1].off + 90);
	assert_int_equal(s.len, 10);
	assert_int_equal(s.zeros, 10);
	assert_int_equal(chunkio_read(f->io, 0, 1, 100, 1000, &s, NULL), 0);
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
	assert_int_equal(chunkio_read(f->io, 0, 0, 5, 1000, &s, NULL), 0);
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
	assert_int_equal(chunkio_read(f->io, 0, 8, 5, 10, &s, NULL), 0);
	assert_int_equal(s.fd, f->fd);
	assert_null(s.mem);
	assert_null(s.done);
}

static void test_decode_library(void **state)
{
	struct fake *f = *state;

	/* a filter that is not built in, and types that only a library converts */
	chain(f, 32000, 0, 0);
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
	assert_int_equal(codec_chain_encode(&one, 4, junk, BYTES - 4, &out, NULL), 0);
	store(f, 1, out.data, out.len, 0);
	buf_clear(&out);
	assert_int_equal(codec_chain_encode(&one, 4, junk, BYTES + 4, &out, NULL), 0);
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
	fails(f, 0, -EIO, "'/g/v' chunk 0: filter 'x' is not built in");
	stat_fails(f, 1, -EIO);
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

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pass_range),    TEST(test_pass_trailer),  TEST(test_pass_plain),
		TEST(test_pass_odd),      TEST(test_absent),        TEST(test_absent_zeros),
		TEST(test_fill_tile),     TEST(test_decode),        TEST(test_decode_library),
		TEST(test_decode_damage), TEST(test_stale),         TEST(test_vlen),
		TEST(test_fixed),         TEST(test_no_chunks),     TEST(test_next),
		TEST(test_hard_links),    TEST(test_decode_once),   TEST(test_retry),
		TEST(test_ahead),         TEST(test_ahead_of_list), TEST(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
