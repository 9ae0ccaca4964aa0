/* SPDX-License-Identifier: BSD-3-Clause */
/* test_zip.c - honest archives: what is in them is found, listed and read. */
#include "tests/unit/store_util.h"

#include "nczarr/store/store.h"
#include "tests/unit/nczarr/zip_build.h"

#include <pthread.h>
#include <stdatomic.h>

#define META ((uint64_t)64 << 20)

static struct store *open_zip(struct zb *z, const struct zb_end *how)
{
	struct err e = ERR_INIT;
	struct store *s = NULL;
	int fd = zb_done(z, how);

	if (store_zip_open(fd, META, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void fill(struct zb *z, const char *top)
{
	static const char *const names[] = {".zgroup", "a/.zarray", "a/0.0",   "a/0.1",
					    "a-b/0",   "a.b",       "b/c/d/0", "b/c/d/1",
					    "b/c-/0",  "zero",      "b/c/.z"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%s%s", top, names[i]);
		zb_put(z, name, strcmp(names[i], "zero") == 0 ? "" : names[i], i % 2);
	}
}

static void check_filled(struct store *s)
{
	struct store_stat st;
	struct err e;

	for (int want = 0; want < 2; want++) {
		assert_string_equal(listing_of(s, "", want), ".zgroup a-b/ a.b a/ b/ zero");
		assert_string_equal(listing_of(s, "a", want), ".zarray 0.0 0.1");
		assert_string_equal(listing_of(s, "b", want), "c-/ c/");
		assert_string_equal(listing_of(s, "b/c", want), ".z d/");
		assert_string_equal(listing_of(s, "b/c/d", want), "0 1");
		assert_string_equal(listing_of(s, "a-b", want), "0");
		assert_string_equal(listing_of(s, "a-", want), "-2");
		assert_string_equal(listing_of(s, "a.b", want), "-2");
		assert_string_equal(listing_of(s, "b/c/d/1/x", want), "-2");
		assert_string_equal(listing_of(s, "zz", want), "-2");
	}
	assert_string_equal(text_of(s, "a/0.0"), "a/0.0");
	assert_string_equal(text_of(s, "a/0.1"), "a/0.1");
	assert_string_equal(text_of(s, "b/c/d/1"), "b/c/d/1");
	assert_string_equal(text_of(s, "zero"), "");
	assert_string_equal(text_of(s, "a/0.2"), "-2");
	assert_string_equal(text_of(s, "a/0.0/x"), "-2");
	assert_string_equal(text_of(s, "a"), "-21");
	assert_string_equal(text_of(s, "b/c"), "-21");
	assert_int_equal(store_stat(s, "", &st, &e), 0);
	assert_true(st.is_dir);
	assert_int_equal(store_stat(s, "b/c/d", &st, &e), 0);
	assert_true(st.is_dir && st.size == 0);
	assert_int_equal(store_stat(s, "b/c/d/2", &st, &e), -ENOENT);
	assert_int_equal(store_check(s, &e), 0);
}

static void test_tree(void **state)
{
	struct store *s;
	struct zb z;

	(void)state;
	zb_init(&z);
	fill(&z, "");
	s = open_zip(&z, NULL);
	check_filled(s);
	store_close(s);
}

/* one folder with everything below it is the root, whether it has an entry of its own or not, and
 * whether all names begin with "./" or not */
static void test_top(void **state)
{
	static const char *const tops[] = {"data.zarr/", "./data.zarr/", "./"};
	struct store *s;
	struct zb z;

	(void)state;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(tops); i++) {
		zb_init(&z);
		if (i % 2)
			zb_put(&z, tops[i / 2], "", false);
		fill(&z, tops[i / 2]);
		s = open_zip(&z, NULL);
		check_filled(s);
		store_close(s);
	}
	/* not when the root has something of its own, or there is a second folder */
	for (int i = 0; i < 2; i++) {
		zb_init(&z);
		fill(&z, "top/");
		zb_put(&z, i ? "topper/x" : "x", "x", false);
		s = open_zip(&z, NULL);
		assert_string_equal(listing_of(s, "", true), i ? "top/ topper/" : "top/ x");
		assert_string_equal(text_of(s, "top/a/0.0"), "a/0.0");
		assert_string_equal(text_of(s, "a/0.0"), "-2");
		store_close(s);
	}
	zb_init(&z);
	zb_put(&z, "only", "x", false);
	s = open_zip(&z, NULL);
	assert_string_equal(listing_of(s, "", true), "only");
	store_close(s);
	zb_init(&z);
	zb_put(&z, "only/", "", false);
	s = open_zip(&z, NULL);
	assert_string_equal(listing_of(s, "", true), "");
	store_close(s);
}

static void test_empty(void **state)
{
	struct store *s;
	struct zb z;

	(void)state;
	for (int i = 0; i < 2; i++) {
		zb_init(&z);
		s = open_zip(&z, i ? &(struct zb_end){.zip64 = true} : NULL);
		assert_string_equal(listing_of(s, "", true), "");
		assert_string_equal(listing_of(s, "a", true), "-2");
		assert_string_equal(text_of(s, "a"), "-2");
		store_close(s);
	}
}

static void test_forms(void **state)
{
	static const char hello[] = "hello hello hello hello";
	struct store *s;
	struct zb z;

	(void)state;
	for (int i = 0; i < 16; i++) {
		const struct zb_entry form = {.name = "dir/x",
					      .data = hello,
					      .len = strlen(hello),
					      .deflate = i & 1,
					      .zip64 = i & 2,
					      .descriptor = i & 4,
					      .local_extra = i & 1 ? 77 : 0,
					      .flags = i & 8 ? 0x800 : 0};

		zb_init(&z);
		zb_put(&z, "first", "1", false);
		zb_add(&z, &form);
		zb_put(&z, "last", "2", true);
		s = open_zip(&z, &(struct zb_end){.zip64 = i & 8});
		assert_string_equal(text_of(s, "dir/x"), hello);
		assert_string_equal(text_of(s, "first"), "1");
		assert_string_equal(text_of(s, "last"), "2");
		store_close(s);
	}
}

/* explicit folders, empty or not; a folder told by its mode; the later of two names holds */
static void test_folders(void **state)
{
	struct store *s;
	struct zb z;

	(void)state;
	zb_init(&z);
	zb_put(&z, "f/", "", false);
	zb_put(&z, "f/x", "1", false);
	zb_put(&z, "empty/", "", false);
	zb_put(&z, "f/x", "22", true);
	zb_put(&z, "marker", "", false);
	zb_put(&z, "marker/y", "3", false);
	zb_add(&z, &(struct zb_entry){.name = "moded",
				      .made_on = 3,
				      .attrs = (uint32_t)(S_IFDIR | 0755) << 16});
	zb_put(&z, "caf\xc3\xa9", "4", false);
	zb_put(&z, "f/x", "333", false);
	s = open_zip(&z, NULL);
	assert_string_equal(listing_of(s, "", true), "caf\xc3\xa9 empty/ f/ marker/ moded/");
	assert_string_equal(listing_of(s, "f", true), "x");
	assert_string_equal(text_of(s, "f/x"), "333");
	assert_string_equal(listing_of(s, "empty", true), "");
	assert_string_equal(listing_of(s, "marker", true), "y");
	assert_string_equal(listing_of(s, "moded", true), "");
	assert_string_equal(text_of(s, "marker"), "-21");
	store_close(s);
}

/* what cannot be read is there, and says why when it is read */
static void test_odd(void **state)
{
	struct store *s;
	struct zb z;
	char eopnotsupp[8];

	(void)state;
	(void)snprintf(eopnotsupp, sizeof(eopnotsupp), "%d", -EOPNOTSUPP);
	zb_init(&z);
	zb_add(&z, &(struct zb_entry){.name = "bz", .data = "xyz", .len = 3, .method = 12});
	zb_add(&z, &(struct zb_entry){.name = "high", .data = "xyz", .len = 3, .method = 255});
	zb_add(&z, &(struct zb_entry){.name = "patch", .data = "xyz", .len = 3, .flags = 0x20});
	zb_add(&z, &(struct zb_entry){.name = "link",
				      .data = "ok",
				      .len = 2,
				      .made_on = 3,
				      .attrs = (uint32_t)(S_IFLNK | 0777) << 16});
	zb_add(&z, &(struct zb_entry){.name = "ok", /* from standard input */
				      .data = "ok",
				      .len = 2,
				      .made_on = 3,
				      .attrs = (uint32_t)(S_IFIFO | 0600) << 16});
	s = open_zip(&z, NULL);
	assert_string_equal(listing_of(s, "", true), "bz? high? link? ok patch?");
	assert_string_equal(text_of(s, "bz"), eopnotsupp);
	assert_string_equal(text_of(s, "high"), eopnotsupp);
	assert_string_equal(text_of(s, "patch"), eopnotsupp);
	assert_string_equal(text_of(s, "link"), eopnotsupp);
	assert_string_equal(text_of(s, "ok"), "ok");
	store_close(s);
}

static void test_comments_and_prefix(void **state)
{
	static char long_comment[65535];
	struct store *s;
	struct zb z;

	(void)state;
	memset(long_comment, 'P', sizeof(long_comment));
	zb_init(&z);
	fill(&z, "");
	s = open_zip(&z, &(struct zb_end){.comment = long_comment,
					  .comment_len = sizeof(long_comment)});
	check_filled(s);
	store_close(s);
	/* bytes before the archive, that its offsets do not count */
	for (int i = 0; i < 2; i++) {
		zb_init(&z);
		buf_puts(&z.file, "#!/bin/sh\nexec unzip $0\n");
		z.before = z.file.len;
		fill(&z, "");
		s = open_zip(&z, &(struct zb_end){.zip64 = i});
		check_filled(s);
		store_close(s);
	}
	/* and that they do */
	zb_init(&z);
	buf_puts(&z.file, "#!/bin/sh\nexec unzip $0\n");
	fill(&z, "");
	s = open_zip(&z, NULL);
	check_filled(s);
	store_close(s);
}

static bool count(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	size_t *n = arg;

	(void)name;
	(void)is_dir;
	(void)st;
	++*n;
	return true;
}

/* more entries than 16 bits count, with and without a 64-bit record */
static void test_many(void **state)
{
	const uint64_t n = 70000, low = n & UINT16_MAX;
	struct err e = ERR_INIT;
	struct zb z;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct store *s;
		size_t seen = 0;

		zb_init(&z);
		zb_put(&z, "x.json", "1", false);
		for (uint64_t k = 1; k < n; k++) {
			char name[32];

			(void)snprintf(name, sizeof(name), "v/%ju", (uintmax_t)(k * 7919 % n));
			zb_put(&z, name, "", false);
		}
		s = open_zip(&z,
			     i ? &(struct zb_end){.zip64 = true} : &(struct zb_end){.n = &low});
		assert_int_equal(store_list(s, "v", true, count, &seen, &e), 0);
		assert_int_equal(seen, n - 1);
		assert_string_equal(listing_of(s, "", false), "v/ x.json");
		store_close(s);
	}
}

/* ---- reading in pieces, by many ---- */

#define BIG 300000
#define FILES 12
#define DAMAGED 5 /* of them */

static uint8_t g_big[FILES][BIG];

struct reader {
	struct store *s;
	unsigned seed;
	atomic_int *wrong, *damaged;
};

static void *read_pieces(void *arg)
{
	struct reader *r = arg;
	static _Thread_local uint8_t piece[BIG];

	for (int i = 0; i < 60; i++) {
		char key[16];
		unsigned f;
		size_t off, len;

		r->seed = r->seed * 1103515245u + 12345u;
		f = r->seed >> 16 & 0xff;
		off = (size_t)(r->seed >> 8) % BIG;
		len = (BIG - off) / (1 + r->seed % 5);
		f %= FILES;
		(void)snprintf(key, sizeof(key), "%u", f);
		if (f == DAMAGED &&
		    store_read(r->s, key, off, piece, len, NULL, NULL) == -EBADMSG)
			atomic_fetch_add(r->damaged, 1);
		else if (store_read(r->s, key, off, piece, len, NULL, NULL) != 0 ||
			 memcmp(piece, g_big[f] + off, len) != 0)
			atomic_fetch_add(r->wrong, 1);
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct reader readers[6];
	pthread_t threads[6];
	atomic_int wrong = 0, damaged = 0;
	struct store *s;
	struct zb z;

	(void)state;
	zb_init(&z);
	for (unsigned f = 0; f < FILES; f++) {
		char name[16];

		for (size_t i = 0; i < BIG; i++)
			g_big[f][i] = (uint8_t)((i * i >> 7) + f);
		(void)snprintf(name, sizeof(name), "%u", f);
		zb_add(&z, &(struct zb_entry){.name = name,
					      .data = g_big[f],
					      .len = BIG,
					      .deflate = f != 3,
					      .crc_wrong = f == DAMAGED});
	}
	s = open_zip(&z, NULL);
	for (unsigned i = 0; i < 6; i++) {
		readers[i] = (struct reader){
			.s = s, .seed = i * 77, .wrong = &wrong, .damaged = &damaged};
		assert_int_equal(pthread_create(&threads[i], NULL, read_pieces, &readers[i]),
				 0);
	}
	for (unsigned i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(damaged > 0);
	for (unsigned f = 0; f < FILES; f++) {
		static uint8_t out[BIG];
		char key[16];

		(void)snprintf(key, sizeof(key), "%u", f);
		assert_int_equal(store_read(s, key, 1, out, BIG - 1, NULL, NULL),
				 f == DAMAGED ? -EBADMSG : 0);
	}
	store_close(s);
}

/* an archive that was changed, or cut, is not the one that was opened */
static void test_check(void **state)
{
	struct err e = ERR_INIT;
	struct blob blob;
	uint8_t out[8];
	struct store *s;
	struct zb z;
	int fd;

	(void)state;
	zb_init(&z);
	zb_put(&z, "a", "12345678", false);
	fd = zb_done(&z, NULL);
	blob = blob_of_fd(fd, (uint64_t)lseek(fd, 0, SEEK_END));
	assert_true(store_zip_bid(&blob, NULL));
	assert_int_equal(store_zip_open(fd, META, &s, &e), 0);
	assert_int_equal(store_check(s, &e), 0);
	assert_int_equal(store_read(s, "a", 0, out, 8, NULL, &e), 0);
	assert_int_equal(ftruncate(fd, 35), 0);
	assert_int_equal(store_check(s, &e), -ESTALE);
	assert_int_equal(store_read(s, "a", 0, out, 8, NULL, &e), -EIO);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_comments_and_prefix),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
