/* SPDX-License-Identifier: BSD-3-Clause */
/* URLs: parsing, rejected input, and secrets that are never printed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "base/os/url.h"

static void parse(const char *text, struct url *u)
{
	struct err e = ERR_INIT;

	if (url_parse(text, u, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
}

static void assert_text(const char *got, const char *want)
{
	if (!want)
		assert_null(got);
	else
		assert_string_equal(got, want);
}

static void assert_put(const struct url *u, bool secrets, const char *want)
{
	struct buf b;

	buf_init(&b, 4096);
	url_put(&b, u, secrets);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	assert_string_equal((const char *)b.data, want);
	buf_release(&b);
}

static void test_is(void **state)
{
	(void)state;
	assert_true(url_is("https://host/x"));
	assert_true(url_is("s3://bucket"));
	assert_true(url_is("a+b-c.d://"));
	assert_false(url_is("/https://host"));
	assert_false(url_is("https:/host"));
	assert_false(url_is("1s3://bucket"));
	assert_false(url_is("C:\\x"));
	assert_false(url_is(""));
	assert_false(url_is("dir/file://x"));
}

static void test_parts(void **state)
{
	struct url u;

	(void)state;
	parse("HTTPS://us%40er:p%3aw@Host.Example:8443/a%20b/c?x=1&y#mode=zarr", &u);
	assert_text(u.scheme, "https");
	assert_text(u.user, "us@er");
	assert_text(u.password, "p:w");
	assert_text(u.host, "host.example");
	assert_int_equal(u.port, 8443);
	assert_text(u.path, "/a%20b/c");
	assert_text(u.query, "x=1&y");
	assert_text(u.fragment, "mode=zarr");
	assert_put(&u, false, "https://host.example:8443/a%20b/c?x=1&y");
	assert_put(&u, true, "https://us%40er:p%3Aw@host.example:8443/a%20b/c?x=1&y");
	url_release(&u);
	parse("http://[2001:DB8::1]/x", &u);
	assert_text(u.host, "2001:db8::1");
	assert_int_equal(u.port, 0);
	assert_text(u.user, NULL);
	assert_put(&u, true, "http://[2001:db8::1]/x");
	url_release(&u);
	parse("http://host?q", &u);
	assert_text(u.path, "");
	assert_text(u.query, "q");
	url_release(&u);
	parse("file:///a/b#x", &u);
	assert_text(u.host, "");
	assert_text(u.path, "/a/b");
	url_release(&u);
	parse("http://a@b@host:/", &u); /* the last one counts */
	assert_text(u.user, "a@b");
	assert_text(u.host, "host");
	url_release(&u);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"http://",
		"http:///path",
		"http://ho st/",
		"http://host/a b",
		"http://host/a\nb",
		"http://host/\x7f",
		"http://host:0/",
		"http://host:65536/",
		"http://host:08/",
		"http://host:-1/",
		"http://host:80x/",
		"http://host/%",
		"http://host/%2",
		"http://host/%zz",
		"http://host/%00",
		"http://host/?%0",
		"http://u%00:p@host/",
		"http://u%g0@host/",
		"http://[::1/",
		"http://[::g]/",
		"http://[::1]x/",
		"http://[fe80::1%25eth0]/",
		"http://host\\evil/",
		"http://ho%41st/",
		"http://a,b/",
		"host/path",
	};
	struct url u;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;

		if (url_parse(bad[i], &u, &e) != -EINVAL)
			fail_msg("%s was taken", bad[i]);
		assert_int_equal(e.code, -EINVAL);
	}
}

static void test_long(void **state)
{
	static char text[URL_MAX + 2];
	struct url u;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "http://h/", 9);
	assert_int_equal(url_parse(text, &u, NULL), -EINVAL);
	text[URL_MAX] = '\0';
	parse(text, &u);
	url_release(&u);
}

/* A password that is not encoded may look like any other part. */
static void test_secrets_unsaid(void **state)
{
	static const char *const bad[] = {
		"http://user:SECRET/@host/", "http://user:SECRET@@ho st/",
		"http://user:SECRET%@host/", "http://SECRET!/x",
		"http://user:pw@SECRET!x/",  "http://h/x?token=SECRET%",
		"http://h/SECRET%",
	};
	struct url u;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = ERR_INIT;

		assert_int_equal(url_parse(bad[i], &u, &e), -EINVAL);
		assert_null(strstr(e.msg, "SECRET"));
	}
}

