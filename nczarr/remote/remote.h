/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - datasets on HTTP servers and in S3's object stores. docs/dev/remote.md. */
#ifndef NCZARR_REMOTE_REMOTE_H
#define NCZARR_REMOTE_REMOTE_H

#include "translate/contract/source.h"

/* remote_options - options of all remote access of a mount. remote_new() copies the strings. */
struct remote_options {
	/* credentials, as in AWS's tools; NULL: from the environment and AWS's files */
	char *profile, *region;
	char *access_key, *secret_key; /* from .ncrc; never from a command line */
	char *config_file;             /* of AWS; NULL: AWS_CONFIG_FILE or ~/.aws/config */
	char *endpoint;                /* "http://127.0.0.1:7480", the server of all buckets;
					* NULL */
	char *bearer_file;             /* its first line is a token for HTTP; read when needed */
	char *netrc_file;              /* NULL: ~/.netrc, if it exists */
	char *ca_file;
	bool anonymous;                /* requests are not signed */
	bool requester_pays;
	bool virtual_hosts;            /* bucket.host/key instead of host/bucket/key */
	bool insecure;                 /* certificates are not verified */
	bool plain_secrets;            /* passwords may go over http:// to other hosts */
	bool private_redirects;        /* redirects and references may lead to private addresses */
	uint32_t timeout_ms;           /* of one request with its retries */
	uint32_t tries;
	uint32_t connections;          /* to one host */
	uint64_t cache_bytes;          /* memory of fetched data, in bytes */
	uint64_t prefetch_bytes; /* bytes that are prefetched at most: in flight or not read yet;
				  * 0: no prefetch */
	char *cache_dir;               /* directory of the cache on disk; NULL: none */
	uint64_t disk_bytes;           /* size of the cache on disk at most */
	uint32_t check_ms;             /* a lookup of an object repeats the request if the last one
					* is older; 0: never */
};

/* remote_target - a parsed address (mountcfg/address/address.h). The strings are borrowed for the
 * call. */
struct remote_target {
	enum { REMOTE_HTTP, REMOTE_S3, REMOTE_GS3 } kind;
	const char *url;      /* HTTP: the prefix of all keys, "https://host/a.zarr", without its
			       * query; S3: the endpoint if the address has one, else NULL */
	const char *query;    /* HTTP: appended to every request; NULL */
	const char *user, *password;   /* HTTP; NULL */
	const char *bucket, *key;      /* S3: key "" is the whole bucket */
	const char *profile, *region;  /* of this address; NULL: the options' */
	const char *shown;    /* for messages: without secrets */
	bool public_only;     /* the address is from a reference file: private networks are
			       * forbidden */
	bool no_token;        /* bearer_file does not apply */
	/* what - the kind of dataset that the address suggests. OBJECT: only an object is
	 * accepted, whatever its content */
	enum { REMOTE_ANY, REMOTE_TREE, REMOTE_FILE, REMOTE_OBJECT } what;
};

struct remote;

/* remote_new - opens no connection and no file, and starts no thread. */
int remote_new(const struct remote_options *opts, struct remote **ret, struct err *e) NZ_MUST_USE;
/* remote_free - all stores and blobs must have been closed. Takes NULL. */
void remote_free(struct remote *r);
/* remote_stop - all requests fail with -ECANCELED, now and later. Any thread. */
void remote_stop(struct remote *r);

/* remote_at - open an address: a Zarr store (ret->store, if it has metadata documents) or an
 * object (ret->file). Fetched data is cached until remote_free(): to open the same address again
 * costs only the requests that compare versions. ret->path is borrowed from the store or blob.
 * Returns 0: the caller calls remote_at_release() unless source_open_at() took the contents of
 * ret; -ENOENT; -EACCES; -EIO ... */
int remote_at(struct remote *r, const struct remote_target *t, struct source_at *ret,
	      struct err *e) NZ_MUST_USE;
void remote_at_release(struct source_at *at);

/* remote_is_private - whether a host is this machine or in a private network, as far as its name
 * or number shows. */
bool remote_is_private(const char *host);

/* remote_store - open the store at an address for writing, even if it is empty. *ret is new
 * (store_close). */
int remote_store(struct remote *r, const struct remote_target *t, struct store **ret,
		 struct err *e) NZ_MUST_USE;

/* remote_requests - requests made until now. */
uint64_t remote_requests(struct remote *r);

#endif
