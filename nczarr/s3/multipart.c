/* SPDX-License-Identifier: BSD-3-Clause */
/* multipart.c - uploads of large objects in several parts, some in parallel; the object appears
 * only when all are complete. A failed upload is aborted, so that its parts are not charged. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/cancel.h"

#define PARTS_MAX 10000
#define AT_A_TIME 4
#define ETAG_TEXT 96

struct upload;

/* multipart_part - a part in flight. */
struct multipart_part {
	struct upload *u;
	size_t index;
	struct s3_request c;
	char digest[S3_HEX_SHA256];
	struct buf query;
};

/* upload - one object. */
struct upload {
	struct s3_put_request w;
	uint64_t part;            /* bytes of one */
	size_t n;                 /* parts */
	char (*etags)[ETAG_TEXT]; /* of n; lock */
	struct buf query;         /* "uploadId=..." with its NUL; empty until it has begun */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned flying; /* lock */
	struct err e;    /* lock: the first failure */
};

/* call_of - a request for the whole upload, with a body in memory. */
static struct s3_request call_of(const struct upload *u, const char *method, const char *query)
{
	return (struct s3_request){.s = u->w.s,
				   .key = u->w.key,
				   .query = query,
				   .http = {.method = method, .max_body = 1u << 16}};
}

static int multipart_begin(struct upload *u, struct err *e)
{
	struct s3_request c = call_of(u, "POST", "uploads=");
	char digest[S3_HEX_SHA256], id[1024];
	struct http_response a;
	int rc = s3_sha256("", 0, digest, e);

	if (rc < 0)
		return rc;
	c.digest = digest;
	rc = s3_do(&c, &a, e);
	if (rc == 0 &&
	    (!s3_xml_text(a.body.data, a.body.len, "UploadId", id, sizeof(id)) || !*id))
		rc = err_set(e, -EIO,
			     "'%.200s': the service does not state how to upload it in parts",
			     u->w.key);
	if (rc == 0) {
		s3_query_put(&u->query, "uploadId", id);
		buf_putc(&u->query, '\0');
		rc = buf_ok(&u->query) ? 0 : err_nomem(e);
	}
	http_response_release(&a);
	s3_request_release(&c);
	return rc;
}

static void give_up(const struct upload *u)
{
	struct s3_request c = call_of(u, "DELETE", (const char *)u->query.data);
	struct http_response a;
	int rc = s3_do(&c, &a, NULL); /* at worst the service keeps unused parts */

	(void)rc;
	http_response_release(&a);
	s3_request_release(&c);
}

/* Parts. */

/* multipart_ended - a part is complete or has failed. */
static void multipart_ended(struct multipart_part *p, int rc, const struct http_response *a,
			    const struct err *e)
{
	struct upload *u = p->u;

	pthread_mutex_lock(&u->lock);
	if (rc < 0 && rc != -EKEYEXPIRED && !u->e.code)
		u->e = *e;
	else if (rc == 0)
		snprintf(u->etags[p->index], ETAG_TEXT, "%.*s", ETAG_TEXT - 1, a->etag);
	u->flying--;
	pthread_cond_broadcast(&u->cond);
	pthread_mutex_unlock(&u->lock);
	s3_request_release(&p->c);
	buf_release(&p->query);
	free(p);
}

static void on_part(void *arg, struct http_response *a)
{
	struct multipart_part *p = arg;
	struct err e = ERR_INIT;
	int rc = 0;

	s3_in_done = true;
	if (s3_should_reissue(&p->c, a)) {
		rc = s3_start(&p->c, on_part, p, &e);
		if (rc < 0)
			multipart_ended(p, rc, a, &e);
	} else {
		rc = s3_failed(&p->c, a, &e);
		if (rc == 0 && (!*a->etag || strlen(a->etag) >= ETAG_TEXT))
			rc = err_set(&e, -EIO,
				     "'%.200s': the service accepted a part without an ETag",
				     p->c.key);
		multipart_ended(p, rc, a, &e);
	}
	http_response_release(a);
	buf_init(&a->body, 0);
	s3_in_done = false;
}

