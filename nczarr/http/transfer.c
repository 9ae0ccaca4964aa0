/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.c - sets up libcurl for one try of a request. libcurl follows no redirect, decodes
 * nothing and gets only the credentials for this address. */
#include "nczarr/http/http_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/endian.h"
#include "base/core/str.h"
#include "base/os/io.h"
#include "base/os/cancel.h"

#define NETRC_MAX ((size_t)1 << 20)

/* SET - set an option, which may need memory for a copy: without it the request would be a
 * different one, so it is not sent. Options that a libcurl does not support are ignored. */
#define SET(r, option, value)                                                                  \
	((r)->unset |= curl_easy_setopt((r)->easy, option, value) == CURLE_OUT_OF_MEMORY)

/* Where it is connected to. */

/* is_proxy - whether a connection to this port is one to the proxy. An address with the proxy's
 * port may also be connected directly (no_proxy): it is checked as any other, unless the user
 * named it. */
static bool is_proxy(const struct http_transfer *r, int port)
{
	const struct http_client *n = r->net;

	return n->proxied && port == n->proxy_port && !r->want.no_proxy &&
	       (r->at.port != n->proxy_port || (r->hops == 0 && !r->want.public_only));
}

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct http_transfer *r = arg;
	enum address_class kind = address_class_of(&addr->addr);
	uint16_t port = 0;

	(void)purpose;
	if (addr->addr.sa_family == AF_INET || addr->addr.sa_family == AF_INET6) {
		uint8_t be[2]; /* at the same offset in both */

		memcpy(be, (const uint8_t *)&addr->addr + 2, 2);
		port = (uint16_t)get_be(be, 2);
	}
	if (!is_proxy(r, port) && !http_may_ask(r, kind)) {
		r->fault = FAULT_PLACE;
		return CURL_SOCKET_BAD;
	}
	return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

/* on_request - connected, maybe through a connection of another request. */
static int on_request(void *arg, char *ip, char *own_ip, int port, int own_port)
{
	struct http_transfer *r = arg;
	enum address_class kind = ip ? address_class_of_text(ip) : HTTP_PUBLIC;
	bool proxy = is_proxy(r, port);

	(void)own_ip;
	(void)own_port;
	if (!proxy && !http_may_ask(r, kind)) {
		r->fault = FAULT_PLACE;
		return CURL_PREREQFUNC_ABORT;
	}
	if (!r->first_known) {
		r->first_known = true;
		r->first_kind = proxy ? HTTP_PUBLIC : kind;
	}
	r->sent = true;
	r->last_byte = clock_ns();
	return CURL_PREREQFUNC_OK;
}

/* Credentials. */

/* netrc - content of the file, read once; "" if there is none. */
static const char *netrc(struct http_client *n)
{
	size_t len;

	if (n->opts.netrc_file && !n->netrc_read &&
	    io_read_file(n->opts.netrc_file, NETRC_MAX, &n->netrc, &len, NULL) < 0)
		str_wipe(steal(&n->netrc));
	n->netrc_read = true;
	return n->netrc ? n->netrc : "";
}

/* set_credentials - the request's credentials apply to its original origin; those of a netrc file
 * to the hosts it names. */
static int set_credentials(struct http_transfer *r, struct err *e)
{
	const struct http_request *w = &r->want;
	const struct http_client_options *o = &r->net->opts;
	bool same = url_origin_same(&r->first, &r->at);
	bool open = strcmp(r->at.scheme, "https") == 0 || o->plain_secrets ||
		    http_is_here(r->at.host);
	auto_free char *line = NULL;
	char *auth;

	if (same && w->bearer) {
		line = str_printf("Authorization: Bearer %s", w->bearer);
		return line ? http_header(r, line, e) : err_nomem(e);
	}
	if (same && w->user) {
		SET(r, CURLOPT_USERNAME, w->user);
		SET(r, CURLOPT_PASSWORD, w->password ? w->password : "");
	} else if (open && o->netrc_file && !w->sign) {
		auth = http_netrc_find(netrc(r->net), r->at.host, same);
		if (auth)
			SET(r, CURLOPT_USERPWD, auth);
		str_wipe(auth);
	}
	return 0;
}

/* Headers. */

static int transfer_set_headers(struct http_transfer *r, struct err *e)
{
	const struct http_request *w = &r->want;
	int rc = http_header(r, "Accept-Encoding: identity", e);

	for (size_t i = 0; rc == 0 && w->headers[i]; i++)
		rc = http_header(r, w->headers[i], e);
	rc = rc ? rc : set_credentials(r, e);
	if (rc == 0 && w->sign)
		rc = w->sign(w->sign_arg, r, e);
	if (rc == 0)
		SET(r, CURLOPT_HTTPHEADER, r->headers);
	return rc;
}

