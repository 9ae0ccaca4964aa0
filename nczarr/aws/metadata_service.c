/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata_service.c - keys from metadata services of containers and instances (IMDSv2). Both are
 * local: time-outs are short, and no proxy is used. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/io.h"
#include "base/os/url.h"

#define ANSWER_MAX (1u << 16)
#define NEAR_MS 1000 /* AWS's tools give up after a second */
#define CONTAINER_MS 5000
#define TOKEN_FILE_MAX (1u << 16)

/* near_ms - AWS_METADATA_SERVICE_TIMEOUT is in seconds. */
static uint32_t near_ms(void)
{
	const char *text = aws_env("AWS_METADATA_SERVICE_TIMEOUT");
	uint64_t s;

	if (!text || str_u64(text, strlen(text), 60, &s) < 0 || s == 0)
		return NEAR_MS;
	return (uint32_t)s * 1000;
}

/* metadata_service_ask - send one request to a local service. header: NULL. The answer is
 * NUL-terminated. */
static int metadata_service_ask(struct http_client *net, const char *method,
				const char *url, const char *header, uint32_t ms,
				struct http_response *ret, struct err *e)
{
	const char *const headers[] = {header, NULL};
	const struct http_request w = {.method = method,
				       .url = url,
				       .headers = headers,
				       .body_fd = -1,
				       .max_body = ANSWER_MAX,
				       .no_proxy = true,
				       .link_local = true,
				       .total_ms = ms};
	int rc = http_do(net, &w, ret, e);

	if (rc == 0) {
		ret->body.max = ANSWER_MAX + 1;
		buf_putc(&ret->body, '\0');
		if (!buf_ok(&ret->body))
			rc = err_nomem(e);
	}
	return rc;
}

/* metadata_service_from_json - parse the keys, in the format of both services. */
static int metadata_service_from_json(const char *text, const char *from, struct aws_keys **ret,
				      struct err *e)
{
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *access = json_string_value(json_object_get(j, "AccessKeyId"));
	const char *secret = json_string_value(json_object_get(j, "SecretAccessKey"));
	const char *token = json_string_value(json_object_get(j, "Token"));
	const char *end = json_string_value(json_object_get(j, "Expiration"));
	int64_t expires = 0;
	int rc = 0;

	if (!access || !secret || (end && aws_time(end, &expires, NULL) < 0))
		rc = err_set(e, -EACCES, "%s: the response contains no keys", from);
	else if (!(*ret = aws_keys_make(access, secret, token, expires, from)))
		rc = err_nomem(e);
	json_decref(j);
	return rc;
}

/* Containers. */

