/* SPDX-License-Identifier: BSD-3-Clause */
/* parse_int.h - parses requests of HTTP (RFC 9110): paths, ranges, tags, hosts. Pure functions on
 * untrusted strings. */
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

/* http_path_parse - split a path as it was sent; empty components are left out. Returns 0 with *ret
 * filled (http_path_release it, also after an error); -EINVAL: bad percent encoding, a NUL, a '/'
 * within a component, "." or ".."; -ENAMETOOLONG; -ENOMEM. */
int http_path_parse(const char *raw, struct http_path *ret, struct err *e) NZ_MUST_USE;
void http_path_release(struct http_path *p);
/* http_path_next - the component after `name`, the first one for NULL; NULL after the last.
 * Borrowed. */
const char *http_path_next(const struct http_path *p, const char *name);

enum http_range {
	HTTP_ALL,     /* no range, or an unsupported one: everything is sent */
	HTTP_PART,
	HTTP_OUTSIDE, /* no byte of the range exists: 416 */
};

/* http_range_parse - parse "Range"; header NULL: none. size: bytes of the file. Several ranges and
 * other units are HTTP_ALL, as RFC 9110 14.2 allows. *ret_first and *ret_len are always written. */
enum http_range http_range_parse(const char *header, uint64_t size, uint64_t *ret_first,
				 uint64_t *ret_len);

/* http_tag_listed - true if "If-None-Match" names an entity tag, by weak comparison (RFC 9110
 * 13.1.2). header NULL: false. */
bool http_tag_listed(const char *header, const char *tag);
/* http_tag_same - true if "If-Range" is this tag, by strong comparison: false for a weak tag and
 * for a date. */
bool http_tag_same(const char *header, const char *tag);

/* http_host_ok - true if "Host" names the loopback of this machine, or `bound`, an address without
 * brackets. Another name may have been directed here (DNS rebinding). NULL, which browsers never
 * send: true. */
bool http_host_ok(const char *header, const char *bound);

/* http_type - Content-Type of a file of this name; never one that a browser would execute. */
const char *http_type(const char *name);



#endif
