/* SPDX-License-Identifier: BSD-3-Clause */
/* parse_int.h - what a request of HTTP says (RFC 9110): paths, ranges, tags, hosts. Pure functions
 * of texts that strangers wrote. */
#ifndef FUSEFS_HTTP_PARSE_INT_H
#define FUSEFS_HTTP_PARSE_INT_H

#include "base/core/buf.h"
#include "base/core/err.h"

#define HTTP_PATH_MAX 8192 /* bytes of a path as it is sent */
#define HTTP_NAME_MAX 255  /* bytes of one component, decoded */
#define HTTP_TAG_MAX 128   /* bytes of an entity tag with its quotes */

/* http_path - the components of a decoded path. */
struct http_path {
	struct buf names;  /* each with its NUL */
	size_t n;          /* components */
	bool is_dir;       /* it ended in '/', or is empty */
};

/* http_path_parse - take a path apart, as it was sent: empty components are left out. Returns 0
 * with *ret filled (http_path_release it, also after an error); -EINVAL bad percent encoding, a
 * NUL, a '/' within a component, "." or ".."; -ENAMETOOLONG; -ENOMEM. */
int http_path_parse(const char *raw, struct http_path *ret, struct err *e) NZ_MUST_USE;
void http_path_release(struct http_path *p);
/* http_path_next - the component behind `name`, the first one for NULL; NULL behind the last.
 * Borrowed. */
const char *http_path_next(const struct http_path *p, const char *name);

enum http_range {
	HTTP_ALL,     /* no range, or one that is not understood: everything is sent */
	HTTP_PART,
	HTTP_OUTSIDE, /* there is nothing of what was asked for: 416 */
};

/* http_range_parse - header: of "Range", NULL: none. size: bytes there are. Several ranges and
 * other units are HTTP_ALL, as RFC 9110 14.2 allows. *ret_first and *ret_len are always written. */
enum http_range http_range_parse(const char *header, uint64_t size, uint64_t *ret_first,
				 uint64_t *ret_len);

/* http_tag_listed - whether the header of "If-None-Match" names an entity tag, weakly compared
 * (RFC 9110 13.1.2). header NULL: no. */
bool http_tag_listed(const char *header, const char *tag);
/* http_tag_same - whether the header of "If-Range" is this tag, strongly compared: a weak one and a
 * date never are. */
bool http_tag_same(const char *header, const char *tag);

/* http_host_ok - whether the header of "Host" names this machine's loopback, or `bound`, an address
 * without brackets: names of others may have been led here (DNS rebinding). NULL, which browsers
 * never send: yes. */
bool http_host_ok(const char *header, const char *bound);

/* http_type - Content-Type of a file of this name. Nothing that a browser would run. */
const char *http_type(const char *name);

/* http_put_html - append text so that it is text in HTML, in quotes, too. */
void http_put_html(struct buf *out, const char *text, size_t n);

#endif
