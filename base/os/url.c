/* SPDX-License-Identifier: BSD-3-Clause */
/* url.c - parse and format URLs. Messages never quote a rejected part: the input may be a password
 * with a '/' in it, which no parser can tell from a host. */
#include "base/os/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/core/str.h"

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex_of(char c)
{
	if (str_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* scheme_len - bytes of the scheme when text begins with "scheme://", else 0. */
static size_t scheme_len(const char *text)
{
	size_t n = 0;

	if (!is_alpha(text[0]))
		return 0;
	while (is_alpha(text[n]) || str_digit(text[n]) || text[n] == '+' || text[n] == '-' ||
	       text[n] == '.')
		n++;
	return strncmp(text + n, "://", 3) == 0 ? n : 0;
}

bool url_is(const char *text)
{
	return scheme_len(text) > 0;
}

/* Encodings. */

void url_encode(struct buf *out, const char *text, size_t n, bool slashes)
{
	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (is_alpha(c) || str_digit(c) || c == '-' || c == '.' || c == '_' ||
		    c == '~' || (slashes && c == '/'))
			buf_putc(out, c);
		else
			buf_printf(out, "%%%02X", (unsigned int)(uint8_t)c);
	}
}

/* os_url_decoded - the byte at text[*i], which may be percent-encoded; *i is moved to its last
 * byte. Returns -1 for bad encoding. */
static int os_url_decoded(const char *text, size_t n, size_t *i)
{
	int hi, lo;

	if (text[*i] != '%')
		return (uint8_t)text[*i];
	if (n - *i < 3)
		return -1;
	hi = hex_of(text[*i + 1]);
	lo = hex_of(text[*i + 2]);
	*i += 2;
	return hi < 0 || lo < 0 || hi + lo == 0 ? -1 : hi * 16 + lo;
}

int url_decode(struct buf *out, const char *text, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int c = text[i] ? os_url_decoded(text, n, &i) : -1;

		if (c < 0)
			return err_set(e, -EINVAL,
				       "a '%%' must be followed by two hexadecimal digits "
				       "(write '%%25' for '%%' itself)");
		buf_putc(out, (char)c);
	}
	return buf_ok(out) ? 0 : err_nomem(e);
}

static int encoding_check(const char *text, size_t n, const char *where, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (os_url_decoded(text, n, &i) < 0)
			return err_set(e, -EINVAL,
				       "address: a '%%' in the %s must be followed by two "
				       "hexadecimal digits (write '%%25' for '%%' itself)",
				       where);
	return 0;
}

/* Parsing. */

static int os_url_keep(char **ret, const char *text, size_t n, struct err *e)
{
	*ret = strndup(text, n);
	return *ret ? 0 : err_nomem(e);
}

static int keep_decoded(char **ret, const char *text, size_t n, const char *where,
			struct err *e)
{
	struct buf b;
	int rc = encoding_check(text, n, where, e);

	if (rc < 0)
		return rc;
	buf_init(&b, URL_MAX + 1);
	rc = url_decode(&b, text, n, e);
	if (rc == 0)
		rc = os_url_keep(ret, b.data ? (const char *)b.data : "", b.len, e);
	buf_wipe(&b); /* may be a password */
	return rc;
}

static void os_url_lower(char *s)
{
	for (; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

static int bad_host(struct err *e)
{
	return err_set(e, -EINVAL,
		       "address: its host is not a valid host name or IP address (in a user "
		       "name or password write '%%2F', '%%3F', '%%23', '%%40' and '%%3A' for "
		       "'/', '?', '#', '@' and ':')");
}

/* host_ok - a host name; bytes above 0x7f are of an international name, which libcurl encodes. */
static bool host_ok(const char *host, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_alpha(host[i]) && !str_digit(host[i]) && host[i] != '-' &&
		    host[i] != '.' && host[i] != '_' && !((uint8_t)host[i] & 0x80))
			return false;
	return n < 256;
}

static bool ipv6_ok(const char *host, size_t n)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (n >= sizeof(text))
		return false;
	memcpy(text, host, n);
	text[n] = '\0';
	return inet_pton(AF_INET6, text, &addr) == 1;
}

static int take_port(const char *text, size_t n, struct url *u, struct err *e)
{
	uint64_t port = 0;

	if (n == 0) /* "host:" */
		return 0;
	if (str_u64(text, n, UINT16_MAX, &port) < 0 || port == 0)
		return err_set(
			e, -EINVAL,
			"address: its port is not a number from 1 to 65535 (in a password "
			"write '%%2F', '%%3F', '%%23' and '%%40' for '/', '?', '#' and '@')");
	u->port = (uint16_t)port;
	return 0;
}

/* take_host - parse [begin, end): "host", "host:port" or "[address]:port". */
static int take_host(const char *begin, const char *end, struct url *u, struct err *e)
{
	const char *stop, *port;
	int rc;

	if (*begin == '[') {
		begin++;
		stop = memchr(begin, ']', (size_t)(end - begin));
		if (!stop || !ipv6_ok(begin, (size_t)(stop - begin)) ||
		    (stop + 1 != end && stop[1] != ':'))
			return bad_host(e);
		port = stop + 1;
	} else {
		stop = memchr(begin, ':', (size_t)(end - begin));
		stop = stop ? stop : end;
		if (!host_ok(begin, (size_t)(stop - begin)))
			return bad_host(e);
		port = stop;
	}
	if (stop == begin && strcmp(u->scheme, "file") != 0)
		return err_set(e, -EINVAL, "address: no host after '%s://'", u->scheme);
	rc = os_url_keep(&u->host, begin, (size_t)(stop - begin), e);
	if (rc < 0)
		return rc;
	os_url_lower(u->host);
	return port < end ? take_port(port + 1, (size_t)(end - port - 1), u, e) : 0;
}

