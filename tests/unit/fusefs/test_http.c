/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the parsers of HTTP requests: paths, ranges, entity tags, hosts. */
#include "fusefs/http/parse_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/core/str.h"

/* ---- paths ---- */

/* joined - components separated by '|'; "!" and an error's name. */
static const char *joined(const char *raw, char out[1024])
{
	struct http_path p;
	struct err e = ERR_INIT;
	int rc = http_path_parse(raw, &p, &e);
	size_t n = 0;

	out[0] = '\0';
	for (const char *s = NULL; rc == 0 && (s = http_path_next(&p, s)); n++) {
		strcat(out, n ? "|" : "");
		strcat(out, s);
	}
	if (rc == 0) {
		assert_int_equal(n, p.n);
		strcat(out, p.is_dir ? "|" : "");
	} else {
		assert_true(e.msg[0] != '\0');
		strcpy(out, rc == -EINVAL ? "!invalid" : rc == -ENAMETOOLONG ? "!long" : "!");
	}
	http_path_release(&p);
	return out;
}

static void test_paths(void **state)
{
	static const char *const rows[][2] = {
		{"", "|"},
		{"/", "|"},
		{"/a", "a"},
		{"/a/", "a|"},
		{"/a/b.c/0.0", "a|b.c|0.0"},
		{"//a///b//", "a|b|"},
		{"a", "a"},
		{"/a%20b/%C3%A9", "a b|\xc3\xa9"},
		{"/%2E/x", "!invalid"},
		{"/..", "!invalid"},
		{"/a/%2e%2e/b", "!invalid"},
		{"/...", "..."},
		{"/.zgroup", ".zgroup"},
		{"/%2f", "!invalid"},
		{"/a%00b", "!invalid"},
		{"/%", "!invalid"},
		{"/%4", "!invalid"},
		{"/%4/1", "!invalid"},
		{"/%g1", "!invalid"},
		{"/a+b", "a+b"},
	};
	char out[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(joined(rows[i][0], out), rows[i][1]);
}

static void test_long_paths(void **state)
{
	char text[HTTP_PATH_MAX + 2], out[1024];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	text[1 + HTTP_NAME_MAX] = '\0';
	assert_int_equal(strlen(joined(text, out)), HTTP_NAME_MAX);
	text[1 + HTTP_NAME_MAX] = 'a';
	text[2 + HTTP_NAME_MAX] = '\0';
	assert_string_equal(joined(text, out), "!long");
	memset(text, '/', sizeof(text));
	text[HTTP_PATH_MAX] = '\0';
	assert_string_equal(joined(text, out), "|");
	text[HTTP_PATH_MAX] = '/';
	text[HTTP_PATH_MAX + 1] = '\0';
	assert_string_equal(joined(text, out), "!long");
}

/* ---- ranges ---- */

static void test_ranges(void **state)
{
	static const struct {
		const char *header;
		uint64_t size;
		enum http_range kind;
		uint64_t first, len;
	} rows[] = {
		{NULL, 100, HTTP_ALL, 0, 100},
		{"bytes=0-0", 100, HTTP_PART, 0, 1},
		{"bytes=0-99", 100, HTTP_PART, 0, 100},
		{"bytes=10-19", 100, HTTP_PART, 10, 10},
		{"bytes=99-200", 100, HTTP_PART, 99, 1},
		{"bytes=50-", 100, HTTP_PART, 50, 50},
		{"bytes=-5", 100, HTTP_PART, 95, 5},
		{"bytes=-500", 100, HTTP_PART, 0, 100},
		{"Bytes= 1-2 ", 100, HTTP_PART, 1, 2},
		{"bytes=100-", 100, HTTP_OUTSIDE, 0, 100},
		{"bytes=100-100", 100, HTTP_OUTSIDE, 0, 100},
		{"bytes=-0", 100, HTTP_OUTSIDE, 100, 0},
		{"bytes=0-0", 0, HTTP_OUTSIDE, 0, 0},
		{"bytes=-1", 0, HTTP_OUTSIDE, 0, 0},
		{"bytes=18446744073709551616-", 100, HTTP_OUTSIDE, 0, 100},
		{"bytes=1-99999999999999999999999999", 100, HTTP_PART, 1, 99},
		{"bytes=5-4", 100, HTTP_ALL, 0, 100},
		{"bytes=", 100, HTTP_ALL, 0, 100},
		{"bytes=-", 100, HTTP_ALL, 0, 100},
		{"bytes=1", 100, HTTP_ALL, 0, 100},
		{"bytes=1-2,4-5", 100, HTTP_ALL, 0, 100},
		{"bytes=+1-2", 100, HTTP_ALL, 0, 100},
		{"bytes=1-2x", 100, HTTP_ALL, 0, 100},
		{"lines=1-2", 100, HTTP_ALL, 0, 100},
		{"", 100, HTTP_ALL, 0, 100},
	};
	uint64_t first, len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
			http_range_parse(rows[i].header, rows[i].size, &first, &len),
			rows[i].kind);
		assert_int_equal(first, rows[i].first);
		assert_int_equal(len, rows[i].len);
	}
}

