/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of remote datasets, and their parts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mountcfg/address/address.h"

/* good - parse a valid address; release it. */
static struct address good(const char *text)
{
	struct address a;
	struct err e = ERR_INIT;

	if (address_parse(text, &a, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return a;
}

static void same(const char *what, const char *text, const char *got, const char *want)
{
	if ((got == NULL) != (want == NULL) || (got && strcmp(got, want) != 0))
		fail_msg("%s: %s is '%s', not '%s'", text, what, got ? got : "(none)",
			 want ? want : "(none)");
}

/* HTTP: the URL that keys are appended to, query, kind, name. */
static void http(const char *text, const char *url, const char *query, enum address_what what,
		 const char *name)
{
	struct address a = good(text);

	if (a.kind != ADDRESS_HTTP || a.what != what)
		fail_msg("%s: kind %d, what %d", text, (int)a.kind, (int)a.what);
	same("url", text, a.url, url);
	same("query", text, a.query, query);
	same("name", text, a.name, name);
	assert_null(a.bucket);
	address_release(&a);
}

/* S3: endpoint, bucket, key, region, kind. */
static void s3(const char *text, enum address_kind kind, const char *url, const char *bucket,
	       const char *key, const char *region, enum address_what what)
{
	struct address a = good(text);

	if (a.kind != kind || a.what != what)
		fail_msg("%s: kind %d, what %d", text, (int)a.kind, (int)a.what);
	same("url", text, a.url, url);
	same("bucket", text, a.bucket, bucket);
	same("key", text, a.key, key);
	same("region", text, a.region, region);
	assert_null(a.user);
	address_release(&a);
}

static void refused(const char *text, int rc, const char *say)
{
	struct address a;
	struct err e = ERR_INIT;
	int got = address_parse(text, &a, &e);

	if (got != rc || !strstr(e.msg, say))
		fail_msg("%s: %d, '%s'", text, got, e.msg);
	assert_null(strstr(e.msg, "secret"));
}

static void test_paths(void **state)
{
	static const char *const paths[] = {"a.nc",      "/a/b.zarr", "./x#mode=zarr",
					    "http:/x",   "c:\\x",     "://x",
					    "1http://x", "a b://x",   "-http://x"};
	struct address a;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_false(address_is_remote(paths[i]));
		a = good(paths[i]);
		assert_int_equal(a.kind, ADDRESS_PATH);
		assert_string_equal(a.path, paths[i]);
		address_release(&a);
	}
	a = good("file:///tmp/a%20b%23.zarr#mode=nczarr,file");
	assert_string_equal(a.path, "/tmp/a b#.zarr");
	assert_string_equal(a.name, "a b#.zarr");
	assert_true(a.mode_nczarr && !a.mode_zarr);
	address_release(&a);
	a = good("FILE://rel/x.zarr#mode=noxarray,zip");
	assert_string_equal(a.path, "rel/x.zarr");
	assert_true(a.mode_nczarr && a.mode_zarr && a.mode_noxarray);
	address_release(&a);
	a = good("file://localhost/x");
	assert_string_equal(a.path, "/x");
	address_release(&a);
	assert_false(address_is_remote("file:///x"));
	assert_true(address_is_remote("s3://x"));
	refused("file://", -EINVAL, "without a path");
	refused("file:///x?y", -EINVAL, "%3F");
	refused("file:///x%0", -EINVAL, "%");
	refused("file:///x%00y", -EINVAL, "%");
	refused("file:///x#mode=s3", -EINVAL, "local path");
	refused("file:///x#mode=bytes", -EINVAL, "local path");
	refused("file:///x#mode=dap2", -EOPNOTSUPP, "OPeNDAP");
}

static void test_http(void **state)
{
	(void)state;
	http("http://h/a.zarr", "http://h/a.zarr", NULL, ADDRESS_TREE, "a.zarr");
	http("HTTPS://H:8443/d/a.zarr/", "https://h:8443/d/a.zarr", NULL, ADDRESS_TREE,
	     "a.zarr");
	http("https://h/a.nc", "https://h/a.nc", NULL, ADDRESS_FILE, "a.nc");
	http("https://h/A.NC4", "https://h/A.NC4", NULL, ADDRESS_FILE, "A.NC4");
	http("https://h/x.zarr.zip", "https://h/x.zarr.zip", NULL, ADDRESS_FILE, "x.zarr.zip");
	http("https://h/x", "https://h/x", NULL, ADDRESS_ANY, "x");
	http("https://h/x/", "https://h/x", NULL, ADDRESS_TREE, "x");
	http("https://h", "https://h", NULL, ADDRESS_ANY, "h");
	http("https://h/", "https://h", NULL, ADDRESS_TREE, "h");
	http("https://h//", "https://h", NULL, ADDRESS_TREE, "h");
	http("https://h/a%20b.zarr", "https://h/a%20b.zarr", NULL, ADDRESS_TREE, "a b.zarr");
	http("http://[::1]:80/a.zarr", "http://[::1]:80/a.zarr", NULL, ADDRESS_TREE, "a.zarr");
	http("http://h/a.zarr?v=1&w", "http://h/a.zarr", "v=1&w", ADDRESS_TREE, "a.zarr");
	http("http://h/a.nc#mode=zarr", "http://h/a.nc", NULL, ADDRESS_TREE, "a.nc");
	http("http://h/a.zarr#mode=bytes", "http://h/a.zarr", NULL, ADDRESS_FILE, "a.zarr");
	http("http://h/a.zarr#bytes", "http://h/a.zarr", NULL, ADDRESS_FILE, "a.zarr");
	http("http://h/a#mode=zarr,bytes", "http://h/a", NULL, ADDRESS_FILE, "a");
	http("http://h/a#mode=zip", "http://h/a", NULL, ADDRESS_FILE, "a");
	http("http://h/a#xarray&log", "http://h/a", NULL, ADDRESS_TREE, "a");
	http("http://h/a#sha=1", "http://h/a", NULL, ADDRESS_ANY, "a");
	http("http://h/a#", "http://h/a", NULL, ADDRESS_ANY, "a");
	/* an address with a signature or password is requested as it is */
	http("https://b.s3.amazonaws.com/x.nc?X-Amz-Signature=secret",
	     "https://b.s3.amazonaws.com/x.nc", "X-Amz-Signature=secret", ADDRESS_FILE, "x.nc");
	http("https://b.s3-website-us-east-1.amazonaws.com/x.nc",
	     "https://b.s3-website-us-east-1.amazonaws.com/x.nc", NULL, ADDRESS_FILE, "x.nc");
	http("https://d1.cloudfront.net/x.nc", "https://d1.cloudfront.net/x.nc", NULL,
	     ADDRESS_FILE, "x.nc");
}

static void test_secrets(void **state)
{
	struct address a = good("https://me:secret@h/a.nc?token=secret&v=2#mode=bytes");

	(void)state;
	assert_string_equal(a.user, "me");
	assert_string_equal(a.password, "secret");
	assert_string_equal(a.url, "https://h/a.nc");
	assert_null(strstr(a.shown, "secret"));
	assert_null(strstr(a.shown, "me@"));
	assert_null(strchr(a.shown, '#'));
	address_release(&a);
	a = good("s3://Bucket/Key#mode=zarr"); /* case is significant */
	assert_string_equal(a.shown, "s3://Bucket/Key");
	address_release(&a);
	a = good("http://u%40x:p%3Aq@h/a.nc");
	assert_string_equal(a.user, "u@x");
	assert_string_equal(a.password, "p:q");
	address_release(&a);
	refused("s3://key:secret@bucket/x", -EINVAL, "~/.aws/credentials");
	refused("https://key:secret@h/b/x#mode=s3", -EINVAL, "~/.aws/credentials");
	refused("https://key:secret@h:port/x", -EINVAL, "");
	refused("https://key:sec/secret@h/x", -EINVAL, "");
	refused("ftp://me:secret@h/x", -EINVAL, "unknown protocol");
	refused("dap4://me:secret@h/x", -EOPNOTSUPP, "OPeNDAP");
	refused("http://me:secret@h/x%", -EINVAL, "");
}

static void test_buckets(void **state)
{
	(void)state;
	s3("s3://b/a.zarr", ADDRESS_S3, NULL, "b", "a.zarr", NULL, ADDRESS_TREE);
	s3("s3://My_Bucket.x/d/a.nc", ADDRESS_S3, NULL, "My_Bucket.x", "d/a.nc", NULL,
	   ADDRESS_FILE);
	s3("s3://b", ADDRESS_S3, NULL, "b", "", NULL, ADDRESS_ANY);
	s3("s3://b/", ADDRESS_S3, NULL, "b", "", NULL, ADDRESS_TREE);
	s3("s3://b/a%2Bb%20c/x#mode=nczarr,s3&aws.region=eu-west-1", ADDRESS_S3, NULL, "b",
	   "a+b c/x", "eu-west-1", ADDRESS_TREE);
	s3("gs://b/a%2Bb/c.zarr", ADDRESS_GS3, NULL, "b", "a+b/c.zarr", NULL, ADDRESS_TREE);
	s3("gs3://b/a/b", ADDRESS_GS3, NULL, "b", "a/b", NULL, ADDRESS_ANY);
	s3("https://b.s3.eu-west-1.amazonaws.com/k.nc", ADDRESS_S3, NULL, "b", "k.nc",
	   "eu-west-1", ADDRESS_FILE);
	s3("https://my.dotted.b.s3.amazonaws.com/k.nc#mode=bytes", ADDRESS_S3, NULL,
	   "my.dotted.b", "k.nc", NULL, ADDRESS_FILE);
	s3("https://b.s3-us-west-2.amazonaws.com/k", ADDRESS_S3, NULL, "b", "k", "us-west-2",
	   ADDRESS_ANY);
	s3("https://storage.googleapis.com/b/k", ADDRESS_GS3, NULL, "b", "k", NULL,
	   ADDRESS_ANY);
	s3("https://s3.amazonaws.com/b/k/", ADDRESS_S3, NULL, "b", "k", NULL, ADDRESS_TREE);
	s3("http://s3.us-east-2.amazonaws.com/b/k/l", ADDRESS_S3, NULL, "b", "k/l", "us-east-2",
	   ADDRESS_ANY);
	s3("https://s3.us-east-2.amazonaws.com/b/k#aws.region=x-1", ADDRESS_S3, NULL, "b", "k",
	   "x-1", ADDRESS_ANY);
	s3("https://b.s3.dualstack.us-east-2.amazonaws.com/k", ADDRESS_S3,
	   "https://s3.dualstack.us-east-2.amazonaws.com", "b", "k", "us-east-2", ADDRESS_ANY);
	s3("https://s3.cn-north-1.amazonaws.com.cn/b/k", ADDRESS_S3,
	   "https://s3.cn-north-1.amazonaws.com.cn", "b", "k", "cn-north-1", ADDRESS_ANY);
	s3("https://s3.s3.s3.amazonaws.com/k", ADDRESS_S3, NULL, "s3.s3", "k", NULL,
	   ADDRESS_ANY);
	s3("https://storage.googleapis.com/b/k", ADDRESS_GS3, NULL, "b", "k", NULL,
	   ADDRESS_ANY);
	s3("https://b.storage.googleapis.com/k", ADDRESS_GS3, NULL, "b", "k", NULL,
	   ADDRESS_ANY);
	s3("s3://s3.us-east-2.amazonaws.com/b/k", ADDRESS_S3, NULL, "b", "k", "us-east-2",
	   ADDRESS_ANY);
	s3("s3://localhost/b/k", ADDRESS_S3, "https://localhost", "b", "k", NULL, ADDRESS_ANY);
	s3("http://127.0.0.1:7480/b/k.zarr#mode=s3", ADDRESS_S3, "http://127.0.0.1:7480", "b",
	   "k.zarr", NULL, ADDRESS_TREE);
	s3("https://minio.example.org/b/d/k.nc#s3", ADDRESS_S3, "https://minio.example.org",
	   "b", "d/k.nc", NULL, ADDRESS_FILE);
	s3("https://b.s3.eu-central-003.example.com/k#mode=s3", ADDRESS_S3,
	   "https://s3.eu-central-003.example.com", "b", "k", "eu-central-003", ADDRESS_ANY);
	s3("https://s3.example.com/b/k#mode=s3", ADDRESS_S3, "https://s3.example.com", "b", "k",
	   NULL, ADDRESS_ANY);
	s3("http://[::1]:9000/b/k#mode=s3", ADDRESS_S3, "http://[::1]:9000", "b", "k", NULL,
	   ADDRESS_ANY);
}

static void test_fragment(void **state)
{
	struct address a = good("s3://b/k#AWS.PROFILE=me%20too&aws.Region=US-west-9&MODE=Zarr");

	(void)state;
	assert_string_equal(a.profile, "me too");
	assert_string_equal(a.region, "US-west-9");
	assert_true(a.mode_zarr && a.mode_nczarr && !a.mode_noxarray);
	address_release(&a);
	a = good("s3://b/k#mode=nczarr,noxarray,xarray,s3&aws.profile=a&aws.profile=b");
	assert_string_equal(a.profile, "b");
	assert_true(a.mode_zarr && a.mode_noxarray);
	address_release(&a);
	a = good("s3://b/k#aws.profile=&aws.region=");
	assert_null(a.profile);
	assert_null(a.region);
	address_release(&a);
	refused("s3://b/k#mode=zar", -EINVAL, "did you mean 'zarr'");
	refused("s3://b/k#mode=quite-else", -EINVAL, "use zarr");
	refused("s3://b/k#mdoe=zarr", -EINVAL, "did you mean '#mode='");
	refused("s3://b/k#aws.profil=x", -EINVAL, "aws.profile");
	refused("s3://b/k#aws.region=evil.example.org/", -EINVAL, "aws.region");
	refused("s3://b/k#aws.profile=%", -EINVAL, "%");
	refused("http://h/k#mode=udf0", -EOPNOTSUPP, "udf0");
	refused("http://h/k#dap4", -EOPNOTSUPP, "OPeNDAP");
	refused("http://h/k#mode=file", -EINVAL, "leave it out");
	refused("http://h/k#mode=zarr,file", -EINVAL, "leave it out");
}

static void test_hostile(void **state)
{
	static char deep[20000];
	struct address a;

	(void)state;
	refused("http://", -EINVAL, "");
	refused("http:///x", -EINVAL, "");
	refused("s3://", -EINVAL, "");
	refused("s3:///x", -EINVAL, "");
	refused("s3://b?x", -EINVAL, "%3F");
	refused("s3://..", -EINVAL, "");
	refused("s3://b%2Fc/k", -EINVAL, "");
	refused("http://h/..%2f..%2fetc#mode=s3", -EINVAL, "no bucket");
	refused("http://h/%2e%2e/k#mode=s3", -EINVAL, "no bucket");
	refused("http://h/#mode=s3", -EINVAL, "no bucket");
	refused("http://h/a%2Fb.nc", -EINVAL, "not a valid name");
	refused("http://h/x/..", -EINVAL, "");
	refused("http://h/x/%2e%2e", -EINVAL, "");
	refused("http://h/x%00", -EINVAL, "");
	refused("http://h/x y", -EINVAL, "");
	refused("http://h/x\ny", -EINVAL, "");
	refused("http://h:99999/x", -EINVAL, "");
	refused("s3://b#mode=bytes", -EINVAL, "a bucket is not a file");
	refused("gs://u:p@b/k", -EINVAL, "no user and password");
	refused("s3a://b/k", -EINVAL, "s3://");
	memset(deep, 'a', sizeof(deep) - 1);
	memcpy(deep, "http://h/", 9);
	assert_int_equal(address_parse(deep, &a, NULL), -EINVAL);
	memcpy(deep, "file:///", 8);
	if (address_parse(deep, &a, NULL) == 0)
		address_release(&a);
	memset(deep + 8, '#', sizeof(deep) - 9);
	if (address_parse(deep, &a, NULL) == 0)
		address_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),    cmocka_unit_test(test_http),
		cmocka_unit_test(test_secrets),  cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_fragment), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
