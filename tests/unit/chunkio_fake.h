/* SPDX-License-Identifier: BSD-3-Clause */
/* chunkio_fake.h - a fake source whose blob is a memfd, for the tests of chunkio, and what they
 * all need: chunks stored through a chain, read in one piece and in odd ones. */
#ifndef TESTS_UNIT_CHUNKIO_FAKE_H
#define TESTS_UNIT_CHUNKIO_FAKE_H

#include "translate/chunkio/chunkio.h"
#include "translate/chunkio/fill_chunk.h"
#include "tests/unit/codecs_encode.h"

#include <errno.h>
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

static inline struct fake *of(struct source *s)
{
	return CONTAINER_OF(s, struct fake, base);
}

static inline int32_t value(uint64_t chunk, size_t i)
{
	return (int32_t)(chunk * 1000 + i * i);
}

static inline void values(uint64_t chunk, int32_t *out)
{
	for (size_t i = 0; i < ELEMS; i++)
		out[i] = value(chunk, i);
}

static inline int fake_locate(struct source *s, uint32_t array, uint64_t linear,
			      struct chunk_ref *ret, struct err *e)
{
	(void)array;
	(void)e;
	*ret = of(s)->refs[linear];
	return 0;
}

static inline int fake_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
			    struct err *e)
{
	for (; from < s->ds.arrays[array].n_chunks; from++)
		if (of(s)->refs[from].where != CHUNK_ABSENT) {
			*ret = from;
			return 0;
		}
	return err_set(e, -ENOENT, "none");
}

static inline int fake_read_chunk(struct source *s, uint32_t array, uint64_t linear,
				  uint8_t *out, size_t len, struct err *e)
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

static inline int fake_read_vlen(struct source *s, uint32_t array, uint64_t linear,
				 struct buf *out, struct err *e)
{
	(void)array;
	(void)linear;
	(void)e;
	atomic_fetch_add(&of(s)->reads, 1);
	buf_put(out, of(s)->vlen.data, of(s)->vlen.len);
	return 0;
}

static inline int fake_fd(struct source *s, uint32_t blob)
{
	return blob == 0 ? of(s)->fd : -1;
}

static inline int fake_check(struct source *s, struct err *e)
{
	struct fake *f = of(s);

	atomic_fetch_add(&f->checks, 1);
	return atomic_load(&f->fail_checks) ? err_set(e, -ESTALE, "the file changed") : 0;
}

static inline void fake_close(struct source *s)
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

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
	struct fake *f = *state;

	chunkio_free(f->io);
	buf_release(&f->vlen);
	(void)close(f->fd);
	free(f);
	return 0;
}

static inline void start_with(struct fake *f, uint64_t cache, uint32_t threads)
{
	struct chunkio_options o = {.cache_bytes = cache, .threads = threads, .ahead = 4};

	chunkio_free(f->io);
	f->io = NULL;
	assert_int_equal(chunkio_new(&f->base, f->plans, &o, &f->io, NULL), 0);
}

static inline void start(struct fake *f)
{
	start_with(f, 1 << 20, 0);
}

static uint32_t chain_params[2] = {6, sizeof(int32_t)};

/* chain - the arrays' filters, by HDF5 id, 0 ends the list. */
static inline void chain(struct fake *f, uint32_t a, uint32_t b, uint32_t c)
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
static inline void pass(struct fake *f, uint32_t trailer)
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

static inline void store(struct fake *f, uint64_t linear, const void *data, size_t n,
			 uint32_t mask)
{
	f->refs[linear] = (struct chunk_ref){
		.where = CHUNK_RANGE, .off = f->end, .len = n, .filter_mask = mask};
	assert_int_equal(pwrite(f->fd, data, n, (off_t)f->end), n);
	f->end += n;
}

/* store_values - chunk `linear` with its values, through the first n filters of the chain. */
static inline void store_values(struct fake *f, uint64_t linear, uint32_t mask)
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
		assert_int_equal(encode_chain(&used, 4, (uint8_t *)v, BYTES, &out, NULL), 0);
	store(f, linear, out.data, out.len, mask);
	buf_release(&out);
}

static inline uint64_t size_of(struct fake *f, uint64_t linear)
{
	struct err e = ERR_INIT;
	uint64_t size = 12345;
	int rc = chunkio_stat(f->io, 0, linear, &size, &e);

	if (rc < 0)
		fail_msg("stat: %d %s", rc, e.msg);
	return size;
}

/* piece - read [off, off+len) of a chunk as the kernel would; returns bytes. */
static inline size_t piece(struct chunkio *io, uint32_t array, uint64_t linear, uint64_t off,
			   size_t len, uint8_t *out, struct err *e, int *ret_rc)
{
	struct span s;
	size_t n;

	*ret_rc = chunkio_read(io, array, linear, off, len, out, &s, e);
	if (*ret_rc < 0)
		return 0;
	n = s.len + s.zeros;
	if (n > len || (s.mem && !s.len))
		abort();
	if (s.mem && s.mem != out)
		memcpy(out, s.mem, s.len);
	if (!s.mem && s.len > 0 && pread(s.fd, out, s.len, (off_t)s.off) != (ssize_t)s.len)
		abort();
	memset(out + s.len, 0, s.zeros);
	span_done(&s);
	return n;
}

/* whole - all bytes of a chunk, in one read, and checked against reads of odd pieces. */
static inline size_t whole(struct fake *f, uint64_t linear, uint8_t *out, size_t cap)
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
static inline void is_values(struct fake *f, uint64_t linear, const int32_t *want)
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

static inline void is_chunk(struct fake *f, uint64_t linear)
{
	int32_t v[ELEMS];

	values(linear, v);
	is_values(f, linear, v);
}

static inline void fails(struct fake *f, uint64_t linear, int want, const char *text)
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

static inline void stat_fails(struct fake *f, uint64_t linear, int want)
{
	uint64_t size = 77;

	assert_int_equal(chunkio_stat(f->io, 0, linear, &size, NULL), want);
	assert_int_equal(size, 77);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

#endif
