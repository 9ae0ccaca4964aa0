/* http.h - HTTP requests: one thread with libcurl's multi interface, any number of callers.
 *
 * What may be tried again is tried again (429, 5xx, resets, answers that end early), with growing,
 * jittered pauses and what Retry-After says, within a bound; a redirect is followed only where that
 * is safe; every answer has a largest size; every wait has an end. What is said of an address never
 * has a secret in it. docs/remote.md. */
#ifndef NCZARR_HTTP_HTTP_H
#define NCZARR_HTTP_HTTP_H

#include "base/core/buf.h"
#include "base/core/err.h"

struct net;

struct net_options {
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

/* net_new - nothing is connected and no thread is started before the first request. opts and its
 * texts are copied. */
int net_new(const struct net_options *opts, struct net **ret, struct err *e) NZ_MUST_USE;
/* net_free - requests that are in flight end with -ECANCELED first. Takes NULL. */
void net_free(struct net *n);
/* net_stop - the same, and all later requests; the net stays. Any thread. */
void net_stop(struct net *n);

struct net_request;

/* net_sign_fn - called on the net's thread before each try (dates and credentials may have
 * changed): adds header lines with net_header. Must not wait. */
typedef int net_sign_fn(void *arg, struct net_request *r, struct err *e);

/* net_answer - what came. */
struct net_answer {
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
	bool cut;                /* of a 200, the part that was wanted: net_want.part_len */
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

typedef void net_done_fn(void *arg, struct net_answer *a);

/* net_judge_fn - called on the net's thread with an answer that would be the last one, whatever it
 * says: true: it is tried again, as a 503 is, within the same bounds (S3 says 200 and then
 * <Error>). Must not wait. */
typedef bool net_judge_fn(void *arg, const struct net_answer *a);

struct net_want {
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
	net_sign_fn *sign;
	net_judge_fn *judge;     /* NULL */
	void *sign_arg;          /* of both; lives until done */
	uint64_t part_off, part_len; /* part_len not 0: these bytes were asked for by a Range
	                          * header; of a 200, which has all, they are what is kept ("cut"),
	                          * and the rest is not waited for */
	uint32_t total_ms;       /* 0: the options' */
};

/* net_header - for net_sign_fn: one more header line. */
int net_header(struct net_request *r, const char *line, struct err *e) NZ_MUST_USE;
/* net_request_of - for net_sign_fn: what is being signed; borrowed. */
const struct net_want *net_request_of(const struct net_request *r);

/* net_start - done is called once, on the net's thread, and must not wait; the answer's body is
 * taken over by setting it to an empty one. Returns 0; on failure done is not called. Any
 * thread. */
int net_start(struct net *n, const struct net_want *w, net_done_fn *done, void *arg,
	      struct err *e) NZ_MUST_USE;
/* net_do - the same, and wait (base/os/cancel.h: -EINTR). The answer is the caller's
 * (net_answer_release). Returns its rc. Never on the net's thread. */
int net_do(struct net *n, const struct net_want *w, struct net_answer *ret,
	   struct err *e) NZ_MUST_USE;
void net_answer_release(struct net_answer *a);

/* net_counts - what was asked so far, for tests and -o debug. */
struct net_counts {
	uint64_t requests, tries, bytes, failed;
	uint32_t in_flight;
};
void net_get_counts(struct net *n, struct net_counts *ret);

/* net_kind - of an address: a redirect leads to the same kind or to a public one. */
enum net_kind { NET_PUBLIC, NET_PRIVATE, NET_LOOPBACK, NET_LINK_LOCAL };

/* net_kind_of_text - of a number as text; a name is NET_PUBLIC until it is known better. */
enum net_kind net_kind_of_text(const char *host);
/* net_is_here - whether a name or number is this machine. */
bool net_is_here(const char *host);

#endif