/* start_part - compute its digest while others are in flight, and start it. */
static int start_part(struct upload *u, size_t index, struct err *e)
{
	uint64_t at = (uint64_t)index * u->part, n = u64_min(u->part, u->w.len - at);
	const uint8_t *data = u->w.data ? (const uint8_t *)u->w.data + at : NULL;
	struct multipart_part *p = calloc(1, sizeof(*p));
	struct err why = ERR_INIT;
	int rc;

	if (!p)
		return err_nomem(e);
	p->u = u;
	p->index = index;
	p->query = buf_of(1u << 13);
	buf_printf(&p->query, "partNumber=%zu&%s%c", index + 1, (char *)u->query.data, '\0');
	p->c = call_of(u, "PUT", (const char *)p->query.data);
	p->c.digest = p->digest;
	p->c.http.body = data;
	p->c.http.body_fd = u->w.fd;
	p->c.http.body_off = u->w.off + at;
	p->c.http.body_len = n;
	rc = buf_ok(&p->query)
		     ? s3_digest(data, u->w.fd, u->w.off + at, n, p->digest, NULL, &why)
		     : err_nomem(&why);
	pthread_mutex_lock(&u->lock);
	u->flying++;
	pthread_mutex_unlock(&u->lock);
	rc = rc ? rc : s3_start(&p->c, on_part, p, &why);
	if (rc < 0)
		multipart_ended(p, rc, NULL, &why);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

/* wait_below - wait until fewer than `most` are in flight, or one has failed. */
static int wait_below(struct upload *u, unsigned most, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	while (rc == 0 && !u->e.code && u->flying >= most)
		rc = cancel_wait(&u->cond, &u->lock);
	if (u->e.code)
		rc = err_set(e, u->e.code, "%s", u->e.msg);
	else if (rc < 0)
		rc = err_set(e, rc, "cancelled");
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* sent - whether all parts are complete. None is in flight. */
static bool sent(const struct upload *u)
{
	size_t i = 0;

	while (i < u->n && *u->etags[i])
		i++;
	return i == u->n;
}

/* send_parts - send all parts; those whose keys expired are sent again with keys of this thread. */
static int send_parts(struct upload *u, struct err *e)
{
	int rc = 0;

	while (rc == 0 && !sent(u)) {
		for (size_t i = 0; rc == 0 && i < u->n; i++) {
			if (*u->etags[i])
				continue;
			rc = wait_below(u, AT_A_TIME, e);
			rc = rc ? rc : start_part(u, i, e);
		}
		rc = rc ? rc : wait_below(u, 1, e);
	}
	/* the requests use our memory, even if this thread is cancelled: each has a time limit */
	pthread_mutex_lock(&u->lock);
	while (u->flying)
		pthread_cond_wait(&u->cond, &u->lock);
	pthread_mutex_unlock(&u->lock);
	return rc;
}

/* The end. */

static int put_parts(const struct upload *u, struct buf *out, struct err *e)
{
	buf_puts(out,
		 "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (size_t i = 0; i < u->n; i++) {
		buf_printf(out, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
		str_put_xml(out, u->etags[i], strlen(u->etags[i]));
		buf_puts(out, "</ETag></Part>");
	}
	buf_puts(out, "</CompleteMultipartUpload>");
	return buf_ok(out) ? 0 : err_nomem(e);
}

/* current_object - info of the current object. */
static int current_object(const struct upload *u, struct object_info *ret, struct err *e)
{
	const struct object_range r = {.key = u->w.key, .what = OBJECT_HEAD};
	struct object_got got;
	int rc = object_get(&u->w.s->base, &r, &got, e);

	*ret = got.info;
	free(got.data);
	return rc;
}

/* multipart_finish - complete the upload. If the answer is lost, it is requested again, and the
 * service does not know the upload any more: it succeeded if the object has its size. */
static int multipart_finish(struct upload *u, const char *condition, struct err *e)
{
	struct s3_request c = call_of(u, "POST", (const char *)u->query.data);
	char digest[S3_HEX_SHA256];
	struct object_info now;
	struct http_response a;
	auto_buf body = buf_of(4u << 20);
	int rc = put_parts(u, &body, e);

	rc = rc ? rc : s3_sha256(body.data, body.len, digest, e);
	if (rc < 0)
		return rc;
	c.digest = digest;
	c.http.body = body.data;
	c.http.body_len = body.len;
	c.headers[0] = "Content-Type: application/xml";
	c.headers[1] = condition;
	rc = s3_do(&c, &a, e);
	if (rc < 0 && http_code_is(&a, "NoSuchUpload") && a.tries > 1 &&
	    current_object(u, &now, NULL) == 0 && now.size == u->w.len)
		rc = 0;
	http_response_release(&a);
	s3_request_release(&c);
	return rc;
}

/* multipart_allowed - check the condition before the upload, because not every service checks it
 * at completion. */
static int multipart_allowed(const struct upload *u, char condition[], size_t cap,
			     struct err *e)
{
	const struct put_condition *cond = u->w.cond;
	struct object_info now;
	int rc;

	*condition = '\0';
	if (!cond || !(cond->absent || cond->etag))
		return 0;
	rc = current_object(u, &now, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (cond->absent) {
		snprintf(condition, cap, "If-None-Match: *");
		return rc == 0 ? err_set(e, -EEXIST, "'%.200s' already exists", u->w.key) : 0;
	}
	if (rc < 0 || strcmp(now.etag, cond->etag) != 0)
		return err_set(e, -ESTALE, "'%.200s' was changed in the meantime", u->w.key);
	snprintf(condition, cap, "If-Match: %s", cond->etag);
	return 0;
}

static int multipart_run(struct upload *u, struct object_info *ret, struct err *e)
{
	char condition[OBJECT_ETAG_MAX + 16];
	struct object_info now;
	int rc = multipart_allowed(u, condition, sizeof(condition), e);

	rc = rc ? rc : multipart_begin(u, e);
	if (rc < 0)
		return rc;
	rc = send_parts(u, e);
	rc = rc ? rc : multipart_finish(u, *condition ? condition : NULL, e);
	if (rc < 0) {
		give_up(u);
		if (rc == -ESTALE && u->w.cond && u->w.cond->absent)
			rc = err_set(e, -EEXIST, "'%.200s' already exists", u->w.key);
		return rc;
	}
	rc = current_object(u, &now, e);
	if (rc == 0 && now.size != u->w.len)
		rc = err_set(e, -EIO, "'%.200s' has another size than was written", u->w.key);
	if (rc == 0 && ret)
		*ret = now;
	return rc;
}

int s3_put_parts(const struct s3_put_request *w, struct object_info *ret, struct err *e)
{
	struct upload *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return err_nomem(e);
	u->w = *w;
	u->query = buf_of(1u << 13);
	u->part = u64_max(S3_PART, w->len / PARTS_MAX + 1);
	u->n = (size_t)((w->len + u->part - 1) / u->part);
	u->etags = alloc_array(u->n, sizeof(*u->etags));
	pthread_mutex_init(&u->lock, NULL);
	cancel_cond_init(&u->cond);
	rc = u->etags ? multipart_run(u, ret, e) : err_nomem(e);
	pthread_cond_destroy(&u->cond);
	pthread_mutex_destroy(&u->lock);
	buf_release(&u->query);
	free(u->etags);
	free(u);
	return rc;
}
