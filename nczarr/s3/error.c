/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - codes and messages of failures. An object is absent only if the service states that
 * the key does not exist: a missing bucket, a missing permission or an unexplained answer are
 * errors. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <string.h>

static int error_denied(const struct s3_request *c, const struct http_response *a,
			const char *who, struct err *e)
{
	const char *code = *a->error_code ? a->error_code : "no reason given";

	if (!c->keys)
		return err_set(e, -EACCES,
			       "%s: access denied (%s): the request was not signed, because no "
			       "credentials were found (looked for in: %s)",
			       who, code,
			       *aws_resolved_from(c->s->aws)
				       ? aws_resolved_from(c->s->aws)
				       : "nothing, as access is anonymous");
	if (strcmp(code, "SignatureDoesNotMatch") == 0)
		return err_set(e, -EACCES,
			       "%s: the service rejects the signature: the secret key from %s "
			       "does not match its access key (SignatureDoesNotMatch)",
			       who, c->keys->from);
	if (strcmp(code, "InvalidAccessKeyId") == 0)
		return err_set(e, -EACCES,
			       "%s: the service does not know the access key from %s "
			       "(InvalidAccessKeyId)",
			       who, c->keys->from);
	if (strcmp(code, "RequestTimeTooSkewed") == 0)
		return err_set(e, -EACCES,
			       "%s: the clock of this machine is wrong (RequestTimeTooSkewed)",
			       who);
	return err_set(
		e, -EACCES,
		"%s: access denied with the keys from %s (%s): the object is not readable, or "
		"it does not exist and you may not list the bucket (s3:ListBucket)",
		who, c->keys->from, code);
}

static int error_absent(const struct s3_request *c, const struct http_response *a,
			const char *who, struct err *e)
{
	if (http_code_is(a, "NoSuchKey") ||
	    (atomic_load(&c->s->seen) && strcmp(c->http.method, "HEAD") == 0 && c->key))
		return err_set(e, -ENOENT, "%s: not found", who);
	if (http_code_is(a, "NoSuchBucket"))
		return err_set(e, -EIO, "%s: bucket '%.80s' does not exist at '%.100s'", who,
			       c->s->bucket, c->place.host);
	return err_set(e, -EIO, "%s: '%.100s' answers %u (%s): is it an S3 service?", who,
		       c->place.host, a->status,
		       *a->error_code ? a->error_code : "no reason given");
}

/* error_elsewhere - the error of a redirect that was not followed. */
static int error_elsewhere(const struct http_response *a, const char *who, struct err *e)
{
	auto_buf shown = buf_of(URL_MAX);
	struct url u;

	if (!url_is(a->location) || url_parse(a->location, &u, NULL) < 0)
		return err_set(e, -EIO,
			       "%s: the bucket is in another region (%u %s), and the service "
			       "does not state which: set it with -o region=",
			       who, a->status, a->error_code);
	url_put(&shown, &u, false);
	buf_putc(&shown, '\0');
	url_release(&u);
	return err_set(
		e, -EIO,
		"%s: redirected to '%.150s', which is not followed: set it with -o endpoint=",
		who, buf_ok(&shown) ? (const char *)shown.data : "");
}

int s3_failed(const struct s3_request *c, const struct http_response *a, struct err *e)
{
	char who[256];

	if (c->key && *c->key)
		snprintf(who, sizeof(who), "'%.100s': '%.120s'", c->s->shown, c->key);
	else
		snprintf(who, sizeof(who), "'%.200s'", c->s->shown);
	if (c->expired)
		return err_set(e, -EKEYEXPIRED, "%s: the keys from %s have expired (%s)", who,
			       c->keys->from, a->error_code);
	if (a->status >= 300 && a->status < 400 && a->status != 304)
		return error_elsewhere(a, who, e);
	if (a->rc == 0)
		return 0;
	if (a->rc == -EINTR || a->rc == -ECANCELED || a->rc == -ETIMEDOUT || a->rc == -EFBIG ||
	    a->status < 400)
		return err_set(e, a->rc, "%s: %s", who, a->e.msg);
	switch (a->status) {
	case 401:
	case 403:
		return error_denied(c, a, who, e);
	case 404:
	case 410:
		return error_absent(c, a, who, e);
	case 412:
		return err_set(e, -ESTALE, "%s: it was changed in the meantime", who);
	case 416:
		return err_set(e, -ERANGE, "%s: the range lies after its end", who);
	case 501:
		return err_set(e, -EOPNOTSUPP,
			       "%s: the service does not support this request (501 %s)", who,
			       a->error_code);
	default:
		break;
	}
	if (http_code_is(a, "ExpiredToken") && c->keys)
		return err_set(e, -EACCES, "%s: the keys from %s have expired (ExpiredToken)",
			       who, c->keys->from);
	return err_set(e, a->rc, "%s: %u %s%s%s", who, a->status, a->error_code,
		       *a->error_code ? ": " : "", a->e.msg);
}
