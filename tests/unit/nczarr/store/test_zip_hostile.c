/* SPDX-License-Identifier: BSD-3-Clause */
/* test_zip_hostile.c - archives that lie: each lie is refused where it is told, with
 * the entry's name, and nothing is allocated or read because of it. */
#include "tests/unit/store_util.h"

#include "nczarr/store/store.h"
#include "tests/unit/nczarr/zip_build.h"

#include <sys/resource.h>

#define META ((uint64_t)64 << 20)

static bool bid(int fd, uint64_t size)
{
	struct blob b = blob_of_fd(fd, size);

	return store_zip_bid(&b, NULL);
}

/* refused - that the archive cannot be opened, with this code and with `word` in the message. */
static void refused_as(struct zb *z, int code, const char *word, int line,
		       const struct zb_end *how)
{
	struct err e = ERR_INIT;
	struct store *s = NULL;
	int fd = zb_done(z, how);
	int rc = store_zip_open(fd, META, &s, &e);

	if (rc != -code || e.code != rc || !strstr(e.msg, word))
		fail_msg("line %d: %d '%s'", line, rc, e.msg);
	close(fd); /* still the caller's */
}
#define REFUSED(z, code, word, ...) refused_as(z, code, word, __LINE__, __VA_ARGS__)

static struct store *opened(struct zb *z, const struct zb_end *how)
{
	struct err e = ERR_INIT;
	struct store *s = NULL;

