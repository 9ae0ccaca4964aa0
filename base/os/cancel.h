/* SPDX-License-Identifier: BSD-3-Clause */
/* cancel.h - cancellation of waits, such as a request to a remote server whose result is no longer
 * wanted.
 *
 * A thread that serves a request installs a cancel object. A thread that learns that the request
 * was interrupted (the kernel reports it) calls cancel_request. The functions that wait check for
 * it. Without an installed object, only cancel_everything cancels a wait. */
#ifndef BASE_OS_CANCEL_H
#define BASE_OS_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/util.h"

struct cancel {
	_Atomic bool asked;
	struct cancel *outer; /* the one that this thread had installed before */
	bool (*look)(void *arg);
	void *arg;
	int64_t next;        /* ns: when look is called next */
};

/* cancel_begin - install s as this thread's cancel object until cancel_end, which the same thread
 * must call. s is the caller's memory. */
void cancel_begin(struct cancel *s);
void cancel_end(struct cancel *s);
/* cancel_begin_if - the same, and look is called by this thread while it waits: not in the first
 * tenth of a second, then ten times a second. When look returns true, the wait is cancelled as by
 * cancel_request. */
void cancel_begin_if(struct cancel *s, bool (*look)(void *arg), void *arg);
/* cancel_swap - install s in place of this thread's cancel object, and return that; NULL: none. */
struct cancel *cancel_swap(struct cancel *s);
/* cancel_request - cancel the waits below s. Any thread; not after cancel_end. */
void cancel_request(struct cancel *s);
/* cancel_requested - whether this thread's request was cancelled. */
bool cancel_requested(void);

/* cancel_everything - cancel all waits of this process from now on, because the mount ends. */
void cancel_everything(void);

/* cancel_wait - pthread_cond_wait (CLOCK_MONOTONIC condition, see cancel_cond_init) that returns
 * within a tenth of a second after a cancellation. Returns 0 when woken, possibly spuriously;
 * -EINTR. */
int cancel_wait(pthread_cond_t *cond, pthread_mutex_t *lock) NZ_MUST_USE;

/* cancel_lock - pthread_mutex_lock of a lock that may be held for long; returns within a tenth of a
 * second after a cancellation. Returns 0 with the lock held; -EINTR without it. */
int cancel_lock(pthread_mutex_t *lock) NZ_MUST_USE;
void cancel_cond_init(pthread_cond_t *cond);

#endif
