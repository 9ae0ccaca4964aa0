/* SPDX-License-Identifier: BSD-3-Clause */
/* test_refs.c - documents of references: reading JSON, Parquet both ways, what a document
 * may refer to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/store_util.h"

#include "nczarr/parquet/parquet.h"
#include "nczarr/refs/refs_int.h"
#include "tests/unit/nczarr/refs/refs_vectors.h"

/* ---- JSON ---- */

static struct refs_index *parsed(const char *doc)
{
	struct refs_index *x = NULL;
	struct err e = ERR_INIT;
	int rc = refs_table_parse(doc, strlen(doc), 1 << 20, &x, &e);

	if (rc)
		print_error("%s\n", e.msg);
	assert_int_equal(rc, 0);
	return x;
}

static int refused(const char *doc, const char *why)
{
	struct refs_index *x = NULL;
	struct err e = ERR_INIT;
	int rc = refs_table_parse(doc, strlen(doc), 1 << 20, &x, &e);

	if (rc == 0)
		x->ops->close(x);
	else if (!strstr(e.msg, why))
		fail_msg("'%s' has no '%s'", e.msg, why);
	return rc;
}

static void is_at(struct refs_index *x, const char *key, const char *url, int64_t off,
		  uint64_t len)
{
	struct refs_found f;

	assert_int_equal(x->ops->find(x, key, &f, NULL), 0);
	assert_int_equal(f.what, REFS_AT);
	assert_string_equal(f.url, url);
	assert_int_equal(f.whole, off < 0);
	if (off >= 0) {
		assert_int_equal(f.off, off);
		assert_int_equal(f.len, len);
	}
	x->ops->done(x, &f);
}

static void is_inline(struct refs_index *x, const char *key, const char *data, size_t n)
{
	struct refs_found f;

	assert_int_equal(x->ops->find(x, key, &f, NULL), 0);
	assert_int_equal(f.what, REFS_INLINE);
	assert_int_equal(f.len, n);
	assert_memory_equal(f.data, data, n);
	x->ops->done(x, &f);
}

static void test_versions(void **state)
{
	struct refs_index *x = parsed(
		"{\"version\": 1, \"templates\": {\"u\": \"s3://b/a.nc\", \"d\":\"x\"},"
		" \"gen\": [], \"refs\": {\".zgroup\": \"{\\\"zarr_format\\\": 2}\\n\","
		" \"v/.zarray\": {\"shape\" : [1, {\"a\": \"}\"}]},"
		" \"v/0\": [\"{{u}}\", 10, 20], \"v/1\": [ \"{{ d }}/{{u}}\" ],"
		" \"v/2\": [\"{{u}}\", 0, 18446744073709551615],"
		" \"w/0\": \"base64:AAEC/w==\", \"\\u00e4/\\ud83d\\ude00\": \"\\u0041\"}}");
	struct refs_found f;

	(void)state;
	is_inline(x, ".zgroup", "{\"zarr_format\": 2}\n", 19);
	is_inline(x, "v/.zarray", "{\"shape\" : [1, {\"a\": \"}\"}]}", 27);
	is_inline(x, "w/0", "\0\1\2\xff", 4);
	is_inline(x, "\xc3\xa4/\xf0\x9f\x98\x80", "A", 1);
	is_at(x, "v/0", "s3://b/a.nc", 10, 20);
	is_at(x, "v/1", "x/s3://b/a.nc", -1, 0);
	is_at(x, "v/2", "s3://b/a.nc", 0, UINT64_MAX);
	assert_int_equal(x->ops->find(x, "v", &f, NULL), 0);
	assert_int_equal(f.what, REFS_FOLDER);
	assert_int_equal(x->ops->find(x, "v/3", &f, NULL), -ENOENT);
	assert_int_equal(x->ops->find(x, "v/0/x", &f, NULL), -ENOENT);
	assert_true(x->remote);
	x->ops->close(x);

	x = parsed("{ \"refs\":\"text\", \"v/0\" : [\"a.nc\", 1, 2] }");
	is_inline(x, "refs", "text", 4);
	is_at(x, "v/0", "a.nc", 1, 2);
	assert_false(x->remote);
	x->ops->close(x);
	x = parsed("{\"version\":1,\"refs\":{}}");
	x->ops->close(x);
}

