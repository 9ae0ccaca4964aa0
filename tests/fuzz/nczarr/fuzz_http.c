/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_http.c - what a web server may answer: header lines, a body in pieces, redirects.
 *
 * Input: a byte of flags, the status, what may come at most, which part was asked for, then header
 * lines and pieces of the body, each with its length.
 *
 * Properties: no more is kept than was allowed;
 * an answer that is taken has the length that it says; what is refused has a message; a range ends
 * behind its beginning and within its size; texts that are kept are printable; a redirect leads to
 * http or https, never away from https, never to this machine or a private network unless that is
 * allowed, and not for ever.
 *
 *   make fuzz TIME=60 FUZZ=http */
#include "nczarr/http/http_int.h"
#include "tests/fuzz/fuzz.h"

#define ROUNDS (HTTP_HOPS + 3)

enum { HTTPS = 1, HEAD = 2, PART = 8, PRIVATE = 16, PUBLIC_ONLY = 32, HTTP2 = 64 };

static long status_now;
static curl_off_t pause_now;
static char *lines[64]; /* header fields of the answer: "Name\0value" */
static size_t n_lines;
static bool given; /* the input has the password itself */

/* Ours in place of libcurl's: there is no transfer. */
#undef curl_easy_getinfo
CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	va_list ap;

	(void)easy;
	va_start(ap, info);
	if (info == CURLINFO_RETRY_AFTER)
		*va_arg(ap, curl_off_t *) = pause_now;
	else if (info == CURLINFO_RESPONSE_CODE)
		*va_arg(ap, long *) = status_now;
	else
		require(false);
	va_end(ap);
	return CURLE_OK;
}

CURLHcode curl_easy_header(CURL *easy, const char *name, size_t index, unsigned int origin,
			   int request, struct curl_header **ret)
{
	static struct curl_header h;

	(void)easy;
	require(index == 0 && origin == CURLH_HEADER && request == -1);
	for (size_t i = 0; i < n_lines; i++)
		if (strcasecmp(lines[i], name) == 0) {
			h.value = lines[i] + strlen(lines[i]) + 1;
			*ret = &h;
			return CURLHE_OK;
		}
	return CURLHE_MISSING;
}

/* keep - a line as libcurl keeps it: without the colon, and the space around the value. */
static void keep(const char *line)
{
	const char *colon = strchr(line, ':');
	size_t n;

	if (!colon || n_lines == ARRAY_LEN(lines))
		return;
	n = (size_t)(colon++ - line);
	colon += strspn(colon, " \t");
	lines[n_lines] = calloc(1, n + strlen(colon) + 2);
	require(lines[n_lines] != NULL);
	memcpy(lines[n_lines], line, n);
	memcpy(lines[n_lines] + n + 1, colon, strlen(colon));
	for (char *end = lines[n_lines] + n + 1 + strlen(colon);
	     end > lines[n_lines] + n + 1 && strchr(" \t\r\n", end[-1]);)
		*--end = '\0';
	n_lines++;
}

static void printable(const char *text, size_t cap)
{
	require(memchr(text, '\0', cap) != NULL);
	for (; *text; text++)
		require((uint8_t)*text >= ' ' && *text != 0x7f);
}

static void header(struct http_transfer *r, struct slice *s)
{
	struct slice line = piece_of(s);

	for (; line.len > 0 && r->fault == FAULT_NONE; line = piece_of(s)) {
		char *copy = strndup((const char *)line.p, line.len);
		size_t took;

		require(copy != NULL);
		took = http_on_header(copy, 1, line.len, r);
		require(took == line.len || r->fault == FAULT_HEADERS);
		keep(copy);
		free(copy);
	}
}

static void body(struct http_transfer *r, struct slice *s)
{
	while (more_of(s) && r->fault == FAULT_NONE) {
		struct slice piece = piece_of(s);
		char *copy = malloc(piece.len + 1);
		size_t took;

		require(copy != NULL);
		memcpy(copy, piece.p ? piece.p : (const uint8_t *)"", piece.len);
		took = http_on_body(copy, 1, piece.len, r);
		require(took == piece.len || r->fault != FAULT_NONE);
		free(copy);
		if (piece.len == 0)
			break;
	}
}

