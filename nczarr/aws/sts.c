/* SPDX-License-Identifier: BSD-3-Clause */
/* sts.c - keys of a role, from the Security Token Service (API version 2011-06-15): with keys that
 * may assume it (AssumeRole), or with a web identity token; and the times of AWS. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/core/str.h"
#include "base/os/url.h"
#include "nczarr/aws/sigv4.h"
#include "nczarr/s3/xml.h"

#define STS_MS 20000
#define FORM_MAX (1u << 17)

int aws_time(const char *text, int64_t *ret, int64_t *ret_ns)
{
	static const char form[] = "%Y-%m-%dT%H:%M:%S";
	struct tm tm = {.tm_isdst = 0};
	const char *end = strptime(text, form, &tm);
	int64_t ns = 0, unit = 100000000;
	char same[32];

	/* strptime also accepts blanks, signs and fewer digits */
	if (!end || strftime(same, sizeof(same), form, &tm) != (size_t)(end - text) ||
	    strncmp(text, same, (size_t)(end - text)) != 0 || tm.tm_year < 70 || tm.tm_sec > 60)
		return -EINVAL;
	if (*end == '.')
		for (++end; str_digit(*end); ++end, unit /= 10)
			ns += unit * (*end - '0');
	if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0 && *end)
		return -EINVAL;
	*ret = (int64_t)timegm(&tm);
	if (ret_ns && ckd_mul(ret_ns, *ret, INT64_C(1000000000)))
		return -EINVAL;
	if (ret_ns)
		*ret_ns += ns;
	return 0;
}

/* assuming - one request. */
struct assuming {
	const struct aws_role *role;
	struct url at;
	char host[272], region[64], digest[S3_HEX_SHA256];
	const char *headers[2];
};

static int aws_sts_endpoint(const struct aws_role *role, struct assuming *s, struct err *e)
{
	const char *text = aws_env("AWS_ENDPOINT_URL_STS");
	char aws[160];
	int rc;

	snprintf(s->region, sizeof(s->region), "%s", role->region ? role->region : "us-east-1");
	if (role->region)
		snprintf(aws, sizeof(aws), "https://sts.%.60s.amazonaws.com%s", s->region,
			 strncmp(s->region, "cn-", 3) == 0 ? ".cn" : "");
	else
		snprintf(aws, sizeof(aws), "https://sts.amazonaws.com");
	if (!text)
		text = aws_env("AWS_ENDPOINT_URL");
	rc = url_parse(text ? text : aws, &s->at, e);
	if (rc < 0)
		return err_wrap(e, rc, "cannot use the endpoint of STS");
	snprintf(s->host, sizeof(s->host), "%.250s", s->at.host);
	if (s->at.port && s->at.port != (strcmp(s->at.scheme, "https") == 0 ? 443 : 80))
		snprintf(s->host, sizeof(s->host), "%.250s:%u", s->at.host, s->at.port);
	return 0;
}

static int aws_sts_sign(void *arg, struct http_transfer *r, struct err *e)
{
	const struct assuming *s = arg;
	const struct aws_keys *k = s->role->keys;
	const struct s3_signing in = {.method = "POST",
				      .host = s->host,
				      .path = *s->at.path ? s->at.path : "/",
				      .headers = s->headers,
				      .payload = s->digest,
				      .say_payload = true,
				      .region = s->region,
				      .service = "sts",
				      .access_key = k ? k->access : "",
				      .secret_key = k ? k->secret : "",
				      .token = k ? k->token : NULL,
				      .now = (int64_t)time(NULL)};

	/* without keys, the token authenticates the request */
	return k ? s3_sign_request(&in, r, e) : 0;
}

static int put_form(const struct aws_role *role, struct buf *form, struct err *e)
{
	auto_free char *token = NULL;
	int rc = role->token_file ? aws_text_file(role->token_file, &token, e) : 0;

	if (rc < 0)
		return rc;
	s3_query_put(form, "Action", token ? "AssumeRoleWithWebIdentity" : "AssumeRole");
	if (role->external_id)
		s3_query_put(form, "ExternalId", role->external_id);
	s3_query_put(form, "RoleArn", role->arn);
	s3_query_put(form, "RoleSessionName", role->session);
	s3_query_put(form, "Version", "2011-06-15");
	if (token) {
		s3_query_put(form, "WebIdentityToken", token);
		explicit_bzero(token, strlen(token));
	}
	return buf_ok(form) ? 0 : err_nomem(e);
}

/* aws_sts_take - parse the keys of an answer. */
static int aws_sts_take(const struct http_response *a, const struct aws_role *role,
			struct aws_keys **ret, struct err *e)
{
	char access[256], secret[256], end[64], from[96];
	auto_free char *token = calloc(1, FORM_MAX);
	int64_t expires;
	int rc = 0;

	if (!token)
		return err_nomem(e);
	if (!s3_xml_text(a->body.data, a->body.len, "AccessKeyId", access, sizeof(access)) ||
	    !s3_xml_text(a->body.data, a->body.len, "SecretAccessKey", secret,
			 sizeof(secret)) ||
	    !s3_xml_text(a->body.data, a->body.len, "SessionToken", token, FORM_MAX) ||
	    !s3_xml_text(a->body.data, a->body.len, "Expiration", end, sizeof(end)) ||
	    aws_time(end, &expires, NULL) < 0)
		return err_set(e, -EACCES, "STS: the response contains no keys");
	snprintf(from, sizeof(from), "role '%.70s'", role->arn);
	*ret = aws_keys_make(access, secret, token, expires, from);
	if (!*ret)
		rc = err_nomem(e);
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(token, strlen(token));
	return rc;
}

static int post(struct http_client *net, struct assuming *s, const struct buf *form,
		struct aws_keys **ret, struct err *e)
{
	struct http_response a = {.rc = 0};
	struct http_request w = {.method = "POST",
				 .headers = s->headers,
				 .body = form->data,
				 .body_len = form->len,
				 .body_fd = -1,
				 .max_body = FORM_MAX,
				 .sign = aws_sts_sign,
				 .sign_arg = s,
				 .total_ms = STS_MS};
	auto_buf url = buf_of(URL_MAX);
	int rc;

	s->headers[0] = "Content-Type: application/x-www-form-urlencoded; charset=utf-8";
	rc = s3_sha256(form->data, form->len, s->digest, e);
	if (rc < 0)
		return rc;
	url_put(&url, &s->at, false);
	if (!*s->at.path)
		buf_putc(&url, '/');
	buf_putc(&url, '\0');
	w.url = (const char *)url.data;
	rc = buf_ok(&url) ? http_do(net, &w, &a, e) : err_nomem(e);
	if (rc == 0)
		rc = aws_sts_take(&a, s->role, ret, e);
	else if (rc != -EINTR)
		rc = err_set(e, a.status >= 400 && a.status < 500 ? -EACCES : rc,
			     "cannot assume role '%.100s': %s%s%s", s->role->arn, a.error_code,
			     *a.error_code ? ": " : "", a.e.msg);
	buf_wipe(&a.body);
	return rc;
}

int aws_from_sts(struct http_client *net, const struct aws_role *role, struct aws_keys **ret,
		 struct err *e)
{
	struct assuming s = {.role = role};
	struct buf form = buf_of(FORM_MAX);
	int rc = aws_sts_endpoint(role, &s, e);

	*ret = NULL;
	if (rc < 0)
		return rc;
	rc = put_form(role, &form, e);
	rc = rc ? rc : post(net, &s, &form, ret, e);
	buf_wipe(&form);
	url_release(&s.at);
	return rc;
}
