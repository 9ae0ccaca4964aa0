/* SPDX-License-Identifier: BSD-3-Clause */
/* store_util.h - a listing as one line of text, an object as a text. */
#ifndef TESTS_UNIT_STORE_UTIL_H
#define TESTS_UNIT_STORE_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "translate/contract/store.h"

struct seen {
	struct store *s;
	const char *key;
	bool want_stat;
	char names[64][300];
	size_t n;
};

static inline bool see(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct seen *seen = arg;
	struct store_stat own;
	char key[STORE_KEY_MAX + 300];
	struct err e = ERR_INIT;

	(void)snprintf(key, sizeof(key), "%s%s%s", seen->key, *seen->key ? "/" : "", name);
	assert_true(st || !seen->want_stat);
	if (st) {
		/* what a listing says of an entry is what a look at it says */
		assert_int_equal(store_stat(seen->s, key, &own, &e), 0);
		assert_int_equal(own.is_dir, st->is_dir);
		assert_int_equal(own.is_dir, is_dir);
		assert_int_equal(own.odd, st->odd);
		assert_int_equal(own.size, st->size);
		assert_true(own.version != 0 && own.version == st->version);
	}
	assert_true(seen->n < 64);
	(void)snprintf(seen->names[seen->n++], sizeof(seen->names[0]), "%s%s", name,
		       is_dir          ? "/"
		       : st && st->odd ? "?"
				       : "");
	return true;
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* listing - the names below a key in order, "a/ b odd?"; or the error, as "-2". */
static inline const char *listing_of(struct store *s, const char *key, bool want_stat)
{
	static char text[64 * 300];
	struct seen *seen = test_calloc(1, sizeof(*seen));
	struct err e = ERR_INIT;
	size_t at = 0;
	int rc;

	seen->s = s;
	seen->key = key;
	seen->want_stat = want_stat;
	rc = store_list(s, key, want_stat, see, seen, &e);
	text[0] = '\0';
	if (rc < 0) {
		assert_true(e.code == rc && e.msg[0]);
		(void)snprintf(text, sizeof(text), "%d", rc);
	}
	qsort(seen->names, seen->n, sizeof(seen->names[0]), by_text);
	for (size_t i = 0; i < seen->n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "",
				       seen->names[i]);
	test_free(seen);
	return text;
}

/* text_of - a whole object, read at once with store_get, with store_read, and in pieces of three
 * bytes: all must say the same. Or the error. */
static inline const char *text_of(struct store *s, const char *key)
{
	static char text[4096];
	struct err e = ERR_INIT;
	struct store_stat st;
	uint64_t version = 0;
	uint8_t piece[4096];
	struct buf b;
	int rc;

	buf_init(&b, sizeof(text) - 1);
	rc = store_get(s, key, &b, NULL, &e);
	if (rc < 0) {
		assert_true(e.code == rc && e.msg[0]);
		assert_int_equal(b.len, 0);
		assert_int_equal(store_read(s, key, 0, piece, 1, NULL, &e), rc);
		(void)snprintf(text, sizeof(text), "%d", rc);
		buf_release(&b);
		return text;
	}
	assert_int_equal(store_stat(s, key, &st, &e), 0);
	assert_int_equal(st.size, b.len);
	assert_false(st.odd || st.is_dir);
	assert_int_equal(store_read(s, key, 0, piece, b.len, &version, &e), 0);
	assert_true(version == st.version);
	if (b.len)
		assert_memory_equal(piece, b.data, b.len);
	for (size_t i = 0; i < b.len; i += 3) {
		size_t n = b.len - i < 3 ? b.len - i : 3;

		assert_int_equal(store_read(s, key, i, piece, n, NULL, &e), 0);
		assert_memory_equal(piece, b.data + i, n);
	}
	assert_int_equal(store_read(s, key, b.len, piece, 1, NULL, &e), -EIO);
	assert_int_equal(store_read(s, key, 1, piece, b.len, NULL, &e), -EIO);
	if (b.len)
		memcpy(text, b.data, b.len);
	text[b.len] = '\0';
	buf_release(&b);
	return text;
}

#endif