/* take_authority - parse "user:password@host:port". */
static int take_authority(const char *begin, const char *end, struct url *u, struct err *e)
{
	const char *at = memrchr(begin, '@', (size_t)(end - begin)), *colon;
	int rc = 0;

	if (at) {
		colon = memchr(begin, ':', (size_t)(at - begin));
		rc = keep_decoded(&u->user, begin, (size_t)((colon ? colon : at) - begin),
				  "user's name", e);
		if (rc == 0 && colon)
			rc = keep_decoded(&u->password, colon + 1, (size_t)(at - colon - 1),
					  "password", e);
		begin = at + 1;
	}
	return rc < 0 ? rc : take_host(begin, end, u, e);
}

static int take_rest(const char *text, struct url *u, struct err *e)
{
	size_t path = strcspn(text, "?#"), query;
	int rc = encoding_check(text, path, "path", e);

	rc = rc ? rc : os_url_keep(&u->path, text, path, e);
	text += path;
	if (rc == 0 && *text == '?') {
		query = strcspn(++text, "#");
		rc = encoding_check(text, query, "query", e);
		rc = rc ? rc : os_url_keep(&u->query, text, query, e);
		text += query;
	}
	if (rc == 0 && *text == '#')
		rc = os_url_keep(&u->fragment, text + 1, strlen(text + 1), e);
	return rc;
}

static int take_all(const char *text, struct url *u, struct err *e)
{
	size_t n = scheme_len(text);
	const char *authority = text + n + 3;
	const char *end = authority + strcspn(authority, "/?#");
	int rc = os_url_keep(&u->scheme, text, n, e);

	if (rc < 0)
		return rc;
	os_url_lower(u->scheme);
	rc = take_authority(authority, end, u, e);
	return rc < 0 ? rc : take_rest(end, u, e);
}

int url_parse(const char *text, struct url *ret, struct err *e)
{
	struct url u = {0};
	size_t n = strnlen(text, URL_MAX + 1);
	int rc;

	if (n > URL_MAX)
		return err_set(e, -EINVAL, "address: longer than %d bytes", URL_MAX);
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] <= ' ' || text[i] == 0x7f)
			return err_set(e, -EINVAL,
				       "address: it contains a space or a control character "
				       "(write '%%20' for a space)");
	if (!url_is(text))
		return err_set(e, -EINVAL,
			       "address: it does not begin with a scheme such as https://");
	rc = take_all(text, &u, e);
	if (rc < 0) {
		url_release(&u);
		return rc;
	}
	*ret = u;
	return 0;
}

void url_release(struct url *u)
{
	free(u->scheme);
	str_wipe(u->user);
	str_wipe(u->password);
	free(u->host);
	free(u->path);
	str_wipe(u->query); /* may contain a signature */
	free(u->fragment);
	*u = (struct url){0};
}

/* Formatting. */

/* is_secret - whether the value of this query parameter is a credential. */
static bool is_secret(const char *name, size_t n)
{
	static const char *const words[] = {
		"sig", "token",   "secret", "passw",     "credential", "key", "auth",
		"pwd", "session", "jwt",    "signature", "code",       "sas", "policy"};

	for (size_t w = 0; w < ARRAY_LEN(words); w++) {
		size_t len = strlen(words[w]);

		for (size_t i = 0; i + len <= n; i++)
			if (strncasecmp(name + i, words[w], len) == 0)
				return true;
	}
	return false;
}

static void put_query_shown(struct buf *out, const char *query)
{
	while (*query) {
		size_t n = strcspn(query, "&;"), name = strcspn(query, "=&;");

		if (name == n && n > 24) /* without a name it may be a token */
			buf_puts(out, "...");
		else if (name < n && is_secret(query, name))
			buf_printf(out, "%.*s=...", (int)name, query);
		else
			buf_put(out, query, n);
		query += n;
		if (*query)
			buf_putc(out, *query++);
	}
}

static void put_user(struct buf *out, const struct url *u)
{
	url_encode(out, u->user, strlen(u->user), false);
	if (u->password) {
		buf_putc(out, ':');
		url_encode(out, u->password, strlen(u->password), false);
	}
	buf_putc(out, '@');
}

void url_put(struct buf *out, const struct url *u, bool secrets)
{
	bool ipv6 = strchr(u->host, ':') != NULL;

	buf_printf(out, "%s://", u->scheme);
	if (secrets && u->user)
		put_user(out, u);
	buf_printf(out, ipv6 ? "[%s]" : "%s", u->host);
	if (u->port)
		buf_printf(out, ":%u", (unsigned int)u->port);
	buf_puts(out, u->path);
	if (!u->query)
		return;
	buf_putc(out, '?');
	if (secrets)
		buf_puts(out, u->query);
	else
		put_query_shown(out, u->query);
}

static uint16_t os_url_port_of(const struct url *u)
{
	if (u->port)
		return u->port;
	return strcmp(u->scheme, "https") == 0 ? 443 : strcmp(u->scheme, "http") == 0 ? 80 : 0;
}

bool url_origin_same(const struct url *a, const struct url *b)
{
	return strcmp(a->scheme, b->scheme) == 0 && strcmp(a->host, b->host) == 0 &&
	       os_url_port_of(a) == os_url_port_of(b);
}
