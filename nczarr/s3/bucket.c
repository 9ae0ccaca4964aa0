/* SPDX-License-Identifier: BSD-3-Clause */
/* bucket.c - opens a bucket and finds its endpoint and region, also from answers of the service. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_HTTP
#include "base/core/str.h"
#include "base/observe/log.h"

static const struct object_service_ops g_ops;

void s3_unref(struct s3 *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	aws_free(s->aws);
	url_release(&s->endpoint);
	free(s->shown);
	free(s->bucket);
	free(s->key);
	free(s->endpoint_text);
	free(s->region);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void s3_close(struct object_service *o)
{
	s3_unref(CONTAINER_OF(o, struct s3, base));
}

static int bucket_fill(struct s3 *s, const struct remote_target *t, struct err *e)
{
	const struct remote_options *opts = s->opts;
	bool failed = false;
	size_t n;

	s->google = t->kind == REMOTE_GS3;
	s->bucket = str_copy(aws_some(t->bucket), &failed);
	s->key = strdup(t->key ? t->key : "");
	s->shown = str_copy(aws_some(t->shown ? t->shown : t->bucket), &failed);
	s->endpoint_text = str_copy(aws_some(t->url ? t->url : opts->endpoint), &failed);
	s->region = str_copy(aws_some(t->region ? t->region : opts->region), &failed);
	if (failed || !s->key)
		return err_nomem(e);
	if (!s->bucket)
		return err_set(e, -EINVAL, "the S3 address contains no bucket");
	for (n = strlen(s->key); n && s->key[n - 1] == '/'; n--)
		s->key[n - 1] = '\0';
	if (strlen(s->key) > S3_KEY_MAX)
		return err_set(e, -ERANGE, "the key has %zu bytes, S3 allows %d",
			       strlen(s->key), S3_KEY_MAX);
	s->base.name = s->shown;
	return 0;
}

int s3_service_open(struct http_client *net, const struct remote_options *opts,
		    const struct remote_target *t, struct object_service **ret, struct err *e)
{
	struct s3 *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(e);
	s->base.ops = &g_ops;
	s->refs = 1;
	s->net = net;
	s->opts = opts;
	pthread_mutex_init(&s->lock, NULL);
	rc = bucket_fill(s, t, e);
	rc = rc ? rc : aws_new(net, opts, t->profile, &s->aws, e);
	if (rc < 0) {
		s3_unref(s);
		return rc;
	}
	if (s->google)
		aws_fixed_only(s->aws);
	*ret = &s->base;
	return 0;
}

/* Where it is. */

/* region_in - the region that the name of an endpoint of AWS has: s3.REGION.amazonaws.com,
 * or "". */
