/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr source from outside: what it bids for, what opens, what the messages are, and a value
 * from a directory and from an archive. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "nczarr/nczarr.h"

#include <cmocka.h>

#define GROUP "{\"zarr_format\": 2}"
#define ZARRAY                                                                                 \
	"{\"zarr_format\": 2, \"shape\": [3], \"chunks\": [2], \"dtype\": \"|u1\", "           \
	"\"fill_value\": 9, \"order\": \"C\", \"filters\": null, \"compressor\": null}"

static const struct source_ops *const formats[] = {&zarr_source_ops};
static const struct source_options options = {
	.max_chunk_bytes = 1 << 20, .max_index_bytes = 1 << 20, .max_meta_bytes = 1 << 20};
static char top[] = "/tmp/src_zarr.XXXXXX";

/* path - below the test's directory. */
static const char *path(const char *name)
{
	static char text[4][256];
	static unsigned turn;
	char *p = text[turn++ % 4];

	(void)snprintf(p, 256, "%s/%s", top, name);
	return p;
}

static void put(const char *name, const void *data, size_t n)
{
	char dir[256];
	FILE *f;

	(void)snprintf(dir, sizeof(dir), "%s", path(name));
	for (char *c = dir + strlen(top) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		(void)mkdir(dir, 0700);
		*c = '/';
	}
	f = fopen(dir, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

/* ---- a zip archive, nothing compressed ---- */

static void le(struct buf *b, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_putc(b, (char)(uint8_t)(i < 8 ? v >> 8 * i : 0));
}

/* put_zip - entries of a list: name, text, ..., NULL. */
static void put_zip(const char *name, const char *const *list)
{
	struct buf b, dir;
	uint64_t n = 0, at;

	buf_init(&b, 1 << 20);
	buf_init(&dir, 1 << 20);
	for (; list[0]; list += 2, n++) {
		size_t nn = strlen(list[0]), len = strlen(list[1]);
		uint64_t crc = crc32(0, (const Bytef *)list[1], (uInt)len);

		at = b.len;
		le(&b, 0x04034b50, 4);
		le(&dir, 0x02014b50, 4);
		le(&dir, 20, 2);
		for (struct buf *o = &b; o; o = o == &b ? &dir : NULL) {
			le(o, 20, 2);
			le(o, 0, 8); /* flags, stored, time, date */
			le(o, crc, 4);
			le(o, len, 4);
			le(o, len, 4);
			le(o, nn, 2);
			le(o, 0, 2);
		}
		le(&dir, 0, 10); /* comment, disk, attributes */
		le(&dir, at, 4);
		buf_puts(&dir, list[0]);
		buf_puts(&b, list[0]);
		buf_puts(&b, list[1]);
	}
	at = b.len;
	buf_put(&b, dir.data, dir.len);
	le(&b, 0x06054b50, 4);
	le(&b, 0, 4);
	le(&b, n, 2);
	le(&b, n, 2);
	le(&b, dir.len, 4);
	le(&b, at, 4);
	le(&b, 0, 2);
	assert_true(buf_ok(&b));
	put(name, b.data, b.len);
	buf_release(&b);
	buf_release(&dir);
}

/* ---- tests ---- */

static int bid_of(const char *p)
{
	int fd = open(p, O_RDONLY | O_CLOEXEC), bid;
	struct source_at at = {.path = p, .fd = fd};
	struct blob file;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &at.st), 0);
	file = blob_of_fd(fd, (uint64_t)at.st.st_size);
	at.file = S_ISREG(at.st.st_mode) ? &file : NULL;
	bid = zarr_source_ops.bid(&at, NULL);
	assert_int_equal(close(fd), 0);
	return bid;
}