static void test_refused(void **state)
{
	(void)state;
	assert_int_equal(refused("", "object"), -EBADMSG);
	assert_int_equal(refused("[]", "object"), -EBADMSG);
	assert_int_equal(refused("{\"a\": \"x\"", "end"), -EBADMSG);
	assert_int_equal(refused("{\"a\": \"x\"} 1", "there is more"), -EBADMSG);
	assert_int_equal(refused("{} 1", "there is more"), -EBADMSG);
	assert_int_equal(refused("{\"a\": 1}", "'a'"), -EBADMSG);
	assert_int_equal(refused("{\"a\": [null, 1, 2]}", "address"), -EBADMSG);
	assert_int_equal(refused("{\"a\": [\"u\", 1]}", "length"), -EBADMSG);
	assert_int_equal(refused("{\"a\": [\"u\", -1, 2]}", "number"), -EBADMSG);
	assert_int_equal(refused("{\"a\": [\"u\", 1.5, 2]}", "number"), -EBADMSG);
	assert_int_equal(refused("{\"a\": [\"u\", 1, 2, 3]}", "too long"), -EBADMSG);
	assert_int_equal(refused("{\"a\": [\"u\\u0000\", 1, 2]}", "NUL"), -EBADMSG);
	assert_int_equal(refused("{\"a\": \"x\", \"a\": \"y\"}", "twice"), -EBADMSG);
	assert_int_equal(refused("{\"../a\": \"x\"}", "key"), -EBADMSG);
	assert_int_equal(refused("{\"/a\": \"x\"}", "key"), -EBADMSG);
	assert_int_equal(refused("{\"a\": \"\\ud800\"}", "surrogate"), -EBADMSG);
	assert_int_equal(refused("{\"a\": \"\xff\"}", "UTF-8"), -EBADMSG);
	assert_int_equal(refused("{\"a\": \"base64:A*==\"}", "base64"), -EBADMSG);
	assert_int_equal(refused("{\"refs\": {\"a\": [\"{{u}}\"]}}", "template"), -EOPNOTSUPP);
	assert_int_equal(refused("{\"templates\": {\"u\": \"{{c}}\"}, "
				 "\"refs\": {\"a\": [\"{{u}}\"]}}",
				 "template"),
			 -EOPNOTSUPP);
	assert_int_equal(refused("{\"gen\": [{}], \"refs\": {}}", "generated"), -EOPNOTSUPP);
}

static void test_memory(void **state)
{
	struct refs_index *x = NULL;
	struct err e = ERR_INIT;
	char doc[2000] = "{\"a\": \"";

	(void)state;
	memset(doc + 7, 'x', sizeof(doc) - 7);
	memcpy(doc + sizeof(doc) - 3, "\"}", 3);
	assert_int_equal(refs_table_parse(doc, strlen(doc), 1000, &x, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "(half of -o memory)"));
	assert_int_equal(refs_table_parse(doc, strlen(doc), 3000, &x, &e), 0);
	x->ops->close(x);
}

/* ---- Parquet ---- */

static const struct pq_want want[] = {
	{"path", false}, {"offset", true}, {"size", true}, {"raw", false}};

static const char *text_of_row(const struct pq_column *c, uint64_t row)
{
	if (c->nulls && c->nulls[row])
		return NULL;
	return (const char *)c->bytes.data + c->at[row];
}

