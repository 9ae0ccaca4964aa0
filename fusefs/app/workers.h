/* SPDX-License-Identifier: BSD-3-Clause */
/* workers.h - the threads of a command that goes through much, and a line about it now and then. */
#ifndef FUSEFS_APP_WORKERS_H
#define FUSEFS_APP_WORKERS_H

#include <pthread.h>

#include "base/core/err.h"

/* workers - what they do. */
struct workers {
	uint32_t n;               /* threads; fewer when the machine has no more */
	size_t room;              /* bytes of its own that each is given */
	pthread_mutex_t *lock;    /* of the caller's state */
	pthread_cond_t *tick;     /* of lock; made and ended by workers_run. Whoever waits for what
				   * another thread does may use it as well, by broadcast */
	uint32_t *running;        /* lock: threads that have not ended */
	/* work - in thread i, below n, without the lock. */
	void (*work)(void *arg, uint32_t i, uint8_t *room);
	/* moment - about ten times a second, and once when all have ended; without the lock, as
	 * what it does may take its time. */
	void (*on_progress)(void *arg);
	void *arg;
};

/* room - memory that threads hold at a time: no more than max, or what one of them needs. */
struct room {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	uint64_t max, held;
};

void room_init(struct room *r, uint64_t max);
void room_end(struct room *r);
/* room_hold - wait until n bytes may be held; finish with room_give. */
void room_hold(struct room *r, uint64_t n);
void room_give(struct room *r, uint64_t n);

/* workers_run - until all threads have ended. Returns 0; when not one could be started its error,
 * and moment was called once. e is written with the lock. */
int workers_run(const struct workers *w, struct err *e) NZ_MUST_USE;

#endif
