/* SPDX-License-Identifier: BSD-3-Clause */
/* retry.c - classifies a finished try: done, retry or redirect, and builds the message.
 *
 * Transient errors are retried: a busy or failing server, a broken connection, a truncated or
 * inconsistent answer. All others are final. */
#include "nczarr/http/http_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"

enum { FIRST_PAUSE_MS = 100, LAST_PAUSE_MS = 10000, NAME_TRIES = 2 };

#define PAUSE_MAX (UINT32_MAX / 1000) /* seconds */

const char *http_shown(const struct url *u, struct buf *out)
{
	buf_clear(out);
	url_put(out, u, false);
	buf_putc(out, '\0');
	return buf_ok(out) ? (const char *)out->data : "?";
}

void http_fail(struct http_transfer *r, int rc, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	auto_buf b = buf_of(URL_MAX * 2);
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	r->a.rc = rc;
	if (r->a.tries > 1)
		err_set(&r->a.e, rc, "'%.200s': %s (%u attempts)", http_shown(&r->at, &b), text,
			(unsigned int)r->a.tries);
	else
		err_set(&r->a.e, rc, "'%.200s': %s", http_shown(&r->at, &b), text);
}

/* retry_again - retry, unless the time or the number of tries forbid it. The server may have
 * carried out the request: each may be repeated. r->a has the error. */
static enum http_verdict retry_again(const struct http_transfer *r)
{
	return r->a.tries < r->net->opts.tries &&
			       clock_ns() + r->pause_ms * HTTP_MS < r->until
		       ? HTTP_AGAIN
		       : HTTP_DONE;
}

int64_t http_pause(struct http_transfer *r)
{
	struct http_client *n = r->net;
	uint32_t shift = r->a.tries < 10 ? r->a.tries - 1 : 9;
	int64_t ms = (int64_t)u64_min((uint64_t)FIRST_PAUSE_MS << shift, LAST_PAUSE_MS);

	n->dice ^= (uint64_t)clock_ns() | 1; /* xorshift: spreads retries of several requests */
	n->dice ^= n->dice << 13;
	n->dice ^= n->dice >> 7;
	n->dice ^= n->dice << 17;
	ms = ms / 2 + (int64_t)(n->dice % (uint64_t)(ms / 2 + 1));
	return (ms < r->pause_ms ? r->pause_ms : ms) * HTTP_MS;
}

/* Statuses. */

static const struct status_row {
	uint32_t status;
	int rc;
	const char *why;
} statuses[] = {
	{401, -EACCES,
	 "the server needs a user name and password, or a token (-o netrc_file=, "
	 "-o bearer_file=), or rejects those it was given"},
	{403, -EACCES, "access denied"},
	{404, -ENOENT, "not found"},
	{407, -EACCES, "the proxy needs a user name and password"},
	{408, -EIO, "the server timed out waiting for the request"},
	{410, -ENOENT, "it was removed permanently"},
	{412, -ESTALE, "it was changed in the meantime"},
	{416, -ERANGE, "it ends before the requested range"},
	{429, -EIO, "too many requests"},
	{500, -EIO, "the server failed internally"},
	{502, -EIO, "the server behind the gateway failed"},
	{503, -EIO, "the server is overloaded or down"},
	{504, -EIO, "the server behind the gateway did not answer"},
};

static struct status_row row_of(uint32_t status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i];
	return (struct status_row){status, -EIO,
				   status < 500 ? "the server rejects the request"
						: "the server failed"};
}

/* take_code - get <Code> of an S3 error. */
static void take_code(struct http_response *a)
{
	static const char open[] = "<Code>";
	const uint8_t *p = a->body.len ? memmem(a->body.data, a->body.len, open, 6) : NULL;
	size_t left, n = 0;

	if (!p)
		return;
	p += 6;
	left = a->body.len - (size_t)(p - a->body.data);
	while (n < left && ((p[n] >= 'A' && p[n] <= 'Z') || (p[n] >= 'a' && p[n] <= 'z') ||
			    (p[n] >= '0' && p[n] <= '9') || p[n] == '.'))
		n++;
	if (n == 0 || n >= sizeof(a->error_code) || n == left || p[n] != '<')
		return;
	memcpy(a->error_code, p, n);
	a->error_code[n] = '\0';
}