static void check_rows(const uint8_t *file, size_t len)
{
	struct pq_table t;
	struct err e = ERR_INIT;
	int rc = pq_read(file, len, want, 4, 1 << 20, &t, &e);

	if (rc)
		print_error("%s\n", e.msg);
	assert_int_equal(rc, 0);
	assert_int_equal(t.n, 10);
	assert_string_equal(text_of_row(&t.columns[0], 0), "https://h/a.nc");
	assert_null(text_of_row(&t.columns[0], 1));
	assert_string_equal(text_of_row(&t.columns[0], 3), "https://h/b.nc");
	assert_string_equal(text_of_row(&t.columns[0], 9), "https://h/a.nc");
	assert_int_equal(t.columns[1].ints[2], 300);
	assert_int_equal(t.columns[1].ints[9], 10);
	assert_int_equal(t.columns[2].ints[6], 1);
	assert_null(text_of_row(&t.columns[3], 0));
	assert_int_equal(t.columns[3].len[4], 4);
	assert_memory_equal(text_of_row(&t.columns[3], 4), "\1\2\0\3", 4);
	pq_table_release(&t);
	for (size_t n = 0; n < len; n++) {
		assert_true(pq_read(file, n, want, 4, 1 << 20, &t, &e) < 0);
		assert_true(e.msg[0]);
	}
	assert_int_equal(pq_read(file, len, want, 4, 100, &t, &e), -ERANGE);
}

static void test_others(void **state)
{
	(void)state;
	check_rows(refs_none1, sizeof(refs_none1));
	check_rows(refs_snappy1, sizeof(refs_snappy1));
	check_rows(refs_gzip1, sizeof(refs_gzip1));
	check_rows(refs_zstd2, sizeof(refs_zstd2));
	check_rows(refs_snappy2, sizeof(refs_snappy2));
}

static void test_hybrid(void **state)
{
	/* five of 7 by a run; then eight packed: 0 to 7 in three bits (the format's own example) */
	static const uint8_t p[] = {5 << 1, 7, 1 << 1 | 1, 0x88, 0xc6, 0xfa};
	uint32_t out[13];

	(void)state;
	assert_int_equal(rle_bitpacked_hybrid(p, sizeof(p), 3, out, 13), sizeof(p));
	for (uint32_t i = 0; i < 13; i++)
		assert_int_equal(out[i], i < 5 ? 7 : i - 5);
	assert_int_equal(rle_bitpacked_hybrid(p, 5, 3, out, 13), SIZE_MAX);
	assert_int_equal(rle_bitpacked_hybrid(p, 2, 3, out, 6), SIZE_MAX);
	assert_int_equal(rle_bitpacked_hybrid(p, sizeof(p), 33, out, 1), SIZE_MAX);
	assert_int_equal(rle_bitpacked_hybrid((const uint8_t *)"\0", 1, 3, out, 1), SIZE_MAX);
	/* a run of a value that has more bits than values have */
	assert_int_equal(rle_bitpacked_hybrid((const uint8_t *)"\4\10", 2, 3, out, 2),
			 SIZE_MAX);
	out[1] = 9;
	assert_int_equal(rle_bitpacked_hybrid((const uint8_t *)"\4", 1, 0, out, 2), 1);
	assert_int_equal(out[1], 0);
}

/* write_rows - rows of a pattern into a file of n, in as many groups as it takes. */
static const struct pq_field fields[] = {{"path", PQ_TEXT, true, false},
					 {"offset", PQ_INT, false, false},
					 {"size", PQ_INT, false, false},
					 {"raw", PQ_RAW, true, false}};

static int put_row(struct pq_writer *w, const char *path, uint64_t off, uint64_t size,
		   const char *raw, uint64_t n_raw)
{
	struct err e;
	int rc =
		path ? pq_writer_bytes(w, 0, path, strlen(path), &e) : pq_writer_null(w, 0, &e);

	rc = rc ? rc : pq_writer_int(w, 1, off, &e);
	rc = rc ? rc : pq_writer_int(w, 2, size, &e);
	return rc ? rc : raw ? pq_writer_bytes(w, 3, raw, n_raw, &e) : pq_writer_null(w, 3, &e);
}

