/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of pages, against a plain array of flags; and the bytes of a file that is written, against
 * a plain array of bytes, whatever is done to it in whatever order. */
#include "tests/unit/hdf5view/virtual_rw/virtual_rw_fake.h"

#include <signal.h>
#include <sys/resource.h>

#define PAGES 200000 /* several leaves */

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* same - every question has the answer that the flags give. */
static void same(const struct rw_map *m, const bool *flags, uint32_t *seed)
{
	uint64_t page = 0, n = 0, at, end;
	bool in;

	for (unsigned k = 0; k < 200; k++) {
		at = next(seed) % PAGES;
		n = 1 + next(seed) % (PAGES - at);
		for (end = at; end < at + n && flags[end] == flags[at]; end++)
			;
		assert_int_equal(rw_map_run(m, at, n, &in), end - at);
		assert_int_equal(in, flags[at]);
		assert_int_equal(rw_map_any(m, at, n), flags[at] || end < at + n);
	}
	page = n = at = 0;
	while (rw_map_next(m, page, &page, &n)) {
		for (; at < page; at++)
			assert_false(flags[at]);
		for (; at < page + n; at++)
			assert_true(flags[at]);
		page += n;
	}
	for (; at < PAGES; at++)
		assert_false(flags[at]);
}

static void test_map(void **state)
{
	bool *flags = calloc(PAGES, 1);
	struct rw_map m = {0};
	uint32_t seed = 1;

	(void)state;
	assert_non_null(flags);
	for (unsigned k = 0; k < 120; k++) {
		uint64_t at = next(&seed) % PAGES, n = next(&seed) % (k % 5 ? 700 : 70000);

		n = u64_min(n, PAGES - at);
		if (k % 11 == 10) {
			assert_int_equal(rw_map_cut(&m, at, NULL), 0);
			memset(flags + at, 0, PAGES - at);
		} else {
			assert_int_equal(rw_map_reserve(&m, at, n, NULL), 0);
			if (k % 7) { /* else it is only reserved */
				rw_map_add(&m, at, n);
				memset(flags + at, 1, n);
			}
		}
		same(&m, flags, &seed);
	}
	rw_map_release(&m);
	free(flags);
}

/* Pages far apart cost a leaf each, all pages of a terabyte next to nothing. */
static void test_map_memory(void **state)
{
	uint64_t tera = ((uint64_t)1 << 40) / RW_PAGE;
	struct rw_map m = {0};
	bool in;

	(void)state;
	assert_int_equal(rw_map_reserve(&m, ((uint64_t)1 << 62) / RW_PAGE, 1, NULL), 0);
	rw_map_add(&m, ((uint64_t)1 << 62) / RW_PAGE, 1);
	assert_int_equal(rw_map_run(&m, 0, UINT64_MAX / RW_PAGE, &in),
			 ((uint64_t)1 << 62) / RW_PAGE);
	assert_false(in);
	assert_int_equal(m.n, 1);
	assert_int_equal(rw_map_cut(&m, 0, NULL), 0);
	for (uint64_t at = 0; at < tera; at += 32768) {
		assert_int_equal(rw_map_reserve(&m, at, 32768, NULL), 0);
		rw_map_add(&m, at, 32768);
	}
	assert_int_equal(rw_map_run(&m, 0, tera + 5, &in), tera);
	assert_true(in);
	rw_map_release(&m);
}

/* ---- bytes ---- */

#define LIMIT ((size_t)300000)

struct shadow {
	uint8_t *bytes;
	size_t size;
	uint64_t id, fh;
};

static void write_it(struct rwf *f, struct shadow *s, uint32_t *seed)
{
	size_t off = next(seed) % LIMIT, n = 1 + next(seed) % (next(seed) % 4 ? 900 : 20000);
	struct err e = ERR_INIT;

	n = (size_t)u64_min(n, LIMIT - off);
	if (next(seed) % 3 == 0)
		off -= off % RW_PAGE;
	for (size_t i = 0; i < n; i++)
		s->bytes[off + i] = (uint8_t)next(seed);
	if (f->v->write->write(f->v, s->id, s->fh, off, s->bytes + off, n, &e) < 0)
		fail_msg("%s", e.msg);
	s->size = off + n > s->size ? off + n : s->size;
}

