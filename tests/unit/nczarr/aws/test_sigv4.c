/* SPDX-License-Identifier: BSD-3-Clause */
/* AWS Signature V4: the published test suite ("aws-sig-v4-test-suite") and the examples of S3's
 * reference, as far as a service that encodes paths once has them. */
#include "nczarr/aws/sigv4.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SUITE_TIME 1440938160 /* 2015-08-30T12:36:00Z */
#define S3_TIME 1369353600    /* 2013-05-24T00:00:00Z */

static void expect(const struct s3_signing *in, const char *headers, const char *want)
{
	auto_buf got = buf_of(S3_SIGNED_MAX);
	struct err e = ERR_INIT;
	const char *line = NULL;
	char text[512];

	assert_int_equal(s3_sign(in, &got, &e), 0);
	snprintf(text, sizeof(text), "SignedHeaders=%s, Signature=%s", headers, want);
	do {
		line = buf_next(&got, line);
		assert_non_null(line);
	} while (strncmp(line, "Authorization: AWS4-HMAC-SHA256 Credential=", 43) != 0);
	assert_non_null(strstr(line, "SignedHeaders="));
	assert_string_equal(strstr(line, "SignedHeaders="), text);
}

static struct s3_signing suite(const char *method, const char *path, const char *query,
			       const char *const *headers)
{
	return (struct s3_signing){
		.method = method,
		.host = "example.amazonaws.com",
		.path = path,
		.query = query,
		.headers = headers,
		.payload = EMPTY,
		.region = "us-east-1",
		.service = "service",
		.access_key = "AKIDEXAMPLE",
		.secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
		.now = SUITE_TIME,
	};
}