static void region_in(const char *host, char ret[64])
{
	const char *end = strstr(host, ".amazonaws.com"), *p = host;
	size_t n;

	*ret = '\0';
	if (strncmp(p, "s3", 2) == 0 && (p[2] == '.' || p[2] == '-'))
		p += 3;
	else
		return;
	if (strncmp(p, "dualstack.", 10) == 0)
		p += 10;
	if (!end || end <= p)
		return;
	n = (size_t)(end - p);
	if (n >= 64 || memchr(p, '.', n))
		return;
	memcpy(ret, p, n);
	ret[n] = '\0';
	if (strcmp(ret, "external-1") == 0)
		*ret = '\0';
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_aws(const char *host)
{
	return ends_with(host, ".amazonaws.com") || ends_with(host, ".amazonaws.com.cn");
}

/* host_of_region - AWS's host of a region. */
static void host_of_region(const char *region, char ret[256])
{
	snprintf(ret, 256, "s3.%s.amazonaws.com%s", region,
		 strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
}

/* region_ok - whether a region is valid in a host name. */
static bool region_ok(const char *region)
{
	size_t n = strlen(region);

	if (n == 0 || n > 40)
		return false;
	for (const char *c = region; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9') || *c == '-' || *c == '_'))
			return false;
	return true;
}

/* find_endpoint - the endpoint of the options, of environment and files, or AWS's (Google's). */
static int find_endpoint(struct s3 *s, const char *region, struct err *e)
{
	const char *text = s->endpoint_text;
	char host[256], aws[300];
	int rc;

	host_of_region(region, host);
	snprintf(aws, sizeof(aws), "https://%s", host);
	if (!text && !s->google)
		text = aws_endpoint(s->aws);
	if (!text)
		text = s->google ? "https://storage.googleapis.com" : aws;
	rc = url_parse(text, &s->endpoint, e);
	if (rc < 0)
		return err_wrap(e, rc, "cannot use the endpoint of S3");
	if (strcmp(s->endpoint.scheme, "http") != 0 && strcmp(s->endpoint.scheme, "https") != 0)
		return err_set(e, -EINVAL,
			       "the endpoint of S3 must begin with http:// or https://");
	if (strlen(s->endpoint.host) > 200)
		return err_set(e, -EINVAL, "the host name of the endpoint of S3 is too long");
	s->of_aws = is_aws(s->endpoint.host);
	return 0;
}

/* bucket_place - find the endpoint once, from files and environment. Locked. */
static int bucket_place(struct s3 *s, struct err *e)
{
	const char *region = s->region ? s->region : aws_region(s->aws);
	char named[64] = "";
	int rc;

	if (!region)
		region = s->google ? "auto" : "us-east-1";
	if (!region_ok(region))
		return err_set(e, -EINVAL, "'%.60s' is not a region", region);
	rc = find_endpoint(s, region, e);
	if (rc < 0)
		return rc;
	if (s->of_aws)
		region_in(s->endpoint.host, named);
	if (*named && !s->region)
		region = named;
	snprintf(s->place.region, sizeof(s->place.region), "%s", region);
	snprintf(s->place.host, sizeof(s->place.host), "%s", s->endpoint.host);
	s->place.port = s->endpoint.port;
	s->placed = true;
	return 0;
}

int s3_prepare(struct s3 *s, bool wait, struct err *e)
{
	int rc = aws_ready(s->aws, wait, e);

	if (rc < 0)
		return err_wrap(e, rc, "'%s'", s->shown);
	pthread_mutex_lock(&s->lock);
	if (!s->placed) {
		url_release(&s->endpoint);
		rc = bucket_place(s, e);
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* follow - whether a redirect may be followed: to the same host at another port, or to another
 * host of AWS. A signature is valid for one host only, so it reveals nothing; but written data
 * would go there. */
static bool follow(const struct s3 *s, const char *location, struct s3_endpoint *to)
{
	char named[64];
	struct url u;
	const char *host;
	size_t n;
	bool ok;

	if (!url_is(location) || url_parse(location, &u, NULL) < 0)
		return false;
	n = strlen(s->bucket); /* in virtual-host style it comes first */
	host = strncmp(u.host, s->bucket, n) == 0 && u.host[n] == '.' ? u.host + n + 1 : u.host;
	ok = strcmp(u.scheme, s->endpoint.scheme) == 0 && strlen(host) < 200 &&
	     (strcmp(host, s->endpoint.host) == 0 || (s->of_aws && is_aws(host)) ||
	      s->opts->private_redirects);
	if (ok) {
		snprintf(to->host, sizeof(to->host), "%s", host);
		to->port = u.port;
		region_in(host, named);
		if (s->of_aws && region_ok(named))
			snprintf(to->region, sizeof(to->region), "%s", named);
	}
	url_release(&u);
	return ok;
}

bool s3_relocate(struct s3 *s, const struct s3_endpoint *old, const char *region,
		 const char *location)
{
	struct s3_endpoint to = *old;
	bool moved;

	if (*region && region_ok(region))
		snprintf(to.region, sizeof(to.region), "%s", region);
	if (s->of_aws && strcmp(to.region, old->region) != 0)
		host_of_region(to.region, to.host);
	else if (*location)
		(void)follow(s, location, &to);
	moved = strcmp(to.region, old->region) != 0 || strcmp(to.host, old->host) != 0 ||
		to.port != old->port;
	if (!moved)
		return false;
	pthread_mutex_lock(&s->lock);
	s->place = to;
	pthread_mutex_unlock(&s->lock);
	log_debug("S3: bucket '%s' is in region '%s' at '%s'", s->bucket, to.region, to.host);
	return true;
}

static const struct object_service_ops g_ops = {
	.name = "S3",
	.close = s3_close,
	.fetch = s3_fetch,
	.list = s3_list,
	.put = s3_put,
	.remove = s3_remove,
};
