/* SPDX-License-Identifier: BSD-3-Clause */
/* response.c - takes header fields from libcurl, and a body of limited size. All input is
 * untrusted. */
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
}

/* Header fields. */

/* field - the value of a field of the last answer, as libcurl keeps it: without surrounding space,
 * not of 1xx and trailers; "" if there is none. */
static const char *field(const struct http_transfer *r, const char *name)
{
	struct curl_header *h;

	return curl_easy_header(r->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value
										     : "";
}

/* response_keep - copy a value if it fits and is printable; else "". */
static void response_keep(char *out, size_t cap, const char *value)
{
	size_t n = strlen(value);

	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)value[i] < ' ' || value[i] == 0x7f)
			return;
	if (n < cap)
		memcpy(out, value, n + 1);
}

/* take_range - "bytes 0-99/1000", "bytes 0-99/" and a star, "bytes * /1000" without the space. */
static void take_range(struct http_response *a, const char *p)
{
	const char *slash = strchr(p, '/'), *dash;
	uint64_t first = 0, last = 0, size = UINT64_MAX;

	if (!slash || strncasecmp(p, "bytes ", 6) != 0 ||
	    (strcmp(slash + 1, "*") != 0 &&
	     str_u64(slash + 1, strlen(slash + 1), INT64_MAX, &size) < 0))
		return;
	p += 6;
	a->range_size = size;
	dash = strchr(p, '-'); /* in a 416: a size and no range */
	if (!dash || dash > slash || str_u64(p, (size_t)(dash - p), INT64_MAX, &first) < 0 ||
	    str_u64(dash + 1, (size_t)(slash - dash - 1), INT64_MAX, &last) < 0 ||
	    last < first || last >= size)
		return;
	a->ranged = true;
	a->range_off = first;
	a->range_end = last + 1;
}

static int64_t date_of(const char *text)
{
	time_t t = *text ? curl_getdate(text, NULL) : -1;

	return t > 0 && t < INT64_MAX / 1000000000 ? (int64_t)t * 1000000000 : 0;
}

void http_take_header(struct http_transfer *r)
{
	struct http_response *a = &r->a;
	const char *length = field(r, "Content-Length");
	const char *coding;
	long status = 0;

	(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	a->status = status > 0 ? (uint32_t)status : 0;
	if (str_u64(length, strlen(length), INT64_MAX, &a->length) < 0)
		a->length = UINT64_MAX;
	r->lengthy = a->length != UINT64_MAX || *field(r, "Transfer-Encoding");
	take_range(a, field(r, "Content-Range"));
	coding = field(r, "Content-Encoding");
	a->encoded = *coding && strcasecmp(coding, "identity") != 0 &&
		     strcasecmp(coding, "aws-chunked") != 0;
	response_keep(a->etag, sizeof(a->etag), field(r, "ETag"));
	a->weak = strncmp(a->etag, "W/", 2) == 0;
	a->modified = date_of(field(r, "Last-Modified"));
	a->date = date_of(field(r, "Date"));
	response_keep(a->content_type, sizeof(a->content_type), field(r, "Content-Type"));
	response_keep(a->region, sizeof(a->region), field(r, "x-amz-bucket-region"));
	response_keep(a->location, sizeof(a->location), field(r, "Location"));
}

size_t http_on_header(char *data, size_t size, size_t n, void *arg)
{
	struct http_transfer *r = arg;

	(void)data;
	n *= size;
	r->last_byte = clock_ns();
	r->header_bytes += n;
	if (r->header_bytes <= HTTP_HEADER_BYTES)
		return n;
	r->fault = FAULT_HEADERS;
	return 0;
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

	r->body_began = true;
	http_take_header(r);
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
