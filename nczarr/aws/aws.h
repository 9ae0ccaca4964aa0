/* SPDX-License-Identifier: BSD-3-Clause */
/* aws.h - credentials as AWS's tools take them: private to nczarr.
 *
 *   credentials.c       which keys hold now, and when they are renewed
 *   config_files.c      ~/.aws/config and ~/.aws/credentials
 *   provider_chain.c    one place after the other until one has keys
 *   metadata_service.c  keys that a service gives out: containers, instances;  sts.c  roles
 *   timestamp.c         times */
#ifndef NCZARR_AWS_AWS_H
#define NCZARR_AWS_AWS_H

#include <stdatomic.h>
#include <stdio.h>

#include "nczarr/remote/services.h"

/* aws_keys - one set of keys; never changed once made. */
struct aws_keys {
	_Atomic unsigned refs;
	char *access, *secret;
	char *token;          /* NULL: no session */
	int64_t expires;      /* seconds since 1970; 0: never */
	bool of_file;         /* a file has them, which somebody may write again */
	char from[96];        /* "the environment", for messages */
};

/* aws_ready - there are keys that hold, or it is known that there are none: reads files and
 * asks services at the first call, and again before keys expire. wait: false on the net's
 * thread, and of a prefetch: only the first call reads and asks then, later ones take what is
 * there. One thread renews;
 * others go on with keys that still hold. Returns 0; -EACCES a place that was named has no
 * keys, or they cannot be renewed; -EINVAL a file that cannot be understood; -EINTR. */
int aws_ready(struct aws *a, bool wait, struct err *e) NZ_MUST_USE;

/* aws_keys_now - a reference to what aws_ready found (aws_keys_release); NULL: requests are not
 * signed. */
struct aws_keys *aws_keys_now(struct aws *a);
void aws_keys_release(struct aws_keys *k);

/* aws_refused - the service says that these keys do not hold any more. Returns 1: other keys are
 * there by now; -EKEYEXPIRED: the next aws_ready that waits looks for others; 0: such a look
 * found no others, or it is too early for one. Waits for nothing, reads no file. */
int aws_refused(struct aws *a, const struct aws_keys *k);

/* aws_fixed_only - of a service that is not AWS's: keys that were written down are used, no
 * service is asked for others. */
void aws_fixed_only(struct aws *a);

/* After aws_ready; borrowed from a; NULL: nothing says so. */
const char *aws_region(struct aws *a);
const char *aws_endpoint(struct aws *a);
/* aws_resolved_from - where keys were looked for, for a message: "environment, ..."; borrowed. */
const char *aws_resolved_from(struct aws *a);

/* ---- parts ---- */

/* aws_profile - what the files say of a profile; texts owned, NULL: nothing. */
struct aws_profile {
	bool found;           /* there is such a section in one of them */
	char *access, *secret, *token, *region, *endpoint;
	char *role_arn, *source_profile, *credential_source, *token_file, *session_name;
	char *external_id;
	bool process;         /* credential_process: refused */
	bool sso;             /* sso_session or sso_start_url: refused */
};

/* aws_profile_read - config and credentials: paths, NULL: none. A file that is not there
 * says nothing. Returns 0; -EINVAL with file and line; -EACCES it cannot be read. */
int aws_profile_read(const char *config, const char *credentials, const char *profile,
		     struct aws_profile *ret, struct err *e) NZ_MUST_USE;
void aws_profile_release(struct aws_profile *p);

/* aws_keys_make - texts are copied. NULL: no memory. */
struct aws_keys *aws_keys_make(const char *access, const char *secret, const char *token,
			       int64_t expires, const char *from);

/* aws_options - what aws_new was given; owned. */
struct aws_options {
	struct http_client *net;
	char *profile;        /* NULL: AWS_PROFILE, or "default" */
	char *region, *access, *secret, *config_file;
	bool anonymous, fixed_only;
	uint32_t connect_ms;
};

/* aws_resolved - what a look around brought. */
struct aws_resolved {
	struct aws_keys *keys; /* NULL: none */
	char *region, *endpoint;
	char looked[320];
};

/* aws_resolve - all places in order. Returns 0, also when there are no keys anywhere. */
int aws_resolve(const struct aws_options *o, struct aws_resolved *ret,
		struct err *e) NZ_MUST_USE;
void aws_resolved_release(struct aws_resolved *f);

/* Keys that services give out. *ret NULL with 0: the service is not there. */
int aws_from_container(const struct aws_options *o, struct aws_keys **ret,
		       struct err *e) NZ_MUST_USE;
int aws_from_instance(const struct aws_options *o, struct aws_keys **ret,
		      struct err *e) NZ_MUST_USE;

/* aws_role - one that is assumed through STS. */
struct aws_role {
	const char *arn, *session;
	const char *external_id;    /* NULL */
	const char *token_file;     /* web identity: its content is the proof; else NULL and keys */
	const struct aws_keys *keys;
	const char *region;         /* NULL: the global service */
};
int aws_from_sts(const struct aws_options *o, const struct aws_role *role, struct aws_keys **ret,
		 struct err *e) NZ_MUST_USE;

/* aws_text_file - the text of a file of one line (new); NULL: e says why. */
char *aws_text_file(const char *path, struct err *e);

/* aws_time - "2026-11-22T10:00:00Z" (with fractions or without) as seconds since 1970, ns in
 * *ret_ns when it is not NULL. -EINVAL. */
int aws_time(const char *text, int64_t *ret, int64_t *ret_ns) NZ_MUST_USE;

#endif
