/* SPDX-License-Identifier: BSD-3-Clause */
/* http.h - HTTP requests: one thread with libcurl's multi interface, any number of callers.
 *
 * What may be tried again is tried again (429, 5xx, resets, answers that end early), with growing,
 * jittered pauses and what Retry-After says, within a bound; a redirect is followed only where that
 * is safe; every answer has a largest size; every wait has an end. What is said of an address never
 * has a secret in it. docs/dev/remote.md. */
#ifndef NCZARR_HTTP_HTTP_H
#define NCZARR_HTTP_HTTP_H

#include "base/core/buf.h"
#include "base/core/err.h"

struct http_client;

struct http_client_options {
	uint32_t connect_ms;     /* until a connection stands */
	uint32_t stall_ms;       /* without a byte */
	uint32_t total_ms;       /* of one request with all that is tried again */
	uint32_t tries;          /* at most, 1: nothing is tried again */
	uint32_t connections;    /* to one host at a time; with HTTP/2 streams share them */
	uint32_t requests;       /* in flight at a time */
	bool insecure;           /* certificates are not verified */
	bool plain_secrets;      /* credentials may go over http:// to hosts other than loopback */
	bool private_redirects;  /* redirects may lead to private addresses, and to loopback */
	char *ca_file;           /* certificates to trust beside the system's; NULL */
	char *netrc_file;        /* NULL: none */
	char *proxy;             /* NULL: as the environment says */
};

/* http_client_new - nothing is connected and no thread is started before the first request. opts
 * and its texts are copied. */
int http_client_new(const struct http_client_options *opts, struct http_client **ret,
		    struct err *e) NZ_MUST_USE;
/* http_client_free - requests that are in flight end with -ECANCELED first. Takes NULL. */
void http_client_free(struct http_client *n);
/* http_client_stop - the same, and all later requests; the net stays. Any thread. */
void http_client_stop(struct http_client *n);

struct http_transfer;

/* http_sign_fn - called on the net's thread before each try (dates and credentials may have
 * changed): adds header lines with http_header. Must not wait. */
typedef int http_sign_fn(void *arg, struct http_transfer *r, struct err *e);

/* http_response - what came. */
struct http_response {
	int rc;                  /* 0: an answer of the server with a status below 400, complete;
	                          * -EINTR, -ECANCELED; else why there is none (below), in e. 3xx:
	                          * it was signed, or neither GET nor HEAD: redirects are the
	                          * caller's */
	struct err e;
	uint32_t status;         /* of the last try; 0: no answer */
	uint32_t tries;
	struct buf body;         /* of errors too, at most 64 KiB of them; the receiver's */
	uint64_t length;         /* Content-Length; UINT64_MAX: not said */
	uint64_t range_off, range_end, range_size; /* Content-Range; size UINT64_MAX: '*' or none */
	bool ranged;             /* Content-Range was there and well formed */
	bool encoded;            /* Content-Encoding other than identity */
	bool cut;                /* of a 200, the part that was wanted: http_request.part_len */
	char etag[256];          /* as it came, with quotes; "" none, or longer than this */
	bool weak;               /* it is a weak one */
	int64_t modified;        /* Last-Modified, ns since 1970; 0: none */
	int64_t date;            /* Date: the server's clock, likewise */
	char content_type[128];
	char region[64];         /* x-amz-bucket-region */
	char location[2048];     /* of a redirect that was not followed */
	char error_code[64];     /* <Code> of an S3 error body */
};
/* rc when there is no usable answer: -ENOENT 404 and 410; -EACCES 401, 403; -ESTALE 412; -ERANGE
 * 416; -ETIMEDOUT; -EFBIG larger than max_body (with what the header said); -EIO the rest: the
 * server failed, the name was not found, the certificate is not good ... 304 is rc 0. */

typedef void http_done_fn(void *arg, struct http_response *a);

/* http_judge_fn - called on the net's thread with an answer that would be the last one, whatever it
 * says: true: it is tried again, as a 503 is, within the same bounds (S3 says 200 and then
 * <Error>). Must not wait. */
typedef bool http_judge_fn(void *arg, const struct http_response *a);

struct http_request {
	const char *method;      /* "GET" "HEAD" "PUT" "POST" "DELETE" */
	const char *url;         /* copied; never with user and password */
	const char *const *headers; /* NULL-terminated "Name: value"; copied; NULL */
	const void *body;        /* borrowed until done; NULL */
	uint64_t body_len;
	int body_fd;             /* when body is NULL and body_len is not 0: from here ... */
	uint64_t body_off;       /* ... at this offset */
	uint64_t max_body;       /* of the answer */
	uint8_t *room;           /* NULL; or the body of a 206 or 200 goes here instead of into
	                          * body, of max_body bytes; the answer's body then is empty but
	                          * for its len */
	bool once;               /* must not be tried again when it may have reached the server */
	bool background;         /* others go first */
	bool public_only;        /* who named the address is not the user: where redirects may
				  * lead */
	bool no_proxy, link_local; /* link_local: 169.254.0.0/16 may be asked (instance
				    * credentials) */
	const char *user, *password, *bearer; /* copied; NULL. Only for this origin */
	http_sign_fn *sign;
	http_judge_fn *judge;    /* NULL */
	void *sign_arg;          /* of both; lives until done */
	uint64_t part_off, part_len; /* part_len not 0: these bytes were asked for by a Range
	                          * header; of a 200, which has all, they are what is kept ("cut"),
	                          * and the rest is not waited for */
	uint32_t total_ms;       /* 0: the options' */
};

/* http_header - for http_sign_fn: one more header line. */
int http_header(struct http_transfer *r, const char *line, struct err *e) NZ_MUST_USE;

/* http_start - done is called once, on the net's thread, and must not wait; the answer's body is
 * taken over by setting it to an empty one. Returns 0; on failure done is not called. Any
 * thread. */
int http_start(struct http_client *n, const struct http_request *w, http_done_fn *done,
	       void *arg, struct err *e) NZ_MUST_USE;
/* http_do - the same, and wait (base/os/cancel.h: -EINTR). The answer is the caller's
 * (http_response_release). Returns its rc. Never on the net's thread. */
int http_do(struct http_client *n, const struct http_request *w, struct http_response *ret,
	    struct err *e) NZ_MUST_USE;
void http_response_release(struct http_response *a);

/* http_counts - what was asked so far, for tests and -o debug. */
struct http_counts {
	uint64_t requests, tries, bytes, failed;
	uint32_t in_flight;
};
void http_get_counts(struct http_client *n, struct http_counts *ret);

/* address_class - of an address: a redirect leads to the same kind or to a public one. */
enum address_class { HTTP_PUBLIC, HTTP_PRIVATE, HTTP_LOOPBACK, HTTP_LINK_LOCAL };

/* address_class_of_text - of a number as text; a name is HTTP_PUBLIC until it is known better. */
enum address_class address_class_of_text(const char *host);
/* http_is_here - whether a name or number is this machine. */
bool http_is_here(const char *host);

#endif