	if (store_zip_open(zb_done(z, how), META, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void start(struct zb *z)
{
	zb_init(z);
	zb_put(z, "good", "good", false);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t len;
		const char *word;
	} bad[] = {
		{"..", 0, "'..'"},           {"a/../../etc", 0, "'a/../../etc'"},
		{"../x", 0, "'../x'"},       {"/etc/passwd", 0, "'/etc/passwd'"},
		{"a//b", 0, "'a//b'"},       {"./a", 0, "not all do"},
		{"./../a", 0, "'./../a'"},   {".//a", 0, "'.//a'"},
		{"././a", 0, "'././a'"},     {"./", 0, "not all do"},
		{"a/.", 0, "'a/.'"},         {"a\\b", 0, "backslash"},
		{"a\0b", 3, "NUL"},          {"/", 0, "''"},
		{"a//", 0, "'a/'"},          {"../", 0, "'..'"},
		{"caf\xe9", 0, "not UTF-8"}, {"\xc0\xaf", 0, "not UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct zb z;

		start(&z);
		zb_add(&z, &(struct zb_entry){.name = bad[i].name,
					      .name_len = bad[i].len,
					      .data = "x",
					      .len = 1});
		REFUSED(&z, EBADMSG, bad[i].word, NULL);
	}
}

static void test_name_lengths(void **state)
{
	static char name[5001];
	struct store *s;
	struct zb z;

	(void)state;
	start(&z);
	memset(name, 'n', 5000);
	zb_put(&z, name, "x", false);
	REFUSED(&z, ERANGE, "5000", NULL);
	/* the longest, and a part that no listing shows */
	start(&z);
	name[4095] = '\0';
	zb_put(&z, name, "x", false);
	s = opened(&z, NULL);
	assert_string_equal(listing_of(s, "", true), "good");
	assert_string_equal(text_of(s, name), "x");
	store_close(s);
	/* no name at all */
	start(&z);
	zb_add(&z, &(struct zb_entry){.name = "", .data = "x", .len = 1});
	REFUSED(&z, EBADMSG, "empty part", NULL);
}

static void test_sizes(void **state)
{
	static const uint64_t lies[] = {0, 2, 4, 100, UINT32_MAX - 1, UINT64_MAX, INT64_MAX};
	static uint8_t zeros[5000];
	struct zb z;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct zb_entry x = {.name = "liar", .data = "abc", .len = 3, .zip64 = true};

		start(&z);
		x.size = &lies[i];
		zb_add(&z, &x);
		REFUSED(&z, EBADMSG, "'liar'", NULL);
		start(&z);
		x.size = NULL;
		x.stored = &lies[i];
		zb_add(&z, &x);
		REFUSED(&z, EBADMSG, "'liar'", NULL);
		if (lies[i] <= 4)
			continue;
		start(&z);
		x.stored = NULL;
		x.at = &lies[i];
		zb_add(&z, &x);
		zb_put(&z, "end", (const char *)zeros, false);
		REFUSED(&z, EBADMSG, "'liar'", NULL);
	}
	/* deflate makes at most 1032 bytes of one */
	start(&z);
	zb_add(&z, &(struct zb_entry){.name = "bomb",
				      .data = zeros,
				      .len = 5000,
				      .deflate = true,
				      .size = &(uint64_t){60000}});
	REFUSED(&z, EBADMSG, "cannot inflate to 60000", NULL);
}

/* lies that only show when an entry is read */
static void test_reads(void **state)
{
	static char text[1200];
	const struct zb_entry lies[] = {
		{.deflate = true, .size = &(uint64_t){1198}},
		{.deflate = true, .size = &(uint64_t){1200}},
		{.deflate = true, .stored = &(uint64_t){10}},
		{.deflate = true, .crc_wrong = 1},
		{.crc_wrong = 0x80000000},
		{.local_name = "lair"},
		{.local_name = "nasty"},
		{.local_name = "goody"},
		{.local_method = 8 + 1},
		{.deflate = true, .local_method = 0 + 1},
		{.method = 8, .size = &(uint64_t){1199}},
		{.local_sig = 0x04034b51},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = (char)('a' + i * i % 23);
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct zb_entry x = lies[i];
		struct err e = ERR_INIT;
		struct store_stat st;
		uint8_t out[1200];
		struct store *s;
		struct zb z;

		zb_init(&z);
		x.name = "liar";
		x.data = text;
		x.len = strlen(text);
		zb_add(&z, &x);
		zb_put(&z, "end", text, true);
		s = opened(&z, NULL);
		assert_int_equal(store_stat(s, "liar", &st, &e), 0);
		assert_int_equal(store_read(s, "liar", 0, out, st.size, NULL, &e), -EBADMSG);
		assert_true(strstr(e.msg, "'liar'") != NULL);
		/* in part, as often as one likes; a part of a stored entry has no checksum */
		for (int n = 0; n < 3 && !(x.crc_wrong && !x.deflate); n++)
			assert_int_equal(store_read(s, "liar", 5, out, 5, NULL, &e), -EBADMSG);
		assert_string_equal(text_of(s, "end"), text);
		store_close(s);
	}
}

/* a header that pushes its data into the directory */
static void test_header_extra(void **state)
{
	struct err e = ERR_INIT;
	struct store *s;
	uint8_t out[3];
	struct zb z;

	(void)state;
	start(&z);
	zb_put(&z, "last", "abc", false);
	z.file.data[z.file.len - 3 - 4 - 2] = 1;
	s = opened(&z, NULL);
	assert_int_equal(store_read(s, "last", 0, out, 3, NULL, &e), -EBADMSG);
	assert_true(strstr(e.msg, "overlap the directory") != NULL);
	store_close(s);
}

static void test_overlap(void **state)
{
	static char text[200];
	struct store *s;
	struct zb z;

	(void)state;
	memset(text, 't', sizeof(text) - 1);
	/* two names for one place */
	start(&z);
	zb_add(&z, &(struct zb_entry){
			   .name = "nice", .data = "good", .len = 4, .at = &(uint64_t){0}});
	REFUSED(&z, EBADMSG, "'good' and 'nice' overlap", NULL);
	/* an entry inside another's data */
	zb_init(&z);
	zb_put(&z, "outer", text, false);
	zb_add(&z, &(struct zb_entry){
			   .name = "in", .data = "abc", .len = 3, .at = &(uint64_t){90}});
	REFUSED(&z, EBADMSG, "'outer' and 'in' overlap", NULL);
	/* one byte */
	zb_init(&z);
	zb_put(&z, "outer", text, false);
	zb_add(&z, &(struct zb_entry){.name = "in",
				      .data = "abc",
				      .len = 3,
				      .at = &(uint64_t){30 + 5 + 199 - 1}});
	REFUSED(&z, EBADMSG, "overlap", NULL);
	/* folders have no bytes to share */
	start(&z);
	zb_add(&z, &(struct zb_entry){.name = "f/", .at = &(uint64_t){0}});
	zb_add(&z, &(struct zb_entry){.name = "g/", .at = &(uint64_t){0}});
	s = opened(&z, NULL);
	assert_string_equal(listing_of(s, "", true), "f/ g/ good");
	store_close(s);
}

static void test_tree_lies(void **state)
{
	struct zb z;

	(void)state;
	start(&z);
	zb_put(&z, "a-b", "x", false);
	zb_put(&z, "a", "x", false);
	zb_put(&z, "a.b", "x", false);
	zb_put(&z, "a/b", "x", false);
	REFUSED(&z, EBADMSG, "'a' is a file", NULL);
	start(&z);
	zb_add(&z, &(struct zb_entry){.name = "safe", .data = "x", .len = 1, .flags = 1});
	REFUSED(&z, EOPNOTSUPP, "'safe' is encrypted", NULL);
	start(&z);
	zb_add(&z, &(struct zb_entry){.name = "away", .data = "x", .len = 1, .disk = 1});
	REFUSED(&z, EOPNOTSUPP, "'away' is in another file of a split archive, number 1", NULL);
}

static void test_end(void **state)
{
	static char junk[70000];
	struct err e = ERR_INIT;
	struct store *s;
	struct zb z;
	int fd;

	(void)state;
	start(&z);
	REFUSED(&z, EOPNOTSUPP, "split", &(struct zb_end){.disk = 1});
	start(&z);
	REFUSED(&z, EOPNOTSUPP, "split", &(struct zb_end){.n_here = &(uint64_t){0}});
	/* both records may say it, but the same */
	start(&z);
	s = opened(&z, &(struct zb_end){.zip64 = true, .old_n = &(uint64_t){1}});
	store_close(s);
	start(&z);
	REFUSED(&z, EBADMSG, "contradict",
		&(struct zb_end){.zip64 = true, .old_n = &(uint64_t){2}});
	for (int wide = 0; wide < 2; wide++) {
		static const uint64_t ns[] = {0, 2, 3, 60000};
		static const uint64_t places[] = {0, 1, 37, 39, 100000, UINT32_MAX - 1};

		for (size_t i = 0; i < ARRAY_LEN(ns); i++) {
			start(&z);
			REFUSED(&z, EBADMSG, "entries",
				&(struct zb_end){.zip64 = wide, .n = &ns[i]});
		}
		for (size_t i = 0; i < ARRAY_LEN(places); i++) {
			start(&z);
			REFUSED(&z, EBADMSG, "directory",
				&(struct zb_end){.zip64 = wide, .dir = &places[i]});
			start(&z);
			REFUSED(&z, EBADMSG, "",
				&(struct zb_end){.zip64 = wide, .dir_len = &places[i]});
		}
		start(&z);
		REFUSED(&z, EBADMSG, "cannot hold",
			&(struct zb_end){.zip64 = true, .n = &(uint64_t){UINT64_MAX}});
		start(&z);
		REFUSED(&z, EBADMSG, "does not end",
			&(struct zb_end){.zip64 = true, .dir_len = &(uint64_t){UINT64_MAX}});
	}
	/* not an archive at all, of many lengths */
	memset(junk, 'P', sizeof(junk));
	for (size_t n = 0; n < sizeof(junk); n = n * 3 + 1) {
		fd = zb_fd(junk, n);
		assert_false(bid(fd, n));
		assert_int_equal(store_zip_open(fd, META, &s, &e), -EBADMSG);
		assert_true(strstr(e.msg, "not a zip archive") != NULL);
		close(fd);
	}
}

/* an archive that was cut anywhere is none */
static void test_truncated(void **state)
{
	struct zb z;

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		start(&z);
		zb_put(&z, "b/c", "text", true);
		zb_finish(&z, &(struct zb_end){.zip64 = wide});
		for (size_t n = 0; n < z.file.len; n++) {
			struct err e = ERR_INIT;
			struct store *s = NULL;
			int fd = zb_fd(z.file.data, n);

			assert_false(bid(fd, n));
			assert_int_equal(store_zip_open(fd, META, &s, &e), -EBADMSG);
			close(fd);
		}
		buf_release(&z.file);
		buf_release(&z.dir);
	}
}

/* end records in the comment: one that does not end with the file, and one that has no directory
 * to show, are only text. */
static void test_comment(void **state)
{
	struct store *s;
	struct buf fake;
	struct zb z;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		buf_init(&fake, 1000);
		buf_puts(&fake, "see: ");
		/* i 0: no entries, but it does not end with the file; 1: entries nowhere; 2: a
		 * directory behind itself */
		zb_end_record(&fake, 0, i ? 1 : 0, i ? 1 : 0, i ? 46 : 0, i == 2 ? 500 : 3,
			      "tail", i ? 4 : 3);
		if (!i)
			buf_puts(&fake, "!");
		start(&z);
		s = opened(&z, &(struct zb_end){.comment = (char *)fake.data,
						.comment_len = fake.len});
		assert_string_equal(listing_of(s, "", true), "good");
		store_close(s);
		buf_release(&fake);
	}
}