/* container_url - new; NULL with 0: not in a container. */
static int container_url(char **ret, struct err *e)
{
	const char *relative = aws_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = aws_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	static const char *const allowed[] = {"127.0.0.1",      "::1",
					      "localhost",      "169.254.170.2",
					      "169.254.170.23", "fd00:ec2::23"};
	struct url u;
	bool ok;
	int rc;

	*ret = NULL;
	if (relative) {
		*ret = str_printf("http://169.254.170.2%s%s", *relative == '/' ? "" : "/",
				  relative);
		return *ret ? 0 : err_nomem(e);
	}
	if (!full)
		return 0;
	rc = url_parse(full, &u, e);
	if (rc < 0)
		return err_wrap(e, rc, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
	ok = strcmp(u.scheme, "https") == 0;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		ok |= strcmp(u.host, allowed[i]) == 0;
	url_release(&u);
	if (!ok)
		return err_set(e, -EACCES,
			       "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither an https:// "
			       "address nor on this machine");
	*ret = strdup(full);
	return *ret ? 0 : err_nomem(e);
}

int aws_text_file(const char *path, char **ret, struct err *e)
{
	auto_free char *text = NULL;
	size_t n;
	int rc = io_read_file(path, TOKEN_FILE_MAX, &text, &n, e);

	if (rc < 0)
		return rc;
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
		text[--n] = '\0';
	if (strpbrk(text, "\r\n") || strlen(text) != n)
		return err_set(e, -EINVAL, "'%s' has more than one line", path);
	*ret = steal(&text);
	return 0;
}

/* container_header - new; NULL with 0: not needed. */
static int container_header(char **ret, struct err *e)
{
	const char *file = aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *token = aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	auto_free char *text = NULL;
	int rc = file ? aws_text_file(file, &text, e) : 0;

	if (rc < 0)
		return rc;
	if (file)
		token = text;
	*ret = token ? str_printf("Authorization: %s", token) : NULL;
	return token && !*ret ? err_nomem(e) : 0;
}

int aws_from_container(struct http_client *net, struct aws_keys **ret, struct err *e)
{
	auto_free char *url = NULL;
	auto_free char *header = NULL;
	struct http_response a = {.rc = 0};
	int rc = container_url(&url, e);

	*ret = NULL;
	if (rc < 0 || !url)
		return rc;
	rc = container_header(&header, e);
	rc = rc ? rc : metadata_service_ask(net, "GET", url, header, CONTAINER_MS, &a, e);
	if (rc == 0)
		rc = metadata_service_from_json((const char *)a.body.data,
						"the container credentials service", ret, e);
	else if (rc != -EINTR)
		rc = err_wrap(e, rc, "cannot get the container's credentials");
	buf_wipe(&a.body);
	if (header)
		explicit_bzero(header, strlen(header));
	return rc;
}

/* Instances: IMDSv2. */

#define IMDS_ROLES "/latest/meta-data/iam/security-credentials/"

static int imds_ask(struct http_client *net, const char *method, const char *path,
		    const char *name, const char *header, struct http_response *a,
		    struct err *e)
{
	auto_free char *url = NULL;
	const char *base = aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *mode = aws_env("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
	size_t n;

	if (!base)
		base = mode && strcasecmp(mode, "ipv6") == 0 ? "http://[fd00:ec2::254]"
							     : "http://169.254.169.254";
	n = strlen(base);
	url = str_printf("%.*s%s%s", (int)(n && base[n - 1] == '/' ? n - 1 : n), base, path,
			 name);
	return url ? metadata_service_ask(net, method, url, header, near_ms(), a, e)
		   : err_nomem(e);
}

/* word_ok - whether a string is valid in a header or address: printable, one line. */
static bool word_ok(const char *text)
{
	if (!*text)
		return false;
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return true;
}

/* imds_role - the name of the instance's role, encoded; "": it has none. */
static int imds_role(struct http_client *net, const char *token, char ret[512],
		     struct err *e)
{
	struct http_response a = {.rc = 0};
	auto_buf name = buf_of(511);
	int rc = imds_ask(net, "GET", IMDS_ROLES, "", token, &a, e);

	*ret = '\0';
	if (rc == -ENOENT)
		rc = 0;
	else if (rc == 0) {
		url_encode(&name, (char *)a.body.data, strcspn((char *)a.body.data, "\r\n"),
			   false);
		if (buf_ok(&name))
			(void)snprintf(ret, 512, "%.*s", (int)name.len, (char *)name.data);
	}
	http_response_release(&a);
	return rc;
}

/* imds_keys - get the keys of an instance. token: header line. */
static int imds_keys(struct http_client *net, const char *token, struct aws_keys **ret,
		     struct err *e)
{
	struct http_response a = {.rc = 0};
	char role[512];
	int rc = imds_role(net, token, role, e);

	if (rc < 0 || !*role)
		return rc;
	rc = imds_ask(net, "GET", IMDS_ROLES, role, token, &a, e);
	if (rc == 0)
		rc = metadata_service_from_json((const char *)a.body.data,
						"the instance metadata service", ret, e);
	buf_wipe(&a.body);
	return rc;
}

int aws_from_instance(struct http_client *net, struct aws_keys **ret, struct err *e)
{
	const char *off = aws_env("AWS_EC2_METADATA_DISABLED");
	struct http_response a = {.rc = 0};
	auto_free char *token = NULL;
	int rc;

	*ret = NULL;
	if (off && strcasecmp(off, "true") == 0)
		return 0;
	rc = imds_ask(net, "PUT", "/latest/api/token", "",
		      "X-aws-ec2-metadata-token-ttl-seconds: 21600", &a, e);
	if (rc == 0 && !word_ok((const char *)a.body.data))
		rc = -EIO;
	if (rc == 0) {
		token = str_printf("X-aws-ec2-metadata-token: %s", (char *)a.body.data);
		rc = token ? 0 : err_nomem(e);
	}
	buf_wipe(&a.body);
	if (rc < 0) /* not an instance */
		return rc == -EINTR || rc == -ENOMEM ? rc : 0;
	rc = imds_keys(net, token, ret, e);
	explicit_bzero(token, strlen(token));
	return rc < 0 && rc != -EINTR ? err_wrap(e, rc, "cannot get the instance's credentials")
				      : rc;
}