static enum http_verdict retry_refused(struct http_transfer *r)
{
	struct http_response *a = &r->a;
	const struct status_row x = row_of(a->status);
	/* the server states that it did not carry out the request */
	const bool not_done = a->status == 429 || http_code_is(a, "SlowDown") ||
			      http_code_is(a, "RequestTimeout");

	http_fail(r, x.rc, "%s (HTTP %u%s%s)", x.why, (unsigned int)a->status,
		  a->error_code[0] ? ", " : "", a->error_code);
	if (!not_done && !http_code_is(a, "InternalError") && a->status != 408 &&
	    (a->status < 500 || a->status > 504 || a->status == 501)) {
		if (r->want.judge && r->want.judge(r->want.sign_arg, a))
			return retry_again(r);
		return HTTP_DONE;
	}
	if (r->pause_ms && clock_ns() + r->pause_ms * HTTP_MS >= r->until)
		http_fail(r, -EIO, "%s (HTTP %u): retry in %u seconds", x.why,
			  (unsigned int)a->status, r->pause_ms / 1000);
	return retry_again(r);
}

/* Answers. */

/* contradiction - the inconsistency of a complete body; NULL: none. */
static const char *contradiction(const struct http_transfer *r)
{
	const struct http_response *a = &r->a;
	uint64_t len = a->body.len;

	if (strcmp(r->want.method, "HEAD") == 0 || a->status == 204 || a->status == 304 ||
	    r->fault == FAULT_ENOUGH)
		return NULL;
	if ((a->status == 200 || a->status == 206) && !r->lengthy && !a->ranged &&
	    !r->host->http2)
		return "the response does not state its length, so it may be incomplete";
	if (a->cut)
		return NULL; /* libcurl has detected truncation */
	if (a->status == 206 && a->ranged && len != a->range_end - a->range_off)
		return "the length of the response does not match its range";
	if (a->length != UINT64_MAX && len != a->length)
		return "the length of the response does not match its header";
	return NULL;
}

static enum http_verdict accepted(struct http_transfer *r)
{
	struct http_response *a = &r->a;
	const char *wrong;
	bool plain = strcmp(r->want.method, "GET") == 0 || strcmp(r->want.method, "HEAD") == 0;

	if ((a->status == 301 || a->status == 302 || a->status == 303 || a->status == 307 ||
	     a->status == 308) &&
	    plain && !r->want.sign) {
		if (a->location[0])
			return HTTP_ELSEWHERE;
		http_fail(r, -EIO, "a redirect (HTTP %u) without an address",
			  (unsigned int)a->status);
		return HTTP_DONE;
	}
	wrong = contradiction(r);
	if (wrong) {
		http_fail(r, -EIO, "%s", wrong);
		return retry_again(r);
	}
	a->rc = 0;
	a->e = (struct err)ERR_INIT;
	if (r->want.judge && r->want.judge(r->want.sign_arg, a)) {
		http_fail(r, -EIO, "the server failed%s%s", a->error_code[0] ? ": " : "",
			  a->error_code);
		return retry_again(r);
	}
	return HTTP_DONE;
}

/* Faults. */

static enum http_verdict faulty(struct http_transfer *r)
{
	const struct http_client_options *o = &r->net->opts;

