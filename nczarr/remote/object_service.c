/* SPDX-License-Identifier: BSD-3-Clause */
/* object_service.c - common to all services: versions, and a blocking fetch. */
#include "nczarr/remote/object_service.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/os/cancel.h"

uint64_t object_version(const struct object_info *o)
{
	uint64_t h = HASH_SEED, size = o->size;
	int64_t changed = o->changed;

	if (o->etag[0]) {
		h = hash_bytes(h, o->etag, strnlen(o->etag, sizeof(o->etag)));
	} else {
		h = hash_bytes(h, &size, sizeof(size));
		h = hash_bytes(h, &changed, sizeof(changed));
	}
	h ^= h >> 29; /* the last bytes influence the lower bits, too */
	return h ? h : 1;
}

void object_range_line(int what, uint64_t off, uint64_t len, bool first_byte, char out[80])
{
	uint64_t last;

	out[0] = '\0';
	if (first_byte) {
		(void)snprintf(out, 80, "Range: bytes=0-0");
	} else if (what == OBJECT_TAIL) {
		(void)snprintf(out, 80, "Range: bytes=-%" PRIu64, len);
	} else if (what == OBJECT_PART) {
		if (ckd_add(&last, off, len - 1))
			last = UINT64_MAX;
		(void)snprintf(out, 80, "Range: bytes=%" PRIu64 "-%" PRIu64, off, last);
	}
}

/* waiter - shared by the waiting and the answering thread; the last one frees it. */
struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done; /* lock */
	bool left; /* lock: the waiting thread gave up */
	struct object_got got;
};

static void waiter_free(struct waiter *w)
{
	(void)pthread_cond_destroy(&w->cond);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static void on_got(void *arg, struct object_got *got)
{
	struct waiter *w = arg;
	bool left;

	(void)pthread_mutex_lock(&w->lock);
	left = w->left;
	w->done = true;
	if (!left)
		w->got = *got;
	(void)pthread_cond_signal(&w->cond);
	(void)pthread_mutex_unlock(&w->lock);
	if (left) {
		free(got->data);
		waiter_free(w);
	}
}

static int get_once(struct object_service *o, const struct object_range *r,
		    struct object_got *ret, struct err *e)
{
	struct waiter *w = calloc(1, sizeof(*w));
	bool left;
	int rc;

	*ret = (struct object_got){0};
	if (!w)
		return ret->rc = err_nomem(e);
	(void)pthread_mutex_init(&w->lock, NULL);
	cancel_cond_init(&w->cond);
	rc = o->ops->fetch(o, r, on_got, w, e);
	if (rc < 0) {
		waiter_free(w);
		return ret->rc = rc;
	}
	(void)pthread_mutex_lock(&w->lock);
	while (!w->done && rc == 0)
		rc = cancel_wait(&w->cond, &w->lock);
	left = w->left = !w->done;
	(void)pthread_mutex_unlock(&w->lock);
	if (left)
		return ret->rc = err_set(e, -EINTR, "'%s': cancelled", o->name);
	*ret = w->got;
	waiter_free(w);
	if (ret->rc < 0 && e)
		*e = ret->e;
	return ret->rc;
}

int object_get(struct object_service *o, const struct object_range *r, struct object_got *ret,
	       struct err *e)
{
	int rc;

	do
		rc = get_once(o, r, ret, e);
	while (rc == -EKEYEXPIRED);
	return rc;
}
