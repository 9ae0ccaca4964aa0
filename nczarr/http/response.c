/* SPDX-License-Identifier: BSD-3-Clause */
/* response.c - receives header lines, and a body of limited size. All input is untrusted. */
#include "nczarr/http/http_int.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/core/clock.h"
#include "base/os/io.h"
#include "base/os/cancel.h"
#include "base/core/str.h"

#define RESERVE_MAX ((uint64_t)64 << 20) /* reserved at once; more as data arrives */

void http_response_begin(struct http_transfer *r)
{
	struct http_response *a = &r->a;
	uint32_t tries = a->tries;

	buf_release(&a->body);
	*a = (struct http_response){
		.tries = tries, .length = UINT64_MAX, .range_size = UINT64_MAX};
	buf_init(&a->body, HTTP_ERROR_BYTES);
	r->text[0] = '\0';
	r->fault = FAULT_NONE;
	r->sent = r->body_began = r->lengthy = false;
	r->header_bytes = r->sent_bytes = r->skip = 0;
	r->pause_ms = 0;
}

/* Header lines. */

/* response_line - a header line: the value is [value, value + n), without surrounding space. */
struct response_line {
	const char *name, *value;
	size_t name_len, n;
};

static bool response_is_named(const struct response_line *l, const char *name)
{
	return str_is_nocase(name, l->name, l->name_len);
}

/* response_keep - copy a value if it fits and is printable; else "". */
static void response_keep(char *out, size_t cap, const struct response_line *l)
{
	out[0] = '\0';
	if (l->n >= cap)
		return;
	for (size_t i = 0; i < l->n; i++)
		if ((uint8_t)l->value[i] < ' ' || l->value[i] == 0x7f)
			return;
	memcpy(out, l->value, l->n);
	out[l->n] = '\0';
}

/* take_range - "bytes 0-99/1000", "bytes 0-99/" and a star, "bytes * /1000" without the space. */
static void take_range(struct http_response *a, const struct response_line *l)
{
	const char *p = l->value, *slash, *dash;
	uint64_t first = 0, last = 0, size = UINT64_MAX;
	size_t n;

	a->ranged = false;
	if (l->n < 6 || strncasecmp(p, "bytes ", 6) != 0)
		return;
	p += 6;
	n = l->n - 6;
	slash = memchr(p, '/', n);
	if (!slash)
		return;
	n -= (size_t)(slash + 1 - p);
	if (!(n == 1 && slash[1] == '*') && str_u64(slash + 1, n, INT64_MAX, &size) < 0)
		return;
	a->range_size = size;
	if (slash == p + 1 && *p == '*')
		return; /* in a 416: a size and no range */
	dash = memchr(p, '-', (size_t)(slash - p));
	if (!dash || str_u64(p, (size_t)(dash - p), INT64_MAX, &first) < 0 ||
	    str_u64(dash + 1, (size_t)(slash - dash - 1), INT64_MAX, &last) < 0 ||
	    last < first || last >= size)
		return;
	a->ranged = true;
	a->range_off = first;
	a->range_end = last + 1;
}

static int64_t date_of(const struct response_line *l)
{
	char text[64];
	time_t t;

	response_keep(text, sizeof(text), l);
	t = text[0] ? curl_getdate(text, NULL) : -1;
	return t > 0 && t < INT64_MAX / 1000000000 ? (int64_t)t * 1000000000 : 0;
}

/* take_pause - Retry-After: seconds, or a date. */
static void take_pause(struct http_transfer *r, const struct response_line *l)
{
	uint64_t s = 0;
	int64_t date;

	if (str_u64(l->value, l->n, UINT32_MAX / 1000, &s) < 0) {
		date = date_of(l) / 1000000000 - (int64_t)time(NULL);
		s = date > 0 ? u64_min((uint64_t)date, UINT32_MAX / 1000) : 0;
	}
	r->pause_ms = (uint32_t)s * 1000;
}

static void take_line(struct http_transfer *r, const struct response_line *l)
{
	struct http_response *a = &r->a;

	if (response_is_named(l, "Content-Length")) {
		if (str_u64(l->value, l->n, INT64_MAX, &a->length) < 0)
			a->length = UINT64_MAX;
		r->lengthy = a->length != UINT64_MAX;
	} else if (response_is_named(l, "Transfer-Encoding")) {
		r->lengthy = true;
	} else if (response_is_named(l, "Content-Range")) {
		take_range(a, l);
	} else if (response_is_named(l, "Content-Encoding")) {
		a->encoded = l->n && !str_is_nocase("identity", l->value, l->n) &&
			     !str_is_nocase("aws-chunked", l->value, l->n);
	} else if (response_is_named(l, "ETag")) {
		response_keep(a->etag, sizeof(a->etag), l);
		a->weak = strncmp(a->etag, "W/", 2) == 0;
	} else if (response_is_named(l, "Last-Modified")) {
		a->modified = date_of(l);
	} else if (response_is_named(l, "Date")) {
		a->date = date_of(l);
	} else if (response_is_named(l, "Content-Type")) {
		response_keep(a->content_type, sizeof(a->content_type), l);
	} else if (response_is_named(l, "x-amz-bucket-region")) {
		response_keep(a->region, sizeof(a->region), l);
	} else if (response_is_named(l, "Location")) {
		response_keep(a->location, sizeof(a->location), l);
	} else if (response_is_named(l, "Retry-After")) {
		take_pause(r, l);
	}
}

