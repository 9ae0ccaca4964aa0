/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c - one request: its address, its signature before each try, and corrections from its
 * answer: another region, a clock skew, expired keys. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define TURNS 4 /* limit of corrected requests */

_Thread_local bool s3_in_done;

int s3_key_check(const struct s3 *s, const char *key, struct err *e)
{
	size_t n = strlen(s->key) + (*s->key && *key) + strlen(key);

	if (n > S3_KEY_MAX)
		return err_set(e, -ERANGE, "key '%.200s...' has %zu bytes, S3 allows %d", key,
			       n, S3_KEY_MAX);
	return 0;
}

/* build_host - the host for the Host header and the address. */
static int build_host(struct s3_request *c, struct err *e)
{
	const struct s3 *s = c->s;
	bool tls = strcmp(s->endpoint.scheme, "https") == 0;
	bool number = strchr(c->place.host, ':') != NULL;
	uint16_t port = c->place.port == (tls ? 443 : 80) ? 0 : c->place.port;
	auto_buf b = buf_of(sizeof(c->host) - 1);

	*c->host = '\0';
	if (s->opts->virtual_hosts) {
		url_encode(&b, s->bucket, strlen(s->bucket), false);
		buf_putc(&b, '.');
	}
	buf_printf(&b, number ? "[%s]" : "%s", c->place.host);
	if (port)
		buf_printf(&b, ":%u", port);
	if (!buf_ok(&b))
		return err_set(e, -EINVAL,
			       "the name of bucket '%.80s' together with its host is too long",
			       s->bucket);
	(void)snprintf(c->host, sizeof(c->host), "%.*s", (int)b.len, (char *)b.data);
	return 0;
}

/* request_build - build the address from the known location of the bucket. */
static int request_build(struct s3_request *c, struct err *e)
{
	struct s3 *s = c->s;
	size_t n;
	int rc;

	pthread_mutex_lock(&s->lock);
	c->place = s->place;
	pthread_mutex_unlock(&s->lock);
	rc = build_host(c, e);
	if (rc < 0)
		return rc;
	buf_release(&c->url);
	buf_init(&c->url, URL_MAX);
	buf_printf(&c->url, "%s://%s", s->endpoint.scheme, c->host);
	c->path_at = c->url.len;
	n = strlen(s->endpoint.path);
	buf_put(&c->url, s->endpoint.path, n && s->endpoint.path[n - 1] == '/' ? n - 1 : n);
	if (!s->opts->virtual_hosts) {
		buf_putc(&c->url, '/');
		url_encode(&c->url, s->bucket, strlen(s->bucket), false);
	}
	if (c->key || s->opts->virtual_hosts)
		buf_putc(&c->url, '/');
	if (c->key) {
		url_encode(&c->url, s->key, strlen(s->key), true);
		if (*s->key && *c->key)
			buf_putc(&c->url, '/');
		url_encode(&c->url, c->key, strlen(c->key), true);
	}
	c->path_end = c->url.len;
	if (c->query)
		buf_printf(&c->url, "?%s", c->query);
	buf_putc(&c->url, '\0');
	return buf_ok(&c->url) ? 0
			       : err_set(e, -ERANGE, "'%s': the address of '%.80s' is too long",
					 s->shown, c->key ? c->key : "");
}

/* request_sign - called on the HTTP client's thread before each try, because clock and keys
 * change. */
static int request_sign(void *arg, struct http_transfer *r, struct err *e)
{
	struct s3_request *c = arg;
	auto_free char *path = NULL;
	struct s3_signing in;

	aws_keys_release(c->keys);
	c->keys = aws_keys_now(c->s->aws);
	if (!c->keys)
		return 0;
	path = strndup((const char *)c->url.data + c->path_at, c->path_end - c->path_at);
	if (!path)
		return err_nomem(e);
	in = (struct s3_signing){
		.method = c->http.method,
		.host = c->host,
		.path = path,
		.query = c->query,
		.headers = c->headers,
		.payload = c->digest ? c->digest : S3_UNSIGNED,
		.say_payload = true,
		.region = c->place.region,
		.service = "s3",
		.access_key = c->keys->access,
		.secret_key = c->keys->secret,
		.token = c->keys->token,
		.now = (int64_t)time(NULL) + atomic_load(&c->s->skew),
	};
	return s3_sign_request(&in, r, e);
}

/* request_judge - whether to retry: an error report with status 200 in place of the answer, or a
 * conflict with a request of another writer. If there is no memory to check, it is no success. */
static bool request_judge(void *arg, const struct http_response *a)
{
	const struct s3_request *c = arg;
	bool object = strcmp(c->http.method, "GET") == 0 && c->key;

	if (a->status == 409)
		return http_code_is(a, "ConditionalRequestConflict") ||
		       http_code_is(a, "OperationAborted");
	/* an object may be XML of any kind, but it has an ETag; a truncated one cannot be
	 * classified */
	if (object && !*a->etag && (a->cut || strstr(a->content_type, "html")))
		return a->status == 200;
	return a->status == 200 && a->body.len && !(object && *a->etag) &&
	       s3_xml_root(a->body.data, a->body.len, "Error") != 0;
}

