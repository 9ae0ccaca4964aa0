/* SPDX-License-Identifier: BSD-3-Clause */
/* Joined classic files, without a mount: chunks that line up and such that do not, few members open
 * at a time and many threads, changes, and an index. */
#include "base/process/child.h"
#include "translate/concat/concat.h"

#include "base/core/buf.h"
#include "hdf5view/hdf5view.h"
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#define X 6
#define FILES 9
#define THREADS 4

static const struct source_ops *const formats[] = {&cdf_source_ops};

struct fx {
	char dir[40], pattern[64], index[64];
	struct source_options source;
	struct concat_options opts;
	struct source *s;
	struct err e;
};

static void put(struct buf *b, uint64_t v, unsigned bytes)
{
	while (bytes-- > 0)
		buf_putc(b, (char)(v >> 8 * bytes));
}

static void name(struct buf *b, const char *s)
{
	put(b, strlen(s), 4);
	buf_puts(b, s);
	put(b, 0, (unsigned)(-strlen(s) & 3));
}

static void number(struct buf *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put(b, bits, 8);
}

/* header - CDF-1 with records of time(time), f8, and v(time, x), f8. */
static void header(struct buf *b, uint32_t n, uint32_t x, uint32_t at)
{
	buf_puts(b, "CDF\1");
	put(b, n, 4);
	put(b, 10, 4); /* dimensions */
	put(b, 2, 4);
	name(b, "time");
	put(b, 0, 4);
	name(b, "x");
	put(b, x, 4);
	put(b, 0, 8);  /* no attributes */
	put(b, 11, 4); /* variables */
	put(b, 2, 4);
	name(b, "time");
	put(b, 1, 4);
	put(b, 0, 4);
	put(b, 0, 8);
	put(b, 6, 4);
	put(b, 8, 4);
	put(b, at, 4);
	name(b, "v");
	put(b, 2, 4);
	put(b, 0, 4);
	put(b, 1, 4);
	put(b, 0, 8);
	put(b, 6, 4);
	put(b, 8 * x, 4);
	put(b, at + 8, 4);
}

static double value(uint64_t t, uint64_t x)
{
	return (double)t * 100 + (double)x;
}

static void make(struct fx *f, const char *file, uint32_t start, uint32_t n, uint32_t x)
{
	const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	struct buf b;
	uint32_t at;
	char path[80];
	int fd;

	buf_init(&b, 1 << 20);
	header(&b, n, x, 0);
	at = (uint32_t)b.len;
	buf_clear(&b);
	header(&b, n, x, at);
	for (uint32_t t = start; t < start + n; t++) {
		number(&b, t);
		for (uint32_t i = 0; i < x; i++)
			number(&b, value(t, i));
	}
	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, file);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, b.data, b.len), b.len);
	assert_int_equal(futimens(fd, old), 0);
	assert_int_equal(close(fd), 0);
	buf_release(&b);
}

static void drop(const struct fx *f, const char *file)
{
	char path[80];

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, file);
	(void)unlink(path);
}

static int setup(void **state)
{
	struct fx *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memcpy(f->dir, "/dev/shm/nczarrfs-join-XXXXXX", 30);
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->pattern, sizeof(f->pattern), "%s/f*.nc", f->dir);
	(void)snprintf(f->index, sizeof(f->index), "%s/index", f->dir);
	f->source = (struct source_options){.cut_bytes = 4 * 8 * X,
					    .max_chunk_bytes = 1 << 20,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 24};
	f->opts = (struct concat_options){.dim = "time",
					  .index_file = f->index,
					  .open_members = 1,
					  .cache_bytes = 1 << 12,
					  .source = &f->source};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fx *f = *state;
	char file[20];

	source_close(f->s);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(file, sizeof(file), "f%d.nc", i);
		drop(f, file);
	}
	drop(f, "index");
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static int open_join(struct fx *f)
{
	source_close(f->s);
	f->s = NULL;
	f->e = (struct err)ERR_INIT;
	return concat_open(formats, 1, f->pattern, &f->opts, &f->s, &f->e);
}

static uint32_t array_of(const struct source *s, const char *what)
{
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		if (strcmp(s->ds.arrays[i].name, what) == 0)
			return i;
	return CONCAT_NONE;
}

