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

struct stop {
	_Atomic bool asked;
	struct stop *outer;  /* the thread's before */
	bool (*look)(void *arg);
	void *arg;
	int64_t next;        /* ns: when it is looked again */
};

/* stop_begin - this thread's stop until stop_end, which must come in the same thread. s is the
 * caller's. */
void stop_begin(struct stop *s);
void stop_end(struct stop *s);
/* stop_begin_if - the same; look is called besides, by this thread, while it waits: not in the
 * first tenth of a second, and then ten times a second until it says true, which is as if asked. */
void stop_begin_if(struct stop *s, bool (*look)(void *arg), void *arg);
/* stop_ask - any thread; not after stop_end. */
void stop_ask(struct stop *s);
/* stop_asked - whether this thread should give up what it waits for. */
bool stop_asked(void);

/* stop_everything - from now on every wait of this process is given up: the mount ends. */
void stop_everything(void);

/* stop_wait - pthread_cond_wait (CLOCK_MONOTONIC condition, see stop_cond_init) that ends within a
 * tenth of a second when stop is asked, or at `until` (ns, as child_now; INT64_MAX: never).
 * Returns 0: woken, look again; -EINTR; -ETIMEDOUT. */
int stop_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until) NZ_MUST_USE;
void stop_cond_init(pthread_cond_t *cond);
/* stop_now - ns of CLOCK_MONOTONIC. */
int64_t stop_now(void);

#endif