/* request_ready - set payer, keys, endpoint and address. */
static int request_ready(struct s3_request *c, bool wait, struct err *e)
{
	size_t n = 0;
	int rc = s3_prepare(c->s, wait, e);

	if (rc < 0)
		return rc;
	while (c->headers[n])
		n++;
	if (c->turns == 0 && c->s->opts->requester_pays && n + 1 < ARRAY_LEN(c->headers))
		c->headers[n] = "x-amz-request-payer: requester";
	rc = request_build(c, e);
	c->http.url = (const char *)c->url.data;
	c->http.headers = c->headers;
	c->http.sign = request_sign;
	c->http.judge = request_judge;
	c->http.sign_arg = c;
	return rc;
}

int s3_start(struct s3_request *c, http_done_fn *done, void *arg, struct err *e)
{
	int rc = request_ready(c, !s3_in_done && !c->http.background, e);

	return rc ? rc : http_start(c->s->net, &c->http, done, arg, e);
}

int s3_do(struct s3_request *c, struct http_response *ret, struct err *e)
{
	int rc;

	do {
		*ret = (struct http_response){.rc = 0};
		rc = request_ready(c, true, e);
		if (rc < 0)
			return rc;
		rc = http_do(c->s->net, &c->http, ret, NULL);
	} while (s3_should_reissue(c, ret));
	return s3_failed(c, ret, e);
}

void s3_request_release(struct s3_request *c)
{
	aws_keys_release(c->keys);
	c->keys = NULL;
	buf_release(&c->url);
}

/* Corrections from answers. */

static bool learn_region(struct s3_request *c, const struct http_response *a)
{
	bool redirect =
		a->status == 301 || a->status == 302 || a->status == 307 || a->status == 308;
	char region[64], endpoint[256], location[2048];

	if (!redirect && !http_code_is(a, "AuthorizationHeaderMalformed") &&
	    !http_code_is(a, "IllegalLocationConstraintException") &&
	    !(a->status >= 400 && *a->region && strcmp(a->region, c->place.region) != 0))
		return false;
	snprintf(location, sizeof(location), "%s", a->location);
	snprintf(region, sizeof(region), "%s", a->region);
	if (!*region)
		(void)s3_xml_text(a->body.data, a->body.len, "Region", region, sizeof(region));
	if (!*location &&
	    s3_xml_text(a->body.data, a->body.len, "Endpoint", endpoint, sizeof(endpoint)))
		snprintf(location, sizeof(location), "%s://%s", c->s->endpoint.scheme,
			 endpoint);
	return s3_relocate(c->s, &c->place, region, location);
}

/* learn_clock - correct the clock skew from the service's time, once. */
static bool learn_clock(struct s3_request *c, const struct http_response *a)
{
	char text[64];
	int64_t there;

	if (c->clocked || !http_code_is(a, "RequestTimeTooSkewed"))
		return false;
	c->clocked = true;
	if (!s3_xml_text(a->body.data, a->body.len, "ServerTime", text, sizeof(text)) ||
	    aws_time(text, &there, NULL) < 0)
		there = a->date / 1000000000;
	if (there == 0)
		return false;
	atomic_store(&c->s->skew, there - (int64_t)time(NULL));
	return true;
}

/* learn_keys - the keys have expired: look for others. A prefetch did not look for them before it
 * was sent, so that a reader may find some although the last search found none. */
static bool learn_keys(struct s3_request *c, const struct http_response *a)
{
	int rc;

	if (!c->keys || !(http_code_is(a, "ExpiredToken") ||
			  http_code_is(a, "TokenRefreshRequired") ||
			  http_code_is(a, "InvalidToken") ||
			  http_code_is(a, "ExpiredTokenException")))
		return false;
	rc = aws_refused(c->s->aws, c->keys);
	c->expired = s3_in_done && (rc < 0 || (rc == 0 && c->http.background));
	return rc > 0 || (rc < 0 && !s3_in_done);
}

bool s3_should_reissue(struct s3_request *c, struct http_response *a)
{
	if (a->rc == -EINTR || a->rc == -ECANCELED || a->status == 0)
		return false;
	if (a->status >= 200 && (a->status < 300 || a->status == 304 || a->status == 412 ||
				 a->status == 416 || http_code_is(a, "NoSuchKey"))) {
		atomic_store(&c->s->seen, true);
		return false;
	}
	if (c->turns >= TURNS || !(learn_region(c, a) || learn_clock(c, a) || learn_keys(c, a)))
		return false;
	c->turns++;
	http_response_release(a);
	return true;
}

void s3_info_of(const struct http_response *a, uint64_t size, struct object_info *ret)
{
	size_t n = strlen(a->etag);

	*ret = (struct object_info){.size = size, .weak = a->weak, .changed = a->modified};
	if (n && *a->etag != '"' && !a->weak && n + 3 <= sizeof(ret->etag))
		snprintf(ret->etag, sizeof(ret->etag), "\"%.*s\"", OBJECT_ETAG_MAX - 3,
			 a->etag);
	else
		memcpy(ret->etag, a->etag, sizeof(ret->etag));
	ret->version = object_version(ret);
}
