/* SPDX-License-Identifier: BSD-3-Clause */
/* aws.h - credentials from the sources of AWS's tools: private to nczarr.
 *
 *   credentials.c       the current keys, and their renewal
 *   config_files.c      ~/.aws/config and ~/.aws/credentials
 *   provider_chain.c    tries the sources in order
 *   metadata_service.c  keys of containers and instances
 *   sts.c               keys of roles; times */
#ifndef NCZARR_AWS_AWS_H
#define NCZARR_AWS_AWS_H

#include <stdatomic.h>
#include <stdio.h>

#include "nczarr/remote/services.h"

/* aws_some - a string that is not empty, or NULL. aws_env - the same of a variable. */
static inline const char *aws_some(const char *s)
{
	return s && *s ? s : NULL;
}
static inline const char *aws_env(const char *name)
{
	return aws_some(getenv(name));
}

/* aws_keys - one set of keys; immutable. */
struct aws_keys {
	_Atomic unsigned refs;
	char *access, *secret;
	char *token;          /* NULL: no session */
	int64_t expires;      /* seconds since 1970; 0: never */
	bool of_file;         /* from a file, which may be rewritten */
	char from[96];        /* "the environment", for messages */
};

/* aws_ready - make sure that valid keys are known, or that there are none: reads files and
 * requests keys at the first call, and again before keys expire. wait: false on the HTTP client's
 * thread, and for a prefetch: only the first call blocks then, later ones use the current keys.
 * One thread renews; others continue with keys that are still valid. Returns 0; -EACCES a named
 * source has no keys, or they cannot be renewed; -EINVAL an invalid file; -EINTR. */
int aws_ready(struct aws *a, bool wait, struct err *e) NZ_MUST_USE;

/* aws_keys_now - a reference to the current keys (aws_keys_release); NULL: requests are not
 * signed. */
struct aws_keys *aws_keys_now(struct aws *a);
void aws_keys_release(struct aws_keys *k);

/* aws_refused - the service rejected these keys as expired. Returns 1: there are other keys
 * already; -EKEYEXPIRED: the next blocking aws_ready() looks for others; 0: that found no others,
 * or it is too early to try. Does not block and reads no file. */
int aws_refused(struct aws *a, const struct aws_keys *k);

/* aws_fixed_only - for a service other than AWS: use static keys only, and request none. */
void aws_fixed_only(struct aws *a);

/* After aws_ready; borrowed from a; NULL: not configured. */
const char *aws_region(struct aws *a);
const char *aws_endpoint(struct aws *a);
/* aws_resolved_from - the sources tried, for a message: "environment, ..."; borrowed. */
const char *aws_resolved_from(struct aws *a);

/* ---- parts ---- */

/* aws_profile - settings of a profile; strings owned, NULL: not set. */
struct aws_profile {
	bool found;           /* one of the files has the section */
	char *access, *secret, *token, *region, *endpoint;
	char *role_arn, *source_profile, *credential_source, *token_file, *session_name;
	char *external_id;
	bool process;         /* credential_process: not supported */
	bool sso;             /* sso_session or sso_start_url: not supported */
};

/* aws_profile_read - read a profile from config and credentials: paths, NULL: none. A missing file
 * is no error. Returns 0; -EINVAL with file and line; -EACCES it cannot be read. */
int aws_profile_read(const char *config, const char *credentials, const char *profile,
		     struct aws_profile *ret, struct err *e) NZ_MUST_USE;
void aws_profile_release(struct aws_profile *p);

/* aws_keys_make - strings are copied. NULL: out of memory. */
struct aws_keys *aws_keys_make(const char *access, const char *secret, const char *token,
			       int64_t expires, const char *from);

/* aws_options - arguments of aws_new(). */
struct aws_options {
	struct http_client *net;
	const struct remote_options *opts; /* borrowed */
	char *profile;        /* of the address, in place of all keys in opts; owned; NULL */
	bool fixed_only;
};

/* aws_resolved - result of a search for keys. */
struct aws_resolved {
	struct aws_keys *keys; /* NULL: none */
	char *region, *endpoint;
	char looked[320];
};

/* aws_resolve - try all sources in order. Returns 0, also if none has keys. */
int aws_resolve(const struct aws_options *o, struct aws_resolved *ret,
		struct err *e) NZ_MUST_USE;
void aws_resolved_release(struct aws_resolved *f);

/* Keys from services. *ret NULL with 0: no such service. */
int aws_from_container(struct http_client *net, struct aws_keys **ret,
		       struct err *e) NZ_MUST_USE;
int aws_from_instance(struct http_client *net, struct aws_keys **ret,
		      struct err *e) NZ_MUST_USE;

/* aws_role - a role to assume through STS. */
struct aws_role {
	const char *arn, *session;
	const char *external_id;    /* NULL */
	const char *token_file;     /* web identity: a file with the token; else NULL, and keys are
				     * set */
	const struct aws_keys *keys;
	const char *region;         /* NULL: the global service */
};
int aws_from_sts(struct http_client *net, const struct aws_role *role, struct aws_keys **ret,
		 struct err *e) NZ_MUST_USE;

/* aws_text_file - the line of a file that has only one; the caller frees *ret. */
int aws_text_file(const char *path, char **ret, struct err *e) NZ_MUST_USE;

/* aws_time - parse "2026-11-22T10:00:00Z" (with or without fractions) to seconds since 1970, and
 * ns in *ret_ns unless it is NULL. -EINVAL. */
int aws_time(const char *text, int64_t *ret, int64_t *ret_ns) NZ_MUST_USE;

#endif
