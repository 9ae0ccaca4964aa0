/* SPDX-License-Identifier: BSD-3-Clause */
/* test_store.c - what a key is; wrappers that believe neither side. */
#include "tests/unit/store_util.h"

#include "base/core/util.h"

static void test_keys(void **state)
{
	static const char *const good[] = {"a",     "a/b",     ".zgroup", "...",
					   "a/...", "..a/b..", "c/0/0",   "a b",
					   "a\\b",  ".a",      "a./b",    "\xc3\xa9"};
	static const char *const bad[] = {"",       "/",  "/a",   "a/",   "a//b",
					  ".",      "..", "a/..", "../a", "a/./b",
					  "a/../b", "//", "a/b//"};
	static char longest[STORE_KEY_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(store_key_ok(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(store_key_ok(bad[i]));
	memset(longest, 'a', STORE_KEY_MAX);
	assert_true(store_key_ok(longest));
	longest[STORE_KEY_MAX] = 'a';
	assert_false(store_key_ok(longest));
}

static void test_names_in_directories(void **state)
{
	char key[STORE_KEY_MAX + 1], dir[STORE_KEY_MAX + 1], name[STORE_KEY_MAX + 1];

	(void)state;
	assert_true(store_key_join("", "a", 1, key));
	assert_string_equal(key, "a");
	assert_true(store_key_join(key, "bcd", 2, key));
	assert_string_equal(key, "a/bc");
	assert_true(store_key_join(key, "", 0, key));
	assert_string_equal(key, "a/bc");
	memset(name, 'n', sizeof(name));
	assert_true(store_key_join("", name, STORE_KEY_MAX, key));
	assert_int_equal(strlen(key), STORE_KEY_MAX);
	assert_false(store_key_join("", name, STORE_KEY_MAX + 1, key));
	assert_false(store_key_join("d", name, STORE_KEY_MAX - 1, key));
	assert_true(store_key_join("d", name, STORE_KEY_MAX - 2, key));
	/* a directory whose key is the longest one has no entries */
	assert_true(store_key_join("", name, STORE_KEY_MAX, dir));
	assert_false(store_key_join(dir, "x", 1, key));
	assert_true(store_key_join(dir, "", 0, key));

	assert_string_equal(store_key_below("a", "a/b/c"), "b/c");
	assert_string_equal(store_key_below("", "a/b"), "a/b");
	assert_null(store_key_below("a", "ab/c"));
	assert_null(store_key_below("a", "a"));
	assert_null(store_key_below("a/b", "a"));

	assert_string_equal(store_key_name("a/b/c"), "c");
	assert_string_equal(store_key_name("a"), "a");
	assert_string_equal(store_key_name(""), "");
	assert_int_equal(store_key_parent_len("a/b/c"), 3);
	assert_int_equal(store_key_parent_len("a"), 0);
	memcpy(key, "a/b/c", 6);
	store_key_parent(key, name);
	assert_string_equal(name, "a/b");
	store_key_parent(name, name);
	assert_string_equal(name, "a");
	store_key_parent(name, name);
	assert_string_equal(name, "");
}

/* ---- a store with prepared answers ---- */

static struct {
	int code;
	struct store_stat st;
	unsigned calls;
} g_fake;

static int say(struct err *e)
{
	g_fake.calls++;
	return g_fake.code ? err_set(e, g_fake.code, "said") : 0;
}

static int fake_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	(void)s;
	(void)key;
	*ret = g_fake.st;
	return say(e);
}

static int fake_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		     void *arg, struct err *e)
{
	static char name[300];
	static const char *const names[] = {"good", "",    ".",   "..",  "a/b",
					    "/",    "...", "a b", "last"};
	int rc = say(e);

	(void)s;
	(void)key;
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	if (rc < 0)
		return rc;
	if (!emit(arg, name, false, want_stat ? &g_fake.st : NULL))
		return 0;
	name[255] = 'n';
	name[256] = '\0';
	if (!emit(arg, name, false, want_stat ? &g_fake.st : NULL))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!emit(arg, names[i], true, want_stat ? &g_fake.st : NULL))
			return 0;
	return rc;
}