static void write_rows(int fd, uint64_t n, uint64_t group)
{
	struct pq_writer *w;
	struct err e;
	char path[64];

	assert_int_equal(pq_writer_new(fields, ARRAY_LEN(fields), &w, &e), 0);
	for (uint64_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "s3://bucket/%d", (int)(i % 300));
		if (i % 7 == 0)
			assert_int_equal(put_row(w, NULL, 0, 0, NULL, 0), 0);
		else if (i % 7 == 1)
			assert_int_equal(put_row(w, NULL, 0, 0, path, 5), 0);
		else
			assert_int_equal(put_row(w, path, i << 33, i, NULL, 0), 0);
		if (group && i % group == 0)
			assert_int_equal(pq_writer_flush(w, fd, &e), 0);
	}
	assert_int_equal(pq_writer_end(w, fd, &e), 0);
	pq_writer_free(w);
}

/* Rows since a mark are forgotten, written or not. */
static void test_back(void **state)
{
	FILE *one = tmpfile(), *two = tmpfile();
	uint8_t first[4096], got[4096];
	struct pq_writer *w;
	struct pq_mark mark;
	struct err e;
	ssize_t n;

	(void)state;
	assert_true(one && two);
	for (int undone = 0; undone < 2; undone++) {
		int fd = fileno(undone ? two : one);

		assert_int_equal(pq_writer_new(fields, ARRAY_LEN(fields), &w, &e), 0);
		assert_int_equal(put_row(w, "first", 1, 2, NULL, 0), 0);
		assert_int_equal(pq_writer_flush(w, fd, &e), 0);
		pq_writer_mark(w, &mark);
		for (int i = 0; undone && i < 2; i++) {
			assert_int_equal(put_row(w, "undone", 3, 4, NULL, 0), 0);
			if (i == 0)
				assert_int_equal(pq_writer_flush(w, fd, &e), 0);
		}
		pq_writer_back(w, &mark);
		assert_int_equal(ftruncate(fd, (off_t)mark.at), 0);
		assert_int_equal(lseek(fd, 0, SEEK_END), (off_t)mark.at);
		assert_int_equal(put_row(w, "last", 5, 6, NULL, 0), 0);
		assert_int_equal(pq_writer_rows(w), 2);
		assert_int_equal(pq_writer_end(w, fd, &e), 0);
		pq_writer_free(w);
	}
	n = pread(fileno(one), first, sizeof(first), 0);
	assert_true(n > 0);
	assert_int_equal(pread(fileno(two), got, sizeof(got), 0), n);
	assert_memory_equal(got, first, (size_t)n);
	(void)fclose(one);
	(void)fclose(two);
}

static void test_own(void **state)
{
	static const struct {
		uint64_t n, group;
	} cases[] = {{0, 0}, {1, 0}, {2, 0}, {8, 0}, {9, 0}, {1000, 0}, {1000, 17}};
	char name[] = "/tmp/refs-XXXXXX", path[64];
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	(void)unlink(name);
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		static uint8_t file[1 << 20];
		struct pq_table t;
		struct err e = ERR_INIT;
		ssize_t n;

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		write_rows(fd, cases[c].n, cases[c].group);
		n = pread(fd, file, sizeof(file), 0);
		assert_true(n > 0);
		if (pq_read(file, (size_t)n, want, 4, 1 << 24, &t, &e))
			fail_msg("%s", e.msg);
		assert_int_equal(t.n, cases[c].n);
		for (uint64_t i = 0; i < t.n; i++) {
			(void)snprintf(path, sizeof(path), "s3://bucket/%d", (int)(i % 300));
			assert_int_equal(t.columns[0].nulls[i], i % 7 < 2);
			assert_int_equal(t.columns[3].nulls[i], i % 7 != 1);
			if (i % 7 >= 2)
				assert_string_equal(text_of_row(&t.columns[0], i), path);
			if (i % 7 == 1)
				assert_string_equal(text_of_row(&t.columns[3], i), "s3://");
			assert_int_equal(t.columns[1].ints[i], i % 7 < 2 ? 0 : i << 33);
			assert_int_equal(t.columns[2].ints[i], i % 7 < 2 ? 0 : i);
		}
		pq_table_release(&t);
	}
	(void)close(fd);
}

