/* SPDX-License-Identifier: BSD-3-Clause */
/* test_source.c - messages of source_open, and what the wrappers let through. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "translate/contract/source.h"

#include "base/os/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_source_XXXXXX";
static char path[300];

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* fake - a source of one array of 4 chunks that answers whatever the test put here. */
struct fake {
	struct source source;
	int fd;
	int rc;
	struct chunk_ref ref;
	uint64_t next;
};

static int fake_bid(const struct source_at *at, struct err *e)
{
	char c = 0;

	return at->file && blob_read(at->file, 0, &c, 1, e) == 0 && c == 'F' ? 5 : 0;
}

static int weak_bid(const struct source_at *at, struct err *e)
{
	return fake_bid(at, e) ? 1 : 0;
}

static const struct source_ops fake_ops;

static int fake_open(const struct source_at *at, const struct source_options *opts,
		     struct source **ret, struct err *e)
{
	struct fake *f;

	(void)opts;
	if (at->file->size < 4)
		return err_set(e, -EBADMSG, "truncated: file has %d bytes, 4 needed",
			       (int)at->file->size);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(e);
	f->source.ops = &fake_ops;
	f->fd = at->fd;
	f->source.ds.st = at->st;
	*ret = &f->source;
	return 0;
}

static void fake_close(struct source *s)
{
	struct fake *f = CONTAINER_OF(s, struct fake, source);

	(void)close(f->fd);
	free(f);
}

static int fake_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		       struct err *e)
{
	(void)array;
	(void)linear;
	(void)e;
	*ret = CONTAINER_OF(s, struct fake, source)->ref;
	return CONTAINER_OF(s, struct fake, source)->rc;
}

static int fake_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
		     struct err *e)
{
	(void)array;
	(void)from;
	(void)e;
	*ret = CONTAINER_OF(s, struct fake, source)->next;
	return CONTAINER_OF(s, struct fake, source)->rc;
}

static int fake_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		      size_t len, struct err *e)
{
	(void)s;
	(void)array;
	(void)e;
	memset(out, (int)linear, len);
	return 0;
}

static int fake_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e)
{
	(void)s;
	(void)array;
	(void)linear;
	(void)e;
	buf_puts(out, "more than eight bytes");
	return 0;
}

static const struct source_ops fake_ops = {
	.name = "fake",
	.bid = fake_bid,
	.open = fake_open,
	.close = fake_close,
	.locate = fake_locate,
	.next = fake_next,
	.read_chunk = fake_chunk,
	.read_vlen = fake_vlen,
};
static const struct source_ops weak_ops = {.name = "weak", .bid = weak_bid};
static const struct source_ops *const formats[] = {&weak_ops, &fake_ops};

static const char *file_of(const char *name, const void *data, size_t n)
{
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), (ssize_t)n);
	(void)close(fd);
	return path;
}

/* fails - source_open gives this code and a message with both strings in it. */
static void fails(const char *p, int code, const char *what, const char *todo)
{
	struct source *s = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(source_open(formats, 2, p, NULL, &s, &e), code);
	assert_null(s);
	assert_int_equal(e.code, code);
	if (!strstr(e.msg, what) || !strstr(e.msg, todo))
		fail_msg("message: %s", e.msg);
}

static void test_open_fails(void **state)
{
	char longer[300];

	(void)state;
	fails("/nowhere/x.nc", -ENOENT, "'/nowhere/x.nc': no such file", "check the path");
	fails(dir, -EBADMSG, "is a directory", "Zarr store");
	fails("/dev/null", -EINVAL, "not a regular file", "copy");
	fails(file_of("a", "", 0), -EBADMSG, "is empty (0 bytes)", "downloaded");
	fails(file_of("a", "hello, world", 12), -EBADMSG,
	      "not a file format nczarrfs knows: it starts with 'hello, w'",
	      "tried: weak, fake");
	fails(file_of("a", "\x89PNG", 4), -EBADMSG, "it starts with 89 50 4e 47 (", "tried");
	fails(file_of("a", "\0", 1), -EBADMSG, "it starts with 00 (", "tried");
	fails(file_of("a", "CDF\x03", 4), -EBADMSG, "a classic netCDF file of an unknown version",
	      "versions 1, 2 and 5");
	fails(file_of("a", "\x0e\x03\x13\x01", 4), -EBADMSG, "an HDF4 file that cannot be read",
	      "is it damaged? a build without libhdf4 cannot read HDF4: h4toh5");
	fails(file_of("a", "F", 1), -EBADMSG, "truncated: file has 1 bytes", "/a': ");
	if (geteuid() != 0) {
		(void)chmod(path, 0);
		fails(path, -EACCES, "permission denied", "readable");
	}
	(void)unlink(path);

	memset(longer, 'y', 280);
	longer[0] = '/';
	longer[280] = '\0';
	fails(longer, -ENAMETOOLONG, "'...yyy", "file name too long");
	(void)snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	fails(path, -EINVAL, "not a regular file", "copy");
	(void)unlink(path);
}

