/* SPDX-License-Identifier: BSD-3-Clause */
/* test_log.c - levels of components; which lines are kept back, by a clock of the test. */
#include "base/observe/log.h"
#include "base/observe/log_limit_int.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

struct said {
	char text[64][256];
	unsigned n;
};

static void say(void *arg, uint8_t part, uint8_t level, const char *text)
{
	struct said *s = arg;

	(void)part;
	(void)level;
	if (s->n < 64)
		(void)snprintf(s->text[s->n++], sizeof(s->text[0]), "%s", text);
}

static struct log_limit limit;
static struct said said;

static bool ask(const char *text, int64_t now)
{
	return log_limit_ask(&limit, LOG_CODEC, LOG_ERROR, text, now, say, &said);
}

static int begin(void **state)
{
	(void)state;
	limit = (struct log_limit){0};
	said = (struct said){0};
	return 0;
}

static void test_same(void **state)
{
	(void)state;
	assert_true(ask("disk is full", 100));
	for (int i = 0; i < 57; i++)
		assert_false(ask("disk is full", 100 + i));
	assert_int_equal(said.n, 0);
	assert_true(ask("another thing", 101)); /* the first of a kind, at once */
	assert_true(ask("disk is full", 160));
	assert_int_equal(said.n, 1);
	assert_string_equal(said.text[0], "57 more like this in the last minute: disk is full");
	assert_false(ask("disk is full", 161));
}

/* Chunks differ by their numbers: so many are said, the rest is counted. */
static void test_kind(void **state)
{
	char text[64];
	unsigned shown = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "'/v' chunk %u.0: damaged", i);
		shown += ask(text, 5);
	}
	assert_int_equal(shown, LOG_SAME);
	log_limit_flush(&limit, 64, false, say, &said);
	assert_int_equal(said.n, 0); /* the minute is not over */
	log_limit_flush(&limit, 65, false, say, &said);
	assert_int_equal(said.n, 1);
	assert_string_equal(said.text[0], "980 more like this in the last minute: '/v' chunk "
					  "20.0: damaged");
	log_limit_flush(&limit, 300, true, say, &said);
	assert_int_equal(said.n, 1); /* once */
}

static void test_long_after(void **state)
{
	(void)state;
	assert_true(ask("a", 0));
	assert_false(ask("a", 1));
	assert_true(ask("a", 600));
	assert_string_equal(said.text[0], "a");
}

/* Ever new kinds: no more memory, no more than so many lines, and nothing is lost of the count. */
static void test_flood(void **state)
{
	char text[64];
	unsigned shown = 0;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		(void)snprintf(text, sizeof(text), "kind %c%c%c", 'a' + (int)(i % 26),
			       'a' + (int)(i / 26 % 26), 'a' + (int)(i / 676 % 26));
		shown += ask(text, 1000);
	}
	assert_int_equal(shown, LOG_LINES);
	/* another component is not kept from speaking */
	assert_true(log_limit_ask(&limit, LOG_HTTP, LOG_ERROR, "x", 1000, say, &said));
	log_limit_flush(&limit, 1001, true, say, &said);
	assert_int_equal(said.n, 1);
	assert_string_equal(
		said.text[0],
		"log lines suppressed because there were too many in one minute: 4800");
	assert_int_equal(limit.waiting, 0);
}

/* The count of an entry is logged before another kind replaces it. */
static void test_evicted(void **state)
{
	char text[64];

	(void)state;
	assert_true(ask("first", 0));
	assert_false(ask("first", 1));
	for (unsigned i = 0; i < LOG_KINDS; i++) {
		(void)snprintf(text, sizeof(text), "kind %c%c", 'a' + (int)(i % 26),
			       'a' + (int)(i / 26));
		assert_true(ask(text, 2));
	}
	assert_int_equal(said.n, 1);
	assert_string_equal(said.text[0], "first");
}

static void test_levels(void **state)
{
	static const char *const bad[] = {"",      "httpp=debug", "http=loud", "http=",
					  "=warn", "http=debug,", "loud",     "http debug"};
	struct err e = ERR_INIT;
	struct buf out;

	(void)state;
	log_init(LOG_WARN, false);
	assert_int_equal(log_configure("http=debug,write=error", &e), 0);
	assert_true(log_on(LOG_HTTP, LOG_DEBUG) && !log_on(LOG_FUSE, LOG_INFO));
	assert_true(log_on(LOG_WRITE, LOG_ERROR) && !log_on(LOG_WRITE, LOG_WARN));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(log_configure(bad[i], &e), -EINVAL);
		assert_int_equal(log_check(bad[i], &e), -EINVAL);
		assert_non_null(strstr(e.msg, "COMPONENT=LEVEL"));
	}
	assert_int_equal(log_configure("cache=debug,bad=debug", &e), -EINVAL);
	assert_false(log_on(LOG_CACHE, LOG_INFO)); /* nothing of it was taken */
	assert_int_equal(log_check("all=info:isolate=warn", &e), 0);
	assert_true(log_on(LOG_HTTP, LOG_DEBUG)); /* it changes nothing */
	assert_int_equal(log_configure("all=info:isolate=warn", &e), 0);
	buf_init(&out, 1000);
	log_levels(&out);
	buf_putc(&out, '\0');
	assert_string_equal((char *)out.data, "fuse=info,source=info,codec=info,cache=info,"
					      "http=info,write=info,isolate=warn");
	buf_release(&out);
	assert_int_equal(log_configure("error", &e), 0);
	assert_false(log_on(LOG_HTTP, LOG_WARN));
	log_init(LOG_WARN, false);
}

/* One write a line, and no control characters. */
static void test_line(void **state)
{
	int saved = dup(STDERR_FILENO), caught = memfd_create("log", MFD_CLOEXEC);
	char text[200] = "";
	ssize_t n;

	(void)state;
	assert_true(saved >= 0 && caught >= 0);
	(void)dup2(caught, STDERR_FILENO);
	log_error("one\ntwo %d", 3);
	log_error("one\ntwo %d", 3); /* a command says everything */
	log_limited();
	log_error("one\ntwo %d", 3);
	log_error("one\ntwo %d", 3);
	log_warn("four");
	log_note("five");
	log_info("not shown");
	(void)dup2(saved, STDERR_FILENO);
	n = pread(caught, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	assert_string_equal(text, "nczarrfs: error: one?two 3\n"
				  "nczarrfs: error: one?two 3\n"
				  "nczarrfs: error: one?two 3\n"
				  "nczarrfs: warning: four\n"
				  "nczarrfs: note: five\n");
	(void)close(saved);
	(void)close(caught);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_same, begin),
		cmocka_unit_test_setup(test_kind, begin),
		cmocka_unit_test_setup(test_long_after, begin),
		cmocka_unit_test_setup(test_flood, begin),
		cmocka_unit_test_setup(test_evicted, begin),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
