/* SPDX-License-Identifier: BSD-3-Clause */
/* s3_int.h - the parts of S3; private to its room.
 *
 *   bucket.c   opens a bucket, and finds its endpoint
 *   request.c  one request: address, signature, and corrections from answers
 *   error.c    error codes and messages
 *   get.c      reads
 *   list.c     lists
 *   put.c      writes and removes;  multipart.c  in several parts
 *   xml.c      parses answers */
#ifndef NCZARR_S3_S3_INT_H
#define NCZARR_S3_S3_INT_H

#include <pthread.h>

#include "base/os/url.h"
#include "nczarr/aws/aws.h"
#include "nczarr/aws/sigv4.h"
#include "nczarr/s3/xml.h"

#define S3_KEY_MAX 1024          /* bytes of a key, with the prefix of the root */
#define S3_PART (16u << 20)      /* bytes of a part of a multipart upload */
#define S3_WHOLE (64u << 20)     /* largest object that is sent in one request */
#define S3_PAGE_MAX (16u << 20)  /* bytes of one answer to a listing */

/* s3_endpoint - the endpoint of a bucket. */
struct s3_endpoint {
	char host[256];
	uint16_t port;
	char region[64];
};

struct s3 {
	struct object_service base;
	_Atomic unsigned refs;       /* the opener, and each request */
	struct http_client *net;     /* borrowed */
	const struct remote_options *opts; /* borrowed */
	struct aws *aws;
	char *shown, *bucket, *key;  /* key: of the root, "" or without '/' at its end */
	char *endpoint_text;         /* as it was given; NULL */
	char *region;                /* as it was given; NULL */
	bool google;

	pthread_mutex_t lock;
	bool placed;                 /* lock, also of the following */
	struct url endpoint;
	bool of_aws;                 /* the endpoint belongs to AWS */
	struct s3_endpoint place;

	_Atomic int64_t skew;        /* seconds by which the service's clock is ahead */
	_Atomic bool seen;           /* the bucket has answered: it exists */
};

void s3_unref(struct s3 *s);
/* s3_prepare - make sure that credentials, endpoint and region are known. wait: as in
 * aws_ready(). */
int s3_prepare(struct s3 *s, bool wait, struct err *e) NZ_MUST_USE;
/* s3_relocate - record another region or endpoint of the bucket. false: no change. */
bool s3_relocate(struct s3 *s, const struct s3_endpoint *old, const char *region,
		 const char *location);

/* ---- one request ---- */

/* s3_request - a request, and corrections from its answers. Set the inputs, then call s3_do() or
 * s3_start(). */
struct s3_request {
	struct s3 *s;                /* borrowed: the caller has a reference */
	/* method, body, max_body, part and background; request.c sets the others */
	struct http_request http;
	const char *key;             /* below the root; NULL: the bucket itself */
	const char *query;           /* encoded; NULL */
	const char *headers[8];      /* NULL-terminated, borrowed; all signed */
	const char *digest;          /* of the body; NULL: S3_UNSIGNED of a GET */

	/* its own; s3_request_release */
	struct buf url;
	size_t path_at, path_end;    /* of the path in url */
	char host[272];              /* as the Host header has it */
	struct s3_endpoint place;
	struct aws_keys *keys;       /* signer of the last try */
	unsigned turns;
	bool clocked;
	bool expired; /* another request may get other keys */
};

/* s3_do - send a request and wait; send it again if the answer has a correction. ret is the
 * caller's (http_response_release). Returns 0 with an answer below 400; else the code of
 * s3_failed(). */
int s3_do(struct s3_request *c, struct http_response *ret, struct err *e) NZ_MUST_USE;
/* s3_start - the same without waiting: c lives until done, which first calls s3_should_reissue().
 * The HTTP client's thread reads no files: if keys have expired, s3_failed() returns -EKEYEXPIRED,
 * and the thread that waits for the answer starts the request again. */
int s3_start(struct s3_request *c, http_done_fn *done, void *arg, struct err *e) NZ_MUST_USE;
/* s3_should_reissue - whether to reissue the request: the answer revealed another region, a clock
 * skew or expired keys. */
bool s3_should_reissue(struct s3_request *c, struct http_response *a);
void s3_request_release(struct s3_request *c);

/* s3_failed - the code of a failure: -ENOENT only if the service states that the key does not
 * exist. The message is in e; 0: no failure. */
int s3_failed(const struct s3_request *c, const struct http_response *a, struct err *e);

/* s3_key_check - -ERANGE for a key that is longer than S3 allows. */
int s3_key_check(const struct s3 *s, const char *key, struct err *e) NZ_MUST_USE;

/* s3_in_done - set while a callback runs on the HTTP client's thread, which must not block. */
extern _Thread_local bool s3_in_done;

/* s3_info_of - the info of an object of this size from an answer. */
void s3_info_of(const struct http_response *a, uint64_t size, struct object_info *ret);

/* ---- operations ---- */

int s3_fetch(struct object_service *o, const struct object_range *r, object_done *done,
	     void *arg, struct err *e);
int s3_list(struct object_service *o, const char *key, bool deep, object_emit *emit, void *arg,
	    struct err *e);
int s3_put(struct object_service *o, const char *key, const void *data, int fd, uint64_t off,
	   uint64_t len, const struct put_condition *cond, struct object_info *ret,
	   struct err *e);
int s3_remove(struct object_service *o, const char *key, struct err *e);

/* s3_put_request - an object to write, from memory (data) or a file. */
struct s3_put_request {
	struct s3 *s;
	const char *key;
	const void *data;            /* NULL: fd at off */
	int fd;
	uint64_t off, len;
	const struct put_condition *cond; /* NULL: none */
};

/* s3_put_parts - write an object that is too large for one request. The condition applies to the
 * completion. */
int s3_put_parts(const struct s3_put_request *w, struct object_info *ret,
		 struct err *e) NZ_MUST_USE;

#endif
