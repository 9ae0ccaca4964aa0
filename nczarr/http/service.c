/* SPDX-License-Identifier: BSD-3-Clause */
/* service.c - the objects below an address of a web server.
 *
 * A key is appended to the path of the address, segment by segment, before its query. Servers
 * differ: one without ranges sends whole files, one without HEAD gets a request for one byte, one
 * without suffix ranges gets a request for the size first. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "nczarr/remote/services.h"

#include "base/core/str.h"
#include "base/os/url.h"

enum { KEY_MAX = 4096, TOKEN_MAX = 16 << 10 };

struct http {
	struct object_service o;
	_Atomic unsigned refs; /* of the caller, and each fetch */
	struct http_client *net;
	char *url, *query, *shown;
	char *user, *password;
	const char *bearer_file; /* borrowed; NULL: none */
	bool public_only;
};

/* service_fetch - one object_range, which may take two requests. */
struct service_fetch {
	struct http *h;
	struct object_range r; /* strings owned */
	char *key, *etag, *unless, *url, *token;
	object_done *done;
	void *arg;
	bool asked_size; /* the size was requested, or is known */
	bool by_get;     /* HEAD failed */
	bool after;      /* only the info was missing */
	uint64_t size;   /* from which the start of a tail was computed */
};

static void http_unref(struct http *h)
{
	if (atomic_fetch_sub(&h->refs, 1) != 1)
		return;
	free(h->url);
	str_wipe(h->query);
	free(h->shown);
	str_wipe(h->user);
	str_wipe(h->password);
	free(h);
}

static void service_fetch_free(struct service_fetch *f)
{
	http_unref(f->h);
	free(f->key);
	free(f->etag);
	free(f->unless);
	str_wipe(f->url);
	str_wipe(f->token);
	free(f);
}

/* service_end - deliver the result; takes data. */
static void service_end(struct service_fetch *f, int rc, const struct err *e,
			const struct object_info *info, uint64_t off, struct buf *body)
{
	struct object_got got = {.rc = rc, .off = off};

	if (e)
		got.e = *e;
	if (info) {
		got.info = *info;
		got.info.version = object_version(info);
	}
	if (body)
		got.data = buf_take(body, &got.len);
	f->done(f->arg, &got);
	service_fetch_free(f);
}

NZ_PRINTF(3, 4) static void service_fail(struct service_fetch *f, int rc, const char *fmt, ...)
{
	struct err e = ERR_INIT;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	err_set(&e, rc, "'%.120s': '%.60s': %s", f->h->shown, f->r.key, text);
	service_end(f, rc, &e, NULL, 0, NULL);
}

/* Requests. */

static void service_on_answer(void *arg, struct http_response *a);

static int service_ask(struct service_fetch *f, struct err *e)
{
	const struct http *h = f->h;
	const struct object_range *r = &f->r;
	char range[80], match[OBJECT_ETAG_MAX + 16], none[OBJECT_ETAG_MAX + 24];
	const char *lines[4];
	size_t n = 0;
	struct http_request w = {
		.method = r->what == OBJECT_HEAD && !f->by_get ? "HEAD" : "GET",
		.url = f->url,
		.headers = lines,
		.max_body = r->what == OBJECT_HEAD ? 1 : r->len,
		.background = r->background,
		.public_only = h->public_only,
		.user = h->user,
		.password = h->password,
		.bearer = f->token,
	};

	object_range_line(r->what, r->off, r->len, r->what == OBJECT_HEAD && f->by_get, range);
	if (range[0])
		lines[n++] = range;
	if (r->what == OBJECT_PART || f->by_get) {
		w.part_off = r->what == OBJECT_PART ? r->off : 0;
		w.part_len = r->what == OBJECT_PART ? r->len : 1;
	}
	if (r->etag && r->etag[0] && strncmp(r->etag, "W/", 2) != 0) {
		(void)snprintf(match, sizeof(match), "If-Match: %.255s", r->etag);
		lines[n++] = match;
	}
	if (r->unless && r->unless[0]) {
		(void)snprintf(none, sizeof(none), "If-None-Match: %.255s", r->unless);
		lines[n++] = none;
	}
	lines[n] = NULL;
	return http_start(h->net, &w, service_on_answer, f, e);
}

