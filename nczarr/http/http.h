/* SPDX-License-Identifier: BSD-3-Clause */
/* http.h - HTTP requests: one thread with libcurl's multi interface, any number of callers.
 *
 * Transient failures (429, 5xx, resets, truncated answers) are retried with growing, jittered
 * pauses and the server's Retry-After, within a time limit. Redirects are followed only if that is
 * safe. Every answer has a size limit, every wait a time limit. Messages show addresses without
 * secrets. docs/dev/remote.md. */
#ifndef NCZARR_HTTP_HTTP_H
#define NCZARR_HTTP_HTTP_H

#include <string.h>

#include "base/core/buf.h"
#include "base/core/err.h"

struct http_client;

struct http_client_options {
	uint32_t connect_ms;     /* time-out of a connection attempt */
	uint32_t stall_ms;       /* time without a byte */
	uint32_t total_ms;       /* of one request with its retries */
	uint32_t tries;          /* tries at most; 1: no retries */
	uint32_t connections;    /* to one host at a time; with HTTP/2 streams share them */
	uint32_t requests;       /* in flight at a time */
	bool insecure;           /* certificates are not verified */
	bool plain_secrets;      /* credentials may go over http:// to hosts other than loopback */
	bool private_redirects;  /* redirects may lead to private addresses, and to loopback */
	const char *ca_file;     /* trusted certificates in addition to those of the system; NULL */
	const char *netrc_file;  /* NULL: none */
};

/* http_client_new - opens no connection and starts no thread before the first request. opts is
 * copied, its strings are borrowed. */
int http_client_new(const struct http_client_options *opts, struct http_client **ret,
		    struct err *e) NZ_MUST_USE;
/* http_client_free - cancels requests in flight (-ECANCELED) and waits for them. Takes NULL. */
void http_client_free(struct http_client *n);
/* http_client_stop - cancel all requests, now and later; the client stays valid. Any thread. */
void http_client_stop(struct http_client *n);

struct http_transfer;

/* http_sign_fn - called on the client's thread before each try (dates and credentials may have
 * changed): adds header lines with http_header(). Must not block. */
typedef int http_sign_fn(void *arg, struct http_transfer *r, struct err *e);

/* http_response - an answer. */
struct http_response {
	int rc;                  /* 0: a complete answer with a status below 400; -EINTR,
				  * -ECANCELED; else an error (below), with a message in e. 3xx:
				  * the request was signed, or neither GET nor HEAD: the caller
				  * handles redirects */
	struct err e;
	uint32_t status;         /* of the last try; 0: no answer */
	uint32_t tries;
	struct buf body;         /* also of errors, at most 64 KiB of them; owned by the receiver */
	uint64_t length;         /* Content-Length; UINT64_MAX: not stated */
	uint64_t range_off, range_end, range_size; /* Content-Range; size UINT64_MAX: '*' or none */
	bool ranged;             /* Content-Range exists and is well formed */
	bool encoded;            /* Content-Encoding other than identity */
	bool cut;                /* the requested part of a 200: http_request.part_len */
	char etag[256];          /* as sent, with quotes; "" none, or longer than this */
	bool weak;               /* the ETag is weak */
	int64_t modified;        /* Last-Modified, ns since 1970; 0: none */
	int64_t date;            /* Date: the server's clock, likewise */
	char content_type[128];
	char region[64];         /* x-amz-bucket-region */
	char location[2048];     /* of a redirect that was not followed */
	char error_code[64];     /* <Code> of an S3 error body */
};

static inline bool http_code_is(const struct http_response *a, const char *code)
{
	return strcmp(a->error_code, code) == 0;
}

/* rc without a usable answer: -ENOENT 404 and 410; -EACCES 401, 403; -ESTALE 412; -ERANGE 416;
 * -ETIMEDOUT; -EFBIG larger than max_body (with the header's fields); -EIO all others: server
 * errors, unknown hosts, invalid certificates ... 304 is rc 0. */

typedef void http_done_fn(void *arg, struct http_response *a);

/* http_judge_fn - called on the client's thread with the final answer of a request; true: retry as
 * after a 503, within the same limits (S3 sends 200 and then <Error>). Must not block. */
typedef bool http_judge_fn(void *arg, const struct http_response *a);

struct http_request {
	const char *method;      /* "GET" "HEAD" "PUT" "POST" "DELETE" */
	const char *url;         /* copied; without user and password */
	const char *const *headers; /* NULL-terminated "Name: value"; copied; NULL */
	const void *body;        /* borrowed until done; NULL */
	uint64_t body_len;
	int body_fd;             /* if body is NULL and body_len is not 0: from here ... */
	uint64_t body_off;       /* ... at this offset */
	uint64_t max_body;       /* of the answer */
	bool background;         /* of lower priority */
	bool public_only;        /* the address is from a reference file: restricts redirects */
	bool no_proxy, link_local; /* link_local: 169.254.0.0/16 is allowed (instance
				    * credentials) */
	const char *user, *password, *bearer; /* copied; NULL. Only for this origin */
	http_sign_fn *sign;
	http_judge_fn *judge;    /* NULL */
	void *sign_arg;          /* of sign and judge; valid until done */
	uint64_t part_off, part_len; /* part_len not 0: the range of the Range header. Of a 200,
				      * which has all bytes, only the range is kept ("cut"), and
				      * the transfer ends after it */
	uint32_t total_ms;       /* 0: as in the options */
};

/* http_header - add a header line, for http_sign_fn. */
int http_header(struct http_transfer *r, const char *line, struct err *e) NZ_MUST_USE;

/* http_start - start a request. done is called once, on the client's thread, and must not block;
 * it takes the body by replacing it with an empty one. Returns 0; if it fails, done is not called.
 * Any thread. */
int http_start(struct http_client *n, const struct http_request *w, http_done_fn *done,
	       void *arg, struct err *e) NZ_MUST_USE;
/* http_do - send a request and wait for the answer (base/os/cancel.h: -EINTR). The answer is the
 * caller's (http_response_release). Returns its rc. Never on the client's thread. */
int http_do(struct http_client *n, const struct http_request *w, struct http_response *ret,
	    struct err *e) NZ_MUST_USE;
void http_response_release(struct http_response *a);

/* http_counts - counters. */
struct http_counts {
	uint64_t requests;
	uint32_t in_flight;
};
void http_get_counts(struct http_client *n, struct http_counts *ret);

/* address_class - kind of an address: a redirect may lead to the same kind or to a public one. */
enum address_class { HTTP_PUBLIC, HTTP_PRIVATE, HTTP_LOOPBACK, HTTP_LINK_LOCAL };

/* address_class_of_text - kind of a numeric address; a name is HTTP_PUBLIC until it is resolved. */
enum address_class address_class_of_text(const char *host);
/* http_is_here - whether a name or number is this machine. */
bool http_is_here(const char *host);

#endif
