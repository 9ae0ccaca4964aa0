/* SPDX-License-Identifier: BSD-3-Clause */
/* get.c - reads: HEAD, whole objects, ranges. A request is kept until its result is delivered; an
 * inconsistent answer is requested again before it is an error. */
#include "base/core/str.h"
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define DAMAGED_TRIES 3

/* s3_get_fetch - a fetch in flight. */
struct s3_get_fetch {
	struct s3_request c;
	object_done *done;
	void *arg;
	char *key, *etag, *unless; /* owned; the last two NULL */
	int what;
	uint64_t off, len;
	char range[80], if_match[OBJECT_ETAG_MAX + 16], if_none[OBJECT_ETAG_MAX + 20];
	bool sizing; /* the current request is for the info only */
	bool reason; /* the current request is for the reason of a failed HEAD */
	unsigned damaged;
};

static void s3_get_fetch_free(struct s3_get_fetch *f)
{
	s3_request_release(&f->c);
	s3_unref(f->c.s);
	free(f->key);
	free(f->etag);
	free(f->unless);
	free(f);
}

static void s3_get_tell(struct s3_get_fetch *f, struct object_got *got)
{
	s3_in_done = true;
	f->done(f->arg, got);
	s3_in_done = false;
	s3_get_fetch_free(f);
}

static void tell_error(struct s3_get_fetch *f, int rc, const struct err *e)
{
	struct object_got got = {.rc = rc, .e = *e};

	s3_get_tell(f, &got);
}

/* s3_get_set_headers - set range and conditions of the current request. */
static void s3_get_set_headers(struct s3_get_fetch *f)
{
	size_t n = 0;

	memset(f->c.headers, 0, sizeof(f->c.headers));
	if (*f->range && !f->sizing)
		f->c.headers[n++] = f->range;
	if (f->etag) {
		snprintf(f->if_match, sizeof(f->if_match), "If-Match: %s", f->etag);
		f->c.headers[n++] = f->if_match;
	}
	if (f->unless) {
		snprintf(f->if_none, sizeof(f->if_none), "If-None-Match: %s", f->unless);
		f->c.headers[n++] = f->if_none;
	}
	f->c.turns = 0;
}

static void s3_get_on_answer(void *arg, struct http_response *a);

static int s3_get_begin(struct s3_get_fetch *f, struct err *e)
{
	bool head = f->sizing || (f->what == OBJECT_HEAD && !f->reason);

	f->c.http.method = head ? "HEAD" : "GET";
	f->c.http.max_body = f->reason ? 1 : head ? 0 : f->len;
	f->c.http.part_off = f->off;
	f->c.http.part_len = f->what == OBJECT_PART && !head && !f->reason ? f->len : 0;
	object_range_line(f->what, f->off, f->len, f->reason, f->range);
	s3_get_set_headers(f);
	return s3_start(&f->c, s3_get_on_answer, f, e);
}

/* s3_get_again - send the request again, from the HTTP client's thread; a failure is delivered. */
static void s3_get_again(struct s3_get_fetch *f, bool learned)
{
	struct err e = ERR_INIT;
	int rc = learned ? s3_start(&f->c, s3_get_on_answer, f, &e) : s3_get_begin(f, &e);

	if (rc < 0)
		tell_error(f, rc, &e);
}

/* check_cut - check the part of a complete object, from a service without ranges. */
static int check_cut(const struct s3_get_fetch *f, const struct http_response *a,
		     struct object_got *got)
{
	uint64_t want = a->length > f->off ? u64_min(f->len, a->length - f->off) : 0;

	if (a->length == UINT64_MAX || a->body.len != want)
		return err_set(&got->e, -EBADMSG,
			       "'%s': the response without a range is truncated", f->key);
	s3_info_of(a, a->length, &got->info);
	got->off = want ? f->off : a->length;
	return 0;
}

/* s3_get_check - check that the answer matches the request; *got is filled except for the bytes. */
static int s3_get_check(const struct s3_get_fetch *f, const struct http_response *a,
			struct object_got *got)
{
	uint64_t n = a->body.len;
	bool another;