static void resize_it(struct rwf *f, struct shadow *s, uint32_t *seed)
{
	size_t size = next(seed) % (next(seed) % 5 ? LIMIT : 9000);
	struct view_set set = {.size_set = true, .size = size};
	struct view_attr at;

	assert_int_equal(f->v->write->setattr(f->v, s->id, s->fh, &set, &at, NULL), 0);
	assert_int_equal(at.size, size);
	if (size < s->size)
		memset(s->bytes + size, 0, LIMIT - size);
	s->size = size;
}

static void compare(struct rwf *f, struct shadow *s, uint64_t id, uint64_t fh, uint32_t *seed)
{
	size_t off = next(seed) % (s->size + 1), n = 1 + next(seed) % 30000;
	uint8_t *got = malloc(n);
	struct view_attr at;

	assert_non_null(got);
	n = (size_t)u64_min(n, s->size - off);
	assert_int_equal(f->v->ops->getattr(f->v, id, &at, NULL), 0);
	assert_int_equal(at.size, s->size);
	rwf_read(f, id, fh, off, n, got);
	assert_memory_equal(got, s->bytes + off, n);
	free(got);
}

/* play - many operations on one open file; its old content, if any, is in s. */
static void play(struct rwf *f, struct shadow *s, uint32_t *seed, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		if (next(seed) % 40 == 0)
			resize_it(f, s, seed);
		else if (next(seed) % 2)
			write_it(f, s, seed);
		compare(f, s, s->id, s->fh, seed);
	}
}

static void begin(struct rwf *f, struct shadow *s, const char *name, int flags)
{
	*s = (struct shadow){.bytes = calloc(1, LIMIT)};
	assert_non_null(s->bytes);
	s->fh = flags & O_CREAT ? rwf_create(f, name, flags, &s->id)
				: rwf_open(f, name, flags, &s->id);
	s->size = (size_t)rwf_size(f, name);
	assert_true(s->size <= LIMIT);
	rwf_read(f, s->id, s->fh, 0, s->size, s->bytes);
}

/* The virtual file, while a reader has the old content open; commits fail, because it is not an
 * HDF5 file, and lose nothing. In the end it is the original file. */