	switch (r->fault) {
	case FAULT_TOO_BIG:
		http_fail(r, -EFBIG, "the response exceeds the limit of %llu bytes",
			  (unsigned long long)r->want.max_body);
		return HTTP_DONE;
	case FAULT_HEADERS:
		http_fail(r, -EIO, "the response header is larger than %d bytes",
			  HTTP_HEADER_BYTES);
		return HTTP_DONE;
	case FAULT_NO_RANGES:
		http_fail(r, -EOPNOTSUPP,
			  "the server does not support range requests, and the file is too "
			  "large to download whole");
		return HTTP_DONE;
	case FAULT_PLACE:
		http_fail(
			r, -EACCES,
			r->hops ? "the redirect leads to this machine or into a private "
				  "network and is not followed (-o private_redirects allows it)"
			: r->want.public_only
				? "a reference leads to this machine or into a private network "
				  "(-o private_redirects allows it)"
				: "link-local addresses are not allowed");
		return HTTP_DONE;
	case FAULT_BODY:
		http_fail(r, -EIO, "the data to send cannot be read");
		return HTTP_DONE;
	case FAULT_MEMORY:
		http_fail(r, -ENOMEM, "out of memory");
		return HTTP_DONE;
	case FAULT_CONNECT:
		http_fail(r, -ETIMEDOUT, "cannot connect within %u ms", o->connect_ms);
		return retry_again(r);
	case FAULT_STALL:
		r->fresh = true; /* the state of the connection is unknown */
		http_fail(r, -ETIMEDOUT, "the server sent nothing for %u ms", o->stall_ms);
		return retry_again(r);
	case FAULT_TOTAL:
		http_fail(r, -ETIMEDOUT, "the response was not complete within %u ms",
			  http_total_ms(r));
		return HTTP_DONE;
	default:
		http_fail(r, -EIO, "the transfer was aborted");
		return HTTP_DONE;
	}
}

/* retry_broken - report libcurl's message, which has hosts and numbers but no content of the
 * request. */
static enum http_verdict retry_broken(struct http_transfer *r, CURLcode code)
{
	const char *text = r->text[0] ? r->text : curl_easy_strerror(code);

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		http_fail(r, -EIO, "%s: check the host name", text);
		return ++r->tries_here < NAME_TRIES ? retry_again(r) : HTTP_DONE;
	case CURLE_PEER_FAILED_VERIFICATION:
		http_fail(r, -EIO,
			  "%s: the certificate of the server cannot be verified (-o ca_file= "
			  "sets trusted certificates)",
			  text);
		return HTTP_DONE;
	case CURLE_SSL_CACERT_BADFILE:
		http_fail(r, -EIO, "%s: -o ca_file= must name a file with certificates (PEM)",
			  text);
		return HTTP_DONE;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		http_fail(r, -EIO, "the server does not speak HTTP: %s", text);
		return HTTP_DONE;
	case CURLE_URL_MALFORMAT:
	case CURLE_OUT_OF_MEMORY:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ENGINE_NOTFOUND:
		http_fail(r, code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO, "%s", text);
		return HTTP_DONE;
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
		http_fail(r, -EIO, "the server closed the connection too early: %s", text);
		return retry_again(r);
	default:
		http_fail(r, -EIO, "%s", text);
		return retry_again(r);
	}
}

enum http_verdict http_verdict(struct http_transfer *r, CURLcode code)
{
	curl_off_t seconds = 0; /* negative: a date in the past */

	(void)curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &seconds);
	r->pause_ms = seconds > 0 ? (uint32_t)u64_min((uint64_t)seconds, PAUSE_MAX) * 1000 : 0;
	if (r->fault == FAULT_ENOUGH || (code == CURLE_OK && r->fault == FAULT_NONE)) {
		if (!r->body_began)
			http_take_header(r);
		take_code(&r->a);
		return r->a.status >= 400 ? retry_refused(r) : accepted(r);
	}
	if (code == CURLE_OPERATION_TIMEDOUT && r->fault == FAULT_NONE)
		r->fault = FAULT_CONNECT; /* libcurl has no other limit */
	return r->fault != FAULT_NONE ? faulty(r) : retry_broken(r, code);
}
