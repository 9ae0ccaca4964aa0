/* SPDX-License-Identifier: BSD-3-Clause */
/* test_conf_json.c - a codec's JSON: members and their kinds, and all that is not JSON. */
#include "tests/unit/codecs/util.h"

#include "codecs/export/conf_json.h"

#include <locale.h>

static struct codec_json *open_json(const char *text, int want)
{
	struct codec_json *j = calloc(1, sizeof(*j));
	size_t n = strlen(text);
	char *exact = malloc(n ? n : 1); /* so that a read behind the end is seen */

	assert_non_null(j);
	assert_non_null(exact);
	memcpy(exact, text, n);
	assert_int_equal(codec_json_open(exact, n, 4, j), want);
	free(exact);
	return j;
}

static void close_json(struct codec_json *j)
{
	codec_json_close(j);
	free(j);
}

static void test_kinds(void **state)
{
	struct codec_json *j = open_json(
		" { \"id\" : \"blosc\", \"a\":5,\"b\":\"6\", \"c\": -7.0, \"d\": null,\n"
		"\"e\": true, \"f\": [1, {\"x\": [ ] }, \"]\"], \"g\": 2.5e-1, \"h\":1e400, "
		"\"i\": {} } ",
		0);
	const struct codec_conf *c = &j->conf;
	const char *text;
	int64_t i = 0;
	double d = 0;

	(void)state;
	assert_int_equal(c->version, 2);
	assert_int_equal(c->elem_size, 4);
	assert_int_equal(c->text(c->arg, "id", &text), 0);
	assert_string_equal(text, "blosc");
	assert_int_equal(c->integer(c->arg, "a", &i), 0);
	assert_int_equal(i, 5);
	assert_int_equal(c->integer(c->arg, "b", &i), 0);
	assert_int_equal(i, 6);
	assert_int_equal(c->integer(c->arg, "c", &i), 0);
	assert_int_equal(i, -7);
	assert_int_equal(c->integer(c->arg, "d", &i), -ENOENT);
	assert_int_equal(c->integer(c->arg, "z", &i), -ENOENT);
	assert_int_equal(c->integer(c->arg, "id", &i), -EINVAL);
	assert_int_equal(c->integer(c->arg, "e", &i), -EINVAL);
	assert_int_equal(c->integer(c->arg, "g", &i), -EINVAL);
	assert_int_equal(c->integer(c->arg, "h", &i), -EINVAL);
	assert_int_equal(c->real(c->arg, "g", &d), 0);
	assert_true(d == 0.25);
	assert_int_equal(c->real(c->arg, "b", &d), -EINVAL);
	assert_int_equal(c->text(c->arg, "f", &text), -EINVAL);
	assert_int_equal(c->text(c->arg, "i", &text), -EINVAL);
	close_json(j);
	close_json(open_json("{}", 0));
}

static void test_texts(void **state)
{
	struct codec_json *j =
		open_json("{\"\\u0061\\n\": \"\\\"\\\\\\/\\u00e9\\ud83d\\ude00\"}", 0);
	const char *text;

	(void)state;
	assert_int_equal(j->conf.text(j->conf.arg, "a\n", &text), 0);
	assert_string_equal(text, "\"\\/\xc3\xa9\xf0\x9f\x98\x80");
	close_json(j);
}

/* A program with commas in its numbers must not change what "0.5" means. */
static void test_locale(void **state)
{
	struct codec_json *j = open_json("{\"a\": 0.5}", 0);
	double d = 0;

	(void)state;
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
		(void)setlocale(LC_NUMERIC, "fr_FR.UTF-8"); /* neither: then as it is */
	assert_int_equal(j->conf.real(j->conf.arg, "a", &d), 0);
	(void)setlocale(LC_NUMERIC, "C");
	assert_true(d == 0.5);
	close_json(j);
}

static void test_not_json(void **state)
{
	static const char *const bad[] = {
		"",
		"null",
		"[]",
		"{",
		"}",
		"{} x",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{,}",
		"{\"a\":1 \"b\":2}",
		"{\"a\":1,\"a\":1}",
		"{\"a\":01}",
		"{\"a\":+1}",
		"{\"a\":1.}",
		"{\"a\":.5}",
		"{\"a\":1e}",
		"{\"a\":-}",
		"{\"a\":NaN}",
		"{\"a\":tru}",
		"{\"a\":\"\x01\"}",
		"{\"a\":\"\\x\"}",
		"{\"a\":\"\\u00\"}",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"\\ud800\"}",
		"{\"a\":\"\\udc00\"}",
		"{\"a\":\"\\ud800\\u0041\"}",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"b}",
		"{\"a\":\"\\",
		"{'a':1}",
		"{\"a\":[1,]}",
		"{\"a\":[1}",
		"{\"a\":{1:2}}",
		"{\"a\":{\"b\"}}",
		"{\"a\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		close_json(open_json(bad[i], -EBADMSG));
}

/* Each cut of a valid text is refused, and read no further than it goes. */
static void test_cut(void **state)
{
	static const char whole[] =
		"{\"id\":\"zstd\",\"a\":[1,-2.5e+3,{\"\\u20ac\":null}],\"b\":false}";
	char text[sizeof(whole)];

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		memcpy(text, whole, n);
		text[n] = '\0';
		close_json(open_json(text, -EBADMSG));
	}
	close_json(open_json(whole, 0));
}

static void test_limits(void **state)
{
	struct codec_json *j;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	buf_puts(&b, "{\"m0\":0");
	for (int i = 1; i < CODEC_JSON_MEMBERS; i++)
		buf_printf(&b, ",\"m%d\":%d", i, i);
	buf_put(&b, "}", 2);
	close_json(open_json((const char *)b.data, 0));
	b.len -= 2;
	buf_put(&b, ",\"n\":0}", 8);
	close_json(open_json((const char *)b.data, -EBADMSG));
	buf_clear(&b);
	buf_puts(&b, "{\"m\":\"");
	for (int i = 0; i < CODEC_JSON_MAX; i++)
		buf_putc(&b, 'x');
	buf_put(&b, "\"}", 3);
	j = open_json((const char *)b.data, -ERANGE);
	close_json(j);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),  cmocka_unit_test(test_texts),
		cmocka_unit_test(test_locale), cmocka_unit_test(test_not_json),
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