static void test_suite(void **state NZ_UNUSED)
{
	static const struct {
		const char *name, *method, *path, *query, *headers[4], *names, *want;
	} rows[] = {
		{"get-vanilla",
		 "GET",
		 "/",
		 NULL,
		 {NULL},
		 "host;x-amz-date",
		 "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla",
		 "POST",
		 "/",
		 NULL,
		 {NULL},
		 "host;x-amz-date",
		 "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case",
		 "GET",
		 "/",
		 "Param2=value2&Param1=value1",
		 {NULL},
		 "host;x-amz-date",
		 "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"get-unreserved",
		 "GET",
		 "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		 NULL,
		 {NULL},
		 "host;x-amz-date",
		 "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		{"get-header-value-trim",
		 "GET",
		 "/",
		 NULL,
		 {"My-Header1: value1", "My-Header2:  \"a   b   c\"", NULL},
		 "host;my-header1;my-header2;x-amz-date",
		 "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{"get-header-key-duplicate",
		 "GET",
		 "/",
		 NULL,
		 {"My-Header1:value2", "My-Header1:value2", "My-Header1:value1", NULL},
		 "host;my-header1;x-amz-date",
		 "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
		{"get-utf8",
		 "GET",
		 "/%E1%88%B4",
		 NULL,
		 {NULL},
		 "host;x-amz-date",
		 "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		{"get-vanilla-utf8-query",
		 "GET",
		 "/",
		 "%E1%88%B4=bar",
		 {NULL},
		 "host;x-amz-date",
		 "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct s3_signing in =
			suite(rows[i].method, rows[i].path, rows[i].query, rows[i].headers);

		expect(&in, rows[i].names, rows[i].want);
	}
}

static void test_suite_token(void **state NZ_UNUSED)
{
	struct s3_signing in = suite("POST", "/", NULL, NULL);

	in.token = "AQoDYXdzEPT//////////"
		   "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwA"
		   "eMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/"
		   "qkPpKPi/"
		   "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9"
		   "HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+"
		   "scqKmlzm8FDrypN"
		   "C9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
	expect(&in, "host;x-amz-date;x-amz-security-token",
	       "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead");
}

static struct s3_signing s3(const char *method, const char *path, const char *query)
{
	return (struct s3_signing){
		.method = method,
		.host = "examplebucket.s3.amazonaws.com",
		.path = path,
		.query = query,
		.payload = EMPTY,
		.say_payload = true,
		.region = "us-east-1",
		.service = "s3",
		.access_key = "AKIAIOSFODNN7EXAMPLE",
		.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		.now = S3_TIME,
	};
}

static void test_s3_get(void **state NZ_UNUSED)
{
	struct s3_signing in = s3("GET", "/test.txt", NULL);
	const char *const headers[] = {"Range: bytes=0-9", NULL};

	in.headers = headers;
	expect(&in, "host;range;x-amz-content-sha256;x-amz-date",
	       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void test_s3_put(void **state NZ_UNUSED)
{
	struct s3_signing in = s3("PUT", "/test%24file.text", NULL);
	const char *const headers[] = {"Date: Fri, 24 May 2013 00:00:00 GMT",
				       "x-amz-storage-class: REDUCED_REDUNDANCY", NULL};
	char digest[S3_HEX_SHA256];
	struct err e = ERR_INIT;

	assert_int_equal(s3_digest("Welcome to Amazon S3.", -1, 0, 21, digest, NULL, &e), 0);
	in.headers = headers;
	in.payload = digest;
	expect(&in, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
	       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void test_s3_queries(void **state NZ_UNUSED)
{
	struct s3_signing in = s3("GET", "/", "lifecycle");

	expect(&in, "host;x-amz-content-sha256;x-amz-date",
	       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	in.query = "prefix=J&max-keys=2";
	expect(&in, "host;x-amz-content-sha256;x-amz-date",
	       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_headers(void **state NZ_UNUSED)
{
	struct s3_signing in = s3("GET", "/", NULL);
	const char *many[S3_HEADERS_MAX + 1], *const bad[] = {"no colon", NULL};
	auto_buf got = buf_of(S3_SIGNED_MAX);
	struct err e = ERR_INIT;
	const char *line;

	for (size_t i = 0; i < S3_HEADERS_MAX; i++)
		many[i] = "a: b";
	many[S3_HEADERS_MAX] = NULL;
	in.headers = many;
	assert_int_equal(s3_sign(&in, &got, &e), -EINVAL);
	in.headers = bad;
	assert_int_equal(s3_sign(&in, &got, &e), -EINVAL);
	in.headers = NULL;
	in.now = INT64_MAX;
	assert_int_equal(s3_sign(&in, &got, &e), -EINVAL);
	assert_int_equal(got.len, 0);
	in.now = S3_TIME;
	in.token = "t/+=";
	assert_int_equal(s3_sign(&in, &got, &e), 0);
	line = buf_next(&got, NULL);
	assert_string_equal(line, "x-amz-date: 20130524T000000Z");
	line = buf_next(&got, line);
	assert_string_equal(line, "x-amz-content-sha256: " EMPTY);
	line = buf_next(&got, line);
	assert_int_equal(strncmp(line, "Authorization: ", 15), 0);
	assert_null(strstr(line, in.secret_key));
	line = buf_next(&got, line);
	assert_string_equal(line, "x-amz-security-token: t/+=");
	assert_null(buf_next(&got, line));
}

/* a header that is the beginning of another one and '-' sorts before it */
static void test_prefixes_sort(void **state NZ_UNUSED)
{
	struct s3_signing in = s3("GET", "/", NULL);
	const char *const headers[] = {"x-amz-meta-a-b: w", "X-Amz-Meta-a: v1  v2", NULL};
	struct err e = ERR_INIT;
	struct buf out;

	in.headers = headers;
	buf_init(&out, 4096);
	assert_int_equal(s3_canonical(&in, &out, &e), 0);
	buf_putc(&out, '\0');
	assert_string_equal(
		(const char *)out.data,
		"GET\n/\n\nhost:examplebucket.s3.amazonaws.com\n"
		"x-amz-content-sha256:" EMPTY "\nx-amz-date:20130524T000000Z\n"
		"x-amz-meta-a:v1 v2\nx-amz-meta-a-b:w\n\n"
		"host;x-amz-content-sha256;x-amz-date;x-amz-meta-a;x-amz-meta-a-b\n" EMPTY);
	buf_release(&out);
}

static void test_query_put(void **state NZ_UNUSED)
{
	struct buf q;

	buf_init(&q, 4096);
	s3_query_put(&q, "delimiter", "/");
	s3_query_put(&q, "prefix", "a b+c\xc3\xa9~");
	buf_putc(&q, '\0');
	assert_string_equal((const char *)q.data, "delimiter=%2F&prefix=a%20b%2Bc%C3%A9~");
	buf_release(&q);
}

static void test_digests(void **state NZ_UNUSED)
{
	char sha[S3_HEX_SHA256], other[S3_HEX_SHA256], md5[33];
	size_t n = 700001;
	uint8_t *data = malloc(n);
	FILE *f = tmpfile();
	struct err e = ERR_INIT;

	assert_non_null(data);
	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fflush(f), 0);
	assert_int_equal(s3_digest(data + 5, -1, 0, n - 5, sha, NULL, &e), 0);
	assert_int_equal(s3_digest(NULL, fileno(f), 5, n - 5, other, md5, &e), 0);
	assert_string_equal(sha, other);
	assert_int_equal(s3_digest(NULL, fileno(f), 6, n - 5, other, md5, &e), -EIO);
	assert_int_equal(s3_digest("", -1, 0, 0, sha, md5, &e), 0);
	assert_string_equal(sha, EMPTY);
	assert_true(!*md5 || !strcmp(md5, "d41d8cd98f00b204e9800998ecf8427e"));
	fclose(f);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite),         cmocka_unit_test(test_suite_token),
		cmocka_unit_test(test_s3_get),        cmocka_unit_test(test_s3_put),
		cmocka_unit_test(test_s3_queries),    cmocka_unit_test(test_headers),
		cmocka_unit_test(test_prefixes_sort), cmocka_unit_test(test_query_put),
		cmocka_unit_test(test_digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