static void test_query_shown(void **state)
{
	struct url u;

	(void)state;
	parse("https://h/a?X-Amz-Signature=S&versionId=3&sig=S&apiKey=S&x", &u);
	assert_put(&u, false,
		   "https://h/a?X-Amz-Signature=...&versionId=3&sig=...&apiKey=...&x");
	assert_put(&u, true, "https://h/a?X-Amz-Signature=S&versionId=3&sig=S&apiKey=S&x");
	url_release(&u);
	parse("https://h/a?eyJhbGciOiJIUzI1NiIsInR5cCI6Ikp", &u);
	assert_put(&u, false, "https://h/a?...");
	url_release(&u);
}

static void test_encode(void **state)
{
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 256);
	url_encode(&b, "a/b c+~-_.%\xc3\xa9", 13, true);
	assert_memory_equal(b.data, "a/b%20c%2B~-_.%25%C3%A9", b.len);
	assert_int_equal(b.len, 23);
	buf_clear(&b);
	url_encode(&b, "a/b", 3, false);
	assert_memory_equal(b.data, "a%2Fb", 5);
	buf_clear(&b);
	assert_int_equal(url_decode(&b, "a%2fb%25+", 9, &e), 0);
	assert_memory_equal(b.data, "a/b%+", b.len);
	assert_int_equal(url_decode(&b, "%0", 2, &e), -EINVAL);
	assert_int_equal(url_decode(&b, "%00", 3, &e), -EINVAL);
	assert_int_equal(url_decode(&b, "a\0b", 3, &e), -EINVAL);
	buf_release(&b);
}

static void test_origin(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} pairs[] = {
		{"http://h/a", "http://H:80/b", true}, {"https://h/a", "https://h:443/b", true},
		{"http://h/", "https://h/", false},    {"http://h/", "http://h:8080/", false},
		{"http://h/", "http://h.x/", false},   {"http://u:p@h/", "http://h/", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct url a, b;

		parse(pairs[i].a, &a);
		parse(pairs[i].b, &b);
		assert_int_equal(url_origin_same(&a, &b), pairs[i].same);
		url_release(&a);
		url_release(&b);
	}
}

static bool third_look(void *arg)
{
	return ++*(int *)arg >= 3;
}

static void *take(void *lock)
{
	(void)pthread_mutex_lock(lock);
	return NULL;
}

static void test_stop(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;
	struct cancel outer, inner;
	pthread_t other;
	int64_t begin = clock_ns();
	int looks = 0;

	(void)state;
	cancel_cond_init(&cond);
	(void)pthread_mutex_lock(&lock);
	assert_false(cancel_requested());
	assert_int_equal(cancel_wait(&cond, &lock), 0); /* look again */
	cancel_begin(&outer);
	cancel_begin(&inner);
	cancel_request(&outer);
	assert_true(cancel_requested());
	assert_int_equal(cancel_wait(&cond, &lock), -EINTR);
	cancel_end(&inner);
	assert_true(cancel_requested());
	cancel_end(&outer);
	assert_false(cancel_requested());
	cancel_begin_if(&outer, third_look, &looks);
	assert_false(cancel_requested()); /* not yet */
	assert_int_equal(looks, 0);
	while (cancel_wait(&cond, &lock) == 0)
		continue;
	assert_int_equal(looks, 3);
	assert_true(cancel_requested());
	assert_int_equal(looks, 3);
	assert_true(clock_ns() - begin >= INT64_C(300000000));
	cancel_end(&outer);
	assert_false(cancel_requested());
	(void)pthread_mutex_unlock(&lock);
	assert_int_equal(cancel_lock(&lock), 0); /* free */
	(void)pthread_mutex_unlock(&lock);
	(void)pthread_cond_destroy(&cond);
	/* a lock that another thread holds, which never lets go of it */
	assert_int_equal(pthread_create(&other, NULL, take, &lock), 0);
	(void)pthread_join(other, NULL);
	cancel_begin(&outer);
	cancel_request(&outer);
	assert_int_equal(cancel_lock(&lock), -EINTR);
	cancel_end(&outer);
	cancel_everything();
	assert_true(cancel_requested());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_secrets_unsaid),
		cmocka_unit_test(test_query_shown),
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_origin),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
