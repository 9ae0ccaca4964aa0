/* SPDX-License-Identifier: BSD-3-Clause */
/* http_int.h - the parts of the HTTP client; private to its room.
 *
 *   http.c       who asks: starting, waiting, stopping; the only part with a lock
 *   scheduler.c  the thread: queues, limits, pauses, what takes too long
 *   transfer.c   one try of a request as libcurl wants it
 *   response.c   what comes, and how much of it
 *   retry.c      what an end means: take it, try again, go elsewhere; the messages
 *   redirect.c   where a redirect may lead
 *   netrc.c      names and passwords of a netrc file
 *
 * But for http.c everything runs on the net's thread, which nothing may make wait. */
#ifndef NCZARR_HTTP_HTTP_INT_H
#define NCZARR_HTTP_HTTP_INT_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/os/url.h"
#include "nczarr/http/http.h"

enum {
	HTTP_HOPS = 5,                 /* redirects of one request */
	HTTP_ERROR_BYTES = 64 << 10,   /* kept of the body of an error */
	HTTP_HEADER_BYTES = 256 << 10, /* of all header lines of one try */
	HTTP_SKIP_BYTES = 64 << 20,    /* before a part, of a server without ranges */
};

#define HTTP_MS ((int64_t)1000 * 1000)

/* http_list - requests in order. */
struct http_list {
	struct http_transfer *first, *last;
	uint32_t n;
};

/* http_host - one scheme, host and port. */
struct http_host {
	struct http_host *next;
	char *key;
	uint32_t refs;         /* requests that name it */
	uint32_t flying, behind; /* on their way; of these background ones */
	bool http1, http2;     /* what it was seen to speak */
	int64_t last_good;     /* when it last answered; 0: never */
};

/* http_fault - why one of our callbacks ended a transfer. */
enum http_fault {
	FAULT_NONE,
	FAULT_ENOUGH, /* everything that was wanted is here */
	FAULT_TOO_BIG,
	FAULT_HEADERS,   /* too many */
	FAULT_NO_RANGES, /* the part lies too far behind the beginning */
	FAULT_PLACE,     /* the address must not be asked */
	FAULT_BODY,      /* what is to be sent cannot be read */
	FAULT_MEMORY,
	FAULT_STALL,
	FAULT_CONNECT,
	FAULT_TOTAL,
};

struct http_transfer {
	struct http_client *net;
	struct http_request want; /* texts owned */
	http_done_fn *done;
	void *arg;
	struct http_transfer *next, *prev;
	_Atomic bool cancelled;
	bool unset;                   /* memory was short for an option of the try */

	struct url first, at;         /* want.url, and where it is asked now */
	uint64_t seen[HTTP_HOPS + 1]; /* hashes of the addresses it was sent to */
	uint32_t hops;
	struct http_host *host;
	int64_t since, until, due;    /* began to wait, must be done (0: not begun), tried again */
	enum address_class first_kind; /* of the address that answered first */
	bool first_known, signed_try;

	/* of one try */
	CURL *easy;
	struct curl_slist *headers;
	char *url, *auth;             /* auth: "name:password" of a netrc file; NULL */
	char text[CURL_ERROR_SIZE];
	int64_t begun, last_byte;
	enum http_fault fault;
	bool sent, fresh, body_began, lengthy; /* lengthy: its end is marked */
	uint64_t header_bytes, sent_bytes, skip, room_len;
	uint32_t pause_ms;            /* Retry-After of the last answer */
	uint32_t tries_here;          /* of names that were not found */
	struct http_response a;
};

struct http_client {
	struct http_client_options opts; /* texts owned */
	bool proxied;                 /* there is a proxy for some requests */
	uint16_t proxy_port;
	char *netrc;                  /* its text; NULL: none or not read yet */
	bool netrc_read;

	pthread_mutex_t lock;
	pthread_t thread;             /* lock: until started */
	bool started, stopping, ending; /* lock */
	struct http_list inbox;         /* lock */
	struct http_counts counts;      /* lock */
	CURLM *multi;                 /* set before the thread is started */
	_Atomic uint32_t cancels;     /* asked for and not looked at yet */

	/* the thread's */
	struct http_list front, back, paused, flying;
	struct http_host *hosts;
	uint32_t n_hosts;
	CURL **spare;                 /* room for opts.requests */
	uint32_t n_spare;
	uint64_t dice;
};

/* scheduler.c */
void *http_run(void *arg);
void http_put(struct http_list *l, struct http_transfer *r);
void http_take(struct http_list *l, struct http_transfer *r);

/* http.c */
/* http_finish - tell who asked, and free the request. It is in no list. */
void http_finish(struct http_transfer *r);

/* transfer.c: r->easy is ready to be added. */
int http_try(struct http_transfer *r, struct err *e) NZ_MUST_USE;
void http_try_end(struct http_transfer *r);

/* response.c */
size_t http_on_header(char *data, size_t size, size_t n, void *arg);
size_t http_on_body(char *data, size_t size, size_t n, void *arg);
size_t http_on_send(char *data, size_t size, size_t n, void *arg);
int http_on_seek(void *arg, curl_off_t off, int whence);
/* http_response_begin - forget what a try before brought. */
void http_response_begin(struct http_transfer *r);

/* retry.c */
enum http_verdict { HTTP_DONE, HTTP_AGAIN, HTTP_ELSEWHERE };
/* http_verdict - what the end of a try means. With DONE r->a is complete. */
enum http_verdict http_verdict(struct http_transfer *r, CURLcode code);
/* http_pause - ns until the next try. */
int64_t http_pause(struct http_transfer *r);
/* http_shown - the address for messages; out is emptied. Borrowed from out. */
const char *http_shown(const struct url *u, struct buf *out);
/* http_fail - r->a.rc and a message that begins with the address. */
NZ_PRINTF(3, 4) void http_fail(struct http_transfer *r, int rc, const char *fmt, ...);

/* redirect.c */
enum address_class address_class_of(const struct sockaddr *addr);
/* http_redirect - r->at becomes where the answer sends it. -errno: r->a says why not. */
int http_redirect(struct http_transfer *r);
/* http_may_ask - whether the address that was connected to is one that may be asked. */
bool http_may_ask(struct http_transfer *r, enum address_class kind);

/* netrc.c */
/* http_netrc_find - "name:password" for a host in the text of a netrc file; new, NULL: none.
 * defaults: its `default` entry counts, too. */
char *http_netrc_find(const char *text, const char *host, bool defaults);

#endif
