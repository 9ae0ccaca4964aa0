/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules and edge cases of base/: numbers, strings, buffers, errors, arenas, cursors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"
#include "base/core/list.h"
#include "base/core/map.h"
#include "base/core/utf8.h"
#include "base/os/io.h"
#include "base/core/cursor.h"
#include "base/core/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void decimals_are_canonical(void **state)
{
	static const char *const bad[] = {
		"", "00", "01", "+1", "-1", " 1", "1 ", "1x", "18446744073709551616", "0x1"};
	uint64_t v = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(str_u64(bad[i], strlen(bad[i]), UINT64_MAX, &v), -EINVAL);
	assert_int_equal(v, 77);
	assert_true(str_is("zlib", "zlib,5", 4) && !str_is("zlib", "zlib,5", 3));
	assert_true(!str_is("zlib", "Zlib", 4) && str_is_nocase("zlib", "ZLIB", 4));
	assert_false(str_is(NULL, "", 0) || str_is_nocase(NULL, "", 0));
	assert_int_equal(str_u64("0", 1, 0, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(str_u64("18446744073709551615", 20, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(str_u64("10", 2, 9, &v), -EINVAL);
}

static void sizes_take_suffixes(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(str_size("4K", UINT64_MAX, &v), 0);
	assert_true(v == 4096);
	assert_int_equal(str_size("3G", UINT64_MAX, &v), 0);
	assert_true(v == (uint64_t)3 << 30);
	assert_int_equal(str_size("K", UINT64_MAX, &v), -EINVAL);
	assert_int_equal(str_size("", UINT64_MAX, &v), -EINVAL);
	assert_int_equal(str_size("18446744073709551615G", UINT64_MAX, &v), -EINVAL);
}

static void utf8_is_strict(void **state)
{
	(void)state;
	assert_true(utf8_ok("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\x8a", 10));
	assert_false(utf8_ok("\xc0\x80", 2));         /* overlong */
	assert_false(utf8_ok("\xed\xa0\x80", 3));     /* surrogate */
	assert_false(utf8_ok("\xf4\x90\x80\x80", 4)); /* beyond U+10FFFF */
	assert_false(utf8_ok("\xe2\x82", 2));         /* cut off */
	assert_false(utf8_ok("\xff", 1));
}

static void latin1_is_kept(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	assert_true(utf8_put_text(&b, "\xe9t\xe9", 3));
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "\xc3\xa9t\xc3\xa9", 5);
	buf_release(&b);
}

static void copies_are_utf8(void **state)
{
	bool converted = false;
	struct arena a;
	size_t n = 0;

	(void)state;
	arena_init(&a, 1000);
	assert_string_equal(utf8_copy(&a, "\xc3\xa9ts", 3, &n, &converted), "\xc3\xa9t");
	assert_int_equal(n, 3);
	assert_false(converted);
	assert_string_equal(utf8_copy(&a, "\xe9t", 2, &n, &converted), "\xc3\xa9t");
	assert_int_equal(n, 3);
	assert_true(converted);
	assert_string_equal(utf8_copy(&a, "", 0, NULL, NULL), "");
	arena_release(&a);
	arena_init(&a, 4);
	assert_null(utf8_copy(&a, "\xe9t\xe9", 3, NULL, NULL));
	arena_release(&a);
}

static void doubles_read_back(void **state)
{
	static const double values[] = {0.0,
					-0.0,
					1.0,
					0.1,
					1e300,
					5e-324,
					9.969209968386869e+36,
					(double)0.1f,
					123456789012345680.0,
					-1.5};
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		double back;

		buf_clear(&b);
		str_put_double(&b, values[i]);
		buf_putc(&b, '\0');
		back = strtod((const char *)b.data, NULL);
		assert_memory_equal(&back, &values[i], sizeof(back));
		assert_non_null(strpbrk((const char *)b.data, ".e"));
	}
	buf_clear(&b);
	str_put_double(&b, 0.1);
	assert_memory_equal(b.data, "0.1", 3);
	buf_clear(&b);
	str_put_double(&b, -INFINITY);
	assert_memory_equal(b.data, "-Infinity", 9);
	buf_release(&b);
}

static void members_and_plain_texts(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	buf_putc(&b, '{');
	str_put_member(&b, "a", "x\"\n");
	str_put_member(&b, "b", NULL);
	buf_puts(&b, ",\n ");
	str_put_member(&b, "c", ",");
	str_put_member(&b, "d", "{");
	str_put_member(&b, "e", "");
	str_put_plain(&b, "t\tu\x7f\xc3\xa4");
	buf_putc(&b, '\0');
	assert_string_equal(b.data, "{\"a\": \"x\\\"\\u000a\", \"b\": null,\n \"c\": \",\", "
				    "\"d\": \"{\", \"e\": \"\"t?u?\xc3\xa4");
	buf_release(&b);
	/* Fowler, Noll, Vo: the test vectors of the algorithm */
	assert_true(hash_bytes(HASH_SEED, "", 0) == 0xcbf29ce484222325u);
	assert_true(hash_bytes(HASH_SEED, "foobar", 6) == 0x85944171f73967e8u);
}

static void printed_texts_have_any_length(void **state)
{
	char text[3000];
	struct buf b;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	buf_init(&b, 10000);
	buf_printf(&b, "<%s>", text);
	assert_true(buf_ok(&b));
	assert_int_equal(b.len, sizeof(text) + 1);
	assert_true(b.data[0] == '<' && b.data[1] == 'x' && b.data[b.len - 1] == '>');
	buf_printf(&b, "%d", 7);
	assert_int_equal(b.data[b.len - 1], '7');
	buf_release(&b);
	buf_init(&b, 1000);
	buf_printf(&b, "%s", text);
	assert_false(buf_ok(&b));
	buf_release(&b);
}

static void buffers_have_a_ceiling(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 4);
	buf_puts(&b, "abcd");
	assert_true(buf_ok(&b));
	buf_putc(&b, 'e');
	assert_false(buf_ok(&b));
	buf_puts(&b, "");
	assert_false(buf_ok(&b));
	buf_clear(&b);
	assert_null(buf_grow(&b, SIZE_MAX));
	buf_release(&b);
}

static void errors_join_and_truncate(void **state)
{
	struct err e = ERR_INIT;
	char longer[ERR_TEXT_MAX * 2];

	(void)state;
	assert_int_equal(err_set(&e, -EBADMSG, "length %d exceeds %d\n", 7, 5), -EBADMSG);
	assert_int_equal(err_wrap(&e, -EBADMSG, "chunk index"), -EBADMSG);
	assert_string_equal(e.msg, "chunk index: length 7 exceeds 5?");
	assert_int_equal(e.code, -EBADMSG);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	/* the same with a text as without one */
	assert_int_equal(err_wrap(&e, -EIO, "%s", longer), -EIO);
	assert_int_equal(e.code, -EIO);
	assert_int_equal(err_wrap(NULL, -EIO, "%s", longer), -EIO);
	assert_int_equal(strlen(e.msg), ERR_TEXT_MAX - 1);
	assert_int_equal(err_sys(&e, ENOENT, "open '%s'", "x"), -ENOENT);
	assert_string_equal(e.msg, "open 'x': no such file or directory");
	assert_int_equal(err_set(NULL, -EIO, "nobody listens"), -EIO);
}

static void cursors_fail_sticky(void **state)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct slice s = slice_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(rd_le16(&s), 0x0201);
	assert_true(rd_uint(&s, 3) == 0x050403);
	assert_true(rd_le64(&s) == 0);
	assert_false(slice_ok(&s));
	assert_int_equal(rd_u8(&s), 0);
	s = slice_of(bytes, sizeof(bytes));
	assert_true(rd_uint(&s, 9) == 0);
	assert_false(slice_ok(&s));
}

