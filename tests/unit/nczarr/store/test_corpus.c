/* SPDX-License-Identifier: BSD-3-Clause */
/* test_corpus.c - every archive of the corpus: all of it can be listed, looked up and
 * read, and with its checksums. Damaged ones get an answer too. */
#include "tests/unit/store_util.h"

#include "nczarr/store/store.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#define META ((uint64_t)64 << 20)
#define DEPTH 40

static unsigned g_archives, g_objects, g_odd, g_refused;
static uint64_t g_bytes;

static const char *corpus(void)
{
	const char *root = getenv("NCZARRFS_CORPUS");

	return root ? root : "../shared/corpus";
}

struct walk {
	struct store *s;
	const char *key;
	unsigned depth;
};

static bool visit(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	const struct walk *w = arg;
	struct walk below = {.s = w->s, .depth = w->depth + 1};
	char key[STORE_KEY_MAX + 1];
	struct err e = ERR_INIT;
	struct store_stat own;
	struct buf b;
	int rc;

	assert_true(w->depth < DEPTH);
	(void)snprintf(key, sizeof(key), "%s%s%s", w->key, *w->key ? "/" : "", name);
	assert_int_equal(store_stat(w->s, key, &own, &e), 0);
	assert_true(own.is_dir == is_dir && own.odd == st->odd && own.size == st->size &&
		    own.version == st->version);
	if (is_dir) {
		below.key = key;
		rc = store_list(w->s, key, true, visit, &below, &e);
		if (rc < 0)
			fail_msg("%s", e.msg);
		return true;
	}
	buf_init(&b, (size_t)64 << 20);
	rc = store_get(w->s, key, &b, NULL, &e);
	if (own.odd) {
		assert_int_equal(rc, -EOPNOTSUPP);
		g_odd++;
	} else if (rc < 0) {
		fail_msg("%s: %s", key, e.msg);
	} else {
		uint8_t *half = test_malloc(b.len + 1);

		assert_int_equal(b.len, own.size);
		assert_int_equal(
			store_read(w->s, key, b.len / 2, half, b.len - b.len / 2, NULL, &e), 0);
		assert_int_equal(
			memcmp(half, b.data ? b.data + b.len / 2 : half, b.len - b.len / 2), 0);
		test_free(half);
		g_objects++;
		g_bytes += b.len;
	}
	buf_release(&b);
	return true;
}

/* look_at - open an archive and read all of it. */
static void look_at(const char *path, bool must)
{
	struct walk w = {.key = ""};
	struct err e = ERR_INIT;
	struct blob blob;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	if (store_zip_open(fd, META, &w.s, &e) < 0) {
		print_message("%s: %s\n", strrchr(path, '/') + 1, e.msg);
		assert_false(must);
		g_refused++;
		close(fd);
		return;
	}
	blob = blob_of_fd(fd, (uint64_t)st.st_size);
	assert_true(store_zip_bid(&blob, NULL));
	if (store_list(w.s, "", true, visit, &w, &e) < 0)
		fail_msg("%s: %s", path, e.msg);
	assert_int_equal(store_check(w.s, &e), 0);
	store_close(w.s);
	g_archives++;
}

static int each_good(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_F)
		look_at(path, true);
	return 0;
}

static int each_bad(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t n = strlen(path);

	(void)st;
	(void)ftw;
	if (type == FTW_F && n > 4 && strcmp(path + n - 4, ".zip") == 0)
		look_at(path, false);
	return 0;
}

static void test_good(void **state)
{
	char path[4096];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/zip", corpus());
	if (nftw(path, each_good, 16, FTW_PHYS) < 0)
		skip();
	print_message("%u archives, %u objects, %ju bytes, %u odd\n", g_archives, g_objects,
		      (uintmax_t)g_bytes, g_odd);
	assert_true(g_archives > 0 && g_objects > g_archives && g_odd == 0);
}

static void test_bad(void **state)
{
	char path[4096];

	(void)state;
	g_archives = g_objects = g_odd = 0;
	(void)snprintf(path, sizeof(path), "%s/bad", corpus());
	if (nftw(path, each_bad, 16, FTW_PHYS) < 0)
		skip();
	print_message("%u archives, %u refused, %u objects, %u odd\n", g_archives, g_refused,
		      g_objects, g_odd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