/* the ceiling on memory, by what the archive says and by what it has */
static void test_memory(void **state)
{
	struct err e = ERR_INIT;
	struct store *s = NULL;
	struct zb z;
	int fd;

	(void)state;
	zb_init(&z);
	for (int i = 0; i < 1000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "some/longer/name/%d", i);
		zb_put(&z, name, "x", false);
	}
	fd = zb_done(&z, NULL);
	assert_int_equal(store_zip_open(fd, 1000, &s, &e), -ERANGE);
	assert_int_equal(store_zip_open(fd, 100000, &s, &e), -ERANGE);
	assert_int_equal(store_zip_open(fd, 200000, &s, &e), 0);
	store_close(s);
}

/* any byte of an archive may be any other: no crash, and every answer is an errno */
static void test_mutations(void **state)
{
	unsigned seed = 1;
	struct zb z;

	(void)state;
	start(&z);
	zb_put(&z, "b/c", "text text text text", true);
	zb_add(&z, &(struct zb_entry){.name = "w", .data = "wide", .len = 4, .zip64 = true});
	zb_finish(&z, &(struct zb_end){.zip64 = true, .comment = "PK", .comment_len = 2});
	for (int i = 0; i < 4000; i++) {
		uint8_t *copy = test_malloc(z.file.len);
		struct err e = ERR_INIT;
		struct store *s = NULL;
		int fd, rc;

		memcpy(copy, z.file.data, z.file.len);
		for (unsigned n = 0; n <= seed >> 28; n += 4) {
			seed = seed * 1103515245u + 12345u;
			copy[(seed >> 8) % z.file.len] =
				seed & 0x80 ? 0xff : (uint8_t)(seed >> 24);
		}
		fd = zb_fd(copy, z.file.len);
		test_free(copy);
		rc = store_zip_open(fd, META, &s, &e);
		if (rc < 0) {
			assert_true(e.msg[0] && e.code == rc);
			close(fd);
			continue;
		}
		(void)listing_of(s, "", true);
		(void)listing_of(s, "b", true);
		for (int k = 0; k < 3; k++) {
			static const char *const keys[] = {"good", "b/c", "w"};
			struct buf b;

			buf_init(&b, 1 << 20);
			rc = store_get(s, keys[k], &b, NULL, &e);
			assert_true(rc <= 0 && rc > -4096);
			buf_release(&b);
		}
		store_close(s);
	}
	buf_release(&z.file);
	buf_release(&z.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),        cmocka_unit_test(test_name_lengths),
		cmocka_unit_test(test_sizes),        cmocka_unit_test(test_reads),
		cmocka_unit_test(test_header_extra), cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_tree_lies),    cmocka_unit_test(test_end),
		cmocka_unit_test(test_truncated),    cmocka_unit_test(test_comment),
		cmocka_unit_test(test_memory),       cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