static void arenas_align_and_end(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t n = 1; n < 3000; n += 700) {
		uint8_t *p = arena_alloc(&a, n, 1);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		assert_int_equal(p[n - 1], 0);
	}
	assert_string_equal(arena_strdup(&a, "name"), "name");
	assert_null(arena_alloc(&a, SIZE_MAX / 2, 4));
	assert_null(arena_alloc(&a, 1 << 20, 1));
	assert_non_null(arena_alloc(&a, 200000, 1));
	arena_release(&a);
}

static void short_files_are_errors(void **state)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	char out[8];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "12345", 5), 5);
	assert_int_equal(io_pread(fd, out, 5, 0, &e), 0);
	assert_memory_equal(out, "12345", 5);
	assert_int_equal(io_pread(fd, out, 5, 1, &e), -EIO);
	assert_int_equal(io_pread(fd, out, 5, UINT64_MAX - 2, &e), -EIO);
	assert_int_equal(io_pread(fd, out, 0, 99, &e), 0);
	(void)close(fd);
}

static void escapes_are_characters(void **state)
{
	static const struct {
		const char *text;
		uint32_t want; /* 0: it is wrong */
		size_t left;
	} rows[] = {
		{"nx", '\n', 1},
		{"\\", '\\', 0},
		{"u00e9z", 0xe9, 1},
		{"ud83d\\uDE00-", 0x1f600, 1},
		{"", 0, 0},
		{"x", 0, 1},
		{"u12g4", 0, 5},
		{"u123", 0, 4},
		{"ud800", 0, 5},
		{"udc00\\ud800", 0, 11},
		{"ud800\\u0041", 0, 11},
		{"ud800\\udc0", 0, 10},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint8_t *p = (const uint8_t *)rows[i].text,
			      *end = p + strlen(rows[i].text);
		uint32_t c = 0;
		const char *why = utf8_unescape(&p, end, &c);

		assert_int_equal(why == NULL, rows[i].want != 0);
		assert_int_equal(end - p, rows[i].left);
		if (!why)
			assert_int_equal(c, rows[i].want);
	}
}