/* ask_again - send the second request of a fetch, from the client's thread. */
static void ask_again(struct service_fetch *f)
{
	struct err e = ERR_INIT;
	int rc = service_ask(f, &e);

	if (rc < 0)
		service_end(f, rc, &e, NULL, 0, NULL);
}

/* ask_size - request the info, before or in place of the data. */
static void ask_size(struct service_fetch *f, bool after)
{
	f->asked_size = true;
	f->after = after;
	f->r.what = OBJECT_HEAD;
	f->by_get = false;
	ask_again(f);
}

/* Understanding. */

static void info_came(struct service_fetch *f, const struct object_info *info);

static void info_of(const struct http_response *a, struct object_info *ret)
{
	*ret = (struct object_info){
		.size = UINT64_MAX, .weak = a->weak, .changed = a->modified};
	if (a->status == 206 || a->status == 416)
		ret->size = a->range_size;
	else if (!a->encoded)
		ret->size = a->length;
	(void)snprintf(ret->etag, sizeof(ret->etag), "%s", a->etag);
}

/* service_behind - handle 416 Range Not Satisfiable. */
static void service_behind(struct service_fetch *f, const struct http_response *a)
{
	struct object_info info;

	info_of(a, &info);
	if (f->r.what == OBJECT_HEAD) { /* not even the one requested byte exists */
		if (f->by_get && info.size == 0)
			info_came(f, &info);
		else
			service_fail(f, -EIO,
				     "the server cannot send the first byte, and does not "
				     "state that the file is empty (HTTP 416)");
		return;
	}
	if (f->r.what == OBJECT_PART && info.size != UINT64_MAX && info.size > f->r.off) {
		service_fail(f, -EBADMSG,
			     "the server states a size of %llu bytes, which is less than "
			     "offset %llu",
			     (unsigned long long)info.size, (unsigned long long)f->r.off);
		return;
	}
	if (f->r.what == OBJECT_PART && info.size != UINT64_MAX && info.etag[0]) {
		service_end(f, 0, NULL, &info, f->r.off, NULL);
		return;
	}
	/* The version that ends there is not stated; for a tail the server may only not support
	 * tails. */
	ask_size(f, f->r.what == OBJECT_PART);
}

static void service_failed(struct service_fetch *f, struct http_response *a)
{
	struct object_info info;

	/* GET may work: servers without HEAD, and URLs signed for GET */
	if (f->r.what == OBJECT_HEAD && !f->by_get &&
	    (a->status == 400 || a->status == 403 || a->status == 405 || a->status == 501)) {
		f->by_get = true;
		ask_again(f);
	} else if (a->rc == -ERANGE && a->status == 416 && f->r.what != OBJECT_ALL) {
		service_behind(f, a);
	} else if (a->rc == -EFBIG && f->r.what == OBJECT_TAIL && !f->asked_size) {
		ask_size(f, false); /* it does not support tails, and sends all */
	} else if (a->rc == -EFBIG && f->r.what == OBJECT_ALL) {
		info_of(a, &info);
		service_end(f, -ERANGE, &a->e, &info, 0, NULL);
	} else {
		service_end(f, a->rc, &a->e, NULL, 0, NULL);
	}
}

/* wrong_range - the error in the range of an answer; NULL: none. */
static const char *wrong_range(const struct service_fetch *f, const struct http_response *a)
{
	const struct object_range *r = &f->r;
	uint64_t size = a->range_size, end = UINT64_MAX;

	if (a->status != 206)
		return NULL;
	if (r->what == OBJECT_ALL)
		return "a part (206) although everything was requested";
	if (!a->ranged)
		return "a part (206) without stating its range";
	if (r->what == OBJECT_HEAD)
		return a->range_off ? "another range than requested" : NULL;
	if (r->what == OBJECT_TAIL) {
		if (size == UINT64_MAX || a->range_end != size ||
		    a->range_off != (size > r->len ? size - r->len : 0))
			return "another range than the last bytes";
		return NULL;
	}
	if (ckd_add(&end, r->off, r->len))
		end = UINT64_MAX;
	if (a->range_off != r->off || a->range_end > end)
		return "another range than requested";
	if (a->range_end < end && size != a->range_end)
		return "less than requested";
	return NULL;
}

