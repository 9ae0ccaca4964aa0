/* SPDX-License-Identifier: BSD-3-Clause */
/* address_s3.c - the forms in which an http(s) address can name a bucket: Amazon's hosts, with the
 * bucket in the host name or in the path; Google's; and any other host by path. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "mountcfg/address/address_int.h"

#define GOOGLE "storage.googleapis.com"

static const char *const amazon[] = {".amazonaws.com", ".amazonaws.com.cn"};

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

/* at - position in a host name. */
struct host_parts {
	size_t n_bucket;     /* length of the bucket before the service; 0: it is in the path */
	const char *service; /* "s3.us-east-1.amazonaws.com" */
	const char *region;  /* n_region bytes of it; NULL */
	size_t n_region;
	bool plain; /* nothing but s3 and a region: the service's own name is equivalent */
};

static size_t label(const char *p)
{
	return strcspn(p, ".");
}

static bool label_is(const char *p, const char *word)
{
	return label(p) == strlen(word) && strncmp(p, word, strlen(word)) == 0;
}

static bool has_dash(const char *p, size_t n)
{
	return memchr(p, '-', n) != NULL;
}

/* amazon_service - true if p begins with Amazon's "s3[.dualstack][.region]SUFFIX", or the form with
 * a dash. False for website hosts and others that do not speak S3's protocol. */
static bool amazon_service(const char *p, const char *suffix, struct host_parts *ret)
{
	const char *end = p + strlen(p) - strlen(suffix), *at = p;

	*ret = (struct host_parts){.service = p};
	if (label_is(at, "s3") || label_is(at, "s3-fips")) {
		ret->plain = label_is(at, "s3");
		at += label(at);
	} else if (strncmp(at, "s3-", 3) == 0 && has_dash(at + 3, label(at + 3)) &&
		   strncmp(at, "s3-website", 10) != 0) {
		ret->plain = true;
		ret->region = at + 3;
		ret->n_region = label(at + 3);
		return at + 3 + ret->n_region == end;
	} else {
		return false;
	}
	if (at < end && label_is(at + 1, "dualstack")) {
		ret->plain = false;
		at += 1 + strlen("dualstack");
	}
	if (at < end) {
		ret->region = at + 1;
		ret->n_region = label(at + 1);
		at += 1 + ret->n_region;
	}
	return at == end && (!ret->region || has_dash(ret->region, ret->n_region));
}

/* amazon_host - the last label that begins a service counts, because buckets may contain dots. */
static bool amazon_host(const char *host, struct host_parts *ret)
{
	bool found = false;

	for (size_t i = 0; i < ARRAY_LEN(amazon); i++) {
		if (!ends_in(host, amazon[i]))
			continue;
		for (const char *p = host, *dot; p;
		     dot = strchr(p, '.'), p = dot ? dot + 1 : NULL) {
			struct host_parts one;

			if (strlen(p) <= strlen(amazon[i]) ||
			    !amazon_service(p, amazon[i], &one))
				continue;
			*ret = one;
			ret->n_bucket = p == host ? 0 : (size_t)(p - host) - 1;
			ret->plain = ret->plain && i == 0;
			found = true;
		}
	}
	return found;
}

static bool google_host(const char *host, struct host_parts *ret)
{
	*ret = (struct host_parts){.service = GOOGLE, .plain = true};
	if (strcmp(host, GOOGLE) == 0)
		return true;
	if (!ends_in(host, "." GOOGLE))
		return false;
	ret->n_bucket = strlen(host) - strlen("." GOOGLE);
	return true;
}

/* other_host - "[bucket.]s3[.region].domain", otherwise a host with bucket and key in the path. */
static void other_host(const char *host, struct host_parts *ret)
{
	*ret = (struct host_parts){.service = host};
	for (const char *p = host, *dot; p; dot = strchr(p, '.'), p = dot ? dot + 1 : NULL) {
		const char *next;

		if (!label_is(p, "s3") || p[2] != '.')
			continue;
		next = p + 3;
		ret->service = p;
		ret->n_bucket = p == host ? 0 : (size_t)(p - host) - 1;
		if (has_dash(next, label(next)) && strchr(next, '.')) {
			ret->region = next;
			ret->n_region = label(next);
		}
		return;
	}
}

enum address_kind s3_host(const char *host)
{
	struct host_parts parts;

	return amazon_host(host, &parts)   ? ADDRESS_S3
	       : google_host(host, &parts) ? ADDRESS_GS3
					   : ADDRESS_HTTP;
}

bool s3_bucket_ok(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				"._-");

	return n > 0 && n <= 255 && !text[n] && text[strspn(text, ".")];
}

bool s3_region_ok(const char *text)
{
	size_t n = strspn(text,
			  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n > 0 && n <= 63 && !text[n];
}

static int bad_bucket(struct err *e)
{
	return err_set(
		e, -EINVAL,
		"no bucket: write s3://BUCKET/KEY, where BUCKET consists of letters, digits, "
		"'-', '.' and '_'");
}

int s3_take_path(const char *path, struct address *a, struct err *e)
{
	size_t n;
	int rc;

	path += *path == '/';
	if (!a->bucket) {
		n = strcspn(path, "/");
		rc = address_decode(path, n, &a->bucket, e);
		if (rc < 0)
			return rc;
		path += n + (path[n] == '/');
	}
	if (!s3_bucket_ok(a->bucket))
		return bad_bucket(e);
	for (n = strlen(path); n > 0 && path[n - 1] == '/';)
		n--;
	return address_decode(path, n, &a->key, e);
}

/* address_s3_endpoint - scheme, host and port as a string. */
static int address_s3_endpoint(const struct url *u, const char *scheme, const char *host,
			       char **ret, struct err *e)
{
	const bool v6 = strchr(host, ':') != NULL;

	*ret = u->port ? str_printf("%s://%s%s%s:%u", scheme, v6 ? "[" : "", host,
				    v6 ? "]" : "", u->port)
		       : str_printf("%s://%s%s%s", scheme, v6 ? "[" : "", host, v6 ? "]" : "");
	return *ret ? 0 : err_nomem(e);
}

int s3_from_url(const struct url *u, struct address *a, struct err *e)
{
	struct host_parts parts;
	bool known = true, failed = false;
	int rc = 0;

	if (!amazon_host(u->host, &parts) && !google_host(u->host, &parts)) {
		other_host(u->host, &parts);
		known = false;
	}
	if (parts.n_bucket)
		a->bucket = strndup(u->host, parts.n_bucket);
	if (parts.region && !a->region) {
		a->region = strndup(parts.region, parts.n_region);
		if (a->region && !s3_region_ok(a->region) && known)
			return err_set(e, -EINVAL,
				       "'%.255s' is not the name of a region, such as us-east-1",
				       a->region);
		failed = !a->region;
		if (a->region && !s3_region_ok(a->region)) /* a private host's other scheme */
			free(steal(&a->region));
	}
	if (failed || (parts.n_bucket && !a->bucket))
		return err_nomem(e);
	/* without an endpoint, requests go to Amazon's and Google's own names, always by https */
	if (!known || !parts.plain || u->port)
		rc = address_s3_endpoint(u, known ? "https" : u->scheme, parts.service, &a->url,
					 e);
	return rc < 0 ? rc : s3_take_path(u->path, a, e);
}