static void test_snappy(void **state)
{
	/* a literal "abc", a copy of 9 from 3 back */
	static const uint8_t in[] = {12, 2 << 2, 'a', 'b', 'c', 1 | (9 - 4) << 2, 3};
	uint8_t out[12];
	struct err e;

	(void)state;
	assert_int_equal(pq_snappy(in, sizeof(in), out, 12, &e), 0);
	assert_memory_equal(out, "abcabcabcabc", 12);
	assert_int_equal(pq_snappy(in, sizeof(in), out, 11, &e), -EBADMSG);
	assert_int_equal(pq_snappy(in, sizeof(in) - 1, out, 12, &e), -EBADMSG);
	assert_int_equal(pq_snappy((const uint8_t *)"\4\1\1", 3, out, 4, &e), -EBADMSG);
}

/* ---- what a document may refer to ---- */

static int asked;

static int no_blob(void *arg, const char *from, const char *address, struct blob **ret,
		   struct err *e)
{
	(void)ret;
	asked++;
	assert_string_equal(address, arg);
	return err_set(e, -ENOENT, "%s", from ? from : "local");
}

static int take_rc(const struct refs_origin *home, const char *url)
{
	struct refs_targets *t;
	struct refs_target *x;
	struct blob *b;
	struct err e = ERR_INIT;
	int rc;

	assert_int_equal(refs_targets_new(home, &t, &e), 0);
	rc = refs_target_take(t, url, &x, &b, &e);
	if (rc == 0)
		refs_target_give(t, x);
	else
		assert_true(e.code == rc && e.msg[0]);
	refs_targets_free(t);
	return rc;
}

static void put(const char *dir, const char *name)
{
	char path[200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, "0123456789", 10), 10);
	(void)close(fd);
}

static void test_reach(void **state)
{
	char top[] = "/tmp/refs-XXXXXX", docs[64], other[64], path[200], link[100];
	struct remote_opener reach = {.blob = no_blob};
	struct refs_origin home = {.dir = docs, .reach = &reach};

	(void)state;
	assert_non_null(mkdtemp(top));
	(void)snprintf(docs, sizeof(docs), "%s/docs", top);
	(void)snprintf(other, sizeof(other), "%s/other", top);
	assert_int_equal(mkdir(docs, 0700) | mkdir(other, 0700), 0);
	put(docs, "in");
	put(other, "out");
	(void)snprintf(path, sizeof(path), "%s/out", other);
	(void)snprintf(link, sizeof(link), "%s/link", docs);
	assert_int_equal(symlink(path, link), 0);

	assert_int_equal(take_rc(&home, "in"), 0);
	assert_int_equal(take_rc(&home, "missing"), -EIO);
	assert_int_equal(take_rc(&home, "../other/out"), -EACCES);
	assert_int_equal(take_rc(&home, "link"), -EACCES);
	assert_int_equal(take_rc(&home, path), -EACCES);
	assert_int_equal(take_rc(&home, "/etc/passwd"), -EACCES);
	assert_int_equal(take_rc(&home, "file:///etc/passwd"), -EACCES);
	assert_int_equal(take_rc(&home, "memory://x"), -EOPNOTSUPP);
	home.external_root = other;
	assert_int_equal(take_rc(&home, path), 0);
	assert_int_equal(take_rc(&home, "link"), 0);
	assert_int_equal(asked, 0);
	reach.arg = (void *)(uintptr_t) "gs3://b/k";
	assert_int_equal(take_rc(&home, "gs://b/k"), -EIO);
	assert_int_equal(asked, 1);

	reach.arg = (void *)(uintptr_t) "s3://b/a%20b%23/c.nc";
	assert_int_equal(take_rc(&home, "s3://b/a b#/c.nc"), -EIO);
	reach.arg = (void *)(uintptr_t) "https://h/a%20b%C3%A4.nc?x=%20";
	assert_int_equal(take_rc(&home, "https://h/a b\xc3\xa4.nc?x=%20"), -EIO);
	assert_int_equal(asked, 3);

	/* a document on another machine */
	home = (struct refs_origin){.address = "https://h/r.json", .reach = &reach};
	assert_int_equal(take_rc(&home, "/etc/passwd"), -EACCES);
	assert_int_equal(take_rc(&home, "file:///etc/passwd"), -EACCES);
	assert_int_equal(take_rc(&home, "in"), -EACCES);
	reach.arg = (void *)(uintptr_t) "http://127.0.0.1/x";
	assert_int_equal(take_rc(&home, "http://127.0.0.1/x"), -EIO);
	assert_int_equal(asked, 4);
	(void)unlink(link);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/in", docs);
	(void)unlink(path);
	assert_int_equal(rmdir(docs) | rmdir(other) | rmdir(top), 0);
}