	if (f->c.http.method[0] == 'H') {
		/* without a body, another server cannot be recognised */
		if (!*a->etag && !a->modified)
			return err_set(&got->e, -EBADMSG,
				       "'%s': the response has no ETag and no date: is it an "
				       "S3 service?",
				       f->key);
		s3_info_of(a, a->length, &got->info);
		return 0;
	}
	if (a->cut)
		return check_cut(f, a, got);
	if (a->status == 200 && !a->ranged) {
		s3_info_of(a, n, &got->info);
		return 0;
	}
	if (!a->ranged || f->what == OBJECT_ALL || a->range_end < a->range_off ||
	    a->range_end - a->range_off != n)
		return err_set(&got->e, -EBADMSG,
			       "'%s': received %" PRIu64
			       " bytes, which does not match the header of the response",
			       f->key, n);
	if (f->what == OBJECT_PART)
		another = a->range_off != f->off || (n != f->len && a->range_size != UINT64_MAX &&
						     a->range_end != a->range_size);
	else
		another = f->what == OBJECT_TAIL &&
			  (a->range_size == UINT64_MAX || a->range_end != a->range_size ||
			   (n != f->len && a->range_off != 0));
	if (another)
		return err_set(&got->e, -EBADMSG, "'%s': received another range than requested",
			       f->key);
	s3_info_of(a, a->range_size, &got->info);
	got->off = a->range_off;
	return 0;
}

/* succeeded - handle an answer below 400. */
static void succeeded(struct s3_get_fetch *f, struct http_response *a)
{
	struct object_got got = {.rc = 0};

	if (a->status == 304) {
		got.rc = err_set(&got.e, -EALREADY, "'%s' is unchanged", f->key);
		s3_get_tell(f, &got);
		return;
	}
	if (f->reason) /* HEAD failed, GET did not: its answer has the info */
		s3_info_of(a, a->ranged ? a->range_size : a->length, &got.info);
	else
		got.rc = s3_get_check(f, a, &got);
	if (got.rc < 0 && ++f->damaged < DAMAGED_TRIES) {
		s3_get_again(f, false);
		return;
	}
	if (got.rc == 0 && f->sizing)
		got.off = got.info.size;
	else if (got.rc == 0 && !f->reason && f->what != OBJECT_HEAD)
		got.data = buf_take(&a->body, &got.len);
	s3_get_tell(f, &got);
}

/* too_big - OBJECT_ALL of an object that is larger than the limit: deliver its info. */
static bool too_big(struct s3_get_fetch *f, const struct http_response *a)
{
	struct object_got got = {.rc = 0};

	if (f->what != OBJECT_ALL || a->rc != -EFBIG || a->length == UINT64_MAX || !*a->etag)
		return false;
	s3_info_of(a, a->length, &got.info);
	got.rc = err_set(&got.e, -ERANGE, "'%s' has %" PRIu64 " bytes, the limit is %" PRIu64,
			 f->key, a->length, f->len);
	s3_get_tell(f, &got);
	return true;
}

static void s3_get_on_answer(void *arg, struct http_response *a)
{
	struct s3_get_fetch *f = arg;
	struct err e = ERR_INIT;
	int rc;

	s3_in_done = true;
	if (s3_should_reissue(&f->c, a)) {
		s3_get_again(f, true);
	} else if (f->c.http.method[0] == 'H' && !f->sizing && !*a->error_code && !f->reason &&
		   (a->status == 400 || a->status == 403 || a->status == 404 ||
		    a->status == 301)) { /* only GET has a body with the reason */
		f->reason = true;
		s3_get_again(f, false);
	} else if (a->status == 416 && !f->sizing && !f->reason && f->what != OBJECT_HEAD) {
		f->sizing = true; /* empty, or the range is after its end: request the info */
		s3_get_again(f, false);
	} else if (!too_big(f, a)) {
		rc = s3_failed(&f->c, a, &e);
		if (rc < 0)
			tell_error(f, rc, &e);
		else
			succeeded(f, a);
	}
	http_response_release(a);
	buf_init(&a->body, 0);
	s3_in_done = false;
}

int s3_fetch(struct object_service *o, const struct object_range *r, object_done *done,
	     void *arg, struct err *e)
{
	struct s3 *s = CONTAINER_OF(o, struct s3, base);
	int rc = s3_key_check(s, r->key, e);
	bool failed = false;
	struct s3_get_fetch *f;

	if (rc < 0)
		return rc;
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(e);
	atomic_fetch_add(&s->refs, 1);
	f->done = done;
	f->arg = arg;
	f->what = (int)r->what;
	f->off = r->off;
	f->len = r->len;
	f->key = str_copy(r->key, &failed);
	f->etag = str_copy(r->etag, &failed);
	f->unless = str_copy(r->unless, &failed);
	f->sizing = (r->what == OBJECT_PART || r->what == OBJECT_TAIL) && r->len == 0;
	f->c = (struct s3_request){
		.s = s, .key = f->key, .http.background = r->background};
	rc = failed ? err_nomem(e) : s3_get_begin(f, e);
	if (rc < 0)
		s3_get_fetch_free(f);
	return rc;
}