static void tails_begin_with_characters(void **state)
{
	(void)state;
	assert_int_equal(utf8_tail("abc", 3, 3), 0);
	assert_int_equal(utf8_tail("abc", 3, 2), 1);
	assert_int_equal(utf8_tail("a\xc3\xa9z", 4, 2), 3);
	assert_int_equal(utf8_tail("a\xc3\xa9z", 4, 3), 1);
	assert_int_equal(utf8_tail("\xa9\xa9", 2, 1), 2);
	assert_int_equal(utf8_tail("", 0, 0), 0);
}

struct thing {
	struct link link;
	struct list_link in;
	uint64_t v;
};

static void tables_find_move_and_walk(void **state)
{
	static struct thing things[300];
	struct map m = {0};
	struct thing *x;
	size_t n = 0;

	(void)state;
	for (uint64_t i = 0; i < ARRAY_LEN(things); i++) {
		things[i].v = i;
		assert_int_equal(map_add(&m, &things[i].link, i / 2), 0);
	}
	MAP_EACH(x, &m, 70, link) {
		assert_int_equal(x->v / 2, 70);
		n++;
	}
	assert_int_equal(n, 2);
	map_move(&m, &things[140].link, 7000);
	map_remove(&m, &things[141].link);
	assert_null(map_first(&m, 70));
	assert_ptr_equal(map_first(&m, 7000), &things[140].link);
	n = 0;
	for (const struct link *l = map_walk(&m, NULL); l; l = map_walk(&m, l))
		n++;
	assert_int_equal(n, m.n);
	assert_int_equal(n, ARRAY_LEN(things) - 1);
	map_free(&m);
	assert_null(map_walk(&m, NULL));
}

static void lists_keep_their_order(void **state)
{
	struct thing a = {.v = 1}, b = {.v = 2};
	struct list_link head;

	(void)state;
	list_init(&head);
	assert_true(list_empty(&head));
	assert_null(list_take(&head));
	list_append(&head, &a.in);
	list_append(&head, &b.in);
	assert_ptr_equal(list_take(&head), &a.in);
	list_remove(&a.in); /* is in none */
	assert_ptr_equal(head.next, &b.in);
	list_remove(&b.in);
	assert_true(list_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals_are_canonical),
		cmocka_unit_test(sizes_take_suffixes),
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(latin1_is_kept),
		cmocka_unit_test(copies_are_utf8),
		cmocka_unit_test(doubles_read_back),
		cmocka_unit_test(members_and_plain_texts),
		cmocka_unit_test(printed_texts_have_any_length),
		cmocka_unit_test(buffers_have_a_ceiling),
		cmocka_unit_test(errors_join_and_truncate),
		cmocka_unit_test(cursors_fail_sticky),
		cmocka_unit_test(arenas_align_and_end),
		cmocka_unit_test(short_files_are_errors),
		cmocka_unit_test(escapes_are_characters),
		cmocka_unit_test(tails_begin_with_characters),
		cmocka_unit_test(tables_find_move_and_walk),
		cmocka_unit_test(lists_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