/* What was read and is another file by now is not read again, also when it was closed between. */
static void test_changed(void **state)
{
	char top[] = "/tmp/refs-XXXXXX", name[16], path[100];
	struct refs_origin home = {.dir = top};
	struct refs_targets *t;
	struct refs_target *x;
	struct blob *b;
	struct err e = ERR_INIT;

	(void)state;
	assert_non_null(mkdtemp(top));
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		put(top, name);
	}
	assert_int_equal(refs_targets_new(&home, &t, &e), 0);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(refs_target_take(t, name, &x, &b, &e), 0);
		assert_int_equal(b->size, 10);
		refs_target_give(t, x);
	}
	(void)snprintf(path, sizeof(path), "%s/f0", top);
	(void)unlink(path);
	put(top, "f0");
	assert_false(refs_targets_changed(t));
	assert_false(refs_target_if_open(t, "f0", &x, &b));
	assert_true(refs_target_if_open(t, "f99", &x, &b));
	refs_target_give(t, x);
	assert_int_equal(refs_target_take(t, "f0", &x, &b, &e), -ESTALE);
	assert_true(refs_targets_changed(t));
	refs_targets_free(t);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "%s/f%d", top, i);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(top), 0);
}

/* A remote file that was closed and is opened again is recognised by its version, not by its size
 * alone; and each of many files is found again. */
static uint64_t version_now;

static void free_blob(struct blob *b)
{
	free(b);
}

static const struct blob_ops fake_ops = {.close = free_blob};

static int versioned(void *arg, const char *from, const char *address, struct blob **ret,
		     struct err *e)
{
	struct blob *b = calloc(1, sizeof(*b));

	(void)arg;
	(void)from;
	(void)e;
	assert_non_null(b);
	asked++;
	*b = (struct blob){.ops = &fake_ops,
			   .fd = -1,
			   .size = 1000,
			   .version = strstr(address, "/f0") ? version_now : 7};
	*ret = b;
	return 0;
}

static void test_remote_version(void **state)
{
	struct remote_opener reach = {.blob = versioned};
	struct refs_origin home = {.address = "https://h/r.json", .reach = &reach};
	struct refs_targets *t;
	struct refs_target *x;
	struct blob *b;
	struct err e = ERR_INIT;
	char url[40];

	(void)state;
	version_now = 1;
	asked = 0;
	assert_int_equal(refs_targets_new(&home, &t, &e), 0);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 3000; i++) {
			(void)snprintf(url, sizeof(url), "https://h/%c%d", i ? 'g' : 'f', i);
			assert_int_equal(refs_target_take(t, url, &x, &b, &e), 0);
			refs_target_give(t, x);
		}
	assert_int_equal(asked, 6000); /* 64 of them stay open, the last ones */
	assert_true(refs_target_if_open(t, "https://h/g2999", &x, &b));
	refs_target_give(t, x);
	assert_true(refs_target_if_open(t, "https://h/g2936", &x, &b));
	refs_target_give(t, x);
	assert_false(refs_target_if_open(t, "https://h/g2935", &x, &b));
	version_now = 2;
	assert_int_equal(refs_target_take(t, "https://h/f0", &x, &b, &e), -ESTALE);
	assert_true(refs_targets_changed(t));
	refs_targets_free(t);
	asked = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_memory),   cmocka_unit_test(test_others),
		cmocka_unit_test(test_remote_version),
		cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_snappy),
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