static struct fake *open_fake(struct source **ret)
{
	struct err e = ERR_INIT;

	assert_int_equal(source_open(formats, 2, file_of("f", "Fake", 4), NULL, ret, &e), 0);
	(void)unlink(path);
	return CONTAINER_OF(*ret, struct fake, source);
}

/* A file that was written a moment ago is opened when a later change has another time. */
static void test_times(void **state)
{
	const struct timespec *at;
	struct source *s = NULL;
	struct err e;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(source_open(formats, 2, file_of("f", "Fake", 4), NULL, &s, &e),
				 0);
		at = &s->ds.st.st_mtim;
		assert_int_equal(io_racy_ns(at->tv_sec * 1000000000 + at->tv_nsec), 0);
		source_close(s);
	}
}

static void test_ranges(void **state)
{
	struct ds_array a = {.name = "v",
			     .type = {.kind = DT_INT, .size = 4},
			     .n_chunks = 4,
			     .chunk_bytes = 8};
	struct source *s;
	struct fake *f = open_fake(&s);
	struct chunk_ref r = {.blob = 9};
	uint64_t next = 99;

	(void)state;
	s->ds.arrays = &a;
	s->ds.n_arrays = 1;
	assert_int_equal(source_locate(s, 1, 0, &r, NULL), -EINVAL);
	assert_int_equal(source_locate(s, 0, 4, &r, NULL), -EINVAL);
	f->rc = -EIO;
	assert_int_equal(source_locate(s, 0, 3, &r, NULL), -EIO);
	f->rc = 0;
	f->ref = (struct chunk_ref){.where = CHUNK_RANGE, .off = UINT64_MAX, .len = 2};
	assert_int_equal(source_locate(s, 0, 3, &r, NULL), -EBADMSG);
	f->ref = (struct chunk_ref){.where = CHUNK_RANGE, .off = INT64_MAX, .len = 1};
	assert_int_equal(source_locate(s, 0, 3, &r, NULL), -EBADMSG);
	assert_int_equal(r.blob, 9);
	f->ref = (struct chunk_ref){.where = CHUNK_RANGE, .off = 100, .len = 8};
	assert_int_equal(source_locate(s, 0, 3, &r, NULL), 0);
	assert_int_equal(r.off, 100);

	f->next = 2;
	assert_int_equal(source_next(s, 1, 0, &next, NULL), -EINVAL);
	assert_int_equal(source_next(s, 0, 4, &next, NULL), -ENOENT);
	assert_int_equal(source_next(s, 0, 3, &next, NULL), -EBADMSG);
	assert_int_equal(next, 99);
	assert_int_equal(source_next(s, 0, 1, &next, NULL), 0);
	assert_int_equal(next, 2);
	f->next = 4;
	assert_int_equal(source_next(s, 0, 1, &next, NULL), -EBADMSG);
	source_close(s);
	source_close(NULL);
}

static void test_reads(void **state)
{
	struct ds_array a[] = {
		{.name = "v",
		 .type = {.kind = DT_INT, .size = 4},
		 .n_chunks = 4,
		 .chunk_bytes = 8},
		{.name = "s", .type = {.kind = DT_VSTRING}, .n_chunks = 1},
	};
	const struct source_ops none = {.name = "none", .close = fake_close};
	struct source *s;
	struct chunk_ref r;
	uint8_t out[8];
	uint64_t next;
	struct buf b;

	(void)state;
	(void)open_fake(&s);
	s->ds.arrays = a;
	s->ds.n_arrays = 2;
	assert_int_equal(source_read_chunk(s, 0, 3, out, 8, NULL), 0);
	assert_int_equal(out[7], 3);
	assert_int_equal(source_read_chunk(s, 0, 3, out, 7, NULL), -EINVAL);
	assert_int_equal(source_read_chunk(s, 1, 0, out, 0, NULL), -EINVAL);
	buf_init(&b, 8);
	assert_int_equal(source_read_vlen(s, 0, 0, &b, NULL), -EINVAL);
	assert_int_equal(source_read_vlen(s, 1, 0, &b, NULL), -ERANGE);
	a[0].unreadable = "no";
	assert_int_equal(source_read_chunk(s, 0, 3, out, 8, NULL), -EOPNOTSUPP);
	a[0].unreadable = NULL;

	s->ops = &none;
	assert_int_equal(source_read_chunk(s, 0, 3, out, 8, NULL), -EOPNOTSUPP);
	assert_int_equal(source_read_vlen(s, 1, 0, &b, NULL), -EOPNOTSUPP);
	assert_int_equal(source_locate(s, 0, 0, &r, NULL), -EOPNOTSUPP);
	assert_int_equal(source_next(s, 0, 0, &next, NULL), -EOPNOTSUPP);
	assert_int_equal(source_fd(s, 0), -1);
	assert_int_equal(source_check(s, NULL), 0);
	source_close(s);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_fails),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_reads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
