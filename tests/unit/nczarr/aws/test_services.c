/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys that services give out: containers, instances, roles. What they answer may be anything; what
 * goes into a request of ours, or into the log, is looked at first. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "nczarr/aws/aws.h"
#include "tests/unit/nczarr/http_server.h"

#define KEYS                                                                                   \
	"{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"SK\",\"Token\":\"T\","                  \
	"\"Expiration\":\"2040-01-01T00:00:00Z\"}"
#define ROLE_KEYS                                                                              \
	"<R><AccessKeyId>AK</AccessKeyId><SecretAccessKey>SK</SecretAccessKey>"                \
	"<SessionToken>T</SessionToken><Expiration>2040-01-01T00:00:00Z</Expiration></R>"

/* service - answers by the path that is asked for. */
struct service {
	struct ns_server s;
	struct http_client *net;
	const char *token, *roles, *keys, *status; /* status: of keys */
	char header[256], body[2048];
};

static bool answer(void *arg, struct ns_call *c)
{
	struct service *v = arg;
	const char *text = v->keys, *status = v->status;

	if (strcmp(c->path, "/latest/api/token") == 0)
		text = v->token;
	else if (strcmp(c->path, "/latest/meta-data/iam/security-credentials/") == 0)
		text = v->roles;
	if (text != v->keys)
		status = text ? "200 OK" : "404 No";
	(void)snprintf(v->body, sizeof(v->body), "%s", c->body);
	v->header[0] = '\0';
	(void)ns_header(c, "Authorization", v->header, sizeof(v->header));
	return ns_say(c, status, "", text ? text : "", text ? strlen(text) : 0);
}

static void begin(struct service *v, const char *keys)
{
	const struct http_client_options quick = {.connect_ms = 1000,
						  .stall_ms = 5000,
						  .total_ms = 20000,
						  .tries = 1,
						  .connections = 4,
						  .requests = 16};

	*v = (struct service){
		.token = "tok", .roles = "role\n", .keys = keys, .status = "200 OK"};
	ns_begin(&v->s, answer, v);
	assert_int_equal(http_client_new(&quick, &v->net, NULL), 0);
}

static void end(struct service *v)
{
	http_client_free(v->net);
	ns_end(&v->s);
}

static void set(const char *name, const char *text)
{
	assert_int_equal(text ? setenv(name, text, 1) : unsetenv(name), 0);
}

static void are_keys(struct aws_keys *k, const char *from)
{
	assert_non_null(k);
	assert_string_equal(k->access, "AK");
	assert_string_equal(k->secret, "SK");
	assert_string_equal(k->token, "T");
	assert_int_equal(k->expires, 2208988800);
	assert_non_null(strstr(k->from, from));
	aws_keys_release(k);
}

static char one_line[] = "/tmp/aws_services.XXXXXX";

