/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - objects in memory, and the sorted names that zip archives use too. */
#include "tests/unit/store_util.h"

#include "nczarr/store/sorted_keys.h"
#include "tests/unit/nczarr/store_mem.h"

static void test_store(void **state)
{
	struct store *s = store_mem_new();
	struct store_stat st, again;
	struct err e;
	struct buf b;

	(void)state;
	assert_non_null(s);
	assert_string_equal(listing_of(s, "", true), "");
	assert_string_equal(text_of(s, "a"), "-2");
	assert_int_equal(store_mem_put(s, "g/a/0.0", "one", 3), 0);
	assert_int_equal(store_mem_put(s, "g/a.b", "two", 3), 0);
	assert_int_equal(store_mem_put(s, ".zgroup", NULL, 0), 0);
	assert_int_equal(store_mem_put(s, "g/a-b/c", "four", 4), 0);
	for (int want = 0; want < 2; want++) {
		assert_string_equal(listing_of(s, "", want), ".zgroup g/");
		assert_string_equal(listing_of(s, "g", want), "a-b/ a.b a/");
		assert_string_equal(listing_of(s, "g/a", want), "0.0");
		assert_string_equal(listing_of(s, "g/a.b", want), "-2");
		assert_string_equal(listing_of(s, "h", want), "-2");
	}
	assert_string_equal(text_of(s, "g/a/0.0"), "one");
	assert_string_equal(text_of(s, ".zgroup"), "");
	assert_string_equal(text_of(s, "g"), "-21");
	assert_string_equal(text_of(s, "g/a/0.0/x"), "-2");
	assert_int_equal(store_check(s, &e), 0);

	assert_int_equal(store_stat(s, "g/a.b", &st, &e), 0);
	assert_int_equal(store_mem_put(s, "g/a.b", "three", 5), 0);
	assert_int_equal(store_stat(s, "g/a.b", &again, &e), 0);
	assert_true(st.version != again.version);
	assert_string_equal(text_of(s, "g/a.b"), "three");
	buf_init(&b, 4);
	assert_int_equal(store_get(s, "g/a.b", &b, NULL, &e), -ERANGE);
	assert_true(buf_ok(&b));

	/* an object with others below it is a folder */
	assert_int_equal(store_mem_put(s, "g/a.b/x", "6", 1), 0);
	assert_string_equal(listing_of(s, "g", true), "a-b/ a.b/ a/");
	assert_string_equal(text_of(s, "g/a.b"), "-21");
	store_close(s);
}

/* ---- sorted names ---- */

static const char *text_name(const void *arg, size_t i, size_t *ret_len)
{
	const char *const *names = arg;

	*ret_len = strlen(names[i]);
	return names[i];
}

static bool append(void *arg, const char *part, size_t len, size_t i, bool has_below)
{
	char *text = arg;
	size_t at = strlen(text);

	(void)snprintf(text + at, 200 - at, "%.*s%s%s ", (int)len, part,
		       i == SORTED_KEYS_NONE ? "*" : "", has_below ? "/" : "");
	return true;
}

static const char *below(const struct sorted_keys *t, const char *key)
{
	static char text[200];

	text[0] = '\0';
	if (!sorted_keys_list(t, key, strlen(key), append, text))
		return "none";
	return text;
}

static void test_keytab(void **state)
{
	static const char *const names[] = {
		"a",   "a/0", "a/0/x", "a/1", "a/2/x", "a/2/y", "a/2/z",    "a/2/z/1",
		"a/3", "a b", "a-",    "a-b", "ab/c",  "b",     "\xc3\xa9",
	};
	const struct sorted_keys t = {.arg = names, .n = ARRAY_LEN(names), .name = text_name};
	const struct sorted_keys none = {.arg = names, .n = 0, .name = text_name};

	(void)state;
	for (size_t i = 0; i < t.n; i++) {
		assert_int_equal(sorted_keys_find(&t, names[i], strlen(names[i])), i);
		assert_true(sorted_keys_is(&t, i, names[i], strlen(names[i])));
		for (size_t k = 0; k < t.n; k++) {
			int c = sorted_keys_cmp(names[i], strlen(names[i]), names[k],
						strlen(names[k]));

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
		}
	}
	assert_int_equal(sorted_keys_find(&t, "zz", 2), 14);
	assert_int_equal(sorted_keys_find(&t, "\xff", 1), 15);
	assert_false(sorted_keys_is(&t, 15, "\xff", 1));
	assert_string_equal(below(&t, ""), "a/ a b a- a-b ab*/ b \xc3\xa9 ");
	assert_string_equal(below(&t, "a"), "0/ 1 2*/ 3 ");
	assert_string_equal(below(&t, "a/2"), "x y z/ ");
	assert_string_equal(below(&t, "a/2/z"), "1 ");
	assert_string_equal(below(&t, "ab"), "c ");
	assert_string_equal(below(&t, "a/2/z/1"), "none");
	assert_string_equal(below(&t, "a/"), "none");
	assert_string_equal(below(&t, "\xff"), "none");
	assert_string_equal(below(&none, ""), "none");
}

/* long names that differ behind their eighth byte */
static void test_long_names(void **state)
{
	char a[64], b[64];

	(void)state;
	for (size_t n = 1; n < 40; n++) {
		memset(a, 'x', sizeof(a));
		memset(b, 'x', sizeof(b));
		assert_int_equal(sorted_keys_cmp(a, n, b, n), 0);
		assert_true(sorted_keys_cmp(a, n - 1, b, n) < 0);
		a[n - 1] = '/';
		b[n - 1] = ' ';
		assert_true(sorted_keys_cmp(a, n, b, n) < 0);
		assert_true(sorted_keys_cmp(b, n, a, n) > 0);
		b[n - 1] = '\xe9';
		assert_true(sorted_keys_cmp(a, n, b, n) < 0);
		a[n - 1] = 'x';
		assert_true(sorted_keys_cmp(a, n, b, n) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_keytab),
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