static double load(const struct ds_array *a, const uint8_t *p)
{
	uint64_t bits = 0;
	double v;

	for (int i = 0; i < 8; i++)
		bits = bits << 8 | p[a->type.big_endian ? i : 7 - i];
	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* right - whether all chunks of v, beginning with one of them, are what they should be. */
static bool right(struct source *s, uint64_t from)
{
	uint32_t v = array_of(s, "v");
	const struct ds_array *a = &s->ds.arrays[v];
	uint8_t *one = malloc(a->chunk_bytes);
	bool ok = true;

	for (uint64_t k = 0; k < a->n_chunks && ok; k++) {
		uint64_t c = (from + k) % a->n_chunks;

		ok = source_read_chunk(s, v, c, one, a->chunk_bytes, NULL) == 0;
		for (uint64_t t = 0; t < a->chunk[0] && ok; t++) {
			uint64_t at = c * a->chunk[0] + t;

			for (uint64_t x = 0; x < X && at < a->shape[0] && ok; x++)
				ok = load(a, one + (t * X + x) * 8) == value(at, x);
		}
	}
	free(one);
	return ok;
}

static void times_are(struct source *s, uint64_t n)
{
	uint32_t i = array_of(s, "time");
	const struct ds_array *a = &s->ds.arrays[i];
	uint8_t *all = malloc(a->chunk_bytes);

	assert_int_equal(a->shape[0], n);
	assert_int_equal(a->n_chunks, 1);
	assert_int_equal(source_read_chunk(s, i, 0, all, a->chunk_bytes, NULL), 0);
	for (uint64_t t = 0; t < n; t++)
		assert_true(load(a, all + 8 * t) == (double)t);
	free(all);
}

/* files - of the lengths given, until one is 0. */
static uint32_t files(struct fx *f, const uint32_t *lens)
{
	uint32_t at = 0;
	char file[20];

	for (int i = 0; lens[i]; i++) {
		(void)snprintf(file, sizeof(file), "f%d.nc", i);
		make(f, file, at, lens[i], X);
		at += lens[i];
	}
	return at;
}

static void test_aligned(void **state)
{
	static const uint32_t lens[] = {8, 4, 8, 3, 0};
	struct fx *f = *state;
	uint32_t n = files(f, lens);
	const struct ds_array *a;

	assert_int_equal(open_join(f), 0);
	a = &f->s->ds.arrays[array_of(f->s, "v")];
	assert_int_equal(a->shape[0], n);
	times_are(f->s, n);
	assert_true(right(f->s, 0) && right(f->s, 3));
	assert_ptr_equal(concat_format(f->s), &cdf_source_ops);
}

static void test_unaligned(void **state)
{
	static const uint32_t lens[] = {7, 1, 1, 12, 5, 2, 0};
	struct fx *f = *state;
	uint32_t n = files(f, lens);

	assert_int_equal(open_join(f), 0);
	times_are(f->s, n);
	assert_true(right(f->s, 0));
	f->opts.dim = "x"; /* the other axis: v is as wide as all */
	f->opts.index_file = NULL;
	assert_int_equal(open_join(f), -EINVAL); /* lengths of time differ */
	assert_non_null(strstr(f->e.msg, "'time'"));
}

static void *reader(void *arg)
{
	struct fx *f = arg;
	bool ok = true;

	for (uint64_t i = 0; i < 5 && ok; i++)
		ok = right(f->s, i * 7);
	return ok ? f : NULL;
}

static void test_threads(void **state)
{
	static const uint32_t lens[FILES + 1] = {5, 3, 4, 4, 7, 1, 2, 6, 4, 0};
	struct fx *f = *state;
	pthread_t threads[THREADS];

	(void)files(f, lens);
	assert_int_equal(open_join(f), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, f), 0);
	for (int i = 0; i < THREADS; i++) {
		void *ret;

		assert_int_equal(pthread_join(threads[i], &ret), 0);
		assert_ptr_equal(ret, f);
	}
}

/* a member that changed is an error for its readers, and is opened again afterwards */
static void test_changes(void **state)
{
	static const uint32_t lens[] = {4, 4, 4, 0};
	struct fx *f = *state;
	uint32_t v;
	uint8_t one[4 * 8 * X];

	(void)files(f, lens);
	assert_int_equal(open_join(f), 0);
	v = array_of(f->s, "v");
	assert_int_equal(f->s->ds.arrays[v].chunk_bytes, sizeof(one));
	assert_int_equal(source_poll(f->s, &f->e), 0);
	drop(f, "f2.nc");
	make(f, "f2.nc", 8, 5, X);
	assert_int_equal(source_read_chunk(f->s, v, 2, one, sizeof(one), &f->e), -ESTALE);
	assert_non_null(strstr(f->e.msg, "f2.nc"));
	assert_int_equal(source_check(f->s, &f->e), -ESTALE);
	assert_int_equal(source_poll(f->s, &f->e), -ESTALE);
	assert_int_equal(open_join(f), 0);
	times_are(f->s, 13);
	assert_true(right(f->s, 0));
	make(f, "f3.nc", 13, 2, X); /* seen when it is the same for the second time */
	for (int i = 0; i < 2; i++)
		if (source_poll(f->s, &f->e) == 0)
			assert_true(i == 0);
	assert_int_equal(open_join(f), 0);
	times_are(f->s, 15);
	make(f, "f4.nc", 3, 2, X); /* overlaps: it is not shown, and disturbs nothing */
	for (int i = 0; i < 3; i++)
		assert_int_equal(source_poll(f->s, &f->e), 0);
	assert_true(right(f->s, 0));
	assert_int_equal(open_join(f), -EINVAL);
	assert_non_null(strstr(f->e.msg, "overlap"));
}

/* everything by the index is what it is without; one that cannot be written does no harm */
static void test_with_index(void **state)
{
	static const uint32_t lens[] = {5, 3, 4, 0};
	struct fx *f = *state;
	struct stat st;

	(void)files(f, lens);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(open_join(f), 0);
		times_are(f->s, 12);
		assert_true(right(f->s, 0));
		assert_int_equal(stat(f->index, &st), 0);
	}
	f->opts.index_file = "/dev/null/index";
	assert_int_equal(open_join(f), 0);
	assert_true(right(f->s, 0));
	f->opts.index_file = NULL;
	f->opts.equal = true;
	assert_int_equal(open_join(f), 0);
	assert_true(right(f->s, 0));
}

static void test_refused(void **state)
{
	static const uint32_t lens[] = {4, 4, 0};
	struct fx *f = *state;

	assert_int_equal(open_join(f), -ENOENT);
	(void)files(f, lens);
	make(f, "f2.nc", 8, 4, X + 1);
	assert_int_equal(open_join(f), -EINVAL);
	assert_non_null(strstr(f->e.msg, "f2.nc"));
	assert_non_null(strstr(f->e.msg, "'x'"));
	drop(f, "f2.nc");
	f->opts.dim = "level";
	assert_int_equal(open_join(f), -EINVAL);
	assert_non_null(strstr(f->e.msg, "'level'"));
}

/* Processes are forked by one without threads, as in the server: a thread may hold a lock of the
 * allocator when another one forks. */
static int prepare(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return child_prepare(NULL, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_aligned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unaligned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_with_index, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
