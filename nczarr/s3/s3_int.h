/* SPDX-License-Identifier: BSD-3-Clause */
/* s3_int.h - the parts of S3; private to its room.
 *
 *   bucket.c   opening, where a bucket is
 *   request.c  one request: its address, its signature, what its answer teaches
 *   error.c    what a failure means, in words
 *   get.c      reading
 *   list.c     listing
 *   put.c      writing and removing;  multipart.c  in several parts
 *   xml.c      answers in XML */
#ifndef NCZARR_S3_S3_INT_H
#define NCZARR_S3_S3_INT_H

#include <pthread.h>

#include "base/os/url.h"
#include "nczarr/aws/aws.h"
#include "nczarr/aws/sigv4.h"
#include "nczarr/s3/xml.h"

#define S3_KEY_MAX 1024          /* bytes of a key, with that of the root */
#define S3_PART (16u << 20)      /* bytes of a part, when an object is sent in parts */
#define S3_WHOLE (64u << 20)     /* objects up to here are sent at once */
#define S3_PAGE_MAX (16u << 20)  /* bytes of one answer to a listing */

/* s3_endpoint - where a bucket is asked for. */
struct s3_endpoint {
	char host[256];
	uint16_t port;
	char region[64];
};

struct s3 {
	struct object_service base;
	_Atomic unsigned refs;       /* who opened it, and every request */
	struct http_client *net;     /* borrowed */
	struct aws *aws;
	char *shown, *bucket, *key;  /* key: of the root, "" or without '/' at its end */
	char *endpoint_text;         /* as it was given; NULL */
	char *region;                /* as it was given; NULL */
	bool virtual_hosts, requester_pays, google, private_redirects;
	uint32_t tries;

	pthread_mutex_t lock;
	bool placed;                 /* lock; what is below it */
	struct url endpoint;
	bool of_aws;                 /* the endpoint is AWS's own */
	struct s3_endpoint place;
	int64_t skew;                /* seconds that the service's clock is ahead */
	bool seen;                   /* the bucket exists: it has answered */
};

void s3_unref(struct s3 *s);
/* s3_prepare - credentials, endpoint and region are known. wait: as aws_ready. */
int s3_prepare(struct s3 *s, bool wait, struct err *e) NZ_MUST_USE;
/* s3_relocate - the bucket is in another region, or elsewhere: remembered. false: nothing new. */
bool s3_relocate(struct s3 *s, const struct s3_endpoint *old, const char *region,
		 const char *location);

/* ---- one request ---- */

/* s3_request - a request and what it has learned. Set what is asked for, then s3_do or
 * s3_start. */
struct s3_request {
	struct s3 *s;                /* borrowed: the caller has a reference */
	const char *method;
	const char *key;             /* below the root; NULL: the bucket itself */
	const char *query;           /* encoded; NULL */
	const char *headers[8];      /* NULL-terminated, borrowed; all signed */
	const char *digest;          /* of the body; NULL: S3_UNSIGNED of a GET */
	const void *body;
	int fd;
	uint64_t off, len;           /* of the body */
	uint64_t max_body;           /* of the answer */
	uint64_t part_off,
		part_len; /* of what a Range header asks for, see http_request; 0: none */
	bool background, once;

	/* its own; s3_request_release */
	struct buf url;
	size_t path_at, path_end;    /* of the path in url */
	char host[272];              /* as the Host header has it */
	struct s3_endpoint place;
	struct aws_keys *keys;       /* what the last try was signed with */
	unsigned turns;
	bool clocked;
	bool expired; /* another request may find other keys */
};

/* s3_do - ask, and wait; asks again where the answer teaches how. ret is the caller's
 * (http_response_release). Returns 0 with an answer below 400; else what s3_failed says. */
int s3_do(struct s3_request *c, struct http_response *ret, struct err *e) NZ_MUST_USE;
/* s3_start - the same without waiting: c lives until done. Whoever is called with it asks
 * s3_should_reissue first. The net's thread reads no files: when keys have ended, s3_failed returns
 * -EKEYEXPIRED, and the thread that wants the answer starts the request again. */
int s3_start(struct s3_request *c, http_done_fn *done, void *arg, struct err *e) NZ_MUST_USE;
/* s3_should_reissue - whether the answer says how to ask better: it should be asked again then. */
bool s3_should_reissue(struct s3_request *c, struct http_response *a);
void s3_request_release(struct s3_request *c);

/* s3_failed - what a failure means: -ENOENT only where the service says that there is no
 * such key. Returns the code, with words in e; 0 when it is none. */
int s3_failed(const struct s3_request *c, const struct http_response *a, struct err *e);

/* s3_key_check - -ERANGE for a key that is longer than S3 allows. */
int s3_key_check(const struct s3 *s, const char *key, struct err *e) NZ_MUST_USE;

/* s3_in_done - set while a function of ours runs on the net's thread, where nothing may be
 * waited for. */
extern _Thread_local bool s3_in_done;

/* s3_info_of - what an answer says of an object, but for its size. */
void s3_info_of(const struct http_response *a, struct object_info *ret);

/* ---- operations ---- */

int s3_fetch(struct object_service *o, const struct object_range *r, object_done *done,
	     void *arg, struct err *e);
int s3_list(struct object_service *o, const char *key, bool deep, object_emit *emit, void *arg,
	    struct err *e);
int s3_put(struct object_service *o, const char *key, const void *data, int fd, uint64_t off,
	   uint64_t len, const struct put_condition *cond, struct object_info *ret,
	   struct err *e);
int s3_remove(struct object_service *o, const char *key, struct err *e);

/* s3_put_parts - an object that is too large to be sent at once. cond: of its end. */
int s3_put_parts(struct s3 *s, const char *key, const void *data, int fd, uint64_t off,
		 uint64_t len, const struct put_condition *cond, struct object_info *ret,
		 struct err *e) NZ_MUST_USE;

#endif