static void test_random(void **state)
{
	struct rwf *f = *state;
	struct shadow old, s;
	struct err e = ERR_INIT;
	uint32_t seed = 7;

	for (unsigned k = 0; k < 8; k++) {
		struct view_set set = {.size_set = true};
		struct view_attr at;

		begin(f, &old, "x.nc", O_RDONLY);
		begin(f, &s, "x.nc", O_RDWR);
		play(f, &s, &seed, 150);
		f->fail = -EBADMSG;
		assert_int_equal(f->v->write->flush(f->v, s.id, s.fh, NULL), -EBADMSG);
		assert_int_equal(f->v->write->fsync(f->v, s.id, s.fh, false, NULL), 0);
		play(f, &s, &seed, 150);
		for (unsigned i = 0; i < 20; i++)
			compare(f, &old, old.id, old.fh, &seed);
		f->fail = 0;
		set.size = old.size;
		assert_int_equal(f->v->write->setattr(f->v, s.id, s.fh, &set, &at, &e), 0);
		if (f->v->write->write(f->v, s.id, s.fh, 0, old.bytes, old.size, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(rwf_close(f, s.id, s.fh), 0);
		for (unsigned i = 0; i < 20; i++)
			compare(f, &old, old.id, old.fh, &seed);
		assert_int_equal(rwf_close(f, old.id, old.fh), 0);
		assert_true(rwf_shows(f, "x.nc", "packed", 1));
		assert_true(rwf_shows(f, "x.nc", "plain", 2));
		free(old.bytes);
		free(s.bytes);
	}
}

static void test_random_scratch(void **state)
{
	struct rwf *f = *state;
	struct shadow s;
	uint32_t seed = 3;

	begin(f, &s, "other", O_RDWR | O_CREAT);
	play(f, &s, &seed, 500);
	assert_int_equal(rwf_close(f, s.id, s.fh), 0);
	assert_int_equal(f->commits, 0);
	free(s.bytes);
}

/* What of a file was written is known by the page. */
static void test_written(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id), size = rwf_size(f, "x.nc");
	struct rw_copy *c = &rw_handle(fh)->file->copy;
	struct view_set set = {.size_set = true, .size = size - 10};
	struct view_attr at;

	assert_false(rw_copy_written(c, 0, size));
	assert_int_equal(
		f->v->write->write(f->v, id, fh, 5000, (const uint8_t *)"abc", 3, NULL), 0);
	assert_true(rw_copy_written(c, 0, 4097));
	assert_false(rw_copy_written(c, 0, 4096));
	assert_true(rw_copy_written(c, 8191, 1));
	assert_false(rw_copy_written(c, 8192, size - 8192));
	assert_true(rw_copy_differs(c, -1, 5002, 1)); /* to the byte, where it is cheap */
	assert_false(rw_copy_differs(c, -1, 5003, 3000));
	assert_false(rw_copy_differs(c, -1, 100, 4900));
	assert_true(rw_copy_differs(c, -1, 100, 4901));
	assert_true(rw_copy_differs(c, -1, 100, 9000)); /* a page of its own was written */
	assert_true(rw_copy_differs(c, -1, 5000, 3192));
	assert_false(rw_copy_differs(c, -1, 5003, 8000));
	assert_int_equal(f->v->write->setattr(f->v, id, fh, &set, &at, NULL), 0);
	assert_false(rw_copy_written(c, 8192, size - 10 - 8192));
	assert_true(rw_copy_written(c, size - 20, 11));
	set.size = size;
	assert_int_equal(f->v->write->setattr(f->v, id, fh, &set, &at, NULL), 0);
	assert_true(rw_copy_written(c, size - 20, 20)); /* zeros now */
	f->fail = -EIO;
	assert_int_equal(rwf_close(f, id, fh), -EIO);
}

/* Without room for it a write fails, and takes nothing away. */
static void test_no_room(void **state)
{
	struct rwf *f = *state;
	struct rlimit limit, small;
	struct view_set set = {.size_set = true};
	struct view_attr at;
	uint8_t *big = malloc(200000), first[5000], now[5000];
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id), size = rwf_size(f, "x.nc");

	assert_non_null(big);
	memset(big, 7, 200000);
	rwf_read(f, id, fh, 0, 5000, first);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = size + 100000;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(f->v->write->write(f->v, id, fh, size, big, 200000, NULL) < 0);
	assert_int_equal(rwf_size(f, "x.nc"), size);
	rwf_read(f, id, fh, 0, 5000, now);
	assert_memory_equal(now, first, 5000);
	set.size = size + 50000; /* its written bytes are not there when the file grows */
	assert_int_equal(f->v->write->setattr(f->v, id, fh, &set, &at, NULL), 0);
	rwf_read(f, id, fh, size, 50000, big);
	for (unsigned i = 0; i < 50000; i++)
		assert_int_equal(big[i], 0);
	set.size = size;
	assert_int_equal(f->v->write->setattr(f->v, id, fh, &set, &at, NULL), 0);
	small.rlim_cur = 100; /* not even the structure */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(f->v->write->write(f->v, id, fh, 200, big, 3000, NULL) < 0);
	rwf_read(f, id, fh, 0, 5000, now);
	assert_memory_equal(now, first, 5000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	/* whatever is written later, what failed is missing: it is not committed */
	rwf_edit(f, id, fh, "more", 3);
	assert_int_equal(f->v->write->fsync(f->v, id, fh, false, NULL), -EFBIG);
	assert_int_equal(rwf_close(f, id, fh), -EFBIG);
	assert_int_equal(f->commits, 0);
	assert_int_equal(f->v->write->finish(f->v, true, NULL), 0);
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
	assert_false(rwf_shows(f, "x.nc", "more", 3));
	fh = rwf_open(f, "x.nc", O_RDWR, &id);
	rwf_edit(f, id, fh, "more", 3);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	free(big);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rwf_setup, rwf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map), cmocka_unit_test(test_map_memory),
		TEST(test_random),          TEST(test_random_scratch),
		TEST(test_written),         TEST(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