static int fake_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	(void)s;
	(void)key;
	if (io->out)
		buf_puts(io->out, "some");
	return say(e);
}

static int fake_check(struct store *s, struct err *e)
{
	(void)s;
	return say(e);
}

static const struct store_ops g_ops = {.name = "fake",
				       .stat = fake_stat,
				       .list = fake_list,
				       .read = fake_read,
				       .check = fake_check};
static struct store g_store = {.ops = &g_ops};

static void test_arguments(void **state)
{
	struct store_stat st;
	uint8_t out[1];
	struct err e;
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	g_fake.code = 0;
	g_fake.calls = 0;
	assert_int_equal(store_stat(&g_store, "../a", &st, &e), -EINVAL);
	assert_int_equal(store_list(&g_store, "a/", false, NULL, NULL, &e), -EINVAL);
	assert_int_equal(store_read(&g_store, "", 0, out, 1, NULL, &e), -EINVAL);
	assert_int_equal(store_get(&g_store, "", &b, NULL, &e), -EINVAL);
	assert_int_equal(store_read(&g_store, "a", UINT64_MAX, out, 1, NULL, &e), -EIO);
	assert_int_equal(store_read(&g_store, "a", INT64_MAX, out, 1, NULL, &e), -EIO);
	b.failed = true;
	assert_int_equal(store_get(&g_store, "a", &b, NULL, &e), -EINVAL);
	assert_int_equal(g_fake.calls, 0);
	store_close(NULL);
}

static void test_answers(void **state)
{
	static const int codes[][2] = {
		{0, 0},    {-ENOENT, -ENOENT}, {-ENOTDIR, -ENOENT}, {-EIO, -EIO},
		{7, -EIO}, {-100000, -EIO},    {-ESTALE, -ESTALE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		struct err e = ERR_INIT;
		struct store_stat st;
		uint8_t out[1];
		struct buf b;

		buf_init(&b, 100);
		buf_puts(&b, "before");
		g_fake.code = codes[i][0];
		assert_int_equal(store_stat(&g_store, "a", &st, &e), codes[i][1]);
		assert_int_equal(e.code, codes[i][1]);
		assert_int_equal(store_read(&g_store, "a", 0, out, 1, NULL, &e), codes[i][1]);
		assert_int_equal(store_check(&g_store, &e), codes[i][1]);
		assert_int_equal(store_get(&g_store, "a", &b, NULL, &e), codes[i][1]);
		/* nothing of what an error left behind */
		assert_int_equal(b.len, codes[i][1] ? 6 : 10);
		buf_release(&b);
	}
	g_fake.code = 0;
}

static void test_contradictions(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	g_fake.st = (struct store_stat){.is_dir = true, .odd = true, .size = 5, .version = 1};
	assert_int_equal(store_stat(&g_store, "a", &st, &e), 0);
	assert_true(!st.is_dir && st.odd && st.size == 0);
	g_fake.st = (struct store_stat){.is_dir = true, .size = 5, .version = 1};
	assert_int_equal(store_stat(&g_store, "", &st, &e), 0);
	assert_true(st.is_dir && st.size == 0);
}

struct names {
	char text[700];
	unsigned most;
};

static bool note(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct names *n = arg;
	size_t at = strlen(n->text);

	assert_true(!st || (!st->odd && st->size == 3 && !is_dir));
	if (strlen(name) < 100)
		(void)snprintf(n->text + at, sizeof(n->text) - at, "%s,", name);
	else
		(void)snprintf(n->text + at, sizeof(n->text) - at, "%zu,", strlen(name));
	return --n->most > 0;
}

static void test_names(void **state)
{
	struct names n = {.most = 100};
	struct err e;

	(void)state;
	assert_int_equal(store_list(&g_store, "", false, note, &n, &e), 0);
	assert_string_equal(n.text, "255,good,...,a b,last,");
	/* what the stat says holds, and the caller may stop */
	n = (struct names){.most = 2};
	g_fake.st = (struct store_stat){.size = 3, .version = 1};
	assert_int_equal(store_list(&g_store, "", true, note, &n, &e), 0);
	assert_string_equal(n.text, "255,good,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),    cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_answers), cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_names),   cmocka_unit_test(test_names_in_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