static void check(const struct http_transfer *r)
{
	const struct http_response *a = &r->a;
	bool good = status_now == 200 || status_now == 206;

	printable(a->etag, sizeof(a->etag));
	printable(a->content_type, sizeof(a->content_type));
	printable(a->region, sizeof(a->region));
	printable(a->location, sizeof(a->location));
	printable(a->error_code, sizeof(a->error_code));
	require(a->weak == (strncmp(a->etag, "W/", 2) == 0));
	if (a->ranged)
		require(a->range_off < a->range_end && a->range_end <= a->range_size);
	require(a->modified >= 0 && a->date >= 0);
	if (good && r->body_began)
		require(a->body.len <= r->want.max_body);
	if (!good && status_now >= 300)
		require(a->body.len <= HTTP_ERROR_BYTES);
	if (a->cut)
		require(a->body.len <= r->want.part_len);
}

static void judged(const struct http_transfer *r)
{
	const struct http_response *a = &r->a;

	if (a->rc) {
		require(a->rc < 0 && a->e.code == a->rc && strncmp(a->e.msg, "'http", 5) == 0);
		require(a->rc != -ENOENT || a->status == 404 || a->status == 410);
		require(given || !strstr(a->e.msg, "secret"));
		return;
	}
	require(a->status < 400);
	if (a->status == 206 && a->ranged && r->fault == FAULT_NONE && !a->cut &&
	    strcmp(r->want.method, "GET") == 0)
		require(a->body.len == a->range_end - a->range_off);
}

static void redirected(struct http_transfer *r, const char *scheme)
{
	const struct url *u = &r->at;

	require(strcmp(u->scheme, "https") == 0 ||
		(strcmp(u->scheme, "http") == 0 && strcmp(scheme, "http") == 0));
	if (!r->net->opts.private_redirects && !r->first_known)
		require(!http_is_here(u->host) &&
			address_class_of_text(u->host) == HTTP_PUBLIC);
	require(address_class_of_text(u->host) != HTTP_LINK_LOCAL);
}

/* one_try - true: it goes on elsewhere. */
static bool one_try(struct http_transfer *r, struct slice *s)
{
	static char https[] = "https", http[] = "http";
	const char *scheme = strcmp(r->at.scheme, "https") == 0 ? https : http;
	enum http_verdict v;
	struct buf shown;

	http_response_begin(r);
	r->a.tries++;
	status_now = rd_le16(s) % 600;
	pause_now = (int8_t)status_now * (curl_off_t)INT32_MAX; /* also negative */
	header(r, s);
	body(r, s);
	check(r);
	v = http_verdict(r, rd_u8(s) & 1 ? CURLE_PARTIAL_FILE : CURLE_OK);
	while (n_lines)
		free(lines[--n_lines]);
	if (v == HTTP_DONE)
		judged(r);
	if (v == HTTP_AGAIN)
		require(http_pause(r) >= 0);
	if (v != HTTP_ELSEWHERE)
		return false;
	if (http_redirect(r) < 0) {
		failed_well(r->a.rc, &r->a.e);
		return false;
	}
	redirected(r, scheme);
	buf_init(&shown, (size_t)2 * URL_MAX);
	require(strstr(http_shown(&r->at, &shown), "://") != NULL || !buf_ok(&shown));
	buf_release(&shown);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	uint8_t flags = rd_u8(&s);
	struct http_client net = {
		.opts = {.tries = 3, .connect_ms = 1, .stall_ms = 1, .total_ms = 1000}};
	struct http_host host = {.http2 = flags & HTTP2};
	struct http_transfer *r = calloc(1, sizeof(*r));
	uint32_t hops = 0;

	require(r != NULL);
	given = memmem(data, size, "secret", 6) != NULL;
	net.opts.private_redirects = flags & PRIVATE;
	r->net = &net;
	r->host = &host;
	r->want.method = flags & HEAD ? "HEAD" : "GET";
	r->want.max_body = rd_le16(&s);
	r->want.public_only = flags & PUBLIC_ONLY;
	if (flags & PART) {
		r->want.part_off = rd_le16(&s);
		r->want.part_len = 1 + rd_u8(&s);
		r->want.max_body = r->want.part_len;
	}
	r->until = INT64_MAX;
	require(url_parse(flags & HTTPS ? "https://name:secret@host.example/a/b?c=d"
					: "http://host.example/a/b",
			  &r->at, NULL) == 0);
	while (one_try(r, &s))
		require(++hops <= ROUNDS);
	http_response_release(&r->a);
	url_release(&r->at);
	free(r);
	return 0;
}
