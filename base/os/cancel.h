/* SPDX-License-Identifier: BSD-3-Clause */
/* cancel.h - waiting that can be given up: what waits for others (a server far away) is told that
 * nobody wants the answer any more.
 *
 * A thread that answers a request installs a stop; whoever learns that the request was given up
 * (the kernel says so) asks for it; what waits below looks at it. Without a stop installed nothing
 * is ever given up. */
#ifndef BASE_OS_CANCEL_H
#define BASE_OS_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/util.h"

struct cancel {
	_Atomic bool asked;
	struct cancel *outer; /* the thread's before */
	bool (*look)(void *arg);
	void *arg;
	int64_t next;        /* ns: when it is looked again */
};

/* cancel_begin - this thread's stop until cancel_end, which must come in the same thread. s is the
 * caller's. */
void cancel_begin(struct cancel *s);
void cancel_end(struct cancel *s);
/* cancel_begin_if - the same; look is called besides, by this thread, while it waits: not in the
 * first tenth of a second, and then ten times a second until it says true, which is as if asked. */
void cancel_begin_if(struct cancel *s, bool (*look)(void *arg), void *arg);
/* cancel_request - any thread; not after cancel_end. */
void cancel_request(struct cancel *s);
/* cancel_requested - whether this thread should give up what it waits for. */
bool cancel_requested(void);

/* cancel_everything - from now on every wait of this process is given up: the mount ends. */
void cancel_everything(void);

/* cancel_wait - pthread_cond_wait (CLOCK_MONOTONIC condition, see cancel_cond_init) that ends
 * within a tenth of a second when stop is asked, or at `until` (ns, as clock_ns; INT64_MAX:
 * never). Returns 0: woken, look again; -EINTR; -ETIMEDOUT. */
int cancel_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until) NZ_MUST_USE;

/* cancel_lock - pthread_mutex_lock of a lock that is held for long, given up within a tenth of a
 * second when that is requested. Returns 0: it is ours; -EINTR: it is not. */
int cancel_lock(pthread_mutex_t *lock) NZ_MUST_USE;
void cancel_cond_init(pthread_cond_t *cond);

#endif
