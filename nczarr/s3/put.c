/* SPDX-License-Identifier: BSD-3-Clause */
/* put.c - writes and removes. All sent bytes are covered by a digest in the signature: a modified
 * request is rejected. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <string.h>

/* putting - a put in one request. */
struct putting {
	struct s3_put_request w;
	char sha256[S3_HEX_SHA256], md5[33];
	char condition[OBJECT_ETAG_MAX + 16];
};

/* s3_put_same_bytes - whether the object has the bytes to put. It is read, because its ETag may be
 * another number than their MD5: with keys of KMS it is. */
static bool s3_put_same_bytes(const struct putting *p, struct object_got *ret)
{
	const struct object_range r = {
		.key = p->w.key, .what = OBJECT_ALL, .len = p->w.len};
	char sha256[S3_HEX_SHA256];

	return object_get(&p->w.s->base, &r, ret, NULL) == 0 &&
	       s3_digest(ret->data ? (const char *)ret->data : "", -1, 0, ret->len, sha256, NULL,
			 NULL) == 0 &&
	       strcmp(sha256, p->sha256) == 0;
}

/* s3_put_is_ours - whether the object is the one to put: an answer was lost, and the retry found
 * its own object. */
static bool s3_put_is_ours(const struct putting *p, struct object_info *ret)
{
	const struct object_range r = {.key = p->w.key, .what = OBJECT_HEAD};
	struct object_got got;
	char etag[40];
	bool ours;

	if (object_get(&p->w.s->base, &r, &got, NULL) < 0)
		return false;
	snprintf(etag, sizeof(etag), "\"%s\"", p->md5);
	ours = got.info.size == p->w.len &&
	       (strcmp(got.info.etag, etag) == 0 || s3_put_same_bytes(p, &got));
	if (ours && ret)
		*ret = got.info;
	free(got.data);
	return ours;
}

/* once - one PUT. *ret_tries: number of tries. */
static int once(struct putting *p, struct object_info *ret, unsigned *ret_status,
		unsigned *ret_tries, struct err *e)
{
	struct s3_request c = {.s = p->w.s,
			       .key = p->w.key,
			       .headers = {*p->condition ? p->condition : NULL},
			       .digest = p->sha256,
			       .http = {.method = "PUT",
					.body = p->w.len ? p->w.data : NULL,
					.body_len = p->w.len,
					.body_fd = p->w.fd,
					.body_off = p->w.off,
					.max_body = 1u << 16}};
	struct http_response a;
	int rc = s3_do(&c, &a, e);

	*ret_status = a.status;
	*ret_tries = a.tries + c.turns;
	if (rc == 0 && !*a.etag) /* the answer of a proxy or portal: not stored */
		rc = err_set(e, -EIO,
			     "'%.200s': the response has no ETag: the server may not be S3, "
			     "and the data may not be written",
			     p->w.key);
	if (rc == 0 && ret)
		s3_info_of(&a, p->w.len, ret);
	http_response_release(&a);
	s3_request_release(&c);
	return rc;
}

/* conditional - the same with a condition; a retry may find the object of the first try. */
static int conditional(struct putting *p, struct object_info *ret, struct err *e)
{
	unsigned status, tries;
	int rc = once(p, ret, &status, &tries, e);

	return status == 412 && tries > 1 && s3_put_is_ours(p, ret) ? 0 : rc;
}

/* s3_put_put_same - put over one version only. Ceph compares the condition with its ETag without
 * quotes, so that is tried first; services that follow RFC 9110 need them. */
static int s3_put_put_same(struct putting *p, struct object_info *ret, struct err *e)
{
	const char *etag = p->w.cond->etag;
	size_t n = strlen(etag);
	int rc;

	if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"') {
		snprintf(p->condition, sizeof(p->condition), "If-Match: %.*s", (int)(n - 2),
			 etag + 1);
		rc = conditional(p, ret, e);
		if (rc != -ESTALE)
			return rc;
	}
	snprintf(p->condition, sizeof(p->condition), "If-Match: %.*s", OBJECT_ETAG_MAX, etag);
	rc = conditional(p, ret, e);
	/* the object to replace was removed */
	return rc == -ENOENT ? err_set(e, -ESTALE, "'%.200s' was removed", p->w.key) : rc;
}

int s3_put(struct object_service *o, const char *key, const void *data, int fd, uint64_t off,
	   uint64_t len, const struct put_condition *cond, struct object_info *ret,
	   struct err *e)
{
	struct s3 *s = CONTAINER_OF(o, struct s3, base);
	struct putting p = {.w = {s, key, data, fd, off, len, cond}};
	bool conditions = cond && (cond->absent || cond->etag);
	unsigned status, tries;
	int rc = s3_key_check(s, key, e);

	if (rc < 0)
		return rc;
	if (len > S3_WHOLE)
		return s3_put_parts(&p.w, ret, e);
	rc = s3_digest(data, fd, off, len, p.sha256, conditions ? p.md5 : NULL, e);
	if (rc < 0)
		return rc;
	if (!conditions)
		return once(&p, ret, &status, &tries, e);
	if (!cond->absent)
		return s3_put_put_same(&p, ret, e);
	snprintf(p.condition, sizeof(p.condition), "If-None-Match: *");
	rc = conditional(&p, ret, e);
	return rc == -ESTALE ? err_set(e, -EEXIST, "'%.200s' already exists", key) : rc;
}

int s3_remove(struct object_service *o, const char *key, struct err *e)
{
	struct s3 *s = CONTAINER_OF(o, struct s3, base);
	struct s3_request c = {
		.s = s, .key = key, .http = {.method = "DELETE", .max_body = 1u << 16}};
	struct http_response a;
	int rc = s3_key_check(s, key, e);

	if (rc < 0)
		return rc;
	rc = s3_do(&c, &a, e);
	if (rc == 0 && (a.status >= 300 || a.body.len > 0))
		rc = err_set(
			e, -EIO,
			"'%.200s': the response is not from S3: the object may not be removed",
			key);
	http_response_release(&a);
	s3_request_release(&c);
	return rc == -ENOENT ? 0 : rc;
}