static void put_line(const char *text)
{
	FILE *f = fopen(one_line, "wb");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

/* ---- containers ---- */

#define FULL "AWS_CONTAINER_CREDENTIALS_FULL_URI"
#define TOKEN_FILE "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"

static void container_fails(struct service *v, int code, const char *words)
{
	struct aws_keys *k = NULL;
	struct err e = ERR_INIT;
	int rc = aws_from_container(v->net, &k, &e);

	if (rc != code || !strstr(e.msg, words))
		fail_msg("%d '%s' instead of %d '%s'", rc, e.msg, code, words);
	assert_null(k);
}

static void test_container(void **state)
{
	struct aws_keys *k = NULL;
	struct err e = ERR_INIT;
	struct service v;
	char url[128];

	(void)state;
	begin(&v, KEYS);
	assert_int_equal(aws_from_container(v.net, &k, &e), 0); /* nothing says that it is one */
	assert_null(k);
	(void)snprintf(url, sizeof(url), "%s/keys", v.s.url);
	set(FULL, url);
	assert_int_equal(aws_from_container(v.net, &k, &e), 0);
	are_keys(k, "the container credentials service");
	assert_string_equal(v.header, "");
	put_line("the token\r\n");
	set(TOKEN_FILE, one_line);
	assert_int_equal(aws_from_container(v.net, &k, &e), 0);
	are_keys(k, "the container credentials service");
	assert_string_equal(v.header, "the token");
	put_line("two\nlines\n");
	container_fails(&v, -EINVAL, "has more than one line");
	set(TOKEN_FILE, "/nowhere");
	container_fails(&v, -ENOENT, "'/nowhere'");
	set(TOKEN_FILE, "/tmp");
	container_fails(&v, -EINVAL, "'/tmp' is not a regular file of at most");
	set(TOKEN_FILE, NULL);
	v.keys = "{\"AccessKeyId\":\"AK\"}";
	container_fails(&v, -EACCES,
			"the container credentials service: the response contains no keys");
	v.keys = KEYS KEYS; /* no JSON */
	container_fails(&v, -EACCES, "the response contains no keys");
	v.status = "500 No";
	container_fails(&v, -EIO, "cannot get the container's credentials");
	set(FULL, "http://elsewhere.invalid/keys");
	container_fails(&v, -EACCES, "is neither an https:// address nor on this machine");
	set(FULL, "no address");
	container_fails(&v, -EINVAL, FULL);
	set(FULL, NULL);
	end(&v);
}

/* ---- instances ---- */

#define IMDS "AWS_EC2_METADATA_SERVICE_ENDPOINT"

static void test_instance(void **state)
{
	struct aws_keys *k = NULL;
	struct err e = ERR_INIT;
	struct service v;
	char url[128];

	(void)state;
	begin(&v, KEYS);
	(void)snprintf(url, sizeof(url), "%s/", v.s.url);
	set(IMDS, url);
	set("AWS_METADATA_SERVICE_TIMEOUT", "5");
	assert_int_equal(aws_from_instance(v.net, &k, &e), 0);
	are_keys(k, "the instance metadata service");
	set("AWS_EC2_METADATA_DISABLED", "TRUE");
	assert_int_equal(aws_from_instance(v.net, &k, &e), 0);
	assert_null(k);
	set("AWS_EC2_METADATA_DISABLED", NULL);
	v.roles = NULL; /* an instance without a role */
	assert_int_equal(aws_from_instance(v.net, &k, &e), 0);
	assert_null(k);
	v.roles = "r";
	v.keys = "[]";
	assert_int_equal(aws_from_instance(v.net, &k, &e), -EACCES);
	assert_non_null(strstr(e.msg, "cannot get the instance's credentials: the instance "
				      "metadata service: the response contains no keys"));
	/* what would be two headers is no token */
	v.keys = KEYS;
	v.token = "a\r\nX-Other: b";
	assert_int_equal(aws_from_instance(v.net, &k, &e), 0);
	assert_null(k);
	v.token = "";
	assert_int_equal(aws_from_instance(v.net, &k, &e), 0);
	assert_null(k);
	set(IMDS, NULL);
	set("AWS_METADATA_SERVICE_TIMEOUT", NULL);
	end(&v);
}

/* ---- roles ---- */

static void role_fails(struct service *v, const struct aws_role *r, int code, const char *words)
{
	struct aws_keys *k = NULL;
	struct err e = ERR_INIT;
	int rc = aws_from_sts(v->net, r, &k, &e);

	if (rc != code || !strstr(e.msg, words))
		fail_msg("%d '%s' instead of %d '%s'", rc, e.msg, code, words);
	assert_null(k);
}

static void test_role(void **state)
{
	struct aws_keys *own = aws_keys_make("own", "secret", "session", 0, "the test"), *k;
	struct aws_role r = {.arn = "arn:aws:iam::1:role/r",
			     .session = "s",
			     .external_id = "x y",
			     .keys = own};
	struct err e = ERR_INIT;
	struct service v;

	(void)state;
	begin(&v, ROLE_KEYS);
	set("AWS_ENDPOINT_URL_STS", v.s.url);
	assert_int_equal(aws_from_sts(v.net, &r, &k, &e), 0);
	are_keys(k, "role 'arn:aws:iam::1:role/r'");
	assert_string_equal(v.body,
			    "Action=AssumeRole&ExternalId=x%20y&RoleArn=arn%3Aaws%3Aiam%3A"
			    "%3A1%3Arole%2Fr&RoleSessionName=s&Version=2011-06-15");
	assert_non_null(strstr(v.header, "Credential=own/"));
	assert_non_null(strstr(v.header, "/us-east-1/sts/"));
	/* somebody else's token: nothing is signed */
	put_line("web token\n");
	r = (struct aws_role){
		.arn = "arn", .session = "s", .token_file = one_line, .region = "cn-north-1"};
	assert_int_equal(aws_from_sts(v.net, &r, &k, &e), 0);
	are_keys(k, "role 'arn'");
	assert_string_equal(v.header, "");
	assert_non_null(strstr(v.body, "Action=AssumeRoleWithWebIdentity&"));
	assert_non_null(strstr(v.body, "&WebIdentityToken=web%20token"));
	r.token_file = "/nowhere";
	role_fails(&v, &r, -ENOENT, "'/nowhere'");
	r.token_file = one_line;
	v.keys = "<R><AccessKeyId>AK</AccessKeyId></R>";
	role_fails(&v, &r, -EACCES, "STS: the response contains no keys");
	v.status = "403 No";
	v.keys = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>";
	role_fails(&v, &r, -EACCES, "role 'arn': AccessDenied");
	v.status = "500 No";
	v.keys = "";
	role_fails(&v, &r, -EIO, "role 'arn': ");
	set("AWS_ENDPOINT_URL_STS", "no address");
	role_fails(&v, &r, -EINVAL, "cannot use the endpoint of STS");
	set("AWS_ENDPOINT_URL_STS", "ftp://here");
	role_fails(&v, &r, -EINVAL, "role 'arn': 'ftp://here/': only http:// and https://");
	set("AWS_ENDPOINT_URL_STS", NULL);
	aws_keys_release(own);
	end(&v);
}

static int set_up(void **state)
{
	static const char *const names[] = {FULL,
					    TOKEN_FILE,
					    IMDS,
					    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
					    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
					    "AWS_ENDPOINT_URL_STS",
					    "AWS_ENDPOINT_URL"};
	int fd = mkstemp(one_line);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		set(names[i], NULL);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(one_line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_instance),
		cmocka_unit_test(test_role),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
