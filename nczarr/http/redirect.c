/* SPDX-License-Identifier: BSD-3-Clause */
/* redirect.c - checks redirects: they must not drop encryption, leave HTTP, lead to addresses that
 * only this machine can reach, or form a loop.
 *
 * The connected address is checked, so that name servers cannot circumvent the check. */
#include "base/core/endian.h"
#include "base/core/hash.h"
#include "nczarr/http/http_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* Kinds of addresses (RFC 6890 and its registries). */

struct redirect_block {
	uint32_t addr;
	uint32_t bits;
	enum address_class kind;
};

static enum address_class kind_of_ipv4(const uint8_t b[4])
{
	static const struct redirect_block blocks[] = {
		{0x00000000, 8, HTTP_LOOPBACK}, /* 0.0.0.0 is this machine */
		{0x7f000000, 8, HTTP_LOOPBACK},
		{0x0a000000, 8, HTTP_PRIVATE},
		{0xac100000, 12, HTTP_PRIVATE},
		{0xc0a80000, 16, HTTP_PRIVATE},
		{0x64400000, 10, HTTP_PRIVATE}, /* carrier-grade NAT */
		{0xc0000000, 24, HTTP_PRIVATE},
		{0xc6120000, 15, HTTP_PRIVATE},
		{0xa9fe0000, 16, HTTP_LINK_LOCAL},
		{0xe0000000, 4, HTTP_LINK_LOCAL}, /* multicast */
		{0xf0000000, 4, HTTP_LINK_LOCAL}, /* reserved, broadcast */
	};
	uint32_t addr = (uint32_t)get_be(b, 4);

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		if ((addr ^ blocks[i].addr) >> (32 - blocks[i].bits) == 0)
			return blocks[i].kind;
	return HTTP_PUBLIC;
}

/* kind_of_ipv6 - the kind of an IPv6 address, or of the IPv4 address in it. */
static enum address_class kind_of_ipv6(const uint8_t b[16])
{
	static const uint8_t zero[15], nat64[12] = {0, 0x64, 0xff, 0x9b};
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	if (memcmp(b, zero, 15) == 0 && b[15] <= 1)
		return HTTP_LOOPBACK;
	if (memcmp(b, mapped, 12) == 0 || memcmp(b, zero, 12) == 0 || memcmp(b, nat64, 12) == 0)
		return kind_of_ipv4(b + 12);
	if (b[0] == 0x20 && b[1] == 0x02) /* 6to4 */
		return kind_of_ipv4(b + 2);
	if ((b[0] & 0xfe) == 0xfc)
		return HTTP_PRIVATE;
	if (b[0] == 0xfe && (b[1] & 0xc0) == 0xc0)
		return HTTP_PRIVATE; /* site local (deprecated) */
	if ((b[0] == 0xfe && (b[1] & 0xc0) == 0x80) || b[0] == 0xff)
		return HTTP_LINK_LOCAL;
	return HTTP_PUBLIC;
}

enum address_class address_class_of(const struct sockaddr *addr)
{
	/* the caller's memory has room for each family */
	if (addr->sa_family == AF_INET)
		return kind_of_ipv4((const uint8_t *)addr + offsetof(struct sockaddr_in, sin_addr));
	if (addr->sa_family == AF_INET6)
		return kind_of_ipv6((const uint8_t *)addr +
				    offsetof(struct sockaddr_in6, sin6_addr));
	return HTTP_LINK_LOCAL; /* unexpected */
}

enum address_class address_class_of_text(const char *host)
{
	uint8_t b[16];

	if (inet_pton(AF_INET, host, b) == 1)
		return kind_of_ipv4(b);
	if (inet_pton(AF_INET6, host, b) == 1)
		return kind_of_ipv6(b);
	return HTTP_PUBLIC;
}

bool http_is_here(const char *host)
{
	size_t n = strlen(host);

	return strcmp(host, "localhost") == 0 ||
	       (n > 10 && strcmp(host + n - 10, ".localhost") == 0) ||
	       address_class_of_text(host) == HTTP_LOOPBACK;
}

bool http_may_ask(struct http_transfer *r, enum address_class kind)
{
	if (kind == HTTP_LINK_LOCAL)
		return r->want.link_local && r->hops == 0;
	if ((r->hops == 0 && !r->want.public_only) || kind == HTTP_PUBLIC ||
	    r->net->opts.private_redirects)
		return true;
	return r->first_known && !r->want.public_only && kind == r->first_kind;
}

/* Following. */

static uint64_t redirect_hash_of(const struct url *u)
{
	auto_buf b = buf_of(URL_MAX * 2);

	url_put(&b, u, true);
	return hash_bytes(HASH_SEED, b.data, b.len);
}

/* resolve - resolve Location, which may be relative, against the current address. */
static int resolve(const struct http_transfer *r, struct url *ret)
{
	CURLU *u = curl_url();
	char *text = NULL;
	auto_buf b = buf_of(URL_MAX * 2);
	int rc = -EBADMSG;

	url_put(&b, &r->at, true);
	buf_putc(&b, '\0');
	if (u && buf_ok(&b) &&
	    curl_url_set(u, CURLUPART_URL, (const char *)b.data, 0) == CURLUE_OK &&
	    curl_url_set(u, CURLUPART_URL, r->a.location,
			 CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_URL, &text, 0) == CURLUE_OK)
		rc = url_parse(text, ret, NULL);
	curl_free(text);
	curl_url_cleanup(u);
	return rc;
}

int http_redirect(struct http_transfer *r)
{
	struct url to = {0};
	enum address_class kind;
	uint64_t hash;
	const char *why = NULL;
	int rc = -EACCES;

	if (r->hops++ == 0)
		r->seen[0] = redirect_hash_of(&r->at);
	if (resolve(r, &to) < 0) {
		http_fail(r, -EIO, "the redirect contains no valid address");
		return -EIO;
	}
	kind = http_is_here(to.host) ? HTTP_LOOPBACK : address_class_of_text(to.host);
	if (strcmp(to.scheme, "http") != 0 && strcmp(to.scheme, "https") != 0)
		why = "the redirect does not lead to an http:// or https:// address and is not "
		      "followed";
	else if (strcmp(r->at.scheme, "https") == 0 && strcmp(to.scheme, "https") != 0)
		why = "the redirect leads from https:// to http:// and is not followed";
	else if (!http_may_ask(r, kind))
		why = "the redirect leads to this machine or into a private network and is not "
		      "followed (-o private_redirects allows it)";
	hash = redirect_hash_of(&to);
	if (!why) {
		rc = -EIO;
		why = r->hops > HTTP_HOPS ? "too many redirects" : NULL;
		for (uint32_t i = 0; !why && i < r->hops; i++)
			if (r->seen[i] == hash)
				why = "the redirects form a loop";
	}
	if (why) {
		http_fail(r, rc, "%s", why);
		url_release(&to);
		return rc;
	}
	r->seen[r->hops] = hash;
	url_release(&r->at);
	r->at = to;
	r->a.tries = 0; /* of the next address */
	return 0;
}
