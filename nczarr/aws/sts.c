/* SPDX-License-Identifier: BSD-3-Clause */
/* sts.c - keys of a role, from the Security Token Service (API version 2011-06-15): with keys that
 * may assume it (AssumeRole), or with a web identity token. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/os/url.h"
#include "nczarr/aws/sigv4.h"
#include "nczarr/s3/xml.h"

#define STS_MS 20000
#define FORM_MAX (1u << 17)

/* assuming - one request. */
struct assuming {
	const struct aws_role *role;
	struct url at;
	char host[272], region[64], digest[S3_HEX_SHA256];
	const char *headers[2];
};

static int aws_sts_endpoint(const struct aws_role *role, struct assuming *s, struct err *e)
{
	const char *text = getenv("AWS_ENDPOINT_URL_STS");
	bool tls;
	char aws[160];
	int rc;

	snprintf(s->region, sizeof(s->region), "%s", role->region ? role->region : "us-east-1");
	if (role->region)
		snprintf(aws, sizeof(aws), "https://sts.%.60s.amazonaws.com%s", s->region,
			 strncmp(s->region, "cn-", 3) == 0 ? ".cn" : "");
	else
		snprintf(aws, sizeof(aws), "https://sts.amazonaws.com");
	if (!text || !*text)
		text = getenv("AWS_ENDPOINT_URL");
	rc = url_parse(text && *text ? text : aws, &s->at, e);
	if (rc < 0)
		return err_wrap(e, rc, "cannot use the endpoint of STS");
	tls = strcmp(s->at.scheme, "https") == 0;
	if (s->at.port && s->at.port != (tls ? 443 : 80))
		snprintf(s->host, sizeof(s->host), "%.250s:%u", s->at.host, s->at.port);
	else
		snprintf(s->host, sizeof(s->host), "%.250s", s->at.host);
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
	struct s3_signed out;
	int rc;

	if (!k)
		return 0; /* the token authenticates the request */
	rc = s3_sign(&in, &out, e);
	return rc ? rc : s3_signed_send(&out, r, e);
}

static int put_form(const struct aws_role *role, struct buf *form, struct err *e)
{
	auto_free char *token = NULL;

	if (role->token_file) {
		token = aws_text_file(role->token_file, e);
		if (!token)
			return e ? e->code : -EACCES;
	}
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

static int post(const struct aws_options *o, struct assuming *s, const struct buf *form,
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
	struct buf url;
	int rc;

	s->headers[0] = "Content-Type: application/x-www-form-urlencoded; charset=utf-8";
	rc = s3_sha256(form->data, form->len, s->digest, e);
	if (rc < 0)
		return rc;
	buf_init(&url, URL_MAX);
	url_put(&url, &s->at, false);
	if (!*s->at.path)
		buf_putc(&url, '/');
	buf_putc(&url, '\0');
	w.url = (const char *)url.data;
	rc = buf_ok(&url) ? http_do(o->net, &w, &a, e) : err_nomem(e);
	if (rc == 0)
		rc = aws_sts_take(&a, s->role, ret, e);
	else if (rc != -EINTR)
		rc = err_set(e, a.status >= 400 && a.status < 500 ? -EACCES : rc,
			     "cannot assume role '%.100s': %s%s%s", s->role->arn, a.error_code,
			     *a.error_code ? ": " : "", a.e.msg);
	buf_wipe(&a.body);
	buf_release(&url);
	return rc;
}

int aws_from_sts(const struct aws_options *o, const struct aws_role *role,
		 struct aws_keys **ret, struct err *e)
{
	struct assuming s = {.role = role};
	struct err why = ERR_INIT;
	struct buf form;
	int rc = aws_sts_endpoint(role, &s, &why);

	*ret = NULL;
	if (rc < 0)
		return err_set(e, rc, "%s", why.msg);
	buf_init(&form, FORM_MAX);
	rc = put_form(role, &form, &why);
	if (rc == 0)
		rc = post(o, &s, &form, ret, &why);
	buf_wipe(&form);
	url_release(&s.at);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}