static bool response_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

size_t http_on_header(char *data, size_t size, size_t n, void *arg)
{
	struct http_transfer *r = arg;
	struct response_line l = {.name = data};
	const char *colon;
	uint64_t bytes;

	n *= size;
	r->last_byte = clock_ns();
	r->header_bytes += n;
	if (r->header_bytes > HTTP_HEADER_BYTES) {
		r->fault = FAULT_HEADERS;
		return 0;
	}
	if (r->body_began) /* trailers are ignored */
		return n;
	if (n > 5 && memcmp(data, "HTTP/", 5) == 0) {
		bytes = r->header_bytes; /* an answer with 1xx may have preceded it */
		http_response_begin(r);
		r->header_bytes = bytes;
		r->sent = true;
		return n;
	}
	colon = memchr(data, ':', n);
	if (!colon)
		return n;
	l.name_len = (size_t)(colon - data);
	l.value = colon + 1;
	l.n = n - l.name_len - 1;
	while (l.n && response_is_space(l.value[l.n - 1]))
		l.n--;
	for (; l.n && response_is_space(*l.value); l.n--)
		l.value++;
	take_line(r, &l);
	return n;
}

/* The body. */

static bool stop_with(struct http_transfer *r, enum http_fault fault)
{
	r->fault = fault;
	return false;
}

/* begin_body - determine the limit and the destination of the body. */
static bool begin_body(struct http_transfer *r)
{
	struct http_response *a = &r->a;
	const struct http_request *w = &r->want;
	long status = 0;

	r->body_began = true;
	(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	a->status = status > 0 ? (uint32_t)status : 0;
	buf_release(&a->body);
	if (a->status != 200 && a->status != 206) {
		buf_init(&a->body, a->status < 300 ? w->max_body : HTTP_ERROR_BYTES);
		return true;
	}
	buf_init(&a->body, w->max_body);
	if (a->status == 200 && w->part_len) {
		a->cut = true;
		r->skip = w->part_off;
		if (r->skip > HTTP_SKIP_BYTES)
			return stop_with(r, FAULT_NO_RANGES);
	} else if (a->length != UINT64_MAX && a->length > w->max_body) {
		return stop_with(r, FAULT_TOO_BIG);
	}
	if (a->length != UINT64_MAX && a->length && !a->cut) {
		if (!buf_grow(&a->body, (size_t)u64_min(a->length, RESERVE_MAX)))
			return stop_with(r, FAULT_MEMORY);
		a->body.len = 0;
	}
	return true;
}

/* response_put - store wanted bytes. */
static bool response_put(struct http_transfer *r, const char *data, size_t n)
{
	struct http_response *a = &r->a;

	if (n > a->body.max - a->body.len) {
		if (a->status < 300)
			return stop_with(r, FAULT_TOO_BIG);
		buf_put(&a->body, data, a->body.max - a->body.len);
		return stop_with(r, FAULT_ENOUGH);
	}
	buf_put(&a->body, data, n);
	return buf_ok(&a->body) || stop_with(r, FAULT_MEMORY);
}

/* put_cut - store only the wanted part of a whole file. */
static bool put_cut(struct http_transfer *r, const char *data, size_t n)
{
	uint64_t have = r->a.body.len;
	uint64_t skip = u64_min(r->skip, n);

	r->skip -= skip;
	data += skip;
	n = (size_t)u64_min(n - skip, r->want.part_len - have);
	if (n && !response_put(r, data, n))
		return false;
	return have + n < r->want.part_len || stop_with(r, FAULT_ENOUGH);
}

size_t http_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_transfer *r = arg;

	n *= size;
	r->last_byte = clock_ns();
	if (!r->body_began && !begin_body(r))
		return 0;
	if (n == 0)
		return 0;
	return (r->a.cut ? put_cut(r, data, n) : response_put(r, data, n)) ? n : 0;
}

/* The request body. */

size_t http_on_send(char *data, size_t size, size_t n, void *arg)
{
	struct http_transfer *r = arg;
	const struct http_request *w = &r->want;

	n = (size_t)u64_min(n * size, w->body_len - r->sent_bytes);
	r->last_byte = clock_ns();
	if (w->body) {
		memcpy(data, (const uint8_t *)w->body + r->sent_bytes, n);
	} else if (n && io_pread(w->body_fd, data, n, w->body_off + r->sent_bytes, NULL) < 0) {
		r->fault = FAULT_BODY;
		return CURL_READFUNC_ABORT;
	}
	r->sent_bytes += n;
	return n;
}

/* http_on_seek - libcurl restarts the body on another connection. */
int http_on_seek(void *arg, curl_off_t off, int whence)
{
	struct http_transfer *r = arg;

	if (whence != SEEK_SET || off < 0 || (uint64_t)off > r->want.body_len)
		return CURL_SEEKFUNC_FAIL;
	r->sent_bytes = (uint64_t)off;
	return CURL_SEEKFUNC_OK;
}
