/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.h - start a thread that leaves signals to other threads; number of processors. */
#ifndef BASE_OS_THREAD_H
#define BASE_OS_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>

/* thread_start - start a thread with all signals blocked. The caller's mask stays. Returns 0 or a
 * positive errno value. */
static inline int thread_start(pthread_t *ret, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int errnum;

	(void)sigfillset(&all);
	errnum = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (errnum)
		return errnum;
	errnum = pthread_create(ret, NULL, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* the mask was valid a moment ago */
	return errnum;
}

/* thread_processors - number of processors that this process may use; at least 1. */
static inline uint32_t thread_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (uint32_t)CPU_COUNT(&set);
}

#endif
