/* SPDX-License-Identifier: BSD-3-Clause */
/* credentials.c - the current keys. A set of keys is replaced as a whole, so that requests being
 * signed keep theirs. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define LOG_COMPONENT LOG_HTTP
#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/os/cancel.h"

#define RENEW_BEFORE 300 /* seconds before the end at which keys are renewed */
#define AGAIN_AFTER 30   /* seconds after a failure until it is tried again */

struct aws {
	struct aws_options o;
	pthread_mutex_t lock;
	pthread_cond_t ready;
	struct aws_resolved found;   /* lock; its strings are constant once set */
	bool looked, looking;        /* lock */
	bool stale;                  /* lock: the service rejects these keys; no search since */
	bool again;                  /* lock: a search after that found no others */
	int64_t not_before;          /* lock: seconds; earliest renewal */
};

struct aws_keys *aws_keys_make(const char *access, const char *secret, const char *token,
			       int64_t expires, const char *from)
{
	struct aws_keys *k = calloc(1, sizeof(*k));
	bool failed = false;

	if (!k)
		return NULL;
	k->refs = 1;
	k->access = str_copy(access, &failed);
	k->secret = str_copy(secret, &failed);
	k->token = str_copy(aws_some(token), &failed);
	k->expires = expires;
	snprintf(k->from, sizeof(k->from), "%s", from);
	if (failed) {
		aws_keys_release(k);
		return NULL;
	}
	return k;
}

void aws_keys_release(struct aws_keys *k)
{
	if (!k || atomic_fetch_sub(&k->refs, 1) != 1)
		return;
	free(k->access);
	str_wipe(k->secret);
	str_wipe(k->token);
	free(k);
}

int aws_new(struct http_client *net, const struct remote_options *opts, const char *profile,
	    struct aws **ret, struct err *e)
{
	struct aws *a = calloc(1, sizeof(*a));
	bool failed = false;

	if (!a)
		return err_nomem(e);
	a->o = (struct aws_options){
		.net = net, .opts = opts, .profile = str_copy(profile, &failed)};
	pthread_mutex_init(&a->lock, NULL);
	cancel_cond_init(&a->ready);
	if (failed) {
		aws_free(a);
		return err_nomem(e);
	}
	*ret = a;
	return 0;
}

void aws_free(struct aws *a)
{
	if (!a)
		return;
	free(a->o.profile);
	aws_resolved_release(&a->found);
	pthread_cond_destroy(&a->ready);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

void aws_fixed_only(struct aws *a)
{
	a->o.fixed_only = true;
}

void aws_resolved_release(struct aws_resolved *f)
{
	aws_keys_release(f->keys);
	free(f->region);
	free(f->endpoint);
	*f = (struct aws_resolved){.keys = NULL};
}

/* credentials_due - whether to look for keys now; *ret_must: the current ones are invalid. */
static bool credentials_due(const struct aws *a, int64_t now, bool *ret_must)
{
	const struct aws_keys *k = a->found.keys;

	*ret_must = !a->looked || (k && k->expires && k->expires <= now);
	if (*ret_must || (a->stale && k->of_file))
		return true;
	if (now < a->not_before)
		return false;
	return a->stale || (k && k->expires && k->expires - RENEW_BEFORE <= now);
}

static bool same_keys(const struct aws_keys *a, const struct aws_keys *b)
{
	const char *x = a->token ? a->token : "", *y = b->token ? b->token : "";

	return strcmp(a->access, b->access) == 0 && strcmp(a->secret, b->secret) == 0 &&
	       strcmp(x, y) == 0;
}

/* credentials_take - use the keys of a search. Region and endpoint are not replaced: they may be
 * borrowed. */
static void credentials_take(struct aws *a, struct aws_resolved *new, int64_t now)
{
	const struct aws_keys *was = a->found.keys;

	a->again = (a->stale || a->again) && was && new->keys && same_keys(was, new->keys);
	aws_keys_release(a->found.keys);
	a->found.keys = steal(&new->keys);
	if (!a->looked) {
		a->found.region = steal(&new->region);
		a->found.endpoint = steal(&new->endpoint);
		memcpy(a->found.looked, new->looked, sizeof(a->found.looked));
	}
	a->looked = true;
	a->stale = false;
	a->not_before = now + AGAIN_AFTER;
}

/* credentials_look - search for keys. The lock is held at entry and exit, not during the search.
 * Rejected keys of a file are only replaced by keys of a file: it may be half written. */
static int credentials_look(struct aws *a, bool must, struct err *e)
{
	struct aws_options o = a->o;
	struct aws_resolved new = {.keys = NULL};
	struct err why = ERR_INIT;
	bool stale = a->stale;
	int64_t now;
	int rc;

	o.fixed_only |= stale && a->found.keys->of_file;
	a->looking = true;
	pthread_mutex_unlock(&a->lock);
	rc = aws_resolve(&o, &new, &why);
	if (rc == 0 && stale && !new.keys)
		rc = err_set(&why, -EACCES, "the credentials are no longer available");
	if (rc == -ENOENT)
		rc = -EACCES; /* a missing file or role is no absent object */
	now = (int64_t)time(NULL);
	pthread_mutex_lock(&a->lock);
	a->looking = false;
	if (rc == 0) {
		credentials_take(a, &new, now);
	} else if (rc != -EINTR && !must) {
		if (now >= a->not_before)
			log_warn("cannot renew the credentials, will retry: %s", why.msg);
		a->not_before = now + AGAIN_AFTER;
		a->again |= stale;
		a->stale = false;
		rc = 0;
	}
	aws_resolved_release(&new);
	pthread_cond_broadcast(&a->ready);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

int aws_ready(struct aws *a, bool wait, struct err *e)
{
	bool must;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	while (rc == 0 && (wait || !a->looked) &&
	       credentials_due(a, (int64_t)time(NULL), &must)) {
		if (!a->looking) {
			rc = credentials_look(a, must, e);
			break;
		}
		if (!must && !a->stale)
			break;
		rc = cancel_wait(&a->ready, &a->lock);
		if (rc < 0)
			rc = err_set(e, rc, "cancelled while looking for credentials");
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

struct aws_keys *aws_keys_now(struct aws *a)
{
	struct aws_keys *k;

	pthread_mutex_lock(&a->lock);
	k = a->found.keys;
	if (k)
		atomic_fetch_add(&k->refs, 1);
	pthread_mutex_unlock(&a->lock);
	return k;
}

int aws_refused(struct aws *a, const struct aws_keys *k)
{
	int rc = 1;

	pthread_mutex_lock(&a->lock);
	if (a->found.keys == k) {
		bool may = k->of_file || (int64_t)time(NULL) >= a->not_before;

		rc = may && !a->again ? -EKEYEXPIRED : 0;
		a->stale |= may;
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

const char *aws_region(struct aws *a)
{
	return a->found.region;
}

const char *aws_endpoint(struct aws *a)
{
	return a->found.endpoint;
}

const char *aws_resolved_from(struct aws *a)
{
	return a->found.looked;
}
