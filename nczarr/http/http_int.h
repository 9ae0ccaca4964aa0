/* SPDX-License-Identifier: BSD-3-Clause */
/* http_int.h - the parts of the HTTP client; private to its room.
 *
 *   http.c       the callers' side: start, wait, stop; the only part with a lock
 *   scheduler.c  the thread: queues, limits, pauses, time-outs
 *   transfer.c   sets up libcurl for one try of a request
 *   response.c   header fields and bodies of answers, with their limits
 *   retry.c      classifies a finished try: done, retry or redirect; the messages
 *   redirect.c   checks redirects
 *   netrc.c      reads a netrc file
 *
 * All but http.c runs on the client's thread, which must never block. */
#ifndef NCZARR_HTTP_HTTP_INT_H
#define NCZARR_HTTP_HTTP_INT_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/core/list.h"
#include "base/os/url.h"
#include "nczarr/http/http.h"

enum {
	HTTP_HOPS = 5,                 /* redirects of one request */
	HTTP_ERROR_BYTES = 64 << 10,   /* stored bytes of the body of an error */
	HTTP_HEADER_BYTES = 256 << 10, /* of all header lines of one try */
	HTTP_SKIP_BYTES = 64 << 20,    /* skipped bytes before a part, on a server without ranges */
};

#define HTTP_MS ((int64_t)1000 * 1000)

/* http_host - one scheme, host and port. */
struct http_host {
	struct http_host *next;
	uint32_t refs;         /* requests to this host */
	uint32_t flying, behind; /* in flight; background ones among them */
	bool http1, http2;     /* protocols it has used */
	int64_t last_good;     /* time of its last answer; 0: never */
	char key[];
};

/* http_fault - reason of a callback to end a transfer. */
enum http_fault {
	FAULT_NONE,
	FAULT_ENOUGH, /* all wanted bytes are received */
	FAULT_TOO_BIG,
	FAULT_HEADERS,   /* too many */
	FAULT_NO_RANGES, /* the part is too far from the start */
	FAULT_PLACE,     /* the address is forbidden */
	FAULT_BODY,      /* the request body cannot be read */
	FAULT_MEMORY,
	FAULT_STALL,
	FAULT_CONNECT,
	FAULT_TOTAL,
};

struct http_transfer {
	struct http_client *net;
	struct http_request want; /* its headers are owned */
	char *owned[5];           /* its other strings */
	http_done_fn *done;
	void *arg;
	struct list_link link;
	_Atomic bool cancelled;
	bool unset;                   /* out of memory for an option of the try */

	struct url first, at;         /* want.url, and its current redirect */
	uint64_t seen[HTTP_HOPS + 1]; /* hashes of the addresses it was sent to */
	uint32_t hops;
	struct http_host *host;
	int64_t since, until, due;    /* start, deadline (0: not started), next try */
	enum address_class first_kind; /* of the address of the first answer */
	bool first_known;

	/* of one try */
	CURL *easy;
	struct curl_slist *headers;
	char text[CURL_ERROR_SIZE];
	int64_t last_byte;            /* time; before the request is sent, of the start */
	enum http_fault fault;
	bool sent, fresh, body_began, lengthy; /* lengthy: its end is marked */
	uint64_t header_bytes, sent_bytes, skip;
	uint32_t pause_ms;            /* Retry-After of the last answer */
	uint32_t tries_here;          /* failed name look-ups */
	struct http_response a;
};

/* The lists of requests. HTTP_INBOX has the client's lock, the others are the thread's. */
enum { HTTP_FLYING, HTTP_PAUSED, HTTP_FRONT, HTTP_BACK, HTTP_INBOX, HTTP_LISTS };

struct http_client {
	struct http_client_options opts;
	/* HTTP_INBOX: lock */
	struct list_link lists[HTTP_LISTS];
	bool proxied;                 /* some requests use a proxy */
	uint16_t proxy_port;
	char *netrc;                  /* content of the netrc file; NULL: none or not read yet */
	bool netrc_read;

	pthread_mutex_t lock;
	pthread_t thread;             /* lock: until started */
	bool started, stopping, ending; /* lock */
	struct http_counts counts;      /* lock */
	CURLM *multi;                 /* set before the thread is started */
	_Atomic uint32_t cancels;     /* cancellations not handled yet */

	/* owned by the thread */
	uint32_t n_flying;            /* in HTTP_FLYING */
	struct http_host *hosts;
	uint32_t n_hosts;
	CURL **spare;                 /* room for opts.requests */
	uint32_t n_spare;
	uint64_t dice;
};

/* scheduler.c */
void *http_run(void *arg);
/* http_total_ms - limit of the request with its retries. */
static inline uint32_t http_total_ms(const struct http_transfer *r)
{
	return r->want.total_ms ? r->want.total_ms : r->net->opts.total_ms;
}

/* http.c */
/* http_finish - call done, and free the request. It is in no list. */
void http_finish(struct http_transfer *r);

/* transfer.c: prepare r->easy for the multi handle. */
int http_try(struct http_transfer *r, struct err *e) NZ_MUST_USE;
void http_try_end(struct http_transfer *r);

/* response.c */
size_t http_on_header(char *data, size_t size, size_t n, void *arg);
size_t http_on_body(char *data, size_t size, size_t n, void *arg);
size_t http_on_send(char *data, size_t size, size_t n, void *arg);
int http_on_seek(void *arg, curl_off_t off, int whence);
/* http_response_begin - reset the answer before a try. */
void http_response_begin(struct http_transfer *r);
/* http_take_header - set the status and the fields of r->a, once the header is complete. */
void http_take_header(struct http_transfer *r);

/* retry.c */
enum http_verdict { HTTP_DONE, HTTP_AGAIN, HTTP_ELSEWHERE };
/* http_verdict - classify a finished try. With HTTP_DONE r->a is complete. */
enum http_verdict http_verdict(struct http_transfer *r, CURLcode code);
/* http_pause - ns until the next try. */
int64_t http_pause(struct http_transfer *r);
/* http_shown - the address for messages. Borrowed from out, which is reset. */
const char *http_shown(const struct url *u, struct buf *out);
/* http_fail - set r->a.rc and a message that starts with the address. */
NZ_PRINTF(3, 4) void http_fail(struct http_transfer *r, int rc, const char *fmt, ...);

/* redirect.c */
enum address_class address_class_of(const struct sockaddr *addr);
/* http_redirect - set r->at to the target of the answer's redirect. -errno: r->a has the error. */
int http_redirect(struct http_transfer *r);
/* http_may_ask - whether the connected address is allowed. */
bool http_may_ask(struct http_transfer *r, enum address_class kind);

/* netrc.c */
/* http_netrc_find - find "name:password" for a host in a netrc file; new, NULL: none. defaults:
 * use its `default` entry, too. */
char *http_netrc_find(const char *text, const char *host, bool defaults);

#endif