/* info_came - the info is complete, or the rest can be requested now. */
static void info_came(struct service_fetch *f, const struct object_info *info)
{
	struct object_range *r = &f->r;

	if (!f->asked_size) {
		service_end(f, 0, NULL, info, 0, NULL);
	} else if (info->size == UINT64_MAX) {
		service_fail(f, -EOPNOTSUPP,
			     "the server neither states the size nor sends the last bytes");
	} else if (f->after && info->size > r->off) {
		service_fail(f, -ESTALE, "it was changed in the meantime");
	} else if (f->after || info->size == 0 || r->len == 0) {
		service_end(f, 0, NULL, info, f->after ? r->off : info->size, NULL);
	} else {
		r->what = OBJECT_PART;
		r->len = u64_min(r->len, info->size);
		r->off = info->size - r->len;
		f->by_get = false;
		f->size = info->size;
		if (!f->etag && info->etag[0] && !info->weak)
			r->etag = f->etag =
				strdup(info->etag); /* NULL: the size is compared instead */
		ask_again(f);
	}
}

static void came(struct service_fetch *f, struct http_response *a)
{
	const struct object_range *r = &f->r;
	const char *wrong = wrong_range(f, a);
	struct object_info info;
	uint64_t off = r->what == OBJECT_PART ? r->off : a->status == 206 ? a->range_off : 0;

	info_of(a, &info);
	if (a->status == 200 && r->what != OBJECT_HEAD && info.size == UINT64_MAX &&
	    (!a->cut || (a->body.len && a->body.len < r->len)))
		info.size = off + a->body.len; /* all of it arrived, without a length */
	if (a->encoded && r->what != OBJECT_HEAD) {
		service_fail(f, -EIO,
			     "the server sends compressed data (Content-Encoding), although "
			     "none was requested");
		return;
	}
	if (wrong) {
		service_fail(f, -EBADMSG, "the server sends %s", wrong);
		return;
	}
	if (a->status != 200 && a->status != 206) {
		service_fail(f, -EIO, "an unexpected response (HTTP %u)",
			     (unsigned int)a->status);
		return;
	}
	if (r->etag && strcmp(r->etag, info.etag) != 0)
		service_fail(f, -ESTALE, "it was changed in the meantime");
	else if (r->unless && info.etag[0] && strcmp(r->unless, info.etag) == 0)
		service_end(f, -EALREADY, NULL, NULL, 0, NULL);
	else if (r->what == OBJECT_HEAD)
		info_came(f, &info);
	else if (a->cut && a->length != UINT64_MAX && r->what == OBJECT_PART &&
		 a->body.len != (a->length > off ? u64_min(a->length - off, r->len) : 0))
		service_fail(f, -EBADMSG,
			     "the length of the response does not match its header");
	else if (f->size && info.size != f->size && info.size != UINT64_MAX)
		service_fail(f, -ESTALE, "it was changed in the meantime");
	else
		service_end(f, 0, NULL, &info, off, &a->body);
}

static void service_on_answer(void *arg, struct http_response *a)
{
	struct service_fetch *f = arg;

	if (a->rc == 0 && a->status == 304)
		service_end(f, -EALREADY, NULL, NULL, 0, NULL);
	else if (a->rc < 0)
		service_failed(f, a);
	else
		came(f, a);
	http_response_release(a);
}

/* The service. */