/* ---- entity tags ---- */

static void test_tags(void **state)
{
	(void)state;
	assert_true(http_tag_listed("\"a\"", "\"a\""));
	assert_true(http_tag_listed("W/\"a\"", "\"a\""));
	assert_true(http_tag_listed("\"a\"", "W/\"a\""));
	assert_true(http_tag_listed("\"x\", W/\"y\" ,\"a\"", "\"a\""));
	assert_true(http_tag_listed("*", "\"a\""));
	assert_true(http_tag_listed("\"x,y\", \"a\"", "\"a\""));
	assert_false(http_tag_listed(NULL, "\"a\""));
	assert_false(http_tag_listed("", "\"a\""));
	assert_false(http_tag_listed("\"ab\"", "\"a\""));
	assert_false(http_tag_listed("a", "\"a\""));
	assert_false(http_tag_listed("\"a", "\"a\""));
	assert_false(http_tag_listed("\"x\" nonsense \"a\"", "\"a\""));
	assert_true(http_tag_same("\"a\"", "\"a\""));
	assert_false(http_tag_same("\"a\", \"b\"", "\"a\""));
	assert_false(http_tag_same("W/\"a\"", "W/\"a\""));
	assert_false(http_tag_same("\"a\"", "W/\"a\""));
	assert_false(http_tag_same("W/\"a\"", "\"a\""));
	assert_false(http_tag_same("Sun, 06 Nov 1994 08:49:37 GMT", "\"a\""));
	assert_false(http_tag_same(NULL, "\"a\""));
}

/* ---- hosts ---- */

static void test_hosts(void **state)
{
	static const char *const good[] = {"localhost",     "LocalHost:8080", "127.0.0.1",
					   "127.0.0.1:1",   "[::1]",          "[::1]:65535",
					   "127.0.0.9:80",  "localhost:"};
	static const char *const bad[] = {
		"",          "localhost.",     "localhost:65536", "localhost:8x",
		"xlocalhost", "localhost.evil", "127.0.0.1.x", "::1",             "[::1",
		"[::1]x",    "[::2]",          "127.0.0.99",   "evil"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(http_host_ok(good[i], "127.0.0.9"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(http_host_ok(bad[i], "127.0.0.9"));
	assert_true(http_host_ok(NULL, "127.0.0.1"));
	assert_true(http_host_ok("[fe80::1]:80", "fe80::1"));
	assert_false(http_host_ok("fe80::1", "fe80::1"));
}

/* ---- content ---- */

static void test_types(void **state)
{
	struct buf b;

	(void)state;
	assert_string_equal(http_type(".zarray"), "application/json");
	assert_string_equal(http_type("zarr.json"), "application/json");
	assert_string_equal(http_type("a.nc"), "application/x-netcdf");
	assert_string_equal(http_type("0.0"), "application/octet-stream");
	assert_string_equal(http_type("index.html"), "application/octet-stream");
	assert_string_equal(http_type("a.svg"), "application/octet-stream");
	assert_string_equal(http_type(""), "application/octet-stream");
	buf_init(&b, 1000);
	str_put_xml(&b, "<a href=\"x\">&'", 14);
	buf_putc(&b, '\0');
	assert_string_equal((char *)b.data, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),  cmocka_unit_test(test_long_paths),
		cmocka_unit_test(test_ranges), cmocka_unit_test(test_tags),
		cmocka_unit_test(test_hosts),  cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
