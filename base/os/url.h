/* SPDX-License-Identifier: BSD-3-Clause */
/* url.h - addresses of remote things: taken apart, put together, and the encodings of their parts.
 *
 * RFC 3986. What a URL is used for (fragments, buckets, profiles) is mountcfg/address/address.h. */
#ifndef BASE_OS_URL_H
#define BASE_OS_URL_H

#include "base/core/buf.h"
#include "base/core/err.h"

#define URL_MAX 8192  /* bytes of an address */

/* url - the parts of an address: texts are owned, decoded only where it is said. */
struct url {
	char *scheme;    /* lower case: "https" */
	char *user;      /* decoded; NULL: none */
	char *password;  /* decoded; NULL: none */
	char *host;      /* lower case; an IPv6 address without its brackets */
	uint16_t port;   /* 0: the scheme's own */
	char *path;      /* as it was written, "" or with a leading '/' */
	char *query;     /* as it was written, without '?'; NULL: none */
	char *fragment;  /* as it was written, without '#'; NULL: none */
};

/* url_is - whether text begins like an address: "word://". Anything else is a path. */
bool url_is(const char *text);

/* url_parse - Returns 0 with *ret filled (url_release it); -EINVAL with what is wrong: control
 * characters, spaces, a bad port, a bad host, bad percent encoding, longer than URL_MAX. Errors
 * never show user or password. */
int url_parse(const char *text, struct url *ret, struct err *e) NZ_MUST_USE;
void url_release(struct url *u);

/* url_put - append the address; secrets: with user and password, else without them. Never with the
 * fragment. Query strings are shown without values that look like credentials (X-Amz-Signature,
 * sig, token, ...) unless secrets. */
void url_put(struct buf *out, const struct url *u, bool secrets);

/* url_encode - append bytes percent-encoded as AWS wants it: unreserved characters (A-Z a-z 0-9 -
 * . _ ~) stay, hexadecimal is upper case; slashes: '/' stays, too. */
void url_encode(struct buf *out, const char *text, size_t n, bool slashes);
/* url_decode - append decoded bytes. -EINVAL: bad encoding, or a NUL. */
int url_decode(struct buf *out, const char *text, size_t n, struct err *e) NZ_MUST_USE;

/* url_origin_same - whether scheme, host and port are the same. */
bool url_origin_same(const struct url *a, const struct url *b);

#endif
