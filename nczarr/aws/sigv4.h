/* SPDX-License-Identifier: BSD-3-Clause */
/* sigv4.h - AWS Signature Version 4 (AWS General Reference, "Create a signed AWS API request";
 * Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header").
 *
 * Pure functions: the time is an argument. Any thread. */
#ifndef NCZARR_AWS_SIGV4_H
#define NCZARR_AWS_SIGV4_H

#include "base/core/buf.h"
#include "base/core/err.h"

struct http_transfer;

#define S3_UNSIGNED "UNSIGNED-PAYLOAD"
#define S3_HEX_SHA256 65  /* room for the hexadecimal digest, with its NUL */
#define S3_SIGNED_MAX (1u << 17) /* bytes of the lines of a signature */
#define S3_HEADERS_MAX 24 /* header lines that are signed, of one request */

/* s3_signing - input of a signature; all borrowed. */
struct s3_signing {
	const char *method;
	const char *host;     /* as in the Host header: with a non-default port */
	const char *path;     /* as sent: encoded once, with a leading '/' */
	const char *query;    /* as sent: encoded strictly (s3_query_put); NULL */
	const char *const *headers; /* NULL-terminated "Name: value", all are signed; NULL: none */
	const char *payload;  /* hexadecimal SHA-256 of the body, or S3_UNSIGNED */
	bool say_payload;     /* send and sign x-amz-content-sha256, which S3 requires */
	const char *region, *service;
	const char *access_key, *secret_key;
	const char *token;    /* of a session; NULL */
	int64_t now;          /* seconds since 1970 */
};

/* s3_sign - append the header lines to add to the request to out, each with its NUL. They contain
 * the token: buf_wipe. -EINVAL: more than S3_HEADERS_MAX headers, or one without ':'; -ENOMEM; -EIO
 * (libcrypto fails). */
int s3_sign(const struct s3_signing *in, struct buf *out, struct err *e) NZ_MUST_USE;
/* s3_sign_request - the same, and add the lines to a request. */
int s3_sign_request(const struct s3_signing *in, struct http_transfer *r,
		    struct err *e) NZ_MUST_USE;

/* s3_canonical - append the canonical request to out, for tests. */
int s3_canonical(const struct s3_signing *in, struct buf *out, struct err *e) NZ_MUST_USE;

/* s3_query_put - append "name=value" to a query, after '&' unless it is empty, with all but
 * unreserved characters encoded ('/' too). */
void s3_query_put(struct buf *query, const char *name, const char *value);

/* s3_sha256 - hexadecimal SHA-256 of n bytes. */
int s3_sha256(const void *data, size_t n, char ret[S3_HEX_SHA256], struct err *e) NZ_MUST_USE;

/* s3_digest - hexadecimal SHA-256, and MD5 unless ret_md5 is NULL (33 bytes; "" if libcrypto
 * forbids it), of len bytes of memory or, if data is NULL, of a file at off. */
int s3_digest(const void *data, int fd, uint64_t off, uint64_t len, char ret[S3_HEX_SHA256],
	      char *ret_md5, struct err *e) NZ_MUST_USE;

#endif
