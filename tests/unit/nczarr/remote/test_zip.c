/* SPDX-License-Identifier: BSD-3-Clause */
/* A zip archive that is far away: the same as a local one, in few requests; failures are errors. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nczarr/nczarr.h"
#include "nczarr/store/store.h"
#include "tests/unit/blob_fake.h"
#include "tests/unit/source_same.h"
#include "tests/unit/nczarr/zip_build.h"

#define META ((uint64_t)64 << 20)
#define CHUNK ((size_t)300000)
#define CHUNKS 40

static struct blob_fake *archive(void)
{
	auto_free uint8_t *chunk = alloc_array(CHUNK, 1);
	struct blob_fake *f;
	char name[64];
	struct zb z;
	int fd;

	zb_init(&z);
	zb_put(&z, ".zgroup", "{\"zarr_format\":2}", false);
	for (int i = 0; i < CHUNKS; i++) {
		struct zb_entry x = {.name = name, .data = chunk, .len = CHUNK};

		for (size_t k = 0; k < CHUNK; k++)
			chunk[k] = (uint8_t)(k * k + (size_t)i);
		x.deflate = i % 2;
		x.local_extra = i % 3 == 0 ? 28 : 0;
		(void)snprintf(name, sizeof(name), "a/%d", i);
		x.name_len = strlen(name);
		zb_add(&z, &x);
	}
	fd = zb_done(&z, NULL);
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	f = fake_open(name);
	if (!f)
		abort();
	(void)close(fd);
	return f;
}

static void test_requests(void **state)
{
	struct blob_fake *f = archive();
	struct store *s = NULL;
	struct err e = ERR_INIT;
	uint8_t out[1000];
	char key[32];

	(void)state;
	if (store_zip_open_blob(&f->base, META, &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(s->remote);
	assert_int_equal(f->requests + f->wanted, 1); /* the end, with the directory */
	for (int i = 0; i < CHUNKS; i++) {
		unsigned before = f->requests + f->wanted;
		uint64_t version = 0;
		struct store_stat st;

		(void)snprintf(key, sizeof(key), "a/%d", i);
		assert_int_equal(store_stat(s, key, &st, &e), 0);
		assert_int_equal(st.size, CHUNK);
		for (size_t at = 0; at + sizeof(out) <= CHUNK; at += 7 * sizeof(out)) {
			if (store_read(s, key, at, out, sizeof(out), &version, &e) < 0)
				fail_msg("%s", e.msg);
			assert_int_equal(version, st.version);
			for (size_t k = at; k < at + sizeof(out); k++)
				assert_int_equal(out[k - at], (uint8_t)(k * k + (size_t)i));
		}
		assert_true(f->requests + f->wanted <= before + 1);
	}
	/* at most one for each, whatever is read of it, and none that was not asked for early */
	assert_true(f->requests <= 1);

	f->changed = true;
	assert_int_equal(store_read(s, "a/0", 5, out, 10, NULL, &e), -ESTALE);
	assert_int_equal(store_check(s, &e), 0); /* as far as is known */
	assert_int_equal(store_fresh(s, "a/0", &(struct store_stat){0}, &e), -ESTALE);
	store_close(s);
	assert_int_equal(f->closed, 0); /* borrowed */
	fake_free(f);
}

/* What is wanted is there when it is read. */
static void test_want(void **state)
{
	struct blob_fake *f = archive();
	struct store_range r[] = {
		{"a/3", 0, UINT64_MAX}, {"a/8", 100, 100}, {"a/9", UINT64_MAX, 8},
		{"nothing", 0, 1},      {"a", 0, 1},       {".zgroup", UINT64_MAX, UINT64_MAX}};
	struct store *s = NULL;
	struct err e = ERR_INIT;
	uint8_t out[100];
	unsigned before;

	(void)state;
	assert_int_equal(store_zip_open_blob(&f->base, META, &s, &e), 0);
	for (int round = 0; round < 2; round++) {
		store_want(s, r, ARRAY_LEN(r));
		before = f->requests + f->wanted;
		assert_int_equal(store_read(s, "a/3", 5, out, 10, NULL, &e), 0);
		assert_int_equal(store_read(s, "a/8", 100, out, 100, NULL, &e), 0);
		assert_int_equal(store_read(s, "a/9", CHUNK - 8, out, 8, NULL, &e), 0);
		assert_int_equal(store_read(s, ".zgroup", 0, out, 5, NULL, &e), 0);
		assert_int_equal(f->requests + f->wanted, before);
	}
	store_close(s);
	fake_free(f);
}

/* Whatever read fails, nothing is taken for absent or damaged. */
static void test_failures(void **state)
{
	struct store *s = NULL;
	bool done = false;

	(void)state;
	for (int k = 1; !done; k++) {
		struct blob_fake *f = archive();
		struct err e = ERR_INIT;
		uint8_t out[10];
		int rc;

		f->fail_at = k;
		f->fail_rc = -ETIMEDOUT;
		rc = store_zip_open_blob(&f->base, META, &s, &e);
		if (rc == 0) {
			rc = store_read(s, "a/7", 9, out, sizeof(out), NULL, &e);
			done = rc == 0;
			f->fail_at = 0;
			assert_int_equal(store_read(s, "a/7", 9, out, sizeof(out), NULL, &e),
					 0);
			store_close(s);
		}
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		fake_free(f);
	}
}

/* ---- as a source ---- */

static int one_archive(const char *path, const struct stat *st, int kind, struct FTW *w)
{
	static const struct source_ops *const formats[] = {&zarr_source_ops};
	static const struct source_options options = {.cut_bytes = 1 << 20,
						      .max_chunk_bytes = 1 << 30,
						      .max_index_bytes = 1 << 28,
						      .max_meta_bytes = 1 << 26};
	struct source *a = NULL, *b = NULL;
	struct err e = ERR_INIT, e2 = ERR_INIT;
	struct source_at at;
	struct blob_fake *f;
	int rc, rc2;

	(void)w;
	if (kind != FTW_F || st->st_size == 0)
		return 0;
	f = fake_open(path);
	if (!f)
		return 1;
	at = fake_at(f, path);
	rc = source_open(formats, 1, path, &options, &a, &e);
	rc2 = source_open_at(formats, 1, &at, &options, &b, &e2);
	if (rc != rc2)
		fail_msg("%s: %s / %s", path, e.msg, e2.msg);
	if (rc == 0) {
		same_sources(a, b);
		assert_true(b->remote);
		source_close(b);
		assert_int_equal(f->closed, 1);
	} else {
		assert_int_equal(f->closed, 0);
	}
	source_close(a);
	fake_free(f);
	return 0;
}

static void test_corpus(void **state)
{
	const char *dir = getenv("NCZARRFS_CORPUS");
	char top[4096];

	(void)state;
	(void)snprintf(top, sizeof(top), "%s/zip", dir ? dir : "../shared/corpus");
	if (access(top, R_OK) < 0) {
		print_message("no corpus at %s\n", top);
		skip();
	}
	assert_int_equal(nftw(top, one_archive, 20, FTW_PHYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_want),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_corpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