static void set_method(struct http_transfer *r)
{
	const struct http_request *w = &r->want;

	r->sent_bytes = 0;
	if (strcmp(w->method, "HEAD") == 0) {
		SET(r, CURLOPT_NOBODY, 1L);
	} else if (strcmp(w->method, "PUT") == 0 || strcmp(w->method, "POST") == 0) {
		SET(r, CURLOPT_UPLOAD, 1L);
		SET(r, CURLOPT_INFILESIZE_LARGE, (curl_off_t)w->body_len);
		SET(r, CURLOPT_CUSTOMREQUEST, w->method);
		SET(r, CURLOPT_READFUNCTION, http_on_send);
		SET(r, CURLOPT_READDATA, r);
		SET(r, CURLOPT_SEEKFUNCTION, http_on_seek);
		SET(r, CURLOPT_SEEKDATA, r);
	} else {
		SET(r, CURLOPT_HTTPGET, 1L);
		SET(r, CURLOPT_CUSTOMREQUEST, w->method);
	}
}

/* set_connection - a server with HTTP/1.1 gets parallel connections; until the protocol is known,
 * requests wait for the first connection, which they may be able to share. */
static void set_connection(struct http_transfer *r)
{
	const struct http_client_options *o = &r->net->opts;

	SET(r, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	SET(r, CURLOPT_PIPEWAIT,
	    strcmp(r->at.scheme, "https") == 0 && !r->host->http1 ? 1L : 0L);
	SET(r, CURLOPT_FRESH_CONNECT, r->fresh ? 1L : 0L);
	SET(r, CURLOPT_CONNECTTIMEOUT_MS, (long)o->connect_ms);
	SET(r, CURLOPT_TCP_KEEPALIVE, 1L);
	if (r->want.no_proxy)
		SET(r, CURLOPT_NOPROXY, "*");
	if (o->insecure) {
		SET(r, CURLOPT_SSL_VERIFYPEER, 0L);
		SET(r, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (o->ca_file) /* the system's directory of certificates stays */
		SET(r, CURLOPT_CAINFO, o->ca_file);
}

/* set_constants - set the options that are the same for each try. */
static void set_constants(struct http_transfer *r)
{
	SET(r, CURLOPT_PRIVATE, r);
	SET(r, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(r, CURLOPT_FOLLOWLOCATION, 0L);
	SET(r, CURLOPT_PATH_AS_IS, 1L);
	SET(r, CURLOPT_HTTP_CONTENT_DECODING, 0L);
	SET(r, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(r, CURLOPT_NOSIGNAL, 1L);
	SET(r, CURLOPT_QUICK_EXIT, 1L); /* do not wait for name servers */
	SET(r, CURLOPT_BUFFERSIZE, 256L << 10);
	SET(r, CURLOPT_USERAGENT, "nczarrfs/" NCZARRFS_VERSION);
	SET(r, CURLOPT_ERRORBUFFER, r->text);
	SET(r, CURLOPT_HEADERFUNCTION, http_on_header);
	SET(r, CURLOPT_HEADERDATA, r);
	SET(r, CURLOPT_WRITEFUNCTION, http_on_body);
	SET(r, CURLOPT_WRITEDATA, r);
	SET(r, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	SET(r, CURLOPT_OPENSOCKETDATA, r);
	SET(r, CURLOPT_PREREQFUNCTION, on_request);
	SET(r, CURLOPT_PREREQDATA, r);
}

static void set_address(struct http_transfer *r)
{
	struct buf b = buf_of(URL_MAX * 2);

	if (r->hops) { /* the first one is verbatim: it may be signed */
		url_put(&b, &r->at, true);
		buf_putc(&b, '\0');
	}
	r->unset |= !buf_ok(&b);
	SET(r, CURLOPT_URL, r->hops ? (const char *)b.data : r->want.url);
	buf_wipe(&b);
}

int http_try(struct http_transfer *r, struct err *e)
{
	struct http_client *n = r->net;
	int rc;

	http_response_begin(r);
	r->a.tries++;
	r->unset = false;
	r->easy = n->n_spare ? n->spare[--n->n_spare] : curl_easy_init();
	if (!r->easy)
		return err_nomem(e);
	set_constants(r);
	set_connection(r);
	set_method(r);
	set_address(r);
	rc = transfer_set_headers(r, e);
	return rc == 0 && r->unset ? err_nomem(e) : rc;
}

void http_try_end(struct http_transfer *r)
{
	struct http_client *n = r->net;

	if (r->easy) {
		curl_easy_reset(r->easy);
		if (n->n_spare < n->opts.requests)
			n->spare[n->n_spare++] = r->easy;
		else
			curl_easy_cleanup(r->easy);
	}
	r->easy = NULL;
	for (struct curl_slist *s = r->headers; s; s = s->next)
		explicit_bzero(s->data, strlen(s->data));
	curl_slist_free_all(r->headers);
	r->headers = NULL;
}
