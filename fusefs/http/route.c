/* SPDX-License-Identifier: BSD-3-Clause */
/* route.c - directs a request of HTTP to a part of the server, and translates errors to statuses.
 *
 * 404 is sent only for proven absence, because clients of Zarr read it as fill values. */
#include "fusefs/http/http_int.h"

#include <errno.h>
#include <string.h>

#include "base/observe/log.h"

enum {
	ATTEMPTS = 3, /* for a request whose source changed meanwhile */
};

/* Headers. */

struct MHD_Response *serve_header(struct MHD_Response *r, const char *name, const char *value)
{
	if (!r || MHD_add_response_header(r, name, value) == MHD_YES)
		return r;
	MHD_destroy_response(r);
	return NULL;
}

static struct MHD_Response *route_common(const struct ask *a, struct MHD_Response *r)
{
	static const char *const all[][2] = {
		{"Cache-Control", "no-cache"},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
	};
	static const char policy[] = "default-src 'self'; img-src 'self' data:; object-src 'none'; "
				     "base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		r = serve_header(r, all[i][0], all[i][1]);
	r = serve_header(r, "Content-Security-Policy", a->policy ? a->policy : policy);
	if (!a->s->origin)
		return r;
	r = serve_header(r, "Access-Control-Allow-Origin", a->s->origin);
	return serve_header(r, "Access-Control-Expose-Headers",
			    "ETag, Content-Range, Content-Length, Accept-Ranges");
}

int serve_queue(struct ask *a, unsigned int status, struct MHD_Response *r, struct err *e)
{
	enum MHD_Result queued;

	r = route_common(a, r);
	if (!r)
		return err_nomem(e);
	queued = MHD_queue_response(a->conn, status, r);
	MHD_destroy_response(r); /* the connection holds a reference */
	return queued == MHD_YES ? 0 : err_set(e, -ECONNABORTED, "the connection has ended");
}

struct MHD_Response *serve_empty(void)
{
	return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
}

int serve_redirect(struct ask *a, const char *to, struct err *e)
{
	return serve_queue(a, MHD_HTTP_MOVED_PERMANENTLY,
			   serve_header(serve_empty(), "Location", to), e);
}

int serve_text(struct ask *a, unsigned int status, const char *type, struct buf *text,
	       struct err *e)
{
	struct MHD_Response *r;
	uint8_t *data;
	size_t n;

	if (!buf_ok(text)) {
		int rc = buf_full(text, e, -ERANGE, "the answer is too long");

		buf_release(text);
		return rc;
	}
	data = buf_take(text, &n);
	r = MHD_create_response_from_buffer(n, data, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(data);
	return serve_queue(a, status, serve_header(r, "Content-Type", type), e);
}

/* Errors. */

static unsigned int status_of(int rc)
{
	switch (-rc) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
		return MHD_HTTP_NOT_FOUND;
	case EINVAL:
		return MHD_HTTP_BAD_REQUEST;
	case ENAMETOOLONG:
		return MHD_HTTP_URI_TOO_LONG;
	case EPERM:
		return MHD_HTTP_FORBIDDEN;
	case ESTALE: /* another attempt may succeed */
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EINTR:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

/* route_refuse - send an error. The message of a server error may name files of this machine; it is
 * sent only if the server listens on the loopback. */
static enum MHD_Result route_refuse(struct ask *a, int rc, const struct err *e)
{
	const unsigned int status = status_of(rc);
	struct buf text = buf_of(ERR_TEXT_MAX + 64);
	struct err other = ERR_INIT;

	if (rc == -ECONNABORTED)
		return MHD_NO;
	if (status >= MHD_HTTP_INTERNAL_SERVER_ERROR)
		reply_log(&a->s->fs, e);
	buf_puts(&text, a->s->loopback || status < MHD_HTTP_INTERNAL_SERVER_ERROR
				? e->msg
				: "it could not be read: see the server's log");
	buf_putc(&text, '\n');
	rc = serve_text(a, status, "text/plain; charset=utf-8", &text, &other);
	return rc < 0 ? MHD_NO : MHD_YES;
}

/* Which part. */

static const struct route_part {
	const char *path;
	answer_fn *fn;
	bool below; /* it handles the rest of the path itself */
} parts[] = {
	{"/data", serve_data, true},
	{"/api/about", serve_about, false},
	{"/api/chunks", serve_chunks, false},
	{"/", serve_page, true},
};

/* find_part - *rest: the rest of the path. */
static const struct route_part *find_part(const char *url, const char **rest)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t n = strlen(parts[i].path);

		if (strncmp(url, parts[i].path, n) != 0)
			continue;
		*rest = url + n;
		if (!url[n] || (parts[i].below && (url[n] == '/' || n == 1)))
			return &parts[i];
	}
	return NULL;
}