/* put_url - the address of a key. */
static int put_url(const struct http *h, const char *key, char **ret, struct err *e)
{
	size_t len = strlen(h->url), n;
	auto_buf b = buf_of(URL_MAX + 3 * KEY_MAX);

	if (strnlen(key, KEY_MAX + 1) > KEY_MAX)
		return err_set(e, -ENAMETOOLONG, "'%s': the key is longer than %d bytes",
			       h->shown, KEY_MAX);
	buf_puts(&b, h->url);
	if (key[0] && (len == 0 || h->url[len - 1] != '/'))
		buf_putc(&b, '/');
	url_encode(&b, key, strlen(key), true);
	if (h->query)
		buf_printf(&b, "?%s", h->query);
	if (buf_ok(&b) && b.len > URL_MAX)
		return err_set(e, -ENAMETOOLONG, "'%s': the address is longer than %d bytes",
			       h->shown, URL_MAX);
	buf_putc(&b, '\0');
	*ret = buf_ok(&b) ? (char *)buf_take(&b, &n) : NULL;
	return *ret ? 0 : err_nomem(e);
}

/* read_token - the first line of the file; renewal replaces the file. */
static int read_token(const struct http *h, char **ret, struct err *e)
{
	char text[TOKEN_MAX];
	auto_fd int fd = -1;
	ssize_t n;

	if (!h->bearer_file)
		return 0;
	fd = open(h->bearer_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0) { /* an error is no proof of absence */
		(void)err_sys(e, errno, "bearer file '%s'", h->bearer_file);
		if (e)
			e->code = -EACCES;
		return -EACCES;
	}
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	*ret = text[0] ? strdup(text) : NULL;
	explicit_bzero(text, sizeof(text));
	return *ret ? 0
		    : err_set(e, -EINVAL, "bearer file '%s': its first line contains no token",
			      h->bearer_file);
}

static int service_fill(struct service_fetch *f, const struct object_range *r, struct err *e)
{
	bool failed = false;
	int rc;

	f->key = str_copy(r->key, &failed);
	f->etag = str_copy(r->etag && r->etag[0] ? r->etag : NULL, &failed);
	f->unless = str_copy(r->unless && r->unless[0] ? r->unless : NULL, &failed);
	rc = failed ? err_nomem(e) : put_url(f->h, r->key, &f->url, e);
	if (rc == 0 && !f->h->user)
		rc = read_token(f->h, &f->token, e);
	f->r = *r;
	f->r.key = f->key;
	f->r.etag = f->etag;
	f->r.unless = f->unless;
	if ((r->what == OBJECT_PART || r->what == OBJECT_TAIL) && r->len == 0)
		f->r.what = OBJECT_HEAD;
	return rc;
}

static int http_fetch(struct object_service *o, const struct object_range *r, object_done *done,
		      void *arg, struct err *e)
{
	struct service_fetch *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_nomem(e);
	f->h = CONTAINER_OF(o, struct http, o);
	atomic_fetch_add(&f->h->refs, 1);
	f->done = done;
	f->arg = arg;
	rc = service_fill(f, r, e);
	rc = rc ? rc : service_ask(f, e);
	if (rc < 0)
		service_fetch_free(f);
	return rc;
}

static void http_close(struct object_service *o)
{
	http_unref(CONTAINER_OF(o, struct http, o));
}

static const struct object_service_ops http_ops = {
	.name = "HTTP",
	.close = http_close,
	.fetch = http_fetch,
};

int http_service_open(struct http_client *net, const struct remote_options *opts,
		      const struct remote_target *t, struct object_service **ret, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	bool failed = false;

	if (!h)
		return err_nomem(e);
	h->refs = 1;
	h->net = net;
	h->url = str_copy(t->url, &failed);
	h->query = str_copy(t->query, &failed);
	h->shown = str_copy(t->shown, &failed);
	h->user = str_copy(t->user, &failed);
	h->password = str_copy(t->password, &failed);
	h->bearer_file = t->no_token ? NULL : opts->bearer_file;
	h->public_only = t->public_only;
	h->o = (struct object_service){.ops = &http_ops, .name = h->shown};
	if (failed) {
		http_close(&h->o);
		return err_nomem(e);
	}
	*ret = &h->o;
	return 0;
}
