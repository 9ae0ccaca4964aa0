/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.h - datasets on HTTP servers and in S3's object stores. docs/dev/remote.md. */
#ifndef NCZARR_REMOTE_REMOTE_H
#define NCZARR_REMOTE_REMOTE_H

#include "translate/contract/source.h"

/* remote_options - what holds for all remote things of a mount. Texts are copied by remote_new. */
struct remote_options {
	/* credentials, as AWS's tools take them; NULL: what environment and files say */
	char *profile, *region;
	char *access_key, *secret_key; /* from .ncrc; never from a command line */
	char *config_file;             /* of AWS; NULL: AWS_CONFIG_FILE or ~/.aws/config */
	char *endpoint;                /* "http://127.0.0.1:7480": where all buckets are; NULL */
	char *bearer_file;             /* its first line is a token for HTTP; read when needed */
	char *netrc_file;              /* NULL: ~/.netrc where it is there */
	char *ca_file;
	bool anonymous;                /* requests are not signed */
	bool requester_pays;
	bool virtual_hosts;            /* bucket.host/key instead of host/bucket/key */
	bool insecure;                 /* certificates are not verified */
	bool plain_secrets;            /* passwords may go over http:// to other hosts */
	bool private_redirects;        /* redirects and references may lead to private addresses */
	uint32_t timeout_ms;           /* of one request with all that is tried again */
	uint32_t tries;
	uint32_t connections;          /* to one host */
	uint64_t cache_bytes;          /* memory for what was fetched */
	uint64_t prefetch_bytes; /* most that is fetched before it is asked for, in flight or
	                                * not read yet */
	char *cache_dir;               /* what was fetched is kept here; NULL */
	uint64_t disk_bytes;           /* at most so much */
	uint32_t check_ms;             /* how old what is known may be before the service is asked
	                                * again, when somebody looks; 0: never again */
};

/* remote_target - an address, understood (mountcfg/address/address.h). Texts borrowed for the
 * call. */
struct remote_target {
	enum { REMOTE_HTTP, REMOTE_S3, REMOTE_GS3 } kind;
	const char *url;      /* HTTP: what keys are appended to, "https://host/a.zarr", with its
	                       * query behind; S3: the endpoint when the address named one, else
	                       * NULL */
	const char *query;    /* HTTP: appended to every request; NULL */
	const char *user, *password;   /* HTTP; NULL */
	const char *bucket, *key;      /* S3: key "" is the whole bucket */
	const char *profile, *region;  /* of this address; NULL: the options' */
	const char *shown;    /* for messages: without secrets */
	bool public_only;     /* a document named it: not into private networks */
	bool no_token;        /* bearer_file is for others */
	/* what - what the address says that it is, a hint; OBJECT: nothing else will do, and what
	 * is in it does not matter */
	enum { REMOTE_ANY, REMOTE_TREE, REMOTE_FILE, REMOTE_OBJECT } what;
};

struct remote;

/* remote_new - connects nothing, reads no file, starts no thread. */
int remote_new(const struct remote_options *opts, struct remote **ret, struct err *e) NZ_MUST_USE;
/* remote_free - everything that was opened must be closed. Takes NULL. */
void remote_free(struct remote *r);
/* remote_stop - requests end with -ECANCELED, now and later. Any thread. */
void remote_stop(struct remote *r);

/* remote_at - what lies at an address: a tree (ret->store; documents say so) or an object
 * (ret->file). The store keeps what was fetched as long as `r` lives: opening the same again costs
 * only what makes sure that it is the same. ret->path is borrowed from the store or blob.
 * Returns 0: the caller closes what is in ret (remote_at_release) unless source_open_at took it;
 * -ENOENT nothing is there; -EACCES; -EIO ... */
int remote_at(struct remote *r, const struct remote_target *t, struct source_at *ret,
	      struct err *e) NZ_MUST_USE;
void remote_at_release(struct source_at *at);

/* remote_is_private - whether a host, as far as its name or number says, is this machine or in a
 * private network. */
bool remote_is_private(const char *host);

/* remote_store - the tree at an address, whatever is there, for writing. *ret new (store_close). */
int remote_store(struct remote *r, const struct remote_target *t, struct store **ret,
		 struct err *e) NZ_MUST_USE;

/* remote_counts - requests made so far. */
uint64_t remote_requests(struct remote *r);

#endif
