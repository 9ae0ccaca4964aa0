/* SPDX-License-Identifier: BSD-3-Clause */
/* url.h - parse and format URLs, and encode their parts. Spec: RFC 3986. The meaning of URLs for
 * this program (fragments, buckets, profiles) is in mountcfg/address/address.h. */
#ifndef BASE_OS_URL_H
#define BASE_OS_URL_H

#include "base/core/buf.h"
#include "base/core/err.h"

#define URL_MAX 8192  /* bytes of a URL */

/* url - the parts of a URL. Strings are owned; percent encoding is decoded where noted. */
struct url {
	char *scheme;    /* lower case: "https" */
	char *user;      /* decoded; NULL: none */
	char *password;  /* decoded; NULL: none */
	char *host;      /* lower case; an IPv6 address without its brackets */
	uint16_t port;   /* 0: the default of the scheme */
	char *path;      /* as written, "" or with a leading '/' */
	char *query;     /* as written, without '?'; NULL: none */
	char *fragment;  /* as written, without '#'; NULL: none */
};

/* url_is - whether text begins with a scheme, "word://"; otherwise it is a path. */
bool url_is(const char *text);

/* url_parse - Returns 0 with *ret filled (url_release it); -EINVAL with the reason: control
 * characters, spaces, a bad port, a bad host, bad percent encoding, longer than URL_MAX. Messages
 * never contain the user or password. */
int url_parse(const char *text, struct url *ret, struct err *e) NZ_MUST_USE;
void url_release(struct url *u);

/* url_put - append the URL without its fragment; secrets: with user and password. Unless secrets,
 * values of the query that look like credentials (X-Amz-Signature, sig, token, ...) are left
 * out. */
void url_put(struct buf *out, const struct url *u, bool secrets);

/* url_encode - append bytes percent-encoded as AWS requires: unreserved characters (A-Z a-z 0-9 - .
 * _ ~) are kept, hexadecimal is upper case; slashes: '/' is kept, too. */
void url_encode(struct buf *out, const char *text, size_t n, bool slashes);
/* url_decode - append decoded bytes. Returns 0; -EINVAL bad encoding, or a NUL. */
int url_decode(struct buf *out, const char *text, size_t n, struct err *e) NZ_MUST_USE;

/* url_origin_same - whether scheme, host and port are the same. */
bool url_origin_same(const struct url *a, const struct url *b);

#endif
