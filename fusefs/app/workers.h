/* SPDX-License-Identifier: BSD-3-Clause */
/* workers.h - the threads of a command that reads many chunks or files, with progress reports. */
#ifndef FUSEFS_APP_WORKERS_H
#define FUSEFS_APP_WORKERS_H

#include <pthread.h>

#include "base/core/err.h"
#include "mountcfg/options.h"

/* workers - the work and its shared state. */
struct workers {
	uint32_t n;               /* threads; fewer if the system has no more */
	size_t room;              /* bytes of buffer for each thread */
	pthread_mutex_t *lock;    /* lock of the caller's state */
	/* belongs to lock; made and destroyed by workers_run. Threads may use it to wait for each
	 * other, by broadcast */
	pthread_cond_t *tick;
	uint32_t *running;        /* lock: threads that have not ended */
	/* work - runs in thread i, below n, without the lock. */
	void (*work)(void *arg, uint32_t i, uint8_t *room);
	/* on_progress - called about ten times a second, and once after all threads have ended;
	 * without the lock, because it may take long. */
	void (*on_progress)(void *arg);
	void *arg;
};

/* room - limit on memory that threads hold at a time: max, or the need of one thread if that is
 * more. */
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

/* workers_threads - number of threads for a command: -o decode_threads, or the processors; remote:
 * at least 8, because they wait for network replies. */
uint32_t workers_threads(const struct cfg_limits *limits, bool remote);
/* workers_run - run until all threads have ended. Returns 0; the error if not one thread could be
 * started, after one call of on_progress. e is written with the lock. */
int workers_run(const struct workers *w, struct err *e) NZ_MUST_USE;

#endif
