/* SPDX-License-Identifier: BSD-3-Clause */
/* test_xml.c - answers of S3 that are damaged or hostile, times, and files of
 * AWS's tools. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* page - what a listing emits, as text. */
struct seen {
	char text[512];
	size_t most;
};

static bool note(void *arg, const char *key, bool is_prefix, const struct object_info *info)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);

	snprintf(s->text + n, sizeof(s->text) - n, "%s%s=%llu%s ", key, is_prefix ? "*" : "",
		 info ? (unsigned long long)info->size : 0, info ? info->etag : "");
	return s->most == 0 || --s->most > 0;
}

static int list(const char *xml, struct seen *seen, struct s3_page *page)
{
	struct err e = ERR_INIT;

	*seen = (struct seen){.most = seen->most};
	return s3_xml_list(xml, strlen(xml), note, seen, page, &e);
}

#define HEAD "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">"
#define ROW                                                                                    \
	"<Contents><Key>a+b%2Bc</Key><LastModified>2020-01-02T03:04:05.678Z</LastModified>"    \
	"<ETag>&quot;e&quot;</ETag><Size>7</Size><Owner><ID>1</ID></Owner></Contents>"

static void test_list(void **state NZ_UNUSED)
{
	struct s3_page page;
	struct seen seen = {.most = 0};

	assert_int_equal(list(HEAD ROW
			      "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
			      "<IsTruncated>true</IsTruncated><NextContinuationToken>t+/="
			      "</NextContinuationToken></ListBucketResult>",
			      &seen, &page),
			 0);
	assert_string_equal(seen.text, "a+b%2Bc=7\"e\" p/*=0 ");
	assert_true(page.truncated);
	assert_string_equal(page.token, "t+/=");
	assert_int_equal(list(HEAD "<EncodingType>url</EncodingType>" ROW "</ListBucketResult>",
			      &seen, &page),
			 0);
	assert_string_equal(seen.text, "a b+c=7\"e\" ");
	/* what says so may come last */
	assert_int_equal(list(HEAD ROW "<EncodingType>url</EncodingType></ListBucketResult>",
			      &seen, &page),
			 0);
	assert_string_equal(seen.text, "a b+c=7\"e\" ");
	seen.most = 1;
	assert_int_equal(list(HEAD ROW ROW "</ListBucketResult>", &seen, &page), 0);
	assert_true(page.stopped);
	assert_int_equal(page.entries, 1);
}

static void test_list_bad(void **state NZ_UNUSED)
{
	static const char *const bad[] = {
		"",
		"no xml",
		HEAD,
		HEAD ROW,
		"<Error><Code>x</Code></Error>",
		"<!DOCTYPE a [<!ENTITY b \"c\">]>" HEAD "</ListBucketResult>",
		HEAD "<Contents><Key>k</Key></Contents></ListBucketResult>",
		HEAD "<Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>"
		     "</ListBucketResult>",
		HEAD "<EncodingType>url</EncodingType><Contents><Key>%0</Key><Size>1</Size>"
		     "</Contents></ListBucketResult>",
		HEAD "<EncodingType>url</EncodingType><Contents><Key>%00</Key><Size>1</Size>"
		     "</Contents></ListBucketResult>",
		HEAD "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
	};
	struct s3_page page;
	struct seen seen = {.most = 0};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(list(bad[i], &seen, &page), -EBADMSG);
}

static void test_text(void **state NZ_UNUSED)
{
	static const char xml[] =
		"<a xmlns:n=\"m\"><n:b>one<c/> &amp; two</n:b><b>three</b></a>";
	char out[32];

	assert_true(s3_xml_text(xml, strlen(xml), "b", out, sizeof(out)));
	assert_string_equal(out, "one & two");
	assert_false(s3_xml_text(xml, strlen(xml), "none", out, sizeof(out)));
	assert_false(s3_xml_text(xml, strlen(xml), "b", out, 4));
	assert_false(s3_xml_text("<a><b>on", 8, "b", out, sizeof(out)));
	assert_false(s3_xml_text(NULL, 0, "b", out, sizeof(out)));
	assert_int_equal(s3_xml_root(xml, strlen(xml), "a"), 1);
	assert_int_equal(s3_xml_root(xml, strlen(xml), "b"), 0);
	assert_int_equal(s3_xml_root("<Error", 6, "Error"), 0);
	assert_int_equal(s3_xml_root("<Error><Code>", 13, "Error"), 1);
}

static void test_times(void **state NZ_UNUSED)
{
	static const char *const bad[] = {"",
					  "2020",
					  "2020-13-01T00:00:00Z",
					  "2020-01-01 00:00:00Z",
					  "2020-01-01T00:00:00+01:00",
					  "1960-01-01T00:00:00Z",
					  "2020-01-01T00:00:0xZ"};
	int64_t s, ns;

	assert_int_equal(aws_time("2009-02-13T23:31:30Z", &s, &ns), 0);
	assert_int_equal(s, 1234567890);
	assert_int_equal(aws_time("2009-02-13T23:31:30.25Z", &s, &ns), 0);
	assert_int_equal(ns, 1234567890250000000);
	assert_int_equal(aws_time("9999-12-31T23:59:59Z", &s, NULL), 0);
	assert_int_equal(aws_time("9999-12-31T23:59:59Z", &s, &ns), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(aws_time(bad[i], &s, &ns), -EINVAL);
}

/* profile - what a file says of a profile. */
static int profile(const char *text, size_t n, const char *name, struct aws_profile *ret)
{
	char path[] = "profile-XXXXXX";
	struct err e = ERR_INIT;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	close(fd);
	rc = aws_profile_read(path, NULL, name, ret, &e);
	unlink(path);
	return rc;
}

static void test_profiles(void **state NZ_UNUSED)
{
	static const char text[] = "\xef\xbb\xbf[profile a]\r\nregion=one\r\n"
				   "[ profile  b ] ; more\naws_access_key_id = K = 1\n"
				   "s3 =\n  region = nested\nRegion = two\n"
				   "[sso-session b]\nregion = three\n[c]";
	struct aws_profile p;

	assert_int_equal(profile(text, sizeof(text) - 1, "b", &p), 0);
	assert_true(p.found);
	assert_string_equal(p.access, "K = 1");
	assert_string_equal(p.region, "two");
	aws_profile_release(&p);
	assert_int_equal(profile(text, sizeof(text) - 1, "c", &p), 0);
	assert_true(p.found && !p.region);
	aws_profile_release(&p);
	assert_int_equal(profile("[a]\nx", 5, "a", &p), -EINVAL);
	assert_int_equal(profile("[a", 2, "a", &p), -EINVAL);
	assert_int_equal(profile("[a]\n\0b", 6, "a", &p), -EINVAL);
	assert_int_equal(profile("", 0, "a", &p), 0);
	assert_false(p.found);
	assert_int_equal(aws_profile_read("/none", "/none/none", "a", &p, NULL), 0);
	assert_false(p.found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),     cmocka_unit_test(test_list_bad),
		cmocka_unit_test(test_text),     cmocka_unit_test(test_times),
		cmocka_unit_test(test_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