static void test_bid(void **state)
{
	static const char *const docs[] = {".zgroup", ".zarray", "zarr.json", ".zmetadata",
					   ".nczarr"};
	static const char *const entries[] = {".zgroup", GROUP, NULL};
	char name[60];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
		(void)snprintf(name, sizeof(name), "bid%zu/%s", i, docs[i]);
		put_text(name, "{}");
		*strrchr(name, '/') = '\0';
		assert_int_equal(bid_of(path(name)), 10);
	}
	put_text("plain/file", "x");
	put_text("other/.zattrs", "{}");
	put_text("odd/.zgroup/x", "a directory of that name");
	put_text("named.zarr/file", "x");
	put_text("named.ZR3/file", "x");
	put_text(".zarr/file", "x");
	assert_int_equal(bid_of(path("plain")), 0);
	assert_int_equal(bid_of(path("other")), 0);
	assert_int_equal(bid_of(path("odd")), 0);
	assert_int_equal(bid_of(path("named.zarr")), 2);
	assert_int_equal(bid_of(path("named.zarr/")), 2);
	assert_int_equal(bid_of(path("named.ZR3")), 2);
	assert_int_equal(bid_of(path("plain/file")), 0);
	put_zip("bid.zip", entries);
	assert_int_equal(bid_of(path("bid.zip")), 5);
	put_text("no.zip", "PK\x03\x04 and nothing else of it");
	assert_int_equal(bid_of(path("no.zip")), 0);
}

static void value_of(const char *p)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;
	uint8_t got[2];
	struct stat st;

	if (source_open(formats, 1, p, &options, &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(stat(p, &st), 0);
	assert_int_equal(s->ds.st.st_ino, st.st_ino);
	assert_int_equal(s->ds.st.st_mode, st.st_mode);
	assert_int_equal(s->ds.n_arrays, 1);
	assert_string_equal(s->ds.arrays[0].name, "v");
	assert_int_equal(source_fd(s, 0), -1);
	assert_int_equal(source_read_chunk(s, 0, 0, got, 2, &e), 0);
	assert_memory_equal(got, "ab", 2);
	assert_int_equal(source_read_chunk(s, 0, 1, got, 2, &e), 0);
	assert_int_equal(got[0], 9);
	assert_int_equal(source_check(s, &e), 0);
	assert_int_equal(source_poll(s, &e), 0);
	source_close(s);
}

static void test_open(void **state)
{
	static const char *const entries[] = {".zgroup", GROUP, "v/.zarray", ZARRAY,
					      "v/0",     "ab",  NULL};

	(void)state;
	put_text("tree/.zgroup", GROUP);
	put_text("tree/v/.zarray", ZARRAY);
	put_text("tree/v/0", "ab");
	value_of(path("tree"));
	put_zip("tree.zip", entries);
	value_of(path("tree.zip"));
	/* arrays without a group around them */
	put_text("loose.zarr/v/.zarray", ZARRAY);
	put_text("loose.zarr/v/0", "ab");
	value_of(path("loose.zarr"));
}

static void refused(const char *p, int code, const char *message)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;

	assert_int_equal(source_open(formats, 1, p, &options, &s, &e), code);
	assert_null(s);
	if (!strstr(e.msg, message) || !strstr(e.msg, p))
		fail_msg("%s", e.msg);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 200; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_refused(void **state)
{
	static const char *const entries[] = {"readme", "nothing of the kind", NULL};
	int before = open_fds();

	(void)state;
	put_text("empty.zarr/file", "x");
	refused(path("empty.zarr"), -EBADMSG, "the store contains no Zarr metadata");
	put_zip("readme.zip", entries);
	refused(path("readme.zip"), -EBADMSG, "without Zarr metadata files");
	put_text("bad/.zgroup", GROUP);
	put_text("bad/g/.zgroup", GROUP);
	put_text("bad/g/v/.zarray", "{\"zarr_format\": 2, \"shape\": [-1]}");
	refused(path("bad"), -EBADMSG, "'g/v/.zarray': shape: dimension 0 is not a length");
	put_text("json/zarr.json", "{\"zarr_format\": 3,\n}");
	refused(path("json"), -EBADMSG, "'zarr.json': not JSON at line 2, column 1");
	assert_int_equal(open_fds(), before);
}

/* test_change - a document that changes is noticed; so is one that comes. */
static void test_change(void **state)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;

	(void)state;
	put_text("change/.zgroup", GROUP);
	put_text("change/v/.zarray", ZARRAY);
	assert_int_equal(source_open(formats, 1, path("change"), &options, &s, &e), 0);
	put_text("change/v/.zattrs", "{\"new\": 1}");
	assert_int_equal(source_poll(s, &e), -ESTALE);
	source_close(s);
	assert_int_equal(source_open(formats, 1, path("change"), &options, &s, &e), 0);
	assert_int_equal(s->ds.arrays[0].n_attrs, 1);
	put_text("change/w/.zarray", ZARRAY);
	assert_int_equal(source_poll(s, &e), -ESTALE);
	source_close(s);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bid),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_change),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