static int route_answer(struct ask *a, const char *url, struct err *e)
{
	const struct route_part *p = find_part(url, &a->rest);
	int rc = -ESTALE;

	if (!p)
		return err_set(e, -ENOENT, "not found");
	if (p->fn == serve_data && !*a->rest)
		return serve_redirect(a, "/data/", e);
	for (int i = 0; i < ATTEMPTS && rc == -ESTALE; i++)
		rc = p->fn(a, e);
	return rc;
}

/* Methods. */

#define METHODS "GET, HEAD, OPTIONS"

static int preflight(struct ask *a, struct err *e)
{
	struct MHD_Response *r = serve_empty();
	static const char *const all[][2] = {
		{"Allow", METHODS},
		{"Access-Control-Allow-Methods", METHODS},
		{"Access-Control-Allow-Headers",
		 "Range, If-Range, If-None-Match, Cache-Control, Content-Type, *"},
		{"Access-Control-Allow-Private-Network", "true"},
		{"Access-Control-Max-Age", "600"},
	};

	for (size_t i = 0; i < (a->s->origin ? ARRAY_LEN(all) : 1); i++)
		r = serve_header(r, all[i][0], all[i][1]);
	return serve_queue(a, MHD_HTTP_NO_CONTENT, r, e);
}

static int not_allowed(struct ask *a, struct err *e)
{
	static char text[] = "this server is read-only\n";
	struct MHD_Response *r = MHD_create_response_from_buffer(sizeof(text) - 1, text,
								 MHD_RESPMEM_PERSISTENT);

	r = serve_header(r, "Allow", METHODS);
	return serve_queue(a, MHD_HTTP_METHOD_NOT_ALLOWED,
			   serve_header(r, "Content-Type", "text/plain"), e);
}

/* has_body - a request's body is not read, and a request after it on the connection is not
 * parsed. */
static bool has_body(struct MHD_Connection *conn)
{
	return MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Content-Length") ||
	       MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Transfer-Encoding");
}

enum MHD_Result serve_request(void *arg, struct MHD_Connection *conn, const char *url,
			      const char *method, const char *version NZ_UNUSED,
			      const char *data NZ_UNUSED, size_t *size NZ_UNUSED, void **state)
{
	struct serve *s = arg;
	struct ask a = {.s = s, .conn = conn};
	struct err e = ERR_INIT;
	const char *host;
	int rc;

	if (!*state && !has_body(conn)) { /* an answer at this point would end the connection */
		*state = s;
		return MHD_YES;
	}
	log_debug("HTTP: %s", method);
	host = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	a.head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
	if (s->loopback && !http_host_ok(host, s->address))
		rc = err_set(&e, -EPERM, "this server answers requests for localhost only");
	else if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0)
		rc = preflight(&a, &e);
	else if (!a.head && strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		rc = not_allowed(&a, &e);
	else
		rc = route_answer(&a, url, &e);
	return rc < 0 ? route_refuse(&a, rc, &e) : MHD_YES;
}
